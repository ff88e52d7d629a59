"""The arithmetic of logistic PCA: alternating least squares for all rows, Newton's method for a new one.

With x in {0, 1}, ``x~ = 2x - 1`` and natural parameters ``theta = u . v_d + m_d``, the bound

    log sigma(x~ theta) >= log sigma(t) + (x~ theta - t) / 2 - tanh(t/2) / (4t) (theta^2 - t^2),

which touches at ``t = theta``, is quadratic in theta. Maximising it in turn over all u and over all (v_d, m_d), with
``T = tanh(theta/2) / theta`` of the present theta,

    u_n <- (sum_d T_nd v_d v_d' + r I)^-1 sum_d (x~_nd - T_nd m_d) v_d,     (v_d, m_d) likewise,

never lowers ``log-likelihood - (r/4) (|U|^2 + |V|^2) - (s/4) |m|^2``, with a small s that only keeps the intercepts of
constant columns finite. Rows pass in blocks; a block updates its own u and adds
its part to the equations of the columns, so that the natural parameters of all rows are never held at a time.

References
----------
Schein, Saul and Ungar (2003), A generalized linear model for principal component analysis of binary data, AISTATS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

from pluri.factors.binary_completion import BinaryRows

Array = NDArray[np.float64]

#: Entries of a block: what is computed of them fits the second-level cache.
BLOCK = 200_000
#: s of the objective: a column of a thousand zeros gets an intercept of -12.
INTERCEPT_PENALTY = 1e-3
#: Newton's method needs fewer steps than this; each halves at most so often.
NEWTON_STEPS, HALVINGS = 60, 40


@dataclass(frozen=True, eq=False)
class Loadings:
    """components (L, D) and intercept (D,)."""

    components: Array
    intercept: Array

    def natural(self, scores: Array) -> Array:
        """Natural parameters (n, D) of scores (n, L)."""
        return np.asarray(scores @ self.components + self.intercept)


def pair_products(rows: Array) -> Array:
    """Products of pairs of columns (n, L(L+1)/2): outer products without their lower halves."""
    first, second = np.triu_indices(rows.shape[1])
    return rows[:, first] * rows[:, second]


def full_matrices(halves: Array, size: int, ridge: float) -> Array:
    """Symmetric matrices (n, L, L) from their upper halves, plus a multiple of the identity."""
    first, second = np.triu_indices(size)
    whole = np.empty((len(halves), size, size))
    whole[:, first, second] = halves
    whole[:, second, first] = halves
    whole[:, np.arange(size), np.arange(size)] += ridge
    return whole


def solved(matrices: Array, right: Array) -> Array:
    """Solutions (n, L) of many small systems."""
    return np.asarray(np.linalg.solve(matrices, right[:, :, None])[:, :, 0])


def start(rows: BinaryRows, n_components: int, fit_intercept: bool, rng: np.random.Generator) -> tuple[Array, Loadings]:
    """Scores and loadings from the singular value decomposition of X, centred if there is an intercept."""
    n, width = rows.shape
    known = np.full(width, float(n)) if rows.missing is None else n - np.asarray(rows.missing.sum(axis=0)).ravel()
    share = (np.asarray(rows.ones.sum(axis=0)).ravel() + 0.5) / (known + 1.0)
    center = share if fit_intercept else np.zeros(width)
    filled = rows.ones
    if rows.missing is not None:  # an unknown entry is worth the mean of its column
        filled = sparse.csr_array(filled + rows.missing @ sparse.diags_array(share))
    found = min(n_components, n, width)
    if found >= min(n, width) or n * width <= BLOCK:
        left, values, right = np.linalg.svd(filled.toarray() - center, full_matrices=False)
    else:
        operator = LinearOperator(
            (n, width),
            matvec=lambda v: filled @ v - center @ v,
            rmatvec=lambda u: filled.T @ u - center * u.sum(),
            dtype=np.float64,
        )
        left, values, right = svds(operator, k=found, v0=np.ones(min(n, width)))
        left, values, right = left[:, ::-1], values[::-1], right[::-1]
    root = np.sqrt(values[:found])
    scores = np.zeros((n, n_components))
    components = np.zeros((n_components, width))
    scores[:, :found], components[:found] = left[:, :found] * root, root[:, None] * right[:found]
    # Directions that are exactly zero in both factors would stay so.
    dead = np.flatnonzero(np.abs(components).max(axis=1) < 1e-8)
    components[dead] = 0.01 * rng.standard_normal((len(dead), width))
    return scores, Loadings(components, np.log(share) - np.log1p(-share) if fit_intercept else np.zeros(width))


def alternate(
    rows: BinaryRows, scores: Array, loadings: Loadings, penalty: float, fit_intercept: bool
) -> tuple[Array, Loadings, float]:
    """One sweep: new scores, the objective with them and the old loadings, and new loadings."""
    from pluri.factors._logistic_kernels import tangents

    n, width = rows.shape
    size = scores.shape[1]
    wide = size + int(fit_intercept)
    V, intercept = loadings.components, loadings.intercept
    products, offset, whole = pair_products(V.T), (intercept * V).T, V.sum(axis=1)
    new = np.empty_like(scores)
    left, right = np.zeros((width, wide * (wide + 1) // 2)), np.zeros((width, wide))
    step = max(1, BLOCK // width)
    theta, decay, T = (np.empty((min(step, n), width)) for _ in range(3))
    log_likelihood = 0.0
    for first in range(0, n, step):
        block = slice(first, min(first + step, n))
        ones, missing = rows.ones[block], None if rows.missing is None else rows.missing[block]
        count = block.stop - first
        gaps = None if missing is None else missing.nonzero()

        def evaluate(u: Array, count: int = count, gaps: Any = gaps) -> float:
            np.matmul(u, V, out=theta[:count])
            theta[:count] += intercept
            np.abs(theta[:count], out=decay[:count])
            np.exp(np.negative(decay[:count], out=decay[:count]), out=decay[:count])
            total = float(tangents(theta[:count], decay[:count], T[:count]))
            if gaps is not None:
                total -= float(np.logaddexp(0.0, theta[:count][gaps]).sum())
                T[:count][gaps] = 0.0
            return total

        evaluate(scores[block])
        target = 2.0 * (ones @ V.T) - whole - T[:count] @ offset
        if missing is not None:
            target += missing @ V.T
        u = new[block] = solved(full_matrices(T[:count] @ products, size, penalty), target)
        log_likelihood -= evaluate(u)
        log_likelihood += float(theta[:count][ones.nonzero()].sum())
        design = np.column_stack([u, np.ones(count)]) if fit_intercept else u
        left += T[:count].T @ pair_products(design)
        right += 2.0 * (ones.T @ design) - design.sum(axis=0)
        if missing is not None:
            right += missing.T @ design
    squares = penalty * float((new**2).sum() + (V**2).sum()) + INTERCEPT_PENALTY * float((intercept**2).sum())
    systems = full_matrices(left, wide, penalty)
    if fit_intercept:
        systems[:, size, size] += INTERCEPT_PENALTY - penalty
    solution = solved(systems, right)
    after = Loadings(
        np.ascontiguousarray(solution[:, :size].T), solution[:, size].copy() if fit_intercept else intercept
    )
    return new, after, log_likelihood - 0.25 * squares


def balanced(scores: Array, loadings: Loadings) -> tuple[Array, Loadings]:
    """The same products with orthogonal scores and orthogonal loadings of equal lengths, longest first.

    Among all factors of the product these have the smallest penalty.
    """
    one, first = np.linalg.qr(scores)
    other, second = np.linalg.qr(loadings.components.T)
    left, values, right = np.linalg.svd(first @ second.T)
    root = np.sqrt(values)
    components = root[:, None] * (right @ other.T)
    size = scores.shape[1]
    full = np.zeros((size, components.shape[1]))
    full[: len(components)] = components
    moved = np.zeros_like(scores)
    moved[:, : len(root)] = (one @ left)[:, : len(root)] * root
    signs = np.where(full[np.arange(size), np.abs(full).argmax(axis=1)] < 0, -1.0, 1.0)
    return moved * signs, Loadings(signs[:, None] * full, loadings.intercept)


#: Scores (n, L) to values (n,), gradients (n, L) and minus the Hessians (n, L, L) of a strictly concave function.
Evaluation = Callable[[Array], tuple[Array, Array, Array]]


def climb(evaluate: Evaluation, scores: Array) -> Array:
    """Maximise a strictly concave function of each row by Newton's method, halving steps that go too far."""
    value, gradient, curvature = evaluate(scores)
    for _ in range(NEWTON_STEPS):
        step = solved(curvature, gradient)
        gain = (gradient * step).sum(axis=1)
        if (gain <= 1e-13 * (1.0 + np.abs(value))).all():
            return scores + step  # too small to go wrong, and doubles the correct digits
        length = np.ones(len(scores))
        for _ in range(HALVINGS):
            moved = evaluate(scores + length[:, None] * step)
            worse = ~(moved[0] >= value - 1e-12 * (1.0 + np.abs(value)))
            if not worse.any():
                break
            length[worse] *= 0.5
        scores = scores + length[:, None] * step
        value, gradient, curvature = moved
    return scores


def fold_in(rows: BinaryRows, loadings: Loadings, penalty: float) -> tuple[Array, Array]:
    """Scores (n, L) of rows that maximise ``log p(x | u) - (penalty/2) |u|^2``, and log p (n,) there."""
    from pluri.factors._logistic_kernels import newton_terms

    n, width = rows.shape
    V, size = loadings.components, len(loadings.components)
    products = pair_products(V.T)
    scores, log_likelihood = np.zeros((n, size)), np.empty(n)
    step = max(1, BLOCK // width)
    for first in range(0, n, step):
        part = rows[first : first + step]
        count = part.shape[0]
        gaps = None if part.missing is None else part.missing.nonzero()
        on, last = part.ones, np.empty(count)
        reward, constant = on @ V.T, on @ loadings.intercept
        mean, weight, total = np.empty((count, width)), np.empty((count, width)), np.empty(count)

        def evaluate(
            u: Array, gaps: Any = gaps, reward: Array = reward, constant: Array = constant, mean: Array = mean,
            weight: Array = weight, total: Array = total, last: Array = last,
        ) -> tuple[Array, Array, Array]:  # fmt: skip
            theta = loadings.natural(u)
            newton_terms(theta, np.exp(-np.abs(theta)), mean, weight, total)
            if gaps is not None:
                np.subtract.at(total, gaps[0], np.logaddexp(0.0, theta[gaps]))
                mean[gaps] = weight[gaps] = 0.0
            last[:] = (reward * u).sum(axis=1) + constant - total
            curvature = full_matrices(weight @ products, size, penalty)
            return last - 0.5 * penalty * (u**2).sum(axis=1), reward - mean @ V.T - penalty * u, curvature

        block = slice(first, first + count)
        scores[block] = climb(evaluate, scores[block])
        evaluate(scores[block])
        log_likelihood[block] = last
    return scores, log_likelihood


def fold_in_listed(ones: Any, zeros: Any, loadings: Loadings, penalty: float | Array) -> Array:
    """Scores (n, L) of rows of which few entries are known, given as patterns of the ones and the zeros.

    They maximise ``log p(known entries | u) - (1/2) sum_l penalty_l u_l^2``.
    """
    n, size = ones.shape[0], len(loadings.components)
    counts = np.diff(ones.indptr) + np.diff(zeros.indptr)
    width = int(counts.max(initial=0))
    columns, values = np.zeros((n, width), dtype=np.int64), np.zeros((n, width))
    for row in range(n):
        on = ones.indices[ones.indptr[row] : ones.indptr[row + 1]]
        off = zeros.indices[zeros.indptr[row] : zeros.indptr[row + 1]]
        columns[row, : counts[row]] = np.concatenate([on, off])
        values[row, : counts[row]] = np.repeat([1.0, -1.0], [len(on), len(off)])
    known = np.abs(values)
    design = np.ascontiguousarray(loadings.components.T)[columns]
    offset = loadings.intercept[columns]
    ridge = penalty * np.eye(size)

    def evaluate(u: Array) -> tuple[Array, Array, Array]:
        margin = values * ((design @ u[:, :, None])[:, :, 0] + offset)
        decay = np.exp(-np.abs(margin))
        value = -(known * (np.log1p(decay) + np.maximum(-margin, 0.0))).sum(axis=1)
        miss = np.where(margin > 0, decay, 1.0) / (1.0 + decay)  # sigma(-margin)
        gradient = ((values * miss)[:, None, :] @ design)[:, 0] - penalty * u
        weight = known * decay / (1.0 + decay) ** 2
        curvature = np.swapaxes(design * weight[:, :, None], 1, 2) @ design + ridge
        return value - 0.5 * (penalty * u**2).sum(axis=1), gradient, curvature

    return climb(evaluate, np.zeros((n, size)))
