r"""Collapsed Gibbs sampling of topics in a tree that grows: the nested Chinese restaurant process.

Every document d goes down a path c_d of L nodes: at a node that N documents went through, it follows N_c of them to
child c with probability ``N_c / (N + gamma)``, or opens a new child with probability ``gamma / (N + gamma)``. Each
token takes a level of the path (see `pluri.topics.hierarchical.level_sticks`) and is drawn from the topic
``phi ~ Dirichlet(eta_l)`` of the node there. With topics and shares of levels summed out, a document's path given its
levels has probability proportional to

    p(c_d | c_{-d}) prod_l  G(n_l + V eta) / G(n_l + N_l + V eta)  prod_w  G(n_lw + N_lw + eta) / G(n_lw + eta)

(G the gamma function) over all paths from the root to a leaf and all new branches, n the counts of the node without
the document and N those of the document's tokens at level l; and a token's level given the path has probability
proportional to ``p(l | others) (n_lw + eta) / (n_l + V eta)`` [1]_ [2]_.

References
----------
.. [1] Blei, D., Griffiths, T., Jordan, M. and Tenenbaum, J. (2004). Hierarchical topic models and the nested Chinese
   restaurant process. NIPS 16.
.. [2] Blei, D., Griffiths, T. and Jordan, M. (2010). The nested Chinese restaurant process and Bayesian nonparametric
   inference of topic hierarchies. Journal of the ACM 57(2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.priors.hyperpriors import Gamma
from pluri.processes.concentration import draw_group_concentration
from pluri.topics.documents import Tokens
from pluri.topics.hierarchical.document_tree import DocumentTree, compact
from pluri.topics.hierarchical.level_sticks import LevelSticks
from pluri.topics.hierarchical.tree_state import Position, RisingTables, TreeState

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NestedCRPGibbs:
    """Collapsed Gibbs sampler of hierarchical LDA: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``paths`` (n_documents, n_levels) of node numbers, each level with its own (-1 for a document
    that has no path yet: it gets one in turn), ``levels`` (n_tokens,), ``concentration`` and ``word_prior``
    (n_levels,).

    Parameters
    ----------
    tokens : Tokens
        Copies of a word stand together in a document, as `pluri.topics.documents.tokens_of` has them.
    sticks : LevelSticks
    word_prior : array of shape (n_levels,)
        eta of each level; where a chain starts if it is learned.
    concentration : float
        gamma; where a chain starts if it is learned.
    concentration_prior : Gamma, optional
        Learn the concentration under this prior.
    prior_of_word_prior : Gamma, optional
        Learn `word_prior` of each level under this prior.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.inference import mcmc
    >>> from pluri.topics.documents import tokens_of
    >>> from pluri.topics.hierarchical.level_sticks import LevelSticks
    >>> from pluri.topics.hierarchical.nested_crp_gibbs import NestedCRPGibbs
    >>> X = sparse.csr_matrix(np.repeat([[4, 8, 0], [4, 0, 8]], 6, axis=0))
    >>> kernel = NestedCRPGibbs(tokens_of(X), LevelSticks.dirichlet(np.ones(2)), np.full(2, 0.1), 0.5)
    >>> trace = mcmc.sample(kernel, kernel.start, record=kernel.record, n_draws=100, n_warmup=50, n_chains=1,
    ...                     random_state=0, warn=False)
    >>> np.median(trace["n_nodes"][0], axis=0)
    array([1., 2.])
    """

    tokens: Tokens
    sticks: LevelSticks
    word_prior: Array
    concentration: float = 1.0
    concentration_prior: Gamma | None = None
    prior_of_word_prior: Gamma | None = None

    @property
    def n_levels(self) -> int:
        """Nodes on each path."""
        return len(self.word_prior)

    def adaptation(self, n_warmup: int) -> None:
        """Nothing is tuned."""
        return None

    def start(self, rng: np.random.Generator) -> Position:
        """Position in which no document has a path yet, and levels are drawn from their prior."""
        return {
            "paths": np.full((self.tokens.n_documents, self.n_levels), -1, dtype=np.int64),
            "levels": self._prior_levels(rng),
            "concentration": np.asarray(float(self.concentration)),
            "word_prior": np.array(self.word_prior, dtype=np.float64),
        }

    def init(self, rng: np.random.Generator, position: Position) -> TreeState:
        """State at a position; documents without a path get one first, each given those before it."""
        shape = (self.tokens.n_documents, self.n_levels)
        paths = np.asarray(position["paths"], dtype=np.int64)
        if paths.shape != shape:
            raise ValueError(f"position['paths'] must have shape {shape}, got {paths.shape}")
        tree = DocumentTree(self.tokens, paths, np.asarray(position["levels"]))
        state = TreeState(tree, float(position["concentration"]), np.array(position["word_prior"], dtype=np.float64))
        waiting = np.flatnonzero(paths[:, 0] < 0)
        if waiting.size:
            self._pass(rng, state, rng.permutation(waiting))
        state.log_density = self._log_joint(state)
        state.remember()
        return state

    def step(self, rng: np.random.Generator, state: TreeState) -> tuple[TreeState, dict[str, float]]:
        """One sweep over all documents, then the parameters that are learned."""
        if state.tree.idle():
            state.tree = DocumentTree(self.tokens, state.tree.paths, state.tree.levels)
        self._pass(rng, state, rng.permutation(self.tokens.n_documents))
        if self.concentration_prior is not None:
            state.concentration = draw_group_concentration(
                rng, state.concentration, state.tree.inner_sizes, len(state.tree.child_sizes), self.concentration_prior
            )
        if self.prior_of_word_prior is not None:
            self._draw_word_prior(rng, state, self.prior_of_word_prior)
        state.log_density = self._log_joint(state)
        state.remember()
        state.n_sweeps += 1
        return state, {"total_nodes": float(state.tree.n_nodes.sum())}

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of each sweep: numbers, not the paths of all documents."""
        return {
            "n_nodes": np.maximum(compact(position["paths"])[1], np.arange(self.n_levels) == 0),
            "concentration": position["concentration"], "word_prior": np.array(position["word_prior"]),
        }  # fmt: skip

    def given(self, words: NDArray[Any]) -> tuple[NestedCRPGibbs, Integers]:
        """The sampler for other words of documents of the same lengths, and the order that it reads them in."""
        words = np.asarray(words)
        order = np.lexsort((words, self.tokens.documents))
        tokens = replace(self.tokens, words=words[order].astype(np.int32))
        return replace(self, tokens=tokens), order

    def sweep(self, rng: np.random.Generator, position: Position, words: NDArray[Any]) -> Position:
        """Position after a sweep given other words than the kernel's own, in any order within a document."""
        kernel, order = self.given(words)
        state = kernel.init(rng, {**position, "levels": np.asarray(position["levels"])[order]})
        moved = dict(kernel.step(rng, state)[0].position)
        levels = np.empty_like(moved["levels"])
        levels[order] = moved["levels"]
        return moved | {"levels": levels, "paths": compact(moved["paths"])[0]}

    def log_joint(self, position: Position, words: NDArray[Any] | None = None) -> float:
        """Log joint probability at a position, counted from scratch."""
        kernel, order = self.given(self.tokens.words if words is None else words)
        levels = np.asarray(position["levels"])[order]
        tree = DocumentTree(kernel.tokens, np.asarray(position["paths"], dtype=np.int64), levels)
        return kernel._log_joint(TreeState(tree, float(position["concentration"]), np.array(position["word_prior"])))

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw the learned parameters, paths by urns, and levels."""
        gamma, word_prior = float(self.concentration), np.array(self.word_prior, dtype=np.float64)
        if self.concentration_prior is not None:
            gamma = self.concentration_prior.sample(rng)
        if self.prior_of_word_prior is not None:
            word_prior = np.array([self.prior_of_word_prior.sample(rng) for _ in range(self.n_levels)])
        paths = np.zeros((self.tokens.n_documents, self.n_levels), dtype=np.int64)
        for d in range(1, len(paths)):
            together = np.arange(d)  # earlier documents that are at the same node
            for level in range(1, self.n_levels):
                place = rng.random() * (len(together) + gamma)
                new = paths[:d, level].max() + 1
                paths[d, level] = paths[together[int(place)], level] if place < len(together) else new
                together = together[paths[together, level] == paths[d, level]]
        return {
            "paths": paths, "levels": self._prior_levels(rng), "concentration": np.asarray(gamma),
            "word_prior": word_prior,
        }  # fmt: skip

    def sample_data(self, rng: np.random.Generator, position: Position) -> NDArray[np.int32]:
        """Draw the words of all tokens, each topic summed out by an urn."""
        paths, levels = position["paths"], position["levels"]
        nodes = paths[self.tokens.documents, levels]
        words = np.empty(self.tokens.n_tokens, dtype=np.int32)
        for level in range(self.n_levels):
            for node in np.unique(nodes[levels == level]):
                members = np.flatnonzero((levels == level) & (nodes == node))
                topic = rng.dirichlet(np.full(self.tokens.n_words, float(position["word_prior"][level])))
                topic = np.full(len(topic), 1 / len(topic)) if not np.isfinite(topic).all() else topic
                words[members] = rng.choice(len(topic), size=len(members), p=topic)
        return words

    def _prior_levels(self, rng: np.random.Generator) -> NDArray[np.int8]:
        reached = np.cumsum(self.sticks.draw(rng, self.tokens.n_documents), axis=1)[:, :-1]
        numbers = rng.random(self.tokens.n_tokens)
        levels = np.zeros(self.tokens.n_tokens, dtype=np.int8)
        for column in reached.T:
            levels += numbers >= column[self.tokens.documents]
        return levels

    def _pass(self, rng: np.random.Generator, state: TreeState, order: Integers) -> None:
        """Draw paths and levels of some documents in turn."""
        from pluri.topics.hierarchical._nested_crp_kernels import Priors, Room, sweep

        tokens, tree = self.tokens, state.tree
        path_numbers, level_numbers = rng.random(len(order)), rng.random(tokens.n_tokens)
        whole = np.arange(tokens.n_documents + 1.0)
        with np.errstate(divide="ignore"):
            log_whole = np.log(whole)
        log_seats = np.log(whole + state.concentration)
        priors = Priors(math.log(state.concentration), state.word_prior, *self.sticks, log_whole, log_seats)
        done = 0
        while True:
            done = sweep(
                tokens.words, tokens.offsets, order, done, path_numbers, level_numbers, tree.arrays, priors,
                state.tables.arrays, Room.of(self.n_levels, int(tree.first[-1])),
            )  # fmt: skip
            if done == len(order):
                return
            tree.grow()

    def _log_joint(self, state: TreeState) -> float:
        tree, gamma = state.tree, state.concentration
        value = len(tree.child_sizes) * math.log(gamma) + float(gammaln(tree.child_sizes).sum())
        if self.n_levels > 1:
            value += float((gammaln(gamma) - gammaln(gamma + tree.inner_sizes)).sum())
        value += self.sticks.log_marginal(tree.tokens_by_level())
        histogram = self._histogram(state)
        for level, prior in enumerate(state.word_prior):
            value += self._log_words(float(prior), *self._cells(state, histogram, level))
        if self.concentration_prior is not None:
            value += self.concentration_prior.log_density(gamma)
        if self.prior_of_word_prior is not None:
            value += sum(map(self.prior_of_word_prior.log_density, state.word_prior))
        return float(value)

    def _histogram(self, state: TreeState) -> Integers:
        from pluri.topics.hierarchical._nested_crp_kernels import count_of_counts

        histogram = np.zeros((self.n_levels, state.tables.most + 1), dtype=np.int64)
        count_of_counts(state.tree.counts, state.tree.first, state.tree.top, histogram)
        return histogram

    @staticmethod
    def _cells(state: TreeState, histogram: Integers, level: int) -> tuple[Integers, Integers, Integers]:
        """Counts of words in nodes of a level, how many nodes and words have each, and tokens of the nodes."""
        values = np.flatnonzero(histogram[level])
        totals = state.tree.n_tokens[state.tree.first[level] : state.tree.top[level]]
        return values, histogram[level][values], totals[totals > 0]

    def _log_words(self, prior: float, values: Integers, numbers: Integers, totals: Integers) -> float:
        whole = prior * self.tokens.n_words
        words = float(numbers @ (gammaln(prior + values) - gammaln(prior))) if len(values) else 0.0
        return words - float((gammaln(whole + totals) - gammaln(whole)).sum())

    def _draw_word_prior(self, rng: np.random.Generator, state: TreeState, prior: Gamma) -> None:
        from pluri.inference.mcmc.slice_sampling import Slice

        histogram = self._histogram(state)
        drawn = np.empty(self.n_levels)
        for level in range(self.n_levels):
            cells = self._cells(state, histogram, level)

            def log_density(x: Array, cells: tuple[Integers, Integers, Integers] = cells) -> float:
                value = math.exp(x[0])
                return self._log_words(value, *cells) + prior.log_density(value) + float(x[0])

            kernel = Slice(log_density, width=1.0, bounds=(-30.0, 30.0))
            start = np.array([math.log(state.word_prior[level])])
            drawn[level] = math.exp(float(kernel.step(rng, kernel.init(rng, start))[0].position[0]))
        state.word_prior = drawn
        state.tables = RisingTables(self.tokens, drawn)
