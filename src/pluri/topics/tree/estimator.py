"""A tree of topics as an estimator: general words near the top, special ones deep, nodes below several parents."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pluri.inference import mcmc
from pluri.processes.concentration import check_count
from pluri.topics.documents import check_documents, tokens_of
from pluri.topics.held_out import HeldOut
from pluri.topics.interrupts import unnamed_warnings_ignored
from pluri.topics.topic_graph import Hierarchy
from pluri.topics.topic_model import TopicModel, warn_if_interrupted
from pluri.topics.tree import evaluation, structure
from pluri.topics.tree.gibbs import TreeGibbs
from pluri.topics.tree.settings import MOST_SCALES, TreeSettings
from pluri.topics.tree.tree import tree_of
from pluri.validation import RandomState, as_generator, restored_on_failure

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: An edge of the graph of topics has at least this probability.
EDGE_SHARE = 0.05
#: Share of the draws at the largest depth from which on the limit is said to bind.
BINDING = 0.5


class TreeTopicModel(TopicModel):
    r"""Topics in a tree of several scales whose nodes may have several parents, by Gibbs sampling [1]_.

    A token draws a scale from its document's usage of scales, a node of the top scale from its document's proportions,
    and then a path down the tree, ``z^(s+1) ~ P^(s)[:, z^(s)]``, to its scale; its word comes from the topic there.
    All columns of P^(s) share the same children, which makes a child of several parents possible. With
    `scale_dependent`, each word has one scale, so that no word is repeated from one scale to another.

    Parameters
    ----------
    max_depth : int or None, default=3
        Number of scales; at most so many where the tree grows, and no limit if None. There are never more scales than
        words if each word has one.
    max_nodes : int, tuple of int or None, default=(20, 40, 80)
        Nodes of each scale, at most; scales after the last entry have as many as that. The first is taken as 1 with a
        root. None for no limit, where the tree grows without scale-dependent words.
    scale_dependent : bool, default=True
        Whether each word has one scale, which is learned.
    root : bool, default=True
        Whether the first scale has a single node, below which each document has its own proportions.
    topic_word_prior : float, default=1.0
        Parameter of the Dirichlet prior of topics.
    inference : {"truncated", "retrospective", "slice"}, default="truncated"
        A tree of given size, which is fast; or one whose scales and nodes are made as tokens need them. With
        scale-dependent words, the number of scales then varies too.
    width : {"retrospective", "adaptive"}, default="retrospective"
        With retrospective inference, make nodes as needed, which is exact; or give the whole leftover of a stick to one
        new node, which is not.
    concentration_prior : (shape, rate), default=(1e-3, 1e-3)
        Gamma prior of all concentrations. The default is vague; where scales are made as needed it lets them have a
        single node, as nearly all of it is near zero: give one such as (1.0, 1.0) there.
    doc_concentration : float, optional
        Concentration eta of documents' proportions; learned by default.
    collapsed : bool, default=True
        Draw tokens of a truncated tree with topics integrated out, which needs fewer sweeps; otherwise given topics.
    n_warmup, n_draws, thin : int, default=500, 100 and 5
        Sweeps before the first draw; draws; and sweeps from one to the next.
    n_chains : int, default=1
    n_trees : int, default=10
        Draws of each chain, evenly spaced, of which the whole tree is kept: predictions are averaged over them.
    random_state : int, Generator or None
    n_jobs : int, optional
        Chains at a time.
    verbose : int, default=0
    callback : callable, optional
        ``callback(trace)`` sees the draws so far; True ends the run.

    Attributes
    ----------
    tree_ : Tree
        Last draw of the best chain; what follows describes it.
    topics_ : list of arrays of shape (n_nodes, n_words)
        Topics of each scale.
    transitions_ : list of arrays of shape (n_nodes of the next scale, n_nodes)
        Columns sum to one. Below a root, the mean over all tokens.
    depth_ : int
    nodes_per_scale_ : list of int
    word_scale_ : int array of shape (n_words,)
        Scale of each word, from 0; if words have no scale of their own, the one with most of their tokens.
    topic_word_, topic_weight_, components_ : arrays
        Nodes of all scales, one scale after the other: topics, shares of tokens, and counts plus prior.
    trees_ : list of Tree
        All trees that are kept.
    n_nodes_trace_ : int array of shape (n_chains, n_draws, n_scales)
        Nodes with tokens.
    log_joint_ : array of shape (n_chains, n_draws)
    best_chain_ : int
    trace_ : Trace
    n_iter_ : int
        Sweeps of each chain.

    References
    ----------
    .. [1] Chen, H., Dunson, D. B. and Carin, L. (2011). Topic modeling with nonparametric Markov tree. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.tree import TreeTopicModel
    >>> X = np.repeat([[5, 5, 0, 0, 3], [0, 0, 5, 5, 3]], 20, axis=0)
    >>> model = TreeTopicModel(max_depth=2, max_nodes=(1, 5), topic_word_prior=0.1, n_warmup=100, n_draws=10,
    ...                        random_state=0).fit(X)
    >>> model.word_scale_.tolist()  # the word of all documents is at the root
    [1, 1, 1, 1, 0]
    >>> [round(float(weights.sum()), 2) for weights in model.transform_scales(X[:1])]
    [1.0, 1.0]
    """

    def __init__(
        self,
        max_depth: int | None = 3,
        max_nodes: int | Sequence[int] | None = (20, 40, 80),
        *,
        scale_dependent: bool = True,
        root: bool = True,
        topic_word_prior: float = 1.0,
        inference: Literal["truncated", "retrospective", "slice"] = "truncated",
        width: Literal["retrospective", "adaptive"] = "retrospective",
        concentration_prior: tuple[float, float] = (1e-3, 1e-3),
        doc_concentration: float | None = None,
        collapsed: bool = True,
        n_warmup: int = 500,
        n_draws: int = 100,
        thin: int = 5,
        n_chains: int = 1,
        n_trees: int = 10,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[mcmc.Trace], bool | None] | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.max_nodes = max_nodes
        self.scale_dependent = scale_dependent
        self.root = root
        self.topic_word_prior = topic_word_prior
        self.inference = inference
        self.width = width
        self.concentration_prior = concentration_prior
        self.doc_concentration = doc_concentration
        self.collapsed = collapsed
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.n_trees = n_trees
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any = None) -> Self:
        """Sample trees given documents.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Whole counts.
        y : ignored

        Returns
        -------
        self
        """
        with restored_on_failure(self):
            counts = check_documents(self, X)
            settings = self._settings(counts.shape[1])
            kept = np.round(np.linspace(0, self.n_draws, min(self.n_trees, self.n_draws) + 1)[1:])
            kernel = TreeGibbs(
                tokens_of(counts), settings, inference=self.inference, width=self.width,
                collapsed=bool(self.collapsed), keep=tuple(self.n_warmup + self.thin * int(draw) for draw in kept),
            )  # fmt: skip
            self._describe(self._sample(kernel), settings)
        return self

    def _settings(self, n_words: int) -> TreeSettings:
        for name, allowed in (
            ("inference", ("truncated", "retrospective", "slice")), ("width", ("retrospective", "adaptive"))
        ):  # fmt: skip
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        for name, least in (("n_warmup", 0), ("n_draws", 1), ("thin", 1), ("n_chains", 1), ("n_trees", 1)):
            check_count(getattr(self, name), name, least)
        grows = self.inference != "truncated"
        if not grows and (self.max_depth is None or self.max_nodes is None):
            which = "max_depth" if self.max_depth is None else "max_nodes"
            raise ValueError(f"{which} must be given with inference='truncated', got None")
        depth = MOST_SCALES if self.max_depth is None else check_count(self.max_depth, "max_depth")
        if self.scale_dependent:
            if self.max_depth is None:
                raise ValueError("max_depth must be given with scale_dependent=True, got None")
            if n_words <= int(self.root):
                raise ValueError(f"X must have at least 2 words, one below the root, got n_features = {n_words}")
            depth = min(depth, n_words)
        nodes = (self.max_nodes,) if isinstance(self.max_nodes, int | np.integer) else self.max_nodes
        return TreeSettings(
            None if nodes is None else tuple(nodes), depth, bool(self.scale_dependent), bool(self.root),
            self.topic_word_prior, self.concentration_prior, self.doc_concentration,
        )  # fmt: skip

    def _sample(self, kernel: TreeGibbs) -> mcmc.Trace:
        """All sweeps, warm-up included: Ctrl-C leaves a tree whenever it comes."""
        watch = None
        if self.callback is not None:
            watch = partial(_watched, self.callback, self.n_warmup, self.thin)
        with unnamed_warnings_ignored():
            trace = mcmc.sample(
                kernel, kernel.start, n_draws=self.n_warmup + self.n_draws * self.thin, n_warmup=0,
                n_chains=self.n_chains, record=kernel.record, random_state=as_generator(self.random_state),
                n_jobs=self.n_jobs, verbose=self.verbose, callback=watch, warn=False,
            )  # fmt: skip
        warn_if_interrupted(trace.interrupted, type(self).__name__, trace.n_draws)
        return trace

    def _describe(self, whole: mcmc.Trace, settings: TreeSettings) -> None:
        trace = _draws(whole, self.n_warmup, self.thin)
        states = [end.state for end in whole.ends]
        log_joint = trace.stats["log_density"]
        best = int(log_joint[:, log_joint.shape[1] // 2 :].mean(axis=1).argmax())
        state, tree = states[best], tree_of(states[best], settings)
        self.tree_, self.best_chain_ = tree, best
        # After Ctrl-C the last sweep may be the only one.
        self.trees_ = [draw for each in states for draw in (each.kept or (tree_of(each, settings),))]
        self.topics_, self.transitions_ = tree.topics, tree.transitions
        self.depth_, self.nodes_per_scale_ = tree.depth, tree.widths
        if settings.scale_dependent:
            self.word_scale_ = state.word_scale.astype(np.int64)
        else:
            self.word_scale_ = np.stack([counts.sum(axis=0) for counts in tree.counts]).argmax(axis=0)
        self.topic_word_ = np.vstack(self.topics_)
        tokens = np.vstack(tree.counts)
        self.topic_weight_ = tokens.sum(axis=1) / tokens.sum()
        self.components_ = np.where(self.topic_word_ > 0, tokens + np.float64(settings.topic_word_prior), 0.0)
        depth = min(settings.most_depth, trace["n_nodes"].shape[-1])
        self.n_nodes_trace_, self.log_joint_ = trace["n_nodes"][..., :depth], log_joint
        self.doc_concentration_, self.usage_concentration_ = tree.doc_concentration, tree.usage_concentration
        self.n_iter_ = whole.n_draws
        self.trace_ = replace(trace, ends=())
        limit = settings.most_depth
        if self.inference != "truncated" and self.max_depth is not None and settings.least_depth < limit:
            share = float((trace["depth"] == limit).mean())
            if share > BINDING and not (settings.scale_dependent and limit < self.max_depth):
                warnings.warn(
                    f"{share:.0%} of the draws have max_depth={limit} scales: the limit may be what ends the tree, not "
                    "the documents",
                    UserWarning,
                    stacklevel=4,
                )

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

    def sample(self, n_documents: int = 1, length: int | ArrayLike = 100) -> sparse.csr_matrix:
        """Draw documents from the tree.

        Parameters
        ----------
        n_documents : int, default=1
        length : int or array-like of shape (n_documents,), default=100
            Words of each document.

        Returns
        -------
        csr_matrix of shape (n_documents, n_words)
        """
        check_is_fitted(self, "tree_")
        check_count(n_documents, "n_documents")
        lengths = np.broadcast_to(np.asarray(length), (n_documents,))
        if lengths.dtype.kind not in "iu" or (lengths < 0).any():
            raise ValueError(f"length must be whole numbers of at least 0, got {length!r}")
        rng = as_generator(self.random_state)
        words = evaluation.draw_word_distributions(self.tree_, rng, n_documents)
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


def _draws(trace: mcmc.Trace, n_warmup: int, thin: int) -> mcmc.Trace:
    """Draws of a trace of all sweeps; the last sweep if Ctrl-C came before the first draw."""
    n_warmup = min(n_warmup, trace.n_draws)
    chosen = slice(n_warmup + thin - 1, None, thin) if trace.n_draws >= n_warmup + thin else slice(-1, None)
    return replace(
        trace,
        draws={name: values[:, chosen] for name, values in trace.draws.items()},
        stats={name: values[:, chosen] for name, values in trace.stats.items()},
        n_warmup=n_warmup,
        thin=thin,
    )


def _watched(callback: Callable[[mcmc.Trace], bool | None], n_warmup: int, thin: int, trace: mcmc.Trace) -> bool | None:
    """Show a callback the draws so far, once there are some."""
    return callback(_draws(trace, n_warmup, thin)) if trace.n_draws >= n_warmup + thin else None
