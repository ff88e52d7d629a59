"""Collapsed Gibbs sampling for latent Dirichlet allocation.

Topics ``phi_k ~ Dirichlet(e_k)`` and proportions ``theta_d ~ Dirichlet(a)`` are integrated out; every token has a topic
z. With counts n_dk of topic k in document d, n_kv of word v in topic k, and E_k = sum_v e_kv, A = sum_k a_k,

    p(z_i = k | rest) = (n_dk + a_k) (n_kv + e_kv) / (n_k + E_k) / constant        (counts without token i),
    log p(w, z) = sum_k [lgamma(E_k) - lgamma(n_k + E_k) + sum_v {lgamma(n_kv + e_kv) - lgamma(e_kv)}]
                + sum_d [lgamma(A) - lgamma(n_d + A) + sum_k {lgamma(n_dk + a_k) - lgamma(a_k)}]    [1]_.

Memory is one number per token and one per word and topic; document counts are made anew from the tokens.

References
----------
.. [1] Griffiths, T. L. and Steyvers, M. (2004). Finding scientific topics. PNAS 101, 5228-5235.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pluri.topics.documents import Tokens
from pluri.topics.lda.sampling.fold_in import topics_given_words
from pluri.topics.lda.sampling.partitioned_sweeps import Partition, partition, run_sweep
from pluri.topics.lda.sampling.priors_learning import PriorLearning, learn_priors
from pluri.topics.lda.sampling.topic_assignments import (
    LARGEST_PRIOR,
    SMALLEST_PRIOR,
    Counts,
    GibbsState,
    Part,
    Room,
    checked_priors,
)
from pluri.validation import Allowed, Only, Whole, check_parameters

Array = NDArray[np.float64]
Integers = NDArray[np.int32]
Position = Mapping[str, NDArray[Any]]
Method = Literal["auto", "dense", "sparse"]

#: With more topics than this a sweep reads only those that a word has.
MANY_TOPICS = 256
#: With fewer tokens than this for each thread, one does the work of all: it is done sooner than they start.
FEW_TOKENS = 10_000


@dataclass(frozen=True, eq=False)
class CollapsedGibbs:
    """Collapsed Gibbs sampler of latent Dirichlet allocation: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``topics`` (n_tokens,), -1 for a token that has none yet, and optionally ``doc_topic_prior``
    and ``topic_word_prior`` where they are not those of the kernel. Tokens without a topic get one in turn, each given
    those before it; but `start`, a draw from the prior, leads to better topics.

    Parameters
    ----------
    tokens : Tokens
    n_components : int
        Number of topics.
    doc_topic_prior : float or array of shape (n_components,), default=0.1
    topic_word_prior : float, or array of shape (n_words,) or (n_components, n_words), default=0.01
        The last favours given words in given topics.
    method : {"auto", "dense", "sparse"}, default="auto"
        "dense" goes through all topics for each token, "sparse" through those that its word has; both draw from the
        same distribution. "auto" takes the latter for more than 256 topics, unless the prior differs by topic.
    n_threads : int, default=1
        See `partitioned_sweeps`: one thread is exact, several change totals of topics a little late.
        Results depend on their number but not on their scheduling.
    learning : PriorLearning, optional
        Which priors are learned, and how.
    average_every : int, default=0
        After the warm-up (or from the start, if `averaging`), add the estimate of the topics to the mean that the state
        keeps every so many sweeps; 0 keeps none.
    first_topics : array of shape (n_components, n_words), optional
        Distributions of words that chains begin with.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.inference import mcmc
    >>> from pluri.topics.documents import tokens_of
    >>> from pluri.topics.lda.sampling.gibbs import CollapsedGibbs
    >>> X = sparse.csr_matrix([[5, 5, 0, 0], [0, 0, 5, 5]] * 10)
    >>> kernel = CollapsedGibbs(tokens_of(X), 2)
    >>> trace = mcmc.sample(kernel, kernel.start, record=kernel.record, n_draws=20, n_warmup=30, n_chains=1,
    ...                     random_state=0, warn=False)
    >>> np.sort(trace.ends[0].state.topic_word().round(1), axis=0)[:, [0, 3]]
    array([[0. , 0. ],
           [0.5, 0.5]])
    """

    tokens: Tokens
    n_components: int
    doc_topic_prior: Any = 0.1
    topic_word_prior: Any = 0.01
    method: Method = "auto"
    n_threads: int = 1
    learning: PriorLearning | None = None
    average_every: int = 0
    averaging: bool = False
    first_topics: Array | None = None
    _partition: Partition | None = field(init=False, repr=False)
    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1), "n_threads": Whole(1), "average_every": Whole(0),
        "method": Only("auto", "dense", "sparse"),
    }  # fmt: skip

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.tokens.n_tokens >= 2**31:
            raise ValueError(f"tokens must be fewer than 2 ** 31, got {self.tokens.n_tokens}")
        _, eta = self._priors()
        if self.method == "sparse" and eta.ndim == 2:
            raise ValueError("method='sparse' needs a topic_word_prior that is the same for all topics; use 'dense'")
        if self.learning is not None and self.learning.topic_word is not None and eta.ndim > 0:
            raise ValueError(f"topic_word_prior must be a number to be learned, got shape {eta.shape}")
        cut = partition(self.tokens, self.n_threads) if self.n_threads > 1 else None
        object.__setattr__(self, "_partition", cut)

    def adaptation(self, n_warmup: int) -> AverageAfterWarmup | None:
        """Nothing is tuned; but the mean of the topics is kept from the end of the warm-up on."""
        return AverageAfterWarmup() if self.average_every else None

    def start(self, rng: np.random.Generator) -> Position:
        """Where a chain begins: topics drawn from the prior.

        If there are topics to begin with, or the prior favours words in topics, given the words and these topics, or
        the prior means of the topics: otherwise chains would find other topics first, and keep them.
        """
        from pluri.topics.lda.sampling._gibbs_kernels import draw_topics

        alpha, eta = self._priors()
        phi = self.first_topics
        if phi is None and eta.ndim == 2:
            phi = eta / eta.sum(axis=1, keepdims=True)
        if phi is not None:
            return {"topics": topics_given_words(phi, alpha, self.tokens, rng, self.n_threads)}
        topics = np.zeros(self.tokens.n_tokens, dtype=np.int32)
        draw_topics(self.tokens.offsets, np.cumsum(alpha), _seeds(rng), topics)
        return {"topics": topics}

    def init(self, rng: np.random.Generator, position: Position) -> GibbsState:
        """State at a position; tokens without a topic get one first."""
        topics = np.array(position["topics"], dtype=np.int32)
        if topics.shape != (self.tokens.n_tokens,):
            raise ValueError(f"position['topics'] must have shape {(self.tokens.n_tokens,)}, got {topics.shape}")
        if topics.size and not -1 <= topics.min() <= topics.max() < self.n_components:
            raise ValueError(
                f"position['topics'] must lie between -1 and {self.n_components - 1}, got {topics.min()} to "
                f"{topics.max()}"
            )
        alpha, eta = checked_priors(
            position.get("doc_topic_prior", self.doc_topic_prior),
            position.get("topic_word_prior", self.topic_word_prior), self.n_components, self.tokens.n_words,
        )  # fmt: skip
        state = GibbsState(self.tokens, topics, alpha, eta)
        self._seat(rng, state, 0)
        return state

    def step(self, rng: np.random.Generator, state: GibbsState) -> tuple[GibbsState, dict[str, float]]:
        """One sweep over all tokens, in place, and over the priors when it is their turn."""
        state._log_density = None
        moved = self._sweep(rng, state)
        state.n_sweeps += 1
        if self.learning is not None and state.n_sweeps % self.learning.every == 0:
            learn_priors(rng, self.learning, state)
        if self.averaging and self.average_every and state.n_sweeps % self.average_every == 0:
            state.average()
        return state, {"moved": moved / max(self.tokens.n_tokens, 1)}

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of each sweep: the priors, not the topics of all tokens."""
        eta = position["topic_word_prior"]
        return {"doc_topic_prior": position["doc_topic_prior"]} | ({"topic_word_prior": eta} if eta.ndim == 0 else {})

    def extended(self, rng: np.random.Generator, state: GibbsState, new: Tokens) -> tuple[CollapsedGibbs, GibbsState]:
        """Kernel and state with further documents, whose tokens get topics in turn given all that is there."""
        if new.n_words != self.tokens.n_words:
            raise ValueError(f"new must have {self.tokens.n_words} words, as those before, got {new.n_words}")
        old = self.tokens
        tokens = Tokens(
            np.concatenate([old.words, new.words]),
            np.concatenate([old.documents, new.documents + np.int32(old.n_documents)]),
            np.concatenate([old.offsets, new.offsets[1:] + old.n_tokens]),
            old.n_words,
        )
        kernel = replace(self, tokens=tokens)
        topics = np.concatenate([state.topics, np.full(new.n_tokens, -1, dtype=np.int32)])
        longer = GibbsState(tokens, topics, state.doc_topic_prior, state.topic_word_prior)
        longer.n_sweeps, longer.n_averaged = state.n_sweeps, state.n_averaged
        longer.means = state.means
        kernel._seat(rng, longer, old.n_documents)
        return kernel, longer

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw priors, if they are learned, and topics of all tokens."""
        alpha, eta = self._priors()
        learning = self.learning or PriorLearning(doc_topic=None, topic_word=None)
        if learning.doc_topic is not None:
            prior, size = learning.drawn_under("doc_topic"), 1 if learning.symmetric else self.n_components
            alpha = np.broadcast_to(rng.gamma(prior.shape, 1.0 / prior.rate, size=size), self.n_components).copy()
        if learning.topic_word is not None:
            eta = np.asarray(learning.drawn_under("topic_word").sample(rng))
        alpha, eta = np.clip(alpha, SMALLEST_PRIOR, LARGEST_PRIOR), np.clip(eta, SMALLEST_PRIOR, LARGEST_PRIOR)
        topics = replace(self, doc_topic_prior=alpha, topic_word_prior=1.0).start(rng)["topics"]
        return {"topics": topics, "doc_topic_prior": alpha, "topic_word_prior": eta}

    def sample_words(self, rng: np.random.Generator, position: Position) -> Integers:
        """Draw the words of all tokens given their topics."""
        shape = (self.n_components, self.tokens.n_words)
        eta = np.broadcast_to(np.asarray(position.get("topic_word_prior", self.topic_word_prior)), shape)
        gammas = rng.standard_gamma(np.maximum(eta, 1e-10)) + 1e-300
        ends = np.cumsum(gammas / gammas.sum(axis=1, keepdims=True), axis=1)[position["topics"]]
        words = (rng.random((self.tokens.n_tokens, 1)) > ends).sum(axis=1)
        return words.clip(0, self.tokens.n_words - 1).astype(np.int32)

    def sweep(self, rng: np.random.Generator, position: Position, words: Integers) -> Position:
        """Position after a sweep given other words than the kernel's own."""
        tokens = replace(self.tokens, words=np.asarray(words, dtype=np.int32))
        order = np.lexsort((tokens.words, tokens.documents))
        learning = None if self.learning is None else replace(self.learning, every=1)
        kernel = replace(self, tokens=replace(tokens, words=tokens.words[order]), learning=learning)
        state = kernel.init(rng, {**position, "topics": np.asarray(position["topics"])[order]})
        moved = dict(kernel.step(rng, state)[0].position)
        moved["topics"][order] = moved["topics"].copy()
        return moved

    def _priors(self) -> tuple[Array, Array]:
        return checked_priors(self.doc_topic_prior, self.topic_word_prior, self.n_components, self.tokens.n_words)

    @property
    def _sparse(self) -> bool:
        if self.method == "auto":
            return self.n_components > MANY_TOPICS and np.ndim(self.topic_word_prior) < 2
        return self.method == "sparse"

    def _sweep(self, rng: np.random.Generator, state: GibbsState) -> int:
        from pluri.topics.lda.sampling._gibbs_kernels import dense_sweep

        seeds, tokens, width = (
            _seeds(rng, self.n_threads, self.n_threads),
            state.token_topics,
            state.word_topic.shape[1],
        )
        sweep: Any = dense_sweep
        active: tuple[NDArray[np.uint64], ...] = ()
        if self._sparse:
            from pluri.topics.lda.sampling._sparse_kernels import sparse_sweep

            sweep, active = sparse_sweep, (state.active_blocks(),)

        def run(part: Part, seeds: NDArray[np.uint64], totals: Integers, room: Room | None = None) -> int:
            counts = Counts(state.word_topic, totals)
            return int(sweep(tokens, part, counts, *active, state.priors, seeds, room or Room.of(width)))

        if self._partition is None:
            whole = Part(tokens.offsets[:-1], tokens.offsets[1:], 0, self.tokens.n_documents)
            return run(whole, seeds[0, 0], state.topic_totals, state.room)
        few = self.tokens.n_tokens < FEW_TOKENS * self.n_threads
        return run_sweep(run, self._partition, seeds, state.topic_totals, 1 if few else self.n_threads)

    def _seat(self, rng: np.random.Generator, state: GibbsState, first: int) -> None:
        from pluri.topics.lda.sampling._gibbs_kernels import seat

        if (state.topics < 0).any():
            counts = Counts(state.word_topic, state.topic_totals)
            seat(state.token_topics, first, counts, state.priors, _seeds(rng), state.room)


def _seeds(rng: np.random.Generator, *shape: int) -> NDArray[np.uint64]:
    """Starting points of the compiled loops' random numbers; never zero."""
    return rng.integers(0, 2**64, size=(*shape, 2), dtype=np.uint64) | np.uint64(1)


class AverageAfterWarmup:
    """Lets a kernel keep the mean of the topics once the warm-up is over."""

    def start(self, rng: np.random.Generator, kernel: CollapsedGibbs, state: GibbsState) -> CollapsedGibbs:
        """Begin without."""
        return kernel

    def update(self, rng: np.random.Generator, kernel: CollapsedGibbs, state: GibbsState, info: Any) -> CollapsedGibbs:
        """Nothing is learned from a sweep."""
        return kernel

    def finish(self, kernel: CollapsedGibbs) -> CollapsedGibbs:
        """From now on."""
        return replace(kernel, averaging=True)
