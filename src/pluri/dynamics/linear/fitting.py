"""Fitting a linear dynamical system by EM: starting values, the prior of the noise, the loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from pluri.components.em_estimator import EMEstimator
from pluri.components.first_sequences import feature_variance, first_sequences
from pluri.components.sequence_model import StartingValues
from pluri.dynamics.linear.learning import LinearProblem
from pluri.dynamics.linear.parameters import (
    COVARIANCE_TYPES,
    LETTERS,
    STABLE_RADIUS,
    LinearParameters,
    checked_part,
    shapes,
    spectral_radius,
)
from pluri.dynamics.linear.start import MOST_ROWS, FirstRows, starting_parameters
from pluri.dynamics.linear.updates import FirstStatePrior
from pluri.engine import Source, resolve_engine
from pluri.inference import Checkpoint, History, expectation_maximization
from pluri.validation import Flag, Number, Only, Whole, as_generator, check_broadcast, check_parameters, check_value

Array = NDArray[np.float64]

#: Scale of the noise's prior as a share of each output's variance.
SHARE = 1e-3


class FittedLinearSystem(StartingValues, EMEstimator):
    """The part of `LinearDynamicalSystem` that learns."""

    n_components: int
    covariance_type: str
    stable: bool
    covars_prior: ArrayLike | str
    initial_prior: float
    max_iter: int
    tol: float
    n_init: int
    params: str
    acceleration: str | None
    engine: Any
    n_jobs: int | None
    verbose: int
    random_state: Any
    n_inputs_: int
    feature_variance_: Array
    prior_mean_: Array
    prior_covariance_: Array
    history_: History
    _parameters = {  # noqa: RUF012
        "n_components": Whole(1),
        "covariance_type": Only(*COVARIANCE_TYPES),
        "stable": Flag(),
        "initial_prior": Number(least=0),
        "tol": Number(finite=False),
        "warm_start": Flag(),
        "acceleration": Only(None, "squarem", "anderson"),
        "verbose": Whole(0) | Flag(),
    }

    def _model(self) -> LinearParameters:
        """Parameters of a fitted model, checked."""
        raise NotImplementedError  # abstract

    def _parameter_names(self) -> dict[str, str]:
        return dict(LETTERS)

    def _check_settings(self) -> None:
        letters = "".join(LETTERS)
        for name in ("params", "init_params"):
            value = getattr(self, name)
            if not isinstance(value, str) or not set(value) <= set(letters):
                raise ValueError(f"{name} must be made of the letters {letters!r}, got {value!r}")
        check_parameters(self)

    def _starting_point(self, rows: FirstRows, given: dict[str, Array]) -> LinearParameters:
        """Where the first run starts: the fitted model under `warm_start`, else what the data suggest."""
        if self.warm_start and hasattr(self, "history_"):
            start = self._model()
            for what, new, old in (
                ("columns of X", rows.outputs.shape[1], len(start.c)),
                ("inputs", self.n_inputs_, start.B.shape[1]),
            ):
                if new != old:
                    raise ValueError(
                        f"warm_start must be False if the number of {what} is not that of the last fit ({old}), got "
                        f"{new}"
                    )
        else:
            start = starting_parameters(rows, self.n_components, given, full_noise=self.covariance_type == "full")
            if self.covariance_type == "spherical" and "R" not in given:
                start = LinearParameters(**{**vars(start), "R": np.full_like(start.R, start.R.mean())})
        if self.stable and spectral_radius(start.A) > STABLE_RADIUS:
            raise ValueError(
                f"transition_matrix_ must have a spectral radius of at most {STABLE_RADIUS} when stable=True, got "
                f"{spectral_radius(start.A):.6g}"
            )
        return start

    def _problem(self, source: Source, n_outputs: int) -> LinearProblem:
        q = self.n_inputs_
        sizes = shapes(self.n_components, n_outputs, q)
        letter_of = {name: letter for letter, name in LETTERS.items()}
        given = {
            letter_of[name]: checked_part(letter_of[name], value, sizes[letter_of[name]], self.covariance_type)
            for name, value in self._given().items()
        }
        first = first_sequences(source, MOST_ROWS)
        self.feature_variance_ = feature_variance(first, n_outputs)
        start = self._starting_point(FirstRows.of(first, n_outputs), given)
        if not (self.warm_start and hasattr(self, "history_")):
            self.prior_mean_, self.prior_covariance_ = start.m, start.P
        return LinearProblem(
            start=start,
            learned="".join(letter for letter in LETTERS if letter in self.params and (q or letter not in "BD")),
            given="".join(given),
            covariance_type=self.covariance_type,
            noise_scale=self._noise_scale(n_outputs),
            unit=np.sqrt(self.feature_variance_),
            first_state=FirstStatePrior(float(self.initial_prior), self.prior_mean_, self.prior_covariance_),
            stable=self.stable,
        )

    def _noise_scale(self, n_outputs: int) -> Array:
        if isinstance(self.covars_prior, str):
            check_value(self.covars_prior, "covars_prior", Only("auto"))
            return np.asarray(SHARE * self.feature_variance_)
        return check_broadcast("covars_prior", self.covars_prior, (n_outputs,), least=0.0)

    def _learn(
        self, source: Source, n_outputs: int, *, n_samples: int | None, on_iteration: Callable[[Any], bool] | None
    ) -> None:
        """Run EM and store what it finds."""
        problem = self._problem(source, n_outputs)
        place = self.checkpoint and Checkpoint(self.checkpoint, fingerprint=self._fingerprint(source, n_samples))
        result = expectation_maximization(
            problem,
            source,
            rng=as_generator(self.random_state),
            max_iter=self.max_iter,
            tol=self.tol,
            n_init=self.n_init,
            start=[problem.start],
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

    def _store(self, parameters: LinearParameters) -> None:
        for letter, name in LETTERS.items():
            setattr(self, name, parameters.full_noise if letter == "R" else getattr(parameters, letter))
