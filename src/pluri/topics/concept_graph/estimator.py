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

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np

from pluri.inference import mcmc
from pluri.priors.hyperpriors import Beta, Gamma
from pluri.topics.concept_graph.given_graph import GivenGraph, read_graph
from pluri.topics.concept_graph.kept import keep, warn_of_nodes
from pluri.topics.concept_graph.queries import FittedConceptGraph
from pluri.topics.concept_graph.sampling.gibbs import ConceptGraphGibbs
from pluri.topics.concept_graph.sampling.starts import arranged_start, labelled_start
from pluri.topics.concept_graph.sampling.state import Integers, Position
from pluri.topics.concept_graph.settings import ALLOWED, check_settings, labels_or_warning, most_nodes
from pluri.topics.documents import check_documents, tokens_of
from pluri.validation import RandomState, as_generator, restored_on_failure


class ConceptGraph(FittedConceptGraph):
    """Topics that form a graph, learned from documents, with or without a given graph and labels.

    Parameters
    ----------
    n_levels : int, default=3
        Levels of the graph, the root included.
    max_nodes_per_level : int, "auto", "given" or None, default="auto"
        Nodes of each level below the root, used or not. "auto" is 12 (25 published), or twelve more than the fullest
        level of `graph` if that is more; a warning tells if all of a level are used. "given" allows no nodes but those
        of `graph`. None begins with twelve and doubles them during the warm-up where more than half are used: on
        ordinary text with learned priors that may not end before there are hundreds, each of a few documents, and
        sweeps become slow.
    stick_alpha : float, default=1.0
        First parameter of the beta distribution of the sticks. A large one with a large `stick_beta` makes all sticks
        alike.
    stick_beta : float, Gamma or "learn", default="learn"
        Second parameter of the sticks: the larger, the more edges a node has. A number, a prior under which it is
        learned, or "learn", which is short for ``Gamma(1, 1)``.
    topic_word_prior : float, Gamma or "learn", default="learn"
        Dirichlet parameter eta of the words of every node; learned in the same way.
    level_prior : {"geometric", "dirichlet"}, default="geometric"
        How words spread over the nodes of a path.
    tau_prior : Beta, optional
        Prior of tau, the share of the last node; ``Beta(1, 1)`` by default. With "dirichlet", `a` and `b` are the
        concentrations of the last node and of each node above it.
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
    given_labels_ : list
        Names of the nodes of `graph`, the root first.
    nodes_by_level_ : array of shape (n_levels, 2)
        Nodes of each level, and how many there may be.
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
    stick_beta_, topic_word_prior_ : float
        Of the fitted graph.
    acceptance_ : dict of float
        Shares of joint moves ("joint"), swaps ("swap"), and walks of "stick_beta" and "topic_word_prior" that were
        accepted.
    n_topics_, n_iter_ : int
        Nodes, and sweeps of each chain.
    trace_ : Trace
        Of each draw, nodes by level, mean length of the paths and learned parameters; its log density is `log_joint_`.
    converged_ : bool
        Whether the chains agree on the log joint probability (R-hat of at most 1.1).
    draws_ : list of dict
        Up to ten draws of the best chain, evenly apart, by which new documents are judged; see
        `pluri.topics.concept_graph.evaluation.draws`.
    position_ : dict of arrays
        All of the fitted draw; see `pluri.topics.concept_graph.sampling.state`.

    Notes
    -----
    :meth:`held_out` has the methods "completion", "empirical" (`n_samples`), "left_to_right" (`n_particles`) and
    "exact". Their probabilities are averages over `draws_`; ``averaged=False`` takes those of the fitted draw alone.
    :meth:`predict_labels` names nodes of `graph`, where :meth:`predict` gives any node.

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

    _parameters = ALLOWED

    def __init__(
        self,
        n_levels: int = 3,
        *,
        max_nodes_per_level: int | str | None = "auto",
        stick_alpha: float = 1.0,
        stick_beta: float | Gamma | Literal["learn"] = "learn",
        topic_word_prior: float | Gamma | Literal["learn"] = "learn",
        level_prior: str = "geometric",
        tau_prior: Beta | None = None,
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
        self.stick_alpha = stick_alpha
        self.stick_beta = stick_beta
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
            self.check_settings()
            counts = check_documents(self, X)
            most = None if isinstance(self.max_nodes_per_level, str) else self.max_nodes_per_level
            given = read_graph(self.graph, self.n_levels, most, deeper=self.feasible == "deeper")
            labels = labels_or_warning(self, y, given, counts.shape[0])
            tokens = tokens_of(counts)
            kernel = self._kernel(tokens.words, tokens.offsets, tokens.n_words, given, labels, None)
            self._run(kernel, given, None)
        return self

    def check_settings(self) -> None:
        """Raise what `fit` would raise of the settings alone, before there are documents."""
        check_settings(self)

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
            self.check_settings()
            counts = check_documents(self, X, reset=False, whom="partial_fit")
            tokens = tokens_of(counts)
            given = GivenGraph(list(self.given_labels_), *self._given)
            labels = labels_or_warning(self, y, given, counts.shape[0])
            n_old, before = len(self.paths_), self.position_
            words = np.concatenate([self._words_seen, tokens.words])
            offsets = np.concatenate([self._offsets, self._offsets[-1] + tokens.offsets[1:]])
            frozen = np.arange(n_old + counts.shape[0]) < n_old if freeze else None
            kernel = self._kernel(
                words, offsets, tokens.n_words, given, np.concatenate([self._document_labels, labels]), frozen
            )
            rng = as_generator(self.random_state)
            tau = rng.beta(self._tau_prior.a, self._tau_prior.b, size=counts.shape[0]).clip(1e-6, 1 - 1e-6)
            start = {
                **before, "path": np.vstack([before["path"], np.full((counts.shape[0], self.n_levels), -1)]),
                "level": np.concatenate([before["level"], np.zeros(len(tokens.words), dtype=np.int8)]),
                "tau": np.concatenate([before["tau"], tau]),
            }  # fmt: skip
            self._run(kernel, given, start)
        return self

    def _kernel(
        self, words: Any, offsets: Integers, n_words: int, given: GivenGraph, labels: Integers, frozen: Any
    ) -> ConceptGraphGibbs:
        most = most_nodes(self.max_nodes_per_level, given, int(self.n_levels))
        return ConceptGraphGibbs(
            words, offsets, n_words, int(self.n_levels), most, float(self.stick_alpha), self.stick_beta,
            self.topic_word_prior, self._tau_prior, self.level_prior, self.feasible, given.depth, labels, frozen,
            int(self.n_joint), self.path_sampler,
        )  # fmt: skip

    def _run(self, kernel: ConceptGraphGibbs, given: GivenGraph, start: Position | None) -> None:
        def first(rng: np.random.Generator) -> Position:
            if start is not None:
                return start
            if self.graph is None and self.init == "topics":
                return arranged_start(rng, kernel)
            if self.init == "root":
                return kernel.start(rng, given.edges)
            return labelled_start(rng, kernel, given.edges)

        keep(self, kernel, given, self._sample(kernel, first))
        warn_of_nodes(self, given, kernel.n_documents)
