"""Log-likelihood of observed subsets under an L-ensemble, and its gradient.

For subsets Y_t with weights w_t that sum to one,
``l(L) = sum_t w_t log det L_Yt - log det(L + I)``, and
``dl/dL = Delta = sum_t w_t U_t L_Yt^-1 U_t' - (L + I)^-1``, where U_t pads with zeros to the whole ground set. With
``L = V V'`` of rank K both cost O(n_items K^2) and nothing of order n_items^2 is made.

References
----------
Kulesza and Taskar (2012), Determinantal point processes for machine learning, Foundations and Trends in ML 5.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.processes.dpp.kernel_checks import check_kernel
from pluri.processes.dpp.learning.observations import SizeGroup, SubsetCounts, count_subsets, read_subsets, scatter

Array = NDArray[np.float64]


def log_determinants(blocks: Array) -> Array:
    """Log determinants of positive semi-definite matrices (n, size, size); -inf where one is singular."""
    if blocks.shape[1] == 0:
        return np.zeros(len(blocks))
    return _halves_and_log_determinants(blocks)[1]


def _halves_and_log_determinants(blocks: Array) -> tuple[Array, Array]:
    """Cholesky factors (NaN where a block is singular) and log determinants."""
    try:
        halves: Array = np.linalg.cholesky(blocks).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        # One singular block spoils the whole call: look at each.
        halves = np.full(blocks.shape, np.nan)
        for index, block in enumerate(blocks):
            try:
                halves[index] = np.linalg.cholesky(block)
            except np.linalg.LinAlgError:
                continue
    diagonal = np.diagonal(halves, axis1=1, axis2=2)
    # Rounding leaves pivots of about 1e-8 where exact arithmetic has zero.
    scale = np.sqrt(4 * np.finfo(float).eps * blocks.shape[1] * np.diagonal(blocks, axis1=1, axis2=2))
    with np.errstate(invalid="ignore", divide="ignore"):
        regular = (diagonal > scale).all(axis=1)
        values = 2 * np.log(diagonal).sum(axis=1)
    return halves, np.where(regular, values, -np.inf)


def log_normalizer(L: Array) -> float:
    """``log det(L + I)``."""
    return float(log_determinants((L + np.eye(len(L)))[None])[0])


def group_terms(L: Array, group: SizeGroup, *, gradient: bool = True) -> tuple[float, Array]:
    """``sum_t w_t log det L_Yt`` of subsets of one size and, if wanted, ``sum_t w_t U_t L_Yt^-1 U_t'``.

    The value is -inf, and the matrix of no meaning, if a subset has probability zero.
    """
    value, slope = 0.0, np.zeros(L.shape if gradient else (0, 0))
    for piece in group.pieces(group.size) if group.size else ():
        halves, values = _halves_and_log_determinants(L[piece.items[:, :, None], piece.items[:, None, :]])
        value += float(piece.weight @ values)
        if value == -math.inf:
            break
        if gradient:
            inverse_halves = np.linalg.inv(halves)
            inverses = np.swapaxes(inverse_halves, 1, 2) @ inverse_halves
            scatter(slope, piece.items, piece.weight[:, None, None] * inverses)
    return value, slope


def kernel_value(L: Array, counts: SubsetCounts) -> float:
    """Mean log-likelihood of counted subsets; -inf if one is impossible."""
    value = sum(group_terms(L, group, gradient=False)[0] for group in counts.groups)
    return value / counts.total - log_normalizer(L)


def kernel_value_and_gradient(L: Array, counts: SubsetCounts) -> tuple[float, Array]:
    """Mean log-likelihood of counted subsets and its gradient Delta; (-inf, zeros) if one is impossible."""
    value, slope = 0.0, np.zeros(L.shape)
    for group in counts.groups:
        term, part = group_terms(L, group)
        value += term
        slope += part
    if not math.isfinite(value):
        return -math.inf, np.zeros(L.shape)
    return value / counts.total - log_normalizer(L), slope / counts.total - np.linalg.inv(L + np.eye(len(L)))


def factor_value_and_gradient(V: Array, counts: SubsetCounts, *, gradient: bool = True) -> tuple[float, Array]:
    """The same for ``L = V V'``, V of shape (n_items, rank), and the gradient with respect to V."""
    rank = V.shape[1]
    inner = V.T @ V + np.eye(rank)
    value, slope = 0.0, np.zeros(V.shape if gradient else (0, 0))
    if counts.largest > rank:
        return -math.inf, slope
    for group in counts.groups:
        for piece in group.pieces(rank) if group.size else ():
            rows = V[piece.items]
            halves, values = _halves_and_log_determinants(rows @ np.swapaxes(rows, 1, 2))
            value += float(piece.weight @ values)
            if not math.isfinite(value):
                return -math.inf, np.zeros(slope.shape)
            if gradient:
                inverse_halves = np.linalg.inv(halves)
                dual = np.swapaxes(inverse_halves, 1, 2) @ (inverse_halves @ rows)
                np.add.at(slope, piece.items.ravel(), (piece.weight[:, None, None] * dual).reshape(-1, rank))
    value = value / counts.total - float(log_determinants(inner[None])[0])
    if not gradient:
        return value, slope
    return value, 2 * (slope / counts.total - np.linalg.solve(inner, V.T).T)


def subset_log_probabilities(L: Array, subsets: Any, *, factor: bool = False) -> Array:
    """Log-probability of each subset, in the order given; `factor` if L is V with kernel ``V V'``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.learning import subset_log_probabilities
    >>> np.exp(subset_log_probabilities(np.array([[2.0, 1.0], [1.0, 2.0]]), [[], [0], [1], [0, 1]])) * 8
    array([1., 2., 2., 3.])
    """
    ragged = read_subsets(subsets, len(L))
    values = np.zeros(len(ragged.sizes))
    for size in np.unique(ragged.sizes).tolist():
        index, items = ragged.of_size(size)
        found = []
        for piece in SizeGroup(items, np.ones(len(items))).pieces(L.shape[1] if factor else size):
            rows = L[piece.items] if factor else L[piece.items[:, :, None], piece.items[:, None, :]]
            found.append(log_determinants(rows @ np.swapaxes(rows, 1, 2) if factor else rows))
        values[index] = -np.inf if factor and size > L.shape[1] else np.concatenate(found)
    return values - log_normalizer(L.T @ L if factor else L)


def mean_log_likelihood(
    L: ArrayLike, subsets: Any, *, sample_weight: ArrayLike | None = None, factor: bool = False
) -> float:
    """Mean log-likelihood of subsets under the L-ensemble L.

    Parameters
    ----------
    L : array of shape (n_items, n_items), or (n_items, rank) if `factor`
        Kernel, or V with kernel ``V V'``.
    subsets : list of subsets, or SubsetCounts
        Each subset is a list of item numbers or a boolean mask.
    sample_weight : array of shape (n_subsets,), optional
    factor : bool, default=False

    Returns
    -------
    float
        -inf, with a warning that names a subset, if one has probability zero.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.learning import mean_log_likelihood
    >>> mean_log_likelihood(np.array([[2.0, 1.0], [1.0, 2.0]]), [[0], [0, 1]])  # (log 2/8 + log 3/8) / 2
    -1.1835...
    """
    kernel = check_kernel(L) if not factor else np.asarray(L, dtype=np.float64)
    counts = count_subsets(subsets, len(kernel), sample_weight)
    value = factor_value_and_gradient(kernel, counts, gradient=False)[0] if factor else kernel_value(kernel, counts)
    if value == -math.inf:
        warnings.warn(impossible_subset(kernel, counts, factor), RuntimeWarning, stacklevel=2)
    return value


def log_likelihood_gradient(
    L: ArrayLike, subsets: Any, *, sample_weight: ArrayLike | None = None
) -> tuple[float, Array]:
    """Mean log-likelihood of subsets and its gradient Delta with respect to L, (n_items, n_items).

    Delta treats the entries of L as free: a symmetric change D changes the value by ``sum(Delta * D)``.

    Parameters
    ----------
    L : array of shape (n_items, n_items)
    subsets : list of subsets, or SubsetCounts
    sample_weight : array of shape (n_subsets,), optional

    Raises
    ------
    ValueError
        If a subset has probability zero: there is no gradient there.

    Examples
    --------
    The frequencies of two items alone fix a diagonal kernel, where the gradient is zero.

    >>> import numpy as np
    >>> from pluri.processes.dpp.learning import log_likelihood_gradient
    >>> value, gradient = log_likelihood_gradient(np.eye(2), [[], [0], [1], [0, 1]])
    >>> round(float(value / np.log(2)), 12)
    -2.0
    >>> gradient
    array([[0., 0.],
           [0., 0.]])
    """
    kernel = check_kernel(L)
    counts = count_subsets(subsets, len(kernel), sample_weight)
    value, gradient = kernel_value_and_gradient(kernel, counts)
    if value == -math.inf:
        raise ValueError(impossible_subset(kernel, counts, False))
    return value, gradient


def impossible_subset(L: Array, counts: SubsetCounts, factor: bool) -> str:
    """A sentence that names a subset of probability zero."""
    for group in counts.groups:
        for items in group.items:
            block = L[items] @ L[items].T if factor else L[np.ix_(items, items)]
            dependent = factor and group.size > L.shape[1]
            if dependent or (group.size and log_determinants(block[None])[0] == -math.inf):
                shown = items.tolist() if group.size <= 10 else [*items[:10].tolist(), "..."]
                return f"subset {shown} has probability zero under the kernel: its submatrix is singular"
    return "the kernel plus the identity is not positive definite"
