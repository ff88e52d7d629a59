r"""Posterior of the HDP topic model by direct assignment of tokens.

``beta ~ GEM(gamma)``, ``theta_d ~ DP(alpha, beta)``, topics ``phi_k ~ Dirichlet(eta)``, ``z_dn ~ theta_d``,
``w_dn ~ phi_{z_dn}``. Proportions and topics are integrated out; the sampler keeps the topic of every token and the
sticks ``beta_1, ..., beta_K, beta_u`` of the topics that have tokens. In the counts n_dk, n_wk and n_k the density is

    p(w, z, beta) = gamma^K beta_u^(gamma - 1) prod_k beta_k^-1
                    prod_d [Gamma(alpha) / Gamma(alpha + n_d) prod_k Gamma(alpha beta_k + n_dk) / Gamma(alpha beta_k)]
                    prod_k [Gamma(V eta) / Gamma(V eta + n_k) prod_w Gamma(eta + n_wk) / Gamma(eta)]

over partitions of the tokens with a stick for each block. A sweep draws every token given the others, where topics are
born and die; draws the topics of whole tables of some documents, and proposes to split and merge topics; draws the
numbers of tables m_dk, the concentrations given those, ``beta ~ Dirichlet(m_1, ..., m_K, gamma)``, and eta by slice
sampling.

References
----------
Teh, Jordan, Beal and Blei (2006), Hierarchical Dirichlet processes, JASA 101, section 5.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.priors.hyperpriors import Hyperparameter
from pluri.processes.concentration import draw_concentration, draw_group_concentration
from pluri.processes.dirichlet import draw_log_dirichlet
from pluri.processes.hierarchical_dirichlet import ChineseRestaurantFranchise
from pluri.topics.documents import Tokens
from pluri.topics.hdp.evidence import count_histogram, draw_word_prior, log_evidence
from pluri.topics.hdp.slots import SHORTEST, Hyperparameters, Slots, count_table
from pluri.topics.hdp.split_merge import WordIndex, split_or_merge
from pluri.topics.hdp.warm_up import WarmUp
from pluri.validation import Allowed, Number, Whole, check_parameters, check_value

Array = NDArray[np.float64]
Labels = NDArray[np.int32]
Position = Mapping[str, NDArray[Any]]

#: Share of the tokens from which on a topic counts as a large one.
LARGE = 0.01


@dataclass(frozen=True, eq=False)
class TopicState:
    """Where a chain is, the log density there, and the likeliest position that it has been at."""

    position: Position
    log_density: float
    best: Position
    best_log_density: float
    n_sweeps: int = 0


@dataclass(frozen=True, eq=False)
class TopicGibbs:
    """Direct-assignment sampler of an HDP topic model: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``labels`` (n_tokens,) from 0 without gaps, -1 for a token that has no topic yet; ``weights``
    (n_topics + 1,) with the rest of the stick last; ``alpha``, ``gamma`` and ``eta``.

    Parameters
    ----------
    tokens : Tokens
    alpha, gamma, eta : float or Hyperparameter, default=1.0, 1.0, 0.01
        Concentration of the documents, of the corpus, and prior count of every word: fixed, or learned under a
        `Gamma` prior from a value where chains begin.
    n_proposals : int, default=5
        Proposals to split or merge in each sweep.
    table_share : float, default=0.3
        Chance of each document to have its tables moved in a sweep.
    dissolved_share : float, default=0.0
        Share of the topics that a sweep tries to do without, which does not keep the posterior: for the warm-up.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.inference import mcmc
    >>> from pluri.topics.documents import tokens_of
    >>> from pluri.topics.hdp.gibbs import TopicGibbs
    >>> X = sparse.csr_matrix(np.repeat([[9, 9, 0, 0], [0, 0, 9, 9]], 10, axis=0))
    >>> kernel = TopicGibbs(tokens_of(X))
    >>> trace = mcmc.sample(kernel, kernel.start(), record=kernel.record, n_draws=50, n_warmup=50, n_chains=2,
    ...                     random_state=0, warn=False)
    >>> int(trace["n_topics"].min())
    2
    """

    tokens: Tokens
    alpha: float | Hyperparameter = 1.0
    gamma: float | Hyperparameter = 1.0
    eta: float | Hyperparameter = 0.01
    n_proposals: int = 5
    table_share: float = 0.3
    dissolved_share: float = 0.0
    _index: WordIndex = field(init=False, repr=False)
    _hyper: dict[str, Hyperparameter] = field(init=False, repr=False)
    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_proposals": Whole(0),
        "table_share": Number(0, 1),
        "dissolved_share": Number(0, 1),
    }

    def __post_init__(self) -> None:
        check_parameters(self)
        hyper = {}
        for name in Hyperparameters._fields:
            given = getattr(self, name)
            hyper[name] = given if isinstance(given, Hyperparameter) else Hyperparameter(given)
            check_value(hyper[name].value, name, Number(above=0))
        if not self.tokens.n_tokens:
            raise ValueError("tokens must hold at least one token, got none")
        object.__setattr__(self, "_hyper", hyper)
        object.__setattr__(self, "_index", WordIndex(self.tokens))

    def adaptation(self, n_warmup: int) -> WarmUp:
        """Moves that only the warm-up makes."""
        return WarmUp(n_warmup, self.table_share)

    def start(self, labels: NDArray[Any] | None = None) -> Position:
        """Position with these labels, or one in which no token has a topic yet."""
        if labels is None:
            labels = np.full(self.tokens.n_tokens, -1, dtype=np.int32)
        n_topics = int(labels.max()) + 1
        weights = np.full(n_topics + 1, 1.0 / (n_topics + 1))
        return self._position(
            labels.astype(np.int32), weights, *(self._hyper[name].value for name in Hyperparameters._fields)
        )

    def init(self, rng: np.random.Generator, position: Position) -> TopicState:
        """State at a position; tokens without a topic get one first, each given those before it."""
        labels, weights = np.asarray(position["labels"], dtype=np.int32), np.asarray(position["weights"])
        if labels.shape != (self.tokens.n_tokens,) or len(weights) != labels.max() + 2:
            raise ValueError("the position must have a label for each token, and one weight more than topics")
        if labels.min() < 0:
            slots = Slots(self.tokens, labels, weights, *_hyperparameters(position))
            slots.pass_over_tokens(rng, int(np.argmax(labels < 0)))
            seated, weights = slots.close()
            position = {**position, "labels": seated, "weights": weights}
        value = self.log_joint(position)
        return TopicState(position, value, position, value)

    def step(self, rng: np.random.Generator, state: TopicState) -> tuple[TopicState, dict[str, float]]:
        """One sweep."""
        position, accepted = self._move(rng, state.position, self.tokens, self._index)
        value = self.log_joint(position)
        best, highest = state.best, state.best_log_density
        if value > highest:
            best, highest = position, value
        share = accepted / self.n_proposals if self.n_proposals else 0.0
        info = {"n_topics": float(len(position["weights"]) - 1), "splits_and_merges": share}
        return TopicState(position, value, best, highest, state.n_sweeps + 1), info

    def sweep(self, rng: np.random.Generator, position: Position, data: Tokens) -> Position:
        """A sweep given other words than the kernel's own."""
        return self._move(rng, position, data, WordIndex(data))[0]

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of each sweep: numbers, not the topics of all tokens."""
        sizes = np.bincount(position["labels"])
        return {
            "n_topics": np.asarray(len(sizes)),
            "n_large_topics": np.asarray(int((sizes >= LARGE * sizes.sum()).sum())),
            "alpha": position["alpha"],
            "gamma": position["gamma"],
            "eta": position["eta"],
        }

    def word_counts(self, position: Position) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Tokens of each word in each topic, (n_words, n_topics), and tokens of each topic."""
        return count_table(self.tokens, np.asarray(position["labels"]), len(position["weights"]) - 1)

    def log_likelihood(self, position: Position, data: Tokens | None = None) -> float:
        """Log p(w | z): topics integrated out."""
        tokens, index = (self.tokens, self._index) if data is None else (data, WordIndex(data))
        labels, n_topics = np.asarray(position["labels"]), len(position["weights"]) - 1
        sizes = np.bincount(labels, minlength=n_topics)
        histogram = count_histogram(index, labels, n_topics)
        return log_evidence(histogram, sizes, tokens.n_words, float(position["eta"]))

    def log_joint(self, position: Position, data: Tokens | None = None) -> float:
        """Log of the density in the module's head, times those of what is learned."""
        from pluri.topics.hdp._gibbs_kernels import log_seats

        tokens = self.tokens if data is None else data
        alpha, gamma = float(position["alpha"]), float(position["gamma"])
        weights = np.asarray(position["weights"])
        n_topics = len(weights) - 1
        here = np.zeros(n_topics, dtype=np.int64)
        value = log_seats(tokens.offsets, np.asarray(position["labels"]), alpha * weights[:-1], here)
        lengths = np.diff(tokens.offsets)
        value += float((gammaln(alpha) - gammaln(alpha + lengths)).sum())
        value += n_topics * math.log(gamma) + (gamma - 1.0) * math.log(weights[-1]) - float(np.log(weights[:-1]).sum())
        for name, hyper in self._hyper.items():
            if hyper.learned:
                value += hyper.prior.log_density(float(position[name]))
        return value + self.log_likelihood(position, data)

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        alpha, gamma, eta = (
            max(hyper.prior.sample(rng), SHORTEST) if hyper.learned else float(hyper.value)
            for hyper in self._hyper.values()
        )
        lengths = np.diff(self.tokens.offsets)
        seating = ChineseRestaurantFranchise(alpha, gamma).sample(lengths[lengths > 0], rng)
        weights = self._draw_weights(rng, np.bincount(seating.dishes), gamma)
        return self._position(seating.labels.astype(np.int32), weights, alpha, gamma, eta)

    def sample_data(self, rng: np.random.Generator, position: Position) -> Tokens:
        """Draw words given their topics, documents of the same lengths."""
        labels, tokens = np.asarray(position["labels"]), self.tokens
        words = np.empty(tokens.n_tokens, dtype=np.int32)
        for k in range(len(position["weights"]) - 1):
            own = np.flatnonzero(labels == k)
            log_phi = draw_log_dirichlet(rng, np.full(tokens.n_words, float(position["eta"])))
            words[own] = np.argmax(log_phi + rng.gumbel(size=(len(own), tokens.n_words)), axis=1)
        return Tokens(words, tokens.documents, tokens.offsets, tokens.n_words)

    def _move(
        self, rng: np.random.Generator, position: Position, tokens: Tokens, index: WordIndex
    ) -> tuple[Position, int]:
        alpha, gamma, eta = hyper = _hyperparameters(position)
        slots = Slots(tokens, position["labels"], position["weights"], *hyper)
        slots.pass_over_tokens(rng)
        slots.pass_over_tables(rng, np.flatnonzero(rng.random(tokens.n_documents) < self.table_share))
        if self.dissolved_share:
            slots.dissolve_topics(rng, self.dissolved_share)
        labels, weights = slots.close()
        n_accepted = 0
        for _ in range(self.n_proposals):
            labels, weights, accepted = split_or_merge(rng, tokens, index, labels, weights, hyper)
            n_accepted += accepted
        tables = self._draw_tables(rng, tokens, labels, alpha * weights[:-1])
        n_tables, n_topics = int(tables.sum()), len(tables)
        prior = {name: hyper.prior for name, hyper in self._hyper.items()}
        if prior["alpha"] is not None:
            alpha = draw_group_concentration(rng, alpha, np.diff(tokens.offsets), n_tables, prior["alpha"])
        if prior["gamma"] is not None:
            gamma = draw_concentration(rng, gamma, n_tables, n_topics, prior["gamma"])
        weights = self._draw_weights(rng, tables, gamma)
        if prior["eta"] is not None:
            histogram, sizes = count_histogram(index, labels, n_topics), np.bincount(labels, minlength=n_topics)
            eta = draw_word_prior(rng, histogram, sizes, tokens.n_words, eta, prior["eta"])
        return self._position(labels, weights, alpha, gamma, eta), n_accepted

    @staticmethod
    def _draw_tables(rng: np.random.Generator, tokens: Tokens, labels: Labels, new_table: Array) -> NDArray[np.int64]:
        from pluri.topics.hdp._gibbs_kernels import count_tables

        tables = np.zeros(len(new_table), dtype=np.int64)
        count_tables(rng, tokens.offsets, labels, new_table, np.zeros_like(tables), tables)
        return tables

    @staticmethod
    def _draw_weights(rng: np.random.Generator, tables: NDArray[np.int64], gamma: float) -> Array:
        drawn = np.exp(draw_log_dirichlet(rng, np.append(tables, gamma).astype(np.float64)))
        return np.maximum(drawn, SHORTEST)

    @staticmethod
    def _position(labels: Labels, weights: Array, alpha: float, gamma: float, eta: float) -> Position:
        numbers = {"alpha": np.asarray(alpha), "gamma": np.asarray(gamma), "eta": np.asarray(eta)}
        return {"labels": labels, "weights": weights, **numbers}


def _hyperparameters(position: Position) -> Hyperparameters:
    return Hyperparameters(*(float(position[name]) for name in Hyperparameters._fields))
