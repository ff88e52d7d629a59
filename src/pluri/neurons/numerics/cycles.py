"""Couplings that close cycles, such as gap junctions: the implicit step is then solved by SciPy's sparse LU."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from pluri.neurons.tree.errors import SimulationError, SimulationWarning

if TYPE_CHECKING:
    from pluri.neurons.numerics.network import Network


class CyclicSolver:
    """The matrix of a network with cycles, of which only the diagonal changes from step to step."""

    def __init__(self, network: Network) -> None:
        from scipy import sparse

        self.network = network
        cells = network.arrays.cells
        child = np.flatnonzero(cells.parent >= 0)
        row = np.concatenate([child, cells.parent[child], cells.loop_from, cells.loop_to])
        column = np.concatenate([cells.parent[child], child, cells.loop_to, cells.loop_from])
        value = -np.concatenate([cells.axial[child], cells.axial[child], cells.loop_axial, cells.loop_axial])
        n = len(cells.voltage)
        if cells.period is not None:
            raise SimulationError(
                "couplings that form a cycle need all compartments on clock 0, or the method exp_euler"
            )
        self.couplings = sparse.csc_array((value, (row, column)), shape=(n, n))
        first = network.assembly.forest.members[int(cells.loop_from[0])].path
        warnings.warn(
            f"couplings of compartments form a cycle (at {first}), so that each step is solved by a sparse LU "
            "factorisation, which is slow: the method exp_euler does without",
            SimulationWarning,
            stacklevel=2,
        )

    def solve(self, h: float) -> None:
        """Change `push` to the voltages of an implicit step of h."""
        from scipy import sparse
        from scipy.sparse.linalg import splu

        cells = self.network.arrays.cells
        diagonal = cells.total + cells.capacitance / h
        matrix = (self.couplings + sparse.diags_array(diagonal)).tocsc()
        cells.push[:] = splu(matrix).solve(cells.push + cells.capacitance / h * cells.voltage)
