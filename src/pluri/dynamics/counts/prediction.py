"""What Gaussian states say of counts: expected counts, their variances, covariances in time, predictive probabilities.

theta = c'x + d is Gaussian, and everything here is a one-dimensional integral, by Gauss-Hermite quadrature. Covariances
of functions of two Gaussians are sums over Hermite polynomials He_n (Mehler's formula): with the coefficients
a_n = E[f(u) He_n(u)] / sqrt(n!) of f at a standard normal u, Cov(f(u), h(v)) = sum_n a_n b_n corr(u, v)^n, n >= 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from pluri.dynamics.counts.poisson_model import HIGHEST, theta_moments
from pluri.dynamics.counts.records import PoissonObservation

Array = NDArray[np.float64]

#: Nodes of the quadratures here, and terms of Mehler's sum.
N_NODES, N_TERMS = 30, 16


@dataclass(frozen=True, eq=False)
class ThetaDistribution:
    """Gaussian natural parameters: `mean` and `variance` (n, N), for Poisson counts without the intercept."""

    mean: Array
    variance: Array

    @classmethod
    def of(cls, loadings: Array, mean: Array, covariance: Array) -> ThetaDistribution:
        """From distributions of states (n, p), (n, p, p)."""
        return cls(*theta_moments(loadings, mean, covariance))


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """Of each step and neuron (n, N): E[E(k | theta)], E[Var(k | theta)] and Var[E(k | theta)]."""

    mean: Array
    noise: Array
    signal: Array

    @property
    def variance(self) -> Array:
        """Variance of the count: that of Poisson or other noise, and that of its mean."""
        return self.noise + self.signal


def nodes() -> tuple[Array, Array]:
    """Places and weights for a standard normal."""
    place, weight = np.polynomial.hermite_e.hermegauss(N_NODES)
    return place, weight / weight.sum()


def conditional_moments(observation: Any, neuron: int, theta: Array) -> tuple[Array, Array]:
    """Mean and variance of the count of a neuron where theta is known."""
    if isinstance(observation, PoissonObservation):
        rate = np.exp(np.minimum(theta + observation.intercept[neuron], HIGHEST))
        return rate, rate
    g = observation.g[neuron]
    k = np.arange(len(g), dtype=np.float64)
    scores = theta[..., None] * k + (g - gammaln(k + 1.0))
    P = np.exp(scores - scores.max(axis=-1, keepdims=True))
    P /= P.sum(axis=-1, keepdims=True)
    mean = P @ k
    return mean, P @ k**2 - mean**2


def expected_counts(observation: Any, theta: ThetaDistribution) -> ExpectedCounts:
    """Moments of counts whose natural parameters are Gaussian."""
    place, weight = nodes()
    mean, noise, signal = (np.empty_like(theta.mean) for _ in range(3))
    for i in range(theta.mean.shape[1]):
        at = theta.mean[:, i, None] + np.sqrt(theta.variance[:, i, None]) * place
        first, second = conditional_moments(observation, i, at)
        mean[:, i], noise[:, i] = first @ weight, second @ weight
        signal[:, i] = np.maximum((first - mean[:, i, None]) ** 2 @ weight, 0.0)
    return ExpectedCounts(mean, noise, signal)


def predictive_log_probability(observation: Any, neuron: int, counts: Array, mean: Array, variance: Array) -> Array:
    """Log E[p(count | theta)] of one neuron (n,); NaN for missing counts, -inf for impossible ones."""
    place, weight = nodes()
    theta = mean[:, None] + np.sqrt(variance)[:, None] * place
    seen = ~np.isnan(counts)
    y = np.where(seen, counts, 0.0)
    if isinstance(observation, PoissonObservation):
        rate = theta + observation.intercept[neuron]
        table = y[:, None] * rate - np.exp(np.minimum(rate, HIGHEST)) - gammaln(y + 1.0)[:, None]
    else:
        g = observation.g[neuron]
        k = np.arange(len(g), dtype=np.float64)
        log_weight = g - gammaln(k + 1.0)
        normalizer = logsumexp(theta[..., None] * k + log_weight, axis=-1)
        inside = np.minimum(y, len(g) - 1).astype(np.int64)
        own = np.where(y < len(g), log_weight[inside], -np.inf)
        table = y[:, None] * theta + own[:, None] - normalizer
    return np.where(seen, logsumexp(table, b=weight, axis=1), np.nan)


def hermite_coefficients(observation: Any, theta: ThetaDistribution) -> Array:
    """Coefficients a_1, a_2, ... of the conditional mean of each step and neuron: (N_TERMS, n, N)."""
    place, weight = nodes()
    # He_n / sqrt(n!) by the recurrence of the normalised polynomials.
    basis = np.empty((N_TERMS + 1, len(place)))
    basis[0], basis[1] = 1.0, place
    for n in range(1, N_TERMS):
        basis[n + 1] = (place * basis[n] - np.sqrt(n) * basis[n - 1]) / np.sqrt(n + 1.0)
    found = np.empty((N_TERMS, *theta.mean.shape))
    for i in range(theta.mean.shape[1]):
        at = theta.mean[:, i, None] + np.sqrt(theta.variance[:, i, None]) * place
        first, _ = conditional_moments(observation, i, at)
        found[:, :, i] = (basis[1:] * weight) @ first.T
    return found


def covariance_of_means(early: Array, late: Array, correlation: Array) -> Array:
    """Cov(E(k_i | theta), E(k_j | theta')) for all pairs: (m, N, N) from coefficients (N_TERMS, m, N) each."""
    total = np.zeros(correlation.shape)
    power = np.ones(correlation.shape)
    for a, b in zip(early, late):
        power = power * correlation
        total += power * a[:, :, None] * b[:, None, :]
    return total
