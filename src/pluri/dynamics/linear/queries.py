"""What a linear dynamical system whose parameters are known says of sequences: scores, states, predictions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from pluri.components.sequence_model import TakesSequences
from pluri.dynamics.linear.input_rows import input_rows
from pluri.dynamics.linear.parameters import LinearParameters
from pluri.dynamics.linear.passes import Pass, Smoothing, smooth_sequences
from pluri.validation.sequences import (
    BOUNDARIES,
    check_not_lost,
    check_sequence_weight,
    lengths_in_second_place,
    offsets_of,
    sequence_lengths,
    weight_by_either_name,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: What methods ask metadata routing for.
REQUESTS = BOUNDARIES | {"inputs": True}


class LinearQueries(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TakesSequences):
    """Methods of a fitted linear dynamical system, or of one whose parameters were set by hand."""

    _equal_steps: ClassVar[bool] = True
    __metadata_request__predict: ClassVar[dict[str, bool]] = REQUESTS
    __metadata_request__transform: ClassVar[dict[str, bool]] = REQUESTS
    __metadata_request__score: ClassVar[dict[str, bool]] = REQUESTS | {"sample_weight": True}

    def _model(self) -> LinearParameters:
        raise NotImplementedError  # abstract

    def _rows(
        self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None, inputs: Any
    ) -> tuple[LinearParameters, Array, Array, Integers]:
        """Parameters, outputs, inputs and offsets."""
        lengths = sequence_lengths(X, lengths, groups)
        check_not_lost(X, lengths, fitting=False)
        parameters = self._model()
        data, counts = self._observations(X, lengths)
        used = input_rows(inputs, counts, parameters.B.shape[1])
        return parameters, np.asarray(data, dtype=np.float64), used, offsets_of(counts)

    def _filtered(
        self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None, inputs: Any
    ) -> tuple[LinearParameters, Array, Array, Pass]:
        parameters, data, used, offsets = self._rows(X, lengths, groups, inputs)
        return parameters, data, used, parameters.filter(data, used, offsets)

    def score_sequences(
        self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None, inputs: Any = None
    ) -> Array:
        """Log-likelihood of each sequence.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
            NaN marks a missing value.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X; one sequence if neither `lengths` nor `groups` is given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`: rows with the same value next to each other.
        inputs : array of shape (n_samples, n_inputs), or list of such, optional
            u, one row for each row of X, if the model was fitted with inputs.

        Returns
        -------
        log_likelihood : array of shape (n_sequences,)
        """
        return self._filtered(X, lengths, groups, inputs)[3].log_likelihoods()

    def score(
        self,
        X: Any,
        y: Any = None,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        inputs: Any = None,
        **aliases: Any,
    ) -> float:
        """Log-likelihood of all sequences together.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        y : ignored
            For scikit-learn; `lengths` may be passed here.
        lengths, groups, inputs : optional
            See `score_sequences`.
        sequence_weight : array of shape (n_sequences,), optional
            Weight of each sequence, as in `fit`; also taken under the name ``sample_weight``.

        Returns
        -------
        log_likelihood : float
        """
        sequence_weight = weight_by_either_name(sequence_weight, aliases)
        lengths = lengths_in_second_place(y, lengths if groups is None else sequence_lengths(X, lengths, groups), X)
        _, _, _, result = self._filtered(X, lengths, None, inputs)
        scores = result.log_likelihoods()
        weight = check_sequence_weight(sequence_weight, np.diff(result.offsets))
        return float(scores.sum() if weight is None else weight[weight > 0] @ scores[weight > 0])

    def _smoothed(
        self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None, inputs: Any
    ) -> tuple[LinearParameters, Array, Array, Smoothing, Pass]:
        parameters, data, used, result = self._filtered(X, lengths, groups, inputs)
        return parameters, data, used, smooth_sequences(result), result

    def transform(
        self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None, inputs: Any = None
    ) -> Array:
        """Smoothed states: the mean of each given all of its sequence.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths, groups, inputs : optional
            See `score_sequences`.

        Returns
        -------
        states : array of shape (n_samples, n_components)
            Sequences end to end.
        """
        return self._smoothed(X, lengths, groups, inputs)[3].mean

    def smooth(
        self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None, inputs: Any = None
    ) -> tuple[Array, Array]:
        """Mean and covariance of each state given all of its sequence; arguments as in `transform`.

        Returns
        -------
        mean : array of shape (n_samples, n_components)
        covariance : array of shape (n_samples, n_components, n_components)
        """
        smoothed = self._smoothed(X, lengths, groups, inputs)[3]
        return smoothed.mean, smoothed.covariance[smoothed.slot]

    def predict(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        inputs: Any = None,
        return_std: bool = False,
    ) -> Any:
        """Each output predicted one step ahead: its mean given the rows before it in its sequence.

        What the model makes of the row itself, or of the rows after it, is not in here: see `transform` for the states,
        `impute` for values that are missing, `forecast` for rows that are still to come.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths, groups, inputs : optional
            See `score_sequences`.
        return_std : bool, default=False
            Whether to give the standard deviations too.

        Returns
        -------
        mean : array of shape (n_samples, n_features)
        std : array of shape (n_samples, n_features)
            If `return_std`.
        """
        parameters, _, used, result = self._filtered(X, lengths, groups, inputs)
        mean = result.predicted_mean @ parameters.C.T + parameters.c + used @ parameters.D.T
        if not return_std:
            return mean
        variance = np.einsum("ij,sjk,ik->si", parameters.C, result.predicted_covariance, parameters.C)
        return mean, np.sqrt(variance + np.diag(parameters.full_noise))[result.slot]

    def impute(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        inputs: Any = None,
        return_std: bool = False,
    ) -> Any:
        """X with each missing value replaced by its mean given everything that was seen of its sequence.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
            NaN marks a missing value.
        lengths, groups, inputs : optional
            See `score_sequences`.
        return_std : bool, default=False
            Whether to give the standard deviations too, 0 where a value was seen.

        Returns
        -------
        filled : array of shape (n_samples, n_features)
        std : array of shape (n_samples, n_features)
            If `return_std`.
        """
        parameters, data, used, smoothed, result = self._smoothed(X, lengths, groups, inputs)
        filled, std = data.copy(), np.zeros_like(data)
        mean = smoothed.mean @ parameters.C.T + parameters.c + used @ parameters.D.T
        residual, R = data - mean, parameters.full_noise
        for kind, members in result.observed.groups():
            seen = result.observed.seen[kind]
            if seen.all():
                continue
            missing = ~seen
            # Noise that is correlated with that of the entries seen is known in part.
            known = np.linalg.solve(R[np.ix_(seen, seen)], R[np.ix_(seen, missing)]).T
            expected = mean[np.ix_(members, missing)] + residual[np.ix_(members, seen)] @ known.T
            filled[np.ix_(members, missing)] = expected
            loading = parameters.C[missing] - known @ parameters.C[seen]
            spread = smoothed.covariance[smoothed.slot[members]]
            variance = np.einsum("ij,tjk,ik->ti", loading, spread, loading)
            left = np.diag(R[np.ix_(missing, missing)] - known @ R[np.ix_(seen, missing)])
            std[np.ix_(members, missing)] = np.sqrt(np.maximum(variance + left, 0.0))
        return (filled, std) if return_std else filled
