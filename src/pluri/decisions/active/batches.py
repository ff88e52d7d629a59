"""Several rows to label at once: those of the highest scores, or high scores that differ from each other.

The best rows by score are often near copies: labels of all of them tell little more than the label of one. A
determinantal point process (`pluri.processes.dpp`) weighs both: a set of rows Y is preferred by
``det[q_i k(x_i, x_j) q_j]`` over Y, with the quality q from the scores and the similarity k of rows. Its most probable
set is searched greedily.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from pluri.validation import check_count

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Rows of the highest scores that a diverse batch is chosen from: so many for each row of the batch, and at least.
CANDIDATES_PER_ROW, LEAST_CANDIDATES = 10, 100
#: Quality of the lowest score among the candidates; the highest has 1.
LEAST_QUALITY = 0.1


def top_rows(scores: ArrayLike, size: int, rng: np.random.Generator) -> Indices:
    """Rows of the highest scores, highest first; ties are broken at random.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions.active.batches import top_rows
    >>> top_rows([0.1, 0.9, 0.5], 2, np.random.default_rng(0)).tolist()
    [1, 2]
    """
    values = np.asarray(scores, dtype=np.float64)
    order = rng.permutation(len(values))
    return np.asarray(order[np.argsort(-values[order], kind="stable")][:size], dtype=np.int64)


def diverse_rows(X: Any, scores: ArrayLike, size: int, rng: np.random.Generator) -> Indices:
    """Rows of high scores that differ from each other, by a determinantal point process.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Numbers. Rows are compared by an RBF kernel of standardised columns, or by their cosine if they are sparse.
    scores : array-like of shape (n_samples,)
        Quality is linear in them: from 0.1 for the lowest of the candidates to 1 for the highest. Candidates are the
        10 rows of highest scores for each row wanted, and at least 100.
    size : int
        Number of rows wanted.
    rng : numpy.random.Generator
        Breaks ties.

    Returns
    -------
    ndarray of shape (size,)
        In order of choice. Where fewer rows differ than are wanted, the rest are the highest scores.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions.active.batches import diverse_rows, top_rows
    >>> X, scores = np.array([[0.0], [0.01], [5.0]]), [1.0, 0.99, 0.9]
    >>> rng = np.random.default_rng(0)
    >>> top_rows(scores, 2, rng).tolist(), diverse_rows(X, scores, 2, rng).tolist()
    ([0, 1], [0, 2])
    """
    from pluri.processes.dpp.selection.selector import DPPSelector

    check_count(size, "size")
    values = np.asarray(scores, dtype=np.float64)
    ranked = top_rows(values, max(LEAST_CANDIDATES, CANDIDATES_PER_ROW * size), rng)
    ranked = ranked[np.isfinite(values[ranked])]
    size = min(size, len(values))
    if size == 1 or len(ranked) <= 1:
        return top_rows(values, size, rng)
    rows, kernel = _comparable(X, ranked)
    span = values[ranked] - values[ranked].min()
    quality = np.ones(len(ranked)) if span.max() == 0 else LEAST_QUALITY + (1 - LEAST_QUALITY) * span / span.max()
    wanted = min(size, len(ranked))
    while wanted > 1:
        try:
            chosen = ranked[
                DPPSelector(wanted, kernel=kernel, method="map").fit(rows, quality=quality).selected_indices_
            ]
            break
        except ValueError:  # fewer rows differ
            wanted //= 2
    else:
        chosen = ranked[:1]
    rest = top_rows(np.where(np.isin(np.arange(len(values)), chosen), -np.inf, values), size, rng)
    return np.concatenate([chosen, rest[~np.isin(rest, chosen)]])[:size]


def _comparable(X: Any, rows: Indices) -> tuple[Any, str]:
    """The rows as numbers that a kernel compares, and its name."""
    from sklearn.utils import check_array

    if issparse(X):
        return X.tocsr()[rows], "cosine"
    try:
        dense = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan", input_name="X_pool")
    except (ValueError, TypeError) as error:
        raise ValueError(
            "batches='diverse' needs rows of numbers to compare, from X_pool or from the steps of a pipeline before "
            f"its model, got others: {error}"
        ) from error
    scale = np.nanstd(dense, axis=0)
    center = np.nanmean(dense, axis=0)
    standard = (dense[rows] - center) / np.where(scale > 0, scale, 1.0)
    return np.nan_to_num(standard), "rbf"
