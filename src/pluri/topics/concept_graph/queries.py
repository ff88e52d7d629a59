"""What a fitted concept graph is asked: shares, paths and labels of documents, likelihoods, pictures and pages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pluri.priors.hyperpriors import Beta
from pluri.topics.concept_graph.evaluation.draws import Draw, fitted_draw
from pluri.topics.concept_graph.evaluation.fitted import FittedGraph
from pluri.topics.concept_graph.evaluation.held_out import held_out_over_draws
from pluri.topics.concept_graph.sampling.hyper_parameters import UNIFORM
from pluri.topics.documents import check_documents
from pluri.topics.held_out import HeldOut
from pluri.topics.sampled_topics import SampledTopics
from pluri.topics.topic_graph import Hierarchy
from pluri.validation import RandomState, as_generator, check_count

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class FittedConceptGraph(SampledTopics):
    """Base of :class:`~pluri.topics.ConceptGraph`: what can be asked once it is fitted."""

    n_levels: int
    level_prior: str
    tau_prior: Beta | None
    graph: Any
    n_topics_: int
    node_depth_: Integers
    node_labels_: list[Any]
    node_documents_: Integers
    nodes_by_level_: Integers
    edges_: Integers
    edge_count_: Integers
    edge_probability_: Array
    edge_stability_: Array
    end_probability_: Array
    paths_: Integers
    best_log_joint_: float
    stick_beta_: float
    topic_word_prior_: float
    position_: Any
    draws_: list[Draw]
    _best_draw: Draw
    _step: Array
    _offsets: Integers
    given_labels_: list[Any]
    _document_labels: Integers

    def _check_learned(self, n_topics: int, n_words: int) -> None:
        from pluri.topics.concept_graph.checked_graph import check_graph

        check_graph(self, n_topics, n_words)

    @property
    def _tau_prior(self) -> Beta:
        return UNIFORM if self.tau_prior is None else self.tau_prior

    def _fitted(self) -> FittedGraph:
        """The fitted draw, without nodes that no path uses."""
        check_is_fitted(self, "position_")
        return FittedGraph.of(
            self.topic_word_, self._step, self.end_probability_, self.n_levels, self.level_prior, self._tau_prior
        )

    def _fitted_draws(self, averaged: bool = True) -> list[FittedGraph]:
        """The draws that were kept, or the fitted one; with nodes that no path uses."""
        check_is_fitted(self, "position_")
        draws = self.draws_ if averaged else [self._best_draw]
        return [fitted_draw(draw, self.n_levels, self.level_prior, self._tau_prior) for draw in draws]

    def transform(self, X: Any) -> Array:
        """Expected share of each node in each document, over all paths and levels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)

        Returns
        -------
        array of shape (n_documents, n_nodes)
            Rows sum to one; a document without words has the shares that the prior expects.
        """
        fitted = self._fitted()
        counts = check_documents(self, X, reset=False, whom="transform", empty="ignore")
        return fitted.posterior(counts).node_share

    def end_probabilities(self, X: Any) -> Array:
        """Probability that each document's path ends at each node: array of shape (n_documents, n_nodes)."""
        fitted = self._fitted()
        counts = check_documents(self, X, reset=False, whom="predict", empty="ignore")
        share = fitted.posterior(counts).path_share
        last = fitted.paths[np.arange(len(fitted.paths)), fitted.lengths - 1]
        ends = np.zeros((counts.shape[0], self.n_topics_))
        np.add.at(ends.T, last, share.T)
        return ends / ends.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Integers:
        """Node at which each document's path most probably ends; `node_labels_` has its name, if it has one."""
        return self.end_probabilities(X).argmax(axis=1)

    def label_probabilities(self, X: Any) -> Array:
        """Probability of each node of the given graph, where a document ends at one of them.

        Averaged over the draws of `draws_`. Nodes that were found are left out: documents without a label may be
        drawn to them in the fit, and so are new ones in :meth:`predict`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)

        Returns
        -------
        array of shape (n_documents, n_given)
            Columns in the order of `given_labels_`; rows sum to one.
        """
        check_is_fitted(self, "position_")
        if self.graph is None:
            raise ValueError("label_probabilities needs a model that was given a graph, got graph=None")
        counts = check_documents(self, X, reset=False, whom="label_probabilities", empty="ignore")
        total = np.zeros((counts.shape[0], len(self.given_labels_)))
        for draw, fitted in zip(self.draws_, self._fitted_draws()):
            # Given nodes have their place in the graph as their name; all others come after them.
            name = np.append(draw["name"], np.full(self.n_levels - 1, len(self.given_labels_)))
            last = name[fitted.paths[np.arange(len(fitted.paths)), fitted.lengths - 1]]
            known = last < len(self.given_labels_)
            share = fitted.only(known).posterior(counts).path_share
            np.add.at(total.T, last[known], share.T / len(self.draws_))
        return total / total.sum(axis=1, keepdims=True)

    def predict_labels(self, X: Any) -> NDArray[Any]:
        """Name of the given node at which each document's path most probably ends; see :meth:`label_probabilities`.

        Only names that documents of the fit had, if there were labels.
        """
        probability = self.label_probabilities(X)
        seen = np.unique(self._document_labels[self._document_labels >= 0])
        if len(seen):
            probability = probability[:, seen]
        names = np.empty(len(self.given_labels_), dtype=object)
        names[:] = self.given_labels_
        return np.asarray((names[seen] if len(seen) else names)[probability.argmax(axis=1)])

    def paths(self, X: Any) -> Integers:
        """Most probable path of each document: nodes from the root, -1 after its end."""
        fitted = self._fitted()
        counts = check_documents(self, X, reset=False, whom="paths", empty="ignore")
        return fitted.paths[fitted.posterior(counts).path_share.argmax(axis=1)]

    def _held_out(self, X: Any, method: str, rng: np.random.Generator, **options: Any) -> HeldOut:
        """Score documents by a method of `evaluation`; with `averaged=False` under the fitted draw alone."""
        averaged = bool(options.pop("averaged", True))
        return held_out_over_draws(self._fitted_draws(averaged), X, method, rng, **options)

    def sample(
        self, n_samples: int = 1, length: int | None = None, *, random_state: RandomState = None
    ) -> tuple[sparse.csr_matrix, Integers]:
        """Draw documents from the fitted graph.

        Parameters
        ----------
        n_samples : int, default=1
            Number of documents.
        length : int, optional
            Words of each; by default the mean of the training documents, rounded.
        random_state : int, Generator or None
            By default that of the model.

        Returns
        -------
        X : csr_matrix of shape (n_samples, n_words)
        paths : array of shape (n_samples, n_levels)
        """
        fitted = self._fitted()
        check_count(n_samples, "n_samples")
        size = round(float(np.diff(self._offsets).mean())) if length is None else check_count(length, "length", 0)
        rng = as_generator(self.random_state if random_state is None else random_state)
        chosen, shares = fitted.draw_shares(rng, int(n_samples))
        rows = [sparse.csr_matrix(rng.multinomial(size, share @ fitted.topic_word)) for share in shares]
        return sparse.csr_matrix(sparse.vstack(rows)), fitted.paths[chosen]

    def to_networkx(self, n_words: int = 10) -> Any:
        """The graph for networkx.

        Nodes have depth, weight, words, label, number of documents and whether they were given; edges have weight,
        count and stability.
        """
        graph = self.topic_graph(n_words).to_networkx()
        for i in range(self.n_topics_):
            graph.nodes[i]["documents"] = int(self.node_documents_[i])
            graph.nodes[i]["given"] = bool(self.position_["node_protected"][i])
        for (x, y), count, stability in zip(self.edges_, self.edge_count_, self.edge_stability_):
            graph.edges[int(x), int(y)].update(count=int(count), stability=float(stability))
        return graph

    def _hierarchy(self) -> Hierarchy:
        labels = [None if name is None else str(name) for name in self.node_labels_]
        return Hierarchy(self.node_depth_, self.edges_, self.edge_probability_, labels)

    def _facts(self) -> dict[str, str]:
        return {
            "nodes": str(self.n_topics_), "levels": str(int(self.node_depth_.max()) + 1),
            "edges": str(len(self.edges_)), "documents": str(len(self.paths_)),
            "words": str(self.topic_word_.shape[1]), "stick_beta": f"{self.stick_beta_:.3g}",
            "topic_word_prior": f"{self.topic_word_prior_:.3g}", "log joint": f"{self.best_log_joint_:.1f}",
        }  # fmt: skip

    def summary(self, n_words: int = 6) -> str:
        """The nodes, where they lead, and their words, on a page of plain text."""
        check_is_fitted(self, "position_")
        lines = [
            f"{type(self).__name__}: {self.n_topics_} nodes, {len(self.edges_)} edges, {len(self.paths_)} documents",
            "nodes by level: " + ", ".join(f"{used} of {there}" for used, there in self.nodes_by_level_),
            f"log joint {self.best_log_joint_:.1f}; stick_beta {self.stick_beta_:.3g}, "
            f"topic_word_prior {self.topic_word_prior_:.3g}",
            "",
            "node  depth  documents  ends   leads to        words",
        ]
        for i, words in enumerate(self.top_words(n_words)):
            below = [(n, y) for (x, y), n in zip(self.edges_, self.edge_count_) if x == i]
            leads = " ".join(str(y) for _, y in sorted(below, reverse=True)[:5])
            name = "" if self.node_labels_[i] is None else f"[{self.node_labels_[i]}] "
            lines.append(
                f"{i:<5d} {self.node_depth_[i]:<6d} {self.node_documents_[i]:<10d} {self.end_probability_[i]:<6.2f} "
                f"{leads:<15s} {name}{', '.join(words)}"
            )
        return "\n".join(lines)
