# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled sweep of the collapsed Gibbs sampler of a Bernoulli mixture; see `pluri.mixtures.bayesian_bernoulli.gibbs`.

A row with ones S goes to cluster j with probability proportional to

    w_j prod_{i in S} (b + c_ij) / (g + N_j - c_ij),    w_j = p_j prod_i (g + N_j - c_ij) / (b + g + N_j),

c_ij members of j having i, N_j members, p_j the prior weight. The products run over clusters in the inner loop, so that
the processor does several at a time, and need no logarithm unless they could leave the range of a double. The product
over all i in w_j is a short sum over the histogram of c_ij, kept for each cluster. Where entries are missing, known
zeros are listed like ones, and w_j = p_j. The records are in `pluri.mixtures.bayesian_bernoulli.counts`.
"""

import math

import numpy as np

from pluri.engine.compiled import compiled

#: Logarithm of the largest factor that a double leaves room for, and the part of it that the weights may take up.
ROOM, SPREAD = 690.0, 300.0
#: Smaller terms than exp(-45) of the largest are lost in rounding anyway.
NEGLIGIBLE = -45.0
#: Slots that are looked through at a time when a cluster is drawn.
STRIDE = 16

#: Nothing here allocates: without counts of references, reading an array from a record costs nothing.
loop = compiled(reorder=True, allocates=False)


@loop
def shift_row(rows, n, j, step, counts):
    """Add row n to cluster j (step 1) or take it out (step -1), in `counts`."""
    listed, ones, histogram, top = rows.listed, counts.ones, counts.histogram, counts.top
    counts.sizes[j] += step
    for e in range(rows.indptr[n], rows.indptr[n + 1]):
        i = rows.indices[e]
        if listed and not rows.known[e]:
            counts.zeros[i, j] += step
        else:
            count = ones[i, j]
            ones[i, j] = count + step
            if not listed:
                histogram[j, count] -= 1
                histogram[j, count + step] += 1
                if count + step > top[j]:
                    top[j] = count + step
    if not listed:
        while top[j] > 0 and histogram[j, top[j]] == 0:
            top[j] -= 1


@loop
def count_rows(rows, labels, counts):
    """Put every row that has a label into its cluster, in `counts`."""
    for n in range(len(labels)):
        if labels[n] >= 0:
            shift_row(rows, n, labels[n], 1, counts)


@loop
def log_weight_of(j, rows, counts, tables, log_prior, without):
    """Log w_j. Also sets without[j] = sum_i log(g + N_j - 1 - c_ij) over the i that not all members have."""
    size = counts.sizes[j]
    if rows.listed:
        return log_prior[size]
    top, histogram, log_failure = counts.top[j], counts.histogram, tables.log_failure
    total = 0.0
    less = 0.0
    for count in range(min(top + 1, size)):
        total += histogram[j, count] * log_failure[size - count]
        less += histogram[j, count] * log_failure[size - 1 - count]
    if top == size:
        total += histogram[j, size] * log_failure[0]
    without[j] = less
    return log_prior[size] + total - rows.n_features * tables.log_total[size]


@loop
def log_weight_without(
    first, last, indices, j, listed, n_features, ones, sizes, log_prior, log_failure, log_total, without
):
    """Log w_j after the row with these entries has left cluster j, which stays as it is."""
    size = sizes[j]
    if listed:
        return log_prior[size - 1]
    total = without[j]
    for e in range(first, last):
        count = ones[indices[e], j]
        total += log_failure[size - count]
        if count < size:
            total -= log_failure[size - 1 - count]
    return log_prior[size - 1] + total - n_features * log_total[size - 1]


@loop
def log_ratio_without(first, last, indices, known, listed, j, ones, zeros, sizes, prior, step):
    """Logarithm of the product over the entries of a row, after it has left cluster j."""
    success, failure = prior
    total, product = 0.0, 1.0
    for e in range(first, last):
        i = indices[e]
        if not listed:
            product *= (success + (ones[i, j] - 1)) / (failure + (sizes[j] - ones[i, j]))
        elif known[e]:
            product *= (success + (ones[i, j] - 1)) / (success + failure + (ones[i, j] + zeros[i, j] - 1))
        else:
            product *= (failure + (zeros[i, j] - 1)) / (success + failure + (ones[i, j] + zeros[i, j] - 1))
        if (e - first) % step == step - 1:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@loop
def multiply(first, last, indices, known, listed, high, ones, zeros, sizes, prior, above, below):
    """Multiply `above` and `below` by the numerators and denominators of the entries `first` to `last`."""
    success, failure = prior
    for e in range(first, last):
        i = indices[e]
        if not listed:
            for j in range(high):
                above[j] *= success + ones[i, j]
                below[j] *= (failure + sizes[j]) - ones[i, j]
        elif known[e]:
            for j in range(high):
                above[j] *= success + ones[i, j]
                below[j] *= (success + failure) + (ones[i, j] + zeros[i, j])
        else:
            for j in range(high):
                above[j] *= failure + zeros[i, j]
                below[j] *= (success + failure) + (ones[i, j] + zeros[i, j])


@loop
def score_logs(rows, n, high, counts, tables, work):
    """Write logarithms of the unnormalised probabilities, from products of at most `step` factors."""
    ones, zeros, sizes, prior = counts.ones, counts.zeros, counts.sizes, (tables.success, tables.failure)
    above, below, scores = work.above, work.below, work.scores
    last, step = rows.indptr[n + 1], tables.step
    for j in range(high):
        scores[j] = work.log_weight[j]
    for begin in range(rows.indptr[n], last, step):
        for j in range(high):
            above[j] = 1.0
            below[j] = 1.0
        end = min(begin + step, last)
        multiply(begin, end, rows.indices, rows.known, rows.listed, high, ones, zeros, sizes, prior, above, below)
        for j in range(high):
            scores[j] += math.log(above[j] / below[j])


@loop
def exponentiate(scores, high):
    """Turn logarithms into probabilities in proportion, in place."""
    largest = -np.inf
    for j in range(high):
        largest = max(largest, scores[j])
    for j in range(high):
        gap = scores[j] - largest
        scores[j] = math.exp(gap) if gap > NEGLIGIBLE else 0.0


@loop
def draw(probabilities, high, uniform):
    """Index drawn in proportion to unnormalised probabilities."""
    total = 0.0
    for j in range(high):
        total += probabilities[j]
    target = uniform * total
    passed = 0.0
    start = 0
    while start + STRIDE < high:
        part = 0.0
        for j in range(start, start + STRIDE):
            part += probabilities[j]
        if passed + part > target:
            break
        passed += part
        start += STRIDE
    chosen = -1
    for j in range(start, high):
        passed += probabilities[j]
        if probabilities[j] > 0.0:
            chosen = j
            if passed > target:
                return j
    if chosen < 0:  # rounding left nothing at the end
        chosen = start
        while probabilities[chosen] <= 0.0:
            chosen -= 1
    return chosen


@loop
def place(j, value, log_weight, weight, far, gauge):
    """Set log w_j. `gauge` holds what all weights are relative to, and how many of them are too far from it."""
    log_weight[j] = value
    gap = value - gauge[0]
    away = value > -np.inf and abs(gap) > SPREAD
    weight[j] = 0.0 if away else math.exp(gap)
    gauge[1] += int(away) - far[j]
    far[j] = away


@loop
def rescale(high, log_weight, weight, far, gauge):
    """Make weights relative to the largest."""
    largest = -np.inf
    for j in range(high):
        largest = max(largest, log_weight[j])
    gauge[0] = largest
    for j in range(high):
        place(j, log_weight[j], log_weight, weight, far, gauge)


@loop
def weigh_all(rows, counts, tables, log_prior, fresh, infinite, work):
    """Set the weights of all clusters in `work`; with `infinite`, of those with members and of the fresh one."""
    log_weight, weight, far, gauge = work.log_weight, work.weight, work.far, work.gauge
    for j in range(len(log_weight)):
        value = -np.inf
        if not infinite or counts.sizes[j] > 0 or j == fresh:
            value = log_weight_of(j, rows, counts, tables, log_prior, work.without)
        place(j, value, log_weight, weight, far, gauge)
    rescale(len(log_weight), log_weight, weight, far, gauge)


@loop
def move_row(rows, n, old, new, counts, tables, log_prior, work):
    """Take row n from cluster `old` (-1 is none) to cluster `new`: changes `counts`, and the weights in `work`."""
    for j, step in ((old, -1), (new, 1)):
        if j >= 0:
            shift_row(rows, n, j, step, counts)
            value = log_weight_of(j, rows, counts, tables, log_prior, work.without)
            place(j, value, work.log_weight, work.weight, work.far, work.gauge)


@loop
def sweep(rows, counts, tables, log_prior, labels, order, uniforms, start, fresh, infinite, work):
    """Draw the cluster of each row in turn, in place, from place `start` of `order`; a label of -1 is no cluster yet.

    A row leaves its cluster only if it moves: until then what that cluster would be without it is worked out aside.
    With `infinite`, slots without members are free, and `fresh`, the first of them, stands for a new cluster. Returns
    the next place and the fresh slot: if that is the number of slots, there is no room for another cluster.
    """
    # What is called for each row takes arrays: a call copies all fields of its records.
    indptr, indices, known, listed, n_features = rows.indptr, rows.indices, rows.known, rows.listed, rows.n_features
    ones, zeros, sizes = counts.ones, counts.zeros, counts.sizes
    log_failure, log_total, prior = tables.log_failure, tables.log_total, (tables.success, tables.failure)
    log_weight, weight, without, far, gauge = work.log_weight, work.weight, work.without, work.far, work.gauge
    above, below, scores, step = work.above, work.below, work.scores, tables.step
    weigh_all(rows, counts, tables, log_prior, fresh, infinite, work)
    high = capacity = len(sizes)
    for t in range(start, len(order)):
        n = order[t]
        first, last = indptr[n], indptr[n + 1]
        old = labels[n]
        alone = infinite and old >= 0 and sizes[old] == 1
        while infinite and high - 1 > fresh and sizes[high - 1] == 0:
            high -= 1
        if gauge[1] > 0:
            rescale(high, log_weight, weight, far, gauge)
        own, ratio = 0.0, 0.0
        if old >= 0 and not alone:
            own = log_weight_without(
                first, last, indices, old, listed, n_features, ones, sizes, log_prior, log_failure, log_total, without
            )
            ratio = log_ratio_without(first, last, indices, known, listed, old, ones, zeros, sizes, prior, step)
        if gauge[1] == 0 and last - first <= step and (old < 0 or alone or abs(own - gauge[0]) <= SPREAD):
            for j in range(high):
                above[j] = weight[j]
                below[j] = 1.0
            multiply(first, last, indices, known, listed, high, ones, zeros, sizes, prior, above, below)
            for j in range(high):
                scores[j] = above[j] / below[j]
            if old >= 0:
                scores[old] = 0.0 if alone else math.exp(own - gauge[0] + ratio)
        else:
            score_logs(rows, n, high, counts, tables, work)
            if old >= 0:
                scores[old] = -np.inf if alone else own + ratio
            exponentiate(scores, high)
        new = draw(scores, high, uniforms[t])
        if new == old or (alone and new == fresh):
            continue
        labels[n] = new
        move_row(rows, n, old, new, counts, tables, log_prior, work)
        if alone:
            # Of the two slots that are free now, the first is the fresh one.
            place(max(old, fresh), -np.inf, log_weight, weight, far, gauge)
            fresh = min(old, fresh)
        elif infinite and new == fresh:
            while fresh < capacity and sizes[fresh] > 0:
                fresh += 1
            if fresh == capacity:
                return t + 1, fresh
            high = max(high, fresh + 1)
            empty = log_weight_of(fresh, rows, counts, tables, log_prior, without)
            place(fresh, empty, log_weight, weight, far, gauge)
    return len(order), fresh


@loop
def log_evidence(rows, counts, tables):
    """Log p(X | labels), from log rising factorials of the prior counts."""
    ones, zeros, sizes, histogram = counts.ones, counts.zeros, counts.sizes, counts.histogram
    rising_success, rising_failure, rising_total = tables.rising_success, tables.rising_failure, tables.rising_total
    total = 0.0
    if rows.listed:
        for i in range(rows.n_features):
            for j in range(len(sizes)):
                on, off = ones[i, j], zeros[i, j]
                total += rising_success[on] + rising_failure[off] - rising_total[on + off]
        return total
    for j in range(len(sizes)):
        size = sizes[j]
        for count in range(counts.top[j] + 1):
            total += histogram[j, count] * (rising_success[count] + rising_failure[size - count])
        total -= rows.n_features * rising_total[size]
    return total
