"""Learning the priors of latent Dirichlet allocation while it is sampled: to their likeliest values, or by sampling.

Both see only how often each count occurs, see `pluri.topics.dirichlet_counts`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.priors.hyperpriors import Gamma
from pluri.topics.dirichlet_counts import CountTable, fixed_point
from pluri.topics.lda.sampling.topic_assignments import LARGEST_PRIOR, SMALLEST_PRIOR, GibbsState
from pluri.validation import Allowed, Only, Whole, check_parameters

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: What is learned: nothing, under a prior, or under the usual one ("learn").
Learning = Gamma | Literal["learn"] | None
#: The usual prior where priors are drawn.
SAMPLED = Gamma(1.0, 1.0)


@dataclass(frozen=True)
class PriorLearning:
    """How the priors of latent Dirichlet allocation are learned while it is sampled.

    Parameters
    ----------
    by : {"optimize", "sample"}, default="optimize"
        Put them at their likeliest values, or draw them by slice sampling, which leaves the joint posterior invariant.
    doc_topic, topic_word : Gamma, "learn" or None, default="learn"
        Prior of each parameter of `doc_topic_prior` (a vector), and of `topic_word_prior` (a number); None if it is
        not learned. "learn" is a flat prior for "optimize", and Gamma(1, 1) for "sample".
    every : int, default=10
        Sweeps from one update of the priors to the next.
    symmetric : bool, default=False
        Keep the parameters of the learned doc_topic_prior equal.
    """

    by: Literal["optimize", "sample"] = "optimize"
    doc_topic: Learning = "learn"
    topic_word: Learning = "learn"
    every: int = 10
    symmetric: bool = False
    _parameters: ClassVar[Mapping[str, Allowed]] = {"by": Only("optimize", "sample"), "every": Whole(1)}

    def __post_init__(self) -> None:
        check_parameters(self)

    def drawn_under(self, name: Literal["doc_topic", "topic_word"]) -> Gamma:
        """The prior under which a learned parameter is drawn."""
        given: Learning = getattr(self, name)
        return given if isinstance(given, Gamma) else SAMPLED

    def moved(
        self, rng: np.random.Generator, learning: Gamma | str, prior: Array, table: CountTable, symmetric: bool
    ) -> Array:
        """The next parameters of a Dirichlet prior, given counts."""
        given = learning if isinstance(learning, Gamma) else None
        if self.by == "sample":
            return slice_priors(rng, prior, table, symmetric=symmetric, gamma_prior=given or SAMPLED)
        shape, rate = (1.0, 0.0) if given is None else (given.shape, given.rate)
        return fixed_point(prior, table, symmetric=symmetric, shape=shape, rate=rate)


def slice_priors(
    rng: np.random.Generator,
    prior: Array,
    table: CountTable,
    *,
    symmetric: bool = False,
    gamma_prior: Gamma = SAMPLED,
) -> Array:
    """Draw the parameters of a Dirichlet prior given counts, one after another, by slice sampling of their logarithms.

    Parameters
    ----------
    rng : Generator
    prior : array of shape (n_columns,)
        Present values.
    table, symmetric
        As in `pluri.topics.dirichlet_counts.fixed_point`.
    gamma_prior : Gamma, default=Gamma(1.0, 1.0)
        Of each parameter (of the common one if symmetric).

    Returns
    -------
    array of shape (n_columns,)
        The next state of a Markov chain that has the posterior as its stationary distribution.
    """
    from pluri.inference.mcmc.slice_sampling import Slice

    shape, rate = gamma_prior.shape, gamma_prior.rate
    prior = np.array(prior, dtype=np.float64)
    order = np.argsort(table.columns, kind="stable")
    starts = np.searchsorted(table.columns[order], np.arange(table.n_columns + 1))

    def moved(value: float, others: float, scale: float, counts: Integers, times: Array) -> float:
        def log_density(x: Array) -> float:
            a = math.exp(x[0])
            total = others + scale * a
            rows = table.total_times @ (gammaln(total) - gammaln(table.totals + total))
            return float(rows + times @ (gammaln(counts + a) - gammaln(a)) + shape * x[0] - rate * a)

        kernel = Slice(log_density, width=1.0)
        state, _ = kernel.step(rng, kernel.init(rng, np.array([math.log(value)])))
        return max(math.exp(float(state.position[0])), 1e-300)

    if symmetric:
        prior[:] = moved(float(prior[0]), 0.0, table.n_columns, table.counts, table.times)
        return prior
    for k in range(table.n_columns):
        mine = order[starts[k] : starts[k + 1]]
        others = float(prior[:k].sum() + prior[k + 1 :].sum())
        prior[k] = moved(float(prior[k]), others, 1.0, table.counts[mine], table.times[mine])
    return prior


def learn_priors(rng: np.random.Generator, learning: PriorLearning, state: GibbsState) -> None:
    """Set the priors of a state, which is changed, to those that its counts support."""
    if learning.doc_topic is None and learning.topic_word is None:
        return
    alpha, eta = state.doc_topic_prior, state.topic_word_prior
    n_words, n_topics, symmetric = state.tokens.n_words, state.n_topics, learning.symmetric
    if learning.doc_topic is not None:
        rows, lengths = state.document_counts(), np.diff(state.tokens.offsets)
        table = CountTable.of(rows.indices, rows.data, lengths, n_topics, tied=symmetric)
        alpha = learning.moved(rng, learning.doc_topic, alpha, table, symmetric)
    if learning.topic_word is not None:
        counts = state.word_topic[state.word_topic > 0]
        table = CountTable.of(counts, counts, state.topic_totals[:n_topics], n_words, tied=True)
        eta = learning.moved(rng, learning.topic_word, np.full(n_words, float(eta)), table, True)[0]
    state.set_priors(np.clip(alpha, SMALLEST_PRIOR, LARGEST_PRIOR), np.clip(eta, SMALLEST_PRIOR, LARGEST_PRIOR))
