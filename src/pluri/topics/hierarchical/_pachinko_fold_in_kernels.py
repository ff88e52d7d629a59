# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over new documents of Pachinko allocation; see `pluri.topics.hierarchical.fitted_pachinko`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._draws import uniform
from pluri.topics.held_out._particle_kernels import copy_whom, few_effective, normalise
from pluri.topics.hierarchical._pachinko_kernels import (
    Document,
    Priors,
    States,
    choose,
    find_reach,
    shift,
    start_document,
    weigh,
)


class Particles(NamedTuple):
    """Weighted particles: states of the tokens so far, the document they make; `offspring` and `source` are room."""

    states: States
    documents: Document
    weight: Any
    offspring: Any
    source: Any

    @classmethod
    def of(cls, size: int, longest: int, priors: Priors) -> Particles:
        """So many particles for documents of at most so many tokens."""
        chosen = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        return cls(States.of(size, longest), Document.of(priors, size), np.zeros(size), *chosen)


@compiled(no_cpython_wrapper=True)
def draw_state(i, word, states, document, mass, random):
    """Change the state of token i, drawn given those in the document, and put it there; gives the total weight."""
    total = weigh(word, document, mass)
    s, t = choose(mass, total, uniform(random), document, uniform(random))
    states.supers[i], states.subs[i] = s, t
    shift(s, t, 1.0, document)
    return total


@compiled()
def fold_in(offsets, words, topics, priors, seed, n_warmup, n_draws, states, document, mass, random, shares):
    """Add to `shares` the shares of the nodes in each document, of each draw; the arguments before it are room.

    Every document has the same random numbers.
    """
    n_super, n_sub = document.whole.size, document.reach.size
    concentration = 0.0
    for s in range(n_super + 1):
        concentration += priors.root[s]
    for d in range(offsets.size - 1):
        begin, length = offsets[d], offsets[d + 1] - offsets[d]
        random[0] = seed
        start_document(priors, document)
        find_reach(document)
        for turn in range(1 + n_warmup + n_draws):
            for i in range(length):
                if turn > 0:
                    shift(states.supers[i], states.subs[i], -1.0, document)
                draw_state(i, topics[words[begin + i]], states, document, mass, random)
            find_reach(document)
            if turn > n_warmup or length == 0:
                scale = 1.0 / (concentration + length)
                shares[d, 0] += scale * document.upper[0]
                for s in range(n_super):
                    shares[d, s + 1] += scale * document.rate[s] * document.lower[s, 0]
                for t in range(n_sub):
                    shares[d, n_super + 1 + t] += scale * document.reach[t]


@compiled()
def left_to_right(offsets, words, topics, priors, particles, mass, random, scores):
    """Fill `scores`: log probability of each document, token after token, by weighted particles."""
    (supers, subs), documents, weight, offspring, source = particles
    upper, lower, whole, rate, reach = documents
    n_particles = weight.size
    concentration = 0.0
    for s in range(priors.root.size):
        concentration += priors.root[s]
    for d in range(offsets.size - 1):
        begin, length = offsets[d], offsets[d + 1] - offsets[d]
        for r in range(n_particles):
            document = Document(upper[r], lower[r], whole[r], rate[r], reach[r])
            start_document(priors, document)
            find_reach(document)
        weight[:] = 1.0 / n_particles
        scores[d] = 0.0
        for n in range(length):
            for r in range(n_particles):
                document, states = Document(upper[r], lower[r], whole[r], rate[r], reach[r]), States(supers[r], subs[r])
                for i in range(n):
                    shift(states.supers[i], states.subs[i], -1.0, document)
                    draw_state(i, topics[words[begin + i]], states, document, mass, random)
                find_reach(document)
                weight[r] *= draw_state(n, topics[words[begin + n]], states, document, mass, random) / (
                    concentration + n
                )
            scores[d] += math.log(normalise(weight))
            if n + 1 < length and few_effective(weight):
                copy_whom(uniform(random), weight, offspring, source)
                for r in range(n_particles):
                    a = source[r]
                    if a != r:
                        supers[r, : n + 1], subs[r, : n + 1] = supers[a, : n + 1], subs[a, : n + 1]
                        upper[r], lower[r], whole[r] = upper[a], lower[a], whole[a]
                        rate[r], reach[r] = rate[a], reach[a]
