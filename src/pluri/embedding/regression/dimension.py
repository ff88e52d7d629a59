"""How many dimensions rows have about each point: coordinates that a cluster uses, and directions that matter.

The effective rank of a cluster counts the singular values of ``(x_i - mean) L A'`` (its rows, centred, as the
coordinates explain them) whose square exceeds a share of the largest one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.embedding.regression.records import Position

Array = NDArray[np.float64]

#: A direction counts if its variance exceeds this share of the largest.
LEAST_SHARE = 0.05


def effective_ranks(position: Position, x: Array) -> Array:
    """Effective rank of each cluster: (J,), zero for those without rows or without coordinates in use."""
    J, K, _ = position["loadings"].shape
    counts = np.bincount(position["labels"], minlength=J)
    scatter = np.zeros((J, K, K))
    for j in np.flatnonzero(counts):
        E = x[position["labels"] == j] * position["scales"]
        E = E - E.mean(axis=0)
        scatter[j] = E.T @ E
    inner = position["loadings"] @ position["loadings"].transpose(0, 2, 1)
    values, vectors = np.linalg.eigh(inner)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1)
    found = np.linalg.eigvalsh(root @ scatter @ root)
    largest = found[:, -1:]
    return np.asarray(((found > LEAST_SHARE * largest) & (largest > 0)).sum(axis=1), dtype=np.float64)


def summary_of_ranks(position: Position, x: Array) -> dict[str, NDArray[np.float64]]:
    """Means over rows of the coordinates in use and of the effective rank, and the share of rows with each number."""
    J, K = position["support"].shape
    share = np.bincount(position["labels"], minlength=J) / len(position["labels"])
    ranks = position["support"].sum(axis=1)
    return {
        "dimension": np.asarray(share @ ranks, dtype=np.float64),
        "effective_rank": np.asarray(share @ effective_ranks(position, x), dtype=np.float64),
        "rank_shares": np.asarray(np.bincount(ranks, weights=share, minlength=K + 1), dtype=np.float64),
    }
