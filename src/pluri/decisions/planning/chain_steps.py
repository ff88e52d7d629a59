r"""Which step of a sequence to observe: information about the hidden path of a Markov model.

An observation at step t depends on the path through its state alone, so that

.. math:: I(z_{1:T}; x_t \mid \text{seen}) = I(z_t; x_t \mid \text{seen}),

which needs the posterior of one state. Columns of a step that are missing are observed together. What a second step
adds to a first is averaged over drawn outcomes of the first.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from pluri.decisions.planning.mixture_information import label_information, normal_information
from pluri.decisions.planning.scenarios import drawn_outcomes

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Outcomes of several columns of symbols together, at most.
MOST_OUTCOMES = 100_000
#: Draws from each state in each scenario, where information about several numbers has no closed form.
DRAWS_PER_SCENARIO = 4


class Emission(Protocol):
    """What a state emits: columns of a step, some of which may be seen."""

    def information(self, shares: Array, row: Array, n_draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """I(z; missing columns of the row) for each row of probabilities of z, and variances of Monte Carlo (n,)."""

    def draw(self, states: IntArray, row: Array, rng: np.random.Generator) -> Array:
        """Missing columns of the row, given states (n, n_missing)."""


class SymbolEmission:
    """Symbols in each column, independent given the state: tables (k, v) of their distributions."""

    def __init__(self, tables: list[Array]) -> None:
        self.tables = tables

    def information(self, shares: Array, row: Array, n_draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Exact: all outcomes are gone through."""
        together = np.ones((shares.shape[1], 1))
        for column in np.flatnonzero(np.isnan(row)):
            together = np.einsum("ko,kv->kov", together, self.tables[column]).reshape(len(together), -1)
            if together.shape[1] > MOST_OUTCOMES:
                raise ValueError(
                    f"X must leave at most {MOST_OUTCOMES} outcomes of the columns of a step, got "
                    f"{together.shape[1]} of the first {int(column) + 1}"
                )
        return label_information(shares, together), np.zeros(len(shares))

    def draw(self, states: IntArray, row: Array, rng: np.random.Generator) -> Array:
        """Column by column."""
        missing = np.flatnonzero(np.isnan(row))
        return np.stack(
            [drawn_outcomes(self.tables[column][states], rng).astype(np.float64) for column in missing], axis=1
        )


class NormalEmission:
    """Numbers, jointly normal given the state: means (k, d) and covariances (k, d, d)."""

    def __init__(self, means: Array, covariances: Array) -> None:
        self.means, self.covariances = means, covariances

    def information(self, shares: Array, row: Array, n_draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """By quadrature of a single number; of several by draws from each state, weighted by its probability."""
        means, covariances = self._given(row)
        if means.shape[1] == 1:
            exact = normal_information(shares, np.broadcast_to(means[:, 0], shares.shape), covariances[:, 0, 0])
            return exact, np.zeros(len(shares))
        factors = np.linalg.cholesky(covariances)
        noise = rng.standard_normal((len(shares), n_draws, *means.shape))
        drawn = means + np.einsum("kij,nskj->nski", factors, noise)  # from each state
        gaps = drawn[:, :, :, None] - means  # to each state
        scaled = np.einsum("lij,nsklj->nskli", np.linalg.inv(factors), gaps)
        logs = -0.5 * (scaled**2).sum(axis=4) - np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        own = np.diagonal(logs, axis1=2, axis2=3)
        with np.errstate(divide="ignore"):
            mixed = logsumexp(logs + np.log(shares)[:, None, None], axis=3)
        each = np.einsum("nsk,nk->ns", own - mixed, shares)
        return each.mean(axis=1), each.var(axis=1, ddof=1) / n_draws

    def draw(self, states: IntArray, row: Array, rng: np.random.Generator) -> Array:
        """From each state's normal, given the columns that are seen."""
        means, covariances = self._given(row)
        noise = rng.standard_normal((len(states), means.shape[1]))
        return np.asarray(means[states] + np.einsum("nij,nj->ni", np.linalg.cholesky(covariances)[states], noise))

    def _given(self, row: Array) -> tuple[Array, Array]:
        """Means and covariances of the missing columns in each state, given those that are seen."""
        missing, seen = np.flatnonzero(np.isnan(row)), np.flatnonzero(~np.isnan(row))
        means, covariances = self.means[:, missing], self.covariances[:, missing[:, None], missing]
        if len(seen):
            across = self.covariances[:, seen[:, None], missing]
            weights = np.linalg.solve(self.covariances[:, seen[:, None], seen], across)
            means = means + np.einsum("kj,kji->ki", row[seen] - self.means[:, seen], weights)
            covariances = covariances - across.transpose(0, 2, 1) @ weights
        return means, covariances


class StepPlanner:
    """Information about the states of a sequence, from steps that are not observed, or not whole.

    Parameters
    ----------
    model : fitted hidden Markov model
    sequence : (n_steps, n_features)
        What is not observed is NaN.
    emission : Emission
    n_samples : int
    rng : Generator
    """

    def __init__(
        self, model: Any, sequence: Array, emission: Emission, n_samples: int, rng: np.random.Generator
    ) -> None:
        self.model, self.emission, self.n_samples, self.rng = model, emission, n_samples, rng
        self.given = np.asarray(sequence, dtype=np.float64)
        self.sequences = self.given[None]
        self.candidates = [int(step) for step in np.flatnonzero(np.isnan(self.given).any(axis=1))]
        self._infer()

    def _infer(self) -> None:
        n_drawn, n_steps, n_features = self.sequences.shape
        flat = self.sequences.reshape(-1, n_features)
        shares = self.model.predict_proba(flat, lengths=np.full(n_drawn, n_steps))
        self.shares = np.asarray(shares).reshape(n_drawn, n_steps, -1)

    def gains(self, steps: list[int]) -> tuple[Array, Array]:
        """Information of each step given what is planned, and its standard error."""
        found, errors = np.empty(len(steps)), np.empty(len(steps))
        n_scenarios = len(self.sequences)
        n_draws = self.n_samples if n_scenarios == 1 else DRAWS_PER_SCENARIO
        for place, step in enumerate(steps):
            each, variance = self.emission.information(self.shares[:, step], self.given[step], n_draws, self.rng)
            found[place] = max(float(each.mean()), 0.0)
            # Over scenarios the spread holds that of the draws within each.
            squared = float(variance[0]) if n_scenarios == 1 else float(each.var(ddof=1)) / n_scenarios
            errors[place] = np.sqrt(squared)
        return found, errors

    def add(self, step: int) -> None:
        """Change the drawn sequences: the step is observed in each."""
        if len(self.sequences) == 1:
            self.sequences = np.repeat(self.sequences, self.n_samples, axis=0)
            self.shares = np.repeat(self.shares, self.n_samples, axis=0)
        states = np.asarray(drawn_outcomes(self.shares[:, step], self.rng), dtype=np.int64)
        row = self.given[step]
        self.sequences[:, step, np.isnan(row)] = self.emission.draw(states, row, self.rng)
        self._infer()
