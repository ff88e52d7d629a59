r"""L-BFGS on the logits of a stochastic matrix: how the penalised M-step climbs by default.

Rows are written as :math:`A_{ij} = \epsilon + r_i \, \mathrm{softmax}(Z_i)_j` with :math:`r_i = 1 - n_i \epsilon` over
the :math:`n_i` supported entries of a row, which turns the maximisation of

.. math:: F(A) = \sum_{ij} E_{ij} \log A_{ij} + \alpha \log\det \tilde K_A - w \lVert A - A^0 \rVert^2

into one without constraints. The recursion of [1]_ starts from the inverse of a diagonal estimate of the curvature
instead of a multiple of the identity, which makes unit steps nearly right for tiny and huge counts alike.

References
----------
.. [1] D. C. Liu and J. Nocedal, "On the limited memory BFGS method for large scale optimization", Mathematical
   Programming 45, 1989.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.blas import idamax

from pluri.optimize.fixed_point import iterate
from pluri.priors._kernels import ascent_direction, logit_gradient
from pluri.priors.dual_rows import dual_rows
from pluri.priors.protocol import FloatArray

if TYPE_CHECKING:
    from pluri.priors.row_solvers import RowProblem

MEMORY = 10
LONGEST = 5.0  # in logits: entries change by at most a factor of 150 in one iteration
RECENTRE = 100  # iterations: the logits then stay below 500, where the exponential function is finite


class LogitObjective:
    """F as a function of the logits, with work space of its own: call `value`, then `gradient` at the same point."""

    def __init__(self, problem: RowProblem) -> None:
        self.problem = problem
        self.evidence = np.ascontiguousarray(problem.evidence)
        self.shape = shape = self.evidence.shape
        self.where = True if problem.support.all() else problem.support
        self.lower = np.where(problem.support, problem.floor, 0.0)
        self.room = 1.0 - self.lower.sum(axis=1)
        self.slope = 2.0 * problem.strength * problem.rho
        # The curvature of E log softmax(Z) is about A_ij E_i. where A is right and |E_ij| where A_ij is far too small.
        self.size = np.abs(self.evidence).sum(axis=1) + self.slope
        share = 1e-4 * self.size / problem.support.sum(axis=1)
        self.base = np.abs(self.evidence) + share[:, None] + 1e-300
        self.ones = np.ones(shape[1])
        self.totals = np.empty(shape[0])
        self.rows, self.soft, self.logs = np.empty(shape), np.empty(shape), np.zeros(shape)
        self.units = self.dual = self.rows

    def value(self, logits: FloatArray) -> float:
        """F at ``logits`` (flat, minus infinity outside the support); `rows` then holds the rows."""
        problem, soft, rows, totals = self.problem, self.soft, self.rows, self.totals
        np.exp(logits.reshape(self.shape), out=soft)
        np.dot(soft, self.ones, out=totals)
        np.divide(self.room, totals, out=totals)
        np.multiply(soft, totals[:, None], out=soft)
        np.add(soft, self.lower, out=rows)
        np.log(rows, out=self.logs, where=self.where)
        value = float(np.vdot(self.evidence, self.logs))
        if problem.anchor_weight > 0:
            value -= problem.anchor_weight * float(np.sum((rows - problem.anchor) ** 2))
        self.units = self.dual = problem.units(rows)
        if problem.strength > 0:
            log_det, self.dual = dual_rows(self.units)
            value += problem.strength * log_det
        return value

    def gradient(self, gradient: FloatArray, curvature: FloatArray) -> None:
        """Write the gradient of F and a positive estimate of its curvature where `value` was last called.

        The estimate includes the anchor, which else slows the ascent when it is stiff.
        """
        problem, rows, evidence, base = self.problem, self.rows, self.evidence, self.base
        if problem.anchor_weight > 0:
            pull = 2.0 * problem.anchor_weight * rows
            evidence, base = evidence - pull * (rows - problem.anchor), base + pull * rows
        logit_gradient(
            rows, self.soft, self.units, self.dual, evidence, base, self.room, self.size, self.slope,
            gradient.reshape(self.shape), curvature.reshape(self.shape),
        )  # fmt: skip


class CurvaturePairs:
    """The last steps and the falls of the gradient along them: what L-BFGS knows of the Hessian."""

    def __init__(self, size: int) -> None:
        self.steps, self.changes = np.zeros((MEMORY, size)), np.zeros((MEMORY, size))
        self.inverse, self.factor = np.zeros(MEMORY), np.zeros(MEMORY)
        self.newest = self.count = 0

    def direction(self, gradient: FloatArray, curvature: FloatArray) -> FloatArray:
        """Estimate of the inverse Hessian times the gradient."""
        direction = np.empty_like(gradient)
        ascent_direction(
            self.steps, self.changes, self.inverse, self.factor, self.newest, self.count, gradient, curvature, direction
        )
        return direction

    def add(self, step: FloatArray, change: FloatArray) -> None:
        """Keep a pair, unless F was not concave along the step."""
        along = float(step.dot(change))
        if along > 1e-10 * math.sqrt(float(step.dot(step)) * float(change.dot(change))):
            self.newest = (self.newest + 1) % MEMORY
            self.count = min(self.count + 1, MEMORY)
            self.steps[self.newest], self.changes[self.newest] = step, change
            self.inverse[self.newest] = 1.0 / along


def ascend_logits(problem: RowProblem, start: FloatArray, max_iter: int, tol: float) -> FloatArray:
    """Maximise F from the rows ``start``, whose supported entries lie above the floor."""
    ascent = LogitAscent(problem, start, tol)
    if ascent.value == -math.inf:
        return start
    iterate(LogitAscent.climb, ascent, max_iter=max_iter)
    ascent.objective.value(ascent.logits)
    return ascent.objective.rows


class LogitAscent:
    """Where an ascent is, with work space of its own.

    The line search brackets a weak Wolfe point by halving and doubling; a step that leads to minus infinity is simply
    too long. The ascent ends after three iterations in a row that gain less than ``tol``, relatively.
    """

    def __init__(self, problem: RowProblem, start: FloatArray, tol: float) -> None:
        self.objective = LogitObjective(problem)
        self.shape, self.tol = start.shape, tol
        table = np.full(start.shape, -np.inf)
        np.log(start - problem.floor, out=table, where=problem.support)
        self.logits = table.ravel()
        self.step, self.trial, self.gradient, self.new_gradient, self.curvature = np.empty((5, self.logits.size))
        self.pairs = CurvaturePairs(self.logits.size)
        self.flat = self.n_iter = 0
        self.value = self.objective.value(self.logits)
        if self.value > -math.inf:
            self.objective.gradient(self.gradient, self.curvature)

    def climb(self) -> tuple[LogitAscent, float]:
        """One iteration, in place; with it how many idle ones are left, none or fewer at the top."""
        direction, rise = self._uphill()
        if direction is None:
            return self, -1.0
        new_value = self._search(direction, rise)
        self.n_iter += 1
        if not new_value > self.value:
            if self.pairs.count == 0:
                return self, -1.0
            self.pairs.count = 0  # the curvature pairs mislead: begin again from the diagonal
            self.objective.value(self.logits)
            self.objective.gradient(self.gradient, self.curvature)
            return self, 3.0 - self.flat
        self.pairs.add(self.step, self.gradient - self.new_gradient)
        self.logits, self.trial = self.trial, self.logits
        self.gradient, self.new_gradient = self.new_gradient, self.gradient
        self.flat = self.flat + 1 if new_value - self.value <= self.tol * (abs(self.value) + 1.0) else 0
        self.value = new_value
        if self.n_iter % RECENTRE == 0:
            table = self.logits.reshape(self.shape)
            table -= table.max(axis=1, keepdims=True)
        return self, 3.0 - self.flat

    def _uphill(self) -> tuple[FloatArray | None, float]:
        """A direction of ascent and the slope along it; None at the top, as far as F can resolve."""
        while True:
            direction = self.pairs.direction(self.gradient, self.curvature)
            rise = float(self.gradient.dot(direction))
            if rise > 1e-15 * (abs(self.value) + 1.0):
                return direction, rise
            if self.pairs.count == 0 or rise >= 0.0:
                return None, rise
            self.pairs.count = 0

    def _search(self, direction: FloatArray, rise: float) -> float:
        """Value at `trial`, which is `step` away; minus infinity if no step will do."""
        reach = abs(float(direction[idamax(direction)]))
        t, low, high = min(1.0, LONGEST / reach), 0.0, math.inf
        for _ in range(40):
            np.multiply(direction, t, out=self.step)
            np.add(self.logits, self.step, out=self.trial)
            new_value = self.objective.value(self.trial)
            if not new_value >= self.value + 1e-4 * t * rise:
                high = t
            else:
                self.objective.gradient(self.new_gradient, self.curvature)
                if float(self.new_gradient.dot(direction)) <= 0.9 * rise or 2.0 * t * reach > LONGEST:
                    return new_value
                low = t
            t = 0.5 * (low + high) if high < math.inf else 2.0 * t
        return -math.inf
