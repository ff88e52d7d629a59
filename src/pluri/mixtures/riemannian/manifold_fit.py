"""The Gaussian mixture without EM: from the estimator's settings to the descent on the manifold, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.gaussian import GaussianParameters
from pluri.engine import Source
from pluri.inference import EMResult, History, HistoryRow, IterationState
from pluri.mixtures.gaussian.family import GaussianFamily
from pluri.mixtures.learning import MixtureParameters, MixtureProblem
from pluri.mixtures.riemannian.gaussian import RiemannianFit, fit_riemannian
from pluri.mixtures.riemannian.inputs import Method, Parametrization
from pluri.priors import Dirichlet
from pluri.progress import open_progress
from pluri.validation import as_generator

if TYPE_CHECKING:
    from pluri.mixtures.gaussian.estimator import GaussianMixture

Array = NDArray[np.float64]

#: Way of learning, and the method and the parametrization that it stands for.
METHODS: dict[str, tuple[Method, Parametrization]] = {
    "riemannian": ("lbfgs", "augmented"),
    "riemannian_cg": ("cg", "augmented"),
    "cholesky": ("lbfgs", "cholesky"),
}
REASONS = {"gradient": "converged", "step": "converged", "line_search": "max_iter", "collapsed": "max_iter"}


def fit_on_manifold(
    estimator: GaussianMixture,
    problem: MixtureProblem[GaussianParameters],
    source: Source,
    total: float,
    start: MixtureParameters[GaussianParameters] | None,
    on_iteration: Callable[[Any], bool] | None,
) -> EMResult[MixtureParameters[GaussianParameters]]:
    """Descend from the starting values that EM would have, `n_init` times; the best run wins."""
    assert isinstance(problem.family, GaussianFamily)
    X, weight = _rows(source)
    method, parametrization = METHODS[estimator.inference]
    prior = _pseudo_rows(problem)
    history, best = History(), None
    n_init = 1 if start is not None else int(estimator.n_init)
    with open_progress(int(estimator.verbose)) as report:
        for restart, stream in enumerate(as_generator(estimator.random_state).spawn(n_init)):
            first = problem.initialize(source, stream) if start is None else start
            watch = _Watch(problem, total, restart, n_init, report, on_iteration)
            fit = fit_riemannian(
                X,
                weight,
                first.weights,
                first.components.means,
                first.components.covariances,
                method=method,
                parametrization=parametrization,
                tol=float(estimator.tol),
                max_iter=int(estimator.max_iter),
                random_state=stream,
                n_jobs=estimator.n_jobs,
                on_iteration=watch,
                **prior,
            )
            for row in _history(fit, restart, total):
                history.append(row)
            if best is None or fit.objective < best[1].objective:
                best = restart, fit
            if fit.interrupted or watch.over:
                break
    assert best is not None
    restart, fit = best
    estimator.n_evaluations_ = fit.n_evaluations
    return EMResult(
        params=_parameters(problem, fit.weights, fit.means, fit.covariances, total),
        objective=-fit.objective * total,
        restart=restart,
        n_iter=fit.n_iter,
        reason=REASONS.get(fit.reason, fit.reason),  # type: ignore[arg-type]
        history=history,
        interrupted=fit.interrupted,
    )


class _Watch:
    """Shows the descent's steps to the progress bar and to callbacks as if they were those of EM."""

    def __init__(
        self,
        problem: MixtureProblem[GaussianParameters],
        total: float,
        restart: int,
        n_init: int,
        report: Callable[[Any], object],
        on_iteration: Callable[[Any], bool] | None,
    ) -> None:
        self.problem = problem
        self.total = total
        self.restart = restart
        self.n_init = n_init
        self.report = report
        self.on_iteration = on_iteration
        self.over = False

    def __call__(self, state: IterationState[Any]) -> bool:
        weights, means, covariances = state.params
        seen: IterationState[Any] = dataclasses.replace(
            state,
            params=_parameters(self.problem, weights, means, covariances, self.total),
            restart=self.restart,
            n_init=self.n_init,
            objective=state.objective * self.total,
            log_likelihood=state.log_likelihood * self.total,
            gain=state.gain * self.total,
        )
        self.report(seen)
        if self.on_iteration is None:
            return False
        try:
            return bool(self.on_iteration(seen))
        except StopIteration:
            self.over = True
            return True


def _rows(source: Source) -> tuple[Array, Array | None]:
    """All rows of a source; the descent keeps them in memory."""
    batches = [lazy.load() for lazy in source.batches()]
    X = np.concatenate([np.asarray(batch.X, dtype=np.float64) for batch in batches])
    if np.isnan(X).any():
        raise ValueError("X must have no missing values by descent: use inference='em', which integrates them out")
    if all(batch.weight is None for batch in batches):
        return X, None
    return X, np.concatenate([np.ones(b.n_samples) if b.weight is None else b.weight for b in batches])


def _pseudo_rows(problem: MixtureProblem[GaussianParameters]) -> dict[str, Any]:
    """The priors in the form that keeps one component's problem convex: pseudo-rows with a mean and a scatter."""
    family, prior = problem.family, problem.weight_prior
    assert isinstance(family, GaussianFamily)
    given: dict[str, Any] = {}
    concentration = np.asarray(prior.concentration if isinstance(prior, Dirichlet) else np.nan, dtype=np.float64)
    if concentration.ndim or not concentration >= 1:
        raise ValueError("weight_prior must be a number of at least 1 by descent: use inference='em'")
    if concentration > 1:
        given["weight_concentration"] = float(concentration) - 1.0
    if family.covariance_scale is None and family.mean_precision == 0:
        return given
    n_features = len(family.covariance_scale) if family.covariance_scale is not None else 0
    wanted = family.degrees + n_features + 2.0
    if family.covariance_scale is None or not np.isclose(family.mean_precision, wanted):
        raise ValueError(
            "mean_precision_prior must equal degrees_of_freedom_prior + n_features + 2 by descent (the prior is "
            f"then worth so many rows), got {family.mean_precision:g}: set both, or use inference='em'"
        )
    return given | {
        "covariance_prior": family.covariance_scale,
        "covariance_prior_mean": family.mean_prior,
        "covariance_prior_weight": family.mean_precision,
    }


def _parameters(
    problem: MixtureProblem[GaussianParameters], weights: Array, means: Array, covariances: Array, total: float
) -> MixtureParameters[GaussianParameters]:
    assert isinstance(problem.family, GaussianFamily)
    return MixtureParameters(weights, problem.family.parameters(means, covariances), weights * total)


def _history(fit: RiemannianFit, restart: int, total: float) -> list[HistoryRow]:
    """A row for each step; the start, which comes first in the journal, is not one."""
    objective = -fit.history["objective"] * total
    seconds = np.diff(fit.history["seconds"], prepend=0.0)
    return [
        HistoryRow(restart, index, float(value), float(value), float(took))
        for index, (value, took) in enumerate(zip(objective[1:], seconds[1:]), start=1)
    ]
