"""Steps of `Slice` with a compiled density, many in one call; the widths are learned inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.compiled_targets.chains import Block
from pluri.inference.mcmc.slice_intervals import infinite, never_ends, stuck, too_wide

if TYPE_CHECKING:
    from pluri.inference.mcmc.slice_sampling import Slice

Array = NDArray[np.float64]


def make_block(kernel: Slice, rng: np.random.Generator, state: Any, n_steps: int, adaptation: Any = None) -> Block:
    """Make some steps; an adaptation learns from them (what it knows comes back, and is not changed here)."""
    # Imported when they are used: Numba takes a second.
    from pluri.inference.mcmc.compiled_targets import _slice_steps as steps

    dim = len(state.position)
    density: Any = kernel.log_density
    target = density.target
    rows, numbers, path = (
        np.zeros((steps.N_ROWS, dim)),
        np.zeros(steps.N_NUMBERS),
        np.empty((n_steps, steps.FAULT + dim)),
    )
    rows[steps.POINT] = rows[steps.START] = state.position
    rows[steps.LOW], rows[steps.HIGH] = kernel.limits
    rows[steps.WIDTH] = kernel.width
    numbers[steps.VALUE] = state.log_density
    learning = adaptation is not None and kernel.mode == "coordinate"
    if learning:
        numbers[steps.COUNT], rows[steps.TOTAL] = adaptation.numbers()
    plan = steps.Plan(
        int(rows.ctypes.data), target.function, target.data, ("coordinate", "direction", "box").index(kernel.mode),
        int(kernel.expansion == "double"), kernel.max_steps or 0, int(learning),
    )  # fmt: skip
    steps.make_slice_steps(rows, numbers, path, np.array(plan), rng)
    _raise_fault(steps, numbers[steps.FAULT], rows)
    told, positions = path[:, : steps.FAULT], path[:, steps.FAULT :].copy()
    columns = {
        "acceptance": np.ones(n_steps),
        "n_evaluations": told[:, steps.EVALUATIONS].astype(np.int64),
        "undefined": told[:, steps.UNDEFINED],
    }
    reached = type(state)(positions[-1], float(told[-1, steps.VALUE]), rows[steps.INTERVAL].copy())
    return Block(reached, positions, told[:, steps.VALUE], columns, rows[steps.TOTAL].copy())


def _raise_fault(steps: Any, fault: float, rows: Array) -> None:
    if fault == steps.INFINITE:
        raise infinite()
    if fault == steps.ENDLESS:
        raise never_ends()
    if fault == steps.TOO_WIDE:
        raise too_wide(rows[steps.WIDTH])
    if fault == steps.STUCK:
        raise stuck(rows[steps.START].copy())
