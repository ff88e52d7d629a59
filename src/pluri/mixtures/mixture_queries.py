"""Everything one can ask a fitted mixture: densities, components, samples, criteria, a page of text."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.mixtures.learning import BLOCK, MixtureParameters, MixtureProblem
from pluri.validation import RandomState, as_generator, weighted_mean, weighted_total

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Components, and features of each, that `summary` shows.
SUMMARY_ROWS, SUMMARY_FEATURES = 20, 6


class MixtureQueries:
    """Methods of a fitted mixture.

    A subclass gives `_model()`: its problem and parameters, checked, and `_check_rows`: checked data.
    """

    n_components: int
    random_state: Any
    converged_: bool
    n_iter_: int
    lower_bound_: float
    weights_: Array
    _check_rows: Callable[..., Any]

    def _model(self) -> tuple[MixtureProblem[Any], MixtureParameters[Any]]:
        raise NotImplementedError  # abstract

    def _posterior(self, X: Any) -> tuple[Array, Array]:
        """Responsibilities (n, k) and log densities (n,)."""
        check_is_fitted(self, "weights_")
        return self._posterior_of(self._check_rows(X, fitting=False))

    def _posterior_of(self, data: Any) -> tuple[Array, Array]:
        """The same of rows that were checked."""
        problem, params = self._model()
        k, n = self.n_components, data.shape[0]
        posterior, scores = np.empty((n, k)), np.empty(n)
        for begin in range(0, n, BLOCK):
            rows = slice(begin, min(begin + BLOCK, n))
            block, scores[rows] = problem.posterior(params, problem.family.prepare(data[rows]))
            posterior[rows] = block[:, :k]
        impossible = np.isneginf(scores)
        if impossible.any():
            posterior[impossible] = self.weights_
        return posterior, scores

    def score_samples(self, X: Any) -> Array:
        """Log density of each row: (n_samples,); of a row with missing values, that of the values that are there."""
        return self._posterior(X)[1]

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log density of the rows, weighted if `sample_weight` is given."""
        return weighted_mean(self.score_samples(X), sample_weight)

    def predict(self, X: Any) -> Integers:
        """Most probable component of each row: (n_samples,)."""
        return np.asarray(self._posterior(X)[0].argmax(axis=1), dtype=np.int64)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each component for each row: (n_samples, n_components)."""
        return self._posterior(X)[0]

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> tuple[NDArray[Any], Integers]:
        """Draw rows from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, numpy Generator, RandomState or None, default=None
            Instead of the model's own, with which an integer gives the same rows each time.

        Returns
        -------
        X : array of shape (n_samples, n_features)
        labels : int array of shape (n_samples,)
            The component of each row; rows are ordered by it.
        """
        problem, params = self._model()
        if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 1:
            raise ValueError(
                f"Invalid value for 'n_samples': {n_samples!r} . The sampling requires at least one sample."
            )
        rng = as_generator(self.random_state if random_state is None else random_state)
        counts = rng.multinomial(int(n_samples), params.weights / params.weights.sum())
        labels = np.repeat(np.arange(self.n_components), counts)
        return problem.family.sample(params.components, labels, rng), labels

    def _n_parameters(self) -> int:
        """Number of free parameters."""
        problem, params = self._model()
        return int(problem.family.n_free(params.components)) + self.n_components - 1

    def bic(self, X: Any, sample_weight: ArrayLike | None = None) -> float:
        """Bayesian information criterion on X; the lower the better.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        sample_weight : array of shape (n_samples,), optional
            Weight of each row; the number of rows is then the sum of the weights.
        """
        total, n_rows = weighted_total(self.score_samples(X), sample_weight)
        return float(-2.0 * total + self._n_parameters() * np.log(n_rows))

    def aic(self, X: Any, sample_weight: ArrayLike | None = None) -> float:
        """Akaike information criterion on X; the lower the better. For `sample_weight` see `bic`."""
        return -2.0 * weighted_total(self.score_samples(X), sample_weight)[0] + 2.0 * self._n_parameters()

    def summary(self) -> str:
        """The fitted mixture on one page of plain text: how the fit went, and the components, heaviest first."""
        check_is_fitted(self, "weights_")
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        lines = [f"{type(self).__name__}: {self.n_components} components"]
        if hasattr(self, "n_iter_"):
            state = "converged" if self.converged_ else "not converged"
            lines.append(f"{state} after {self.n_iter_} iterations; mean objective {self.lower_bound_:.6g}")
        lines += ["", f"{'component':<10s} {'weight':>8s} {'rows':>10s}  centre"]
        order = np.argsort(-np.asarray(self.weights_), kind="stable")
        rows = getattr(self, "occupancy_", np.full(len(order), np.nan))
        for j in order[:SUMMARY_ROWS]:
            center = self._center_texts(int(j))
            shown = ", ".join(f"{names[d] if names else d}: {text}" for d, text in enumerate(center[:SUMMARY_FEATURES]))
            more = ", ..." if len(center) > SUMMARY_FEATURES else ""
            lines.append(f"{j:<10d} {self.weights_[j]:8.4f} {rows[j]:10.1f}  {shown}{more}".rstrip())
        if len(order) > SUMMARY_ROWS:
            lines.append(f"... and {len(order) - SUMMARY_ROWS} more components")
        return "\n".join(lines)

    def _center_texts(self, component: int) -> list[str]:
        """What `summary` says of each column of a component: its expectation."""
        for name in ("means_", "probabilities_", "rates_"):
            values = getattr(self, name, None)
            if isinstance(values, np.ndarray):
                return [f"{value:.4g}" for value in values[component]]
        return []
