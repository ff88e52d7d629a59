r"""Bayesian linear regression: the exact posterior of the weights under a Gaussian prior with any covariance.

    y = X w + b + e,    w ~ N(0, prior covariance),    b ~ N(0, intercept variance),    e ~ N(0, noise variance)

It is the weight-space view of a Gaussian process with the kernel x^T S x'; features of x may be any functions of it.

References
----------
Rasmussen and Williams (2006), Gaussian processes for machine learning, section 2.1. MacKay (1992), Bayesian
interpolation, Neural Computation 4, for the evidence.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pluri.processes.weight_posterior import (
    PriorRoot,
    RegressionData,
    WeightPosterior,
    maximize_evidence,
    scaled_prior,
    weight_posterior,
)
from pluri.validation import Allowed, Number, Only, RandomState, Stored, as_generator, check_count, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]

#: Where variances that are learned begin.
START = 1.0


class BayesianLinearRegression(RegressorMixin, Estimator):
    """Linear regression with a posterior over weights, calibrated predictions and the log evidence.

    Parameters
    ----------
    prior_variance : float, array of shape (n_features,) or (n_features, n_features), or "learn", default=1.0
        Prior variance of every weight, of each, or their covariance matrix. "learn": one variance of all weights,
        that of the largest evidence.
    noise_variance : float or "learn", default=1.0
        Variance of the observations around the line. Either of the two can be learned, or both together.
    fit_intercept : bool, default=True
        Whether there is an intercept. It has a prior like the weights; nothing is centred.
    intercept_variance : float, default=1e4
        Prior variance of the intercept: no less than the square of one that you would believe. A warning says so if it
        holds the intercept back by much.
    max_iter, tol : int and float, default=200 and 1e-10
        Of the search for the variances that are learned.
    random_state : int, numpy Generator, RandomState or None, default=None
        Of `sample_coef`.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Posterior mean of the weights.
    intercept_ : float
        Posterior mean of the intercept.
    coef_cov_ : array of shape (n_features, n_features)
        Posterior covariance of the weights; computed when asked for.
    log_evidence_ : float
        Log density of y with weights and intercept integrated out.
    n_iter_ : int
        Iterations of the search for variances; 1 without one.
    noise_variance_ : float
        The one in use, given or learned.
    prior_variance_ : float or array
        The one in use, given or learned.

    Notes
    -----
    With more features than observations the work is done on n x n matrices. A `sample_weight` of 2 is the same as the
    row twice. The intercept's prior is never learned. Weights whose variances are known up to a factor have equal ones
    after their features are multiplied by the standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.bayesian_linear import BayesianLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((6, 2))
    >>> y = X @ [1.0, -2.0] + 0.1 * rng.standard_normal(6)
    >>> model = BayesianLinearRegression(prior_variance=[2.0, 0.5], noise_variance=0.3, fit_intercept=False).fit(X, y)
    >>> mean, std = model.predict([[1.0, 2.0]], return_std=True, noise=False)
    >>> mean.round(5), (std**2).round(5)
    (array([-2.19779]), array([0.37351]))
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "noise_variance": Number(above=0) | Only("learn"),
        "intercept_variance": Number(above=0),
        "tol": Number(above=0),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {"coef_": Stored("n_features_in_")}

    def __init__(
        self,
        prior_variance: ArrayLike | Literal["learn"] = 1.0,
        noise_variance: float | Literal["learn"] = 1.0,
        fit_intercept: bool = True,
        intercept_variance: float = 1e4,
        max_iter: int = 200,
        tol: float = 1e-10,
        random_state: RandomState = None,
    ) -> None:
        self.prior_variance = prior_variance
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.intercept_variance = intercept_variance
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Condition on the data.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        return self._condition(self._gathered(X, y, sample_weight))

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Condition on further data: today's posterior is tomorrow's prior, and the order does not matter."""
        first = not hasattr(self, "_data")
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=first)
        new = self._gathered(X, y, sample_weight)
        return self._condition(new if first else self._data + new)

    def predict(self, X: Any, return_std: bool = False, noise: bool = True) -> Array | tuple[Array, Array]:
        """Posterior mean, and the standard deviation if asked for.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        return_std : bool, default=False
        noise : bool, default=True
            Whether the standard deviation is that of a new observation, or of the line itself.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        mean: Array = X @ self.coef_ + self.intercept_
        if not return_std:
            return mean
        variance = self._posterior.variance(self._with_ones(X))
        return mean, np.sqrt(variance + (self.noise_variance_ if noise else 0.0))

    def sample_coef(self, n_samples: int = 1, random_state: RandomState = None) -> tuple[Array, Array]:
        """Draw weights and intercepts from the posterior: lines that the data allow.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, numpy Generator, RandomState or None
            That of the model if None.

        Returns
        -------
        coef : array of shape (n_samples, n_features)
        intercept : array of shape (n_samples,)
        """
        check_is_fitted(self)
        check_count(n_samples, "n_samples")
        rng = as_generator(self.random_state if random_state is None else random_state)
        weights = self._posterior.sample(int(n_samples), rng)
        d = self.n_features_in_
        return weights[:, :d], weights[:, d] if self.fit_intercept else np.zeros(len(weights))

    @property
    def coef_cov_(self) -> Array:
        """Posterior covariance of the weights, without the intercept."""
        check_is_fitted(self, "coef_")
        d = self.n_features_in_
        return self._posterior.covariance()[:d, :d]

    # --------------------------------------------------------------------------------------------------------------

    def _gathered(self, X: Array, y: Array, sample_weight: ArrayLike | None) -> RegressionData:
        check_parameters(self)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return RegressionData.of(self._with_ones(X), np.asarray(y, dtype=np.float64), weight)

    def _condition(self, data: RegressionData) -> Self:
        if not data.n_total > 0:
            raise ValueError("sample_weight must have a positive sum, got 0")
        d = self.n_features_in_
        learn = self._learns_prior(), self._learns_noise()
        prior, noise_variance = self._prior(d), START if learn[1] else float(self.noise_variance)
        prior_variance = self.prior_variance
        self.n_iter_ = 1
        if any(learn):
            learned = maximize_evidence(
                data, prior, d, noise_variance, learn=learn, max_iter=self.max_iter, tol=self.tol
            )
            noise_variance = learned.noise_variance
            if learn[0]:
                prior_variance = learned.prior_scale * START
                prior = scaled_prior(prior, np.arange(len(prior.root)) < d, learned.prior_scale)
            self.n_iter_ = max(learned.n_iter, 1)
            if not learned.converged:
                warnings.warn(
                    f"the evidence had not settled after {learned.n_iter} iterations; raise max_iter or tol",
                    ConvergenceWarning,
                    stacklevel=3,
                )
        posterior: WeightPosterior = weight_posterior(data, prior, noise_variance)
        if self.fit_intercept:
            self._warn_of_offset(data, posterior.mean)
        self._data, self._posterior = data, posterior
        self.coef_ = posterior.mean[:d]
        self.intercept_ = float(posterior.mean[d]) if self.fit_intercept else 0.0
        self.log_evidence_ = posterior.log_evidence
        self.noise_variance_, self.prior_variance_ = noise_variance, prior_variance
        return self

    def _warn_of_offset(self, data: RegressionData, weights: Array) -> None:
        offset, error = data.left_out(weights)
        if abs(offset) > max(5.0 * error, 0.3 * float(np.sqrt(data.square / data.n_total))):
            warnings.warn(
                f"the fit leaves out {offset:.3g} of every y on average: its intercept is held back by "
                f"intercept_variance={self.intercept_variance:g}; raise it to the square of an intercept that you "
                "would believe, or subtract the mean of y",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _with_ones(self, X: Array) -> Array:
        return np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X

    def _learns_prior(self) -> bool:
        return isinstance(self.prior_variance, str) and self.prior_variance == "learn"

    def _learns_noise(self) -> bool:
        return self.noise_variance == "learn"

    def _prior(self, d: int) -> PriorRoot:
        variance = np.asarray(START if self._learns_prior() else self.prior_variance, dtype=np.float64)
        if variance.shape not in ((), (d,), (d, d)) or not np.isfinite(variance).all():
            raise ValueError(
                f"prior_variance must be a number, {d} numbers or a {d} x {d} matrix, all finite, got shape "
                f"{variance.shape}"
            )
        if variance.ndim < 2:
            if not (variance > 0).all():
                raise ValueError(f"prior_variance must be positive, got {float(variance.min())}")
            variance = np.array(np.broadcast_to(variance, (d,)))
            return PriorRoot.of(np.append(variance, self.intercept_variance) if self.fit_intercept else variance)
        if not np.allclose(variance, variance.T):
            raise ValueError("prior_variance must be symmetric, got a matrix that is not")
        if self.fit_intercept:
            whole = np.zeros((d + 1, d + 1))
            whole[:d, :d], whole[d, d] = variance, self.intercept_variance
            variance = whole
        try:
            return PriorRoot.of(variance)
        except np.linalg.LinAlgError:
            raise ValueError("prior_variance must be positive definite, got a matrix that is not") from None
