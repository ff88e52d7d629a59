# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Compiled loops of variational Bayes: documents given topics.

Tables are (n_words, width), as `_topic_kernels` makes them: the topics of a word lie side by side, padded with zeros to
a multiple of eight, so that the loops over topics become vector instructions. Factors that cancel in phi are left out:
a row of the table is divided by its largest entry, and E[log theta] is taken without psi(sum_k gamma_k); only the bound
adds them again.
"""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._special_functions import digamma, exp_psi_parts, exponentials, log_gamma
from pluri.topics.lda._vector_rows import add_rows, columns_step, rows_times
from pluri.topics.lda.aligned_arrays import LANES

#: A word whose probability is below this is done in log space, since factors that were set to zero could matter.
TINY = 1e-110
#: Expected count below which a topic has lost a document, and that above which it has returned.
LOST = 1e-13
RETURNED = 1e-10


@compiled(reorder=True, no_cpython_wrapper=True)
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


@compiled(reorder=True, no_cpython_wrapper=True)
def _pack(rows, base, n, width, kept, n_kept, packed):
    """The columns `kept` of the rows, or of columns packed before (`base` is `packed`), one after another."""
    for j in range(n_kept):
        start, stride = (base + kept[j] * n, 1) if base else (kept[j], width)
        for w in range(n):
            rows[packed + j * n + w] = rows[start + w * stride]


@compiled(reorder=True, no_cpython_wrapper=True)
def _all_topics(everywhere, alpha, current, prior, topics):
    """All topics again, in their order."""
    for k in range(current.size):
        current[k] = everywhere[k]
        prior[k] = alpha[k] if k < alpha.size else 1.0
        topics[k] = k


@compiled(reorder=True, no_cpython_wrapper=True)
def _unsound_sums(indices, begin, n, counts, norms, ratios, rows, theta, gamma, word_topic, psi_totals, shares, sums):
    """The expected counts of all topics once more, in log space for the words whose probability is too small."""
    n_topics, width = psi_totals.size, theta.size
    for k in range(width):
        sums[k] = 0.0
    for w in range(n):
        if norms[w] < TINY:
            _log_share(gamma, word_topic, indices[begin + w], psi_totals, shares)
        for k in range(n_topics):
            share = counts[w] * shares[k] if norms[w] < TINY else ratios[w] * theta[k] * rows[w * width + k]
            sums[k] += share


@compiled(reorder=True)
def documents(
    indptr, indices, data, weight, word_topic, psi_totals, table, top, inverse_top, alpha, start, max_iter, tol,
    epsilon, scratch, lists, numbers, powers, rows, parts, gamma, stats, log_theta, bounds,
):  # fmt: skip
    """Bring gamma of every document to rest given the topics, and add up what follows; the number of iterations.

    Topics that have lost a document are left out of its iterations: their expected count is below LOST, and so is what
    they would change. All topics are asked again at the end, and if one came back the iterations go on with all.

    Parameters
    ----------
    indptr, indices, data : counts of words, CSR
    weight : (n_documents,), of the documents in `stats` and `log_theta`
    word_topic, psi_totals : lambda (n_words, n_topics) and psi(sum_w lambda_kw)
    table, top, inverse_top : of `topic_table`, and exp(-top)
    alpha : (n_topics,)
    start : (n_documents, n_topics) gamma to begin from, or (0, 0) for ones
    max_iter, tol : end when the mean change of gamma is below `tol`; `max_iter` 0 takes gamma as it is
    epsilon : added to the probability of each word in phi (0: nothing)
    scratch, lists : memory of shapes (9, width) and (4, length of the longest document, padded)
    numbers, powers : memory of shape (3, width), integers; its first row as floating-point numbers
    rows, parts : memory, twice (length of the longest document, padded) * width, and width * LANES
    gamma : (n_documents, n_topics), out
    stats : (n_words, width), expected counts are added; (0, 0) for none
    log_theta : (n_topics,), E[log theta] is added
    bounds : (n_documents,), out; (0,) for none
    """
    n_topics, full = alpha.size, table.shape[1]
    current, exponents, theta, sums, everywhere = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    shares, prior, log_gamma_alpha, psi_alpha = scratch[5], scratch[6], scratch[7], scratch[8]
    counts, norms, ratios, softening = lists[0], lists[1], lists[2], lists[3]
    bits, topics, kept = numbers[0], numbers[1], numbers[2]
    packed = rows.size // 2
    constant = 0.0
    for k in range(n_topics):
        constant += alpha[k]
        log_gamma_alpha[k], psi_alpha[k] = log_gamma(alpha[k]), digamma(alpha[k])
    constant = log_gamma(constant)
    n_iterations = 0
    for document in range(indptr.size - 1):
        begin = indptr[document]
        n = indptr[document + 1] - begin
        padded = (n + LANES - 1) // LANES * LANES
        length = 0.0
        for w in range(padded):
            i = indices[begin + min(w, n - 1)]
            counts[w] = data[begin + w] if w < n else 0.0
            length += counts[w]
            softening[w] = 0.0
            for k in range(full):
                rows[w * full + k] = table[i, k]
        for k in range(full):
            everywhere[k] = start[document, k] if start.size and k < n_topics else 1.0
        _all_topics(everywhere, alpha, current, prior, topics)
        base, width, n_live, elsewhere = 0, full, n_topics, 0.0
        left, finishing, may_pack, was_packed = max_iter, max_iter == 0, True, False
        total, last_total, n_kept = 0.0, 0.0, 0
        while True:
            if epsilon > 0.0:
                total = elsewhere
                for k in range(n_live):
                    total += current[k]
                if abs(total - last_total) > 1e-13 * total:  # it hardly ever changes
                    last_total = total
                    soften = epsilon * math.exp(digamma(total))
                    for w in range(n):
                        softening[w] = soften * inverse_top[indices[begin + w]]
            for k in range(width):
                theta[k], s = exp_psi_parts(current[k])
                exponents[k] = -s
            exponentials(width, exponents, powers, bits, theta)
            if base:
                columns_step(rows, base, padded, width, theta, counts, softening, norms, ratios, parts, sums)
            else:
                rows_times(rows, padded, width, theta, norms)
                for w in range(padded):
                    ratios[w] = counts[w] / (norms[w] + softening[w])
            n_unsound = 0
            for w in range(padded):
                n_unsound += 1 if norms[w] + softening[w] < TINY else 0
            sound = n_unsound == 0
            if finishing and not was_packed:
                break
            if base == 0:
                for k in range(width):
                    sums[k] = 0.0
                add_rows(rows, padded, width, ratios, sums)
            for k in range(width):
                sums[k] *= theta[k]
            unpack = False
            if not sound and base:
                unpack, may_pack = True, False  # and once more, with all topics
            else:
                if not sound:
                    _unsound_sums(indices, begin, n, counts, norms, ratios, rows, theta, current, word_topic,
                                  psi_totals, shares, sums)  # fmt: skip
                if finishing:
                    returned = False
                    for k in range(n_topics):
                        returned |= sums[k] > RETURNED and topics[k] < 0
                        topics[k] = k
                    if left == 0 or not returned:
                        break
                    finishing, may_pack, was_packed = False, False, False
                change = 0.0
                n_kept = 0
                for k in range(n_live):
                    new = prior[k] + sums[k]
                    change += abs(new - current[k])
                    current[k] = new
                    kept[n_kept] = k
                    n_kept += sums[k] >= LOST
                left -= 1
                n_iterations += 1
                if change < tol * n_topics or left == 0:
                    finishing, unpack = True, base > 0
                elif may_pack and 0 < n_kept <= (width - 1 if base else n_topics // 3):
                    for k in range(n_live):
                        everywhere[topics[k]] = current[k]
                        elsewhere += current[k]
                    _pack(rows, base, padded, width, kept, n_kept, packed)
                    for j in range(n_kept):
                        k = kept[j]
                        topics[j], current[j], prior[j] = topics[k], current[k], prior[k]
                        elsewhere -= current[j]
                    base, width, n_live = packed, n_kept, n_kept
            if unpack:
                for k in range(n_live):
                    everywhere[topics[k]] = current[k]
                    kept[k] = topics[k]
                _all_topics(everywhere, alpha, current, prior, topics)
                if finishing:  # mark those that were left out
                    was_packed, n_kept = True, n_live
                    for k in range(n_topics):
                        topics[k] = -1
                    for j in range(n_live):
                        topics[kept[j]] = kept[j]
                base, width, n_live, elsewhere = 0, full, n_topics, 0.0
        total = 0.0
        for k in range(n_topics):
            gamma[document, k] = current[k]
            total += current[k]
        if stats.size == 0 and bounds.size == 0:
            continue
        psi_total = digamma(total)
        share = weight[document]
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
        for w in range(n):
            i = indices[begin + w]
            if norms[w] < TINY:
                bound += counts[w] * _log_share(current, word_topic, i, psi_totals, shares)
            elif bounds.size:
                bound += counts[w] * (math.log(norms[w]) + top[i])
            if stats.size:
                ratio = share * ratios[w]
                if epsilon == 0.0 and norms[w] < TINY:
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
    return n_iterations
