r"""New documents in a Pachinko allocation whose topics are known: their topics, their probability, and made-up ones.

`PachinkoTopics.left_to_right` works as that of `pluri.topics.hierarchical.fitted_tree`, with the state of a token in
place of its level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.topics.documents import tokens_of
from pluri.topics.held_out import HeldOut
from pluri.topics.hierarchical.fitted_tree import dirichlet_rows, shuffled_tokens

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PachinkoTopics:
    """Topics (root, super-topics, sub-topics) and the priors of the ways to them.

    Attributes
    ----------
    topic_word : array of shape (1 + n_super + n_sub, n_words)
    root_prior : array of shape (n_super + 1,)
    sub_prior : array of shape (n_super, n_sub + 1)
    """

    topic_word: Array
    root_prior: Array
    sub_prior: Array

    def place(self, X: Any, seed: int, *, n_warmup: int = 20, n_draws: int = 80) -> Array:
        """Expected shares of the topics in documents: (n_documents, n_nodes), by Gibbs sampling.

        All documents have the same stream of random numbers, so that one does not depend on another.
        """
        from pluri.topics.hierarchical._pachinko_fold_in_kernels import fold_in
        from pluri.topics.hierarchical._pachinko_kernels import Priors, Words, room_of_documents

        tokens = tokens_of(X)
        longest = int(np.diff(tokens.offsets).max(initial=1))
        shares = np.zeros((X.shape[0], len(self.topic_word)))
        fold_in(
            Words(tokens.words, tokens.offsets), np.ascontiguousarray(self.topic_word.T),
            Priors(self.root_prior, self.sub_prior),
            np.uint64(seed), n_warmup, n_draws, np.zeros(longest, dtype=np.int32), np.zeros(longest, dtype=np.int32),
            room_of_documents(self.sub_prior), np.zeros(len(self.topic_word)), np.zeros(1, dtype=np.uint64), shares,
        )  # fmt: skip
        return shares / shares.sum(axis=1, keepdims=True)

    def left_to_right(self, X: Any, rng: np.random.Generator, n_particles: int = 20) -> HeldOut:
        """Estimate the log probability of each document."""
        from pluri.topics.hierarchical._pachinko_fold_in_kernels import Resampling, left_to_right
        from pluri.topics.hierarchical._pachinko_kernels import Priors, Words, room_of_documents

        words, offsets, _ = shuffled_tokens(X, rng)
        longest = int(np.diff(offsets).max(initial=1))
        size, scores = n_particles, np.zeros(X.shape[0])
        left_to_right(
            Words(words, offsets), np.ascontiguousarray(self.topic_word.T),
            Priors(self.root_prior, self.sub_prior), rng.integers(2**63, size=1).astype(np.uint64),
            np.zeros((size, longest), dtype=np.int32), np.zeros((size, longest), dtype=np.int32),
            room_of_documents(self.sub_prior, size), np.zeros(len(self.topic_word)),
            Resampling(np.zeros(size), np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)), scores,
        )  # fmt: skip
        return HeldOut(scores, np.diff(offsets), "left_to_right")

    def draw(self, rng: np.random.Generator, size: int) -> tuple[Array, Array]:
        """Word distributions of documents that the model makes up, and their shares of the topics."""
        n_super = len(self.sub_prior)
        upper = dirichlet_rows(rng, self.root_prior, size)
        shares = np.zeros((size, len(self.topic_word)))
        shares[:, 0] = upper[:, 0]
        for s, prior in enumerate(self.sub_prior):
            lower = dirichlet_rows(rng, prior, size) * upper[:, s + 1, None]
            shares[:, s + 1] = lower[:, 0]
            shares[:, n_super + 1 :] += lower[:, 1:]
        words = shares @ self.topic_word
        return words / words.sum(axis=1, keepdims=True), shares
