"""Cutting each held-out document in two: words to learn its topics from, and words to score."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from pluri.topics.held_out.prepared import as_counts, lengths_of
from pluri.validation import RandomState, as_generator


def split_documents(
    X: Any, rng: RandomState = None, share: float = 0.5
) -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]:
    """Split the words of every document at random into an observed and a scored part.

    Words are drawn one by one without replacement, so that several copies of a word can fall on both sides. The
    observed part of a document of n words has ``share * n`` words, rounded; of a half, down: the single word of a
    document is scored.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Whole counts.
    rng : int, Generator or None
        Randomness.
    share : float, default=0.5
        Part of each document to observe, from 0 to 1.

    Returns
    -------
    observed, scored : csr_matrix of shape (n_documents, n_words)
        They sum to `X`.

    Examples
    --------
    >>> from pluri.topics.held_out import split_documents
    >>> observed, scored = split_documents([[3, 0, 3], [0, 0, 0]], rng=0)
    >>> (observed + scored).toarray()
    array([[3., 0., 3.],
           [0., 0., 0.]])
    >>> observed.sum(axis=1).ravel().tolist()
    [[3.0, 0.0]]
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie between 0 and 1, got {share}")
    counts = as_counts(X)
    generator = as_generator(rng)
    lengths = lengths_of(counts)
    documents = np.repeat(np.arange(counts.shape[0]), lengths)
    # Entries of the matrix, each repeated for its copies; the document's number in front of a random fraction shuffles
    # all documents in one sort.
    entries = np.repeat(np.arange(counts.nnz), counts.data.astype(np.int64))
    shuffled = np.argsort(documents + generator.random(documents.size))
    place = np.arange(documents.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    n_observed = np.ceil(share * lengths - 0.5).astype(np.int64)
    seen = place < n_observed[documents]
    taken = np.bincount(entries[shuffled[seen]], minlength=counts.nnz).astype(np.float64)
    parts = []
    for data in (taken, counts.data - taken):
        part = scipy.sparse.csr_matrix((data, counts.indices.copy(), counts.indptr.copy()), shape=counts.shape)
        part.eliminate_zeros()
        parts.append(part)
    return parts[0], parts[1]
