"""How many overlapping parts make up the data: binary features with an Indian buffet prior, Gaussian noise.

``X = Z A + noise``: row n is the sum of the features that it has. ``Z ~ IBP(c)``, c the concentration,
``A ~ N(0, feature_variance)``, noise ``N(0, noise_variance)``. Features add up from zero, so data are not centred;
`fit_bias` adds a row to all.

References
----------
Griffiths and Ghahramani (2011), The Indian buffet process: an introduction and review, JMLR 12.
Doshi-Velez, Miller, Van Gael and Teh (2009), Variational inference for the Indian buffet process, AISTATS.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pluri.factors.ibp_gibbs import IndianBuffetGibbs
from pluri.factors.ibp_likelihood import feature_posterior
from pluri.factors.ibp_mean_field import BuffetMeanField, FeatureBeliefs
from pluri.factors.ibp_prediction import FittedFeatures, assign, log_density
from pluri.inference import mcmc
from pluri.inference.variational import coordinate_ascent
from pluri.priors.hyperpriors import Gamma
from pluri.processes.concentration import CONCENTRATION_PRIOR
from pluri.validation import Allowed, Flag, Made, Number, Only, Stored, Whole, as_generator, check_parameters
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import Interrupted

Array = NDArray[np.float64]

LEARNABLE = ("concentration", "noise_variance", "feature_variance")
#: A feature counts as active if at least this share of the rows has it.
ACTIVE_SHARE = 0.05
#: Larger data could not be squared and summed.
LARGEST = 1e100


class IBPLinearGaussian(ClassNamePrefixFeaturesOutMixin, TransformerMixin, mcmc.Sampled, Estimator):
    """Latent binary features with an Indian buffet prior.

    Parameters
    ----------
    max_features : int, default=6
        Largest number of features; for Gibbs sampling, which has no limit, the number to begin with.
    concentration : float, Gamma prior or "learn", default=1.0
        Expected number of features of a row: fixed, or learned under a prior. "learn" stands for ``Gamma(1, 1)`` if
        it is sampled, and for no prior at all if a bound is maximised.
    noise_variance, feature_variance : float or "learn", default="learn"
        Variances of the noise and of the entries of the features.
    inference : {"vb_finite", "vb", "gibbs"}, default="vb_finite"
        Mean field with independent probabilities Beta(concentration / K, 1); mean field with sticks; or collapsed
        Gibbs sampling, which is exact in the long run and finds the number of features by itself.
    fit_bias : bool, default=False
        Whether a row is added to all samples.
    n_init : int, default=5
        Starts of a variational run, of which the best is kept.
    max_iter : int, default=500
        Largest number of sweeps of a variational run.
    tol : float, default=1e-7
        A variational run ends when the bound rises by less than this share of itself.
    n_draws, n_warmup : int, default=500
        Sweeps of a chain that are kept, and before.
    n_chains : int, default=5
        Chains of Gibbs sampling; the best draw of all of them gives the features.
    n_jobs : int or None, default=None
        Chains run at a time, in threads.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features_in_)
        Posterior means of the features, most frequent first. For Gibbs sampling, given the draw of highest density.
    assignments_ : array of shape (n_samples, n_components)
        Probability that each row of the data has each feature (zeros and ones for Gibbs sampling).
    feature_probs_ : array of shape (n_components,)
        Probability that a new row has each feature.
    n_features_active_ : int
        Number of features that at least 5 % of the rows have.
    component_variances_ : array of shape (n_components,)
        Posterior variances of the entries of each feature.
    bias_ : array of shape (n_features_in_,)
        Zero without `fit_bias`.
    concentration_, noise_variance_, feature_variance_ : float
    elbo_ : list of float
        Lower bound by sweep, of the best start; variational inference only.
    trace_ : `pluri.inference.mcmc.Trace`
        Number of features, concentration and variances by chain and draw; Gibbs sampling only.
    log_joint_ : float
        Log density of data and assignments of the draw that is kept; Gibbs sampling only.
    converged_ : bool
        Whether the bound had stopped rising, or the chains agreed on the log density.
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors import IBPLinearGaussian
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.integers(0, 2, size=(80, 2))
    >>> X = Z @ np.array([[3.0, 0, 3, 0], [0, 3, 3, 0]]) + 0.3 * rng.normal(size=(80, 4))
    >>> model = IBPLinearGaussian(max_features=5, random_state=0).fit(X)
    >>> model.n_features_active_
    2
    >>> bool(abs(model.inverse_transform(model.transform(X)) - X).mean() < 0.3)
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "max_features": Whole(1),
        "concentration": Number(above=0) | Only("learn") | Made(Gamma, "a prior (Gamma)"),
        "noise_variance": Number(above=0) | Only("learn"),
        "feature_variance": Number(above=0) | Only("learn"),
        "inference": Only("vb_finite", "vb", "gibbs"),
        "fit_bias": Flag(),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "components_": Stored("n_parts", "n_features_in_"),
        "component_variances_": Stored("n_parts"),
        "feature_probs_": Stored("n_parts", least=0),
        "assignments_": Stored("n_rows", "n_parts"),
        "bias_": Stored("n_features_in_"),
    }

    def __init__(
        self,
        max_features: int = 6,
        *,
        concentration: float | Gamma | Literal["learn"] = 1.0,
        noise_variance: float | str = "learn",
        feature_variance: float | str = "learn",
        inference: str = "vb_finite",
        fit_bias: bool = False,
        n_init: int = 5,
        max_iter: int = 500,
        tol: float = 1e-7,
        n_draws: int = 500,
        n_warmup: int = 500,
        n_chains: int = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_features = max_features
        self.concentration = concentration
        self.noise_variance = noise_variance
        self.feature_variance = feature_variance
        self.inference = inference
        self.fit_bias = fit_bias
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the features.

        After Ctrl-C the model is that of the sweeps so far, with a warning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : object
        """
        check_parameters(self)
        data = validate_data(self, X, dtype=np.float64, ensure_min_samples=2 if self.fit_bias else 1)
        if float(np.abs(data).max()) > LARGEST:
            raise ValueError(f"X must not exceed {LARGEST:g} in size, got {np.abs(data).max():.3g}; rescale it")
        run = self._fit_gibbs if self.inference == "gibbs" else self._fit_variational
        for name in {"trace_", "log_joint_", "elbo_"} & set(vars(self)):
            delattr(self, name)
        fitted, assignments, usage, variances = run(data)
        order = np.argsort(-usage, kind="stable")
        self.components_ = fitted.means[order]
        self.component_variances_ = fitted.variances[order]
        self.feature_probs_ = fitted.probabilities[order]
        self.assignments_ = np.ascontiguousarray(assignments[:, order])
        self.n_features_active_ = int((usage >= ACTIVE_SHARE).sum())
        self.bias_ = fitted.bias
        self.noise_variance_, self.feature_variance_ = (float(value) for value in variances)
        return self

    def _known(self, name: str) -> float | None:
        """The number that a parameter is fixed at; None if it is learned."""
        value = getattr(self, name)
        return None if isinstance(value, str | Gamma) else float(value)

    def _mean_field(self, infinite: bool) -> BuffetMeanField:
        prior = self.concentration if isinstance(self.concentration, Gamma) else None
        return BuffetMeanField(
            int(self.max_features), infinite, self._known("concentration"), self._known("noise_variance"),
            self._known("feature_variance"), bool(self.fit_bias), prior,
        )  # fmt: skip

    def _fit_variational(self, X: Array) -> tuple[FittedFeatures, Array, Array, tuple[float, float]]:
        infinite = self.inference == "vb"
        model = self._mean_field(infinite)
        result = coordinate_ascent(
            model, X, rng=as_generator(self.random_state), max_iter=self.max_iter, tol=self.tol, n_init=self.n_init,
            verbose=int(self.verbose),
        )  # fmt: skip
        q: FeatureBeliefs = result.params
        self.elbo_ = result.trace.tolist()
        self.concentration_, self.n_iter_, self.converged_ = float(q.concentration), result.n_iter, result.converged
        if not result.converged and not result.interrupted:
            warnings.warn(
                f"the bound still rises after max_iter={self.max_iter} sweeps; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        mean = q.sticks[:, 0] / q.sticks.sum(axis=1)
        fitted = FittedFeatures(q.means, q.variances, np.cumprod(mean) if infinite else mean, q.bias, q.noise_variance)
        return fitted, q.assignments, q.assignments.mean(axis=0), (q.noise_variance, q.feature_variance)

    def _fit_gibbs(self, X: Array) -> tuple[FittedFeatures, Array, Array, tuple[float, float]]:
        n, n_dims = X.shape
        bias = math.inf if self.fit_bias else None
        size = max(float(((X - (X.mean(axis=0) if self.fit_bias else 0.0)) ** 2).mean()), 1e-10)
        kernel = IndianBuffetGibbs(
            X,
            concentration=CONCENTRATION_PRIOR if self.concentration == "learn" else self.concentration,
            noise_variance=self._known("noise_variance") or size / 2,
            feature_variance=self._known("feature_variance") or size,
            noise_prior=Gamma(1.0, 0.1 * size) if self.noise_variance == "learn" else None,
            feature_prior=Gamma(1.0, size) if self.feature_variance == "learn" else None,
            bias_variance=bias,
        )

        rough = self._mean_field(infinite=False)

        def start(rng: np.random.Generator) -> dict[str, Any]:
            # From random assignments a chain needs long to put features together; a rough fit is a better place.
            result = coordinate_ascent(rough, X, rng=rng, max_iter=50, tol=1e-4)
            if result.interrupted:
                raise Interrupted
            q = result.params
            Z = (q.assignments > 0.5).astype(np.int8)
            values = {name: float(getattr(q, name)) for name in LEARNABLE}
            if self.noise_variance == "learn":  # a fit may be perfect, but a chain cannot begin without noise
                values["noise_variance"] = max(values["noise_variance"], 1e-6 * values["feature_variance"])
            return {"Z": Z} | {name: np.asarray(value) for name, value in values.items()}

        trace = mcmc.sample(
            kernel, start, record=kernel.record, n_draws=self.n_draws, n_warmup=self.n_warmup, n_chains=self.n_chains,
            random_state=as_generator(self.random_state), n_jobs=self.n_jobs, backend="threads",
            verbose=int(self.verbose), warn=False,
        )  # fmt: skip
        self.trace_ = trace.detached()  # a kernel holds all the data
        chain = int(np.argmax([end.state.best_log_density for end in trace.ends]))
        state = trace.ends[chain].state
        self.log_joint_ = float(state.best_log_density)
        verdict = trace.verdict("log_density", limit=mcmc.LATENT_R_HAT_LIMIT)
        self.converged_, self.n_iter_ = verdict.settled, self.n_warmup + trace.n_draws
        if not trace.interrupted:
            verdict.warn(stacklevel=4)
        best = state.best
        Z, noise, feature = best["Z"], float(best["noise_variance"]), float(best["feature_variance"])
        self.concentration_ = float(best["concentration"])
        posterior = feature_posterior(X, Z, noise, feature, bias)
        first = 0 if bias is None else 1
        fitted = FittedFeatures(
            posterior.mean[first:],
            noise * np.diagonal(posterior.spread)[first:],
            Z.sum(axis=0) / (n + 1.0),
            posterior.mean[0] if first else np.zeros(n_dims),
            noise,
        )
        return fitted, Z.astype(np.float64), Z.mean(axis=0), (noise, feature)

    def _checked(self, X: Any) -> tuple[Array, FittedFeatures]:
        check_is_fitted(self)
        data = validate_data(self, X, dtype=np.float64, reset=False)
        return data, FittedFeatures(
            self.components_, self.component_variances_, self.feature_probs_, self.bias_, self.noise_variance_
        )

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Any) -> Array:
        """Probability that each row has each feature: array of shape (n_samples, n_components)."""
        return assign(*self._checked(X))

    def inverse_transform(self, Z: Any) -> Array:
        """Rows that assignments of shape (n_samples, n_components) stand for."""
        check_is_fitted(self)
        values = check_array(Z, dtype=np.float64, ensure_min_features=0)
        if values.shape[1] != len(self.components_):
            raise ValueError(f"Z must have {len(self.components_)} columns, one per feature, got {values.shape[1]}")
        return np.asarray(values @ self.components_ + self.bias_)

    def score_samples(self, X: Any) -> Array:
        """Log predictive density of each row: exact with up to 12 features, a lower bound beyond."""
        return log_density(*self._checked(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log predictive density of the rows."""
        return float(self.score_samples(X).mean())

    def summary(self) -> str:
        """The fitted model on one page of plain text."""
        check_is_fitted(self)
        state = "converged" if self.converged_ else "not converged"
        value = (
            f"log joint density {self.log_joint_:.3f}" if self.inference == "gibbs" else f"bound {self.elbo_[-1]:.3f}"
        )
        lines = [
            f"{type(self).__name__}: {self.n_features_active_} active of {len(self.components_)} features, "
            f"{self.n_features_in_} columns",
            f"{self.inference}: {state} after {self.n_iter_} sweeps; {value}",
            f"concentration {self.concentration_:.3g}, noise variance {self.noise_variance_:.4g}, "
            f"feature variance {self.feature_variance_:.4g}",
            "",
            "feature  share of rows  length",
        ]
        usage, lengths = self.assignments_.mean(axis=0), np.linalg.norm(self.components_, axis=1)
        lines += [f"{k:<7d}  {usage[k]:<13.3f}  {lengths[k]:.4g}" for k in range(len(usage))]
        return "\n".join(lines)
