"""Gaussian-process classification: a latent function, squashed, with four ways to its posterior.

``f ~ GP(0, k)``, ``p(y = 1 | f) = 1 / (1 + exp(-f))``. The posterior of f is not Gaussian; it is approximated by a
Gaussian (Laplace, expectation propagation, a variational bound by Polya-Gamma augmentation) or sampled (elliptical
slice sampling, Polya-Gamma Gibbs sampling, NUTS if the hyper-parameters are sampled too). More than two classes are
told apart one against the rest.

References
----------
.. [1] Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian processes for machine learning. MIT Press, chapter 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.inference.mcmc import Sampled
from pluri.priors.hyperpriors import HyperPrior
from pluri.processes.gp_inference.approximate import ApproximateEvidence, Component, approximate, mixture_of
from pluri.processes.gp_inference.covariance import covariance_at
from pluri.processes.gp_inference.exact import check_jitter, cholesky
from pluri.processes.gp_inference.latent_draws import JointPosterior, by_class, draw_jointly, draw_latent
from pluri.processes.gp_inference.learning import (
    SETTINGS,
    Charts,
    learn_theta,
    one_thread_if_small,
    sample_posterior,
    spread_draws,
    thetas_of,
)
from pluri.processes.gp_inference.parameters import (
    choose_priors,
    default_kernel,
    measure_inputs,
    parameters_of,
    start_of_scale,
)
from pluri.processes.gp_inference.sites import solve, warn_unconverged
from pluri.validation import Allowed, Number, Only, Stored, as_generator, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]

APPROXIMATIONS = ("laplace", "ep", "polya_gamma")
SAMPLERS = ("ess", "polya_gamma_gibbs")


@dataclass(frozen=True)
class BinaryFit:
    """One class against the rest: hyper-parameters, the parts of the predictive mixture, and how they were found."""

    kernel: Any
    components: tuple[Component, ...]
    latent_mean: Array
    log_evidence: float
    history: tuple[float, ...]
    trace: Any


class GaussianProcessClassifier(ClassifierMixin, Sampled, Estimator):
    """Gaussian-process classification with a logistic likelihood.

    Parameters
    ----------
    kernel : kernel of `sklearn.gaussian_process.kernels`, optional
        Covariance of the latent function. ``ConstantKernel(1.0) * RBF(1.0)`` if None, learned from there or from a
        length-scale of the size of the data, whichever is likelier.
    inference : {"laplace", "ep", "polya_gamma", "ess", "polya_gamma_gibbs"}, default="laplace"
        How the posterior of the latent function is found: a Gaussian at its mode; expectation propagation, the most
        accurate of the approximations; a variational bound; elliptical slice sampling; Gibbs sampling.
    multi_class : {"one_vs_rest"}, default="one_vs_rest"
        With more than two classes, one latent function for each, against the rest; probabilities are normalised.
    hyper_inference : {"fixed", "ml2", "map", "nuts"}, default="ml2"
        How to learn the hyper-parameters that the kernel does not fix: not at all; at the maximum of the approximate
        evidence, or of that times the priors; by sampling. If the latent function is sampled, "ml2" and "map" take
        Laplace's evidence, and "nuts" samples both together, without approximation, instead of `inference`.
    priors : dict of priors, optional
        Priors of the hyper-parameters by name, for "map" and "nuts": ``{"length_scale": Uniform(0, 10)}``. Others
        have a default on the scale of the data.
    max_iter : int, default=500
        Largest number of iterations of an approximation.
    damping : float, default=0.8
        How far sites move in a sweep of expectation propagation, in (0, 1].
    n_init : int, default=1
        Starts of "ml2" and "map", of which the best is kept; those after the first are random.
    jitter : float or "auto", default="auto"
        What to add to the diagonal of covariance matrices that are factored.
    n_draws, n_warmup : int, default=1000
        Draws of each chain, and steps before them.
    n_chains : int, default=4
    n_predictive : int, default=400
        Predictions average over so many of the draws, evenly spread.
    n_jobs : int, optional
        Chains run at a time, in processes.
    max_exact_n : int, default=5000
        More rows than this are refused: time grows with the cube of their number.
    random_state : int, Generator or None
    verbose : int, default=0
        1 shows the progress of the chains.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    X_train_ : array of shape (n_samples, n_features)
    kernels_ : list of kernels
        With learned hyper-parameters (of the draw with the highest density if they were sampled): one if there are
        two classes, else one for each class.
    kernel_ : kernel
        The first of them.
    latent_mean_ : array of shape (n_samples,), or (n_classes, n_samples) for more than two classes
        Posterior mean of the latent function (its mode for "laplace") at the training inputs; positive where the
        second class (its own class) is likelier.
    log_marginal_likelihood_value_ : float
        Approximate log evidence: a lower bound for "polya_gamma", NaN for samplers; the mean over classes if there
        are more than two.
    history_ : list of lists of float
        Objective of the approximation after each iteration (for "polya_gamma" a bound, which never falls).
    n_iter_ : int
        Iterations of the longest.
    trace_ : `pluri.inference.mcmc.Trace`
        Draws of "latent" and of the hyper-parameters, of whatever was sampled; with more than two classes draws have
        one axis more, for the class.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import GaussianProcessClassifier
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> y = np.where(np.abs(X[:, 0]) > 1.5, "outside", "inside")
    >>> model = GaussianProcessClassifier(inference="ep").fit(X, y)
    >>> model.predict([[0.0], [2.5]]).tolist()
    ['inside', 'outside']
    >>> bool(model.predict_proba([[0.0]])[0, 0] > 0.9)
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **SETTINGS,
        "inference": Only(*APPROXIMATIONS, *SAMPLERS),
        "multi_class": Only("one_vs_rest"),
        "hyper_inference": Only("fixed", "ml2", "map", "nuts"),
        "damping": Number(above=0, most=1),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {"X_train_": Stored("n_train", "n_features_in_")}

    def __init__(
        self,
        kernel: Any = None,
        *,
        inference: Literal["laplace", "ep", "polya_gamma", "ess", "polya_gamma_gibbs"] = "laplace",
        multi_class: Literal["one_vs_rest"] = "one_vs_rest",
        hyper_inference: Literal["fixed", "ml2", "map", "nuts"] = "ml2",
        priors: Mapping[str, HyperPrior] | None = None,
        max_iter: int = 500,
        damping: float = 0.8,
        n_init: int = 1,
        jitter: float | Literal["auto"] = "auto",
        n_draws: int = 1000,
        n_warmup: int = 1000,
        n_chains: int = 4,
        n_predictive: int = 400,
        n_jobs: int | None = None,
        max_exact_n: int = 5000,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.inference = inference
        self.multi_class = multi_class
        self.hyper_inference = hyper_inference
        self.priors = priors
        self.max_iter = max_iter
        self.damping = damping
        self.n_init = n_init
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
        """Find the posterior of the latent function, and learn the hyper-parameters if asked to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            At least two classes.

        Returns
        -------
        self : object
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        check_parameters(self)
        if len(X) > self.max_exact_n:
            raise ValueError(f"X must have at most max_exact_n={self.max_exact_n} rows, got {len(X)}: fit a subset")
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(f"y must have at least two classes, got one class only: {classes.tolist()[0]!r}")
        rng = as_generator(self.random_state)
        positive = classes[1:] if len(classes) == 2 else classes
        with one_thread_if_small(len(X)):
            fits = [self._fit_binary(X, np.where(y == label, 1.0, -1.0), rng) for label in positive]

        self.classes_, self.X_train_, self._fits = classes, X, fits
        self.kernels_ = [fit.kernel for fit in fits]
        self.kernel_ = fits[0].kernel
        latent = np.stack([fit.latent_mean for fit in fits])
        self.latent_mean_ = latent if len(fits) > 1 else latent[0]
        self.log_marginal_likelihood_value_ = float(np.mean([fit.log_evidence for fit in fits]))
        self.history_ = [list(fit.history) for fit in fits]
        self.n_iter_ = max([1, *(len(fit.history) for fit in fits)])
        self.__dict__.pop("trace_", None)
        if fits[0].trace is not None:
            self.trace_ = by_class([fit.trace for fit in fits])
        return self

    def _fit_binary(self, X: Array, labels: Array, rng: np.random.Generator) -> BinaryFit:
        unscaled = self.kernel is None and self.hyper_inference in ("ml2", "map")
        extent = measure_inputs(X)
        kernel = clone(self.kernel) if self.kernel is not None else default_kernel(extent if unscaled else 1.0)
        how: Any = self.inference if self.inference in APPROXIMATIONS else "laplace"
        covariance = covariance_at(kernel, X)
        evidence = ApproximateEvidence(covariance, labels, how, self.max_iter, float(self.damping))
        parameters = parameters_of(kernel, None)
        theta = np.asarray(kernel.theta)
        if unscaled:
            starts = (theta, start_of_scale(extent, 1.0, None))
            theta = max(starts, key=lambda start: replace(evidence, memory={})(start)[0])
        chains: dict[str, Any] = {
            "n_draws": self.n_draws, "n_warmup": self.n_warmup, "n_chains": self.n_chains, "n_jobs": self.n_jobs,
            "verbose": self.verbose,
        }  # fmt: skip
        priors: Any = None
        if self.hyper_inference in ("map", "nuts"):
            priors = choose_priors(parameters, self.priors, extent, 1.0)
        if self.hyper_inference in ("ml2", "map") and len(theta):
            theta = learn_theta(replace(evidence, memory={}), parameters, theta, rng, self.n_init, priors)
        elif self.hyper_inference == "nuts":
            if self.inference in SAMPLERS:
                return self._sample_jointly(kernel, covariance, X, labels, parameters, priors, rng, chains)
            trace = sample_posterior(evidence, parameters, priors, "nuts", rng, **chains)
            return self._mixture_over_draws(kernel, X, labels, how, trace, thetas_of(trace, parameters))
        chosen = kernel.clone_with_theta(theta)
        matrix = chosen(X)
        if self.inference in SAMPLERS:
            factor = cholesky(matrix, check_jitter(self.jitter))
            trace = draw_latent(factor @ factor.T, factor, labels, self.inference, rng, **chains)  # type: ignore[arg-type]
            latents = trace.flat("latent")
            kept = latents[spread_draws(len(latents), self.n_predictive)]
            component = Component(chosen, solve(factor, kept.T).T, None)
            return BinaryFit(chosen, (component,), latents.mean(axis=0), float("nan"), (), trace.detached())
        sites = approximate(how, matrix, labels, self.max_iter, float(self.damping))
        if not sites.converged:
            warn_unconverged(f"inference={how!r}", self.max_iter)
        component = Component(chosen, sites.weights[None], sites.precision)
        return BinaryFit(chosen, (component,), sites.mean, sites.log_evidence, sites.history, None)

    def _mixture_over_draws(
        self, kernel: Any, X: Array, labels: Array, how: Any, trace: Any, thetas: Array
    ) -> BinaryFit:
        """One approximation for each of some draws of the hyper-parameters."""
        components, means = [], []
        for theta in thetas[spread_draws(len(thetas), self.n_predictive)]:
            one = kernel.clone_with_theta(theta)
            sites = approximate(how, one(X), labels, self.max_iter, float(self.damping))
            components.append(Component(one, sites.weights[None], sites.precision))
            means.append(sites.mean)
        best = kernel.clone_with_theta(thetas[int(np.argmax(np.ravel(trace.stats["log_density"])))])
        sites = approximate(how, best(X), labels, self.max_iter, float(self.damping))
        return BinaryFit(
            best, tuple(components), np.mean(means, axis=0), sites.log_evidence, sites.history, trace.detached()
        )

    def _sample_jointly(
        self, kernel: Any, covariance: Any, X: Array, labels: Array, parameters: Any, priors: Any,
        rng: np.random.Generator, chains: dict[str, Any],
    ) -> BinaryFit:  # fmt: skip
        """Hyper-parameters and latent function together."""
        if not parameters:
            raise ValueError("there is no hyper-parameter to learn: all are fixed; use hyper_inference='fixed'")
        posterior = JointPosterior(covariance, labels, Charts(priors), check_jitter(self.jitter))
        trace = draw_jointly(posterior, parameters, rng, **chains)
        thetas, latents = thetas_of(trace, parameters), trace.flat("latent")
        components = []
        for index in spread_draws(len(thetas), self.n_predictive):
            factor = posterior.factor(thetas[index])[0]
            if factor is not None:
                weights = solve(factor, latents[index])[None]
                components.append(Component(kernel.clone_with_theta(thetas[index]), weights, None))
        best = kernel.clone_with_theta(thetas[int(np.argmax(np.ravel(trace.stats["log_density"])))])
        return BinaryFit(best, tuple(components), latents.mean(axis=0), float("nan"), (), trace.detached())

    def _predictive(self, X: Any) -> tuple[Array, Array, Array]:
        """Mean and variance of the latent functions, and probabilities: each (n_functions, n_samples)."""
        check_is_fitted(self, "classes_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        jitter = check_jitter(self.jitter)
        parts = [mixture_of(fit.components, self.X_train_, X, jitter) for fit in self._fits]
        means, variances, chances = (np.stack(column) for column in zip(*parts))
        return means, variances, chances

    def decision_function(self, X: Any, return_std: bool = False) -> Any:
        """Posterior mean of the latent function at new inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Also return its standard deviation.

        Returns
        -------
        mean, std : arrays of shape (n_samples,), or (n_samples, n_classes) for more than two classes
        """
        means, variances, _ = self._predictive(X)
        mean, std = (values[0] if len(values) == 1 else values.T for values in (means, np.sqrt(variances)))
        return (mean, std) if return_std else mean

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, the uncertainty of the latent function integrated out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        chances = self._predictive(X)[2]
        if len(chances) == 1:
            return np.stack([1.0 - chances[0], chances[0]], axis=1)
        return (chances / chances.sum(axis=0)).T

    def predict(self, X: Any) -> NDArray[Any]:
        """Likeliest class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        probability = self.predict_proba(X)
        return self.classes_[np.argmax(probability, axis=1)]

    def summary(self) -> str:
        """The fitted model in a few lines."""
        check_is_fitted(self, "classes_")
        lines = [
            f"Gaussian process classification, {len(self.X_train_)} rows, {len(self.classes_)} classes, "
            f"inference={self.inference!r}, hyper_inference={self.hyper_inference!r}",
        ]
        if np.isfinite(self.log_marginal_likelihood_value_):  # samplers of the latent function have none
            lines.append(f"approximate log evidence {self.log_marginal_likelihood_value_:.4f}")
        return "\n".join(lines + [f"kernel {kernel}" for kernel in self.kernels_])
