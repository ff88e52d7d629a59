"""Hierarchical Pachinko allocation: super-topics that share their sub-topics, as many as one asks for.

The model and its sampler are described in `pluri.topics.hierarchical.pachinko_gibbs`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pluri.inference import mcmc
from pluri.processes.concentration import check_count, check_positive
from pluri.topics.documents import Tokens, check_documents, tokens_of
from pluri.topics.held_out import HeldOut, empirical_likelihood, split_documents
from pluri.topics.hierarchical.fitted_pachinko import PachinkoTopics
from pluri.topics.hierarchical.held_out_halves import score_words
from pluri.topics.hierarchical.pachinko_gibbs import PachinkoGibbs
from pluri.topics.topic_graph import Hierarchy
from pluri.topics.topic_model import TopicModel
from pluri.validation import RandomState, as_generator, restored_on_failure

Array = NDArray[np.float64]


class HierarchicalPachinko(TopicModel):
    """Root, super-topics and sub-topics, each with words of its own; every super-topic leads to every sub-topic.

    Parameters
    ----------
    n_super, n_sub : int, default=25
        Number of super-topics and of sub-topics.
    super_prior, sub_prior : float, default=0.1
        Dirichlet parameters of a document's shares of the super-topics, and of the sub-topics of each; exits included.
        Where they start if they are learned.
    topic_word_prior : float, default=0.1
        Dirichlet parameter of the topics.
    learn_priors : bool, default=True
        Learn a parameter for every super-topic, and for every sub-topic of each, during the warm-up.
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

    def __init__(
        self,
        n_super: int = 25,
        n_sub: int = 25,
        *,
        super_prior: float = 0.1,
        sub_prior: float = 0.1,
        topic_word_prior: float = 0.1,
        learn_priors: bool = True,
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
        self.learn_priors = learn_priors
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any = None) -> Self:
        """Sample states of all tokens and keep the likeliest.

        After Ctrl-C the model is that of the sweeps so far, with a warning.

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
            tokens = tokens_of(check_documents(self, X))
            kernel = self._kernel(tokens)
            trace = mcmc.sample(
                kernel, kernel.start(), record=kernel.record, n_draws=self.n_draws, n_warmup=self.n_warmup,
                n_chains=self.n_chains, thin=self.thin, random_state=as_generator(self.random_state),
                n_jobs=self.n_jobs, backend="threads", verbose=int(self.verbose), callback=self.callback, warn=False,
                draw_if_interrupted=True,
            )  # fmt: skip
            self._store(tokens, trace)
        if trace.interrupted:
            warnings.warn("fit interrupted; the sweeps so far are kept", UserWarning, stacklevel=2)
        return self

    def _kernel(self, tokens: Tokens) -> PachinkoGibbs:
        n_super, n_sub = check_count(self.n_super, "n_super"), check_count(self.n_sub, "n_sub")
        return PachinkoGibbs(
            tokens,
            np.full(n_super + 1, check_positive(self.super_prior, "super_prior")),
            np.full((n_super, n_sub + 1), check_positive(self.sub_prior, "sub_prior")),
            check_positive(self.topic_word_prior, "topic_word_prior"),
            bool(self.learn_priors),
        )

    def _store(self, tokens: Tokens, trace: mcmc.Trace) -> None:
        states = [end.state for end in trace.ends]
        self.best_chain_ = int(np.argmax([state.best_log_density for state in states]))
        self.best_log_joint_ = float(states[self.best_chain_].best_log_density)
        best = states[self.best_chain_].best
        self.super_prior_, self.sub_prior_ = np.array(best["root_prior"]), np.array(best["sub_prior"])
        n_super, n_places = self.sub_prior_.shape
        supers, subs = best["supers"].astype(np.int64), best["subs"].astype(np.int64)
        n_nodes = n_super + n_places
        nodes = np.where(subs > 0, n_super + subs, supers)
        counts = np.bincount(nodes * tokens.n_words + tokens.words, minlength=n_nodes * tokens.n_words)
        counts = counts.reshape(n_nodes, tokens.n_words)
        ways = np.bincount(supers * n_places + subs, minlength=(n_super + 1) * n_places)
        self.way_counts_ = ways.reshape(n_super + 1, n_places)[1:]
        self.components_ = counts.astype(np.float64) + float(self.topic_word_prior)
        self.topic_word_ = self.components_ / self.components_.sum(axis=1, keepdims=True)
        sizes = counts.sum(axis=1)
        self.topic_weight_ = np.asarray(sizes / sizes.sum() if sizes.sum() else np.full(n_nodes, 1.0 / n_nodes))
        self.topic_word_prior_ = float(self.topic_word_prior)
        self.n_topics_ = n_nodes
        self.log_joint_ = np.asarray(trace.stats["log_density"])
        self.trace_ = trace.detached()
        self.n_iter_ = trace.n_warmup + trace.n_draws * trace.thin

    def _topics(self) -> PachinkoTopics:
        check_is_fitted(self, "topic_word_")
        return PachinkoTopics(self.topic_word_, self.super_prior_, self.sub_prior_)

    def _seed(self) -> int:
        """Of the random numbers that documents are folded in with: the same whenever the model is asked."""
        return int(self.random_state) if isinstance(self.random_state, int | np.integer) else 0

    def transform(self, X: Any) -> Array:
        """Share of each topic in each document.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)

        Returns
        -------
        array of shape (n_documents, 1 + n_super + n_sub)
            Rows sum to one; an empty document has the prior mean.
        """
        topics = self._topics()
        return topics.place(check_documents(self, X, reset=False, whom="transform", empty="ignore"), self._seed())

    def sample(
        self, n_documents: int = 1, length: int = 100, *, random_state: RandomState = None
    ) -> tuple[sparse.csr_matrix, Array]:
        """Make up documents.

        Parameters
        ----------
        n_documents : int, default=1
        length : int, default=100
            Words of each.
        random_state : int, Generator or None
            By default that of the model.

        Returns
        -------
        X : csr matrix of shape (n_documents, n_words)
        shares : array of shape (n_documents, 1 + n_super + n_sub)
        """
        topics = self._topics()
        check_count(n_documents, "n_documents")
        check_count(length, "length", 0)
        rng = as_generator(self.random_state if random_state is None else random_state)
        words, shares = topics.draw(rng, n_documents)
        return sparse.csr_matrix(rng.multinomial(length, words).astype(np.float64)), shares

    def _held_out(self, X: Any, method: str, rng: np.random.Generator, **options: Any) -> HeldOut:
        """Score documents by "completion" (share), "left_to_right" (n_particles) or "empirical" (n_samples)."""
        topics = self._topics()
        if method == "completion":
            observed, scored = split_documents(X, rng, **options)
            return score_words(topics.place(observed, self._seed()), self.topic_word_, scored)
        if method == "left_to_right":
            check_count(options.get("n_particles", 1), "n_particles")
            return topics.left_to_right(X, rng, **options)
        if method == "empirical":
            n_samples = check_count(options.pop("n_samples", 1000), "n_samples")
            return empirical_likelihood(topics.draw(rng, n_samples, **options)[0], X)
        raise ValueError(f"method must be 'completion', 'left_to_right' or 'empirical', got {method!r}")

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
