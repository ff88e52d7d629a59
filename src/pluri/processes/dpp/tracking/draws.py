"""Where tracking begins: fresh draws of subsets, their inverses, and the exact normaliser of a kernel."""

from __future__ import annotations

import math
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from pluri.processes.dpp.kernel_forms import Array, DenseKernel, IntArray
from pluri.processes.dpp.samplers.chain_walk import Steps, target_of
from pluri.processes.dpp.tracking.state import BLOCK, Particles

if TYPE_CHECKING:
    from pluri.processes.dpp.samplers.chain_draws import ChainDraws

#: Up to this many items the normaliser, the expected size and the inclusion probabilities are computed exactly.
MAX_EXACT = 2000
#: Up to this many items our own loops are about as fast as LAPACK, whose threads would fight on a busy machine.
SMALL = 400
#: Updates after which the resolvent is made anew.
MAX_RESOLVENT_AGE = 64
NONE: IntArray = np.empty(0, dtype=np.int64)


@cache
def loops() -> SimpleNamespace:
    """The compiled loops, loaded when they are first needed."""
    from pluri.processes.dpp.tracking import _carry_kernels, _move_kernels, _resolvent_kernels

    return SimpleNamespace(
        carry=_carry_kernels.carry,
        write_rows=_carry_kernels.write_rows,
        move_all=_move_kernels.move_all,
        prepare_rows=_move_kernels.prepare_rows,
        settle=_move_kernels.settle,
        replace_in_resolvent=_resolvent_kernels.replace_in_resolvent,
        invert=_resolvent_kernels.invert,
        is_positive=_resolvent_kernels.is_positive,
    )


def solve_resolvent(kernel: Array) -> tuple[Array | None, float]:
    """``(L + I)^-1`` and ``log det(L + I)``; None and NaN when there are too many items."""
    if len(kernel) > MAX_EXACT:
        return None, math.nan
    shifted = kernel + np.eye(len(kernel))
    if len(kernel) <= SMALL:
        log_determinant = float(loops().invert(shifted, np.empty(len(kernel))))
        if math.isnan(log_determinant):
            raise np.linalg.LinAlgError("the kernel plus the identity is not positive definite")
        return shifted, log_determinant
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, trouble = dpotrf(shifted, lower=1)
    if trouble:
        raise np.linalg.LinAlgError("the kernel plus the identity is not positive definite")
    log_determinant = 2.0 * float(np.log(np.diagonal(factor)).sum())
    lower = np.tril(dpotri(factor, lower=1)[0])
    return np.ascontiguousarray(lower + np.tril(lower, -1).T), log_determinant


def next_resolvent(
    kernel: Array, slots: IntArray, resolvent: Array | None, age: int, log_normalizer: float, out: Array | None
) -> tuple[Array | None, int, float]:
    """Resolvent, its age and the exact log normaliser after rows of the kernel have changed; from those before.

    `out` is an array that it may be written to.
    """
    n, n_slots = slots.size, len(kernel)
    if resolvent is None or n_slots > MAX_EXACT:
        return None, 0, math.nan
    if n == 0:
        return resolvent, age, log_normalizer
    # Few changes are less work than to begin anew.
    if 4 * n <= n_slots and age < MAX_RESOLVENT_AGE:
        if out is None or out is resolvent or out.shape != resolvent.shape:
            out = np.empty_like(resolvent)
        block, rows = np.empty((n, n)), np.empty((n, n_slots))
        gain = loops().replace_in_resolvent(resolvent, kernel, slots, out, block, rows)
        if not math.isnan(gain):
            return out, age + 1, log_normalizer + gain
    resolvent, log_normalizer = solve_resolvent(kernel)
    return resolvent, 0, log_normalizer


def draw_exactly(kernel: Array, n_draws: int, rng: np.random.Generator) -> tuple[list[IntArray], float]:
    """Independent exact draws by the eigenvectors of the kernel, as slots, and its log normaliser."""
    from pluri.processes.dpp.samplers.spectral import draw_subsets
    from pluri.processes.dpp.spectrum import spectrum_of_kernel

    possible = np.flatnonzero(np.diagonal(kernel) > 0)
    if not possible.size:
        return [NONE] * n_draws, 0.0
    spectrum = spectrum_of_kernel(kernel[np.ix_(possible, possible)])
    return [possible[subset] for subset in draw_subsets(spectrum, n_draws, rng)], spectrum.log_normalizer


def draw_by_moves(
    kernel: Array, n_draws: int, rng: np.random.Generator, metropolis: bool = False, n_warmup: int = 10_000,
    thin: int = 80, n_chains: int = 1,
) -> ChainDraws | None:  # fmt: skip
    """Subsets along chains of add-or-drop moves from the empty set, as slots; None if no item can be chosen."""
    from pluri.processes.dpp.samplers.chain_draws import SubsetWalk, draw_chains

    target = target_of(DenseKernel(kernel))
    if not target.candidates.size:
        return None
    steps = Steps("flip", "metropolis" if metropolis else "heat_bath", lazy=metropolis)
    walk = SubsetWalk(target, steps, thin, rng.random(target.n_items))
    return draw_chains(walk, walk.warm(NONE, n_warmup), n_draws, n_warmup, n_chains, rng)


def settled(kernel: Array, subsets: list[IntArray]) -> Particles:
    """Particles of these subsets, with their inverses."""
    sizes = np.array([subset.size for subset in subsets], dtype=np.int64)
    # Room for a little more than the largest: subsets grow and shrink from one time step to the next.
    particles = Particles.empty(len(subsets), min(int(sizes.max()) + BLOCK, len(kernel)), len(kernel))
    for row, subset in zip(particles.members, subsets):
        row[: subset.size] = subset
    particles.sizes[:] = sizes
    loops().settle(kernel, particles, np.zeros(particles.room), np.zeros(particles.room))
    return particles
