"""What hidden Markov models share whose emissions regress on something: their columns, records, forecasts and draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.gaussian import COVARIANCE_TYPES
from pluri.sequences.driven.columns import Layout, input_columns
from pluri.sequences.driven.regime_forecast import ForecastsBySimulation
from pluri.sequences.driven.regression_emission import GaussianRegression, RegressionParameters
from pluri.sequences.gaussian import GaussianEmission, KeepsCovariances, feature_moments
from pluri.sequences.hmm import HiddenMarkovModel
from pluri.validation import (
    Allowed,
    Number,
    Only,
    Stored,
    check_covariances,
    check_value,
)
from pluri.validation.sequences import sequence_lengths

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class SwitchingRegression(ForecastsBySimulation, KeepsCovariances, HiddenMarkovModel):
    """What `RegressionHMM` and `AutoregressiveHMM` share; not to be used by itself."""

    _emission_attributes = {"w": "coef_", "i": "intercept_", "c": "covars_"}  # noqa: RUF012
    _parameters: ClassVar[Mapping[str, Allowed]] = {**HiddenMarkovModel._parameters, "alpha": Number(least=0)}
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        **HiddenMarkovModel._fitted_layout,
        "feature_mean_": Stored("n_outputs"),
        "feature_variance_": Stored("n_outputs"),
        "regressor_mean_": Stored("n_regressors"),
        "regressor_variance_": Stored("n_regressors"),
    }

    inputs: Any
    alpha: float
    covars_weight: ArrayLike
    coef_: Array
    intercept_: Array

    def _order(self) -> int:
        """How many steps back the regressors reach."""
        return 0

    def _layout(self) -> Layout:
        n_features = self.n_features
        inputs = input_columns("inputs", self.inputs, n_features, getattr(self, "feature_names_in_", None))
        return Layout.of(n_features, inputs, self._order())

    def _n_outputs(self) -> int:
        return int(np.shape(self.intercept_)[1]) if hasattr(self, "intercept_") else len(self._layout().outputs)

    def _n_features_of_parameters(self) -> int:
        n_outputs, n_regressors = np.shape(self.coef_)[1:]
        return int(n_outputs + n_regressors - self._order() * n_outputs)

    def _sequences(self, X: Any, lengths: ArrayLike | None, *, fitting: bool) -> tuple[NDArray[Any], Integers]:
        data, counts = super()._sequences(X, lengths, fitting=fitting)
        return self._layout().with_lags(data, counts), counts

    def _source(self, X: Any, lengths: Any, sequence_weight: Any, labels: Any = None) -> Any:
        source, n_samples = super()._source(X, lengths, sequence_weight, labels)
        layout = self._layout()
        mean, variance = (moments[layout.columns] for moments in feature_moments(source))
        P = layout.n_regressors
        self.regressor_mean_, self.feature_mean_ = mean[:P], mean[P:]
        self.regressor_variance_, self.feature_variance_ = variance[:P], variance[P:]
        return source, n_samples

    def _warn_of_few(self, n_observed: int | None) -> None:
        layout = self._layout()
        share = len(layout.outputs) / len(layout.columns)
        super()._warn_of_few(None if n_observed is None else round(n_observed * share))

    def _emission(self, given: dict[str, Any]) -> GaussianRegression:
        check_value(self.covariance_type, "covariance_type", Only(*COVARIANCE_TYPES))
        layout = self._layout()
        P, width = layout.n_regressors, len(layout.columns)
        center, scale = np.zeros(width), np.ones(P)
        if hasattr(self, "regressor_mean_"):
            center = np.concatenate([self.regressor_mean_, self.feature_mean_])
            scale = np.asarray(self.regressor_variance_)
            if center.shape != (width,) or scale.shape != (P,):
                raise ValueError(
                    f"regressor_mean_ and regressor_variance_ must have {P} values, as coef_ has, got "
                    f"{np.shape(self.regressor_mean_)} and {scale.shape}"
                )
        noise = GaussianEmission(
            covariance_type=self.covariance_type,
            min_covar=self._starting_addition(),
            covars_prior=self._covars_scale(),
            covars_weight=self.covars_weight,
            update_means="i" in self.params,
            update_covariances="c" in self.params,
        )
        starting = {
            name: np.asarray(given[name], dtype=np.float64) for name in ("coef_", "intercept_") if name in given
        }
        return GaussianRegression(
            noise=noise,
            columns=layout.columns,
            n_regressors=P,
            alpha=float(self.alpha),
            center=center,
            scale=scale,
            update_coef="w" in self.params,
            coef=starting.get("coef_"),
            intercept=starting.get("intercept_"),
            covariances=self._covars_ if "covars_" in given else None,
        )

    def _emission_parameters(self, emission: GaussianRegression) -> RegressionParameters:
        k, P = self.n_components, emission.n_regressors
        coef, intercept = (np.asarray(a, dtype=np.float64) for a in (self.coef_, self.intercept_))
        D = len(emission.columns) - P
        for name, value, shape in (("coef_", coef, (k, D, P)), ("intercept_", intercept, (k, D))):
            if value.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {value.shape}")
            if not np.isfinite(value).all():
                raise ValueError(f"{name} must be finite")
        check_covariances(self._covars_, self.covariance_type, k, D)
        return RegressionParameters(coef, emission.noise.parameters(intercept, self._covars_))

    def _store_emission(self, parameters: RegressionParameters) -> None:
        self.coef_, self.intercept_ = parameters.coef, parameters.noise.means
        covariances = parameters.noise.covariances
        self._covars_ = covariances[0] if self.covariance_type == "tied" else covariances

    def one_step_means(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """The mean of each observation given those before it in its sequence, and its inputs.

        What comes after the end is told by `forecast`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `score_sequences`.

        Returns
        -------
        means : array of shape (n_samples, n_outputs)
            NaN where an input, or one of the last observations that the model regresses on, is missing.
        """
        predicted, scores = self._open(X, lengths, groups).predicted()
        return self._expected_outputs(self._observations(X, sequence_lengths(X, lengths, groups))[0], predicted, scores)

    def _expected_outputs(self, data: NDArray[Any], predicted: Array, scores: Array) -> Array:
        """Means of the outputs, given the probabilities of the states before each step is observed."""
        if np.isneginf(scores).any():
            raise ValueError(f"sequence {int(np.argmin(scores))} has probability zero under the model: no forecast")
        emission, parameters = self._model()
        assert isinstance(emission, GaussianRegression)
        means = emission.means(parameters.emission, emission.prepare(data))
        return np.einsum("tk,tkd->td", predicted, means)

    def _emit(
        self,
        states: Integers,
        rng: np.random.Generator,
        *,
        inputs: ArrayLike | None = None,
        history: ArrayLike | None = None,
    ) -> Array:
        """Rows of X for a path of states; `history` (order, D) comes before it, oldest first."""
        emission, parameters = self._model()
        layout = self._layout()
        shape = (len(states), len(layout.inputs))
        given = np.zeros((len(states), 0)) if inputs is None else np.asarray(inputs, dtype=np.float64)
        if given.shape != shape or not np.isfinite(given).all():
            raise ValueError(
                f"inputs must be finite and have shape (n_samples, n_inputs) = {shape}, "
                f"got {'None' if inputs is None else f'shape {given.shape}'}"
            )
        outputs = emission.sample(parameters.emission, states, rng)
        coef, n_lags = parameters.emission.coef, layout.n_regressors - len(layout.inputs)
        outputs += np.einsum("tdp,tp->td", coef[states][:, :, n_lags:], given)
        lags = self._lags_before(layout, history)
        for t in range(len(states) if n_lags else 0):
            outputs[t] += coef[states[t], :, :n_lags] @ lags
            lags = np.concatenate([outputs[t], lags])[:n_lags]
        X = np.empty((len(states), layout.n_features))
        X[:, layout.inputs], X[:, layout.outputs] = given, outputs
        return X

    def _lags_before(self, layout: Layout, history: ArrayLike | None) -> Array:
        """The last observations before a sequence that is to be drawn, as regressors."""
        shape = (layout.order, len(layout.outputs))
        if history is None:
            history = np.broadcast_to(getattr(self, "feature_mean_", np.zeros(shape[1])), shape)
        before = np.asarray(history, dtype=np.float64)
        if before.shape != shape or not np.isfinite(before).all():
            raise ValueError(
                f"history must be finite and have shape (order, n_outputs) = {shape}, got shape {before.shape}"
            )
        return before[::-1].ravel()
