# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Compiled loops for rows that miss values under full covariances; rows that miss the same features go together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Patterns(NamedTuple):
    """Numbers of the rows that miss something, those that miss the same side by side, and where each such part ends."""

    rows: Integers
    ends: Integers


class Components(NamedTuple):
    """means (C, D), the covariance of each (C,), and inverse Cholesky factors and inverses of these, (G, D, D)."""

    means: Array
    group: Integers
    whitening: Array
    precisions: Array


class Moments(NamedTuple):
    """mass (C,), first (C, D) and the lower triangle of second (C, D, D) moments; the loops add to them."""

    mass: Array
    first: Array
    second: Array


class Workspace(NamedTuple):
    """Room for a Cholesky factor and its inverse, (D, D), and for deviations and numbers of features, (D,)."""

    factor: Array
    inverse: Array
    difference: Array
    features: Integers


@compiled(reorder=True)
def _factorize(precision, missing, factor):
    """Cholesky factor of the rows and columns `missing` of a precision matrix, into `factor`; its log determinant."""
    log_determinant = 0.0
    for a in range(missing.shape[0]):
        for b in range(a + 1):
            total = precision[missing[a], missing[b]]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if a == b:
                pivot = max(total, 1e-15 * precision[missing[a], missing[a]])  # rounding may leave less than nothing
                log_determinant += np.log(pivot)
                factor[a, a] = np.sqrt(pivot)
            else:
                factor[a, b] = total / factor[b, b]
    return log_determinant


@compiled(reorder=True)
def _complete(x, mean, precision, observed, missing, factor, difference):
    """Deviations from the mean, the missing ones being those expected given the others.

    The expected ones are minus P_mm^-1 P_mo times the observed ones, P being the precision matrix.
    """
    for place in range(observed.shape[0]):
        d = observed[place]
        difference[d] = x[d] - mean[d]
    for a in range(missing.shape[0]):
        total = 0.0
        for place in range(observed.shape[0]):
            d = observed[place]
            total -= precision[missing[a], d] * difference[d]
        for b in range(a):
            total -= factor[a, b] * difference[missing[b]]
        difference[missing[a]] = total / factor[a, a]
    for a in range(missing.shape[0] - 1, -1, -1):
        total = difference[missing[a]]
        for b in range(a + 1, missing.shape[0]):
            total -= factor[b, a] * difference[missing[b]]
        difference[missing[a]] = total / factor[a, a]


@compiled()
def _split(x, features):
    """Write the observed features of a row, then the missing ones; gives the number of the observed."""
    n_observed = 0
    for d in range(len(x)):
        if not np.isnan(x[d]):
            features[n_observed] = d
            n_observed += 1
    place = n_observed
    for d in range(len(x)):
        if np.isnan(x[d]):
            features[place] = d
            place += 1
    return n_observed


@compiled(reorder=True)
def log_prob_missing(X, patterns, components, log_normalizer, out, work):
    """Write out[t, c] = log N(x_observed | component c) for the rows t that miss something.

    |W_c d|^2, with the missing deviations at their expectation, is the square that the observed ones have by
    themselves, and log|S_oo| = log|S| + log|P_mm|. `log_normalizer` (patterns, G) holds log|S_g| + n_observed log 2 pi.
    """
    means, precisions, whitening = components.means, components.precisions, components.whitening
    factor, difference = work.factor, work.difference
    begin = 0
    for pattern in range(len(patterns.ends)):
        rows = patterns.rows[begin : patterns.ends[pattern]]
        begin = patterns.ends[pattern]
        n_observed = _split(X[rows[0]], work.features)
        observed, missing = work.features[:n_observed], work.features[n_observed:]
        before = -1
        log_determinant = 0.0
        for c in range(means.shape[0]):
            g = components.group[c]
            if g != before and n_observed > 0:
                log_determinant = log_normalizer[pattern, g] + _factorize(precisions[g], missing, factor)
                before = g
            for place in range(rows.shape[0]):
                t = rows[place]
                if n_observed == 0:
                    out[t, c] = 0.0
                    continue
                _complete(X[t], means[c], precisions[g], observed, missing, factor, difference)
                total = log_determinant
                for d in range(means.shape[1]):
                    z = 0.0
                    for e in range(d + 1):
                        z += whitening[g, d, e] * difference[e]
                    total += z * z
                out[t, c] = -0.5 * total


@compiled(reorder=True)
def _invert(factor, size, inverse):
    """Write the inverse of a triangular factor, transposed: upper triangular."""
    for b in range(size):
        for a in range(b, size):
            total = 1.0 if a == b else 0.0
            for e in range(b, a):
                total -= factor[a, e] * inverse[b, e]
            inverse[b, a] = total / factor[a, a]


@compiled(reorder=True)
def accumulate_missing(X, patterns, posterior, components, moments, work):
    """Add to `moments` those expected of the rows that miss something, as `accumulate_full` does for complete rows."""
    means, precisions, group = components.means, components.precisions, components.group
    count, first, second = moments.mass, moments.first, moments.second
    factor, inverse, difference = work.factor, work.inverse, work.difference
    begin = 0
    for pattern in range(len(patterns.ends)):
        rows = patterns.rows[begin : patterns.ends[pattern]]
        begin = patterns.ends[pattern]
        n_observed = _split(X[rows[0]], work.features)
        observed, missing = work.features[:n_observed], work.features[n_observed:]
        n_missing = len(missing)
        before = -1
        for c in range(means.shape[0]):
            g = group[c]
            mass = 0.0
            for place in range(rows.shape[0]):
                mass += posterior[rows[place], c]
            if mass == 0.0:
                continue
            if g != before:
                _factorize(precisions[g], missing, factor)
                _invert(factor, n_missing, inverse)
                before = g
            for place in range(rows.shape[0]):
                t = rows[place]
                weight = posterior[t, c]
                if weight == 0.0:
                    continue
                _complete(X[t], means[c], precisions[g], observed, missing, factor, difference)
                for d in range(means.shape[1]):
                    weighted = weight * difference[d]
                    first[c, d] += weighted
                    for e in range(d + 1):
                        second[c, d, e] += weighted * difference[e]
            count[c] += mass
            for a in range(n_missing):
                for b in range(a + 1):
                    total = 0.0
                    for e in range(a, n_missing):
                        total += inverse[a, e] * inverse[b, e]
                    second[c, missing[a], missing[b]] += mass * total
