# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Compiled Gibbs sampling of the topics of new documents."""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.lda._lanes import add, load, lowest_bit, multiply, prefetch, replaced, spread, store, total
from pluri.topics.lda._token_draws import AHEAD, ZERO, next_bits, search

_f, _u = np.float32, np.uint64


@compiled()
def fold_in_documents(
    words, offsets, first, stop, seeds, phi, alpha, n_topics, smoothing, n_sweeps, n_samples, topics, in_document,
    work, listed, held, masks, theta,
):  # fmt: skip
    """Sample topics of the tokens of documents given word probabilities `phi` (words, topics).

    The weight of a topic is ``n_dk phi_wk + a_k phi_wk``: the first part is read only in blocks of topics that the
    document has (`held` counts its tokens by block, `masks` has a bit for those that have some), the second sums to
    ``smoothing[w]``. Row d of `theta` becomes the mean of ``(n_dk + a_k) / (n_d + A)`` over the last `n_samples`
    sweeps. Each document has its own random numbers.
    """
    width = _u(phi.shape[1])
    n_masks = _u(len(masks))
    flat = phi.reshape(-1)
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
                    ahead = _u(words[i + AHEAD]) * width
                    for mask in range(n_masks):
                        bits = masks[_u(mask)]
                        while bits != _u(0):
                            prefetch(flat, ahead + _u(16) * (lowest_bit(bits) + _u(64) * _u(mask)))
                            bits &= bits - _u(1)
                w = _u(words[i])
                row = w * width
                k, stay, rest = width, ZERO, np.float64(smoothing[w])
                if sweep > 0:
                    k = _u(topics[i])
                    stay = (in_document[k] - _f(1.0) + alpha[k]) * flat[row + k]
                    rest = max(rest - np.float64(alpha[k] * flat[row + k]), 0.0)
                sums, n_listed = spread(ZERO), _u(0)
                for mask in range(n_masks):
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
                    sums = spread(ZERO)
                    for block in range(width >> _u(4)):
                        at = _u(16) * _u(block)
                        weight = multiply(load(flat, row + at), load(alpha, at))
                        sums = add(sums, replaced(weight, k - at, ZERO))
                        store(work, at, sums)
                    new = search(sums, work, width >> _u(4), _f(target - sparse))
                new = min(new, _u(n_topics - 1))
                if sweep > 0:
                    in_document[k] -= _f(1.0)
                    held[k >> _u(4)] -= 1
                    if held[k >> _u(4)] == 0:
                        masks[k >> _u(10)] &= ~(_u(1) << ((k >> _u(4)) & _u(63)))
                in_document[new] += _f(1.0)
                held[new >> _u(4)] += 1
                masks[new >> _u(10)] |= _u(1) << ((new >> _u(4)) & _u(63))
                topics[i] = new
            if sweep >= n_sweeps:
                for i in range(offsets[d], offsets[d + 1]):
                    theta[d, topics[i]] += 1.0
        length = offsets[d + 1] - offsets[d]
        for k in range(n_topics):
            theta[d, k] = (theta[d, k] / n_samples + alpha[k]) / (length + alpha_total)
