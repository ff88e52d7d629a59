"""Are ranks uniform? A chi-square test, and bands that the whole empirical distribution stays in, with exact levels.

For N independent ranks, uniform on 0 .. L, the number C_i below e_i is binomial with p_i = e_i / (L + 1). The
*envelope* test [1]_ takes the least two-sided binomial p-value over all e_i,

    G = min_i 2 min(P(Bin <= C_i), P(Bin >= C_i)),

which is looked at over the whole range, so that bumps, tilts and heavy ends are all seen. Its distribution is exact:
C_1 <= C_2 <= ... is a Markov chain, whose next value is C_i + Bin(N - C_i, (p_{i+1} - p_i) / (1 - p_i)), and the
probability of staying inside a band follows by going through the e_i once.

References
----------
.. [1] Saeilynoja, T., Buerkner, P.-C. and Vehtari, A. (2022). Graphical test for discrete uniformity and its
   applications in goodness-of-fit evaluation and multiple sample comparison. Statistics and Computing 32, 32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import gammaln

from pluri.testing.agreement import compare_counts
from pluri.validation import Number, check_value

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: The empirical distribution is looked at in at most this many places.
MOST_PLACES = 64
#: Bins of the chi-square test, unless that leaves fewer than ten ranks in each.
MOST_BINS = 20


def rank_chi_square(ranks: ArrayLike, n_values: int) -> tuple[float, float]:
    """Chi-square statistic and p-value for ranks 0 .. n_values - 1 being uniform.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.testing import rank_chi_square
    >>> statistic, p_value = rank_chi_square(np.arange(1000) % 100, 100)
    >>> round(statistic, 6), round(p_value, 6)
    (0.0, 1.0)
    """
    values = _as_ranks(ranks, n_values)
    n_bins = int(max(2, min(MOST_BINS, n_values, len(values) // 10)))
    edges = np.linspace(0, n_values, n_bins + 1).round().astype(np.int64)
    counts = np.histogram(values, edges)[0].astype(np.float64)
    # The last bin of a histogram holds its right edge, which no rank has.
    return compare_counts(counts, np.diff(edges) / n_values)


def rank_envelope(ranks: ArrayLike, n_values: int) -> tuple[float, float]:
    """Least pointwise p-value of the empirical distribution of ranks 0 .. n_values - 1, and its exact p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.testing import rank_envelope
    >>> rng = np.random.default_rng(0)
    >>> rank_envelope(rng.integers(100, size=300), 100)[1] > 0.01
    True
    >>> rank_envelope(np.minimum(rng.integers(110, size=300), 99), 100)[1] < 0.01
    True
    """
    values = _as_ranks(ranks, n_values)
    places = _places(n_values)
    counts = np.searchsorted(np.sort(values), places, side="left")
    level = float(_pointwise(counts, len(values), places / n_values).min())
    table = _pointwise(np.arange(len(values) + 1)[:, None], len(values), places / n_values)
    inside = _stay_inside(*_band(table, level), len(values), places / n_values)
    return level, float(min(max(1.0 - inside, 0.0), 1.0))


def envelope(n_ranks: int, n_values: int, coverage: float = 0.95) -> tuple[Array, Array, Array]:
    """Band in which the whole empirical distribution of uniform ranks stays with a given probability.

    Parameters
    ----------
    n_ranks : int
        Number of ranks.
    n_values : int
        Ranks take the values 0 .. n_values - 1.
    coverage : float, default=0.95

    Returns
    -------
    places, lower, upper : ndarray
        The share of ranks below ``places * n_values`` lies between `lower` and `upper`, everywhere at once, with at
        least the probability asked for.

    Examples
    --------
    >>> from pluri.testing import envelope
    >>> places, lower, upper = envelope(200, 100)
    >>> bool((lower <= places).all() and (places <= upper).all())
    True
    """
    check_value(coverage, "coverage", Number(above=0, below=1))
    shares = _places(n_values) / n_values
    table = _pointwise(np.arange(n_ranks + 1)[:, None], n_ranks, shares)
    low, high = 0.0, 1.0 - coverage  # the pointwise level lies between these
    for _ in range(20):
        level = 0.5 * (low + high)
        inside = _stay_inside(*_band(table, level), n_ranks, shares)
        low, high = (level, high) if inside >= coverage else (low, level)
    lower, upper = _band(table, low)
    return shares, lower / n_ranks, upper / n_ranks


def _as_ranks(ranks: ArrayLike, n_values: int) -> Integers:
    values = np.asarray(ranks)
    if values.ndim != 1 or len(values) == 0 or values.dtype.kind not in "iu":
        raise ValueError("ranks must be whole numbers in a vector that is not empty")
    if n_values < 2 or values.min() < 0 or values.max() >= n_values:
        raise ValueError(f"ranks must lie between 0 and n_values - 1 = {n_values - 1}")
    return values.astype(np.int64)


def _places(n_values: int) -> Integers:
    n_places = min(n_values - 1, MOST_PLACES)
    return np.unique(np.linspace(1, n_values - 1, n_places).round().astype(np.int64))


def _pointwise(counts: Integers, n: int, shares: Array) -> Array:
    below, above = stats.binom.cdf(counts, n, shares), stats.binom.sf(counts - 1, n, shares)
    pointwise: Array = np.minimum(2.0 * np.minimum(below, above), 1.0)
    return pointwise


def _band(table: Array, level: float) -> tuple[Integers, Integers]:
    """Least and greatest count at each place whose pointwise p-value, in `table` (n + 1, n_places), exceeds `level`."""
    # Equal levels at mirrored places differ by rounding.
    inside = table > level * (1.0 + 1e-9)
    return inside.argmax(axis=0), len(table) - 1 - inside[::-1].argmax(axis=0)


def _stay_inside(lower: Integers, upper: Integers, n: int, shares: Array) -> float:
    """Probability that the counts lie inside a band at all places."""
    log_factorial = gammaln(np.arange(n + 1) + 1.0)
    counts = np.array([0])
    weights = np.ones(1)
    before = 0.0
    for low, high, share in zip(lower, upper, shares):
        after = np.arange(low, high + 1)
        step = (share - before) / (1.0 - before)
        gained, left = after[None, :] - counts[:, None], n - after[None, :]
        log_binomial = log_factorial[n - counts][:, None] - log_factorial[np.maximum(gained, 0)] - log_factorial[left]
        log_pmf = log_binomial + gained * np.log(step) + left * np.log1p(-step)
        weights = weights @ np.where(gained >= 0, np.exp(np.minimum(log_pmf, 0.0)), 0.0)
        counts, before = after, share
    return float(weights.sum())
