"""The estimator shell that every mixture fitted by EM shares: check, run, store.

A family subclasses `MixtureModel` with its constructor and a few small methods that translate between fitted attributes
and the records of its component family; see `pluri.mixtures.gaussian` for the pattern.
"""

from __future__ import annotations

import dataclasses
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.components.family import ComponentFamily
from pluri.components.first_rows import digest
from pluri.engine import ArraySource, Batch, Source, SparseSource, map_reduce, resolve_engine
from pluri.inference import Checkpoint, EMResult, History, expectation_maximization
from pluri.mixtures.learning import BLOCK, MixtureParameters, MixtureProblem
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
    RandomState,
    Stored,
    Whole,
    as_generator,
    check_parameters,
    check_row_weight,
    is_source,
    restored_on_failure,
    unmasked,
    weighted_mean,
    weighted_total,
)
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Prior = ArrayLike | RowPrior

#: What `diversity` may be: none, the weight of a determinantal prior, or one of one's own.
DIVERSITY = Number(least=0) | Only(None) | Made(DeterminantalPrior, "a DeterminantalPrior")
#: Components, and features of each, that `summary` shows.
SUMMARY_ROWS, SUMMARY_FEATURES = 20, 6


class DeadComponentWarning(UserWarning):
    """A component of the fitted mixture explains no observation."""


class MixtureModel(CallbackSupport, DensityMixin, Estimator):
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

    #: Whether `fit` and the queries take sparse matrices.
    _takes_sparse: ClassVar[bool] = False
    #: Fewest rows that `fit` takes.
    _least_samples: ClassVar[int] = 1

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

    def _check_rows(self, X: Any, *, fitting: bool) -> Any:
        """X as an array (or CSR matrix) that the family accepts; NaN marks a missing value."""
        return self._validated(X, fitting)

    def _starting_weights(self) -> Array | None:
        """Weights to start from, if the user gave any."""
        return None

    # Input ------------------------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def _validated(self, X: Any, fitting: bool, **options: Any) -> Any:
        options = {
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": "allow-nan",
            "accept_sparse": "csr" if self._takes_sparse else False,
            "ensure_min_samples": self._least_samples if fitting else 1,
        } | options
        if getattr(getattr(X, "dtype", None), "kind", None) in ("m", "M"):
            raise ValueError(f"X must hold numbers, got dates or durations ({X.dtype}): take differences first")
        return validate_data(self, unmasked(X), reset=fitting, **options)

    def _source(self, X: Any, sample_weight: ArrayLike | None) -> Source:
        if is_source(X):
            if sample_weight is not None:
                raise ValueError("sample_weight must be None when X is a source: it holds the weights of its rows")
            return self._checked_source(X)
        data = self._check_rows(X, fitting=True)
        weight = check_row_weight(sample_weight, data.shape[0])
        refuse_empty_columns(data)
        if data.shape[0] < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {data.shape[0]}"
            )
        if sparse.issparse(data):
            return SparseSource(data, sample_weight=weight)
        return ArraySource(data, sample_weight=weight)

    def _checked_source(self, source: Source) -> Source:
        """Look at the first batch: the others have its form, or fail when they are read."""
        for lazy in source.batches():
            batch = lazy.load()
            if batch.lengths is not None and (batch.lengths != 1).any():
                raise ValueError("X, a source of batches, must give independent rows, got sequences")
            self._check_rows(batch.X, fitting=True)
            return source
        raise ValueError("X must hold at least one batch, got an empty source")

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

    def _attributes(self, parameters: MixtureParameters[Any]) -> Mapping[str, Any]:
        """Fitted attributes of an estimator that stopped at these parameters (for callbacks)."""
        scratch = type(self)(**self.get_params(deep=False))
        before = set(vars(scratch))
        for name in vars(self).keys() - before - {"_skl_callbacks", "_callback_fit_ctx", "_skl_callbacks_to_teardown"}:
            setattr(scratch, name, getattr(self, name))
        scratch._store(parameters)
        return {name: value for name, value in vars(scratch).items() if name not in before}

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
        total = map_reduce(_total_weight, source)
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

    def _fingerprint(self, source: Source) -> str:
        """What must be the same for a checkpoint to be of this fit: the data, but not how long it runs, or where."""
        if not self.checkpoint:
            return ""
        free = {"max_iter", "tol", "verbose", "warm_start", "checkpoint", "engine", "n_jobs"}
        settings = {name: value for name, value in self.get_params(deep=False).items() if name not in free}
        return f"{type(self).__name__} {settings} {digest(source)}"

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
                source = (SparseSource if sparse.issparse(data) else ArraySource)(data, sample_weight=weight)
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
        if hasattr(self, "_stream"):
            del self._stream

    # Queries ----------------------------------------------------------------------------------------------------

    def _posterior(self, X: Any) -> tuple[Array, Array]:
        """Responsibilities (n, k) and log densities (n,)."""
        check_is_fitted(self, "weights_")
        return self._posterior_of(self._check_rows(X, fitting=False))

    def _posterior_of(self, data: Any) -> tuple[Array, Array]:
        """The same of rows that were checked."""
        problem, params = self._model()
        k, n = self.n_components, data.shape[0]
        posterior, scores = np.empty((n, k)), np.empty(n)
        for begin in range(0, n, BLOCK):
            rows = slice(begin, min(begin + BLOCK, n))
            block, scores[rows] = problem.posterior(params, problem.family.prepare(data[rows]))
            posterior[rows] = block[:, :k]
        impossible = np.isneginf(scores)
        if impossible.any():
            posterior[impossible] = self.weights_
        return posterior, scores

    def score_samples(self, X: Any) -> Array:
        """Log density of each row: (n_samples,); of a row with missing values, that of the values that are there."""
        return self._posterior(X)[1]

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log density of the rows, weighted if `sample_weight` is given."""
        return weighted_mean(self.score_samples(X), sample_weight)

    def predict(self, X: Any) -> Integers:
        """Most probable component of each row: (n_samples,)."""
        return np.asarray(self._posterior(X)[0].argmax(axis=1), dtype=np.int64)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each component for each row: (n_samples, n_components)."""
        return self._posterior(X)[0]

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> tuple[NDArray[Any], Integers]:
        """Draw rows from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, numpy Generator, RandomState or None, default=None
            Instead of the model's own, with which an integer gives the same rows each time.

        Returns
        -------
        X : array of shape (n_samples, n_features)
        labels : int array of shape (n_samples,)
            The component of each row; rows are ordered by it.
        """
        problem, params = self._model()
        if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 1:
            raise ValueError(
                f"Invalid value for 'n_samples': {n_samples!r} . The sampling requires at least one sample."
            )
        rng = as_generator(self.random_state if random_state is None else random_state)
        counts = rng.multinomial(int(n_samples), params.weights / params.weights.sum())
        labels = np.repeat(np.arange(self.n_components), counts)
        return problem.family.sample(params.components, labels, rng), labels

    def _n_parameters(self) -> int:
        """Number of free parameters."""
        problem, params = self._model()
        return int(problem.family.n_free(params.components)) + self.n_components - 1

    def bic(self, X: Any, sample_weight: ArrayLike | None = None) -> float:
        """Bayesian information criterion on X; the lower the better.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        sample_weight : array of shape (n_samples,), optional
            Weight of each row; the number of rows is then the sum of the weights.
        """
        total, n_rows = weighted_total(self.score_samples(X), sample_weight)
        return float(-2.0 * total + self._n_parameters() * np.log(n_rows))

    def aic(self, X: Any, sample_weight: ArrayLike | None = None) -> float:
        """Akaike information criterion on X; the lower the better. For `sample_weight` see `bic`."""
        return -2.0 * weighted_total(self.score_samples(X), sample_weight)[0] + 2.0 * self._n_parameters()

    def summary(self) -> str:
        """The fitted mixture on one page of plain text: how the fit went, and the components, heaviest first."""
        check_is_fitted(self, "weights_")
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        lines = [f"{type(self).__name__}: {self.n_components} components"]
        if hasattr(self, "n_iter_"):
            state = "converged" if self.converged_ else "not converged"
            lines.append(f"{state} after {self.n_iter_} iterations; mean objective {self.lower_bound_:.6g}")
        lines += ["", f"{'component':<10s} {'weight':>8s} {'rows':>10s}  centre"]
        order = np.argsort(-np.asarray(self.weights_), kind="stable")
        rows = getattr(self, "occupancy_", np.full(len(order), np.nan))
        for j in order[:SUMMARY_ROWS]:
            center = self._center_texts(int(j))
            shown = ", ".join(f"{names[d] if names else d}: {text}" for d, text in enumerate(center[:SUMMARY_FEATURES]))
            more = ", ..." if len(center) > SUMMARY_FEATURES else ""
            lines.append(f"{j:<10d} {self.weights_[j]:8.4f} {rows[j]:10.1f}  {shown}{more}".rstrip())
        if len(order) > SUMMARY_ROWS:
            lines.append(f"... and {len(order) - SUMMARY_ROWS} more components")
        return "\n".join(lines)

    def _center_texts(self, component: int) -> list[str]:
        """What `summary` says of each column of a component: its expectation."""
        for name in ("means_", "probabilities_", "rates_"):
            values = getattr(self, name, None)
            if isinstance(values, np.ndarray):
                return [f"{value:.4g}" for value in values[component]]
        return []

    def _check_fitted_state(self) -> None:
        """The checks of every query, for a model that comes from a file."""
        if hasattr(self, "weights_"):
            self._model()


def refuse_empty_columns(X: Any) -> None:
    """Refuse a feature of which nothing was observed: nothing can be learnt about it."""
    if sparse.issparse(X) or X.dtype.kind != "f":
        return
    empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if empty.size:
        raise ValueError(f"X must have an observed value in every column, got none in {empty.tolist()}: drop them")


def _total_weight(batch: Batch) -> float:
    return float(batch.n_samples if batch.weight is None else batch.weight.sum())
