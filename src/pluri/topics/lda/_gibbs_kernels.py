# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Compiled sweeps of collapsed Gibbs sampling for latent Dirichlet allocation.

A token of word w in document d, without itself, has topic k with weight ``(n_wk + e_wk) c_k`` where
``c_k = (n_dk + a_k) / (n_k + E_k)``. Topics are looked at sixteen at a time, in any order that suits: lane by lane.

- The token's present topic comes first. If the draw falls on it nothing changes, and as that happens often, the
  processor guesses so and begins with the next token: more than half of the speed.
- `dense_sweep` goes through all topics. `sparse_sweep` splits the weight into ``n_wk c_k``, of which it reads only
  blocks of sixteen topics where word w has tokens (bits in `active`), and ``e_w c_k``, whose sum is kept up to date
  and which is searched only if the draw falls there, block by block and then within one. Both are exact.

Counts are whole numbers and `c` is computed from them anew whenever it changes, so that nothing drifts.
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
TINY_UNIT = _f(2.0**-24)
#: Blocks of a row that are asked for; the processor guesses that it needs those behind them.
FEW_BLOCKS = _u(8)


@compiled()
def dense_sweep(
    words, offsets, begins, ends, first, stop, topics, word_topic, totals, alpha, prior, prior_by_topic, prior_totals,
    seeds, in_document, share, work,
):  # fmt: skip
    """Redraw tokens begins[d]..ends[d] of documents first..stop by going through all topics; how many moved.

    `prior` has an entry for each word or, if `prior_by_topic`, the shape of `word_topic`, flat.
    """
    n_topics, width = _u(len(alpha)), _u(word_topic.shape[1])
    n_blocks = width >> _u(4)
    counts = word_topic.reshape(-1)
    state = (seeds[0], seeds[1])
    n_moved = 0
    for d in range(first, stop):
        for k in range(width):
            in_document[k] = 0
        for i in range(offsets[d], offsets[d + 1]):
            in_document[_u(topics[i])] += 1
        for k in range(n_topics):
            share[k] = (_f(in_document[k]) + alpha[k]) / (_f(totals[k]) + prior_totals[k])
        for i in range(begins[d], ends[d]):
            if i + AHEAD < ends[d]:
                for block in range(min(n_blocks, FEW_BLOCKS)):
                    prefetch(counts, _u(words[i + AHEAD]) * width + _u(16) * _u(block))
            w, k = _u(words[i]), _u(topics[i])
            row = w * width
            n = counts[row + k]
            eta = prior[row + k] if prior_by_topic else prior[w]
            low = (_f(in_document[k] - 1) + alpha[k]) / (_f(totals[k] - 1) + prior_totals[k])
            stay = (_f(n - 1) + eta) * low
            bits, state = next_bits(state)
            sums, smoothing = spread(ZERO), spread(eta)
            for block in range(n_blocks):
                at = _u(16) * _u(block)
                if prior_by_topic:
                    smoothing = load(prior, row + at)
                weight = multiply(add(load(counts, row + at), smoothing), load(share, at))
                sums = add(sums, replaced(weight, k - at, ZERO))
                store(work, at, sums)
            target = _f(bits >> _u(40)) * TINY_UNIT * (total(sums) + stay) - stay
            if target >= ZERO:
                new = search(sums, work, n_blocks, target)
                if new < n_topics:
                    n_moved += 1
                    topics[i] = new
                    counts[row + k] = n - 1
                    counts[row + new] += 1
                    in_document[k] -= 1
                    in_document[new] += 1
                    totals[k] -= 1
                    totals[new] += 1
                    high = (_f(in_document[new]) + alpha[new]) / (_f(totals[new]) + prior_totals[new])
                    # Whole blocks are written, as whole blocks are read next: a processor cannot join a short store
                    # and a long load, and would wait.
                    block = k & ~_u(15)
                    store(share, block, replaced(load(share, block), k - block, low))
                    block = new & ~_u(15)
                    store(share, block, replaced(load(share, block), new - block, high))
    return n_moved


@compiled()
def set_share(share, block_share, k, value):
    """Change a share and the sum of its block."""
    start = k & ~_u(15)
    block = replaced(load(share, start), k - start, value)
    store(share, start, block)
    block_share[k >> _u(4)] = total(block)


@compiled()
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


@compiled()
def sparse_sweep(
    words, offsets, begins, ends, first, stop, topics, word_topic, totals, alpha, prior, active, prior_totals, seeds,
    in_document, share, work, block_share, listed,
):  # fmt: skip
    """Redraw tokens as `dense_sweep` does, by reading only blocks of topics in which a word has tokens.

    Bit b of ``active[w]`` says that word w has tokens in topics 16 b, ..., 16 b + 15.
    """
    n_topics, width = _u(len(alpha)), _u(word_topic.shape[1])
    n_masks = _u(active.shape[1])
    counts = word_topic.reshape(-1)
    state = (seeds[0], seeds[1])
    n_moved = 0
    for k in range(n_topics):
        share[k] = alpha[k] / (_f(totals[k]) + prior_totals[k])
    for block in range(width >> _u(4)):
        block_share[block] = total(load(share, _u(16) * _u(block)))
    for d in range(first, stop):
        for i in range(offsets[d], offsets[d + 1]):
            in_document[_u(topics[i])] += 1
        for i in range(offsets[d], offsets[d + 1]):
            k = _u(topics[i])
            share[k] = (_f(in_document[k]) + alpha[k]) / (_f(totals[k]) + prior_totals[k])
        for i in range(offsets[d], offsets[d + 1]):
            block = _u(topics[i]) >> _u(4)
            block_share[block] = total(load(share, _u(16) * block))
        all_shares = 0.0
        for row in range(_u(len(block_share)) >> _u(4)):
            all_shares += total(load(block_share, _u(16) * _u(row)))
        for i in range(begins[d], ends[d]):
            if i + AHEAD < ends[d]:
                w = _u(words[i + AHEAD])
                for mask in range(n_masks):
                    bits = active[w, _u(mask)]
                    while bits != _u(0):
                        prefetch(counts, w * width + _u(16) * (lowest_bit(bits) + _u(64) * _u(mask)))
                        bits &= bits - _u(1)
            w, k = _u(words[i]), _u(topics[i])
            row = w * width
            n, eta, old = counts[row + k], prior[w], share[k]
            low = (_f(in_document[k] - 1) + alpha[k]) / (_f(totals[k] - 1) + prior_totals[k])
            stay = (_f(n - 1) + eta) * low
            sums, n_blocks = spread(ZERO), _u(0)
            for mask in range(n_masks):
                bits = active[w, _u(mask)]
                while bits != _u(0):
                    block = lowest_bit(bits) + _u(64) * _u(mask)
                    bits &= bits - _u(1)
                    weight = multiply(load(counts, row + _u(16) * block), load(share, _u(16) * block))
                    sums = add(sums, replaced(weight, k - _u(16) * block, ZERO))
                    store(work, _u(16) * n_blocks, sums)
                    listed[n_blocks] = block
                    n_blocks += _u(1)
            bits, state = next_bits(state)
            sparse = np.float64(total(sums))
            smooth = eta * max(all_shares - old, 0.0)
            target = np.float64(bits >> _u(11)) * 2.0**-53 * (sparse + smooth + stay) - stay
            if target >= 0.0:
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
                    counts[row + k] = n - 1
                    if n == 1 and total(load(counts, row + (k & ~_u(15)))) == ZERO:
                        active[w, k >> _u(10)] &= ~(_u(1) << ((k >> _u(4)) & _u(63)))
                    counts[row + new] += 1
                    active[w, new >> _u(10)] |= _u(1) << ((new >> _u(4)) & _u(63))
                    in_document[k] -= 1
                    in_document[new] += 1
                    totals[k] -= 1
                    totals[new] += 1
                    high = (_f(in_document[new]) + alpha[new]) / (_f(totals[new]) + prior_totals[new])
                    all_shares += np.float64(low - old) + np.float64(high - share[new])
                    set_share(share, block_share, k, low)
                    set_share(share, block_share, new, high)
        for i in range(offsets[d], offsets[d + 1]):
            k = _u(topics[i])
            in_document[k] = 0
            share[k] = alpha[k] / (_f(totals[k]) + prior_totals[k])
        for i in range(offsets[d], offsets[d + 1]):
            block = _u(topics[i]) >> _u(4)
            block_share[block] = total(load(share, _u(16) * block))
    return n_moved


@compiled()
def seat(
    words, offsets, first, topics, word_topic, totals, alpha, prior, prior_by_topic, prior_totals, seeds, in_document,
    share, work,
):  # fmt: skip
    """Give tokens that have no topic (-1) one in turn, each given those before it; from document `first` on."""
    n_topics, width = _u(len(alpha)), _u(word_topic.shape[1])
    counts = word_topic.reshape(-1)
    state = (seeds[0], seeds[1])
    for d in range(first, len(offsets) - 1):
        for k in range(width):
            in_document[k] = 0
        for i in range(offsets[d], offsets[d + 1]):
            if topics[i] >= 0:
                in_document[_u(topics[i])] += 1
        for k in range(n_topics):
            share[k] = (_f(in_document[k]) + alpha[k]) / (_f(totals[k]) + prior_totals[k])
        for i in range(offsets[d], offsets[d + 1]):
            if topics[i] >= 0:
                continue
            w = _u(words[i])
            row = w * width
            bits, state = next_bits(state)
            sums, smoothing = spread(ZERO), spread(prior[w])
            for block in range(width >> _u(4)):
                at = _u(16) * _u(block)
                if prior_by_topic:
                    smoothing = load(prior, row + at)
                sums = add(sums, multiply(add(load(counts, row + at), smoothing), load(share, at)))
                store(work, at, sums)
            new = search(sums, work, width >> _u(4), _f(bits >> _u(40)) * TINY_UNIT * total(sums))
            new = min(new, n_topics - _u(1))
            topics[i] = new
            counts[row + new] += 1
            in_document[new] += 1
            totals[new] += 1
            share[new] = (_f(in_document[new]) + alpha[new]) / (_f(totals[new]) + prior_totals[new])
