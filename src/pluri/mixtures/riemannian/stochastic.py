r"""Stochastic descent on the manifold: a Gaussian mixture that learns from one batch after the other.

A batch gives the gradient of :mod:`pluri.mixtures.riemannian.augmented`; scaled by the complete-data Hessian the step
in the whitened frame of component :math:`j` is

.. math:: z_j = a_t (M_j - N_j I) / \pi_j, \qquad a_t = a_0 (1 + t / t_0)^{-3/4},

a geodesic towards the batch's EM step. Steps are cut where they would change an eigenvalue by too much, matrices stay
positive definite by construction, and the augmented scale is set to one when parameters are read.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.mixtures.riemannian.augmented import AugmentedMixture, CollapseError, MixturePoint, located
from pluri.mixtures.riemannian.coordinates import Penalty, augment
from pluri.mixtures.riemannian.data_pass import DataPass
from pluri.mixtures.riemannian.inputs import checked_data
from pluri.mixtures.riemannian.record import INTERRUPTED, Watch
from pluri.validation import as_generator, check_count
from pluri.validation.interruption import holding

Array = NDArray[np.float64]


class RiemannianSGD:
    """A Gaussian mixture updated by stochastic steps on the manifold.

    Parameters
    ----------
    weights, means, covariances : array-like of shape (K,), (K, d), (K, d, d)
        Where to start.
    step_size : float, default=0.5
        Length of the first step; 1.0 goes all the way to the batch's EM step, to first order.
    decay : float, default=20.0
        Number of steps after which they have become shorter by a factor of 0.6.
    n_updates : int, default=0
        Steps taken before: to go on from parameters that were stored.

    Attributes
    ----------
    n_updates : int
        Steps taken so far.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures.riemannian.stochastic import RiemannianSGD
    >>> rng = np.random.default_rng(0)
    >>> learner = RiemannianSGD([0.5, 0.5], [[-1.0], [1.0]], [[[1.0]], [[1.0]]])
    >>> for _ in range(100):
    ...     before = learner.update(rng.normal(rng.choice([-3.0, 3.0], size=(50, 1)), 1.0))
    >>> bool(np.abs(learner.means.ravel() - [-3.0, 3.0]).max() < 0.3)
    True
    """

    def __init__(
        self,
        weights: ArrayLike,
        means: ArrayLike,
        covariances: ArrayLike,
        *,
        step_size: float = 0.5,
        decay: float = 20.0,
        n_updates: int = 0,
    ) -> None:
        for name, value in {"step_size": step_size, "decay": decay}.items():
            if not isinstance(value, Real) or not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name} must be a positive number, got {value!r}")
        w, m, c = (np.asarray(values, dtype=np.float64) for values in (weights, means, covariances))
        if w.ndim != 1 or m.ndim != 2 or m.shape[0] != len(w) or c.shape != (*m.shape, m.shape[1]):
            raise ValueError(
                f"weights, means and covariances must have shapes (K,), (K, d) and (K, d, d), got {w.shape}, {m.shape} "
                f"and {c.shape}"
            )
        if not ((w >= 0).all() and w.sum() > 0 and all(np.isfinite(values).all() for values in (w, m, c))):
            raise ValueError("weights must be non-negative and, like means and covariances, finite")
        try:
            matrices = augment(m, c)
            self._point = located(matrices, np.log(np.maximum(w / w.sum(), 1e-12)))
        except np.linalg.LinAlgError:
            raise ValueError("covariances must be symmetric and positive definite") from None
        self.step_size = float(step_size)
        self.decay = float(decay)
        if not isinstance(n_updates, Integral) or isinstance(n_updates, bool) or n_updates < 0:
            raise ValueError(f"n_updates must be a non-negative integer, got {n_updates!r}")
        self.n_updates: int = int(n_updates)

    def update(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Take a step towards a batch; return the batch's average log-likelihood before it."""
        rows, weight = checked_data(X, sample_weight)
        if rows.shape[1] != self._point.frames.shape[1] - 1:
            raise ValueError(f"X must have {self._point.frames.shape[1] - 1} features, got {rows.shape[1]}")
        shares = None if weight is None else weight / weight.sum()
        augmented = np.column_stack([rows, np.ones(len(rows))])
        data = DataPass(augmented, shares, len(self._point.logits))
        empty = np.zeros((augmented.shape[1],) * 2)
        value, self._point = _stochastic_step(data, Penalty(empty, 0.0, 0.0), self._point, self._rate())
        self.n_updates += 1
        return -value

    def _rate(self) -> float:
        return self.step_size * (1.0 + self.n_updates / self.decay) ** -0.75

    @property
    def weights(self) -> Array:
        """Mixture weights (K,)."""
        weights = np.exp(self._point.log_weights)
        return np.asarray(weights / weights.sum())

    @property
    def means(self) -> Array:
        """Means (K, d)."""
        return self._point.read_off()[1]

    @property
    def covariances(self) -> Array:
        """Covariances (K, d, d)."""
        return self._point.read_off()[2]


def _stochastic_step(data: DataPass, penalty: Penalty, point: MixturePoint, rate: float) -> tuple[float, MixturePoint]:
    """Objective on a batch, and the point a step further."""
    matrices = np.broadcast_to(np.eye(data.rows.shape[1]), point.frames.shape)
    mixture = AugmentedMixture(data, penalty, matrices, point.log_weights)
    mixture.point = MixturePoint(point.frames, point.inverse, point.log_determinants, point.logits)
    value, slopes = mixture.evaluate()
    weights = np.maximum(np.exp(point.log_weights), 1e-6)
    moments = mixture.point.moments
    assert moments is not None
    # The batch's own shares would be a noisy scale; the weights learnt so far are not.
    mixture.point.moments = moments._replace(shares=weights)
    direction = -mixture._precondition(slopes)
    mixture.point.moments = moments
    step = min(rate, mixture.longest(direction))
    return value, mixture._moved(step)


def stochastic_descent(
    mixture: AugmentedMixture, watch: Watch, *, tol: float, batch_size: int, random_state: Any
) -> None:
    """Go through the data in batches, in a new order each time, until a whole pass gains less than ``tol``.

    The objective is measured after each pass over the batches, which takes a pass of its own; the best point is kept.
    """
    check_count(batch_size, "batch_size")
    rng = as_generator(random_state)
    n_samples = len(mixture.data.rows)
    best = mixture.point
    with holding(INTERRUPTED) as block:
        try:
            mixture.evaluate()
            best = mixture.point
            norm = float(np.linalg.norm(mixture.slopes(best)))
            watch.journal.add(best.value, norm, mixture.n_evaluations)
            current, n_updates = best, 0
            decay = max(20.0, n_samples / batch_size)
            while watch.left > 0:
                order = rng.permutation(n_samples)
                for begin in range(0, n_samples, batch_size):
                    chosen = order[begin : begin + batch_size]
                    weight = mixture.data.weights[chosen]
                    batch = DataPass(mixture.data.rows[chosen], weight / weight.sum(), len(current.logits))
                    rate = 0.5 * (1.0 + n_updates / decay) ** -0.75
                    _, current = _stochastic_step(batch, mixture.penalty, current, rate)
                    n_updates += 1
                mixture.n_evaluations += 1
                current = mixture.visit(current)
                norm = float(np.linalg.norm(mixture.slopes(current)))
                watch.journal.add(current.value, norm, mixture.n_evaluations, step=rate, strong=False)
                gain = best.value - current.value
                if gain > 0:
                    best = mixture.point = current
                if watch.stepped(current):
                    watch.reason = "stopped"
                    return
                if gain < tol:
                    watch.reason = "converged"
                    return
        except CollapseError as error:
            watch.reason, watch.collapsed = "collapsed", error.component
        finally:
            mixture.point = best
    if block.interrupted:
        watch.reason = "interrupted"
