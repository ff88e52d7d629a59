# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Compiled loops of variational Bayes: documents given topics.

Tables are (n_words, width), as `_topic_kernels` makes them: the topics of a word lie side by side, padded with zeros to
a multiple of eight, so that the loops over topics become vector instructions. Factors that cancel in phi are left out:
a row of the table is divided by its largest entry, and E[log theta] is taken without psi(sum_k gamma_k); only the bound
adds them again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._special_functions import digamma, exp_psi_parts, exponentials, log_gamma
from pluri.topics.lda._vector_rows import add_rows, columns_step, rows_times
from pluri.topics.lda.aligned_arrays import LANES
from pluri.topics.lda.variational._left_out_kernels import all_topics, bring_back, leave_out, returned, update

#: A word whose probability is below this is done in log space, since factors that were set to zero could matter.
TINY = 1e-110


@compiled(reorder=True, inner=True, allocates=False)
def _log_share(gamma, word_topic, word, psi_totals, shares):
    """Logarithm of sum_k exp(psi(gamma_k) + E[log beta_kw]) for one word, and its shares phi, in log space."""
    n_topics = psi_totals.size
    largest = -np.inf
    for k in range(n_topics):
        shares[k] = digamma(gamma[k]) + digamma(word_topic[word, k]) - psi_totals[k]
        largest = max(largest, shares[k])
    total = 0.0
    for k in range(n_topics):
        shares[k] = math.exp(shares[k] - largest)
        total += shares[k]
    for k in range(n_topics):
        shares[k] /= total
    return largest + math.log(total)


@compiled(reorder=True, inner=True, allocates=False)
def _prior_terms(alpha, log_gamma_alpha, psi_alpha):
    """Fill the last two; log Gamma of the sum of alpha."""
    total = 0.0
    for k in range(alpha.size):
        total += alpha[k]
        log_gamma_alpha[k], psi_alpha[k] = log_gamma(alpha[k]), digamma(alpha[k])
    return log_gamma(total)


@compiled(reorder=True, inner=True, allocates=False)
def _read(words, data, table, counts, softening, rows):
    """Fill the last three for a document, its words padded to whole vectors; its length."""
    n, width = words.size, table.shape[1]
    length = 0.0
    for w in range((n + LANES - 1) // LANES * LANES):
        i = words[min(w, n - 1)]
        counts[w] = data[w] if w < n else 0.0
        length += counts[w]
        softening[w] = 0.0
        for k in range(width):
            rows[w * width + k] = table[i, k]
    return length


@compiled(reorder=True, inner=True, allocates=False)
def _expectations(width, current, exponents, powers, bits, theta):
    """Fill `theta`: exp(E[log theta])."""
    for k in range(width):
        theta[k], s = exp_psi_parts(current[k])
        exponents[k] = -s
    exponentials(width, exponents, powers, bits, theta)


@compiled(reorder=True, inner=True, allocates=False)
def _divide(rows, padded, width, theta, counts, softening, norms, ratios):
    """Fill the last two: probabilities of words, and counts over them."""
    rows_times(rows, padded, width, theta, norms)
    for w in range(padded):
        ratios[w] = counts[w] / (norms[w] + softening[w])


@compiled(reorder=True, inner=True, allocates=False)
def _all_sound(norms, softening, padded):
    """Whether no word is too improbable."""
    n_unsound = 0
    for w in range(padded):
        n_unsound += 1 if norms[w] + softening[w] < TINY else 0
    return n_unsound == 0


@compiled(reorder=True, inner=True, allocates=False)
def _expected_counts(packed, rows, padded, width, ratios, theta, sums):
    """Fill `sums`, of which columns that are packed have a part already."""
    if not packed:
        for k in range(width):
            sums[k] = 0.0
        add_rows(rows, padded, width, ratios, sums)
    for k in range(width):
        sums[k] *= theta[k]


@compiled(reorder=True, inner=True, allocates=False)
def _soften(words, topics, epsilon, elsewhere, current, n_live, last_total, softening):
    """Change `softening`, what is added to the probability of each word, if the sum of gamma has changed; that sum."""
    total, inverse_top = elsewhere, topics.inverse_top
    for k in range(n_live):
        total += current[k]
    if abs(total - last_total) > 1e-13 * total:  # it hardly ever changes
        last_total = total
        soften = epsilon * math.exp(digamma(total))
        for w in range(words.size):
            softening[w] = soften * inverse_top[words[w]]
    return last_total


@compiled(reorder=True, inner=True, allocates=False)
def _unsound_sums(words, topics, room):
    """Fill the expected counts of all topics once more, in log space for the words whose probability is too small."""
    sums, shares, norms, ratios, counts = room.sums, room.shares, room.norms, room.ratios, room.counts
    theta, rows, width, n_topics = room.theta, room.rows, room.theta.size, topics.psi_totals.size
    for k in range(width):
        sums[k] = 0.0
    for w in range(words.size):
        if norms[w] < TINY:
            _log_share(room.current, topics.word_topic, words[w], topics.psi_totals, shares)
        for k in range(n_topics):
            share = counts[w] * shares[k] if norms[w] < TINY else ratios[w] * theta[k] * rows[w * width + k]
            sums[k] += share


@compiled(reorder=True, inner=True, allocates=False)
def _add_up(document, words, share, length, constant, topics, alpha, epsilon, was_packed, n_kept, room, found):
    """Fill gamma and the bound of a document in `found`, and add its expected counts and E[log theta] there."""
    current, theta, rows, kept, shares = room.current, room.theta, room.rows, room.kept, room.shares
    counts, norms, ratios, psi_alpha, log_gamma_alpha = (
        room.counts, room.norms, room.ratios, room.psi_alpha, room.log_gamma_alpha
    )  # fmt: skip
    gamma, stats, log_theta, bounds, top = found.gamma, found.stats, found.log_theta, found.bounds, topics.top
    n_topics, full = alpha.size, theta.size
    total = 0.0
    for k in range(n_topics):
        gamma[document, k] = current[k]
        total += current[k]
    if stats.size == 0 and bounds.size == 0:
        return
    psi_total = digamma(total)
    if not was_packed:
        n_kept = n_topics
        for k in range(n_topics):
            kept[k] = k
    # A topic that has lost the document has gamma = alpha: its terms of the bound cancel.
    bound = constant - log_gamma(total) - length * psi_total
    for k in range(n_topics):
        log_theta[k] += share * (psi_alpha[k] - psi_total)
    for j in range(n_kept):
        k = kept[j]
        psi_k = digamma(current[k])
        log_theta[k] += share * (psi_k - psi_alpha[k])
        bound += (alpha[k] - current[k]) * (psi_k - psi_total) + log_gamma(current[k]) - log_gamma_alpha[k]
    for w in range(words.size):
        i = words[w]
        if norms[w] < TINY:
            bound += counts[w] * _log_share(current, topics.word_topic, i, topics.psi_totals, shares)
        elif bounds.size:
            bound += counts[w] * (math.log(norms[w]) + top[i])
        if stats.size:
            ratio = share * ratios[w]
            if epsilon is None and norms[w] < TINY:
                for k in range(n_topics):
                    stats[i, k] += share * counts[w] * shares[k]
            elif was_packed:
                for j in range(n_kept):
                    stats[i, kept[j]] += ratio * theta[kept[j]] * rows[w * full + kept[j]]
            else:
                for k in range(full):
                    stats[i, k] += ratio * theta[k] * rows[w * full + k]
    if bounds.size:
        bounds[document] = bound


@compiled(reorder=True, allocates=False)
def documents(counts, topics, alpha, start, max_iter, tol, epsilon, room, found):
    """Fill `found`: bring gamma of every document to rest given the topics, and add up what follows; iterations.

    Topics that have lost a document are left out of its iterations: their expected count is below LOST, and so is what
    they would change. All topics are asked again at the end, and if one came back the iterations go on with all.
    The records are those of `factors`; `start` is gamma to begin from, (0, 0) for ones. Iterations end when the mean
    change of gamma is below `tol`; if `max_iter` is 0 gamma is taken as it is. `epsilon` is added to the probability
    of each word in phi, None for nothing. `stats` is (0, 0) and `bounds` is (0,) where they are not asked for.
    """
    # Arrays are taken out of the record once: within the loops that would cost as much as a small document.
    (
        current, exponents, theta, sums, everywhere, _, prior, log_gamma_alpha, psi_alpha, count, norms, ratios,
        softening, bits, live, kept, powers, rows, parts,
    ) = room  # fmt: skip
    n_topics, full, indptr, n_iterations = alpha.size, current.size, counts.indptr, 0
    nothing: Any = np.int64(0)  # a constant would have `leave_out` compiled twice
    indices, data, table, weight = counts.indices, counts.data, topics.table, counts.weight
    constant = _prior_terms(alpha, log_gamma_alpha, psi_alpha)
    for document in range(indptr.size - 1):
        begin, end = indptr[document], indptr[document + 1]
        words, padded = indices[begin:end], (end - begin + LANES - 1) // LANES * LANES
        length = _read(words, data[begin:end], table, count, softening, rows)
        for k in range(full):
            everywhere[k] = start[document, k] if start.size and k < n_topics else 1.0
        all_topics(everywhere, alpha, current, prior, live)
        base, width, n_live, elsewhere = nothing, full, n_topics, 0.0
        left, finishing, may_pack, was_packed = max_iter, max_iter == 0, True, False
        last_total, n_kept = 0.0, nothing
        while True:
            if epsilon is not None:
                last_total = _soften(words, topics, epsilon, elsewhere, current, n_live, last_total, softening)
            _expectations(width, current, exponents, powers, bits, theta)
            if base:
                columns_step(rows, base, padded, width, theta, count, softening, norms, ratios, parts, sums)
            else:
                _divide(rows, padded, width, theta, count, softening, norms, ratios)
            sound = _all_sound(norms, softening, padded)
            if finishing and not was_packed:
                break
            _expected_counts(base > 0, rows, padded, width, ratios, theta, sums)
            unpack = False
            if not sound and base:
                unpack, may_pack = True, False  # and once more, with all topics
            else:
                if not sound:
                    _unsound_sums(words, topics, room)
                if finishing:
                    came_back = returned(sums, live, n_topics)
                    if left == 0 or not came_back:
                        break
                    finishing, may_pack, was_packed = False, False, False
                change, n_kept = update(prior, sums, n_live, current, kept)
                left -= 1
                n_iterations += 1
                if change < tol * n_topics or left == 0:
                    finishing, unpack = True, base > 0
                elif may_pack and 0 < n_kept <= (width - 1 if base else n_topics // 3):
                    elsewhere = leave_out(room, base, width, padded, n_live, n_kept, elsewhere)
                    base, width, n_live = rows.size // 2, n_kept, n_kept
            if unpack:
                bring_back(room, alpha, n_live, finishing)
                if finishing:
                    was_packed, n_kept = True, n_live
                base, width, n_live, elsewhere = nothing, full, n_topics, 0.0
        _add_up(
            document, words, weight[document], length, constant, topics, alpha, epsilon, was_packed, n_kept, room, found
        )
    return n_iterations
