"""Gibbs sampler of the nonparametric mixture of factor analysers.

    y_i = sum_k b_jk a_jk x_ik + m_j + noise,   j = z(i) ~ sum_j w_j,   x_ik ~ N(0, 1/be_j),   noise ~ N(0, 1/a0),
    w by sticks V_j ~ Beta(1, alpha), V_J = 1;   P(b_jk = 1) = a / (a + b (K - 1));   a_jk ~ N(0, I/zt);
    m_j ~ N(0, I/g);   alpha, a0, be_j, zt, g ~ Gamma.

The probability of each b_jk (beta in the beta process) has one coin attached only, and is integrated out. A sweep draws
z with x integrated out (Woodbury), x given z, b given x with all loadings and means integrated out, loadings and means
together, then the precisions, the sticks and their concentration. Loadings and factors of a component share one scale,
``(c A_j, x / c, c^2 be_j)`` being as likely whatever c is but for the priors: c is drawn exactly,
``c^2 ~ Gamma(e + r_j D / 2, f be_j + zt ||A_j||^2 / 2)``. Factors are also born and die with x integrated out
(`pluri.factors.factor_birth_death`), and labels of sticks are exchanged by Metropolis moves.
The three pure functions that a test of correctness needs are `sample_prior`, `sample_data` and `sweep`.

References
----------
Chen, Silva, Paisley, Wang, Dunson and Carin (2010), Compressive sensing on manifolds using a nonparametric mixture of
factor analyzers, IEEE Transactions on Signal Processing 58.
Papaspiliopoulos and Roberts (2008), Retrospective Markov chain Monte Carlo methods for Dirichlet process hierarchical
models, Biometrika 95.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from pluri.factors.factor_birth_death import birth_or_death
from pluri.factors.low_rank_gaussian import LOG_2_PI, LowRankGaussians, Patterns, log_density
from pluri.factors.spike_slab_regression import (
    draw_coefficients,
    draw_gamma,
    draw_support,
    log_gamma_density,
)
from pluri.priors import BetaProcess, Gamma
from pluri.processes.stick_draws import LEAST_LOG_REST, choose_rows, draw_sticks, exchange_labels
from pluri.validation import check_count

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Position = Mapping[str, NDArray[Any]]

#: The smallest concentration.
LEAST_CONCENTRATION = 1e-6


class FactorMixturePriors(NamedTuple):
    """Priors of a mixture of factor analysers.

    Attributes
    ----------
    support : which factors are in use: their expected number is ``a K / (a + b (K - 1))``
    concentration : of alpha, or its value if that is fixed
    noise, factor, loading, mean : of a0, be, zt and g
    """

    support: BetaProcess = BetaProcess(1.0, 1.0)
    concentration: Gamma | float = Gamma(1.0, 1.0)
    noise: Gamma = Gamma(1.0, 1.0)
    factor: Gamma = Gamma(1.0, 1.0)
    loading: Gamma = Gamma(1.0, 1.0)
    mean: Gamma = Gamma(1.0, 1.0)


@dataclass(frozen=True, eq=False)
class FactorMixtureState:
    """Where the sampler is, the joint log densities of rows and components there, and the best position seen."""

    position: Position
    log_density: float
    log_joint: Array
    best: Position
    best_log_density: float


@dataclass(frozen=True, eq=False)
class FactorMixtureGibbs:
    """Gibbs sampler of a mixture of factor analysers: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``labels`` (n,), ``log_weights`` (J,), ``means`` (J, D), ``loadings`` (J, K, D), which are zero
    where ``support`` (J, K) is, ``factor_precision`` (J,), ``loading_precision``, ``mean_precision``,
    ``noise_precision`` and ``concentration``.

    Parameters
    ----------
    data : array-like of shape (n_samples, n_features)
    max_components, max_factors : int, default=10 and 5
        Truncation levels J and K.
    priors : FactorMixturePriors, optional

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.mixtures.factor_analyzers import FactorMixtureGibbs
    >>> rng = np.random.default_rng(0)
    >>> X = np.outer(rng.normal(size=100), [1.0, -1, 0, 0]) + 0.1 * rng.normal(size=(100, 4))
    >>> kernel = FactorMixtureGibbs(X, max_components=2, max_factors=3)
    >>> trace = mcmc.sample(kernel, kernel.sample_prior, record=kernel.record, n_draws=100, n_warmup=200, n_chains=1,
    ...                     random_state=0, warn=False)
    >>> trace["ranks"].shape
    (1, 100, 2)
    """

    data: Any
    max_components: int = 10
    max_factors: int = 5
    priors: FactorMixturePriors = FactorMixturePriors()

    def __post_init__(self) -> None:
        check_count(self.max_components, "max_components")
        check_count(self.max_factors, "max_factors")
        X = np.ascontiguousarray(self.data, dtype=np.float64)
        if X.ndim != 2 or not X.size or not np.isfinite(X).all():
            raise ValueError(f"data must be a finite matrix with rows and columns, got shape {X.shape}")
        object.__setattr__(self, "data", X)

    @property
    def log_odds(self) -> float:
        """Prior log odds that a factor is on."""
        return support_log_odds(self.priors.support, self.max_factors)

    def adaptation(self, n_warmup: int) -> None:
        """Nothing is tuned."""
        return None

    def init(self, rng: np.random.Generator, position: Position) -> FactorMixtureState:
        """State at a position."""
        joint = log_joint_rows(position, self.data)
        value = self._log_posterior(position, joint)
        return FactorMixtureState(position, value, joint, position, -math.inf)  # the start is not a draw

    def step(self, rng: np.random.Generator, state: FactorMixtureState) -> tuple[FactorMixtureState, dict[str, float]]:
        """One sweep."""
        position = self._sweep(rng, state.position, self.data, state.log_joint)
        joint = log_joint_rows(position, self.data)
        value = self._log_posterior(position, joint)
        best = (position, value) if value > state.best_log_density else (state.best, state.best_log_density)
        return FactorMixtureState(position, value, joint, *best), {"n_components": float(len(set(position["labels"])))}

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of a position: sizes of the components, largest first, and their ranks (-1: no rows)."""
        counts = np.bincount(position["labels"], minlength=self.max_components)
        order = np.argsort(-counts, kind="stable")
        ranks = np.where(counts[order] > 0, position["support"][order].sum(axis=1), -1)
        kept = {name: position[name] for name in ("concentration", "noise_precision", "loading_precision")}
        return {**kept, "n_components": np.asarray((counts > 0).sum()), "counts": counts[order], "ranks": ranks}

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        (n, D), J, K = self.data.shape, int(self.max_components), int(self.max_factors)
        concentration, noise, loading, mean = (
            rng.gamma(prior.shape) / prior.rate if isinstance(prior, Gamma) else prior
            for prior in (self.priors.concentration, self.priors.noise, self.priors.loading, self.priors.mean)
        )
        support = (rng.random((J, K)) < 1 / (1 + math.exp(-self.log_odds))).astype(np.int8)
        log_weights, _ = draw_sticks(rng, np.zeros(J), concentration)
        return {
            "labels": choose_rows(rng, np.tile(log_weights, (n, 1))),
            "log_weights": log_weights,
            "means": rng.standard_normal((J, D)) / math.sqrt(mean),
            "loadings": support[:, :, None] * rng.standard_normal((J, K, D)) / math.sqrt(loading),
            "support": support,
            "factor_precision": rng.gamma(self.priors.factor.shape, size=J) / self.priors.factor.rate,
            "loading_precision": np.asarray(loading),
            "mean_precision": np.asarray(mean),
            "noise_precision": np.asarray(noise),
            "concentration": np.asarray(concentration),
        }

    def sample_data(self, rng: np.random.Generator, position: Position) -> Array:
        """Draw data given a position, with new factors."""
        labels, K = position["labels"], int(self.max_factors)
        x = rng.standard_normal((len(labels), K)) / np.sqrt(position["factor_precision"][labels])[:, None]
        clean = np.einsum("nk,nkd->nd", x, position["loadings"][labels]) + position["means"][labels]
        return np.asarray(clean + rng.standard_normal(clean.shape) / math.sqrt(position["noise_precision"]))

    def sweep(self, rng: np.random.Generator, position: Position, data: ArrayLike) -> Position:
        """All variables once."""
        X = np.ascontiguousarray(data, dtype=np.float64)
        return self._sweep(rng, position, X, log_joint_rows(position, X))

    def _sweep(self, rng: np.random.Generator, position: Position, X: Array, log_joint: Array) -> Position:
        (n, D), J, K = X.shape, int(self.max_components), int(self.max_factors)
        labels = choose_rows(rng, log_joint)
        order = exchange_labels(rng, position["log_weights"], np.bincount(labels, minlength=J))
        labels = np.argsort(order)[labels]
        counts = np.bincount(labels, minlength=J)
        noise = float(position["noise_precision"])
        loading, mean = float(position["loading_precision"]), float(position["mean_precision"])
        precision = position["factor_precision"][order]
        loadings, support, means = position["loadings"][order], position["support"][order], position["means"][order]
        rows = X[np.argsort(labels, kind="stable")]
        ends = np.cumsum(counts)
        loadings, support = self._jump(rng, rows, ends, loadings, support, means, precision, loading, noise)
        gram, cross = self._draw_factors(rng, rows, ends, loadings, means, precision, noise)
        prior = np.concatenate([np.full((J, K), loading), np.full((J, 1), mean)], axis=1)
        noises = np.full((J, 1), noise)
        support = draw_support(rng, gram, cross, noises, prior, support, self.log_odds)
        on = np.concatenate([support, np.ones((J, 1))], axis=1)
        C = draw_coefficients(rng, gram, cross, noises, prior, on)
        A, means = C[:, :K], C[:, K]
        misfit = float(np.einsum("nd,nd->", X, X)) - 2 * float((C * cross).sum()) + float((C * (gram @ C)).sum())
        noise = draw_gamma(rng, self.priors.noise, n * D / 2, max(misfit, 0.0) / 2)
        # Factors that are off are integrated out of what follows, like their loadings.
        used = support * np.diagonal(gram, axis1=1, axis2=2)[:, :K]
        ranks = support.sum(axis=1)
        precision = draw_gamma(rng, self.priors.factor, counts * ranks / 2, used.sum(axis=1) / 2)
        squares = (A**2).sum(axis=(1, 2))
        scale = rng.gamma(self.priors.factor.shape + ranks * D / 2) / (
            self.priors.factor.rate * precision + loading * squares / 2
        )
        A, precision, squares = A * np.sqrt(scale)[:, None, None], precision * scale, squares * scale
        loading = draw_gamma(rng, self.priors.loading, D * ranks.sum() / 2, squares.sum() / 2)
        mean = draw_gamma(rng, self.priors.mean, J * D / 2, float((means**2).sum()) / 2)
        log_weights, log_rest = draw_sticks(rng, counts, float(position["concentration"]))
        concentration = self.priors.concentration
        if isinstance(concentration, Gamma):
            concentration = draw_gamma(rng, concentration, J - 1.0, -float(log_rest[:-1].sum()))
        return {
            "labels": labels,
            "log_weights": log_weights,
            "means": means,
            "loadings": A,
            "support": support.astype(np.int8),
            "factor_precision": precision,
            "loading_precision": np.asarray(loading),
            "mean_precision": np.asarray(mean),
            "noise_precision": np.asarray(noise),
            "concentration": np.asarray(max(float(concentration), LEAST_CONCENTRATION)),
        }

    def _jump(
        self, rng: np.random.Generator, rows: Array, ends: Integers, A: Array, support: NDArray[Any], means: Array,
        precision: Array, loading: float, noise: float,
    ) -> tuple[Array, Array]:  # fmt: skip
        """A birth or death of a factor in each component that has rows."""
        A, present = A.copy(), support.astype(np.float64)
        variances = np.full(A.shape[2], 1 / noise)
        for j, (begin, end) in enumerate(zip([0, *ends[:-1]], ends)):
            if end > begin:
                scale = math.sqrt(precision[j])  # the step is for factors of variance one
                scaled, present[j] = birth_or_death(
                    rng, rows[begin:end] - means[j], A[j] / scale, present[j], variances, loading * precision[j],
                    self.log_odds,
                )  # fmt: skip
                A[j] = scaled * scale
        return A, present

    def _draw_factors(
        self,
        rng: np.random.Generator,
        rows: Array,
        ends: Integers,
        A: Array,
        means: Array,
        precision: Array,
        noise: float,
    ) -> tuple[Array, Array]:
        """Factors of all rows given their components, as moments ``sum t t'`` and ``sum t y'`` with t = (x, 1)."""
        J, K, D = A.shape
        P = noise * (A @ A.transpose(0, 2, 1))
        diagonal = np.arange(K)
        P[:, diagonal, diagonal] += precision[:, None]
        inverse = np.linalg.inv(np.linalg.cholesky(P))  # x = L'^-1 (L^-1 noise A e + eps)
        gram, cross = np.zeros((J, K + 1, K + 1)), np.zeros((J, K + 1, D))
        eps = rng.standard_normal((len(rows), K))
        t = np.ones((len(rows), K + 1))
        for j, (begin, end) in enumerate(zip([0, *ends[:-1]], ends)):
            if end > begin:
                Y, mine = rows[begin:end], t[begin:end]
                projection = noise * (inverse[j] @ A[j])
                mine[:, :K] = ((Y - means[j]) @ projection.T + eps[begin:end]) @ inverse[j]
                gram[j], cross[j] = mine.T @ mine, mine.T @ Y
        return gram, cross

    def _log_posterior(self, position: Position, log_joint: Array) -> float:
        """Log density of the data and of the parameters, labels, factors and unused loadings integrated out."""
        D, J = self.data.shape[1], int(self.max_components)
        ranks = position["support"].sum()
        zt, g, alpha = (float(position[name]) for name in ("loading_precision", "mean_precision", "concentration"))
        total = float(logsumexp(log_joint, axis=1).sum())
        log_p, log_q = -np.log1p(math.exp(-self.log_odds)), -np.log1p(math.exp(self.log_odds))
        total += ranks * log_p + (position["support"].size - ranks) * log_q
        total += 0.5 * (ranks * D * (math.log(zt) - LOG_2_PI) - zt * float((position["loadings"] ** 2).sum()))
        total += 0.5 * (J * D * (math.log(g) - LOG_2_PI) - g * float((position["means"] ** 2).sum()))
        rest = np.logaddexp.accumulate(position["log_weights"][::-1])[::-1]  # log of what is left before each break
        if J > 1:
            total += (J - 1) * math.log(alpha) + (alpha - 1) * float(np.maximum(np.diff(rest), LEAST_LOG_REST).sum())
        for name in ("concentration", "noise", "factor", "loading", "mean"):
            value, prior = (
                position[name if name == "concentration" else f"{name}_precision"],
                getattr(self.priors, name),
            )
            if isinstance(prior, Gamma):
                total += log_gamma_density(value, prior)
        return float(total)


def support_log_odds(prior: BetaProcess, max_factors: int) -> float:
    """Prior log odds that a factor is on, ``log a - log(b (K - 1))``; K = 1 counts as 2, where it would be infinite."""
    return math.log(prior.a) - math.log(prior.b * max(int(max_factors) - 1, 1))


def as_law(position: Position) -> LowRankGaussians:
    """The components with factors of variance one."""
    loadings = position["loadings"].transpose(0, 2, 1) / np.sqrt(position["factor_precision"])[:, None, None]
    noise = np.full(position["means"].shape, 1 / float(position["noise_precision"]))
    return LowRankGaussians(position["means"], loadings, noise)


def log_joint_rows(position: Position, X: Array) -> Array:
    """Log weight plus log density of each row under each component: (n, J)."""
    complete = Patterns(X, None, np.ones((1, X.shape[1])), np.zeros(len(X), dtype=np.int64))
    return np.asarray(log_density(as_law(position), complete) + position["log_weights"])
