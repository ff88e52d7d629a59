"""What a finished cross-validated search has tried, as evaluations of an optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self


class FromSearches:
    """An optimizer that begins with the settings and scores of a search."""

    @classmethod
    def from_search(cls, search: Any, *, score: str | None = None, **settings: Any) -> Self:
        """An optimizer that was told every setting that a search has tried, and its score.

        It can be asked what is expected elsewhere (`predict`), drawn, or asked for the next settings.

        Parameters
        ----------
        search : `pluri.decisions.BayesSearchCV` or scikit-learn's RandomizedSearchCV
            Fitted; its `param_distributions` are a dict.
        score : str, optional
            Of several metrics the one to take; that of `refit` by default.
        **settings
            Of the optimizer: ``random_state``, ``acquisition``, ...

        Returns
        -------
        BayesianOptimizer

        Examples
        --------
        >>> from scipy.stats import loguniform
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.model_selection import RandomizedSearchCV
        >>> from sklearn.svm import SVC
        >>> from pluri.decisions import BayesianOptimizer
        >>> X, y = load_iris(return_X_y=True)
        >>> search = RandomizedSearchCV(SVC(), {"C": loguniform(1e-3, 1e3)}, n_iter=6, random_state=0).fit(X, y)
        >>> optimizer = BayesianOptimizer.from_search(search, random_state=0)
        >>> optimizer.best_params_ == search.best_params_, sorted(optimizer.ask())
        (True, ['C'])
        """
        if "maximize" in settings:
            raise ValueError("maximize must not be given: scores of a search are maximised")
        results, space = getattr(search, "cv_results_", None), getattr(search, "param_distributions", None)
        if not isinstance(results, Mapping) or not isinstance(space, Mapping):
            raise ValueError(
                "search must be a fitted search whose param_distributions are a dict, "
                f"got {type(search).__name__} without them"
            )
        metric = score or (search.refit if search.multimetric_ and isinstance(search.refit, str) else "score")
        if f"mean_test_{metric}" not in results:
            known = sorted(name.removeprefix("mean_test_") for name in results if name.startswith("mean_test_"))
            raise ValueError(f"score must be one of {', '.join(known)}, got {metric!r}")
        optimizer = cls(space, maximize=True, **settings)  # type: ignore[call-arg]
        optimizer.tell(list(results["params"]), [float(one) for one in results[f"mean_test_{metric}"]])  # type: ignore[attr-defined]
        return optimizer
