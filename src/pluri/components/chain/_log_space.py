# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Forward-backward in log space for one sequence: slower, but nothing underflows.

Called for the rare sequence on which the scaled recursion loses its footing: a hard zero in the transitions leaves
only states whose likelihood is hundreds of orders of magnitude below the best one.
"""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled


@compiled()
def log_sum(values):
    largest = values[0]
    for value in values:
        largest = max(largest, value)
    if largest == -np.inf:
        return -np.inf
    total = 0.0
    for value in values:
        total += np.exp(value - largest)
    return largest + np.log(total)


@compiled()
def filter_in_log_space(log_emission, log_start, log_transition, log_filtered):
    """Write the log filtered distributions of one sequence, return the log-likelihood (may be -inf)."""
    n_samples, width = log_emission.shape
    log_alpha = log_start.copy()
    predicted = log_start.copy()
    work = np.empty(width)
    total = 0.0
    for t in range(n_samples):
        if t > 0:
            for j in range(width):
                for i in range(width):
                    work[i] = log_alpha[i] + log_transition[i, j]
                predicted[j] = log_sum(work)
        for j in range(width):
            log_alpha[j] = predicted[j] + log_emission[t, j]
        norm = log_sum(log_alpha)
        if norm == -np.inf:
            for s in range(t, n_samples):
                for j in range(width):
                    log_filtered[s, j] = -np.inf
            return -np.inf
        total += norm
        for j in range(width):
            log_alpha[j] -= norm
            log_filtered[t, j] = log_alpha[j]
    return total


@compiled()
def _normalize(values):
    """Subtract the log of the sum, which is returned; -inf leaves the values as they are."""
    norm = log_sum(values)
    if norm > -np.inf:
        for i in range(values.shape[0]):
            values[i] -= norm
    return norm


@compiled()
def smooth_in_log_space(log_emission, log_start, log_transition, posterior, pairs):
    """Write the posteriors, add the pair probabilities (with A_ij), return the log-likelihood (may be -inf).

    Every distribution is normalised by its own sum: a log-likelihood of 1e9 has no digits left for probabilities.
    """
    n_samples, width = log_emission.shape
    log_alpha = np.empty((n_samples, width))
    log_likelihood = filter_in_log_space(log_emission, log_start, log_transition, log_alpha)
    if log_likelihood == -np.inf:
        for t in range(n_samples):
            for j in range(width):
                posterior[t, j] = 0.0
        return log_likelihood
    log_beta = np.zeros(width)
    ahead = np.empty(width)
    work = np.empty(width)
    joint = np.empty(width * width)
    for t in range(n_samples - 1, -1, -1):
        if t + 1 < n_samples:
            for j in range(width):
                ahead[j] = log_emission[t + 1, j] + log_beta[j]
            for i in range(width):
                for j in range(width):
                    work[j] = log_transition[i, j] + ahead[j]
                    joint[i * width + j] = log_alpha[t, i] + work[j]
                log_beta[i] = log_sum(work)
            _normalize(joint)
            for i in range(width):
                for j in range(width):
                    pairs[i, j] += np.exp(joint[i * width + j])
            _normalize(log_beta)
        for i in range(width):
            work[i] = log_alpha[t, i] + log_beta[i]
        _normalize(work)
        for i in range(width):
            posterior[t, i] = np.exp(work[i])
    return log_likelihood
