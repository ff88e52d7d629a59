# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled trial of an HDP topic model without one of its topics; see `pluri.topics.hdp.slots`.

The words of a topic's tokens are predicted one after another, each with its topic summed out, given the tokens before
it: once with the topic, and once without it, after the tokens have been given to others. The larger one wins. Log joint
densities would not do: they are higher where tokens have no choice.
"""

import math

from pluri.engine.compiled import compiled
from pluri.topics.hdp._gibbs_kernels import SMALL, draw_slot, slots_in_use

#: Scans over the tokens of the topic after they were given other topics.
N_SCANS = 1


@compiled(inner=True, allocates=False)
def look_at(d, offsets, hyper, state, high, room):
    """Put the counts of a document, and what scores owe to them, into `room`; slots without tokens have no share."""
    labels, counts, sizes, weights, _ = state
    here, base = room.here, room.base
    whole = counts.shape[0] * hyper.eta
    for k in range(high):
        here[k] = 0.0
    for t in range(offsets[d], offsets[d + 1]):
        if labels[t] >= 0:
            here[labels[t]] += 1.0
    for k in range(high):
        base[k] = (here[k] + hyper.alpha * weights[k]) / (sizes[k] + whole) if sizes[k] > 0 else 0.0


@compiled(reorder=True, inner=True, allocates=False)
def sum_slots(row, base, eta, high):
    """Sum of the scores of the slots."""
    total = 0.0
    for k in range(high):
        total += base[k] * (row[k] + eta)
    return total


@compiled(inner=True, allocates=False)
def empty(gone, members, tokens, hyper, state, high, room):
    """Change `state`: remove all tokens of topic `gone`.

    Returns the log prediction of their words, each given those that remain. Nothing but the numbers of this topic
    changes on the way, and these are variables: what is written to memory is slow to be read in blocks.
    """
    labels, counts, sizes, weights, _ = state
    base, eta = room.base, hyper.eta
    words, documents, offsets = tokens
    whole, total, product = counts.shape[0] * eta, 0.0, 1.0
    size, begin, n = float(sizes[gone]), 0, len(members)
    while begin < n:
        d = documents[members[begin]]
        look_at(d, offsets, hyper, state, high, room)
        base[gone], here = 0.0, room.here[gone] + hyper.alpha * weights[gone]
        end = begin
        while end < n and documents[members[end]] == d:
            w = words[members[end]]
            labels[members[end]] = -1
            counts[w, gone] -= 1
            size -= 1.0
            here -= 1.0
            score = sum_slots(counts[w], base, eta, high) + here * (counts[w, gone] + eta) / (size + whole)
            if not SMALL < product * score < 1.0 / SMALL:
                total += math.log(product)
                product = 1.0
            product *= score
            end += 1
        begin = end
    sizes[gone] = 0
    return total + math.log(product)


@compiled(inner=True, allocates=False)
def take_out(members, tokens, hyper, state, high, room):
    """Change `state`: remove the tokens from their topics.

    Returns the log prediction of their words, each given those that remain.
    """
    labels, counts, sizes, weights, _ = state
    here, base = room.here, room.base
    words, documents, offsets = tokens
    whole, total, product, last = counts.shape[0] * hyper.eta, 0.0, 1.0, -1
    for m in range(len(members)):
        t = members[m]
        d, w, old = documents[t], words[t], labels[t]
        if d != last:
            look_at(d, offsets, hyper, state, high, room)
            last = d
        labels[t] = -1
        counts[w, old] -= 1
        sizes[old] -= 1
        here[old] -= 1.0
        base[old] = (here[old] + hyper.alpha * weights[old]) / (sizes[old] + whole)
        score = sum_slots(counts[w], base, hyper.eta, high)
        if not SMALL < product * score < 1.0 / SMALL:
            total += math.log(product)
            product = 1.0
        product *= score
    return total + math.log(product)


@compiled(inner=True, allocates=False)
def put_in(rng, members, tokens, hyper, state, high, room):
    """Change `state`: draw the topics of the tokens given all others; those without a topic were counted nowhere."""
    labels, counts, sizes, weights, _ = state
    here, base, scores, _ = room
    words, documents, offsets = tokens
    alpha, eta = hyper.alpha, hyper.eta
    whole, last = counts.shape[0] * eta, -1
    for m in range(len(members)):
        t = members[m]
        d, w, old = documents[t], words[t], labels[t]
        if d != last:
            look_at(d, offsets, hyper, state, high, room)
            last = d
        stay, low = 0.0, 0.0
        if old >= 0:
            low = (here[old] - 1.0 + alpha * weights[old]) / (sizes[old] - 1 + whole)
            stay = (counts[w, old] - 1 + eta) * low
        new = draw_slot(rng, counts[w], old, stay, 0.0, eta, high, base, scores)
        if new == old:
            continue
        if old >= 0:
            counts[w, old] -= 1
            sizes[old] -= 1
            here[old] -= 1.0
            base[old] = low
        labels[t] = new
        counts[w, new] += 1
        sizes[new] += 1
        here[new] += 1.0
        base[new] = (here[new] + alpha * weights[new]) / (sizes[new] + whole)


@compiled(allocates=False)
def dissolve(rng, members, tokens, hyper, log_prior, state, room, wanted):
    """Change `state`: give the tokens of a topic to others if their words are predicted better then; returns whether.

    `log_prior` is what the density of the sticks gains, `wanted` has room for a label of each of the tokens.
    """
    labels, gone = state.labels, state.labels[members[0]]
    high, _ = slots_in_use(state.sizes)
    before = empty(gone, members, tokens, hyper, state, high, room)
    for _ in range(1 + N_SCANS):
        put_in(rng, members, tokens, hyper, state, high, room)
    for m in range(len(members)):
        wanted[m] = labels[members[m]]
    after = take_out(members, tokens, hyper, state, high, room)
    better = after - before + log_prior > 0.0
    if not better:
        wanted[:] = gone
    for m in range(len(members)):
        t, k = members[m], wanted[m]
        labels[t] = k
        state.counts[tokens.words[t], k] += 1
        state.sizes[k] += 1
    return better
