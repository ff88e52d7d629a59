"""Fitting a switching system: what goes into EM, and what is stored and said when it is over."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from pluri.components.em_estimator import EMEstimator
from pluri.components.first_sequences import feature_variance, first_sequences
from pluri.components.sequence_model import warn_of_empty_columns
from pluri.dynamics.switching.learning import SwitchingPrior, SwitchingProblem
from pluri.dynamics.switching.parameters import FIELDS, LETTERS, SwitchingParameters, checked, from_attributes
from pluri.dynamics.switching.queries import SwitchingQueries
from pluri.dynamics.switching.start import MAX_ROWS, SwitchingStart, principal_states
from pluri.engine import ArraySource, Batch, Source, resolve_engine
from pluri.inference import Checkpoint, expectation_maximization
from pluri.priors import as_row_prior
from pluri.progress.callbacks import CallbackSupport, fit_callbacks, with_callbacks
from pluri.validation import as_generator, check_parameters, is_source, restored_on_failure
from pluri.validation.sequences import (
    check_sequence_weight,
    lengths_in_second_place,
    weight_by_either_name,
)

Array = NDArray[np.float64]


class DeadRegimeWarning(UserWarning):
    """A regime of the fitted model explains no step."""


class FittedSwitching(SwitchingQueries, CallbackSupport, EMEstimator):
    """The part of `SwitchingDynamicalSystem` that learns."""

    n_regimes: int
    n_components: int
    emission_type: str
    noise_type: str
    startprob_prior: Any
    transmat_prior: Any
    dynamics_prior: float
    emission_prior: float
    params: str
    n_init: int
    max_iter: int
    tol: float
    warm_start: bool
    acceleration: str | None
    verbose: int
    engine: Any
    n_jobs: int | None

    # Parameters -------------------------------------------------------------------------------------------------

    def _n_groups(self) -> int:
        return self.n_regimes if self.emission_type == "regime" else 1

    def _model(self) -> SwitchingParameters:
        missing = [name for name in FIELDS if not hasattr(self, name)]
        if missing and len(missing) < len(FIELDS):
            raise NotFittedError(f"this {type(self).__name__} is not fitted and lacks {', '.join(missing)}: set it too")
        check_is_fitted(self, list(FIELDS))
        values = {name: getattr(self, name) for name in FIELDS}
        return from_attributes(checked(values, self.n_regimes, self.n_components, self._n_groups()))

    def _n_features_of_parameters(self) -> int:
        return int(np.shape(self.emission_)[1])

    def _store(self, parameters: SwitchingParameters) -> None:
        for name, field in FIELDS.items():
            setattr(self, name, getattr(parameters, field))
        self.regime_occupancy_ = parameters.occupancy

    def _check_fitted_state(self) -> None:
        """The checks of hand-set parameters, for those that come from a file."""
        if not all(hasattr(self, name) for name in FIELDS):
            return
        width = self._model().sizes[2]
        if getattr(self, "n_features_in_", width) != width:
            raise ValueError(f"n_features_in_ must be {width}, as the parameters have it, got {self.n_features_in_}")
        occupancy = np.asarray(getattr(self, "regime_occupancy_", np.zeros(self.n_regimes)))
        if occupancy.shape != (self.n_regimes,) or occupancy.dtype.kind != "f":
            raise ValueError(f"regime_occupancy_ must have shape ({self.n_regimes},), got {occupancy.shape}")

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
        """Estimate the parameters by variational EM.

        Ctrl-C ends the fit with a warning and keeps the best parameters so far.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), list of sequences, or `pluri.engine.Source`
            NaN marks a missing value. Of a source, the regimes' posterior is not kept between iterations, so that
            the bound may fall a little where it has several local optima.
        y : ignored
            For scikit-learn; a program written for hmmlearn may pass `lengths` here.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X; one sequence if neither `lengths` nor `groups` is given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`: rows with the same value next to each other.
        sequence_weight : array of shape (n_sequences,), optional
            Weight of each sequence. Also taken under the name ``sample_weight``.

        Returns
        -------
        self : object
        """
        sequence_weight = weight_by_either_name(sequence_weight, aliases)
        self._check_settings()
        with restored_on_failure(self):
            lengths = self._boundaries(X, y, lengths, groups)
            source, n_samples = self._source(X, lengths, sequence_weight)
            with fit_callbacks(
                self, max_iter=self.max_iter, n_init=self.n_init, X=X, attributes=self._attributes
            ) as on_iteration:
                self._learn(source, n_samples, on_iteration)
        return self

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        **aliases: Any,
    ) -> Array:
        """`fit`, then `transform` of the same sequences."""
        sequence_weight = weight_by_either_name(sequence_weight, aliases)
        self.fit(X, y, lengths, groups=groups, sequence_weight=sequence_weight)
        return self.transform(X, lengths_in_second_place(y, lengths, X), groups=groups)

    def _check_settings(self) -> None:
        if not isinstance(self.params, str) or not set(self.params) <= set(LETTERS):
            raise ValueError(f"params must be made of the letters {''.join(LETTERS)!r}, got {self.params!r}")
        check_parameters(self)

    def _source(self, X: Any, lengths: ArrayLike | None, sequence_weight: ArrayLike | None) -> tuple[Source, int]:
        """The data, and the number of rows whose regimes' posterior is kept."""
        if is_source(X):
            if lengths is not None or sequence_weight is not None:
                raise ValueError("lengths and sequence_weight must be None when X is a source: it holds them")
            return self._checked_source(X), 0
        data, counts = self._sequences(X, lengths, fitting=True)
        weight = check_sequence_weight(sequence_weight, counts)
        self._check_rows(data)
        warn_of_empty_columns(data)
        if self.n_regimes > len(data):
            raise ValueError(f"n_regimes must be at most the number of samples ({len(data)}), got {self.n_regimes}")
        return ArraySource(data, counts, sample_weight=weight, labels=np.arange(len(data))), len(data)

    def _check_rows(self, X: NDArray[Any]) -> None:
        missing = np.isnan(X)
        if missing.all():
            raise ValueError("X must hold at least one value that is not missing, got none")
        if self.noise_type == "full" and "r" in self.params and (missing.any(axis=1) != missing.all(axis=1)).any():
            raise ValueError("noise_type must be 'diag' or 'isotropic' to learn from rows seen in part, got 'full'")

    def _check_batch(self, batch: Batch) -> None:
        if batch.lengths is None:
            raise ValueError("X, a source of batches, must give the lengths of its sequences")
        self._check_rows(self._check_data(batch.X, fitting=True))

    def _problem(self, source: Source, n_kept: int) -> SwitchingProblem:
        k = self.n_regimes
        given = {name: value for name in FIELDS if (value := getattr(self, f"{name}init")) is not None}
        values = checked(given, k, self.n_components, self._n_groups())
        width = self.n_features_in_
        for name in ("emission_", "emission_offset_", "emission_covariance_"):
            if name in values and values[name].shape[1] != width:
                raise ValueError(f"{name}init must be for {width} features, got {values[name].shape[1]}")
        first = first_sequences(source, MAX_ROWS)
        components = principal_states(first, self.n_components)
        prior = SwitchingPrior(
            as_row_prior("startprob_prior", self.startprob_prior, (k,)),
            as_row_prior("transmat_prior", self.transmat_prior, (k, k)),
            feature_variance(first),
            float(self.emission_prior),
            float(self.dynamics_prior),
            0.1 * components.step_variance(),
        )
        # Known covariances tell the scale of the states' coordinates, which are then not those of the components.
        scales = {"steps": "dynamics_covariance_", "first": "initial_covariance_"}
        known: dict[str, Any] = {
            field: _mean_variance(values[name]) for field, name in scales.items() if name in values
        }
        start = SwitchingStart(k, self._n_groups(), prior, components, values, n_kept)
        return SwitchingProblem(start, replace(prior, **known), self.noise_type, self.params)

    def _learn(self, source: Source, n_kept: int, on_iteration: Callable[[Any], bool] | None) -> None:
        problem = self._problem(source, n_kept)
        start = None
        if self.warm_start and hasattr(self, "history_"):
            fitted = self._model()
            if fitted.sizes[2] != self.n_features_in_:
                raise ValueError(
                    f"warm_start must be False if the number of columns of X is not that of the last fit "
                    f"({fitted.sizes[2]}), got {self.n_features_in_}"
                )
            start = replace(problem.conforming(fitted), kept=np.full((n_kept, self.n_regimes), np.nan))
        place = self.checkpoint and Checkpoint(self.checkpoint, fingerprint=self._fingerprint(source, n_kept))
        result = expectation_maximization(
            problem,
            source,
            rng=as_generator(self.random_state),
            max_iter=self.max_iter,
            tol=self.tol,
            n_init=self.n_init,
            start=start,
            engine=resolve_engine(self.engine, self.n_jobs),
            acceleration=self.acceleration,
            checkpoint=place,
            verbose=int(self.verbose),
            on_iteration=on_iteration,
        )
        self._store(result.params)
        self.history_ = result.history
        self.converged_ = result.converged
        self.n_iter_ = result.n_iter
        self.objective_ = result.objective
        if result.reason == "max_iter" and self.max_iter > 1 and self.tol > 0:
            warnings.warn(
                f"EM did not converge in max_iter={self.max_iter} iterations: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,
            )
        dead = np.flatnonzero(self.regime_occupancy_ < 1e-10)
        if dead.size:
            warnings.warn(
                f"regimes {dead.tolist()} explain no step: use fewer regimes or other starting values (n_init)",
                DeadRegimeWarning,
                stacklevel=4,
            )


def _mean_variance(covariances: Array) -> Array:
    """Diagonal of covariances (k, d, d), averaged over regimes: (d,)."""
    return np.asarray(np.diagonal(covariances, axis1=1, axis2=2).mean(axis=0), dtype=np.float64)
