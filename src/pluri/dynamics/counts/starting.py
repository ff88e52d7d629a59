r"""Where EM begins: log rates of low rank, by a nuclear norm or by principal components.

The nuclear-norm start minimises  sum [exp(Xi + d) - Y (Xi + d)] + gamma ||Xi||_*  over log rates Xi (n, N) and offsets
d, by ADMM: entries by Newton's method, singular values by soft thresholds, offsets in closed form. gamma is the size of
the noise: the largest singular value of Y - E Y is about sqrt(mean count) (sqrt(n) + sqrt(N)) for Poisson counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

STARTS = ("nuclear", "pca")
N_ADMM, N_NEWTON = 60, 3
#: Singular values of states that the threshold removed, all or nearly so, are given this share of the largest.
LEAST_SHARE = 0.05
#: Log rates are kept between these: a count of 0 has no lower end.
LOWEST, HIGHEST = -12.0, 12.0


def starting_states(
    counts: Array, offsets: Integers, n_components: int, how: str, rng: np.random.Generator | None
) -> tuple[Array, Array, Array]:
    """Paths (n, p), loadings (N, p) and intercepts (N,) of a log rate of low rank.

    `counts` (n, N) has NaN where a value is missing; `rng` disturbs the loadings, so that several starts differ.
    """
    rates, intercept = _nuclear(counts, offsets) if how == "nuclear" else _smoothed_logs(counts, offsets)
    center = rates.mean(axis=0)
    paths, loadings = _low_rank(rates - center, n_components)
    gone = (paths**2).mean(axis=0) < 0.99
    if gone.any():  # a state without a path would hardly ever get one
        paths, loadings = _filled(paths, loadings, gone, _smoothed_logs(counts, offsets)[0])
    intercept = intercept + center
    if rng is not None:
        loadings = loadings + 0.3 * loadings.std() * rng.standard_normal(loadings.shape)
    return paths, loadings, intercept


def _low_rank(rates: Array, p: int) -> tuple[Array, Array]:
    """Paths of mean square one and loadings whose product is the best of rank p."""
    n = len(rates)
    values, vectors = np.linalg.eigh(rates.T @ rates)
    axes = vectors[:, ::-1][:, :p]
    sizes = np.sqrt(np.maximum(values[::-1][:p], 0.0))
    least = LEAST_SHARE * max(sizes[0], 1e-3 * np.sqrt(n))
    paths = rates @ axes / np.maximum(sizes, least) * np.sqrt(n)
    return paths, axes * np.maximum(sizes, least) / np.sqrt(n)


def _filled(paths: Array, loadings: Array, gone: NDArray[np.bool_], logs: Array) -> tuple[Array, Array]:
    """Small paths along the principal components of what other loadings leave of `logs`, instead of those gone."""
    left = logs - logs.mean(axis=0)
    axes = np.linalg.qr(loadings[:, ~gone])[0]
    found, kept = _low_rank(left - left @ axes @ axes.T, int(gone.sum()))
    size = LEAST_SHARE * np.linalg.norm(loadings, axis=0).max()
    paths, loadings = paths.copy(), loadings.copy()
    paths[:, gone], loadings[:, gone] = found, kept * size / np.maximum(np.linalg.norm(kept, axis=0), 1e-300)
    return paths, loadings


def _smoothed_logs(counts: Array, offsets: Integers) -> tuple[Array, Array]:
    """log(count + 1/2), smoothed in time within sequences, and offsets for the mean counts to be right."""
    seen = ~np.isnan(counts)
    logs = np.log(np.where(seen, counts, 0.0) + 0.5)
    mean = np.where(seen, logs, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    logs = _smoothed(np.where(seen, logs - mean, 0.0), offsets)
    return logs, _offsets(counts, logs)


def _smoothed(rates: Array, offsets: Integers) -> Array:
    """Two passes of the weights 1/4, 1/2, 1/4, ends repeated."""
    firsts, lasts = offsets[:-1][np.diff(offsets) > 0], offsets[1:][np.diff(offsets) > 0] - 1
    for _ in range(2):
        before, after = np.roll(rates, 1, axis=0), np.roll(rates, -1, axis=0)
        before[firsts], after[lasts] = rates[firsts], rates[lasts]
        rates = 0.25 * before + 0.5 * rates + 0.25 * after
    return rates


def _offsets(counts: Array, rates: Array) -> Array:
    """D with which expected and observed totals agree; those of neurons without a count are low."""
    seen = ~np.isnan(counts)
    total = np.where(seen, counts, 0.0).sum(axis=0)
    expected = np.where(seen, np.exp(rates), 0.0).sum(axis=0)
    return np.log(np.maximum(total, 0.1) / np.maximum(expected, 1e-12))


def _nuclear(counts: Array, offsets: Integers) -> tuple[Array, Array]:
    seen = ~np.isnan(counts)
    y = np.where(seen, counts, 0.0)
    n, n_neurons = counts.shape
    mean = y.sum() / max(seen.sum(), 1)
    gamma = np.sqrt(max(mean, 1e-3)) * (np.sqrt(n) + np.sqrt(n_neurons))
    rates, d = _smoothed_logs(counts, offsets)
    Z, U = rates, np.zeros_like(rates)
    for _ in range(N_ADMM):
        for _ in range(N_NEWTON):
            expected = np.where(seen, np.exp(np.minimum(rates + d, HIGHEST)), 0.0)
            # Newton steps of a convex function of each entry, held back where it bends most.
            step = (expected - y + rates - Z + U) / (expected + 1.0)
            rates = np.clip(rates - np.clip(step, -2.0, 2.0), LOWEST, HIGHEST)
        values, axes = np.linalg.eigh((rates + U).T @ (rates + U))
        sizes = np.sqrt(np.maximum(values, 1e-300))
        Z = (rates + U) @ (axes * np.maximum(1.0 - gamma / sizes, 0.0)) @ axes.T
        U = U + rates - Z
        d = _offsets(counts, rates)
    return (Z if (sizes > gamma).any() else rates), d
