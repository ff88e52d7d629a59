"""The factors of the mean field of a mixture of factor analysers, and the expectations that are needed of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from pluri.mixtures.factor_analyzers.nonparametric_gibbs import Position
from pluri.priors import Gamma

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FactorMixtureBeliefs:
    """Parameters of q.

    Attributes
    ----------
    sticks : (J, 2): Beta parameters of V; the last row is not used
    support : (J, K): tau
    loadings : (J, K, D): M
    loading_spread : (J, K): s
    means : (J, D), mean_spread : (J,): q(m_j) = N(means, mean_spread I)
    factor_precision : (J, 2): shapes and rates of q(be_j)
    loading_precision, mean_precision, noise_precision, concentration : (2,): shape and rate
    """

    sticks: Array
    support: Array
    loadings: Array
    loading_spread: Array
    means: Array
    mean_spread: Array
    factor_precision: Array
    loading_precision: Array
    mean_precision: Array
    noise_precision: Array
    concentration: Array

    def taken(self, order: Any) -> FactorMixtureBeliefs:
        """The components in another order."""
        by_component = ("sticks", "support", "loadings", "loading_spread", "means", "mean_spread", "factor_precision")
        return replace(self, **{name: getattr(self, name)[order] for name in by_component})

    def expected_outer(self) -> Array:
        """``E[C_j C_j']`` of the loadings in use, C = diag(b) A: (J, K, K)."""
        used = self.support[:, :, None] * self.loadings
        outer = used @ used.transpose(0, 2, 1)
        diagonal = np.arange(outer.shape[1])
        D = self.loadings.shape[2]
        outer[:, diagonal, diagonal] = self.support * ((self.loadings**2).sum(axis=2) + D * self.loading_spread)
        return outer

    def position(self, labels: NDArray[np.int64]) -> Position:
        """A position for the sampler: means of q, and factors that are more on than off."""
        support = (self.support > 0.5).astype(np.int8)
        log_stick, log_rest = expected_log_beta(self.sticks)
        log_stick[-1] = 0.0
        log_weights = log_stick + np.concatenate([[0.0], np.cumsum(log_rest[:-1])])
        log_weights -= np.logaddexp.reduce(log_weights)
        return {
            "labels": labels,
            "log_weights": log_weights,
            "means": self.means,
            "loadings": self.loadings * support[:, :, None],
            "support": support,
            "factor_precision": ratio(self.factor_precision),
            "loading_precision": np.asarray(ratio(self.loading_precision)),
            "mean_precision": np.asarray(ratio(self.mean_precision)),
            "noise_precision": np.asarray(ratio(self.noise_precision)),
            "concentration": np.asarray(ratio(self.concentration)),
        }


def stick_posterior(counts: Array, concentration: float) -> Array:
    """Beta parameters of the sticks given expected counts."""
    return np.column_stack([1 + counts, concentration + np.cumsum(counts[::-1])[::-1] - counts])


def ratio(gamma: Array) -> Any:
    """Mean of gamma distributions with shapes and rates on the last axis."""
    return gamma[..., 0] / gamma[..., 1]


def expected_log_gamma(gamma: Array) -> Any:
    """``E log`` of gamma variables."""
    return digamma(gamma[..., 0]) - np.log(gamma[..., 1])


def expected_log_beta(sticks: Array) -> tuple[Array, Array]:
    """``E log V`` and ``E log(1 - V)``."""
    total = digamma(sticks.sum(axis=1))
    return digamma(sticks[:, 0]) - total, digamma(sticks[:, 1]) - total


def gamma_posterior(prior: Gamma, shape: Any, rate: Any) -> Array:
    """Shape and rate of the posterior, on the last axis."""
    return np.stack([prior.shape + np.asarray(shape), prior.rate + np.asarray(rate)], axis=-1)


def gamma_divergence(gamma: Array, prior: Gamma) -> float:
    """``KL(q || p)`` of gamma distributions, summed."""
    (a, b), (c, d) = (gamma[..., 0], gamma[..., 1]), (prior.shape, prior.rate)
    value = (a - c) * digamma(a) - gammaln(a) + gammaln(c) + c * (np.log(b) - math.log(d)) + a * (d - b) / b
    return float(np.sum(value))
