# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of hierarchical Pachinko allocation; see `pluri.topics.hierarchical.pachinko_gibbs`.

The weight of a pair (s, t) for a word is ``rate_s lower_st f_t``, in the notation of `Document`, so that
``reach_t = sum_s rate_s lower_st`` gives that of sub-topic t by any way: a token costs as many operations as there are
topics, not pairs of them. Nodes are numbered root, super-topics, sub-topics.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._draws import place_of


class Priors(NamedTuple):
    """Of the shares of the root (n_super + 1) and of each super-topic (n_super, n_sub + 1), exit first."""

    root: Any
    sub: Any


class States(NamedTuple):
    """Super-topic of each token, 0 for the root and -1 for one that is not yet counted; sub-topic, 0 for none."""

    supers: Any
    subs: Any

    @classmethod
    def of(cls, *shape: int) -> States:
        """States of so many tokens."""
        return cls(np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32))


class Document(NamedTuple):
    """Where the tokens of a document are, or of the documents of several particles, with one more axis.

    ``upper`` (n_super + 1) is prior plus tokens that leave at the root and go to each super-topic; ``lower`` (n_super,
    n_sub + 1) is prior plus tokens that stay with a super-topic and go from it to each sub-topic; ``whole`` are the
    sums of its rows; ``rate_s = upper_s / whole_s``; ``reach`` (n_sub) is the weight of each sub-topic by any way.
    """

    upper: Any
    lower: Any
    whole: Any
    rate: Any
    reach: Any

    @classmethod
    def of(cls, priors: Priors, *particles: int) -> Document:
        """Room for a document, or for one of each of so many particles."""
        n_super, n_places = priors.sub.shape
        shapes = (n_super + 1,), (n_super, n_places), (n_super,), (n_super,), (n_places - 1,)
        return cls(*(np.zeros((*particles, *shape)) for shape in shapes))


@compiled(reorder=True, no_cpython_wrapper=True)
def start_document(priors, document):
    """Change the document: it has no tokens."""
    upper, lower, whole = document.upper, document.lower, document.whole
    for s in range(upper.size):
        upper[s] = priors.root[s]
    for s in range(whole.size):
        whole[s] = 0.0
        for t in range(lower.shape[1]):
            lower[s, t] = priors.sub[s, t]
            whole[s] += priors.sub[s, t]
        document.rate[s] = upper[s + 1] / whole[s]


@compiled(reorder=True, no_cpython_wrapper=True)
def find_reach(document):
    """Fill `reach` of the document from scratch."""
    lower, rate, reach = document.lower, document.rate, document.reach
    for t in range(reach.size):
        reach[t] = 0.0
    for s in range(rate.size):
        for t in range(reach.size):
            reach[t] += rate[s] * lower[s, t + 1]


@compiled(reorder=True, no_cpython_wrapper=True)
def shift(s, t, step, document):
    """Change the document: add a token to a state (step 1) or take it out (step -1).

    Super-topic 0 is the root, sub-topic 0 the exit.
    """
    upper, lower, whole, rate, reach = document
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


@compiled(reorder=True, no_cpython_wrapper=True)
def weigh(word, document, mass):
    """Fill `mass`: weight of each node for a word of which `word` holds the probability in each. Gives their sum."""
    lower, rate, reach = document.lower, document.rate, document.reach
    n_super, n_sub = rate.size, reach.size
    mass[0] = document.upper[0] * word[0]
    total = mass[0]
    for s in range(n_super):
        mass[s + 1] = rate[s] * lower[s, 0] * word[s + 1]
        total += mass[s + 1]
    for t in range(n_sub):
        mass[n_super + 1 + t] = max(reach[t], 0.0) * word[n_super + 1 + t]
        total += mass[n_super + 1 + t]
    return total


@compiled(no_cpython_wrapper=True)
def choose(mass, total, number, document, second):
    """Draw a node by its weight, and for a sub-topic the super-topic above it, by two numbers from [0, 1)."""
    lower, rate = document.lower, document.rate
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
def sweep(words, offsets, numbers, states, counts, sizes, priors, word_prior, document, word, mass, inverse):
    """Change states, `counts` and `sizes`: draw the state of every token given the others.

    The document, `word`, `mass` and `inverse` are room.
    """
    supers, subs = states
    upper, lower, whole, rate, _ = document
    n_super, n_words = whole.size, counts.shape[0]
    for k in range(sizes.size):
        inverse[k] = 1.0 / (n_words * word_prior + sizes[k])
    for d in range(offsets.size - 1):
        begin, end = offsets[d], offsets[d + 1]
        start_document(priors, document)
        for i in range(begin, end):
            s = supers[i]
            if s >= 0:
                upper[s] += 1.0
                if s > 0:
                    lower[s - 1, subs[i]] += 1.0
                    whole[s - 1] += 1.0
        for s in range(n_super):
            rate[s] = upper[s + 1] / whole[s]
        find_reach(document)
        for i in range(begin, end):
            s, t = supers[i], subs[i]
            row = counts[words[i]]
            if s >= 0:
                shift(s, t, -1.0, document)
                node = n_super + t if t > 0 else s
                row[node] -= 1
                sizes[node] -= 1
                inverse[node] = 1.0 / (n_words * word_prior + sizes[node])
            for k in range(word.size):
                word[k] = (word_prior + row[k]) * inverse[k]
            total = weigh(word, document, mass)
            s, t = choose(mass, total, numbers[i, 0], document, numbers[i, 1])
            supers[i], subs[i] = s, t
            shift(s, t, 1.0, document)
            node = n_super + t if t > 0 else s
            row[node] += 1
            sizes[node] += 1
            inverse[node] = 1.0 / (n_words * word_prior + sizes[node])


@compiled()
def count_states(words, supers, subs, n_super, counts, sizes):
    """Add to `counts` and `sizes` the words of each node."""
    for i in range(words.size):
        if supers[i] >= 0:
            node = n_super + subs[i] if subs[i] > 0 else supers[i]
            counts[words[i], node] += 1
            sizes[node] += 1


@compiled()
def list_uses(offsets, supers, subs, here, below, touched, taken, used, held, ways, on_way):
    """Fill the last four: super-topics that each document uses and its tokens there, 0 for the root; and ways below.

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
