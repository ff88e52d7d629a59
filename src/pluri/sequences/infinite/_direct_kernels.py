# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled sweep of the direct-assignment sampler: one new state for every step, parameters integrated out.

With all counts taken without step t, j its predecessor (or the row of first steps) and l its successor, state k has
the probability, up to a factor,

    (n_jk + c w_jk) (n_kl + c w_kl + 1[j = k = l]) / (n_k. + c + 1[j = k]) p(x_t | rows of k),

where ``w_jk = (1 - rho) beta_k + rho 1[j = k]`` (``beta_k`` in the row of first steps), and a new state
``c w_j,new (1 - rho) beta_l p(x_t)``. What a state has emitted is a row of `number`, `first` and `second`:

* regression (Gaussian rows too): ``M = prior + sum zz'`` and its Cholesky factor, whose corners are the posterior;
* independent Gaussian columns: sums and sums of squares from the prior mean; counts: sums; symbols: their counts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

#: Kinds of likelihood.
REGRESSION, COLUMNS, COUNTS, SYMBOLS = range(4)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

loop = compiled(allocates=False)


class Rows(NamedTuple):
    """Data (n_steps, width), NaN where missing, and their prior.

    `kind`; `n_predictors` of a regression; `a`, `b`: degrees of freedom, or strength and shape of Gaussian columns;
    `first`, `second`: the prior's matrix; rates; shapes and rates of counts; concentrations of symbols and their sums;
    `start`: where the symbols of each column begin.
    """

    values: Array
    kind: int
    n_predictors: int
    a: float
    b: float
    first: Array
    second: Array
    start: Integers


class Emitted(NamedTuple):
    """What states have emitted; the last row is that of a state without steps."""

    number: Array
    first: Array
    second: Array


class Paths(NamedTuple):
    """States of all steps, and what follows from them.

    `labels` (n_steps,); `counts` (n_slots + 1, n_slots), first steps last; `departures`, `sizes`, `weights` (n_slots,);
    `rest` (1,): of the stick; `offsets`; `uniforms` (n_steps, 2).
    """

    labels: Integers
    counts: Array
    departures: Array
    sizes: Integers
    weights: Array
    rest: Array
    offsets: Integers
    uniforms: Array


@loop
def log_predictive(rows, emitted, t, k, work):
    """Log density of step t after what state k has emitted, up to what no state changes."""
    values = rows.values
    width = values.shape[1]
    if rows.kind == REGRESSION:
        if math.isnan(values[t, width - 1]) or math.isnan(values[t, rows.n_predictors - 1]):
            return 0.0
        in_p, in_y, log_root = 0.0, 0.0, 0.0
        for i in range(width):
            value = values[t, i]
            for j in range(i):
                value -= emitted.second[k, i * width + j] * work[j]
            pivot = emitted.second[k, i * width + i]
            value /= pivot
            work[i] = value
            if i < rows.n_predictors:
                in_p += value * value
            else:
                in_y += value * value
                log_root += math.log(pivot)
        d = width - rows.n_predictors
        df = rows.a + emitted.number[k, 0]
        constant = math.lgamma(0.5 * (df + 1.0)) - math.lgamma(0.5 * (df - d + 1.0)) - log_root
        return constant - 0.5 * d * math.log1p(in_p) - 0.5 * (df + 1.0) * math.log1p(in_y / (1.0 + in_p))
    total = 0.0
    for f in range(width):
        x = values[t, f]
        if math.isnan(x):
            continue
        n = emitted.number[k, f]
        if rows.kind == SYMBOLS:
            place = rows.start[f] + int(x)
            total += math.log((rows.first[place] + emitted.first[k, place]) / (rows.second[f] + n))
        elif rows.kind == COUNTS:
            shape, rate = rows.first[f] + emitted.first[k, f], rows.second[f] + n
            total += math.lgamma(shape + x) - math.lgamma(shape)
            total -= shape * math.log1p(1.0 / rate) + x * math.log1p(rate)
        else:
            strength = rows.a + n
            shape = rows.b + 0.5 * n
            center = emitted.first[k, f] / strength
            rate = rows.first[f] + 0.5 * (emitted.second[k, f] - strength * center * center)
            spread = 2.0 * rate * (strength + 1.0) / strength
            total += math.lgamma(shape + 0.5) - math.lgamma(shape) - 0.5 * math.log(spread)
            total -= (shape + 0.5) * math.log1p((x - center) * (x - center) / spread)
    return total


@loop
def change(rows, emitted, t, k, sign):
    """Change `emitted`: step t comes to state k (sign 1) or leaves it (sign -1)."""
    values = rows.values
    width = values.shape[1]
    if rows.kind == REGRESSION:
        if math.isnan(values[t, width - 1]) or math.isnan(values[t, rows.n_predictors - 1]):
            return
        emitted.number[k, 0] += sign
        for i in range(width):
            for j in range(i + 1):
                emitted.first[k, i * width + j] += sign * values[t, i] * values[t, j]
        factor(emitted, k, width)
        return
    for f in range(width):
        x = values[t, f]
        if math.isnan(x):
            continue
        emitted.number[k, f] += sign
        if rows.kind == SYMBOLS:
            emitted.first[k, rows.start[f] + int(x)] += sign
        else:
            emitted.first[k, f] += sign * x
            if rows.kind == COLUMNS:
                emitted.second[k, f] += sign * x * x


@loop
def fill(rows, emitted, labels):
    """Change `emitted`: every step comes to its state."""
    for t in range(labels.shape[0]):
        change(rows, emitted, t, labels[t], 1.0)


@loop
def factor(emitted, k, width):
    """Change `emitted.second`: the Cholesky factor of the lower half of `emitted.first`, of state k."""
    matrix = emitted.first
    lower = emitted.second
    for i in range(width):
        for j in range(i + 1):
            value = matrix[k, i * width + j]
            for m in range(j):
                value -= lower[k, i * width + m] * lower[k, j * width + m]
            if i == j:
                lower[k, i * width + i] = math.sqrt(max(value, 1e-14 * matrix[k, i * width + i]))
            else:
                lower[k, i * width + j] = value / lower[k, j * width + j]


@loop
def resample_states(rows, emitted, paths, hyper, first, work, weights):
    """Change `emitted` and `paths`: a new state for every step from `first` on.

    `hyper` is (c, gamma, rho); `work` and `weights` are scratch. Returns the step before which there was no slot left
    for a new state, or the number of steps.
    """
    labels, counts, sizes, beta = paths.labels, paths.counts, paths.sizes, paths.weights
    offsets = paths.offsets
    c, gamma, rho = hyper[0], hyper[1], hyper[2]
    n_slots = sizes.shape[0]
    for n in range(offsets.shape[0] - 1):
        for t in range(max(offsets[n], first), offsets[n + 1]):
            empty = -1
            for k in range(n_slots):
                if sizes[k] == 0:
                    empty = k
                    break
            before = labels[t - 1] if t > offsets[n] else n_slots
            after = labels[t + 1] if t + 1 < offsets[n + 1] else -1
            old = labels[t]
            if empty < 0 and sizes[old] > 1:
                return t
            counts[before, old] -= 1.0
            if after >= 0:
                counts[old, after] -= 1.0
                paths.departures[old] -= 1.0
            change(rows, emitted, t, old, -1.0)
            sizes[old] -= 1
            if sizes[old] == 0:
                paths.rest[0] += beta[old]
                beta[old] = 0.0
                empty = old
            share = 1.0 if before == n_slots else 1.0 - rho
            largest = -math.inf
            for k in range(n_slots):
                weights[k] = -math.inf
                if sizes[k] == 0 and k != empty:
                    continue
                chance = c * share * (paths.rest[0] if k == empty else beta[k]) + counts[before, k]
                if before == k and k != empty:
                    chance += c * rho
                if after >= 0:
                    onward = counts[k, after] + c * (1.0 - rho) * beta[after]
                    if k == after and k != empty:
                        onward += c * rho
                        if before == k:
                            onward += 1.0
                    chance *= onward / (paths.departures[k] + c)  # among them still that of the step before
                source = n_slots if k == empty else k
                weights[k] = math.log(max(chance, 1e-300)) + log_predictive(rows, emitted, t, source, work)
                largest = max(largest, weights[k])
            total = 0.0
            for k in range(n_slots):
                weights[k] = math.exp(weights[k] - largest)
                total += weights[k]
            threshold = paths.uniforms[t, 0] * total
            new = empty
            running = 0.0
            for k in range(n_slots):
                if weights[k] > 0.0:
                    new = k
                    running += weights[k]
                    if running > threshold:
                        break
            if new == empty:
                kept = math.exp(math.log(max(1.0 - paths.uniforms[t, 1], 1e-300)) / gamma)  # 1 - Beta(1, gamma)
                beta[new] = (1.0 - kept) * paths.rest[0]
                paths.rest[0] *= kept
                clear(emitted, new, n_slots)
            labels[t] = new
            counts[before, new] += 1.0
            if after >= 0:
                counts[new, after] += 1.0
                paths.departures[new] += 1.0
            sizes[new] += 1
            change(rows, emitted, t, new, 1.0)
    return labels.shape[0]


@loop
def clear(emitted, k, source):
    """Change `emitted`: state k becomes as `source`, a state without steps."""
    for i in range(emitted.number.shape[1]):
        emitted.number[k, i] = emitted.number[source, i]
    for i in range(emitted.first.shape[1]):
        emitted.first[k, i] = emitted.first[source, i]
    for i in range(emitted.second.shape[1]):
        emitted.second[k, i] = emitted.second[source, i]
