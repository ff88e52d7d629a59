"""Exact draws from the Polya-Gamma distribution PG(1, c).

``PG(1, c) = J(|c| / 2) / 4`` for the exponentially tilted Jacobi distribution, whose density is an alternating series:
a proposal (a truncated inverse Gaussian below 0.64, an exponential above) is accepted or refused as soon as the
partial sums decide. All entries of an array are drawn together; those not yet accepted propose again.

References
----------
.. [1] Devroye, L. (2009). On exact simulation algorithms for some distributions related to Jacobi theta functions.
.. [2] Polson, N. G., Scott, J. G. and Windle, J. (2013). Bayesian inference for logistic models using Polya-Gamma
   latent variables. JASA 108, 1339-1349.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

Array = NDArray[np.float64]

#: Where the two forms of the series meet.
SPLIT = 0.64


def draw_polya_gamma(rng: np.random.Generator, tilt: Array) -> Array:
    """One draw of PG(1, c) for each entry c of `tilt` (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.gp_inference.polya_gamma_draws import draw_polya_gamma
    >>> draws = draw_polya_gamma(np.random.default_rng(0), np.zeros(100_000))
    >>> bool(abs(draws.mean() - 0.25) < 0.003)
    True
    """
    half = 0.5 * np.abs(np.asarray(tilt, dtype=np.float64))
    result = np.empty(len(half))
    waiting = np.arange(len(half))
    above = _chance_above(half)
    while len(waiting):
        z = half[waiting]
        proposal = np.empty(len(waiting))
        high = rng.random(len(waiting)) < above[waiting]
        rate = math.pi**2 / 8.0 + 0.5 * z[high] ** 2
        proposal[high] = SPLIT + rng.exponential(size=int(high.sum())) / rate
        proposal[~high] = _truncated_inverse_gaussian(rng, z[~high])
        accepted = _accept(rng, proposal)
        result[waiting[accepted]] = proposal[accepted]
        waiting = waiting[~accepted]
    return 0.25 * result


def _chance_above(z: Array) -> Array:
    """Probability that the proposal comes from the exponential part."""
    rate = math.pi**2 / 8.0 + 0.5 * z**2
    log_above = np.log(math.pi / 2.0 / rate) - rate * SPLIT
    root = math.sqrt(1.0 / SPLIT)
    # Inverse Gaussian of mean 1/z and shape 1 below SPLIT, times 2 exp(-z).
    first = log_ndtr(root * (SPLIT * z - 1.0)) - z
    second = log_ndtr(-root * (SPLIT * z + 1.0)) + z
    log_below = math.log(2.0) + np.logaddexp(first, second)
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(log_below - log_above, -700.0, 700.0))))


def _truncated_inverse_gaussian(rng: np.random.Generator, z: Array) -> Array:
    """Inverse Gaussian of mean 1/z and shape 1, below SPLIT."""
    result = np.empty(len(z))
    waiting = np.arange(len(z))
    while len(waiting):
        tilt = z[waiting]
        mean = 1.0 / np.maximum(tilt, 1e-300)
        proposal = np.empty(len(waiting))
        kept = np.zeros(len(waiting), dtype=bool)
        far = mean > SPLIT
        # A mean beyond the limit: the untilted distribution (an inverse chi-square below SPLIT), thinned by
        # exp(-z^2 x / 2).
        count = int(far.sum())
        if count:
            x = _truncated_inverse_chi_square(rng, count)
            proposal[far] = x
            kept[far] = rng.random(count) < np.exp(-0.5 * tilt[far] ** 2 * x)
        count = len(waiting) - count
        if count:
            proposal[~far] = rng.wald(mean[~far], 1.0)
            kept[~far] = proposal[~far] < SPLIT
        result[waiting[kept]] = proposal[kept]
        waiting = waiting[~kept]
    return result


def _truncated_inverse_chi_square(rng: np.random.Generator, count: int) -> Array:
    """``1 / N^2`` for a standard normal N beyond ``1 / sqrt(SPLIT)``."""
    from scipy.special import ndtri_exp

    log_tail = float(log_ndtr(-1.0 / math.sqrt(SPLIT)))
    return np.asarray(1.0 / ndtri_exp(log_tail + np.log1p(-rng.random(count))) ** 2)


def _accept(rng: np.random.Generator, x: Array) -> NDArray[np.bool_]:
    """Compare a uniform with the alternating series, term by term, until each comparison is decided."""
    total = _term(0, x)
    bar = rng.random(len(x)) * total
    accepted = np.zeros(len(x), dtype=bool)
    open_ = np.arange(len(x))
    order = 0
    while len(open_):
        order += 1
        term = _term(order, x[open_])
        if order % 2:
            total[open_] -= term
            decided = bar[open_] <= total[open_]
            accepted[open_[decided]] = True
        else:
            total[open_] += term
            decided = bar[open_] > total[open_]
        open_ = open_[~decided]
    return accepted


def _term(order: int, x: Array) -> Array:
    """Coefficient of the series at x, in the form that decreases on its side of SPLIT."""
    k = order + 0.5
    low = math.pi * k * (2.0 / (math.pi * x)) ** 1.5 * np.exp(-2.0 * k * k / x)
    high = math.pi * k * np.exp(-0.5 * k * k * math.pi**2 * x)
    return np.where(x <= SPLIT, low, high)
