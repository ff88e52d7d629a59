r"""Exact draws item by item from the marginal kernel, without eigenvalues.

Item i is kept with its probability given all decisions before. Whatever the coin says, the kernel of the rest is
conditioned on it by one step of elimination:

.. math:: M \leftarrow M - \frac{M_{\cdot i} M_{i \cdot}}{d_i}, \qquad
   d_i = M_{ii} \text{ if kept, } M_{ii} - 1 \text{ if not.}

This is an :math:`L D L^\top` factorisation of K minus the indicator of what was left out; it holds for every
:math:`0 \le K \le I`, also where K has the eigenvalue 1 and there is no L. It shares nothing with the spectral sampler
and serves as its check. With :math:`K = R A R^\top` of low rank r the elimination acts on the r x r matrix A alone.

References
----------
.. [1] J. Poulson, "High-performance sampling of generic determinantal point processes", Philosophical Transactions of
   the Royal Society A 378, 2020.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from pluri.processes.dpp.kernel_checks import ROUNDING, check_symmetric
from pluri.processes.dpp.kernel_forms import Array, IntArray

#: Items decided between two products of matrices.
BLOCK = 64
#: Items from which on products of matrices gain from threads.
WORTH_THREADS = 1000


def draw_sequentially(marginal: ArrayLike, n_draws: int, rng: np.random.Generator) -> list[IntArray]:
    """Independent exact draws from the marginal kernel K, each in about ``n_items**3 / 3`` multiplications.

    Parameters
    ----------
    marginal : array_like (n_items, n_items)
        Symmetric with eigenvalues between 0 and 1, both included. Only the diagonal is checked for the range.
    n_draws : int
        Number of subsets.
    rng : numpy.random.Generator
        Source of randomness; one uniform number for each item of each draw.

    Returns
    -------
    list of ndarray
        Sorted items of each subset.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import draw_sequentially
    >>> always_one_of_two = np.array([[0.5, 0.5], [0.5, 0.5]])
    >>> [subset.size for subset in draw_sequentially(always_one_of_two, 4, np.random.default_rng(0))]
    [1, 1, 1, 1]
    """
    from threadpoolctl import threadpool_limits

    kernel = check_symmetric(marginal, "K")
    diagonal = np.diagonal(kernel)
    if diagonal.min() < -ROUNDING or diagonal.max() > 1 + ROUNDING:
        worst = diagonal.min() if diagonal.min() < -ROUNDING else diagonal.max()
        raise ValueError(f"K must have eigenvalues between 0 and 1, got {worst:.6g} on its diagonal")
    factor = np.empty_like(kernel)
    # On so few items threads only wait for each other.
    with threadpool_limits(1 if len(kernel) < WORTH_THREADS else None, user_api="blas"):
        return [decide_items(kernel, factor, rng) for _ in range(n_draws)]


def decide_items(kernel: Array, factor: Array, rng: np.random.Generator) -> IntArray:
    """One draw; only the lower triangle of ``kernel`` is read, and ``factor`` is room of the same shape."""
    from pluri.processes.dpp.samplers._sequential_kernels import toss_block

    n_items = len(kernel)
    pivots, kept = np.empty(n_items), np.empty(n_items, dtype=np.bool_)
    for begin in range(0, n_items, BLOCK):
        end = min(begin + BLOCK, n_items)
        # Left-looking: earlier decisions reach these columns in one product, half the work of updating all the rest.
        panel = kernel[begin:, begin:end].copy()
        if begin:
            panel -= factor[begin:, :begin] @ (factor[begin:end, :begin] * pivots[:begin]).T
        block = np.ascontiguousarray(panel[: end - begin])
        toss_block(rng, block, pivots[begin:end], kept[begin:end])
        below = panel[end - begin :].T
        if below.size:
            reduced = solve_triangular(block, below, lower=True, unit_diagonal=True, check_finite=False)
            factor[end:, begin:end] = reduced.T / pivots[begin:end]
    return np.flatnonzero(kept).astype(np.int64)


def draw_sequentially_low_rank(
    vectors: ArrayLike, probabilities: ArrayLike, n_draws: int, rng: np.random.Generator
) -> list[IntArray]:
    """Independent exact draws from ``K = V diag(probabilities) V^T`` in O(n_items * rank^2) each.

    Parameters
    ----------
    vectors : array_like (n_items, rank)
        Orthonormal columns.
    probabilities : array_like (rank,)
        Eigenvalues of K, between 0 and 1.
    n_draws : int
        Number of subsets.
    rng : numpy.random.Generator
        Source of randomness; the same numbers give the same subsets as `draw_sequentially`.

    Returns
    -------
    list of ndarray
        Sorted items of each subset.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import draw_sequentially_low_rank
    >>> draw_sequentially_low_rank(np.eye(4)[:, :2], [1.0, 1.0], 1, np.random.default_rng(0))
    [array([0, 1])]
    """
    rows = np.ascontiguousarray(vectors, dtype=np.float64)
    values = np.asarray(probabilities, dtype=np.float64)
    if rows.ndim != 2 or values.shape != (rows.shape[1],):
        raise ValueError(
            f"probabilities must be one for each of the columns of vectors, got {values.shape} and {rows.shape}"
        )
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        raise ValueError(f"probabilities must lie between 0 and 1, got {values.min():.6g} to {values.max():.6g}")
    return [decide_rows(rows, np.diag(values), rng) for _ in range(n_draws)]


def decide_rows(rows: Array, inner: Array, rng: np.random.Generator) -> IntArray:
    """One draw from the marginal kernel ``rows @ inner @ rows.T``; ``inner`` is overwritten."""
    from pluri.processes.dpp.samplers._sequential_kernels import toss_rows

    kept = np.empty(len(rows), dtype=np.bool_)
    toss_rows(rng, rows, inner, np.empty(rows.shape[1]), kept)
    return np.flatnonzero(kept).astype(np.int64)
