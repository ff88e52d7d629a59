r"""How different the members of an ensemble are, and what that is worth.

Of two members, let N_11 be the rows that both get right, N_10 and N_01 those that one alone does, N_00 none::

    disagreement    (N_10 + N_01) / N
    Q statistic     (N_11 N_00 - N_01 N_10) / (N_11 N_00 + N_01 N_10)      1: the same mistakes, 0: independent ones

For squared loss an average of members is better than its members by exactly how much they differ from it [1]_:

.. math:: (\bar f - y)^2 = \frac1M \sum_m (f_m - y)^2 - \frac1M \sum_m (f_m - \bar f)^2.

References
----------
.. [1] A. Krogh and J. Vedelsby, "Neural network ensembles, cross validation, and active learning", NIPS 1994.
.. [2] L. Kuncheva and C. Whitaker, "Measures of diversity in classifier ensembles", Machine Learning 51, 2003.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.ensemble._forest import BaseForest
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.utils.validation import check_is_fitted

Array = NDArray[np.float64]

#: What has members that do not predict y themselves.
PARTS = (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
)


@dataclass(frozen=True)
class DiversityReport:
    """What the members of an ensemble get wrong, and how differently.

    Attributes
    ----------
    names : tuple of str
    member_errors : (n_members,)
        Share of wrong answers; mean squared error for regression.
    ensemble_error : float
        The same of the vote, or of the mean.
    disagreement : (n_members, n_members)
        Share of rows that exactly one of two members gets right; NaN for regression.
    q_statistic : (n_members, n_members)
        NaN where it has no value (a member without mistakes), and for regression.
    mean_squared_error, squared_error, ambiguity : float
        Of members on average, of the mean of the members, and their difference: of probabilities (summed over classes)
        for classifiers, of predictions for regression; NaN if members give no probabilities.
    """

    names: tuple[str, ...]
    member_errors: Array
    ensemble_error: float
    disagreement: Array
    q_statistic: Array
    mean_squared_error: float
    squared_error: float
    ambiguity: float

    @property
    def mean_disagreement(self) -> float:
        """Mean over pairs of members."""
        return _mean_of_pairs(self.disagreement)

    @property
    def mean_q(self) -> float:
        """Mean over pairs of members whose Q statistic has a value."""
        return _mean_of_pairs(self.q_statistic)

    def summary(self) -> str:
        """A page of text."""
        lines = [
            f"{len(self.names)} members, errors {self.member_errors.min():.3f} to {self.member_errors.max():.3f} "
            f"(mean {self.member_errors.mean():.3f}); together {self.ensemble_error:.3f}",
            f"disagreement of pairs {self.mean_disagreement:.3f}, Q statistic {self.mean_q:.3f}",
            f"squared error {self.squared_error:.4f} = members' {self.mean_squared_error:.4f} "
            f"- ambiguity {self.ambiguity:.4f}",
        ]
        return "\n".join(lines)


def ensemble_diversity(ensemble: Any, X: Any, y: ArrayLike) -> DiversityReport:
    """How different the members of a fitted ensemble are on some rows.

    Parameters
    ----------
    ensemble : fitted ensemble of scikit-learn, or list of fitted estimators
        Bagging, forests, AdaBoost, voting, stacking: whatever has ``estimators_`` that predict y themselves (trees of
        gradient boosting, which correct each other, and classifiers of one class against others do not).
    X : array-like of shape (n_samples, n_features)
        Rows that the members were not fitted to.
    y : array-like of shape (n_samples,)

    Returns
    -------
    DiversityReport
        The ensemble error is that of the majority (or mean) of the members, whatever the ensemble itself does.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from pluri.decisions import ensemble_diversity
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(10, max_depth=2, random_state=0).fit(X[::2], y[::2])
    >>> report = ensemble_diversity(forest, X[1::2], y[1::2])
    >>> bool(report.squared_error <= report.mean_squared_error)
    True
    """
    members, names, columns = _members(ensemble)
    rows = np.asarray(X) if any(one is not None for one in columns) else X
    parts = [rows if one is None else rows[:, one] for one in columns]
    classes = getattr(ensemble, "classes_", None)
    given = np.asarray(y)
    coded = _coded(ensemble, members)
    predictions = np.array([_labels(member, part, classes, coded) for member, part in zip(members, parts)])
    if not is_classifier(members[0]):
        return diversity_of_predictions(predictions, given, names=names, classify=False)
    probabilities = None
    if all(hasattr(member, "predict_proba") for member in members):
        known = np.unique(given) if classes is None else np.asarray(classes)
        probabilities = np.array([_aligned(member, part, known, coded) for member, part in zip(members, parts)])
        return diversity_of_predictions(predictions, given, probabilities, names=names, classes=known)
    return diversity_of_predictions(predictions, given, names=names)


def diversity_of_predictions(
    predictions: ArrayLike,
    y: ArrayLike,
    probabilities: ArrayLike | None = None,
    *,
    names: tuple[str, ...] | None = None,
    classes: ArrayLike | None = None,
    classify: bool = True,
) -> DiversityReport:
    """The same from what the members have said.

    Parameters
    ----------
    predictions : array-like of shape (n_members, n_samples)
    y : array-like of shape (n_samples,)
    probabilities : array-like of shape (n_members, n_samples, n_classes), optional
        In the order of `classes`.
    names : tuple of str, optional
    classes : array-like of shape (n_classes,), optional
        Sorted labels of `y` by default.
    classify : bool, default=True
        False for regression.

    Examples
    --------
    >>> from pluri.decisions import diversity_of_predictions
    >>> report = diversity_of_predictions([[0, 0, 1, 1], [0, 1, 1, 0]], [0, 0, 1, 1])
    >>> report.disagreement
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    said, truth = np.asarray(predictions), np.asarray(y)
    if said.ndim != 2 or not said.size or truth.shape != (said.shape[1],):
        raise ValueError(
            f"predictions must have shape (n_members, n_samples) and y (n_samples,), got {said.shape} and {truth.shape}"
        )
    called = names or tuple(str(number) for number in range(len(said)))
    nothing = np.full((len(said), len(said)), np.nan)
    if not classify:
        values = said.astype(np.float64)
        errors = ((values - truth) ** 2).mean(axis=1)
        together = float(((values.mean(axis=0) - truth) ** 2).mean())
        ambiguity = float(((values - values.mean(axis=0)) ** 2).mean())
        return DiversityReport(called, errors, together, nothing, nothing, float(errors.mean()), together, ambiguity)
    right = said == truth
    wrong_vote = float((_majority(said) != truth).mean())
    disagreement, q_statistic = _pairs(right)
    squared = (np.nan, np.nan, np.nan)
    if probabilities is not None:
        shares = np.asarray(probabilities, dtype=np.float64)
        labels = np.unique(truth) if classes is None else np.asarray(classes)
        if shares.shape != (*said.shape, len(labels)):
            raise ValueError(f"probabilities must have shape {(*said.shape, len(labels))}, got {shares.shape}")
        target = (truth[:, None] == labels).astype(np.float64)
        middle = shares.mean(axis=0)
        squared = (
            float(((shares - target) ** 2).sum(axis=2).mean()),
            float(((middle - target) ** 2).sum(axis=1).mean()),
            float(((shares - middle) ** 2).sum(axis=2).mean()),
        )
    return DiversityReport(called, 1.0 - right.mean(axis=1), wrong_vote, disagreement, q_statistic, *squared)


def _pairs(right: NDArray[np.bool_]) -> tuple[Array, Array]:
    yes = right.astype(np.float64)
    both, neither = yes @ yes.T, (1.0 - yes) @ (1.0 - yes).T
    first, second = yes @ (1.0 - yes).T, (1.0 - yes) @ yes.T
    same, other = both * neither, first * second
    with np.errstate(invalid="ignore"):
        q_statistic = np.where(same + other > 0, (same - other) / (same + other), np.nan)
    return (first + second) / right.shape[1], q_statistic


def _majority(said: NDArray[Any]) -> NDArray[Any]:
    """The most frequent answer for each row, of equally frequent ones the first in order."""
    labels, codes = np.unique(said, return_inverse=True)
    votes = np.array([(codes.reshape(said.shape) == code).sum(axis=0) for code in range(len(labels))])
    return labels[votes.argmax(axis=0)]


def _members(ensemble: Any) -> tuple[list[Any], tuple[str, ...], list[Any]]:
    """Members, their names, and the columns that each sees."""
    if isinstance(ensemble, list | tuple):
        found, names, columns = list(ensemble), None, None
    else:
        check_is_fitted(ensemble)
        name = type(ensemble).__name__
        if not hasattr(ensemble, "estimators_"):
            raise TypeError(f"ensemble must have estimators_, or be a list of models, got {name}")
        if isinstance(ensemble, PARTS):
            raise TypeError(
                f"ensemble must have members that each predict y, got {name}, whose members are parts of it"
            )
        found = list(np.ravel(np.asarray(ensemble.estimators_, dtype=object)))
        given = getattr(ensemble, "estimators", None)
        names = [name for name, one in given if not isinstance(one, str)] if isinstance(given, list) else None
        columns = getattr(ensemble, "estimators_features_", None)
    if not found:
        raise ValueError("ensemble must have members, got none")
    called = names if names is not None and len(names) == len(found) else [str(number) for number in range(len(found))]
    return found, tuple(called), list(columns) if columns is not None else [None] * len(found)


def _coded(ensemble: Any, members: list[Any]) -> bool:
    """Whether members speak of the numbers of classes: in all ensembles of scikit-learn but AdaBoost."""
    classes = getattr(ensemble, "classes_", None)
    if classes is None or isinstance(ensemble, AdaBoostClassifier):
        return False
    known = isinstance(ensemble, BaggingClassifier | BaseForest | VotingClassifier | StackingClassifier)
    own = [member.classes_ for member in members if hasattr(member, "classes_")]
    return known or not all(np.isin(one, classes).all() for one in own)


def _labels(member: Any, X: Any, classes: Any, coded: bool) -> NDArray[Any]:
    """What a member says."""
    said = np.asarray(member.predict(X))
    return np.asarray(np.asarray(classes)[said.astype(np.int64)]) if coded else said


def _aligned(member: Any, X: Any, known: NDArray[Any], coded: bool) -> Array:
    """Probabilities in the order of all classes; a member may not have seen some."""
    shares = np.asarray(member.predict_proba(X), dtype=np.float64)
    own = np.asarray(member.classes_)
    own = known[own.astype(np.int64)] if coded else own
    whole = np.zeros((len(shares), len(known)))
    for place, label in enumerate(own):
        whole[:, np.flatnonzero(known == label)] = shares[:, [place]]
    return whole


def _mean_of_pairs(matrix: Array) -> float:
    upper = matrix[np.triu_indices(len(matrix), 1)]
    known = upper[~np.isnan(upper)]
    return float(known.mean()) if known.size else float("nan")
