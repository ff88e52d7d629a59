r"""Tomek links, removed until there are none.

Two rows of different classes with no row nearer to either of them are a link [1]_: noise, or the border between the
classes. Taking away the row of the larger class cleans the border; what was behind it may then form a new link, so one
pass leaves some. imbalanced-learn has the single pass; here links are removed until none is left.

References
----------
.. [1] I. Tomek, "Two modifications of CNN", IEEE Transactions on Systems, Man, and Cybernetics 6, 1976.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import Tags, _safe_indexing, check_array, check_X_y
from sklearn.utils.multiclass import check_classification_targets

from pluri.validation import Allowed, Only, Whole, check_parameters
from pluri.validation.estimator import Estimator

IntArray = NDArray[np.int64]

#: Distances that differ by less than this share are equal.
TIE = 1e-9


class IteratedTomekLinks(Estimator):
    """Remove Tomek links of the larger class until there are none: a resampler with imbalanced-learn's protocol.

    Apply it to training rows only; a pipeline of imbalanced-learn does.

    Parameters
    ----------
    removed : {"majority", "both"}, default="majority"
        Which row of a link goes: that of the class with more rows (of equally frequent ones, none unless "both"), or
        both. The last rows of a class are never removed.
    max_rounds : int or None, default=None
        Passes at most; 1 is what imbalanced-learn's ``TomekLinks`` does (which takes one of several nearest
        neighbours that are equally near; here all of them count).

    Attributes
    ----------
    sample_indices_ : ndarray of int
        Rows that were kept, in their order.
    n_rounds_ : int
        Passes that removed something.
    n_links_ : int
        Links of the first pass.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions import IteratedTomekLinks
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [3.1], [4.0], [3.3]])
    >>> X_kept, y_kept = IteratedTomekLinks().fit_resample(X, [0, 0, 0, 0, 1, 1, 0])
    >>> X_kept.ravel()
    array([0. , 1. , 2. , 3.1, 4. ])
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "removed": Only("majority", "both"),
        "max_rounds": Whole(1) | Only(None),
    }
    sample_indices_: IntArray
    n_rounds_: int
    n_links_: int
    n_features_in_: int

    def __init__(self, removed: str = "majority", *, max_rounds: int | None = None) -> None:
        self.removed = removed
        self.max_rounds = max_rounds

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Rows and labels without links; what was a data frame is one again.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        X_resampled, y_resampled
        """
        check_parameters(self)
        rows, labels = check_X_y(X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(labels)
        if len(np.unique(labels)) < 2:
            raise ValueError(f"y must have at least two classes, got {np.unique(labels)}")
        kept = np.arange(len(labels))
        n_rounds, first = 0, None
        while self.max_rounds is None or n_rounds < self.max_rounds:
            links = tomek_links(rows[kept], labels[kept])
            first = len(links) if first is None else first
            gone = self._to_remove(links, labels[kept])
            if not len(gone):
                break
            kept = np.delete(kept, gone)
            n_rounds += 1
        self.sample_indices_, self.n_rounds_, self.n_links_ = kept, n_rounds, int(first or 0)
        self.n_features_in_ = int(rows.shape[1])
        return _taken(X, kept, rows), _taken(y, kept, labels)

    def _to_remove(self, links: IntArray, labels: NDArray[Any]) -> IntArray:
        classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        ends = links.ravel()
        if self.removed == "majority":
            first, second = counts[codes[links[:, 0]]], counts[codes[links[:, 1]]]
            ends = np.concatenate([links[first > second, 0], links[second > first, 1]])
        gone = np.unique(ends)
        # The last rows of a class stay, whatever they are linked to.
        for place in range(len(classes)):
            mine = gone[codes[gone] == place]
            if len(mine) == counts[place]:
                gone = np.setdiff1d(gone, mine)
        return gone

    def _check_fitted_state(self) -> None:
        kept = getattr(self, "sample_indices_", np.empty(0, dtype=np.int64))
        if kept.ndim != 1 or kept.dtype.kind not in "iu" or (kept < 0).any():
            raise ValueError("sample_indices_ must be numbers of rows")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags


def tomek_links(X: Any, y: Any) -> IntArray:
    """Pairs of rows of different classes with no row nearer to either: (n_links, 2), the first the lower.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)

    Examples
    --------
    >>> from pluri.decisions import tomek_links
    >>> tomek_links([[0.0], [1.0], [1.2], [3.0]], [0, 0, 1, 1])
    array([[1, 2]])
    """
    labels = np.asarray(y)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows < 2:
        return np.zeros((0, 2), dtype=np.int64)
    first, second = _nearest_pairs(check_array(X, accept_sparse="csr", dtype=np.float64), n_rows)
    # Each pair twice if both are nearest to each other; ties are common where numbers are whole.
    codes = first * n_rows + second
    mutual = np.isin(codes, second * n_rows + first) & (first < second) & (labels[first] != labels[second])
    return np.stack([first[mutual], second[mutual]], axis=1).astype(np.int64)


def _nearest_pairs(X: Any, n_rows: int) -> tuple[IntArray, IntArray]:
    """Every row with each of its nearest neighbours: several if they are equally near."""
    found = NearestNeighbors(n_neighbors=1).fit(X)
    n_asked, rows, pairs = min(2, n_rows - 1), np.arange(n_rows), []
    asked = X
    while len(rows):
        # Without rows to ask about, a row is no neighbour of its own; later it is left out by its number.
        own = len(rows) == n_rows
        distance, other = found.kneighbors(None if own else asked, n_asked if own else n_asked + 1)
        distance = np.where(other == rows[:, None], np.inf, distance)
        nearest = distance.min(axis=1, keepdims=True)
        # Distances of the same length may differ in their last digits.
        tied = distance <= nearest * (1.0 + TIE)
        place, column = np.nonzero(tied)
        done = ~tied[:, -1] | (n_asked >= n_rows - 1)
        keep = done[place]
        pairs.append(np.stack([rows[place[keep]], other[place[keep], column[keep]]]))
        rows, n_asked = rows[~done], min(4 * n_asked, n_rows - 1)
        asked = X[rows]
    first, second = np.concatenate(pairs, axis=1).astype(np.int64)
    return first, second


def _taken(given: Any, kept: IntArray, checked: Any) -> Any:
    # Frames and series of pandas, Polars and others; lists become arrays.
    framed = any(hasattr(given, name) for name in ("iloc", "columns", "to_frame"))
    return _safe_indexing(given, kept) if framed else checked[kept]
