"""Collapsed Gibbs sampling of the states of a categorical HMM whose probabilities are integrated out.

Under symmetric Dirichlet priors, c on the start distribution, a on the transition rows and b on the symbols of each
state, the states z and symbols w have the joint probability

    p(z, w) = D(starts; c) prod_i D(n_i; a) prod_f prod_i D(m_f,i; b),
    D(n; a) = Gamma(V a) / Gamma(N + V a) prod_v Gamma(n_v + a) / Gamma(a),    N = sum_v n_v over V entries,

in the counts n of transitions and m of symbols. A sweep resamples each state given all others; the concentrations a
and b may be slice-sampled (Neal 2003) under log-uniform priors.

References
----------
Goldwater and Griffiths (2007), A fully Bayesian approach to unsupervised part-of-speech tagging, ACL.
Neal (2003), Slice sampling, Annals of Statistics 31.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.priors import LogUniform
from pluri.sequences.sampled import _gibbs_kernels as kernels

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Prior under which a concentration is learned unless another is given.
LEARNED = LogUniform(1e-4, 10.0)


class SymbolSequences(NamedTuple):
    """Sequences of coded symbols, end to end.

    Attributes
    ----------
    codes : (n_samples, n_columns): rows of a table over all columns' symbols, -1 where missing
    offsets : (n_sequences + 1,): where each sequence begins and ends
    columns : (n_columns + 1,): first table row of each column, and their total
    """

    codes: Integers
    offsets: Integers
    columns: Integers


class Concentrations(NamedTuple):
    """Dirichlet concentrations: c, a and b of the module docstring."""

    start: float
    transition: float
    emission: float


class ConcentrationPriors(NamedTuple):
    """Priors of the concentrations a and b; None for one that is not learned."""

    transition: LogUniform | None = LEARNED
    emission: LogUniform | None = LEARNED


class Counts(NamedTuple):
    """Sufficient statistics of the states: whole numbers held as doubles, which a sweep updates in place.

    Attributes
    ----------
    transition : (k + 1, k): how often j follows i; the last row counts the first states of the sequences
    transposed : (k, k + 1): the same, for the compiled loop
    departures : (k,): how often a state is followed by another
    emission : (V_total, k): how often each state has each symbol
    emitted : (n_columns, k): the same, summed over the symbols of each column
    """

    transition: Array
    transposed: Array
    departures: Array
    emission: Array
    emitted: Array


def count(data: SymbolSequences, states: Integers, n_components: int) -> Counts:
    """Count from scratch."""
    k = n_components
    # The state before each step, with `k` standing for "nothing before": the row of the starts.
    previous = np.full(len(states), k)
    previous[1:] = states[:-1]
    begins = data.offsets[:-1]
    previous[begins[begins < data.offsets[1:]]] = k
    transition = np.bincount(previous * k + states, minlength=(k + 1) * k).reshape(k + 1, k).astype(np.float64)
    emission = np.zeros((int(data.columns[-1]), k))
    for column in data.codes.T:
        seen = column >= 0
        emission += np.bincount(column[seen] * k + states[seen], minlength=emission.size).reshape(-1, k)
    emitted = np.array([emission[a:b].sum(axis=0) for a, b in pairwise(data.columns)])
    return Counts(transition, np.ascontiguousarray(transition.T), transition[:k].sum(axis=1), emission, emitted)


def sweep(
    data: SymbolSequences,
    states: Integers,
    counts: Counts,
    concentrations: Concentrations,
    rng: np.random.Generator,
    *,
    temperature: float = 1.0,
) -> None:
    """Resample each state once, in order, from its conditional distribution to the power 1 / temperature, in place."""
    work = np.empty((data.codes.shape[1] + 2, len(counts.departures)))
    kernels.resample_states(
        data, states, counts, np.array(concentrations), 1.0 / temperature, rng.random(len(states)), work
    )


@dataclass(frozen=True)
class Tally:
    """Rows of counts under one symmetric Dirichlet, in the form in which their evidence costs little.

    Attributes
    ----------
    values, frequencies : (n_distinct,): the positive counts, and how many entries have each
    totals : (n_rows,): sums of the rows
    width : number of entries of a row
    """

    values: Array
    frequencies: Array
    totals: Array
    width: int

    @classmethod
    def of(cls, counts: Array, totals: Array, width: int) -> Tally:
        """Tally the entries of `counts`, whose rows of `width` entries (in either direction) sum to `totals`."""
        frequencies = np.bincount(counts[counts > 0].astype(np.int64))
        values = np.flatnonzero(frequencies)
        return cls(values.astype(np.float64), frequencies[values].astype(np.float64), totals, width)

    def log_evidence(self, concentration: float) -> float:
        """Sum over the rows of log D(row; concentration)."""
        whole = self.width * concentration
        rising = self.frequencies @ (gammaln(self.values + concentration) - gammaln(concentration))
        return float(rising + np.sum(gammaln(whole) - gammaln(self.totals + whole)))


def transition_tally(counts: Counts) -> Tally:
    """Tally of the transition rows."""
    k = len(counts.departures)
    return Tally.of(counts.transition[:k], counts.departures, k)


def emission_tallies(counts: Counts, columns: Integers) -> list[Tally]:
    """Tally of the symbols of each column."""
    spans = enumerate(pairwise(columns.tolist()))
    return [Tally.of(counts.emission[a:b], counts.emitted[f], b - a) for f, (a, b) in spans]


def log_joint(data: SymbolSequences, counts: Counts, concentrations: Concentrations) -> tuple[float, float]:
    """Logarithms of p(z, w) and p(w | z)."""
    k = len(counts.departures)
    starts = counts.transition[k]
    chain = Tally.of(starts, starts.sum(keepdims=True), k).log_evidence(concentrations.start)
    chain += transition_tally(counts).log_evidence(concentrations.transition)
    tallies = emission_tallies(counts, data.columns)
    symbols = sum(tally.log_evidence(concentrations.emission) for tally in tallies)
    return chain + symbols, symbols


def sample_concentrations(
    data: SymbolSequences,
    counts: Counts,
    concentrations: Concentrations,
    rng: np.random.Generator,
    priors: ConcentrationPriors,
) -> Concentrations:
    """Draw the concentrations that have a prior given the states, one slice-sampling step each."""
    transitions, emissions = transition_tally(counts), emission_tallies(counts, data.columns)

    def of_transition(log_a: float) -> float:
        return transitions.log_evidence(np.exp(log_a))

    def of_emission(log_b: float) -> float:
        return sum(tally.log_evidence(np.exp(log_b)) for tally in emissions)

    _, a, b = concentrations
    if priors.transition is not None:
        a = float(np.exp(slice_sample(of_transition, np.log(a), rng, support=priors.transition.support)))
    if priors.emission is not None:
        b = float(np.exp(slice_sample(of_emission, np.log(b), rng, support=priors.emission.support)))
    return concentrations._replace(transition=a, emission=b)


def slice_sample(
    log_density: Callable[[float], float],
    x: float,
    rng: np.random.Generator,
    *,
    support: tuple[float, float],
    width: float = 0.5,
) -> float:
    """One step of slice sampling of a logarithm, between those of `support`: step out by `width`, then shrink."""
    lower, upper = np.log(support)
    level = log_density(x) - rng.exponential()
    left = x - width * rng.random()
    right = left + width
    while left > lower and log_density(left) > level:
        left -= width
    while right < upper and log_density(right) > level:
        right += width
    left, right = max(left, lower), min(right, upper)
    while True:
        proposal = float(rng.uniform(left, right))
        if log_density(proposal) >= level:
            return proposal
        if proposal < x:
            left = proposal
        else:
            right = proposal


def posterior_mean(data: SymbolSequences, counts: Counts, concentrations: Concentrations) -> tuple[Array, Array, Array]:
    """Expected start (k,), transition (k, k) and symbol probabilities (V_total, k), given the states."""
    k = len(counts.departures)
    start = counts.transition[k] + concentrations.start
    transition = counts.transition[:k] + concentrations.transition
    emission = counts.emission + concentrations.emission
    for f, (a, b) in enumerate(pairwise(data.columns)):
        emission[a:b] /= counts.emitted[f] + (b - a) * concentrations.emission
    return start / start.sum(), transition / transition.sum(axis=1, keepdims=True), emission
