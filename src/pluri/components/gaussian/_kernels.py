# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Compiled loops for Gaussian densities and their weighted moments; time runs fastest.

Rows are taken `CHUNK` at a time and transposed into a small buffer, so that every inner loop is a long, contiguous
vector operation that stays in the first-level cache. A NaN is a missing value: with diagonal covariances it is
masked in place; with full ones the whole row is left to the caller, who groups such rows by what they miss.

Means are given, and rows are read, as seen from `shift`, a point in the middle of the means: what all data have in
common is taken off exactly before anything is squared.
"""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled

CHUNK = 128


@compiled(inner=True, allocates=False)
def _load(X, begin, length, shift, values, observed):
    """Copy rows begin:begin+length, transposed: values x_d - shift_d (0 for NaN), observed 1 or 0; (D, CHUNK)."""
    n_missing = 0
    for d in range(X.shape[1]):
        offset = shift[d]
        for s in range(length):
            x = X[begin + s, d]
            missing = np.isnan(x)
            n_missing += missing
            values[d, s] = 0.0 if missing else x - offset
            observed[d, s] = 0.0 if missing else 1.0
    return n_missing


@compiled(reorder=True, allocates=False)
def log_prob_diagonal(X, shift, means, precisions, log_normalizer, out, work):
    """out[t, c] = -1/2 sum_d [ precision_cd (x_td - shift_d - mean_cd)^2 + log_normalizer_cd ] over observed d.

    `work` is (2 D + 1, CHUNK).
    """
    n_samples, n_features = X.shape
    values = work[:n_features]
    observed = work[n_features : 2 * n_features]
    total = work[2 * n_features]
    for begin in range(0, n_samples, CHUNK):
        length = n_samples - begin if n_samples - begin < CHUNK else CHUNK
        _load(X, begin, length, shift, values, observed)
        for c in range(means.shape[0]):
            for s in range(length):
                total[s] = 0.0
            for d in range(n_features):
                mean = means[c, d]
                precision = precisions[c, d]
                normalizer = log_normalizer[c, d]
                for s in range(length):
                    difference = values[d, s] - mean
                    total[s] += observed[d, s] * (difference * difference * precision + normalizer)
            for s in range(length):
                out[begin + s, c] = -0.5 * total[s]


@compiled(reorder=True, allocates=False)
def log_prob_full(X, shift, whitening, whitened_means, log_normalizer, out, work):
    """out[t, c] = -1/2 [ |W_c (x_t - shift) - m_c|^2 + log_normalizer_c ], m_c = W_c (mean_c - shift).

    `whitening` is (C, D, P) with P the number of features rounded up to a multiple of four: four columns are taken
    in one pass, which halves the traffic to memory. Returns the number of missing values; rows of `out` that have one
    are wrong. `work` is (D + P + 2, CHUNK).
    """
    n_samples, n_features = X.shape
    n_padded = whitening.shape[2]
    values = work[:n_padded]
    observed = work[n_padded : n_padded + n_features]
    whitened = work[n_padded + n_features]
    total = work[n_padded + n_features + 1]
    for d in range(n_features, n_padded):
        for s in range(CHUNK):
            values[d, s] = 0.0
    n_missing = 0
    for begin in range(0, n_samples, CHUNK):
        length = n_samples - begin if n_samples - begin < CHUNK else CHUNK
        n_missing += _load(X, begin, length, shift, values, observed)
        for c in range(whitening.shape[0]):
            for s in range(length):
                total[s] = log_normalizer[c]
            for d in range(n_features):
                for s in range(length):
                    whitened[s] = -whitened_means[c, d]
                last = d // 4
                for block in range(last):
                    e = 4 * block
                    w0 = whitening[c, d, e]
                    w1 = whitening[c, d, e + 1]
                    w2 = whitening[c, d, e + 2]
                    w3 = whitening[c, d, e + 3]
                    for s in range(length):
                        whitened[s] += (w0 * values[e, s] + w1 * values[e + 1, s]) + (
                            w2 * values[e + 2, s] + w3 * values[e + 3, s]
                        )
                e = 4 * last
                w0 = whitening[c, d, e]
                w1 = whitening[c, d, e + 1]
                w2 = whitening[c, d, e + 2]
                w3 = whitening[c, d, e + 3]
                for s in range(length):
                    z = whitened[s] + (
                        (w0 * values[e, s] + w1 * values[e + 1, s]) + (w2 * values[e + 2, s] + w3 * values[e + 3, s])
                    )
                    total[s] += z * z
            for s in range(length):
                out[begin + s, c] = -0.5 * total[s]
    return n_missing


@compiled(reorder=True, allocates=False)
def accumulate_diagonal(X, shift, posterior, means, count, first, second, work):
    """Add weighted counts, and first and second moments about the means, of the observed features; all (C, D).

    `work` is (2 D + 1, CHUNK).
    """
    n_samples, n_features = X.shape
    values = work[:n_features]
    observed = work[n_features : 2 * n_features]
    weights = work[2 * n_features]
    for begin in range(0, n_samples, CHUNK):
        length = n_samples - begin if n_samples - begin < CHUNK else CHUNK
        _load(X, begin, length, shift, values, observed)
        for c in range(means.shape[0]):
            for s in range(length):
                weights[s] = posterior[begin + s, c]
            for d in range(n_features):
                mean = means[c, d]
                mass = 0.0
                moment = 0.0
                square = 0.0
                for s in range(length):
                    weight = weights[s] * observed[d, s]
                    difference = values[d, s] - mean
                    mass += weight
                    moment += weight * difference
                    square += weight * difference * difference
                count[c, d] += mass
                first[c, d] += moment
                second[c, d] += square


@compiled(reorder=True, allocates=False)
def accumulate_full(X, shift, posterior, means, count, first, second, work):
    """Add count (C,), first (C, D) and the lower triangle of second (C, D, D) moments of rows without a NaN.

    Returns the number of missing values. `work` is (3 D + 2, CHUNK).
    """
    n_samples, n_features = X.shape
    values = work[:n_features]
    observed = work[n_features : 2 * n_features]
    differences = work[2 * n_features : 3 * n_features]
    weights = work[3 * n_features]
    weighted = work[3 * n_features + 1]
    total_missing = 0
    for begin in range(0, n_samples, CHUNK):
        length = n_samples - begin if n_samples - begin < CHUNK else CHUNK
        n_missing = _load(X, begin, length, shift, values, observed)
        total_missing += n_missing
        for c in range(means.shape[0]):
            for s in range(length):
                weights[s] = posterior[begin + s, c]
            if n_missing:
                for d in range(n_features):
                    for s in range(length):
                        weights[s] *= observed[d, s]
            mass = 0.0
            for s in range(length):
                mass += weights[s]
            count[c] += mass
            for d in range(n_features):
                mean = means[c, d]
                moment = 0.0
                for s in range(length):
                    difference = values[d, s] - mean
                    differences[d, s] = difference
                    weighted[s] = weights[s] * difference
                    moment += weighted[s]
                first[c, d] += moment
                for e in range(d + 1):
                    square = 0.0
                    for s in range(length):
                        square += weighted[s] * differences[e, s]
                    second[c, d, e] += square
    return total_missing
