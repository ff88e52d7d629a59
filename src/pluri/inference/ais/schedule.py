"""Inverse temperatures between a prior and a target: ``0 = b_0 < b_1 < ... < b_n = 1``.

Fixed schedules know nothing of the problem. An adaptive one takes from b the largest b' at which the conditional
effective sample size of the step, ``(sum W u)^2 / sum W u^2`` with ``u = exp((b' - b) gain)``, is still the wanted
share [1]_; as it looks at the points, it is found in a pilot and then kept.

References
----------
.. [1] Zhou, Y., Johansen, A. M. and Aston, J. A. D. (2016). Toward automatic model comparison: an adaptive sequential
   Monte Carlo approach. J. Comput. Graph. Stat. 25.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation import check_count

Array = NDArray[np.float64]


def linear(n_temperatures: int) -> Array:
    """Equal steps.

    Examples
    --------
    >>> from pluri.inference.ais.schedule import linear
    >>> linear(4).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return np.linspace(0.0, 1.0, n_temperatures + 1)


def geometric(n_temperatures: int, first: float = 1e-3) -> Array:
    """From 0 to `first`, then by a constant factor to 1: many temperatures near the prior."""
    return np.concatenate([[0.0], np.geomspace(first, 1.0, n_temperatures)]) if n_temperatures > 1 else linear(1)


def sigmoid(n_temperatures: int, steepness: float = 4.0) -> Array:
    """``s(t) = 1 / (1 + exp(-steepness t))`` for t from -1 to 1, rescaled: small steps at both ends."""
    values = 1.0 / (1.0 + np.exp(-steepness * np.linspace(-1.0, 1.0, n_temperatures + 1)))
    betas: Array = (values - values[0]) / (values[-1] - values[0])
    betas[-1] = 1.0
    return betas


def mixed(n_temperatures: int, knee: float = 0.01, share: float = 0.2) -> Array:
    """A `share` of the steps equal, up to `knee`; the rest by a constant factor to 1.

    Examples
    --------
    >>> from pluri.inference.ais.schedule import mixed
    >>> betas = mixed(200)  # 40 equal steps to 0.01, then 160
    >>> round(float(betas[40]), 12), len(betas)
    (0.01, 201)
    """
    n_linear = round(share * n_temperatures)
    if n_linear < 1:
        return geometric(n_temperatures, knee)
    return np.concatenate(
        [np.linspace(0.0, knee, n_linear + 1), np.geomspace(knee, 1.0, n_temperatures - n_linear + 1)[1:]]
    )


SCHEDULES: dict[str, Callable[[int], Array]] = {
    "linear": linear, "geometric": geometric, "sigmoid": sigmoid, "mixed": mixed,
}  # fmt: skip


def make_schedule(schedule: str | ArrayLike, n_temperatures: int) -> Array | None:
    """Inverse temperatures by name or as given; None for "adaptive", which a pilot must find."""
    if isinstance(schedule, str):
        if schedule == "adaptive":
            return None
        if schedule not in SCHEDULES:
            raise ValueError(
                f"schedule must be one of {', '.join([*SCHEDULES, 'adaptive'])} or numbers, got {schedule!r}"
            )
        betas = SCHEDULES[schedule](check_count(n_temperatures, "n_temperatures"))
        betas[-1] = 1.0
        return betas
    betas = np.array(schedule, dtype=np.float64)
    if betas.ndim != 1 or len(betas) < 2 or not (np.diff(betas) > 0).all() or betas[0] != 0 or betas[-1] != 1:
        raise ValueError(
            f"schedule must rise from 0 to 1, at least two numbers, got {np.array2string(betas, threshold=6)}"
        )
    return betas


def conditional_ess(gain: Array, step: float, weights: Array | None = None) -> float:
    """Effective share, 1 at most, that a step of the inverse temperature leaves of points with these weights.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.ais.schedule import conditional_ess
    >>> conditional_ess(np.array([0.0, 0.0, -np.inf, -np.inf]), 0.1)
    0.5
    """
    weights = np.full(len(gain), 1.0 / len(gain)) if weights is None else weights
    if step == 0:
        return 1.0
    increments = step * gain
    factors = np.exp(increments - increments[weights > 0].max(initial=-np.inf))
    factors[weights == 0] = 0.0
    return float((weights @ factors) ** 2 / (weights @ np.square(factors)))


def next_temperature(gain: Array, beta: float, share: float, weights: Array | None = None) -> float:
    """Largest inverse temperature from `beta` on whose conditional effective share is `share`; 1 if all are.

    Points of density zero (gain -inf) are lost at any step, however short: the share is of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.ais.schedule import next_temperature
    >>> gain = np.random.default_rng(0).normal(0, 10, 100_000)  # share exp(-100 step^2)
    >>> round(next_temperature(gain, 0.0, 0.9), 2)
    0.03
    """
    alive = gain > -np.inf
    if weights is not None:
        weights = weights[alive] / weights[alive].sum()
    gain = gain[alive]
    low, high = 0.0, 1.0 - beta
    if conditional_ess(gain, high, weights) >= share:
        return 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        if conditional_ess(gain, middle, weights) >= share:
            low = middle
        else:
            high = middle
        if high - low <= 1e-6 * high:
            break
    # `low` may be 0 if a single point outweighs all others at once; the schedule must rise.
    return min(max(beta + low, float(np.nextafter(beta, 1.0))), 1.0)
