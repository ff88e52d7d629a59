"""How many items are drawn: sums of independent coins, and the scale of the kernel that gives a wanted mean."""

from __future__ import annotations

import numpy as np

from pluri.processes.dpp.kernel_forms import Array
from pluri.validation import Only, Whole, check_value


def number_of_draws(n_samples: int | None) -> int:
    """How many draws are asked for; None is one."""
    check_value(n_samples, "n_samples", Whole(0) | Only(None))
    return 1 if n_samples is None else int(n_samples)


def size_probabilities(probabilities: Array) -> Array:
    """Distribution of the number of heads among independent coins, shape (n_coins + 1,).

    Sums of positive terms only, so that small probabilities keep their digits.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.sizes import size_probabilities
    >>> size_probabilities(np.array([0.5, 0.5]))
    array([0.25, 0.5 , 0.25])
    """
    distribution = np.zeros(probabilities.size + 1)
    distribution[0] = 1.0
    for n, probability in enumerate(probabilities):
        distribution[1 : n + 2] = distribution[1 : n + 2] * (1 - probability) + distribution[: n + 1] * probability
        distribution[0] *= 1 - probability
    return distribution


def scale_for_size(odds: Array, expected_size: float) -> float:
    """Factor by which the odds must be multiplied for the mean size to be ``expected_size``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.sizes import scale_for_size
    >>> round(scale_for_size(np.array([1.0, 1.0, 1.0]), 2.0), 6)
    2.0
    """
    from scipy.optimize import brentq

    if not 0 < expected_size < odds.size:
        raise ValueError(
            f"expected_size must be above 0 and below the rank of the kernel ({odds.size}), got {expected_size!r}"
        )
    log_odds = np.log(odds)

    def excess(log_factor: float) -> float:
        return float((1.0 / (1.0 + np.exp(-np.clip(log_odds + log_factor, -700, 700)))).sum()) - expected_size

    # Where all coins would have the probability wanted on average, were they all as good as the best or the worst.
    logit = np.log(expected_size / odds.size) - np.log1p(-expected_size / odds.size)
    low, high = logit - log_odds.max(), logit - log_odds.min()
    if low == high:
        return float(np.exp(low))
    return float(np.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14)))
