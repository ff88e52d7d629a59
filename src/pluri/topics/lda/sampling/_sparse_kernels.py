# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Compiled sweep of collapsed Gibbs sampling for many topics, of which a word has few.

The weight of a topic, see `_gibbs_kernels`, is ``n_wk c_k + e_w c_k``. Of the first part only blocks of sixteen topics
are read where word w has tokens (bits in `active`); of the second the sum is kept up to date, and it is searched only
if the draw falls there, block by block and then within one. The draws have the same distribution.
"""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.lda._lanes import (
    add,
    count_at_most,
    cumulated,
    lane_of,
    last,
    load,
    lowest_bit,
    multiply,
    prefetch,
    replaced,
    spread,
    store,
    subtract,
    total,
)
from pluri.topics.lda._token_draws import AHEAD, BELOW_ONE, ZERO, next_bits, search

_f, _u = np.float32, np.uint64


@compiled(allocates=False)
def mark_active(word_topic, active):
    """Fill `active`: bits of blocks of topics in which each word has tokens."""
    counts, width = word_topic.reshape(-1), word_topic.shape[1]
    active[:] = _u(0)
    for w in range(word_topic.shape[0]):
        for block in range(width // 16):
            if total(load(counts, w * width + 16 * block)) > ZERO:
                active[w, block // 64] |= _u(1) << _u(block % 64)


@compiled(allocates=False)
def set_share(share, block_share, k, value):
    """Change both arrays: a share and the sum of its block."""
    start = k & ~_u(15)
    block = replaced(load(share, start), k - start, value)
    store(share, start, block)
    block_share[k >> _u(4)] = total(block)


@compiled(allocates=False)
def draw_smoothing(share, block_share, work, target):
    """Topic at a target in the cumulated shares, or one that does not exist if rounding is unlucky."""
    n_rows = _u(len(block_share)) >> _u(4)
    sums = spread(ZERO)
    for row in range(n_rows):
        at = _u(16) * _u(row)
        sums = add(sums, load(block_share, at))
        store(work, at, sums)
    target = min(target, total(sums) * BELOW_ONE)
    block = search(sums, work, n_rows, target)
    lane = block & _u(15)
    rest = target - lane_of(subtract(cumulated(sums), sums), lane)
    if block > lane:
        rest -= work[block - _u(16)]
    ends = cumulated(load(share, _u(16) * block))
    return _u(16) * block + count_at_most(ends, max(ZERO, min(rest, last(ends) * BELOW_ONE)))


@compiled(inner=True, allocates=False)
def sum_blocks(topics, begin, end, share, block_share):
    """Change `block_share`: the sums of the shares of blocks that the tokens begin..end have."""
    for i in range(begin, end):
        block = _u(topics[i]) >> _u(4)
        block_share[block] = total(load(share, _u(16) * block))


@compiled(inner=True, allocates=False)
def without_tokens(totals, alpha, prior_totals, in_document, share, block_share):
    """Fill the last three for a document without tokens."""
    for k in range(len(alpha)):
        in_document[k] = 0
        share[k] = alpha[k] / (_f(totals[k]) + prior_totals[k])
    for block in range(len(share) // 16):
        block_share[block] = total(load(share, _u(16) * _u(block)))


@compiled(inner=True, allocates=False)
def open_document(tokens, d, totals, priors, room):
    """Change `room`: count the topics of a document, and set their shares; the sum of all shares."""
    topics, alpha, prior_totals = tokens.topics, priors.alpha, priors.word_totals
    in_document, share, block_share = room.in_document, room.share, room.block_share
    begin, end = tokens.offsets[d], tokens.offsets[d + 1]
    for i in range(begin, end):
        in_document[_u(topics[i])] += 1
    for i in range(begin, end):
        k = _u(topics[i])
        share[k] = (_f(in_document[k]) + alpha[k]) / (_f(totals[k]) + prior_totals[k])
    sum_blocks(topics, begin, end, share, block_share)
    all_shares = 0.0
    for row in range(_u(len(block_share)) >> _u(4)):
        all_shares += total(load(block_share, _u(16) * _u(row)))
    return all_shares


@compiled(inner=True, allocates=False)
def close_document(tokens, d, totals, priors, room):
    """Change `room`: shares are again those in a document without tokens."""
    topics, alpha, prior_totals = tokens.topics, priors.alpha, priors.word_totals
    in_document, share = room.in_document, room.share
    begin, end = tokens.offsets[d], tokens.offsets[d + 1]
    for i in range(begin, end):
        k = _u(topics[i])
        in_document[k] = 0
        share[k] = alpha[k] / (_f(totals[k]) + prior_totals[k])
    sum_blocks(topics, begin, end, share, room.block_share)


@compiled(inner=True, allocates=False)
def ask_for(active, table, w, width):
    """Let the processor fetch the counts of a word."""
    for mask in range(_u(active.shape[1])):
        bits = active[w, _u(mask)]
        while bits != _u(0):
            prefetch(table, w * width + _u(16) * (lowest_bit(bits) + _u(64) * _u(mask)))
            bits &= bits - _u(1)


@compiled(allocates=False)
def sparse_sweep(tokens, part, counts, active, priors, seeds, room):
    """Change `tokens`, `counts` and `active`: redraw topics as `dense_sweep` does, by reading those that words have.

    Bit b of ``active[w]`` says that word w has tokens in topics 16 b, ..., 16 b + 15.
    """
    words, topics, totals, begins, ends = tokens.words, tokens.topics, counts.totals, part.begins, part.ends
    alpha, prior, prior_totals = priors.alpha, priors.word, priors.word_totals
    in_document, share, work, block_share, listed = room
    n_topics, width = _u(len(alpha)), _u(counts.word_topic.shape[1])
    n_masks, table = _u(active.shape[1]), counts.word_topic.reshape(-1)
    state, n_moved = (seeds[0], seeds[1]), 0
    without_tokens(totals, alpha, prior_totals, in_document, share, block_share)
    for d in range(part.first, part.stop):
        all_shares = open_document(tokens, d, totals, priors, room)
        for i in range(begins[d], ends[d]):
            if i + AHEAD < ends[d]:
                ask_for(active, table, _u(words[i + AHEAD]), width)
            w, k = _u(words[i]), _u(topics[i])
            row = w * width
            n, eta, old = table[row + k], prior[w], share[k]
            low = (_f(in_document[k] - 1) + alpha[k]) / (_f(totals[k] - 1) + prior_totals[k])
            stay = (_f(n - 1) + eta) * low
            sums, n_blocks = spread(ZERO), _u(0)
            for mask in range(n_masks):
                bits = active[w, _u(mask)]
                while bits != _u(0):
                    block = lowest_bit(bits) + _u(64) * _u(mask)
                    bits &= bits - _u(1)
                    weight = multiply(load(table, row + _u(16) * block), load(share, _u(16) * block))
                    sums = add(sums, replaced(weight, k - _u(16) * block, ZERO))
                    store(work, _u(16) * n_blocks, sums)
                    listed[n_blocks] = block
                    n_blocks += _u(1)
            bits, state = next_bits(state)
            sparse = np.float64(total(sums))
            smooth = eta * max(all_shares - old, 0.0)
            target = np.float64(bits >> _u(11)) * 2.0**-53 * (sparse + smooth + stay) - stay
            if target < 0.0:
                continue
            if target < sparse:
                place = search(sums, work, n_blocks, _f(target))
                new = _u(16) * listed[place >> _u(4)] + (place & _u(15))
            else:
                set_share(share, block_share, k, ZERO)
                new = draw_smoothing(share, block_share, work, _f((target - sparse) / eta))
                set_share(share, block_share, k, old)
            if new < n_topics and new != k:
                n_moved += 1
                topics[i] = new
                table[row + k] = n - 1
                if n == 1 and total(load(table, row + (k & ~_u(15)))) == ZERO:
                    active[w, k >> _u(10)] &= ~(_u(1) << ((k >> _u(4)) & _u(63)))
                table[row + new] += 1
                active[w, new >> _u(10)] |= _u(1) << ((new >> _u(4)) & _u(63))
                in_document[k] -= 1
                in_document[new] += 1
                totals[k] -= 1
                totals[new] += 1
                high = (_f(in_document[new]) + alpha[new]) / (_f(totals[new]) + prior_totals[new])
                all_shares += np.float64(low - old) + np.float64(high - share[new])
                set_share(share, block_share, k, low)
                set_share(share, block_share, new, high)
        close_document(tokens, d, totals, priors, room)
    return n_moved
