"""Probabilities that come true: scores of a model against what happened in commits that it had not seen.

Beta calibration [1]_: with a score s between 0 and 1,

    logit p = a log s - b log(1 - s) + c,    a, b > 0,

which is the identity for a = b = 1, c = 0. A Gaussian prior of variance 1 around the identity makes few commits change
little. A score of zero (never seen together) stays zero. The map rises strictly, so that rankings are kept.

References
----------
.. [1] Kull, M., Silva Filho, T. & Flach, P. (2017). Beta calibration: a well-founded and easily implemented improvement
   on logistic calibration for binary classifiers. AISTATS.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

IDENTITY = np.array([1.0, 1.0, 0.0])
#: Slopes stay above this, or the map would not rise.
LEAST_SLOPE = 0.01
LOWEST, HIGHEST = 1e-15, 1 - 1e-12
EDGES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


class Bin(NamedTuple):
    """Suggestions of about the same stated probability: how many, what was stated on average, the share of hits."""

    low: float
    high: float
    n: int
    stated: float
    observed: float


def fit_calibration(scores: Array, hits: NDArray[np.bool_]) -> Array | None:
    """The three numbers a, b and c; None if scores are no shares, or if there is nothing to learn from.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.cochange.calibration import calibrated, fit_calibration
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(20_000)
    >>> found = fit_calibration(scores, rng.random(20_000) < scores**2)  # too bold: 0.5 comes true in a quarter
    >>> calibrated(np.array([0.0, 0.5]), found).round(1)
    array([0. , 0.2])
    """
    used = scores > 0
    if not used.any() or scores.max() > 1:
        return None
    s = np.clip(scores[used], LOWEST, HIGHEST)
    # Millions of files are asked about: those whose log-odds agree to three digits are counted together.
    places, inverse = np.unique(np.round(np.log(s) - np.log1p(-s), 3), return_inverse=True)
    trials = np.bincount(inverse).astype(np.float64)
    s = np.clip(np.bincount(inverse, s) / trials, LOWEST, HIGHEST)
    y = np.bincount(inverse, hits[used]).astype(np.float64)
    features = np.column_stack([np.log(s), -np.log1p(-s), np.ones_like(places)])
    free = np.ones(3, dtype=np.bool_)
    found = _maximize(features, y, trials, free, IDENTITY)
    for _ in range(2):  # a slope at its bound stays there, and the others are fitted again
        low = found[:2] < LEAST_SLOPE
        if not low.any():
            break
        free[:2] &= ~low
        found = _maximize(features, y, trials, free, np.where(free, IDENTITY, LEAST_SLOPE))
    return found


def _maximize(features: Array, y: Array, trials: Array, free: NDArray[np.bool_], start: Array) -> Array:
    """Newton steps, halved where they overshoot; the objective is strictly concave."""
    chosen, fixed = features[:, free], features[:, ~free] @ start[~free]
    centre = theta = start[free]

    def objective(values: Array) -> float:
        logits = chosen @ values + fixed
        return float(y @ logits - trials @ np.logaddexp(0, logits) - 0.5 * ((values - centre) ** 2).sum())

    value = objective(theta)
    for _ in range(100):
        p = _sigmoid(chosen @ theta + fixed)
        gradient = chosen.T @ (y - trials * p) - (theta - centre)
        curvature = (chosen * (trials * p * (1 - p))[:, None]).T @ chosen + np.eye(len(theta))
        step = np.linalg.solve(curvature, gradient)
        for _ in range(50):
            better = objective(theta + step)
            if better >= value:
                break
            step = step / 2
        else:  # no step is better: rounding is all that is left
            break
        theta, gain, value = theta + step, better - value, better
        if gain < 1e-9 * max(1.0, abs(value)):
            break
    whole = start.copy()
    whole[free] = theta
    return whole


def calibrated(scores: Array, coefficients: Array | None) -> Array:
    """Probabilities of scores; what is not positive stays as it is, and all does without coefficients."""
    if coefficients is None:
        return scores
    found = np.array(scores, dtype=np.float64)
    used = found > 0
    s = np.clip(found[used], LOWEST, HIGHEST)
    found[used] = _sigmoid(coefficients[0] * np.log(s) - coefficients[1] * np.log1p(-s) + coefficients[2])
    return found


def reliability(stated: Array, hits: NDArray[np.bool_]) -> list[Bin]:
    """What was stated beside what happened, in bins of what was stated; empty bins are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.cochange.calibration import reliability
    >>> for group in reliability(np.array([0.07, 0.09, 0.5]), np.array([False, False, True])):
    ...     print(group.low, group.high, group.n, round(group.stated, 2), group.observed)
    0.05 0.1 2 0.08 0.0
    0.4 0.6 1 0.5 1.0
    """
    found = []
    for low, high in pairwise(EDGES):
        inside = (stated > low) & (stated <= high)
        if inside.any():
            n = int(inside.sum())
            found.append(Bin(low, high, n, float(stated[inside].mean()), float(hits[inside].mean())))
    return found


def _sigmoid(logits: Array) -> Array:
    return np.exp(-np.logaddexp(0.0, -logits))
