"""The estimator shell that every hidden Markov model fitted by EM shares: check, run, store.

A family subclasses `HiddenMarkovModel` with its constructor and four small methods that translate between fitted
attributes and the records of its emission model; see `pluri.sequences.gaussian` for the pattern.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from pluri.components.em_estimator import EMEstimator
from pluri.components.family import ComponentFamily
from pluri.components.sequence_model import TakesSequences
from pluri.engine import ArraySource, Batch, Source
from pluri.progress.callbacks import CallbackSupport, fit_callbacks, with_callbacks
from pluri.sequences.description import ModelDescription
from pluri.sequences.fitting import FittedByEM
from pluri.sequences.learning import HMMParameters, count_observed
from pluri.sequences.queries import ALGORITHMS, IMPLEMENTATIONS
from pluri.validation import (
    Allowed,
    Flag,
    Number,
    Only,
    Stored,
    Whole,
    check_distributions,
    is_source,
    restored_on_failure,
)
from pluri.validation.sequences import (
    BOUNDARIES,
    check_sequence_weight,
    weight_by_either_name,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class TooManyParametersWarning(UserWarning):
    """The model has more free parameters than the data have numbers."""


class HiddenMarkovModel(TakesSequences, ModelDescription, CallbackSupport, FittedByEM):
    """Base of the EM-fitted hidden Markov models; not to be used by itself."""

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1),
        "n_iter": Whole(0),
        "tol": Number(finite=False),
        "algorithm": Only(*ALGORITHMS),
        "implementation": Only(*IMPLEMENTATIONS),
        "verbose": Whole(0) | Flag(),
    }
    _free_of_checkpoint = EMEstimator._free_of_checkpoint | {"n_iter", "algorithm"}
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {"state_occupancy_": Stored("n_components", finite=False)}
    _instead_of_y = (
        "to learn from known states use HMMClassifier with this model, and pass lengths of sequences as lengths="
    )
    __metadata_request__fit: ClassVar[dict[str, bool]] = BOUNDARIES

    @property
    def n_features(self) -> int:
        """Number of features: hmmlearn's name of `n_features_in_`."""
        fitted = getattr(self, "n_features_in_", None)
        return self._n_features_of_parameters() if fitted is None else int(fitted)

    @n_features.setter
    def n_features(self, value: int) -> None:
        self.n_features_in_ = int(value)

    # Parameters -------------------------------------------------------------------------------------------------

    def _check_chain(self) -> tuple[Array, Array]:
        k = self.n_components
        start = np.asarray(self.startprob_, dtype=np.float64)
        transition = np.asarray(self.transmat_, dtype=np.float64)
        if start.shape != (k,):
            raise ValueError(f"startprob_ must have length n_components ({k}), got shape {start.shape}")
        if transition.shape != (k, k):
            raise ValueError(
                f"transmat_ must have shape (n_components, n_components) = ({k}, {k}), got {transition.shape}"
            )
        check_distributions("startprob_", start)
        check_distributions("transmat_", transition)
        topology = self._topology()
        if topology is not None:
            topology.refuse_outside(start, transition)
        return start, transition

    def _n_free_chain(self, k: int) -> int:
        topology = self._topology()
        return super()._n_free_chain(k) if topology is None else topology.n_free

    def _model(self) -> tuple[ComponentFamily[Any, Any], HMMParameters[Any]]:
        names = ["startprob_", "transmat_", *self._emission_attributes.values()]
        missing = [name for name in names if not hasattr(self, name)]
        if missing and len(missing) < len(names):
            raise NotFittedError(f"this {type(self).__name__} is not fitted and lacks {', '.join(missing)}: set it too")
        check_is_fitted(self, names)
        start, transition = self._check_chain()
        emission = self._emission({})
        unknown = np.full(self.n_components, np.nan)
        return emission, HMMParameters(start, transition, self._emission_parameters(emission), unknown)

    def _store(self, parameters: HMMParameters[Any]) -> None:
        self.startprob_ = parameters.start
        self.transmat_ = parameters.transition
        self._store_emission(parameters.emission)

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
        """Estimate the parameters by EM (MAP-EM under priors).

        Ctrl-C ends the fit with a warning and keeps the best parameters so far.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), list of sequences, or `pluri.engine.Source`
            NaN marks a missing value.
        y : ignored
            For scikit-learn; a program written for hmmlearn may pass `lengths` here. To learn from known states, see
            `HMMClassifier`; labels passed here are ignored with a warning.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X, which sum to n_samples; one sequence if neither `lengths` nor `groups` is
            given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`: rows with the same value next to each other are one
            sequence. This is what reaches the model through scikit-learn's cross-validation, with metadata routing.
        sequence_weight : array of shape (n_sequences,), optional
            Weight of each sequence. Also taken under the name ``sample_weight``, which elsewhere means a weight for
            each row: a Markov chain has no meaning for a row that counts more than its neighbours.

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
                self, max_iter=max(self.n_iter, 1), n_init=self.n_init, X=X, attributes=self._attributes
            ) as on_iteration:
                self._learn(source, self._chain_prior(), n_samples=n_samples, on_iteration=on_iteration)
                self._warn_of_few(count_observed(source))
        return self

    def _warn_of_few(self, n_observed: int | None) -> None:
        """Say so if the parameters that were learned are more than the numbers they were learned from."""
        emission, parameters = self._model()
        k = self.n_components
        topology = self._topology()
        learned = ((k if topology is None else int(topology.start.sum())) - 1) * ("s" in self.params)
        learned += (int((self.transmat_ > 0).sum()) - k) * ("t" in self.params)
        learned += emission.n_free(parameters.emission) * any(
            letter in self.params for letter in self._emission_attributes
        )
        if n_observed is not None and learned > n_observed:
            warnings.warn(
                f"{learned} free parameters were learned from {n_observed} numbers, which tells little of other data: "
                "use fewer states, a simpler covariance_type, priors or more data",
                TooManyParametersWarning,
                stacklevel=4,
            )

    def _source(
        self, X: Any, lengths: ArrayLike | None, sequence_weight: ArrayLike | None, labels: Integers | None = None
    ) -> tuple[Source, int | None]:
        if is_source(X):
            if lengths is not None or sequence_weight is not None:
                raise ValueError("lengths and sequence_weight must be None when X is a source: it holds them")
            return self._checked_source(X), None
        data, counts = self._sequences(X, lengths, fitting=True)
        weight = check_sequence_weight(sequence_weight, counts)
        if self.n_components > len(data):
            raise ValueError(
                f"n_components must be at most the number of samples ({len(data)}), got {self.n_components}"
            )
        return ArraySource(data, counts, sample_weight=weight, labels=labels), len(data)

    def _check_batch(self, batch: Batch) -> None:
        if batch.lengths is None:
            raise ValueError("X, a source of batches, must give the lengths of its sequences")
        self._check_data(batch.X, fitting=True)

    def _check_fitted_state(self) -> None:
        """The checks of hand-set parameters, for those that come from a file."""
        names = ["startprob_", "transmat_", *self._emission_attributes.values()]
        if not all(hasattr(self, name) for name in names):
            return
        self._model()
        width = self._n_features_of_parameters()
        if getattr(self, "n_features_in_", width) != width:
            raise ValueError(f"n_features_in_ must be {width}, as the parameters have it, got {self.n_features_in_}")
