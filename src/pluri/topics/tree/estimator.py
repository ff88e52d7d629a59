"""A tree of topics as an estimator: general words near the top, special ones deep, nodes below several parents."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np

from pluri.inference import mcmc
from pluri.priors.hyperpriors import Gamma
from pluri.topics.documents import check_documents, tokens_of
from pluri.topics.tree.fitted_tree import FittedTree
from pluri.topics.tree.gibbs import TreeGibbs
from pluri.topics.tree.settings import MOST_SCALES, TreeSettings
from pluri.topics.tree.tree import tree_of
from pluri.validation import Allowed, Flag, Number, Only, RandomState, Whole, check_parameters, restored_on_failure

#: Share of the draws at the largest depth from which on the limit is said to bind.
BINDING = 0.5
#: Words for which settings are tried before documents are seen.
N_WORDS_TRIED = 1000


class TreeTopicModel(FittedTree):
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
    max_nodes : int, tuple of int or None, default=(5, 5, 15)
        Nodes of each scale, at most; scales after the last entry have as many as that. The first is taken as 1 with a
        root. None for no limit, where the tree grows without scale-dependent words.
    scale_dependent : bool, default=True
        Whether each word has one scale, which is learned.
    root : bool, default=True
        Whether the first scale has a single node, below which each document has its own proportions.
    topic_word_prior : float, default=1.0
        Parameter of the Dirichlet prior of topics. The default is that of the publication; it adds one token of every
        word of the scale to every topic, which is much for large vocabularies: 0.1 predicts new documents better.
    inference : {"truncated", "retrospective", "slice"}, default="truncated"
        A tree of given size, which is fast; or one whose scales and nodes are made as tokens need them. With
        scale-dependent words, the number of scales then varies too.
    width : {"retrospective", "adaptive"}, default="retrospective"
        With retrospective inference, make nodes as needed, which is exact; or give the whole leftover of a stick to one
        new node, which is not.
    concentration : float, Gamma or "learn", default="learn"
        All concentrations: a number, or a prior under which each is learned. "learn" is short for
        ``Gamma(1e-3, 1e-3)``, which is vague; where scales are made as needed it lets them have a single node, as
        nearly all of it is near zero: give one such as ``Gamma(1, 1)`` there.
    doc_concentration : float, Gamma, "learn" or None, default=None
        Concentration eta of documents' proportions, if it is not as the others. Under the vague prior it may end near
        zero, each document then having one node only: give 1.0, as was published, to compare scores.
    collapsed : bool, default=True
        Draw tokens of a truncated tree with topics and proportions integrated out, which needs fewer sweeps; otherwise
        given both.
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
        Of each draw, nodes, words and tokens of the first 16 scales, the number of scales, and concentrations; its log
        density is `log_joint_`.
    converged_ : bool
        Whether the chains agree on the log joint probability (R-hat of at most 1.1).
    n_iter_ : int
        Sweeps of each chain.

    Notes
    -----
    A document chooses among the nodes of one scale; which children their words come from is the same in all documents.
    So documents tell what the children of a node are together, and only weakly how they divide: chains that predict
    alike may differ in which children are shared.

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

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "max_depth": Whole(1) | Only(None),
        "scale_dependent": Flag(),
        "root": Flag(),
        "topic_word_prior": Number(above=0),
        "inference": Only("truncated", "retrospective", "slice"),
        "width": Only("retrospective", "adaptive"),
        "collapsed": Flag(),
        "n_trees": Whole(1),
    }

    def __init__(
        self,
        max_depth: int | None = 3,
        max_nodes: int | Sequence[int] | None = (5, 5, 15),
        *,
        scale_dependent: bool = True,
        root: bool = True,
        topic_word_prior: float = 1.0,
        inference: Literal["truncated", "retrospective", "slice"] = "truncated",
        width: Literal["retrospective", "adaptive"] = "retrospective",
        concentration: float | Gamma | Literal["learn"] = "learn",
        doc_concentration: float | Gamma | Literal["learn"] | None = None,
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
        self.concentration = concentration
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
            trace = self._sample(kernel, kernel.start)
            self._describe(trace, settings)
        return self

    def check_settings(self) -> None:
        """Raise what `fit` would raise of the settings alone, before there are documents."""
        self._settings(N_WORDS_TRIED)

    def _settings(self, n_words: int) -> TreeSettings:
        """Size and priors of a tree of so many words, or one sentence on what is wrong with the parameters."""
        check_parameters(self)
        if self.inference == "truncated" and (self.max_depth is None or self.max_nodes is None):
            which = "max_depth" if self.max_depth is None else "max_nodes"
            raise ValueError(f"{which} must be given with inference='truncated', got None")
        depth = MOST_SCALES if self.max_depth is None else self.max_depth
        if self.scale_dependent:
            if self.max_depth is None:
                raise ValueError("max_depth must be given with scale_dependent=True, got None")
            if n_words <= int(self.root):
                raise ValueError(f"X must have at least 2 words, one below the root, got n_features = {n_words}")
            depth = min(depth, n_words)
        nodes = (self.max_nodes,) if isinstance(self.max_nodes, int | np.integer) else self.max_nodes
        return TreeSettings(
            None if nodes is None else tuple(nodes), depth, bool(self.scale_dependent), bool(self.root),
            self.topic_word_prior, self.concentration, self.doc_concentration,
        )  # fmt: skip

    def _describe(self, trace: mcmc.Trace, settings: TreeSettings) -> None:
        states, log_joint = [end.state for end in trace.ends], self.log_joint_
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
        self.n_nodes_trace_ = trace["n_nodes"][..., :depth]
        self.doc_concentration_, self.usage_concentration_ = tree.doc_concentration, tree.usage_concentration
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
