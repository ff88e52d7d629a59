r"""The semidefinite relaxation of MAXCUT, with rounding.

A cut of a graph with weights C splits its vertices into two sets; its weight is the sum over edges between them. With
L the Laplacian, ``diag(C1) - C``, no cut is heavier than the minimum of ``1'x`` over ``diag(x) - L/4 >= 0``. The dual
matrix X (unit diagonal) holds products of unit vectors, one for each vertex; a random hyperplane cuts them into two
sets, whose expected weight is at least 0.878 times ``<L/4, X>`` if no weight is negative [1]_.

References
----------
.. [1] M. X. Goemans and D. P. Williamson, "Improved approximation algorithms for maximum cut and satisfiability
   problems using semidefinite programming", Journal of the ACM 42, 1995.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.optimize.sdp.result import SDPResult
from pluri.optimize.sdp.solver import solve_sdp
from pluri.validation import RandomState, as_generator, check_count
from pluri.validation.interruption import interruptible

Array = NDArray[np.float64]

#: Rows of random hyperplanes that are rounded at a time.
AT_ONCE = 256


@dataclass(frozen=True)
class MaxCutBound:
    """How heavy a cut can be.

    Attributes
    ----------
    bound : float
        No cut is heavier.
    x : ndarray of shape (n_vertices,)
        The feasible point of the relaxation that proves it.
    X : ndarray of shape (n_vertices, n_vertices) or None
        Products of the vectors of the vertices: positive semidefinite with unit diagonal; for `maxcut_round`.
    value : float
        ``<L/4, X>``, of which a rounded cut has 87.8 % on average; the relaxation itself lies between it and `bound`.
    result : SDPResult
        Everything else about the search.
    """

    bound: float
    x: Array
    X: Array | None
    value: float
    result: SDPResult


@dataclass(frozen=True)
class Cut:
    """A partition of the vertices in two.

    Attributes
    ----------
    weight : float
        Sum of the weights of the edges between the sets.
    side : ndarray of shape (n_vertices,) of bool
        The set of each vertex.
    mean_weight : float
        Mean over all cuts that were drawn.
    """

    weight: float
    side: NDArray[np.bool_]
    mean_weight: float


def laplacian(adjacency: Any) -> Any:
    """``diag(C1) - C`` of a symmetric matrix of weights: dense, or sparse if that is."""
    is_sparse = hasattr(adjacency, "tocsr")
    C = adjacency.tocsr().astype(np.float64) if is_sparse else np.asarray(adjacency, dtype=np.float64)
    if C.ndim != 2 or C.shape[0] != C.shape[1] or C.shape[0] == 0:
        raise ValueError(f"adjacency must be a square matrix, got shape {C.shape}")
    values = C.data if is_sparse else C
    if not np.isfinite(values).all():
        raise ValueError("adjacency must be finite, got NaN or infinity")
    if len(values) and abs(C - C.T).max() > 1e-8 * np.abs(values).max():
        raise ValueError("adjacency must be symmetric: the weight of an edge does not depend on its direction")
    if is_sparse:
        from scipy.sparse import diags_array

        C = C - diags_array(C.diagonal())
        return diags_array(np.asarray(C.sum(axis=1)).ravel()) - C
    C = C - np.diag(np.diag(C))
    return np.diag(C.sum(axis=1)) - C


@interruptible
def maxcut_sdp(adjacency: Any, **options: Any) -> MaxCutBound:
    """Bound the weight of all cuts of a graph.

    Parameters
    ----------
    adjacency : array-like or sparse array of shape (n_vertices, n_vertices)
        Symmetric weights of the edges; loops do not count.
    **options
        For `solve_sdp`: ``tol``, ``max_updates``, ``verbose`` and others.

    Returns
    -------
    MaxCutBound

    Examples
    --------
    A cycle of five vertices: the relaxation is 4.5225, the heaviest cut 4.

    >>> import numpy as np
    >>> from pluri.optimize.sdp import maxcut_round, maxcut_sdp
    >>> step = np.roll(np.eye(5), 1, axis=1)
    >>> relaxed = maxcut_sdp(step + step.T)
    >>> relaxed.value <= 4.5226 and relaxed.bound >= 4.5225 and relaxed.bound - relaxed.value < 0.05
    True
    >>> maxcut_round(relaxed.X, step + step.T, random_state=0).weight
    4.0
    """
    L = laplacian(adjacency)
    n = L.shape[0]
    # Diagonal matrices with one entry: a sparse row each, never n dense ones.
    from scipy.sparse import coo_array

    entries = [coo_array(([1.0], ([i], [i])), shape=(n, n)) for i in range(n)]
    result = solve_sdp(np.ones(n), entries, -L / 4, **options)
    return MaxCutBound(result.fun, result.x, result.dual, result.lower_bound, result)


def maxcut_round(X: ArrayLike, adjacency: Any, n_draws: int = 100, *, random_state: RandomState = None) -> Cut:
    """Cut a graph by random hyperplanes through the vectors of its vertices, and keep the heaviest cut.

    Parameters
    ----------
    X : array-like of shape (n_vertices, n_vertices)
        Their products, from `maxcut_sdp`.
    adjacency : array-like or sparse array of shape (n_vertices, n_vertices)
    n_draws : int, default=100
        Hyperplanes.
    random_state : int, Generator or None, default=None

    Returns
    -------
    Cut
    """
    check_count(n_draws, "n_draws")
    products, L = np.asarray(X, dtype=np.float64), laplacian(adjacency)
    if products.shape != L.shape:
        raise ValueError(f"X must have shape {L.shape} as adjacency, got {products.shape}")
    values, vectors = np.linalg.eigh(products)
    if not np.isfinite(values).all() or values[0] < -1e-6 * max(1.0, values[-1]):
        raise ValueError("X must be positive semidefinite, got a negative eigenvalue")
    embedded = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = as_generator(random_state)
    best, side, total = -np.inf, np.zeros(len(products), dtype=bool), 0.0
    for first in range(0, n_draws, AT_ONCE):
        normals = rng.standard_normal((len(products), min(AT_ONCE, n_draws - first)))
        signs = np.where(embedded @ normals >= 0, 1.0, -1.0)
        weights = np.einsum("vd,vd->d", signs, L @ signs) / 4
        total += float(weights.sum())
        heaviest = int(np.argmax(weights))
        if weights[heaviest] > best:
            best, side = float(weights[heaviest]), signs[:, heaviest] > 0
    return Cut(best, side, total / n_draws)
