# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loop of the E-step: from joint log densities to responsibilities, in place."""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled

#: A component whose share of a row is below exp(-60) = 9e-27 gets none of it: less than rounding takes from the others.
CUTOFF = 60.0


@compiled(allocates=False)
def responsibilities(log_prob, log_weights, weight, scores):
    """Turn log p(x_t | j) into weight_t P(j | x_t), in place; scores_t becomes log sum_j exp(log_weights_j) p(x_t | j).

    Columns beyond the length of `log_weights` become 0. Returns the index of the first row with a positive weight whose
    score is not finite, or -1; such rows get no responsibilities.
    """
    bad = -1
    k, width = log_weights.shape[0], log_prob.shape[1]
    for t in range(log_prob.shape[0]):
        row = log_prob[t]
        largest = -np.inf
        for j in range(k):
            row[j] += log_weights[j]
            if row[j] > largest or np.isnan(row[j]):
                largest = row[j]
        if not np.isfinite(largest):
            scores[t] = largest
            for j in range(width):
                row[j] = 0.0
            if weight[t] > 0.0 and bad < 0:
                bad = t
            continue
        total = 0.0
        for j in range(k):
            difference = row[j] - largest
            row[j] = math.exp(difference) if difference > -CUTOFF else 0.0
            total += row[j]
        scores[t] = largest + math.log(total)
        share = weight[t] / total
        for j in range(k):
            row[j] *= share
        for j in range(k, width):
            row[j] = 0.0
    return bad
