r"""The cost of a map and its gradient where neighbours are few: P is sparse, and the repulsion goes over a mesh.

A Gaussian is two narrower ones after another: with nodes u of a square mesh of spacing h in L dimensions,

.. math:: e^{-|y_i - y_j|^2} \approx (2 h / \sqrt\pi)^L \sum_u e^{-2 |y_i - u|^2} e^{-2 |u - y_j|^2},

where the error of each pair is at most :math:`2 L\, e^{-(2 \pi / h)^2 / 16}` of its value (to first order), since the
sum over the mesh is :math:`e^{-|y_i - y_j|^2} \sum_u e^{-4 |u - m|^2}` with m half-way. So each point is spread to the
nodes around it and gathers from the nodes around it; time and memory grow with n, not with the number of pairs, however
close the points are. Nodes with a weight below `neglect` are left out, and h is such that the error is at most
`neglect`. A point whose norm is below `LONELY` (nothing lies within about two units) has its row computed with all
others, so that no norm vanishes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.embedding.neighbors.dense import MapCost
from pluri.embedding.neighbors.distributions import Neighbors
from pluri.embedding.neighbors.threads import Threads, total

Array = NDArray[np.float64]

#: Norms below this are computed with all points.
LONELY = 1e-2
#: Most nodes of a mesh (64 MB); maps that need more are computed with all pairs.
MOST_NODES = 8_000_000
#: Nodes of a mesh of which each piece of the rows may have a copy.
MANY_NODES = 500_000


class Stencil(NamedTuple):
    """Nodes around each point; see `node_weights` of the compiled functions."""

    first: NDArray[np.int64]
    lead: Array
    weights: Array
    widths: tuple[int, int, int]


class MeshCost:
    """The cost by a mesh; P is a CSR matrix, and the map has at most three dimensions.

    Parameters
    ----------
    neighbors : Neighbors
    threads : Threads
    neglect : float, default=1e-6
        Bound on the error of exp(-squared distance).
    """

    def __init__(self, neighbors: Neighbors, threads: Threads, neglect: float = 1e-6) -> None:
        self.neighbors, self.threads = neighbors, threads
        both, own = union_of_pulls(neighbors.P)
        self.offsets, self.columns = both.indptr.astype(np.int64), both.indices.astype(np.int64)
        self.pulls, self.own_pulls = both.data, own
        self.spacing = 2.0 * math.pi / math.sqrt(16.0 * math.log(6.0 / neglect))
        self.reach = math.sqrt(-0.5 * math.log(neglect))

    def __call__(self, points: Array) -> MapCost:
        """Cost of points (n, L)."""
        from pluri.embedding.neighbors._mesh_kernels import attractions

        n = len(points)
        columns = np.ascontiguousarray(points.T, dtype=np.float64)
        forces, stretch = np.empty_like(columns), np.empty(n)

        def pull(begin: int, end: int) -> None:
            attractions(columns, self.offsets, self.columns, self.pulls, self.own_pulls, begin, end, forces, stretch)

        self.threads.over(n, len(self.pulls), pull)
        repulsion, log_norms = self._repelled(columns)
        per_row = stretch + log_norms - self.neighbors.entropy
        gradient = 2.0 * (forces - repulsion).T
        return MapCost(float(per_row.sum()), np.ascontiguousarray(gradient), per_row)

    def _repelled(self, columns: Array) -> tuple[Array, Array]:
        """Forces (L, n) of the repulsion, and the log norms (n,)."""
        from pluri.embedding.neighbors._mesh_kernels import gather, gather_forces, lonely_row

        n_dimensions, n = columns.shape
        stencil, shape = self._stencil(columns)
        scale = (2.0 * self.spacing / math.sqrt(math.pi)) ** n_dimensions
        log_norms, lonely = np.zeros(n), np.arange(n)
        forces = np.zeros((3, n))
        if shape is not None:
            ones = self._spread(stencil, np.full(n, scale), shape)
            norms = np.empty(n)

            def measure(begin: int, end: int) -> None:
                gather(stencil.first, stencil.weights, stencil.widths, ones, begin, end, norms)

            self.threads.over(n, n * 100, measure)
            norms -= 1.0  # the point itself
            lonely = np.flatnonzero(norms < LONELY)
            inverse = 1.0 / np.maximum(norms, LONELY)
            inverse[lonely] = 0.0
            log_norms = np.log(np.maximum(norms, LONELY))
            inverses = self._spread(stencil, scale * inverse, shape)

            def repel(begin: int, end: int) -> None:
                gather_forces(stencil, self.spacing, inverse, ones, inverses, begin, end, forces)

            self.threads.over(n, n * 100, repel)
        answer = np.ascontiguousarray(forces[:n_dimensions])
        work = np.empty(n)
        for i in lonely:
            log_norms[i] = lonely_row(columns, i, work, answer)
        return answer, log_norms

    def _stencil(self, columns: Array) -> tuple[Stencil, tuple[int, int, int] | None]:
        """Nodes around the points, and the shape (z, y, x) of the mesh; None if it would be too large."""
        from pluri.embedding.neighbors._mesh_kernels import node_weights

        n_dimensions, n = columns.shape
        width = int(2.0 * self.reach / self.spacing) + 1
        widths = [width] * n_dimensions + [1] * (3 - n_dimensions)
        origin, sizes = np.zeros(3), [1.0, 1.0, 1.0]
        for axis, values in enumerate(columns):
            origin[axis] = values.min() - self.reach - self.spacing
            sizes[axis] = (values.max() - origin[axis] + self.reach) // self.spacing + 3
        empty = Stencil(np.empty((3, 0), np.int64), np.empty((3, 0)), np.empty((3, 0, 0)), (0, 0, 0))
        if math.prod(sizes) > MOST_NODES:
            return empty, None
        first, lead, weights = np.empty((3, n), np.int64), np.empty((3, n)), np.empty((3, n, width))
        node_weights(columns, origin, self.spacing, self.reach, first, lead, weights)
        stencil = Stencil(first, lead, weights, (widths[0], widths[1], widths[2]))
        return stencil, (int(sizes[2]), int(sizes[1]), int(sizes[0]))

    def _spread(self, stencil: Stencil, values: Array, shape: tuple[int, int, int]) -> Array:
        """Values (n,) spread over the mesh."""
        from pluri.embedding.neighbors._mesh_kernels import spread

        def piece(begin: int, end: int) -> Array:
            field = np.zeros(shape)
            spread(stencil.first, stencil.weights, stencil.widths, values, begin, end, field)
            return field

        n = len(values)
        if math.prod(shape) > MANY_NODES:
            return piece(0, n)
        answer: Array = total(self.threads.over(n, n * 100, piece))
        return answer


def union_of_pulls(P: Any) -> tuple[Any, Array]:
    """P + P' as CSR, and the entries of P at the same places."""
    n = P.shape[0]
    rows = np.repeat(np.arange(n), np.diff(P.indptr))
    codes = np.concatenate([rows * n + P.indices, P.indices.astype(np.int64) * n + rows])
    places, where = np.unique(codes, return_inverse=True)
    own = np.bincount(where[: len(P.data)], P.data, minlength=len(places))
    both = own + np.bincount(where[len(P.data) :], P.data, minlength=len(places))
    offsets = np.searchsorted(places, np.arange(n + 1) * n)
    return sparse.csr_matrix((both, places % n, offsets), shape=(n, n)), np.asarray(own, dtype=np.float64)
