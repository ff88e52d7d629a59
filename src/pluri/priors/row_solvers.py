r"""Three ways to climb the penalised M-step objective of a stochastic matrix, and one exact answer.

All of them maximise

.. math:: F(A) = \sum_{ij} E_{ij} \log A_{ij} + \alpha \log\det \tilde K_A - w \lVert A - A^0 \rVert^2

over rows bounded below by a floor, go uphill only, and stop at a local maximum: the determinant is not concave in
:math:`A` (two permutation matrices both reach the maximum, their midpoint may have determinant 0).

``lbfgs``
    L-BFGS on logits with a diagonal preconditioner, :mod:`pluri.priors.logit_ascent`. The default.
``fixed_point``
    Moves towards :math:`T_{ij} = A_{ij} + (M_{ij} - A_{ij} M_{i\cdot}) / d_i`, whose fixed points are the stationary
    points; without anchor and for :math:`\rho = 1/2` this is :math:`T = (E + \alpha R) / (E_{i\cdot} + \alpha)`.
``projected_gradient``
    Barzilai-Borwein steps projected on the simplex, as published. Stalls near the boundary; kept for comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from pluri.optimize.fixed_point import iterate
from pluri.optimize.simplex import project_to_simplex
from pluri.priors.protocol import BoolArray, FloatArray


@dataclass(frozen=True)
class RowProblem:
    """The objective of a penalised M-step over rows; see the module's formula.

    Attributes
    ----------
    evidence : ndarray, shape (n_rows, n_columns)
        Counts plus pseudo-counts, E; zero outside the support, negative where a sparse prior outweighs the counts.
    strength, rho : float
        Weight and power of the determinant.
    anchor : ndarray, shape (n_rows, n_columns)
        Rows to stay near, of weight ``anchor_weight``.
    floor : float
        Lower bound of the supported entries.
    support : ndarray of bool, shape (n_rows, n_columns)
        Entries that may be positive.
    """

    evidence: FloatArray
    strength: float
    rho: float
    anchor: FloatArray
    anchor_weight: float
    floor: float
    support: BoolArray

    def units(self, rows: FloatArray) -> FloatArray:
        """Rows raised to the power ``rho`` and scaled to unit length."""
        if self.rho == 0.5:
            return np.sqrt(rows)  # rows sum to 1
        powers = rows**self.rho
        return powers / np.sqrt(np.sum(powers * powers, axis=1, keepdims=True))

    def evaluate(self, rows: FloatArray) -> tuple[float, FloatArray]:
        """Return F and ``rows * dF/drows``, which needs no division; minus infinity where rows coincide."""
        from pluri.priors.dual_rows import dual_rows

        away = rows - self.anchor
        logs = np.log(rows, out=np.zeros_like(rows), where=self.support)
        value = float(np.sum(self.evidence * logs) - self.anchor_weight * np.sum(away * away))
        slope = self.evidence - 2.0 * self.anchor_weight * rows * away
        if self.strength > 0:
            units = self.units(rows)
            log_det, dual = dual_rows(units)
            value += self.strength * log_det
            slope += 2.0 * self.strength * self.rho * units * (dual - units)
        return value, slope


Solver = Callable[[RowProblem, FloatArray, int, float], FloatArray]


def solve_lbfgs(problem: RowProblem, start: FloatArray, max_iter: int, tol: float) -> FloatArray:
    """Climb by preconditioned L-BFGS on the logits of ``start``; see :mod:`pluri.priors.logit_ascent`."""
    from pluri.priors.logit_ascent import ascend_logits

    return ascend_logits(problem, start, max_iter, tol)


def solve_fixed_point(problem: RowProblem, start: FloatArray, max_iter: int, tol: float) -> FloatArray:
    """Climb by damped steps towards the target of the stationarity equation.

    The direction ascends for any positive ``d_i``: its slope is the sum of ``(T - A)^2 d_i / A``.
    """
    first = _Place(start, *problem.evaluate(start))
    if first.value == -np.inf:
        return start
    pull = np.abs(problem.evidence).sum(axis=1, keepdims=True) + 2.0 * problem.strength * problem.rho

    def climb(here: _Place) -> tuple[_Place, float]:
        rows, _, slope = here
        scale = pull + 2.0 * problem.anchor_weight * rows.max(axis=1, keepdims=True)
        towards = (slope - rows * slope.sum(axis=1, keepdims=True)) / np.where(scale > 0, scale, 1.0)
        room = np.divide(rows - problem.floor, -towards, out=np.full(rows.shape, np.inf), where=towards < 0)
        step = min(1.0, 0.99 * float(room.min()))
        path = partial(_straight, rows, towards)
        return _first_ascent(problem, path, step, here, _gradient(problem, here), tol)

    return iterate(climb, first, max_iter=max_iter).state.rows


def solve_projected_gradient(problem: RowProblem, start: FloatArray, max_iter: int, tol: float) -> FloatArray:
    """Climb by projected gradient with Barzilai-Borwein steps and Armijo halving."""
    first = _Place(start, *problem.evaluate(start))
    if first.value == -np.inf:
        return start
    gradient = _gradient(problem, first)
    step = 1.0 / max(float(np.abs(gradient).max()), 1e-300)

    def climb(state: tuple[_Place, FloatArray, float]) -> tuple[tuple[_Place, FloatArray, float], float]:
        here, gradient, step = state
        path = partial(_projected, problem, here.rows, gradient)
        there, gained = _first_ascent(problem, path, step, here, gradient, tol)
        if there is here:
            return state, gained
        new_gradient = _gradient(problem, there)
        shift, bend = there.rows - here.rows, gradient - new_gradient
        curvature = float(np.sum(shift * bend))
        step = float(np.sum(shift * shift)) / curvature if curvature > 0 else 10.0 * step
        return (there, new_gradient, min(max(step, 1e-20), 1e6)), gained

    return iterate(climb, (first, gradient, step), max_iter=max_iter).state[0].rows


class _Place(NamedTuple):
    """Rows, F there, and ``rows * dF/drows``."""

    rows: FloatArray
    value: float
    slope: FloatArray


def _gradient(problem: RowProblem, here: _Place) -> FloatArray:
    """``slope / rows`` on the support, without its row means, which are invisible to rows that sum to 1."""
    gradient = np.divide(here.slope, here.rows, out=np.zeros_like(here.rows), where=problem.support)
    mean = gradient.sum(axis=1, keepdims=True) / problem.support.sum(axis=1, keepdims=True)
    return np.where(problem.support, gradient - mean, 0.0)


def _straight(rows: FloatArray, direction: FloatArray, step: float) -> FloatArray:
    return rows + step * direction


def _projected(problem: RowProblem, rows: FloatArray, direction: FloatArray, step: float) -> FloatArray:
    target = rows + step * direction
    if not problem.support.all():
        below = np.where(problem.support, target, -np.inf).max(axis=1, keepdims=True) - 3.0
        target = np.where(problem.support, target, below)  # low enough to be projected to zero
    return project_to_simplex(target, floor=np.where(problem.support, problem.floor, 0.0))


def _first_ascent(
    problem: RowProblem,
    path: Callable[[float], FloatArray],
    step: float,
    here: _Place,
    gradient: FloatArray,
    tol: float,
) -> tuple[_Place, float]:
    """Halve ``step`` until the objective rises enough along ``path`` (Armijo): where to, and the gain beyond ``tol``.

    It is ``here``, with a negative gain, when the objective never does.
    """
    for _ in range(60):
        moved = path(step)
        value, slope = problem.evaluate(moved)
        if value > here.value and value >= here.value + 1e-4 * float(np.sum(gradient * (moved - here.rows))):
            return _Place(moved, value, slope), (value - here.value) - tol * (abs(value) + 1.0)
        step *= 0.5
    return here, -1.0


SOLVERS: dict[str, Solver] = {
    "lbfgs": solve_lbfgs,
    "fixed_point": solve_fixed_point,
    "projected_gradient": solve_projected_gradient,
}


def solve_anchored(evidence: FloatArray, anchor: FloatArray, weight: float, support: BoolArray) -> FloatArray:
    r"""Return the exact maximiser of :math:`\sum E \log A - w \lVert A - A^0 \rVert^2` for non-negative evidence.

    The rows separate and the problem is concave. With the multiplier :math:`\lambda` of a row, :math:`A_{ij}` is the
    positive root of :math:`2 w A^2 + (\lambda - 2 w A^0) A - E = 0`; the row sum is convex and falls with
    :math:`\lambda`, so Newton's method from :math:`\lambda = 0`, where the sum is at least 1, rises to the solution.
    """

    def newton(state: tuple[FloatArray, FloatArray]) -> tuple[tuple[FloatArray, FloatArray], float]:
        multiplier, _ = state
        middle = 2.0 * weight * anchor - multiplier
        root = np.sqrt(middle * middle + 8.0 * weight * evidence)
        with np.errstate(divide="ignore", invalid="ignore"):
            small = np.where(evidence > 0, 2.0 * evidence / (root - middle), 0.0)  # no cancellation when middle < 0
        rows = np.where(support, np.where(middle > 0, (middle + root) / (4.0 * weight), small), 0.0)
        fall = np.divide(rows, root, out=np.zeros_like(rows), where=root > 0).sum(axis=1, keepdims=True)
        step = (rows.sum(axis=1, keepdims=True) - 1.0) / fall
        multiplier = multiplier + np.maximum(step, 0.0)
        return (multiplier, rows), float((step - 1e-15 * np.maximum(multiplier, weight)).max())

    _, rows = iterate(newton, (np.zeros((evidence.shape[0], 1)), anchor), max_iter=500).state
    return rows / rows.sum(axis=1, keepdims=True)
