# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Compiled loop of maximum likelihood and maximum a posteriori topics, document after document."""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled
from pluri.topics.lda._vector_rows import add_rows, rows_times
from pluri.topics.lda.aligned_arrays import LANES


@compiled(reorder=True, allocates=False)
def shares_of_documents(documents, table, pseudo, power, max_iter, tol, room, shares, stats, values):
    """Change the last three: EM for the shares of topics, the last of `max_iter` updates together with counts of words.

    p_wk = (theta_k beta_kw)^b / sum_j (theta_j beta_jw)^b,  theta_k = (pseudo_k + sum_w n_w p_wk) / sum of these.

    Parameters
    ----------
    documents : WordCounts, weighted in `stats`
    table : (n_words, width) beta^b, padded with zeros
    pseudo : (n_topics,) alpha - 1
    power : b
    max_iter, tol : updates end when the largest change of a share is below `tol`; 0 updates evaluate only
    room : Room
    shares : (n_documents, n_topics) theta, changed
    stats : (n_words, width), expected counts at the shares before the last update are added; (0, 0) for none
    values : (n_documents,) sum_w n_w log sum_k (theta_k beta_kw)^b / b at the same shares; out
    """
    n_topics, width = pseudo.size, table.shape[1]
    theta, sums, powered, counts, norms, ratios, rows = room
    indptr, indices, data, weight = documents
    for document in range(indptr.size - 1):
        begin = indptr[document]
        n = indptr[document + 1] - begin
        padded = (n + LANES - 1) // LANES * LANES
        for w in range(padded):
            i = indices[begin + min(w, n - 1)]
            counts[w] = data[begin + w] if w < n else 0.0
            for k in range(width):
                rows[w * width + k] = table[i, k]
        for k in range(width):
            theta[k] = shares[document, k] if k < n_topics else 0.0
        left = max_iter
        while True:
            for k in range(width):
                powered[k] = theta[k] if power == 1.0 else theta[k] ** power
                sums[k] = 0.0
            rows_times(rows, padded, width, powered, norms)
            for w in range(padded):
                ratios[w] = counts[w] / norms[w] if norms[w] > 0.0 else 0.0
            if left == 0:
                break
            add_rows(rows, padded, width, ratios, sums)
            total = 0.0
            for k in range(n_topics):
                sums[k] = pseudo[k] + powered[k] * sums[k]
                total += sums[k]
            change = 0.0
            for k in range(n_topics):
                new = sums[k] / total if total > 0.0 else theta[k]
                change = max(change, abs(new - theta[k]))
                theta[k] = new
            left -= 1
            if left == 0 or change < tol:
                break
        value = 0.0
        for w in range(n):
            value += counts[w] * math.log(norms[w]) if norms[w] > 0.0 or counts[w] > 0.0 else 0.0
        values[document] = value / power
        for k in range(n_topics):
            shares[document, k] = theta[k]
        if stats.size:
            for w in range(n):
                i = indices[begin + w]
                ratio = weight[document] * ratios[w]
                for k in range(width):
                    stats[i, k] += ratio * powered[k] * rows[w * width + k]
