"""Steps of HMC and NUTS with a compiled density, many in one call; the step size is learned inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.compiled_targets.chains import Block
from pluri.inference.mcmc.hamiltonian.leapfrog import GradientState

if TYPE_CHECKING:
    from pluri.inference.mcmc.hamiltonian.hamiltonian_kernel import HamiltonianAdaptation, HamiltonianKernel

Array = NDArray[np.float64]


def make_block(
    kernel: HamiltonianKernel, rng: np.random.Generator, state: GradientState, n_steps: int,
    adaptation: HamiltonianAdaptation | None = None,
) -> Block:  # fmt: skip
    """Make some steps; an adaptation learns from them (what it knows comes back, and is not changed here)."""
    # Imported when they are used: Numba takes a second.
    from pluri.inference.mcmc.hamiltonian import _compiled_steps as steps
    from pluri.inference.mcmc.hamiltonian import _trajectories as at

    rows, plan = _workspace(kernel, state, adaptation)
    path = np.empty((n_steps, rows.shape[1]))
    step_size = float(kernel.used_step_size)
    if plan.max_depth:
        last = steps.make_nuts_steps(rows, path, np.array(plan), rng, step_size)
    else:
        last = steps.make_hmc_steps(rows, path, np.array(plan), rng, step_size, float(getattr(kernel, "jitter", 0.0)))
    if last == at.INFINITE:
        raise ValueError("the log density is +inf at a point of the trajectory: it must be finite or -inf")
    told, positions = path[:, : at.FRONT], path[:, at.FRONT :].copy()
    columns = {
        "acceptance": told[:, at.ACCEPTANCE],
        "n_evaluations": told[:, at.EVALUATIONS].astype(np.int64),
        "divergent": told[:, at.DIVERGENT] > 0,
        "energy": told[:, at.ENERGY],
        "step_size": told[:, at.STEP_SIZE],
    }
    if plan.max_depth:
        columns["tree_depth"] = told[:, at.DEPTH].astype(np.int64)
    else:
        columns["accepted"] = told[:, at.ACCEPTED] > 0
    gradient = rows[at.WHOLE + at.SLOPE, at.FRONT :].copy()
    reached = GradientState(positions[-1], float(told[-1, at.VALUE]), gradient)
    return Block(reached, positions, told[:, at.VALUE], columns, rows[at.HALVES, : at.N_MEMORY].copy())


def _workspace(kernel: Any, state: GradientState, adaptation: HamiltonianAdaptation | None) -> tuple[Array, Any]:
    """Rows at the state, with the metric and what the warm-up knows, and where to find what."""
    from pluri.inference.mcmc.hamiltonian import _compiled_steps as steps
    from pluri.inference.mcmc.hamiltonian import _trajectories as at

    dim = len(state.position)
    max_depth, n_leapfrog = (int(getattr(kernel, name, 0)) for name in ("max_tree_depth", "n_leapfrog"))
    scale = kernel.terrain(dim).scale.reshape(-1, dim)
    scale_row = at.STACK + at.TREE_ROWS * (max_depth + 1)
    rows = np.zeros((scale_row + len(scale), at.FRONT + dim))
    vectors = rows[:, at.FRONT :]
    vectors[scale_row:] = scale
    vectors[at.WHOLE + at.POINT], vectors[at.WHOLE + at.SLOPE] = state.position, state.gradient
    rows[at.WHOLE, at.VALUE] = state.log_density
    if adaptation is not None:
        rows[at.HALVES, : at.N_MEMORY] = adaptation.numbers()
    target = kernel.value_and_grad.target
    return rows, steps.Plan(
        int(rows.ctypes.data), rows.shape[1], target.function, target.data, scale_row, int(len(scale) > 1), max_depth,
        n_leapfrog, int(adaptation is not None),
    )  # fmt: skip
