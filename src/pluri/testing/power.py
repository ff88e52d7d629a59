"""What a test would have noticed: the probability that a variance which is wrong by a given share fails a sampler.

For a normal quantity, with n draws on trial and m exact ones (infinitely many if the distribution function is known),
the logarithm of a ratio of variances has the standard error ``sqrt(2 / n + 2 / m)``. Tests on ranks (Mood's) are as
good as ones on the variances themselves with 76 % of the draws, the asymptotic efficiency ``15 / (2 pi^2)`` of Mood's
test [1]_.

References
----------
.. [1] Klotz, J. (1962). Nonparametric tests for scale. Annals of Mathematical Statistics 33, 498-512.
"""

from __future__ import annotations

import math

from scipy.special import ndtr, ndtri

#: Asymptotic efficiency of Mood's test for the scale of a normal quantity.
EFFICIENCY = 15.0 / (2.0 * math.pi**2)


def power_of_variance(
    error: float, n: float, n_exact: float = math.inf, *, n_comparisons: int = 1, alpha: float = 1e-3,
    max_stages: int = 1, growth: int = 4, efficiency: float = EFFICIENCY,
) -> float:  # fmt: skip
    """Probability that a test in stages fails a sampler one of whose normal quantities has a wrong variance.

    Parameters
    ----------
    error : float
        0.1: the variance is 10 % too large.
    n, n_exact : float
        Draws on trial, and exact draws they are compared with, in the first stage.
    n_comparisons : int, default=1
        Comparisons that the p-value is corrected for.
    alpha, max_stages, growth
        As in `decide`.
    efficiency : float, default=0.76
        Of the test, relative to one of variances.

    Examples
    --------
    >>> from pluri.testing.power import power_of_variance
    >>> print(f"{power_of_variance(0.1, 1000, alpha=0.01):.2f} {power_of_variance(0.5, 1000, alpha=0.01):.2f}")
    0.24 1.00
    """
    fail_at = alpha / max_stages
    middle = fail_at ** (1.0 / max_stages)
    reached, caught = 1.0, 0.0
    for stage in range(max_stages):
        size = growth**stage
        shift = abs(math.log1p(error)) * math.sqrt(efficiency / (2.0 / (n * size) + 2.0 / (n_exact * size)))
        fails = _beyond(fail_at / n_comparisons, shift)
        caught += reached * fails
        reached *= max(_beyond(middle / n_comparisons, shift) - fails, 0.0)
        fail_at /= middle
    return min(caught, 1.0)


def _beyond(p_value: float, shift: float) -> float:
    """Probability that a normal statistic with this mean has a two-sided p-value of at most `p_value`."""
    limit = -float(ndtri(min(p_value, 1.0) / 2.0))
    return float(ndtr(shift - limit) + ndtr(-shift - limit))
