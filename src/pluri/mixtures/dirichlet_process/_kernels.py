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

from pluri.engine.compiled import compiled

#: The likelihoods, as `Law.kind` names them.
GAUSSIAN, COLUMNS, BINARY, TOKENS, COUNTS = range(5)
#: What is where in a slot; the scale begins D, the triangle 2 D after the center.
SIZE, LOG_SIZE, CONSTANT, POWER, SHRINK, CENTER = range(6)
#: Slots that are not clusters: what a cluster was before it lost a row, and a cluster without rows.
BEFORE, EMPTY, FIRST = range(3)
#: Rows of `seats`: slots in use, where in that list each is, slots to use, and the numbers of the first and the third.
ACTIVE, WHERE, FREE, TALLY = range(4)
#: A downdate that leaves less than this share of a pivot has lost too many digits: factor anew.
SMALLEST_PIVOT = 1e-7
#: Products leave this range, and its inverse, only through a logarithm.
HUGE = 1e120
#: Up to this count a ratio of gamma functions is a product.
FEW = 24


@compiled()
def log_predictive(rows, law, slots, n_features, i, k, work):
    """Log density of row i after the rows of cluster k."""
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


@compiled()
def log_predictive_table(rows, law, slots, n_features, out, work):
    """Log density of every row after the rows of every cluster; out: (n_rows, n_clusters)."""
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = log_predictive(rows, law, slots, n_features, i, k, work)


@compiled()
def settle(law, slots, n_features, k):
    """What follows from the number of rows of cluster k, and from its scales."""
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


@compiled()
def copy(slots, source, target):
    """Put what is in one slot into another."""
    for a in range(slots.shape[1]):
        slots[target, a] = slots[source, a]


@compiled()
def change(rows, law, slots, n_features, i, k, sign, work):
    """Add (sign 1) or remove (sign -1) row i; False if that loses too many digits and the slot must be built anew."""
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


@compiled()
def move(rows, law, slots, n_features, i, source, target, labels, work):
    """Take row i out of cluster `source`, or put it into cluster `target`; -1 is none."""
    k = target if target >= 0 else source
    sign = 1.0 if target >= 0 else -1.0
    labels[i] = target
    if change(rows, law, slots, n_features, i, k, sign, work):
        return
    copy(slots, EMPTY, k)
    for row in range(len(labels)):
        if labels[row] == k:  # only additions, which are always safe
            change(rows, law, slots, n_features, row, k, 1.0, work)


@compiled()
def open_slot(seats):
    """A slot for a new cluster."""
    seats[TALLY, 1] -= 1
    k = seats[FREE, seats[TALLY, 1]]
    seats[WHERE, k] = seats[TALLY, 0]
    seats[ACTIVE, seats[TALLY, 0]] = k
    seats[TALLY, 0] += 1
    return k


@compiled()
def close_slot(seats, k):
    """Give the slot of a cluster back."""
    seats[TALLY, 0] -= 1
    last = seats[ACTIVE, seats[TALLY, 0]]
    seats[ACTIVE, seats[WHERE, k]] = last
    seats[WHERE, last] = seats[WHERE, k]
    seats[FREE, seats[TALLY, 1]] = k
    seats[TALLY, 1] += 1


@compiled()
def choose(weights, n, uniform):
    """Draw a number below n in proportion to exp(weights), which are overwritten."""
    largest = -math.inf
    for k in range(n):
        largest = max(largest, weights[k])
    total = 0.0
    for k in range(n):
        total += math.exp(weights[k] - largest)
        weights[k] = total
    threshold = uniform * total
    k = 0
    while k < n - 1 and weights[k] <= threshold:
        k += 1
    return k


@compiled()
def sweep_rows(rows, law, slots, n_features, seats, labels, order, uniforms, log_alpha, log_new, begin, weights, work):
    """Draw the cluster of each row given the others; rows labelled -1 are not in any yet.

    Gives the place in `order` where it stopped for want of slots, or its length.
    """
    for t in range(begin, len(order)):
        if seats[TALLY, 1] < 1:
            return t
        i = order[t]
        old = labels[i]
        if old >= 0 and slots[old, SIZE] == 1.0:
            close_slot(seats, old)
            old = -1
        elif old >= 0:
            if law.kind <= BINARY:
                copy(slots, old, BEFORE)
            move(rows, law, slots, n_features, i, old, -1, labels, work)
        n = seats[TALLY, 0]
        for a in range(n):
            k = seats[ACTIVE, a]
            weights[a] = slots[k, LOG_SIZE] + log_predictive(rows, law, slots, n_features, i, k, work)
        weights[n] = log_alpha + log_new[i]
        chosen = choose(weights, n + 1, uniforms[t])
        if chosen == n:
            k = open_slot(seats)
            copy(slots, EMPTY, k)
        else:
            k = seats[ACTIVE, chosen]
        if k == old and law.kind <= BINARY:  # as it was: no rounding, no work
            copy(slots, BEFORE, k)
            labels[i] = k
        else:
            move(rows, law, slots, n_features, i, -1, k, labels, work)
    return len(order)


@compiled()
def log_marginal(rows, law, slots, n_features, k, members, labels, work):
    """Log density of the members that have the label k, which are put into slot k."""
    copy(slots, EMPTY, k)
    total = 0.0
    for row in members:
        if labels[row] == k:
            total += log_predictive(rows, law, slots, n_features, row, k, work)
            change(rows, law, slots, n_features, row, k, 1.0, work)
    return total


@compiled()
def split_or_merge(rows, law, slots, n_features, seats, labels, members, before, uniforms, log_alpha, n_scans, work):
    """Propose to split the cluster of the first two members, or to merge their two; three slots are free.

    Members are all rows of these clusters, the first two chosen at random, the others in random order; `before` are
    their labels. The others are put on the side of the first or of the second one after another, and then `n_scans`
    times by Gibbs steps that know these two sides only. The last pass is the proposal; all before it does not look at
    where they are now, so a merge is weighed by the probability that the pass leads back.
    """
    own, other = before[0], before[1]
    merge = own != other
    a, b, whole = open_slot(seats), open_slot(seats), open_slot(seats)
    n = len(members)
    for t in range(n):
        labels[members[t]] = whole
    log_together = log_marginal(rows, law, slots, n_features, whole, members, labels, work)
    log_threshold = math.log(uniforms[n_scans + 1, 0])
    log_proposal, log_apart = 0.0, 0.0
    for scan in range(-1, n_scans + 2):
        # Before the scans of a merge and after those of a split: the density of the two sides.
        if scan == (-1 if merge else n_scans + 1):
            if merge:
                for t in range(n):
                    labels[members[t]] = a if before[t] == own else b
            log_apart = log_marginal(rows, law, slots, n_features, a, members, labels, work)
            log_apart += log_marginal(rows, law, slots, n_features, b, members, labels, work)
            log_apart += log_alpha + math.lgamma(slots[a, SIZE]) + math.lgamma(slots[b, SIZE])
            log_apart -= math.lgamma(float(n))
            # The way back is at most certain: most merges are refused without finding out how likely it is.
            if merge and log_threshold >= log_together - log_apart:
                break
        if scan < 0:
            copy(slots, EMPTY, a)
            copy(slots, EMPTY, b)
        if scan < 0 or scan > n_scans:
            continue
        last = scan == n_scans
        for t in range(2 if scan > 0 else 0, n):
            row = members[t]
            first = t == 0
            if t > 1:
                if scan > 0:
                    move(rows, law, slots, n_features, row, labels[row], -1, labels, work)
                gap = slots[b, LOG_SIZE] + log_predictive(rows, law, slots, n_features, row, b, work)
                gap -= slots[a, LOG_SIZE] + log_predictive(rows, law, slots, n_features, row, a, work)
                # log of 1 / (1 + exp(gap)), which must not overflow
                log_first = -math.log1p(math.exp(-abs(gap))) - max(gap, 0.0)
                if merge and last:
                    first = before[t] == own
                else:
                    first = math.log(uniforms[scan, t]) < log_first
                if last:
                    log_proposal += log_first if first else log_first + gap
            move(rows, law, slots, n_features, row, -1, a if first else b, labels, work)
    log_accept = log_together - log_apart + log_proposal
    accept = log_threshold < (log_accept if merge else -log_accept)
    if accept and merge:
        for t in range(n):
            labels[members[t]] = whole
        close_slot(seats, other)
    elif not accept:
        for t in range(n):
            labels[members[t]] = before[t]
    if accept:
        close_slot(seats, own)
    if merge or not accept:
        close_slot(seats, a)
        close_slot(seats, b)
    if not (accept and merge):
        close_slot(seats, whole)
    return accept
