"""Posterior of the classes of symbols, in a hidden Markov model where each symbol belongs to one state.

Generative model of V symbols (word types) in k classes; the boundary of the sequences is one more state, K = k + 1:

    theta ~ Dirichlet(g 1_k)           c_v ~ theta                           class of symbol v
    phi_fc ~ Dirichlet(e_f 1_{S_f})    x_vf ~ phi_{f, c_v}                   feature f of symbol v, one of S_f values
    psi_c ~ Dirichlet(b 1_{m_c})                                             of the m_c symbols of class c
    A_i ~ Dirichlet(a 1_K)             z_t ~ A_{z_{t-1}},  w_t ~ psi_{z_t}   so that z_t = c_{w_t}

With theta, phi, psi and A integrated out, and counts n_ij of transitions, N_c of tokens and m_c of symbols in a class,
f_v of tokens of a symbol and r_fcx of symbols with a feature value, the log joint of data and classes is

    sum_i [ lG(K a) - lG(n_i. + K a) + sum_j lG(n_ij + a) - lG(a) ]                              transitions
  + sum_{c: m_c > 0} [ lG(m_c b) - lG(m_c b + N_c) ] + sum_v [ lG(f_v + b) - lG(b) ]             tokens
  + lG(k g) - lG(V + k g) + sum_c [ lG(m_c + g) - lG(g) ]                                        symbols
  + sum_f sum_c [ lG(S_f e_f) - lG(m_c + S_f e_f) + sum_x lG(r_fcx + e_f) - lG(e_f) ]            features

(lG: log gamma function). Gibbs sampling moves one symbol with all its tokens at a time. Those of a, b, g and e_f that
are learned have log-uniform priors and move by Metropolis steps; each has one of the four sums to itself.

References
----------
Lee, Haghighi and Barzilay (2010), Simple type-level unsupervised POS tagging, EMNLP. Goldwater and Griffiths (2007), A
fully Bayesian approach to unsupervised part-of-speech tagging, ACL.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.priors import LogUniform
from pluri.sequences.sampled import _symbol_class_kernels as kernels

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Steps of the logarithms of a, b, g and each e_f, and how many of them a sweep makes.
STEPS = {"transition": 0.3, "emission": 0.2, "classes": 0.5, "features": 0.3}
METROPOLIS_STEPS = 3


class Corpus(NamedTuple):
    """Sequences as the sampler reads them.

    Attributes
    ----------
    symbols : (L,): number of the symbol at each place; -1, the boundary, comes before, between and after the sequences
    places, firsts : (n_samples,), (V + 1,): symbol v stands at ``places[firsts[v]:firsts[v + 1]]``
    frequencies : (V,): tokens of each symbol
    features : (V, F): feature values of each symbol, as rows of one table over the values of all features
    sizes : (F,): number of values of each feature
    distinct, times : the frequencies that occur, and how many symbols have each
    """

    symbols: Integers
    places: Integers
    firsts: Integers
    frequencies: Integers
    features: Integers
    sizes: Integers
    distinct: Integers
    times: Integers

    @classmethod
    def from_codes(cls, codes: Integers, lengths: Integers, features: Integers, sizes: Integers) -> Corpus:
        """Corpus of the symbols `codes` (n_samples,), all of 0 .. V - 1 occurring, in sequences of `lengths`.

        `features` (V, F) holds values 0 .. S_f - 1 and `sizes` the S_f. Empty sequences are left out.
        """
        filled = lengths[lengths > 0]
        places = np.arange(len(codes)) + np.repeat(np.arange(len(filled)), filled) + 1
        symbols = np.full(len(codes) + len(filled) + 1, -1, dtype=np.int64)
        symbols[places] = codes
        frequencies = np.bincount(codes, minlength=len(features)).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        distinct, times = np.unique(frequencies, return_counts=True)
        return cls(
            symbols=symbols,
            places=places[np.argsort(codes, kind="stable")].astype(np.int64),
            firsts=np.concatenate([[0], np.cumsum(frequencies)]).astype(np.int64),
            frequencies=frequencies,
            features=np.ascontiguousarray(features + offsets[:-1], dtype=np.int64),
            sizes=np.asarray(sizes, dtype=np.int64),
            distinct=distinct,
            times=times,
        )


class Concentrations(NamedTuple):
    """Dirichlet concentrations: a of transitions, b of emissions, g of classes, e_f of each feature."""

    transition: float
    emission: float
    classes: float
    features: tuple[float, ...] = ()

    def as_tuple(self) -> tuple[float, ...]:
        """(a, b, g, e_1 .. e_F)."""
        return (self.transition, self.emission, self.classes, *self.features)


class ConcentrationPriors(NamedTuple):
    """Priors of the concentrations, one for those of all features; None for one that is not learned."""

    transition: LogUniform | None = LogUniform(1e-5, 10.0)
    emission: LogUniform | None = LogUniform(1e-4, 10.0)
    classes: LogUniform | None = LogUniform(1e-3, 100.0)
    features: LogUniform | None = LogUniform(1e-5, 10.0)


#: Priors of those that are only said to be learned.
LEARNED = ConcentrationPriors()


class Counts(NamedTuple):
    """What the log joint needs to know of the classes; a sweep changes the arrays in place.

    Attributes
    ----------
    transition : (k + 1, k + 1): n_ij, state k being the boundary
    tokens, types : (k,): N_c and m_c
    features : (sum of S_f, k): r_fcx
    """

    transition: Integers
    tokens: Integers
    types: Integers
    features: Integers


class Assignment(NamedTuple):
    """A point of the sampler: class of each symbol (V,), state of each place (L,), and their counts."""

    classes: Integers
    states: Integers
    counts: Counts

    def copy(self) -> Assignment:
        """The same point in arrays of its own."""
        counts = Counts(*(array.copy() for array in self.counts))
        return Assignment(self.classes.copy(), self.states.copy(), counts)


def assign(corpus: Corpus, classes: Integers, n_components: int) -> Assignment:
    """Point of the sampler at given classes, counted from scratch."""
    k = n_components
    states = np.where(corpus.symbols >= 0, classes[corpus.symbols], k)
    transition = np.zeros((k + 1, k + 1), dtype=np.int64)
    np.add.at(transition, (states[:-1], states[1:]), 1)
    tokens = np.zeros(k, dtype=np.int64)
    np.add.at(tokens, classes, corpus.frequencies)
    features = np.zeros((int(corpus.sizes.sum()), k), dtype=np.int64)
    np.add.at(features, (corpus.features, classes[:, None]), 1)
    types = np.bincount(classes, minlength=k).astype(np.int64)
    return Assignment(classes.astype(np.int64), states, Counts(transition, tokens, types, features))


def log_dirichlet_multinomial(counts: Integers, concentration: float) -> float:
    """Log probability of ordered draws with these counts (n_rows, width) from rows ~ Dirichlet(concentration 1)."""
    width = counts.shape[1]
    cells = (gammaln(counts + concentration) - gammaln(concentration)).sum()
    rows = (gammaln(width * concentration) - gammaln(counts.sum(axis=1) + width * concentration)).sum()
    return float(cells + rows)


def log_transitions(counts: Counts, concentration: float) -> float:
    """Transitions' part of the log joint."""
    return log_dirichlet_multinomial(counts.transition, concentration)


def log_tokens(corpus: Corpus, counts: Counts, concentration: float) -> float:
    """Tokens' part of the log joint: which symbol of its class each token is."""
    used = counts.types > 0
    prior = counts.types[used] * concentration
    cells = corpus.times @ (gammaln(corpus.distinct + concentration) - gammaln(concentration))
    return float(cells + (gammaln(prior) - gammaln(prior + counts.tokens[used])).sum())


def log_types(counts: Counts, concentration: float) -> float:
    """Symbols' part of the log joint: their classes."""
    return log_dirichlet_multinomial(counts.types[None, :], concentration)


def log_feature(corpus: Corpus, counts: Counts, feature: int, concentration: float) -> float:
    """One feature's part of the log joint."""
    end = int(corpus.sizes[: feature + 1].sum())
    table = counts.features[end - int(corpus.sizes[feature]) : end]
    return log_dirichlet_multinomial(table.T, concentration)


def log_joint(corpus: Corpus, counts: Counts, concentrations: Concentrations) -> float:
    """Log joint probability of symbols, features and classes, given the concentrations."""
    parts = [
        log_transitions(counts, concentrations.transition),
        log_tokens(corpus, counts, concentrations.emission),
        log_types(counts, concentrations.classes),
    ]
    parts += [log_feature(corpus, counts, f, value) for f, value in enumerate(concentrations.features)]
    return sum(parts)


class Tables(NamedTuple):
    """Log gamma functions at the counts' possible values, for given concentrations, and scratch for the sweep.

    Attributes
    ----------
    concentration : (2 + F,): b, g, e_1 .. e_F
    cells, rows : (L + 1,): log G(n + a) and log G(n + K a)
    features : (F, V + 1): log(n + e_f)
    neighbours, work : (2, k + 1), (3, k): scratch
    """

    concentration: Array
    cells: Array
    rows: Array
    features: Array
    neighbours: Integers
    work: Array

    @classmethod
    def of(cls, corpus: Corpus, n_components: int, concentrations: Concentrations) -> Tables:
        """Tables for given concentrations."""
        numbers = np.arange(len(corpus.symbols) + 1, dtype=np.float64)
        types = np.arange(len(corpus.frequencies) + 1, dtype=np.float64)
        return cls(
            concentration=np.array(concentrations.as_tuple()[1:]),
            cells=gammaln(numbers + concentrations.transition),
            rows=gammaln(numbers + (n_components + 1) * concentrations.transition),
            features=np.log(types + np.array(concentrations.features).reshape(-1, 1)),
            neighbours=np.zeros((2, n_components + 1), dtype=np.int64),
            work=np.zeros((3, n_components)),
        )


def sweep(
    corpus: Corpus, point: Assignment, tables: Tables, rng: np.random.Generator, order: Integers | None = None
) -> int:
    """Draw a new class for each symbol (of `order`; all, in random order, if None) in place; how many moved."""
    order = rng.permutation(len(corpus.frequencies)) if order is None else order
    return int(kernels.resample_classes(order, rng.random(len(order)), corpus, tables, point))


def metropolis(
    value: float, log_density: Callable[[float], float], rng: np.random.Generator, prior: LogUniform | None, step: float
) -> float:
    """A few Metropolis steps of a concentration that has a prior."""
    if prior is None:
        return value
    low, high = prior.support
    current = log_density(value)
    for _ in range(METROPOLIS_STEPS):
        # A symmetric step of the logarithm under a prior flat in the logarithm: no Jacobian is left.
        proposal = value * float(np.exp(step * rng.standard_normal()))
        if low < proposal < high:
            proposed = log_density(proposal)
            if np.log(rng.random()) < proposed - current:
                value, current = proposal, proposed
    return value


def sample_concentrations(
    corpus: Corpus, counts: Counts, old: Concentrations, rng: np.random.Generator, priors: ConcentrationPriors = LEARNED
) -> Concentrations:
    """Move each concentration that has a prior under its own part of the log joint."""

    def move(name: str, value: float, log_density: Callable[[float], float]) -> float:
        return metropolis(value, log_density, rng, getattr(priors, name), STEPS[name])

    return Concentrations(
        transition=move("transition", old.transition, partial(log_transitions, counts)),
        emission=move("emission", old.emission, partial(log_tokens, corpus, counts)),
        classes=move("classes", old.classes, partial(log_types, counts)),
        features=tuple(
            move("features", value, partial(log_feature, corpus, counts, f)) for f, value in enumerate(old.features)
        ),
    )
