r"""Gibbs sampling of a fixed number of points that repel each other, for any kernel.

One point at a time is drawn anew given the others, with density under the base measure in proportion to

.. math:: p(x \mid X) \propto L(x, x) - L(x, X) L_X^{-1} L(X, x) \le \sup_x L(x, x)

by rejection from the base measure. The points are visited in random order, which makes a sweep reversible.

References
----------
.. [1] R. H. Affandi, E. B. Fox and B. Taskar, "Approximate inference in continuous determinantal processes", NeurIPS
   2013.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pluri.processes.dpp.continuous.domains import Domain
from pluri.processes.dpp.continuous.gaussian import log_determinant
from pluri.processes.dpp.continuous.point_process import as_points
from pluri.processes.dpp.kernel_forms import Array

#: Rows of which a function of two sets of rows is asked at a time when only its diagonal is wanted.
BLOCK = 64
#: Proposals after which the share that is accepted can be told from what is left of them on average.
ENOUGH_TO_JUDGE = 50_000


class PointState(NamedTuple):
    """Where a chain is: the points, and the logarithm of the determinant of their kernel."""

    points: Array
    log_density: float

    @property
    def position(self) -> dict[str, Array]:
        """The points by name."""
        return {"points": self.points}


@dataclass(frozen=True)
class PointGibbs:
    """A sweep over the points of a determinantal point process of fixed size; `pluri.inference.mcmc.sample` runs it.

    Positions are dicts with the array ``"points"`` (n_points, n_dimensions).

    Parameters
    ----------
    kernel : callable
        ``kernel(X, Y)`` gives L of all pairs of points.
    domain : Box or NormalBase
        The base measure.
    bound : float
        At least the largest ``L(x, x)``; a point above it is a ValueError.
    max_proposals : int, default=10000000
        For one point, before giving up.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.processes.dpp.continuous.domains import Box
    >>> from pluri.processes.dpp.continuous.point_gibbs import PointGibbs
    >>> kernel = PointGibbs(lambda a, b: np.exp(-((a - b.T) ** 2) / 0.02), Box([0.0], [1.0]), bound=1.0)
    >>> start = {"points": np.linspace(0, 1, 5)[:, None]}
    >>> trace = mcmc.sample(kernel, start, n_draws=200, n_warmup=20, n_chains=2, random_state=0)
    >>> trace["points"].shape
    (2, 200, 5, 1)
    """

    kernel: Callable[[Array, Array], Any]
    domain: Domain
    bound: float
    max_proposals: int = 10_000_000

    def __post_init__(self) -> None:
        if not (np.isfinite(self.bound) and self.bound > 0):
            raise ValueError(f"bound must be positive and finite, got {self.bound!r}")

    def init(self, rng: np.random.Generator, position: Mapping[str, Any]) -> PointState:
        """State at the points ``position["points"]``, which must differ."""
        if not isinstance(position, Mapping) or "points" not in position:
            raise ValueError(f"the position must be a dict with 'points', got {type(position).__name__}")
        points = np.array(as_points(position["points"], self.domain.n_dimensions, "points"))
        if not len(points):
            raise ValueError("points must hold at least one point, got none")
        if not (self.domain.density(points) > 0).all():
            raise ValueError("points must lie in the domain")
        log_density = log_determinant(np.asarray(self.kernel(points, points), dtype=np.float64))
        if not np.isfinite(log_density):
            raise ValueError("points must have a positive density: some coincide, or are more than the kernel's rank")
        return PointState(points, log_density)

    def step(self, rng: np.random.Generator, state: PointState) -> tuple[PointState, dict[str, float]]:
        """Every point drawn anew, in random order."""
        points = state.points.copy()
        proposed = 0
        for i in rng.permutation(len(points)):
            points[i], tries = self._draw(rng, np.delete(points, i, axis=0))
            proposed += tries
        log_density = log_determinant(np.asarray(self.kernel(points, points), dtype=np.float64))
        info = {"acceptance": len(points) / proposed, "accepted": 1.0, "n_evaluations": float(proposed)}
        return PointState(points, log_density), info

    def adaptation(self, n_warmup: int) -> None:
        """Nothing to learn."""
        return

    def draw_start(self, rng: np.random.Generator, size: int) -> dict[str, Array]:
        """Points drawn one after the other, each given those before it: a start close to the target."""
        points = np.empty((0, self.domain.n_dimensions))
        for _ in range(size):
            points = np.vstack([points, self._draw(rng, points)[0]])
        return {"points": points}

    def _draw(self, rng: np.random.Generator, others: Array) -> tuple[Array, int]:
        """A point given the others, and how many were proposed (up to the one accepted)."""
        factor = None
        if len(others):
            try:
                factor = np.linalg.cholesky(np.asarray(self.kernel(others, others), dtype=np.float64))
            except np.linalg.LinAlgError:
                raise RuntimeError(
                    f"{len(others)} points have no volume to working precision: the kernel has too low a rank for more"
                ) from None
        proposed, block, total_left = 0, 32, 0.0
        while proposed < self.max_proposals:
            candidates = self.domain.draw(rng, block)
            own = kernel_diagonal(self.kernel, candidates)
            if own.max() > self.bound * (1 + 1e-9):
                raise ValueError(
                    f"bound must be at least the largest L(x, x), got {self.bound:.6g} below {own.max():.6g}"
                )
            left = own
            if factor is not None:
                half = np.linalg.solve(factor, np.asarray(self.kernel(others, candidates), dtype=np.float64))
                left = own - np.einsum("on,on->n", half, half)
            # What is left of a point by rounding only is nothing.
            accepted = np.flatnonzero((rng.random(block) * self.bound < left) & (left > 1e-12 * own))
            if accepted.size:
                return candidates[accepted[0]], proposed + int(accepted[0]) + 1
            proposed += block
            total_left += float(np.maximum(left, 0.0).sum())
            # The share of proposals that will be accepted is known by now: none of them, where it is too small.
            if proposed > ENOUGH_TO_JUDGE and total_left / proposed * self.max_proposals < 1e-3 * self.bound:
                break
            block = min(2 * block, 4096)
        raise RuntimeError(
            f"no point was accepted in {proposed} proposals: the kernel leaves no room for {len(others) + 1} points, "
            "or bound is far too large"
        )


def kernel_diagonal(kernel: Callable[[Array, Array], Any], points: Array) -> Array:
    """``L(x, x)`` of points, a few at a time."""
    parts = [
        np.diagonal(np.asarray(kernel(block, block), dtype=np.float64))
        for block in (points[begin : begin + BLOCK] for begin in range(0, len(points), BLOCK))
    ]
    return np.concatenate(parts) if parts else np.empty(0)
