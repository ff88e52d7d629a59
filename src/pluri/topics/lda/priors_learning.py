"""Learning the priors of latent Dirichlet allocation while it is sampled: to their likeliest values, or by sampling.

Both see only how often each count occurs, see `pluri.topics.dirichlet_counts`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.topics.dirichlet_counts import CountTable, checked_gamma, fixed_point
from pluri.topics.lda.topic_assignments import LARGEST_PRIOR, SMALLEST_PRIOR, GibbsState

if TYPE_CHECKING:
    from pluri.topics.lda.gibbs import CollapsedGibbs

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def slice_priors(
    rng: np.random.Generator,
    prior: Array,
    table: CountTable,
    *,
    symmetric: bool = False,
    gamma_prior: tuple[float, float] | None = None,
) -> Array:
    """Draw the parameters of a Dirichlet prior given counts, one after another, by slice sampling of their logarithms.

    Parameters
    ----------
    rng : Generator
    prior : array of shape (n_columns,)
        Present values.
    table, symmetric, gamma_prior
        As in `pluri.topics.dirichlet_counts.fixed_point`; the gamma distribution is Gamma(1, 1) by default.

    Returns
    -------
    array of shape (n_columns,)
        The next state of a Markov chain that has the posterior as its stationary distribution.
    """
    from pluri.inference.mcmc.slice_sampling import Slice

    shape, rate = checked_gamma((1.0, 1.0) if gamma_prior is None else gamma_prior)
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


def learn_priors(rng: np.random.Generator, kernel: CollapsedGibbs, state: GibbsState) -> None:
    """Set the priors of a state to those that its counts support, as the kernel says."""
    alpha, eta = state.doc_topic_prior, state.topic_word_prior
    n_words = state.tokens.n_words

    def learned(prior: Array, table: CountTable, symmetric: bool) -> Array:
        if kernel.learn_priors == "sample":
            return slice_priors(rng, prior, table, symmetric=symmetric, gamma_prior=kernel.gamma_prior)
        return fixed_point(prior, table, symmetric=symmetric, gamma_prior=kernel.gamma_prior)

    if kernel.learn != "topic_word":
        rows, lengths = state.document_counts(), np.diff(state.tokens.offsets)
        table = CountTable.of(rows.indices, rows.data, lengths, kernel.n_components, tied=kernel.symmetric)
        alpha = learned(alpha, table, kernel.symmetric)
    if kernel.learn != "doc_topic":
        counts = state.word_topic[state.word_topic > 0]
        table = CountTable.of(counts, counts, state.topic_totals[: kernel.n_components], n_words, tied=True)
        eta = learned(np.full(n_words, float(eta)), table, True)[0]
    state.set_priors(np.clip(alpha, SMALLEST_PRIOR, LARGEST_PRIOR), np.clip(eta, SMALLEST_PRIOR, LARGEST_PRIOR))
