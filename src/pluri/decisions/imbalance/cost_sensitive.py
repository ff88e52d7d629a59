r"""Decisions by what mistakes cost: the class of least expected cost instead of the most probable one.

.. math:: \hat y(x) = \arg\min_j \sum_k P(y = k \mid x) \, C_{kj}

With two classes and no cost for right answers the second is chosen from the probability
:math:`C_{01} / (C_{01} + C_{10})` on [1]_.

References
----------
.. [1] C. Elkan, "The foundations of cost-sensitive learning", IJCAI 2001.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags, column_or_1d, get_tags, indexable
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from pluri.mixtures import NaiveBayes
from pluri.validation import check_row_weight
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]


class CostSensitiveClassifier(MetaEstimatorMixin, ClassifierMixin, Estimator):
    """A classifier with probabilities that decides by costs.

    Its probabilities should be calibrated (``sklearn.calibration.CalibratedClassifierCV``), and those of a resampled
    training set be carried back (`correct_prior_shift`): costs are weighed with them as they are.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, optional
        A Gaussian `pluri.mixtures.NaiveBayes` if None.
    cost_matrix : array-like of shape (n_classes, n_classes), optional
        ``cost_matrix[k][j]``: what it costs to say class j when it is k, in the order of `classes_`. Right answers cost
        nothing and mistakes 1 if None.

    Attributes
    ----------
    estimator_ : classifier
        Fitted.
    cost_matrix_ : ndarray of shape (n_classes, n_classes)
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
        Unless rows are texts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from pluri.decisions import CostSensitiveClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> careful = CostSensitiveClassifier(LogisticRegression(), cost_matrix=[[0, 1], [9, 0]]).fit(X, y)
    >>> careful.predict([[1.0]]), LogisticRegression().fit(X, y).predict([[1.0]])
    (array([1]), array([0]))
    """

    estimator_: Any
    cost_matrix_: Array
    classes_: NDArray[Any]

    def __init__(self, estimator: Any = None, cost_matrix: ArrayLike | None = None) -> None:
        self.estimator = estimator
        self.cost_matrix = cost_matrix

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or texts
            Texts are for a pipeline that begins with a vectorizer.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Given to the classifier, which must take it.
        """
        model = NaiveBayes("gaussian") if self.estimator is None else clone(self.estimator)
        finite = not get_tags(model).input_tags.allow_nan
        if _are_texts(X):
            rows, labels = indexable(X, column_or_1d(y, warn=True))
        else:
            rows, labels = validate_data(self, X, y, accept_sparse="csr", dtype=None, ensure_all_finite=finite)
        options = {}
        if sample_weight is not None:
            if not has_fit_parameter(model, "sample_weight"):
                raise ValueError(f"sample_weight is not taken by {type(model).__name__}, got weights")
            options["sample_weight"] = check_row_weight(sample_weight, len(labels))
        model.fit(X if hasattr(X, "columns") else rows, labels, **options)
        if not hasattr(model, "predict_proba"):
            raise ValueError(f"estimator must have predict_proba, got {type(model).__name__}")
        costs = _checked_costs(self.cost_matrix, model.classes_)
        self.estimator_, self.cost_matrix_, self.classes_ = model, costs, model.classes_
        return self

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, as the classifier gives them."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    def expected_costs(self, X: Any) -> Array:
        """Expected cost of each answer: (n_samples, n_classes)."""
        return np.asarray(self.predict_proba(X) @ self.cost_matrix_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of least expected cost for each row; of equal ones the first."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.expected_costs(X).argmin(axis=1)])

    def _check_fitted_state(self) -> None:
        if not hasattr(self, "classes_"):
            return
        shape = (len(self.classes_), len(self.classes_))
        if np.shape(self.cost_matrix_) != shape or not np.isfinite(self.cost_matrix_).all():
            raise ValueError(f"cost_matrix_ must be finite, of shape {shape}, got shape {np.shape(self.cost_matrix_)}")
        if not np.array_equal(self.estimator_.classes_, self.classes_):
            raise ValueError("estimator_ must have the classes of classes_, got others")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(NaiveBayes("gaussian") if self.estimator is None else self.estimator)
        tags.input_tags = inner.input_tags
        tags.classifier_tags = inner.classifier_tags
        return tags


def _are_texts(X: Any) -> bool:
    """Whether rows are texts, not numbers."""
    if isinstance(X, list | tuple):
        return bool(X) and all(isinstance(row, str) for row in X)
    return getattr(X, "ndim", 2) == 1 and len(X) > 0 and all(isinstance(row, str) for row in X)


def _checked_costs(costs: ArrayLike | None, classes: NDArray[Any]) -> Array:
    number = len(classes)
    if costs is None:
        return 1.0 - np.eye(number)
    found = np.asarray(costs, dtype=np.float64)
    if found.shape != (number, number) or not np.isfinite(found).all():
        raise ValueError(
            f"cost_matrix must be finite with a row and a column for each of {number} classes, got shape {found.shape}"
        )
    return found
