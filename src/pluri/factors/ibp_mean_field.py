"""Mean-field approximation of the linear-Gaussian feature model, with at most K features.

``q(z_nk) = Bernoulli(nu_nk)``, ``q(A_k) = N(phi_k, s_k I)`` and Beta(tau_k) for the probabilities of the features:
*finite*, ``pi_k ~ Beta(c / K, 1)``; *infinite*, ``pi_k = prod_{l<=k} v_l`` with ``v_k ~ Beta(c, 1)``, where
``E log(1 - pi_k)`` has no closed form and is bounded below by
``B_k = log sum_{m<=k} exp(psi(tau_m2) + sum_{j<m} psi(tau_j1) - sum_{j<=m} psi(tau_j1 + tau_j2))``.
Every block is replaced by its optimum, so the bound rises after each.

References
----------
Doshi-Velez, Miller, Van Gael and Teh (2009), Variational inference for the Indian buffet process, AISTATS.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, entr, expit

from pluri.priors.hyperpriors import Gamma

Array = NDArray[np.float64]

#: Log odds are kept within this: beyond it an entry is on or off to the last bit, and could not come back.
LARGEST_LOGIT = 50.0


@dataclass(frozen=True, eq=False)
class FeatureBeliefs:
    """Parameters of q, and point estimates of what is learned besides.

    Attributes
    ----------
    assignments : (n_samples, n_features): nu, probability that a sample has a feature
    means : (n_features, n_dims): phi
    variances : (n_features,): s
    sticks : (n_features, 2): tau
    bias : (n_dims,)
    concentration, noise_variance, feature_variance : float
    """

    assignments: Array
    means: Array
    variances: Array
    sticks: Array
    bias: Array
    concentration: float
    noise_variance: float
    feature_variance: float


def expected_log_sticks(sticks: Array) -> tuple[Array, Array]:
    """``E log p`` and ``E log(1 - p)`` under the Betas."""
    total = digamma(sticks.sum(axis=1))
    return digamma(sticks[:, 0]) - total, digamma(sticks[:, 1]) - total


def bound_of_off(sticks: Array) -> tuple[Array, Array]:
    """``B_k`` and the distributions ``q_km`` that attain it, zero for m > k."""
    first, both = digamma(sticks[:, 0]), digamma(sticks.sum(axis=1))
    terms = digamma(sticks[:, 1]) + np.cumsum(first) - first - np.cumsum(both)
    logs = np.where(np.tri(len(terms), dtype=bool), terms, -np.inf)
    bounds = np.logaddexp.reduce(logs, axis=1)
    return bounds, np.exp(logs - bounds[:, None])


def expected_log_prior(sticks: Array, infinite: bool) -> tuple[Array, Array]:
    """``E log pi_k`` and ``E log(1 - pi_k)``, the latter a bound if infinite."""
    on, off = expected_log_sticks(sticks)
    return (np.cumsum(on), bound_of_off(sticks)[0]) if infinite else (on, off)


@dataclass(frozen=True)
class BuffetMeanField:
    """The model that `pluri.inference.variational.coordinate_ascent` runs.

    Parameters
    ----------
    n_features : int
        Largest number of features, K.
    infinite : bool
        Sticks, or the finite prior.
    concentration, noise_variance, feature_variance : float or None
        None: learned, by maximising the bound.
    fit_bias : bool
        Add a row to all samples, also by maximising the bound.
    concentration_prior : Gamma, optional
        Of a concentration that is learned; its log density belongs to the bound.
    """

    n_features: int
    infinite: bool = False
    concentration: float | None = 1.0
    noise_variance: float | None = None
    feature_variance: float | None = None
    fit_bias: bool = False
    concentration_prior: Gamma | None = None

    @property
    def blocks(self) -> Mapping[str, Callable[[FeatureBeliefs, Array], FeatureBeliefs]]:
        """The updates by name, in the order of a sweep."""
        found = {"features": self.update_features, "assignments": self.update_assignments, "sticks": self.update_sticks}
        if self.fit_bias:
            found["bias"] = self.update_bias
        if None in (self.concentration, self.noise_variance, self.feature_variance):
            found["settings"] = self.update_settings
        return found

    def initialize(self, X: Array, rng: np.random.Generator) -> FeatureBeliefs:
        """Random assignments, features near random rows of the data."""
        (n, d), k = X.shape, self.n_features
        bias = X.mean(axis=0) if self.fit_bias else np.zeros(d)
        size = max(float(((X - bias) ** 2).mean()), 1e-10)
        noise = self.noise_variance or size / 2
        feature = self.feature_variance or size
        rows = (X - bias)[rng.integers(n, size=k)]
        nu = rng.uniform(0.2, 0.8, size=(n, k))
        means = rows * rng.uniform(0.5, 1.0, size=(k, 1)) + 0.1 * math.sqrt(size) * rng.standard_normal((k, d))
        c = self.concentration or 1.0
        start = FeatureBeliefs(
            nu, means, np.full(k, feature), np.tile([c if self.infinite else c / k, 1.0], (k, 1)), bias, c,
            noise, feature,
        )  # fmt: skip
        return self.update_sticks(start, X)

    def update_features(self, q: FeatureBeliefs, X: Array) -> FeatureBeliefs:
        """Features: phi and s, one after the other."""
        means, variances = q.means.copy(), q.variances.copy()
        residual = X - q.bias - q.assignments @ means
        for k, nu in enumerate(q.assignments.T):
            variances[k] = 1 / (1 / q.feature_variance + nu.sum() / q.noise_variance)
            new = variances[k] / q.noise_variance * (nu @ residual + (nu @ nu) * means[k])
            residual -= np.outer(nu, new - means[k])
            means[k] = new
        return replace(q, means=means, variances=variances)

    def update_assignments(self, q: FeatureBeliefs, X: Array) -> FeatureBeliefs:
        """Assignments nu, one feature after the other."""
        on, off = expected_log_prior(q.sticks, self.infinite)
        return replace(q, assignments=assign_rows(X, q, on - off, q.assignments))

    def update_sticks(self, q: FeatureBeliefs, X: Array) -> FeatureBeliefs:
        """Probabilities of the features: tau."""
        n, counts = len(X), q.assignments.sum(axis=0)
        if not self.infinite:
            return replace(q, sticks=np.column_stack([q.concentration / self.n_features + counts, 1 + n - counts]))
        _, share = bound_of_off(q.sticks)
        off = (n - counts)[:, None] * share  # [m, i]: weight of "m is off because stick i broke it off"
        # Feature m <= i-1 is passed by every stick before the one that broke it off.
        beyond = off.sum(axis=1, keepdims=True) - np.cumsum(off, axis=1)
        first = q.concentration + np.cumsum(counts[::-1])[::-1] + beyond.sum(axis=0)
        return replace(q, sticks=np.column_stack([first, 1 + off.sum(axis=0)]))

    def update_bias(self, q: FeatureBeliefs, X: Array) -> FeatureBeliefs:
        """The row that all samples share."""
        return replace(q, bias=(X - q.assignments @ q.means).mean(axis=0))

    def update_settings(self, q: FeatureBeliefs, X: Array) -> FeatureBeliefs:
        """Variances and concentration where they are learned."""
        n, d = X.shape
        floor = 1e-10 * max(float(X.var()), 1e-10)  # a perfect fit would send the bound to infinity
        noise, feature, c = q.noise_variance, q.feature_variance, q.concentration
        if self.noise_variance is None:
            noise = max(expected_misfit(X, q) / (n * d), floor)
        if self.feature_variance is None:
            feature = max(float((d * q.variances + (q.means**2).sum(axis=1)).sum()) / (self.n_features * d), floor)
        if self.concentration is None:
            scale = 1.0 if self.infinite else float(self.n_features)
            shape, rate = float(self.n_features), -float(expected_log_sticks(q.sticks)[0].sum())
            if self.concentration_prior is not None:
                shape, rate = shape + self.concentration_prior.shape - 1, rate + scale * self.concentration_prior.rate
            c = max(scale * shape / rate, 1e-6)
        return replace(q, noise_variance=noise, feature_variance=feature, concentration=c)

    def elbo(self, q: FeatureBeliefs, X: Array) -> float:
        """Evidence lower bound."""
        (n, d), k = X.shape, self.n_features
        counts, tau = q.assignments.sum(axis=0), q.sticks
        on, off = expected_log_prior(tau, self.infinite)
        log_stick, log_rest = expected_log_sticks(tau)
        a = q.concentration if self.infinite else q.concentration / k
        entropy = entr(q.assignments).sum() + entr(1 - q.assignments).sum()
        entropy += (betaln(*tau.T) - (tau[:, 0] - 1) * log_stick - (tau[:, 1] - 1) * log_rest).sum()
        entropy += d / 2 * np.log(2 * math.pi * math.e * q.variances).sum()
        prior = k * math.log(a) + (a - 1) * log_stick.sum() + counts @ on + (n - counts) @ off
        size = float((d * q.variances + (q.means**2).sum(axis=1)).sum())
        prior -= k * d / 2 * math.log(2 * math.pi * q.feature_variance) + size / (2 * q.feature_variance)
        fit = n * d / 2 * math.log(2 * math.pi * q.noise_variance) + expected_misfit(X, q) / (2 * q.noise_variance)
        if self.concentration is None and self.concentration_prior is not None:
            prior += self.concentration_prior.log_density(q.concentration)
        return float(entropy + prior - fit)


def expected_misfit(X: Array, q: FeatureBeliefs) -> float:
    """``E ||X - bias - Z A||^2`` under q."""
    nu = q.assignments
    fit = float(((X - q.bias - nu @ q.means) ** 2).sum())
    spread = (nu * (1 - nu)).sum(axis=0) @ (q.means**2).sum(axis=1)
    return float(fit + spread + X.shape[1] * (nu.sum(axis=0) @ q.variances))


def assign_rows(X: Array, q: FeatureBeliefs, log_odds: Array, start: Array) -> Array:
    """One pass over the features for the assignments of rows; `log_odds` (n_features,) are those of the prior."""
    nu = start.copy()
    residual = X - q.bias - nu @ q.means
    for k, mean in enumerate(q.means):
        square = mean @ mean
        gain = 2 * (residual @ mean + nu[:, k] * square) - square - X.shape[1] * q.variances[k]
        logit = log_odds[k] + gain / (2 * q.noise_variance)
        new = expit(np.clip(logit, -LARGEST_LOGIT, LARGEST_LOGIT))
        residual -= np.outer(new - nu[:, k], mean)
        nu[:, k] = new
    return nu
