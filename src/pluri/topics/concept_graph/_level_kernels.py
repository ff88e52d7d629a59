# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled draws of the levels of a document's words and of tau; see `pluri.topics.concept_graph.evaluation.levels`."""

import math

from pluri.engine.compiled import compiled

inner = compiled(inner=True, allocates=False)


@inner
def draw_levels(rng, graph, numbers, corpus, d, weights, share, sizes):
    """Draw the level of each word of a document in turn, given all others."""
    length, n_levels = corpus.length[d], len(sizes)
    first, last = corpus.offsets[d], corpus.offsets[d + 1]
    eta, prior = numbers.eta, numbers.eta * graph.word_count.shape[0]
    if length == 1:
        return
    for l in range(n_levels):
        sizes[l] = 0
    if numbers.dirichlet:
        for i in range(first, last):
            sizes[corpus.level[i]] += 1
    for l in range(n_levels):
        share[l] = (1.0 - corpus.tau[d]) ** l
    for i in range(first, last):
        word, l = corpus.words[i], corpus.level[i]
        x = corpus.path[d, length - 1 - l]
        graph.word_count[word, x] -= 1
        graph.total[x] -= 1
        sizes[l] -= 1
        total = 0.0
        for l in range(length):
            x = corpus.path[d, length - 1 - l]
            value = (eta + graph.word_count[word, x]) / (prior + graph.total[x])
            value *= (numbers.a if l == 0 else numbers.b) + sizes[l] if numbers.dirichlet else share[l]
            total += value
            weights[l] = total
        goal = rng.random() * total
        l = 0
        while l < length - 1 and weights[l] <= goal:
            l += 1
        x = corpus.path[d, length - 1 - l]
        graph.word_count[word, x] += 1
        graph.total[x] += 1
        sizes[l] += 1
        corpus.level[i] = l


@inner
def seat_levels(rng, graph, numbers, words, path, length, level, redraw, step, share, sizes, seen):
    """Fill `level` and `sizes`: draw the levels of a document's words on a path, each given those before, or keep them.

    Levels are drawn in proportion to ``g_l f_l``: f_l is the predictive probability of the word at the node of level
    l, and ``g_l = a_l + n_l`` counts the words before it, as if levels had a Dirichlet prior. Returns the logarithm of
    p(words | levels) / q(levels).
    """
    capacity = len(graph.depth)
    eta, prior = numbers.eta, numbers.eta * graph.word_count.shape[0]
    for l in range(len(sizes)):
        sizes[l] = 0
    product, log_weight, before = 1.0, 0.0, -1
    for i in range(len(words)):
        word = words[i]
        if word != before:
            for l in range(len(seen)):
                seen[l] = 0
            before = word
        total, all_shares = 0.0, 0.0
        for l in range(length):
            x = path[length - 1 - l]
            count, size = seen[l], sizes[l]
            if x < capacity:
                count += graph.word_count[word, x]
                size += graph.total[x]
            g = (numbers.a if l == 0 else numbers.b) + sizes[l] if numbers.dirichlet else 1.0 + sizes[l]
            all_shares += g
            total += g * (eta + count) / (prior + size)
            share[l] = total
        if redraw:
            goal, l = rng.random() * total, 0
            while l < length - 1 and share[l] <= goal:
                l += 1
            level[i] = l
        else:
            l = level[i]
        g = (numbers.a if l == 0 else numbers.b) + sizes[l] if numbers.dirichlet else 1.0 + sizes[l]
        # With the Dirichlet prior, g / sum g is the prior of the level itself and cancels.
        product *= total / all_shares if numbers.dirichlet else total / g
        seen[l] += 1
        sizes[l] += 1
        if i % step == step - 1:
            log_weight += math.log(product)
            product = 1.0
    return log_weight + math.log(product)


@inner
def log_tau_density(z, a, b, sum_levels, n_words, length):
    """Log density of logit(tau) given the levels, but for a constant."""
    if z > 0.0:
        log_rest = -z - math.log1p(math.exp(-z))
        log_tau = -math.log1p(math.exp(-z))
    else:
        log_rest = -math.log1p(math.exp(z))
        log_tau = z + log_rest
    rest, series = math.exp(log_rest), 0.0
    for _ in range(length):
        series = series * rest + 1.0
    return a * log_tau + (b + sum_levels) * log_rest - n_words * math.log(series)


@inner
def logistic(z):
    """Inverse of the logit, kept away from 0 and 1."""
    if z > 0.0:
        return min(1.0 / (1.0 + math.exp(-z)), 1.0 - 1e-15)
    return max(math.exp(z) / (1.0 + math.exp(z)), 1e-300)


@inner
def draw_beta(rng, a, b):
    """Draw from the beta distribution by rejection: the shares of two powers, or a logistic variable (Cheng's BA)."""
    while a <= 1.0 and b <= 1.0:
        first, second = rng.random() ** (1.0 / a), rng.random() ** (1.0 / b)
        if 0.0 < first + second <= 1.0:
            return first / (first + second)
    alpha, slope = a + b, max(1.0 / a, 1.0 / b)
    if a > 1.0 and b > 1.0:
        slope = math.sqrt((alpha - 2.0) / (2.0 * a * b - alpha))
    while True:
        u = min(max(rng.random(), 1e-300), 1.0 - 1e-16)
        height = 2.0 * math.log(u) + math.log(1.0 - rng.random())
        logit = slope * (math.log(u) - math.log1p(-u))
        odds = logit + math.log(a / b)
        log_rest = -max(odds, 0.0) - math.log1p(math.exp(-abs(odds)))
        if alpha * (math.log(alpha / b) + log_rest) + (a + 1.0 / slope) * logit - math.log(4.0) >= height:
            return math.exp(odds + log_rest)


@compiled(allocates=False)
def draw_tau(rng, tau, a, b, sum_levels, n_words, length):
    """Slice sampling of logit(tau); from its prior if the path has one node, or the document no words."""
    if length == 1 or n_words == 0:
        return min(max(draw_beta(rng, a, b), 1e-300), 1.0 - 1e-15)
    z = math.log(tau) - math.log1p(-tau)
    height = log_tau_density(z, a, b, sum_levels, n_words, length) + math.log(1.0 - rng.random())
    width = 4.0 / math.sqrt(1.0 + 0.2 * n_words)
    low = z - width * rng.random()
    high = low + width
    while log_tau_density(low, a, b, sum_levels, n_words, length) > height:
        low -= width
    while log_tau_density(high, a, b, sum_levels, n_words, length) > height:
        high += width
    while True:
        new = low + (high - low) * rng.random()
        if log_tau_density(new, a, b, sum_levels, n_words, length) >= height:
            return logistic(new)
        if new < z:
            low = new
        else:
            high = new


@inner
def tau_peak(a, b, sum_levels, n_words, length):
    """Mode of logit(tau) given the levels, and a scale of its spread."""
    low, high, curvature = -40.0, 40.0, 1.0
    z = 0.0
    for _ in range(40):
        z = 0.5 * (low + high)
        tau = logistic(z)
        rest = 1.0 - tau
        series, mean, square, power = 0.0, 0.0, 0.0, 1.0
        for j in range(length):
            series += power
            mean += j * power
            square += j * j * power
            power *= rest
        mean /= series
        variance = square / series - mean * mean
        slope = a * rest - (b + sum_levels) * tau + n_words * tau * mean
        curvature = (a + b + sum_levels - n_words * mean) * tau * rest + n_words * tau * tau * variance
        if slope > 0.0:
            low = z
        else:
            high = z
        if high - low < 1e-2 / math.sqrt(1.0 + n_words):
            break
    return z, 1.0 / math.sqrt(max(curvature, 0.02))
