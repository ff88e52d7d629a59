# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Forward-backward in log space for one sequence: slower, but nothing underflows.

Called for the rare sequence on which the scaled recursion loses its footing: a hard zero in the transitions leaves
only states whose likelihood is hundreds of orders of magnitude below the best one.
"""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled


@compiled()
def _log_sum(values):
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
def smooth_in_log_space(log_emission, log_start, log_transition, posterior, pairs):
    """Write the posteriors, add the pair probabilities (with A_ij), return the log-likelihood (may be -inf)."""
    n_samples, width = log_emission.shape
    log_alpha = np.empty((n_samples, width))
    log_beta = np.zeros((n_samples, width))
    work = np.empty(width)
    for j in range(width):
        log_alpha[0, j] = log_start[j] + log_emission[0, j]
    for t in range(1, n_samples):
        for j in range(width):
            for i in range(width):
                work[i] = log_alpha[t - 1, i] + log_transition[i, j]
            log_alpha[t, j] = _log_sum(work) + log_emission[t, j]
    log_likelihood = _log_sum(log_alpha[n_samples - 1])
    if log_likelihood == -np.inf:
        for t in range(n_samples):
            for j in range(width):
                posterior[t, j] = 0.0
        return log_likelihood
    for t in range(n_samples - 2, -1, -1):
        for i in range(width):
            for j in range(width):
                work[j] = log_transition[i, j] + log_emission[t + 1, j] + log_beta[t + 1, j]
            log_beta[t, i] = _log_sum(work)
    for t in range(n_samples):
        for i in range(width):
            posterior[t, i] = np.exp(log_alpha[t, i] + log_beta[t, i] - log_likelihood)
            if t + 1 < n_samples:
                for j in range(width):
                    pairs[i, j] += np.exp(
                        log_alpha[t, i]
                        + log_transition[i, j]
                        + log_emission[t + 1, j]
                        + log_beta[t + 1, j]
                        - log_likelihood
                    )
    return log_likelihood


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
                predicted[j] = _log_sum(work)
        for j in range(width):
            log_alpha[j] = predicted[j] + log_emission[t, j]
        norm = _log_sum(log_alpha)
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
