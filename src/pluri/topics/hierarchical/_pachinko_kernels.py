# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of hierarchical Pachinko allocation; see `pluri.topics.hierarchical.pachinko_gibbs`.

A document is ``upper`` (n_super + 1), prior plus tokens that leave at the root and go to each super-topic; ``lower``
(n_super, n_sub + 1), prior plus tokens that stay with a super-topic and go from it to each sub-topic; and ``whole``,
the sums of its rows. The weight of a pair (s, t) for a word is ``rate_s lower_st f_t``, rate_s = upper_s / whole_s, so
that ``reach_t = sum_s rate_s lower_st`` gives that of sub-topic t by any way: a token costs as many operations as there
are topics, not pairs of them. Nodes are numbered root, super-topics, sub-topics.
"""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled
from pluri.topics.hierarchical._uniforms import systematic, uniform


@compiled(reorder=True)
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


@compiled(reorder=True)
def find_reach(lower, rate, reach):
    """Weight of each sub-topic by any way, from scratch."""
    for t in range(reach.size):
        reach[t] = 0.0
    for s in range(rate.size):
        for t in range(reach.size):
            reach[t] += rate[s] * lower[s, t + 1]


@compiled(reorder=True)
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


@compiled(reorder=True)
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


@compiled()
def choose(mass, total, number, lower, rate, second):
    """Draw a node by its weight, and for a sub-topic the super-topic above it, by two numbers from [0, 1)."""
    n_super = rate.size
    left = number * total
    node = 0
    for k in range(mass.size):
        if mass[k] > 0.0:
            node = k
            left -= mass[k]
            if left < 0.0:
                break
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
def sweep(words, offsets, numbers, supers, subs, counts, sizes, root_prior, sub_prior, word_prior, upper, lower, whole,
          rate, reach, word, mass, inverse):  # fmt: skip
    """Draw the state of every token given the others; states below 0 are not yet in the counts."""
    n_super, n_words = whole.size, counts.shape[0]
    for k in range(sizes.size):
        inverse[k] = 1.0 / (n_words * word_prior + sizes[k])
    for d in range(offsets.size - 1):
        begin, end = offsets[d], offsets[d + 1]
        start_document(root_prior, sub_prior, upper, lower, whole, rate)
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
def count_uses(offsets, supers, subs, here, below, upper_uses, lower_uses, length_uses):
    """Number of documents that have more than j tokens in each place, j = 0, 1, ...: what Dirichlet priors see.

    False if a document has more tokens in a place than `lower_uses` has room for.
    """
    for d in range(offsets.size - 1):
        for i in range(offsets[d], offsets[d + 1]):
            length_uses[i - offsets[d]] += 1
            s, t = supers[i], subs[i]
            upper_uses[s, here[s]] += 1
            here[s] += 1
            if s > 0:
                if below[s - 1, t] == lower_uses.shape[2]:
                    return False
                lower_uses[s - 1, t, below[s - 1, t]] += 1
                below[s - 1, t] += 1
        for i in range(offsets[d], offsets[d + 1]):
            here[supers[i]] = 0
            if supers[i] > 0:
                below[supers[i] - 1, subs[i]] = 0
    return True


@compiled()
def fold_in(offsets, words, topics, root_prior, sub_prior, seed, n_burn, n_keep, supers, subs, upper, lower, whole,
            rate, reach, mass, state, shares):  # fmt: skip
    """Expected shares of the nodes in each document; every document has the same random numbers."""
    n_super, n_sub = whole.size, reach.size
    concentration = 0.0
    for s in range(root_prior.size):
        concentration += root_prior[s]
    for d in range(offsets.size - 1):
        begin, length = offsets[d], offsets[d + 1] - offsets[d]
        state[0] = seed
        start_document(root_prior, sub_prior, upper, lower, whole, rate)
        find_reach(lower, rate, reach)
        for turn in range(1 + n_burn + n_keep):
            for i in range(length):
                if turn > 0:
                    shift(supers[i], subs[i], -1.0, upper, lower, whole, rate, reach)
                total = weigh(topics[words[begin + i]], upper, lower, rate, reach, mass)
                supers[i], subs[i] = choose(mass, total, uniform(state), lower, rate, uniform(state))
                shift(supers[i], subs[i], 1.0, upper, lower, whole, rate, reach)
            find_reach(lower, rate, reach)
            if turn > n_burn or length == 0:
                scale = 1.0 / (concentration + length)
                shares[d, 0] += scale * upper[0]
                for s in range(n_super):
                    shares[d, s + 1] += scale * rate[s] * lower[s, 0]
                for t in range(n_sub):
                    shares[d, n_super + 1 + t] += scale * reach[t]


@compiled()
def left_to_right(offsets, words, topics, root_prior, sub_prior, n_particles, state, supers, subs, upper, lower, whole,
                  rate, reach, mass, probability, ancestors, total, scores):  # fmt: skip
    """Log probability of each document, token after token, by particles that are moved, weighed and drawn again."""
    n_super, n_sub = whole.shape[2], reach.shape[2]
    concentration = 0.0
    for s in range(root_prior.size):
        concentration += root_prior[s]
    for d in range(offsets.size - 1):
        begin, length = offsets[d], offsets[d + 1] - offsets[d]
        now, other = 0, 1
        for r in range(n_particles):
            start_document(root_prior, sub_prior, upper[now, r], lower[now, r], whole[now, r], rate[now, r])
            find_reach(lower[now, r], rate[now, r], reach[now, r])
        scores[d] = 0.0
        for n in range(length):
            word = topics[words[begin + n]]
            mean = 0.0
            for r in range(n_particles):
                own_upper, own_lower, own_whole = upper[now, r], lower[now, r], whole[now, r]
                own_rate, own_reach = rate[now, r], reach[now, r]
                for i in range(n):
                    shift(supers[now, r, i], subs[now, r, i], -1.0, own_upper, own_lower, own_whole, own_rate,
                          own_reach)  # fmt: skip
                    weight = weigh(topics[words[begin + i]], own_upper, own_lower, own_rate, own_reach, mass[r])
                    s, t = choose(mass[r], weight, uniform(state), own_lower, own_rate, uniform(state))
                    supers[now, r, i], subs[now, r, i] = s, t
                    shift(s, t, 1.0, own_upper, own_lower, own_whole, own_rate, own_reach)
                find_reach(own_lower, own_rate, own_reach)
                total[r] = weigh(word, own_upper, own_lower, own_rate, own_reach, mass[r])
                probability[r] = total[r] / (concentration + n)
                mean += probability[r] / n_particles
            scores[d] += math.log(mean)
            systematic(probability, uniform(state), ancestors)
            for r in range(n_particles):
                a = ancestors[r]
                for i in range(n):
                    supers[other, r, i] = supers[now, a, i]
                    subs[other, r, i] = subs[now, a, i]
                for s in range(n_super + 1):
                    upper[other, r, s] = upper[now, a, s]
                for s in range(n_super):
                    whole[other, r, s] = whole[now, a, s]
                    rate[other, r, s] = rate[now, a, s]
                    for t in range(n_sub + 1):
                        lower[other, r, s, t] = lower[now, a, s, t]
                for t in range(n_sub):
                    reach[other, r, t] = reach[now, a, t]
                s, t = choose(mass[a], total[a], uniform(state), lower[other, r], rate[other, r], uniform(state))
                supers[other, r, n], subs[other, r, n] = s, t
                shift(s, t, 1.0, upper[other, r], lower[other, r], whole[other, r], rate[other, r], reach[other, r])
            now, other = other, now
