r"""Kernels below a given one, made of a few of its rows.

With landmarks W, :math:`\hat L = L_{:W} L_W^{-1} L_{W:} \preceq L`; the rows of :math:`B = L_{:W} T^{-\top}`, where
:math:`T T^\top = L_W`, are features of the approximation. What the landmarks leave of the diagonal says where more of
them are needed: they are chosen greedily in a pool of items that is spread by what is left. Items are handled in
chunks, so that no matrix with a row for each of them is kept.

References
----------
.. [1] C. Williams and M. Seeger, "Using the Nystrom method to speed up kernel machines", NeurIPS 2001.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, eigvalsh, solve_triangular
from scipy.optimize import brentq

from pluri.processes.dpp.kernel_forms import Array, IntArray, KernelForm

#: Items among which the next landmarks are looked for, and items handled at a time.
POOL, CHUNK = 2000, 4096
#: A landmark whose remaining length is below this share of the longest would add rounding.
DEPENDENT = 1e-10
#: Eigenvalues of the approximation below this share of the largest are rounding of zero.
NEGLIGIBLE = 1e-12


@dataclass(frozen=True, eq=False)
class Approximation:
    """A kernel below L: from landmarks, or L itself where the features are few.

    Attributes
    ----------
    kernel : KernelForm
    landmarks : (n_landmarks,) or None
        None if the features of the kernel are used as they are.
    gram : (rank, rank)
        Product of the approximate features with themselves.
    left_over : (n_items,)
        Diagonal of L minus that of the approximation.
    """

    kernel: KernelForm
    landmarks: IntArray | None
    gram: Array
    left_over: Array

    def rows(self, items: ArrayLike) -> Array:
        """Approximate features of the items, (n, rank)."""
        return factor_rows(self.kernel, self.landmarks, self._triangle, items)

    @cached_property
    def _triangle(self) -> Array | None:
        return None if self.landmarks is None else triangle_of(self.kernel, self.landmarks)

    @cached_property
    def eigenvalues(self) -> Array:
        """Eigenvalues of the approximation that are not zero."""
        values = np.asarray(eigvalsh(self.gram)) if self.gram.size else np.empty(0)
        return values[values > NEGLIGIBLE * values.max(initial=0.0)]

    def leverage(self, scale: float) -> Array:
        """The l_i of the module's formula for the kernel ``scale * L``."""
        result = scale * self.left_over
        factor = cho_factor(np.eye(len(self.gram)) + scale * self.gram, lower=True)[0]
        for begin in range(0, self.kernel.n_items, CHUNK):
            items = np.arange(begin, min(begin + CHUNK, self.kernel.n_items))
            reduced = solve_triangular(factor, self.rows(items).T, lower=True, check_finite=False)
            result[items] += scale * np.einsum("ai,ai->i", reduced, reduced)
        return result


def triangle_of(kernel: KernelForm, landmarks: IntArray) -> Array:
    """Cholesky factor of the kernel of the landmarks."""
    if not landmarks.size:
        return np.empty((0, 0))
    return np.asarray(np.linalg.cholesky(kernel.block(landmarks, landmarks)), dtype=np.float64)


def factor_rows(kernel: Any, landmarks: IntArray | None, triangle: Array | None, items: ArrayLike) -> Array:
    """Rows B of the items with ``B B^T`` the approximation."""
    if landmarks is None:
        rows = kernel.features[np.asarray(items)]
        return np.asarray(rows.toarray() if kernel.is_sparse else rows)
    if not landmarks.size:
        return np.empty((np.size(items), 0))
    block = kernel.block(landmarks, items)
    return np.asarray(solve_triangular(triangle, block, lower=True, check_finite=False, overwrite_b=True).T)


def approximate_below(kernel: KernelForm, landmarks: IntArray | None) -> Approximation:
    """One pass over the items in chunks; no matrix with a row for each item is kept."""
    diagonal = kernel.diagonal()
    triangle = None if landmarks is None else triangle_of(kernel, landmarks)
    gram: Any = 0.0
    left_over = diagonal.copy()
    for begin in range(0, kernel.n_items, CHUNK):
        items = np.arange(begin, min(begin + CHUNK, kernel.n_items))
        rows = factor_rows(kernel, landmarks, triangle, items)
        gram = gram + rows.T @ rows
        left_over[items] -= np.einsum("ia,ia->i", rows, rows)
    if landmarks is None:
        left_over[:] = 0.0
    else:
        left_over[landmarks] = 0.0
        left_over[left_over < DEPENDENT**1.5 * diagonal.max()] = 0.0
    return Approximation(kernel, landmarks, np.asarray(gram), left_over)


def more_landmarks(current: Approximation, n_more: int, enough: float) -> IntArray:
    """Further landmarks: greedily the longest remainder in a pool that is spread by the remainders.

    Stops early when the pool suggests that less than ``enough`` is left in all.
    """
    assert current.landmarks is not None
    kernel, total = current.kernel, float(current.left_over.sum())
    levels = (np.arange(POOL) + 0.5) / POOL * total
    pool, counts = np.unique(np.searchsorted(np.cumsum(current.left_over), levels, side="right"), return_counts=True)
    pool, counts = pool[pool < kernel.n_items], counts[pool < kernel.n_items]
    known = current.rows(pool)
    before = np.maximum(current.left_over[pool], np.finfo(np.float64).tiny)
    remainder, shortest = before.copy(), DEPENDENT * float(kernel.diagonal().max())
    found = np.empty((n_more, len(pool)))
    chosen: list[int] = []
    while len(chosen) < n_more:
        best = int(np.argmax(remainder))
        if remainder[best] <= shortest or total * float(counts @ (remainder / before)) / counts.sum() < enough:
            break
        done = len(chosen)
        row = kernel.block(pool[best : best + 1], pool)[0] - known @ known[best] - found[:done, best] @ found[:done]
        found[done] = row / np.sqrt(remainder[best])
        remainder = np.maximum(remainder - found[done] ** 2, 0.0)
        remainder[best] = 0.0
        chosen.append(best)
    return np.concatenate([current.landmarks, pool[chosen]])


def scale_for_size(eigenvalues: Array, left_over: float, size: int) -> float:
    """Factor of L at which the expected size is about ``size``; at a fixed size any factor is the same."""

    def excess(log_scale: float) -> float:
        scaled = np.exp(log_scale) * eigenvalues
        return float((scaled / (1 + scaled)).sum() + np.exp(log_scale) * left_over - wanted)

    wanted = float(size)
    if left_over == 0.0:
        if size > eigenvalues.size:
            raise ValueError(f"size must be at most the rank of the kernel ({eigenvalues.size}), got {size}")
        wanted = min(wanted, eigenvalues.size - 0.5)
    low = np.log(wanted / (eigenvalues.sum() + left_over)) - 1.0
    high = low
    while excess(high) < 0:
        high += 5.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-6)))
