"""Tuples of points: every object componentwise, inner products added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.manifolds.manifold import Manifold

Array = NDArray[np.float64]


class Product:
    """Product of manifolds; a point is a tuple with a point of each.

    Parameters
    ----------
    *factors : Manifold
        At least one.

    Examples
    --------
    A mean and a covariance:

    >>> import numpy as np
    >>> from pluri.optimize.manifolds import SPD, Euclidean, Product
    >>> normal = Product(Euclidean(2), SPD(2))
    >>> normal.dimension
    5
    >>> mean, covariance = normal.geodesic((np.zeros(2), np.eye(2)), (np.ones(2), 4.0 * np.eye(2)), 0.5)
    >>> mean, covariance.diagonal()
    (array([0.5, 0.5]), array([2., 2.]))
    """

    def __init__(self, *factors: Manifold) -> None:
        if not factors:
            raise ValueError("factors must hold at least one manifold, got none")
        for factor in factors:
            if not isinstance(factor, Manifold):
                raise TypeError(f"factors must be manifolds, got {type(factor).__name__}")
        self.factors = factors

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.factors))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Product) and self.factors == other.factors

    def __hash__(self) -> int:
        return hash(self.factors)

    @property
    def dimension(self) -> int:
        """Sum of the factors' dimensions."""
        return sum(factor.dimension for factor in self.factors)

    def _each(self, method: str, *arguments: Any) -> list[Any]:
        return [getattr(factor, method)(*given) for factor, *given in zip(self.factors, *arguments, strict=True)]

    def check(self, point: Sequence[Any]) -> tuple[Any, ...]:
        """Return the tuple of checked points."""
        if not isinstance(point, (tuple, list)) or len(point) != len(self.factors):
            found = len(point) if isinstance(point, (tuple, list)) else type(point).__name__
            raise ValueError(f"point must be a tuple of {len(self.factors)} points, got {found}")
        return tuple(self._each("check", point))

    def inner(self, point: Any, first: Any, second: Any) -> float:
        """Sum of the inner products."""
        return float(sum(self._each("inner", point, first, second)))

    def norm(self, point: Any, tangent: Any) -> float:
        """Length of a tangent vector."""
        return float(np.linalg.norm(self._each("norm", point, tangent)))

    def distance(self, first: Any, second: Any) -> float:
        """Root of the sum of squared distances."""
        return float(np.linalg.norm(self._each("distance", first, second)))

    def exp(self, point: Any, tangent: Any) -> tuple[Any, ...]:
        """Exponential maps."""
        return tuple(self._each("exp", point, tangent))

    def log(self, first: Any, second: Any) -> tuple[Any, ...]:
        """Log maps."""
        return tuple(self._each("log", first, second))

    def geodesic(self, first: Any, second: Any, time: float) -> tuple[Any, ...]:
        """Points of the geodesics."""
        return tuple(self._each("geodesic", first, second, [time] * len(self.factors)))

    def transport(self, first: Any, second: Any, tangent: Any) -> tuple[Any, ...]:
        """Parallel transports."""
        return tuple(self._each("transport", first, second, tangent))

    def gradient(self, point: Any, partials: Any) -> tuple[Any, ...]:
        """Riemannian gradients."""
        return tuple(self._each("gradient", point, partials))

    def random_point(self, rng: np.random.Generator) -> tuple[Any, ...]:
        """Draw a point of each."""
        return tuple(factor.random_point(rng) for factor in self.factors)

    def random_tangent(self, point: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        """Draw a tangent vector of each."""
        return tuple(factor.random_tangent(part, rng) for factor, part in zip(self.factors, point, strict=True))

    def frame(self, point: Any) -> tuple[Any, ...]:
        """Frames of the points."""
        return tuple(self._each("frame", point))

    def point(self, frame: Any) -> tuple[Any, ...]:
        """Points of the frames."""
        return tuple(self._each("point", frame))

    def coordinates(self, frame: Any, tangent: Any) -> Array:
        """Coordinates, one factor after the other."""
        return np.concatenate(self._each("coordinates", frame, tangent))

    def _split(self, frame: Any, coordinates: Array) -> list[Array]:
        ends = np.cumsum([np.size(self._leaf_size(factor, part)) for factor, part in zip(self.factors, frame)])
        return np.split(np.asarray(coordinates, dtype=np.float64), ends[:-1])

    @staticmethod
    def _leaf_size(factor: Manifold, frame: Any) -> Array:
        """Coordinates of nothing: an array with as many entries as this factor has coordinates."""
        if isinstance(factor, Product):
            return np.concatenate([Product._leaf_size(inner, part) for inner, part in zip(factor.factors, frame)])
        return np.ravel(frame)

    def tangent(self, frame: Any, coordinates: Array) -> tuple[Any, ...]:
        """Tangent vectors with these coordinates."""
        return tuple(self._each("tangent", frame, self._split(frame, coordinates)))

    def slopes(self, frame: Any, partials: Any) -> Array:
        """Coordinates of the gradients, one factor after the other."""
        return np.concatenate(self._each("slopes", frame, partials))

    def move(self, frame: Any, coordinates: Array) -> tuple[Any, ...]:
        """Frames after the move."""
        return tuple(self._each("move", frame, self._split(frame, coordinates)))
