"""The No-U-Turn sampler: Hamiltonian trajectories that grow until they turn back.

A trajectory doubles, forwards or backwards at random, until its ends move towards each other; one of its states is
drawn with probability proportional to ``exp(-H)``, favouring the newer half. A new half that turned within itself is
thrown away, which keeps the transition reversible. The tree is built without recursion: leaves are added one by one
and equal subtrees merged, like the carries of a binary counter. Momenta are those of `Landscape`, in which the metric
is the identity. The parts are small enough to be driven for one chain (here) or for several at once
(`pluri.inference.mcmc.hamiltonian.nuts_together`).

References
----------
.. [1] Hoffman, M. D. and Gelman, A. (2014). The No-U-Turn sampler. JMLR 15, 1593-1623.
.. [2] Betancourt, M. (2017). A conceptual introduction to Hamiltonian Monte Carlo. arXiv:1701.02434.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluri.inference.mcmc.compiled_targets.chains import compiled_step
from pluri.inference.mcmc.hamiltonian.hamiltonian_kernel import HamiltonianKernel
from pluri.inference.mcmc.hamiltonian.leapfrog import GradientState, ValueAndGrad
from pluri.inference.mcmc.hamiltonian.nuts_trees import DOUBLE, Array, Edge, Growth, Tree, log_add, new_tree, turns
from pluri.inference.mcmc.kernel import Info


class Trajectory:
    """A trajectory that is being built: the whole so far, and where it can go on.

    Attributes
    ----------
    energy : that of the start
    edges : the latest end in time and the earliest
    strides : what a drift and half a kick multiply by, forwards and backwards
    growth : the subtree under way
    backwards : whether it grows into the past
    """

    __slots__ = ("_choices", "_info", "_rng", "_whole", "backwards", "depth", "edges", "energy", "growth", "strides")

    def __init__(self, rng: np.random.Generator, kernel: NUTS, state: GradientState):
        self._rng = rng
        dim = len(state.position)
        self.strides = kernel.strides(dim)
        kick = self.strides[0][1]
        momentum = rng.standard_normal(dim)
        self.energy = 0.5 * float(momentum.dot(momentum)) - state.log_density
        self._whole = new_tree((0, 0.0, state, momentum, momentum, momentum))
        kicked = kick.dot(state.gradient) if kick.ndim == 2 else kick * state.gradient
        self.edges = [Edge(state.position, momentum + kicked), Edge(state.position, momentum - kicked)]
        self._choices = rng.random(2 * kernel.max_tree_depth).tolist()
        self._info = [0.0, 0]  # acceptance, number of leaves
        self.depth = 0
        self._grow()

    def _grow(self) -> None:
        self.backwards = self._choices[2 * self.depth] < 0.5
        self.growth = Growth(self._rng, self.depth)
        self.depth += 1

    def grown(self, edge: Edge | None) -> bool:
        """Take in the subtree under way, which ended at `edge` (None: it is to be thrown away); True to go on."""
        growth = self.growth
        self._info[0] += growth.acceptance
        self._info[1] += growth.n_leaves
        if edge is None:
            return False
        self.edges[self.backwards] = edge
        self._whole, turned = extend(self._whole, growth.tree, self.backwards, self._choices[2 * self.depth - 1])
        if turned or 2 * self.depth == len(self._choices):
            return False
        self._grow()
        return True

    @property
    def proposal(self) -> Any:
        """The state drawn from the trajectory."""
        return self._whole.proposal

    def info(self, step_size: float) -> Info:
        """What the step tells."""
        acceptance, n_leaves = self._info
        return {
            "acceptance": acceptance / n_leaves,
            "n_evaluations": n_leaves,
            "divergent": self.growth.divergent,
            "tree_depth": self.depth,
            "energy": self.energy,
            "step_size": step_size,
        }


def extend(whole: Tree, grown: Tree, backwards: bool, uniform: float) -> tuple[Tree, bool]:
    """Put a grown subtree at one end of the trajectory; also tells whether the whole now turns.

    `whole` runs in time: its near end is the earliest. The proposal moves to the new part with probability
    ``min(1, W_new / W_old)``.
    """
    depth, log_weight, proposal, total, near, far = whole
    if grown.log_weight >= log_weight or uniform < math.exp(grown.log_weight - log_weight):
        proposal = grown.proposal
    # Seen from the new part, the trajectory is read in the direction in which it grew.
    seen = new_tree((depth, log_weight, proposal, total, far, near)) if backwards else whole
    total = total + grown.total
    turned = turns(seen, grown, total)
    near, far = (grown.far, far) if backwards else (near, grown.far)
    return new_tree((depth + 1, log_add(log_weight, grown.log_weight), proposal, total, near, far)), turned


def walk(
    value_and_grad: ValueAndGrad, stride: tuple[Array, Array], edge: Edge, growth: Growth, energy: float
) -> Edge | None:
    """Make the leapfrog steps of a subtree; the edge reached, or None if it turned or diverged on the way."""
    drift, kick = stride
    dense = drift.ndim == 2
    position, half = edge
    try:
        while growth.missing:
            position = position + (drift.dot(half) if dense else drift * half)
            log_density, gradient = value_and_grad(position)
            if type(gradient) is not np.ndarray or gradient.dtype is not DOUBLE:
                gradient = np.asarray(gradient, dtype=np.float64)  # other types would spread to all that follows
            kicked = kick.dot(gradient) if dense else kick * gradient
            momentum = half + kicked
            half = momentum + kicked
            kinetic = float(momentum.dot(momentum))
            log_density = float(log_density)
            change = 0.5 * kinetic - log_density - energy
            if not growth.add((position, log_density, gradient), momentum, kinetic, change):
                return None
    except np.linalg.LinAlgError:  # as a density may raise where a trajectory runs away
        growth.diverge()
        return None
    return Edge(position, half)


@dataclass(frozen=True)
class NUTS(HamiltonianKernel):
    """No-U-Turn sampler (multinomial, with the generalised criterion) for a smooth density with a gradient.

    Parameters
    ----------
    value_and_grad : callable
        Position (dim,) to the log density and its gradient (dim,).
    step_size : float or None, default=None
        Length of a leapfrog step. The warm-up begins with it (with 1 if it is None) and adapts it; without a warm-up
        it stays as it is.
    inverse_mass : array-like of shape (dim,) or (dim, dim), optional
        Variances (or covariance) of the target as far as they are known; ones at first.
    metric : {"diag", "dense", "unit"}, default="diag"
        What the warm-up learns of the inverse mass; "unit" learns nothing.
    target_accept : float, default=0.8
        Mean acceptance that the warm-up aims at.
    check_gradient : bool, default=True
        Compare the gradient with finite differences at the start.
    vectorized : bool, default=False
        Whether `value_and_grad` takes a row for each chain, (n, dim), and gives (n,) and (n, dim).
    compiled : bool, default=False
        Whether `value_and_grad` is a function that Numba can compile, ``value_and_grad(x, gradient, data) -> float``:
        it writes the gradient into the vector `gradient`, all of it, and returns the log density. All steps then run
        compiled, chains side by side on threads if `n_jobs` is more than 1.
    data : tuple, array or number, optional
        What the compiled function gets as its third argument: an array, a number, or a tuple or NamedTuple of them;
        without it the function takes two arguments. Other data of the same types need no further compilation.
    max_tree_depth : int, default=10
        A trajectory has at most ``2^max_tree_depth`` steps.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> def value_and_grad(x):  # a standard normal
    ...     return -0.5 * x @ x, -x
    >>> trace = mcmc.sample(mcmc.NUTS(value_and_grad), np.zeros(3), n_draws=500, n_warmup=300, random_state=0)
    >>> trace["x"].shape
    (4, 500, 3)
    >>> bool(np.abs(trace["x"].mean(axis=(0, 1))).max() < 0.1)
    True

    Chains may share one call for all their positions, which costs less than a call for each:

    >>> def rows(x):  # (n, dim) to (n,) and (n, dim)
    ...     return -0.5 * (x * x).sum(axis=1), -x
    >>> kernel = mcmc.NUTS(rows, vectorized=True)
    >>> mcmc.sample(kernel, np.zeros(3), n_draws=500, n_warmup=300, random_state=0)
    <Trace of 4 chains x 500 draws: x (3,)>

    A density that Numba compiles takes the gradient to write into, and its data:

    >>> def normal(x, gradient, data):
    ...     value = 0.0
    ...     for k in range(len(x)):
    ...         gradient[k] = (data.mean[k] - x[k]) / data.variance
    ...         value += 0.5 * gradient[k] * (x[k] - data.mean[k])
    ...     return value
    >>> from typing import NamedTuple
    >>> class Data(NamedTuple):
    ...     mean: np.ndarray
    ...     variance: float
    >>> kernel = mcmc.NUTS(normal, compiled=True, data=Data(np.array([1.0, 2.0]), 4.0))
    >>> trace = mcmc.sample(kernel, np.zeros(2), n_draws=2000, n_warmup=300, random_state=0)
    >>> bool(abs(trace["x"].std(axis=(0, 1)) - 2.0).max() < 0.2)
    True
    """

    max_tree_depth: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.max_tree_depth <= 20:
            raise ValueError(f"max_tree_depth must be from 1 to 20, got {self.max_tree_depth!r}")

    def step(self, rng: np.random.Generator, state: GradientState) -> tuple[GradientState, Info]:
        """One trajectory and the state drawn from it."""
        if self.compiled:
            return compiled_step(self, rng, state)
        trajectory = Trajectory(rng, self, state)
        going = True
        while going:
            backwards = trajectory.backwards
            edge = walk(
                self.one_row, trajectory.strides[backwards], trajectory.edges[backwards], trajectory.growth,
                trajectory.energy,
            )  # fmt: skip
            going = trajectory.grown(edge)
        position, log_density, gradient = trajectory.proposal
        return GradientState(position, float(log_density), gradient), trajectory.info(self.used_step_size)

    @property
    def advance_together(self) -> Any:
        """How chains of this kernel advance side by side; None if each goes by itself."""
        if not self.vectorized:
            return super().advance_together
        from pluri.inference.mcmc.hamiltonian.nuts_together import advance_together

        return advance_together
