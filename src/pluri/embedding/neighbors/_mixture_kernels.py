# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over the images of objects: the cost of a map on which each object has several.

Image b of object i is column b n + i of an array, so that one image of all objects lies side by side.
"""

import math

from pluri.embedding.neighbors._kernels import decay
from pluri.engine.compiled import compiled


@compiled(reorder=True)
def image_rows(points, log_shares, P, begin, end, work, rows, forces, weights):
    """Add half the gradient of objects begin to end to forces (L, N), and set or add to weights (3, N).

    points (L, N) are the images, log_shares (N,) the logarithms of the proportions, P (n, n). For an image a of i
    and an image k of another object j, with s = share_a r_ak:

        r_ak = share_k exp(-d_ak) / Z_a,   q_ij = sum of s over images of i and of j,   t_ak = p_ij s_ak / q_ij,
        T_a = sum_k t_ak,   M_ak = t_ak - T_a r_ak.

    weights: T_a of the images of these objects; what all images receive, sum_a M_ak, which is added to; and the
    cross entropy -sum_j p_ij log q_ij of each of these objects, at its first image. work (3, B, N), rows (2, n).
    """
    n_dimensions, N = points.shape
    n = P.shape[0]
    n_images = N // n
    largest, inverse = rows[0], rows[1]
    for i in range(begin, end):
        for j in range(n):
            largest[j] = -math.inf
        for b in range(n_images):
            _image_row(points, log_shares, b * n + i, i, n, work[0, b], work[1, b])
            for c in range(n_images):
                for j in range(n):
                    largest[j] = max(largest[j], work[0, b, c * n + j])
        largest[i] = 0.0
        weights[2, i] = _posterior(P[i], largest, inverse, work)
        for b in range(n_images):
            T = 0.0
            for c in range(n_images):
                for j in range(n):
                    t = work[2, b, c * n + j] * inverse[j]
                    work[2, b, c * n + j] = t
                    T += t
            weights[0, b * n + i] = T
            for k in range(N):
                M = work[2, b, k] - T * work[1, b, k]
                work[2, b, k] = M
                weights[1, k] += M
            for axis in range(n_dimensions):
                place, total = points[axis, b * n + i], 0.0
                for k in range(N):
                    force = work[2, b, k] * (place - points[axis, k])
                    total += force
                    forces[axis, k] -= force
                forces[axis, b * n + i] += total


@compiled(inner=True, reorder=True)
def _posterior(p, largest, inverse, work):
    """Set work[2] to s / exp(largest), and inverse (n,) to p / (q / exp(largest)); returns -sum_j p_j log q_j."""
    n = len(p)
    n_images = work.shape[1]
    for j in range(n):
        inverse[j] = 0.0
    for b in range(n_images):
        for c in range(n_images):
            for j in range(n):
                e = decay(largest[j] - work[0, b, c * n + j])
                work[2, b, c * n + j] = e
                inverse[j] += e
    cross = 0.0
    for j in range(n):
        if p[j] > 0.0:
            cross -= p[j] * (largest[j] + math.log(inverse[j]))
        inverse[j] = p[j] / inverse[j]
    return cross


@compiled(inner=True, reorder=True)
def _image_row(points, log_shares, a, i, n, log_s, r):
    """Set log s_ak and r_ak of image a of object i; r is zero, and s that of exp(-inf), at images of i itself."""
    n_dimensions, N = points.shape
    for k in range(N):
        log_s[k] = log_shares[k]
    for axis in range(n_dimensions):
        place = points[axis, a]
        for k in range(N):
            difference = points[axis, k] - place
            log_s[k] -= difference * difference
    for k in range(i, N, n):
        log_s[k] = -math.inf
    largest = -math.inf
    for k in range(N):
        largest = max(largest, log_s[k])
    total = 0.0
    for k in range(N):
        e = decay(largest - log_s[k])
        r[k] = e
        total += e
    shift = log_shares[a] - largest - math.log(total)
    inverse = 1.0 / total
    for k in range(N):
        r[k] *= inverse
        log_s[k] += shift
    for k in range(i, N, n):
        r[k] = 0.0
