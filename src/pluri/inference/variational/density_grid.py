"""A density on the cells of a box: its normaliser, its moments, and its divergence from another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DensityGrid:
    """Midpoints of equal cells of a box, and the density's share of each."""

    points: Array
    log_density: Array
    log_cell: float

    @classmethod
    def of(cls, target: Callable[[Array], Array], box: Array, resolution: int | None) -> DensityGrid | None:
        """Cells of a box of at most three dimensions."""
        d = len(box)
        per_axis = {1: 20_000, 2: 400, 3: 80}[d] if resolution is None else resolution
        widths = (box[:, 1] - box[:, 0]) / per_axis
        axes = [low + width * (np.arange(per_axis) + 0.5) for (low, _), width in zip(box, widths)]
        points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        return cls(points, checked_log_density(target, points), float(np.log(widths).sum()))

    @property
    def log_normalizer(self) -> float:
        """Logarithm of the integral over the box."""
        highest = self.log_density.max()
        return float(highest + np.log(np.exp(self.log_density - highest).sum()) + self.log_cell)

    def moments(self) -> tuple[Array, Array]:
        """Mean and covariance."""
        share = np.exp(self.log_density - self.log_density.max())
        share /= share.sum()
        mean = share @ self.points
        spread = self.points - mean
        return mean, (share[:, None] * spread).T @ spread

    def divergence(self, log_q: Array) -> float:
        """KL divergence from a density whose logarithm at the points is given."""
        log_p = self.log_density - self.log_normalizer
        share = np.exp(log_p + self.log_cell)
        return float((share * np.where(share > 0, log_p - log_q, 0.0)).sum())


def checked_log_density(target: Callable[[Array], Array], X: Array) -> Array:
    """Log densities at the rows of X, below infinity."""
    value = np.asarray(target(X), dtype=np.float64)
    if value.shape != (len(X),):
        raise ValueError(f"target must give one log density per row ({len(X)}), got shape {value.shape}")
    if np.isnan(value).any() or (value == np.inf).any():
        raise ValueError("target must give log densities below infinity, got NaN or +inf")
    return value
