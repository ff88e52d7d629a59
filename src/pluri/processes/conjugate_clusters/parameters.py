"""Parameters of clusters: drawn from their posteriors, and the log density of rows given them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from pluri.processes.conjugate_clusters._kernels import BINARY, COLUMNS, GAUSSIAN, TOKENS
from pluri.processes.conjugate_clusters.records import Array, kind_of, row_constants, safe_cholesky
from pluri.processes.dirichlet import draw_log_dirichlet


class Parameters(NamedTuple):
    """Parameters of several clusters.

    `location` and `spread`: means and Cholesky factors of covariances of Gaussians; means and variances of independent
    columns; log probabilities of ones and of zeros; log probabilities of tokens; logs of means of counts, and these.
    """

    location: Array
    spread: Array


def draw_parameters(rng: np.random.Generator, likelihood: Any, statistics: Array) -> Parameters:
    """Draw the parameters of clusters given their statistics, (n_clusters, n_statistics)."""
    kind, d, n_clusters = kind_of(likelihood), likelihood.n_features, len(statistics)
    if kind == GAUSSIAN:
        k, v, center, scatter = likelihood._posterior(statistics)
        # Bartlett: the precision is (C A)(C A)' with C C' the inverse scatter; solve instead of inverting.
        bartlett = np.tril(rng.standard_normal((n_clusters, d, d)), -1)
        bartlett[:, range(d), range(d)] = np.sqrt(rng.chisquare(v[:, None] - np.arange(d)))
        root = np.swapaxes(np.linalg.solve(bartlett, np.swapaxes(safe_cholesky(scatter), 1, 2)), 1, 2)
        noise = np.einsum("kij,kj->ki", root, rng.standard_normal((n_clusters, d)))
        return Parameters(likelihood.mean + center + noise / np.sqrt(k)[:, None], root)
    if kind == COLUMNS:
        k, center, shape, rate = likelihood._posterior(statistics)
        variance = rate / rng.gamma(np.broadcast_to(shape, rate.shape))
        noise = np.sqrt(variance / k) * rng.standard_normal(rate.shape)
        return Parameters(np.asarray(likelihood.mean) + center + noise, variance)
    if kind == TOKENS:
        logs = draw_log_dirichlet(rng, likelihood._alpha + statistics)
        return Parameters(logs, logs)
    if kind == BINARY:
        pairs = draw_log_dirichlet(rng, np.stack(likelihood._heads_and_tails(statistics), axis=-1))
        return Parameters(pairs[..., 0], pairs[..., 1])
    shape, rate = likelihood._prior
    shape, rate = shape + statistics[:, 2:], rate + statistics[:, :1]
    # log of a gamma variable of small shape, which may itself be too small for a float
    logs = np.log(rng.gamma(shape + 1.0)) + np.log1p(-rng.random(shape.shape)) / shape - np.log(rate)
    return Parameters(logs, np.exp(logs))


def log_density(likelihood: Any, parameters: Parameters, data: Any) -> Array:
    """Log density of each row given the parameters of each cluster: (n_samples, n_clusters)."""
    kind, (location, spread) = kind_of(likelihood), parameters
    if kind == GAUSSIAN:
        n_clusters, d = location.shape
        out = np.empty((data.shape[0], n_clusters))
        for k in range(n_clusters):
            inverse = np.linalg.inv(spread[k])  # not triangular: a square root of the covariance
            out[:, k] = (((data - location[k]) @ inverse.T) ** 2).sum(axis=1)
        log_det = 2 * np.linalg.slogdet(spread)[1] + d * np.log(2 * np.pi)
        return np.asarray(-0.5 * (out + log_det))
    if kind == COLUMNS:
        # From the prior mean: squares of numbers far from zero would leave no digits for their differences.
        data, location, precision = (
            data - np.asarray(likelihood.mean),
            location - np.asarray(likelihood.mean),
            1 / spread,
        )
        squares = data**2 @ precision.T - 2 * data @ (location * precision).T + (location**2 * precision).sum(axis=1)
        return np.asarray(-0.5 * (squares + np.log(2 * np.pi * spread).sum(axis=1)))
    if kind == TOKENS:
        return np.asarray(data @ location.T)
    if kind == BINARY:
        return np.asarray(data @ (location - spread).T) + spread.sum(axis=1)
    return np.asarray(data @ location.T) - spread.sum(axis=1) + row_constants(likelihood, data)[:, None]


def draw_rows(rng: np.random.Generator, likelihood: Any, statistics: Array, n_tokens: Any = 1) -> Array:
    """Draw one row from each of several clusters, its parameters drawn anew for each."""
    kind, (location, spread) = kind_of(likelihood), draw_parameters(rng, likelihood, statistics)
    if kind == GAUSSIAN:
        return np.asarray(location + np.einsum("kij,kj->ki", spread, rng.standard_normal(location.shape)))
    if kind == COLUMNS:
        return np.asarray(location + np.sqrt(spread) * rng.standard_normal(location.shape))
    if kind == BINARY:
        return (np.log1p(-rng.random(location.shape)) < location).astype(np.float64)
    if kind == TOKENS:
        probabilities = np.exp(location)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        return rng.multinomial(n_tokens, probabilities).astype(np.float64)
    return rng.poisson(spread).astype(np.float64)


def log_coefficients(likelihood: Any, data: Any) -> Array:
    """Log of the number of sequences of tokens with the counts of each row; zero for other likelihoods."""
    if kind_of(likelihood) != TOKENS:
        return np.zeros(data.shape[0])
    total = np.asarray(data.sum(axis=1), dtype=np.float64).ravel()
    if hasattr(data, "tocsr"):
        logs = data.tocsr().copy()
        logs.data = gammaln(logs.data + 1.0)
        return np.asarray(gammaln(total + 1.0) - np.asarray(logs.sum(axis=1)).ravel())
    return np.asarray(gammaln(total + 1.0) - gammaln(np.asarray(data) + 1.0).sum(axis=1))
