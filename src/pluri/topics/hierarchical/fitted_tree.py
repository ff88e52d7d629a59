r"""New documents in a tree whose topics are known: their place in it, their probability, and documents made up by it.

A document's path comes from the nested Chinese restaurant process given the documents of the training data; a branch
that it opens has topics of its own, drawn from their prior. `TreeOfTopics.left_to_right` estimates

    p(w_1, ..., w_N) = prod_n p(w_n | w_1, ..., w_{n-1})

by particles (levels of the tokens so far): each is moved by a Gibbs step and weighed by how well it predicts the next
word, the path summed out; they are drawn again when less than half are effective. The weights, which the estimator of
[1]_ forgets at each word, make the estimate of the probability unbiased.

References
----------
.. [1] Wallach, H., Murray, I., Salakhutdinov, R. and Mimno, D. (2009). Evaluation methods for topic models. ICML.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.topics.documents import tokens_of
from pluri.topics.held_out import HeldOut
from pluri.topics.hierarchical.level_sticks import LevelSticks

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TreeOfTopics:
    """A tree of topics, level after level.

    Attributes
    ----------
    topic_word : array of shape (n_nodes, n_words)
    parent : int array of shape (n_nodes,)
        -1 at the root, which comes first; nodes of a level stand together.
    depth, n_documents : int arrays of shape (n_nodes,)
    concentration : float
    word_prior : array of shape (n_levels,)
    sticks : LevelSticks
    """

    topic_word: Array
    parent: Integers
    depth: Integers
    n_documents: Integers
    concentration: float
    word_prior: Array
    sticks: LevelSticks

    @property
    def first(self) -> Integers:
        """First node of each level, and the number of nodes."""
        return np.searchsorted(self.depth, np.arange(len(self.word_prior) + 1)).astype(np.int64)

    def log_candidates(self) -> Array:
        """Log probability of the path to each leaf and, at an inner node, of a new branch there."""
        n_levels = len(self.word_prior)
        reached, log_probability = np.zeros(len(self.parent)), np.zeros(len(self.parent))
        seats = self.n_documents + self.concentration
        for k in range(1, len(self.parent)):
            above = self.parent[k]
            reached[k] = reached[above] + np.log(self.n_documents[k] / seats[above])
        inner = self.depth < n_levels - 1
        log_probability = np.where(inner, reached + np.log(self.concentration / seats), reached)
        return np.asarray(log_probability, dtype=np.float64)

    def place(self, X: Any, *, most: int = 64, max_iter: int = 100, tol: float = 1e-4) -> tuple[Array, Integers]:
        """Expected shares of the nodes in documents, and their likeliest leaves; new branches are left out.

        Shares of levels are the mean-field posterior of each path, and paths are weighed by its bound. It is
        deterministic, and one document does not depend on another.

        Returns
        -------
        shares : array of shape (n_documents, n_nodes)
        leaves : int array of shape (n_documents,)
        """
        from pluri.topics.hierarchical._tree_fold_in_kernels import Room, Tree, fold_in

        n_nodes, n_levels = len(self.parent), len(self.word_prior)
        leaf = self.depth == n_levels - 1
        log_leaf = np.where(leaf, self.log_candidates(), -np.inf)
        log_leaf -= np.logaddexp.reduce(log_leaf)
        topics = np.ascontiguousarray(self.topic_word.T)
        tree = Tree(topics, self.first, self.parent, log_leaf, *self.sticks, self.sticks.mean())
        room = Room.of(n_nodes, n_levels, min(most, int(leaf.sum())))
        documents = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.float64)
        shares, leaves = np.zeros((X.shape[0], n_nodes)), np.zeros(X.shape[0], dtype=np.int64)
        fold_in(*documents, tree, max_iter, tol, room, shares, leaves)
        empty = np.diff(X.indptr) == 0
        if empty.any():
            shares[empty] = self._prior_shares(np.exp(log_leaf))
        return shares / shares.sum(axis=1, keepdims=True), leaves

    def _prior_shares(self, leaf_probability: Array) -> Array:
        reached = np.array(leaf_probability)
        for k in range(len(reached) - 1, 0, -1):
            reached[self.parent[k]] += reached[k]
        shares: Array = reached * self.sticks.mean()[self.depth]
        return shares

    def left_to_right(self, X: Any, rng: np.random.Generator, n_particles: int = 20) -> HeldOut:
        """Estimate the log probability of each document; see the module."""
        from pluri.topics.hierarchical._tree_particle_kernels import Particles, Room, Tree, left_to_right

        words, offsets, places = shuffled_tokens(X, rng)
        longest, n_nodes, n_levels = int(np.diff(offsets).max(initial=1)), len(self.parent), len(self.word_prior)
        topics = np.ascontiguousarray(self.topic_word.T)
        nodes = self.first, self.parent, self.log_candidates()
        tree = Tree(topics, np.log(topics), *nodes, *self.sticks, self.word_prior)
        particles, room = Particles.of(n_particles, longest, n_levels, n_nodes), Room.of(n_levels, n_nodes)
        random = rng.integers(2**63, size=1).astype(np.uint64)
        scores = np.zeros(X.shape[0])
        left_to_right(offsets, words, places, tree, particles, room, random, scores)
        return HeldOut(scores, np.diff(offsets), "left_to_right")

    def draw(self, rng: np.random.Generator, size: int) -> tuple[Array, Integers]:
        """Word distributions of documents that the model makes up, and their paths (-1 for new nodes)."""
        n_levels, n_words = len(self.word_prior), self.topic_word.shape[1]
        probability = np.exp(self.log_candidates())
        node = rng.choice(len(probability), size=size, p=probability / probability.sum())
        shares = self.sticks.draw(rng, size)
        paths = np.full((size, n_levels), -1, dtype=np.int64)
        here = node.copy()
        for level in range(n_levels - 1, -1, -1):
            on = self.depth[here] == level
            paths[on, level] = here[on]
            here = np.where(on & (self.parent[here] >= 0), self.parent[here], here)
        words = np.zeros((size, n_words))
        for level in range(n_levels):
            known = paths[:, level] >= 0
            words[known] += shares[known, level, None] * self.topic_word[paths[known, level]]
            if not known.all():
                new = dirichlet_rows(rng, np.full(n_words, self.word_prior[level]), int((~known).sum()))
                words[~known] += shares[~known, level, None] * new
        return words / words.sum(axis=1, keepdims=True), paths


def shuffled_tokens(X: Any, rng: np.random.Generator) -> tuple[NDArray[np.int32], Integers, Integers]:
    """Tokens of documents in random order, where documents begin, and which distinct word of its document each is."""
    tokens = tokens_of(X)
    order = np.argsort(tokens.documents + rng.random(tokens.n_tokens))
    counts = X.data.astype(np.int64)
    within = np.arange(len(counts)) - np.repeat(X.indptr[:-1], np.diff(X.indptr))
    return tokens.words[order], tokens.offsets, np.repeat(within, counts)[order].astype(np.int64)


def dirichlet_rows(rng: np.random.Generator, alpha: Array, size: int) -> Array:
    """Draws of a Dirichlet distribution, also where all parameters are so small that gamma variates vanish."""
    # log Gamma(a) variates: Gamma(a + 1) U^{1/a}.
    logs = np.log(rng.standard_gamma(alpha + 1.0, size=(size, len(alpha))))
    logs += np.log1p(-rng.random((size, len(alpha)))) / alpha
    rows = np.exp(logs - logs.max(axis=1, keepdims=True))
    drawn: Array = rows / rows.sum(axis=1, keepdims=True)
    return drawn
