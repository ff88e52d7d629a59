# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled moves of rows between clusters that open and close: one row at a time, or by splits and merges."""

from __future__ import annotations

import math

from pluri.processes.conjugate_clusters._kernels import (
    BEFORE,
    BINARY,
    EMPTY,
    LOG_SIZE,
    SIZE,
    change,
    copy,
    log_predictive,
    loop,
)

#: Rows of `seats`: slots in use, where in that list each is, slots to use, and the numbers of the first and the third.
ACTIVE, WHERE, FREE, TALLY = range(4)


@loop
def move(rows, law, slots, labels, i, source, target, work):
    """Take row i out of cluster `source`, or put it into cluster `target`; -1 is none."""
    k = target if target >= 0 else source
    sign = 1.0 if target >= 0 else -1.0
    labels[i] = target
    if change(rows, law, slots, i, k, sign, work):
        return
    copy(slots, EMPTY, k)
    for row in range(len(labels)):
        if labels[row] == k:  # only additions, which are always safe
            change(rows, law, slots, row, k, 1.0, work)


@loop
def open_slot(seats):
    """A slot for a new cluster."""
    seats[TALLY, 1] -= 1
    k = seats[FREE, seats[TALLY, 1]]
    seats[WHERE, k] = seats[TALLY, 0]
    seats[ACTIVE, seats[TALLY, 0]] = k
    seats[TALLY, 0] += 1
    return k


@loop
def close_slot(seats, k):
    """Give the slot of a cluster back."""
    seats[TALLY, 0] -= 1
    last = seats[ACTIVE, seats[TALLY, 0]]
    seats[ACTIVE, seats[WHERE, k]] = last
    seats[WHERE, last] = seats[WHERE, k]
    seats[FREE, seats[TALLY, 1]] = k
    seats[TALLY, 1] += 1


@loop
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


@loop
def sweep_rows(clusters, seats, labels, order, uniforms, log_alpha, log_new, begin, weights):
    """Draw the cluster of each row given the others, in place; rows labelled -1 are not in any yet.

    Gives the place in `order` where it stopped for want of slots, or its length. `weights` is room for a number of each
    slot.
    """
    rows, law, slots, work = clusters.rows, clusters.law, clusters.slots, clusters.work
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
            move(rows, law, slots, labels, i, old, -1, work)
        n = seats[TALLY, 0]
        for a in range(n):
            k = seats[ACTIVE, a]
            weights[a] = slots[k, LOG_SIZE] + log_predictive(rows, law, slots, i, k, work)
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
            move(rows, law, slots, labels, i, -1, k, work)
    return len(order)


@loop
def log_marginal(clusters, labels, members, k):
    """Log density of the members that have the label k, which are put into slot k."""
    rows, law, slots, work = clusters.rows, clusters.law, clusters.slots, clusters.work
    copy(slots, EMPTY, k)
    total = 0.0
    for row in members:
        if labels[row] == k:
            total += log_predictive(rows, law, slots, row, k, work)
            change(rows, law, slots, row, k, 1.0, work)
    return total


@loop
def log_density_apart(clusters, labels, members, a, b, log_alpha):
    """Log density of the members on two sides, which are put into slots a and b, relative to all on one."""
    slots = clusters.slots
    total = log_marginal(clusters, labels, members, a)
    total += log_marginal(clusters, labels, members, b)
    total += log_alpha + math.lgamma(slots[a, SIZE]) + math.lgamma(slots[b, SIZE])
    return total - math.lgamma(float(len(members)))


@loop
def take_sides(clusters, labels, members, before, a, b, uniforms, begin, forced):
    """Put the members from place `begin` on, one after another, on side a or b; gives the log probability of that.

    The first two begin the sides. If `forced`, the others go to the side of the one that they shared a label with.
    """
    rows, law, slots, work = clusters.rows, clusters.law, clusters.slots, clusters.work
    total = 0.0
    for t in range(begin, len(members)):
        row = members[t]
        first = t == 0
        if t > 1:
            if begin > 0:
                move(rows, law, slots, labels, row, labels[row], -1, work)
            gap = slots[b, LOG_SIZE] + log_predictive(rows, law, slots, row, b, work)
            gap -= slots[a, LOG_SIZE] + log_predictive(rows, law, slots, row, a, work)
            # log of 1 / (1 + exp(gap)), which must not overflow
            log_first = -math.log1p(math.exp(-abs(gap))) - max(gap, 0.0)
            first = before[t] == before[0] if forced else math.log(uniforms[t]) < log_first
            total += log_first if first else log_first + gap
        move(rows, law, slots, labels, row, -1, a if first else b, work)
    return total


@loop
def split_or_merge(clusters, seats, labels, members, before, uniforms, log_alpha, n_scans):
    """Propose to split the cluster of the first two members, or to merge their two, in place; three slots are free.

    Members are all rows of these clusters, the first two chosen at random, the others in random order; `before` are
    their labels. The others are put on the side of the first or of the second one after another, and then `n_scans`
    times by Gibbs steps that know these two sides only. The last pass is the proposal; all before it does not look at
    where they are now, so a merge is weighed by the probability that the pass leads back.
    """
    merge = before[0] != before[1]
    a, b, whole = open_slot(seats), open_slot(seats), open_slot(seats)
    n = len(members)
    for t in range(n):
        labels[members[t]] = whole
    log_together = log_marginal(clusters, labels, members, whole)
    log_threshold = math.log(uniforms[n_scans + 1, 0])
    log_proposal, log_apart, hopeless = 0.0, 0.0, False
    if merge:
        for t in range(n):
            labels[members[t]] = a if before[t] == before[0] else b
        log_apart = log_density_apart(clusters, labels, members, a, b, log_alpha)
        # The way back is at most certain: most merges are refused without finding out how likely it is.
        hopeless = log_threshold >= log_together - log_apart
    if not hopeless:
        copy(clusters.slots, EMPTY, a)
        copy(clusters.slots, EMPTY, b)
        for scan in range(n_scans + 1):
            forced = merge and scan == n_scans
            log_proposal = take_sides(clusters, labels, members, before, a, b, uniforms[scan], min(2 * scan, 2), forced)
    if not merge:
        log_apart = log_density_apart(clusters, labels, members, a, b, log_alpha)
    log_accept = log_together - log_apart + log_proposal
    accept = log_threshold < (log_accept if merge else -log_accept)
    if accept and merge:
        for t in range(n):
            labels[members[t]] = whole
        close_slot(seats, before[1])
    elif not accept:
        for t in range(n):
            labels[members[t]] = before[t]
    if accept:
        close_slot(seats, before[0])
    if merge or not accept:
        close_slot(seats, a)
        close_slot(seats, b)
    if not (accept and merge):
        close_slot(seats, whole)
    return accept
