"""Poisson components: p(x | component i) = prod_d Poisson(x_d | lambda_id)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln

from pluri.components.diverse_update import ascend
from pluri.components.imputation import Filled, fill_independent
from pluri.components.k_means import filled, kmeans_centers, observed
from pluri.components.sparse_rows import canonical_rows, look_up, mapped_values, padded_table
from pluri.components.starting_shares import shortened
from pluri.components.weighted_sums import WeightedSums, expected_sums, split_missing, starting_averages, weighted_sums
from pluri.priors import DeterminantalPrior
from pluri.validation import check_width, plain_array
from pluri.validation.inputs import check_counts

Array = NDArray[np.float64]

#: A rate of exactly zero is read as this: a count there is all but impossible, a zero costs nothing.
SMALLEST_RATE = 1e-300
#: The diversity prior climbs on logarithms of rates no smaller than this.
LEAST_MOVING_RATE = 1e-12


@dataclass(frozen=True)
class PoissonParameters:
    """rates (k, D): expected counts."""

    rates: Array

    @cached_property
    def log_rates(self) -> Array:
        """Logarithms of the rates: (k, D)."""
        return np.asarray(np.log(np.maximum(self.rates, SMALLEST_RATE)))

    @cached_property
    def sparse_table(self) -> tuple[Array, Array]:
        """Log rates as a table (D, padded width), and what a row of zeros has: (k,)."""
        return padded_table(self.log_rates), -self.rates.sum(axis=1)


@dataclass(frozen=True)
class PoissonFamily:
    """The Poisson family, with the prior density prod rate^events exp(-exposure rate).

    Parameters
    ----------
    events, exposure : events that are added to every component and feature, and the rows that they are seen in
    update : whether the M-step moves the rates
    rates : rates to start from
    init_params : how a mixture divides the rows at the start
    repulsion : determinantal prior on the rates
    """

    events: Any = 0.0
    exposure: Any = 0.0
    update: bool = True
    rates: Array | None = None
    init_params: str = "kmeans"
    repulsion: DeterminantalPrior | None = None

    def prepare(self, X: Any) -> Any:
        """Non-negative counts (NaN where missing), dense or CSR."""
        if sparse.issparse(X):
            rows = canonical_rows(X)
            check_counts(rows.data)
            return rows
        return check_counts(plain_array(X))

    def initialize(self, X: Array, n_components: int, rng: np.random.Generator) -> PoissonParameters:
        if self.rates is not None:
            return PoissonParameters(self.rates)
        # The square root makes the variance of a count about the same everywhere.
        complete = filled(observed(X))
        centers = kmeans_centers(np.sqrt(complete), n_components, rng) ** 2
        return PoissonParameters(np.maximum(centers, 1e-2 * max(float(complete.mean()), 1e-2)))

    def start(
        self, X: Any, weight: Array | None, n_components: int, rng: np.random.Generator
    ) -> tuple[Array, PoissonParameters]:
        """Weights and components of the rows as `init_params` divides them."""
        if self.rates is not None:
            return np.full(n_components, 1.0 / n_components), PoissonParameters(self.rates)
        weights, rates = starting_averages(X, weight, n_components, self.init_params, rng, _roots)
        return weights, PoissonParameters(rates)

    def log_prob(self, parameters: PoissonParameters, X: Any, out: Array) -> None:
        if sparse.issparse(X):
            look_up(X, *parameters.sparse_table, out)
            out -= mapped_values(X, gammaln(X.data + 1.0)).sum(axis=1)[:, None]
            return
        k = len(parameters.rates)
        check_width(X, parameters.rates.shape[1])
        values, observed = split_missing(X)
        out[:, k:] = -np.inf
        out[:, :k] = values @ parameters.log_rates.T
        out[:, :k] -= parameters.rates.sum(axis=1) if observed is None else observed @ parameters.rates.T
        out[:, :k] -= gammaln(values + 1.0).sum(axis=1, keepdims=True)

    def accumulate(self, parameters: PoissonParameters, X: Any, posterior: Array) -> WeightedSums:
        return weighted_sums(X, posterior, len(parameters.rates))

    def maximize(self, stats: WeightedSums, parameters: PoissonParameters) -> PoissonParameters:
        if not self.update:
            return parameters
        events, exposure = stats.total + self.events, stats.exposure + self.exposure
        seen = exposure > 0
        plain = PoissonParameters(np.where(seen, events / np.where(seen, exposure, 1.0), parameters.rates))
        if self.repulsion is None:
            return plain
        return self._spread(events, exposure, parameters, plain)

    def _spread(
        self, events: Array, exposure: Array, old: PoissonParameters, plain: PoissonParameters
    ) -> PoissonParameters:
        """Rates that raise the expected log-likelihood plus the repulsion, climbing on logarithms."""
        assert self.repulsion is not None
        repulsion, shape = self.repulsion, events.shape
        least = np.log(LEAST_MOVING_RATE)

        def value_and_gradient(vector: Array) -> tuple[float, Array]:
            logs = np.maximum(vector.reshape(shape), least)
            with np.errstate(over="ignore"):
                rates = np.exp(logs)
            if not np.isfinite(rates).all():
                return -np.inf, np.zeros_like(vector)
            value = float(np.sum(events * logs - exposure * rates)) + repulsion.log_density(rates)
            slope = events - exposure * rates + rates * repulsion.gradient(rates)
            return value, np.where(vector.reshape(shape) >= least, slope, 0.0).ravel()

        starts = [np.maximum(np.log(np.maximum(p.rates, LEAST_MOVING_RATE)), least).ravel() for p in (old, plain)]
        curvature = ((exposure + 2.0 * repulsion.weight) * plain.rates + 1e-6).ravel()
        vector = ascend(value_and_gradient, starts, curvature=curvature)
        return PoissonParameters(np.exp(np.maximum(vector, least)).reshape(shape))

    def expected(self, parameters: PoissonParameters, mass: Array) -> WeightedSums:
        """Statistics of rows that the components expect, `mass` (k,) of each, for a stream after a fit."""
        return expected_sums(parameters.rates, mass)

    def log_prior(self, parameters: PoissonParameters) -> float:
        if not self.update:
            return 0.0
        density = float(np.sum(self.events * parameters.log_rates - self.exposure * parameters.rates))
        return density if self.repulsion is None else density + self.repulsion.log_density(parameters.rates)

    def sample(self, parameters: PoissonParameters, states: NDArray[np.int64], rng: np.random.Generator) -> Any:
        return rng.poisson(parameters.rates[states])

    def impute(self, parameters: PoissonParameters, X: Array, posterior: Array) -> Filled:
        """Rows with expected counts where they miss something, given the probabilities of the components (n, k)."""
        return fill_independent(X, posterior, parameters.rates, parameters.rates)

    def n_free(self, parameters: PoissonParameters) -> int:
        return parameters.rates.size

    def pack(self, parameters: PoissonParameters) -> Array:
        return parameters.log_rates.ravel()

    def unpack(self, vector: Array, like: PoissonParameters) -> PoissonParameters:
        return PoissonParameters(np.exp(vector).reshape(like.rates.shape)) if self.update else like


def _roots(X: Any) -> Any:
    """Square roots, which make the variance of a count about the same everywhere, of rows of less unequal length."""
    return shortened(mapped_values(X, np.sqrt(X.data)) if sparse.issparse(X) else np.sqrt(filled(X)), 0.5)
