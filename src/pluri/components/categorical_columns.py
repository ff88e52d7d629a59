"""Products of categorical distributions, one for each column: p(x | component i) = product over columns f of b_if(x_f).

Rows are one-hot (`pluri.components.categories`), parameters the concatenation of the columns' distributions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.categories import Categories
from pluri.components.diverse_tables import columns_of, spread_tables
from pluri.components.probability_rows import rows_from_logits
from pluri.components.sparse_rows import look_up, padded_table
from pluri.components.weighted_sums import WeightedSums, expected_sums, starting_averages, weighted_sums
from pluri.priors import DeterminantalPrior, PseudoCountPrior, RowPrior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ProductCategoricalParameters:
    """probabilities (k, sum of sizes): the distributions of all columns, side by side."""

    probabilities: Array

    @cached_property
    def sparse_table(self) -> tuple[Array, Array]:
        """Log probabilities as a table (sum of sizes, padded width), and what an empty row has: (k,)."""
        with np.errstate(divide="ignore"):
            return padded_table(np.log(self.probabilities)), np.zeros(len(self.probabilities))


@dataclass(frozen=True)
class CategoricalColumnsFamily:
    """The family of products of categorical distributions.

    Parameters
    ----------
    categories : what the columns may hold
    priors : prior on the distributions of each column
    probabilities : probabilities to start from, side by side
    init_params : how a mixture divides the rows at the start
    repulsion : determinantal prior on the rows of `probabilities`; needs priors without negative pseudo-counts
    """

    categories: Categories
    priors: tuple[RowPrior, ...]
    probabilities: Array | None = None
    init_params: str = "kmeans"
    repulsion: DeterminantalPrior | None = None

    @property
    def columns(self) -> list[slice]:
        """Where each column's distribution stands."""
        return columns_of(self.categories.sizes)

    def prepare(self, X: Any) -> Any:
        """The rows are one-hot already."""
        return X

    def initialize(self, X: Any, n_components: int, rng: np.random.Generator) -> ProductCategoricalParameters:
        return self.start(X, None, n_components, rng)[1]

    def start(
        self, X: Any, weight: Array | None, n_components: int, rng: np.random.Generator
    ) -> tuple[Array, ProductCategoricalParameters]:
        """Weights and components of the rows as `init_params` divides them."""
        if self.probabilities is not None:
            return np.full(n_components, 1.0 / n_components), ProductCategoricalParameters(self.probabilities)
        weights, means = starting_averages(X, weight, n_components, self.init_params, rng, _as_they_are)
        for column in self.columns:
            means[:, column] += 1e-3 / (column.stop - column.start)  # a zero would stay a zero
            means[:, column] /= means[:, column].sum(axis=1, keepdims=True)
        return weights, ProductCategoricalParameters(means)

    def telling(self, X: Any) -> NDArray[np.bool_]:
        """Rows of which something was observed."""
        return np.asarray(np.diff(X.indptr) > 0)

    def log_prob(self, parameters: ProductCategoricalParameters, X: Any, out: Array) -> None:
        look_up(X, *parameters.sparse_table, out)

    def accumulate(self, parameters: ProductCategoricalParameters, X: Any, posterior: Array) -> WeightedSums:
        return weighted_sums(X, posterior, len(parameters.probabilities))

    def maximize(self, stats: WeightedSums, parameters: ProductCategoricalParameters) -> ProductCategoricalParameters:
        old = parameters.probabilities
        rows, evidence = np.empty_like(old), np.array(stats.total)
        for column, prior in zip(self.columns, self.priors):
            before = old[:, column]
            support = None if (before > 0).all() else before > 0
            counts = stats.total[:, column] if support is None else stats.total[:, column] * support
            rows[:, column] = prior.maximize(counts, before, support=support)
            if self.repulsion is not None:
                assert isinstance(prior, PseudoCountPrior)
                evidence[:, column] += prior.pseudo_counts(before.shape)
        if self.repulsion is not None:
            rows = spread_tables(evidence, old, rows, self.categories.sizes, self.repulsion)
        return ProductCategoricalParameters(rows)

    def expected(self, parameters: ProductCategoricalParameters, mass: Array) -> WeightedSums:
        """Statistics of rows that the components expect, `mass` (k,) of each, for a stream after a fit."""
        return expected_sums(parameters.probabilities, mass)

    def log_prior(self, parameters: ProductCategoricalParameters) -> float:
        density = 0.0 if self.repulsion is None else self.repulsion.log_density(parameters.probabilities)
        for column, prior in zip(self.columns, self.priors):
            rows = parameters.probabilities[:, column]
            density += prior.log_density(rows, support=rows > 0)
        return density

    def sample(
        self, parameters: ProductCategoricalParameters, states: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[Any]:
        """Values of the categories: int64 if all columns hold numbers, else objects."""
        drawn = []
        for f, column in enumerate(self.columns):
            cumulative = np.cumsum(parameters.probabilities[:, column], axis=1)
            cumulative /= cumulative[:, -1:]
            codes = (rng.random((len(states), 1)) > cumulative[states]).sum(axis=1)
            drawn.append(self.categories.decode(f, np.minimum(codes, self.categories.sizes[f] - 1)))
        if all(values.dtype.kind == "i" for values in drawn):
            return np.stack(drawn, axis=1)
        return np.stack([values.astype(object) for values in drawn], axis=1)

    def n_free(self, parameters: ProductCategoricalParameters) -> int:
        return sum(len(parameters.probabilities) * (size - 1) for size in self.categories.sizes)

    def pack(self, parameters: ProductCategoricalParameters) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(parameters.probabilities).ravel()

    def unpack(self, vector: Array, like: ProductCategoricalParameters) -> ProductCategoricalParameters:
        logits, rows = vector.reshape(like.probabilities.shape), np.empty_like(like.probabilities)
        for column, prior in zip(self.columns, self.priors):
            rows[:, column] = rows_from_logits(logits[:, column], like.probabilities[:, column], prior)
        return ProductCategoricalParameters(rows)


def _as_they_are(X: Any) -> Any:
    return X
