"""Missing values filled by what is expected of them, given what is seen of a row.

With P(component | row) = w_c, and mean m_c and variance v_c of a value given that component and what is seen,

    E[x] = sum_c w_c m_c,    Var[x] = sum_c w_c (v_c + (m_c - E[x])^2)

so that the variance knows of the components' own spread and of not knowing the component.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Rows taken at a time.
BLOCK = 4096


class Filled(NamedTuple):
    """Rows without holes, (n, D): their values, and the variance of each, which is 0 where a value was seen."""

    values: Array
    variance: Array

    def answer(self, return_std: bool) -> Array | tuple[Array, Array]:
        """What a method `impute` gives back."""
        return (self.values, np.sqrt(self.variance)) if return_std else self.values


def mixed_moments(weights: Array, means: Iterable[Array], variances: Iterable[Array]) -> tuple[Array, Array]:
    """Means and variances of mixtures, (n, m) each, from those of C parts, broadcast to (n, m), with weights (n, C)."""
    parts = list(means)
    mean = sum(w[:, None] * part for w, part in zip(weights.T, parts))
    # About the mean of the mixture: second moments about zero would cancel where means are large.
    spread = sum(w[:, None] * (variance + (part - mean) ** 2) for w, part, variance in zip(weights.T, parts, variances))
    return np.asarray(mean), np.asarray(spread)


def fill_independent(X: Array, weights: Array, means: Array, variances: Array) -> Filled:
    """Fill rows whose features are independent within a component: weights (n, C), means and variances (C, D)."""
    values, variance = np.array(X, dtype=np.float64), np.zeros(X.shape)
    incomplete = np.flatnonzero(np.isnan(values).any(axis=1))
    for begin in range(0, len(incomplete), BLOCK):
        rows = incomplete[begin : begin + BLOCK]
        gone = np.isnan(values[rows])
        mean, spread = mixed_moments(weights[rows], means, variances)
        values[rows] = np.where(gone, mean, values[rows])
        variance[rows] = np.where(gone, spread, 0.0)
    return Filled(values, variance)
