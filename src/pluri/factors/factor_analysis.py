"""Factor analysis: features as linear functions of a few common factors, each with its own noise.

``y = W x + m + noise``, ``x ~ N(0, I)``, so that ``y ~ N(m, W W' + diag(psi))``. With equal noise in all features it is
probabilistic principal component analysis, whose maximum of likelihood is known:
``W = U (Lambda - s2 I)^(1/2)`` from the largest eigenvalues and -vectors of the covariance, s2 the mean of the others.

References
----------
Rubin and Thayer (1982), EM algorithms for ML factor analysis, Psychometrika 47.
Tipping and Bishop (1999), Probabilistic principal component analysis, JRSS B 61.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, validate_data

from pluri.engine import ArraySource, resolve_engine
from pluri.factors.factor_analysis_gibbs import FactorAnalysisGibbs, Position, as_law
from pluri.factors.factor_analysis_problem import FactorAnalysisProblem
from pluri.factors.factor_analyzer_family import FactorAnalyzerFamily, center_and_floor
from pluri.factors.low_rank_gaussian import (
    LowRankGaussians,
    Patterns,
    canonical,
    draw,
    factor_posterior,
    principal_factors,
)
from pluri.inference import expectation_maximization, mcmc
from pluri.priors.hyperpriors import BetaProcess, Gamma
from pluri.validation import (
    Allowed,
    Made,
    Number,
    Only,
    Stored,
    Whole,
    as_generator,
    check_count,
    check_parameters,
    restored_on_failure,
    weighted_mean,
)
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]

GAMMA = Made(Gamma, "a prior, Gamma(shape, rate)") | Only(None)
#: What None stands for: scikit-learn wants plain values as defaults.
PRIORS: dict[str, Any] = {
    "support_prior": BetaProcess(1.0, 1.0),
    "noise_prior": Gamma(1.0, 1e-3),
    "loading_prior": Gamma(1.0, 1.0),
    "mean_precision_prior": Gamma(1.0, 1.0),
}
#: Noise that sampling starts from, as a share of the variance of the data, at least.
LEAST_NOISE = 1e-6
#: Larger data could not be squared and summed.
LARGEST = 1e100


class BayesianFactorAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, mcmc.Sampled, Estimator):
    """Factor analysis by EM or Gibbs sampling, which can infer the number of factors.

    Priors are for data that are centred and divided by one number, so that their mean variance is one.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of factors, or the largest number if the rank is inferred; None is the number of features.
    noise_type : {"diag", "isotropic"}, default="diag"
        A variance for each feature, or one for all (probabilistic PCA).
    inference : {"em", "gibbs"}, default="em"
        Maximum likelihood, which takes missing values (NaN) and weights; or draws from the posterior.
    rank : {"fixed", "inferred"}, default="fixed"
        Whether all factors are used, or as many as the data need; the latter by Gibbs sampling only.
    tol : float, default=1e-6
        EM ends when an iteration raises the mean log-likelihood of a row by less.
    max_iter : int, default=1000
        Largest number of iterations of EM.
    noise_floor : float, default=1e-6
        Smallest variance of the noise in EM, as a share of the variance of the feature.
    support_prior : BetaProcess prior or None, default=None
        Of which factors are in use if the rank is inferred: ``BetaProcess(a, b)`` expects about a / b of them. None is
        ``BetaProcess(1.0, 1.0)``.
    noise_prior : Gamma prior or None, default=None
        Of one over the variance of the noise, for Gibbs sampling; None is ``Gamma(1.0, 1e-3)``.
    loading_prior, mean_precision_prior : Gamma prior or None, default=None
        The same for loadings (of each factor if the rank is fixed) and mean; None is ``Gamma(1.0, 1.0)``.
    n_draws, n_warmup : int, default=500
        Sweeps of a chain that are kept, and before.
    n_chains : int, default=1
    acceleration : {None, "squarem", "anderson"}, default=None
        Extrapolate EM.
    n_jobs : int or None, default=None
        Threads of the E-step, or chains run at a time.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Loadings, the rows of W', turned so that ``W' diag(1 / noise) W`` is diagonal, strongest factor first. For Gibbs
        sampling, those of the draw of highest density among draws of the most frequent rank.
    mean_ : array of shape (n_features,)
    noise_variance_ : array of shape (n_features,)
    rank_ : int
        Number of factors in use; the most frequent one if it is inferred.
    rank_probabilities_ : array of shape (n_components + 1,)
        Posterior probabilities of the ranks 0, 1, ...; Gibbs sampling only.
    trace_ : `pluri.inference.mcmc.Trace`
        Rank, mean, noise and communalities by chain and draw; Gibbs sampling only.
    loglike_ : list of float
        Log-likelihood by iteration; EM only.
    converged_ : bool
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.factor_analysis import BayesianFactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.2 * rng.normal(size=(300, 6))
    >>> model = BayesianFactorAnalysis(5, inference="gibbs", rank="inferred", random_state=0).fit(X)
    >>> model.rank_
    2
    >>> model.transform(X).shape
    (300, 2)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(0) | Only(None),
        "noise_type": Only("diag", "isotropic"),
        "inference": Only("em", "gibbs"),
        "rank": Only("fixed", "inferred"),
        "noise_floor": Number(above=0),
        "support_prior": Made(BetaProcess, "a prior, BetaProcess(a, b)") | Only(None),
        "noise_prior": GAMMA,
        "loading_prior": GAMMA,
        "mean_precision_prior": GAMMA,
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "mean_": Stored("n_features_in_"),
        "noise_variance_": Stored("n_features_in_", least=0),
        "components_": Stored("rank_", "n_features_in_"),
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        noise_type: str = "diag",
        inference: str = "em",
        rank: str = "fixed",
        tol: float = 1e-6,
        max_iter: int = 1000,
        noise_floor: float = 1e-6,
        support_prior: BetaProcess | None = None,
        noise_prior: Gamma | None = None,
        loading_prior: Gamma | None = None,
        mean_precision_prior: Gamma | None = None,
        n_draws: int = 500,
        n_warmup: int = 500,
        n_chains: int = 1,
        acceleration: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.noise_type = noise_type
        self.inference = inference
        self.rank = rank
        self.tol = tol
        self.max_iter = max_iter
        self.noise_floor = noise_floor
        self.support_prior = support_prior
        self.noise_prior = noise_prior
        self.loading_prior = loading_prior
        self.mean_precision_prior = mean_precision_prior
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.acceleration = acceleration
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.inference == "em"
        return tags

    def _check_settings(self) -> None:
        check_parameters(self)
        if self.inference == "gibbs" and self.n_components is not None:
            check_count(self.n_components, "n_components")
        if self.rank == "inferred" and self.inference == "em":
            raise ValueError("rank must be 'fixed' for inference='em', got 'inferred': use inference='gibbs'")

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the factors.

        After Ctrl-C the model is that of the iterations so far, with a warning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN marks a missing value, for EM only.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; for Gibbs sampling whole numbers, how often each row is there.

        Returns
        -------
        self : object
        """
        self._check_settings()
        with restored_on_failure(self):
            missing: Any = "allow-nan" if self.inference == "em" else True
            data = validate_data(self, X, dtype=np.float64, ensure_all_finite=missing)
            if np.nanmax(np.abs(data), initial=0.0) > LARGEST:
                raise ValueError(f"X must not exceed {LARGEST:g} in size; rescale it")
            q = data.shape[1] if self.n_components is None else int(self.n_components)
            if q > data.shape[1]:
                raise ValueError(f"n_components must be at most the number of features ({data.shape[1]}), got {q}")
            for name in {"trace_", "rank_probabilities_", "loglike_"} & set(vars(self)):
                delattr(self, name)
            if self.inference == "em":
                self._fit_em(data, q, sample_weight)
            else:
                self._fit_gibbs(_repeated(data, sample_weight), q)
        return self

    def _fit_em(self, X: Array, q: int, sample_weight: ArrayLike | None) -> None:
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        if weight is not None and not weight.any():
            raise ValueError("sample_weight must have at least one positive weight, got only zero weights")
        source = ArraySource(X, sample_weight=weight)
        center, floor = center_and_floor(source, float(self.noise_floor))
        # With equal noise the starting values are the answer, unless something is missing.
        jitter = 0.0 if self.noise_type == "isotropic" else 0.01
        family = FactorAnalyzerFamily(q, self.noise_type, center, floor, bool(np.isnan(X).any()), jitter=jitter)
        total = len(X) if weight is None else float(weight.sum())
        result = expectation_maximization(
            FactorAnalysisProblem(family), source, rng=as_generator(self.random_state), max_iter=int(self.max_iter),
            tol=float(self.tol) * total, acceleration=self.acceleration,
            engine=resolve_engine(n_jobs=self.n_jobs), verbose=int(self.verbose),
        )  # fmt: skip
        self.loglike_ = result.history.log_likelihood.tolist()
        self.converged_, self.n_iter_ = bool(result.converged), int(result.n_iter)
        self._store(result.params)
        if result.reason == "max_iter" and float(self.tol) > 0:
            warnings.warn(
                f"EM did not converge in max_iter={self.max_iter} iterations: raise max_iter or tol, or try "
                "acceleration='squarem'",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _fit_gibbs(self, X: Array, q: int) -> None:
        center = X.mean(axis=0)
        variance = float(((X - center) ** 2).mean())
        scale = math.sqrt(variance) if variance > 0 else 1.0
        priors = {name: getattr(self, name) or prior for name, prior in PRIORS.items()}
        kernel = FactorAnalysisGibbs((X - center) / scale, q, self.noise_type, self.rank, **priors)

        def start(rng: np.random.Generator) -> Position:
            # On principal axes factors that are not needed are near nothing, and are switched off at once.
            _, loadings, noise = principal_factors(kernel.data, np.ones(len(X)), q, LEAST_NOISE)
            position = dict(kernel.sample_prior(rng))
            return position | {
                "mean": np.zeros(X.shape[1]),
                "loadings": loadings.T,
                "support": np.ones(q, dtype=np.int8),
                "noise_precision": np.full(position["noise_precision"].shape, 1 / noise),
                "loading_precision": np.ones_like(position["loading_precision"]),
                "mean_precision": np.asarray(1.0),
            }

        trace = mcmc.sample(
            kernel, start, record=kernel.record, n_draws=int(self.n_draws), n_warmup=int(self.n_warmup),
            n_chains=int(self.n_chains), random_state=as_generator(self.random_state), n_jobs=self.n_jobs,
            backend="threads", verbose=int(self.verbose), warn=False,
        )  # fmt: skip
        self.trace_ = trace.detached()  # a kernel holds all the data
        ranks = np.bincount(trace.flat("rank").astype(np.int64), minlength=q + 1)
        self.rank_probabilities_ = ranks / ranks.sum()
        seen = [end.state.best[int(ranks.argmax())] for end in trace.ends]
        _, best = max((found for found in seen if found is not None), key=lambda found: found[0])
        verdict = trace.verdict("log_density", limit=mcmc.LATENT_R_HAT_LIMIT)
        self.converged_, self.n_iter_ = verdict.settled, int(self.n_warmup) + trace.n_draws
        law = as_law(best)
        on = best["support"] > 0
        self._store(LowRankGaussians(law.means * scale + center, law.loadings[:, :, on] * scale, law.noise * scale**2))
        if not trace.interrupted:
            verdict.warn(stacklevel=4)

    def _store(self, law: LowRankGaussians) -> None:
        law = canonical(law)
        self.mean_, self.noise_variance_ = law.means[0], law.noise[0]
        self.components_ = np.ascontiguousarray(law.loadings[0].T)
        self.rank_ = len(self.components_)

    # Queries ----------------------------------------------------------------------------------------------------

    def _law(self) -> LowRankGaussians:
        check_is_fitted(self, "components_")
        return LowRankGaussians(self.mean_[None], self.components_.T[None], self.noise_variance_[None])

    def _rows(self, X: Any) -> Patterns:
        check_is_fitted(self, "components_")
        missing: Any = "allow-nan" if self.inference == "em" else True
        return Patterns.of(validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=missing))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Any) -> Array:
        """Posterior means of the factors: array of shape (n_samples, n_components)."""
        return factor_posterior(self._law(), 0, self._rows(X)).means

    def inverse_transform(self, X: Any) -> Array:
        """Rows that factors of shape (n_samples, n_components) stand for, without noise."""
        check_is_fitted(self, "components_")
        factors = check_array(X, dtype=np.float64, ensure_min_features=0)
        if factors.shape[1] != len(self.components_):
            raise ValueError(f"X must have {len(self.components_)} columns, one per factor, got {factors.shape[1]}")
        return np.asarray(factors @ self.components_ + self.mean_)

    def score_samples(self, X: Any) -> Array:
        """Log density of each row, of the values that are there: (n_samples,)."""
        return factor_posterior(self._law(), 0, self._rows(X)).log_density

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log density of the rows, weighted if `sample_weight` is given."""
        return weighted_mean(self.score_samples(X), sample_weight)

    def get_covariance(self) -> Array:
        """Covariance matrix of the model: ``W W' + diag(noise_variance_)``."""
        return self._law().covariances()[0]

    def get_precision(self) -> Array:
        """Inverse of the covariance matrix, by Woodbury's identity."""
        law = self._law()
        W, psi = law.loadings[0], law.noise[0]
        weighted = W / psi[:, None]
        middle = np.eye(W.shape[1]) + W.T @ weighted
        return np.asarray(np.diag(1 / psi) - weighted @ np.linalg.solve(middle, weighted.T))

    def sample(self, n_samples: int = 1) -> Array:
        """Draw rows from the fitted model: (n_samples, n_features)."""
        law = self._law()
        check_count(n_samples, "n_samples")
        return draw(law, np.zeros(int(n_samples), dtype=np.int64), as_generator(self.random_state))

    def summary(self) -> str:
        """The fitted model on one page of plain text."""
        law = self._law()
        state = "converged" if self.converged_ else "not converged"
        power = (law.loadings[0] ** 2).sum(axis=0)
        total = power.sum() + self.noise_variance_.sum()
        lines = [
            f"{type(self).__name__}: {self.rank_} factors of {self.n_features_in_} features, noise {self.noise_type}",
            f"{self.inference}: {state} after {self.n_iter_} iterations",
            "",
            "factor  share of the variance",
            *(f"{k:<6d}  {value / total:.1%}" for k, value in enumerate(power)),
            f"noise   {self.noise_variance_.sum() / total:.1%}",
        ]
        return "\n".join(lines)


def _repeated(X: Array, sample_weight: ArrayLike | None) -> Array:
    """Rows as often as their weights say."""
    if sample_weight is None:
        return X
    weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
    if (weight != np.rint(weight)).any() or not weight.any():
        raise ValueError("sample_weight must be whole numbers, not all zero, for inference='gibbs'")
    return np.repeat(X, weight.astype(np.int64), axis=0)
