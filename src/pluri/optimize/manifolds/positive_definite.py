r"""Symmetric positive definite matrices with the affine-invariant metric.

At a matrix :math:`S` the inner product of symmetric matrices is :math:`\operatorname{tr}(S^{-1} U S^{-1} V)`. Geodesics
are :math:`S \exp(t S^{-1} U)`; they never leave the set, and :math:`S \mapsto A S A^\top` is an isometry [1]_.

A frame is a square factor :math:`L` with :math:`S = L L^\top`; the coordinates of :math:`U` are the entries of the
symmetric matrix :math:`z = L^{-1} U L^{-\top}`, whose Frobenius product is the inner product. With
:math:`z = Q \operatorname{diag}(\lambda) Q^\top` the frame moves to :math:`L Q e^{\lambda/2} Q^\top`, and a transported
vector keeps its coordinates, since parallel transport is :math:`U \mapsto E U E^\top` with
:math:`E = (S_2 S_1^{-1})^{1/2} = L e^{z/2} L^{-1}`.

References
----------
.. [1] R. Bhatia, "Positive Definite Matrices", Princeton University Press 2007, chapter 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

#: Logarithms of scale factors are kept below this in one step, so that no exponential overflows.
LARGEST_EXPONENT = 30.0


def symmetric(matrix: Array) -> Array:
    """Symmetric part of the last two axes."""
    return 0.5 * (matrix + np.swapaxes(matrix, -1, -2))


def _spectral(values: Array, vectors: Array) -> Array:
    """``Q diag(values) Q^T``."""
    return (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)


@dataclass(frozen=True)
class SPD:
    """Positive definite matrices of a size, or a stack of several.

    Parameters
    ----------
    size : int
        Number of rows of a matrix.
    count : int, optional
        Number of matrices; a point then has shape (count, size, size) and inner products add up. A single matrix of
        shape (size, size) if not given.

    Examples
    --------
    The geodesic midpoint is the geometric mean:

    >>> import numpy as np
    >>> from pluri.optimize.manifolds import SPD
    >>> manifold = SPD(2)
    >>> manifold.geodesic(np.eye(2), np.diag([4.0, 9.0]), 0.5)
    array([[2., 0.],
           [0., 3.]])
    >>> round(manifold.distance(np.eye(2), np.exp(2) * np.eye(2)), 6)
    2.828427
    """

    size: int
    count: int | None = None

    def __post_init__(self) -> None:
        for name, value in {"size": self.size, "count": self.count}.items():
            whole = isinstance(value, Integral) and not isinstance(value, bool) and value >= 1
            if not whole and not (name == "count" and value is None):
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a point."""
        return (self.size, self.size) if self.count is None else (self.count, self.size, self.size)

    @property
    def dimension(self) -> int:
        """Number of free entries: ``size (size + 1) / 2`` for each matrix."""
        return (self.count or 1) * self.size * (self.size + 1) // 2

    def check(self, point: ArrayLike) -> Array:
        """Return the point as an array of floats; refuse what is not symmetric and positive definite."""
        array = np.array(point, dtype=np.float64)
        if array.shape != self.shape:
            raise ValueError(f"point must have shape {self.shape}, got {array.shape}")
        if not np.isfinite(array).all():
            raise ValueError("point must be finite, got NaN or infinity")
        scale = np.abs(array).max()
        if not np.allclose(array, np.swapaxes(array, -1, -2), rtol=0.0, atol=1e-8 * scale):
            raise ValueError("point must be symmetric")
        self._factor(array)
        return symmetric(array)

    def _factor(self, point: ArrayLike) -> Array:
        try:
            return np.linalg.cholesky(np.asarray(point, dtype=np.float64))
        except np.linalg.LinAlgError:
            raise ValueError("point must be positive definite, and is not") from None

    def inner(self, point: ArrayLike, first: ArrayLike, second: ArrayLike) -> float:
        """``tr(S^-1 U S^-1 V)``, added up over the stack."""
        frame = self._factor(point)
        return float(self.coordinates(frame, first) @ self.coordinates(frame, second))

    def norm(self, point: ArrayLike, tangent: ArrayLike) -> float:
        """Length of a tangent vector."""
        return float(np.linalg.norm(self.coordinates(self._factor(point), tangent)))

    def distance(self, first: ArrayLike, second: ArrayLike) -> float:
        """``|| log(S1^-1/2 S2 S1^-1/2) ||``."""
        frame = self._factor(first)
        return float(np.linalg.norm(self.coordinates(frame, self._log(frame, second))))

    def exp(self, point: ArrayLike, tangent: ArrayLike) -> Array:
        """``S expm(S^-1 U)``, symmetric by construction."""
        frame = self._factor(point)
        return self.point(self.move(frame, self.coordinates(frame, tangent)))

    def _log(self, frame: Array, second: ArrayLike) -> Array:
        middle = symmetric(_whiten(frame, np.asarray(second, dtype=np.float64)))
        values, vectors = np.linalg.eigh(middle)
        if not (values > 0).all():
            raise ValueError("point must be positive definite, and is not")
        return frame @ _spectral(np.log(values), vectors) @ np.swapaxes(frame, -1, -2)

    def log(self, first: ArrayLike, second: ArrayLike) -> Array:
        """``S1^1/2 log(S1^-1/2 S2 S1^-1/2) S1^1/2``."""
        return symmetric(self._log(self._factor(first), second))

    def geodesic(self, first: ArrayLike, second: ArrayLike, time: float) -> Array:
        """``S1^1/2 (S1^-1/2 S2 S1^-1/2)^t S1^1/2``."""
        frame = self._factor(first)
        return self.point(self.move(frame, time * self.coordinates(frame, self._log(frame, second))))

    def transport(self, first: ArrayLike, second: ArrayLike, tangent: ArrayLike) -> Array:
        """``E U E^T`` with ``E = (S2 S1^-1)^1/2``."""
        frame = self._factor(first)
        moved = self.move(frame, self.coordinates(frame, self._log(frame, second)))
        return self.tangent(moved, self.coordinates(frame, tangent))

    def gradient(self, point: ArrayLike, partials: ArrayLike) -> Array:
        """``S (D + D^T) S / 2`` with the matrix ``D`` of partial derivatives."""
        matrix = np.asarray(point, dtype=np.float64)
        return symmetric(matrix @ symmetric(np.asarray(partials, dtype=np.float64)) @ matrix)

    def random_point(self, rng: np.random.Generator) -> Array:
        """Draw ``exp(z)`` with a random symmetric ``z``."""
        values, vectors = np.linalg.eigh(symmetric(rng.standard_normal(self.shape)))
        return _spectral(np.exp(values), vectors)

    def random_tangent(self, point: ArrayLike, rng: np.random.Generator) -> Array:
        """Draw a tangent vector with standard normal coordinates."""
        noise = rng.standard_normal(self.shape)
        upper = np.triu(noise, 1) / np.sqrt(2.0)
        drawn = upper + np.swapaxes(upper, -1, -2) + noise * np.eye(self.size)
        return self.tangent(self._factor(point), drawn.reshape(-1))

    def frame(self, point: ArrayLike) -> Array:
        """Cholesky factor of the point; any square factor is a frame."""
        return self._factor(point)

    def point(self, frame: Array) -> Array:
        """``L L^T``."""
        return symmetric(frame @ np.swapaxes(frame, -1, -2))

    def coordinates(self, frame: Array, tangent: ArrayLike) -> Array:
        """Entries of ``L^-1 U L^-T``, all of them, so that the dot product counts off-diagonal ones twice."""
        return symmetric(_whiten(frame, np.asarray(tangent, dtype=np.float64))).reshape(-1)

    def tangent(self, frame: Array, coordinates: Array) -> Array:
        """``L z L^T``."""
        return symmetric(frame @ np.reshape(coordinates, self.shape) @ np.swapaxes(frame, -1, -2))

    def slopes(self, frame: Array, partials: ArrayLike) -> Array:
        """``L^T (D + D^T) L / 2``: no inverse is needed."""
        matrix = symmetric(np.asarray(partials, dtype=np.float64))
        return symmetric(np.swapaxes(frame, -1, -2) @ matrix @ frame).reshape(-1)

    def move(self, frame: Array, coordinates: Array) -> Array:
        """``L Q exp(lambda / 2) Q^T``; where a step scales a matrix by more than e^30 it is cut."""
        values, vectors = np.linalg.eigh(symmetric(np.reshape(coordinates, self.shape)))
        return frame @ _spectral(np.exp(0.5 * np.clip(values, -LARGEST_EXPONENT, LARGEST_EXPONENT)), vectors)


def _whiten(frame: Array, matrix: Array) -> Array:
    """``L^-1 M L^-T``."""
    half = np.linalg.solve(frame, matrix)
    return np.swapaxes(np.linalg.solve(frame, np.swapaxes(half, -1, -2)), -1, -2)
