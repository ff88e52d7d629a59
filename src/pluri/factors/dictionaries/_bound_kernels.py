# mypy: allow-untyped-defs, allow-untyped-calls
"""A lower bound of the log density of a row given a dictionary, by compiled coordinate ascent.

With q(z_k = 1) = t and q(s_k | z_k = 1) = N(m, v), independent, and the notation of `_code_kernels`, the bound is
highest in the factor of one atom where v = 1 / (g_s + g_e q), m = g_e v b, and

    logit t = logit(pi_k) + log(g_s v) / 2 + m^2 / (2 v),

b being that of the residual ``x - sum over the other atoms of t m d``. The bound itself is

    n (log g_e - log 2 pi) / 2 - g_e (|x - sum t m d|^2 + sum q (t (m^2 + v) - t^2 m^2)) / 2
    - sum KL(t || pi) - sum t KL(N(m, v) || N(0, 1 / g_s))
"""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled

#: Ascents end when no t m changes by more than this, or after so many passes; rows have unit size.
SMALLEST_CHANGE, MOST_PASSES = 1e-6, 200


@compiled(inner=True)
def log_expit(x):
    """log(1 / (1 + exp(-x)))."""
    return -math.log1p(math.exp(-x)) if x > 0.0 else x - math.log1p(math.exp(x))


@compiled(inner=True)
def divergence(log_odds, prior_log_odds, m, v, precision):
    """KL divergence of the factor of one atom from its prior."""
    log_on, log_off = log_expit(log_odds), log_expit(-log_odds)
    t = math.exp(log_on)
    total = t * (log_on - log_expit(prior_log_odds)) + (1.0 - t) * (log_off - log_expit(-prior_log_odds))
    return total + 0.5 * t * (precision * (m * m + v) - 1.0 - math.log(precision * v))


@compiled(reorder=True)
def bound_rows(residuals, components, observed, log_odds, noise, precision, work, bounds):
    """Change `residuals`, `work` and `bounds`: lower bounds of the log density of each row.

    `residuals` comes as X, zero where a value is missing; `components` is (K, P), `observed` (n_rows, P) of zeros and
    ones, `log_odds` (K,); `noise` and `precision` are numbers; `work` is (K, 3).
    """
    n_rows, P = residuals.shape
    K = components.shape[0]
    for i in range(n_rows):
        for k in range(K):
            q = 0.0
            for p in range(P):
                q += observed[i, p] * components[k, p] * components[k, p]
            work[k, 0] = 0.0
            work[k, 1] = q
        for _ in range(MOST_PASSES):
            largest = 0.0
            for k in range(K):
                b = 0.0
                for p in range(P):
                    b += components[k, p] * residuals[i, p]
                old, q = work[k, 0], work[k, 1]
                v = 1.0 / (precision + noise * q)
                m = noise * v * (b + old * q)
                odds = log_odds[k] + 0.5 * (math.log(precision * v) + m * m / v)
                change = m * math.exp(log_expit(odds)) - old
                work[k, 0] = old + change
                work[k, 2] = odds
                largest = max(largest, abs(change))
                if change != 0.0:
                    for p in range(P):
                        residuals[i, p] -= change * observed[i, p] * components[k, p]
            if largest < SMALLEST_CHANGE:
                break
        left = 0.0
        n_observed = 0.0
        for p in range(P):
            left += residuals[i, p] * residuals[i, p]
            n_observed += observed[i, p]
        total = 0.5 * n_observed * math.log(noise / (2.0 * math.pi))
        for k in range(K):
            code, q, odds = work[k, 0], work[k, 1], work[k, 2]
            t = math.exp(log_expit(odds))
            v = 1.0 / (precision + noise * q)
            m = code / t if t > 0.0 else 0.0
            left += q * (code * m + t * v - code * code)
            total -= divergence(odds, log_odds[k], m, v, precision)
        bounds[i] = total - 0.5 * noise * left
