"""How many overlapping parts make up the data: binary features with an Indian buffet prior, Gaussian noise.

``X = Z A + noise``: row n is the sum of the features that it has. ``Z ~ IBP(alpha)``, ``A ~ N(0, feature_variance)``,
noise ``N(0, noise_variance)``. Features add up from zero, so data are not centred; `fit_bias` adds a row to all.

References
----------
Griffiths and Ghahramani (2011), The Indian buffet process: an introduction and review, JMLR 12.
Doshi-Velez, Miller, Van Gael and Teh (2009), Variational inference for the Indian buffet process, AISTATS.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

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
from pluri.inference.chains import split_r_hat
from pluri.inference.variational import coordinate_ascent
from pluri.validation import Stored, as_generator
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import Interrupted

Array = NDArray[np.float64]

INFERENCES = ("variational-finite", "variational", "gibbs")
LEARNABLE = ("alpha", "noise_variance", "feature_variance")
#: A feature counts as active if at least this share of the rows has it.
ACTIVE_SHARE = 0.05
#: The log joint density counts as settled when its split R-hat is below this.
SETTLED = 1.1
#: Larger data could not be squared and summed.
LARGEST = 1e100


class IBPLinearGaussian(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Latent binary features with an Indian buffet prior.

    Parameters
    ----------
    max_features : int, default=6
        Largest number of features; for Gibbs sampling, which has no limit, the number to begin with.
    alpha : float or "learn", default=1.0
        Expected number of features of a row.
    noise_variance, feature_variance : float or "learn", default="learn"
        Variances of the noise and of the entries of the features.
    inference : {"variational-finite", "variational", "gibbs"}, default="variational-finite"
        Mean field with independent probabilities Beta(alpha / K, 1); mean field with sticks; or collapsed Gibbs
        sampling, which is exact in the long run and finds the number of features by itself.
    fit_bias : bool, default=False
        Whether a row is added to all samples.
    n_init : int, default=5
        Number of starts; chains for Gibbs sampling. The best is kept.
    max_iter : int, default=500
        Largest number of sweeps of a variational run.
    tol : float, default=1e-7
        A variational run ends when the bound rises by less than this share of itself.
    n_samples, burn_in : int, default=500
        Sweeps of a chain that are kept, and before.
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
    alpha_, noise_variance_, feature_variance_ : float
    elbo_ : list of float
        Lower bound by sweep, of the best start; variational inference only.
    trace_ : `pluri.inference.mcmc.Trace`
        Number of features, alpha and variances by chain and draw; Gibbs sampling only.
    log_joint_ : float
        Log density of data and assignments of the draw that is kept; Gibbs sampling only.
    converged_ : bool
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
        alpha: float | str = 1.0,
        noise_variance: float | str = "learn",
        feature_variance: float | str = "learn",
        inference: str = "variational-finite",
        fit_bias: bool = False,
        n_init: int = 5,
        max_iter: int = 500,
        tol: float = 1e-7,
        n_samples: int = 500,
        burn_in: int = 500,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_features = max_features
        self.alpha = alpha
        self.noise_variance = noise_variance
        self.feature_variance = feature_variance
        self.inference = inference
        self.fit_bias = fit_bias
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_settings(self) -> dict[str, float | None]:
        least = {"max_features": 1, "n_init": 1, "max_iter": 1, "n_samples": 1, "burn_in": 0}
        for name, lowest in least.items():
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < lowest:
                raise ValueError(f"{name} must be an integer of at least {lowest}, got {value!r}")
        if self.inference not in INFERENCES:
            raise ValueError(f"inference must be one of {INFERENCES}, got {self.inference!r}")
        settings: dict[str, float | None] = {}
        for name in LEARNABLE:
            value = getattr(self, name)
            known = isinstance(value, Real) and 0 < float(value) < math.inf
            if value != "learn" and not known:
                raise ValueError(f"{name} must be a positive number or 'learn', got {value!r}")
            settings[name] = float(value) if known else None
        return settings

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
        settings = self._check_settings()
        data = validate_data(self, X, dtype=np.float64, ensure_min_samples=2 if self.fit_bias else 1)
        if float(np.abs(data).max()) > LARGEST:
            raise ValueError(f"X must not exceed {LARGEST:g} in size, got {np.abs(data).max():.3g}; rescale it")
        run = self._fit_gibbs if self.inference == "gibbs" else self._fit_variational
        fitted, assignments, usage, variances = run(data, settings)
        order = np.argsort(-usage, kind="stable")
        self.components_ = fitted.means[order]
        self.component_variances_ = fitted.variances[order]
        self.feature_probs_ = fitted.probabilities[order]
        self.assignments_ = np.ascontiguousarray(assignments[:, order])
        self.n_features_active_ = int((usage >= ACTIVE_SHARE).sum())
        self.bias_ = fitted.bias
        self.noise_variance_, self.feature_variance_ = (float(value) for value in variances)
        return self

    def _mean_field(self, settings: dict[str, float | None], infinite: bool) -> BuffetMeanField:
        values = (settings["alpha"], settings["noise_variance"], settings["feature_variance"])
        return BuffetMeanField(int(self.max_features), infinite, *values, bool(self.fit_bias))

    def _fit_variational(
        self, X: Array, settings: dict[str, float | None]
    ) -> tuple[FittedFeatures, Array, Array, tuple[float, float]]:
        infinite = self.inference == "variational"
        model = self._mean_field(settings, infinite)
        result = coordinate_ascent(
            model, X, rng=as_generator(self.random_state), max_iter=self.max_iter, tol=self.tol, n_init=self.n_init,
            verbose=int(self.verbose),
        )  # fmt: skip
        q: FeatureBeliefs = result.params
        self.elbo_ = result.trace.tolist()
        self.alpha_, self.n_iter_, self.converged_ = float(q.alpha), result.n_iter, result.converged
        if not result.converged and not result.interrupted:
            warnings.warn(
                f"the bound still rises after max_iter={self.max_iter} sweeps; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        mean = q.sticks[:, 0] / q.sticks.sum(axis=1)
        fitted = FittedFeatures(q.means, q.variances, np.cumprod(mean) if infinite else mean, q.bias, q.noise_variance)
        return fitted, q.assignments, q.assignments.mean(axis=0), (q.noise_variance, q.feature_variance)

    def _fit_gibbs(
        self, X: Array, settings: dict[str, float | None]
    ) -> tuple[FittedFeatures, Array, Array, tuple[float, float]]:
        n, n_dims = X.shape
        bias = math.inf if self.fit_bias else None
        size = max(float(((X - (X.mean(axis=0) if self.fit_bias else 0.0)) ** 2).mean()), 1e-10)
        kernel = IndianBuffetGibbs(
            X,
            alpha=settings["alpha"] or 1.0,
            noise_variance=settings["noise_variance"] or size / 2,
            feature_variance=settings["feature_variance"] or size,
            learn=tuple(name for name in LEARNABLE if settings[name] is None),
            noise_prior=(1.0, 0.1 * size),
            feature_prior=(1.0, size),
            bias_variance=bias,
        )

        rough = self._mean_field(settings, infinite=False)

        def start(rng: np.random.Generator) -> dict[str, Any]:
            # From random assignments a chain needs long to put features together; a rough fit is a better place.
            result = coordinate_ascent(rough, X, rng=rng, max_iter=50, tol=1e-4)
            if result.interrupted:
                raise Interrupted
            q = result.params
            Z = (q.assignments > 0.5).astype(np.int8)
            values = {name: float(getattr(q, name)) for name in LEARNABLE}
            if settings["noise_variance"] is None:  # a fit may be perfect, but a chain cannot begin without noise
                values["noise_variance"] = max(values["noise_variance"], 1e-6 * values["feature_variance"])
            return {"Z": Z} | {name: np.asarray(value) for name, value in values.items()}

        trace = mcmc.sample(
            kernel, start, record=kernel.record, n_draws=self.n_samples, n_warmup=self.burn_in, n_chains=self.n_init,
            random_state=as_generator(self.random_state), n_jobs=self.n_jobs, backend="threads",
            verbose=int(self.verbose), warn=False,
        )  # fmt: skip
        self.trace_ = trace.detached()  # a kernel holds all the data
        chain = int(np.argmax([end.state.best_log_density for end in trace.ends]))
        state = trace.ends[chain].state
        self.log_joint_ = float(state.best_log_density)
        r_hat = split_r_hat(trace.stats["log_density"][chain])
        self.converged_, self.n_iter_ = not r_hat > SETTLED, self.burn_in + trace.n_draws
        if not self.converged_ and not trace.interrupted:
            warnings.warn(
                f"the log joint density still drifts after burn_in={self.burn_in} sweeps (split R-hat {r_hat:.2f}): "
                "raise burn_in or n_samples",
                ConvergenceWarning,
                stacklevel=3,
            )
        best = state.best
        Z, noise, feature = best["Z"], float(best["noise_variance"]), float(best["feature_variance"])
        self.alpha_ = float(best["alpha"])
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
            f"alpha {self.alpha_:.3g}, noise variance {self.noise_variance_:.4g}, "
            f"feature variance {self.feature_variance_:.4g}",
            "",
            "feature  share of rows  length",
        ]
        usage, lengths = self.assignments_.mean(axis=0), np.linalg.norm(self.components_, axis=1)
        lines += [f"{k:<7d}  {usage[k]:<13.3f}  {lengths[k]:.4g}" for k in range(len(usage))]
        return "\n".join(lines)
