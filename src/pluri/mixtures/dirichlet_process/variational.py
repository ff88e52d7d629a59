"""Truncated variational inference of a Dirichlet process mixture.

``q = prod_i q(z_i) prod_k q(v_k) q(theta_k) q(alpha)`` with at most K components; the last takes what is left of the
stick. Given responsibilities r_ik, ``q(v_k) = Beta(1 + N_k, E alpha + sum_{j>k} N_j)``, q(theta_k) is the posterior
given weighted statistics, ``q(alpha) = Gamma(a + K - 1, b - sum_k E log(1 - v_k))``, and then
``r_ik ~ exp(E log pi_k + E log p(x_i | theta_k))``. Before the sticks are updated, components are put in order of their
weight if that raises the bound; it may not for the last two, because the last has no stick of its own.

References
----------
Blei and Jordan (2006), Variational inference for Dirichlet process mixtures, Bayesian Analysis 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaln, digamma

from pluri.metrics.distribution_information import gamma_kl_of_checked
from pluri.priors.hyperpriors import Hyperparameter
from pluri.processes.conjugate_clusters.expectations import ClusterPosteriors, divergence, expected_log_density
from pluri.processes.conjugate_clusters.records import Array, Integers, weighted_sums

#: Rows whose responsibilities are in memory at a time.
BLOCK = 8192


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Parameters of q, and what the responsibilities that are best given them add up to.

    Attributes
    ----------
    statistics : array of shape (n_components, n_statistics)
        Weighted statistics that q of the parameters of the components is the posterior of.
    sizes : array of shape (n_components,)
        Expected number of rows of each component, which q of the sticks is the posterior of.
    sticks : array of shape (n_components - 1, 2)
    alpha : array of shape (2,)
        Shape and rate of q of the concentration, or the concentration and zero if it is fixed.
    bound : float
        The bound, with responsibilities at their best.
    next_statistics, next_sizes : arrays
        Of those responsibilities.
    """

    statistics: Array
    sizes: Array
    sticks: Array
    alpha: Array
    bound: float
    next_statistics: Array
    next_sizes: Array


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Data with a weight for each row."""

    data: Any
    weights: Array


@dataclass(frozen=True, eq=False)
class TruncatedMeanField:
    """The model that `pluri.inference.variational.coordinate_ascent` runs on `WeightedRows`.

    Parameters
    ----------
    likelihood : Conjugate
    n_components : int
        Truncation.
    concentration : Hyperparameter, default=Hyperparameter(1.0)
        Fixed, or learned under a gamma prior.
    """

    likelihood: Any
    n_components: int
    concentration: Hyperparameter = Hyperparameter(1.0)

    def initialize(self, rows: WeightedRows, rng: np.random.Generator) -> Beliefs:
        """Rows go to the nearest of some rows that are far from each other."""
        return self.start(rows, scattered_labels(rows, self.n_components, rng))

    def start(self, rows: WeightedRows, labels: Integers) -> Beliefs:
        """What follows if rows are in the components that `labels` says."""
        member = np.zeros((len(labels), self.n_components))
        member[np.arange(len(labels)), labels] = rows.weights
        value, prior = self.concentration
        alpha = np.array([value, 0.0] if prior is None else [prior.shape, prior.shape / value])
        return self.settled(weighted_sums(self.likelihood, rows.data, member), member.sum(axis=0), alpha, rows)

    def update(self, q: Beliefs, rows: WeightedRows) -> Beliefs:
        """One sweep: sticks and parameters, the concentration, responsibilities."""
        return self.settled(q.next_statistics, q.next_sizes, q.alpha, rows)

    def elbo(self, q: Beliefs, rows: WeightedRows) -> float:
        """The bound."""
        return q.bound

    def settled(self, statistics: Array, sizes: Array, alpha: Array, rows: WeightedRows) -> Beliefs:
        """Beliefs that follow from expected statistics and sizes of the components."""
        order = np.argsort(-sizes, kind="stable")
        sticks, ordered = best_sticks(np.stack([sizes, sizes[order]]), mean_concentration(alpha))
        log_betas, log_ordered = betaln(sticks[:, 0], sticks[:, 1]), betaln(ordered[:, 0], ordered[:, 1])
        if log_ordered.sum() > log_betas.sum():
            statistics, sizes, sticks, log_betas = statistics[order], sizes[order], ordered, log_ordered
        log_piece, log_rest = expected_log_sticks(sticks)
        prior = self.concentration.prior
        if prior is not None:
            alpha = np.array([prior.shape + len(sticks), prior.rate - log_rest.sum()])
        posteriors = ClusterPosteriors(self.likelihood, statistics)
        entropies = (sticks[:, 0] - 1) * log_piece + (sticks[:, 1] - 1) * log_rest - log_betas
        bound = -float(divergence(posteriors).sum()) - self._stick_divergence(entropies, log_rest, alpha)
        log_weights = np.zeros(len(sizes))
        np.cumsum(log_rest, out=log_weights[1:])
        log_weights[:-1] += log_piece
        next_statistics, next_sizes = np.zeros_like(statistics), np.zeros_like(sizes)
        for begin in range(0, rows.data.shape[0], BLOCK):
            data, weights = rows.data[begin : begin + BLOCK], rows.weights[begin : begin + BLOCK]
            member = expected_log_density(posteriors, data) + log_weights
            largest = member.max(axis=1)
            np.exp(np.subtract(member, largest[:, None], out=member), out=member)
            total = member.sum(axis=1)
            bound += float(weights @ (largest + np.log(total)))
            member *= (weights / total)[:, None]
            next_statistics += weighted_sums(self.likelihood, data, member)
            next_sizes += member.sum(axis=0)
        return Beliefs(statistics, sizes, sticks, alpha, bound, next_statistics, next_sizes)

    def _stick_divergence(self, entropies: Array, log_rest: Array, alpha: Array) -> float:
        """Of the sticks and of the concentration: ``E log q - E log p``."""
        log_alpha, kl = np.log(alpha[0]), 0.0
        if (gamma := self.concentration.prior) is not None:
            log_alpha = digamma(alpha[0]) - np.log(alpha[1])
            kl = float(gamma_kl_of_checked(alpha[0], alpha[1], gamma.shape, gamma.rate))
        prior = log_alpha + (mean_concentration(alpha) - 1) * log_rest
        return float((entropies - prior).sum()) + kl


def best_sticks(sizes: Array, concentration: float) -> Array:
    """Parameters of the posteriors of the sticks given expected sizes of the components."""
    sticks = np.empty((*sizes.shape[:-1], sizes.shape[-1] - 1, 2))
    np.add(1, sizes[..., :-1], out=sticks[..., 0])
    np.add(concentration, sizes[..., ::-1].cumsum(axis=-1)[..., ::-1][..., 1:], out=sticks[..., 1])
    return sticks


def mean_concentration(alpha: Array) -> float:
    """Mean of q of the concentration."""
    return float(alpha[0] / alpha[1]) if alpha[1] > 0 else float(alpha[0])


def expected_log_sticks(sticks: Array) -> tuple[Array, Array]:
    """``E log v_k`` and ``E log (1 - v_k)``."""
    both = digamma(sticks.sum(axis=1))
    return digamma(sticks[:, 0]) - both, digamma(sticks[:, 1]) - both


def expected_weights(sticks: Array) -> Array:
    """``E pi_k``."""
    piece = sticks[:, 0] / sticks.sum(axis=1)
    return np.append(piece, 1.0) * np.append(1.0, np.cumprod(1 - piece))


def scattered_labels(rows: WeightedRows, n_clusters: int, rng: np.random.Generator) -> Integers:
    """The nearest to each row of some rows that k-means++ scatters."""
    from sklearn.cluster import kmeans_plusplus
    from sklearn.metrics import pairwise_distances_argmin

    data, number = standardised(rows), int(rng.integers(2**31))
    centers, _ = kmeans_plusplus(data, min(n_clusters, data.shape[0]), sample_weight=rows.weights, random_state=number)
    return np.asarray(pairwise_distances_argmin(data, centers), dtype=np.int64)


def standardised(rows: WeightedRows) -> Any:
    """Data whose columns have mean zero and variance one; sparse data as they are."""
    if not isinstance(rows.data, np.ndarray):
        return rows.data
    centred = rows.data - np.average(rows.data, axis=0, weights=rows.weights)
    spread = np.sqrt(np.average(centred**2, axis=0, weights=rows.weights))
    return centred / np.where(spread > 0, spread, 1.0)
