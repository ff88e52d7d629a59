# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled loops of mixtures of experts: drawing labels and coefficients, and mixtures of many normals.

The weight of expert k at a row is  w_k = Phi(e_k) prod_{j<k} Phi(-e_j),  with e the predictors of the sticks; the last
expert takes what is left.
"""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled
from pluri.processes._stick_kernels import HALF_ROOT, LOG_ROOT, log_lower_tail

#: Experts whose share of a row is below exp(-40) of the best cannot be drawn in any number of draws that one makes.
NEGLIGIBLE = -40.0


@compiled()
def assign_labels(predictors, means, y, log_norms, precisions, ceilings, uniforms, labels, work):
    """Draw the expert of every row into `labels`; returns the log density of y with labels summed out.

    `predictors` (n, K - 1), `means` (n, K); `log_norms` (K,) are the logs of the greatest values of the experts'
    densities, `ceilings` (K,) the greatest of those from each expert on; `work` (K,).
    """
    n_rows, n_experts = means.shape
    total_log = 0.0
    for i in range(n_rows):
        log_left = 0.0
        highest = -math.inf
        seen = 0
        for k in range(n_experts):
            if log_left + ceilings[k] < highest + NEGLIGIBLE:
                break
            log_weight = log_left
            if k < n_experts - 1:
                e = predictors[i, k]
                small = log_lower_tail(-abs(e))
                large = math.log1p(-math.exp(small))
                log_weight += large if e > 0.0 else small
                log_left += small if e > 0.0 else large
            away = y[i] - means[i, k]
            work[k] = log_weight + log_norms[k] - 0.5 * precisions[k] * away * away
            highest = max(highest, work[k])
            seen = k + 1
        total = 0.0
        for k in range(seen):
            work[k] = math.exp(work[k] - highest)
            total += work[k]
        threshold = uniforms[i] * total
        chosen = 0
        cumulative = work[0]
        while cumulative <= threshold and chosen < seen - 1:
            chosen += 1
            cumulative += work[chosen]
        labels[i] = chosen
        total_log += highest + math.log(total)
    return total_log


@compiled()
def draw_from_normal(precision, shift, noise, out):
    """Draw from N(P^-1 b, P^-1) into `out`; `precision` (only its lower half is read) and `shift` are overwritten."""
    p = len(shift)
    for i in range(p):
        for j in range(i + 1):
            total = precision[i, j]
            for m in range(j):
                total -= precision[i, m] * precision[j, m]
            precision[i, j] = math.sqrt(total) if i == j else total / precision[j, j]
    for i in range(p):
        total = shift[i]
        for m in range(i):
            total -= precision[i, m] * shift[m]
        shift[i] = total / precision[i, i]
    for i in range(p - 1, -1, -1):
        total = shift[i] + noise[i]
        for m in range(i + 1, p):
            total -= precision[m, i] * out[m]
        out[i] = total / precision[i, i]


@compiled()
def draw_coefficients(design, response, rows, owners, scale, precisions, noise, products, shifts, out):
    """Draw the coefficients of several regressions with independent normal priors of mean 0 and sd `scale`.

    Entry t says that row `rows[t]` of `design` (n, p) takes part in regression `owners[t]` with `response[t]`, which
    has precision `precisions[owners[t]]`. `products` (K, p, p) and `shifts` (K, p) are room to work in.
    """
    n_regressions, p = out.shape
    # In units of the prior sd, a scale of 0 simply fixes a coefficient.
    for k in range(n_regressions):
        for a in range(p):
            shifts[k, a] = 0.0
            for b in range(a + 1):
                products[k, a, b] = 1.0 if a == b else 0.0
    for t in range(len(rows)):
        i, k = rows[t], owners[t]
        for a in range(p):
            weighted = precisions[k] * scale[a] * design[i, a]
            shifts[k, a] += weighted * response[t]
            for b in range(a + 1):
                products[k, a, b] += weighted * scale[b] * design[i, b]
    for k in range(n_regressions):
        draw_from_normal(products[k], shifts[k], noise[k], out[k])
        for a in range(p):
            out[k, a] *= scale[a]


@compiled()
def mixture_densities(weights, means, deviations, values, out):
    """Density of a mixture of normals for each row: `weights`, `means` (n, m), `deviations` (m,), `values` (n, g)."""
    n_rows, n_parts = weights.shape
    for i in range(n_rows):
        for g in range(values.shape[1]):
            out[i, g] = 0.0
        for j in range(n_parts):
            factor = weights[i, j] / deviations[j]
            if factor > 0.0:
                for g in range(values.shape[1]):
                    away = (values[i, g] - means[i, j]) / deviations[j]
                    out[i, g] += factor * math.exp(-0.5 * away * away - LOG_ROOT)


@compiled()
def mixture_quantiles(weights, means, deviations, levels, out):
    """Quantiles of a mixture of normals for each row, by Newton's method inside a bracket; `out` (n, n_levels).

    Parts of a weight below 1e-12 are left out.
    """
    n_rows, n_parts = weights.shape
    for i in range(n_rows):
        kept = 0.0
        centre = 0.0
        lowest, highest = math.inf, -math.inf
        for j in range(n_parts):
            if weights[i, j] > 1e-12:
                kept += weights[i, j]
                centre += weights[i, j] * means[i, j]
                lowest = min(lowest, means[i, j] - 9.0 * deviations[j])
                highest = max(highest, means[i, j] + 9.0 * deviations[j])
        for q in range(len(levels)):
            low, high = lowest, highest
            value = min(max(centre / kept, low), high)
            for _ in range(200):
                below = 0.0
                slope = 0.0
                for j in range(n_parts):
                    if weights[i, j] > 1e-12:
                        away = (value - means[i, j]) / deviations[j]
                        below += weights[i, j] * 0.5 * math.erfc(-away * HALF_ROOT)
                        slope += weights[i, j] / deviations[j] * math.exp(-0.5 * away * away - LOG_ROOT)
                gap = below / kept - levels[q]
                if gap > 0.0:
                    high = value
                else:
                    low = value
                step = -gap * kept / slope if slope > 0.0 else math.inf
                if not low < value + step < high:
                    step = 0.5 * (low + high) - value
                value += step
                if abs(step) <= 1e-10 * (abs(value) + highest - lowest):
                    break
            out[i, q] = value
