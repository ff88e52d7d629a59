"""What a hidden Markov model with driven transitions is made of, and what it says of observations and inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from pluri.components.chain.driven import DrivenChain, ObservedDrivenChain
from pluri.components.family import ComponentFamily
from pluri.components.imputation import Filled
from pluri.components.sequence_model import TakesSequences
from pluri.engine.aligned import padded_width
from pluri.sequences.description import ModelDescription
from pluri.sequences.driven.columns import Layout, input_columns
from pluri.sequences.driven.driven_filter import DrivenFilter
from pluri.sequences.driven.driven_forecast import ForecastsDriven
from pluri.sequences.driven.driven_learning import DrivenParameters, InputScale
from pluri.sequences.gaussian import GaussianHMM
from pluri.sequences.hmm import HiddenMarkovModel
from pluri.sequences.imputing import ImputesObservations, fill_rows
from pluri.validation import RandomState, as_generator
from pluri.validation.sequences import check_not_lost, offsets_of, sequence_lengths

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Steps whose transition matrices are in memory together when a sequence is drawn.
AT_ONCE = 1024


def _imputes(model: DrivenQueries) -> bool:
    return isinstance(model._template(), ImputesObservations)


def _regresses(model: DrivenQueries) -> bool:
    return hasattr(model._template(), "one_step_means")


class DrivenQueries(ForecastsDriven, TakesSequences, ModelDescription):
    """The part of `DrivenHMM` that needs no fit."""

    hmm: HiddenMarkovModel | None
    transition_inputs: Any
    hmm_: HiddenMarkovModel
    transition_coef_: Array
    input_mean_: Array

    # Settings and parameters of the model that is driven ----------------------------------------------------------

    def _template(self) -> HiddenMarkovModel:
        hmm = GaussianHMM() if self.hmm is None else self.hmm
        if not isinstance(hmm, HiddenMarkovModel) or type(hmm)._problem is not HiddenMarkovModel._problem:
            raise TypeError(
                f"hmm must be a hidden Markov model of pluri.sequences fitted by EM, got {type(hmm).__name__}"
            )
        return hmm

    @property
    def algorithm(self) -> str:  # type: ignore[override]
        """What `predict` and `decode` return."""
        return self._template().algorithm

    @property
    def implementation(self) -> str:  # type: ignore[override]
        """Recursion of `hmm`; driven chains are always in log space."""
        return self._template().implementation

    @property
    def random_state(self) -> Any:
        """Seed of the starting values and of `sample`."""
        return self._template().random_state

    @property
    def startprob_(self) -> Array:  # type: ignore[override]
        """Start distribution: (n_components,)."""
        return self.hmm_.startprob_

    @property
    def transmat_(self) -> Array:  # type: ignore[override]
        """Transition matrix at the mean inputs: (n_components, n_components)."""
        return self.hmm_.transmat_

    def _layout(self) -> Layout:
        names = getattr(self, "feature_names_in_", None)
        n_features = getattr(self, "n_features_in_", None)
        if n_features is None:
            n_features = self._n_features_of_parameters()
        return Layout.of(n_features, input_columns("transition_inputs", self.transition_inputs, n_features, names))

    def _n_features_of_parameters(self) -> int:
        return int(self.hmm_._n_features_of_parameters() + self.transition_coef_.shape[2])

    def _model(self) -> tuple[ComponentFamily[Any, Any], DrivenParameters[Any]]:
        check_is_fitted(self, ["hmm_", "transition_coef_"])
        emission, plain = self.hmm_._model()
        k, q = len(plain.start), len(self._layout().inputs)
        coef = np.asarray(self.transition_coef_, dtype=np.float64)
        if coef.shape != (k, k, q) or not np.isfinite(coef).all():
            raise ValueError(f"transition_coef_ must be finite and have shape {(k, k, q)}, got shape {coef.shape}")
        return emission, DrivenParameters(**vars(plain), coef=coef)

    def _n_free_chain(self, k: int) -> int:
        allowed = int((np.asarray(self.transmat_) > 0).sum())
        return self.hmm_._n_free_chain(k) + (allowed - k) * self.transition_coef_.shape[2]

    # Data ---------------------------------------------------------------------------------------------------------

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        # A sparse matrix is refused by the last line; old SciPy cannot make an array of one.
        if not issparse(X) and np.asarray(X).dtype.kind in "OUS":
            return self._validated(X, fitting, dtype=None, ensure_all_finite=False)
        return self._validated(X, fitting)

    def _split(self, data: NDArray[Any], lengths: Integers) -> tuple[NDArray[Any], Array]:
        """Columns of `hmm`, and inputs, which must be known but where a sequence begins."""
        layout = self._layout()
        try:
            inputs = np.asarray(data[:, layout.inputs], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"transition_inputs must be columns of numbers: {error}") from error
        missing = np.asarray(~np.isfinite(inputs).all(axis=1))
        missing[offsets_of(lengths)[:-1][lengths > 0]] = False
        if missing.any():
            raise ValueError(
                "transition_inputs must be known at every step but the first of a sequence, got a missing value in row "
                f"{int(np.argmax(missing))}"
            )
        return data[:, layout.outputs], inputs

    def _open(self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None = None) -> Any:
        lengths = sequence_lengths(X, lengths, groups)
        check_not_lost(X, lengths, fitting=False)
        emission, parameters = self._model()
        data, counts = self._observations(X, lengths)
        rest, inputs = self._split(data, counts)
        rows = self.hmm_._observations(rest, counts)[0]
        chain = DrivenChain.from_probabilities(parameters.start, parameters.transition, parameters.coef)

        def densities(begin: int, end: int) -> Array:
            out = np.empty((end - begin, padded_width(chain.n_states)))
            emission.log_prob(parameters.emission, emission.prepare(rows[begin:end]), out)
            return out

        return ObservedDrivenChain(chain, self._inputs().standardized(inputs), densities, offsets_of(counts))

    def _inputs(self) -> InputScale:
        """Units of queries: from the means, as the coefficients have it."""
        q = self.transition_coef_.shape[2]
        mean = np.asarray(getattr(self, "input_mean_", np.zeros(q)), dtype=np.float64)
        return InputScale(mean, np.ones(q), np.zeros(q))

    # Queries ------------------------------------------------------------------------------------------------------

    def transition_matrices(self, inputs: ArrayLike) -> Array:
        """The transition matrix that each row of inputs leads to.

        Parameters
        ----------
        inputs : array of shape (n, n_inputs)

        Returns
        -------
        matrices : array of shape (n, n_components, n_components)
        """
        _, parameters = self._model()
        values = self._checked_inputs(inputs, None)
        chain = DrivenChain.from_probabilities(parameters.start, parameters.transition, parameters.coef)
        return np.exp(chain.log_matrices(self._inputs().standardized(values)))

    def _checked_inputs(self, inputs: ArrayLike | None, n: int | None) -> Array:
        q = self.transition_coef_.shape[2]
        values = np.zeros((n or 0, 0)) if inputs is None else np.asarray(inputs, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != q or (n is not None and len(values) != n):
            raise ValueError(
                f"inputs of the transitions must have shape ({'n' if n is None else n}, {q}), got shape {values.shape}"
            )
        if not np.isfinite(values).all():
            raise ValueError("inputs of the transitions must be finite")
        return values

    @available_if(_imputes)
    def impute(
        self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None, return_std: bool = False
    ) -> Any:
        """X with each missing observation replaced by its mean given all observations and inputs of its sequence.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
            With the inputs, as in `fit`, which come back as they are.
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `fit`.
        return_std : bool, default=False
            Whether to give the standard deviations too, 0 where a value was seen, and of inputs. Symbols have none.

        Returns
        -------
        filled : array of shape (n_samples, n_features)
        std : array of shape (n_samples, n_features)
            If `return_std`.
        """
        lengths = sequence_lengths(X, lengths, groups)
        posterior = self.predict_proba(X, lengths)
        data, counts = self._observations(X, lengths)
        rows = self.hmm_._observations(self._split(data, counts)[0], counts)[0]
        filled = fill_rows(self._model(), rows, posterior, return_std)
        values, outputs = np.array(data), self._layout().outputs
        if not isinstance(filled, Filled):
            values[:, outputs] = filled
            return values
        variance = np.zeros(values.shape)
        values[:, outputs], variance[:, outputs] = filled
        return Filled(values, variance).answer(return_std)

    @available_if(_regresses)
    def one_step_means(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Means of the rows given those before them, of an `hmm` that has them; see `RegressionHMM.one_step_means`."""
        lengths = sequence_lengths(X, lengths, groups)
        predicted, scores = self._open(X, lengths).predicted()
        rest, _ = self._split(*self._observations(X, lengths))
        counts = self._observations(X, lengths)[1]
        hmm: Any = self.hmm_
        return np.asarray(hmm._expected_outputs(hmm._observations(rest, counts)[0], predicted, scores))

    def filter(self) -> DrivenFilter:
        """Begin a new sequence that arrives one row (observation and inputs) at a time."""
        _, parameters = self._model()
        return DrivenFilter(self.hmm_.filter(), parameters, self._inputs(), self._layout())

    def sample(
        self,
        n_samples: int = 1,
        random_state: RandomState = None,
        currstate: int | None = None,
        *,
        transition_inputs: ArrayLike | None = None,
        **emission: Any,
    ) -> tuple[NDArray[Any], Integers]:
        """Draw a sequence from the model, given the inputs of its transitions.

        Parameters
        ----------
        n_samples, random_state, currstate
            See `GaussianHMM.sample`.
        transition_inputs : array of shape (n_samples, n_inputs)
            In the order in which the model lists them; the first row drives nothing.
        **emission
            What `hmm.sample` takes besides: `inputs`, `history`.

        Returns
        -------
        X : array of shape (n_samples, n_features)
            Observations and inputs, in the columns that `fit` takes.
        states : array of shape (n_samples,)
        """
        _, parameters = self._model()
        rng = as_generator(self.random_state if random_state is None else random_state)
        given = self._checked_inputs(transition_inputs, n_samples)
        states = self.hmm_._draw_states(n_samples, rng, currstate)  # of which the first is kept
        chain = DrivenChain.from_probabilities(parameters.start, parameters.transition, parameters.coef)
        inputs, uniforms = self._inputs().standardized(given), rng.random(n_samples)
        for begin in range(1, n_samples, AT_ONCE):
            cumulative = np.exp(chain.log_matrices(inputs[begin : begin + AT_ONCE])).cumsum(axis=2)
            for t, rows in enumerate(cumulative, begin):
                row = rows[states[t - 1]]
                states[t] = np.searchsorted(row, uniforms[t] * row[-1], side="right")
        rows = self.hmm_._emit(states, rng, **emission)
        layout = self._layout()
        X = np.empty((n_samples, layout.n_features), dtype=np.result_type(rows.dtype, np.float64))
        X[:, layout.inputs], X[:, layout.outputs] = given, rows
        return X, states

    def summary(self) -> str:
        """The fitted model on one page of text."""
        self._model()
        lines = [f"{type(self).__name__} over", self.hmm_.summary(), "", "effects on the log odds of leaving:"]
        names = getattr(self, "feature_names_in_", None)
        for d, column in enumerate(self._layout().inputs):
            lines.append(f"  input {column if names is None else names[column]}, transitions in rows:")
            lines += ["    " + " ".join(f"{value:8.3g}" for value in row) for row in self.transition_coef_[:, :, d]]
        return "\n".join(lines)
