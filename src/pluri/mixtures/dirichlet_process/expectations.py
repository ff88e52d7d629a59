"""Means under the posteriors of the parameters of clusters, and how far these are from the prior.

With statistics that need not be whole numbers the posterior q of a cluster's parameters has the form of the prior;
variational inference needs ``E_q log p(x | parameters)`` and ``KL(q || prior)``. Their link, which tests use, is
``E_q log p(rows | parameters) - KL(q || prior) = log p(rows)`` if the rows are those that made q.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma, multigammaln

from pluri.metrics.distribution_information import beta_kl, dirichlet_kl, gamma_kl
from pluri.mixtures.dirichlet_process._kernels import BINARY, COLUMNS, GAUSSIAN, TOKENS
from pluri.mixtures.dirichlet_process.records import Array, kind_of, row_constants, safe_cholesky


def expected_log_density(likelihood: Any, statistics: Array, data: Any) -> Array:
    """``E_q log p(x | parameters)`` for each row and cluster: (n_samples, n_clusters)."""
    kind, d = kind_of(likelihood), likelihood.n_features
    if kind == GAUSSIAN:
        k, v, center, scatter = likelihood._posterior(statistics)
        factor = safe_cholesky(scatter)
        rows = data - likelihood.mean
        out = np.empty((len(rows), len(center)))
        for j, (middle, root) in enumerate(zip(center, factor)):
            out[:, j] = (((rows - middle) @ np.linalg.inv(root).T) ** 2).sum(axis=1)
        return np.asarray(0.5 * (_log_precision(v, factor) - d * np.log(2 * np.pi) - d / k - v * out))
    if kind == COLUMNS:
        k, center, shape, rate = likelihood._posterior(statistics)
        rows, precision = data - np.asarray(likelihood.mean), shape / rate
        squares = rows**2 @ precision.T - 2 * rows @ (center * precision).T + (center**2 * precision).sum(axis=1)
        logs = (digamma(shape) - np.log(rate) - np.log(2 * np.pi) - 1 / k).sum(axis=1)
        return np.asarray(0.5 * (logs - squares))
    if kind == TOKENS:
        counts = likelihood._alpha + statistics
        return np.asarray(data @ (digamma(counts) - digamma(counts.sum(axis=1, keepdims=True))).T)
    if kind == BINARY:
        heads, tails = likelihood._heads_and_tails(statistics)
        missing = digamma(tails) - digamma(heads + tails)
        return np.asarray(data @ (digamma(heads) - digamma(tails)).T) + missing.sum(axis=1)
    shape, rate = likelihood._prior
    shape, rate = shape + statistics[:, 2:], rate + statistics[:, :1]
    logs = np.asarray(data @ (digamma(shape) - np.log(rate)).T)
    return logs - (shape / rate).sum(axis=1) + row_constants(likelihood, data)[:, None]


def divergence(likelihood: Any, statistics: Array) -> Array:
    """``KL(q || prior)`` of each cluster: (n_clusters,)."""
    kind, d = kind_of(likelihood), likelihood.n_features
    if kind == GAUSSIAN:
        k, v, center, scatter = likelihood._posterior(statistics)
        k0, v0 = likelihood.strength, likelihood.df
        factor, prior = safe_cholesky(scatter), np.linalg.cholesky(likelihood.scale)
        away = (np.linalg.solve(factor, center[..., None])[..., 0] ** 2).sum(axis=1)
        means = 0.5 * (d * (np.log(k / k0) - 1 + k0 / k) + k0 * v * away)
        trace = (np.linalg.solve(factor, np.broadcast_to(prior, factor.shape)) ** 2).sum(axis=(1, 2))
        normaliser = _log_wishart_normaliser(np.asarray(v0), prior) - _log_wishart_normaliser(v, factor)
        return np.asarray(means + normaliser + 0.5 * ((v - v0) * _log_precision(v, factor) + v * (trace - d)))
    if kind == COLUMNS:
        k, center, shape, rate = likelihood._posterior(statistics)
        k0 = likelihood.strength
        means = 0.5 * (np.log(k / k0) - 1 + k0 / k + k0 * shape / rate * center**2)
        return np.asarray((means + gamma_kl(shape, rate, likelihood.shape, likelihood.rate)).sum(axis=1))
    if kind == TOKENS:
        alpha = likelihood._alpha
        return np.asarray(dirichlet_kl(alpha + statistics, np.broadcast_to(alpha, statistics.shape)))
    if kind == BINARY:
        heads, tails = likelihood._heads_and_tails(statistics)
        return np.asarray(beta_kl(heads, tails, *likelihood._prior)).sum(axis=1)
    shape, rate = likelihood._prior
    return np.asarray(gamma_kl(shape + statistics[:, 2:], rate + statistics[:, :1], shape, rate)).sum(axis=1)


def _log_precision(v: Array, factor: Array) -> Array:
    """``E log |precision|`` of a Wishart with v degrees of freedom and the inverse of ``factor factor'`` as scale."""
    d = factor.shape[-1]
    logs = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    return np.asarray(digamma((v[..., None] - np.arange(d)) / 2).sum(axis=-1) + d * np.log(2.0) - logs)


def _log_wishart_normaliser(v: Array, factor: Array) -> Array:
    d = factor.shape[-1]
    logs = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    return np.asarray(v * d / 2 * np.log(2.0) - v * logs + multigammaln(v / 2, d))
