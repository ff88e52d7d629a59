# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled trial of an HDP topic model without one of its topics; see `pluri.topics.hdp.slots`.

The words of a topic's tokens are predicted one after another, each with its topic summed out, given the tokens before
it: once with the topic, and once without it, after the tokens have been given to others. The larger one wins. Log joint
densities would not do: they are higher where tokens have no choice.
"""

import math

from pluri.engine.compiled import compiled
from pluri.topics.hdp._gibbs_kernels import BLOCK, find_slot, largest, score_slots

#: Scans over the tokens of the topic after they were given other topics.
N_SCANS = 1


@compiled()
def look_at(d, offsets, labels, alpha, whole, sizes, weights, high, here, base):
    """Counts of a document and what scores owe to them; slots without tokens have no share."""
    for k in range(high):
        here[k] = 0.0
    for t in range(offsets[d], offsets[d + 1]):
        if labels[t] >= 0:
            here[labels[t]] += 1.0
    for k in range(high):
        base[k] = (here[k] + alpha * weights[k]) / (sizes[k] + whole) if sizes[k] > 0 else 0.0


@compiled()
def take_out(members, words, documents, offsets, alpha, eta, labels, counts, sizes, weights, high, here, base, scores):
    """Remove the tokens from their topics; returns the log prediction of their words, each given those that remain."""
    whole, total, last = counts.shape[0] * eta, 0.0, -1
    for m in range(len(members)):
        t = members[m]
        d, w, old = documents[t], words[t], labels[t]
        if d != last:
            look_at(d, offsets, labels, alpha, whole, sizes, weights, high, here, base)
            last = d
        labels[t] = -1
        counts[w, old] -= 1
        sizes[old] -= 1
        here[old] -= 1.0
        base[old] = (here[old] + alpha * weights[old]) / (sizes[old] + whole)
        total += math.log(score_slots(counts[w], base, eta, high, scores))
    return total


@compiled()
def put_in(rng, members, words, documents, offsets, alpha, eta, labels, counts, sizes, weights, high, here, base,
           scores):  # fmt: skip
    """Draw the topics of the tokens given all others; those without a topic have been counted nowhere."""
    whole, last = counts.shape[0] * eta, -1
    for m in range(len(members)):
        t = members[m]
        d, w, old = documents[t], words[t], labels[t]
        if d != last:
            look_at(d, offsets, labels, alpha, whole, sizes, weights, high, here, base)
            last = d
        if old >= 0:
            counts[w, old] -= 1
            sizes[old] -= 1
            here[old] -= 1.0
            base[old] = (here[old] + alpha * weights[old]) / (sizes[old] + whole)
        total = score_slots(counts[w], base, eta, high, scores)
        new = find_slot(rng.random() * total, high, scores)
        if new < 0:
            new = largest(high, scores)
        labels[t] = new
        counts[w, new] += 1
        sizes[new] += 1
        here[new] += 1.0
        base[new] = (here[new] + alpha * weights[new]) / (sizes[new] + whole)


@compiled()
def assign(members, words, wanted, labels, counts, sizes):
    """Give tokens without a topic these ones."""
    for m in range(len(members)):
        t = members[m]
        labels[t] = wanted[m]
        counts[words[t], wanted[m]] += 1
        sizes[wanted[m]] += 1


@compiled()
def dissolve(rng, members, words, documents, offsets, alpha, eta, log_prior, labels, counts, sizes, weights,
             here, base, scores, wanted):  # fmt: skip
    """Give the tokens of a topic to others if their words are predicted better then; returns whether.

    `log_prior` is what the density of the sticks gains, `wanted` has room for a label of each of the tokens.
    """
    capacity = counts.shape[1]
    gone, high = labels[members[0]], BLOCK
    for k in range(capacity):
        if sizes[k] > 0:
            high = max(high, (k // BLOCK + 1) * BLOCK)
    before = take_out(members, words, documents, offsets, alpha, eta, labels, counts, sizes, weights, high, here, base,
                      scores)  # fmt: skip
    for _ in range(1 + N_SCANS):
        put_in(rng, members, words, documents, offsets, alpha, eta, labels, counts, sizes, weights, high, here, base,
               scores)  # fmt: skip
    for m in range(len(members)):
        wanted[m] = labels[members[m]]
    after = take_out(members, words, documents, offsets, alpha, eta, labels, counts, sizes, weights, high, here, base,
                     scores)  # fmt: skip
    better = after - before + log_prior > 0.0
    if not better:
        wanted[:] = gone
    assign(members, words, wanted, labels, counts, sizes)
    return better
