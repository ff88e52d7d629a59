# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Compiled loops of variational Bayes: documents given topics, and what is needed of the topics for it.

Tables are (n_words, width): the topics of a word lie side by side, padded with zeros to a multiple of eight, so that
the loops over topics become vector instructions. Factors that cancel in phi are left out: a row of the table is divided
by its largest entry, and E[log theta] is taken without psi(sum_k gamma_k); only the bound adds them again.

    exp psi(x) = exp psi(x + 8) exp(-sum_{i < 8} 1 / (x + i)),
    exp psi(y + 1/2) = y + 1 / (24 y) - 37 / (5760 y^3) + ...,

so that no logarithm is needed, and the eight reciprocals are one quotient of polynomials in u = x (x + 7). Everything
here is good to 1e-13, relatively.
"""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.lda._vector_rows import LANES, add_rows, columns_step, rows_times

#: Factors below exp(-SMALLEST) are zero; their products would be denormal numbers, which are slow.
SMALLEST = 300.0
#: A word whose probability is below this is done in log space, since factors that were set to zero could matter.
TINY = 1e-110
#: Expected count below which a topic has lost a document, and that above which it has returned.
LOST = 1e-13
RETURNED = 1e-10
LOG_2 = math.log(2.0)
HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


@compiled(reorder=True)
def _parts(x):
    """(a, s) such that exp psi(x) = a exp(-s), x > 0."""
    u = x * (x + 7.0)
    one, two = u * (u + 6.0), (u + 10.0) * (u + 12.0)
    s = (2.0 * x + 7.0) * ((2.0 * u + 6.0) * two + one * (2.0 * u + 22.0)) / (one * two)
    y = x + 7.5
    z = 1.0 / (y * y)
    # fmt: off
    series = 1.0 + z * (4.1666666666666664e-2 + z * (-6.4236111111111111e-3 + z * (3.5524829144620810e-3 + z * (
        -3.9535574489730305e-3 + z * (7.3650332693086690e-3 + z * (-2.0734675824368137e-2
        + z * 8.2381852238787760e-2))))))
    # fmt: on
    return y * series, s


@compiled(reorder=True)
def _log_gamma(x):
    """Logarithm of the gamma function, x > 0."""
    u = x * (x + 7.0)
    z = x + 8.0
    r = 1.0 / (z * z)
    tail = (8.3333333333333333e-2 + r * (-2.7777777777777778e-3 + r * (7.9365079365079365e-4 + r * (
        -5.9523809523809524e-4 + r * (8.4175084175084175e-4 + r * -1.9175269175269175e-3))))) / z  # fmt: skip
    return (z - 0.5) * math.log(z) - z + HALF_LOG_2_PI + tail - math.log(u * (u + 6.0) * (u + 10.0) * (u + 12.0))


@compiled(reorder=True)
def _digamma(x):
    a, s = _parts(x)
    return math.log(a) - s


@compiled(reorder=True)
def _exponentials(width, exponents, powers, bits, out):
    """Multiply `out` by exp(exponents), zero below -SMALLEST; `powers` is `bits` as floating-point numbers."""
    for k in range(width):
        n = np.floor(exponents[k] * 1.4426950408889634 + 0.5)
        f = exponents[k] - n * LOG_2
        f = f if exponents[k] > -SMALLEST else 0.0
        bits[k] = np.int64(n if exponents[k] > -SMALLEST else 0.0) + 1023 << 52
        e = 1.0 + f * (1.0 + f * (0.5 + f * (1.6666666666666667e-1 + f * (4.1666666666666667e-2 + f * (
            8.3333333333333333e-3 + f * (1.3888888888888889e-3 + f * (1.9841269841269841e-4 + f * (2.4801587301587302e-5
            + f * (2.7557319223985891e-6 + f * (2.7557319223985891e-7 + f * (2.5052108385441719e-8
            + f * 2.0876756987868099e-9)))))))))))  # fmt: skip
        out[k] = out[k] * e if exponents[k] > -SMALLEST else 0.0
    for k in range(width):
        out[k] *= powers[k]


@compiled(reorder=True)
def topic_table(word_topic, scale, log_scale, scratch, bits, powers, table, top):
    """table[w, k] = exp(E[log beta_kw] - top[w]), top[w] the largest of E[log beta_kw] over k; padding becomes zero.

    exp(-psi(sum_w lambda_kw)) = scale[k] exp(log_scale), the largest of `scale` being one. `scratch` is (2, n_topics),
    `powers` is `bits` (n_topics,) as floating-point numbers.
    """
    n_words, n_topics = word_topic.shape
    values, exponents = scratch[0], scratch[1]
    for w in range(n_words):
        for k in range(n_topics):
            value, s = _parts(word_topic[w, k])
            values[k] = value * scale[k]
            exponents[k] = -s
        largest = -np.inf
        for k in range(n_topics):
            largest = max(largest, exponents[k])
        for k in range(n_topics):
            exponents[k] -= largest
        _exponentials(n_topics, exponents, powers, bits, values)
        most = 0.0
        for k in range(n_topics):
            most = max(most, values[k])
        top[w] = math.log(most) + largest + log_scale
        for k in range(table.shape[1]):
            table[w, k] = values[k] / most if k < n_topics else 0.0


@compiled(reorder=True)
def topic_divergence(word_topic, prior, psi_totals):
    """sum_kw (eta_kw - lambda_kw) E[log beta_kw] + lgamma(lambda_kw) - lgamma(eta_kw).

    `prior` is (n_words, n_topics), or has a single row or column that stands for all.
    """
    n_words, n_topics = word_topic.shape
    words_differ, topics_differ = prior.shape[0] > 1, prior.shape[1] > 1
    total = 0.0
    for w in range(n_words):
        row = prior[w if words_differ else 0]
        part = 0.0
        for k in range(n_topics):
            x, eta = word_topic[w, k], row[k if topics_differ else 0]
            part += (eta - x) * (_digamma(x) - psi_totals[k]) + _log_gamma(x)
        if words_differ and topics_differ:
            for k in range(n_topics):
                part -= _log_gamma(row[k])
        elif not topics_differ:
            part -= n_topics * _log_gamma(row[0])
        else:
            for k in range(n_topics):
                part -= _log_gamma(row[k])
        total += part
    return total


@compiled(reorder=True)
def _log_share(gamma, word_topic, word, psi_totals, shares):
    """Logarithm of sum_k exp(psi(gamma_k) + E[log beta_kw]) for one word, and its shares phi, in log space."""
    n_topics = psi_totals.size
    largest = -np.inf
    for k in range(n_topics):
        shares[k] = _digamma(gamma[k]) + _digamma(word_topic[word, k]) - psi_totals[k]
        largest = max(largest, shares[k])
    total = 0.0
    for k in range(n_topics):
        shares[k] = math.exp(shares[k] - largest)
        total += shares[k]
    for k in range(n_topics):
        shares[k] /= total
    return largest + math.log(total)


@compiled(reorder=True)
def _pack(rows, base, n, width, kept, n_kept, packed):
    """The columns `kept` of the rows, or of columns packed before (`base` is `packed`), one after another."""
    for j in range(n_kept):
        start, stride = (base + kept[j] * n, 1) if base else (kept[j], width)
        for w in range(n):
            rows[packed + j * n + w] = rows[start + w * stride]


@compiled(reorder=True)
def _all_topics(everywhere, alpha, current, prior, topics):
    """All topics again, in their order."""
    for k in range(current.size):
        current[k] = everywhere[k]
        prior[k] = alpha[k] if k < alpha.size else 1.0
        topics[k] = k


@compiled(reorder=True)
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
        log_gamma_alpha[k], psi_alpha[k] = _log_gamma(alpha[k]), _digamma(alpha[k])
    constant = _log_gamma(constant)
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
                    soften = epsilon * math.exp(_digamma(total))
                    for w in range(n):
                        softening[w] = soften * inverse_top[indices[begin + w]]
            for k in range(width):
                theta[k], s = _parts(current[k])
                exponents[k] = -s
            _exponentials(width, exponents, powers, bits, theta)
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
                    _unsound_sums(
                        indices,
                        begin,
                        n,
                        counts,
                        norms,
                        ratios,
                        rows,
                        theta,
                        current,
                        word_topic,
                        psi_totals,
                        shares,
                        sums,
                    )
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
        psi_total = _digamma(total)
        share = weight[document]
        if not was_packed:
            n_kept = n_topics
            for k in range(n_topics):
                kept[k] = k
        # A topic that has lost the document has gamma = alpha: its terms of the bound cancel.
        bound = constant - _log_gamma(total) - length * psi_total
        for k in range(n_topics):
            log_theta[k] += share * (psi_alpha[k] - psi_total)
        for j in range(n_kept):
            k = kept[j]
            psi_k = _digamma(current[k])
            log_theta[k] += share * (psi_k - psi_alpha[k])
            bound += (alpha[k] - current[k]) * (psi_k - psi_total) + _log_gamma(current[k]) - log_gamma_alpha[k]
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
