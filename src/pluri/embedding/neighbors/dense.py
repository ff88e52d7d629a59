"""The cost of a map and its gradient, by all pairs of points.

With points y_i and ``q_ij = exp(-|y_i - y_j|^2) / sum_k exp(-|y_i - y_k|^2)``, sums over k other than i,

    C = sum_i KL(P_i || Q_i) = sum_i [sum_j p_ij |y_i - y_j|^2 + log Z_i - H(P_i)],
    dC/dy_i = 2 sum_j (y_i - y_j) (p_ij - q_ij + p_ji - q_ji).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pluri.embedding.neighbors.distributions import Neighbors
from pluri.embedding.neighbors.threads import Threads, total

Array = NDArray[np.float64]


class MapCost(NamedTuple):
    """Cost of a map.

    Attributes
    ----------
    value : float: sum of the divergences of all rows, in nats
    gradient : (n, L)
    per_row : (n,): divergence of each row
    """

    value: float
    gradient: Array
    per_row: Array


class CostFunction(Protocol):
    """What optimisers need of a way to compute the cost."""

    neighbors: Neighbors

    def __call__(self, points: Array) -> MapCost:
        """Cost of points (n, L)."""
        ...


class DenseCost:
    """The cost by all pairs; P is a dense array.

    Parameters
    ----------
    neighbors : Neighbors
    threads : Threads
    """

    def __init__(self, neighbors: Neighbors, threads: Threads) -> None:
        self.neighbors, self.threads = neighbors, threads

    def __call__(self, points: Array) -> MapCost:
        """Cost of points (n, L)."""
        from pluri.embedding.neighbors._kernels import dense_rows

        P, entropy = self.neighbors.P, self.neighbors.entropy
        columns = np.ascontiguousarray(points.T, dtype=np.float64)
        n = len(points)
        log_norms, stretch = np.empty(n), np.empty(n)

        def piece(begin: int, end: int) -> Array:
            forces = np.zeros_like(columns)
            dense_rows(columns, P, begin, end, np.empty(n), forces, log_norms, stretch)
            return forces

        forces = total(self.threads.over(n, n * n, piece))
        per_row = stretch + log_norms - entropy
        return MapCost(float(per_row.sum()), 2.0 * forces.T, per_row)
