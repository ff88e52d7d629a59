r"""The augmented Gaussian mixture as an objective for descent along geodesics.

Minimises :math:`f = -\frac1n \sum_i \log \sum_j \pi_j q(y_i; S_j)` over the augmented matrices and the logits
:math:`\omega_j = \log(\pi_j / \pi_K)`. In the whitened frame of :math:`S_j = L_j L_j^\top` the gradient is

.. math:: \tfrac12 (N_j I - M_j), \qquad \partial f / \partial \omega_k = \pi_k - N_k,

(shares and moments of :mod:`pluri.mixtures.riemannian.data_pass`). If the assignments were known, the Hessian would be
:math:`N_j / 2` on matrices and :math:`\operatorname{diag}\pi - \pi\pi^\top` on logits. Its inverse serves as
preconditioner: the first direction is then EM's, and quasi-Newton pairs correct it for what EM does not see, the
information lost by not knowing the assignments. That is what makes EM slow where components overlap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.mixtures.riemannian.coordinates import COLLAPSED, LOG_2PI, Penalty, read_off
from pluri.mixtures.riemannian.data_pass import DataPass, Moments
from pluri.optimize.manifolds.positive_definite import LARGEST_EXPONENT

Array = NDArray[np.float64]

#: No eigenvalue of a covariance changes by a larger factor than e to this in a step: longer steps leave the
#: neighbourhood in which the direction means something, and are what sends a run to a poor optimum.
LONGEST_STEP = 0.3
#: Largest number of numbers kept as projections for a line search (1 GB).
PROJECTION_ENTRIES = 1 << 27
#: A component with a smaller share keeps its matrix in an EM step.
NEGLIGIBLE = 1e-12


class CollapseError(FloatingPointError):
    """A component has shrunk onto too few points."""

    def __init__(self, component: int) -> None:
        super().__init__(component)
        self.component = component


@dataclass
class MixturePoint:
    """Where the fit is, with what the last pass over the data found there."""

    frames: Array  # L: (K, m, m)
    inverse: Array  # L^-1
    log_determinants: Array  # log|S|: (K,)
    logits: Array  # (K,), the last one zero
    value: float = math.nan
    moments: Moments | None = None

    @property
    def log_weights(self) -> Array:
        """Log mixture weights."""
        largest = self.logits.max()
        return np.asarray(self.logits - (largest + math.log(float(np.exp(self.logits - largest).sum()))))

    def read_off(self) -> tuple[Array, Array, Array, Array]:
        """Weights, means, covariances and the scales ``s`` that are dropped."""
        matrices = self.frames @ np.swapaxes(self.frames, 1, 2)
        return np.exp(self.log_weights), *read_off(matrices)


class AugmentedMixture:
    """Objective, gradient and EM step of the augmented mixture at a current point.

    Parameters
    ----------
    data : DataPass
    penalty : Penalty
    matrices : (K, m, m)
        Augmented matrices to start from.
    log_weights : (K,)
    preconditioned : bool
        Whether directions are scaled by the complete-data Hessian.
    cheap_trials : bool
        Whether a line search projects the data on the direction once and then tries steps in O(n K m), which pays
        when it needs several; otherwise each trial is a full pass that finds the gradient as well.
    """

    def __init__(
        self,
        data: DataPass,
        penalty: Penalty,
        matrices: Array,
        log_weights: Array,
        *,
        preconditioned: bool = True,
        cheap_trials: bool = False,
    ) -> None:
        self.data = data
        self.penalty = penalty
        n_components, size = matrices.shape[:2]
        self.shape = (n_components, size, size)
        fits = n_components * size * len(data.rows) <= PROJECTION_ENTRIES
        self.cheap_trials = cheap_trials and fits
        self.precondition: Callable[[Array], Array] | None = self._precondition if preconditioned else None
        self.n_evaluations = 0
        self.n_trials = 0
        self.point = located(matrices, log_weights)
        self._direction: Array | None = None
        self._values: Array = np.empty(0)
        self._vectors: Array = np.empty(0)
        self._projections: list[Array] = []
        self._trials: dict[float, MixturePoint] = {}

    # The objective at a point.

    def _offsets(self, point: MixturePoint) -> Array:
        constant = 0.5 + 0.5 * LOG_2PI * (1 - self.shape[1])
        return np.asarray(constant + point.log_weights - 0.5 * point.log_determinants)

    def _finish(self, point: MixturePoint, moments: Moments) -> MixturePoint:
        self.n_evaluations += 1
        point.moments = moments
        penalty = self.penalty.value(point.inverse, point.log_determinants, point.log_weights)
        point.value = penalty - moments.value
        return point

    def visit(self, point: MixturePoint) -> MixturePoint:
        """Pass over the data at a point."""
        return self._finish(point, self.data.moments(point.inverse, self._offsets(point)))

    def slopes(self, point: MixturePoint) -> Array:
        """Coordinates of the gradient: the blocks of the matrices, then the logits but the last."""
        assert point.moments is not None
        penalty = self.penalty
        shares, second = point.moments.shares, point.moments.second
        diagonal = (shares + penalty.weight)[:, None, None] * np.eye(self.shape[1])
        pulled = second + penalty.whitened(point.inverse) if penalty.weight else second
        weights = np.exp(point.log_weights)
        logits = weights - shares - penalty.concentration * (1.0 - len(weights) * weights)
        return np.concatenate([0.5 * (diagonal - pulled).reshape(-1), logits[:-1]])

    def _precondition(self, slopes: Array) -> Array:
        assert self.point.moments is not None
        shares = np.maximum(self.point.moments.shares, NEGLIGIBLE)
        n_components = len(shares)
        blocks = slopes[: -(n_components - 1) or None].reshape(n_components, -1)
        scaled = blocks * (2.0 / (shares + self.penalty.weight))[:, None]
        raised = shares + self.penalty.concentration
        logits = slopes[blocks.size :]
        return np.concatenate([scaled.reshape(-1), logits / raised[:-1] + logits.sum() / raised[-1]])

    # Descent along a direction.

    def evaluate(self) -> tuple[float, Array]:
        """Objective and gradient where the fit is; a pass unless it is known."""
        if self.point.moments is None:
            self.point = self.visit(self.point)
        return self.point.value, self.slopes(self.point)

    def _decompose(self, direction: Array) -> None:
        if self._direction is direction:
            return
        blocks = direction[: math.prod(self.shape)].reshape(self.shape)
        self._values, self._vectors = np.linalg.eigh(0.5 * (blocks + np.swapaxes(blocks, 1, 2)))
        self._direction = direction

    def _logit_rates(self) -> Array:
        assert self._direction is not None
        return np.append(self._direction[math.prod(self.shape) :], 0.0)

    def longest(self, direction: Array) -> float:
        """Step at which an eigenvalue of a matrix, or half a logit, has changed by the largest amount allowed."""
        self._decompose(direction)
        largest = max(float(np.abs(self._values).max()), 0.5 * float(np.abs(self._logit_rates()).max()))
        return LONGEST_STEP / largest if largest > 0 else math.inf

    def _moved(self, step: float) -> MixturePoint:
        exponents = np.clip(step * self._values, -LARGEST_EXPONENT, LARGEST_EXPONENT)
        turned = np.swapaxes(self._vectors, 1, 2)
        growth = (self._vectors * np.exp(0.5 * exponents)[:, None, :]) @ turned
        shrinkage = (self._vectors * np.exp(-0.5 * exponents)[:, None, :]) @ turned
        point = self.point
        return MixturePoint(
            frames=point.frames @ growth,
            inverse=shrinkage @ point.inverse,
            log_determinants=point.log_determinants + exponents.sum(axis=1),
            logits=point.logits + step * self._logit_rates(),
        )

    def along(self, direction: Array) -> Callable[[float], tuple[float, float]]:
        """Objective and its derivative as functions of the step."""
        self._decompose(direction)
        self._trials = {}
        if self.cheap_trials:
            self._projections = self.data.project(self.point.inverse, self._vectors)
            return self._cheap_trial
        return self._full_trial

    def _full_trial(self, step: float) -> tuple[float, float]:
        assert self._direction is not None
        self.n_trials += 1
        point = self.visit(self._moved(step))
        self._trials[step] = point
        return point.value, float(self.slopes(point) @ self._direction)

    def _cheap_trial(self, step: float) -> tuple[float, float]:
        self.n_trials += 1
        point = self._moved(step)
        exponents = np.clip(step * self._values, -LARGEST_EXPONENT, LARGEST_EXPONENT)
        squares = np.exp(-exponents)
        weights = np.exp(point.log_weights)
        logit_rates = self._logit_rates()
        logit_rates = logit_rates - float(weights @ logit_rates)
        value, slope = self.data.along(
            self._projections,
            squares,
            -self._values * squares,
            self._offsets(point),
            logit_rates - 0.5 * self._values.sum(axis=1),
        )
        penalty = self.penalty
        value -= penalty.value(point.inverse, point.log_determinants, point.log_weights)
        slope += penalty.concentration * float(logit_rates.sum())
        if penalty.weight:
            turned = np.swapaxes(self._vectors, 1, 2) @ penalty.whitened(point.inverse) @ self._vectors
            diagonal = np.diagonal(turned, axis1=1, axis2=2)
            slope -= 0.5 * float((self._values * (penalty.weight - diagonal)).sum())
        return -value, -slope

    def advance(self, step: float) -> tuple[float, Array]:
        """Take a step along the last direction."""
        if step in self._trials:
            point = self._trials[step]
        elif self.cheap_trials:
            point = self._moved(step)
            exponents = np.clip(step * self._values, -LARGEST_EXPONENT, LARGEST_EXPONENT)
            found = self.data.scaled_moments(self._projections, np.exp(-0.5 * exponents), self._offsets(point))
            second = self._vectors @ found.second @ np.swapaxes(self._vectors, 1, 2)
            point = self._finish(point, found._replace(second=second))
        else:
            point = self.visit(self._moved(step))
        self.point, self._trials, self._projections, self._direction = point, {}, [], None
        return point.value, self.slopes(point)

    # EM, from the same pass.

    def em_step(self) -> tuple[MixturePoint, Array]:
        """Return the point after an M-step, not yet visited, and the coordinates of the geodesic that leads there.

        The M-step's matrix is ``L (M / N) L^T``, which the geodesic along ``log(M / N)`` reaches at time one: EM
        steps and quasi-Newton steps share their frames, and EM's teach the quasi-Newton method what it can know of
        the curvature. There ``s = 1``.
        """
        point = self.point
        assert point.moments is not None
        shares, second = point.moments.shares, point.moments.second
        if self.penalty.weight:
            second = second + self.penalty.whitened(point.inverse)
        totals = shares + self.penalty.weight
        values, vectors = np.linalg.eigh(second / np.maximum(totals, NEGLIGIBLE)[:, None, None])
        values[totals <= NEGLIGIBLE] = 1.0
        if not (values > 0).all():
            raise CollapseError(int(np.argmin(values.min(axis=1))))
        log_weights = np.log(np.maximum(self.penalty.weights(shares), 1e-300))
        self._values, self._vectors = np.log(values), vectors
        blocks = (vectors * self._values[:, None, :]) @ np.swapaxes(vectors, 1, 2)
        rates = log_weights - log_weights[-1] - point.logits
        self._direction = np.concatenate([blocks.reshape(-1), rates[:-1]])
        return self._moved(1.0), self._direction

    def check_collapse(self, point: MixturePoint) -> None:
        """Raise if a component is flat next to the whole of the data, which has unit covariance here."""
        _, _, covariances, _ = point.read_off()
        smallest = np.linalg.eigvalsh(covariances)[:, 0]
        if not (smallest > COLLAPSED).all():
            raise CollapseError(int(np.argmin(smallest)))


def located(matrices: Array, log_weights: Array) -> MixturePoint:
    """Point with these augmented matrices and weights, in the frames of their Cholesky factors."""
    frames: Array = np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)
    return MixturePoint(
        frames,
        np.asarray(np.linalg.inv(frames), dtype=np.float64),
        2.0 * np.log(np.diagonal(frames, axis1=1, axis2=2)).sum(axis=1),
        log_weights - log_weights[-1],
    )
