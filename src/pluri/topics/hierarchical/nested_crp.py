"""Hierarchical LDA: a tree of topics, general at the top, that grows with the documents.

Every document goes down one path of a tree whose nodes are topics, and each of its words comes from one node of the
path. Which paths there are is learned (a nested Chinese restaurant process). The model and its sampler are described
in `pluri.topics.hierarchical.nested_crp_gibbs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.inference import mcmc
from pluri.priors.hyperpriors import Gamma, as_hyperparameter
from pluri.topics import checked_state
from pluri.topics.documents import Tokens, check_documents
from pluri.topics.hierarchical.document_tree import compact
from pluri.topics.hierarchical.fitted_tree import TreeOfTopics
from pluri.topics.hierarchical.level_sticks import level_sticks, per_level
from pluri.topics.hierarchical.nested_crp_gibbs import NestedCRPGibbs
from pluri.topics.hierarchical.sampled_hierarchy import SampledHierarchy
from pluri.topics.hierarchical.tree_state import Position
from pluri.topics.topic_graph import Hierarchy
from pluri.validation import Allowed, Number, RandomState, Whole, check_parameters

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: What parameters are learned under unless something else is said, and where they start.
VAGUE = Gamma(1.0, 1.0)
FIRST_CONCENTRATION, FIRST_WORD_PRIOR = 1.0, 0.1
#: Most levels of a tree: levels of tokens are kept in one byte.
MOST_LEVELS = 127


class HierarchicalLDA(SampledHierarchy):
    """Tree of topics by a nested Chinese restaurant process.

    Parameters
    ----------
    n_levels : int, default=3
        Nodes on each path; 1 is a single topic for all documents.
    concentration : float, Gamma or "learn", default=1.0
        How readily documents open new branches: a number, a prior under which it is learned, or "learn", which is
        short for ``Gamma(1, 1)``.
    level_prior : float, sequence of n_levels floats, or "gem", default=1.0
        Dirichlet distribution of the shares of the levels in a document. "gem": sticks broken at each level, with mean
        `level_mean` and precision `level_precision`.
    topic_word_prior : float, sequence of n_levels floats, Gamma or "learn", default=0.5
        Dirichlet parameter of the topics, for each level; smaller ones give more and narrower topics: the default some
        tens of them, which can be read, 0.1 hundreds, which predict new documents slightly better where documents are
        short. It is learned for each level under a prior, with "learn" under ``Gamma(1, 1)``.
    level_mean, level_precision : float, default=0.35 and 100
        Of "gem": part of what is left that stays at a level, and how much alike documents are in that.
    n_warmup, n_draws, thin : int, default=300, 100 and 1
        Sweeps before the first draw, draws of each chain, and sweeps from one draw to the next.
    n_chains : int, default=1
        Chains from different starts; the likeliest state of any becomes the model.
    random_state : int, Generator or None
    n_jobs : int, optional
        Chains that run at a time, in threads.
    verbose : int, default=0
    callback : callable, optional
        ``callback(trace)`` sees the draws so far; True ends the fit.

    Attributes
    ----------
    topic_word_ : array of shape (n_nodes, n_words)
        Topics; the root first, then level after level.
    components_ : array of shape (n_nodes, n_words)
        Counts of words in the nodes, plus the prior.
    topic_weight_ : array of shape (n_nodes,)
        Share of all tokens.
    node_depth_, parent_, n_documents_ : int arrays of shape (n_nodes,)
        Level of each node, the node above it (-1 at the root), and the documents that go through it.
    paths_ : int array of shape (n_documents, n_levels)
        Nodes of each training document.
    n_topics_ : int
    concentration_ : float
    topic_word_prior_ : array of shape (n_levels,)
    log_joint_ : array of shape (n_chains, n_draws)
        Log joint probability of each draw.
    best_log_joint_ : float
        That of the state that became the model.
    n_nodes_trace_ : int array of shape (n_chains, n_draws, n_levels)
        Nodes of each level in each draw: their posterior.
    trace_ : Trace
        Of each draw, nodes by level and learned parameters; its log density is `log_joint_`.
    converged_ : bool
        Whether the chains agree on the log joint probability (R-hat of at most 1.1).
    n_iter_ : int
        Sweeps of each chain.

    References
    ----------
    .. [1] Blei, D., Griffiths, T. and Jordan, M. (2010). The nested Chinese restaurant process and Bayesian
       nonparametric inference of topic hierarchies. Journal of the ACM 57(2).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.hierarchical import HierarchicalLDA
    >>> X = np.repeat([[5, 9, 0, 0], [5, 0, 9, 0], [5, 0, 0, 9]], 8, axis=0)
    >>> model = HierarchicalLDA(n_levels=2, concentration=0.5, n_warmup=50, n_draws=20, random_state=0).fit(X)
    >>> model.node_depth_.tolist(), model.topic_word_.argmax(axis=1).tolist()
    ([0, 1, 1, 1], [0, 1, 2, 3])
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_levels": Whole(1, MOST_LEVELS),
        "level_mean": Number(above=0, below=1),
        "level_precision": Number(above=0),
    }

    def __init__(
        self,
        n_levels: int = 3,
        *,
        concentration: float | Gamma | str = 1.0,
        level_prior: float | Sequence[float] | str = 1.0,
        topic_word_prior: float | Sequence[float] | Gamma | str = 0.5,
        level_mean: float = 0.35,
        level_precision: float = 100.0,
        n_warmup: int = 300,
        n_draws: int = 100,
        thin: int = 1,
        n_chains: int = 1,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[Any], bool | None] | None = None,
    ):
        self.n_levels = n_levels
        self.concentration = concentration
        self.level_prior = level_prior
        self.topic_word_prior = topic_word_prior
        self.level_mean = level_mean
        self.level_precision = level_precision
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _kernel(self, tokens: Tokens) -> NestedCRPGibbs:
        check_parameters(self)
        n_levels = int(self.n_levels)
        sticks = level_sticks(self.level_prior, n_levels, self.level_mean, self.level_precision)
        concentration = as_hyperparameter(self.concentration, "concentration", VAGUE, start=FIRST_CONCENTRATION)
        words: Any = self.topic_word_prior
        prior_of_words = None
        if isinstance(words, str | Gamma):
            words, prior_of_words = as_hyperparameter(words, "topic_word_prior", VAGUE, start=FIRST_WORD_PRIOR)
        word_prior = per_level(words, n_levels, "topic_word_prior")
        return NestedCRPGibbs(tokens, sticks, word_prior, *concentration, prior_of_words)

    def _start(self, kernel: Any) -> Any:
        return kernel.start

    def _store(self, tokens: Tokens, position: Position, trace: mcmc.Trace) -> None:
        paths, parent, depth = _in_order(np.asarray(position["paths"]))
        n_nodes = len(parent)
        self.paths_, self.parent_, self.node_depth_ = paths, parent, depth
        self.n_documents_ = np.bincount(paths.ravel(), minlength=n_nodes)
        self.concentration_ = float(position["concentration"])
        self.topic_word_prior_ = np.array(position["word_prior"])
        nodes = paths[tokens.documents, position["levels"]]
        self._store_counts(tokens, nodes, n_nodes)
        self.n_nodes_trace_ = np.asarray(trace["n_nodes"])

    def _node_prior(self) -> Array:
        return np.asarray(self.topic_word_prior_[self.node_depth_][:, None])

    def _prepared(self) -> TreeOfTopics:
        check_is_fitted(self, "topic_word_")
        sticks = level_sticks(self.level_prior, self.paths_.shape[1], self.level_mean, self.level_precision)
        return TreeOfTopics(
            self.topic_word_, self.parent_, self.node_depth_, self.n_documents_, self.concentration_,
            self.topic_word_prior_, sticks,
        )  # fmt: skip

    def _check_learned(self, n_topics: int, n_words: int) -> None:
        paths = checked_state.indices("paths_", self.paths_, (None, None), n_topics)
        n_levels = paths.shape[1]
        if not 1 <= n_levels <= MOST_LEVELS:
            raise ValueError(f"paths_ must have 1 to {MOST_LEVELS} levels, got {n_levels}")
        depth = checked_state.indices("node_depth_", self.node_depth_, (n_topics,), n_levels)
        if (np.diff(depth) < 0).any() or not np.array_equal(np.unique(depth), np.arange(n_levels)):
            raise ValueError(f"node_depth_ must rise from 0 to {n_levels - 1}, level after level")
        parent = checked_state.indices("parent_", self.parent_, (n_topics,), n_topics, least=-1)
        if parent[0] != -1 or (parent[1:] < 0).any() or (depth[parent[1:]] != depth[1:] - 1).any() or depth[1:2] == 0:
            raise ValueError("parent_ must be -1 at the root, and else a node of the level above")
        checked_state.numbers("n_documents_", self.n_documents_, (n_topics,), least=1)
        checked_state.numbers("topic_word_prior_", self.topic_word_prior_, (n_levels,), above=0)
        checked_state.number("concentration_", self.concentration_, above=0)

    def _place(self, X: Any) -> Array:
        return self._prepared().place(X)[0]

    def predict(self, X: Any) -> Integers:
        """Likeliest leaf of each document: a row of `topic_word_`."""
        tree = self._prepared()
        return tree.place(check_documents(self, X, reset=False, whom="predict", empty="ignore"))[1]

    def predict_paths(self, X: Any) -> Integers:
        """Nodes from the root to the likeliest leaf of each document: (n_documents, n_levels)."""
        leaves = self.predict(X)
        paths = np.empty((len(leaves), self.paths_.shape[1]), dtype=np.int64)
        for level in range(paths.shape[1] - 1, -1, -1):
            paths[:, level] = leaves
            leaves = self.parent_[leaves]
        return paths

    def _hierarchy(self) -> Hierarchy:
        children = np.arange(1, len(self.parent_))
        parents = self.parent_[children]
        weight = self.n_documents_[children] / self.n_documents_[parents]
        return Hierarchy(self.node_depth_, np.column_stack([parents, children]), weight)

    def _facts(self) -> dict[str, str]:
        sizes = np.bincount(self.node_depth_)
        return {
            "nodes by level": ", ".join(map(str, sizes)), "documents": str(len(self.paths_)),
            "words": str(self.topic_word_.shape[1]), "concentration": f"{self.concentration_:.3g}",
            "log joint": f"{self.best_log_joint_:.1f}",
        }  # fmt: skip

    def summary(self, n_words: int = 8, n_nodes: int = 60) -> str:
        """The tree on one page of plain text: documents and words of each node, largest branches first."""
        check_is_fitted(self, "topic_word_")
        words = self.top_words(n_words)
        lines = [f"{type(self).__name__}: " + "; ".join(f"{name} {value}" for name, value in self._facts().items()), ""]

        def show(node: int) -> None:
            if len(lines) - 2 >= n_nodes:
                return
            indent = "  " * int(self.node_depth_[node])
            lines.append(f"{indent}{node} ({self.n_documents_[node]}): {' '.join(words[node])}")
            for child in np.flatnonzero(self.parent_ == node):
                show(int(child))

        show(0)
        if self.n_topics_ > n_nodes:
            lines.append(f"... {self.n_topics_ - n_nodes} more")
        return "\n".join(lines)


def _in_order(paths: Integers) -> tuple[Integers, Integers, Integers]:
    """Paths with nodes numbered level by level, larger branches first; the parent and the level of each node."""
    level_paths, n_nodes = compact(paths)
    numbered = np.zeros_like(level_paths)
    parents, depths, begin = [np.array([-1])], [np.array([0])], 1
    for level in range(1, paths.shape[1]):
        own = level_paths[:, level]
        first, size = np.unique(own, return_index=True, return_counts=True)[1:]
        above = np.zeros(n_nodes[level], dtype=np.int64)
        above[own] = numbered[:, level - 1]
        order = np.lexsort((first, -size, above))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        numbered[:, level] = begin + place[own]
        parents.append(above[order])
        depths.append(np.full(len(order), level))
        begin += len(order)
    return numbered, np.concatenate(parents).astype(np.int64), np.concatenate(depths).astype(np.int64)
