"""Gaussian mixture whose parameters are sampled: Metropolis or NUTS on the posterior, with labels summed out.

Unlike EM it says how sure it is: predictions average over the posterior. The posterior does not change when
components swap names, so that draws are relabelled before they are averaged.

References
----------
.. [1] Stephens, M. (2000). Dealing with label switching in mixture models. JRSS B 62, 795-809.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.inference.mcmc import NUTS, RandomWalk, Sampled, Trace, sample
from pluri.mixtures.gaussian.density import GaussianMixtureDensity
from pluri.mixtures.gaussian.posterior import MixturePosterior, MixturePrior, relabelled
from pluri.validation import Allowed, Number, Only, RandomState, Stored, Whole, as_generator, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]


class MetropolisGaussianMixture(Sampled, DensityMixin, Estimator):
    """Bayesian Gaussian mixture, sampled on unconstrained coordinates.

    Parameters
    ----------
    n_components : int, default=2
    inference : {"nuts", "metropolis"}, default="nuts"
        NUTS uses the gradient; random-walk Metropolis is for comparison.
    weight_concentration : float, default=1.0
        Of the Dirichlet prior of the weights.
    mean_prior : array-like of shape (n_features,), optional
        The mean of the data by default.
    mean_precision_prior : float, default=0.01
        How many observations the prior mean is worth.
    degrees_of_freedom_prior : float, optional
        Of the inverse-Wishart prior of the covariances; ``n_features + 2`` by default, for which its mean is
        `covariance_prior`.
    covariance_prior : array-like of shape (n_features, n_features), optional
        Scale of that prior; by default the variances of the data, divided by ``n_components^(2 / n_features)``.
    relabel : {"hungarian", "order"}, default="hungarian"
        Name components so that draws agree best, or by their first coordinate.
    n_draws, n_warmup, n_chains : int
        Of the sampler.
    n_predictive : int, default=200
        Draws that predictions average over.
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
        Chains at a time.
    verbose : int, default=0

    Attributes
    ----------
    trace_ : Trace
        Relabelled draws of ``weights``, ``means``, ``covariances``.
    weights_, means_, covariances_ : arrays
        Posterior means.
    prior_ : MixturePrior
    converged_ : bool
        Whether the chains agree on all of them: R-hat is at most 1.01.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures.gaussian.metropolis import MetropolisGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-3, 1, size=(40, 1)), rng.normal(3, 1, size=(60, 1))])
    >>> model = MetropolisGaussianMixture(n_draws=500, n_warmup=300, n_chains=2, random_state=0).fit(X)
    >>> bool(abs(model.weights_[0] - 0.4) < 0.05)
    True
    >>> model.predict([[-3.0], [3.0]])
    array([0, 1])
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "weights_": Stored("n_components", simplex=True),
        "means_": Stored("n_components", "n_features_in_"),
        "covariances_": Stored("n_components", "n_features_in_", "n_features_in_"),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1),
        "inference": Only("nuts", "metropolis"),
        "relabel": Only("hungarian", "order"),
        "weight_concentration": Number(above=0),
        "mean_precision_prior": Number(above=0),
        "degrees_of_freedom_prior": Number() | Only(None),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        inference: str = "nuts",
        weight_concentration: float = 1.0,
        mean_prior: ArrayLike | None = None,
        mean_precision_prior: float = 0.01,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: ArrayLike | None = None,
        relabel: str = "hungarian",
        n_draws: int = 500,
        n_warmup: int = 500,
        n_chains: int = 4,
        n_predictive: int = 200,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_components = n_components
        self.inference = inference
        self.weight_concentration = weight_concentration
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.relabel = relabel
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.n_predictive = n_predictive
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Sample the posterior of the parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        rows: Array = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self._check_settings(len(rows))
        rng = as_generator(self.random_state)
        prior = self._prior(rows)
        # Sampled in units of the prior mean and of its spread, in which all parameters are of order one.
        shift, spread = prior.mean, np.sqrt(np.diagonal(prior.scale))
        units = replace(prior, mean=np.zeros_like(shift), scale=prior.scale / np.outer(spread, spread))
        scaled = (rows - shift) / spread
        posterior = MixturePosterior(scaled, units, self.n_components)
        space = posterior.space
        target = space.value_and_grad(posterior)
        kernel = NUTS(target) if self.inference == "nuts" else RandomWalk(_ValueOf(target))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # of steps that are refused
            raw = sample(
                kernel, lambda stream: space.unconstrain(_start(stream, scaled, units, self.n_components)),
                n_draws=self.n_draws, n_warmup=self.n_warmup, n_chains=self.n_chains, record=space.constrain,
                random_state=rng, n_jobs=self.n_jobs, verbose=self.verbose, warn=False,
            )  # fmt: skip
        self.prior_ = prior
        self.trace_ = self._named(raw, shift, spread)
        for name in ("weights", "means", "covariances"):
            setattr(self, f"{name}_", self.trace_[name].mean(axis=(0, 1)))
        self.converged_ = self.trace_.settled()
        self._warn()
        return self

    def _check_settings(self, n_samples: int) -> None:
        check_parameters(self)
        if self.n_components > n_samples:
            raise ValueError(
                f"n_components must be at most the number of samples ({n_samples}), got {self.n_components!r}"
            )

    def _prior(self, X: Array) -> MixturePrior:
        n_features = X.shape[1]
        mean = X.mean(axis=0) if self.mean_prior is None else np.asarray(self.mean_prior, dtype=np.float64)
        if mean.shape != (n_features,):
            raise ValueError(f"mean_prior must have {n_features} entries, got shape {mean.shape}")
        degrees = n_features + 2.0 if self.degrees_of_freedom_prior is None else float(self.degrees_of_freedom_prior)
        if not degrees > n_features - 1:
            raise ValueError(f"degrees_of_freedom_prior must be above n_features - 1 = {n_features - 1}, got {degrees}")
        if self.covariance_prior is None:
            variances = X.var(axis=0)
            # A column that never varies gets the smallest spread that still leaves a density.
            floor = 1e-6 * (float(variances.mean()) or 1.0)
            scale = np.diag(np.maximum(variances, floor)) / self.n_components ** (2.0 / n_features)
        else:
            scale = np.asarray(self.covariance_prior, dtype=np.float64)
            if scale.shape != (n_features, n_features):
                raise ValueError(f"covariance_prior must have shape {(n_features, n_features)}, got {scale.shape}")
            if not (np.allclose(scale, scale.T) and np.linalg.eigvalsh(scale).min() > 0):
                raise ValueError("covariance_prior must be symmetric and positive definite: a prior of no width fits")
        return MixturePrior(float(self.weight_concentration), mean, float(self.mean_precision_prior), degrees, scale)

    def _named(self, raw: Trace, shift: Array, spread: Array) -> Trace:
        """Draws in the units of the data, the components of all in the same order, covariances for factors."""
        n_chains, n_draws = raw.n_chains, raw.n_draws
        means, factors = raw.flat("means"), raw.flat("factors")
        weights = raw.flat("weights") if "weights" in raw.draws else np.ones((len(means), 1))
        if self.relabel == "order":
            order = np.argsort(means[:, :, 0], axis=1)
        else:
            logs = np.log(np.diagonal(factors, axis1=2, axis2=3))
            features = np.concatenate([means, logs, np.log(weights)[:, :, None]], axis=2)
            order = relabelled(features, int(np.argmax(raw.stats["log_density"])))
            center = np.take_along_axis(means, order[:, :, None], axis=1).mean(axis=0)
            order = order[:, np.argsort(center[:, 0], kind="stable")]
        rows = np.arange(len(order))[:, None]
        factors = spread[:, None] * factors[rows, order]
        draws = {
            "weights": weights[rows, order],
            "means": shift + spread * means[rows, order],
            "covariances": factors @ np.swapaxes(factors, -1, -2),
        }
        shaped = {name: values.reshape(n_chains, n_draws, *values.shape[1:]) for name, values in draws.items()}
        return Trace(shaped, raw.stats, (), raw.n_warmup, raw.thin, raw.interrupted, raw.seconds)

    def _warn(self) -> None:
        if self.trace_.interrupted:
            return
        moving = {name: values for name, values in self.trace_.draws.items() if np.ptp(values) > 0}
        for sentence in Trace(moving, self.trace_.stats).diagnose():
            warnings.warn(sentence, ConvergenceWarning, stacklevel=3)

    def _predictive(self) -> list[GaussianMixtureDensity]:
        """Mixtures at draws spread evenly over the trace."""
        weights, means, covariances = (self.trace_.flat(name) for name in ("weights", "means", "covariances"))
        chosen = np.unique(np.linspace(0, len(means) - 1, min(self.n_predictive, len(means))).astype(int))
        return [GaussianMixtureDensity(weights[s], means[s], covariances[s]) for s in chosen]

    def _log_joint(self, X: ArrayLike) -> Array:
        """(n_draws, n_samples, n_components)."""
        check_is_fitted(self)
        rows: Array = validate_data(self, X, dtype=np.float64, reset=False)
        return np.stack([density.log_joint(rows) for density in self._predictive()])

    def score_samples(self, X: ArrayLike) -> Array:
        """Log of the posterior predictive density at each row: ``log E[p(x | parameters)]``."""
        joint = self._log_joint(X)
        total = np.logaddexp.reduce(joint, axis=2)
        return np.asarray(np.logaddexp.reduce(total, axis=0) - np.log(len(total)))

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Mean of :meth:`score_samples`."""
        return float(self.score_samples(X).mean())

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probability of each component for each row, averaged over the posterior."""
        joint = self._log_joint(X)
        return np.asarray(np.exp(joint - np.logaddexp.reduce(joint, axis=2, keepdims=True)).mean(axis=0))

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Likeliest component of each row."""
        return self.predict_proba(X).argmax(axis=1)

    def fit_predict(self, X: ArrayLike, y: Any = None) -> NDArray[np.int64]:
        """Fit, and give the likeliest component of each row."""
        return self.fit(X).predict(X)

    def summary(self) -> str:
        """Table of the posterior on one page of plain text."""
        check_is_fitted(self)
        return f"{type(self).__name__}: {len(self.weights_)} components\n\n{self.trace_.summary()}"

    def _check_fitted_state(self) -> None:
        if hasattr(self, "trace_"):
            k, d = self.n_components, self.n_features_in_
            for name, shape in (("weights", (k,)), ("means", (k, d)), ("covariances", (k, d, d))):
                if self.trace_.draws[name].shape[2:] != shape:
                    raise ValueError(f"trace_ must have draws of {name} of shape {shape}")


class _ValueOf:
    """The value of a function that also gives a gradient."""

    def __init__(self, target: Any):
        self.target = target

    def __call__(self, vector: Array) -> float:
        return float(self.target(vector)[0])


def _start(rng: np.random.Generator, X: Array, prior: MixturePrior, n_components: int) -> dict[str, Array]:
    """Clusters around random rows as starting values, drawn towards the prior so that none is empty or flat."""
    centers = X[rng.choice(len(X), size=n_components, replace=False)]
    for _ in range(5):
        distance = ((X[:, None] - centers) ** 2).sum(axis=2)
        labels = distance.argmin(axis=1)
        member = labels[:, None] == np.arange(n_components)
        counts = member.sum(axis=0)
        centers = np.where(counts[:, None] > 0, (member.T @ X) / np.maximum(counts, 1)[:, None], centers)
    factors = []
    for component, center in enumerate(centers):
        centred = X[labels == component] - center
        pooled = (prior.scale + centred.T @ centred) / (prior.degrees_of_freedom + counts[component])
        factors.append(np.linalg.cholesky(pooled))
    values = {"means": centers, "factors": np.array(factors)}
    if n_components > 1:
        values["weights"] = (counts + 1.0) / (len(X) + n_components)
    return values
