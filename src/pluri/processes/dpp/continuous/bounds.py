r"""A bound of a sum of squared eigenfunctions over a box, from their values on a grid.

For orthonormal functions :math:`f_n = c_n^\top \phi / \sqrt{\lambda_n}` the bound
:math:`|f_J(x)|^2 \le |\phi(x)|^2 / \min_J \lambda_n` is safe, and far too large where an eigenvalue is small. On a grid
that is fine for the kernel, :math:`|f_J|` is hardly more than at its nodes: at most the largest change from a node to
its neighbours, taken with a margin. Sampling notices a point above the bound, and then takes the safe one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pluri.processes.dpp.continuous.domains import Box
from pluri.processes.dpp.kernel_forms import Array, IntArray

#: Nodes along each coordinate, by the number of coordinates.
NODES = {1: 2049, 2: 97, 3: 21, 4: 10}
#: Share of the change between neighbouring nodes that is added to the largest value; the middle is half way.
MARGIN = 0.75


@dataclass(frozen=True, eq=False)
class GridBound:
    """Projections of the features on all directions at the nodes of a grid, (n, ..., n, n_directions)."""

    projections: Array

    @classmethod
    def of_box(cls, box: Box, features: Callable[[Array], Array], directions: Array) -> GridBound | None:
        """The grid of a box; None where there are too many dimensions."""
        dim = box.n_dimensions
        if dim not in NODES:
            return None
        line = np.linspace(0.0, 1.0, NODES[dim])
        nodes = np.stack(np.meshgrid(*[line] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
        parts = [
            features(box.from_uniforms(part)) @ directions for part in np.array_split(nodes, 1 + len(nodes) // 4096)
        ]
        return cls(np.concatenate(parts).reshape(*[NODES[dim]] * dim, -1))

    def largest(self, chosen: IntArray, values: Array) -> float:
        """A bound of ``sum_n f_n(x)^2`` over the directions ``chosen`` with their eigenvalues."""
        functions = self.projections[..., chosen] / np.sqrt(values)
        highest = np.sqrt((functions**2).sum(axis=-1).max())
        for axis in range(functions.ndim - 1):
            highest += MARGIN * np.sqrt((np.diff(functions, axis=axis) ** 2).sum(axis=-1).max())
        return float(highest**2)
