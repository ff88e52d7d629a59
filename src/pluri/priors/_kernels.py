r"""Compiled loops of the penalised M-step over rows.

In the notation of :mod:`pluri.priors.determinant`, the objective is

.. math:: F(A) = \sum_{ij} E_{ij} \log A_{ij} + \alpha \log\det \tilde K_A - w \lVert A - A^0 \rVert^2

over rows with :math:`A_{ij} \ge \epsilon` on a given support. Everything is written with the division-free

.. math:: M_{ij} = A_{ij} \frac{\partial F}{\partial A_{ij}}
   = E_{ij} + 2\alpha\rho (R_{ij} - W_{ij}) - 2 w A_{ij} (A_{ij} - A^0_{ij}).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@compiled(reorder=True)
def dual_rows(U: Floats, Q: Floats, T: Floats) -> float:
    """Write ``K^-1 U`` into ``Q`` and return ``log det K`` for ``K = U U^T``; ``T`` is scratch (n_rows, n_rows).

    Gram-Schmidt gives U^T = Q^T T with T upper triangular, hence log det K = 2 sum log T_ii and K^-1 U = T^-1 Q, for
    square and wide U alike and without squaring the condition number. A row that loses half its length is
    orthogonalised again, which keeps Q orthogonal to rounding ("twice is enough").
    """
    n_rows, n_columns = U.shape
    log_det = 0.0
    for i in range(n_rows):
        for j in range(n_columns):
            Q[i, j] = U[i, j]
        for m in range(i):
            T[m, i] = 0.0
        before = 1.0
        length = 1.0
        for _ in range(3):
            for m in range(i):
                along = 0.0
                for j in range(n_columns):
                    along += Q[m, j] * Q[i, j]
                T[m, i] += along
                for j in range(n_columns):
                    Q[i, j] -= along * Q[m, j]
            length = 0.0
            for j in range(n_columns):
                length += Q[i, j] * Q[i, j]
            length = np.sqrt(length)
            if length > 0.5 * before:
                break
            before = length
        if not length > 1e-15:
            return -np.inf
        T[i, i] = length
        log_det += 2.0 * np.log(length)
        for j in range(n_columns):
            Q[i, j] /= length
    for i in range(n_rows - 1, -1, -1):
        for m in range(i + 1, n_rows):
            for j in range(n_columns):
                Q[i, j] -= T[i, m] * Q[m, j]
        for j in range(n_columns):
            Q[i, j] /= T[i, i]
    return log_det


@compiled()
def evaluate_rows(
    A: Floats, E: Floats, strength: float, rho: float, anchor: Floats, weight: float, U: Floats, Q: Floats, T: Floats,
    M: Floats,
) -> float:  # fmt: skip
    """Return F(A) and write A dF/dA into ``M``; ``U`` and ``Q`` are left holding the unit and the dual rows."""
    n_rows, n_columns = A.shape
    value = 0.0
    for i in range(n_rows):
        square = 0.0
        for j in range(n_columns):
            if E[i, j] != 0.0:
                value += E[i, j] * np.log(A[i, j])
            U[i, j] = np.sqrt(A[i, j]) if rho == 0.5 else A[i, j] ** rho
            square += U[i, j] * U[i, j]
            value -= weight * (A[i, j] - anchor[i, j]) ** 2
        length = np.sqrt(square)
        for j in range(n_columns):
            U[i, j] /= length
    if strength > 0.0:
        log_det = dual_rows(U, Q, T)
        if log_det == -np.inf:
            return -np.inf
        value += strength * log_det
    else:
        for i in range(n_rows):
            for j in range(n_columns):
                Q[i, j] = U[i, j]
    slope = 2.0 * strength * rho
    for i in range(n_rows):
        for j in range(n_columns):
            M[i, j] = (
                E[i, j] + slope * U[i, j] * (Q[i, j] - U[i, j]) - 2.0 * weight * A[i, j] * (A[i, j] - anchor[i, j])
            )
    return value


@compiled()
def softmax_above(Z: Floats, support: Bools, floor: float, A: Floats) -> None:
    """Rows A = floor + (1 - n floor) softmax(Z) over the ``n`` supported entries of each row, zero elsewhere."""
    n_rows, n_columns = Z.shape
    for i in range(n_rows):
        top = -np.inf
        allowed = 0
        for j in range(n_columns):
            if support[i, j]:
                top = max(top, Z[i, j])
                allowed += 1
        total = 0.0
        for j in range(n_columns):
            A[i, j] = np.exp(Z[i, j] - top) if support[i, j] else 0.0
            total += A[i, j]
        scale = (1.0 - allowed * floor) / total
        for j in range(n_columns):
            if support[i, j]:
                A[i, j] = floor + scale * A[i, j]


@compiled()
def logit_gradient(
    A: Floats, E: Floats, strength: float, rho: float, weight: float, support: Bools, floor: float, U: Floats,
    Q: Floats, M: Floats, gradient: Floats, curvature: Floats,
) -> None:  # fmt: skip
    """Gradient of F with respect to the logits, and a positive estimate of its curvature entry by entry.

    The curvature of E log softmax(Z) is about A_ij E_i. where A is right and |E_ij| where A_ij is far too small; the
    sum of both, with the same for the determinant and the square of the anchor, makes unit steps nearly right for
    tiny and huge counts alike, and keeps a stiff anchor from slowing the ascent.
    """
    n_rows, n_columns = A.shape
    slope = 2.0 * strength * rho
    for i in range(n_rows):
        total = 0.0
        size = slope
        allowed = 0
        for j in range(n_columns):
            if support[i, j]:
                gradient[i, j] = (A[i, j] - floor) / A[i, j] * M[i, j]
                total += gradient[i, j]
                size += abs(E[i, j])
                allowed += 1
        scale = 1.0 - allowed * floor
        for j in range(n_columns):
            if support[i, j]:
                gradient[i, j] -= (A[i, j] - floor) / scale * total
                curvature[i, j] = (
                    abs(E[i, j])
                    + slope * abs(U[i, j] * Q[i, j])
                    + A[i, j] * size
                    + 2.0 * weight * A[i, j] * A[i, j]
                    + 1e-4 * size / allowed
                    + 1e-300
                )
            else:
                gradient[i, j] = 0.0
                curvature[i, j] = 1.0


@compiled(reorder=True)
def inner(x: Floats, y: Floats) -> float:
    """Inner product of two vectors."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@compiled()
def ascend_logits(
    start: Floats, E: Floats, strength: float, rho: float, anchor: Floats, weight: float, support: Bools, floor: float,
    max_iter: int, tol: float,
) -> tuple[Floats, float, int]:  # fmt: skip
    """Maximise F from the logits ``start`` by L-BFGS; return the rows, F and the number of iterations.

    The two-loop recursion starts from the inverse of ``curvature`` instead of a multiple of the identity. The line
    search brackets a weak Wolfe point by halving and doubling; a step that leads to minus infinity is simply too long.
    """
    memory = 10
    longest = 5.0  # in logits: entries change by at most a factor of 150 in one iteration
    n_rows, n_columns = start.shape
    size = n_rows * n_columns
    A = np.empty((n_rows, n_columns))
    U = np.empty((n_rows, n_columns))
    Q = np.empty((n_rows, n_columns))
    M = np.empty((n_rows, n_columns))
    T = np.zeros((n_rows, n_rows))
    Z = start.copy()
    Z_new = np.empty((n_rows, n_columns))
    G = np.empty((n_rows, n_columns))
    G_new = np.empty((n_rows, n_columns))
    D = np.empty((n_rows, n_columns))
    z, z_new, g, g_new, d = Z.ravel(), Z_new.ravel(), G.ravel(), G_new.ravel(), D.ravel()
    steps = np.empty((memory, size))
    changes = np.empty((memory, size))
    inverse = np.empty(memory)
    factor = np.empty(memory)
    p = np.empty(size)

    softmax_above(Z, support, floor, A)
    value = evaluate_rows(A, E, strength, rho, anchor, weight, U, Q, T, M)
    if value == -np.inf:
        return A, value, 0
    logit_gradient(A, E, strength, rho, weight, support, floor, U, Q, M, G, D)
    stored = 0
    flat = 0
    iteration = 0
    while iteration < max_iter:
        for i in range(size):
            p[i] = g[i]
        for pair in range(stored - 1, max(0, stored - memory) - 1, -1):
            b = pair % memory
            factor[b] = inverse[b] * inner(steps[b], p)
            for i in range(size):
                p[i] -= factor[b] * changes[b, i]
        gain = 1.0
        if stored > 0:
            b = (stored - 1) % memory
            curved = 0.0
            for i in range(size):
                curved += changes[b, i] * changes[b, i] / d[i]
            gain = min(max(1.0 / (inverse[b] * curved), 0.01), 10.0)
        for i in range(size):
            p[i] *= gain / d[i]
        for pair in range(max(0, stored - memory), stored):
            b = pair % memory
            back = factor[b] - inverse[b] * inner(changes[b], p)
            for i in range(size):
                p[i] += back * steps[b, i]

        rise = inner(g, p)
        if not rise > 1e-15 * (abs(value) + 1.0):  # below what F can resolve, or not an ascent direction
            if stored == 0 or rise >= 0.0:
                break
            stored = 0
            continue
        reach = 0.0
        for i in range(size):
            reach = max(reach, abs(p[i]))
        t = min(1.0, longest / reach)
        low = 0.0
        high = np.inf
        value_new = -np.inf
        for _ in range(40):
            for i in range(size):
                z_new[i] = z[i] + t * p[i]
            softmax_above(Z_new, support, floor, A)
            value_new = evaluate_rows(A, E, strength, rho, anchor, weight, U, Q, T, M)
            if not value_new >= value + 1e-4 * t * rise:
                high = t
            else:
                logit_gradient(A, E, strength, rho, weight, support, floor, U, Q, M, G_new, D)
                if inner(g_new, p) <= 0.9 * rise or 2.0 * t * reach > longest:
                    break
                low = t
            t = 0.5 * (low + high) if high < np.inf else 2.0 * t
        iteration += 1
        if not value_new > value:
            if stored == 0:
                break
            stored = 0  # the curvature pairs mislead: begin again from the diagonal
            softmax_above(Z, support, floor, A)
            evaluate_rows(A, E, strength, rho, anchor, weight, U, Q, T, M)
            logit_gradient(A, E, strength, rho, weight, support, floor, U, Q, M, G, D)
            continue
        b = stored % memory
        along = 0.0
        for i in range(size):
            steps[b, i] = z_new[i] - z[i]
            changes[b, i] = g[i] - g_new[i]
            along += steps[b, i] * changes[b, i]
        if along > 1e-10 * np.sqrt(inner(steps[b], steps[b]) * inner(changes[b], changes[b])):
            inverse[b] = 1.0 / along
            stored += 1
        for i in range(size):
            z[i] = z_new[i]
            g[i] = g_new[i]
        flat = flat + 1 if value_new - value <= tol * (abs(value) + 1.0) else 0
        value = value_new
        if flat >= 3:
            break
    softmax_above(Z, support, floor, A)
    return A, value, iteration
