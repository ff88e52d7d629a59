r"""The sticky hierarchical Dirichlet process hidden Markov model as something that the EM loop can learn: variational.

The posterior is approximated by ``q(states) q(rows of transitions) q(parameters of emissions) q(sticks)``, in which no
step is in a state beyond the K-th (the rest of the weights stays: the model is infinite, q is not). The E-step is
forward-backward with ``exp E log`` of transitions and densities, whose log normaliser Z is part of the bound

    log Z - KL(q(rows) | p) - KL(q(emissions) | p) - KL(q(sticks) | p)  <=  log p(X);

the M-step adds expected counts to the priors and optimises the sticks (`variational_sticks`). Both raise the bound.
Expected counts add up over batches of whole sequences, which may come from a file.

References
----------
Hughes, Stephenson and Sudderth (2015), Scalable adaptation of state complexity for nonparametric hidden Markov models,
NIPS 28. Fox, Sudderth, Jordan and Willsky (2011), A sticky HDP-HMM, Annals of Applied Statistics 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from pluri.components.chain import forward_backward
from pluri.components.chain.forward_backward import Chain, LogEmission, smooth, smooth_long
from pluri.components.chain.paths import viterbi
from pluri.components.first_sequences import first_sequences
from pluri.engine import Batch, Source, Statistics
from pluri.sequences.infinite.observations import (
    HOLES_ADVICE,
    WITH_HOLES,
    ObservationModel,
    Observations,
    refuse_partial_rows,
)
from pluri.sequences.infinite.parts import Part
from pluri.sequences.infinite.transitions import Hyperparameters, HyperPriors
from pluri.sequences.infinite.variational_start import FIRST_STEPS, first_beliefs
from pluri.sequences.infinite.variational_sticks import CommonWeights, best_weights, first_weights, weights_bound

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Beliefs:
    """q of everything but the states, by the expected counts that it is the posterior of.

    Attributes
    ----------
    counts : array of shape (n_states + 1, n_states)
        Transitions; starts in the last row.
    sums : arrays of shape (n_states, n_statistics)
        Statistics of the emissions, one for each likelihood.
    weights : q of the common weights, and hyper-parameters
    """

    counts: Array
    sums: tuple[Array, ...]
    weights: CommonWeights

    @property
    def n_states(self) -> int:
        """Truncation."""
        return self.counts.shape[1]

    @property
    def sizes(self) -> Array:
        """Expected number of steps of each state: (n_states,)."""
        return np.asarray(self.counts.sum(axis=0))

    @cached_property
    def rows(self) -> Array:
        """Dirichlet parameters of the rows: (n_states + 1, n_states + 1), with the rest of the weights last."""
        rows = self.weights.prior_rows()
        rows[:, :-1] += self.counts
        return rows

    @cached_property
    def log_rows(self) -> Array:
        """``E log`` of the probabilities of transitions between states, and of starts: (n_states + 1, n_states)."""
        return np.asarray(digamma(self.rows[:, :-1]) - digamma(self.rows.sum(axis=1, keepdims=True)))

    @cached_property
    def chain(self) -> Chain:
        """``exp E log`` of the probabilities, which sum to less than one."""
        probabilities = np.exp(self.log_rows)
        return Chain.from_probabilities(probabilities[-1], probabilities[:-1])


@dataclass(frozen=True)
class ExpectedCounts(Statistics):
    """What the E-step gives: log Z, and the counts and sums of `Beliefs`."""

    log_likelihood: float
    counts: Array
    sums: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class VariationalInfiniteHMM:
    """The model that `pluri.inference.expectation_maximization` runs, with a bound for its objective.

    Parameters
    ----------
    model : ObservationModel
    hyper : Hyperparameters
        Values of those that are fixed; of the others, where they start.
    priors : HyperPriors
        What the others are learned under: they are maximised with the bound.
    counted : ObservationModel, optional
        The model whose statistics are summed, if it is another one than `model`.
    """

    model: ObservationModel
    hyper: Hyperparameters
    priors: HyperPriors
    counted: ObservationModel | None = None

    def initialize(self, source: Source, rng: np.random.Generator) -> Beliefs:
        """All steps in one state; `pluri.sequences.infinite.variational` tries starts with more of them."""
        first = first_sequences(source, FIRST_STEPS)
        return first_beliefs(self, first.rows, first.offsets, 1, rng)

    def start(self, counts: Array, sums: tuple[Array, ...], hyper: Hyperparameters | None = None) -> Beliefs:
        """Beliefs after counts, with the states in the order of their sizes."""
        order = np.argsort(-counts.sum(axis=0), kind="stable")
        counts = counts[np.append(order, len(order))][:, order]
        weights = best_weights(counts, first_weights(counts, hyper or self.hyper), self.priors)
        return Beliefs(counts, tuple(own[order] for own in sums), weights)

    def expect(self, params: Beliefs, batch: Batch) -> ExpectedCounts:
        """Expected counts of a batch of whole sequences under the best q(states)."""
        k, chain = params.n_states, params.chain
        observations = self._prepared(batch)
        counted = observations if self.counted is None else self.counted.prepare(batch.X, batch.offsets)
        weight = np.ones(batch.n_sequences) if batch.weight is None else batch.weight
        densities = expected_densities(observations, params)
        if batch.n_sequences == 1 and batch.n_samples > forward_backward.BLOCK:
            parts: list[tuple[Array, ...]] = []

            def consume(begin: int, end: int, posterior: Array) -> None:
                sums = between(counted, begin, end).weighted_sums(posterior[:, :k])
                parts[:] = [tuple(map(np.add, parts[0], sums)) if parts else tuple(sums)]

            result = smooth_long(chain, densities, batch.n_samples, float(weight[0]), consume)
            sums = parts[0]
        else:
            result = smooth(chain, densities, batch.offsets, weight)
            sums = tuple(counted.weighted_sums(result.posterior[:, :k]))
        matters = weight > 0
        log_normaliser = float(weight[matters] @ result.scores[matters])
        return ExpectedCounts(log_normaliser, np.vstack([result.pairs, result.starts]), sums)

    def _prepared(self, batch: Batch) -> Observations:
        if self.model.family in WITH_HOLES:
            refuse_partial_rows(batch.X, f"family={self.model.family!r} with inference='vb'", HOLES_ADVICE)
        return self.model.prepare(batch.X, batch.offsets)

    def decode(self, params: Beliefs, batch: Batch) -> Integers:
        """The most probable path of each sequence under q(states)."""
        observations = self._prepared(batch)
        return viterbi(params.chain, expected_densities(observations, params), batch.offsets)[1]

    def maximize(self, stats: ExpectedCounts, params: Beliefs) -> Beliefs:
        """The best q of rows and emissions given the counts, and a better one of the sticks."""
        weights = best_weights(stats.counts, params.weights, self.priors)
        return Beliefs(stats.counts, stats.sums, weights)

    def log_prior(self, params: Beliefs) -> float:
        """The bound without log Z: minus the divergences."""
        chain = weights_bound(params.counts, params.weights, self.priors)
        chain -= float((params.counts * params.log_rows).sum())
        likelihoods = self.model.likelihoods
        divergences = [Part(each, None, None, 0).divergence(own).sum() for each, own in zip(likelihoods, params.sums)]
        return chain - float(sum(divergences))


def expected_densities(observations: Observations, params: Beliefs) -> LogEmission:
    """``E log`` densities of steps, padded for the compiled functions."""
    k, width = params.n_states, params.chain.width

    def densities(begin: int, end: int) -> Array:
        out = np.full((end - begin, width), -np.inf)
        out[:, :k] = between(observations, begin, end).expected_log_density(list(params.sums))
        return out

    return densities


def between(observations: Observations, begin: int, end: int) -> Observations:
    """Observations of the steps begin:end."""
    if begin == 0 and end == observations.n_steps:
        return observations
    parts = []
    for part in observations.parts:
        if part.where is None:
            parts.append(Part(part.likelihood, part.rows[begin:end], None, end - begin))
        else:
            first, last = np.searchsorted(part.where, [begin, end])
            where = part.where[first:last] - begin
            parts.append(Part(part.likelihood, part.rows[first:last], where, end - begin))
    return Observations(tuple(parts), end - begin)
