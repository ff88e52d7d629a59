"""How far apart the rows of a stochastic matrix are, in Bhattacharyya distance.

For rows ``a_i`` and ``a_j`` on the simplex, ``D(i, j) = -ln sum_x sqrt(a_ix a_jx)``: zero for equal rows, infinite for
rows with disjoint supports. To keep averages finite the coefficient inside the logarithm is floored at 1e-300, so a
disjoint pair has the distance 300 ln 10 = 690.78.

The mean is ruled by the farthest pairs and can move against the log determinant of the kernel
``K_ij = sum_x sqrt(a_ix a_jx)``, which is ruled by the nearest: look at the minimum and at ``log_det`` as well.

References
----------
.. [1] Bhattacharyya, A. (1943). On a measure of divergence between two statistical populations defined by their
   probability distributions. Bull. Calcutta Math. Soc. 35, 99-109.
.. [2] Qiao, M., Bian, W., Xu, R. Y. D. & Tao, D. (2015). Diversified hidden Markov models for sequential labeling.
   IEEE Trans. Knowledge and Data Engineering 27, 2947-2960.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

COEFFICIENT_FLOOR = 1e-300


@dataclass(frozen=True)
class BhattacharyyaDiversity:
    """Diversity of the rows of a stochastic matrix.

    Attributes
    ----------
    mean : float
        Mean distance over the ``k (k - 1) / 2`` pairs; NaN for a single row.
    minimum : float
        Distance of the nearest pair; NaN for a single row.
    distances : ndarray of shape (k, k)
        All distances, zero on the diagonal.
    log_det : float
        ``log det K``; 0 when all rows have disjoint supports, ``-inf`` when rows are linearly dependent.
    """

    mean: float
    minimum: float
    distances: NDArray[np.float64]
    log_det: float


def as_stochastic(matrix: ArrayLike, name: str = "matrix") -> NDArray[np.float64]:
    """Check that the rows are distributions (sums within 1e-6 of one) and return them as floats."""
    rows = np.asarray(matrix, dtype=np.float64)
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(f"{name} must have two axes and at least one row and column, got shape {rows.shape}")
    if not np.isfinite(rows).all() or (rows < 0).any():
        raise ValueError(f"{name} must be finite and not negative, got other values")
    sums = rows.sum(axis=1)
    if np.abs(sums - 1).max() > 1e-6:
        raise ValueError(f"{name} must have rows that sum to 1, got a sum of {sums[np.abs(sums - 1).argmax()]:.6g}")
    return rows


def bhattacharyya_distances(matrix: ArrayLike) -> NDArray[np.float64]:
    """Pairwise Bhattacharyya distances of the rows of a stochastic matrix.

    Parameters
    ----------
    matrix : array-like of shape (k, n_outcomes)
        Rows that sum to one.

    Returns
    -------
    ndarray of shape (k, k)
        Symmetric, zero on the diagonal; a pair with disjoint supports has 690.78 (coefficient floored at 1e-300).

    Examples
    --------
    >>> from pluri.metrics import bhattacharyya_distances
    >>> bhattacharyya_distances([[0.9, 0.1], [0.2, 0.8]])
    array([[0.        , 0.34657359],
           [0.34657359, 0.        ]])
    """
    roots = np.sqrt(as_stochastic(matrix))
    coefficient = np.clip(roots @ roots.T, COEFFICIENT_FLOOR, 1.0)
    distances = -np.log(coefficient)
    np.fill_diagonal(distances, 0.0)
    return (distances + distances.T) / 2


def bhattacharyya_diversity(matrix: ArrayLike) -> BhattacharyyaDiversity:
    """Summarise how distinct the rows of a stochastic matrix are.

    Parameters
    ----------
    matrix : array-like of shape (k, n_outcomes)
        Rows that sum to one, such as a transition matrix.

    Returns
    -------
    BhattacharyyaDiversity

    Examples
    --------
    >>> from pluri.metrics import bhattacharyya_diversity
    >>> diversity = bhattacharyya_diversity([[0.9, 0.1], [0.2, 0.8]])
    >>> diversity.mean, diversity.log_det
    (0.346573590, -0.693147180)
    """
    rows = as_stochastic(matrix)
    n_rows = rows.shape[0]
    distances = bhattacharyya_distances(rows)
    pairs = distances[np.triu_indices(n_rows, 1)]
    mean, minimum = (float(pairs.mean()), float(pairs.min())) if pairs.size else (np.nan, np.nan)
    return BhattacharyyaDiversity(mean, minimum, distances, _log_det(rows))


def _log_det(rows: NDArray[np.float64]) -> float:
    """Log determinant of ``U U'``, ``U = sqrt(rows)``, from the singular values of U (half the condition exponent)."""
    n_rows, n_outcomes = rows.shape
    if n_rows > n_outcomes:
        return -np.inf
    singular = np.linalg.svd(np.sqrt(rows), compute_uv=False)
    # Below this a singular value is rounding noise of a dependent set of rows.
    if singular[-1] <= singular[0] * n_outcomes * np.finfo(np.float64).eps:
        return -np.inf
    return min(float(2 * np.log(singular).sum()), 0.0)
