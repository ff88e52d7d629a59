# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled sweep of the collapsed Gibbs sampler of a Bernoulli mixture; see `pluri.mixtures.bernoulli_gibbs`.

A row with ones S goes to cluster j with probability proportional to

    w_j prod_{i in S} (b + c_ij) / (g + N_j - c_ij),    w_j = p_j prod_i (g + N_j - c_ij) / (b + g + N_j),

c_ij members of j having i, N_j members, p_j the prior weight. The products run over clusters in the inner loop, so that
the processor does several at a time, and need no logarithm unless they could leave the range of a double. The product
over all i in w_j is a short sum over the histogram of c_ij, kept for each cluster. Where entries are missing, known
zeros are listed like ones, and w_j = p_j.
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


@compiled(reorder=True)
def shift_row(first, last, indices, known, listed, j, step, ones, zeros, sizes, histogram, top):
    """Add a row to cluster j (step 1) or take it out (step -1)."""
    sizes[j] += step
    for e in range(first, last):
        i = indices[e]
        if listed and not known[e]:
            zeros[i, j] += step
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


@compiled(reorder=True)
def count_rows(indptr, indices, known, listed, labels, ones, zeros, sizes, histogram, top):
    """Put every row that has a label into its cluster."""
    for n in range(len(labels)):
        if labels[n] >= 0:
            shift_row(indptr[n], indptr[n + 1], indices, known, listed, labels[n], 1, ones, zeros, sizes, histogram,
                      top)  # fmt: skip


@compiled(reorder=True)
def log_weight_of(j, listed, n_features, sizes, histogram, top, log_prior, log_failure, log_total, without):
    """Log w_j. Also sets without[j] = sum_i log(g + N_j - 1 - c_ij) over the i that not all members have."""
    size = sizes[j]
    if listed:
        return log_prior[size]
    total = 0.0
    less = 0.0
    for count in range(min(top[j] + 1, size)):
        total += histogram[j, count] * log_failure[size - count]
        less += histogram[j, count] * log_failure[size - 1 - count]
    if top[j] == size:
        total += histogram[j, size] * log_failure[0]
    without[j] = less
    return log_prior[size] + total - n_features * log_total[size]


@compiled(reorder=True)
def log_weight_without(first, last, indices, j, listed, n_features, ones, sizes, log_prior, log_failure, log_total,
                       without):  # fmt: skip
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


@compiled(reorder=True)
def log_ratio_without(first, last, indices, known, listed, j, ones, zeros, success, failure, sizes, step):
    """Logarithm of the product over the entries of a row, after it has left cluster j."""
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


@compiled(reorder=True)
def multiply(first, last, indices, known, listed, high, ones, zeros, success, failure, sizes, above, below):
    """Numerators and denominators of the products over entries `first` to `last`, times what is there."""
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


@compiled(reorder=True)
def score_logs(first, last, indices, known, listed, high, ones, zeros, success, failure, sizes, step, log_weight,
               above, below, scores):  # fmt: skip
    """Logarithms of the unnormalised probabilities, from products of at most `step` factors."""
    for j in range(high):
        scores[j] = log_weight[j]
    for begin in range(first, last, step):
        for j in range(high):
            above[j] = 1.0
            below[j] = 1.0
        end = min(begin + step, last)
        multiply(begin, end, indices, known, listed, high, ones, zeros, success, failure, sizes, above, below)
        for j in range(high):
            scores[j] += math.log(above[j] / below[j])


@compiled(reorder=True)
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


@compiled(reorder=True)
def place(j, value, log_weight, weight, far, gauge):
    """Set log w_j. `gauge` holds what all weights are relative to, and how many of them are too far from it."""
    log_weight[j] = value
    gap = value - gauge[0]
    away = value > -np.inf and abs(gap) > SPREAD
    weight[j] = 0.0 if away else math.exp(gap)
    gauge[1] += int(away) - far[j]
    far[j] = away


@compiled(reorder=True)
def rescale(high, log_weight, weight, far, gauge):
    """Make weights relative to the largest."""
    largest = -np.inf
    for j in range(high):
        largest = max(largest, log_weight[j])
    gauge[0] = largest
    for j in range(high):
        place(j, log_weight[j], log_weight, weight, far, gauge)


@compiled(reorder=True)
def sweep(indptr, indices, known, listed, infinite, order, uniforms, start, n_features, success, failure, step,
          log_prior, log_failure, log_total, labels, ones, zeros, sizes, histogram, top, fresh, log_weight, weight,
          without, above, below, scores, far):  # fmt: skip
    """Draw the cluster of each row in turn, from place `start` of `order`; a label of -1 has no cluster yet.

    A row leaves its cluster only if it moves: until then what that cluster would be without it is worked out aside.
    With `infinite`, slots without members are free, and `fresh`, the first of them, stands for a new cluster. Returns
    the next place and the fresh slot: if that is the number of slots, there is no room for another cluster.
    """
    capacity = len(sizes)
    gauge = np.zeros(2)
    high = capacity
    for j in range(capacity):
        value = -np.inf
        if not infinite or sizes[j] > 0 or j == fresh:
            value = log_weight_of(j, listed, n_features, sizes, histogram, top, log_prior, log_failure, log_total,
                                  without)  # fmt: skip
        place(j, value, log_weight, weight, far, gauge)
    rescale(high, log_weight, weight, far, gauge)
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
            own = log_weight_without(first, last, indices, old, listed, n_features, ones, sizes, log_prior,
                                     log_failure, log_total, without)  # fmt: skip
            ratio = log_ratio_without(first, last, indices, known, listed, old, ones, zeros, success, failure, sizes,
                                      step)  # fmt: skip
        if gauge[1] == 0 and last - first <= step and (old < 0 or alone or abs(own - gauge[0]) <= SPREAD):
            for j in range(high):
                above[j] = weight[j]
                below[j] = 1.0
            multiply(first, last, indices, known, listed, high, ones, zeros, success, failure, sizes, above, below)
            for j in range(high):
                scores[j] = above[j] / below[j]
            if old >= 0:
                scores[old] = 0.0 if alone else math.exp(own - gauge[0] + ratio)
        else:
            score_logs(first, last, indices, known, listed, high, ones, zeros, success, failure, sizes, step,
                       log_weight, above, below, scores)  # fmt: skip
            if old >= 0:
                scores[old] = -np.inf if alone else own + ratio
            largest = -np.inf
            for j in range(high):
                largest = max(largest, scores[j])
            for j in range(high):
                gap = scores[j] - largest
                scores[j] = math.exp(gap) if gap > NEGLIGIBLE else 0.0
        new = draw(scores, high, uniforms[t])
        if new == old or (alone and new == fresh):
            continue
        labels[n] = new
        if old >= 0:
            shift_row(first, last, indices, known, listed, old, -1, ones, zeros, sizes, histogram, top)
            value = log_weight_of(old, listed, n_features, sizes, histogram, top, log_prior, log_failure, log_total,
                                  without)  # fmt: skip
            if alone and old > fresh:
                value = -np.inf
            elif alone:
                place(fresh, -np.inf, log_weight, weight, far, gauge)
                fresh = old
            place(old, value, log_weight, weight, far, gauge)
        shift_row(first, last, indices, known, listed, new, 1, ones, zeros, sizes, histogram, top)
        value = log_weight_of(new, listed, n_features, sizes, histogram, top, log_prior, log_failure, log_total,
                              without)  # fmt: skip
        place(new, value, log_weight, weight, far, gauge)
        if infinite and new == fresh:
            fresh += 1
            while fresh < capacity and sizes[fresh] > 0:
                fresh += 1
            if fresh == capacity:
                return t + 1, fresh
            high = max(high, fresh + 1)
            value = log_weight_of(fresh, listed, n_features, sizes, histogram, top, log_prior, log_failure, log_total,
                                  without)  # fmt: skip
            place(fresh, value, log_weight, weight, far, gauge)
    return len(order), fresh


@compiled(reorder=True)
def log_evidence(listed, n_features, ones, zeros, sizes, histogram, top, rising_success, rising_failure, rising_total):
    """Log p(X | labels), from log rising factorials of the prior counts."""
    total = 0.0
    if listed:
        for i in range(n_features):
            for j in range(len(sizes)):
                on, off = ones[i, j], zeros[i, j]
                total += rising_success[on] + rising_failure[off] - rising_total[on + off]
        return total
    for j in range(len(sizes)):
        size = sizes[j]
        for count in range(top[j] + 1):
            total += histogram[j, count] * (rising_success[count] + rising_failure[size - count])
        total -= n_features * rising_total[size]
    return total
