"""Warm-up of slice sampling: widths from the intervals that slices needed, or from the spread of the draws."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.accept_reject.step_search import with_setting
from pluri.inference.mcmc.adaptation import RunningVariance, window_ends
from pluri.inference.mcmc.compiled_targets.chains import Block
from pluri.inference.mcmc.kernel import Info
from pluri.inference.mcmc.slice_intervals import Slicing, never_ends

if TYPE_CHECKING:
    from pluri.inference.mcmc.slice_sampling import Slice, SliceState

Array = NDArray[np.float64]


class SliceAdaptation:
    """Warm-up of :class:`Slice`."""

    def __init__(self, n_warmup: int, mode: str):
        self._ends = window_ends(n_warmup)
        self._by_intervals = mode == "coordinate"
        self._done = 0

    def start(self, rng: np.random.Generator, kernel: Slice, state: SliceState) -> Slice:
        """Begin with the widths given, once it is sure that the target is not flat."""
        refuse_flat(kernel.log_density, state, kernel.limits)
        self._total = np.array(np.broadcast_to(kernel.width, state.position.shape))
        self._seen = RunningVariance(len(state.position))
        return with_setting(kernel, "width", self._total)

    def update(self, rng: np.random.Generator, kernel: Slice, state: SliceState, info: Info) -> Slice:
        """Move the widths towards what the slices need."""
        self._done += 1
        if self._by_intervals:
            # The interval after it shrank: before that it is wider than the slice by about the width itself, and
            # widths that follow it would grow for ever.
            self._total = self._total + state.interval
            return with_setting(kernel, "width", self._total / (self._done + 1))
        if not self._ends or self._done <= self._ends[0] or self._done > self._ends[-1]:
            return kernel
        self._seen.add(state.position)
        if self._done not in self._ends:
            return kernel
        spread = np.sqrt(self._seen.covariance)
        self._seen = RunningVariance(len(spread))
        if not (np.isfinite(spread) & (spread > 0)).all():
            return kernel
        # A slice of a normal density is on average about 2.5 standard deviations wide; a box should hold all of it.
        factor = 2.5 * math.sqrt(len(spread)) if kernel.mode == "direction" else 4.0
        return with_setting(kernel, "width", factor * spread)

    @property
    def _watching(self) -> bool:
        return bool(self._ends) and self._ends[0] <= self._done < self._ends[-1]

    @property
    def quiet_steps(self) -> int:
        """Steps before the next one at which a window ends, during which only numbers change."""
        ahead = [] if self._by_intervals else [end - 1 - self._done for end in self._ends if end > self._done]
        return ahead[0] if ahead else sys.maxsize

    def numbers(self) -> tuple[float, Array]:
        """How many steps were made and the sums of their intervals, for compiled code."""
        return float(self._done), self._total

    def take(self, kernel: Slice, block: Block, n_steps: int) -> Slice:
        """Know what compiled code has learned in some steps; gives the kernel with the widths then."""
        if self._watching and not self._by_intervals:
            self._seen.add_rows(block.positions)
        self._done += n_steps
        if not self._by_intervals:
            return kernel
        self._total = block.memory
        return with_setting(kernel, "width", self._total / (self._done + 1))

    def finish(self, kernel: Slice) -> Slice:
        """Keep the widths."""
        return kernel


def refuse_flat(log_density: Callable[[Any], float], state: SliceState, limits: tuple[Array, Array]) -> None:
    """Refuse a target that is the same number however far one goes, in a space without bounds."""
    low, high = limits
    if np.isfinite(low).all() or np.isfinite(high).all():
        return
    slicing = Slicing(log_density)
    signs = np.where(np.isfinite(np.broadcast_to(high, state.position.shape)), -1.0, 1.0)
    if all(slicing.value(state.position + far * signs) == state.log_density for far in (0.1, 1.0, 100.0, 1e10, 1e100)):
        raise never_ends()
