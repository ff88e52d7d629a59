"""What the estimators are given: vectors, dissimilarities, or a graph of neighbours; and P from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from pluri.embedding.neighbors.distributions import (
    Neighbors,
    check_perplexity,
    dissimilarities,
    from_dissimilarities,
    from_graph,
    nearest_graph,
)

Array = NDArray[np.float64]

#: Up to this many objects all pairs are taken unless something else is asked for: P then has 72 MB.
MOST_EXACT = 3000
#: The same with heavy tails, whose fits have ten times the iterations.
MOST_EXACT_HEAVY = 1000
#: Nearest neighbours that an object has in the sparse method, for each unit of perplexity.
NEIGHBORS_PER_PERPLEXITY = 3


@dataclass(frozen=True, eq=False)
class Objects:
    """Objects to be mapped.

    Attributes
    ----------
    rows : vectors (n, D), dissimilarities (n, n), or a CSR matrix of the dissimilarities of neighbours
    metric : "precomputed" if they are dissimilarities
    unit, shift : what vectors were divided by, so that squares of huge numbers are finite, and what was then subtracted
    """

    rows: Any
    metric: Any
    unit: float = 1.0
    shift: Array | None = None

    @property
    def n(self) -> int:
        """Number of objects."""
        return int(self.rows.shape[0])

    def neighbors(self, perplexity: float | None, *, exact: bool, n_jobs: int | None = None) -> Neighbors:
        """P, dense if `exact` and sparse otherwise."""
        check_perplexity(perplexity, self.n)
        if sparse.issparse(self.rows):
            return from_graph(self.rows, perplexity)
        if exact:
            d = self.rows if self.metric == "precomputed" else dissimilarities(self.rows, self.rows, self.metric)
            return from_dissimilarities(d, perplexity)
        if perplexity is None:
            raise ValueError(
                'perplexity must be a number with method="neighbors" unless X is a sparse matrix, got None'
            )
        size = min(int(NEIGHBORS_PER_PERPLEXITY * perplexity) + 1, self.n - 1)
        if self.metric == "precomputed":
            return from_graph(_smallest(self.rows, size), perplexity)
        return from_graph(nearest_graph(self.rows, size, self.metric, n_jobs), perplexity)


def _smallest(distances: Array, size: int) -> Any:
    """CSR matrix of the smallest entries of each row beside the diagonal."""
    n = len(distances)
    others = distances.copy()
    np.fill_diagonal(others, np.inf)
    columns = np.sort(np.argpartition(others, size - 1, axis=1)[:, :size], axis=1)
    values = np.take_along_axis(distances, columns, axis=1)
    return sparse.csr_matrix((values.ravel(), columns.ravel(), np.arange(n + 1) * size), shape=(n, n))


def read_objects(estimator: Any, X: Any, metric: Any, *, scaled: bool) -> Objects:
    """X as an estimator is given it in `fit`; vectors are centred, and divided by a unit if `scaled`."""
    if isinstance(metric, str) and metric == "precomputed":
        X = validate_data(
            estimator, X, dtype=np.float64, accept_sparse="csr", ensure_min_samples=2, ensure_non_negative=True
        )
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"X must be square with metric='precomputed', got shape {X.shape}")
        return Objects(X, metric)
    X = validate_data(estimator, X, dtype=np.float64, ensure_min_samples=2)
    if not (isinstance(metric, str) and metric == "euclidean"):
        return Objects(X, metric)
    unit = float(np.abs(X).max()) or 1.0 if scaled else 1.0
    X = X / unit
    shift = X.mean(axis=0)
    return Objects(np.ascontiguousarray(X - shift), metric, unit, shift)


def neighbor_probabilities(X: Any, perplexity: float | None = 15.0, *, metric: Any = "euclidean") -> Any:
    """Distribution over the others for each object: ``p_ij ~ exp(-d_ij / (2 sigma_i^2))``, ``p_ii = 0``.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        With ``metric="precomputed"``, dissimilarities of shape (n_samples, n_samples), not necessarily symmetric, used
        in the exponent as they are (not squared); or a sparse matrix of those of neighbours.
    perplexity : float or None, default=15.0
        exp of the entropy of each row. None: sigma_i is such that 2 sigma_i^2 = 1.
    metric : str or callable, default="euclidean"
        "precomputed", or a metric of scikit-learn's, of which the squares are taken.

    Returns
    -------
    P : array of shape (n_samples, n_samples), or CSR matrix if X is sparse

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.embedding import neighbor_probabilities
    >>> P = neighbor_probabilities(np.array([[0.0], [1.0], [3.0], [4.0]]), perplexity=1.5)
    >>> P.round(2)
    array([[0.  , 0.88, 0.1 , 0.02],
           [0.87, 0.  , 0.12, 0.  ],
           [0.  , 0.12, 0.  , 0.87],
           [0.02, 0.1 , 0.88, 0.  ]])
    """
    precomputed = isinstance(metric, str) and metric == "precomputed"
    X = check_array(
        X, dtype=np.float64, accept_sparse="csr" if precomputed else False, ensure_min_samples=2,
        ensure_non_negative=precomputed, input_name="X",
    )  # fmt: skip
    if precomputed and X.shape[0] != X.shape[1]:
        raise ValueError(f"X must be square with metric='precomputed', got shape {X.shape}")
    if not precomputed and isinstance(metric, str) and metric == "euclidean":
        X = X - X.mean(axis=0)
        if perplexity is not None:
            X = X / (float(np.abs(X).max()) or 1.0)
    return Objects(X, metric).neighbors(perplexity, exact=True).P
