"""Densities of Gaussian components, weighted moments of rows, and draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.components.gaussian import _kernels as kernels
from pluri.components.gaussian._missing_kernels import Moments
from pluri.components.gaussian.missing import accumulate_missing, log_prob_missing
from pluri.components.gaussian.records import GaussianParameters, GaussianStatistics
from pluri.components.padding import padded_width

Array = NDArray[np.float64]

LOG_2PI = float(np.log(2.0 * np.pi))


def log_prob(parameters: GaussianParameters, X: Array, out: Array) -> None:
    """Write log N(x_t | component c) into ``out[:, :C]`` and -inf into the padding; out: (n_samples, width)."""
    n_components, n_features = parameters.means.shape
    out[:, n_components:] = -np.inf
    shift = parameters.means.mean(axis=0)
    means = parameters.means - shift
    work = _work(n_features)
    if parameters.kind != "full":
        variances = parameters.variances
        kernels.log_prob_diagonal(X, shift, means, 1.0 / variances, np.log(variances) + LOG_2PI, out, work)
        return
    whitening, log_determinant = parameters.whitening
    whitening, log_determinant = whitening[parameters.group], log_determinant[parameters.group]
    padded = np.zeros((n_components, n_features, padded_width(n_features)))
    padded[:, :, :n_features] = whitening
    whitened_means = np.einsum("cde,ce->cd", whitening, means)
    if kernels.log_prob_full(X, shift, padded, whitened_means, log_determinant + n_features * LOG_2PI, out, work):
        log_prob_missing(parameters, X, out)


def accumulate(parameters: GaussianParameters, X: Array, posterior: Array) -> GaussianStatistics:
    """Moments of X under the weights `posterior`, (n_samples, padded width)."""
    n_components, n_features = parameters.means.shape
    work = _work(n_features)
    shift = parameters.means.mean(axis=0)
    means = parameters.means - shift
    first: Array = np.zeros((n_components, n_features))
    count: Array
    second: Array
    if parameters.kind != "full":
        count, second = np.zeros_like(first), np.zeros_like(first)
        kernels.accumulate_diagonal(X, shift, posterior, means, count, first, second, work)
        return GaussianStatistics(count, first, second)
    count, second = np.zeros(n_components), np.zeros((n_components, n_features, n_features))
    if kernels.accumulate_full(X, shift, posterior, means, count, first, second, work):
        accumulate_missing(parameters, X, posterior, Moments(count, first, second))
    return GaussianStatistics(count, first, second)


def _work(n_features: int) -> Array:
    return np.empty((2 * padded_width(n_features) + n_features + 2, kernels.CHUNK))


def expected(parameters: GaussianParameters, mass: Array) -> GaussianStatistics:
    """Moments about the means that rows of the components' own distributions have, `mass` (C,) of each."""
    first = np.zeros_like(parameters.means)
    if parameters.kind == "full":
        second = np.tril(mass[:, None, None] * parameters.covariances[parameters.group])
        return GaussianStatistics(mass.copy(), first, second)
    return GaussianStatistics(
        np.repeat(mass[:, None], first.shape[1], axis=1), first, mass[:, None] * parameters.variances
    )


def rebased(stats: GaussianStatistics, old: Array, new: Array) -> GaussianStatistics:
    """Moments about the means `new`, given those about `old`."""
    shift = new - old
    if stats.count.ndim == 2:
        second = stats.second - 2.0 * shift * stats.first + stats.count * shift**2
        return GaussianStatistics(stats.count, stats.first - stats.count * shift, second)
    cross = stats.first[:, :, None] * shift[:, None, :]
    second = stats.second - np.tril(cross + cross.transpose(0, 2, 1))
    second = second + np.tril(stats.count[:, None, None] * shift[:, :, None] * shift[:, None, :])
    return GaussianStatistics(stats.count, stats.first - stats.count[:, None] * shift, second)


def sample(parameters: GaussianParameters, components: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """One draw from each of the named components: (len(components), D)."""
    noise = rng.standard_normal((len(components), parameters.means.shape[1]))
    means = parameters.means[components]
    if parameters.kind == "full":
        # An eigenvalue root, not Cholesky: a user may set a covariance that is only semi-definite and still sample.
        values, vectors = np.linalg.eigh(parameters.covariances)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        return means + np.einsum("tij,tj->ti", root[parameters.group[components]], noise)
    return means + noise * np.sqrt(parameters.variances[components])
