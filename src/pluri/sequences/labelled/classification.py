"""What a fitted classifier of sequences can be asked: labels, their probabilities, and how often they are right."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from pluri.sequences.hmm import HiddenMarkovModel
from pluri.sequences.labelled.labels import find_unknown, join_labels
from pluri.validation.estimator import Estimator
from pluri.validation.sequences import BOUNDARIES, is_sequence_list, may_be_rows, sequence_lengths

Array = NDArray[np.float64]


class SequenceClassification(ClassifierMixin, Estimator):
    """Answers of a hidden Markov model in the names of the classes; `HMMClassifier` learns it."""

    # With metadata routing, boundaries reach the model without being asked for: without them it would be wrong.
    __metadata_request__predict: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__score: ClassVar[dict[str, bool]] = BOUNDARIES

    unknown: Any
    classes_: NDArray[Any]
    hmm_: HiddenMarkovModel

    def predict(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> NDArray[Any]:
        """Labels of the samples: the most probable path, or what else the model's `algorithm` says.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `fit`; one sequence if neither is given.

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[self.hmm_.predict(X, lengths, groups=groups)])

    def decode(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        algorithm: str | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> tuple[float, NDArray[Any]]:
        """Log probability and labels; see the model's `decode`.

        Returns
        -------
        log_prob : float
        labels : array of shape (n_samples,)
        """
        check_is_fitted(self)
        log_prob, states = self.hmm_.decode(X, lengths, algorithm, groups=groups)
        return log_prob, np.asarray(self.classes_[states])

    def predict_proba(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Posterior probability of each class at each step, given the whole sequence.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `fit`; one sequence if neither is given.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.hmm_.predict_proba(X, lengths, groups=groups)

    def score(
        self,
        X: Any,
        y: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Accuracy: share of the samples of known label that `predict` gets right.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        y : array of shape (n_samples,), or list of sequences of labels
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `fit`.
        sample_weight : array of shape (n_samples,) or (n_sequences,), optional
            Weight of each sample, or of each sequence, which then is that of all its samples.

        Returns
        -------
        accuracy : float
        """
        labels, label_lengths = join_labels(y)
        if label_lengths is None and may_be_rows(X) and len(labels) == len(X) > 0:
            X = np.array(X)
        lengths = sequence_lengths(X, lengths, groups)
        if lengths is None and label_lengths is not None and not is_sequence_list(X):
            lengths = label_lengths
        predicted = self.predict(X, lengths)
        if len(labels) != len(predicted):
            raise ValueError(f"y must have one label for each of {len(predicted)} samples, got {len(labels)}")
        missing, marked = find_unknown(labels, self.unknown)
        known = ~(missing | marked)
        known[marked] = np.isin(labels[marked], self.classes_)
        if not known.any():
            raise ValueError("y must have at least one known label, got none")
        right = labels[known] == predicted[known]
        if sample_weight is None:
            return float(right.mean())
        weight = np.asarray(sample_weight, dtype=np.float64)
        if weight.shape != labels.shape:
            counts = self.hmm_._observations(X, lengths)[1]
            if weight.shape != counts.shape:
                raise ValueError(
                    f"sample_weight must have one weight for each of {len(labels)} samples (or of {len(counts)} "
                    f"sequences), got shape {weight.shape}"
                )
            weight = np.repeat(weight, counts)
        if not np.isfinite(weight).all() or (weight < 0).any() or not weight[known].any():
            raise ValueError("sample_weight must be finite and non-negative, with a positive one among known labels")
        return float(np.average(right, weights=weight[known]))

    def _check_fitted_state(self) -> None:
        if hasattr(self, "hmm_") and len(self.classes_) != self.hmm_.n_components:
            raise ValueError(f"classes_ must be {self.hmm_.n_components}, one for each state, got {len(self.classes_)}")
