# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over new documents in a Pachinko allocation; see `pluri.topics.hierarchical.pachinko`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numpy.typing import NDArray

from pluri.engine.compiled import compiled
from pluri.topics._draws import uniform
from pluri.topics.held_out._particle_kernels import copy_whom, few_effective, normalise
from pluri.topics.hierarchical._pachinko_kernels import choose, find_reach, shift, start_document, weigh


class Resampling(NamedTuple):
    """Weight of each particle, its offspring, and whom it is a copy of."""

    weight: NDArray[Any]
    offspring: NDArray[Any]
    source: NDArray[Any]


@compiled()
def fold_in(tokens, topics, priors, seed, n_warmup, n_draws, supers, subs, document, mass, state, shares):
    """Add up in `shares` those of the nodes in each document; every document has the same random numbers."""
    words, offsets, root_prior = tokens.words, tokens.offsets, priors.root
    upper, lower, whole, rate, reach = document
    n_super, n_sub = whole.size, reach.size
    concentration = 0.0
    for s in range(root_prior.size):
        concentration += root_prior[s]
    for d in range(offsets.size - 1):
        begin, length = offsets[d], offsets[d + 1] - offsets[d]
        state[0] = seed
        start_document(priors.root, priors.sub, upper, lower, whole, rate)
        find_reach(lower, rate, reach)
        for turn in range(1 + n_warmup + n_draws):
            for i in range(length):
                if turn > 0:
                    shift(supers[i], subs[i], -1.0, upper, lower, whole, rate, reach)
                total = weigh(topics[words[begin + i]], upper, lower, rate, reach, mass)
                supers[i], subs[i] = choose(mass, total, uniform(state), lower, rate, uniform(state))
                shift(supers[i], subs[i], 1.0, upper, lower, whole, rate, reach)
            find_reach(lower, rate, reach)
            if turn > n_warmup or length == 0:
                scale = 1.0 / (concentration + length)
                shares[d, 0] += scale * upper[0]
                for s in range(n_super):
                    shares[d, s + 1] += scale * rate[s] * lower[s, 0]
                for t in range(n_sub):
                    shares[d, n_super + 1 + t] += scale * reach[t]


@compiled()
def left_to_right(tokens, topics, priors, state, supers, subs, document, mass, resampling, scores):
    """Write into `scores` the log probability of each document, token after token, by weighted particles."""
    words, offsets, root_prior, sub_prior = tokens.words, tokens.offsets, priors.root, priors.sub
    upper, lower, whole, rate, reach = document
    weight, offspring, source = resampling
    n_particles = weight.size
    concentration = 0.0
    for s in range(root_prior.size):
        concentration += root_prior[s]
    for d in range(offsets.size - 1):
        begin, length = offsets[d], offsets[d + 1] - offsets[d]
        for r in range(n_particles):
            start_document(root_prior, sub_prior, upper[r], lower[r], whole[r], rate[r])
            find_reach(lower[r], rate[r], reach[r])
        weight[:] = 1.0 / n_particles
        scores[d] = 0.0
        for n in range(length):
            for r in range(n_particles):
                own_upper, own_lower, own_whole, own_rate, own_reach = upper[r], lower[r], whole[r], rate[r], reach[r]
                for i in range(n):
                    shift(supers[r, i], subs[r, i], -1.0, own_upper, own_lower, own_whole, own_rate, own_reach)
                    total = weigh(topics[words[begin + i]], own_upper, own_lower, own_rate, own_reach, mass)
                    s, t = choose(mass, total, uniform(state), own_lower, own_rate, uniform(state))
                    supers[r, i], subs[r, i] = s, t
                    shift(s, t, 1.0, own_upper, own_lower, own_whole, own_rate, own_reach)
                find_reach(own_lower, own_rate, own_reach)
                total = weigh(topics[words[begin + n]], own_upper, own_lower, own_rate, own_reach, mass)
                weight[r] *= total / (concentration + n)
                s, t = choose(mass, total, uniform(state), own_lower, own_rate, uniform(state))
                supers[r, n], subs[r, n] = s, t
                shift(s, t, 1.0, own_upper, own_lower, own_whole, own_rate, own_reach)
            scores[d] += math.log(normalise(weight))
            if n + 1 < length and few_effective(weight):
                copy_whom(uniform(state), weight, offspring, source)
                for r in range(n_particles):
                    a = source[r]
                    if a != r:
                        supers[r, : n + 1], subs[r, : n + 1] = supers[a, : n + 1], subs[a, : n + 1]
                        upper[r], lower[r], whole[r] = upper[a], lower[a], whole[a]
                        rate[r], reach[r] = rate[a], reach[a]
