"""Concentrations of sticks, given those in use alone: what lies beyond the last one used is integrated out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.priors import Gamma
from pluri.processes.stick_draws import LEAST_LOG_REST

Array = NDArray[np.float64]

#: The smallest concentration.
LEAST_CONCENTRATION = 1e-6


def used_sticks(log_weights: Array, counts: NDArray[Any]) -> tuple[int, float]:
    """Number of sticks up to the last one in use, of all rows of weights, and the sum of their ``log(1 - V)``.

    The last stick of a row takes all that is left and does not count.
    """
    n_used, total = 0, 0.0
    for weights, n in zip(log_weights, counts):
        rest = np.logaddexp.accumulate(weights[::-1])[::-1]  # log of what is left before each break
        filled = np.flatnonzero(n)
        last = min(int(filled[-1]) + 1, len(weights) - 1) if len(filled) else 0
        n_used += last
        total += float(np.maximum(np.diff(rest[: last + 1]), LEAST_LOG_REST).sum())
    return n_used, total


def drawn_concentration(
    rng: np.random.Generator, prior: Gamma | float, value: float, n_used: int, log_rests: float
) -> float:
    """A concentration given sticks, of density ``alpha (1 - V)^(alpha - 1)`` each, or its value if that is fixed."""
    if not isinstance(prior, Gamma):
        return value
    return max(float(rng.gamma(prior.shape + n_used) / (prior.rate - log_rests)), LEAST_CONCENTRATION)
