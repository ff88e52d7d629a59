"""The tail of importance weights: a generalised Pareto distribution fitted to the largest, and weights smoothed by it.

The shape k tells how many moments the weights have: fewer than 1/k. Above 0.7 the estimate and its error are not to be
trusted [2]_. The fit is the quasi-Bayes estimate of Zhang and Stephens [1]_, shrunk a little towards 1/2.

References
----------
.. [1] Zhang, J. and Stephens, M. A. (2009). A new and efficient estimation method for the generalized Pareto
   distribution. Technometrics 51.
.. [2] Vehtari, A., Simpson, D., Gelman, A., Yao, Y. and Gabry, J. (2024). Pareto smoothed importance sampling. JMLR 25.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
#: Fewer numbers than this say nothing about a tail.
FEWEST_TAIL, FEWEST = 5, 25


def fit_generalised_pareto(excesses: ArrayLike) -> tuple[float, float]:
    """Shape k and scale sigma of ``p(x) = (1 + k x / sigma)^(-1/k - 1) / sigma`` from positive numbers.

    Parameters
    ----------
    excesses : array-like (n,)
        How far each number lies above the threshold; positive.

    Returns
    -------
    shape, scale : float

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.ais.pareto_tail import fit_generalised_pareto
    >>> uniforms = (np.arange(1000) + 0.5) / 1000
    >>> shape, scale = fit_generalised_pareto((uniforms**-0.5 - 1) / 0.5)  # k = 1/2, sigma = 1
    >>> round(shape, 1), round(scale, 1)
    (0.5, 1.0)
    """
    x = np.sort(np.asarray(excesses, dtype=np.float64))
    if x.ndim != 1 or len(x) < 2 or not (x[0] > 0 and math.isfinite(x[-1])):
        raise ValueError(f"excesses must be at least two positive finite numbers, got shape {x.shape}")
    n = len(x)
    n_grid = 30 + int(math.sqrt(n))
    quartile = x[int(n / 4 + 0.5) - 1]
    # Grid of theta = -k / sigma; its prior is centred on what the quartile suggests.
    theta = 1.0 / x[-1] + (1.0 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))) / (3.0 * quartile)
    shapes = np.log1p(-theta[:, None] * x).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        profile = n * (np.log(-theta / shapes) - shapes - 1.0)
    profile[~np.isfinite(profile)] = -np.inf
    weights = np.exp(profile - profile.max())
    mean = float(weights @ theta / weights.sum())
    shape = float(np.log1p(-mean * x).mean())
    scale = -shape / mean
    # A weak prior at 1/2 worth ten numbers steadies short tails.
    return (n * shape + 5.0) / (n + 10.0), scale


def smooth_log_weights(log_weights: ArrayLike, efficiency: float = 1.0) -> tuple[Array, float]:
    """Log weights whose largest are replaced by expected order statistics of the fitted tail, and the shape k.

    Parameters
    ----------
    log_weights : array-like (n,)
        Unnormalised; -inf is weight zero.
    efficiency : float, default=1.0
        Effective draws by draws, if the weights are those of a Markov chain: of correlated ones a longer tail is taken.

    Returns
    -------
    smoothed : ndarray (n,)
        As large altogether as before; no weight above the largest raw one.
    shape : float
        k of the tail: NaN for fewer than 25 weights, -inf if the largest are all equal (no tail), inf if fewer than
        five stand out so far that no tail can be fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.ais.pareto_tail import smooth_log_weights
    >>> smoothed, shape = smooth_log_weights(np.random.default_rng(0).exponential(0.2, 1000))
    >>> bool(shape < 0.5)
    True
    """
    raw = np.asarray(log_weights, dtype=np.float64)
    n = len(raw)
    if n < FEWEST:
        return raw.copy(), math.nan
    shifted = raw - raw.max()
    order = np.argsort(shifted, kind="stable")
    n_tail = math.ceil(min(0.2 * n, 3.0 * math.sqrt(n / efficiency)))
    cutoff = max(shifted[order[-n_tail - 1]], math.log(np.finfo(np.float64).tiny))
    tail = order[shifted[order] > cutoff]
    if len(tail) == 0:
        return raw.copy(), -math.inf
    if len(tail) < FEWEST_TAIL:
        return raw.copy(), math.inf
    threshold = math.exp(cutoff)
    excess = np.exp(shifted[tail]) - threshold
    if not excess[0] > 0:  # weights that differ only by rounding
        return raw.copy(), -math.inf
    shape, scale = fit_generalised_pareto(excess)
    smoothed = shifted.copy()
    if math.isfinite(shape):
        points = (np.arange(len(tail)) + 0.5) / len(tail)
        quantiles = scale * (np.expm1(-shape * np.log1p(-points)) / shape if abs(shape) > 1e-12 else -np.log1p(-points))
        smoothed[tail] = np.minimum(np.log(quantiles + threshold), 0.0)
    return smoothed + (_log_sum(shifted) - _log_sum(smoothed)) + raw.max(), shape


def _log_sum(values: Array) -> float:
    largest = values.max()
    return float(largest + math.log(np.exp(values - largest).sum()))
