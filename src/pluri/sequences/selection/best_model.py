"""What a search can be asked when it is over: everything goes to the best model, through its pipeline if it has one."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pluri.sequences.labelled.classifier import HMMClassifier
from pluri.sequences.labelled.labels import join_labels
from pluri.sequences.selection.folds import block_lengths
from pluri.sequences.selection.pipelines import SequencePipeline, divide_rows, transform_rows
from pluri.sequences.selection.scorers import Scorer
from pluri.validation.estimator import Estimator
from pluri.validation.sequences import (
    BOUNDARIES,
    is_sequence_list,
    join_sequences,
    lengths_in_second_place,
    sequence_lengths,
)


class BestModel(Estimator):
    """Answers of the best model of a search; `HMMSearchCV` finds it."""

    __metadata_request__predict: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = BOUNDARIES
    # A pipeline always names weights, if only to say that there are none: known, and an error if there are some.
    __metadata_request__score: ClassVar[dict[str, bool | None]] = BOUNDARIES | {"sample_weight": None}

    estimator: Any
    block_length: int | None
    scorer_: Scorer
    best_estimator_: Any

    @property
    def _is_pipeline(self) -> bool:
        return isinstance(self.estimator, Pipeline)

    @property
    def _last_step(self) -> Any:
        return self.estimator[-1] if self._is_pipeline else self.estimator

    @property
    def _is_classifier(self) -> bool:
        return isinstance(self._last_step, HMMClassifier)

    def _labels_and_lengths(
        self, X: Any, y: Any, lengths: ArrayLike | None, groups: ArrayLike | None
    ) -> tuple[Any, ArrayLike | None]:
        """Labels and lengths; tells labels from hmmlearn's habit of passing `lengths` in second place."""
        lengths = sequence_lengths(X, lengths, groups)
        if self._is_classifier or y is None or lengths is not None:
            return y, lengths
        lengths = lengths_in_second_place(y, None, X)
        return (y, None) if lengths is None else (None, lengths)

    def _as_lists(
        self, model: Any, X: Any, y: Any, lengths: ArrayLike | None, *, fitting: bool
    ) -> tuple[list[Any], list[NDArray[Any]] | None]:
        """Sequences and their labels as lists, which scikit-learn takes for samples."""
        if self._is_pipeline:
            sequences, counts = divide_rows(X, lengths)
            data, _ = join_sequences(sequences)
        else:
            data, counts = model._sequences(X, lengths, fitting=fitting)
        if fitting and self.block_length is not None:
            counts = block_lengths(counts, self.block_length)
        divided, _ = divide_rows(data, counts[counts > 0])
        if y is None:
            return divided, None
        labels, _ = join_labels(y)
        if len(labels) != len(data):
            raise ValueError(f"y must have one label for each of {len(data)} samples, got {len(labels)}")
        return divided, _divide(labels, counts)

    def _best(self) -> Any:
        check_is_fitted(self, "best_params_")
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("refit must be True for predictions, got False")
        return self.best_estimator_

    def _at_last_step(
        self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None
    ) -> tuple[Any, Any, ArrayLike | None]:
        """The best model, and the data as it takes them: the steps of a pipeline are gone through here."""
        best = self._best()
        lengths = sequence_lengths(X, lengths, groups)
        if not self._is_pipeline:
            return best, X, lengths
        parts, counts = divide_rows(X, lengths)
        return best[-1], transform_rows(best, join_sequences(parts)[0] if is_sequence_list(X) else X), counts

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes of the best classifier."""
        return np.asarray(self._best().classes_)

    def score(
        self, X: Any, y: Any = None, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> float:
        """Score of the best model on other data, by the `scoring` of the search.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        y : array of shape (n_samples,), or list of sequences of labels, optional
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `fit`.

        Returns
        -------
        score : float
        """
        best = self._best()
        y, lengths = self._labels_and_lengths(X, y, lengths, groups)
        if self._is_pipeline:
            sequences, labels = self._as_lists(None, X, y, lengths, fitting=False)
            return float(self.scorer_(SequencePipeline(best), sequences, labels))
        model = best.hmm_ if self._is_classifier else best
        sequences, labels = self._as_lists(model, X, y, lengths, fitting=False)
        return float(self.scorer_(best, sequences, labels))

    def predict(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> NDArray[Any]:
        """States or labels by the best model.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `fit`.

        Returns
        -------
        states : array of shape (n_samples,)
        """
        model, data, counts = self._at_last_step(X, lengths, groups)
        return np.asarray(model.predict(data, counts))

    def predict_proba(
        self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Posterior probabilities by the best model; arguments as in `predict`.

        Returns
        -------
        probabilities : array of shape (n_samples, n_states)
        """
        model, data, counts = self._at_last_step(X, lengths, groups)
        return np.asarray(model.predict_proba(data, counts))

    def decode(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        algorithm: str | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> tuple[float, NDArray[Any]]:
        """Log probability and states (or labels) by the best model; see `HiddenMarkovModel.decode`.

        Returns
        -------
        log_prob : float
        states : array of shape (n_samples,)
        """
        model, data, counts = self._at_last_step(X, lengths, groups)
        log_prob, states = model.decode(data, counts, algorithm)
        return float(log_prob), states


def _divide(array: NDArray[Any], lengths: NDArray[np.int64]) -> list[NDArray[Any]]:
    """The sequences of an array as a list; empty ones are left out."""
    return np.split(array, np.cumsum(lengths[lengths > 0])[:-1])
