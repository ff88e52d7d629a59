# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over rows of neighbour distributions: the search for a row's scale, and forces between all pairs.

Exponentials are taken of arguments that are shifted so that the largest of a row is zero. Below exp(-64) they count
as exp(-64), which is lost beside 1 whatever the number of points, and lets `decay` do without branches: the compiler
then does four or eight at a time.
"""

import math

from pluri.engine.compiled import compiled

#: Beyond this an exponential is lost beside 1.
FAR = 64.0
#: Entropies agree with the one asked for to this, in nats; at most so many steps.
ENTROPY_TOLERANCE, SEARCH_STEPS = 1e-9, 100


@compiled(inner=True, reorder=True)
def decay(x):
    """exp(-min(x, 64)) for x >= 0 to about 2e-14: a Taylor series of exp(-x/128), squared seven times."""
    t = -min(x, 64.0) / 128.0
    e = 1.0 + t * (1.0 + t * (1 / 2 + t * (1 / 6 + t * (1 / 24 + t * (1 / 120 + t * (1 / 720 + t * (
        1 / 5040 + t * (1 / 40320 + t * (1 / 362880 + t / 3628800)))))))))  # fmt: skip
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@compiled(reorder=True)
def row_scales(distances, offsets, own, target, scales, probabilities):
    """Set scales (n_rows,) and probabilities so that each row's entropy is `target`; returns the first row that cannot.

    Row r of `distances` and `probabilities`, which are flat, is from offsets[r] to offsets[r + 1]; the entry own[r]
    of a row is the object itself (-1: it is not in the row). With shifted distances d, p ~ exp(-scale d),

        H = log Z + scale <d>,   dH/d(log scale) = -scale^2 Var(d):

    Newton's method on the logarithm, within brackets that bisection takes over if it leaves them. Where `target` is
    negative, scales are taken as they are.
    """
    failed = -1
    for r in range(len(scales)):
        first, last = offsets[r], offsets[r + 1]
        itself = first + own[r] if own[r] >= 0 else -1
        least = math.inf
        for k in range(first, last):
            if k != itself:
                least = min(least, distances[k])
        gap, n_least, mean = math.inf, 0, 0.0
        for k in range(first, last):
            if k != itself:
                d = distances[k] - least
                n_least += d <= 0.0
                mean += d
                if d > 0.0:
                    gap = min(gap, d)
        mean /= last - first
        scale = scales[r]
        if target >= 0.0:
            if math.log(n_least) >= target - ENTROPY_TOLERANCE:
                # So many nearest neighbours are equally near that no scale leaves fewer: it leaves just those.
                scale = FAR / gap
                if math.log(n_least) > target + ENTROPY_TOLERANCE and failed < 0:
                    failed = r
            else:
                scale = _search(distances, first, last, itself, least, 1.0 / mean, target)
        total = 0.0
        for k in range(first, last):
            e = 0.0 if k == itself else math.exp(-scale * (distances[k] - least)) if distances[k] > least else 1.0
            probabilities[k] = e
            total += e
        for k in range(first, last):
            probabilities[k] /= total
        scales[r] = scale
    return failed


@compiled(inner=True, reorder=True)
def _search(distances, first, last, itself, least, scale, target):
    """The scale at which the entropy of a row is `target`."""
    low, high = 0.0, math.inf
    for _ in range(SEARCH_STEPS):
        total, mean, square = 0.0, 0.0, 0.0
        for k in range(first, last):
            x = scale * (distances[k] - least)
            e = decay(max(x, 0.0))
            total += e
            mean += e * x
            square += e * x * x
        if itself >= 0:
            x = scale * (distances[itself] - least)
            e = decay(max(x, 0.0))
            total -= e
            mean -= e * x
            square -= e * x * x
        mean /= total
        variance = square / total - mean * mean
        excess = math.log(total) + mean - target
        if abs(excess) < ENTROPY_TOLERANCE:
            break
        if excess > 0.0:
            low = scale
        else:
            high = scale
        step = math.exp(min(max(excess / max(variance, 1e-300), -2.0), 2.0))
        if low < scale * step < high:
            scale *= step
        elif high == math.inf:
            scale *= 2.0
        else:
            scale = 0.5 * (low + high)
    return scale


@compiled(reorder=True)
def dense_rows(points, P, begin, end, work, forces, log_norms, stretch):
    """Add half the gradient of rows begin to end to forces (L, n); set their log norms and mean squared distances.

    points (L, n), P (n, n), work (n,). For row i, with d_ij = |y_i - y_j|^2:

        log_norms_i = log sum_j exp(-d_ij),   stretch_i = sum_j p_ij d_ij,   m_ij = p_ij - q_ij,
        force_i += sum_j m_ij (y_i - y_j),    force_j -= m_ij (y_i - y_j).
    """
    n_dimensions, n = points.shape
    for i in range(begin, end):
        for j in range(n):
            work[j] = 0.0
        for axis in range(n_dimensions):
            own = points[axis, i]
            for j in range(n):
                difference = points[axis, j] - own
                work[j] += difference * difference
        stretched = 0.0
        for j in range(n):
            stretched += P[i, j] * work[j]
        work[i] = math.inf
        least = math.inf
        for j in range(n):
            least = min(least, work[j])
        norm = 0.0
        for j in range(n):
            e = decay(work[j] - least)
            work[j] = e
            norm += e
        work[i] = 0.0
        inverse = 1.0 / norm
        for j in range(n):
            work[j] = P[i, j] - work[j] * inverse
        for axis in range(n_dimensions):
            own, total = points[axis, i], 0.0
            for j in range(n):
                force = work[j] * (own - points[axis, j])
                total += force
                forces[axis, j] -= force
            forces[axis, i] += total
        log_norms[i] = math.log(norm) - least
        stretch[i] = stretched
