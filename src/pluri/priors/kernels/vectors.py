r"""Kernels of vectors: linear, cosine, exponential of the cosine, and Gaussian (RBF).

.. math::

   x^\top y, \qquad c(x, y) = \frac{x^\top y}{\lVert x \rVert \lVert y \rVert}, \qquad e^{-\alpha (1 - c(x, y))},
   \qquad e^{-\frac12 \sum_d (x_d - y_d)^2 / \ell_d^2}.

The linear and the cosine kernel are inner products of finite ``features``, so a determinantal point process over
millions of items may work in the space of the features; the other two have none. The exponential keeps documents with
few words in common from all looking alike: it is positive semi-definite with unit diagonal, whereas
:math:`e^{-\alpha c}`, which has been printed for it, has its smallest entries on the diagonal and is not a kernel.

References
----------
.. [1] J. Shawe-Taylor and N. Cristianini, "Kernel methods for pattern analysis", Cambridge University Press, 2004.
.. [2] A. Gretton, K. M. Borgwardt, M. J. Rasch, B. Schoelkopf and A. Smola, "A kernel two-sample test", Journal of
   Machine Learning Research 13, 2012 (the median heuristic).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.priors.kernels.similarity import SimilarityKernel, symmetric
from pluri.priors.protocol import FloatArray
from pluri.validation import check_positive

#: Points among which the median heuristic measures distances; more of them are thinned evenly.
MEDIAN_POINTS = 1000


@dataclass(frozen=True)
class LinearKernel(SimilarityKernel):
    """Inner products of rows, dense or sparse.

    Examples
    --------
    >>> from pluri.priors.kernels import LinearKernel
    >>> LinearKernel()([[1.0, 0.0], [1.0, 2.0]])
    array([[1., 1.],
           [1., 5.]])
    """

    def __call__(self, parameters: Any, others: Any = None) -> FloatArray:
        """Inner products (n_rows, n_others)."""
        return _products(self.features, parameters, others)

    def features(self, parameters: Any) -> Any:
        """The rows themselves, checked; a CSR array if they are sparse."""
        return check_points(parameters)

    def diagonal(self, parameters: Any) -> FloatArray:
        """Squared lengths of the rows."""
        return _squared_lengths(check_points(parameters))

    def pullback(self, parameters: Any, sensitivity: ArrayLike) -> FloatArray:
        """Gradient of ``sum(sensitivity * self(parameters))`` by the rows."""
        rows = check_dense(parameters)
        return 2.0 * symmetric(sensitivity, len(rows)) @ rows


@dataclass(frozen=True)
class CosineKernel(SimilarityKernel):
    """Cosines of the angles between rows, dense or sparse (TF-IDF).

    A row of zeros has no direction: its similarity is 0 with every row and with itself, so that the kernel stays the
    product of its `features`, and a determinantal point process never takes an empty document. All other rows have the
    diagonal 1.

    Examples
    --------
    >>> from pluri.priors.kernels import CosineKernel
    >>> CosineKernel()([[3.0, 4.0], [4.0, 3.0], [0.0, 0.0]])
    array([[1.  , 0.96, 0.  ],
           [0.96, 1.  , 0.  ],
           [0.  , 0.  , 0.  ]])
    """

    def __call__(self, parameters: Any, others: Any = None) -> FloatArray:
        """Cosines (n_rows, n_others), between -1 and 1."""
        cosines = np.clip(_products(self.features, parameters, others), -1.0, 1.0)
        if others is None:
            np.fill_diagonal(cosines, self.diagonal(parameters))
        return cosines

    def features(self, parameters: Any) -> Any:
        """Rows of unit length, a CSR array if they are sparse; rows of zeros stay as they are."""
        return _unit_length(check_points(parameters))[0]

    def diagonal(self, parameters: Any) -> FloatArray:
        """1 for each row, and 0 for rows of zeros."""
        return (_largest(check_points(parameters)) > 0).astype(np.float64)

    def pullback(self, parameters: Any, sensitivity: ArrayLike) -> FloatArray:
        """Gradient of ``sum(sensitivity * self(parameters))`` by the rows; 0 for rows of zeros."""
        units, lengths = _unit_length(check_dense(parameters))
        slope = 2.0 * symmetric(sensitivity, len(units)) @ units
        slope -= units * np.sum(units * slope, axis=1, keepdims=True)  # along the row nothing changes
        return np.divide(slope, lengths[:, None], out=np.zeros_like(slope), where=lengths[:, None] > 0)


@dataclass(frozen=True)
class ExponentialCosineKernel(SimilarityKernel):
    """``exp(-alpha * (1 - cosine))`` of rows, dense or sparse: a kernel for news and other texts.

    A row of zeros has the cosine 0 with every row and with itself, hence the similarity ``exp(-alpha)``; all other rows
    have the diagonal 1.

    Parameters
    ----------
    alpha : float, default=1.0
        Positive; the larger, the less alike all rows are.

    Examples
    --------
    >>> from pluri.priors.kernels import ExponentialCosineKernel
    >>> ExponentialCosineKernel(alpha=1.0)([[3.0, 4.0], [4.0, 3.0]]).round(4)
    array([[1.    , 0.9608],
           [0.9608, 1.    ]])
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_positive(self.alpha, "alpha"))

    def __call__(self, parameters: Any, others: Any = None) -> FloatArray:
        """Similarities (n_rows, n_others), between ``exp(-2 * alpha)`` and 1."""
        return np.exp(-self.alpha * (1.0 - CosineKernel()(parameters, others)))

    def diagonal(self, parameters: Any) -> FloatArray:
        """1 for each row, and ``exp(-alpha)`` for rows of zeros."""
        return np.exp(-self.alpha * (1.0 - CosineKernel().diagonal(parameters)))

    def pullback(self, parameters: Any, sensitivity: ArrayLike) -> FloatArray:
        """Gradient of ``sum(sensitivity * self(parameters))`` by the rows; 0 for rows of zeros."""
        rows = check_dense(parameters)
        return CosineKernel().pullback(rows, self.alpha * self(rows) * symmetric(sensitivity, len(rows)))


@dataclass(frozen=True)
class RBFKernel(SimilarityKernel):
    """Gaussian kernel of points: ``exp(-|x - y|^2 / (2 length_scale^2))``.

    Parameters
    ----------
    length_scale : float, tuple of floats or "median", default=1.0
        Distance over which the similarity falls to 0.61; one for all features or one for each. ``"median"`` is the
        median distance of the points of one call: it serves for the matrix of one set of points, and `fixed` turns it
        into a number for everything else (new points, rows on demand, gradients).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.priors.kernels import RBFKernel
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    >>> RBFKernel(5.0)(points[:2]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    >>> RBFKernel("median").fixed(points).length_scale
    4.2426
    """

    length_scale: float | tuple[float, ...] | str = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.length_scale, str):
            if self.length_scale != "median":
                raise ValueError(f"length_scale must be a positive number or 'median', got {self.length_scale!r}")
            return
        scales = np.asarray(self.length_scale, dtype=np.float64)
        if scales.ndim > 1 or scales.size == 0 or not (np.isfinite(scales).all() and (scales > 0).all()):
            raise ValueError(
                f"length_scale must be a positive number, one for each feature, or 'median', got {self.length_scale!r}"
            )
        object.__setattr__(self, "length_scale", tuple(scales.tolist()) if scales.ndim else float(scales))

    def __call__(self, parameters: Any, others: Any = None) -> FloatArray:
        """Similarities (n_points, n_others), between 0 and 1."""
        from scipy.spatial.distance import cdist

        if others is None:
            points = check_dense(parameters)
            scaled = points / self.fixed(points)._scales(points.shape[1])
            return np.exp(-0.5 * cdist(scaled, scaled, "sqeuclidean"))
        points, seconds = check_dense(parameters), check_dense(others, "others")
        check_columns(points, seconds)
        scales = self._scales(points.shape[1])
        return np.exp(-0.5 * cdist(points / scales, seconds / scales, "sqeuclidean"))

    def diagonal(self, parameters: Any) -> FloatArray:
        """1 for each point."""
        return np.ones(len(check_dense(parameters)))

    def pullback(self, parameters: Any, sensitivity: ArrayLike) -> FloatArray:
        """Gradient of ``sum(sensitivity * self(parameters))`` by the points."""
        points = check_dense(parameters)
        scales = self._scales(points.shape[1])
        weights = symmetric(sensitivity, len(points)) * self(points, points)
        return 2.0 * (weights @ points - weights.sum(axis=1, keepdims=True) * points) / scales**2

    def fixed(self, parameters: Any) -> RBFKernel:
        """The kernel with ``"median"`` replaced by the median distance of these points (of 1000 of them at most)."""
        if self.length_scale != "median":
            return self
        from scipy.spatial.distance import pdist

        points = check_dense(parameters)
        if len(points) > MEDIAN_POINTS:
            points = points[np.linspace(0, len(points) - 1, MEDIAN_POINTS).astype(np.int64)]
        distances = pdist(points)
        distances = distances[distances > 0]
        if distances.size == 0:
            raise ValueError("length_scale='median' needs two different points, got points that all coincide")
        return RBFKernel(float(np.median(distances)))

    def _scales(self, n_features: int) -> FloatArray:
        if isinstance(self.length_scale, str):
            raise ValueError(
                "length_scale='median' depends on the points of a call: use kernel.fixed(points) for new points, rows "
                "on demand and gradients"
            )
        scales = np.asarray(self.length_scale, dtype=np.float64)
        if scales.ndim == 1 and scales.size != n_features:
            raise ValueError(
                f"length_scale must have one entry for each of the {n_features} features, got {scales.size}"
            )
        return scales


def check_points(parameters: Any, name: str = "parameters") -> Any:
    """Finite rows as a float array, or as a CSR array if they are sparse."""
    if hasattr(parameters, "tocsr"):
        rows = parameters.tocsr().astype(np.float64)  # a copy
        rows.sum_duplicates()
        values = rows.data
    else:
        rows = values = np.asarray(parameters, dtype=np.float64)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"{name} must be a matrix with a row for each part, got shape {rows.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return rows


def check_dense(parameters: Any, name: str = "parameters") -> FloatArray:
    """Finite rows as a float array; a sparse matrix is refused."""
    if hasattr(parameters, "tocsr"):
        raise ValueError(f"{name} must be a dense array here, got a sparse matrix; use {name}.toarray()")
    rows: FloatArray = check_points(parameters, name)
    return rows


def _products(features: Any, parameters: Any, others: Any) -> FloatArray:
    first = features(parameters)
    second = first if others is None else features(others)
    check_columns(first, second)
    product = first @ second.T
    dense = np.asarray(product.toarray() if hasattr(product, "tocsr") else product, dtype=np.float64)
    return 0.5 * (dense + dense.T) if others is None else dense


def check_columns(first: Any, second: Any) -> None:
    """Refuse two sets of rows with different numbers of columns."""
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"others must have {first.shape[1]} columns like the parameters, got {second.shape[1]}")


def _largest(rows: Any) -> FloatArray:
    """Largest absolute entry of each row; 0 for what is too small to be divided by."""
    largest = abs(rows).max(axis=1)
    values = np.asarray(largest.toarray() if hasattr(largest, "toarray") else largest, dtype=np.float64).ravel()
    return np.where(values < np.finfo(np.float64).tiny, 0.0, values)


def _unit_length(rows: Any) -> tuple[Any, FloatArray]:
    """Rows scaled to unit length, and their lengths; the square of the largest entry may overflow, its ratio not."""
    largest = _largest(rows)
    rows = _scaled(rows, np.divide(1.0, largest, out=np.zeros_like(largest), where=largest > 0))
    lengths = np.sqrt(_squared_lengths(rows))
    rows = _scaled(rows, np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0))
    return rows, lengths * largest


def _scaled(rows: Any, factors: FloatArray) -> Any:
    if not hasattr(rows, "tocsr"):
        return rows * factors[:, None]
    scaled = rows.copy()
    scaled.data *= np.repeat(factors, np.diff(scaled.indptr))
    return scaled


def _squared_lengths(rows: Any) -> FloatArray:
    if hasattr(rows, "tocsr"):
        return np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows), dtype=np.float64)
