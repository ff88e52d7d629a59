"""What a fitted naive Bayes classifier answers: probabilities of the classes, and why."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.mixtures.naive_bayes.feature_families import ROWS, BernoulliFeatures

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LogOdds:
    """Why a row was put into one class rather than another.

    Attributes
    ----------
    target, against : (n_samples,): the two classes
    prior : (n_samples,): log pi_target - log pi_against
    contributions : (n_samples, n_features): log p(x_j | target) - log p(x_j | against)
    """

    target: NDArray[Any]
    against: NDArray[Any]
    prior: Array
    contributions: Array

    @property
    def total(self) -> Array:
        """Log odds of target to against: the prior's part and all features'."""
        return self.prior + self.contributions.sum(axis=1)


class NaiveBayesQueries:
    """Methods of a fitted classifier: `_layout` has the families and their columns, `_estimates` what was learned."""

    classes_: NDArray[Any]
    n_features_in_: int
    _layout: list[tuple[Any, NDArray[np.int64]]]
    _estimates: list[Any]
    _log_class_prior: Array

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Log p(x, class), (n_samples, n_classes); -inf where a row is impossible."""
        X = self._checked(X)
        joint = np.tile(self._log_class_prior, (X.shape[0], 1))
        for (kind, columns), estimate in zip(self._layout, self._estimates):
            part = columns_of(X, columns)
            if isinstance(kind, BernoulliFeatures) or not sparse.issparse(part):
                joint += kind.log_likelihood(estimate, kind.prepare(part))
            else:
                for rows in blocks(X.shape[0]):
                    joint[rows] += kind.log_likelihood(estimate, kind.prepare(part[rows]))
        return joint

    def predict_log_proba(self, X: Any) -> Array:
        """Log posterior probability of each class; the class prior for rows that are impossible under every class."""
        joint = self.predict_joint_log_proba(X)
        impossible = np.isneginf(joint).all(axis=1)
        if impossible.any():
            warnings.warn(
                f"{int(impossible.sum())} rows are impossible under every class; they get the class prior",
                UserWarning,
                stacklevel=2,
            )
            joint[impossible] = self._log_class_prior
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> Array:
        """Posterior probability of each class, (n_samples, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each row."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def explain(self, X: Any, target: Any = None, against: Any = None) -> LogOdds:
        """What each feature says for one class against another, as log odds that add up.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        target, against : class labels, optional
            By default the most probable class of each row, and the most probable of the others.

        Examples
        --------
        >>> import numpy as np
        >>> from pluri.mixtures import NaiveBayes
        >>> X = np.array([[1, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
        >>> odds = NaiveBayes().fit(X, [0, 0, 0, 1, 1]).explain([[1, 1, 1]], target=0, against=1)
        >>> odds.contributions.round(3), odds.total.round(3)
        (array([[ 1.163, -0.629, -0.223]]), array([0.717]))
        """
        X = self._checked(X)
        if len(self.classes_) < 2:
            raise ValueError("explain needs at least two classes, got one")
        joint = self.predict_joint_log_proba(X)
        first = self._class_index("target", target, joint)
        others = joint.copy()
        others[np.arange(len(joint)), first] = -np.inf
        second = self._class_index("against", against, others)
        contributions = np.empty((X.shape[0], self.n_features_in_))
        rows = np.arange(X.shape[0])
        for (kind, columns), estimate in zip(self._layout, self._estimates):
            logs = kind.contributions(estimate, kind.prepare(columns_of(X, columns)))
            # Impossible under both classes: it says nothing for either.
            with np.errstate(invalid="ignore"):
                gap = logs[rows, first] - logs[rows, second]
            contributions[:, columns] = np.where(np.isnan(gap), 0.0, gap)
        prior = self._log_class_prior[first] - self._log_class_prior[second]
        return LogOdds(self.classes_[first], self.classes_[second], prior, contributions)

    def _class_index(self, name: str, label: Any, joint: Array) -> NDArray[np.int64]:
        if label is None:
            return joint.argmax(axis=1)
        where = np.flatnonzero(self.classes_ == label)
        if not len(where):
            raise ValueError(f"{name} must be one of the classes {self.classes_}, got {label!r}")
        return np.full(len(joint), where[0])

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)


def columns_of(X: Any, columns: NDArray[np.int64]) -> Any:
    """Some columns; X itself if these are all."""
    return X if len(columns) == X.shape[1] else X[:, columns]


def blocks(n_rows: int) -> Iterator[slice]:
    """Rows that are made dense at a time."""
    return (slice(begin, min(begin + ROWS, n_rows)) for begin in range(0, n_rows, ROWS))
