"""The books of a fit on the manifold: what happens while it runs, and the record of how it ended."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from pluri.inference.run import IterationState
from pluri.mixtures.riemannian.augmented import AugmentedMixture, MixturePoint, located
from pluri.mixtures.riemannian.coordinates import Standardization, augment
from pluri.optimize.riemannian.result import Journal
from pluri.validation.interruption import kept

Array = NDArray[np.float64]
#: What is said after Ctrl-C.
INTERRUPTED = "The mixture has not converged; interrupted: the parameters reached so far are kept"


@dataclass(frozen=True)
class RiemannianFit:
    """What a fit on the manifold gives back.

    Attributes
    ----------
    weights : (K,)
    means : (K, d)
    covariances : (K, d, d)
    converged : bool
    n_iter : int
        Steps taken, those of EM included.
    n_evaluations : int
        Passes over the data that find the objective and its gradient, those of EM included.
    n_trials : int
        Trial steps of all line searches; those that need no pass of their own are in no other count.
    n_lead : int
        EM steps at the beginning.
    lower_bound : float
        Average log-likelihood of these parameters.
    objective : float
        What was minimised: the average negative log-likelihood, and the penalties.
    history : dict of str to ndarray
        ``objective``, ``gradient_norm``, ``step``, ``slope``, ``strong``, ``evaluations`` and ``seconds`` after each
        step, the start first.
    reason : str
        "converged", "gradient", "step", "max_iter", "line_search", "stopped", "interrupted" or "collapsed".
    interrupted : bool
    scales : (K,)
        The augmented matrices' last entries ``s``, one at every optimum, before they were set to one.
    """

    weights: Array
    means: Array
    covariances: Array
    converged: bool
    n_iter: int
    n_evaluations: int
    n_trials: int
    n_lead: int
    lower_bound: float
    objective: float
    history: dict[str, Array]
    reason: str
    interrupted: bool
    scales: Array


class Watch:
    """Keeps the books of a fit: history, reason to stop, calls to ``on_iteration``; and makes the result."""

    def __init__(
        self,
        mixture: AugmentedMixture,
        frame: Standardization,
        max_iter: int,
        on_iteration: Callable[[IterationState[Any]], bool | None] | None,
    ) -> None:
        self.mixture = mixture
        self.frame = frame
        self.max_iter = max_iter
        self.on_iteration = on_iteration
        self.journal = Journal()
        self.n_iter = 0
        self.n_lead = 0
        self.reason = "max_iter"
        self.collapsed: int | None = None

    @property
    def left(self) -> int:
        """Steps that may still be taken."""
        return self.max_iter - self.n_iter

    def parameters(self, point: MixturePoint) -> tuple[Array, Array, Array]:
        """Weights, means and covariances of the data as they came."""
        weights, means, covariances, _ = point.read_off()
        return weights, *self.frame.back(means, covariances)

    def stepped(self, point: MixturePoint) -> bool:
        """Count a step; True if it was the last one because someone says so."""
        self.n_iter += 1
        self.mixture.check_collapse(point)
        if self.on_iteration is None:
            return False
        rows = self.journal.rows
        gain = rows[-2][0] - rows[-1][0] if len(rows) > 1 else math.nan
        seconds = rows[-1][-1] - rows[-2][-1] if len(rows) > 1 else rows[-1][-1]
        volume = self.frame.log_volume
        assert point.moments is not None
        state = IterationState(
            params=self.parameters(point),
            restart=0,
            n_init=1,
            iteration=self.n_iter,
            max_iter=self.max_iter,
            objective=-point.value - volume,
            log_likelihood=point.moments.value - volume,
            gain=gain,
            seconds=seconds,
            accepted=True,
            reason=None,
        )
        try:
            return bool(self.on_iteration(state))
        except StopIteration:
            return True

    def result(self) -> RiemannianFit:
        """Set ``s = 1``, measure the likelihood there, and warn where that is due."""
        mixture = self.mixture
        weights, means, covariances, scales = mixture.point.read_off()
        point = mixture.point
        if point.moments is None or np.abs(scales - 1.0).max() > 1e-9:
            point = mixture.visit(located(augment(means, covariances), np.log(np.maximum(weights, 1e-300))))
        assert point.moments is not None
        converged = self.reason in ("converged", "gradient", "step")
        self._warn(converged)
        volume = self.frame.log_volume
        history = self.journal.arrays()
        history["objective"] = history["objective"] + volume
        return RiemannianFit(
            weights / weights.sum(),
            *self.frame.back(means, covariances),
            converged=converged,
            n_iter=self.n_iter,
            n_evaluations=mixture.n_evaluations,
            n_trials=mixture.n_trials,
            n_lead=self.n_lead,
            lower_bound=point.moments.value - volume,
            objective=point.value + volume,
            history=history,
            reason=self.reason,
            interrupted=self.reason == "interrupted",
            scales=scales,
        )

    def _warn(self, converged: bool) -> None:
        if self.reason == "interrupted":
            kept(INTERRUPTED)
        if converged or self.reason in ("stopped", "interrupted"):
            return
        text = {
            "max_iter": f"no tolerance was met in max_iter={self.max_iter} steps: raise max_iter or tol",
            "line_search": "no step lowers the objective any more: raise tol",
            "collapsed": f"component {self.collapsed} has collapsed onto too few points: set covariance_prior_weight, "
            "or use fewer components",
        }[self.reason]
        warnings.warn(f"The mixture has not converged; {text}", ConvergenceWarning, stacklevel=4)
