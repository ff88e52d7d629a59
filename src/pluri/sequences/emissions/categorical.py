"""Categorical emissions for hidden Markov models: p(x_t | state i) = product over columns f of b_i,f(x_tf)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.probability_rows import rows_from_logits
from pluri.engine import Statistics
from pluri.engine.aligned import padded_width
from pluri.priors import Dirichlet, RowPrior
from pluri.sequences.emissions import _count_kernels as kernels
from pluri.sequences.emissions.symbols import Symbols

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

FLAT = Dirichlet(1.0)


@dataclass(frozen=True)
class CategoricalParameters:
    """table (V_total, k): probability of each symbol in each state; the rows of a column sum to one over symbols."""

    table: Array

    @cached_property
    def log_table(self) -> Array:
        """Logarithms, padded with -inf as the compiled functions want it: computed once for all batches of a sweep."""
        k = self.table.shape[1]
        padded = np.full((len(self.table), padded_width(k)), -np.inf)
        with np.errstate(divide="ignore"):
            np.log(self.table, out=padded[:, :k])
        return padded


@dataclass(frozen=True)
class CategoricalStatistics(Statistics):
    """counts (V_total, padded width): expected number of times each state emitted each symbol."""

    counts: Array


@dataclass(frozen=True)
class CategoricalEmission:
    """The categorical observation model; `table` are starting values, random if None."""

    symbols: Symbols
    prior: RowPrior = FLAT
    update: bool = True
    table: Array | None = None
    encodes: bool = True  # False once the data hold rows of the table already

    def prepare(self, X: NDArray[Any]) -> Integers:
        return self.symbols.encode(X) if self.encodes else X

    def _columns(self) -> list[slice]:
        return [slice(a, b) for a, b in pairwise((0, *accumulate(self.symbols.sizes)))]

    def initialize(self, X: Integers, n_components: int, rng: np.random.Generator) -> CategoricalParameters:
        if self.table is not None:
            return CategoricalParameters(self.table)
        table = np.empty((int(self.symbols.offsets[-1]), n_components))
        for rows in self._columns():
            draws = rng.dirichlet(np.ones(rows.stop - rows.start), size=n_components)
            table[rows] = np.maximum(draws, 1e-300).T
        return CategoricalParameters(table)

    def log_prob(self, parameters: CategoricalParameters, X: Integers, out: Array) -> None:
        kernels.look_up(X, parameters.log_table, out)

    def accumulate(self, parameters: CategoricalParameters, X: Integers, posterior: Array) -> CategoricalStatistics:
        counts = np.zeros((len(parameters.table), posterior.shape[1]))
        kernels.scatter(X, posterior, counts)
        return CategoricalStatistics(counts)

    def maximize(self, stats: CategoricalStatistics, parameters: CategoricalParameters) -> CategoricalParameters:
        if not self.update:
            return parameters
        table = np.empty_like(parameters.table)
        for rows in self._columns():
            old = parameters.table[rows].T
            support = None if (old > 0).all() else old > 0
            counts = stats.counts[rows, : len(old)].T
            table[rows] = self.prior.maximize(counts if support is None else counts * support, old, support=support).T
        return CategoricalParameters(table)

    def log_prior(self, parameters: CategoricalParameters) -> float:
        if not self.update or self.prior == FLAT:
            return 0.0
        total = 0.0
        for rows in self._columns():
            probabilities = parameters.table[rows].T
            total += self.prior.log_density(probabilities, support=probabilities > 0)
        return total

    def sample(self, parameters: CategoricalParameters, states: Integers, rng: np.random.Generator) -> NDArray[Any]:
        columns = []
        for f, rows in enumerate(self._columns()):
            cumulative = np.cumsum(parameters.table[rows].T, axis=1)
            cumulative /= cumulative[:, -1:]
            draws = rng.random(len(states))
            codes = np.empty(len(states), dtype=np.int64)
            for state in np.unique(states):
                here = states == state
                codes[here] = np.searchsorted(cumulative[state], draws[here], side="right")
            columns.append(self.symbols.decode(f, np.minimum(codes, self.symbols.sizes[f] - 1)))
        return np.stack(columns, axis=1)

    def impute(self, parameters: CategoricalParameters, X: Integers, posterior: Array) -> NDArray[Any]:
        """Symbols of the codes X, the most probable one where a code is -1, given the probabilities of the states."""
        columns = []
        for f, rows in enumerate(self._columns()):
            own = X[:, f] - rows.start
            gone = X[:, f] < 0
            own[gone] = (posterior[gone] @ parameters.table[rows].T).argmax(axis=1)
            columns.append(self.symbols.decode(f, own))
        return np.stack(columns, axis=1)

    def n_free(self, parameters: CategoricalParameters) -> int:
        return sum(parameters.table.shape[1] * (size - 1) for size in self.symbols.sizes)

    def pack(self, parameters: CategoricalParameters) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(parameters.table).ravel()

    def unpack(self, vector: Array, like: CategoricalParameters) -> CategoricalParameters:
        if not self.update:
            return like
        logits = vector.reshape(like.table.shape)
        table = np.empty_like(like.table)
        for rows in self._columns():
            table[rows] = rows_from_logits(logits[rows].T, like.table[rows].T, self.prior).T
        return CategoricalParameters(table)
