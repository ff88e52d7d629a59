"""Compiled loops for Gaussian densities and their statistics; the component index runs fastest.

Component arrays are padded to width K (see `_kernels.py`): means (D, K), precisions (D, K), whitening (D, D, K).
A NaN is a missing value. With diagonal covariances it is skipped in place; with full ones the row is left to the
caller, who groups such rows by their pattern of missing features.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_FAST = {"contract", "reassoc", "nsz"}


@njit(cache=True, nogil=True, fastmath=_FAST)
def log_prob_diagonal(X, means, precisions, log_normalizer, out):  # type: ignore[no-untyped-def]
    """out[t, j] = -1/2 sum_d [ precision_dj (x_td - mean_dj)^2 + log_normalizer_dj ] over observed features d."""
    n_samples, n_features = X.shape
    width = means.shape[1]
    for t in range(n_samples):
        for j in range(width):
            out[t, j] = 0.0
        for d in range(n_features):
            x = X[t, d]
            if np.isnan(x):
                continue
            for j in range(width):
                difference = x - means[d, j]
                out[t, j] += difference * difference * precisions[d, j] + log_normalizer[d, j]
        for j in range(width):
            out[t, j] *= -0.5


@njit(cache=True, nogil=True, fastmath=_FAST)
def log_prob_full(X, means, whitening, log_normalizer, out, difference, whitened):  # type: ignore[no-untyped-def]
    """out[t, j] = -1/2 [ |W_j (x_t - mean_j)|^2 + log_normalizer_j ], W_j lower triangular.

    Returns the number of rows with a missing value; those rows of `out` are not written.
    """
    n_samples, n_features = X.shape
    width = means.shape[1]
    n_incomplete = 0
    for t in range(n_samples):
        complete = True
        for d in range(n_features):
            if np.isnan(X[t, d]):
                complete = False
        if not complete:
            n_incomplete += 1
            continue
        for d in range(n_features):
            x = X[t, d]
            for j in range(width):
                difference[d, j] = x - means[d, j]
        for j in range(width):
            out[t, j] = log_normalizer[j]
        for d in range(n_features):
            for j in range(width):
                whitened[j] = whitening[d, d, j] * difference[d, j]
            for e in range(d):
                for j in range(width):
                    whitened[j] += whitening[d, e, j] * difference[e, j]
            for j in range(width):
                out[t, j] += whitened[j] * whitened[j]
        for j in range(width):
            out[t, j] *= -0.5
    return n_incomplete


@njit(cache=True, nogil=True, fastmath=_FAST)
def accumulate_diagonal(X, posterior, means, count, first, second):  # type: ignore[no-untyped-def]
    """Add the weighted count, and the first and second moments about the current means, of observed features."""
    n_samples, n_features = X.shape
    width = means.shape[1]
    for t in range(n_samples):
        for d in range(n_features):
            x = X[t, d]
            if np.isnan(x):
                continue
            for j in range(width):
                weight = posterior[t, j]
                difference = x - means[d, j]
                moment = weight * difference
                count[d, j] += weight
                first[d, j] += moment
                second[d, j] += moment * difference


@njit(cache=True, nogil=True, fastmath=_FAST)
def accumulate_full(X, posterior, means, count, first, second, difference):  # type: ignore[no-untyped-def]
    """As `accumulate_diagonal`, with the lower triangle of the second moments; rows with a NaN are left out."""
    n_samples, n_features = X.shape
    width = means.shape[1]
    for t in range(n_samples):
        complete = True
        for d in range(n_features):
            if np.isnan(X[t, d]):
                complete = False
        if not complete:
            continue
        for j in range(width):
            count[j] += posterior[t, j]
        for d in range(n_features):
            x = X[t, d]
            for j in range(width):
                difference[d, j] = x - means[d, j]
        for d in range(n_features):
            for e in range(d + 1):
                for j in range(width):
                    second[d, e, j] += posterior[t, j] * difference[d, j] * difference[e, j]
            for j in range(width):
                first[d, j] += posterior[t, j] * difference[d, j]
