"""The estimator shell that every mixture fitted by EM shares: check, run, store.

A family subclasses `MixtureModel` with its constructor and a few small methods that translate between fitted attributes
and the records of its component family; see `pluri.mixtures.gaussian.estimator` for the pattern.
"""

from __future__ import annotations

import dataclasses
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pluri.components.family import ComponentFamily
from pluri.engine import Source, map_reduce, resolve_engine
from pluri.inference import Checkpoint, EMResult, History, expectation_maximization
from pluri.mixtures.learning import MixtureParameters, MixtureProblem
from pluri.mixtures.mixture_queries import MixtureQueries
from pluri.mixtures.rows import RowEstimator, as_source, total_weight
from pluri.mixtures.split_merge import improve
from pluri.mixtures.streaming import StreamedStatistics
from pluri.priors import DeterminantalPrior, RowPrior, as_row_prior
from pluri.progress.callbacks import CallbackSupport, fit_callbacks, with_callbacks
from pluri.validation import (
    Allowed,
    Flag,
    Made,
    Number,
    Only,
    Stored,
    Whole,
    as_generator,
    check_parameters,
    check_row_weight,
    restored_on_failure,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Prior = ArrayLike | RowPrior

#: What `diversity` may be: none, the weight of a determinantal prior, or one of one's own.
DIVERSITY = Number(least=0) | Only(None) | Made(DeterminantalPrior, "a DeterminantalPrior")


class DeadComponentWarning(UserWarning):
    """A component of the fitted mixture explains no observation."""


class MixtureModel(MixtureQueries, CallbackSupport, DensityMixin, RowEstimator):
    """Base of the EM-fitted mixtures; not to be used by itself."""

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "weights_": Stored("n_components", simplex=True),
        "occupancy_": Stored("n_components", finite=False),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1),
        "max_iter": Whole(0),
        "split_merge": Whole(0),
        "verbose": Whole(0) | Flag(),
    }

    n_components: int
    weight_prior: Prior
    tol: float
    max_iter: int
    n_init: int
    random_state: Any
    warm_start: bool
    verbose: int
    split_merge: int
    acceleration: str | None
    checkpoint: Any
    engine: Any
    n_jobs: int | None
    weights_: Array

    # What a family provides -------------------------------------------------------------------------------------

    @abstractmethod
    def _family(self, source: Source | None) -> ComponentFamily[Any, Any]:
        """The family with this estimator's hyper-parameters; `source` is the data to fit, None for queries."""

    @abstractmethod
    def _component_parameters(self, family: Any) -> Any:
        """The family's record of the fitted attributes."""

    @abstractmethod
    def _store_components(self, parameters: Any) -> None:
        """Set the fitted attributes from the family's record."""

    def _starting_weights(self) -> Array | None:
        """Weights to start from, if the user gave any."""
        return None

    def _check_settings(self) -> None:
        check_parameters(self)

    # Parameters -------------------------------------------------------------------------------------------------

    def _problem(self, source: Source | None) -> MixtureProblem[Any]:
        return MixtureProblem(
            self.n_components,
            self._family(source),
            as_row_prior("weight_prior", self.weight_prior, (self.n_components,)),
            self._starting_weights() if source is not None else None,
        )

    def _model(self) -> tuple[MixtureProblem[Any], MixtureParameters[Any]]:
        check_is_fitted(self, "weights_")
        if len(self.weights_) != self.n_components:
            raise ValueError(
                f"n_components must be that of the last fit ({len(self.weights_)}) for queries, partial_fit and "
                f"warm_start, got {self.n_components}: fit again with warm_start=False"
            )
        problem = self._problem(None)
        unknown = np.full(self.n_components, np.nan)
        return problem, MixtureParameters(
            np.asarray(self.weights_, dtype=np.float64), self._component_parameters(problem.family), unknown
        )

    def _store(self, parameters: MixtureParameters[Any]) -> None:
        self.weights_ = parameters.weights
        self.occupancy_ = parameters.occupancy
        self._store_components(parameters.components)

    # Fitting ----------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the parameters by EM (MAP-EM under priors).

        Ctrl-C ends the fit with a warning and keeps the best parameters so far.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or `pluri.engine.Source`
            NaN marks a missing value.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Weight of each row; a row of weight 2 counts as two rows.

        Returns
        -------
        self : object
        """
        self._check_settings()
        with restored_on_failure(self):
            source = self._source(X, sample_weight)
            with fit_callbacks(
                self, max_iter=max(self.max_iter, 1), n_init=self.n_init, X=X, attributes=self._attributes
            ) as on_iteration:
                self._learn(source, on_iteration)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Integers:
        """Fit, then give the most probable component of each row: the same as ``fit(X).predict(X)``."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def _learn(self, source: Source, on_iteration: Callable[[Any], bool] | None = None) -> None:
        problem = self._problem(source)
        total = map_reduce(total_weight, source)
        start = self._model()[1] if self.warm_start and hasattr(self, "weights_") else None
        if self.max_iter == 0:
            # The stream of the first run: the values that a longer fit with this seed would start from.
            stream = as_generator(self.random_state).spawn(1)[0]
            self._store(problem.initialize(source, stream) if start is None else start)
            self._record(History(), False, 0, np.nan, total)
            self._forget_stream()
            return
        before = self.objective_ if start is not None else np.nan
        result = self._run(problem, source, total, start, on_iteration)
        # One iteration has nothing to compare with but the fit that it goes on from.
        at_rest = result.n_iter == 1 and abs(result.objective - before) < self.tol * total
        self._store(result.params)
        converged = result.converged or bool(at_rest)
        self._record(result.history, converged, result.n_iter, result.objective, total, result.restart)
        self._forget_stream()
        self._warn(result)

    def _run(
        self,
        problem: MixtureProblem[Any],
        source: Source,
        total: float,
        start: MixtureParameters[Any] | None,
        on_iteration: Callable[[Any], bool] | None,
    ) -> EMResult[MixtureParameters[Any]]:
        rng = as_generator(self.random_state)
        options: dict[str, Any] = {
            "max_iter": self.max_iter,
            # A gain for each unit of weight, as scikit-learn counts it.
            "tol": float(self.tol) * total,
            "engine": resolve_engine(self.engine, self.n_jobs),
            "acceleration": self.acceleration,
            "verbose": int(self.verbose),
        }
        result = expectation_maximization(
            problem,
            source,
            rng=rng,
            n_init=1 if start is not None else self.n_init,
            start=start,
            checkpoint=self.checkpoint and Checkpoint(self.checkpoint, fingerprint=self._fingerprint(source)),
            on_iteration=on_iteration,
            **options,
        )
        if self.split_merge and not result.interrupted:
            result = improve(problem, source, result, int(self.split_merge), rng, options)
        return result

    def _record(
        self, history: History, converged: bool, n_iter: int, objective: float, total: float, restart: int = 0
    ) -> None:
        self.history_ = history
        self.converged_ = bool(converged)
        self.n_iter_ = int(n_iter)
        self.objective_ = float(objective)
        self.lower_bound_ = float(objective) / total
        self.lower_bounds_ = (history.run(restart).objective / total).tolist()

    def _warn(self, result: EMResult[MixtureParameters[Any]]) -> None:
        if not self.converged_ and result.reason == "max_iter":
            warnings.warn(
                "Best performing initialization did not converge. Try different init parameters, or increase max_iter, "
                f"tol, or check for degenerate data. (max_iter={self.max_iter}; acceleration='squarem' often helps.)",
                ConvergenceWarning,
                stacklevel=5,
            )
        dead = np.flatnonzero(self.occupancy_ < 1e-10 * min(1.0, float(self.occupancy_.sum())))
        if dead.size:
            warnings.warn(
                f"components {dead.tolist()} explain no observation: use fewer components or other starting values "
                "(n_init)",
                DeadComponentWarning,
                stacklevel=5,
            )

    # Streams ----------------------------------------------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one more batch by a step of stepwise EM; the first batch chooses the starting values.

        The statistics of a batch of m rows after n others enter the running ones with the share
        ``(n / m + 2) ** -0.6``, then the parameters follow. The rows that a `fit` before has seen count.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            The first batch must have at least `n_components` rows.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Weight of each row.

        Returns
        -------
        self : object
        """
        self._check_settings()
        with restored_on_failure(self):
            if not hasattr(self, "weights_"):
                source = self._source(X, sample_weight)
                problem = self._problem(source)
                params = problem.initialize(source, as_generator(self.random_state).spawn(1)[0])
            else:
                data = self._check_rows(X, fitting=False)
                weight = check_row_weight(sample_weight, data.shape[0])
                source = as_source(data, weight)
                problem, params = self._model()
            stream = getattr(self, "_stream", None)
            if stream is None:
                stream = StreamedStatistics()
                if hasattr(self, "occupancy_") and hasattr(self, "lower_bound_"):
                    fitted = dataclasses.replace(params, occupancy=self.occupancy_)
                    stream = StreamedStatistics.after_fit(problem, fitted, float(self.lower_bound_))
            stream, params = stream.update(problem, params, source, n_jobs=self.n_jobs)
            self._store(params)
            self._stream = stream
            total = max(stream.n_seen, 1.0)
            self._record(History(), False, stream.n_steps, stream.log_likelihood * total, total)
        return self

    def _forget_stream(self) -> None:
        self.__dict__.pop("_stream", None)

    def _check_fitted_state(self) -> None:
        """The checks of every query, for a model that comes from a file."""
        if hasattr(self, "weights_"):
            self._model()
