"""What a tree of topics can do once it is fitted: place documents, be scored, draw documents, tell of its structure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pluri.topics import checked_state
from pluri.topics.documents import check_documents
from pluri.topics.held_out import HeldOut
from pluri.topics.sampled_topics import SampledTopics
from pluri.topics.topic_graph import Hierarchy
from pluri.topics.tree import evaluation, structure
from pluri.topics.tree.tree import Tree
from pluri.validation import RandomState, as_generator, check_count

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: An edge of the graph of topics has at least this probability.
EDGE_SHARE = 0.05


class FittedTree(SampledTopics):
    """Base of `pluri.topics.tree.TreeTopicModel`: all that needs nothing but the trees of a fit."""

    tree_: Tree
    trees_: list[Tree]
    transitions_: list[Array]
    depth_: int
    nodes_per_scale_: list[int]
    word_scale_: Integers
    n_nodes_trace_: Integers
    best_chain_: int

    def _check_learned(self, n_topics: int, n_words: int) -> None:
        trees = checked_state.one_for_each("trees_", self.trees_, Tree)
        for tree in checked_state.one_for_each("tree_", [self.tree_, *trees], Tree):
            tree.check(n_words)
        tree = self.tree_
        if not trees or sum(tree.widths) != n_topics or [*self.nodes_per_scale_] != tree.widths:
            raise ValueError(f"tree_ must have the {n_topics} nodes of topic_word_, got {tree.widths}")
        if self.depth_ != tree.depth:
            raise ValueError(f"depth_ must be {tree.depth}, as that of tree_, got {self.depth_!r}")
        checked_state.indices("word_scale_", self.word_scale_, (n_words,), tree.depth)
        for s, below in enumerate(checked_state.one_for_each("transitions_", self.transitions_, np.ndarray)):
            checked_state.numbers("transitions_", below, tree.transitions[s].shape, least=0)

    def transform_scales(self, X: Any) -> list[Array]:
        """Proportions of the nodes of each scale in documents.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)

        Returns
        -------
        list of arrays of shape (n_documents, n_nodes)
            One for each scale; rows sum to one.
        """
        found = []
        for weights in self._node_weights(X, "transform_scales"):
            total = weights.sum(axis=1, keepdims=True)
            found.append(weights / np.where(total > 0, total, 1.0))
        return found

    def transform(self, X: Any) -> Array:
        """Weights of all nodes in documents: usage of the scale times proportion of the node.

        Each document is sampled given the tree, with the same random numbers, so that its weights do not depend on the
        other documents. A document without words has the weights expected before any word.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)

        Returns
        -------
        array of shape (n_documents, n_nodes)
            Nodes as in `topic_word_`; rows sum to one.
        """
        return np.hstack(self._node_weights(X, "transform"))

    def _node_weights(self, X: Any, whom: str) -> list[Array]:
        check_is_fitted(self, "tree_")
        counts = check_documents(self, X, reset=False, whom=whom, empty="ignore")
        columns, _ = evaluation.document_columns(self.tree_, counts, start=0)
        return self.tree_.node_weights(columns)

    def _held_out(self, X: Any, method: str, rng: np.random.Generator, **options: Any) -> HeldOut:
        if method not in evaluation.METHODS:
            raise ValueError(f"method must be one of {', '.join(evaluation.METHODS)}, got {method!r}")
        score: HeldOut = getattr(evaluation, method)(self.trees_, X, rng, **options)
        return score

    def sample(
        self, n_samples: int = 1, length: int | ArrayLike = 100, *, random_state: RandomState = None
    ) -> sparse.csr_matrix:
        """Draw documents from the tree.

        Parameters
        ----------
        n_samples : int, default=1
            Number of documents.
        length : int or array-like of shape (n_samples,), default=100
            Words of each document.
        random_state : int, Generator or None
            By default that of the model.

        Returns
        -------
        csr_matrix of shape (n_samples, n_words)
        """
        check_is_fitted(self, "tree_")
        check_count(n_samples, "n_samples")
        lengths = np.broadcast_to(np.asarray(length), (n_samples,))
        if lengths.dtype.kind not in "iu" or (lengths < 0).any():
            raise ValueError(f"length must be whole numbers of at least 0, got {length!r}")
        rng = as_generator(self.random_state if random_state is None else random_state)
        words = evaluation.draw_word_distributions(self.tree_, rng, n_samples)
        rows = [rng.multinomial(n, p) for n, p in zip(lengths, words)]
        return sparse.csr_matrix(np.array(rows))

    def terms_per_topic(self, coverage: float | None = None) -> list[Integers]:
        """Number of words that each topic uses, scale by scale; see `pluri.topics.tree.structure.terms_per_topic`."""
        check_is_fitted(self, "tree_")
        return structure.terms_per_topic(self.tree_.counts, coverage)

    def shared_children(self, threshold: float = 0.05) -> list[structure.SharedChild]:
        """Nodes that lie below at least two nodes of the scale above, each with more than this probability."""
        check_is_fitted(self, "tree_")
        return structure.shared_children(self.tree_, threshold)

    def node_histograms(self) -> list[dict[int, int]]:
        """How often each number of nodes with tokens was drawn, scale by scale."""
        check_is_fitted(self, "tree_")
        return structure.node_histograms(self.n_nodes_trace_.reshape(-1, self.n_nodes_trace_.shape[-1]))

    def summary(self, n_nodes: int = 8, n_words: int = 5) -> str:
        """The largest nodes of each scale, their words and their children, on one page of plain text."""
        check_is_fitted(self, "tree_")
        words, tree = self.top_words(n_words), self.tree_
        lines = [
            f"{type(self).__name__}: {' + '.join(map(str, self.nodes_per_scale_))} nodes, "
            f"{self.n_iter_} sweeps of {self.log_joint_.shape[0]} chains",
            f"log joint {self.log_joint_[self.best_chain_, -1]:.1f}; words of each scale "
            f"{np.bincount(self.word_scale_, minlength=self.depth_).tolist()}",
        ]
        start = 0
        for s, width in enumerate(self.nodes_per_scale_):
            lines.append(f"scale {s}")
            for node in range(min(width, n_nodes)):
                share = self.topic_weight_[start + node]
                line = f"  {node:<3d} {share:6.1%}  {' '.join(words[start + node])}"
                if s >= tree.top and s + 1 < self.depth_:
                    below = self.transitions_[s][:, node]
                    children = np.argsort(-below, kind="stable")[:3]
                    line += "  > " + ", ".join(f"{c} {below[c]:.2f}" for c in children if below[c] > EDGE_SHARE)
                lines.append(line)
            if width > n_nodes:
                lines.append(f"  ... {width - n_nodes} more")
            start += width
        return "\n".join(lines)

    def _hierarchy(self) -> Hierarchy:
        """Edges of probability above 0.05, and the strongest one into each node."""
        depth = np.repeat(np.arange(self.depth_), self.nodes_per_scale_)
        starts = np.concatenate([[0], np.cumsum(self.nodes_per_scale_)])
        edges, weights = [], []
        for s, transition in enumerate(self.transitions_):
            for child, row in enumerate(transition):
                for parent in np.flatnonzero((row > EDGE_SHARE) | (np.arange(row.size) == row.argmax())):
                    edges.append((starts[s] + parent, starts[s + 1] + child))
                    weights.append(row[parent])
        return Hierarchy(depth, np.array(edges, dtype=np.int64).reshape(-1, 2), np.array(weights, dtype=np.float64))

    def _facts(self) -> dict[str, str]:
        words = np.bincount(self.word_scale_, minlength=self.depth_)
        return super()._facts() | {
            "nodes of each scale": ", ".join(map(str, self.nodes_per_scale_)),
            "words of each scale": ", ".join(map(str, words)),
            "children with several parents": str(len(self.shared_children())),
        }
