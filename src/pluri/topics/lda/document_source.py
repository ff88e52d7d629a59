"""Documents in memory as a source of batches or shared among threads, and arrays that batches bring back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Batch, LazyBatch, Source

Array = NDArray[np.float64]

#: Documents of a batch, at least and at most, and batches of a corpus in memory.
SMALLEST_BATCH, LARGEST_BATCH, N_BATCHES = 64, 16_384, 8


@dataclass(frozen=True, eq=False)
class DocumentBatch(Batch):
    """Some documents that know where they stand in the corpus."""

    first: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return DocumentBatch, (self.X, self.lengths, self.weight, self.labels, self.first)


@dataclass(frozen=True, eq=False)
class Documents:
    """A corpus in memory as a source; the cut depends on its size only.

    Parameters
    ----------
    X : csr matrix of shape (n_documents, n_words)
    weight : array of shape (n_documents,), optional

    Examples
    --------
    >>> from scipy import sparse
    >>> from pluri.topics.lda.document_source import Documents
    >>> [batch.first for batch in Documents(sparse.eye(150, format="csr")).batches()]
    [0, 64, 128]
    """

    X: Any
    weight: Array | None = None

    @property
    def n_features(self) -> int:
        """Size of the vocabulary."""
        return int(self.X.shape[1])

    def batches(self) -> Iterator[LazyBatch]:
        """Start a new pass."""
        n_documents = self.X.shape[0]
        size = min(max(-(-n_documents // N_BATCHES), SMALLEST_BATCH), LARGEST_BATCH)
        for begin in range(0, n_documents, size):
            rows = slice(begin, begin + size)
            yield DocumentBatch(self.X[rows], weight=None if self.weight is None else self.weight[rows], first=begin)


def size_of_source(source: Source) -> tuple[int, float, int]:
    """Number of documents of a source, the sum of their weights, and its number of batches; it is read once."""
    n_documents, total, n_batches = 0, 0.0, 0
    for item in source.batches():
        batch = item.load()
        n_documents += batch.n_samples
        total += batch.n_samples if batch.weight is None else float(np.sum(batch.weight))
        n_batches += 1
    return n_documents, total, n_batches


@dataclass(frozen=True, eq=False)
class Stacked:
    """Arrays of consecutive batches; adding is putting one below the other."""

    parts: tuple[Array, ...]

    def __add__(self, other: Stacked) -> Stacked:
        return Stacked(self.parts + other.parts)

    @property
    def array(self) -> Array:
        """All rows."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)


def on_threads(function: Callable[[Callable[[Any], Any]], Any], n_rows: int, n_jobs: int | None) -> list[Any]:
    """What a function gives for each part of the rows, in order; as many parts as threads.

    The function gets another one that cuts its part out of an array or a matrix; None stays None.
    """
    from concurrent.futures import ThreadPoolExecutor

    from pluri.engine.executors import count_jobs

    n_parts = max(1, min(1 if n_jobs is None else count_jobs(n_jobs), n_rows))
    edges = np.linspace(0, n_rows, n_parts + 1).astype(int).tolist()

    def one(edge: tuple[int, int]) -> Any:
        return function(lambda rows: None if rows is None else rows[edge[0] : edge[1]])

    if n_parts == 1:
        return [one((0, n_rows))]
    with ThreadPoolExecutor(n_parts, thread_name_prefix="pluri") as pool:
        return list(pool.map(one, pairwise(edges)))
