"""Chains of a compiled density: many steps in one call, during which other threads run.

Between two windows of the warm-up the step size and the variances are learned inside the compiled code; the steps at which
a window ends are made one by one, by the code that plain kernels use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.hamiltonian.leapfrog import GradientState

if TYPE_CHECKING:
    from pluri.inference.mcmc.chain import Logbook
    from pluri.inference.mcmc.hamiltonian.hamiltonian_kernel import HamiltonianAdaptation, HamiltonianKernel
    from pluri.inference.mcmc.kernel import Info

Array = NDArray[np.float64]
#: Steps of one call at most: their draws are kept in memory until it returns.
LONGEST = 10_000
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
    # Imported when it is used: Numba takes a second.
    from pluri.inference.mcmc.hamiltonian import _compiled_steps as steps

    dim = len(state.position)
    memory, mean, spread = np.zeros(steps.N_MEMORY), np.zeros(dim), np.zeros((1, dim))
    if adaptation is not None:
        memory, mean, spread = adaptation.numbers()
    watching = adaptation is not None and adaptation.watching
    positions, told = np.empty((n_steps, dim)), np.empty((n_steps, steps.N_TOLD + 1))
    course = steps.Course(positions, told, memory, mean, spread, adaptation is not None, watching)
    walk = _walk(kernel, state)
    make_steps = steps.make_nuts_steps if walk.max_depth else steps.make_hmc_steps
    if make_steps(walk, course, rng, np.empty(2 * walk.max_depth), float(kernel.used_step_size)) == steps.INFINITE:
        raise ValueError("the log density is +inf at a point of the trajectory: it must be finite or -inf")
    columns = {
        "acceptance": told[:, steps.ACCEPTANCE],
        "n_evaluations": told[:, steps.EVALUATIONS].astype(np.int64),
        "divergent": told[:, steps.DIVERGENT] > 0,
        "energy": told[:, steps.ENERGY],
        "step_size": told[:, steps.STEP_SIZE],
    }
    if walk.max_depth:
        columns["tree_depth"] = told[:, steps.DEPTH].astype(np.int64)
    else:
        columns["accepted"] = told[:, steps.ACCEPTED] > 0
    gradient = walk.rows[steps.WHOLE + steps.SLOPE, :dim].copy()
    reached = GradientState(positions[-1].copy(), float(told[-1, steps.N_TOLD]), gradient)
    return Block(reached, positions, told[:, steps.N_TOLD], columns, memory, mean, spread)


def _walk(kernel: Any, state: GradientState) -> Any:
    """The kernel for compiled code, with a workspace that is at the state."""
    from pluri.inference.mcmc.hamiltonian import _compiled_steps as steps

    dim = len(state.position)
    max_depth = int(getattr(kernel, "max_tree_depth", 0))
    scale = kernel.terrain(dim).scale.reshape(-1, dim)
    scale_row = steps.STACK + steps.TREE_ROWS * (max_depth + 1)
    rows = np.zeros((scale_row + len(scale), dim + steps.N_TOLD))
    rows[scale_row:, :dim] = scale
    rows[steps.WHOLE, :dim], rows[steps.WHOLE + steps.SLOPE, :dim] = state.position, state.gradient
    rows[steps.WHOLE, dim + steps.VALUE] = state.log_density
    target = kernel.value_and_grad.target
    return steps.Walk(
        rows, int(rows.ctypes.data), dim, target.function, target.data, scale_row, len(scale) > 1, max_depth,
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
