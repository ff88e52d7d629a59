"""Learning a kernel's settings during warm-up: step sizes by dual averaging, scales from the draws themselves.

Dual averaging [1]_ moves the logarithm of a step size until the mean acceptance is the wanted one; the average of the
path is what is kept. Scales (the mass matrix) are learned in windows that double, as the chain forgets where it began.

References
----------
.. [1] Hoffman, M. D. and Gelman, A. (2014). The No-U-Turn sampler. JMLR 15, 1593-1623.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass
class DualAveraging:
    """Step size whose mean acceptance is `target`: ``log e_t = mu - sqrt(t)/gamma * mean(target - acceptance)``.

    Parameters
    ----------
    target : float
        Wanted mean acceptance.
    gamma, offset, decay : float
        Shrinkage towards ten times the first step size, stability of the first steps, and how fast old ones are
        forgotten in the average. The usual 0.05 for the shrinkage lets the step size swing far during warm-up,
        and its short steps are expensive.

    Examples
    --------
    >>> import math
    >>> from pluri.inference.mcmc.adaptation import DualAveraging
    >>> averaging = DualAveraging(target=0.8)
    >>> averaging.restart(1.0)
    >>> for _ in range(2000):  # a target whose acceptance is exp(-step)
    ...     _ = averaging.update(math.exp(-averaging.step_size))
    >>> round(averaging.averaged, 1)  # -log(0.8) = 0.22
    0.2
    """

    target: float = 0.8
    gamma: float = 0.1
    offset: float = 10.0
    decay: float = 0.75

    def restart(self, step_size: float) -> None:
        """Begin anew at a step size."""
        self.step_size = step_size
        self._centre = math.log(10.0 * step_size)
        self._count = 0
        self._error = 0.0
        self._log_averaged = 0.0

    def update(self, acceptance: float) -> float:
        """See one acceptance; give the next step size."""
        self._count += 1
        count = self._count
        share = 1.0 / (count + self.offset)
        self._error += share * (self.target - acceptance - self._error)
        # A target that accepts everything would let the step grow without bound.
        log_step = min(max(self._centre - math.sqrt(count) / self.gamma * self._error, -700.0), 700.0)
        weight = count**-self.decay
        self._log_averaged += weight * (log_step - self._log_averaged)
        self.step_size = math.exp(log_step)
        return self.step_size

    def numbers(self) -> list[float]:
        """What it knows and how it is set, for compiled code: see `take`."""
        known = [self.step_size, self._centre, float(self._count), self._error, self._log_averaged]
        return [*known, self.target, self.gamma, self.offset, self.decay]

    def take(self, numbers: list[float]) -> None:
        """Know what compiled code has learned."""
        self.step_size, self._centre, count, self._error, self._log_averaged = numbers[:5]
        self._count = int(count)

    @property
    def averaged(self) -> float:
        """Average of the path: the step size to keep."""
        return math.exp(self._log_averaged) if self._count else self.step_size


class RunningVariance:
    """Mean and (co)variance of the positions seen.

    Sums are of differences to the first position: as it is one of them, no digits are lost however far away the others
    are, and several positions are added as fast as one, with the same rounding whatever comes in one piece.
    """

    def __init__(self, dim: int, dense: bool = False):
        self.dense = dense
        self.count = 0
        self._first = np.zeros(dim)
        self._total = np.zeros(dim)
        self._products: Array = np.zeros((dim, dim)) if dense else np.zeros(dim)

    def add(self, position: Array) -> None:
        """See one position."""
        if self.count == 0:
            self._first = np.array(position, dtype=np.float64)
        self.count += 1
        gap = position - self._first
        self._total = self._total + gap
        self._products = self._products + (np.multiply.outer(gap, gap) if self.dense else gap * gap)

    def add_rows(self, positions: Array) -> None:
        """See several positions (n, dim), as if one after the other."""
        if self.dense or self.count == 0:
            n_single = len(positions) if self.dense else 1
            for row in positions[:n_single]:
                self.add(row)
            positions = positions[n_single:]
        gaps = positions - self._first
        self._total = np.add.accumulate(np.vstack([self._total, gaps]))[-1]
        if not self.dense:
            self._products = np.add.accumulate(np.vstack([self._products, gaps * gaps]))[-1]
        self.count += len(positions)

    @property
    def mean(self) -> Array:
        """Mean of the positions; zeros before the first."""
        return self._first + self._total / max(self.count, 1)

    @property
    def _sum(self) -> Array:
        """Sum of squares or products of the differences to the mean."""
        total = self._total
        outer = np.multiply.outer(total, total) if self.dense else total * total
        rest = self._products - outer / max(self.count, 1)
        return rest if self.dense else np.maximum(rest, 0.0)

    def regularised(self) -> Array:
        """``n/(n+5) S + 1e-3 * 5/(n+5)``: shrunk to a small multiple of the identity while there are few draws."""
        count = self.count
        shrink = 1e-3 * 5.0 / (count + 5.0)
        scaled = self._sum / max(count - 1, 1) * (count / (count + 5.0))
        return scaled + (shrink * np.eye(len(self.mean)) if self.dense else shrink)

    @property
    def covariance(self) -> Array:
        """Plain estimate: a matrix if dense, else variances."""
        return self._sum / max(self.count - 1, 1)


def window_ends(n_warmup: int) -> tuple[int, ...]:
    """Steps after which scales are renewed: the first is when learning them begins.

    The first 75 steps find the typical set, the last fifth settles the step size for the scales found; between them
    windows of 25, 50, 100, ... The usual 50 steps at the end leave the step size noisy, and too short on average. A
    warm-up shorter than 150 is divided 15 : 65 : 20; below 20 there are no windows.

    Examples
    --------
    >>> from pluri.inference.mcmc.adaptation import window_ends
    >>> window_ends(1000)
    (75, 100, 150, 250, 800)
    >>> window_ends(10)
    ()
    """
    if n_warmup < 20:
        return ()
    first, last, width = 75, max(50, n_warmup // 5), 25
    if n_warmup < first + last + width:
        first, last = int(0.15 * n_warmup), int(0.2 * n_warmup)
        width = n_warmup - first - last
    ends = [first]
    stop = n_warmup - last
    while ends[-1] < stop:
        end = ends[-1] + width
        # A window that would leave too little for the next, twice as wide, takes that too.
        ends.append(stop if end + 2 * width > stop else end)
        width *= 2
    return tuple(ends)
