r"""Gaussian mixtures fitted by quasi-Newton steps on the manifold of positive definite matrices.

EM is slow where components overlap. Here each component is kept as one augmented matrix, in which the likelihood of a
single Gaussian is geodesically concave [1]_, and the mixture is fitted in three parts that share their passes over the
data:

1. EM leads for ten steps, or longer while it is fast: it is hard to beat there, and if it needs no more than that
   it finishes by itself. Each of its steps is a geodesic, and teaches the quasi-Newton method the curvature along it.
2. L-BFGS (or conjugate gradients), preconditioned by the Hessian that the complete data would have.
3. When a step gains less than the tolerance, an EM step has the last word: the fit ends only where EM would end too.

References
----------
.. [1] R. Hosseini and S. Sra, "Matrix manifold optimization for Gaussian mixtures", NIPS 2015.
.. [2] K. Lange, "A quasi-Newton acceleration of the EM algorithm", Statistica Sinica 5, 1995.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.inference.run import IterationState
from pluri.mixtures.riemannian.augmented import AugmentedMixture, CollapseError, MixturePoint
from pluri.mixtures.riemannian.baselines import cholesky_point, cholesky_problem, original_point, original_problem
from pluri.mixtures.riemannian.data_pass import DataPass
from pluri.mixtures.riemannian.inputs import (
    DescentSettings,
    augmented_start,
    checked_data,
    checked_start,
    standardized_prior,
)
from pluri.mixtures.riemannian.record import INTERRUPTED, RiemannianFit, Watch
from pluri.mixtures.riemannian.stochastic import stochastic_descent
from pluri.optimize.riemannian.descent import Descent, Directions, FirstStep, LineSearch, Tolerances, descend
from pluri.optimize.riemannian.lbfgs import QuasiNewton
from pluri.validation.interruption import holding, interruptible

__all__ = ["DescentSettings", "RiemannianFit", "fit_riemannian"]

Array = NDArray[np.float64]

#: EM leads for at least this many steps, and goes on while each gains less than this share of the one before.
LEAD, FAST = 10, 0.8
#: A descent of fewer steps is not repeated. The next branch leaves EM this many steps later.
QUICK, LATER = 150, 70


@interruptible
def fit_riemannian(
    X: ArrayLike,
    sample_weight: ArrayLike | None,
    weights: ArrayLike,
    means: ArrayLike,
    covariances: ArrayLike,
    *,
    random_state: Any = None,
    n_jobs: int | None = None,
    on_iteration: Callable[[IterationState[Any]], bool | None] | None = None,
    **settings: Any,
) -> RiemannianFit:
    """Fit a Gaussian mixture with full covariances by descent on the manifold, from given parameters.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    sample_weight : array-like of shape (n_samples,) or None
        A weight of two equals two copies of the row.
    weights, means, covariances : array-like of shape (K,), (K, n_features), (K, n_features, n_features)
        Where to start; a singular covariance is replaced by that of all data.
    random_state : int, Generator, RandomState or None
        Order of the rows of stochastic steps.
    n_jobs : int, optional
        Number of threads.
    on_iteration : callable, optional
        Called after each step with an :class:`~pluri.inference.IterationState` (parameters: weights, means,
        covariances; objective: what is maximised, an average over samples); returning True ends the fit.
    **settings
        Method, tolerance, prior and the rest: the fields of `DescentSettings`.

    Returns
    -------
    RiemannianFit

    Warns
    -----
    ConvergenceWarning
        If no tolerance was met, or a component collapsed.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures.riemannian.gaussian import fit_riemannian
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-2.0, 1.0, (300, 1)), rng.normal(2.0, 1.0, (100, 1))])
    >>> fit = fit_riemannian(X, None, [0.5, 0.5], [[-1.0], [1.0]], [[[1.0]], [[1.0]]])
    >>> fit.weights.round(2), fit.means.round(1).ravel(), fit.converged
    (array([0.74, 0.26]), array([-2.1,  1.9]), True)
    """
    chosen = DescentSettings(**settings)
    X, sample_weight = checked_data(X, sample_weight)
    start = checked_start(weights, means, covariances, X)
    total = float(len(X)) if sample_weight is None else float(sample_weight.sum())
    frame, penalty = standardized_prior(X, sample_weight, total, chosen)
    rows = np.column_stack([frame.forward(X), np.ones(len(X))])
    data = DataPass(rows, None if sample_weight is None else sample_weight / total, len(start[0]), n_jobs)
    mixture = AugmentedMixture(
        data,
        penalty,
        *augmented_start(frame, *start),
        preconditioned=chosen.preconditioned,
        cheap_trials=chosen.method == "cg",
    )
    watch = Watch(mixture, frame, chosen.max_iter, on_iteration)
    with data.threads():
        if chosen.method == "sgd":
            stochastic_descent(mixture, watch, tol=chosen.tol, batch_size=chosen.batch_size, random_state=random_state)
        elif chosen.parametrization == "augmented":
            _descend_augmented(mixture, watch, chosen)
        else:
            _descend_baseline(mixture, watch, chosen)
        return watch.result()


def _descend_augmented(mixture: AugmentedMixture, watch: Watch, settings: DescentSettings) -> None:
    """EM while it is fast, then the descent method, then EM's word on whether this is the end; the best branch wins."""
    best: MixturePoint | None = None
    dimension, branches, tol = math.prod(mixture.shape), settings.branches, settings.tol
    with holding(INTERRUPTED) as block:
        try:
            mixture.evaluate()
            watch.journal.add(mixture.point.value, _norm(mixture), mixture.n_evaluations)
            directions = settings.directions(dimension)
            watch.reason = _em_lead(mixture, directions, watch, tol, settings.lead)
            for branch in range(branches):
                trunk, begin = mixture.point, watch.n_iter
                watch.journal.branch = branch
                if watch.reason == "max_iter":
                    watch.reason = _descend_branch(mixture, directions, watch, settings)
                if best is None or mixture.point.value < best.value:
                    best = mixture.point
                quick = watch.n_iter - begin < QUICK
                if watch.reason != "converged" or quick or branch == branches - 1 or watch.left <= 0:
                    break
                # A long descent: there are many optima. Let EM go on from where it was left, and leave later.
                mixture.point = trunk
                directions = settings.directions(dimension)
                watch.reason = _em_lead(mixture, directions, watch, tol, LATER)
        except CollapseError as error:
            if best is None:
                watch.reason, watch.collapsed = "collapsed", error.component
            else:
                watch.reason = "converged"
        except StopIteration:
            watch.reason = "stopped"
    if block.interrupted:
        watch.reason = "interrupted"
    if best is not None and not mixture.point.value <= best.value:
        mixture.point = best


def _descend_branch(mixture: AugmentedMixture, directions: Directions, watch: Watch, settings: DescentSettings) -> str:
    """Descend until neither the method nor EM gains anything."""
    first: FirstStep = "scaled" if mixture.precondition is None else "unit"
    search = LineSearch(settings.c1, settings.curvature, first, cap_first_step=isinstance(directions, QuasiNewton))
    while watch.left > 0:
        state = Descent(*mixture.evaluate(), journal=watch.journal)
        descend(
            mixture,
            directions,
            Tolerances(settings.tol),
            search,
            max_iter=watch.left,
            state=state,
            on_iteration=lambda _: watch.stepped(mixture.point),
        )
        if state.reason in ("max_iter", "stopped", "interrupted") or watch.left <= 0:
            return state.reason if state.reason in ("max_iter", "stopped", "interrupted") else "max_iter"
        if _em_steps(mixture, directions, watch, 1) < settings.tol:
            return "converged"
    return "max_iter"


def _em_lead(mixture: AugmentedMixture, directions: Directions, watch: Watch, tol: float, lead: int | None) -> str:
    """Take EM steps until they gain less than ``tol``, or become slow, or are as many as wanted."""
    gains: list[float] = []
    while watch.left > 0 and (lead is None or len(gains) < lead):
        gains.append(_em_steps(mixture, directions, watch, 1))
        watch.n_lead += 1
        if gains[-1] < tol:
            return "converged"
        # Three steps smooth the ratio of successive gains, the rate at which EM converges.
        slow = len(gains) > 3 and gains[-1] > FAST**3 * gains[-4]
        if lead is None and len(gains) >= LEAD and slow:
            break
    return "max_iter"


def _em_steps(mixture: AugmentedMixture, directions: Directions, watch: Watch, count: int) -> float:
    """Take EM steps; return what the last one gained."""
    gain = math.inf
    for _ in range(count):
        before, slopes = mixture.point, mixture.slopes(mixture.point)
        moved, direction = mixture.em_step()
        point = mixture.visit(moved)
        mixture.point = point
        after = mixture.slopes(point)
        directions.observe(direction, after, after - slopes)
        gain = before.value - point.value
        watch.journal.add(point.value, _norm(mixture), mixture.n_evaluations, step=1.0, strong=False)
        if watch.stepped(point):
            raise StopIteration
    return gain


def _norm(mixture: AugmentedMixture) -> float:
    return float(np.linalg.norm(mixture.slopes(mixture.point)))


def _descend_baseline(mixture: AugmentedMixture, watch: Watch, settings: DescentSettings) -> None:
    """Run the generic optimisers on another parametrisation."""
    original = settings.parametrization == "original"
    problem = (original_problem if original else cholesky_problem)(mixture)
    where = original_point if original else cholesky_point
    directions = settings.directions(problem.manifold.dimension)

    def note(state: Descent) -> bool:
        point = where(problem)
        point.value = state.value
        mixture.point = point
        if watch.on_iteration is not None:
            mixture.visit(point)
            mixture.n_evaluations -= 1  # only to show it
        return watch.stepped(point)

    try:
        state = descend(
            problem,
            directions,
            Tolerances(settings.tol),
            LineSearch(settings.c1, settings.curvature, cap_first_step=settings.method == "lbfgs"),
            max_iter=watch.max_iter,
            journal=watch.journal,
            on_iteration=note,
        )
        watch.reason = state.reason
    except CollapseError as error:
        watch.reason, watch.collapsed = "collapsed", error.component
    mixture.n_trials = problem.n_evaluations - 1
    mixture.point = where(problem)
