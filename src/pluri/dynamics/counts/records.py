"""The parameters of count dynamical systems, and what an E-step gives to the M-step.

x_1 ~ N(mu_1, Q_1),    x_t+1 ~ N(A x_t + b_t, Q),    y_ti ~ Poisson(exp(c_i' x_t + d_i)) or GC(c_i' x_t, g_i)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Statistics

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StateModel:
    """How states move.

    Attributes
    ----------
    transition : (p, p): A
    noise : (p, p): Q
    initial_mean : (p,): mu_1
    initial_covariance : (p, p): Q_1
    drift : (T - 1, p): b_t, the part of the mean that varies in time; (0, p) if there is none
    """

    transition: Array
    noise: Array
    initial_mean: Array
    initial_covariance: Array
    drift: Array

    @property
    def n_states(self) -> int:
        """Number of hidden dimensions p."""
        return len(self.initial_mean)

    def means(self, n_steps: int) -> Array:
        """Prior means of the states of the first steps: (n_steps, p)."""
        means = np.empty((n_steps, self.n_states))
        current = self.initial_mean
        for t in range(n_steps):
            means[t] = current
            current = self.transition @ current + (self.drift[t] if t < len(self.drift) else 0.0)
        return means

    def covariances(self, n_steps: int) -> Array:
        """Prior covariances of the states of the first steps: (n_steps, p, p)."""
        covariances = np.empty((n_steps, self.n_states, self.n_states))
        current = self.initial_covariance
        for t in range(n_steps):
            covariances[t] = current
            current = self.transition @ current @ self.transition.T + self.noise
        return covariances


@dataclass(frozen=True, eq=False)
class PoissonObservation:
    """Log rates C x + d: `loadings` (N, p) and `intercept` (N,)."""

    loadings: Array
    intercept: Array


@dataclass(frozen=True, eq=False)
class CountObservation:
    """Generalized counts with theta = C x: `loadings` (N, p) and shapes `g` (N, K + 1), -inf off the support."""

    loadings: Array
    g: Array


@dataclass(frozen=True, eq=False)
class SystemParameters:
    """States and observations; `observation` is one of the two records above, and `typical_length` of the sequences."""

    states: StateModel
    observation: Any
    typical_length: int


@dataclass(frozen=True, eq=False)
class Posteriors(Statistics):
    """Distributions of the states beside the counts that they come from, batch by batch.

    They add up by standing side by side: neither Poisson nor generalized counts have sums from which loadings and
    shapes could be learned. So the M-step holds all posteriors of the data, of p^2 + p numbers for each row, at a time.

    Attributes
    ----------
    parts : tuple of (counts (n, N), weights of rows (n,), means (n, p), covariances (n, p, p))
    """

    parts: tuple[tuple[Array, Array, Array, Array], ...]

    def __add__(self, other: Posteriors) -> Posteriors:
        return Posteriors(self.parts + other.parts)


@dataclass(frozen=True, eq=False)
class SystemStatistics(Statistics):
    """What the M-step needs of some whole sequences.

    Attributes
    ----------
    log_likelihood : weighted lower bounds of the log-likelihood (or Laplace's approximation to it)
    n_sequences, first, first_square : weight of the sequences, and sums of E x_1 (p,) and E x_1 x_1' (p, p)
    n_steps, before, across, after : weight of the steps, sums of E x_t x_t', E x_t+1 x_t', E x_t+1 x_t+1' (p, p)
    n_by_time, by_time : weights (T,) and sums of E x_t (T, p), for a mean that varies in time; (0,) and (0, p) else
    posteriors : see `Posteriors`
    """

    log_likelihood: float
    n_sequences: float
    first: Array
    first_square: Array
    n_steps: float
    before: Array
    across: Array
    after: Array
    n_by_time: Array
    by_time: Array
    posteriors: Posteriors
