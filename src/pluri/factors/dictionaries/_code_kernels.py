# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled sweeps over codes: z and s of each row given the dictionary, atom after atom.

With b = d_k . (x - sum over the other atoms) and q = d_k . d_k, v = 1 / (g_s + g_e q) and m = g_e v b, the weight s
integrated out:

    log odds of z = 1:  logit(pi_k) + log(g_s v) / 2 + m^2 / (2 v);   then s ~ N(m, v) if z = 1

and with s not integrated out: logit(pi_k) - g_e (s^2 q - 2 s b) / 2, then s ~ N(m, v) if z = 1, else N(0, 1 / g_s).

If all rows have the same dictionary and nothing is missing, b of all atoms is kept as ``D r`` for the residual r of the
row: a change of one weight moves it by a column of the Gram matrix D D', so that a row costs K times the number of
weights that change, which are few. Otherwise the residual itself is kept, and a row costs K times its length.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pluri.engine.compiled import compiled


class CodeState(NamedTuple):
    """What a sweep changes: `weights` and `used`, (n_rows, K); and `mean`, (n_rows, K), or (0, K) if it is not wanted.

    To `mean` is added what each code is expected to be just before it is drawn.
    """

    weights: Any
    used: Any
    mean: Any


class CodePrior(NamedTuple):
    """What codes depend on besides data and dictionary.

    `log_odds` is (n_groups, K), `group` (n_rows,), `noise` (n_rows,) the precisions, `weight_precision` and `collapsed`
    are numbers.
    """

    log_odds: Any
    group: Any
    noise: Any
    weight_precision: Any
    collapsed: Any


class Draws(NamedTuple):
    """Uniform and normal random numbers, (n, K) each: row i uses row i modulo n."""

    uniforms: Any
    normals: Any


@compiled(inner=True)
def is_on(log_odds, uniform):
    """Whether a uniform number is below the probability with these log odds.

    expit(x) < 1 / (2 - x + x^2 / 2) for negative x: most atoms are found to be off without an exponential.
    """
    if log_odds < 0.0 and uniform * (2.0 - log_odds + 0.5 * log_odds * log_odds) > 1.0:
        return False
    if log_odds < -700.0:
        return False
    return uniform * (1.0 + math.exp(-log_odds)) < 1.0


@compiled(inner=True)
def expected_code(log_odds, mean):
    """Probability of z = 1 times the mean of s."""
    if log_odds < -700.0:
        return 0.0
    return mean / (1.0 + math.exp(-log_odds))


@compiled(inner=True)
def draw_code(b, q, weight, noise, log_odds, precision, collapsed, uniform, normal):
    """Draw z and s of one atom: (z, s, log odds, m)."""
    v = 1.0 / (precision + noise * q)
    m = noise * v * b
    if collapsed:
        odds = log_odds + 0.5 * (math.log(precision * v) + m * noise * b)
    else:
        odds = log_odds - 0.5 * noise * weight * (weight * q - 2.0 * b)
    if is_on(odds, uniform):
        return 1, m + math.sqrt(v) * normal, odds, m
    if collapsed:
        return 0, 0.0, odds, m
    return 0, normal / math.sqrt(precision), odds, m


@compiled(reorder=True)
def draw_codes_with_gram(correlations, gram, prior, draws, codes):
    """Change codes, and `correlations`: draw those of all rows, which share a dictionary.

    `correlations` comes as X D', (n_rows, K), and leaves as that of the residuals; `gram` is D D'.
    """
    log_odds, group, noise, precision, collapsed = prior
    uniforms, normals = draws
    weights, used, mean = codes
    n_rows, K = weights.shape
    summing = mean.shape[0] > 0
    n_streams = uniforms.shape[0]
    for i in range(n_rows):
        for k in range(K):
            if used[i, k] == 1:
                w = weights[i, k]
                for j in range(K):
                    correlations[i, j] -= w * gram[k, j]
        row, stream = group[i], i % n_streams
        for k in range(K):
            q = gram[k, k]
            old = weights[i, k] if used[i, k] == 1 else 0.0 * q
            b = correlations[i, k] + old * q
            z, s, odds, m = draw_code(
                b, q, weights[i, k], noise[i], log_odds[row, k], precision, collapsed,
                uniforms[stream, k], normals[stream, k],
            )  # fmt: skip
            if summing:
                mean[i, k] += expected_code(odds, m)
            weights[i, k] = s
            used[i, k] = z
            new = weights[i, k] if z == 1 else 0.0 * q
            if new != old:
                change = new - old
                for j in range(K):
                    correlations[i, j] -= change * gram[k, j]


@compiled(reorder=True)
def draw_codes_with_residuals(residuals, dictionaries, observed, prior, draws, codes):
    """Change codes, and `residuals`: draw those of all rows.

    `residuals` comes as X, zero where a value is missing, and leaves as the residuals; `dictionaries` is (n, K, P), of
    which row i has number i modulo n; `observed` is (n_rows, P) of zeros and ones in the type of X.
    """
    log_odds, group, noise, precision, collapsed = prior
    uniforms, normals = draws
    weights, used, mean = codes
    n_rows, K = weights.shape
    summing = mean.shape[0] > 0
    P, n_dictionaries, n_streams = residuals.shape[1], dictionaries.shape[0], uniforms.shape[0]
    for i in range(n_rows):
        which = i % n_dictionaries
        for k in range(K):
            if used[i, k] == 1:
                w = weights[i, k]
                for p in range(P):
                    residuals[i, p] -= w * observed[i, p] * dictionaries[which, k, p]
        row, stream = group[i], i % n_streams
        for k in range(K):
            b = 0.0 * residuals[i, 0]
            q = 0.0 * residuals[i, 0]
            for p in range(P):
                atom = observed[i, p] * dictionaries[which, k, p]
                b += atom * residuals[i, p]
                q += atom * atom
            old = weights[i, k] if used[i, k] == 1 else 0.0 * q
            z, s, odds, m = draw_code(
                b + old * q, q, weights[i, k], noise[i], log_odds[row, k], precision, collapsed,
                uniforms[stream, k], normals[stream, k],
            )  # fmt: skip
            if summing:
                mean[i, k] += expected_code(odds, m)
            weights[i, k] = s
            used[i, k] = z
            new = weights[i, k] if z == 1 else 0.0 * q
            if new != old:
                change = new - old
                for p in range(P):
                    residuals[i, p] -= change * observed[i, p] * dictionaries[which, k, p]


@compiled(reorder=True)
def add_products(weights, used, observed, noise, precision):
    """Change `precision`, (P, K, K): add the sum over rows of ``noise w w'`` to it, for each feature that is there."""
    n_rows, K = weights.shape
    P = observed.shape[1]
    for i in range(n_rows):
        for k in range(K):
            if used[i, k] == 1:
                for j in range(k + 1):
                    if used[i, j] == 1:
                        product = noise[i] * weights[i, k] * weights[i, j]
                        for p in range(P):
                            precision[k, j, p] += product * observed[i, p]
