"""The estimator shell that count dynamical systems share: check, run EM, store."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pluri.components.em_estimator import EMEstimator
from pluri.components.sequence_model import TakesSequences
from pluri.dynamics.counts.count_model import CountModel
from pluri.dynamics.counts.description import SystemDescription
from pluri.dynamics.counts.learning import CountProblem
from pluri.dynamics.counts.poisson_model import PoissonModel
from pluri.dynamics.counts.records import StateModel, SystemParameters
from pluri.dynamics.counts.starting import STARTS
from pluri.dynamics.counts.state_updates import LARGEST_RADIUS, canonical, radius
from pluri.dynamics.counts.survey import Survey, check_missing_counts, survey_of
from pluri.engine import ArraySource, Batch, Source, resolve_engine
from pluri.inference import AscentWarning, Checkpoint, expectation_maximization
from pluri.progress.callbacks import CallbackSupport, fit_callbacks, with_callbacks
from pluri.validation import (
    Allowed,
    Flag,
    Only,
    Stored,
    Whole,
    as_generator,
    check_parameters,
    check_positive_definite,
    is_source,
    restored_on_failure,
)
from pluri.validation.sequences import (
    BOUNDARIES,
    check_sequence_weight,
    lengths_in_second_place,
    sequence_lengths,
    weight_by_either_name,
)

Array = NDArray[np.float64]


class SilentNeuronWarning(UserWarning):
    """Neurons without a single count cannot be learned and are left out."""


class UnstableWarning(UserWarning):
    """The states would grow without bound, were their transition matrix not held back."""


class CountSystem(TakesSequences, SystemDescription, CallbackSupport, EMEstimator):
    """Base of `PoissonDynamicalSystem` and `CountDynamicalSystem`; not to be used by itself."""

    _equal_steps: ClassVar[bool] = True
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_components": Whole(1),
        "inference": Only("vb", "laplace"),
        "init": Only(*STARTS),
        "time_varying_mean": Flag(),
        "verbose": Whole(0) | Flag(),
    }
    _input_tags: ClassVar[Mapping[str, bool]] = {"positive_only": True}
    _state_layout: ClassVar[dict[str, Stored]] = {
        "transition_matrix_": Stored("n_components", "n_components"),
        "transition_covariance_": Stored("n_components", "n_components"),
        "transition_offset_": Stored(None, "n_components"),
        "initial_mean_": Stored("n_components"),
        "initial_covariance_": Stored("n_components", "n_components"),
        "observation_matrix_": Stored("n_features_in_", "n_components"),
        "mean_counts_": Stored("n_features_in_", least=0),
    }
    __metadata_request__fit: ClassVar[dict[str, bool]] = BOUNDARIES

    n_components: int
    inference: str
    init: str
    time_varying_mean: bool
    max_iter: int
    tol: float
    n_init: int
    warm_start: bool
    random_state: Any
    engine: Any
    n_jobs: int | None
    verbose: int

    def _model(self, survey: Survey | None) -> PoissonModel | CountModel:
        """How counts come from states; `survey` is None for a fitted model."""
        raise NotImplementedError  # abstract

    def _observation(self) -> Any:
        """The record of the fitted observation model."""
        raise NotImplementedError  # abstract

    def _store_observation(self, observation: Any) -> None:
        raise NotImplementedError  # abstract

    # Data -------------------------------------------------------------------------------------------------------

    def _n_features_of_parameters(self) -> int:
        return len(self.observation_matrix_)

    @property
    def _n_features_out(self) -> int:
        return int(self.observation_matrix_.shape[1])

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        return check_missing_counts(self._validated(X, fitting))

    def _check_batch(self, batch: Batch) -> None:
        if batch.lengths is None:
            raise ValueError("X, a source of batches, must give the lengths of its sequences")
        self._check_data(batch.X, fitting=True)

    def _source(self, X: Any, lengths: ArrayLike | None, sequence_weight: ArrayLike | None) -> Source:
        if is_source(X):
            if lengths is not None or sequence_weight is not None:
                raise ValueError("lengths and sequence_weight must be None when X is a source: it holds them")
            return self._checked_source(X)
        data, counts = self._sequences(X, lengths, fitting=True)
        return ArraySource(data, counts, sample_weight=check_sequence_weight(sequence_weight, counts))

    # Fitting ----------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        **aliases: Any,
    ) -> Self:
        """Estimate the parameters by EM.

        Ctrl-C ends the fit with a warning and keeps the best parameters so far.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), list of sequences, or `pluri.engine.Source`
            Counts, a row for each time step and a column for each neuron. NaN marks a missing count.
        y : ignored
            For scikit-learn; lengths of sequences are also taken here, as in hmmlearn.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X, which sum to n_samples; one sequence if neither `lengths` nor `groups` is
            given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`: rows with the same value next to each other are one
            sequence.
        sequence_weight : array of shape (n_sequences,), optional
            Weight of each sequence; also taken under the name ``sample_weight``.

        Returns
        -------
        self : object
        """
        sequence_weight = weight_by_either_name(sequence_weight, aliases)
        check_parameters(self)
        with restored_on_failure(self):
            source = self._source(X, self._boundaries(X, y, lengths, groups), sequence_weight)
            with fit_callbacks(
                self, max_iter=self.max_iter, n_init=self.n_init, X=X, attributes=self._attributes
            ) as on_iteration:
                self._learn(source, on_iteration)
        return self

    def fit_transform(self, X: Any, y: Any = None, lengths: ArrayLike | None = None, **arguments: Any) -> Array:
        """`fit`, then `transform` of the same sequences."""
        groups = arguments.get("groups")
        found = lengths_in_second_place(y, sequence_lengths(X, lengths, groups), X)
        self.fit(X, y, lengths, **arguments)
        return self.transform(X, found if groups is None else None, groups=groups)

    def _learn(self, source: Source, on_iteration: Any) -> None:
        survey = survey_of(source)
        self._check_size(survey)
        silent = survey.total == 0
        if silent.any():
            warnings.warn(
                f"columns {np.flatnonzero(silent).tolist()} of X hold no count above 0 and are left out: they have no "
                "loadings, are predicted to stay silent, and add nothing to scores",
                SilentNeuronWarning,
                stacklevel=4,
            )
        goes_on = self.warm_start and hasattr(self, "history_")
        start = self._fitted()[0] if goes_on else None
        self.mean_counts_ = survey.total / np.maximum(survey.n_seen, 1)
        n_times = int(survey.lengths[0]) if self.time_varying_mean else 0
        problem = CountProblem(
            self.n_components, self._model(survey), self.inference, self.init, self.n_init > 1, n_times, silent
        )
        start = self._started(start, problem) if start is not None else None
        place = self.checkpoint and Checkpoint(self.checkpoint, fingerprint=self._fingerprint(source))
        with warnings.catch_warnings():
            if self.inference == "laplace":  # its objective is an approximation, and may fall
                warnings.simplefilter("ignore", AscentWarning)
            result = expectation_maximization(
                problem,
                source,
                rng=as_generator(self.random_state),
                max_iter=self.max_iter,
                tol=self.tol * max(float(survey.n_seen.sum()), 1.0),
                n_init=self.n_init,
                start=start,
                engine=resolve_engine(self.engine, self.n_jobs),
                checkpoint=place,
                verbose=int(self.verbose),
                on_iteration=on_iteration,
            )
        self._store(result.params)
        self.history_, self.n_iter_, self.objective_ = result.history, result.n_iter, result.objective
        self.converged_ = result.converged or (self.inference == "laplace" and result.reason == "descent")
        if result.reason == "max_iter" and self.max_iter > 1 and self.tol > 0:
            warnings.warn(
                f"EM did not converge in max_iter={self.max_iter} iterations: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,
            )
        if radius(self.transition_matrix_) > LARGEST_RADIUS - 1e-6:
            warnings.warn(
                "the transition matrix was held back from eigenvalues above 1, with which states would grow without "
                "bound: the data may have a trend, for which there is time_varying_mean",
                UnstableWarning,
                stacklevel=4,
            )

    def _started(self, start: SystemParameters, problem: CountProblem) -> SystemParameters:
        """Parameters of the last fit, as a start for this one."""
        fitted = (len(problem.silent), problem.n_components, max(problem.n_times - 1, 0))
        found = (*start.observation.loadings.shape, len(start.states.drift))
        for what, new, old in zip(("columns of X", "components", "steps of the mean"), fitted, found):
            if new != old:
                raise ValueError(
                    f"warm_start must be False if the number of {what} is not that of the last fit ({old}), got {new}"
                )
        return start

    def _check_size(self, survey: Survey) -> None:
        n_neurons, n_rows = len(survey.total), int(survey.lengths.sum())
        if not survey.n_seen.sum() > 0:
            raise ValueError("X must hold at least one count that is not missing, got none")
        if not survey.total.sum() > 0:
            raise ValueError("X must hold at least one count above 0, got zeros alone")
        for what, n in (("columns of X", n_neurons), ("rows of X", n_rows)):
            if self.n_components > n:
                raise ValueError(f"n_components must be at most the number of {what} ({n}), got {self.n_components}")
        if self.time_varying_mean and len(set(survey.lengths.tolist())) > 1:
            raise ValueError(
                f"X must hold sequences of one length when time_varying_mean is True, got lengths from "
                f"{survey.lengths.min()} to {survey.lengths.max()}"
            )

    # Parameters -------------------------------------------------------------------------------------------------

    def _store(self, parameters: SystemParameters) -> None:
        parameters = canonical(parameters)
        states = parameters.states
        self.transition_matrix_, self.transition_covariance_ = states.transition, states.noise
        self.transition_offset_ = states.drift
        self.initial_mean_, self.initial_covariance_ = states.initial_mean, states.initial_covariance
        self.observation_matrix_ = parameters.observation.loadings
        self.typical_length_ = parameters.typical_length
        self._store_observation(parameters.observation)

    def _fitted(self) -> tuple[SystemParameters, CountProblem]:
        check_is_fitted(self, "transition_matrix_")
        states = StateModel(
            self.transition_matrix_,
            self.transition_covariance_,
            self.initial_mean_,
            self.initial_covariance_,
            self.transition_offset_,
        )
        n_times = len(self.transition_offset_) + 1 if self.time_varying_mean else 0
        problem = CountProblem(
            states.n_states, self._model(None), self.inference, self.init, False, n_times, self.mean_counts_ == 0
        )
        return SystemParameters(states, self._observation(), int(self.typical_length_)), problem

    def _check_fitted_state(self) -> None:
        """Covariances that come from a file must be some."""
        for name in ("transition_covariance_", "initial_covariance_"):
            if hasattr(self, name):
                check_positive_definite(np.asarray(getattr(self, name))[None], name)
        typical = getattr(self, "typical_length_", 1)
        if not 1 <= typical <= 10**7:
            raise ValueError(f"typical_length_ must be from 1 to 10^7, got {typical}")
