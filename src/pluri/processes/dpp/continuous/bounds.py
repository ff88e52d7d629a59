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
    """Orthonormal functions at the nodes of a grid: ``at_nodes(chosen)`` has the shape (n, ..., n, n_chosen)."""

    at_nodes: Callable[[IntArray], Array]

    @classmethod
    def of_box(
        cls, box: Box, functions: Callable[[Array, IntArray | slice], Array], *, keep: bool = True
    ) -> GridBound | None:
        """The grid of a box; None where there are too many dimensions.

        All functions are kept at the nodes if some are as expensive as all of them; otherwise those chosen are
        computed.
        """
        dim = box.n_dimensions
        if dim not in NODES:
            return None
        line = np.linspace(0.0, 1.0, NODES[dim])
        nodes = box.from_uniforms(np.stack(np.meshgrid(*[line] * dim, indexing="ij"), axis=-1).reshape(-1, dim))
        shape = [NODES[dim]] * dim
        if not keep:
            return cls(lambda chosen: functions(nodes, chosen).reshape(*shape, -1))
        parts = [functions(part, slice(None)) for part in np.array_split(nodes, 1 + len(nodes) // 4096)]
        kept = np.concatenate(parts).reshape(*shape, -1)
        return cls(lambda chosen: kept[..., chosen])

    def largest(self, chosen: IntArray) -> float:
        """A bound of ``sum_n f_n(x)^2`` over the functions ``chosen``."""
        functions = self.at_nodes(chosen)
        highest = np.sqrt((functions**2).sum(axis=-1).max())
        for axis in range(functions.ndim - 1):
            highest += MARGIN * np.sqrt((np.diff(functions, axis=axis) ** 2).sum(axis=-1).max())
        return float(highest**2)
