"""Regression by infinitely many experts: locally linear, with noise and even several branches that depend on x.

``y | x ~ sum_k w_k(x) N(g_k + d_k' x, 1 / tau_k)``, ``w_k(x) = v_k(x) prod_{j<k} (1 - v_j(x))``,
``v_k(x) = Phi(a_k + b_k' x)``. The whole conditional density of y is modelled, not just its mean; how many experts are
used is learned. Sampled by `pluri.mixtures.experts.gibbs`.

References
----------
.. [1] Rodriguez, A. and Dunson, D. B. (2011). Nonparametric Bayesian models through probit stick-breaking processes.
   Bayesian Analysis 6, 145-178.
.. [2] Chung, Y. and Dunson, D. B. (2009). Nonparametric Bayes conditional distribution modeling with variable
   selection. JASA 104, 1646-1660.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from pluri.inference import mcmc
from pluri.mixtures.experts.gibbs import ExpertsGibbs, ExpertsPrior, with_intercept
from pluri.mixtures.experts.prediction import ExpertDraws, same_experts
from pluri.mixtures.experts.queries import ExpertQueries
from pluri.priors import Gamma
from pluri.validation import (
    Allowed,
    Made,
    Only,
    RandomState,
    Stored,
    Whole,
    as_generator,
    check_parameters,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]
#: What `noise_prior` is unless something else is said.
NOISE_PRIOR = Gamma(1.0, 0.01)
#: An expert is active if its mean weight is above this at some row; and so much for the last one is a sign that
#: max_components is too small.
ACTIVE_WEIGHT = 0.05
#: Rows by whose labels the experts of different draws are recognised, and at which chains are compared.
MOST_ANCHORS, MOST_COMPARED = 200, 10


class InfiniteMixtureOfExperts(ExpertQueries, mcmc.Sampled, RegressorMixin, Estimator):
    """Probit stick-breaking mixture of linear regressions, sampled.

    Parameters
    ----------
    max_components : int, default=20
        Where the infinite number of experts is cut off; a warning says if it was too early.
    weight_scale : float or (float, float), default=5.0
        Standard deviation of the prior of the sticks' coefficients; a pair is for the intercept and for the slopes.
        ``(1.0, 0.0)`` makes the weights those of a Dirichlet process with concentration 1, whatever the input.
    coef_scale : float or (float, float), default=10.0
        The same for the regressions.
    noise_prior : `pluri.priors.Gamma` prior or None, default=None
        Of the experts' precisions; None is Gamma(1.0, 0.01). The rate is a floor of sorts under the noise: with
        the published 1, intervals come out too wide where y is much less noisy than it varies in all (of the kinds of
        data in ``benchmarks/reproduce/lidar_experts.py``, bands of 50 % hold up to 77 % of new values).
    standardize : bool, default=True
        Sample in units in which the columns of X, and y, have mean 0 and variance 1. The priors are in these units.
    n_draws, n_warmup : int, default=500
        Draws kept of each chain, and sweeps before them.
    n_chains : int, default=2
    n_predictive : int, default=400
        Draws that predictions average over, spread evenly over the chains.
    warm_start : bool, default=False
        Go on with the chains of the last fit, to the same X and y, and add `n_draws` draws.
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
        Chains at a time.
    verbose : int, default=0

    Attributes
    ----------
    trace_ : Trace
        Draws of ``sticks``, ``coefficients``, ``precisions`` in standardised units, and of the labels of some rows.
        Experts may change their numbers from draw to draw; what does not depend on numbers is in ``trace_.stats``:
        ``log_likelihood``, ``n_occupied``.
    n_active_ : int
        Experts whose posterior mean weight exceeds 0.05 at some of the training rows.
    converged_ : bool
        Whether the chains agree on the regression function: R-hat is at most 1.1 at all of some training rows.
    x_mean_, x_scale_ : arrays of shape (n_features,)
    y_mean_, y_scale_ : float
        Units of the trace.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures.experts import InfiniteMixtureOfExperts
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(150, 1))
    >>> y = np.abs(X[:, 0]) + rng.normal(0, 0.1, size=150)
    >>> model = InfiniteMixtureOfExperts(n_draws=200, n_warmup=200, random_state=0).fit(X, y)
    >>> model.n_active_ >= 2  # a line on either side of the bend
    True
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> mean, interval = model.predict([[-1.0], [1.0]], return_interval=0.9)
    >>> interval.shape
    (2, 2)
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "x_mean_": Stored("n_features_in_"),
        "x_scale_": Stored("n_features_in_"),
        "_sticks": Stored("n_kept", "n_sticks", "n_features_in_+1"),
        "_coefficients": Stored("n_kept", "n_sticks+1", "n_features_in_+1"),
        "_precisions": Stored("n_kept", "n_sticks+1", least=0),
        "_order": Stored("n_kept", "n_experts", whole=True, least=0, below="n_experts"),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "max_components": Whole(1),
        "noise_prior": Made(Gamma, "a prior (Gamma)") | Only(None),
    }

    def __init__(
        self,
        max_components: int = 20,
        *,
        weight_scale: float | tuple[float, float] = 5.0,
        coef_scale: float | tuple[float, float] = 10.0,
        noise_prior: Gamma | None = None,
        standardize: bool = True,
        n_draws: int = 500,
        n_warmup: int = 500,
        n_chains: int = 2,
        n_predictive: int = 400,
        warm_start: bool = False,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.max_components = max_components
        self.weight_scale = weight_scale
        self.coef_scale = coef_scale
        self.noise_prior = noise_prior
        self.standardize = standardize
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.n_predictive = n_predictive
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Sample the posterior of the experts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        with restored_on_failure(self):
            rows, values = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            values = np.asarray(values, dtype=np.float64)
            prior = self._check_settings(rows.shape[1])
            x_mean, x_scale = _center_and_scale(rows) if self.standardize else (np.zeros(1), np.ones(1))
            y_mean, y_scale = _center_and_scale(values[:, None]) if self.standardize else (np.zeros(1), np.ones(1))
            units = (rows - x_mean) / x_scale, (values - y_mean) / y_scale
            anchors = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_ANCHORS)).astype(np.int64))
            kernel = ExpertsGibbs(*units, self.max_components, prior, anchors)
            trace = self._sample(kernel)
            self.x_mean_, self.x_scale_ = (np.broadcast_to(v, rows.shape[1]).copy() for v in (x_mean, x_scale))
            self.y_mean_, self.y_scale_ = float(y_mean[0]), float(y_scale[0])
            self.trace_ = trace.detached()
            self._set_predictive(units[0][anchors])
        return self

    def _check_settings(self, n_features: int) -> ExpertsPrior:
        check_parameters(self)
        return ExpertsPrior(
            _as_scales(self.weight_scale, "weight_scale", n_features),
            _as_scales(self.coef_scale, "coef_scale", n_features),
            NOISE_PRIOR if self.noise_prior is None else self.noise_prior,
        )

    def _sample(self, kernel: ExpertsGibbs) -> mcmc.Trace:
        settings: dict[str, Any] = {"n_jobs": self.n_jobs, "verbose": self.verbose, "warn": False}
        if self.warm_start and hasattr(self, "trace_"):
            if any(len(end.position["labels"]) != len(kernel.y) for end in self.trace_.ends):
                raise ValueError(
                    f"X must be that of the last fit with warm_start, got another number of rows, {len(kernel.y)}"
                )
            return mcmc.resume(self.trace_, self.n_draws, kernel=kernel, record=kernel.record, **settings)
        return mcmc.sample(
            kernel, kernel.start, n_draws=self.n_draws, n_warmup=self.n_warmup, n_chains=self.n_chains,
            record=kernel.record, random_state=as_generator(self.random_state), **settings,
        )  # fmt: skip

    def _set_predictive(self, anchors: Array) -> None:
        """What predictions need, and warnings about what they are worth."""
        trace, design = self.trace_, with_intercept(anchors)
        total = trace.n_chains * trace.n_draws
        chosen = np.unique(np.linspace(0, total - 1, min(total, self.n_predictive)).astype(np.int64))
        draws = [trace.flat(name)[chosen] for name in ("sticks", "coefficients", "precisions")]
        labels, log_density = trace.flat("anchor_labels")[chosen], np.ravel(trace.stats["log_density"])[chosen]
        self._sticks, self._coefficients, self._precisions = draws
        self._order = same_experts(labels, draws[2].shape[1], int(np.argmax(log_density)))
        self.n_active_ = int((self._mean_weights(design).max(axis=0) > ACTIVE_WEIGHT).sum())
        last = float(self._draws().weights_at(design)[:, :, -1].mean(axis=1).max())
        if self.max_components > 1 and last > ACTIVE_WEIGHT:
            warnings.warn(
                f"the last of max_components={self.max_components} experts has a weight of up to {last:.2f}: there "
                "are too few of them to stand for infinitely many; raise max_components",
                ConvergenceWarning,
                stacklevel=3,
            )
        compared = np.unique(np.linspace(0, len(design) - 1, min(len(design), MOST_COMPARED)).astype(np.int64))
        every = ExpertDraws(*(trace.flat(name) for name in ("sticks", "coefficients", "precisions")))
        curves = every.curves_at(design[compared]).T.reshape(trace.n_chains, trace.n_draws, len(compared))
        verdict = mcmc.judge({"regression function": curves}, mcmc.LATENT_R_HAT_LIMIT)
        self.converged_ = verdict.settled
        if not trace.interrupted:
            verdict.warn(stacklevel=4)

    def _check_fitted_state(self) -> None:
        if hasattr(self, "_order") and self._order.shape != self._precisions.shape:
            raise ValueError(f"_order must have shape {self._precisions.shape}, got {self._order.shape}")


def _center_and_scale(values: Array) -> tuple[Array, Array]:
    """Means and standard deviations of columns; a column that does not vary keeps its unit."""
    mean, spread = values.mean(axis=0), values.std(axis=0)
    # The spread of equal numbers may come out as a rounding error instead of 0.
    return mean, np.where(spread > 1e-12 * np.maximum(np.abs(mean), 1e-300), spread, 1.0)


def _as_scales(value: Any, name: str, n_features: int) -> Array:
    pair = np.asarray(value, dtype=np.float64) if not isinstance(value, str) else np.empty(0)
    if pair.shape not in ((), (2,)) or not (np.isfinite(pair) & (pair >= 0)).all() or not pair.any():
        raise ValueError(
            f"{name} must be a positive number, or two of at least 0 for intercept and slopes, got {value!r}"
        )
    intercept, slope = np.broadcast_to(pair, 2)
    return np.concatenate([[intercept], np.full(n_features, slope)])
