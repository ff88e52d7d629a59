"""Arrays of a fixed shape with the ordinary geometry: geodesics are straight lines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Euclidean:
    """Arrays of a shape, with the dot product.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of a point.

    Examples
    --------
    >>> from pluri.optimize.manifolds import Euclidean
    >>> plane = Euclidean(2)
    >>> plane.distance([0.0, 0.0], [3.0, 4.0])
    5.0
    >>> plane.geodesic([0.0, 0.0], [3.0, 4.0], 0.5)
    array([1.5, 2. ])
    """

    shape: int | tuple[int, ...]

    def __post_init__(self) -> None:
        shape = (self.shape,) if isinstance(self.shape, (int, np.integer)) else tuple(self.shape)
        if any(not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 0 for size in shape):
            raise ValueError(f"shape must hold non-negative integers, got {self.shape!r}")
        object.__setattr__(self, "shape", tuple(int(size) for size in shape))

    @property
    def dimension(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape, dtype=np.int64))

    def check(self, point: ArrayLike) -> Array:
        """Return the point as an array of floats; refuse other shapes, NaN and infinity."""
        array = np.array(point, dtype=np.float64)
        if array.shape != self.shape:
            raise ValueError(f"point must have shape {self.shape}, got {array.shape}")
        if not np.isfinite(array).all():
            raise ValueError("point must be finite, got NaN or infinity")
        return array

    def inner(self, point: ArrayLike, first: ArrayLike, second: ArrayLike) -> float:
        """Dot product."""
        return float(np.vdot(np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)))

    def norm(self, point: ArrayLike, tangent: ArrayLike) -> float:
        """Euclidean length."""
        return float(np.linalg.norm(np.ravel(tangent)))

    def distance(self, first: ArrayLike, second: ArrayLike) -> float:
        """Euclidean distance."""
        return float(np.linalg.norm(np.ravel(self.log(first, second))))

    def exp(self, point: ArrayLike, tangent: ArrayLike) -> Array:
        """Sum of both."""
        return np.asarray(point, dtype=np.float64) + np.asarray(tangent, dtype=np.float64)

    def log(self, first: ArrayLike, second: ArrayLike) -> Array:
        """Difference of both."""
        return np.asarray(second, dtype=np.float64) - np.asarray(first, dtype=np.float64)

    def geodesic(self, first: ArrayLike, second: ArrayLike, time: float) -> Array:
        """Point of the straight line."""
        return self.exp(first, time * self.log(first, second))

    def transport(self, first: ArrayLike, second: ArrayLike, tangent: ArrayLike) -> Array:
        """Tangent vectors are the same everywhere."""
        return np.array(tangent, dtype=np.float64)

    def gradient(self, point: ArrayLike, partials: ArrayLike) -> Array:
        """Partial derivatives themselves."""
        return np.array(partials, dtype=np.float64)

    def random_point(self, rng: np.random.Generator) -> Array:
        """Draw standard normal entries."""
        return rng.standard_normal(self.shape)

    def random_tangent(self, point: ArrayLike, rng: np.random.Generator) -> Array:
        """Draw standard normal entries."""
        return rng.standard_normal(self.shape)

    def frame(self, point: ArrayLike) -> Array:
        """Return the point: its frame is the standard basis."""
        return np.asarray(point, dtype=np.float64)

    def point(self, frame: Array) -> Array:
        """Return the frame, which is the point."""
        return frame

    def coordinates(self, frame: Array, tangent: ArrayLike) -> Array:
        """Entries of the tangent vector."""
        return np.array(tangent, dtype=np.float64).reshape(-1)

    def tangent(self, frame: Array, coordinates: Array) -> Array:
        """Entries in the shape of a point."""
        return np.array(coordinates, dtype=np.float64).reshape(self.shape)

    def slopes(self, frame: Array, partials: ArrayLike) -> Array:
        """Partial derivatives, flat."""
        return np.array(partials, dtype=np.float64).reshape(-1)

    def move(self, frame: Array, coordinates: Array) -> Array:
        """Add the coordinates to the point."""
        return frame + np.reshape(coordinates, self.shape)
