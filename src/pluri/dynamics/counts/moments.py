"""Moments of counts under a system, and of counts themselves: mean and variance at each step, covariances at lags.

Before counts are seen ("prior") the states have the distribution that the system gives them; afterwards ("posterior")
those of all sequences together are a mixture, whose variance is that within and between sequences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.counts.paths import PathPosterior
from pluri.dynamics.counts.prediction import (
    ThetaDistribution,
    covariance_of_means,
    expected_counts,
    hermite_coefficients,
)
from pluri.dynamics.counts.records import StateModel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

KINDS = ("prior", "posterior")


@dataclass(frozen=True, eq=False)
class CountMoments:
    """Mean and variance of the counts at each step, over sequences.

    Attributes
    ----------
    mean, variance : arrays of shape (n_steps, n_features)
    neuron_mean, neuron_variance : arrays of shape (n_features,)
        Over all steps of all sequences.
    """

    mean: Array
    variance: Array
    weight: Array

    @property
    def neuron_mean(self) -> Array:
        return np.asarray(self.weight @ self.mean / self.weight.sum())

    @property
    def neuron_variance(self) -> Array:
        square = self.weight @ (self.variance + self.mean**2) / self.weight.sum()
        return np.asarray(square - self.neuron_mean**2)


def prior_moments(states: StateModel, observation: Any, n_steps: int) -> CountMoments:
    """Of a sequence of `n_steps` that the system draws."""
    theta = ThetaDistribution.of(observation.loadings, states.means(n_steps), states.covariances(n_steps))
    found = expected_counts(observation, theta)
    return CountMoments(found.mean, found.variance, np.ones(n_steps))


def posterior_moments(found: PathPosterior, observation: Any, offsets: Integers) -> CountMoments:
    """Of a count at a step of a sequence that is chosen at random among those given."""
    theta = ThetaDistribution.of(observation.loadings, found.mean, found.covariance)
    counts = expected_counts(observation, theta)
    return _over_sequences(counts.mean, counts.variance + counts.mean**2, offsets)


def observed_moments(counts: Array, offsets: Integers) -> CountMoments:
    """Of the counts themselves, with NaN left out."""
    return _over_sequences(counts, counts**2, offsets)


def _over_sequences(first: Array, second: Array, offsets: Integers) -> CountMoments:
    time = _times(offsets)
    n_steps = int(time.max()) + 1
    totals = [np.zeros((n_steps, first.shape[1])) for _ in range(3)]
    for total, values in zip(totals, (np.ones_like(first), first, second)):
        np.add.at(total, time, np.where(np.isnan(first), 0.0, values))
    n = np.maximum(totals[0], 1e-300)
    mean = totals[1] / n
    return CountMoments(mean, totals[2] / n - mean**2, np.bincount(time).astype(np.float64))


def _times(offsets: Integers) -> Integers:
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def prior_cross_covariance(states: StateModel, observation: Any, n_steps: int, max_lag: int) -> Array:
    """Cov(y_i(t), y_j(t + lag)) on average over steps: (max_lag + 1, N, N)."""
    C = observation.loadings
    covariances = states.covariances(n_steps)
    theta = ThetaDistribution.of(C, states.means(n_steps), covariances)
    coefficients = hermite_coefficients(observation, theta)
    noise = expected_counts(observation, theta).noise
    found = np.zeros((max_lag + 1, len(C), len(C)))
    lagged = covariances  # Cov(x_t+lag, x_t)
    for lag in range(max_lag + 1):
        m = n_steps - lag
        shared = np.einsum("ia,tba,jb->tij", C, lagged[:m], C, optimize=True)
        found[lag] = _pairs(coefficients, theta, shared, np.arange(m), np.arange(lag, n_steps)).mean(axis=0)
        lagged = states.transition @ lagged
    found[0] += np.diag(noise.mean(axis=0))
    return found


def posterior_cross_covariance(found: PathPosterior, observation: Any, offsets: Integers, max_lag: int) -> Array:
    """The same over the sequences given: within them by their posteriors, and between them."""
    C = observation.loadings
    theta = ThetaDistribution.of(C, found.mean, found.covariance)
    coefficients = hermite_coefficients(observation, theta)
    counts = expected_counts(observation, theta)
    time = _times(offsets)
    centered = counts.mean - _over_sequences(counts.mean, counts.mean**2, offsets).mean[time]
    answer = np.zeros((max_lag + 1, len(C), len(C)))
    lagged = found.covariance  # Cov(x_t+lag, x_t), from one lag to the next by the Markov property
    gains = found.lagged @ np.linalg.inv(found.covariance)
    for lag in range(max_lag + 1):
        early = np.flatnonzero(_last(offsets) - time >= lag)
        late = early + lag
        shared = np.einsum("ia,tba,jb->tij", C, lagged[early], C, optimize=True)
        within = _pairs(coefficients, theta, shared, early, late).mean(axis=0)
        answer[lag] = within + centered[early].T @ centered[late] / len(early)
        onward = np.zeros_like(lagged)
        inner = np.flatnonzero(_last(offsets) - time > lag)
        onward[inner] = gains[inner + lag] @ lagged[inner]
        lagged = onward
    answer[0] += np.diag(counts.noise.mean(axis=0))
    return answer


def observed_cross_covariance(counts: Array, offsets: Integers, max_lag: int) -> Array:
    """Of the counts themselves about their mean at each step (about one mean, if there is one sequence)."""
    time = _times(offsets)
    if (np.diff(offsets) > 0).sum() > 1:
        centered = counts - observed_moments(counts, offsets).mean[time]
    else:
        centered = counts - np.nanmean(counts, axis=0)
    seen = ~np.isnan(centered)
    centered = np.where(seen, centered, 0.0)
    answer = np.zeros((max_lag + 1, counts.shape[1], counts.shape[1]))
    for lag in range(max_lag + 1):
        early = np.flatnonzero(_last(offsets) - time >= lag)
        n = seen[early].T.astype(np.float64) @ seen[early + lag]
        answer[lag] = centered[early].T @ centered[early + lag] / np.maximum(n, 1.0)
    return answer


def _last(offsets: Integers) -> Integers:
    """Time of the last step of the sequence of each row."""
    lengths = np.diff(offsets)
    return np.repeat(lengths - 1, lengths)


def _pairs(coefficients: Array, theta: ThetaDistribution, shared: Array, early: Integers, late: Integers) -> Array:
    """Covariances of conditional means for pairs of steps: (m, N, N); `shared` is Cov(theta_i(t), theta_j(t + lag))."""
    scale = np.sqrt(theta.variance[early][:, :, None] * theta.variance[late][:, None, :])
    correlation = np.where(scale > 0, shared / np.where(scale > 0, scale, 1.0), 0.0)
    return covariance_of_means(coefficients[:, early], coefficients[:, late], np.clip(correlation, -1.0, 1.0))
