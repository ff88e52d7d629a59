"""Bernoulli components: p(x | component i) = prod_d p_id^x_d (1 - p_id)^(1 - x_d).

Sparse rows are read as ``log p(x | i) = sum_d log(1 - p_id) + sum_{d: x_d = 1} logit(p_id)``, which costs as much as
there are ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from pluri.components.diverse_update import ascend
from pluri.components.imputation import Filled, fill_independent
from pluri.components.k_means import filled, kmeans_centers, observed
from pluri.components.sparse_rows import canonical_rows, look_up, mapped_values, padded_table
from pluri.components.starting_shares import shortened
from pluri.components.weighted_sums import WeightedSums, expected_sums, split_missing, starting_averages, weighted_sums
from pluri.priors import DeterminantalPrior
from pluri.validation import check_width, plain_array

Array = NDArray[np.float64]

#: Probabilities stay this far from 0 and 1, so that a constant feature has a finite density.
MARGIN = 1e-10


@dataclass(frozen=True)
class BernoulliParameters:
    """probs (k, D): probability of a one."""

    probs: Array

    @cached_property
    def log_zero(self) -> Array:
        """log(1 - p): (k, D)."""
        return np.log1p(-self.probs)

    @cached_property
    def logits(self) -> Array:
        """The logits, log p - log(1 - p): (k, D)."""
        return np.asarray(np.log(self.probs) - self.log_zero)

    @cached_property
    def sparse_table(self) -> tuple[Array, Array]:
        """Logits as a table (D, padded width), and what a row of zeros has: (k,)."""
        return padded_table(self.logits), self.log_zero.sum(axis=1)


@dataclass(frozen=True)
class BernoulliFamily:
    """The Bernoulli family.

    Parameters
    ----------
    pseudo_count : ones that are added to every component and feature
    binarize : values above it are ones; None if the rows hold zeros and ones
    update : whether the M-step moves the probabilities
    probs : probabilities to start from
    pseudo_zeros : zeros that are added; as many as ones if None
    init_params : how a mixture divides the rows at the start
    repulsion : determinantal prior on the probabilities
    """

    pseudo_count: Any = 0.0
    binarize: float | None = 0.0
    update: bool = True
    probs: Array | None = None
    pseudo_zeros: Any = None
    init_params: str = "kmeans"
    repulsion: DeterminantalPrior | None = None

    def prepare(self, X: Any) -> Any:
        """Zeros and ones (NaN where missing), dense or CSR."""
        if sparse.issparse(X):
            rows = canonical_rows(X)
            if self.binarize is None or (self.binarize < 1.0 and (rows.data == 1.0).all()):
                return rows
            return canonical_rows(mapped_values(rows, (self.binarize < rows.data).astype(np.float64)))
        if np.isinf(X).any():
            raise ValueError("X must hold finite values (NaN where missing), got infinity")
        if self.binarize is None:
            return plain_array(X)
        return np.where(np.isnan(X), np.nan, self.binarize < X)

    def initialize(self, X: Array, n_components: int, rng: np.random.Generator) -> BernoulliParameters:
        if self.probs is not None:
            return BernoulliParameters(self.probs)
        complete = filled(observed(X))
        # Away from the corners: a centre of few rows has exact zeros and ones that mean little.
        centers = 0.8 * kmeans_centers(complete, n_components, rng) + 0.1 * complete.mean(axis=0) + 0.05
        return BernoulliParameters(np.clip(centers, 0.01, 0.99))

    def start(
        self, X: Any, weight: Array | None, n_components: int, rng: np.random.Generator
    ) -> tuple[Array, BernoulliParameters]:
        """Weights and components of the rows as `init_params` divides them."""
        if self.probs is not None:
            return np.full(n_components, 1.0 / n_components), BernoulliParameters(self.probs)
        weights, probs = starting_averages(X, weight, n_components, self.init_params, rng, _unit_rows)
        return weights, BernoulliParameters(np.clip(probs, MARGIN, 1.0 - MARGIN))

    def log_prob(self, parameters: BernoulliParameters, X: Any, out: Array) -> None:
        if sparse.issparse(X):
            look_up(X, *parameters.sparse_table, out)
            return
        k = len(parameters.probs)
        check_width(X, parameters.probs.shape[1])
        log_zero = parameters.log_zero
        values, observed = split_missing(X)
        out[:, k:] = -np.inf
        out[:, :k] = values @ parameters.logits.T
        out[:, :k] += log_zero.sum(axis=1) if observed is None else observed @ log_zero.T

    def accumulate(self, parameters: BernoulliParameters, X: Any, posterior: Array) -> WeightedSums:
        return weighted_sums(X, posterior, len(parameters.probs))

    def maximize(self, stats: WeightedSums, parameters: BernoulliParameters) -> BernoulliParameters:
        if not self.update:
            return parameters
        ones = stats.total + self.pseudo_count
        total = stats.exposure + self.pseudo_count + self._pseudo_zeros
        seen = total > 0
        probs = np.clip(ones / np.where(seen, total, 1.0), MARGIN, 1.0 - MARGIN)
        plain = BernoulliParameters(np.where(seen, probs, parameters.probs))
        if self.repulsion is None:
            return plain
        return self._spread(ones, total, parameters, plain)

    def _spread(
        self, ones: Array, total: Array, old: BernoulliParameters, plain: BernoulliParameters
    ) -> BernoulliParameters:
        """Probabilities that raise the expected log-likelihood plus the repulsion, climbing on logits."""
        assert self.repulsion is not None
        repulsion, shape = self.repulsion, ones.shape

        def value_and_gradient(vector: Array) -> tuple[float, Array]:
            raw = expit(vector.reshape(shape))
            probs = np.clip(raw, MARGIN, 1.0 - MARGIN)
            value = float(np.sum(ones * np.log(probs) + (total - ones) * np.log1p(-probs)))
            value += repulsion.log_density(probs)
            slope = ones - total * probs + probs * (1.0 - probs) * repulsion.gradient(probs)
            return value, np.where(raw == probs, slope, 0.0).ravel()

        spread = plain.probs * (1.0 - plain.probs)
        curvature = ((total + 2.0 * repulsion.weight) * spread + 1e-6).ravel()
        vector = ascend(value_and_gradient, [self.pack(old), self.pack(plain)], curvature=curvature)
        return BernoulliParameters(np.clip(expit(vector).reshape(shape), MARGIN, 1.0 - MARGIN))

    @property
    def _pseudo_zeros(self) -> Any:
        return self.pseudo_count if self.pseudo_zeros is None else self.pseudo_zeros

    def expected(self, parameters: BernoulliParameters, mass: Array) -> WeightedSums:
        """Statistics of rows that the components expect, `mass` (k,) of each, for a stream after a fit."""
        return expected_sums(parameters.probs, mass)

    def log_prior(self, parameters: BernoulliParameters) -> float:
        if not self.update:
            return 0.0
        terms = self.pseudo_count * np.log(parameters.probs) + self._pseudo_zeros * parameters.log_zero
        density = float(np.sum(terms))
        return density if self.repulsion is None else density + self.repulsion.log_density(parameters.probs)

    def sample(self, parameters: BernoulliParameters, states: NDArray[np.int64], rng: np.random.Generator) -> Any:
        probs = parameters.probs[states]
        return (rng.random(probs.shape) < probs).astype(np.int64)

    def impute(self, parameters: BernoulliParameters, X: Array, posterior: Array) -> Filled:
        """Rows with the probability of a one where they miss something, given those of the components (n, k)."""
        probs = parameters.probs
        return fill_independent(X, posterior, probs, probs * (1.0 - probs))

    def n_free(self, parameters: BernoulliParameters) -> int:
        return parameters.probs.size

    def pack(self, parameters: BernoulliParameters) -> Array:
        return parameters.logits.ravel()

    def unpack(self, vector: Array, like: BernoulliParameters) -> BernoulliParameters:
        if not self.update:
            return like
        probs = 1.0 / (1.0 + np.exp(-np.clip(vector, -23.0, 23.0)))
        return BernoulliParameters(np.clip(probs.reshape(like.probs.shape), MARGIN, 1.0 - MARGIN))


def _unit_rows(X: Any) -> Any:
    return shortened(X if sparse.issparse(X) else filled(X), 1.0)
