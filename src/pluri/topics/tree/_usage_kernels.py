# mypy: allow-untyped-defs, allow-untyped-calls
"""What moves of words do to the scales that documents use, compiled, with the usages integrated out."""

import math

from pluri.engine.compiled import compiled


@compiled(inner=True, allocates=False)
def usage_ratio(counts, depth, rho, old, new):
    """Expected usage of one scale over that of another, given the scales of the other tokens of a document.

    ``E[pi_s] = (1 + n_s) / (1 + rho + n_{>=s}) prod_{h<s} (rho + n_{>h}) / (1 + rho + n_{>=h})``, the first factor
    being one at the deepest scale.
    """
    low, high = min(old, new), max(old, new)
    later = 0
    for s in range(low + 1, depth):
        later += counts[s]
    ratio = (rho + later) / (1.0 + counts[low])
    for s in range(low + 1, high):
        ratio *= (rho + later - counts[s]) / (1.0 + rho + later)
        later -= counts[s]
    if high < depth - 1:
        ratio *= (1.0 + counts[high]) / (1.0 + rho + later)
    return ratio if new == high else 1.0 / ratio


@compiled(inner=True, allocates=False)
def shift_usage(tokens, documents, doc_scale, depth, rho, old, new, counts):
    """What the evidence of the scales of tokens gains if those of a word move, usages of documents integrated out."""
    gain, product, j = 0.0, 1.0, 0
    while j < tokens.size:
        d = documents[tokens[j]]
        for s in range(depth):
            counts[s] = doc_scale[d, s]
        while j < tokens.size and documents[tokens[j]] == d:
            counts[old] -= 1
            product *= usage_ratio(counts, depth, rho, old, new)
            counts[new] += 1
            j += 1
            if not 1e-100 < product < 1e100:
                gain += math.log(product)
                product = 1.0
    return gain + math.log(product)


@compiled(inner=True, allocates=False)
def split_usage(tokens, documents, doc_scale, rho, level, more):
    """Log evidence of all tokens of a scale staying there if there is a scale below, under Beta(1, rho) sticks.

    With `more`, as if the tokens of a word were there too.
    """
    start = math.lgamma(rho) + math.log(rho)
    gain, j = 0.0, 0
    for d in range(doc_scale.shape[0]):
        n = doc_scale[d, level]
        while more and j < tokens.size and documents[tokens[j]] == d:
            n += 1
            j += 1
        if n > 0:
            gain += start + math.lgamma(1.0 + n) - math.lgamma(1.0 + n + rho)
    return gain
