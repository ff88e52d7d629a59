r"""Eigenfunctions of the Gaussian kernel over a box, as products of those along each coordinate.

The kernel and the volume are products over coordinates, and so

.. math:: \lambda_n = q^2 \prod_d \lambda_{n_d}, \qquad f_n(x) = \prod_d f_{n_d}(x_d)

with the eigenpairs of each coordinate from Gauss-Legendre nodes, which are dense enough to be exact to rounding. The
products with the largest eigenvalues are kept: no other functions of that number hold a larger share of the trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pluri.processes.dpp.continuous.domains import Box
from pluri.processes.dpp.continuous.features import NO_DIRECTION, GaussianSimilarity
from pluri.processes.dpp.kernel_forms import Array, IntArray

#: Products that are kept at most.
MOST_FUNCTIONS = 3000
#: Nodes along a coordinate: for each length scale that fits into it, and in addition.
NODES_PER_SCALE, MORE_NODES = 3.0, 40
#: A coordinate with more nodes is left to landmarks.
MOST_NODES = 1600


@dataclass(frozen=True, eq=False)
class BoxFunctions:
    """Eigenpairs of ``exp(-|x - y|^2 / (2 length_scale^2))`` over a box.

    Attributes
    ----------
    values : (rank,), descending
        Eigenvalues.
    along : for each coordinate, a function of its values (n,) that gives the eigenfunctions (n, n_d)
    parts : (rank, n_dimensions)
        Which eigenfunction of each coordinate a product is made of.
    """

    values: Array
    along: list[Callable[[Array], Array]]
    parts: IntArray

    def __call__(self, points: Array, chosen: IntArray | slice = slice(None)) -> Array:
        """Orthonormal functions (n, n_chosen) at points."""
        parts = self.parts[chosen]
        result = np.ones((len(points), len(parts)))
        for d, functions in enumerate(self.along):
            result *= functions(points[:, d])[:, parts[:, d]]
        return result


def box_functions(similarity: GaussianSimilarity, box: Box, most: int = MOST_FUNCTIONS) -> BoxFunctions | None:
    """The largest ``most`` eigenpairs; None where the length scale is too short for the box.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.continuous.box_functions import box_functions
    >>> from pluri.processes.dpp.continuous.domains import Box
    >>> from pluri.processes.dpp.continuous.features import GaussianSimilarity
    >>> found = box_functions(GaussianSimilarity(np.array([0.5, 0.2])), Box([0, 0], [2, 1]))
    >>> round(float(found.values.sum()), 6)  # the trace is the volume
    2.0
    """
    lower, upper = np.asarray(box.lower), np.asarray(box.upper)
    scales = (upper - lower) / similarity.length_scale
    if NODES_PER_SCALE * scales.max() + MORE_NODES > MOST_NODES:
        return None
    values, parts = np.ones(1), np.empty((1, 0), dtype=np.int64)
    along = []
    for low, high, length in zip(lower, upper, similarity.length_scale):
        own, functions = _along_a_line(float(low), float(high), float(length))
        along.append(functions)
        values = np.outer(values, own).ravel()
        parts = np.column_stack([np.repeat(parts, own.size, axis=0), np.tile(np.arange(own.size), len(parts))])
        # A product that is among the largest has factors that are: the others need not be kept for the next coordinate.
        order = np.argsort(-values, kind="stable")[:most]
        order = order[values[order] > NO_DIRECTION * values[order[0]]]
        values, parts = values[order], parts[order]
    return BoxFunctions(values, along, parts)


def _along_a_line(low: float, high: float, length: float) -> tuple[Array, Callable[[Array], Array]]:
    from scipy.special import roots_legendre

    nodes, weights = roots_legendre(int(np.ceil(NODES_PER_SCALE * (high - low) / length)) + MORE_NODES)
    nodes, root = 0.5 * (low + high) + 0.5 * (high - low) * nodes, np.sqrt(0.5 * (high - low) * weights)
    kernel = np.exp(-0.5 * ((nodes[:, None] - nodes) / length) ** 2)
    values, vectors = np.linalg.eigh(kernel * root * root[:, None])
    keep = np.flatnonzero(values > NO_DIRECTION * values[-1])[::-1]
    values, extend = values[keep], root[:, None] * vectors[:, keep] / values[keep]

    def functions(x: Array) -> Array:
        return np.asarray(np.exp(-0.5 * ((x[:, None] - nodes) / length) ** 2) @ extend)

    return values, functions
