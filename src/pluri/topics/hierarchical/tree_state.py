"""Where a chain of hierarchical LDA is: a tree, the parameters, and tables that go with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.topics.documents import Tokens
from pluri.topics.hierarchical.document_tree import DocumentTree

Array = NDArray[np.float64]
Position = Mapping[str, NDArray[Any]]
#: Larger counts of a node are not looked up but computed.
LONGEST_TABLE = 2**20


class LevelTables(NamedTuple):
    """What a sweep looks up of the topics of each level (row).

    Attributes
    ----------
    total_prior : (n_levels,)
        ``V eta``.
    log_word, rising_word : (n_levels, most + 1)
        ``log(eta + n)``, and the sum of these below n, by n.
    rising_total : (n_levels, length + 1)
        The same sum of ``log(V eta + n)``.
    """

    total_prior: Array
    log_word: Array
    rising_word: Array
    rising_total: Array


class RisingTables:
    """Logarithms of prior counts plus whole numbers, for each level: a sweep looks them up."""

    def __init__(self, tokens: Tokens, word_prior: Array) -> None:
        self.most = int(np.bincount(tokens.words, minlength=1).max())
        prior = word_prior[:, None]
        logs = np.log(prior + np.arange(self.most + 1.0))
        # Sums, not differences of gammaln: these lose all digits where a prior count is large.
        rising = np.concatenate([np.zeros_like(prior), np.cumsum(logs[:, :-1], axis=1)], axis=1)
        total = prior * tokens.n_words
        length = min(tokens.n_tokens, LONGEST_TABLE)
        above = np.cumsum(np.log(total + np.arange(float(length))), axis=1)
        self.arrays = LevelTables(
            word_prior * tokens.n_words, logs, rising, np.concatenate([np.zeros_like(total), above], axis=1),
        )  # fmt: skip


class TreeState:
    """Where a chain is; a step changes it in place.

    Attributes
    ----------
    tree : DocumentTree
    concentration : float
    word_prior : array of shape (n_levels,)
    log_density : float
        Log joint probability of paths, levels, words and learned parameters.
    best, best_log_density : the likeliest position so far
    n_sweeps : int
    """

    def __init__(self, tree: DocumentTree, concentration: float, word_prior: Array) -> None:
        self.tree, self.concentration, self.word_prior = tree, concentration, word_prior
        self.log_density = -math.inf
        self.best: Position = {}
        self.best_log_density = -math.inf
        self.n_sweeps = 0
        self.tables = RisingTables(tree.tokens, word_prior)

    @property
    def position(self) -> Position:
        """Paths and levels of the documents, and the parameters."""
        return {
            "paths": self.tree.paths, "levels": self.tree.levels, "concentration": np.asarray(self.concentration),
            "word_prior": self.word_prior,
        }  # fmt: skip

    def remember(self) -> None:
        """Keep the position if it is the likeliest so far."""
        if self.log_density > self.best_log_density:
            self.best = {name: np.array(value) for name, value in self.position.items()}
            self.best_log_density = self.log_density
