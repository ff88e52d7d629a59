"""What the states of an infinite hidden Markov model emit: conjugate likelihoods, and observations made ready for them.

An `ObservationModel` is a tuple of conjugate likelihoods, each of some columns of X, which are independent given the
state. Observations are parts, one for each likelihood: the rows that are there, and the steps that they belong to. A
step whose row is missing has log density zero and adds nothing to any statistic; where only some columns of a row are
missing, each column has a likelihood of its own, which is exact because columns are independent. The columns of
"gaussian" and "autoregressive" are not: values that are missing in a part of a row are integrated out or drawn
(`pluri.sequences.infinite.holes`).

"autoregressive" is a regression of ``x_t`` on 1, ``x_{t-1}``, ..., ``x_{t-r}``. The first r rows of a sequence, and the
r rows after one in which something is missing, are conditioned on: they have no density, and their states only those of
their neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from pluri.inference import mcmc
from pluri.processes.conjugate import BetaBernoulli, DirichletMultinomial, GammaPoisson
from pluri.processes.conjugate_gaussian import NormalGamma, NormalInverseWishart
from pluri.processes.conjugate_regression import MatrixNormalInverseWishart
from pluri.sequences.infinite.holes import PartWithHoles, part_with_holes
from pluri.sequences.infinite.parts import Part, SymbolPart

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: What a model emits, by the likelihoods that it is made of; "categorical" has one for each column.
LIKELIHOODS = {
    "gaussian": NormalInverseWishart, "diag": NormalGamma, "categorical": DirichletMultinomial,
    "poisson": GammaPoisson, "bernoulli": BetaBernoulli, "autoregressive": MatrixNormalInverseWishart,
    "multinomial": DirichletMultinomial,
}  # fmt: skip
#: Families with columns that depend on each other given the state.
WHOLE_ROWS = ("gaussian", "autoregressive", "multinomial")
#: Those of them that take rows of which only a part is missing.
WITH_HOLES = ("gaussian", "autoregressive")
#: What to do where they are not taken.
HOLES_ADVICE = "use inference='beam' or 'weak_limit', family='diag', or impute it"


@dataclass(frozen=True, eq=False)
class Observations:
    """Observations of sequences that lie end to end, ready for an `ObservationModel`; sums are lists, one per part."""

    parts: tuple[Part, ...]
    n_steps: int

    def sums(self, labels: Integers, n_states: int) -> list[Array]:
        """Statistics of each state, by part."""
        return [part.sums(labels, n_states) for part in self.parts]

    def weighted_sums(self, weights: Array) -> list[Array]:
        """Statistics of each state given the weight of each step in it, by part."""
        return [part.weighted_sums(weights) for part in self.parts]

    def log_marginal(self, sums: Sequence[Array]) -> float:
        """Log density of all observations, given the statistics of their states."""
        return float(sum(part.likelihood.log_marginal(own).sum() for part, own in zip(self.parts, sums)))

    def draw(self, rng: np.random.Generator, sums: Sequence[Array]) -> list[Any]:
        """Parameters of each state, by part."""
        return [part.draw(rng, own) for part, own in zip(self.parts, sums)]

    def log_density(self, parameters: Sequence[Any]) -> Array:
        """Log density of each step given the parameters of each state: (n_steps, n_states)."""
        return _total([part.log_density(own) for part, own in zip(self.parts, parameters)])

    def expected_log_density(self, sums: Sequence[Array]) -> Array:
        """Mean of the log density of each step under the posterior of each state: (n_steps, n_states)."""
        return _total([part.expected_log_density(own) for part, own in zip(self.parts, sums)])

    def divergence(self, sums: Sequence[Array]) -> Array:
        """Kullback-Leibler divergence of the posterior of each state from the prior: (n_states,)."""
        return _total([part.divergence(own) for part, own in zip(self.parts, sums)])

    # Rows of which a part is missing --------------------------------------------------------------------------

    def with_filled(self, values: Array) -> Observations:
        """The same observations with given values, (n_missing,), in place of those that are missing."""
        part = self.parts[0]
        return replace(self, parts=(part.with_filled(values),)) if isinstance(part, PartWithHoles) else self

    def draw_filled(self, rng: np.random.Generator, parameters: Sequence[Any], labels: Integers) -> Array | None:
        """Missing values given everything else; None if there are no rows of which a part is missing."""
        part = self.parts[0]
        return part.draw_filled(rng, parameters[0], labels) if isinstance(part, PartWithHoles) else None


def expected_sums(
    rng: np.random.Generator, observations: Observations, labels: Integers, n_states: int, n_draws: int = 20
) -> list[Array]:
    """Statistics of each state, by part; their means over draws of the missing values where a part of a row is.

    The chain of these draws begins with what stands there.
    """
    first = observations.parts[0]
    if not isinstance(first, PartWithHoles):
        return observations.sums(labels, n_states)

    def sums(position: Any) -> Array:
        return first.with_filled(position["filled"]).sums(labels, n_states)

    def draw(rng: np.random.Generator, position: Any) -> Array:
        return first.draw_filled(rng, first.draw(rng, sums(position)), labels)

    trace = mcmc.sample(
        mcmc.Gibbs({"filled": draw}), {"filled": first.filled}, record=lambda position: {"sums": sums(position)},
        n_draws=n_draws, n_warmup=n_draws, n_chains=1, random_state=rng, warn=False,
    )  # fmt: skip
    return [np.asarray(trace["sums"][0].mean(axis=0))]


def _total(tables: list[Array]) -> Array:
    out = tables[0]
    for table in tables[1:]:
        out = out + table
    return out


@dataclass(frozen=True, eq=False)
class ObservationModel:
    """Likelihoods of the columns of X.

    Attributes
    ----------
    family : a name of `LIKELIHOODS`
    likelihoods : one for each group of columns
    columns : the columns of X that each of them is of
    order : number of past rows that "autoregressive" looks at
    """

    family: str
    likelihoods: tuple[Any, ...]
    columns: tuple[tuple[int, ...], ...]
    order: int = 0

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return sum(len(own) for own in self.columns)

    def prepare(self, X: Array, offsets: Integers) -> Observations:
        """Observations of sequences ``X[offsets[n]:offsets[n + 1]]``; NaN is missing, symbols are 0, ..., V - 1."""
        if self.family == "multinomial":
            refuse_partial_rows(X, f"family={self.family!r}")
        elif self.family not in (*WITH_HOLES, "categorical") and len(self.likelihoods) == 1 and has_partial_rows(X):
            return self.by_column().prepare(X, offsets)
        rows = lagged_rows(X, offsets, self.order) if self.family == "autoregressive" else X
        return Observations(state_parts(self, rows), len(X))

    def by_column(self) -> ObservationModel:
        """The same model with a likelihood for each column, where columns are independent; otherwise itself."""
        if self.family in WHOLE_ROWS or len(self.likelihoods) == self.n_features:
            return self
        each = tuple(_column(self.likelihoods[0], f) for f in range(self.n_features))
        return replace(self, likelihoods=each, columns=tuple((f,) for f in range(self.n_features)))


def state_parts(model: ObservationModel, rows: Array) -> tuple[Part, ...]:
    """Rows by likelihood; those of "autoregressive" have their past before them (`lagged_rows`)."""
    if model.family in WITH_HOLES:
        first = model.likelihoods[0]
        n_predictors = first.n_predictors if model.family == "autoregressive" else 0
        if has_partial_rows(rows[:, n_predictors:]):
            return (part_with_holes(first, rows, n_predictors),)
        return (_part(first, rows),)
    if model.family == "categorical":
        return tuple(_symbols(each, rows[:, f]) for each, (f,) in zip(model.likelihoods, model.columns))
    return tuple(_part(each, rows[:, list(own)]) for each, own in zip(model.likelihoods, model.columns))


def _part(likelihood: Any, table: Array) -> Part:
    there = ~np.isnan(table).any(axis=1)
    if there.all():
        return Part(likelihood, np.ascontiguousarray(table, dtype=np.float64), None, len(table))
    where = np.flatnonzero(there)
    return Part(likelihood, np.ascontiguousarray(table[where], dtype=np.float64), where, len(table))


def _symbols(likelihood: Any, column: Array) -> Part:
    """One symbol a step."""
    there = ~np.isnan(column)
    codes = np.where(there, column, likelihood.n_features).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(there)])
    rows = csr_matrix((np.ones(starts[-1]), codes[there], starts), shape=(len(column), likelihood.n_features))
    return SymbolPart(likelihood, rows, None, len(column), codes)


def _column(likelihood: Any, f: int) -> Any:
    """Likelihood of one of several independent columns."""

    def of(value: Any) -> float:
        return float(np.broadcast_to(np.asarray(value, dtype=np.float64), (likelihood.n_features,))[f])

    if isinstance(likelihood, NormalGamma):
        return NormalGamma(1, of(likelihood.mean), likelihood.strength, likelihood.shape, of(likelihood.rate))
    if isinstance(likelihood, GammaPoisson):
        return GammaPoisson(1, of(likelihood.shape), of(likelihood.rate))
    return BetaBernoulli(1, of(likelihood.a), of(likelihood.b))


def has_partial_rows(X: Array) -> bool:
    """Whether some, but not all, columns of a row are missing."""
    missing = np.isnan(X)
    return bool((missing.any(axis=1) & ~missing.all(axis=1)).any())


def refuse_partial_rows(X: Array, what: str, advice: str = "impute it") -> None:
    """Refuse rows of which only a part is missing; `what` cannot take them."""
    if has_partial_rows(X):
        raise ValueError(
            f"X must have rows that are there or missing as a whole for {what}, got NaN in a part of a row: {advice}"
        )


def lagged_rows(X: Array, offsets: Integers, order: int) -> Array:
    """Rows ``(1, x_{t-1}, ..., x_{t-r}, x_t)``, (n_steps, 1 + (r + 1) d); NaN where one of them is not there."""
    n, d = X.shape
    out = np.full((n, 1 + (order + 1) * d), np.nan)
    out[:, 0] = 1.0
    out[:, 1 + order * d :] = X
    place = np.arange(n) - np.repeat(offsets[:-1], np.diff(offsets))  # in its own sequence
    for lag in range(1, order + 1):
        later = np.flatnonzero(place >= lag)
        out[later, 1 + (lag - 1) * d : 1 + lag * d] = X[later - lag]
    return out
