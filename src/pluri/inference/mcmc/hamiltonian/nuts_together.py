"""Several NUTS chains in one call of the density: each is at its own place in its own tree, all step at once.

The leapfrog steps of all chains are made on arrays with a row for each, which is most of the work; the trees are
those of `pluri.inference.mcmc.hamiltonian.nuts`. Every chain draws from its own stream in the same order as if it were
alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.hamiltonian.leapfrog import GradientState
from pluri.inference.mcmc.hamiltonian.nuts import Trajectory
from pluri.inference.mcmc.hamiltonian.nuts_trees import Edge

if TYPE_CHECKING:
    from pluri.inference.mcmc.chain import Logbook

Array = NDArray[np.float64]


class Walker:
    """One chain among several: its logbook, the trajectory under way, and how many steps it still has to make."""

    __slots__ = ("book", "left", "trajectory")

    def __init__(self, book: Logbook, n_steps: int):
        self.book = book
        self.left = n_steps
        self.trajectory = Trajectory(book.rng, book.kernel, book.state)

    def finish(self) -> bool:
        """The trajectory is complete: write down its state and begin the next one; False if none is left."""
        book, found = self.book, self.trajectory.proposal
        if not isinstance(found, GradientState):
            positions, log_densities, gradients, row = found
            found = GradientState(positions[row].copy(), float(log_densities[row]), gradients[row].copy())
        book.took(found, self.trajectory.info(book.kernel.used_step_size))
        self.left -= 1
        if self.left:
            self.trajectory = Trajectory(book.rng, book.kernel, book.state)
        return self.left > 0


class Rows:
    """Where the leapfrog steps of all walkers stand, a row for each: position, half-kicked momentum, strides."""

    def __init__(self, walkers: list[Walker]):
        ends = [walker.trajectory.edges[walker.trajectory.backwards] for walker in walkers]
        strides = [walker.trajectory.strides[walker.trajectory.backwards] for walker in walkers]
        self.position = np.stack([end.position for end in ends])
        self.half = np.stack([end.half for end in ends])
        self.drift = np.stack([drift for drift, _ in strides])
        self.kick = np.stack([kick for _, kick in strides])
        self.energy = np.array([walker.trajectory.energy for walker in walkers])

    def place(self, row: int, trajectory: Trajectory) -> None:
        """Put a walker at the edge from which its next subtree grows."""
        backwards = trajectory.backwards
        self.position[row], self.half[row] = trajectory.edges[backwards]
        self.drift[row], self.kick[row] = trajectory.strides[backwards]
        self.energy[row] = trajectory.energy

    def rest(self, row: int, position: Array) -> None:
        """Leave a walker that is done where it is.

        Its row stays, as a product of matrices may round differently for another number of rows: draws would depend
        on where rounds end.
        """
        self.position[row] = position
        self.half[row] = self.drift[row] = self.kick[row] = 0.0


def advance_together(books: list[Logbook], n_steps: int) -> None:
    """Make some steps of each chain; the kernels share a vectorised density."""
    walkers = [Walker(book, n_steps) for book in books] if n_steps else []
    if not walkers:
        return
    value_and_grad: Any = books[0].kernel.value_and_grad
    rows = Rows(walkers)
    going = len(walkers)
    while going:
        dense = rows.drift.ndim == 3
        position = rows.position + (_times(rows.drift, rows.half) if dense else rows.drift * rows.half)
        log_density, gradient = (np.asarray(part, dtype=np.float64) for part in value_and_grad(position))
        kicked = _times(rows.kick, gradient) if dense else rows.kick * gradient
        momentum = rows.half + kicked
        rows.half = momentum + kicked
        rows.position = position
        kinetic = np.vecdot(momentum, momentum)
        changes = (0.5 * kinetic - log_density - rows.energy).tolist()
        squares = kinetic.tolist()
        shared = True
        for row, walker in enumerate(walkers):
            if not walker.left:
                continue
            trajectory = walker.trajectory
            growth = trajectory.growth
            alive = growth.add((position, log_density, gradient, row), momentum[row], squares[row], changes[row])
            if alive and growth.missing:
                continue
            edge = Edge(position[row].copy(), rows.half[row].copy()) if alive else None
            done = not trajectory.grown(edge) and not walker.finish()
            if shared:  # the rows of this step may be somebody's proposal: they are not to be written over
                rows.position, shared = position.copy(), False
            if done:
                going -= 1
                rows.rest(row, walker.book.state.position)
            else:
                rows.place(row, walker.trajectory)


def _times(matrices: Array, vectors: Array) -> Array:
    """Each matrix times its vector."""
    return np.matmul(matrices, vectors[:, :, np.newaxis])[:, :, 0]
