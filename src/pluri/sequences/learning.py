"""A hidden Markov model as something that EM can learn: parameters, statistics, E-step and M-step.

The objective is  sum_n w_n log P(x_n) + log p(start) + log p(transition) + log p(emission),  where P(x_n) is summed
over all state paths that agree with the known states, and the prior on the transition rows may couple them
(`pluri.priors.Diversity`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from pluri.components.chain import forward_backward
from pluri.components.chain.forward_backward import Chain, Smoothed, smooth, smooth_long
from pluri.components.family import ComponentFamily, P
from pluri.components.probability_rows import rows_from_logits
from pluri.engine import ArraySource, Batch, Source, Statistics
from pluri.engine.aligned import apart
from pluri.engine.first_rows import initial_rows
from pluri.priors import Dirichlet, Diversity, RowPrior, log_density_rows, maximize_rows
from pluri.sequences.driven.topology import Topology, segmented
from pluri.sequences.emissions.symbols import missing_words

Array = NDArray[np.float64]

FLAT = Dirichlet(1.0)


@dataclass(frozen=True)
class HMMParameters(Generic[P]):
    """Start (k,), transition (k, k) with rows that sum to one, and the emission family's own record.

    `occupancy` (k,) is the number of samples that each state explained in the E-step these parameters come from.
    """

    start: Array
    transition: Array
    emission: P
    occupancy: Array


@dataclass(frozen=True)
class HMMStatistics(Statistics):
    """Expected counts under the posterior of the state paths.

    Attributes
    ----------
    log_likelihood : weighted log-likelihood of the sequences
    start : (k,): how often each state comes first
    transition : (k, k): how often each pair follows
    occupancy : (k,): how many samples each state explains
    emission : the emission family's statistics
    """

    log_likelihood: float
    start: Array
    transition: Array
    occupancy: Array
    emission: Any


@dataclass(frozen=True)
class ChainPrior:
    """Priors on the chain; `anchor_weight * ||transition - anchor||^2` is subtracted if there is an anchor."""

    start: RowPrior = FLAT
    transition: RowPrior = FLAT
    diversity: Diversity | None = None
    anchor: Array | None = None
    anchor_weight: float = 0.0

    @property
    def is_flat(self) -> bool:
        """Whether its density is the same everywhere."""
        return self.diversity is None and self.anchor is None and self.start == FLAT == self.transition


@dataclass(frozen=True)
class HiddenMarkovProblem(Generic[P]):
    """The four functions of `pluri.inference.Learnable`.

    Parameters
    ----------
    n_components : number of states
    emission : the observation model
    prior : priors on start and transitions
    update_start, update_transition : whether the M-step changes them
    start, transition : probabilities to start from, drawn at random where None
    in_log_space : always use the slower recursion that cannot underflow
    topology : transitions that may happen; None if all may
    segments : whether emissions start from consecutive parts of the sequences
    """

    n_components: int
    emission: ComponentFamily[P, Any]
    prior: ChainPrior
    update_start: bool = True
    update_transition: bool = True
    start: Array | None = None
    transition: Array | None = None
    in_log_space: bool = False
    topology: Topology | None = None
    segments: bool = False

    def initialize(self, source: Source, rng: np.random.Generator) -> HMMParameters[P]:
        """Given probabilities as they are, the others from flat Dirichlet distributions; emissions from the data."""
        k = self.n_components
        start = rng.dirichlet(np.ones(k)) if self.start is None else self.start
        transition = rng.dirichlet(np.ones(k), size=k) if self.transition is None else self.transition
        if self.topology is not None:
            allowed_start, allowed_transition = self.topology.masked(start, transition)
            start = allowed_start if self.start is None else start
            transition = allowed_transition if self.transition is None else transition
        emission = self.emission.initialize(initial_rows(source, self.emission.prepare), k, rng)
        if self.segments:
            emission = segmented(self.emission, emission, source, k, rng)
        return HMMParameters(start, transition, emission, np.full(k, np.nan))

    def expect(self, params: HMMParameters[P], batch: Batch) -> HMMStatistics:
        """Expected counts of a batch of whole sequences."""
        chain = Chain.from_probabilities(params.start, params.transition)
        offsets = batch.offsets
        weight = np.ones(batch.n_sequences) if batch.weight is None else batch.weight
        if batch.n_sequences == 1 and batch.n_samples > forward_backward.BLOCK and not self.in_log_space:
            return self._expect_long(params, chain, batch, float(weight[0]))
        X = self.emission.prepare(batch.X)
        result = smooth(
            chain,
            lambda begin, end: log_emission(self.emission, params.emission, chain, X, batch.labels, begin, end),
            offsets,
            weight,
            in_log_space=self.in_log_space,
        )
        refuse_impossible(result.scores, weight)
        stats = self.emission.accumulate(params.emission, X, result.posterior)
        return _statistics(result, weight, stats)

    def _expect_long(self, params: HMMParameters[P], chain: Chain, batch: Batch, weight: float) -> HMMStatistics:
        """One sequence in blocks: neither the densities nor a copy of the data is ever held whole."""
        parts: list[Any] = []

        def rows(begin: int, end: int) -> NDArray[Any]:
            return self.emission.prepare(batch.X[begin:end])

        def densities(begin: int, end: int) -> Array:
            labels = None if batch.labels is None else batch.labels[begin:end]
            return log_emission(self.emission, params.emission, chain, rows(begin, end), labels, 0, end - begin)

        def consume(begin: int, end: int, posterior: Array) -> None:
            stats = self.emission.accumulate(params.emission, rows(begin, end), posterior)
            parts[:] = [parts[0] + stats] if parts else [stats]

        result = smooth_long(chain, densities, batch.n_samples, weight, consume)
        refuse_impossible(result.scores, np.array([weight]))
        return _statistics(result, np.array([weight]), parts[0])

    def maximize(self, stats: HMMStatistics, params: HMMParameters[P]) -> HMMParameters[P]:
        """Update what may be updated; a probability that is exactly zero stays zero."""
        start, transition = params.start, params.transition
        if self.update_start:
            start = self.prior.start.maximize(np.where(start > 0, stats.start, 0.0), start, support=_support(start))
        if self.update_transition:
            transition = maximize_rows(
                np.where(transition > 0, stats.transition, 0.0),
                transition,
                base=self.prior.transition,
                diversity=self.prior.diversity,
                anchor=self.prior.anchor,
                anchor_weight=self.prior.anchor_weight,
                support=_support(transition),
            )
        emission = self.emission.maximize(stats.emission, params.emission)
        return HMMParameters(start, transition, emission, stats.occupancy)

    def log_prior(self, params: HMMParameters[P]) -> float:
        """Log prior of everything that the M-step updates."""
        total = self.emission.log_prior(params.emission)
        if self.prior.is_flat:
            return total
        if self.update_start:
            total += self.prior.start.log_density(params.start, support=_support(params.start))
        if self.update_transition:
            total += log_density_rows(
                params.transition,
                base=self.prior.transition,
                diversity=self.prior.diversity,
                anchor=self.prior.anchor,
                anchor_weight=self.prior.anchor_weight,
                support=_support(params.transition),
            )
        return total

    def pack(self, params: HMMParameters[P]) -> Array:
        """Logarithms of the probabilities, then the emission's own unconstrained vector."""
        with np.errstate(divide="ignore"):
            chain = np.concatenate([np.log(params.start), np.log(params.transition).ravel()])
        return np.concatenate([chain, self.emission.pack(params.emission)])

    def unpack(self, vector: Array, like: HMMParameters[P]) -> HMMParameters[P]:
        """The inverse of `pack`; a guess that the M-step could not have given is moved to the nearest it could."""
        k = self.n_components
        start = rows_from_logits(vector[:k], like.start, self.prior.start)
        transition = rows_from_logits(vector[k : k + k * k].reshape(k, k), like.transition, self.prior.transition)
        return HMMParameters(
            start if self.update_start else like.start,
            transition if self.update_transition else like.transition,
            self.emission.unpack(vector[k + k * k :], like.emission),
            like.occupancy,
        )


def prepare_once(problem: Any, source: Source) -> tuple[Any, Source]:
    """Encode observations in memory before the first sweep instead of in each, if the emission family encodes."""
    emission = problem.emission
    if not getattr(emission, "encodes", False) or not isinstance(source, ArraySource) or source.is_mapped:
        return problem, source
    ready = dataclasses.replace(emission, encodes=False)
    return dataclasses.replace(problem, emission=ready), source.with_array(emission.prepare(source.X))


def count_observed(source: Source) -> int | None:
    """How many values of the data are not missing; None if they are not in memory."""
    if not isinstance(source, ArraySource) or source.is_mapped:
        return None
    X = source.X
    if X.dtype.kind == "O":
        return int(X.size - missing_words(X).sum())
    return int(X.size - np.isnan(X).sum()) if X.dtype.kind == "f" else int(X.size)


def log_emission(
    emission: ComponentFamily[P, Any],
    parameters: P,
    chain: Chain,
    X: NDArray[Any],
    labels: NDArray[np.int64] | None,
    begin: int,
    end: int,
) -> Array:
    """Log densities of rows begin:end, with the states that a known label rules out at -inf."""
    out = apart((end - begin, chain.width))
    emission.log_prob(parameters, X[begin:end], out)
    if labels is not None:
        known = np.flatnonzero(labels[begin:end] >= 0)
        states = labels[begin:end][known]
        kept = out[known, states]
        out[known] = -np.inf
        out[known, states] = kept
    return out


def refuse_impossible(scores: Array, weight: Array) -> None:
    """Raise if a sequence that counts has probability zero, or if a density was not a number."""
    bad = ~np.isfinite(scores) & (weight > 0)
    if bad.any():
        n = int(np.argmax(bad))
        if scores[n] == -np.inf:
            raise ValueError(
                f"sequence {n} of a batch has probability zero under the current parameters: an observation is "
                "impossible in every state, or a transition of probability zero is needed; "
                "use priors above 1 on the probabilities, or treat unseen symbols as missing"
            )
        raise FloatingPointError(
            f"the log-likelihood of sequence {n} of a batch is {scores[n]}: a state's density has become infinite; "
            "raise covars_prior or min_covar, or use fewer states"
        )


def _statistics(result: Smoothed, weight: Array, emission: Any) -> HMMStatistics:
    counted = weight > 0
    total = float(weight[counted] @ result.scores[counted])
    occupancy = result.starts + result.pairs.sum(axis=0)  # a state comes first, or after another
    return HMMStatistics(total, result.starts, result.pairs, occupancy, emission)


def _support(probabilities: Array) -> NDArray[np.bool_] | None:
    positive = probabilities > 0
    return None if positive.all() else positive
