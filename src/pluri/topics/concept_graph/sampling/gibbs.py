"""Sampling of concept graphs: paths, levels, tau, orders, nodes and hyper-parameters.

Topics and sticks are integrated out. One sweep visits each document and draws its path by an exact dynamic programme
(`path_sampler`), path, levels and tau together by joint moves, the level of each word, tau
by slice sampling, and swaps two atoms in the order of each node on the path. After the documents come swaps at all
nodes, the number of nodes of each depth if it is not given, and log-normal random walks of `stick_beta` and
`topic_word_prior` under gamma priors, which are exponential with mean 1 unless others are given [1]_.

Three corrections of the published sampler. Levels are truncated at the length of the path, so that a path's weight has
the factor ``p(levels | tau, length)``; it was left out. Two atoms that are not neighbours in an order change the
sticks between them too. And new nodes: there are M nodes of each depth, all with a place in the orders above them, and
those that no path uses are marginalised exactly; so the chain has a joint distribution to converge to.

*Joint moves.* A document whose words sit in one node has no reason to lengthen its path before they can choose, and
words cannot choose before the path is longer. So several paths are compared: all that differ from the present one in
one place, or some that are proposed in proportion to their predictive probability times a score of each node, by how
many of the words it would get if they could come from any node. On each of these paths the levels of all words are
drawn, each given those before it, and tau after them; one path is drawn with the importance weights ``p(path, levels,
tau, words) / q(path, levels, tau)``, the present one with its own levels among them. It is the conditional importance
resampling step of particle Gibbs [2]_, which leaves the posterior invariant.

References
----------
.. [1] Chambers, A., Smyth, P. and Steyvers, M. (2010). Learning concept graphs from text with stick-breaking priors.
   NIPS 23.
.. [2] Andrieu, C., Doucet, A. and Holenstein, R. (2010). Particle Markov chain Monte Carlo methods. Journal of the
   Royal Statistical Society B 72, 269-342.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.priors.hyperpriors import Beta, Gamma, Hyperparameter, as_hyperparameter
from pluri.topics.concept_graph.arrays import Numbers, StickTables, Task, sweep_room
from pluri.topics.concept_graph.sampling.first_positions import draw_levels, draw_orders, first_position
from pluri.topics.concept_graph.sampling.hyper_parameters import (
    FIRST_BETA,
    FIRST_WORD_PRIOR,
    UNIFORM,
    VAGUE,
    StepAdaptation,
    walk_beta,
    walk_words,
)
from pluri.topics.concept_graph.sampling.log_joint import log_joint
from pluri.topics.concept_graph.sampling.state import GraphState, Integers, Position, count_corpus

#: Documents to visit, if there are none.
NOBODY: Integers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ConceptGraphGibbs:
    """Sampler of concept graphs: a kernel for `pluri.inference.mcmc.sample`.

    States are changed in place; positions (see `pluri.topics.concept_graph.sampling.state`) are copies.

    Parameters
    ----------
    words, offsets, n_words : documents as in `pluri.topics.documents.Tokens`
    n_levels : int
    max_nodes : int, int array (n_levels - 1,), or None
        Nodes of each depth below the root, used or not. None begins with a few, and doubles them in the warm-up when
        paths use more than half of them.
    stick_alpha : float
    stick_beta, topic_word_prior : float, Gamma or "learn"
    tau_prior : Beta
    level_prior : {"geometric", "dirichlet"}
    feasible : {"next_level", "deeper"}
    given_depth : int array
        Depths, from 1, of nodes that stay; the root first.
    labels : int array (n_documents,), optional
        Which of them each path ends at; -1 for any node.
    frozen : bool array (n_documents,), optional
        Documents that stay as they are.
    n_joint : int
        Joint moves for each document and sweep.
    path_sampler : {"dp", "enumerate"}
    length_factor, reorder : bool
        False leaves something out: the factor that the published sampler lacks, moves of the orders. For tests.
    """

    words: NDArray[np.int32]
    offsets: Integers
    n_words: int
    n_levels: int = 3
    max_nodes: int | Integers | None = None
    stick_alpha: float = 1.0
    stick_beta: float | Gamma | str = "learn"
    topic_word_prior: float | Gamma | str = "learn"
    tau_prior: Beta = UNIFORM
    level_prior: str = "geometric"
    feasible: str = "next_level"
    given_depth: Integers = field(default_factory=lambda: np.ones(1, dtype=np.int64))
    labels: Integers | None = None
    frozen: NDArray[np.bool_] | None = None
    n_joint: int = 1
    path_sampler: str = "dp"
    length_factor: bool = True
    reorder: bool = True
    beta_step: float = 0.5
    word_step: float = 0.1
    collecting: bool = True
    tuned: ClassVar[tuple[str, ...]] = ("beta_step", "word_step")

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.offsets) - 1

    @property
    def learned_beta(self) -> Hyperparameter:
        """Where `stick_beta` starts, and the prior under which it is learned, if it is."""
        return as_hyperparameter(self.stick_beta, "stick_beta", VAGUE, start=FIRST_BETA)

    @property
    def learned_words(self) -> Hyperparameter:
        """The same of `topic_word_prior`."""
        return as_hyperparameter(self.topic_word_prior, "topic_word_prior", VAGUE, start=FIRST_WORD_PRIOR)

    @property
    def deeper(self) -> bool:
        """Whether edges may skip levels."""
        return self.feasible == "deeper"

    def adaptation(self, n_warmup: int) -> StepAdaptation:
        """Steps of the random walks are learned in the warm-up."""
        return StepAdaptation()

    @property
    def most_frequent(self) -> int:
        """How often the most frequent word occurs."""
        return int(np.bincount(self.words, minlength=1).max()) if len(self.words) else 0

    def start(self, rng: np.random.Generator, given_edges: Any = None) -> Position:
        """Documents at the root; labelled ones on a random path to their node, along given edges if there are any."""
        return first_position(self, rng, given_edges)

    def draw_orders(self, rng: np.random.Generator, depth: Integers, n_nodes: Integers) -> NDArray[np.int32]:
        """Orders of nodes of these depths, uniform over all."""
        return draw_orders(self, rng, depth, n_nodes)

    def draw_levels(self, rng: np.random.Generator, path: Any, tau: Any) -> NDArray[np.int8]:
        """Levels of all words given paths and tau."""
        return draw_levels(self, rng, path, tau)

    def level_concentration(self, length: int) -> NDArray[np.float64]:
        """Parameters of the Dirichlet prior of the levels of a path."""
        return np.where(np.arange(length) == 0, self.tau_prior.a, self.tau_prior.b).astype(np.float64)

    # Steps -----------------------------------------------------------------------------------------------------------

    def init(self, rng: np.random.Generator, position: Position, *, seat: bool = True) -> GraphState:
        """State at a position; documents without a path get one, each given those before it, if `seat` is True."""
        shape = (self.n_documents, self.n_levels)
        if np.shape(position["path"]) != shape:
            raise ValueError(f"position['path'] must have shape {shape}, got {np.shape(position['path'])}")
        state = GraphState(position, self.words, self.offsets, self.n_words, self.deeper)
        if self.labels is not None:
            # Given nodes have their place among them as their name, wherever they are now.
            place = np.full(len(self.given_depth) + 1, -1, dtype=np.int32)
            kept = np.flatnonzero(position["node_protected"])
            place[np.asarray(position["node_name"])[kept]] = kept
            state.corpus.label[:] = place[self.labels]
        if self.frozen is not None:
            state.corpus.frozen[:] = self.frozen
        count_corpus(state.graph, state.corpus)
        absent = np.flatnonzero(state.corpus.length == 0)
        self.visit(rng, state, rng.permutation(absent) if len(absent) and seat else NOBODY)
        if seat or not len(absent):
            state.log_density = log_joint(self, state)
        return state

    def step(self, rng: np.random.Generator, state: GraphState) -> tuple[GraphState, Mapping[str, float]]:
        """One sweep; the state is changed in place."""
        documents = rng.permutation(self.n_documents)
        if self.path_sampler == "enumerate":
            from pluri.topics.concept_graph.sampling.path_sampler import draw_path_by_enumeration

            for d in documents[~state.corpus.frozen[documents]]:
                draw_path_by_enumeration(rng, state, self.numbers(state), int(d))
        moved, swapped, tried = self.visit(rng, state, documents, swap_all=self.reorder)
        accepted_beta = walk_beta(rng, self, state)
        accepted_words = walk_words(rng, self, state)
        self.visit(rng, state, NOBODY)
        state.log_density = log_joint(self, state)
        if self.collecting:
            state.collect()
            if state.log_density > state.best_density:
                state.best, state.best_density = state.position, state.log_density
        state.n_sweeps += 1
        visited = max(1, self.n_joint * self.n_documents)
        return state, {
            "joint": moved / visited, "swap": swapped / max(1, tried), "stick_beta": accepted_beta,
            "topic_word_prior": accepted_words,
        }  # fmt: skip

    def visit(
        self, rng: np.random.Generator, state: GraphState, documents: Integers, *, swap_all: bool = False
    ) -> tuple[int, int, int]:
        """Visit documents in this order, with probabilities of steps computed afresh; those without a path get one."""
        from pluri.topics.concept_graph.sampling._sweep_kernels import sweep

        longest = max(1, int(np.diff(self.offsets).max(initial=0)))
        changes: tuple[int, int, int] = sweep(
            rng, state.graph, self.numbers(state), self.sticks(state.stick_beta), state.corpus, documents,
            Task(self._stride(state), self.n_joint if self.n_levels > 1 else 0, self.path_sampler == "dp", swap_all),
            *sweep_room(len(state.graph.depth), self.n_levels, longest),
        )  # fmt: skip
        return changes

    def add_blanks(self, rng: np.random.Generator, state: GraphState) -> None:
        """Double the number of nodes of each depth where more than half are in use. Only in a warm-up."""
        for k in range(2, self.n_levels + 1):
            if 2 * state.graph.n_used[k] > state.graph.n_nodes[k]:
                state.add_blanks(k, int(state.graph.n_nodes[k]))
                self.visit(rng, state, NOBODY)

    def record(self, position: Position) -> dict[str, NDArray[Any]]:
        """What to keep of each sweep: numbers."""
        depth = np.asarray(position["node_depth"])
        return {
            "n_nodes": np.bincount(depth, minlength=self.n_levels + 1)[1:],
            "path_length": np.asarray((position["path"] >= 0).sum(axis=1).mean()),
            "stick_beta": position["stick_beta"],
            "topic_word_prior": position["topic_word_prior"],
        }

    def numbers(self, state: GraphState) -> Numbers:
        """Hyper-parameters of a state for the compiled loops."""
        return Numbers(
            float(self.stick_alpha), state.stick_beta, state.topic_word_prior, float(self.tau_prior.a),
            float(self.tau_prior.b), self.level_prior == "dirichlet", self.deeper, self.length_factor, self.reorder,
        )  # fmt: skip

    def sticks(self, beta: float) -> StickTables:
        """Tables of log gamma functions."""
        n = np.arange(self.n_documents + 2, dtype=np.float64)
        return StickTables(gammaln(self.stick_alpha + n), gammaln(beta + n), gammaln(self.stick_alpha + beta + n))

    def _stride(self, state: GraphState) -> int:
        """Factors that a product of predictive probabilities may have without leaving the range of a double."""
        eta = state.topic_word_prior
        largest = max(abs(math.log(eta)), 1.0) + math.log(eta * self.n_words + len(self.words) + 2.0)
        return int(min(64, max(1, 600.0 // largest)))
