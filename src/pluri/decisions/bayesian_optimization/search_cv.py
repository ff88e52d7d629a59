"""Hyper-parameters of an estimator by Bayesian optimisation of its cross-validated score.

A drop-in for scikit-learn's `RandomizedSearchCV`: the candidates come from a `BayesianOptimizer` instead of a generator
of random numbers; everything else (folds, scorers, groups, metadata, failures, refitting) is scikit-learn's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import get_tags

from pluri.decisions.bayesian_optimization.optimizer import BayesianOptimizer
from pluri.decisions.bayesian_optimization.space import Space
from pluri.validation import Allowed, Only, Whole, check_parameters
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import holding


class BayesSearchCV(BaseSearchCV, Estimator):
    """Search hyper-parameters by Bayesian optimisation; use it where `RandomizedSearchCV` is used.

    Parameters
    ----------
    estimator : estimator
    param_distributions : dict
        Names of parameters, and what they may be: `Real`, `Integer`, `Categorical`, a list of choices, or a
        distribution of `scipy.stats`.
    n_iter : int, default=10
        Settings that are tried.
    scoring : str, callable, list, tuple or dict, optional
        As in scikit-learn. With several metrics the one that `refit` names is maximised.
    n_jobs : int, optional
        Folds that are fitted at a time.
    refit : bool or str, default=True
        Whether to fit the best setting on all data at the end, or the metric by which it is the best.
    cv : int, splitter or iterable, optional
    verbose : int, default=0
    pre_dispatch : int or str, default="2*n_jobs"
    random_state : int, Generator, RandomState or None
    error_score : "raise" or float, default=nan
        Score of a setting whose fit fails; NaN counts as the worst so far. scikit-learn records no batch in which
        everything failed: settings of such a batch are fitted once more after one that succeeded, or with the last one.
    return_train_score : bool, default=False
    batch_size : int, default=1
        Settings that are chosen together after the initial ones, and fitted at the same time with `n_jobs`.
    acquisition : {"ei", "pi", "lcb", "thompson"}, default="ei"
    n_initial_points : int, optional
        Settings before there is a model, spread evenly: half of `n_iter`, at most the larger of 5 and the number of
        parameters plus 1, if None.

    Attributes
    ----------
    best_params_, best_score_, best_index_, best_estimator_, cv_results_, scorer_, n_splits_, refit_time_, multimetric_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from pluri.decisions import BayesSearchCV, Real
    >>> X, y = load_iris(return_X_y=True)
    >>> search = BayesSearchCV(SVC(), {"C": Real(1e-3, 1e3, log=True), "kernel": ["rbf", "linear"]}, random_state=0)
    >>> bool(search.fit(X, y).best_score_ > 0.97)
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_iter": Whole(1),
        "batch_size": Whole(1),
        "acquisition": Only("ei", "pi", "lcb", "thompson"),
        "n_initial_points": Whole(1) | Only(None),
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Mapping[str, Any],
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[..., int] = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: float | Literal["raise"] = np.nan,
        return_train_score: bool = False,
        batch_size: int = 1,
        acquisition: Literal["ei", "pi", "lcb", "thompson"] = "ei",
        n_initial_points: int | None = None,
    ) -> None:
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.random_state = random_state
        self.batch_size = batch_size
        self.acquisition = acquisition
        self.n_initial_points = n_initial_points
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return tags

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Try settings one after another, and fit the best on all data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
        **params
            For the fits, the scorers and the splitter, as in scikit-learn: ``groups``, ``sample_weight``, ...

        Returns
        -------
        self : object
        """
        check_parameters(self)
        Space.of(self.param_distributions, "param_distributions")
        return super().fit(X, y, **params)

    def _check_fitted_state(self) -> None:
        n_tried = len(getattr(self, "cv_results_", {}).get("params", ()))
        best = getattr(self, "best_index_", 0)
        if n_tried and not 0 <= best < n_tried:
            raise ValueError(f"best_index_ must be one of the {n_tried} settings of cv_results_, got {best}")
        for name, column in getattr(self, "cv_results_", {}).items():
            if len(column) != n_tried:
                raise ValueError(f"cv_results_[{name!r}] must have a value for each of {n_tried} settings")

    def _run_search(self, evaluate_candidates: Callable[[Sequence[dict[str, Any]]], Mapping[str, Any]]) -> None:
        """Ask for settings, have scikit-learn cross-validate them, tell their scores."""
        space = Space.of(self.param_distributions)
        n_settings = self.n_iter
        if space.n_points < n_settings:
            n_settings = int(space.n_points)
            warnings.warn(
                f"the space has {n_settings} points, fewer than n_iter={self.n_iter}: each is tried once", stacklevel=4
            )
        n_first = self.n_initial_points or max(1, min(n_settings // 2, max(5, space.n_dimensions + 1)))
        optimizer = BayesianOptimizer(
            dict(zip(space.names, space.dimensions)), acquisition=self.acquisition, n_initial_points=n_first,
            maximize=True, random_state=self.random_state,
        )  # fmt: skip
        tried, kept = 0, 0
        failed: list[dict[str, Any]] = []
        message, succeeded = "", False
        with holding(lambda: f"interrupted after {kept} settings, which are kept", having=lambda: kept > 0):
            while tried < n_settings:
                # The initial design does not wait for scores: all of it is one batch.
                points = optimizer.ask(min(n_first if tried == 0 else self.batch_size, n_settings - tried))
                tried += len(points)
                # After a success, or at the last chance; before, they would be fitted again and again.
                again = failed if succeeded or tried == n_settings else []
                try:
                    results = evaluate_candidates([*again, *points])
                except ValueError as error:
                    if "fits failed" not in str(error) or self.error_score == "raise":
                        raise
                    # scikit-learn does not record settings that all failed; they are recorded with later ones.
                    optimizer.tell(points, [np.nan] * len(points))
                    failed, message, succeeded = [*failed, *points], str(error), False
                    continue
                scores = results[f"mean_test_{self._objective(results)}"][-len(points) :]
                optimizer.tell(points, scores)
                failed, kept, succeeded = failed if not again else [], tried, True
        if not kept:
            raise ValueError(message)

    def _objective(self, results: Mapping[str, Any]) -> str:
        """The metric to be maximised."""
        if "mean_test_score" in results:
            return "score"
        if isinstance(self.refit, str):
            return self.refit
        names = sorted(name.removeprefix("mean_test_") for name in results if name.startswith("mean_test_"))
        raise ValueError(f"refit must name the metric to be maximised, one of {', '.join(names)}, got {self.refit!r}")
