# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled sweep of the HDP sampler that reads, for each token, only the topics that its word has.

With ``c_k = (n_dk + alpha beta_k) / (n_k + V eta)`` the probability of topic k is split in ``n_wk c_k``, summed over a
list of the topics of word w, and ``eta c_k``, whose sum over k is kept up to date and which is searched only if the
draw falls there. The token's present topic comes first: if the draw falls on it, as it mostly does, nothing changes.
A word with n tokens has no more than n topics, so that lists never outgrow their room.
"""

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.hdp._gibbs_kernels import BLOCK, break_off, find_slot, slots_in_use

_u = np.uint64


@compiled(allocates=False)
def list_topics(counts, lists):
    """Fill `lists`, the topics that each word has, with its tokens there."""
    n_words, capacity = counts.shape
    begins, lengths, topics, numbers = lists
    for w in range(n_words):
        row, place = counts[w], begins[w]
        for start in range(0, capacity, BLOCK):
            some = 0
            for k in range(start, start + BLOCK):
                some |= row[k]
            if some:
                for k in range(start, start + BLOCK):
                    if row[k] > 0:
                        topics[place] = k
                        numbers[place] = row[k]
                        place += 1
        lengths[w] = place - begins[w]


@compiled(inner=True, allocates=False)
def score_listed(topics, numbers, begin, length, base, old, scores):
    """Scores n_wk c_k of listed topics, zero for `old`; returns their sum, and the tokens of the word in `old`."""
    total, own = 0.0, 0
    for i in range(_u(length)):
        k, n = topics[_u(begin) + _u(i)], numbers[_u(begin) + _u(i)]
        same = k == old
        score = 0.0 if same else base[k] * n
        own += n if same else 0
        scores[_u(i)] = score
        total += score
    return total, own


@compiled(inner=True, allocates=False)
def change_listed(topics, numbers, begin, lengths, w, k, change):
    """Change the lists: add 1 or -1 to the tokens of word w in topic k; topics without tokens leave the list."""
    length = lengths[w]
    i = begin
    while i < begin + length and topics[i] != k:
        i += 1
    if i == begin + length:
        topics[i] = k
        numbers[i] = 0
        lengths[w] = length + 1
    numbers[i] = np.int64(numbers[i]) + change
    if numbers[i] == 0:
        last = begin + length - 1
        topics[i], numbers[i] = topics[last], numbers[last]
        lengths[w] = length - 1


@compiled(reorder=True, inner=True, allocates=False)
def sum_of(base, high):
    """Sum over the slots in use."""
    total = 0.0
    for k in range(high):
        total += base[k]
    return total


@compiled(allocates=False)
def sparse_sweep(rng, tokens, start, hyper, state, lists, room):
    """Change `state` and `lists`: draw the topic of each token in turn, as `sweep` of the dense sampler does.

    Returns the next token: if it is not the end, there is no free slot left, and the sweep goes on with more of them,
    and with the same lists. `here` of `room` is zero before and after.
    """
    words, documents, offsets = tokens
    alpha, gamma, eta = hyper
    labels, counts, sizes, weights, rest = state
    begins, lengths, topics, numbers = lists
    here, base, scores, _ = room
    n_words, capacity = counts.shape
    whole = n_words * eta
    high, fresh = slots_in_use(sizes)
    for k in range(capacity):
        base[k] = alpha * weights[k] / (sizes[k] + whole)
    t = start
    while t < len(words) and fresh < capacity:
        d = documents[t]
        first, end = offsets[d], offsets[d + 1]
        for s in range(first, end):
            if labels[s] >= 0:
                here[labels[s]] += 1.0
        for s in range(first, end):
            k = labels[s]
            if k >= 0:
                base[k] = (here[k] + alpha * weights[k]) / (sizes[k] + whole)
        # Summed anew in each document, so that rounding does not add up.
        all_base = sum_of(base, high)
        while t < end and fresh < capacity:
            w, old = words[t], np.int64(labels[t])
            if old >= 0 and sizes[old] == 1:
                # The last token of a topic: its stick goes to the rest.
                change_listed(topics, numbers, begins[w], lengths, w, old, -1)
                counts[w, old] -= 1
                sizes[old] = 0
                here[old] = 0.0
                rest[0] += weights[old]
                weights[old] = 0.0
                all_base -= base[old]
                base[old] = 0.0
                fresh = min(fresh, old)
                old = np.int64(-1)
            begin, length = begins[w], lengths[w]
            listed, own = score_listed(topics, numbers, begin, length, base, old, scores)
            low, stay, smooth = 0.0, 0.0, all_base
            if old >= 0:
                low = (here[old] - 1.0 + alpha * weights[old]) / (sizes[old] - 1.0 + whole)
                stay = (own - 1.0 + eta) * low
                smooth -= base[old]
            smooth = max(smooth, 0.0) * eta
            target = rng.random() * (stay + listed + smooth + alpha * rest[0] / n_words) - stay
            if target < 0.0:
                t += 1
                continue
            new = np.int64(-1)
            if target < listed:
                last = (length + BLOCK - 1) // BLOCK * BLOCK
                scores[length:last] = 0.0
                new = np.int64(topics[begin + find_slot(target, last, scores)])
            elif target < listed + smooth:
                kept = 0.0
                if old >= 0:
                    kept = base[old]
                    base[old] = 0.0
                new = find_slot((target - listed) / eta, high, base)
                if base[new] == 0.0:
                    new = np.int64(-1)
                if old >= 0:
                    base[old] = kept
            if new < 0:
                new = fresh
                break_off(rng, gamma, weights, rest, new)
                if new >= high:
                    high += BLOCK
            if old >= 0:
                change_listed(topics, numbers, begins[w], lengths, w, old, -1)
                counts[w, old] -= 1
                sizes[old] -= 1
                here[old] -= 1.0
                all_base += low - base[old]
                base[old] = low
            change_listed(topics, numbers, begins[w], lengths, w, new, 1)
            labels[t] = new
            counts[w, new] += 1
            sizes[new] += 1
            here[new] += 1.0
            raised = (here[new] + alpha * weights[new]) / (sizes[new] + whole)
            all_base += raised - base[new]
            base[new] = raised
            t += 1
            while fresh < capacity and sizes[fresh] > 0:
                fresh += 1
        for s in range(first, end):
            k = labels[s]
            if k >= 0:
                here[k] = 0.0
                base[k] = alpha * weights[k] / (sizes[k] + whole)
    return t
