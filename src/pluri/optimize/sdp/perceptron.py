r"""The perceptron on a cone with infinitely many constraints.

Unknown is x with ``G(x) = sum_i x_i F_i`` positive definite, which is one linear constraint ``a_u'x > 0`` for each u,
with ``a_u = (u'F_0 u, ..., u'F_n u)``. The perceptron adds the unit vector along the normal of a violated constraint to
x, until an oracle finds none: at most :math:`1/\rho^2` times if the cone holds a ball of radius :math:`\rho` around a
unit vector. Two constraints are linear: ``x_0 > 0`` and the row of the objective, ``c_0 x_0 - c'x > threshold``.

Constraints are remembered: those that are still violated need no oracle, and their products with each other are all
that further updates need. With u_s the vectors of the updates and w_s one over the lengths of their normals,

.. math:: Z = \sum_s w_s u_s u_s', \qquad \langle F_i, Z\rangle - z_c c_i = x_i ,

so that Z, divided by the weight of the objective's row, is nearly a point of the dual problem.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.sdp._kernels import learn
from pluri.optimize.sdp.matrices import MatrixFamily
from pluri.optimize.sdp.oracles import Oracle

Array = NDArray[np.float64]
Found = Literal["feasible", "updated", "degenerate"]

#: Updates by remembered constraints before the oracle is asked again.
BATCH = 100
#: Length of a normal, relative to the matrices, below which there is none.
TINY = 1e-14


class Perceptron:
    """A point that learns, the constraints that it remembers, and the dual matrix that its updates add up to.

    Parameters
    ----------
    family : MatrixFamily
    objective : ndarray of shape (n,), optional
        ``(0, -c)``: the row of the objective without its trial value c_0. None if there is none.
    memory : int, default=100
        Number of constraints remembered; with 0 each update asks the oracle.
    affine : bool, default=True
        Whether x_0 must be positive.
    stretch : ndarray of shape (n, n), optional
        B of a rescaled cone: its constraints are ``B'a_u``, and ``Bx`` solves the original one.
    """

    def __init__(
        self,
        family: MatrixFamily,
        objective: Array | None = None,
        *,
        memory: int = 100,
        affine: bool = True,
        stretch: Array | None = None,
    ) -> None:
        n, m, capacity = family.n, family.m, 2 + max(memory, 1)
        self.family, self.memory, self.affine, self.stretch = family, memory, affine, stretch
        self.objective = objective
        self.smallest = TINY * float(family.norms.max(initial=0.0))
        self.normals, self.vectors = np.zeros((capacity, n)), np.zeros((capacity, m))
        self.weight, self.pending = np.zeros(capacity), np.zeros(capacity)
        self.products = np.zeros((capacity, capacity))
        self.thresholds = np.zeros(capacity)
        self.used = self.slot = 2
        self.thresholds[:2] = -np.inf
        self.n_updates = self.n_oracle = 0
        if affine:
            self.thresholds[0] = 0.0
            self._put(0, np.eye(n)[0])
        self.restart()

    def restart(self) -> None:
        """Begin at zero, with the constraints that are remembered."""
        self.x = np.zeros(self.family.n)
        self.begin_phase()

    def begin_phase(self) -> None:
        """From here on the constraints stay the same: what is said of the margin counts from here."""
        self.began_at, self.began = self.x.copy(), self.n_updates
        self.begin_dual()

    def begin_dual(self) -> None:
        """Begin the dual matrix anew."""
        self.Z, self.z_objective = np.zeros((self.family.m, self.family.m)), 0.0
        self.pending[:] = 0.0

    def set_objective(self, value: float, threshold: float) -> None:
        """The row ``value * x_0 - c'x > threshold``."""
        assert self.objective is not None
        row = self.objective.copy()
        row[0] = value
        self._put(1, row)
        self.thresholds[1] = threshold * self.weight[1]

    def _put(self, slot: int, normal: Array, u: Array | None = None) -> bool:
        """Remember a constraint in a place; False if its normal has no length."""
        normal = normal if self.stretch is None else normal @ self.stretch
        length = float(np.linalg.norm(normal))
        if length <= self.smallest:
            return False
        if self.pending[slot]:
            self._add_to_dual(slot)
        self.normals[slot], self.weight[slot] = normal / length, 1.0 / length
        if u is not None:
            self.vectors[slot] = u
        along = self.normals @ self.normals[slot]
        self.products[slot] = self.products[:, slot] = along
        return True

    def _add_to_dual(self, slot: int) -> None:
        times = self.pending[slot] * self.weight[slot]
        self.pending[slot] = 0.0
        if slot == 1:
            self.z_objective += times
        elif slot > 1:
            self.Z += times * np.outer(self.vectors[slot], self.vectors[slot])

    def learn(self, budget: int) -> int:
        """Update by the linear rows and by remembered constraints; the number of updates."""
        used = self.used if self.memory else 2
        scores, counts = self.normals[:used] @ self.x, np.zeros(used)
        products = np.ascontiguousarray(self.products[:used, :used])
        made = int(learn(scores, products, counts, self.thresholds[:used].copy(), budget))
        self.x += counts @ self.normals[:used]
        self.pending[:used] += counts
        self.n_updates += made
        return made

    @property
    def rows_hold(self) -> bool:
        """Whether both linear rows are satisfied."""
        return bool((self.normals[:2] @ self.x > self.thresholds[:2]).all())

    def search(self, oracle: Oracle, budget: int) -> Found:
        """One round: at most `budget` updates by what is known, then one question to the oracle."""
        made = self.learn(min(budget, BATCH if self.memory else budget))
        if not self.rows_hold or made >= budget:
            return "updated"
        self.n_oracle += 1
        u = oracle(self.matrix())
        if u is None:
            return "feasible"
        slot = self.slot
        if not self._put(slot, self.family.forms(u), u):
            self.vectors[slot] = u
            return "degenerate"
        if self.memory:
            self.slot = 2 + (slot - 1) % self.memory
            self.used = max(self.used, slot + 1)
        else:
            self.x += self.normals[slot]
            self.pending[slot] += 1.0
            self.n_updates += 1
        return "updated"

    @property
    def point(self) -> Array:
        """The solution in the original coordinates, scaled to x_0 = 1 (to length one without x_0)."""
        x = self.x if self.stretch is None else self.stretch @ self.x
        scale = x[0] if self.affine else float(np.linalg.norm(x))
        return x / scale if scale > 0 else x

    def matrix(self) -> Array:
        """``G`` at the point."""
        return self.family.combine(self.point)

    def dual(self) -> tuple[Array, float]:
        """Z and the weight of the objective's row, of all updates since `begin_dual`."""
        for slot in np.flatnonzero(self.pending):
            self._add_to_dual(int(slot))
        return self.Z, self.z_objective

    @property
    def margin_bound(self) -> float:
        r"""No ball around a unit vector in the cone has a larger radius: ``||x - x_began|| / updates``.

        For every unit z, the smallest ``a'z`` is at most the mean over the updates, ``(x - x_began)'z / updates``.
        """
        made = self.n_updates - self.began
        return float(np.linalg.norm(self.x - self.began_at)) / made if made else 1.0
