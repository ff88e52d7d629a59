"""What a fitted classifier of whole sequences can be asked: posteriors of the classes, by Bayes' rule in logarithms."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from pluri.sequences.labelled.sequence_labels import joined, labels_of_sequences, numbered
from pluri.validation import check_distributions
from pluri.validation.estimator import Estimator
from pluri.validation.sequences import BOUNDARIES, check_sequence_weight

Array = NDArray[np.float64]


class SequenceAnswers(ClassifierMixin, Estimator):
    """Answers of one hidden Markov model a class; `SequenceClassifier` learns them."""

    # With metadata routing, boundaries reach the model without being asked for: without them it would be wrong.
    __metadata_request__predict: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__predict_log_proba: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__score: ClassVar[dict[str, bool]] = BOUNDARIES

    classes_: NDArray[Any]
    hmms_: list[Any]
    class_prior_: Array
    vocabulary_: list[NDArray[Any]] | None

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return len(self.classes_)

    def log_likelihoods(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Log-likelihood of each sequence under the model of each class.

        Parameters
        ----------
        X : list of sequences, array of shape (n_sequences, n_steps, n_features), or (n_samples, n_features)
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `fit`; an array of samples is one sequence if neither is given.

        Returns
        -------
        log_likelihoods : array of shape (n_sequences, n_classes)
            -inf where the model of a class cannot produce the sequence.
        """
        check_is_fitted(self)
        rows, counts = joined(X, lengths, groups, fitting=False)
        if self.vocabulary_ is not None:
            rows = numbered(rows, tuple(self.vocabulary_), self.hmms_[0].unseen)
        return np.column_stack([model.score_sequences(rows, counts) for model in self.hmms_])

    def _log_joint(self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None) -> Array:
        """Return log p(class) + log p(sequence | class): (n_sequences, n_classes)."""
        with np.errstate(divide="ignore"):
            joint = self.log_likelihoods(X, lengths, groups=groups) + np.log(self.class_prior_)
        impossible = np.isneginf(joint).all(axis=1)
        if impossible.any():
            raise ValueError(
                f"sequence {int(np.argmax(impossible))} has probability zero under the models of all classes: use "
                "priors above 1 on their probabilities, or treat unseen symbols as missing"
            )
        return joint

    def predict(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> NDArray[Any]:
        """The most probable class of each sequence.

        Parameters
        ----------
        X : list of sequences, array of shape (n_sequences, n_steps, n_features), or (n_samples, n_features)
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `fit`; an array of samples is one sequence if neither is given.

        Returns
        -------
        labels : array of shape (n_sequences,)
        """
        best = self._log_joint(X, lengths, groups).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_log_proba(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Log posterior probability of each class; arguments as in `predict`.

        Returns
        -------
        log_probabilities : array of shape (n_sequences, n_classes)
        """
        joint = self._log_joint(X, lengths, groups)
        return np.asarray(joint - logsumexp(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Posterior probability of each class.

        A long sequence brings much evidence if the models are right, and nearly always zeros and ones: that they are
        not right is not among the uncertainties.

        Parameters
        ----------
        X : list of sequences, array of shape (n_sequences, n_steps, n_features), or (n_samples, n_features)
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `fit`; an array of samples is one sequence if neither is given.

        Returns
        -------
        probabilities : array of shape (n_sequences, n_classes)
        """
        return np.asarray(np.exp(self.predict_log_proba(X, lengths, groups=groups)))

    def decision_function(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Log joint probability of each class and the sequence; of two classes, the log odds of the second.

        Returns
        -------
        decision : array of shape (n_sequences, n_classes), or (n_sequences,) if there are two classes
        """
        joint = self._log_joint(X, lengths, groups)
        return joint[:, 1] - joint[:, 0] if len(self.classes_) == 2 else joint

    def score(
        self,
        X: Any,
        y: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Accuracy: share of the sequences whose class `predict` gets right.

        Parameters
        ----------
        X : list of sequences, array of shape (n_sequences, n_steps, n_features), or (n_samples, n_features)
        y : array of shape (n_sequences,), or (n_samples,)
            As in `fit`.
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `fit`.
        sample_weight : array of shape (n_sequences,), optional
            Weight of each sequence.

        Returns
        -------
        accuracy : float
        """
        rows, counts = joined(X, lengths, groups, fitting=False)
        labels = labels_of_sequences(y, counts)
        right = labels == self.predict(rows, counts)
        return float(np.average(right, weights=check_sequence_weight(sample_weight, counts)))

    def _check_fitted_state(self) -> None:
        if not hasattr(self, "hmms_"):
            return
        if len(self.hmms_) != len(self.classes_):
            raise ValueError(f"hmms_ must be {len(self.classes_)}, one for each class, got {len(self.hmms_)}")
        check_distributions("class_prior_", self.class_prior_)
