"""Slice sampling of a whole cloud of points along the axes of its covariance.

At a point, ``log y = log f_b(x) - Exp(1)``; an interval of the given width around x is stepped out until both ends lie
below y, and a uniform draw from it is shrunk towards x until it lies above. All points do so at a time; at each round
only those that are not done are evaluated.

References
----------
.. [1] Neal, R. M. (2003). Slice sampling. Annals of Statistics 31.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.tempered_path import Cloud, TemperedPath, tempered
from pluri.inference.ais.transitions import Moved, Moves, covariance_root

Array = NDArray[np.float64]
MOST_SHRINKS = 200


@dataclass(frozen=True)
class SliceMoves(Moves):
    """Slice sampling; one step is an update along each of the d columns of `root`.

    Parameters
    ----------
    width : float, default=3.0
        First width of the interval, in units of the columns of `root`.
    max_steps : int, default=16
        The interval grows to this many widths at most.
    root : array (d, d), optional
        Directions; the root of the cloud's covariance is learned in the pilot, the axes are taken without one.
    adapts : bool, default=True
        Whether to learn `root`.

    Examples
    --------
    >>> from pluri.inference.ais.slice_moves import SliceMoves
    >>> SliceMoves(width=2.0).max_steps
    16
    """

    width: float = 3.0
    max_steps: int = 16
    root: Array | None = None
    adapts: bool = True

    vectors = True

    def __post_init__(self) -> None:
        if not 0 < self.width < np.inf:
            raise ValueError(f"width must be positive, got {self.width!r}")
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {self.max_steps!r}")

    def learn(self, x: NDArray[Any], weights: Array) -> SliceMoves:
        """Directions and widths from the cloud."""
        return replace(self, root=covariance_root(x, weights, self.root)) if self.adapts else self

    def move(self, rng: np.random.Generator, path: TemperedPath, beta: float, cloud: Cloud, n_steps: int) -> Moved:
        """`n_steps` sweeps over the directions; points of density zero stay."""
        x, base, gain = (part.copy() for part in cloud)
        rows = np.flatnonzero(tempered(base, gain, beta) > -np.inf)
        line = _Line(path, beta)
        directions = np.eye(x.shape[1]) if self.root is None else self.root.T
        for _ in range(n_steps):
            for direction in directions:
                self._update(rng, line, x, base, gain, rows, direction)
        updates = len(rows) * n_steps * len(directions)
        rate = updates / line.n_shrinks if line.n_shrinks else float("nan")
        return Moved(Cloud(x, base, gain), rate, line.n_evaluations, line.undefined, line.uncovered)

    def _update(
        self, rng: np.random.Generator, line: _Line, x: Array, base: Array, gain: Array, rows: Any, direction: Array
    ) -> None:
        n = len(rows)
        origin = x[rows]
        level = tempered(base[rows], gain[rows], line.beta) - rng.standard_exponential(n)
        left = -self.width * rng.random(n)
        right = left + self.width
        to_left = np.floor(self.max_steps * rng.random(n)).astype(np.int64)
        for end, steps, sign in ((left, to_left, -1.0), (right, self.max_steps - 1 - to_left, 1.0)):
            steps = steps.copy()
            active = np.flatnonzero(steps > 0)
            while len(active):
                _, _, density = line.at(origin[active] + end[active, None] * direction)
                active = active[density > level[active]]
                end[active] += sign * self.width
                steps[active] -= 1
                active = active[steps[active] > 0]
        active = np.arange(n)
        for _ in range(MOST_SHRINKS):
            line.n_shrinks += len(active)
            place = left[active] + (right[active] - left[active]) * rng.random(len(active))
            points = origin[active] + place[:, None] * direction
            new_base, new_gain, density = line.at(points)
            inside = density > level[active]
            done = rows[active[inside]]
            x[done], base[done], gain[done] = points[inside], new_base[inside], new_gain[inside]
            active, place = active[~inside], place[~inside]
            if not len(active):
                return
            below = place < 0
            left[active[below]] = place[below]
            right[active[~below]] = place[~below]
        raise ValueError(
            f"slice sampling did not find its way back to {len(active)} points in {MOST_SHRINKS} steps at beta = "
            f"{line.beta:.4g}: the log density is not continuous there, or differs from call to call"
        )


class _Line:
    """The density at one temperature, and how often it was asked."""

    def __init__(self, path: TemperedPath, beta: float) -> None:
        self.path, self.beta = path, beta
        self.n_evaluations = self.n_shrinks = self.undefined = self.uncovered = 0

    def at(self, points: Array) -> tuple[Array, Array, Array]:
        seen = self.path.evaluate(points)
        self.n_evaluations += len(points)
        self.undefined += seen.undefined
        self.uncovered += seen.uncovered
        return seen.base, seen.gain, tempered(seen.base, seen.gain, self.beta)
