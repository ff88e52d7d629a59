# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Compiled Gibbs sampling of the topics of new documents."""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.lda._lanes import add, load, lowest_bit, multiply, prefetch, replaced, spread, store, total
from pluri.topics.lda._token_draws import AHEAD, ZERO, next_bits, search

_f, _u = np.float32, np.uint64


@compiled(inline="always")
def ask_for(masks, flat, row):
    """Let the processor fetch the probabilities of a word in the blocks of topics that have a bit."""
    for mask in range(_u(len(masks))):
        bits = masks[_u(mask)]
        while bits != _u(0):
            prefetch(flat, row + _u(16) * (lowest_bit(bits) + _u(64) * _u(mask)))
            bits &= bits - _u(1)


@compiled(inline="always")
def draw_from_prior(flat, row, alpha, k, target, work):
    """Change `work`: topic at a target among the prior weights ``a_k phi_wk``, topic `k` left out."""
    n_blocks = _u(len(alpha)) >> _u(4)
    sums = spread(ZERO)
    for block in range(n_blocks):
        at = _u(16) * _u(block)
        weight = multiply(load(flat, row + at), load(alpha, at))
        sums = add(sums, replaced(weight, k - at, ZERO))
        store(work, at, sums)
    return search(sums, work, n_blocks, target)


@compiled(inline="always")
def move_token(in_document, held, masks, old, new, had_one):
    """Change the first three: a token has another topic, or its first."""
    if had_one:
        in_document[old] -= _f(1.0)
        held[old >> _u(4)] -= 1
        if held[old >> _u(4)] == 0:
            masks[old >> _u(10)] &= ~(_u(1) << ((old >> _u(4)) & _u(63)))
    in_document[new] += _f(1.0)
    held[new >> _u(4)] += 1
    masks[new >> _u(10)] |= _u(1) << ((new >> _u(4)) & _u(63))


@compiled()
def fold_in_documents(tokens, first, stop, seeds, known, n_sweeps, n_samples, room, theta):
    """Fill the topics of `tokens` and `theta`: sample the topics of documents first..stop given the topics' words.

    The weight of a topic is ``n_dk phi_wk + a_k phi_wk``: the first part is read only in blocks of topics that the
    document has, the second sums to ``smoothing[w]``. Row d of `theta` becomes the mean of ``(n_dk + a_k) / (n_d + A)``
    over the last `n_samples` sweeps. Each document has its own random numbers.
    """
    words, offsets, topics = tokens.words, tokens.offsets, tokens.topics
    alpha, smoothing, n_topics = known.alpha, known.smoothing, known.n_topics
    flat, width = known.phi.reshape(-1), _u(known.phi.shape[1])
    in_document, work, listed, held, masks = room
    alpha_total = 0.0
    for k in range(n_topics):
        alpha_total += alpha[k]
    for d in range(first, stop):
        state = (seeds[d, 0], seeds[d, 1] | _u(1))
        in_document[:] = ZERO
        held[:] = 0
        masks[:] = _u(0)
        for sweep in range(n_sweeps + n_samples):
            for i in range(offsets[d], offsets[d + 1]):
                if i + AHEAD < offsets[d + 1]:
                    ask_for(masks, flat, _u(words[i + AHEAD]) * width)
                w = _u(words[i])
                row = w * width
                k, stay, rest = width, ZERO, np.float64(smoothing[w])
                if sweep > 0:
                    k = _u(topics[i])
                    stay = (in_document[k] - _f(1.0) + alpha[k]) * flat[row + k]
                    rest = max(rest - np.float64(alpha[k] * flat[row + k]), 0.0)
                sums, n_listed = spread(ZERO), _u(0)
                for mask in range(_u(len(masks))):
                    bits = masks[_u(mask)]
                    while bits != _u(0):
                        block = lowest_bit(bits) + _u(64) * _u(mask)
                        bits &= bits - _u(1)
                        at = _u(16) * block
                        weight = multiply(load(flat, row + at), load(in_document, at))
                        sums = add(sums, replaced(weight, k - at, ZERO))
                        store(work, _u(16) * n_listed, sums)
                        listed[n_listed] = block
                        n_listed += _u(1)
                bits, state = next_bits(state)
                sparse = np.float64(total(sums))
                target = np.float64(bits >> _u(11)) * 2.0**-53 * (sparse + rest + stay) - stay
                if target < 0.0:
                    continue
                if target < sparse:
                    place = search(sums, work, n_listed, _f(target))
                    new = _u(16) * listed[place >> _u(4)] + (place & _u(15))
                else:
                    new = draw_from_prior(flat, row, alpha, k, _f(target - sparse), work)
                new = min(new, _u(n_topics - 1))
                move_token(in_document, held, masks, k, new, sweep > 0)
                topics[i] = new
            if sweep >= n_sweeps:
                for i in range(offsets[d], offsets[d + 1]):
                    theta[d, topics[i]] += 1.0
        length = offsets[d + 1] - offsets[d]
        for k in range(n_topics):
            theta[d, k] = (theta[d, k] / n_samples + alpha[k]) / (length + alpha_total)
