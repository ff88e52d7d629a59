"""Kernels from the frequencies of items and pairs: the best independent model, and where iterations start.

If items were independent, ``K_ii`` would be the frequency of item i and ``L_ii = K_ii / (1 - K_ii)``. For a
determinantal process ``K_ij^2 = K_ii K_jj - P(i, j)``, which gives the sizes of the other entries but not their signs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.processes.dpp.learning.observations import SubsetCounts

Array = NDArray[np.float64]

#: Eigenvalues of K are kept this far from 0 and 1, where L would be singular or infinite.
MARGIN = 1e-6


def quality_odds(counts: SubsetCounts) -> Array:
    """Diagonal of the best kernel without repulsion: (n_items,); frequencies of one are taken as 1 - 1e-6."""
    frequency = np.minimum(counts.item_weights() / counts.total, 1 - MARGIN)
    return frequency / (1 - frequency)


def initial_spectrum(counts: SubsetCounts, rng: np.random.Generator) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of a marginal kernel with about the frequencies seen, and random signs."""
    frequency = counts.item_weights() / counts.total
    # Half of the size that the pairs tell: with wrong signs the whole would leave no room between 0 and I.
    sizes = np.sqrt(np.maximum(np.outer(frequency, frequency) - counts.pair_weights() / counts.total, 0.0)) / 2
    noise = rng.uniform(0.01, 0.1, size=sizes.shape) * np.sqrt(np.outer(frequency, frequency))
    signs = np.where(rng.random(sizes.shape) < 0.5, -1.0, 1.0)
    upper = np.triu(signs * (sizes + noise), 1)
    probabilities, vectors = np.linalg.eigh(upper + upper.T + np.diag(frequency))
    return vectors, np.clip(probabilities, 0.02, 0.98)


def kernel_of_spectrum(vectors: Array, probabilities: Array) -> Array:
    """``L = V diag(kappa / (1 - kappa)) V'``."""
    kernel = (vectors * (probabilities / (1 - probabilities))) @ vectors.T
    return np.asarray((kernel + kernel.T) / 2)


def initial_factors(counts: SubsetCounts, rank: int, rng: np.random.Generator) -> Array:
    """Rows of random directions whose squared lengths are the odds of the items: (n_items, rank)."""
    directions = rng.standard_normal((counts.n_items, rank))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(directions * np.sqrt(quality_odds(counts))[:, None])
