"""Newton ascents of many concave functions at a time, each with its own length of step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: Points (n, d) to values (n,), gradients (n, d) and second derivatives of the negatives (n, d, d).
Evaluate = Callable[[Array], tuple[Array, Array, Array]]

#: Newton steps of an M-step: EM needs only that it rises, and goes on from there.
MOST_STEPS = 5
#: Halvings of a step that does not rise.
MOST_HALVINGS = 30
#: A function is at its top when a Newton step promises less, relative to its value.
ENOUGH = 1e-10


def ascend(evaluate: Evaluate, start: Array, free: NDArray[np.bool_]) -> Array:
    """Raise each of n functions by a few Newton steps; coordinates that are not `free` (n, d) stay."""
    point = start
    value, gradient, hessian = evaluate(point)
    for _ in range(MOST_STEPS):
        step = _newton_step(gradient, hessian, free)
        promise = np.einsum("nd,nd->n", np.where(free, gradient, 0.0), step)
        size = (promise > ENOUGH * np.maximum(1.0, np.abs(value))).astype(np.float64)
        if not size.any():
            break
        for _ in range(MOST_HALVINGS):
            tried = point + size[:, None] * step
            new = evaluate(tried)
            better = (size > 0) & (new[0] >= value + 1e-4 * size * promise)
            row, block = better[:, None], better[:, None, None]
            point = np.where(row, tried, point)
            gradient, hessian = np.where(row, new[1], gradient), np.where(block, new[2], hessian)
            value = np.where(better, new[0], value)
            size = np.where(better, 0.0, 0.5 * size)
            if not size.any():
                break
    return point


def _newton_step(gradient: Array, hessian: Array, free: NDArray[np.bool_]) -> Array:
    """Solutions of H step = gradient in the free coordinates; a small ridge keeps flat functions from far steps."""
    d = gradient.shape[1]
    kept = free[:, :, None] & free[:, None, :]
    H = np.where(kept, hessian, 0.0)
    diagonal = np.einsum("ndd->nd", H)
    ridge = np.where(free, 1e-9 * (1.0 + np.abs(diagonal)), 1.0)
    H = H + np.eye(d) * ridge[:, :, None]
    return np.where(free, np.linalg.solve(H, np.where(free, gradient, 0.0)[:, :, None])[:, :, 0], 0.0)


def ascend_arrow(evaluate: Evaluate, start: Array, line: Array, support: NDArray[np.bool_], p: int) -> Array:
    """Raise the sum of functions of (c_i, g_i) where g_i(k) = d_i k + g(k) with one g, g(0) = g(1) = 0, for all.

    `line` (p + K + 1, p + 1) leads from (c, d) to (c, g). The blocks of (c_i, d_i) are eliminated (Schur complement),
    which leaves a system for g alone.
    """
    width = start.shape[1]
    shared = np.flatnonzero(support)
    shared = shared[shared >= 2]
    bend = np.zeros((width, len(shared)))
    bend[p + shared, np.arange(len(shared))] = 1.0
    own = np.column_stack([start[:, :p], start[:, p + 1]])
    g = start[0, p + shared] - shared * start[0, p + 1]

    def place(own: Array, g: Array) -> Array:
        return np.asarray(own @ line.T + bend @ g)

    parts, gradient, hessian = evaluate(place(own, g))
    value = float(parts.sum())
    for _ in range(MOST_STEPS):
        own_gradient, shared_gradient = gradient @ line, (gradient @ bend).sum(axis=0)
        block = np.einsum("ac,nab,bd->ncd", line, hessian, line)
        border = np.einsum("ac,nab,bd->ncd", line, hessian, bend)
        corner = bend.T @ hessian.sum(axis=0) @ bend
        block = block + np.eye(p + 1) * 1e-9 * (1.0 + np.einsum("ndd->nd", block))[:, :, None]
        solved = np.linalg.solve(block, np.concatenate([border, own_gradient[:, :, None]], axis=2))
        left = corner - np.einsum("nac,nad->cd", border, solved[:, :, :-1])
        left = left + 1e-9 * np.diag(1.0 + np.diag(corner))
        g_step = np.linalg.solve(left, shared_gradient - np.einsum("nac,na->c", border, solved[:, :, -1]))
        own_step = solved[:, :, -1] - solved[:, :, :-1] @ g_step
        promise = float((own_gradient * own_step).sum() + shared_gradient @ g_step)
        if not promise > ENOUGH * max(1.0, abs(value)):
            break
        size = 1.0
        for _ in range(MOST_HALVINGS):
            new = evaluate(place(own + size * own_step, g + size * g_step))
            if float(new[0].sum()) >= value + 1e-4 * size * promise:
                own, g = own + size * own_step, g + size * g_step
                (parts, gradient, hessian), value = new, float(new[0].sum())
                break
            size *= 0.5
        else:
            break
    return place(own, g)
