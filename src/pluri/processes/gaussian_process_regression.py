"""Gaussian-process regression: functions with error bars, and hyper-parameters with error bars too.

``f ~ GP(m, k)``, ``y = f(x) + e``, ``e ~ N(0, noise_variance)``. The posterior of f is exact. The hyper-parameters of
the kernel and the noise can be given, set where the marginal likelihood (or the posterior) is highest, or sampled;
prediction then averages over the draws: ``mean = avg mu_s``, ``var = avg var_s + var mu_s``.

References
----------
.. [1] Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian processes for machine learning. MIT Press.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.inference.mcmc import Sampled, Trace
from pluri.priors.hyperpriors import HyperPrior
from pluri.processes.gp_inference.covariance import covariance_at
from pluri.processes.gp_inference.exact import ExactPosterior, MarginalLikelihood, check_jitter, cholesky
from pluri.processes.gp_inference.learning import (
    SETTINGS,
    learn_theta,
    one_thread_if_small,
    sample_posterior,
    spread_draws,
    thetas_of,
)
from pluri.processes.gp_inference.parameters import (
    NOISE,
    Parameter,
    by_name,
    choose_priors,
    default_kernel,
    measure_inputs,
    parameters_of,
    start_of_scale,
    warn_of_offset,
)
from pluri.validation import Allowed, Number, Only, Stored, as_generator, check_count, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]


#: Where learning the variance of the noise begins.
START_NOISE = 0.1


class GaussianProcessRegressor(RegressorMixin, Sampled, Estimator):
    """Gaussian-process regression with hyper-parameters fixed, optimised or sampled.

    Parameters
    ----------
    kernel : kernel of `sklearn.gaussian_process.kernels`, optional
        Covariance of f. ``ConstantKernel(1.0) * RBF(1.0)`` if None, learned from there or from a start on the scale
        of the data, whichever is likelier. It has one length-scale for all columns: standardise them, or give
        ``RBF([1.0, 1.0])`` with one for each.
    noise_variance : float or "learn", default="learn"
        Variance of an observation around f, of each row independently (equal inputs have independent noise). A number
        is fixed, 0 is noise-free. "learn": with the hyper-parameters of the kernel, from 0.1 on, where it stays if
        they are fixed.
    mean : "zero" or callable, default="zero"
        Prior mean: ``mean(X) -> (n_samples,)``.
    hyper_inference : {"fixed", "ml2", "map", "nuts", "slice"}, default="ml2"
        How to learn the hyper-parameters that the kernel does not fix, and the noise: not at all; at the maximum of
        the marginal likelihood; at the mode of their posterior (each in the coordinate in which its prior is
        stated); by sampling their posterior with gradients, or one coordinate at a time.
    priors : dict of priors, optional
        Priors of the hyper-parameters by name, for "map", "nuts" and "slice": ``{"length_scale": Uniform(0, 10)}``.
        Names are "noise_variance", "signal_variance" (a constant kernel) and those of the kernel. Others have a
        default on the scale of the data.
    n_init : int, default=1
        Starts of "ml2" and "map", of which the best is kept; those after the first are random.
    normalize_y : bool, default=False
        Standardise y first; kernel, noise and priors then refer to the standardised y. For y that is far from 0.
    jitter : float or "auto", default="auto"
        What to add to the diagonal of covariance matrices; "auto": 1e-10 of the mean variance, and up to 1e-4 of it
        if that is needed.
    n_draws, n_warmup : int, default=1000
        Draws of each chain, and steps before them.
    n_chains : int, default=4
    n_predictive : int, default=400
        Predictions average over so many of the draws, evenly spread.
    n_jobs : int, optional
        Chains run at a time, in processes.
    max_exact_n : int, default=10000
        More rows than this are refused: time grows with the cube of their number, memory with the square.
    random_state : int, Generator or None
    verbose : int, default=0
        1 shows the progress of the chains.

    Attributes
    ----------
    X_train_ : array of shape (n_samples, n_features)
    kernel_ : kernel
        With its hyper-parameters learned; those of the draw with the highest density if they were sampled.
    noise_variance_ : float
    theta_ : array
        Logarithms of the learned hyper-parameters: the kernel's, then the noise.
    parameter_names_ : list of str
        Name of each entry of `theta_`.
    log_marginal_likelihood_value_ : float
        At `theta_`, of the normalised y if `normalize_y`.
    L_, alpha_ : arrays of shape (n_samples, n_samples) and (n_samples,)
        Cholesky factor of the covariance of y, and the weights of the predictive mean, at `theta_`.
    trace_ : `pluri.inference.mcmc.Trace`
        Draws of the hyper-parameters by name, if they were sampled.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import GaussianProcessRegressor
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=30)
    >>> model = GaussianProcessRegressor().fit(X, y)
    >>> mean, std = model.predict([[1.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 2 * std[0] < 0.3)
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **SETTINGS,
        "noise_variance": Number(least=0) | Only("learn"),
        "hyper_inference": Only("fixed", "ml2", "map", "nuts", "slice"),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "X_train_": Stored("n_train", "n_features_in_"),
        "L_": Stored("n_train", "n_train"),
        "alpha_": Stored("n_train"),
        "_residual": Stored("n_train"),
    }

    def __init__(
        self,
        kernel: Any = None,
        *,
        noise_variance: float | Literal["learn"] = "learn",
        mean: Literal["zero"] | Callable[[Array], ArrayLike] = "zero",
        hyper_inference: Literal["fixed", "ml2", "map", "nuts", "slice"] = "ml2",
        priors: Mapping[str, HyperPrior] | None = None,
        n_init: int = 1,
        normalize_y: bool = False,
        jitter: float | Literal["auto"] = "auto",
        n_draws: int = 1000,
        n_warmup: int = 1000,
        n_chains: int = 4,
        n_predictive: int = 400,
        n_jobs: int | None = None,
        max_exact_n: int = 10000,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.mean = mean
        self.hyper_inference = hyper_inference
        self.priors = priors
        self.n_init = n_init
        self.normalize_y = normalize_y
        self.jitter = jitter
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.n_predictive = n_predictive
        self.n_jobs = n_jobs
        self.max_exact_n = max_exact_n
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Condition on observations, and learn the hyper-parameters if asked to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : object
        """
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        y = np.asarray(y, dtype=np.float64)
        check_parameters(self)
        if len(X) > self.max_exact_n:
            raise ValueError(
                f"X must have at most max_exact_n={self.max_exact_n} rows for exact inference, got {len(X)}: fit a "
                "subset, or raise max_exact_n if there is the memory"
            )
        rng = as_generator(self.random_state)
        offset, scale = (float(y.mean()), float(y.std()) or 1.0) if self.normalize_y else (0.0, 1.0)
        residual = (y - offset) / scale - self._mean_at(X)
        spread, extent = float(np.mean(residual**2)) or 1.0, measure_inputs(X)
        unscaled = self.kernel is None and self.hyper_inference != "fixed"
        kernel = default_kernel(extent, spread) if unscaled else self._kernel()

        learned = self.noise_variance == "learn"
        noise = START_NOISE if learned else float(self.noise_variance)
        parameters = parameters_of(kernel, (1e-8 * spread, 1e3 * spread) if learned else None)
        evidence = MarginalLikelihood(
            covariance_at(kernel, X), residual, None if learned else noise, check_jitter(self.jitter)
        )
        theta = np.concatenate([kernel.theta, [math.log(noise)]]) if learned else np.asarray(kernel.theta)
        priors = None
        if self.hyper_inference in ("map", "nuts", "slice"):
            priors = choose_priors(parameters, self.priors, extent, spread)
        with one_thread_if_small(len(X)):
            if unscaled:
                other = start_of_scale(extent, spread, noise if learned else None)
                theta = max((theta, other), key=lambda start: evidence.value(start))
            theta, trace = self._learn(evidence, parameters, priors, theta, rng)

        count = len(kernel.theta)
        chosen = kernel.clone_with_theta(theta[:count])
        chosen_noise = math.exp(theta[count]) if learned else noise
        posterior = ExactPosterior.of(chosen(X), residual, chosen_noise, check_jitter(self.jitter))
        if self.hyper_inference != "fixed":
            warn_of_offset(residual, chosen_noise * posterior.weights)

        self.X_train_, self._residual, self._offset, self._scale = X, residual, offset, scale
        self._evidence, self._learned = evidence, parameters
        self.kernel_, self.noise_variance_, self.theta_ = chosen, chosen_noise, theta
        self.parameter_names_ = [one.name for one in parameters for _ in range(one.size)]
        self.L_, self.alpha_ = posterior.factor, posterior.weights
        self.log_marginal_likelihood_value_ = posterior.log_marginal_likelihood
        for name in ("trace_", "_thetas"):
            self.__dict__.pop(name, None)
        if trace is not None:
            self.trace_ = trace.detached()
            draws = thetas_of(trace, parameters)
            self._thetas = draws[spread_draws(len(draws), self.n_predictive)]
        return self

    def _learn(
        self, evidence: MarginalLikelihood, parameters: tuple[Parameter, ...], priors: Any, theta: Array,
        rng: np.random.Generator,
    ) -> tuple[Array, Trace | None]:  # fmt: skip
        """Log hyper-parameters, and the draws that they were chosen from if they were sampled."""
        if self.hyper_inference in ("nuts", "slice"):
            trace: Trace = sample_posterior(
                evidence, parameters, priors, self.hyper_inference, rng, n_draws=self.n_draws,
                n_warmup=self.n_warmup, n_chains=self.n_chains, n_jobs=self.n_jobs, verbose=self.verbose,
            )  # fmt: skip
            return thetas_of(trace, parameters)[int(np.argmax(np.ravel(trace.stats["log_density"])))], trace
        if self.hyper_inference == "fixed" or not len(theta):
            return theta, None
        return learn_theta(evidence, parameters, theta, rng, self.n_init, priors), None

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False, include_noise: bool = False) -> Any:
        """Posterior mean of f at new inputs, and how sure it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std, return_cov : bool, default=False
            Also return standard deviations (n_samples,) or the covariance matrix (n_samples, n_samples).
        include_noise : bool, default=False
            Whether these are of a new observation instead of f itself.

        Returns
        -------
        mean : array of shape (n_samples,)
        std or cov : array, if asked for
        """
        check_is_fitted(self, "L_")
        if return_std and return_cov:
            raise ValueError("return_std and return_cov cannot both be True: the covariance has the variances")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        prior_mean, n = self._mean_at(X), len(X)
        means, spread = np.zeros(n), np.zeros((n, n) if return_cov else n)
        squares = np.zeros_like(spread)
        components = self._components()
        total = 0
        for kernel, noise, posterior in components:
            total += 1
            cross = kernel(self.X_train_, X)
            mean = posterior.mean(cross)
            # Running sums of deviations from the running mean: exact where means nearly agree.
            change = mean - means
            means += change / total
            if return_cov:
                squares += np.outer(change, mean - means)
                spread += posterior.covariance(cross, kernel(X)) + include_noise * noise * np.eye(n)
            elif return_std:
                squares += change * (mean - means)
                spread += posterior.variance(cross, kernel.diag(X)) + include_noise * noise
        mean = (means + prior_mean) * self._scale + self._offset
        if not (return_std or return_cov):
            return mean
        spread = (spread + (squares + squares.T) / 2.0) / total * self._scale**2
        return mean, spread if return_cov else np.sqrt(spread)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, include_noise: bool = False) -> Array:
        """Functions drawn from the posterior, at new inputs.

        Parameters
        ----------
        X : array-like of shape (n_inputs, n_features)
        n_samples : int, default=1
        random_state : int, Generator or None, default=0
        include_noise : bool, default=False
            Draw observations instead of f.

        Returns
        -------
        array of shape (n_inputs, n_samples)
        """
        check_is_fitted(self, "L_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        check_count(n_samples, "n_samples")
        rng = as_generator(random_state)
        n_components = len(self._thetas) if hasattr(self, "_thetas") else 1
        counts = np.bincount(rng.integers(n_components, size=n_samples), minlength=n_components)
        drawn = []
        for (kernel, noise, posterior), count in zip(self._components(counts > 0), counts[counts > 0]):
            cross, prior = kernel(self.X_train_, X), kernel(X)
            covariance = posterior.covariance(cross, prior)
            factor = cholesky(covariance, scale=float(np.mean(np.diagonal(prior))) or 1.0)
            values = posterior.mean(cross)[:, None] + factor @ rng.standard_normal((len(X), count))
            if include_noise:
                values += math.sqrt(noise) * rng.standard_normal(values.shape)
            drawn.append(values)
        together = np.concatenate(drawn, axis=1)[:, rng.permutation(n_samples)]
        return (together + self._mean_at(X)[:, None]) * self._scale + self._offset

    def sample_prior(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Functions drawn from the prior: of the fitted kernel, or of the given one before fitting.

        Parameters
        ----------
        X : array-like of shape (n_inputs, n_features)
        n_samples : int, default=1
        random_state : int, Generator or None, default=0

        Returns
        -------
        array of shape (n_inputs, n_samples)
        """
        fitted = hasattr(self, "L_")
        X = validate_data(self, X, reset=not fitted, dtype=np.float64)
        check_count(n_samples, "n_samples")
        kernel = self.kernel_ if fitted else self._kernel()
        factor = cholesky(kernel(X), check_jitter(self.jitter))
        values = factor @ as_generator(random_state).standard_normal((len(X), n_samples)) + self._mean_at(X)[:, None]
        return values * self._scale + self._offset if fitted else values

    def log_marginal_likelihood(self, theta: ArrayLike | None = None, eval_gradient: bool = False) -> Any:
        """Log marginal likelihood of the training data at log hyper-parameters.

        Parameters
        ----------
        theta : array-like of shape (n_theta,), optional
            Ordered as `parameter_names_`; `theta_` if None.
        eval_gradient : bool, default=False
            Also return the gradient.

        Returns
        -------
        value : float
        gradient : array of shape (n_theta,), if asked for
        """
        check_is_fitted(self, "L_")
        at = self.theta_ if theta is None else np.asarray(theta, dtype=np.float64)
        if at.shape != self.theta_.shape:
            raise ValueError(f"theta must have shape {self.theta_.shape} ({self.parameter_names_}), got {at.shape}")
        value, gradient = self._evidence(at)
        if not math.isfinite(value):
            raise np.linalg.LinAlgError(
                f"the covariance matrix of the training inputs is not positive definite at theta={at}: look for "
                "duplicated inputs without noise, or a huge length-scale"
            )
        return (value, gradient) if eval_gradient else value

    @property
    def effective_degrees_of_freedom_(self) -> float:
        """``tr(K K_y^-1)`` at `theta_`: how many parameters the smoother is worth, from 0 to n_samples."""
        check_is_fitted(self, "L_")
        return float(np.trace(np.linalg.solve(self.L_ @ self.L_.T, self.kernel_(self.X_train_))))

    def summary(self) -> str:
        """The fitted model in a few lines."""
        check_is_fitted(self, "L_")
        lines = [
            f"Gaussian process regression, {len(self.X_train_)} rows, hyper_inference={self.hyper_inference!r}",
            f"log marginal likelihood {self.log_marginal_likelihood_value_:.4f}, "
            f"effective degrees of freedom {self.effective_degrees_of_freedom_:.2f}",
        ]
        if hasattr(self, "trace_"):
            return "\n".join([*lines, str(self.trace_.summary())])
        values = by_name(self._learned, self.theta_)
        lines += [f"{name:<20s} {np.array2string(np.asarray(value), precision=4)}" for name, value in values.items()]
        if NOISE not in values:
            lines.append(f"{NOISE:<20s} {self.noise_variance_:.4g} (fixed)")
        return "\n".join(lines)

    def _components(self, chosen: NDArray[np.bool_] | None = None) -> Any:
        """Kernel, noise and posterior of each draw of the hyper-parameters, or of the one value that they have."""
        if not hasattr(self, "_thetas"):
            yield self.kernel_, self.noise_variance_, ExactPosterior(self.L_, self.alpha_)
            return
        count = len(self.kernel_.theta)
        for theta in self._thetas if chosen is None else self._thetas[chosen]:
            kernel = self.kernel_.clone_with_theta(theta[:count])
            noise = math.exp(theta[count]) if len(theta) > count else self.noise_variance_
            yield (
                kernel,
                noise,
                ExactPosterior.of(kernel(self.X_train_), self._residual, noise, check_jitter(self.jitter)),
            )

    def _kernel(self) -> Any:
        return default_kernel() if self.kernel is None else clone(self.kernel)

    def _mean_at(self, X: Array) -> Array:
        if isinstance(self.mean, str) and self.mean == "zero":
            return np.zeros(len(X))
        if not callable(self.mean):
            raise ValueError(f"mean must be 'zero' or a function of X, got {self.mean!r}")
        values = np.asarray(self.mean(X), dtype=np.float64)
        if values.shape != (len(X),) or not np.isfinite(values).all():
            raise ValueError(f"mean(X) must be {len(X)} finite numbers, got an array of shape {values.shape}")
        return values
