"""Hierarchical Pachinko allocation: super-topics that share their sub-topics, as many as one asks for.

The model and its sampler are described in `pluri.topics.hierarchical.pachinko_gibbs`.

`PachinkoTopics` says of new documents their topics and their probability, and makes some up; its
`left_to_right` works as that of `pluri.topics.hierarchical.fitted_tree`, with the state of a token in
place of its level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.inference import mcmc
from pluri.topics import checked_state
from pluri.topics.documents import Tokens, tokens_of
from pluri.topics.held_out import HeldOut
from pluri.topics.hierarchical.fitted_tree import dirichlet_rows, shuffled_tokens
from pluri.topics.hierarchical.pachinko_gibbs import PachinkoGibbs
from pluri.topics.hierarchical.sampled_hierarchy import SampledHierarchy
from pluri.topics.topic_graph import Hierarchy
from pluri.validation import Allowed, Number, Only, RandomState, Whole, check_parameters

Array = NDArray[np.float64]
#: Where priors start that are learned.
FIRST_PRIOR = 0.1


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


class HierarchicalPachinko(SampledHierarchy):
    """Root, super-topics and sub-topics, each with words of its own; every super-topic leads to every sub-topic.

    Parameters
    ----------
    n_super, n_sub : int, default=25
        Number of super-topics and of sub-topics.
    super_prior, sub_prior : float or "learn", default="learn"
        Dirichlet parameters of a document's shares of the super-topics, and of the sub-topics of each; exits included.
        "learn": one for every super-topic, and for every sub-topic of each, which make the states of the training
        documents most probable, found during the warm-up.
    topic_word_prior : float, default=0.1
        Dirichlet parameter of the topics.
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
    topic_word_ : array of shape (1 + n_super + n_sub, n_words)
        Topics: the root, super-topics, sub-topics.
    components_ : array of shape (1 + n_super + n_sub, n_words)
        Counts of words in the nodes, plus the prior.
    topic_weight_ : array of shape (1 + n_super + n_sub,)
        Share of all tokens.
    super_prior_ : array of shape (n_super + 1,)
        Dirichlet parameters of the shares of {exit, super-topics}.
    sub_prior_ : array of shape (n_super, n_sub + 1)
        The same for {exit, sub-topics} of each super-topic.
    way_counts_ : int array of shape (n_super, n_sub + 1)
        Tokens that stay with each super-topic (first column), and that go from it to each sub-topic.
    n_topics_ : int
    log_joint_ : array of shape (n_chains, n_draws)
        Log joint probability of each draw.
    best_log_joint_ : float
        That of the state that became the model.
    trace_ : Trace
        Of each draw, tokens of each node; its log density is `log_joint_`.
    converged_ : bool
        Whether the chains agree on the log joint probability (R-hat of at most 1.1).
    n_iter_ : int
        Sweeps of each chain.

    References
    ----------
    .. [1] Mimno, D., Li, W. and McCallum, A. (2007). Mixtures of hierarchical topics with Pachinko allocation. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.hierarchical import HierarchicalPachinko
    >>> X = np.repeat([[5, 9, 0, 0], [5, 0, 9, 0], [5, 0, 0, 9]], 8, axis=0)
    >>> model = HierarchicalPachinko(2, 3, n_warmup=50, n_draws=20, random_state=0).fit(X)
    >>> model.topic_word_.shape, model.transform(X).shape
    ((6, 4), (24, 6))
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_super": Whole(1),
        "n_sub": Whole(1),
        "super_prior": Number(above=0) | Only("learn"),
        "sub_prior": Number(above=0) | Only("learn"),
        "topic_word_prior": Number(above=0),
    }

    def __init__(
        self,
        n_super: int = 25,
        n_sub: int = 25,
        *,
        super_prior: float | Literal["learn"] = "learn",
        sub_prior: float | Literal["learn"] = "learn",
        topic_word_prior: float = 0.1,
        n_warmup: int = 300,
        n_draws: int = 100,
        thin: int = 1,
        n_chains: int = 1,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[Any], bool | None] | None = None,
    ):
        self.n_super = n_super
        self.n_sub = n_sub
        self.super_prior = super_prior
        self.sub_prior = sub_prior
        self.topic_word_prior = topic_word_prior
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _kernel(self, tokens: Tokens) -> PachinkoGibbs:
        check_parameters(self)
        given = {"root_prior": self.super_prior, "sub_prior": self.sub_prior}
        first = {name: FIRST_PRIOR if value == "learn" else float(value) for name, value in given.items()}
        return PachinkoGibbs(
            tokens,
            np.full(self.n_super + 1, first["root_prior"]),
            np.full((self.n_super, self.n_sub + 1), first["sub_prior"]),
            float(self.topic_word_prior),
            tuple(name for name, value in given.items() if value == "learn"),
        )

    def _start(self, kernel: Any) -> Any:
        return kernel.start()

    def _store(self, tokens: Tokens, position: Any, trace: mcmc.Trace) -> None:
        self.super_prior_, self.sub_prior_ = np.array(position["root_prior"]), np.array(position["sub_prior"])
        n_super, n_places = self.sub_prior_.shape
        supers, subs = position["supers"].astype(np.int64), position["subs"].astype(np.int64)
        ways = np.bincount(supers * n_places + subs, minlength=(n_super + 1) * n_places)
        self.way_counts_ = ways.reshape(n_super + 1, n_places)[1:]
        self.topic_word_prior_ = float(self.topic_word_prior)
        nodes = np.where(subs > 0, n_super + subs, supers)
        self._store_counts(tokens, nodes, n_super + n_places)

    def _node_prior(self) -> float:
        return self.topic_word_prior_

    def _prepared(self) -> PachinkoTopics:
        check_is_fitted(self, "topic_word_")
        return PachinkoTopics(self.topic_word_, self.super_prior_, self.sub_prior_)

    def _check_learned(self, n_topics: int, n_words: int) -> None:
        priors = checked_state.numbers("sub_prior_", self.sub_prior_, (None, None), above=0)
        n_super, n_places = priors.shape
        if n_super < 1 or n_places < 2 or n_super + n_places != n_topics:
            raise ValueError(f"sub_prior_ must belong to {n_topics} topics, got shape {priors.shape}")
        checked_state.numbers("super_prior_", self.super_prior_, (n_super + 1,), above=0)
        checked_state.numbers("way_counts_", self.way_counts_, priors.shape, least=0)
        checked_state.number("topic_word_prior_", self.topic_word_prior_, above=0)

    def _seed(self) -> int:
        """Of the random numbers that documents are folded in with: the same whenever the model is asked."""
        return int(self.random_state) if isinstance(self.random_state, int | np.integer) else 0

    def _place(self, X: Any) -> Array:
        return self._prepared().place(X, self._seed())

    def _hierarchy(self) -> Hierarchy:
        """Edges that tokens take, and the share of the tokens below a node that take them."""
        n_super, n_places = self.way_counts_.shape
        depth = np.repeat([0, 1, 2], [1, n_super, n_places - 1])
        through = self.way_counts_.sum(axis=1)
        supers = np.flatnonzero(through)
        above, below = np.nonzero(self.way_counts_[:, 1:])
        edges = np.concatenate(
            [
                np.column_stack([np.zeros_like(supers), supers + 1]),
                np.column_stack([above + 1, below + 1 + n_super]),
            ]
        )
        share = through[supers] / max(through.sum(), 1)
        weight = np.concatenate([share, self.way_counts_[above, below + 1] / through[above]])
        return Hierarchy(depth, edges, weight)

    def _facts(self) -> dict[str, str]:
        return {
            "super-topics": str(len(self.way_counts_)), "sub-topics": str(self.way_counts_.shape[1] - 1),
            "words": str(self.topic_word_.shape[1]), "log joint": f"{self.best_log_joint_:.1f}",
        }  # fmt: skip

    def summary(self, n_words: int = 8, n_super: int = 25, n_sub: int = 3) -> str:
        """The super-topics with the sub-topics that they lead to most, on one page of plain text."""
        check_is_fitted(self, "topic_word_")
        words = self.top_words(n_words)
        through = self.way_counts_.sum(axis=1)
        total = max(1, int(through.sum()))
        lines = [
            f"{type(self).__name__}: " + "; ".join(f"{name} {value}" for name, value in self._facts().items()),
            "",
            f"root ({self.topic_weight_[0]:.0%} of the tokens): {' '.join(words[0])}",
        ]
        for s in np.argsort(-through, kind="stable")[:n_super]:
            lines.append(f"  super {s + 1} ({through[s] / total:.0%}): {' '.join(words[s + 1])}")
            ways = self.way_counts_[s, 1:]
            for t in np.argsort(-ways, kind="stable")[:n_sub]:
                if ways[t] > 0:
                    node = 1 + len(self.way_counts_) + t
                    lines.append(f"    {node} ({ways[t] / through[s]:.0%}): {' '.join(words[node])}")
        return "\n".join(lines)
