"""A committee of models that learned from different resamples, and the learner that asks where they disagree.

References
----------
Seung, H. S., Opper, M. & Sompolinsky, H. (1992). Query by committee. COLT.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from pluri.decisions.active.oracle import check_labels
from pluri.decisions.active.pool_learner import PoolLearner
from pluri.decisions.active.rows import count_rows, indexable, take
from pluri.decisions.active.strategies import Strategy
from pluri.validation import Allowed, Flag, Only, RandomState, Whole, as_generator, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]


class Committee(ClassifierMixin, MetaEstimatorMixin, Estimator):
    """Copies of a classifier, each fitted to its own resample of the rows; together they predict by their mean.

    Unlike scikit-learn's `BaggingClassifier` every resample has rows of every class, takes rows of any kind (texts,
    sequences), and the members can be asked one by one.

    Parameters
    ----------
    estimator : classifier, default=None
        With ``predict_proba``; by default a logistic regression.
    n_members : int, default=5
    bootstrap : bool, default=True
        Whether members learn from rows drawn with replacement; otherwise all learn from all rows, and differ by their
        `random_state` alone.
    random_state : int, numpy Generator, RandomState or None, default=None

    Attributes
    ----------
    estimators_ : list of classifiers
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions import Committee, committee_scores
    >>> X = np.array([[-2.0], [-1.5], [-0.2], [0.3], [1.0], [2.5]])
    >>> committee = Committee(random_state=0).fit(X, [0, 0, 0, 1, 1, 1])
    >>> committee.predict_proba_samples([[0.0], [9.0]]).shape
    (5, 2, 2)
    >>> near, far = committee_scores(committee.predict_proba_samples([[0.0], [9.0]]))
    >>> bool(near > far)
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {"n_members": Whole(1), "bootstrap": Flag()}

    def __init__(
        self,
        estimator: Any = None,
        n_members: int = 5,
        *,
        bootstrap: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.n_members = n_members
        self.bootstrap = bootstrap
        self.random_state = random_state

    def _inner(self) -> Any:
        return LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._inner())
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : rows, of any kind that the estimator learns from
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : object
        """
        check_parameters(self)
        inner = self._inner()
        if not is_classifier(inner):
            raise ValueError(f"estimator must be a classifier, got {type(inner).__name__}")
        varied = [name for name in inner.get_params() if name == "random_state" or name.endswith("__random_state")]
        if not self.bootstrap and not varied and self.n_members > 1:
            raise ValueError(
                f"bootstrap must be True for {type(inner).__name__}, which has no random_state: all members would be "
                "the same"
            )
        X = indexable(X)
        labels = check_labels(y, count_rows(X, "X"))
        if not len(labels):
            raise ValueError("X must have at least one row, got none")
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must have at least two classes, got one class: {classes.tolist()[0]!r}")
        rng, members = as_generator(self.random_state), []
        for _ in range(self.n_members):
            rows = resampled_rows(codes, rng) if self.bootstrap else np.arange(len(codes))
            member = clone(inner).set_params(**{name: int(rng.integers(2**31)) for name in varied})
            members.append(member.fit(take(X, rows), labels[rows]))
        self.estimators_, self.classes_ = members, classes
        if hasattr(members[0], "n_features_in_"):
            self.n_features_in_ = members[0].n_features_in_
        return self

    def predict_proba_samples(self, X: Any) -> Array:
        """Probabilities of the classes by each member.

        Parameters
        ----------
        X : rows

        Returns
        -------
        ndarray of shape (n_members, n_samples, n_classes)
        """
        check_is_fitted(self, "estimators_")
        return np.stack([np.asarray(member.predict_proba(X), dtype=np.float64) for member in self.estimators_])

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, the mean of those of the members."""
        return np.asarray(self.predict_proba_samples(X).mean(axis=0))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        found: NDArray[Any] = self.classes_[best]
        return found

    def _check_fitted_state(self) -> None:
        for member in getattr(self, "estimators_", ()):
            if not np.array_equal(member.classes_, self.classes_):
                raise ValueError("estimators_ must have the classes of classes_, got others")


def resampled_rows(codes: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
    """As many rows drawn with replacement, in which no class is missing.

    A class that was not drawn takes the place of a row whose class was drawn more than once.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions.active.committee import resampled_rows
    >>> codes = np.array([0, 0, 0, 0, 0, 1])
    >>> all(1 in codes[resampled_rows(codes, np.random.default_rng(seed))] for seed in range(20))
    True
    """
    n_rows = len(codes)
    rows = rng.integers(n_rows, size=n_rows)
    for missing in np.setdiff1d(codes, codes[rows]):
        counts = np.bincount(codes[rows], minlength=int(codes.max()) + 1)
        spare = np.flatnonzero(counts[codes[rows]] > 1)
        rows[rng.choice(spare)] = rng.choice(np.flatnonzero(codes == missing))
    return np.asarray(rows, dtype=np.int64)


class QueryByCommittee(PoolLearner):
    """A learner that asks for the rows about which the members of a committee disagree most.

    Parameters
    ----------
    estimator : classifier, default=None
        Of which the members are copies; by default a logistic regression.
    n_members : int, default=5
    disagreement : {"kl", "vote_entropy"}, default="kl"
        See :func:`committee_scores`. In the published experiment with digits the vote entropy of five members did not
        beat random choice: five votes have few different values.
    bootstrap : bool, default=True
        Whether members learn from resamples; see `Committee`.
    batch_size, n_queries, batches, min_score, classes, checkpoint, random_state, verbose
        As in `ActiveLearner`.

    Attributes
    ----------
    estimator_ : Committee
    X_, y_, queried_, history_ : as in `ActiveLearner`

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions import QueryByCommittee
    >>> X = np.linspace(-3, 3, 61)[:, None]
    >>> y = (X[:, 0] > 0.75).astype(int)
    >>> learner = QueryByCommittee(n_queries=10, random_state=0).fit(X[::12], y[::12])
    >>> learner.run(np.delete(X, np.s_[::12], 0), np.delete(y, np.s_[::12])).score(X, y) > 0.9
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **PoolLearner._parameters,
        "n_members": Whole(2),
        "disagreement": Only("kl", "vote_entropy"),
        "bootstrap": Flag(),
    }
    warm_start = False

    def __init__(
        self,
        estimator: Any = None,
        n_members: int = 5,
        disagreement: str = "kl",
        *,
        bootstrap: bool = True,
        batch_size: int = 1,
        n_queries: int | None = None,
        batches: str = "top",
        min_score: float | None = None,
        classes: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_members = n_members
        self.disagreement = disagreement
        self.bootstrap = bootstrap
        self.batch_size = batch_size
        self.n_queries = n_queries
        self.batches = batches
        self.min_score = min_score
        self.classes = classes
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def _inner(self) -> Any:
        seed = getattr(self, "seed_", None)
        return Committee(self.estimator, self.n_members, bootstrap=self.bootstrap, random_state=seed)

    def _strategy(self) -> str | Strategy:
        return self.disagreement
