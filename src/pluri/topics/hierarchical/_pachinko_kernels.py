# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of hierarchical Pachinko allocation; see `pluri.topics.hierarchical.pachinko_gibbs`.

A document is ``upper`` (n_super + 1), prior plus tokens that leave at the root and go to each super-topic; ``lower``
(n_super, n_sub + 1), prior plus tokens that stay with a super-topic and go from it to each sub-topic; and ``whole``,
the sums of its rows. The weight of a pair (s, t) for a word is ``rate_s lower_st f_t``, rate_s = upper_s / whole_s, so
that ``reach_t = sum_s rate_s lower_st`` gives that of sub-topic t by any way: a token costs as many operations as there
are topics, not pairs of them. Nodes are numbered root, super-topics, sub-topics.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled
from pluri.topics._draws import place_of


class Words(NamedTuple):
    """Words of all tokens, document after document, and where each document begins (n_documents + 1)."""

    words: NDArray[Any]
    offsets: NDArray[Any]


class Document(NamedTuple):
    """Room for the counts of a document, as above; of several particles with an axis for them before the others."""

    upper: NDArray[Any]
    lower: NDArray[Any]
    whole: NDArray[Any]
    rate: NDArray[Any]
    reach: NDArray[Any]


def room_of_documents(sub_prior: NDArray[Any], *lead: int) -> Document:
    """Room for one document, or for as many as `lead` says."""
    n_super, n_places = sub_prior.shape
    shapes = (n_super + 1,), (n_super, n_places), (n_super,), (n_super,), (n_places - 1,)
    return Document(*(np.zeros((*lead, *shape)) for shape in shapes))


class Priors(NamedTuple):
    """Of the ways from the root (n_super + 1), and from each super-topic (n_super, n_sub + 1)."""

    root: NDArray[Any]
    sub: NDArray[Any]


class States(NamedTuple):
    """Super-topic and sub-topic of each token; words of each node, and how many they are."""

    supers: NDArray[Any]
    subs: NDArray[Any]
    counts: NDArray[Any]
    sizes: NDArray[Any]


class NodeRoom(NamedTuple):
    """Of each node: probability of a word, its weight, and the inverse of the mass of all words."""

    word: NDArray[Any]
    mass: NDArray[Any]
    inverse: NDArray[Any]


@compiled(reorder=True, inner=True)
def start_document(root_prior, sub_prior, upper, lower, whole, rate):
    """A document without tokens."""
    for s in range(root_prior.size):
        upper[s] = root_prior[s]
    for s in range(whole.size):
        whole[s] = 0.0
        for t in range(sub_prior.shape[1]):
            lower[s, t] = sub_prior[s, t]
            whole[s] += sub_prior[s, t]
        rate[s] = upper[s + 1] / whole[s]


@compiled(reorder=True, inner=True)
def find_reach(lower, rate, reach):
    """Weight of each sub-topic by any way, from scratch."""
    for t in range(reach.size):
        reach[t] = 0.0
    for s in range(rate.size):
        for t in range(reach.size):
            reach[t] += rate[s] * lower[s, t + 1]


@compiled(reorder=True, inner=True)
def shift(s, t, step, upper, lower, whole, rate, reach):
    """Add a token to a state (step 1) or take it out (step -1); super-topic 0 is the root, sub-topic 0 the exit."""
    upper[s] += step
    if s > 0:
        s -= 1
        old = rate[s]
        lower[s, t] += step
        whole[s] += step
        rate[s] = upper[s + 1] / whole[s]
        change = rate[s] - old
        row = lower[s]
        for j in range(reach.size):
            reach[j] += change * row[j + 1]
        if t > 0:
            reach[t - 1] += step * old


@compiled(reorder=True, inner=True)
def weigh(word, upper, lower, rate, reach, mass):
    """Weight of each node for a word of which `word` holds the probability in each; gives their sum."""
    n_super, n_sub = rate.size, reach.size
    mass[0] = upper[0] * word[0]
    total = mass[0]
    for s in range(n_super):
        mass[s + 1] = rate[s] * lower[s, 0] * word[s + 1]
        total += mass[s + 1]
    for t in range(n_sub):
        mass[n_super + 1 + t] = max(reach[t], 0.0) * word[n_super + 1 + t]
        total += mass[n_super + 1 + t]
    return total


@compiled(inner=True)
def choose(mass, total, number, lower, rate, second):
    """Draw a node by its weight, and for a sub-topic the super-topic above it, by two numbers from [0, 1)."""
    n_super = rate.size
    node = place_of(number * total, mass, mass.size)
    if node <= n_super:
        return node, 0
    t = node - n_super
    whole = 0.0
    for s in range(n_super):
        whole += rate[s] * lower[s, t]
    left = second * whole
    for s in range(n_super):
        left -= rate[s] * lower[s, t]
        if left < 0.0:
            return s + 1, t
    return n_super, t


@compiled(reorder=True)
def sweep(tokens, numbers, states, priors, word_prior, document, room):
    """Draw the state of every token given the others, in place; states below 0 are not yet in the counts."""
    words, offsets = tokens.words, tokens.offsets
    supers, subs, counts, sizes = states
    upper, lower, whole, rate, reach = document
    word, mass, inverse = room
    n_super, n_words = whole.size, counts.shape[0]
    for k in range(sizes.size):
        inverse[k] = 1.0 / (n_words * word_prior + sizes[k])
    for d in range(offsets.size - 1):
        begin, end = offsets[d], offsets[d + 1]
        start_document(priors.root, priors.sub, upper, lower, whole, rate)
        for i in range(begin, end):
            s = supers[i]
            if s >= 0:
                upper[s] += 1.0
                if s > 0:
                    lower[s - 1, subs[i]] += 1.0
                    whole[s - 1] += 1.0
        for s in range(n_super):
            rate[s] = upper[s + 1] / whole[s]
        find_reach(lower, rate, reach)
        for i in range(begin, end):
            s, t = supers[i], subs[i]
            row = counts[words[i]]
            if s >= 0:
                shift(s, t, -1.0, upper, lower, whole, rate, reach)
                node = n_super + t if t > 0 else s
                row[node] -= 1
                sizes[node] -= 1
                inverse[node] = 1.0 / (n_words * word_prior + sizes[node])
            for k in range(word.size):
                word[k] = (word_prior + row[k]) * inverse[k]
            total = weigh(word, upper, lower, rate, reach, mass)
            s, t = choose(mass, total, numbers[i, 0], lower, rate, numbers[i, 1])
            supers[i], subs[i] = s, t
            shift(s, t, 1.0, upper, lower, whole, rate, reach)
            node = n_super + t if t > 0 else s
            row[node] += 1
            sizes[node] += 1
            inverse[node] = 1.0 / (n_words * word_prior + sizes[node])


@compiled()
def count_states(words, supers, subs, n_super, counts, sizes):
    """Words of each node."""
    for i in range(words.size):
        if supers[i] >= 0:
            node = n_super + subs[i] if subs[i] > 0 else supers[i]
            counts[words[i], node] += 1
            sizes[node] += 1


@compiled()
def list_uses(offsets, supers, subs, here, below, touched, taken, used, held, ways, on_way):
    """Super-topics that each document uses and its tokens there, 0 for the root; and the same of the ways below them.

    A way is numbered by its super-topic, from 0 on, times the places below each, plus its place. `here`, `below` (zero)
    and `touched`, `taken` are room for one document. Gives how many were listed of each.
    """
    n_places = below.shape[1]
    n_used, n_ways = 0, 0
    for d in range(offsets.size - 1):
        n_touched, n_taken = 0, 0
        for i in range(offsets[d], offsets[d + 1]):
            s, t = supers[i], subs[i]
            if here[s] == 0:
                touched[n_touched] = s
                n_touched += 1
            here[s] += 1
            if s > 0:
                if below[s, t] == 0:
                    taken[n_taken] = s * n_places + t
                    n_taken += 1
                below[s, t] += 1
        for j in range(n_touched):
            s = touched[j]
            used[n_used], held[n_used] = s, here[s]
            here[s] = 0
            n_used += 1
        for j in range(n_taken):
            s, t = taken[j] // n_places, taken[j] % n_places
            ways[n_ways], on_way[n_ways] = taken[j] - n_places, below[s, t]
            below[s, t] = 0
            n_ways += 1
    return n_used, n_ways
