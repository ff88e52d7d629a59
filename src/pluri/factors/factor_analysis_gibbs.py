"""Gibbs sampler of factor analysis, with a fixed number of factors or with factors that may be off.

    y_i = sum_k b_k a_k x_ik + m + noise,   x_i ~ N(0, I),   noise of feature d ~ N(0, 1/a0_d),   m ~ N(0, I/g)

With a *fixed* rank all b are 1 and ``a_k ~ N(0, I/be_k)``, a precision for each factor (automatic relevance). With an
*inferred* rank ``P(b_k = 1) = a / (a + b (K - 1))`` and ``a_k ~ N(0, I/be)``; b is drawn with loadings and mean
integrated out (`pluri.factors.spike_slab_regression`), and by birth and death of a factor with x integrated out
(`pluri.factors.factor_birth_death`). The three pure functions that a test of correctness needs are
`sample_prior`, `sample_data` and `sweep`.

References
----------
West (2003), Bayesian factor regression models in the "large p, small n" paradigm, Bayesian Statistics 7.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.factors.factor_birth_death import birth_or_death
from pluri.factors.low_rank_gaussian import LOG_2_PI, LowRankGaussians, Patterns, log_density
from pluri.factors.spike_slab_regression import (
    draw_coefficients,
    draw_gamma,
    draw_support,
    log_gamma_density,
)
from pluri.priors.hyperpriors import BetaProcess, Gamma
from pluri.validation import Allowed, Made, Only, Whole, check_parameters, plain_array

Array = NDArray[np.float64]
Position = Mapping[str, NDArray[Any]]

ONE_EXPECTED, WIDE = BetaProcess(1.0, 1.0), Gamma(1.0, 1.0)
#: Births and deaths that are proposed in a sweep.
N_JUMPS = 2


@dataclass(frozen=True, eq=False)
class FactorAnalysisState:
    """Where the sampler is, and for each rank the highest log density seen and where (None: not seen)."""

    position: Position
    log_density: float
    best: tuple[tuple[float, Position] | None, ...]


@dataclass(frozen=True, eq=False)
class FactorAnalysisGibbs:
    """Gibbs sampler of factor analysis: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``mean`` (D,), ``loadings`` (K, D), ``support`` (K,), ``noise_precision`` (D,) or (1,),
    ``loading_precision`` (K,) or (1,), and ``mean_precision``.

    Parameters
    ----------
    data : array-like of shape (n_samples, n_features)
    n_factors : int, default=5
        Number of factors K, or the largest number.
    noise_type : {"diag", "isotropic"}, default="diag"
        A variance for each feature, or one for all.
    rank : {"fixed", "inferred"}, default="fixed"
    support_prior : BetaProcess, default=BetaProcess(1.0, 1.0)
        The numbers a and b; not used by a fixed rank.
    noise_prior, loading_prior, mean_precision_prior : Gamma, default=Gamma(1.0, 1.0)
        Priors of the precisions.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.factor_analysis_gibbs import FactorAnalysisGibbs
    >>> from pluri.inference import mcmc
    >>> rng = np.random.default_rng(0)
    >>> X = np.outer(rng.normal(size=100), [1.0, -1, 0, 0]) + 0.1 * rng.normal(size=(100, 4))
    >>> kernel = FactorAnalysisGibbs(X, 3, rank="inferred")
    >>> trace = mcmc.sample(kernel, kernel.sample_prior, record=kernel.record, n_draws=100, n_warmup=200, n_chains=1,
    ...                     random_state=0, warn=False)
    >>> trace["rank"].shape
    (1, 100)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_factors": Whole(1),
        "noise_type": Only("diag", "isotropic"),
        "rank": Only("fixed", "inferred"),
        "support_prior": Made(BetaProcess, "a prior, BetaProcess(a, b)"),
        **dict.fromkeys(
            ("noise_prior", "loading_prior", "mean_precision_prior"), Made(Gamma, "a prior, Gamma(shape, rate)")
        ),
    }

    data: Any
    n_factors: int = 5
    noise_type: str = "diag"
    rank: str = "fixed"
    support_prior: BetaProcess = ONE_EXPECTED
    noise_prior: Gamma = WIDE
    loading_prior: Gamma = WIDE
    mean_precision_prior: Gamma = WIDE

    def __post_init__(self) -> None:
        check_parameters(self)
        X = plain_array(self.data)
        if X.ndim != 2 or not X.size or not np.isfinite(X).all():
            raise ValueError(f"data must be a finite matrix with rows and columns, got shape {X.shape}")
        object.__setattr__(self, "data", X)

    @property
    def log_odds(self) -> float:
        """Prior log odds that a factor is on; K = 1 counts as 2, where they would be infinite."""
        return math.log(self.support_prior.a) - math.log(self.support_prior.b * max(int(self.n_factors) - 1, 1))

    def adaptation(self, n_warmup: int) -> None:
        """Nothing is tuned."""
        return None

    def init(self, rng: np.random.Generator, position: Position) -> FactorAnalysisState:
        """State at a position."""
        return FactorAnalysisState(position, self.log_posterior(position), (None,) * (int(self.n_factors) + 1))

    def step(
        self, rng: np.random.Generator, state: FactorAnalysisState
    ) -> tuple[FactorAnalysisState, dict[str, float]]:
        """One sweep."""
        position = self.sweep(rng, state.position, self.data)
        value, rank = self.log_posterior(position), int(position["support"].sum())
        best, known = state.best, state.best[rank]
        if known is None or value > known[0]:
            best = (*best[:rank], (value, position), *best[rank + 1 :])
        return FactorAnalysisState(position, value, best), {"rank": float(rank)}

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of a position: nothing that depends on how the factors are turned."""
        kept = {name: position[name] for name in ("mean", "noise_precision", "mean_precision")}
        variances = (position["loadings"] ** 2).sum(axis=0)
        return {**kept, "rank": position["support"].sum(), "communalities": variances}

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        D, K = self.data.shape[1], int(self.n_factors)
        fixed = self.rank == "fixed"
        support = np.ones(K) if fixed else (rng.random(K) < 1 / (1 + math.exp(-self.log_odds))).astype(np.float64)
        loading = draw_gamma(rng, self.loading_prior, np.zeros(K if fixed else 1), 0.0)
        noise = draw_gamma(rng, self.noise_prior, np.zeros(D if self.noise_type == "diag" else 1), 0.0)
        mean = draw_gamma(rng, self.mean_precision_prior, 0.0, 0.0)
        return {
            "mean": rng.standard_normal(D) / math.sqrt(mean),
            "loadings": rng.standard_normal((K, D)) * (support / np.sqrt(loading))[:, None],
            "support": support.astype(np.int8),
            "noise_precision": noise,
            "loading_precision": loading,
            "mean_precision": np.asarray(mean),
        }

    def sample_data(self, rng: np.random.Generator, position: Position) -> Array:
        """Draw data given a position, with new factors."""
        n, D = self.data.shape
        x = rng.standard_normal((n, int(self.n_factors)))
        noise = rng.standard_normal((n, D)) / np.sqrt(position["noise_precision"])
        return np.asarray(x @ position["loadings"] + position["mean"] + noise)

    def sweep(self, rng: np.random.Generator, position: Position, data: ArrayLike) -> Position:
        """All variables once."""
        Y = plain_array(data)
        (n, D), K = Y.shape, int(self.n_factors)
        A, noise = position["loadings"], position["noise_precision"]
        loading, g = position["loading_precision"], float(position["mean_precision"])
        support = position["support"].astype(np.float64)
        if self.rank == "inferred":
            E, variances = Y - position["mean"], np.broadcast_to(1 / noise, D)
            for _ in range(N_JUMPS):
                A, support = birth_or_death(rng, E, A, support, variances, float(loading[0]), self.log_odds)
        weighted = A * noise
        inverse = np.linalg.inv(np.linalg.cholesky(np.eye(K) + weighted @ A.T))
        t = np.ones((n, K + 1))
        t[:, :K] = ((Y - position["mean"]) @ (inverse @ weighted).T + rng.standard_normal((n, K))) @ inverse
        gram, cross = (t.T @ t)[None], (t.T @ Y)[None]
        prior = np.append(np.broadcast_to(loading, K), g)[None]
        on = np.ones((1, K + 1))
        if self.rank == "inferred":
            on[:, :K] = draw_support(rng, gram, cross, noise[None], prior, support[None], self.log_odds)
        C = draw_coefficients(rng, gram, cross, noise[None], prior, on)[0]
        A, mean = C[:K], C[K]
        misfit = ((Y - t @ C) ** 2).sum(axis=0)
        if self.noise_type == "isotropic":
            noise = np.atleast_1d(draw_gamma(rng, self.noise_prior, n * D / 2, misfit.sum() / 2))
        else:
            noise = draw_gamma(rng, self.noise_prior, np.full(D, n / 2), misfit / 2)
        squares = (A**2).sum(axis=1)
        if self.rank == "inferred":
            loading = np.atleast_1d(draw_gamma(rng, self.loading_prior, D * on[0, :K].sum() / 2, squares.sum() / 2))
        else:
            loading = draw_gamma(rng, self.loading_prior, np.full(K, D / 2), squares / 2)
        return {
            "mean": mean,
            "loadings": A,
            "support": on[0, :K].astype(np.int8),
            "noise_precision": noise,
            "loading_precision": loading,
            "mean_precision": np.asarray(draw_gamma(rng, self.mean_precision_prior, D / 2, float(mean @ mean) / 2)),
        }

    def log_posterior(self, position: Position) -> float:
        """Log density of data and parameters, factors and unused loadings integrated out."""
        X, D = self.data, self.data.shape[1]
        total = float(log_density(as_law(position), Patterns.of(X)).sum())
        on = position["support"] > 0
        precision = np.broadcast_to(position["loading_precision"], on.shape)
        squares = (position["loadings"] ** 2).sum(axis=1)
        total += 0.5 * float((D * (np.log(precision) - LOG_2_PI) - precision * squares)[on].sum())
        if self.rank == "inferred":
            total += on.sum() * -math.log1p(math.exp(-self.log_odds))
            total += (~on).sum() * -math.log1p(math.exp(self.log_odds))
        g, m = float(position["mean_precision"]), position["mean"]
        total += 0.5 * (D * (math.log(g) - LOG_2_PI) - g * float(m @ m))
        total += log_gamma_density(position["noise_precision"], self.noise_prior)
        total += log_gamma_density(position["loading_precision"], self.loading_prior)
        total += log_gamma_density(position["mean_precision"], self.mean_precision_prior)
        return total


def as_law(position: Position) -> LowRankGaussians:
    """The Gaussian that a position stands for."""
    mean = position["mean"]
    noise = np.broadcast_to(1 / position["noise_precision"], mean.shape)
    return LowRankGaussians(mean[None], position["loadings"].T[None], np.array(noise[None]))
