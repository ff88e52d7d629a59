r"""One pass over the data of a Gaussian mixture in whitened coordinates.

With augmented rows :math:`y_i` (a one appended), factors :math:`S_j = L_j L_j^\top` and :math:`z_{ij} = L_j^{-1} y_i`,
a pass computes

.. math:: \ell = \sum_i w_i \log \sum_j e^{o_j - |z_{ij}|^2 / 2}, \qquad N_j = \sum_i w_i r_{ij}, \qquad
          M_j = \sum_i w_i r_{ij} z_{ij} z_{ij}^\top,

which is all that EM and gradient methods need. Rows are taken in blocks that stay in the cache; nothing of size
``n_samples x n_components x n_features`` is made, unless the caller asks for the projections of a line search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

Array = NDArray[np.float64]
Result = TypeVar("Result")

#: Entries of a block's whitened rows: 1 MB, about what a core's own cache holds.
BLOCK_ENTRIES = 1 << 17


class Moments(NamedTuple):
    """What a pass finds.

    Attributes
    ----------
    value : float
        Mean log density, up to the constants the caller adds.
    shares : (K,)
        Expected share of the data in each component.
    second : (K, m, m)
        Weighted second moments in whitened coordinates.
    """

    value: float
    shares: Array
    second: Array


class DataPass:
    """Augmented rows with weights that sum to one.

    Parameters
    ----------
    rows : (n, m)
    weights : (n,) or None
        Equal weights if None.
    n_components : int
    n_jobs : int or None
        Number of threads that share the blocks; their sums are added in order, so the result does not depend on it.
    """

    def __init__(self, rows: Array, weights: Array | None, n_components: int, n_jobs: int | None = None) -> None:
        self.rows = np.ascontiguousarray(rows)
        self.weights = np.full(len(rows), 1.0 / len(rows)) if weights is None else weights
        self.n_jobs = int(effective_n_jobs(n_jobs))
        size = max(128, BLOCK_ENTRIES // (n_components * rows.shape[1]))
        self.blocks = [slice(begin, begin + size) for begin in range(0, len(rows), size)]
        self._pool: ThreadPoolExecutor | None = None

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Keep a pool of threads open; BLAS then uses one each."""
        if self.n_jobs == 1 or len(self.blocks) == 1:
            yield
            return
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1), ThreadPoolExecutor(self.n_jobs) as self._pool:
            yield
        self._pool = None

    def _each(self, work: Callable[[int], Result]) -> list[Result]:
        numbers = range(len(self.blocks))
        return list(map(work, numbers) if self._pool is None else self._pool.map(work, numbers))

    def moments(self, inverse: Array, offsets: Array) -> Moments:
        """Whiten the rows with ``inverse`` (K, m, m) and take the moments; ``offsets`` (K,) are ``o_j``."""
        transposed = np.swapaxes(inverse, 1, 2)
        return _total(self._each(lambda b: self._block(self.rows[self.blocks[b]] @ transposed, offsets, b)))

    def project(self, inverse: Array, vectors: Array) -> list[Array]:
        """Whitened rows in the coordinates of ``vectors`` (K, m, m), as blocks of shape (K, rows, m)."""
        transform = np.swapaxes(inverse, 1, 2) @ vectors
        return self._each(lambda b: self.rows[self.blocks[b]] @ transform)

    def scaled_moments(self, projections: list[Array], scale: Array, offsets: Array) -> Moments:
        """Moments of projected rows after their coordinates are multiplied by ``scale`` (K, m)."""
        return _total(self._each(lambda b: self._block(projections[b] * scale[:, None, :], offsets, b)))

    def along(
        self, projections: list[Array], squares: Array, rates: Array, offsets: Array, offset_rates: Array
    ) -> tuple[float, float]:
        """Mean log density and its derivative in the step, from projected rows: O(n K m).

        ``squares`` (K, m) multiply the squared coordinates and ``rates`` (K, m) are their derivatives.
        """
        both = np.stack([squares, rates], axis=2)

        def work(b: int) -> tuple[float, float]:
            forms = np.square(projections[b]) @ both
            log_density = offsets[:, None] - 0.5 * forms[:, :, 0]
            total, shares = _normalize(log_density)
            weights = self.weights[self.blocks[b]]
            slopes = np.einsum("kn,kn->n", shares, offset_rates[:, None] - 0.5 * forms[:, :, 1])
            return float(weights @ total), float(weights @ slopes)

        parts = np.array(self._each(work))
        return float(parts[:, 0].sum()), float(parts[:, 1].sum())

    def _block(self, whitened: Array, offsets: Array, b: int) -> Moments:
        log_density = offsets[:, None] - 0.5 * np.einsum("knm,knm->kn", whitened, whitened)
        total, shares = _normalize(log_density)
        weights = self.weights[self.blocks[b]]
        shares *= weights
        roots = np.sqrt(shares)
        second = np.empty((len(whitened), whitened.shape[2], whitened.shape[2]))
        for j, rows in enumerate(whitened):
            rows *= roots[j][:, None]
            second[j] = rows.T @ rows
        return Moments(float(weights @ total), shares.sum(axis=1), second)


def _normalize(log_density: Array) -> tuple[Array, Array]:
    """Log of the sum over components (n,), and each component's share of it (K, n)."""
    largest = log_density.max(axis=0)
    shares = np.exp(log_density - largest)
    total = shares.sum(axis=0)
    shares /= total
    return largest + np.log(total), shares


def _total(parts: list[Moments]) -> Moments:
    return Moments(
        sum(part.value for part in parts),
        np.sum([part.shares for part in parts], axis=0),
        np.sum([part.second for part in parts], axis=0),
    )
