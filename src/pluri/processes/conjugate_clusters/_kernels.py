# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over rows and clusters whose parameters are integrated out.

A cluster is one row of the array `slots`: its number of rows and four numbers that follow from it, then a center and a
scale for each of D columns, then a triangle for a Gaussian. They are what the predictive density of a row needs, and
are kept up to date when rows come and go:

* Gaussian: center m, the posterior mean; the triangle is the Cholesky factor L of the scatter S, the scale one over its
  diagonal. ``S +- k / (k +- 1) (x - m)(x - m)'`` changes L in O(D^2).
* independent Gaussian columns: means and rates;
* zeros and ones: ``a + heads`` and ``b + tails``; tokens: ``alpha + counts``; counts: ``shape + total``, ``rate + n``.

Products of many factors are taken before their logarithm, as long as they neither overflow nor underflow. A slot is one
row, rather than an entry of many arrays, because that halves the time to compile.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

#: The likelihoods, as `Law.kind` names them.
GAUSSIAN, COLUMNS, BINARY, TOKENS, COUNTS = range(5)
#: What is where in a slot; the scale begins D, the triangle 2 D after the center.
SIZE, LOG_SIZE, CONSTANT, POWER, SHRINK, CENTER = range(6)
#: Slots that are not clusters: what a cluster was before it lost a row, and a cluster without rows.
BEFORE, EMPTY, FIRST = range(3)
#: A downdate that leaves less than this share of a pivot has lost too many digits: factor anew.
SMALLEST_PIVOT = 1e-7
#: Products leave this range, and its inverse, only through a logarithm.
HUGE = 1e120
#: Up to this count a ratio of gamma functions is a product.
FEW = 24

#: Nothing here allocates: without counts of references, reading an array from a record costs nothing.
loop = compiled(allocates=False)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Rows(NamedTuple):
    """Data: dense and from the prior mean for Gaussian likelihoods, otherwise the entries of a CSR matrix."""

    dense: Array
    start: Integers
    column: Integers
    value: Array
    total: Array


class Law(NamedTuple):
    """A likelihood: `table` has what depends on the number of rows of a cluster only."""

    kind: int
    strength: float
    freedom: float
    table: Array


class Clusters(NamedTuple):
    """Rows, their likelihood, and the slots of clusters; `work` (D,) is room for a row."""

    rows: Rows
    law: Law
    slots: Array
    work: Array


@loop
def log_predictive(rows, law, slots, i, k, work):
    """Log density of row i after the rows of cluster k."""
    n_features = len(work)
    scale = CENTER + n_features
    total, product = 0.0, 1.0
    if law.kind == GAUSSIAN:
        at = scale + n_features
        for a in range(n_features):
            value = rows.dense[i, a] - slots[k, CENTER + a]
            for b in range(a):
                value -= slots[k, at + b] * work[b]
            at += a + 1
            value *= slots[k, scale + a]
            work[a] = value
            total += value * value
        return slots[k, CONSTANT] - slots[k, POWER] * math.log1p(slots[k, SHRINK] * total)
    if law.kind == COLUMNS:
        for a in range(n_features):
            value = rows.dense[i, a] - slots[k, CENTER + a]
            product *= 1.0 + slots[k, SHRINK] * value * value / slots[k, scale + a]
            if product > HUGE:
                total += math.log(product)
                product = 1.0
        return slots[k, CONSTANT] - slots[k, POWER] * (total + math.log(product))
    for at in range(rows.start[i], rows.start[i + 1]):
        d, x = rows.column[at], rows.value[at]
        center, by = slots[k, CENTER + d], 1.0
        if law.kind == BINARY:
            by = 1.0 / slots[k, scale + d]
        elif law.kind == COUNTS:
            by = 1.0 / (1.0 + slots[k, scale + d])
        if x <= FEW:
            for j in range(int(x)):
                product *= (center + j) * by
                if product > HUGE or product < 1.0 / HUGE:
                    total += math.log(product)
                    product = 1.0
        else:
            total += math.lgamma(center + x) - math.lgamma(center) + x * math.log(by)
    total += math.log(product)
    if law.kind == TOKENS:
        tokens = slots[k, POWER]
        return total + math.lgamma(tokens) - math.lgamma(tokens + rows.total[i])
    return total + slots[k, CONSTANT]


@loop
def log_predictive_table(clusters, out):
    """Write the log density of every row after the rows of every cluster; out: (n_rows, n_clusters)."""
    rows, law, slots, work = clusters.rows, clusters.law, clusters.slots, clusters.work
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = log_predictive(rows, law, slots, i, k, work)


@loop
def settle(law, slots, n_features, k):
    """Write what follows from the number of rows of cluster k, and from its scales."""
    size = slots[k, SIZE]
    n = int(size)
    slots[k, LOG_SIZE] = math.log(size) if n > 0 else -math.inf
    if law.kind == TOKENS:
        return
    scale = CENTER + n_features
    if law.kind == COUNTS:
        if law.freedom > 0.0:  # one rate for all columns
            slots[k, CONSTANT] = -slots[k, POWER] * law.table[n]
            return
        total = 0.0
        for d in range(n_features):
            total += slots[k, CENTER + d] * math.log1p(1.0 / slots[k, scale + d])
        slots[k, CONSTANT] = -total
        return
    logs, product = 0.0, 1.0
    for d in range(n_features):
        product *= slots[k, scale + d]
        if product > HUGE or product < 1.0 / HUGE:
            logs += math.log(product)
            product = 1.0
    logs += math.log(product)
    if law.kind == BINARY:
        slots[k, CONSTANT] = logs - law.table[n]
        return
    strength = law.strength + size
    half = 1.0 if law.kind == GAUSSIAN else 0.5
    slots[k, SHRINK] = half * strength / (strength + 1.0)
    slots[k, CONSTANT] = law.table[n] + (logs if law.kind == GAUSSIAN else -0.5 * logs)
    slots[k, POWER] = 0.5 * (law.freedom + size + 1.0)


@loop
def copy(slots, source, target):
    """Put what is in one slot into another."""
    for a in range(slots.shape[1]):
        slots[target, a] = slots[source, a]


@loop
def change(rows, law, slots, i, k, sign, work):
    """Add (sign 1) or remove (sign -1) row i of cluster k; False if that loses too many digits: build the slot anew."""
    n_features = len(work)
    scale = CENTER + n_features
    slots[k, SIZE] += sign
    if law.kind <= COLUMNS:
        strength = law.strength + slots[k, SIZE]
        ratio = (strength - sign) / strength
        root = math.sqrt(ratio)
        for d in range(n_features):
            gap = rows.dense[i, d] - slots[k, CENTER + d]
            slots[k, CENTER + d] += sign * gap / strength
            work[d] = gap * root
    if law.kind == GAUSSIAN:
        corner = scale + n_features
        for a in range(n_features):
            corner += a
            at = corner + a
            pivot = slots[k, at]
            squared = pivot * pivot + sign * work[a] * work[a]
            if squared < SMALLEST_PIVOT * pivot * pivot:
                return False
            new = math.sqrt(squared)
            cosine, sine = new / pivot, work[a] / pivot
            slots[k, at] = new
            slots[k, scale + a] = 1.0 / new
            for b in range(a + 1, n_features):
                at += b
                value = (slots[k, at] + sign * sine * work[b]) / cosine
                work[b] = cosine * work[b] - sine * value
                slots[k, at] = value
    elif law.kind == COLUMNS:
        for d in range(n_features):
            before = slots[k, scale + d]
            after = before + 0.5 * sign * work[d] * work[d]
            if after < SMALLEST_PIVOT * before:
                return False
            slots[k, scale + d] = after
    else:
        if law.kind != TOKENS:
            for d in range(n_features):
                slots[k, scale + d] += sign
        for at in range(rows.start[i], rows.start[i + 1]):
            d, x = rows.column[at], rows.value[at]
            slots[k, CENTER + d] += sign * x
            if law.kind == BINARY:
                slots[k, scale + d] -= sign * x
        if law.kind != BINARY:
            slots[k, POWER] += sign * rows.total[i]
    settle(law, slots, n_features, k)
    return True
