"""Likelihood of sets of neurons that fire together, when neurons with nearby hidden places inhibit each other.

In bin t the firing neurons are a determinantal process with ``L_t = diag(e^(h_t/2)) S diag(e^(h_t/2))``,
``h_tn = b_n + w_n' x_t`` and ``S_nm = exp(-|e_n - e_m|^2 / 2)``. With ``K_t = I - (L_t + I)^-1`` and
``A = mean_t (U_t S_Yt^-1 U_t' - D_t (L_t + I)^-1 D_t)``, the gradients of the mean log-likelihood are
``1[n in Y_t] - K_tnn`` with respect to h_tn and ``-2 sum_m A_nm S_nm (e_n - e_m)`` with respect to e_n. Far apart,
neurons are independent with odds ``e^h``.

References
----------
Snoek, Zemel and Adams (2013), A determinantal point process latent variable model for inhibition in neural spiking
data, NIPS.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.processes.dpp.learning.likelihood import group_terms, subset_log_probabilities
from pluri.processes.dpp.learning.observations import LARGEST_STACK, SubsetCounts, count_subsets

Array = NDArray[np.float64]


def similarity_of(places: Array) -> Array:
    """``S_nm = exp(-|e_n - e_m|^2 / 2)``."""
    squares = ((places[:, None] - places) ** 2).sum(axis=-1)
    return np.asarray(np.exp(-squares / 2))


def log_partitions(scores: Array, similarity: Array) -> tuple[Array, Array, Array]:
    """For each row h of scores: ``log det(L + I)``, the diagonal of K, and ``D (L + I)^-1 D`` summed over the rows.

    Scaled as in `log_partition`, so that large scores do not overflow; values are +inf where a matrix is singular.
    """
    n_bins, n_neurons = scores.shape
    values, inclusion, outer = np.empty(n_bins), np.empty(scores.shape), np.zeros((n_neurons, n_neurons))
    for part in _parts(n_bins, n_neurons):
        scale = np.maximum(scores[part], 0.0) / 2
        shrunk = np.exp(scores[part] / 2 - scale)
        inner = shrunk[:, :, None] * similarity * shrunk[:, None, :]
        index = np.arange(n_neurons)
        inner[:, index, index] += np.exp(-2 * scale)
        try:
            halves = np.linalg.cholesky(inner)
        except np.linalg.LinAlgError:
            return np.full(n_bins, np.inf), inclusion, outer
        inverse_halves = np.linalg.inv(halves)
        inverses = np.swapaxes(inverse_halves, 1, 2) @ inverse_halves
        values[part] = 2 * (np.log(np.diagonal(halves, axis1=1, axis2=2)).sum(axis=1) + scale.sum(axis=1))
        inclusion[part] = 1 - np.diagonal(inverses, axis1=1, axis2=2) * np.exp(-2 * scale)
        outer += np.einsum("tn,tnm,tm->nm", shrunk, inverses, shrunk)
    return values, inclusion, outer


def _parts(n_bins: int, n_neurons: int) -> Iterator[slice]:
    step = max(1, LARGEST_STACK // n_neurons**2)
    return (slice(begin, begin + step) for begin in range(0, n_bins, step))


@dataclass(frozen=True)
class SpikeParameters:
    """Places (n_neurons, n_dimensions), log odds of firing (n_neurons,), and weights (n_neurons, n_covariates)."""

    places: Array
    intercept: Array
    coef: Array

    def scores(self, covariates: Array) -> Array:
        """``h``: (n_bins, n_neurons)."""
        return self.intercept + covariates @ self.coef.T


def bin_log_probabilities(parameters: SpikeParameters, spikes: NDArray[np.bool_], covariates: Array) -> Array:
    """Log-probability of each bin: (n_bins,)."""
    similarity = similarity_of(parameters.places)
    scores = parameters.scores(covariates)
    alone = subset_log_probabilities(similarity, list(spikes))
    normalizer = np.linalg.slogdet(similarity + np.eye(len(similarity)))[1]
    return np.asarray((scores * spikes).sum(axis=1) + alone + normalizer - log_partitions(scores, similarity)[0])


@dataclass(frozen=True, eq=False)
class SpikeObjective:
    """Mean log-likelihood of bins plus the log priors (over the number of bins), of a flat vector of parameters.

    Attributes
    ----------
    spikes : (n_bins, n_neurons) of bool
    covariates : (n_bins, n_covariates)
    place_scale : standard deviation of the normal prior of places
    alpha : penalty of the weights
    n_dimensions : of the places; 0 for neurons that are independent
    """

    spikes: NDArray[np.bool_]
    covariates: Array
    place_scale: float
    alpha: float
    n_dimensions: int
    counts: SubsetCounts

    @classmethod
    def of(
        cls, spikes: NDArray[np.bool_], covariates: Array, place_scale: float, alpha: float, n_dimensions: int
    ) -> SpikeObjective:
        """Count the different sets once."""
        counts = count_subsets(spikes, spikes.shape[1])
        return cls(spikes, covariates, place_scale, alpha, n_dimensions, counts)

    def split(self, point: Array) -> SpikeParameters:
        """Parameters of a flat vector."""
        n_neurons, n_covariates = self.spikes.shape[1], self.covariates.shape[1]
        ends = np.cumsum([n_neurons * self.n_dimensions, n_neurons])
        places, intercept, coef = np.split(point, ends)
        return SpikeParameters(places.reshape(n_neurons, -1), intercept, coef.reshape(n_neurons, n_covariates))

    def __call__(self, point: Array) -> tuple[float, Array]:
        """Value and gradient."""
        parameters = self.split(point)
        n_bins, n_neurons = self.spikes.shape
        # Without places the similarity of all would be one: independent neurons are told by it being the identity.
        similarity = similarity_of(parameters.places) if self.n_dimensions else np.eye(n_neurons)
        scores = parameters.scores(self.covariates)
        # Without covariates all bins are alike: one normaliser serves them all.
        n_kinds = n_bins if self.covariates.shape[1] else 1
        values, inclusion, outer = log_partitions(scores[:n_kinds], similarity)
        values, outer = values * (n_bins / n_kinds), outer * (n_bins / n_kinds)
        value, inverses = 0.0, np.zeros(similarity.shape)
        for group in self.counts.groups:
            term, part = group_terms(similarity, group)
            value += term
            inverses += part
        value = (value + float((scores * self.spikes).sum() - values.sum())) / n_bins
        if not math.isfinite(value):
            return -math.inf, np.zeros(len(point))
        slope = (self.spikes - inclusion) / n_bins
        pull = parameters.places / (self.place_scale**2 * n_bins)
        shrink = self.alpha * parameters.coef / n_bins
        value -= 0.5 * float((pull * parameters.places).sum() + (shrink * parameters.coef).sum())
        attraction = (inverses - outer) / n_bins * similarity
        # -2 sum_m A_nm S_nm (e_n - e_m)
        places = 2 * (attraction @ parameters.places - attraction.sum(axis=1)[:, None] * parameters.places) - pull
        return value, np.concatenate([places.ravel(), slope.sum(axis=0), (slope.T @ self.covariates - shrink).ravel()])
