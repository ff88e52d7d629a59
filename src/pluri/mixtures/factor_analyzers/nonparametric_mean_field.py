"""Mean field of the nonparametric mixture of factor analysers: the model of `nonparametric_gibbs`, its best product q.

    q = prod_i q(z_i) q(x_i | z_i)  prod_jk q(b_jk, a_jk)  prod_j q(m_j) q(be_j) q(V_j)  q(alpha) q(a0) q(zt) q(g)

with ``q(b_jk = 1) = tau_jk`` and ``a_jk | b_jk = 1 ~ N(M_jk, s_jk I)`` (there are no loadings where b is 0). Factors
keep their dependence on the component, ``q(x_i | z_i = j) = N(mu_ij, S_j)`` with
``S_j^-1 = E be_j I + E a0 E[C_j C_j']``, so the statistics of rows under q(z, x) add up and the loop is that of EM: the
E-step gives ``sum_i log sum_j exp(rho_ij)`` with the best q(z, x), the M-step replaces the other factors one after the
other, and minus the divergences of these from the prior stand where a log prior would. Their sum is the evidence lower
bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, entr, expit

from pluri.components.k_means import kmeans_centers, nearest_center
from pluri.engine import Batch, Source, Statistics
from pluri.factors.low_rank_gaussian import LOG_2_PI, principal_factors
from pluri.mixtures.factor_analyzers.beliefs import (
    FactorMixtureBeliefs,
    expected_log_beta,
    expected_log_gamma,
    gamma_divergence,
    gamma_posterior,
    ratio,
    stick_posterior,
)
from pluri.mixtures.factor_analyzers.nonparametric_gibbs import FactorMixturePriors, support_log_odds
from pluri.priors import Gamma

Array = NDArray[np.float64]

#: Passes over loadings, supports and means in one M-step: they depend on each other, and a pass costs no data.
N_PASSES = 2
#: Noise of a starting value, as a share of the variance of the data, at least.
LEAST_NOISE = 1e-6
#: Rate of a gamma distribution so narrow that it stands for a number.
CERTAIN = 1e12
#: Log odds are kept within this.
LARGEST_LOGIT = 50.0


@dataclass(frozen=True)
class FactorMixtureMoments(Statistics):
    """Moments under q(z, x): see `FactorMixtureMeanField.expect`."""

    log_likelihood: float
    counts: Array
    factors: Array
    factor_squares: Array
    cross: Array
    rows: Array
    square: float


@dataclass(frozen=True)
class FactorMixtureMeanField:
    """What `pluri.inference.expectation_maximization` runs; the priors are those of `FactorMixtureGibbs`."""

    max_components: int
    max_factors: int
    priors: FactorMixturePriors = FactorMixturePriors()

    @property
    def log_odds(self) -> float:
        """Prior log odds that a factor is on."""
        return support_log_odds(self.priors.support, self.max_factors)

    def initialize(self, source: Source, rng: np.random.Generator) -> FactorMixtureBeliefs:
        """Clusters of k-means, each with its principal directions as factors."""
        X = np.concatenate([lazy.load().X for lazy in source.batches()])
        J = min(self.max_components, len(X))
        return self._from_centers(X, kmeans_centers(X, J, rng))

    def scattered(self, X: Array, rng: np.random.Generator) -> FactorMixtureBeliefs:
        """Rows given to the nearest of some that are drawn: beliefs that are not alike in two calls.

        k-means finds much the same clusters each time, so that chains which begin with them agree whatever is true.
        """
        J = int(rng.integers(min(2, self.max_components), self.max_components + 1))
        return self._from_centers(X, X[rng.choice(len(X), size=min(J, len(X)), replace=False)])

    def _from_centers(self, X: Array, centers: Array) -> FactorMixtureBeliefs:
        labels = nearest_center(X, centers).astype(np.int64)
        shares = np.zeros((len(X), self.max_components))
        shares[np.arange(len(X)), labels] = 1.0
        return self.from_shares(X, shares)

    def from_shares(self, X: Array, shares: Array) -> FactorMixtureBeliefs:
        """Beliefs from the share that each component has of each row (n, J), the largest component first."""
        (_, D), J, K = X.shape, self.max_components, self.max_factors
        counts = shares.sum(axis=0)
        q = FactorMixtureBeliefs(
            sticks=np.ones((J, 2)),
            support=np.full((J, K), expit(self.log_odds)),
            loadings=np.zeros((J, K, D)),
            loading_spread=np.ones((J, K)),
            means=np.zeros((J, D)),
            mean_spread=np.ones(J),
            factor_precision=np.ones((J, 2)),
            loading_precision=np.ones(2),
            mean_precision=np.ones(2),
            noise_precision=np.ones(2),
            concentration=self._concentration(0.0, 0.0),
        )
        noises = np.zeros(J)
        for j in np.flatnonzero(counts > 1e-3):
            q, noises[j] = self.with_component(q, int(j), X, shares[:, j])
        noise = max(float(counts @ noises) / float(counts.sum()), LEAST_NOISE)
        q = replace(q, noise_precision=np.array([1.0, noise]))
        order = np.argsort(-counts, kind="stable")
        return replace(q.taken(order), sticks=stick_posterior(counts[order], 1.0))

    def with_component(
        self, q: FactorMixtureBeliefs, component: int, X: Array, weight: Array
    ) -> tuple[FactorMixtureBeliefs, float]:
        """The same with one component made anew from weighted rows by probabilistic PCA; and its noise variance."""
        kept = weight > 1e-6
        mean, loadings, noise = principal_factors(X[kept], weight[kept], self.max_factors, LEAST_NOISE)
        fields: dict[str, Array] = {
            name: getattr(q, name).copy()
            for name in ("support", "loadings", "loading_spread", "means", "mean_spread", "factor_precision")
        }
        spread = noise / max(float(weight.sum()), 1.0)
        fields["support"][component] = 0.99
        fields["loadings"][component] = loadings.T
        fields["loading_spread"][component] = spread
        fields["means"][component], fields["mean_spread"][component] = mean, spread
        fields["factor_precision"][component] = 1.0
        return replace(q, **fields), noise

    def without_component(self, q: FactorMixtureBeliefs, component: int) -> FactorMixtureBeliefs:
        """The same with one component as the prior has it, and on the last stick."""
        J = self.max_components
        support, loadings, means = q.support.copy(), q.loadings.copy(), q.means.copy()
        support[component], loadings[component], means[component] = expit(self.log_odds), 0.0, 0.0
        spread, mean_spread = q.loading_spread.copy(), q.mean_spread.copy()
        spread[component], mean_spread[component] = 1 / ratio(q.loading_precision), 1 / ratio(q.mean_precision)
        factor_precision = q.factor_precision.copy()
        factor_precision[component] = self.priors.factor.shape, self.priors.factor.rate
        q = replace(
            q, support=support, loadings=loadings, means=means, loading_spread=spread, mean_spread=mean_spread,
            factor_precision=factor_precision,
        )  # fmt: skip
        return q.taken([*(j for j in range(J) if j != component), component])

    def local(self, q: FactorMixtureBeliefs, X: Array) -> tuple[Array, Array, Array]:
        """``rho`` (n, J), means of the factors (J, n, K) and their covariances (J, K, K)."""
        (n, D), (J, K) = X.shape, q.support.shape
        noise, log_noise = ratio(q.noise_precision), expected_log_gamma(q.noise_precision)
        P = noise * q.expected_outer()
        diagonal = np.arange(K)
        P[:, diagonal, diagonal] += ratio(q.factor_precision)[:, None]
        S = np.linalg.inv(P)
        _, log_det = np.linalg.slogdet(P)
        log_stick, log_rest = expected_log_beta(q.sticks)
        log_stick[-1] = 0.0
        constant = log_stick + np.concatenate([[0.0], np.cumsum(log_rest[:-1])])
        constant += D / 2 * (log_noise - LOG_2_PI - noise * q.mean_spread)
        constant += K / 2 * expected_log_gamma(q.factor_precision) - log_det / 2
        rho, factors = np.empty((n, J)), np.empty((J, n, K))
        for j in range(J):
            E = X - q.means[j]
            T = E @ (noise * q.support[j][:, None] * q.loadings[j]).T
            np.matmul(T, S[j], out=factors[j])
            quad = np.einsum("nk,nk->n", T, factors[j]) - noise * np.einsum("nd,nd->n", E, E)
            rho[:, j] = constant[j] + 0.5 * quad
        return rho, factors, S

    def expect(self, q: FactorMixtureBeliefs, batch: Batch) -> FactorMixtureMoments:
        """Best q(z, x) of a batch, as moments: of components, factors, their squares and products with the rows."""
        X = np.asarray(batch.X, dtype=np.float64)
        rho, factors, S = self.local(q, X)
        phi, total = normalized(rho)
        weighted = factors * phi.T[:, :, None]
        counts = phi.sum(axis=0)
        squares = weighted.transpose(0, 2, 1) @ factors + counts[:, None, None] * S
        return FactorMixtureMoments(
            float(total.sum()),
            counts,
            weighted.sum(axis=1),
            squares,
            weighted.transpose(0, 2, 1) @ X,
            phi.T @ X,
            float(np.einsum("nd,nd->", X, X)),
        )

    def maximize(self, stats: FactorMixtureMoments, q: FactorMixtureBeliefs) -> FactorMixtureBeliefs:
        """Every other factor of q replaced by its best, one after the other."""
        for _ in range(N_PASSES):
            q = self._update_loadings(stats, q)
            q = self._update_means(stats, q)
            q = self._update_precisions(stats, q)
        log_rest = expected_log_beta(sticks := stick_posterior(stats.counts, ratio(q.concentration)))[1]
        concentration = self._concentration(len(sticks) - 1, -log_rest[:-1].sum())
        return self._rescaled(replace(q, sticks=sticks, concentration=concentration))

    def _concentration(self, shape: float, rate: float) -> Array:
        """Shape and rate of q of the concentration given what data add to its prior; no width if it is fixed."""
        prior = self.priors.concentration
        if isinstance(prior, Gamma):
            return np.array([prior.shape + shape, prior.rate + rate])
        return np.array([prior * CERTAIN, CERTAIN])

    def _rescaled(self, q: FactorMixtureBeliefs) -> FactorMixtureBeliefs:
        """The best common scale of loadings and (inverse) factors, which the other updates only creep towards.

        ``(c A, x / c, c^2 be)`` leaves the fit as it is; with s = c^2 the bound changes by
        ``(e + D sum tau / 2) log s - s (f E be + E zt sum tau E a^2 / 2)``.
        """
        D = q.means.shape[1]
        power = (q.support * ((q.loadings**2).sum(axis=2) + D * q.loading_spread)).sum(axis=1)
        rate = self.priors.factor.rate * ratio(q.factor_precision) + ratio(q.loading_precision) * power / 2
        scale = (self.priors.factor.shape + D * q.support.sum(axis=1) / 2) / rate
        return replace(
            q,
            loadings=q.loadings * np.sqrt(scale)[:, None, None],
            loading_spread=q.loading_spread * scale[:, None],
            factor_precision=q.factor_precision / np.column_stack([np.ones_like(scale), scale]),
        )

    def _update_loadings(self, stats: FactorMixtureMoments, q: FactorMixtureBeliefs) -> FactorMixtureBeliefs:
        D = q.means.shape[1]
        noise, zt, log_zt = (
            ratio(q.noise_precision),
            ratio(q.loading_precision),
            expected_log_gamma(q.loading_precision),
        )
        M, tau, spread = q.loadings.copy(), q.support.copy(), q.loading_spread.copy()
        target = stats.cross - stats.factors[:, :, None] * q.means[:, None, :]
        for k in range(tau.shape[1]):
            others = stats.factor_squares[:, k] * tau
            others[:, k] = 0.0
            h = target[:, k] - (others[:, None, :] @ M)[:, 0]
            precision = zt + noise * stats.factor_squares[:, k, k]
            M[:, k], spread[:, k] = noise * h / precision[:, None], 1 / precision
            logit = self.log_odds + D / 2 * (log_zt - np.log(precision)) + precision * (M[:, k] ** 2).sum(axis=1) / 2
            tau[:, k] = expit(np.clip(logit, -LARGEST_LOGIT, LARGEST_LOGIT))
        return replace(q, loadings=M, support=tau, loading_spread=spread)

    def _update_means(self, stats: FactorMixtureMoments, q: FactorMixtureBeliefs) -> FactorMixtureBeliefs:
        noise = ratio(q.noise_precision)
        explained = (stats.factors[:, None, :] @ (q.support[:, :, None] * q.loadings))[:, 0]
        spread = 1 / (ratio(q.mean_precision) + noise * stats.counts)
        return replace(q, means=noise * spread[:, None] * (stats.rows - explained), mean_spread=spread)

    def _update_precisions(self, stats: FactorMixtureMoments, q: FactorMixtureBeliefs) -> FactorMixtureBeliefs:
        (J, K), D = q.support.shape, q.means.shape[1]
        used = q.support[:, :, None] * q.loadings
        mean_squares = (q.means**2).sum(axis=1) + D * q.mean_spread
        misfit = stats.square - 2 * (used * stats.cross).sum() - 2 * (q.means * stats.rows).sum()
        misfit += (q.expected_outer() * stats.factor_squares).sum() + stats.counts @ mean_squares
        misfit += 2 * np.einsum("jkd,jk,jd->", used, stats.factors, q.means)
        active = q.support * ((q.loadings**2).sum(axis=2) + D * q.loading_spread)
        n = stats.counts.sum()
        power = np.trace(stats.factor_squares, axis1=1, axis2=2)
        return replace(
            q,
            noise_precision=gamma_posterior(self.priors.noise, n * D / 2, max(float(misfit), 0.0) / 2),
            factor_precision=gamma_posterior(self.priors.factor, K * stats.counts / 2, power / 2),
            loading_precision=gamma_posterior(self.priors.loading, D * q.support.sum() / 2, active.sum() / 2),
            mean_precision=gamma_posterior(self.priors.mean, J * D / 2, mean_squares.sum() / 2),
        )

    def log_prior(self, q: FactorMixtureBeliefs) -> float:
        """Minus the divergence of q from the prior, of all but labels and factors."""
        D = q.means.shape[1]
        p = expit(self.log_odds)
        tau = q.support
        total = (entr(tau) + entr(1 - tau) + tau * math.log(p) + (1 - tau) * math.log1p(-p)).sum()
        zt, log_zt = ratio(q.loading_precision), expected_log_gamma(q.loading_precision)
        square = (q.loadings**2).sum(axis=2) + D * q.loading_spread
        total += 0.5 * (tau * (D * (log_zt + 1 + np.log(q.loading_spread)) - zt * square)).sum()
        g, log_g = ratio(q.mean_precision), expected_log_gamma(q.mean_precision)
        square = (q.means**2).sum(axis=1) + D * q.mean_spread
        total += 0.5 * (D * (log_g + 1 + np.log(q.mean_spread)) - g * square).sum()
        for name in ("noise_precision", "factor_precision", "loading_precision", "mean_precision", "concentration"):
            prior = getattr(self.priors, name.removesuffix("_precision"))
            if isinstance(prior, Gamma):
                total -= gamma_divergence(getattr(q, name), prior)
        t1, t2 = q.sticks[:-1].T
        log_stick, log_rest = expected_log_beta(q.sticks[:-1])
        alpha, log_alpha = ratio(q.concentration), expected_log_gamma(q.concentration)
        total += (log_alpha + (alpha - 1) * log_rest).sum()
        total -= ((t1 - 1) * log_stick + (t2 - 1) * log_rest - betaln(t1, t2)).sum()
        return float(total)


def normalized(rho: Array) -> tuple[Array, Array]:
    """Rows of probabilities, and the logarithms of what they were divided by."""
    largest = rho.max(axis=1, keepdims=True)
    phi = np.exp(rho - largest)
    total = phi.sum(axis=1, keepdims=True)
    return phi / total, (largest + np.log(total))[:, 0]
