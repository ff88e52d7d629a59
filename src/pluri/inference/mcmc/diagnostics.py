"""Have the chains met, and how much are the draws worth: R-hat, effective sample size, Monte Carlo error.

All on ranks turned into normal scores, so that heavy tails do no harm [1]_. `r_hat` compares chains cut in half;
`ess_bulk` is the number of independent draws that would give as precise a centre, `ess_tail` the same for the 5 % and
95 % quantiles. Below 1.01 and above a hundred for each chain, results can be trusted.

References
----------
.. [1] Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Buerkner, P.-C. (2021). Rank-normalization, folding, and
   localization: an improved R-hat. Bayesian Analysis 16, 667-718.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation import Number, check_value

Array = NDArray[np.float64]


def r_hat(draws: ArrayLike) -> float:
    """Rank-normalised split R-hat, the larger of that of the draws and of their distance to the median.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)

    Returns
    -------
    float
        About 1 when the chains agree; NaN for fewer than four draws, draws that never change or are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc import r_hat
    >>> rng = np.random.default_rng(0)
    >>> round(r_hat(rng.normal(size=(4, 1000))), 2)
    1.0
    >>> r_hat(rng.normal(size=(4, 1000)) + np.arange(4)[:, None]) > 1.5
    True
    """
    halves = _split(draws)
    if halves is None:
        return float("nan")
    folded = np.abs(halves - np.median(halves))
    return max(_plain_r_hat(_normal_scores(halves)), _plain_r_hat(_normal_scores(folded)))


def ess_bulk(draws: ArrayLike) -> float:
    """Effective number of draws for the centre of the distribution.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc import ess_bulk
    >>> ess_bulk(np.random.default_rng(0).normal(size=(4, 1000))) > 3000
    True
    """
    halves = _split(draws)
    return float("nan") if halves is None else _ess(_normal_scores(halves))


def ess_tail(draws: ArrayLike) -> float:
    """Effective number of draws for the 5 % and 95 % quantiles, the smaller of the two.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc import ess_tail
    >>> ess_tail(np.random.default_rng(0).normal(size=(4, 1000))) > 2000
    True
    """
    values = np.asarray(draws, dtype=np.float64)
    if _split(values) is None:
        return float("nan")
    below = [_split(values <= np.quantile(values, level)) for level in (0.05, 0.95)]
    return min((_ess(halves) for halves in below if halves is not None), default=float("nan"))


def ess_mean(draws: ArrayLike) -> float:
    """Effective number of draws for the mean itself: on the values, not on ranks.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc import ess_mean
    >>> ess_mean(np.random.default_rng(0).normal(size=(4, 1000))) > 3000
    True
    """
    halves = _split(draws)
    return float("nan") if halves is None else _ess(halves)


def mcse_mean(draws: ArrayLike) -> float:
    """Standard error of the mean of correlated draws.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc import mcse_mean
    >>> round(mcse_mean(np.random.default_rng(0).normal(size=(4, 2500))), 2)
    0.01
    """
    values = np.asarray(draws, dtype=np.float64)
    return float(values.std(ddof=1) / np.sqrt(ess_mean(values))) if values.size > 1 else float("nan")


def mcse_sd(draws: ArrayLike) -> float:
    """Standard error of the standard deviation of correlated draws.

    ``Var(sd) = (E(x - m)^4 - sd^4) / (4 sd^2 ess)``, with the effective number of draws of ``(x - m)^2``.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc import mcse_sd
    >>> round(mcse_sd(np.random.default_rng(0).normal(size=(4, 2500))), 3)
    0.007
    """
    values = np.asarray(draws, dtype=np.float64)
    squares = (values - values.mean()) ** 2
    variance = squares.mean()
    if not variance > 0:
        return float("nan")
    spread = max((squares**2).mean() - variance**2, 0.0)
    return float(np.sqrt(spread / (4.0 * variance * ess_mean(squares))))


def highest_density_interval(draws: ArrayLike, mass: float = 0.94) -> tuple[float, float]:
    """Shortest interval that holds a share `mass` of the draws.

    Parameters
    ----------
    draws : array-like
    mass : float, default=0.94

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc import highest_density_interval
    >>> low, high = highest_density_interval(np.random.default_rng(0).exponential(size=10_000), 0.5)
    >>> bool(low < 0.01 and abs(high - np.log(2)) < 0.05)
    True
    """
    check_value(mass, "mass", Number(above=0, below=1))
    values = np.sort(np.asarray(draws, dtype=np.float64), axis=None)
    if len(values) == 0 or not np.isfinite(values).all():
        return float("nan"), float("nan")
    inside = int(np.floor(mass * len(values)))
    widths = values[inside:] - values[: len(values) - inside]
    if len(widths) == 0:
        return float(values[0]), float(values[-1])
    start = int(np.argmin(widths))
    return float(values[start]), float(values[start + inside])


def autocorrelation(draws: ArrayLike, max_lag: int | None = None) -> Array:
    """Autocorrelation of each chain.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)
    max_lag : int, optional

    Returns
    -------
    ndarray of shape (n_chains, max_lag + 1)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc import autocorrelation
    >>> autocorrelation([[1.0, -1.0, 1.0, -1.0]], max_lag=1)
    array([[ 1.  , -0.75]])
    """
    values = np.atleast_2d(np.asarray(draws, dtype=np.float64))
    covariance = _autocovariance(values)[:, : None if max_lag is None else max_lag + 1]
    first = covariance[:, :1]
    return np.divide(covariance, first, out=np.ones_like(covariance), where=first > 0)


def each_number(draws: Mapping[str, NDArray[Any]]) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Name and draws (n_chains, n_draws) of every number: ``"theta[1, 2]"`` for an entry of an array."""
    for name, values in draws.items():
        if not np.issubdtype(values.dtype, np.number) and values.dtype != np.bool_:
            continue
        for index in np.ndindex(values.shape[2:]):
            label = f"{name}[{', '.join(map(str, index))}]" if index else name
            yield label, np.asarray(values[(slice(None), slice(None), *index)], dtype=np.float64)


def _split(draws: ArrayLike) -> Array | None:
    """Each chain cut in half (the middle draw of an odd number is left out); None if there is nothing to compare."""
    values = np.asarray(draws, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"draws must have shape (n_chains, n_draws), got {values.shape}")
    half = values.shape[1] // 2
    if half < 2 or not np.isfinite(values).all() or np.ptp(values) == 0:
        return None
    return np.concatenate([values[:, :half], values[:, -half:]])


def _normal_scores(values: Array) -> Array:
    """Average ranks over all chains, as normal quantiles ``Phi^-1((r - 3/8) / (n + 1/4))``."""
    from scipy.special import ndtri

    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - 0.5 * (counts - 1)
    scores: Array = ndtri((ranks - 0.375) / (values.size + 0.25))
    return scores[place].reshape(values.shape)


def _plain_r_hat(values: Array) -> float:
    n_draws = values.shape[1]
    within = values.var(axis=1, ddof=1).mean()
    between = n_draws * values.mean(axis=1).var(ddof=1)
    if not np.ptp(values, axis=1).any():  # rounding would make the variances a little more than zero
        return float("inf") if between > 0 else float("nan")
    return float(np.sqrt((between / within + n_draws - 1) / n_draws))


def _autocovariance(values: Array) -> Array:
    """Autocovariance of each row at all lags, by the fast Fourier transform."""
    n_draws = values.shape[1]
    size = 1 << (2 * n_draws - 1).bit_length()
    spectrum = np.fft.rfft(values - values.mean(axis=1, keepdims=True), size, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :n_draws] / n_draws


def _ess(values: Array) -> float:
    """Effective sample size: Geyer's initial monotone sequence of paired autocorrelations over all chains."""
    n_chains, n_draws = values.shape
    if n_draws < 4 or np.ptp(values) == 0:
        return float("nan")
    covariance = _autocovariance(values)
    within = covariance[:, 0].mean() * n_draws / (n_draws - 1.0)
    variance = within * (n_draws - 1.0) / n_draws
    if n_chains > 1:
        variance += values.mean(axis=1).var(ddof=1)
    if not variance > 0:
        return float("nan")
    correlation = 1.0 - (within - covariance.mean(axis=0)) / variance
    correlation[0] = 1.0
    # The last lags rest on a handful of products.
    pairs = correlation[: (n_draws - 3) // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    n_pairs = int(negative[0]) if len(negative) else len(pairs)
    kept = np.minimum.accumulate(pairs[: max(n_pairs, 1)])
    # An odd lag beyond the last pair still helps antithetic chains.
    beyond = max(correlation[2 * n_pairs], 0.0) if 2 * n_pairs < n_draws else 0.0
    time = -1.0 + 2.0 * kept.sum() + beyond
    total = n_chains * n_draws
    return float(total / max(time, 1.0 / np.log10(total)))
