r"""Concept graphs: topics as the nodes of a graph, documents as paths through it.

Nodes have a fixed depth; the root is at the top. A document takes one path from the root: at each node it goes on to a
node of the next level or ends, by broken sticks in an order of the node's own (see `edge_prior`). Each of its words
comes from one node on the path, the last one most often (`levels`), and each node has a distribution over words, phi ~
Dirichlet(eta). So nodes near the root gather what many documents share, nodes below it what is special, and a node may
have several parents [1]_. See `gibbs` for how it is learned.

References
----------
.. [1] Chambers, A., Smyth, P. and Steyvers, M. (2010). Learning concept graphs from text with stick-breaking priors.
   NIPS 23.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pluri.inference import mcmc
from pluri.topics.concept_graph.evaluation import held_out
from pluri.topics.concept_graph.fitted import FittedGraph
from pluri.topics.concept_graph.gibbs import FIRST_BLANKS, ConceptGraphGibbs
from pluri.topics.concept_graph.given_graph import GivenGraph, read_graph, read_labels
from pluri.topics.concept_graph.starts import arranged_start
from pluri.topics.concept_graph.state import GraphState, Position
from pluri.topics.documents import check_documents, tokens_of
from pluri.topics.held_out import HeldOut
from pluri.topics.interrupts import n_sweeps, unnamed_warnings_ignored
from pluri.topics.topic_graph import Hierarchy
from pluri.topics.topic_model import TopicModel, warn_if_interrupted
from pluri.validation import RandomState, as_generator, restored_on_failure

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Nodes of each level, as published, where nothing is said of their number.
USUAL_NODES = 25
CHOICES = {
    "level_prior": ("geometric", "dirichlet"),
    "feasible": ("next_level", "deeper"),
    "path_sampler": ("dp", "enumerate"),
    "init": ("topics", "root"),
}


class ConceptGraph(TopicModel):
    """Topics that form a graph, learned from documents, with or without a given graph and labels.

    Parameters
    ----------
    n_levels : int, default=3
        Levels of the graph, the root included.
    max_nodes_per_level : int, "auto" or None, default="auto"
        Nodes of each level below the root, used or not. "auto" is 25, as published, or twelve more than the fullest
        level of `graph` if that is more. None begins with twelve and doubles them during the warm-up where more than
        half are used: on ordinary text with learned priors that may not end before there are hundreds, each of a few
        documents, and sweeps become slow.
    alpha : float, default=1.0
        First parameter of the sticks. A large one with a large `beta` makes all sticks alike.
    beta : float or "learn", default="learn"
        Second parameter of the sticks: the larger, the more edges a node has.
    topic_word_prior : float or "learn", default="learn"
        Dirichlet parameter eta of the words of every node.
    level_prior : {"geometric", "dirichlet"}, default="geometric"
        How words spread over the nodes of a path.
    tau_prior : (float, float), default=(1.0, 1.0)
        Beta prior of tau, the share of the last node; with "dirichlet", the concentrations of the last node and of each
        node above it.
    feasible : {"next_level", "deeper"}, default="next_level"
        Whether edges go to the next level only, or to any deeper node.
    graph : dict or networkx.DiGraph, optional
        Nodes that stay: a dict of children, a dict of depths (0 for the root), or a directed graph.
    path_sampler : {"dp", "enumerate"}, default="dp"
        Paths by a dynamic programme, or by listing all of them (slow; for checks).
    init : {"topics", "root"}, default="topics"
        Where chains start if there is no graph: at plain topics arranged in levels, or, as published, with all
        documents at the root. From there chains seldom find a good graph. With labels, labelled documents are sampled
        first, and the others then join them.
    n_joint : int, default=1
        Joint moves of path, levels and tau for each document and sweep.
    n_warmup, n_draws, thin : int, default=100, 50 and 1
        Sweeps before draws are kept, draws kept, and sweeps from one to the next.
    n_chains : int, default=1
        Chains; the draw of highest log joint probability of all of them is the fitted graph.
    random_state : int, Generator or None, default=None
    n_jobs : int or None, default=None
        Chains run at a time.
    verbose : int, default=0
        1 shows progress.
    callback : callable, optional
        Gets the trace so far now and then; True ends the run.

    Attributes
    ----------
    topic_word_ : array of shape (n_nodes, n_words)
        Words of each node; the root first, then by depth and number of documents.
    components_ : array of shape (n_nodes, n_words)
        Counts plus `topic_word_prior_`.
    topic_weight_ : array of shape (n_nodes,)
        Share of all tokens.
    node_depth_ : array of shape (n_nodes,)
        0 for the root.
    node_labels_ : list
        Name of each node in `graph`; None for nodes that were found.
    node_documents_ : array of shape (n_nodes,)
        Documents that pass each node.
    edges_ : array of shape (n_edges, 2)
        Upper and lower node of each edge that a document takes.
    edge_count_, edge_probability_, edge_stability_ : arrays of shape (n_edges,)
        Documents that take it, its predictive probability, and the share of the draws that have it.
    end_probability_ : array of shape (n_nodes,)
        Probability that a path ends at each node.
    paths_ : array of shape (n_documents, n_levels)
        Nodes of the training documents' paths from the root, -1 after their end.
    labels_ : array of shape (n_documents,)
        Their last nodes.
    log_joint_ : array of shape (n_chains, n_draws)
        Log joint probability of each draw.
    best_log_joint_, best_chain_ : float and int
        Of the fitted graph.
    beta_, topic_word_prior_ : float
        Of the fitted graph.
    acceptance_ : dict of float
        Shares of joint moves, swaps, and walks of `beta` and `topic_word_prior` that were accepted.
    n_topics_, n_iter_ : int
        Nodes, and sweeps of each chain.
    trace_ : `pluri.inference.mcmc.Trace`
    position_ : dict of arrays
        All of the fitted draw; see `pluri.topics.concept_graph.state`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics import ConceptGraph
    >>> rng = np.random.default_rng(0)
    >>> topics = np.kron(np.eye(3), np.full(4, 0.25))
    >>> shares = np.repeat([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]], 20, axis=0)
    >>> X = np.array([rng.multinomial(40, row) for row in shares @ topics])
    >>> model = ConceptGraph(n_levels=2, topic_word_prior=0.1, random_state=0).fit(X)
    >>> model.node_depth_
    array([0, 1, 1])
    >>> model.edge_count_
    array([20, 20])
    """

    def __init__(
        self,
        n_levels: int = 3,
        *,
        max_nodes_per_level: int | str | None = "auto",
        alpha: float = 1.0,
        beta: float | str = "learn",
        topic_word_prior: float | str = "learn",
        level_prior: str = "geometric",
        tau_prior: tuple[float, float] = (1.0, 1.0),
        feasible: str = "next_level",
        graph: Any = None,
        path_sampler: str = "dp",
        init: str = "topics",
        n_joint: int = 1,
        n_warmup: int = 100,
        n_draws: int = 50,
        thin: int = 1,
        n_chains: int = 1,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[mcmc.Trace], bool | None] | None = None,
    ) -> None:
        self.n_levels = n_levels
        self.max_nodes_per_level = max_nodes_per_level
        self.alpha = alpha
        self.beta = beta
        self.topic_word_prior = topic_word_prior
        self.level_prior = level_prior
        self.tau_prior = tau_prior
        self.feasible = feasible
        self.graph = graph
        self.path_sampler = path_sampler
        self.init = init
        self.n_joint = n_joint
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    # Learning --------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Sample the graph.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Whole counts.
        y : array-like of shape (n_documents,), optional
            Node of `graph` at which each document's path ends; -1 or None for documents without a label. Without a
            graph, whose nodes it names, it is not used; if it holds strings, a warning says so.

        Returns
        -------
        self
        """
        with restored_on_failure(self):
            self._check_settings()
            counts = check_documents(self, X)
            most = None if isinstance(self.max_nodes_per_level, str) else self.max_nodes_per_level
            given = read_graph(self.graph, self.n_levels, most, deeper=self.feasible == "deeper")
            labels = self._read_labels(y, given, counts.shape[0])
            tokens = tokens_of(counts)
            kernel = self._kernel(tokens.words, tokens.offsets, tokens.n_words, given, labels, None)
            self._run(kernel, given, None)
        return self

    def partial_fit(self, X: Any, y: Any = None, *, freeze: bool = True) -> Self:
        """Go on with further documents; new nodes and edges may appear.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        y : array-like of shape (n_documents,), optional
            As in :meth:`fit`.
        freeze : bool, default=True
            Whether paths and levels of the documents seen before stay as they are.

        Returns
        -------
        self
        """
        if not hasattr(self, "position_"):
            return self.fit(X, y)
        with restored_on_failure(self):
            self._check_settings()
            counts = check_documents(self, X, reset=False, whom="partial_fit")
            tokens = tokens_of(counts)
            given = GivenGraph(list(self._names), *self._given)
            labels = self._read_labels(y, given, counts.shape[0])
            n_old, before = len(self.paths_), self.position_
            words = np.concatenate([self._words_seen, tokens.words])
            offsets = np.concatenate([self._offsets, self._offsets[-1] + tokens.offsets[1:]])
            frozen = np.arange(n_old + counts.shape[0]) < n_old if freeze else None
            kernel = self._kernel(
                words, offsets, tokens.n_words, given, np.concatenate([self._document_labels, labels]), frozen
            )
            rng = as_generator(self.random_state)
            tau = rng.beta(*self.tau_prior, size=counts.shape[0]).clip(1e-6, 1 - 1e-6)
            start = {
                **before, "path": np.vstack([before["path"], np.full((counts.shape[0], self.n_levels), -1)]),
                "level": np.concatenate([before["level"], np.zeros(len(tokens.words), dtype=np.int8)]),
                "tau": np.concatenate([before["tau"], tau]),
            }  # fmt: skip
            self._run(kernel, given, start)
        return self

    def _read_labels(self, y: Any, given: GivenGraph, n_documents: int) -> Integers:
        if y is not None and self.graph is not None:
            return read_labels(y, given, n_documents)
        if y is not None and any(isinstance(value, str) for value in np.ravel(np.asarray(y, dtype=object))):
            warnings.warn(
                f"{type(self).__name__}: y is not used without a graph whose nodes it names; give graph=",
                UserWarning,
                stacklevel=4,
            )
        return np.full(n_documents, -1, dtype=np.int64)

    def _check_settings(self) -> None:
        for name, least in (
            ("n_levels", 1), ("n_joint", 0), ("n_warmup", 0), ("n_draws", 1), ("thin", 1), ("n_chains", 1),
        ):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
        if self.n_levels > 100:
            raise ValueError(f"n_levels must be at most 100, got {self.n_levels}")
        most = self.max_nodes_per_level
        whole = isinstance(most, Integral) and not isinstance(most, bool) and most >= 1
        if not (most is None or whole or (isinstance(most, str) and most == "auto")):
            raise ValueError(f"max_nodes_per_level must be 'auto', None or a whole number of at least 1, got {most!r}")
        for name in ("alpha", "beta", "topic_word_prior"):
            value = getattr(self, name)
            if name != "alpha" and isinstance(value, str) and value == "learn":
                continue
            if not isinstance(value, Real) or isinstance(value, bool) or not 1e-8 <= float(value) <= 1e6:
                learned = "" if name == "alpha" else "'learn' or "
                raise ValueError(f"{name} must be {learned}a number from 1e-8 to 1e6, got {value!r}")
        try:
            a, b = (float(value) for value in self.tau_prior)
        except (TypeError, ValueError):
            a = b = float("nan")
        if not (0 < a < np.inf and 0 < b < np.inf):
            raise ValueError(f"tau_prior must be two positive numbers, got {self.tau_prior!r}")
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")

    def _kernel(
        self, words: Any, offsets: Integers, n_words: int, given: GivenGraph, labels: Integers, frozen: Any
    ) -> ConceptGraphGibbs:
        a, b = self.tau_prior
        most = self.max_nodes_per_level
        if isinstance(most, str):
            fullest = int(np.bincount(given.depth)[2:].max(initial=0))
            most = max(USUAL_NODES, fullest + FIRST_BLANKS if fullest else 0)
        return ConceptGraphGibbs(
            words, offsets, n_words, int(self.n_levels), most, float(self.alpha), self.beta,
            self.topic_word_prior, (float(a), float(b)), self.level_prior, self.feasible, given.depth, labels, frozen,
            int(self.n_joint), self.path_sampler,
        )  # fmt: skip

    def _run(self, kernel: ConceptGraphGibbs, given: GivenGraph, start: Position | None) -> None:
        def first(rng: np.random.Generator) -> Position:
            if start is not None:
                return start
            if self.graph is None and self.init == "topics":
                return arranged_start(rng, kernel)
            return self._labelled_start(rng, kernel, given)

        with unnamed_warnings_ignored():
            trace = mcmc.sample(
                kernel, first, n_draws=int(self.n_draws), n_warmup=int(self.n_warmup), n_chains=int(self.n_chains),
                thin=int(self.thin), record=kernel.record, random_state=as_generator(self.random_state),
                n_jobs=self.n_jobs, verbose=self.verbose, callback=self.callback, warn=False,
                draw_if_interrupted=True,
            )  # fmt: skip
        self._store(kernel, given, trace)
        if self.max_nodes_per_level is None and self.n_topics_ > max(len(given.depth), kernel.n_documents / 2):
            warnings.warn(
                f"{type(self).__name__}: {self.n_topics_} nodes for {kernel.n_documents} documents; give "
                "max_nodes_per_level, or a larger topic_word_prior",
                UserWarning,
                stacklevel=4,
            )
        warn_if_interrupted(trace.interrupted, type(self).__name__, self.n_iter_)

    def _labelled_start(self, rng: np.random.Generator, kernel: ConceptGraphGibbs, given: GivenGraph) -> Position:
        """Labelled documents after some sweeps of their own; the others join them at the nodes that are there."""
        position = dict(kernel.start(rng, given.edges))
        assert kernel.labels is not None
        known = kernel.labels >= 0
        if self.init == "root" or not known.any() or known.all():
            return position
        position["path"] = np.where(known[:, None], position["path"], -1)
        state = kernel.init(rng, position, seat=False)
        for _ in range(LABELLED_SWEEPS):
            kernel.visit(rng, state, rng.permutation(np.flatnonzero(known)))
        n_nodes = state.graph.n_nodes.copy()
        state.graph.n_nodes[:] = state.graph.n_used
        kernel.visit(rng, state, rng.permutation(np.flatnonzero(~known)))
        state.graph.n_nodes[:] = n_nodes
        return state.position

    # What is kept ----------------------------------------------------------------------------------------------------

    def _store(self, kernel: ConceptGraphGibbs, given: GivenGraph, trace: mcmc.Trace) -> None:
        states: list[GraphState] = [end.state for end in trace.ends]
        for state in states:
            if state.best is None:  # Ctrl-C came during the warm-up
                state.best, state.best_density = state.position, state.log_density
        best = int(np.argmax([state.best_density for state in states]))
        state = states[best]
        assert state.best is not None
        position = _sorted_nodes(state.best, kernel.n_documents)
        fitted = kernel.init(np.random.default_rng(0), position)
        graph, n = fitted.graph, len(position["node_depth"])
        eta = fitted.topic_word_prior
        self.position_ = position
        self.components_ = np.asarray(graph.word_count[:, :n].T + eta, dtype=np.float64)
        self.topic_word_ = self.components_ / self.components_.sum(axis=1, keepdims=True)
        total: Array = graph.total[:n].astype(np.float64)
        self.topic_weight_ = np.full(n, 1.0 / n) if total.sum() == 0 else np.divide(total, total.sum())
        self.node_depth_ = position["node_depth"].astype(np.int64) - 1
        names, kept = position["node_name"], position["node_protected"]
        self.node_labels_ = [given.names[name] if keep else None for name, keep in zip(names, kept)]
        self.node_documents_ = graph.visits[:n].copy()
        edge = graph.edge[:n, :n]
        self.edges_ = np.argwhere(edge > 0)
        upper, lower = self.edges_.T
        self.edge_count_ = edge[upper, lower].astype(np.int64)
        self._step = graph.probability[:n, :n] * (graph.depth[:n, None] < graph.depth[None, :n])
        if not kernel.deeper:
            self._step *= graph.depth[:n, None] + 1 == graph.depth[None, :n]
        self.edge_probability_ = self._step[upper, lower]
        self.end_probability_ = graph.probability[:n, -1].copy()
        self.edge_stability_ = np.array(
            [state.presence.get((int(names[x]), int(names[y])), 0) / max(1, state.n_collected) for x, y in self.edges_]
        )
        self.paths_ = position["path"].astype(np.int64)
        self.labels_ = self.paths_[np.arange(len(self.paths_)), (self.paths_ >= 0).sum(axis=1) - 1]
        self.log_joint_ = np.asarray(trace.stats["log_density"])
        self.best_log_joint_, self.best_chain_ = float(state.best_density), best
        self.beta_, self.topic_word_prior_ = fitted.beta, eta
        self.acceptance_ = {
            name: float(np.mean(trace.stats[name]))
            for name in ("joint", "swap", "beta", "words")
            if name in trace.stats
        }
        self.n_topics_, self.n_iter_ = n, n_sweeps(trace)
        self.trace_ = _lean(trace)
        self._words_seen, self._offsets, self._document_labels = kernel.words, kernel.offsets, kernel.labels
        self._names, self._given = list(given.names), (given.depth, given.edges)

    def _fitted(self) -> FittedGraph:
        check_is_fitted(self, "position_")
        a, b = self.tau_prior
        return FittedGraph.of(
            self.topic_word_, self._step, self.end_probability_, self.n_levels, self.level_prior, (float(a), float(b))
        )

    # What is asked ---------------------------------------------------------------------------------------------------

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

    def paths(self, X: Any) -> Integers:
        """Most probable path of each document: nodes from the root, -1 after its end."""
        fitted = self._fitted()
        counts = check_documents(self, X, reset=False, whom="paths", empty="ignore")
        return fitted.paths[fitted.posterior(counts).path_share.argmax(axis=1)]

    def _held_out(self, X: Any, method: str, rng: np.random.Generator, **options: Any) -> HeldOut:
        return held_out(self._fitted(), X, method, rng, **options)

    def sample(
        self, n_documents: int = 1, *, n_words_per_document: int | None = None, random_state: RandomState = None
    ) -> tuple[sparse.csr_matrix, Integers]:
        """Draw documents from the fitted graph.

        Parameters
        ----------
        n_documents : int, default=1
        n_words_per_document : int, optional
            By default the mean of the training documents, rounded.
        random_state : int, Generator or None
            By default that of the model.

        Returns
        -------
        X : csr_matrix of shape (n_documents, n_words)
        paths : array of shape (n_documents, n_levels)
        """
        fitted = self._fitted()
        if not isinstance(n_documents, Integral) or n_documents < 1:
            raise ValueError(f"n_documents must be a whole number of at least 1, got {n_documents!r}")
        size = round(float(np.diff(self._offsets).mean())) if n_words_per_document is None else n_words_per_document
        if not isinstance(size, Integral) or size < 0:
            raise ValueError(f"n_words_per_document must be a whole number of at least 0, got {size!r}")
        rng = as_generator(self.random_state if random_state is None else random_state)
        chosen, shares = fitted.draw_shares(rng, int(n_documents))
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
            "words": str(self.topic_word_.shape[1]), "beta": f"{self.beta_:.3g}",
            "topic_word_prior": f"{self.topic_word_prior_:.3g}", "log joint": f"{self.best_log_joint_:.1f}",
        }  # fmt: skip

    def summary(self, n_words: int = 6) -> str:
        """The nodes, where they lead, and their words, on a page of plain text."""
        check_is_fitted(self, "position_")
        lines = [
            f"{type(self).__name__}: {self.n_topics_} nodes, {len(self.edges_)} edges, {len(self.paths_)} documents",
            f"log joint {self.best_log_joint_:.1f}; beta {self.beta_:.3g}, words' prior {self.topic_word_prior_:.3g}",
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


#: Sweeps over the labelled documents before the others join them.
LABELLED_SWEEPS = 30


def _sorted_nodes(position: Position, n_documents: int) -> Position:
    """The same with nodes by depth and number of documents."""
    path = np.asarray(position["path"])
    visits = np.bincount(path[path >= 0], minlength=len(position["node_depth"]))
    order = np.lexsort((position["node_name"], -visits, position["node_depth"]))
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order))
    atoms = np.asarray(position["order"])[order]
    return {
        **position, **{name: position[name][order] for name in ("node_depth", "node_protected", "node_name")},
        "order": np.where(atoms >= 0, number[np.maximum(atoms, 0)], atoms).astype(np.int32),
        "path": np.where(path >= 0, number[np.maximum(path, 0)], -1).astype(np.int32),
    }  # fmt: skip


def _lean(trace: mcmc.Trace) -> mcmc.Trace:
    """The draws without the positions of the chains, which are as large as the corpus."""
    from dataclasses import replace

    return replace(trace, ends=())
