"""Regression of counts whose shape is learned: under- and over-dispersed counts by one convex problem."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.dynamics.counts.distribution import GeneralizedCount
from pluri.dynamics.counts.regression_fit import RegressionObjective, fit_regression
from pluri.dynamics.counts.shapes import (
    DISTRIBUTIONS,
    SHAPES,
    ShapeFunction,
    bent_shape,
    free_shape,
    named_shape,
)
from pluri.dynamics.counts.survey import MOST_COUNTS
from pluri.dynamics.counts.tables import continued, cut_off_count, scored_count
from pluri.validation import Allowed, Number, Only, Stored, Whole, check_parameters, check_row_weight
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]


class ImpossibleCountWarning(UserWarning):
    """Counts that the model holds for impossible make a log-likelihood -inf."""


class GeneralizedCountRegression(RegressorMixin, Estimator):
    r"""Count regression with a learned shape: y ~ GC(x coef, g), p(y) proportional to exp(y x coef + g(y)) / y!.

    A concave g is less variance than mean, a convex one more, a linear one Poisson. There is no column of ones: the
    intercept is the linear part of g.

    Parameters
    ----------
    distribution : {"general", "poisson", "com_poisson", "negative_binomial", "bernoulli"}, default="general"
        "general" learns a value g(k) for each count; the others are its special cases, whose g has one or two
        parameters. The negative binomial is in its natural parameter, the log probability of one more event.
    shape : {None, "concave", "convex"}, default=None
        Constraint on a general g.
    smoothness : float, default=1e-2
        Pulls a general g towards a line, which is Poisson: kappa / (n / (K + 1)), where kappa is the weight of the
        squared second differences of g, n the number of samples (or the sum of their weights) and K the largest count.
        With 0, g is -inf at counts that were not seen.
    alpha : float, default=0.0
        alpha / 2 times the squared coefficients is subtracted from the log-likelihood.
    max_count : int, optional
        Largest possible count K: larger ones in other data have probability 0, and a score of -inf. By default `g_` is
        learned up to the largest count in y for "general", and to three times that plus 20 for the others; where
        larger counts are scored it goes on as a line, a Poisson tail, or as the formula of the distribution has it.
        "bernoulli" is 0 or 1, and a "general" g without `smoothness` ends at the largest count in y.
    max_iter, tol : int and float, default=500 and 1e-8
        Most iterations, and the gradient of the mean log-likelihood (of columns scaled to mean square one) at which
        the ascent stops.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    g_ : array of shape (K + 1,)
        The shape, with ``g_[0] == 0``.
    intercept_ : float
        ``g_[1]``: log odds of one event against none where all features are 0. For Poisson and COM-Poisson it is the
        intercept of the log rate.
    shape_parameter_ : float
        Exponent of a COM-Poisson distribution, size of a negative binomial one, NaN otherwise.
    max_count_ : int
        K: where `g_` ends.
    objective_ : float
        Penalised log-likelihood.
    n_iter_, converged_ : int and bool
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.dynamics import GeneralizedCount, GeneralizedCountRegression
    >>> rng = np.random.default_rng(0)
    >>> X, k = rng.normal(size=(2000, 1)), np.arange(13)
    >>> truth = GeneralizedCount(0.5 * X[:, 0], 1.0 * k - 0.15 * k * (k - 1))  # less variance than mean
    >>> y = truth.sample(random_state=rng)[0]
    >>> model = GeneralizedCountRegression().fit(X, y)
    >>> bool(abs(model.coef_[0] - 0.5) < 0.1), bool(np.diff(model.g_, 2)[:3].max() < -0.1)
    (True, True)
    >>> model.predict_proba(X[:2]).shape == (2, model.max_count_ + 1)
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "distribution": Only(*DISTRIBUTIONS),
        "shape": Only(*SHAPES),
        "smoothness": Number(least=0),
        "alpha": Number(least=0),
        "max_count": Whole(1) | Only(None),
        "tol": Number(above=0),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "coef_": Stored("n_features_in_"),
        "g_": Stored("max_count_+1", finite=False),
    }
    _input_tags: ClassVar[Mapping[str, bool]] = {"sparse": True}

    def __init__(
        self,
        distribution: str = "general",
        *,
        shape: str | None = None,
        smoothness: float = 1e-2,
        alpha: float = 0.0,
        max_count: int | None = None,
        max_iter: int = 500,
        tol: float = 1e-8,
    ) -> None:
        self.distribution = distribution
        self.shape = shape
        self.smoothness = smoothness
        self.alpha = alpha
        self.max_count = max_count
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Maximise the penalised likelihood.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Counts: 0, 1, 2, ...
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self : object
        """
        check_parameters(self)
        if self.shape is not None and self.distribution != "general":
            raise ValueError(f"shape must be None when distribution is {self.distribution!r}, got {self.shape!r}")
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, accept_sparse="csr")
        counts = check_whole_counts(y, "y")
        weight = check_row_weight(sample_weight, len(counts))
        weight = np.ones(len(counts)) if weight is None else weight
        kept = weight > 0
        X, counts, weight = X[kept], counts[kept], weight[kept]
        K = self._largest(int(counts.max()))
        kappa = self.smoothness * weight.sum() / (K + 1) if self.distribution == "general" else 0.0
        shape = self._shape(counts, float(np.average(counts, weights=weight)), K)
        fitted = fit_regression(
            RegressionObjective(X, counts, weight, shape, kappa, self.alpha), max_iter=self.max_iter, tol=self.tol
        )
        self.coef_, self.g_, self.max_count_ = fitted.coefficients, fitted.g, K
        self.intercept_ = float(self.g_[1]) if K else -np.inf
        self.shape_parameter_ = np.nan
        if self.distribution == "com_poisson" and K:
            self.shape_parameter_ = 1.0 - float(fitted.phi[1])
        elif self.distribution == "negative_binomial" and K:
            self.shape_parameter_ = float(np.exp(fitted.phi[1]))
        self.n_iter_, self.converged_, self.objective_ = max(fitted.n_iter, 1), fitted.converged, fitted.objective
        if not fitted.converged:
            warnings.warn(
                f"the ascent did not converge in {fitted.n_iter} iterations: raise max_iter, tol or alpha",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _largest(self, seen: int) -> int:
        """Largest possible count."""
        if self.distribution == "bernoulli":
            allowed = 1
        elif self.max_count is not None:
            allowed = int(self.max_count)
        elif self.distribution != "general":
            allowed = cut_off_count(seen)
        else:
            allowed = seen
        if seen > allowed:
            raise ValueError(f"y must hold counts up to {allowed} (max_count, or 1 for bernoulli), got {seen}")
        if allowed > MOST_COUNTS:
            raise ValueError(
                f"y must hold counts small enough for a table of up to {MOST_COUNTS} of them, got {seen}, which needs "
                f"{allowed}: count in shorter bins, or give a smaller max_count"
            )
        return allowed if seen else 0

    def _shape(self, seen: NDArray[np.int64], mean: float, K: int) -> ShapeFunction:
        slope = np.log(mean) if K else 0.0
        if not K:  # nothing ever happened: the support is 0
            return free_shape(np.ones(1, dtype=bool), slope)
        if self.distribution != "general":
            return named_shape(self.distribution, K, slope)
        if self.shape is not None:
            return bent_shape(K, slope, self.shape)
        support = np.ones(K + 1, dtype=bool)
        if self.smoothness == 0:
            support[1:] = np.bincount(seen, minlength=K + 1)[1:] > 0
        return free_shape(support, slope)

    # Questions --------------------------------------------------------------------------------------------------

    def distribution_of(self, X: Any) -> GeneralizedCount:
        """Distribution of the counts of each row."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        return GeneralizedCount(X @ self.coef_, self.g_)

    def predict(self, X: Any) -> Array:
        """Expected count of each row: (n_samples,)."""
        return self.distribution_of(X).mean()

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the counts 0, ..., K: (n_samples, K + 1)."""
        return self.distribution_of(X).probabilities()

    def predict_quantile(self, X: Any, quantiles: ArrayLike = (0.05, 0.5, 0.95)) -> NDArray[np.int64]:
        """Quantiles of the count of each row: (n_samples, n_quantiles)."""
        q = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        distribution = self.distribution_of(X)
        return np.column_stack([distribution.ppf(share) for share in q])

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.int64]:
        """Counts between which that of a row lies with at least this probability: (n_samples, 2)."""
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage!r}")
        return self.predict_quantile(X, [(1 - coverage) / 2, (1 + coverage) / 2])

    def dispersion(self, X: Any) -> Array:
        """Variance over mean of the count of each row: below 1 under-dispersed, above 1 over-dispersed."""
        distribution = self.distribution_of(X)
        return np.asarray(distribution.var() / np.maximum(distribution.mean(), np.finfo(float).tiny))

    def log_likelihood(self, X: Any, y: Any) -> Array:
        """Log-likelihood of each count; -inf above `max_count`, or where it is impossible."""
        distribution = self.distribution_of(X)
        counts = check_whole_counts(np.asarray(y), "y")
        if counts.shape != distribution.theta.shape:
            raise ValueError(f"y must have one count for each of {len(distribution.theta)} rows, got {counts.shape}")
        found = distribution.logpmf(counts)
        beyond = (counts > self.max_count_) & (counts <= MOST_COUNTS)
        if beyond.any():  # these rows alone: a count has the likelihood that it has without the others
            shape = self._shape_to(scored_count(int(counts[beyond].max())))
            found[beyond] = GeneralizedCount(distribution.theta[beyond], shape).logpmf(counts[beyond])
        return found

    def _shape_to(self, largest: int) -> Array:
        """The shape as far as this count; no farther than it is if that is the largest possible one."""
        ends = self.distribution == "bernoulli" or (self.distribution == "general" and self.smoothness == 0)
        if self.max_count is not None or ends:
            return self.g_
        k = np.arange(largest + 1.0)
        if self.distribution == "com_poisson":
            return np.asarray(self.intercept_ * k + (1.0 - self.shape_parameter_) * gammaln(k + 1.0))
        if self.distribution == "negative_binomial":
            size = self.shape_parameter_
            return np.asarray((self.intercept_ - np.log(size)) * k + gammaln(k + size) - gammaln(size))
        return continued(self.g_, largest)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Mean log-likelihood of a count.

        It is -inf, with a warning, if the model holds one of the counts for impossible: fit with a larger `max_count`.
        """
        scores = self.log_likelihood(X, y)
        weight = check_row_weight(sample_weight, len(scores))
        kept = np.ones(len(scores), dtype=bool) if weight is None else weight > 0
        impossible = np.flatnonzero(kept & np.isneginf(scores))
        if impossible.size:
            warnings.warn(
                f"y holds counts that the model holds for impossible, such as {np.asarray(y)[impossible[0]]}: fit with "
                "a larger max_count and a positive smoothness",
                ImpossibleCountWarning,
                stacklevel=2,
            )
            return -np.inf
        return float(np.average(scores[kept], weights=None if weight is None else weight[kept]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        tags.regressor_tags.poor_score = True  # a log-likelihood, not a share of variance
        return tags


def check_whole_counts(values: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Counts as integers; refuses what is negative, fractional, missing or infinite."""
    numbers = np.asarray(values, dtype=np.float64)
    wrong = ~((numbers >= 0) & (numbers == np.floor(numbers)) & np.isfinite(numbers))
    if wrong.any():
        raise ValueError(f"{name} must hold counts 0, 1, 2, ..., got {numbers[wrong].flat[0]}")
    return numbers.astype(np.int64)
