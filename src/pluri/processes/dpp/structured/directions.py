"""Which eigenvectors a draw takes: independent coins, or exactly so many of them, from the logarithms of their odds."""

from __future__ import annotations

import numpy as np

from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.symmetric_polynomials import log_elementary, log_elementary_table, log_elementary_without


def take_directions(
    log_odds: Array, n_draws: int, size: int | None, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Eigenvectors of each draw, one draw after the other, and how many each; ``log_odds`` descend."""
    from pluri.processes.dpp.samplers._spectral_kernels import fill_coins, toss_exactly

    rank = log_odds.size
    if size is None:
        heads = rng.random((n_draws, rank)) < chances(log_odds, None)
        return np.nonzero(heads)[1].astype(np.int64), heads.sum(axis=1).astype(np.int64)
    ascending = np.ascontiguousarray(log_odds[::-1])
    coins = np.ones((rank, size + 1))
    fill_coins(log_elementary_table(ascending, size), ascending, coins)
    chosen = np.empty((n_draws, size), dtype=np.int64)
    toss_exactly(rng, coins, size, chosen)
    return rank - 1 - chosen.ravel(), np.full(n_draws, size, dtype=np.int64)


def chances(log_odds: Array, size: int | None) -> Array:
    """Probability that each eigenvector is taken."""
    if size is None:
        return np.asarray(np.exp(-np.logaddexp(0.0, -log_odds)))
    if size == 0:
        return np.zeros(log_odds.size)
    without = log_elementary_without(log_odds, size - 1)
    return np.asarray(np.exp(log_odds + without - log_elementary(log_odds, size)[size]))


def log_normalizer(log_odds: Array, size: int | None) -> float:
    """``log prod (1 + odds)``, or the logarithm of the symmetric polynomial of order ``size``."""
    if size is None:
        return float(np.logaddexp(0.0, log_odds).sum())
    return float(log_elementary(log_odds, size)[size])


def check_size(size: int | None, rank: int) -> int | None:
    """A fixed size that is possible, or None."""
    if size is None:
        return None
    if isinstance(size, bool) or size != int(size) or not 0 <= size <= rank:
        raise ValueError(f"size must be a whole number from 0 to the rank ({rank}), got {size!r}")
    return int(size)
