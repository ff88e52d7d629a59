"""Comparing dependent draws with independent ones: z-scores and Kolmogorov-Smirnov by the effective number of draws.

A mean over n dependent draws varies as one over ``n_eff`` independent ones. The empirical distribution does so at each
point with an ``n_eff`` of its own; the least over several quantiles is taken, which errs on the side of no alarm. These
p-values are good where n_eff is in the hundreds, and only approximate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import kolmogorov, ndtr

from pluri.testing.comparison import Comparison

Array = NDArray[np.float64]
#: Quantiles at which the effective number of draws of the empirical distribution is looked at.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def effective_draws(chains: Array) -> float:
    """Least effective number of draws of the mean and of several quantiles, for chains (n_chains, n_draws)."""
    from pluri.inference.mcmc import ess_mean

    if np.ptp(chains) == 0:
        return float(chains.size)
    found = [ess_mean(chains)]
    for quantile in np.quantile(chains, QUANTILES):
        below = (chains <= quantile).astype(np.float64)
        if 0 < below.mean() < 1:
            found.append(ess_mean(below))
    finite = [value for value in found if np.isfinite(value)]
    return float(min(min(finite, default=1.0), chains.size))


def thinning(chains: Array) -> float:
    """Draws from one to the next that is about independent: two autocorrelation times, for chains (n_chains, n_draws).

    The residual correlation is then that of ``exp(-4)`` for an autoregression. Draws that look independent but for
    chance are left as they are.
    """
    from pluri.inference.mcmc import ess_bulk

    size = ess_bulk(chains)
    time = chains.size / size if np.isfinite(size) else 1.0
    return 1.0 if time < 1.5 else 2.0 * time


def compare_with_chains(exact: Mapping[str, Array], chains: Sequence[Mapping[str, Array]]) -> tuple[Comparison, ...]:
    """First and second moments by z-scores, and the distribution of each quantity."""
    from pluri.inference.mcmc import ess_mean

    length = min(len(next(iter(chain.values()))) for chain in chains)
    found: list[Comparison] = []
    for name, independent in exact.items():
        dependent = np.array([chain[name][:length] for chain in chains])
        if np.ptp(np.concatenate([independent, dependent.ravel()])) == 0:
            continue
        centre = independent.mean()
        for test, x, y in (
            ("mean", independent, dependent),
            ("square", (independent - centre) ** 2, (dependent - centre) ** 2),
        ):
            size = ess_mean(y)
            error = np.sqrt(x.var(ddof=1) / len(x) + (y.var(ddof=1) / size if np.isfinite(size) else y.var(ddof=1)))
            z = float((y.mean() - x.mean()) / error) if error > 0 else 0.0
            found.append(Comparison(name, test, z, float(2.0 * ndtr(-abs(z)))))
        distance = float(stats.ks_2samp(independent, dependent.ravel(), method="asymp").statistic)
        size = effective_draws(dependent)
        harmonic = len(independent) * size / (len(independent) + size)
        found.append(Comparison(name, "ks", distance, float(kolmogorov(np.sqrt(harmonic) * distance))))
    return tuple(found)
