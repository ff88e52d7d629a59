# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled draw of the anchors of aligned factor analysers, one after the other."""

from typing import Any, NamedTuple

from pluri.engine.compiled import compiled


class Walk(NamedTuple):
    """Columns of the sparse matrix W of the random walk: where column k begins, rows i in it, and W_ik."""

    starts: Any
    rows: Any
    values: Any


class Terms(NamedTuple):
    """What the draw of the anchors needs of the other variables.

    Attributes
    ----------
    labels : (n,)
    inner : (J, K, K): a0_j L A_j' A_j L
    linear : (n, K): a0 L A' (y_i - m + A L mh) of the cluster of each row
    centers, precisions : (J, K)
    normals : (n, K): standard normal numbers
    """

    labels: Any
    inner: Any
    linear: Any
    centers: Any
    precisions: Any
    normals: Any


@compiled(allocates=False)
def draw_anchors(walk, terms, anchors, x, precision, vector):
    """Change anchors (n, K) and x = W anchors: each anchor drawn given all others.

    Anchor k has the precision ``diag(sg) + sum_i W_ik^2 inner_i`` and the linear term
    ``sg * mh + sum_i W_ik (linear_i - inner_i (x_i - W_ik anchor_k))``; `precision` (K, K) and `vector` (2, K) are room
    to work in.
    """
    starts, rows, values = walk.starts, walk.rows, walk.values
    labels, inner, linear = terms.labels, terms.inner, terms.linear
    centers, precisions, normals = terms.centers, terms.precisions, terms.normals
    n, K = anchors.shape
    for k in range(n):
        j = labels[k]
        for a in range(K):
            for b in range(K):
                precision[a, b] = 0.0
            precision[a, a] = precisions[j, a]
            vector[0, a] = precisions[j, a] * centers[j, a]
        for place in range(starts[k], starts[k + 1]):
            i, w = rows[place], values[place]
            m = labels[i]
            for a in range(K):
                total = linear[i, a]
                for b in range(K):
                    precision[a, b] += w * w * inner[m, a, b]
                    total -= inner[m, a, b] * (x[i, b] - w * anchors[k, b])
                vector[0, a] += w * total
        _cholesky(precision)
        for a in range(K):  # forward, plus noise, then backward
            total = vector[0, a]
            for b in range(a):
                total -= precision[a, b] * vector[1, b]
            vector[1, a] = total / precision[a, a]
        for a in range(K):
            vector[1, a] += normals[k, a]
        for a in range(K - 1, -1, -1):
            total = vector[1, a]
            for b in range(a + 1, K):
                total -= precision[b, a] * vector[1, b]
            vector[1, a] = total / precision[a, a]
        for place in range(starts[k], starts[k + 1]):
            i, w = rows[place], values[place]
            for a in range(K):
                x[i, a] += w * (vector[1, a] - anchors[k, a])
        for a in range(K):
            anchors[k, a] = vector[1, a]


@compiled(inner=True, allocates=False)
def _cholesky(matrix):
    """Change the lower half of a positive definite matrix into its Cholesky factor."""
    K = matrix.shape[0]
    for a in range(K):
        for b in range(a + 1):
            total = matrix[a, b]
            for c in range(b):
                total -= matrix[a, c] * matrix[b, c]
            matrix[a, b] = total**0.5 if a == b else total / matrix[b, b]
