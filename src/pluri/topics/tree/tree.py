"""A tree of topics that is known: one draw of a sampler, without the nodes that no token passes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.topics.checked_state import indices, number, numbers, one_for_each
from pluri.topics.tree.settings import TreeSettings
from pluri.topics.tree.state import TreeState

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A tree of topics.

    Attributes
    ----------
    top : int
        Scale whose nodes documents choose among: 1 below a root, otherwise 0.
    counts : list of int arrays of shape (n_nodes, n_words)
        Tokens of each word at each node.
    transitions : list of arrays of shape (n_nodes of the next scale, n_nodes)
        Which nodes lie below each node; columns sum to one. Below a root it is how tokens went, in all documents.
    base : array of shape (n_top,)
        alpha, the mean of documents' proportions of the nodes of the top scale.
    passed : list of int arrays of shape (n_nodes,)
        Tokens whose path goes through each node.
    doc_concentration, usage_concentration : float
        eta and rho.
    topic_word_prior : float
    word_scale : int array of shape (n_words,), or (0,) if every scale has all words
    """

    top: int
    counts: list[NDArray[np.int32]]
    transitions: list[Array]
    base: Array
    passed: list[NDArray[np.int64]]
    doc_concentration: float
    usage_concentration: float
    topic_word_prior: float
    word_scale: NDArray[np.int32]

    def check(self, n_words: int) -> None:
        """Raise a ValueError if the parts of a tree of so many words do not belong together."""
        counts = one_for_each("counts of a tree", self.counts, np.ndarray)
        for tokens in counts:
            if not len(numbers("counts of a tree", tokens, (None, n_words), least=0)):
                raise ValueError("counts of a tree must have a node at each scale, got none")
        if self.top not in (0, 1) or self.top >= self.depth or (self.top and self.widths[0] != 1):
            raise ValueError(f"top of a tree must be 0, or 1 below a root, got {self.top!r}")
        for s, below in enumerate(one_for_each("transitions", self.transitions, np.ndarray, self.depth - 1)):
            numbers("transitions of a tree", below, (self.widths[s + 1], self.widths[s]), least=0)
        for s, passed in enumerate(one_for_each("passed", self.passed, np.ndarray, self.depth)):
            numbers("passed of a tree", passed, (self.widths[s],), least=0)
        numbers("base of a tree", self.base, (self.widths[self.top],), least=0)
        for name in ("doc_concentration", "usage_concentration", "topic_word_prior"):
            number(f"{name} of a tree", getattr(self, name), above=0)
        indices("word_scale of a tree", self.word_scale, (n_words if np.size(self.word_scale) else 0,), self.depth)

    @property
    def topics(self) -> list[Array]:
        """Expected topics of each scale given the tokens of the draw, (n_nodes, n_words); rows sum to one."""
        found = []
        for s, tokens in enumerate(self.counts):
            weights = tokens + np.float64(self.topic_word_prior)
            if self.word_scale.size:
                weights[:, self.word_scale != s] = 0.0
            found.append(weights / weights.sum(axis=1, keepdims=True))
        return found

    @property
    def depth(self) -> int:
        """Number of scales."""
        return len(self.counts)

    @property
    def widths(self) -> list[int]:
        """Number of nodes of each scale."""
        return [len(tokens) for tokens in self.counts]

    def __repr__(self) -> str:
        """Sizes."""
        return f"Tree(nodes={self.widths}, words={self.counts[0].shape[1]})"

    def descents(self) -> list[Array]:
        """Nodes of each scale given a node of the top scale, (n_nodes, n_top); a column of one above the top scale."""
        found = [np.ones((1, 1))] * self.top + [np.eye(len(self.base))]
        for transition in self.transitions[self.top :]:
            found.append(transition @ found[-1])
        return found[: self.depth]

    def table(self) -> Array:
        """Probability of each word (row) at each scale from each node of the top scale (column)."""
        return np.ascontiguousarray(np.hstack([topics.T @ down for topics, down in zip(self.topics, self.descents())]))

    def node_weights(self, columns: Array) -> list[Array]:
        """Weights of the nodes of each scale, (n_documents, n_nodes), given weights of the columns of the table."""
        weights, start = [], 0
        for down in self.descents():
            weights.append(columns[:, start : start + down.shape[1]] @ down.T)
            start += down.shape[1]
        return weights


def tree_of(state: TreeState, settings: TreeSettings) -> Tree:
    """Tree of a state: nodes in use, those that most tokens pass first, with shares that sum to one.

    A scale at which there is nothing yet has one node without tokens.
    """
    top = settings.top
    depth = max(int(state.scale.max()) + 1, settings.least_depth)
    if settings.scale_dependent:  # a scale may have words of which there are no tokens
        depth = int(state.depth[0])
    chosen = []
    for s in range(depth):
        n_passed = state.passed[state.nodes_of(s)]
        order = np.argsort(-n_passed, kind="stable")
        in_use = order[n_passed[order] > 0]
        chosen.append(in_use if in_use.size else order[:1])
    counts, transitions, passed = [], [], []  # by scale
    for s, kept in enumerate(chosen):
        places = state.nodes_of(s).start + kept
        if not kept.size:  # a tree that grows, with all tokens at the root
            counts.append(np.zeros((1, len(state.node_word)), dtype=np.int32))
            passed.append(np.zeros(1, dtype=np.int64))
        else:
            counts.append(state.node_word[:, places].T.copy())
            passed.append(state.passed[places])
        if s == 0:
            continue
        if s == top:  # below the root: document by document; this is how tokens went
            below = passed[s][:, None].astype(np.float64)
        else:
            below = state.below(s)[np.ix_(kept, chosen[s - 1])]
        transitions.append(_columns(below))
    base = _columns(state.base[chosen[top]][:, None])[:, 0] if chosen[top].size else np.ones(1)
    _, eta, rho, _ = state.concentrations
    return Tree(
        top, counts, transitions, base, passed, float(eta), float(rho), float(settings.topic_word_prior),
        state.word_scale.copy(),
    )  # fmt: skip


def _columns(weights: Array) -> Array:
    """Columns that sum to one; even where there was nothing."""
    total = weights.sum(axis=0)
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1.0 / len(weights))
