"""What Rao-Blackwellised filters say of sequences: how likely they are, and what comes next.

In a forecast regimes are simulated, and the state is followed exactly given each path of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from pluri.dynamics.switching.parameters import SwitchingParameters
from pluri.dynamics.switching.rao_blackwell import Matrices, RaoBlackwellFilter
from pluri.inference.smc.cloud import Scheme

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class LogLikelihood(NamedTuple):
    """An estimate of a log-likelihood, and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class SwitchingForecast:
    """Distributions of what comes next, for each of S sequences and h steps ahead, with m features and k regimes.

    Parameters
    ----------
    mean, std : ndarray (S, h, m)
        Of the observations, noise included.
    lower, upper : ndarray (S, h, m)
        Quantiles between which an observation falls with probability `level`, for each step and feature by itself.
    regime_probabilities : ndarray (S, h, k)
        Of the regimes.
    level : float
    """

    mean: Array
    std: Array
    lower: Array
    upper: Array
    regime_probabilities: Array
    level: float

    def __repr__(self) -> str:
        n_sequences, horizon, m = self.mean.shape
        return f"<SwitchingForecast: {n_sequences} sequences, {horizon} steps, {m} features, level {self.level}>"


def followed(
    parameters: SwitchingParameters, rows: Array, n_particles: int, rng: np.random.Generator
) -> tuple[RaoBlackwellFilter, float]:
    """The filter at the end of a sequence, and the estimated log-likelihood of it."""
    cloud = RaoBlackwellFilter(Scheme(n_particles), "optimal", parameters.sizes, rng)
    system, total = parameters.matrices(), 0.0
    for row in rows:
        cloud.step(system, row)
        total += cloud.increment
    return cloud, total


def estimate_evidence(
    parameters: SwitchingParameters,
    X: Array,
    offsets: Integers,
    n_particles: int,
    n_runs: int,
    rng: np.random.Generator,
) -> LogLikelihood:
    """Log-likelihood of all sequences; the likelihood of each is averaged over runs, whose spread gives the error."""
    value, variance = 0.0, 0.0
    for begin, end in pairwise(offsets):
        runs = np.array([followed(parameters, X[begin:end], n_particles, rng)[1] for _ in range(n_runs)])
        value += float(logsumexp(runs) - np.log(n_runs))
        ratios = np.exp(runs - runs.max())
        variance += float(ratios.var(ddof=1) / (n_runs * ratios.mean() ** 2))
    return LogLikelihood(value, float(np.sqrt(variance)))


def forecast_sequences(
    parameters: SwitchingParameters,
    X: Array,
    offsets: Integers,
    settings: tuple[int, int, float],
    rng: np.random.Generator,
) -> SwitchingForecast:
    """What comes after each sequence; settings are the number of particles, of steps, and the level."""
    n_particles, horizon, level = settings
    system, k = parameters.matrices(), len(parameters.start)
    parts: list[tuple[Array, ...]] = []
    for begin, end in pairwise(offsets):
        cloud, _ = followed(parameters, X[begin:end], n_particles, rng)
        means, variances, regimes = continued(cloud, system, horizon, rng)
        tails = (0.5 * (1.0 - level), 0.5 * (1.0 + level))
        quantiles = [mixture_quantile(cloud.weights, means, variances, tail) for tail in tails]
        shares = np.array([np.bincount(row, cloud.weights, minlength=k) for row in regimes])
        parts.append((*mixture_moments(cloud.weights, means, variances), *quantiles, shares))
    mean, deviation, lower, upper, shares = (np.array(column) for column in zip(*parts))
    return SwitchingForecast(mean, deviation, lower, upper, shares, level)


def continued(
    cloud: RaoBlackwellFilter, system: Matrices, horizon: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Means and variances (h, n, m) of observations after the last step, given each particle's regimes (h, n)."""
    regimes, mean, covariance = cloud.tracks.regimes.copy(), cloud.tracks.mean, cloud.tracks.covariance
    means, variances, paths = [], [], []
    for step in range(horizon):
        rows = system.start[None] if cloud.n_steps + step == 0 else system.transition[regimes]
        reached = np.cumsum(np.broadcast_to(rows, (len(regimes), len(system.start))), axis=1)
        points = rng.random(len(regimes)) * reached[:, -1]
        regimes = np.minimum((reached <= points[:, None]).sum(axis=1), len(system.start) - 1)
        if cloud.n_steps + step == 0:
            mean, covariance = system.first_mean[regimes], system.first_covariance[regimes]
        else:
            A = system.A[regimes]
            mean = np.einsum("nij,nj->ni", A, mean) + system.b[regimes]
            covariance = A @ covariance @ np.swapaxes(A, 1, 2) + system.Q[regimes]
        groups = regimes if len(system.C) > 1 else np.zeros_like(regimes)
        C = system.C[groups]
        means.append(np.einsum("nij,nj->ni", C, mean) + system.c[groups])
        noise = np.diagonal(system.R[groups], axis1=1, axis2=2)
        variances.append(np.einsum("nij,njk,nik->ni", C, covariance, C) + noise)
        paths.append(regimes)
    return np.array(means), np.array(variances), np.array(paths)


def mixture_moments(weights: Array, means: Array, variances: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (h, m) of mixtures with these weights (n,)."""
    mean = np.einsum("n,hnm->hm", weights, means)
    variance = np.einsum("n,hnm->hm", weights, variances + np.square(means - mean[:, None]))
    return mean, np.sqrt(variance)


def mixture_quantile(weights: Array, means: Array, variances: Array, probability: float) -> Array:
    """Quantiles (h, m) of mixtures of normal distributions, by bisection to nine digits of their spread."""
    deviations = np.sqrt(variances)
    low, high = (means - 40 * deviations).min(axis=1), (means + 40 * deviations).max(axis=1)
    # Each halving gains a binary digit, and eighty spans of a component are six of them.
    for _ in range(52):
        middle = 0.5 * (low + high)
        below = np.einsum("n,hnm->hm", weights, ndtr((middle[:, None] - means) / deviations)) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)
