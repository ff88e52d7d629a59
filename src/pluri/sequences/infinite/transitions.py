"""Transitions of a sticky hierarchical Dirichlet process: counts, tables, weights and what they are learned under.

``beta ~ GEM(gamma)``; state j has the row ``pi_j ~ DP(c, (1 - rho) beta + rho delta_j)`` and the first step of a
sequence ``pi_0 ~ DP(c, beta)``, with c the `concentration` (alpha + kappa), gamma the `weight_concentration` and rho
the `stickiness` (kappa / (alpha + kappa)). Given the states of all steps, of which n_jk follow j and are k:

* tables ``m_jk ~ CRT(n_jk, c ((1 - rho) beta_k + rho 1[j = k]))``, of which ``w_j ~ Binomial(m_jj, rho / (rho +
  (1 - rho) beta_j))`` were made by stickiness alone;
* c given the tables of each row, gamma given the others, ``rho ~ Beta(a + sum w, b + sum_j m_j. - sum w)``, the sum
  being over the rows of states;
* ``beta ~ Dir(m_.1 - w_1, ..., m_.K - w_K, gamma)``.

References
----------
Teh, Jordan, Beal and Blei (2006), Hierarchical Dirichlet processes, JASA 101.
Fox, Sudderth, Jordan and Willsky (2011), A sticky HDP-HMM with application to speaker diarization, AOAS 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.priors.hyperpriors import Beta, Gamma
from pluri.processes.concentration import draw_concentration, draw_group_concentration, draw_table_counts
from pluri.processes.dirichlet import draw_log_dirichlet

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: A probability that has underflowed to zero is taken for this.
SMALLEST = 1e-300


class Hyperparameters(NamedTuple):
    """`concentration` c, `weight_concentration` gamma and `stickiness` rho."""

    concentration: float
    weight_concentration: float
    stickiness: float


class HyperPriors(NamedTuple):
    """Priors of the hyper-parameters; None for what is fixed."""

    concentration: Gamma | None = None
    weight_concentration: Gamma | None = None
    stickiness: Beta | None = None

    def sample(self, rng: np.random.Generator, fixed: Hyperparameters) -> Hyperparameters:
        """Draw what is not fixed."""
        pairs = zip(self, fixed)
        return Hyperparameters(*(value if prior is None else prior.sample(rng) for prior, value in pairs))


class Seated(NamedTuple):
    """Tables of each row, (K + 1, K), that of first steps last, and how many stickiness alone made, (K,)."""

    tables: Integers
    overrides: Integers

    @property
    def ordered(self) -> Integers:
        """Tables of each state that chose it by its weight: (K,)."""
        return np.asarray(self.tables.sum(axis=0) - self.overrides)


def count_transitions(labels: Integers, offsets: Integers, n_states: int) -> Integers:
    """How often each state follows each, (n_states + 1, n_states); the last row counts first steps."""
    before = np.empty_like(labels)
    before[1:] = labels[:-1]
    before[offsets[:-1][np.diff(offsets) > 0]] = n_states
    counts = np.bincount(before * n_states + labels, minlength=(n_states + 1) * n_states)
    return counts.reshape(n_states + 1, n_states)


def prior_rows(hyper: Hyperparameters, weights: Array) -> Array:
    """Dirichlet parameters of all rows given the weights of states, the rest of the stick among them or not.

    (K + 1, len(weights)) for K = len(weights); callers with a rest in the last place drop its row.
    """
    c, _, rho = hyper
    rows = np.tile(c * (1 - rho) * weights, (len(weights) + 1, 1))
    rows[:-1][np.diag_indices(len(weights))] += c * rho
    rows[-1] = c * weights
    return rows


def draw_tables(rng: np.random.Generator, counts: Integers, hyper: Hyperparameters, weights: Array) -> Seated:
    """Draw the tables given the counts of transitions and the weights, (K,), of the states."""
    rho = hyper.stickiness
    tables = draw_table_counts(rng, counts, prior_rows(hyper, weights))
    share = rho / np.maximum(rho + (1 - rho) * weights, SMALLEST)
    return Seated(tables, rng.binomial(np.diagonal(tables), np.minimum(share, 1.0)))


def draw_hyperparameters(
    rng: np.random.Generator, counts: Integers, seated: Seated, hyper: Hyperparameters, priors: HyperPriors
) -> Hyperparameters:
    """Draw what is learned, given the tables; the weights are summed over.

    With a finite number L of states, whose weights are Dirichlet(gamma / L), what `seated` says of the tables of the
    states is not enough for gamma: see `draw_finite_weight_concentration`.
    """
    c, gamma, rho = hyper
    if priors.concentration is not None:
        c = draw_group_concentration(rng, c, counts.sum(axis=1), int(seated.tables.sum()), priors.concentration)
    if priors.weight_concentration is not None:
        ordered = seated.ordered
        gamma = draw_concentration(
            rng, gamma, int(ordered.sum()), int((ordered > 0).sum()), priors.weight_concentration
        )
    return Hyperparameters(max(c, SMALLEST), max(gamma, SMALLEST), _draw_stickiness(rng, seated, rho, priors))


def _draw_stickiness(rng: np.random.Generator, seated: Seated, rho: float, priors: HyperPriors) -> float:
    if priors.stickiness is None:
        return rho
    made = int(seated.overrides.sum())
    total = int(seated.tables[:-1].sum())
    return float(rng.beta(priors.stickiness.a + made, priors.stickiness.b + total - made))


def draw_finite_weight_concentration(
    rng: np.random.Generator, gamma: float, ordered: Integers, prior: Gamma | None
) -> float:
    """Draw gamma for weights ``Dirichlet(gamma / L, ..., gamma / L)``, given the tables of each state."""
    if prior is None:
        return gamma
    # Tables are themselves customers, of restaurants with gamma / L: what remains is a Dirichlet process's gamma.
    again = draw_table_counts(rng, ordered, gamma / len(ordered))
    return max(draw_concentration(rng, gamma, int(ordered.sum()), int(again.sum()), prior), SMALLEST)


def draw_weights(rng: np.random.Generator, parameters: Array) -> Array:
    """A Dirichlet vector; what underflows is kept above zero."""
    return np.asarray(np.maximum(np.exp(draw_log_dirichlet(rng, np.maximum(parameters, SMALLEST))), SMALLEST))


def log_path(counts: Integers, hyper: Hyperparameters, weights: Array) -> float:
    """Log probability of the states of all steps given the weights, (K,), of the states; rows are integrated out."""
    prior = np.maximum(prior_rows(hyper, weights), SMALLEST)
    total = hyper.concentration
    terms = np.where(counts > 0, gammaln(prior + counts) - gammaln(prior), 0.0).sum()
    return float(terms + (gammaln(total) - gammaln(total + counts.sum(axis=1))).sum())


def expected_rows(counts: Integers, hyper: Hyperparameters, weights: Array) -> Array:
    """Posterior means of the rows on the states that are there, each summing to one: (K + 1, K)."""
    rows = counts + prior_rows(hyper, weights)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def least_weights(counts: Integers, hyper: Hyperparameters) -> Array:
    """Weights of states, (K,), if each row that leads to one from elsewhere does so from a single table."""
    tables = (counts > 0).sum(axis=0) - (np.diagonal(counts) > 0)
    return np.asarray(tables / (tables.sum() + hyper.weight_concentration))
