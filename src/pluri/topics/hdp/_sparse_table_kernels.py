# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled moves of whole tables of an HDP topic model that read only the topics which the table's words have.

Against a topic without the words of a table, topic k gains sum_w [R(n_wk + c_w) - R(n_wk) - R(c_w)] in its log score,
where c_w are the words of the table and R(m) = sum_{e < m} log(e + eta). As

    n log(n_k + V eta)  <=  sum_{j < n} log(n_k + V eta + j),

scores have upper bounds that cost little. The score of a topic is computed only if its bound is near the best, so that
the sum of all lies between that of the computed ones and this plus the other bounds. A draw is a number from [0, 1)
times the sum, with the computed scores first. Mostly it falls on the same topic for both ends of the interval. If not,
the scores of all topics are computed, and the same number decides: draws are exact.
"""

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._draws import place_of
from pluri.topics.hdp._gibbs_kernels import BLOCK, break_off, find_slot, log_rising, slots_in_use
from pluri.topics.hdp._sparse_kernels import change_listed
from pluri.topics.hdp._table_kernels import SMALLEST, score_table, seat, take_out

#: Topics have their scores computed if the bound of its logarithm is not this far below the best.
NEAR = 14.0
#: Smaller bounds than exp(-FAR) of the best are rounded up to that.
FAR = 40.0
#: Gains are not smaller, so that topics with a gain are known by it.
LEAST = 1e-300


@compiled(inner=True, allocates=False)
def candidates(words, members, old, rest, whole, sizes, lists, bounds, same, distinct, scores):
    """Put the topics that a table may go to into `found` of `bounds`, and their scores, that of a new topic last.

    The tokens are counted in topic `old`, which comes first; if it has no others, its score is zero and its stick a
    part of `rest`. Returns the number of these topics and a bound of the sum of all other scores.
    """
    begins, lengths, topics, numbers = lists
    rise, gain, log_weight, log_base, found = bounds
    n, n_distinct = len(members), 0
    for m in range(n):
        w = words[members[m]]
        if same[w] == 0:
            distinct[n_distinct] = w
            n_distinct += 1
        same[w] += 1
    found[0] = old
    gain[old] = LEAST
    n_found = 1
    for i in range(n_distinct):
        w = distinct[i]
        c = same[w]
        same[w] = 0
        for j in range(begins[w], begins[w] + lengths[w]):
            k = topics[j]
            x = numbers[j] - (c if k == old else 0)
            found[n_found] = k
            n_found += gain[k] == 0.0
            gain[k] += max(rise[x + c] - rise[x] - rise[c], LEAST)
    new = math.log(rest) - log_rising(whole, n)
    stay = -math.inf if sizes[old] == n else log_weight[old] + gain[old] - log_rising(sizes[old] - n + whole, n)
    gain[old] = 0.0
    first, highest = -1, -math.inf
    for i in range(1, n_found):
        k = found[i]
        scores[i] = log_weight[k] + gain[k] - n * log_base[k]
        if scores[i] > highest:
            first, highest = k, scores[i]
    best = max(new, stay)
    if first >= 0:
        best = max(best, log_weight[first] + gain[first] - log_rising(sizes[first] + whole, n))
    n_left, others = 1, n_found * math.exp(-FAR)
    for i in range(1, n_found):
        k, bound = found[i], scores[i]
        if bound > best - NEAR:
            found[n_left] = k
            scores[n_left] = log_weight[k] + gain[k] - log_rising(sizes[k] + whole, n)
            n_left += 1
        elif bound > best - FAR:
            others += math.exp(bound - best)
        gain[k] = 0.0
    # Topics without these words have a token at least, and their sticks sum to no more than one.
    others += math.exp(min(-log_rising(whole + 1.0, n) - best, FAR))
    scores[0] = stay
    scores[n_left] = new
    for i in range(n_left + 1):
        scores[i] = math.exp(scores[i] - best)
    return n_left, others


@compiled(inner=True, allocates=False)
def settle(number, n_found, others, scores):
    """Place of a draw among the computed scores; -1 if the bound of the others leaves it open."""
    total = 0.0
    for i in range(n_found + 1):
        total += scores[i]
    low = place_of(number * total, scores, n_found + 1)
    passed = 0.0
    for i in range(low + 1):
        passed += scores[i]
    return low if number * (total + others) < passed else -1


@compiled(inner=True, allocates=False)
def draw_of_all(number, words, members, eta, state, high, found, room, same):
    """Draw the topic of a table that was taken out from all topics, those of `found` first; -1 for a new one.

    Changes `room`.
    """
    scores = room.scores
    for k in range(high):
        room.base[k] = state.sizes[k] + state.counts.shape[0] * eta
    total, opened = score_table(words, members, eta, state, high, room, same)
    target = number * (total + opened)
    for i in range(len(found)):
        target -= scores[found[i]]
        if target < 0.0:
            return found[i]
        scores[found[i]] = 0.0
    target -= opened
    if target < 0.0:
        return -1
    new = find_slot(target, high, scores)
    return new if scores[new] > 0.0 else -1


@compiled(allocates=False)
def move_tables_sparsely(rng, chosen, tokens, hyper, state, lists, room, bounds, tables, cursor):
    """Change `state` and `lists`: draw topics of tables, as `pluri.topics.hdp._table_kernels.move_tables` does."""
    words, _, offsets = tokens
    alpha, gamma, eta = hyper
    labels, counts, sizes, weights, rest = state
    begins, lengths, topics, numbers = lists
    _, _, log_weight, log_base, found = bounds
    scores = room.scores
    _, _, same, _, _, ends, seated, distinct = tables
    n_words, capacity = counts.shape
    whole = n_words * eta
    high, fresh = slots_in_use(sizes)
    for k in range(capacity):
        if sizes[k] > 0:
            log_weight[k] = math.log(weights[k])
            log_base[k] = math.log(sizes[k] + whole)
    while cursor[0] < len(chosen):
        d = chosen[cursor[0]]
        if cursor[2] < 0:
            for t in range(offsets[d], offsets[d + 1]):
                scores[labels[t]] = alpha * weights[labels[t]]
            cursor[1] = 0
            cursor[2] = seat(rng, offsets[d], offsets[d + 1], labels, scores, tables)
        while cursor[1] < cursor[2]:
            if fresh >= capacity:
                return
            i = cursor[1]
            cursor[1] += 1
            members = seated[ends[i - 1] if i > 0 else 0 : ends[i]]
            n = len(members)
            if n < SMALLEST:
                continue
            old = np.int64(labels[members[0]])
            number, spare = rng.random(), rest[0] + (weights[old] if sizes[old] == n else 0.0)
            n_found, others = candidates(
                words, members, old, spare, whole, sizes, lists, bounds, same, distinct, scores
            )
            place = settle(number, n_found, others, scores)
            if place == 0:
                continue
            take_out(words, members, old, counts, sizes, weights, rest)
            if sizes[old] == 0:
                fresh = min(fresh, old)
            if place > 0:
                new = found[place] if place < n_found else -1
            else:
                new = draw_of_all(number, words, members, eta, state, high, found[:n_found], room, same)
            if new < 0:
                new = fresh
                break_off(rng, gamma, weights, rest, new)
                log_weight[new] = math.log(weights[new])
                if new >= high:
                    high += BLOCK
            for m in range(n):
                w = words[members[m]]
                counts[w, new] += 1
                labels[members[m]] = new
                if new != old:
                    change_listed(topics, numbers, begins[w], lengths, w, old, -1)
                    change_listed(topics, numbers, begins[w], lengths, w, new, 1)
            sizes[new] += n
            log_base[old] = math.log(sizes[old] + whole)
            log_base[new] = math.log(sizes[new] + whole)
            while fresh < capacity and sizes[fresh] > 0:
                fresh += 1
        cursor[0] += 1
        cursor[2] = -1
    return
