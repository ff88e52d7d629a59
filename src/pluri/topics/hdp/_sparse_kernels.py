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


@compiled()
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


@compiled(no_cpython_wrapper=True)
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


@compiled(no_cpython_wrapper=True)
def add_listed(topics, numbers, begin, lengths, w, k):
    """Change the list of word w: one token more in topic k, which joins the list if it had none."""
    end = begin + lengths[w]
    i = begin
    while i < end and topics[i] != k:
        i += 1
    if i == end:
        topics[i] = k
        numbers[i] = 0
        lengths[w] += 1
    numbers[i] += 1


@compiled(no_cpython_wrapper=True)
def drop_listed(topics, numbers, begin, lengths, w, k):
    """Change the list of word w: one token less in topic k, which leaves the list if that was the last."""
    i, last = begin, begin + lengths[w] - 1
    while i < last and topics[i] != k:
        i += 1
    numbers[i] -= 1
    if numbers[i] == 0:
        topics[i], numbers[i] = topics[last], numbers[last]
        lengths[w] -= 1


@compiled(reorder=True, no_cpython_wrapper=True)
def sum_of(base, high):
    """Sum over the slots in use."""
    total = 0.0
    for k in range(high):
        total += base[k]
    return total


@compiled(inline="always")
def draw_listed(rng, w, old, all_base, high, hyper, state, lists, room):
    """Draw the topic of a token of word w, -1 for a new one; returns it, and c_old without the token.

    The token is counted in topic `old`, unless that is -1; `all_base` is the sum of c_k over all topics.
    """
    alpha, _, eta = hyper
    n_words = state.counts.shape[0]
    base, scores = room.base, room.scores
    begin, length = lists.begins[w], lists.lengths[w]
    listed, own = score_listed(lists.topics, lists.numbers, begin, length, base, old, scores)
    low, stay, smooth = 0.0, 0.0, all_base
    if old >= 0:
        low = (room.here[old] - 1.0 + alpha * state.weights[old]) / (state.sizes[old] - 1.0 + n_words * eta)
        stay = (own - 1.0 + eta) * low
        smooth -= base[old]
    smooth = max(smooth, 0.0) * eta
    target = rng.random() * (stay + listed + smooth + alpha * state.rest[0] / n_words) - stay
    if target < 0.0:
        return old, low
    if target < listed:
        end = (length + BLOCK - 1) // BLOCK * BLOCK
        scores[length:end] = 0.0
        return np.int64(lists.topics[begin + find_slot(target, end, scores)]), low
    new = -1
    if target < listed + smooth:
        kept = 0.0
        if old >= 0:
            kept = base[old]
            base[old] = 0.0
        new = find_slot((target - listed) / eta, high, base)
        if base[new] == 0.0:
            new = -1
        if old >= 0:
            base[old] = kept
    return new, low


@compiled()
def sparse_sweep(rng, tokens, start, hyper, state, lists, room):
    """Change `state` and `lists`: draw the topic of each token in turn, as `sweep` of the dense sampler does.

    Returns the next token: if it is not the end, there is no free slot left, and the sweep goes on with more of them,
    and with the same lists. `here` of `room` is zero before and after.
    """
    words, documents, offsets = tokens
    alpha, gamma, eta = hyper
    labels, counts, sizes, weights, rest = state
    begins, lengths, topics, numbers = lists
    here, base, _, _ = room
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
                drop_listed(topics, numbers, begins[w], lengths, w, old)
                counts[w, old] -= 1
                sizes[old] = 0
                here[old] = 0.0
                rest[0] += weights[old]
                weights[old] = 0.0
                all_base -= base[old]
                base[old] = 0.0
                fresh = min(fresh, old)
                old = np.int64(-1)
            new, low = draw_listed(rng, w, old, all_base, high, hyper, state, lists, room)
            if old >= 0 and new == old:
                t += 1
                continue
            if new < 0:
                new = fresh
                break_off(rng, gamma, weights, rest, new)
                if new >= high:
                    high += BLOCK
            if old >= 0:
                drop_listed(topics, numbers, begins[w], lengths, w, old)
                counts[w, old] -= 1
                sizes[old] -= 1
                here[old] -= 1.0
                all_base += low - base[old]
                base[old] = low
            add_listed(topics, numbers, begins[w], lengths, w, new)
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
