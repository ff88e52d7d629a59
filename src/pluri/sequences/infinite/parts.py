"""Rows of one conjugate likelihood and the steps that they belong to: statistics and densities by state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from pluri.components.gaussian._kernels import CHUNK, log_prob_full
from pluri.engine.aligned import padded_width
from pluri.processes.conjugate_clusters import expectations
from pluri.processes.conjugate_clusters.parameters import Parameters, draw_parameters, log_density
from pluri.processes.conjugate_clusters.records import cluster_sums, log_predictive, weighted_sums
from pluri.processes.conjugate_gaussian import NormalInverseWishart
from pluri.processes.conjugate_regression import MatrixNormalInverseWishart
from pluri.validation import plain_array

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one likelihood.

    Attributes
    ----------
    likelihood : conjugate likelihood
    rows : (n_present, n_features), dense, or sparse for symbols: rows that are there
    where : (n_present,): the step of each; None if every step has one
    n_steps : number of steps
    """

    likelihood: Any
    rows: Any
    where: Integers | None
    n_steps: int

    @property
    def _regresses(self) -> bool:
        return isinstance(self.likelihood, MatrixNormalInverseWishart)

    def _there(self, by_step: Any) -> Any:
        return by_step if self.where is None else by_step[self.where]

    def _everywhere(self, table: Array) -> Array:
        """Entries of rows as entries of steps: zero where there is no row."""
        if self.where is None:
            return table
        out = np.zeros((self.n_steps, table.shape[1]))
        out[self.where] = table
        return out

    def sums(self, labels: Integers, n_states: int) -> Array:
        """Statistics of each state given the state of each step: (n_states, n_statistics)."""
        labels = self._there(labels)
        used, place = np.unique(labels, return_inverse=True)
        out = np.asarray(self.likelihood.empty(n_states))
        if self._regresses:
            for k in used:
                own = self.likelihood.centered(self.rows[labels == k])
                out[k] = np.append(len(own), (own.T @ own).ravel())
        elif len(used):
            out[used] = cluster_sums(self.likelihood, self.rows, place.astype(np.int64), len(used))
        return out

    def weighted_sums(self, weights: Array) -> Array:
        """Statistics of each state given the weight of each step in it, (n_steps, n_states)."""
        weights = self._there(weights)
        if self._regresses:
            return np.asarray(self.likelihood.weighted_sums(self.rows, weights))
        return weighted_sums(self.likelihood, self.rows, weights)

    def draw(self, rng: np.random.Generator, sums: Array) -> Any:
        """Parameters of each state, given its statistics."""
        if self._regresses:
            return self.likelihood.draw_parameters(rng, sums)
        return draw_parameters(rng, self.likelihood, sums)

    def log_density(self, parameters: Any) -> Array:
        """Log density of each step given the parameters of each state: (n_steps, n_states)."""
        if self._regresses:
            return self._everywhere(self.likelihood.log_density(parameters, self.rows))
        if isinstance(self.likelihood, NormalInverseWishart):
            return self._everywhere(gaussian_log_density(parameters, self.rows))
        return self._everywhere(log_density(self.likelihood, parameters, self.rows))

    def log_predictive(self, sums: Array, sizes: Array) -> Array:
        """Log density of each step after the rows of each state, parameters integrated out: (n_steps, n_states)."""
        if self._regresses:
            return self._everywhere(self.likelihood.log_predictive_table(sums, self.rows))
        return self._everywhere(log_predictive(self.likelihood, self.rows, sums, sizes))

    def expected_log_density(self, sums: Array) -> Array:
        """Mean of the log density of each step under the posterior of each state: (n_steps, n_states)."""
        if self._regresses:
            return self._everywhere(self.likelihood.expected_log_density(sums, self.rows))
        posteriors = expectations.ClusterPosteriors(self.likelihood, sums)
        return self._everywhere(expectations.expected_log_density(posteriors, self.rows))

    def divergence(self, sums: Array) -> Array:
        """Kullback-Leibler divergence of the posterior of each state from the prior: (n_states,)."""
        if self._regresses:
            return np.asarray(self.likelihood.divergence(sums))
        return expectations.divergence(expectations.ClusterPosteriors(self.likelihood, sums))

    def sizes(self, labels: Integers, n_states: int) -> Array:
        """Number of rows of each state."""
        return np.bincount(self._there(labels), minlength=n_states).astype(np.float64)


def gaussian_log_density(parameters: Parameters, rows: Array) -> Array:
    """Log density of rows under means and roots of covariances, by the compiled loop of the Gaussian models."""
    means, root = parameters
    n_states, d = means.shape
    # Of any root of the precision, the lower triangular one with the same product: a QR decomposition, mirrored.
    mirrored: Array = np.asarray(np.linalg.qr(np.linalg.inv(root)[:, :, ::-1], mode="r"))
    triangular = mirrored[:, ::-1, ::-1]
    whitening = np.zeros((n_states, d, padded_width(d)))
    whitening[:, :, :d] = triangular
    shift = means.mean(axis=0)
    whitened_means = np.einsum("kde,ke->kd", triangular, means - shift)
    log_normalizer = 2 * np.linalg.slogdet(root)[1] + d * np.log(2 * np.pi)
    out = np.empty((len(rows), n_states))
    work = np.empty((2 * padded_width(d) + d + 2, CHUNK))
    log_prob_full(plain_array(rows), shift, whitening, whitened_means, log_normalizer, out, work)
    return out


@dataclass(frozen=True, eq=False)
class SymbolPart(Part):
    """One symbol a step: rows are sparse, with a single 1, or none where the symbol is missing.

    Attributes
    ----------
    codes : (n_steps,): the symbols; one more than there are where missing
    """

    codes: Integers

    def _looked_up(self, logs: Array) -> Array:
        """Entries of a table (n_states, n_symbols), for each step: zero where the symbol is missing."""
        return np.asarray(np.pad(logs.T, ((0, 1), (0, 0)))[self.codes])

    def sums(self, labels: Integers, n_states: int) -> Array:
        """Counts of the symbols of each state."""
        width = self.likelihood.n_features + 1
        counts = np.bincount(labels * width + self.codes, minlength=n_states * width)
        return counts.reshape(n_states, width)[:, :-1].astype(np.float64)

    def log_density(self, parameters: Any) -> Array:
        """Log probability of the symbol of each step: (n_steps, n_states)."""
        return self._looked_up(parameters.location)

    def log_predictive(self, sums: Array, sizes: Array) -> Array:
        """Log probability of the symbol of each step after those of each state: (n_steps, n_states)."""
        counts = self.likelihood._alpha + sums
        return self._looked_up(np.log(counts / counts.sum(axis=1, keepdims=True)))

    def expected_log_density(self, sums: Array) -> Array:
        """Mean of the log probability under the posterior of each state: (n_steps, n_states)."""
        counts = self.likelihood._alpha + sums
        return self._looked_up(digamma(counts) - digamma(counts.sum(axis=1, keepdims=True)))
