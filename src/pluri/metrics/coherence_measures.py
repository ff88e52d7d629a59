"""Measures of coherence, from how many documents or windows have a word, or two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
#: Entries of the table of windows and words that is held at a time.
BLOCK = 10**7


def occurrence(counts: Any) -> Any:
    """Whether each word is in each document."""
    import scipy.sparse

    table = scipy.sparse.csc_matrix(counts, dtype=np.float64, copy=True)
    table.sum_duplicates()
    table.data = (table.data > 0).astype(np.float64)
    return table


def word_columns(texts: list[list[Any]], numbers: dict[str, int] | None) -> list[Indices]:
    """Texts as columns; -1 for words that are not in the vocabulary."""
    if numbers is None:
        return [np.asarray(text, dtype=np.int64) for text in texts]
    return [np.array([numbers.get(str(token), -1) for token in text], dtype=np.int64) for text in texts]


def windows(texts: list[Indices], chosen: list[Indices], length: int | None) -> Iterator[Any]:
    """Whether each word is in each window, a block of texts at a time.

    A word at position p is in the windows that start at ``p - length + 1, ..., p``. Of two occurrences the later one
    adds only the windows that the earlier is not in.
    """
    import scipy.sparse

    relevant = np.unique(np.concatenate(chosen))
    n_columns = int(max(relevant.max(), max((int(text.max(initial=-1)) for text in texts), default=-1))) + 1
    sizes = np.array([text.size for text in texts], dtype=np.int64)
    width = sizes if length is None else np.minimum(sizes, length)
    n_starts = np.maximum(sizes - width + 1, 1)
    work = np.cumsum(sizes * np.maximum(1, np.minimum(width, n_starts)))
    first = 0
    while first < len(texts):
        done = work[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(work, done + BLOCK, side="right")))
        part = slice(first, last)
        document = np.repeat(np.arange(first, last), sizes[part])
        position = np.concatenate([np.arange(size) for size in sizes[part]])
        column = np.concatenate(texts[part])
        keep = np.isin(column, relevant)
        document, position, column = document[keep], position[keep], column[keep]
        order = np.lexsort((position, document, column))
        document, position, column = document[order], position[order], column[order]
        start = np.maximum(position - width[document] + 1, 0)
        stop = np.minimum(position, n_starts[document] - 1) + 1
        follows = np.zeros(start.size, dtype=bool)
        follows[1:] = (column[1:] == column[:-1]) & (document[1:] == document[:-1])
        start[1:] = np.where(follows[1:], np.maximum(start[1:], stop[:-1]), start[1:])
        n_new = np.maximum(stop - start, 0)
        offset = np.cumsum(n_starts[part]) - n_starts[part]
        begin = offset[document - first] + start
        rows = np.repeat(begin - (np.cumsum(n_new) - n_new), n_new) + np.arange(n_new.sum())
        where = rows, np.repeat(column, n_new)
        shape = int(n_starts[part].sum()), n_columns
        yield scipy.sparse.csc_matrix((np.ones(rows.size), where), shape=shape)
        first = last


def _npmi(shares: NDArray[np.float64], epsilon: float, normalised: bool = True) -> NDArray[np.float64]:
    """(Normalised) pointwise mutual information of all pairs; the diagonal of `shares` has the words alone."""
    alone = np.diag(shares)
    product = np.outer(alone, alone)
    known = product > 0
    value = np.zeros(shares.shape)
    value[known] = np.log((shares[known] + epsilon) / product[known])
    if normalised:
        always = shares >= 1
        np.divide(value, -np.log(shares + epsilon), out=value, where=known & ~always)
        value[always] = 1.0
    return value


def _pairs(value: NDArray[np.float64]) -> NDArray[np.float64]:
    return value[np.tril_indices(len(value), -1)]


def npmi_score(shares: NDArray[np.float64], epsilon: float) -> float:
    return float(_pairs(_npmi(shares, epsilon)).mean())


def uci_score(shares: NDArray[np.float64], epsilon: float) -> float:
    return float(_pairs(_npmi(shares, epsilon, normalised=False)).mean())


def umass_score(shares: NDArray[np.float64], epsilon: float) -> float:
    """Rows are the later words, columns the earlier ones that they are conditioned on."""
    earlier = np.broadcast_to(np.diag(shares), shares.shape)
    ratio = np.ones(shares.shape)
    np.divide(shares + epsilon, earlier, out=ratio, where=earlier > 0)
    return float(_pairs(np.log(ratio)).mean())


def cv_score(shares: NDArray[np.float64], epsilon: float) -> float:
    vectors = _npmi(shares, epsilon)
    whole = vectors.sum(axis=0)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(whole)
    cosine = np.zeros(len(vectors))
    np.divide(vectors @ whole, lengths, out=cosine, where=lengths > 0)
    return float(cosine.mean())
