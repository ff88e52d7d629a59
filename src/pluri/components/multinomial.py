"""Multinomial components: vectors of counts, p(x | component i) = Mult(x | n, b_i)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln

from pluri.components.diverse_tables import spread_tables
from pluri.components.k_means import kmeans_centers
from pluri.components.probability_rows import rows_from_logits
from pluri.components.sparse_rows import canonical_rows, look_up, mapped_values, padded_table
from pluri.components.weighted_sums import WeightedSums, expected_sums, starting_averages, weighted_sums
from pluri.priors import DeterminantalPrior, Dirichlet, Diversity, PseudoCountPrior, RowPrior, maximize_rows
from pluri.validation import check_width, plain_array
from pluri.validation.inputs import check_counts

Array = NDArray[np.float64]

FLAT = Dirichlet(1.0)


@dataclass(frozen=True)
class MultinomialParameters:
    """probabilities (k, V): each row sums to one."""

    probabilities: Array

    @cached_property
    def sparse_table(self) -> tuple[Array, Array]:
        """Log probabilities as a table (V, padded width), and what a row of zeros has: (k,)."""
        with np.errstate(divide="ignore"):
            return padded_table(np.log(self.probabilities)), np.zeros(len(self.probabilities))


@dataclass(frozen=True)
class MultinomialFamily:
    """The multinomial family; the number of trials is part of the data, not of the model.

    Parameters
    ----------
    n_trials : counts of a row that `sample` draws
    prior : prior on each component's probabilities
    update : whether the M-step moves the probabilities
    probabilities : probabilities to start from
    init_params : how a mixture divides the rows at the start
    repulsion : prior that keeps the components apart; a `DeterminantalPrior` needs a `prior` without negative
        pseudo-counts
    mean_trials : counts that a row has on average
    """

    n_trials: int | None = None
    prior: RowPrior = FLAT
    update: bool = True
    probabilities: Array | None = None
    init_params: str = "kmeans"
    repulsion: Diversity | DeterminantalPrior | None = None
    mean_trials: float = 1.0

    def prepare(self, X: Any) -> Any:
        """Non-negative counts, dense (a row with a NaN is missing as a whole) or CSR."""
        if sparse.issparse(X):
            rows = canonical_rows(X)
            check_counts(rows.data)
            return rows
        counts = check_counts(plain_array(X))
        incomplete = np.asarray(np.isnan(counts).any(axis=1))
        if incomplete.any():
            counts = np.where(incomplete[:, None], np.nan, counts)  # missing as a whole, in the M-step too
        return counts

    def initialize(self, X: Array, n_components: int, rng: np.random.Generator) -> MultinomialParameters:
        if self.probabilities is not None:
            return MultinomialParameters(self.probabilities)
        observed = X[~np.isnan(X).any(axis=1)]
        sums = observed.sum(axis=1, keepdims=True)
        shares = (observed / np.maximum(sums, 1e-300))[sums[:, 0] > 0]
        if len(shares) == 0:
            shares = np.full((1, X.shape[1]), 1.0 / X.shape[1])
        # Mixed with the overall shares and a little noise: no probability is zero, no two states are equal.
        centers = kmeans_centers(shares, n_components, rng)
        noise = rng.dirichlet(np.ones(X.shape[1]), size=n_components)
        start = 0.8 * np.maximum(centers, 0.0) + 0.15 * shares.mean(axis=0) + 0.05 * noise
        return MultinomialParameters(start / start.sum(axis=1, keepdims=True))

    def start(
        self, X: Any, weight: Array | None, n_components: int, rng: np.random.Generator
    ) -> tuple[Array, MultinomialParameters]:
        """Weights and components of the rows as `init_params` divides them."""
        if self.probabilities is not None:
            return np.full(n_components, 1.0 / n_components), MultinomialParameters(self.probabilities)
        weights, means = starting_averages(X, weight, n_components, self.init_params, rng, _root_shares)
        # No probability is zero: it would stay so.
        means += 1e-3 * max(float(means.mean()), 1e-3)
        return weights, MultinomialParameters(means / means.sum(axis=1, keepdims=True))

    def telling(self, X: Any) -> NDArray[np.bool_]:
        """Rows that say how counts are divided: complete, and not of zeros alone."""
        return np.asarray(X.sum(axis=1) > 0)  # not so for a NaN

    def log_prob(self, parameters: MultinomialParameters, X: Any, out: Array) -> None:
        if sparse.issparse(X):
            look_up(X, *parameters.sparse_table, out)
            out += (gammaln(X.sum(axis=1) + 1.0) - mapped_values(X, gammaln(X.data + 1.0)).sum(axis=1))[:, None]
            return
        k = len(parameters.probabilities)
        check_width(X, parameters.probabilities.shape[1])
        missing = np.asarray(np.isnan(X).any(axis=1))
        counts = np.where(missing[:, None], 0.0, X)
        positive = parameters.probabilities > 0
        logs = np.log(np.where(positive, parameters.probabilities, 1.0))
        out[:, k:] = -np.inf
        out[:, :k] = counts @ logs.T
        if not positive.all():
            out[:, :k][counts @ (~positive).T.astype(np.float64) > 0] = -np.inf
        coefficient = gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1)
        out[:, :k] += coefficient[:, None]

    def accumulate(self, parameters: MultinomialParameters, X: Any, posterior: Array) -> WeightedSums:
        return weighted_sums(X, posterior, len(parameters.probabilities))

    def maximize(self, stats: WeightedSums, parameters: MultinomialParameters) -> MultinomialParameters:
        if not self.update:
            return parameters
        old = parameters.probabilities
        support = None if (old > 0).all() else old > 0
        counts = stats.total if support is None else stats.total * support
        if isinstance(self.repulsion, Diversity):
            rows = maximize_rows(counts, old, base=self.prior, diversity=self.repulsion, support=support)
            return MultinomialParameters(rows)
        plain = self.prior.maximize(counts, old, support=support)
        if self.repulsion is None:
            return MultinomialParameters(plain)
        assert isinstance(self.prior, PseudoCountPrior)
        evidence = stats.total + self.prior.pseudo_counts(old.shape)
        return MultinomialParameters(spread_tables(evidence, old, plain, (old.shape[1],), self.repulsion))

    def expected(self, parameters: MultinomialParameters, mass: Array) -> WeightedSums:
        """Statistics of rows that the components expect, `mass` (k,) of each, for a stream after a fit."""
        return expected_sums(self.mean_trials * parameters.probabilities, mass)

    def log_prior(self, parameters: MultinomialParameters) -> float:
        if not self.update:
            return 0.0
        density = self.prior.log_density(parameters.probabilities, support=parameters.probabilities > 0)
        return density if self.repulsion is None else density + self.repulsion.log_density(parameters.probabilities)

    def sample(self, parameters: MultinomialParameters, states: NDArray[np.int64], rng: np.random.Generator) -> Any:
        if self.n_trials is None:
            raise ValueError("For sampling, a single n_trials must be given: the trials differed between samples")
        return rng.multinomial(self.n_trials, parameters.probabilities[states])

    def n_free(self, parameters: MultinomialParameters) -> int:
        k, n_symbols = parameters.probabilities.shape
        return k * (n_symbols - 1)

    def pack(self, parameters: MultinomialParameters) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(parameters.probabilities).ravel()

    def unpack(self, vector: Array, like: MultinomialParameters) -> MultinomialParameters:
        if not self.update:
            return like
        old = like.probabilities
        return MultinomialParameters(rows_from_logits(vector.reshape(old.shape), old, self.prior))


def _root_shares(X: Any) -> Any:
    """Square roots of the shares of each symbol in its row: distances between them are Hellinger distances."""
    if sparse.issparse(X):
        sums = np.repeat(X.sum(axis=1), np.diff(X.indptr))
        return mapped_values(X, np.sqrt(X.data / sums))
    counts = np.where(np.isnan(X), 0.0, X)
    return np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300))
