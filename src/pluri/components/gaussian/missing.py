"""Rows with missing values under full covariances, taken together by what they miss.

A missing value is integrated out: its conditional mean and covariance given the observed features enter the sums
(Dempster, Laird and Rubin 1977).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.components.gaussian import _missing_kernels as kernels
from pluri.components.gaussian._missing_kernels import Components, Moments, Patterns, Workspace
from pluri.components.gaussian.family import LOG_2PI, GaussianParameters
from pluri.components.imputation import Filled, fill_independent, mixed_moments

Array = NDArray[np.float64]


def log_prob_missing(parameters: GaussianParameters, X: Array, out: Array) -> None:
    """Write the densities of the rows that miss something."""
    patterns, n_observed = missing_patterns(X)
    _, log_determinant = parameters.whitening
    log_normalizer = log_determinant + (n_observed * LOG_2PI)[:, None]
    kernels.log_prob_missing(X, patterns, _components(parameters), log_normalizer, out, _workspace(X.shape[1]))


def accumulate_missing(parameters: GaussianParameters, X: Array, posterior: Array, moments: Moments) -> None:
    """Add to `moments` what is expected of the rows that miss something."""
    patterns, _ = missing_patterns(X)
    kernels.accumulate_missing(X, patterns, posterior, _components(parameters), moments, _workspace(X.shape[1]))


def missing_patterns(X: Array) -> tuple[Patterns, NDArray[np.int64]]:
    """The rows that miss something by what they miss, and the number of features that each pattern has."""
    gone = np.isnan(X)
    incomplete = np.flatnonzero(gone.any(axis=1))
    # Rows of bits as one string of bytes each: sorting these is far cheaper than sorting rows.
    bits = np.ascontiguousarray(np.packbits(gone[incomplete], axis=1))
    keys = bits.view(np.dtype((np.void, bits.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(which.reshape(-1)))
    return Patterns(incomplete[order], ends), (~gone[incomplete[first]]).sum(axis=1)


def fill_missing(parameters: GaussianParameters, X: Array, posterior: Array) -> Filled:
    """X with its missing values replaced by their means, given the rest and P(component | row), (n, C)."""
    if parameters.kind != "full":
        return fill_independent(X, posterior, parameters.means, parameters.variances)
    values, variance = X.copy(), np.zeros(X.shape)
    patterns, _ = missing_patterns(X)
    for rows in np.split(patterns.rows, patterns.ends)[:-1]:
        gone = np.isnan(X[rows[0]])
        observed, missing = np.flatnonzero(~gone), np.flatnonzero(gone)
        left = [_regression(covariance, observed, missing) for covariance in parameters.covariances]
        means, variances = [], []
        for mean, group in zip(parameters.means, parameters.group):
            slope, spread = left[group]
            means.append(mean[missing] + (X[np.ix_(rows, observed)] - mean[observed]) @ slope)
            variances.append(spread)
        cells = np.ix_(rows, missing)
        values[cells], variance[cells] = mixed_moments(posterior[rows], means, variances)
    return Filled(values, variance)


def _regression(covariance: Array, observed: NDArray[np.int64], missing: NDArray[np.int64]) -> tuple[Array, Array]:
    """Slopes (observed, missing) of missing features on observed ones, and variances (missing,) that are left."""
    cross = covariance[np.ix_(observed, missing)]
    slope = np.linalg.solve(covariance[np.ix_(observed, observed)], cross)
    left = covariance[missing, missing] - (slope * cross).sum(axis=0)
    return np.asarray(slope), np.maximum(left, 0.0)


def _components(parameters: GaussianParameters) -> Components:
    whitening, _ = parameters.whitening
    return Components(parameters.means, parameters.group, whitening, parameters.precisions)


def _workspace(n_features: int) -> Workspace:
    factor, inverse = np.empty((2, n_features, n_features))
    return Workspace(factor, inverse, np.empty(n_features), np.empty(n_features, dtype=np.int64))
