"""What learners from a pool share: the labelled rows, the model that is fitted to them, and the choice of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from pluri.decisions.active.batches import diverse_rows, top_rows
from pluri.decisions.active.oracle import check_known, check_labels, joined_labels
from pluri.decisions.active.pool_run import PoolRun
from pluri.decisions.active.rows import count_rows, first_missing, indexable, join
from pluri.decisions.active.strategies import Strategy, score_rows
from pluri.validation import (
    Allowed,
    Flag,
    Number,
    Only,
    RandomState,
    Whole,
    as_generator,
    check_count,
    check_parameters,
)
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def _answers(name: str) -> Any:
    """Available if the model inside has the method."""
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self._inner()), name))


class PoolLearner(PoolRun, MetaEstimatorMixin, Estimator):
    """What learners from a pool share: the labelled rows, the model that is fitted to them, and the choice of rows."""

    estimator_: Any
    classes: Any
    warm_start: bool
    random_state: RandomState

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "batch_size": Whole(1),
        "n_queries": Whole(0) | Only(None),
        "batches": Only("top", "diverse"),
        "min_score": Number() | Only(None),
        "warm_start": Flag(),
    }

    def _inner(self) -> Any:
        """The model, not fitted."""
        return LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator

    def _strategy(self) -> str | Strategy:
        raise NotImplementedError  # abstract

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._inner())
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Begin with labelled rows; what was taught before is forgotten.

        Parameters
        ----------
        X : rows, of any kind that the estimator learns from
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : object
        """
        check_parameters(self)
        self._check_estimator()
        self._strategy()  # a wrong one is said before the first label is asked for
        X = indexable(X)
        labels = self._checked(X, y)
        if is_classifier(self._inner()) and len(np.unique(labels.astype(str))) < 2:
            raise ValueError(f"y must have at least two classes to begin with, got one class: {labels.tolist()[0]!r}")
        for name in ("estimator_", "n_fitted_", "queried_", "history_", "pool_", "seed_"):
            self.__dict__.pop(name, None)
        self._keep(X, labels)
        self._refit()
        return self

    def teach(self, X: Any, y: Any) -> Self:
        """Add labelled rows, and learn from all so far.

        The rows are kept first: they are there even if Ctrl-C ends the fit. Classifiers are fitted as soon as two
        classes have been seen.

        Parameters
        ----------
        X : rows
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : object
        """
        check_parameters(self)
        self._check_estimator()
        self._strategy()  # a wrong one is said before the first label is asked for
        X = indexable(X)
        labels = self._checked(X, y)
        if hasattr(self, "y_"):
            X, labels = join(self.X_, X), joined_labels(self.y_, labels)
        self._keep(X, labels)
        self._learn()
        return self

    def query(self, X_pool: Any, n: int | None = None, *, return_scores: bool = False) -> Any:
        """Rows to have labelled next.

        Parameters
        ----------
        X_pool : rows without labels
        n : int, optional
            How many; `batch_size` by default, and all if there are fewer.
        return_scores : bool, default=False
            Whether to give the scores of all rows too.

        Returns
        -------
        ndarray of shape (n,)
            Numbers of the rows, the most useful first. While there is no model (no labels, or of one class only) rows
            that differ from each other, or random ones if they are not numbers.
        scores : ndarray of shape (n_pool,), if `return_scores`
        """
        check_parameters(self)
        n_wanted = self.batch_size if n is None else n
        check_count(n_wanted, "n")
        X_pool = indexable(X_pool)
        chosen, scores = self._choose(X_pool, n_wanted, self._generator())
        return (chosen, scores) if return_scores else chosen

    def scores(self, X_pool: Any) -> Array:
        """Scores of rows by the strategy; the larger, the sooner a row is to be labelled.

        Parameters
        ----------
        X_pool : rows without labels

        Returns
        -------
        ndarray of shape (n_pool,)
        """
        check_is_fitted(self, "estimator_")
        return self._scores(indexable(X_pool), self._generator())

    @_answers("predict")
    def predict(self, X: Any) -> Any:
        """What the model predicts for rows."""
        return self._model().predict(X)

    @_answers("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes by the model."""
        return self._model().predict_proba(X)

    def score(self, X: Any, y: Any) -> float:
        """Score of the model: accuracy of a classifier, R^2 of a regressor."""
        return float(self._model().score(X, y))

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes seen so far."""
        found: NDArray[Any] = self._model().classes_
        return found

    @property
    def n_features_in_(self) -> int:
        """Columns of X."""
        return int(self._model().n_features_in_)

    def _model(self) -> Any:
        if not hasattr(self, "estimator_"):
            seen = f"labels of one class so far ({self.y_[0]!r})" if hasattr(self, "y_") else "no labels so far"
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: it has {seen}")
        return self.estimator_

    def _check_estimator(self) -> None:
        inner = self._inner()
        if not hasattr(inner, "fit") or not hasattr(inner, "get_params"):
            raise ValueError(f"estimator must have fit and get_params, got {type(inner).__name__}")
        if self.warm_start and "warm_start" not in inner.get_params(deep=False):
            raise ValueError(f"warm_start must be False for {type(inner).__name__}, which has no warm_start")

    def _checked(self, X: Any, y: Any) -> NDArray[Any]:
        """Labels that fit the rows; rows without holes if the model cannot take them."""
        n_rows = count_rows(X, "X")
        labels = check_labels(y, n_rows)
        if n_rows == 0:
            raise ValueError("X must have at least one row, got none")
        if is_classifier(self._inner()):
            check_classification_targets(labels)
            check_known(labels, self.classes)
        self._refuse_missing(X, "X")
        return labels

    def _refuse_missing(self, X: Any, name: str) -> None:
        inner = self._inner()
        if get_tags(inner).input_tags.allow_nan:
            return
        row = first_missing(X)
        if row is not None:
            raise ValueError(
                f"{name} must have no missing values for {type(inner).__name__}, got NaN in row {row}: put an imputer "
                "before it in a pipeline"
            )

    def _keep(self, X: Any, y: NDArray[Any]) -> None:
        self.X_, self.y_ = X, y

    def _learn(self) -> None:
        """Fit the model to all labels, if there are any that it has not seen, and of two classes at least."""
        if not hasattr(self, "y_") or getattr(self, "n_fitted_", 0) == len(self.y_):
            return
        if is_regressor(self._inner()) or len(np.unique(self.y_.astype(str))) >= 2:
            self._refit()

    def _refit(self) -> None:
        self._generator()  # settles the seed
        if self.warm_start and hasattr(self, "estimator_"):
            model = self.estimator_
        else:
            model = clone(self._inner())
            if self.warm_start:
                model.set_params(warm_start=True)
        self.estimator_ = model.fit(self.X_, self.y_)
        self.n_fitted_ = len(self.y_)

    def _generator(self) -> np.random.Generator:
        """Of the number of labels so far, so that a run that is taken up again makes the same choices."""
        if not hasattr(self, "seed_"):
            self.seed_ = int(as_generator(self.random_state).integers(2**31))
        return np.random.default_rng([self.seed_, len(getattr(self, "y_", ()))])

    def _scores(self, X_pool: Any, rng: np.random.Generator) -> Array:
        self._refuse_missing(X_pool, "X_pool")
        return score_rows(self, X_pool, self._strategy(), rng)

    def _choose(self, X_pool: Any, n_wanted: int, rng: np.random.Generator) -> tuple[Indices, Array]:
        n_rows = count_rows(X_pool)
        if n_rows == 0:
            raise ValueError("X_pool must have at least one row, got none")
        if not hasattr(self, "estimator_"):
            scores = np.zeros(n_rows)
            if self._strategy() == "random":
                return top_rows(scores, n_wanted, rng), scores
            try:
                return diverse_rows(X_pool, scores, n_wanted, rng), scores
            except ValueError:
                return top_rows(scores, n_wanted, rng), scores
        scores = self._scores(X_pool, rng)
        if self.batches == "top" or n_wanted == 1:
            return top_rows(scores, n_wanted, rng), scores
        return diverse_rows(self._numbers(X_pool), scores, n_wanted, rng), scores

    def _numbers(self, X: Any) -> Any:
        """Rows as the last step of a pipeline sees them."""
        model = self.estimator_
        return model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X

    def _check_fitted_state(self) -> None:
        if not hasattr(self, "y_"):
            return
        if np.ndim(self.y_) != 1 or count_rows(self.X_, "X_") != len(self.y_):
            raise ValueError(f"y_ must have a label for each of the {count_rows(self.X_, 'X_')} rows of X_")
        queried = getattr(self, "queried_", np.empty(0, dtype=np.int64))
        if queried.dtype.kind not in "iu" or queried.ndim != 1 or (queried < 0).any() or len(queried) > len(self.y_):
            raise ValueError("queried_ must be numbers of rows, no more of them than labels")
