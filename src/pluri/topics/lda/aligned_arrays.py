"""Arrays as the compiled loops of latent Dirichlet allocation want them, and counts of words."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

#: Topics looked at together by samplers, in float32; and by variational Bayes and EM, in double precision.
BLOCK, LANES = 16, 8


def padded_to_lanes(size: int) -> int:
    """Number of topics or words, rounded up to whole vectors of double precision; at least one."""
    return max(-(-size // LANES), 1) * LANES


def aligned(*shape: int) -> NDArray[np.float64]:
    """Array of double precision that begins at a cache line; not initialised."""
    size = math.prod(shape)
    room = np.empty(size + LANES)
    start = -(room.ctypes.data // 8) % LANES
    return room[start : start + size].reshape(shape)


class WordCounts(NamedTuple):
    """Counts of words in documents: the arrays of a CSR matrix, and the weights of the documents."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float64]
    weight: NDArray[np.float64]

    @classmethod
    def of(cls, X: Any, weight: NDArray[np.float64] | None, n_words: int) -> Self:
        """Counts of so many words in documents of equal weights, if none are given."""
        csr = X if sparse.issparse(X) and X.format == "csr" else sparse.csr_matrix(X)
        if csr.shape[1] != n_words:
            raise ValueError(f"X must have {n_words} columns, got {csr.shape[1]}")
        return cls(
            csr.indptr.astype(np.int64, copy=False), csr.indices.astype(np.int32, copy=False),
            csr.data.astype(np.float64, copy=False),
            np.ones(csr.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64),
        )  # fmt: skip

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.indptr) - 1

    @property
    def longest(self) -> int:
        """Number of words of the longest document, rounded up to whole vectors."""
        return padded_to_lanes(int(np.diff(self.indptr).max(initial=0)))
