"""Chains of a compiled density: many steps in one call, during which other threads run.

Between two windows of the warm-up the step size and the variances are learned inside the compiled code; the steps at which
a window ends are made one by one, by the code that plain kernels use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.hamiltonian._trajectories import (
    ACCEPTANCE,
    ACCEPTED,
    DEPTH,
    DIVERGENT,
    ENERGY,
    EVALUATIONS,
    N_MEMORY,
    N_TOLD,
    STACK,
    STEP_SIZE,
    TREE_ROWS,
    Course,
    Walk,
)
from pluri.inference.mcmc.hamiltonian.leapfrog import GradientState

if TYPE_CHECKING:
    from pluri.inference.mcmc.chain import Logbook
    from pluri.inference.mcmc.hamiltonian.hamiltonian_kernel import HamiltonianAdaptation, HamiltonianKernel
    from pluri.inference.mcmc.kernel import Info

Array = NDArray[np.float64]
#: Steps of one call at most: their draws are kept in memory until it returns.
LONGEST = 10_000
#: Column and type of what a step tells.
TOLD: dict[str, tuple[int, type]] = {
    "acceptance": (ACCEPTANCE, float),
    "n_evaluations": (EVALUATIONS, int),
    "divergent": (DIVERGENT, bool),
    "energy": (ENERGY, float),
    "step_size": (STEP_SIZE, float),
}


class Block(NamedTuple):
    """Some steps of a chain: where it is then, the path, what the steps told, and what the warm-up learned of them."""

    state: GradientState
    positions: Array
    values: Array
    told: dict[str, NDArray[Any]]
    memory: Array
    mean: Array
    spread: Array


def make_block(
    kernel: HamiltonianKernel, rng: np.random.Generator, state: GradientState, n_steps: int,
    adaptation: HamiltonianAdaptation | None = None,
) -> Block:  # fmt: skip
    """Make some steps; an adaptation learns from them (what it knows comes back, and is not changed here)."""
    from pluri.inference.mcmc.hamiltonian._compiled_steps import INFINITE, make_steps

    dim = len(state.position)
    memory, mean, spread = np.zeros(N_MEMORY), np.zeros(dim), np.zeros((1, dim))
    if adaptation is not None:
        memory, mean, spread = adaptation.numbers()
    course = Course(
        state.position.copy(), state.gradient.copy(), np.array([state.log_density]), np.empty((n_steps, dim)),
        np.empty(n_steps), np.empty((n_steps, N_TOLD)), memory, mean, spread,
    )  # fmt: skip
    learning, watching = adaptation is not None, adaptation is not None and adaptation.watching
    walk = _walk(kernel, dim)
    if make_steps(walk, course, rng, float(kernel.used_step_size), learning, watching) == INFINITE:
        raise ValueError("the log density is +inf at a point of the trajectory: it must be finite or -inf")
    columns = TOLD | ({"tree_depth": (DEPTH, int)} if walk.max_depth else {"accepted": (ACCEPTED, bool)})
    told = {name: course.told[:, column].astype(kind) for name, (column, kind) in columns.items()}
    reached = GradientState(course.position, float(course.value[0]), course.gradient)
    return Block(reached, course.positions, course.values, told, memory, mean, spread)


def _walk(kernel: Any, dim: int) -> Walk:
    max_depth = int(getattr(kernel, "max_tree_depth", 0))
    rows = np.empty((STACK + TREE_ROWS * (max_depth + 1), dim))
    scale = np.ascontiguousarray(kernel.terrain(dim).scale.reshape(-1, dim))
    target = kernel.value_and_grad.target
    return Walk(
        target.function, target.data, rows, int(rows.ctypes.data), np.zeros((max_depth + 3, 3)), scale, max_depth,
        int(getattr(kernel, "n_leapfrog", 0)), float(getattr(kernel, "jitter", 0.0)),
    )  # fmt: skip


def compiled_step(
    kernel: HamiltonianKernel, rng: np.random.Generator, state: GradientState
) -> tuple[GradientState, Info]:
    """One step."""
    block = make_block(kernel, rng, state, 1)
    return block.state, {name: values[0].item() for name, values in block.told.items()}


def advance_compiled(books: list[Logbook], n_steps: int) -> None:
    """Make some steps of each chain."""
    for book in books:
        left = n_steps
        while left:
            left -= _advance_one(book, min(left, LONGEST))


def _advance_one(book: Logbook, most: int) -> int:
    """Make at most so many steps in one call; gives how many."""
    if not book.warming:
        book.took_draws(make_block(book.kernel, book.rng, book.state, most))
        return most
    adaptation: Any = book.adaptation
    quiet = 0 if adaptation is None else min(most, adaptation.quiet_steps, book.warmup_left - 1)
    if quiet == 0:
        book.took(*book.kernel.step(book.rng, book.state))
        return 1
    block = make_block(book.kernel, book.rng, book.state, quiet, adaptation)
    book.learned(block.state, quiet, lambda kernel: adaptation.take(kernel, block, quiet))
    return quiet
