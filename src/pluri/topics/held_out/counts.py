"""Word counts at the door of the held-out scores: checked once, the same for all of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray


def as_counts(X: Any, n_words: int | None = None, *, whole: bool = True) -> scipy.sparse.csr_matrix:
    """Counts as a canonical CSR matrix of floats: sorted, without stored zeros; the input is left as it is."""
    if scipy.sparse.issparse(X):
        counts = scipy.sparse.csr_matrix(X, dtype=np.float64, copy=True)
    else:
        dense = np.asarray(X, dtype=np.float64)
        if dense.ndim != 2:
            raise ValueError(f"X must have two axes, documents and words, got shape {dense.shape}")
        counts = scipy.sparse.csr_matrix(dense)
    counts.sum_duplicates()
    counts.eliminate_zeros()
    if n_words is not None and counts.shape[1] != n_words:
        raise ValueError(f"X must have {n_words} columns, one for each word of the model, got {counts.shape[1]}")
    if not np.isfinite(counts.data).all():
        raise ValueError("X must be finite, got NaN or infinity")
    if counts.nnz and counts.data.min() < 0:
        raise ValueError(f"X must hold counts, got the negative value {counts.data.min():g}")
    if whole and (counts.data != np.rint(counts.data)).any():
        found = counts.data[counts.data != np.rint(counts.data)][0]
        raise ValueError(f"X must hold whole counts, got {found:g}; give the counts before any weighting")
    return counts


def lengths_of(counts: scipy.sparse.csr_matrix) -> NDArray[np.int64]:
    """Number of words of each document."""
    return np.asarray(counts.sum(axis=1)).ravel().round().astype(np.int64)


def warn_impossible(log_likelihood: NDArray[np.float64], of: str) -> None:
    """Say which documents have probability zero."""
    impossible = np.flatnonzero(np.isneginf(log_likelihood))
    if impossible.size:
        shown = ", ".join(map(str, impossible[:5])) + (", ..." if impossible.size > 5 else "")
        warnings.warn(
            f"{impossible.size} documents ({shown}) hold a word of probability zero under {of}: their log likelihood "
            "is -inf; smooth the topics, or leave those words out of X",
            RuntimeWarning,
            stacklevel=3,
        )
