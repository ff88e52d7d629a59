# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled functions of sticks that are broken at normal probabilities; see `pluri.processes.stick_draws`."""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled

HALF_ROOT = math.sqrt(0.5)
LOG_ROOT = 0.5 * math.log(2.0 * math.pi)


@compiled()
def log_lower_tail(x):
    """Log of the normal distribution function at x, for x of at most 0."""
    if x > -37.0:
        return math.log(0.5 * math.erfc(-x * HALF_ROOT))
    square = 1.0 / (x * x)
    return -0.5 * x * x - LOG_ROOT - math.log(-x) + math.log1p(-square * (1.0 - 3.0 * square * (1.0 - 5.0 * square)))


@compiled()
def exchange_neighbours(predictors, labels, counts, uniforms, order):
    """Let neighbouring sticks, with all that belongs to them, change places; `labels`, `counts`, `order` in place.

    Rows of the one that moves back now have to pass the other: the ratio of the densities is
    prod_{i in k} Phi(-e_{k+1}) / prod_{i in k+1} Phi(-e_k). The last expert has no stick and stays.
    """
    for k in range(predictors.shape[1] - 1):
        if counts[k] + counts[k + 1] == 0:
            continue
        here, there = order[k], order[k + 1]
        log_ratio = 0.0
        for i in range(len(labels)):
            if labels[i] == k or labels[i] == k + 1:
                e = predictors[i, there] if labels[i] == k else predictors[i, here]
                passed = log_lower_tail(-e) if e > 0.0 else math.log1p(-math.exp(log_lower_tail(e)))
                log_ratio += passed if labels[i] == k else -passed
        if math.log(uniforms[k]) < log_ratio:
            order[k], order[k + 1] = there, here
            counts[k], counts[k + 1] = counts[k + 1], counts[k]
            for i in range(len(labels)):
                if labels[i] == k:
                    labels[i] = k + 1
                elif labels[i] == k + 1:
                    labels[i] = k
