# mypy: allow-untyped-defs, allow-untyped-calls
r"""The compiled update of the resolvent :math:`(L + I)^{-1}` when a few rows of the kernel L are replaced.

Its trace gives the expected size of a subset, its diagonal the inclusion probabilities, and the update the exact change
of the normaliser: what the particles estimate, in time :math:`O(n M^2)` for n of M rows.
"""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled


@compiled(allocates=False)
def solve_lower(matrix, n, rows, width):
    """Cholesky in place of the leading block, and ``rows <- factor^-1 rows``; returns log det, NaN if not positive."""
    product = 1.0
    log_determinant = 0.0
    for i in range(n):
        for j in range(i):
            t = matrix[i, j]
            for l in range(j):
                t -= matrix[i, l] * matrix[j, l]
            matrix[i, j] = t / matrix[j, j]
        t = matrix[i, i]
        for l in range(i):
            t -= matrix[i, l] * matrix[i, l]
        if not t > 0.0:
            return math.nan
        product *= t
        if not 1e-100 < product < 1e100:
            log_determinant += math.log(product)
            product = 1.0
        matrix[i, i] = math.sqrt(t)
        for l in range(i):
            f = matrix[i, l]
            for c in range(width):
                rows[i, c] -= f * rows[l, c]
        f = 1.0 / matrix[i, i]
        for c in range(width):
            rows[i, c] *= f
    return log_determinant + math.log(product)


@compiled(reorder=True, allocates=False)
def replace_in_resolvent(resolvent, kernel, slots, out, block, rows):
    r"""The resolvent :math:`W = (L + I)^{-1}` after the rows `slots` of the kernel were replaced, into `out`.

    Without those rows it is :math:`W_{CC} - W_{CS} W_{SS}^{-1} W_{SC}`; with :math:`X = W_C L_{CS}` and
    :math:`T = I + L_{SS} - L_{SC} X` it becomes :math:`W_C + X T^{-1} X^\top`, bordered by :math:`-X T^{-1}` and
    :math:`T^{-1}`. Returns :math:`\log \det T + \log \det W_{SS}`, the change of :math:`\log \det(L + I)`.
    """
    n_items, n = kernel.shape[0], slots.shape[0]
    for a in range(n):
        for b in range(n):
            block[a, b] = resolvent[slots[a], slots[b]]
        for j in range(n_items):
            rows[a, j] = resolvent[slots[a], j]
    change = solve_lower(block, n, rows, n_items)
    for i in range(n_items):
        for j in range(n_items):
            out[i, j] = resolvent[i, j]
        for a in range(n):
            f = rows[a, i]
            for j in range(n_items):
                out[i, j] -= f * rows[a, j]
    for a in range(n):
        for j in range(n_items):
            out[slots[a], j] = 0.0
            out[j, slots[a]] = 0.0
    for a in range(n):
        for j in range(n_items):
            rows[a, j] = 0.0
        for i in range(n_items):
            f = kernel[slots[a], i]
            for j in range(n_items):
                rows[a, j] += f * out[i, j]
    # The rows and columns S of `out` are zero, so that X is zero there: only C counts in the sums.
    for a in range(n):
        for b in range(a + 1):
            t = kernel[slots[a], slots[b]]
            for j in range(n_items):
                t -= kernel[slots[b], j] * rows[a, j]
            block[a, b] = t
        block[a, a] += 1.0
    for a in range(n):
        for b in range(n):
            rows[a, slots[b]] = 0.0
        rows[a, slots[a]] = -1.0
    change += solve_lower(block, n, rows, n_items)
    for i in range(n_items):
        for a in range(n):
            f = rows[a, i]
            for j in range(n_items):
                out[i, j] += f * rows[a, j]
    return change


@compiled(reorder=True, allocates=False)
def invert(matrix, column):
    """Inverse of a symmetric matrix that is at least the identity, in place; returns its log determinant, or NaN.

    The matrix is swept on each of its diagonal entries in turn, which needs no pivoting for such a matrix; only its
    lower triangle is worked on, along rows.
    """
    n = matrix.shape[0]
    log_determinant = 0.0
    for p in range(n):
        pivot = matrix[p, p]
        if not pivot > 0.0:
            return math.nan
        log_determinant += math.log(pivot)
        scale = 1.0 / pivot
        for j in range(p):
            column[j] = matrix[p, j]
        for i in range(p, n):
            column[i] = matrix[i, p]
        column[p] = 0.0
        for i in range(n):
            f = column[i] * scale
            if f != 0.0:
                for j in range(i + 1):
                    matrix[i, j] -= f * column[j]
        for j in range(p):
            matrix[p, j] = column[j] * scale
        for i in range(p + 1, n):
            matrix[i, p] = column[i] * scale
        matrix[p, p] = -scale
    for i in range(n):
        for j in range(i + 1):
            matrix[i, j] = matrix[j, i] = -matrix[i, j]
    return log_determinant


@compiled(reorder=True, allocates=False)
def is_positive(matrix, shift):
    """Whether the matrix, which is overwritten, is positive definite after this shift of its diagonal."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            t = matrix[i, j]
            for l in range(j):
                t -= matrix[i, l] * matrix[j, l]
            matrix[i, j] = t / matrix[j, j]
        t = matrix[i, i] + shift
        for l in range(i):
            t -= matrix[i, l] * matrix[i, l]
        if not t > 0.0:
            return False
        matrix[i, i] = math.sqrt(t)
    return True
