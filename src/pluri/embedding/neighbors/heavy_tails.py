r"""The cost of a map with heavy tails, whose points pick neighbours as by Student's t with one degree of freedom.

With :math:`w_{ij} = 1 / (1 + |y_i - y_j|^2)` and :math:`Z = \sum_{i \ne j} w_{ij}`, over n objects,

.. math:: C = \sum_i \Bigl[-\sum_j p_{ij} \log w_{ij} - H(P_i)\Bigr] + n \log (Z / n), \qquad
          \frac{dC}{dy_i} = 2 \sum_j (y_i - y_j)\, w_{ij} \Bigl(p_{ij} + p_{ji} - \frac{2 n}{Z} w_{ij}\Bigr).

This is n times the divergence of the joint distributions :math:`p_{ij} / n` and :math:`w_{ij} / Z`, as in t-SNE. Its P
is symmetric, which changes the cost by a constant only. Rows have no norms of their own here:
far apart w is a power of the distance, which has no unit, and such norms would hold no map together.

Over a mesh, :math:`w(y_i - y_j) \approx \sum_{uv} b(y_i - u)\, G(u - v)\, b(v - y_j)` with B-splines b of degree five,
and G such that this is w itself wherever both points are nodes: the transform of w on the mesh over the square of that
of b.
G is applied by the fast Fourier transform, on a mesh twice as wide so that nothing comes in from the other side. With
spacing h the error of a pair is at most about :math:`h^6`, and the gradient is that of the cost with this very error,
so that line searches are not misled.

References
----------
van der Maaten, L. and Hinton, G. (2008). Visualizing data using t-SNE. JMLR 9 (the tails).
Essmann, U. et al. (1995). A smooth particle mesh Ewald method. J. Chem. Phys. 103 (splines on a mesh).
Linderman, G. et al. (2019). Fast interpolation-based t-SNE. Nature Methods 16 (a mesh for these tails).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.embedding.neighbors.dense import MapCost
from pluri.embedding.neighbors.distributions import Neighbors
from pluri.embedding.neighbors.mesh import union_of_pulls
from pluri.embedding.neighbors.threads import Threads, total

Array = NDArray[np.float64]

#: Nodes that a spline covers on an axis.
WIDTH = 6
#: Nodes beyond twice the mesh: so far the splines' inverse reaches.
BEYOND = 32
#: Most nodes of a mesh, before it is doubled (64 MB); maps that need more are computed with all pairs.
MOST_NODES = 2_000_000
#: Pairs of points whose forces take as long as a node of the mesh.
PAIRS_PER_NODE = 500
#: Nodes of a mesh of which each piece of the rows may have a copy.
MANY_NODES = 500_000


class DenseHeavyCost:
    """The cost by all pairs; P is a dense array.

    Parameters
    ----------
    neighbors : Neighbors
    threads : Threads
    attraction : float, default=1.0
        What -sum_ij p_ij log w_ij counts; more than one at the beginning of a fit, so that groups come together.
    """

    def __init__(self, neighbors: Neighbors, threads: Threads, attraction: float = 1.0) -> None:
        self.neighbors, self.threads, self.attraction = neighbors, threads, attraction

    def __call__(self, points: Array) -> MapCost:
        """Cost of points (n, L)."""
        from pluri.embedding.neighbors._student_kernels import dense_heavy_rows

        columns = np.ascontiguousarray(points.T, dtype=np.float64)
        n = len(points)
        norms, stretch, repulsion = np.empty(n), np.empty(n), np.empty_like(columns)

        def piece(begin: int, end: int) -> Array:
            attraction = np.zeros_like(columns)
            dense_heavy_rows(columns, self.neighbors.P, begin, end, np.empty(n), attraction, repulsion, norms, stretch)
            return attraction

        attraction = total(self.threads.over(n, n * n, piece))
        crossed = self.attraction * stretch - self.neighbors.entropy
        return joined(self.attraction * attraction, repulsion, norms, crossed)

    def rate(self, points: Array) -> float:
        """By how much a new object is pushed: n / Z of points (n, L)."""
        return 1.0 / float(repelled_by_all(np.ascontiguousarray(points.T), self.threads)[1].mean())


def repelled_by_all(columns: Array, threads: Threads) -> tuple[Array, Array]:
    """Sums over j of w_ij^2 (y_i - y_j), (L, n), and of w_ij, (n,), by all pairs."""
    from pluri.embedding.neighbors._student_kernels import heavy_repulsions

    n = columns.shape[1]
    norms, repulsion = np.empty(n), np.empty_like(columns)

    def rows(begin: int, end: int) -> None:
        heavy_repulsions(columns, begin, end, np.empty(n), repulsion, norms)

    threads.over(n, n * n, rows)
    return repulsion, norms


def joined(attraction: Array, repulsion: Array, norms: Array, crossed: Array) -> MapCost:
    """The cost from forces (L, n), the sums of the rows of w and -sum_j p_ij log w_ij - H(P_i)."""
    mean = float(norms.mean())
    per_row = crossed + np.log(mean)
    gradient = 2.0 * attraction - (4.0 / mean) * repulsion
    return MapCost(float(per_row.sum()), np.ascontiguousarray(gradient.T), per_row)


class Stencil(NamedTuple):
    """Nodes around each point; see `spline_weights` of the compiled functions."""

    first: NDArray[np.int64]
    weights: Array
    slopes: Array
    widths: tuple[int, int, int]


class HeavyMeshCost:
    """The cost by a mesh; P is a CSR matrix, and the map has at most three dimensions.

    Parameters
    ----------
    neighbors : Neighbors
    threads : Threads
    neglect : float, default=1e-3
        Bound on the error of 1 / (1 + squared distance).
    attraction : float, default=1.0
        As in `DenseHeavyCost`.
    """

    def __init__(self, neighbors: Neighbors, threads: Threads, neglect: float = 1e-3, attraction: float = 1.0) -> None:
        self.neighbors, self.threads, self.attraction = neighbors, threads, attraction
        both, own = union_of_pulls(neighbors.P)
        self.offsets, self.columns = both.indptr.astype(np.int64), both.indices.astype(np.int64)
        self.pulls, self.own_pulls = both.data, own
        self.spacing = neglect ** (1.0 / WIDTH)
        self._shape: tuple[int, ...] = ()
        self._kernel = np.empty(0)

    def __call__(self, points: Array) -> MapCost:
        """Cost of points (n, L)."""
        from pluri.embedding.neighbors._student_kernels import heavy_attractions

        n = len(points)
        columns = np.ascontiguousarray(points.T, dtype=np.float64)
        forces, stretch = np.empty_like(columns), np.empty(n)

        def pull(begin: int, end: int) -> None:
            heavy_attractions(
                columns, self.offsets, self.columns, self.pulls, self.own_pulls, begin, end, forces, stretch
            )

        self.threads.over(n, len(self.pulls), pull)
        repulsion, norms = self._repelled(columns)
        crossed = self.attraction * stretch - self.neighbors.entropy
        return joined(self.attraction * forces, repulsion, norms, crossed)

    def rate(self, points: Array) -> float:
        """By how much a new object is pushed: n / Z of points (n, L)."""
        return 1.0 / float(self._repelled(np.ascontiguousarray(points.T))[1].mean())

    def _repelled(self, columns: Array) -> tuple[Array, Array]:
        """Sums over j of w_ij^2 (y_i - y_j), (L, n), and of w_ij, (n,)."""
        from pluri.embedding.neighbors._student_kernels import gather_slopes

        n_dimensions, n = columns.shape
        sizes, origin = self._extent(columns)
        if math.prod(sizes) > min(MOST_NODES, n * n / PAIRS_PER_NODE):
            return repelled_by_all(columns, self.threads)
        norms, repulsion = np.empty(n), np.empty((3, n))
        stencil = self._stencil(columns, origin)
        field = self._field(stencil, (int(sizes[2]), int(sizes[1]), int(sizes[0])), n_dimensions)

        def gathered(begin: int, end: int) -> None:
            gather_slopes(stencil, field, begin, end, norms, repulsion)

        self.threads.over(n, n * 100, gathered)
        # The field is that of all points, the point itself among them, and its derivative -2 sum_j w^2 (y_i - y_j).
        return -0.5 * repulsion[:n_dimensions], norms - 1.0

    def _extent(self, columns: Array) -> tuple[list[float], Array]:
        """Sizes of the mesh on three axes, and where it begins; nodes are the same ones wherever the points are."""
        origin, sizes = np.zeros(3), [1.0, 1.0, 1.0]
        for axis, values in enumerate(columns):
            origin[axis] = (values.min() // self.spacing - WIDTH) * self.spacing
            sizes[axis] = (values.max() - origin[axis]) // self.spacing + 3
        return sizes, origin

    def _stencil(self, columns: Array, origin: Array) -> Stencil:
        """Nodes around the points."""
        from pluri.embedding.neighbors._student_kernels import spline_weights

        n_dimensions, n = columns.shape
        widths = [WIDTH] * n_dimensions + [1] * (3 - n_dimensions)
        first, weights, slopes = np.empty((3, n), np.int64), np.empty((3, n, WIDTH)), np.empty((3, n, WIDTH))
        spline_weights(columns, origin, self.spacing, first, weights, slopes)
        return Stencil(first, weights, slopes, (widths[0], widths[1], widths[2]))

    def _field(self, stencil: Stencil, shape: tuple[int, int, int], n_dimensions: int) -> Array:
        """The coefficients (z, y, x) of the splines whose sum at a place y is that of all w(y - y_j)."""
        from scipy import fft

        from pluri.embedding.neighbors._mesh_kernels import spread

        def piece(begin: int, end: int) -> Array:
            field = np.zeros(shape)
            spread(stencil.first, stencil.weights, stencil.widths, np.ones(n), begin, end, field)
            return field

        n = stencil.first.shape[1]
        many = math.prod(shape) > MANY_NODES
        charges = piece(0, n) if many else total(self.threads.over(n, n * 100, piece))
        kept = tuple(shape[3 - n_dimensions :])
        wide = tuple(fft.next_fast_len(int(2.1 * size) + BEYOND, real=True) for size in kept)
        transform = fft.rfftn(charges.reshape(kept), wide, workers=self.threads.count)
        transform *= self._transform(wide)
        whole = fft.irfftn(transform, wide, workers=self.threads.count, overwrite_x=True)
        return np.ascontiguousarray(whole[tuple(slice(size) for size in kept)]).reshape(shape)

    def _transform(self, wide: tuple[int, ...]) -> Array:
        """The transform of G on a mesh of this shape."""
        from scipy import fft

        if wide != self._shape:
            squares = np.ones(())
            for size in wide:
                steps = np.minimum(np.arange(size), size - np.arange(size)) * self.spacing
                squares = squares[..., None] + steps**2
            kernel = fft.rfftn(1.0 / squares).real
            for axis, size in enumerate(wide):
                angle = 2.0 * np.pi * np.arange(kernel.shape[axis]) / size
                spline = (66.0 + 52.0 * np.cos(angle) + 2.0 * np.cos(2.0 * angle)) / 120.0
                kernel /= (spline**2).reshape([-1 if axis == other else 1 for other in range(len(wide))])
            self._kernel, self._shape = kernel, wide
        return self._kernel
