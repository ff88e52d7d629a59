r"""Collapsed Gibbs sampling of hierarchical Pachinko allocation.

Below a root lie S super-topics, and below all of these the same T sub-topics; each of the 1 + S + T nodes is a topic
``phi ~ Dirichlet(eta)``. A document draws shares ``theta_r ~ Dirichlet(a)`` of {exit, super-topics} and for each
super-topic s shares ``theta_s ~ Dirichlet(b_s)`` of {exit, sub-topics}. A token goes down until it exits and is drawn
from the topic where it does so. With all shares and topics summed out, a token's state has weight

    root:         (a_0 + n_d0) f_root
    super s:      (a_s + n_ds) (b_s0 + n_ds0) / (sum_t b_st + n_ds) f_s
    pair (s, t):  (a_s + n_ds) (b_st + n_dst) / (sum_t b_st + n_ds) f_t,      f_k = (eta + n_kw) / (V eta + n_k)

[1]_. Where the priors of the shares are learned, they are those that make the states of the training documents most
probable: Minka's fixed point [2]_, now and then during the warm-up.

References
----------
.. [1] Mimno, D., Li, W. and McCallum, A. (2007). Mixtures of hierarchical topics with Pachinko allocation. ICML.
.. [2] Minka, T. (2000). Estimating a Dirichlet distribution. Technical report, MIT.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.topics.dirichlet_counts import CountTable, fixed_point
from pluri.topics.documents import Tokens

Array = NDArray[np.float64]
Position = Mapping[str, NDArray[Any]]


#: Sweeps before priors are first learned, from one time to the next, and fixed-point steps each time.
FIRST_LEARNED, INTERVAL, N_STEPS = 20, 10, 10
#: Added to the documents that speak for a place: what is never used keeps a chance.
PSEUDO_COUNT = 1e-3


@dataclass(frozen=True, eq=False)
class Uses:
    """How many tokens documents have in each place.

    Attributes
    ----------
    upper : CountTable
        Tokens by {exit, super-topics}; a row is a document.
    lower : CountTable
        Tokens by {exit, sub-topics} of each super-topic; a row is a document that has tokens there.
    """

    upper: CountTable
    lower: CountTable

    @classmethod
    def of(cls, tokens: Tokens, supers: NDArray[np.int32], subs: NDArray[np.int32], n_super: int, n_sub: int) -> Uses:
        """Count the states of all tokens."""
        from pluri.topics.hierarchical._pachinko_kernels import list_uses

        n_places, lengths = n_sub + 1, np.diff(tokens.offsets)
        found = np.empty((4, tokens.n_tokens), dtype=np.int32)
        n_used, n_ways = list_uses(
            tokens.offsets, supers, subs, np.zeros(n_super + 1, dtype=np.int32),
            np.zeros((n_super + 1, n_places), dtype=np.int32), np.empty(n_super + 1, dtype=np.int32),
            np.empty(min((n_super + 1) * n_places, int(lengths.max(initial=0))), dtype=np.int32), *found,
        )  # fmt: skip
        (used, held), (ways, taken) = found[:2, :n_used], found[2:, :n_ways]
        upper = CountTable.of(used, held, lengths, n_super + 1)
        rows = used > 0
        lower = CountTable.of(
            ways, taken, held[rows], n_super * n_places, groups=used[rows] - 1, n_groups=n_super
        )  # fmt: skip
        return cls(upper, lower)

    def log_marginal(self, root_prior: Array, sub_prior: Array) -> float:
        """Log probability of the states given the priors."""
        return self.upper.log_likelihood(root_prior) + self.lower.log_likelihood(sub_prior.ravel())

    def learn(self, name: str, prior: Array, n_steps: int = N_STEPS) -> Array:
        """Some steps of the fixed point for "root_prior" or "sub_prior"."""
        table = self.upper if name == "root_prior" else self.lower
        moved = fixed_point(prior.ravel(), table, shape=1.0 + PSEUDO_COUNT, max_iter=n_steps, tol=0.0, smallest=0.0)
        return moved.reshape(prior.shape)


class PriorLearning:
    """Learns the priors of the shares while a chain warms up."""

    def __init__(self) -> None:
        self.done = 0

    def start(self, rng: np.random.Generator, kernel: PachinkoGibbs, state: PachinkoState) -> PachinkoGibbs:
        """Begin with the priors that were given."""
        return kernel

    def update(
        self, rng: np.random.Generator, kernel: PachinkoGibbs, state: PachinkoState, info: Mapping[str, float]
    ) -> PachinkoGibbs:
        """Learn now and then, when topics have taken shape."""
        self.done += 1
        if self.done < FIRST_LEARNED or self.done % INTERVAL or state.uses is None:
            return kernel
        priors: Any = {name: state.uses.learn(name, getattr(kernel, name)) for name in kernel.learned}
        return replace(kernel, **priors)

    def finish(self, kernel: PachinkoGibbs) -> PachinkoGibbs:
        """Keep what was learned."""
        return kernel


class PachinkoState:
    """Where a chain is; a step changes it in place.

    Attributes
    ----------
    supers, subs : int32 arrays of shape (n_tokens,)
        Super-topic from 1 on, 0 for the root; sub-topic from 1 on, 0 for none.
    counts : int32 array of shape (n_words, n_nodes)
    sizes : int64 array of shape (n_nodes,)
    log_density : float
    best, best_log_density : the likeliest position since the priors are what they are
    n_sweeps : int
    """

    def __init__(self, supers: NDArray[np.int32], subs: NDArray[np.int32], n_words: int, n_nodes: int) -> None:
        self.supers, self.subs = supers, subs
        self.counts = np.zeros((n_words, n_nodes), dtype=np.int32)
        self.sizes = np.zeros(n_nodes, dtype=np.int64)
        self.log_density = self.best_log_density = -math.inf
        self.best: Position = {}
        self.uses: Uses | None = None
        self.n_sweeps = 0

    @property
    def position(self) -> Position:
        """States of the tokens."""
        return {"supers": self.supers, "subs": self.subs}


@dataclass(frozen=True, eq=False)
class PachinkoGibbs:
    """Collapsed Gibbs sampler of hierarchical Pachinko allocation: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``supers`` (n_tokens,), 0 for the root and -1 for a token that has no state yet, and ``subs``
    (n_tokens,), 0 for a token that exits at the root or at its super-topic.

    Parameters
    ----------
    tokens : Tokens
    root_prior : array of shape (n_super + 1,)
        a of the module, exit first.
    sub_prior : array of shape (n_super, n_sub + 1)
        b of the module, exit first.
    word_prior : float
        eta.
    learned : tuple of {"root_prior", "sub_prior"}, default=()
        The priors that the warm-up learns.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.inference import mcmc
    >>> from pluri.topics.documents import tokens_of
    >>> from pluri.topics.hierarchical.pachinko_gibbs import PachinkoGibbs
    >>> X = sparse.csr_matrix(np.repeat([[4, 8, 0], [4, 0, 8]], 6, axis=0))
    >>> kernel = PachinkoGibbs(tokens_of(X), np.full(3, 0.1), np.full((2, 3), 0.1), 0.1)
    >>> trace = mcmc.sample(kernel, kernel.start(), record=kernel.record, n_draws=50, n_warmup=50, n_chains=1,
    ...                     random_state=0, warn=False)
    >>> trace["node_size"].shape, int(trace["node_size"][0, -1].sum())
    ((1, 50, 5), 144)
    """

    tokens: Tokens
    root_prior: Array
    sub_prior: Array
    word_prior: float
    learned: tuple[str, ...] = ()
    tuned: ClassVar[tuple[str, ...]] = ("root_prior", "sub_prior")

    @property
    def n_super(self) -> int:
        """Number of super-topics."""
        return int(self.sub_prior.shape[0])

    @property
    def n_sub(self) -> int:
        """Number of sub-topics."""
        return int(self.sub_prior.shape[1] - 1)

    @property
    def n_nodes(self) -> int:
        """Number of topics."""
        return 1 + self.n_super + self.n_sub

    def adaptation(self, n_warmup: int) -> PriorLearning | None:
        """Learn the priors of the shares, if they are to be learned."""
        return PriorLearning() if self.learned else None

    def start(self) -> Position:
        """Position in which no token has a state yet."""
        states = np.full(self.tokens.n_tokens, -1, dtype=np.int32)
        return {"supers": states, "subs": np.zeros_like(states)}

    def init(self, rng: np.random.Generator, position: Position) -> PachinkoState:
        """State at a position; tokens without a state get one first, each given those before it."""
        from pluri.topics.hierarchical._pachinko_kernels import count_states

        supers, subs = (np.array(position[name], dtype=np.int32) for name in ("supers", "subs"))
        if supers.shape != (self.tokens.n_tokens,) or subs.shape != supers.shape:
            raise ValueError(f"position must have states of {self.tokens.n_tokens} tokens, got {supers.shape}")
        state = PachinkoState(supers, subs, self.tokens.n_words, self.n_nodes)
        count_states(self.tokens.words, supers, subs, self.n_super, state.counts, state.sizes)
        if (supers < 0).any():
            self._pass(rng, state)
        self._weigh(state)
        return state

    def step(self, rng: np.random.Generator, state: PachinkoState) -> tuple[PachinkoState, dict[str, float]]:
        """One sweep over all tokens."""
        self._pass(rng, state)
        self._weigh(state)
        state.n_sweeps += 1
        return state, {"used_nodes": float(np.count_nonzero(state.sizes))}

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of each sweep: tokens of each node."""
        nodes = np.where(position["subs"] > 0, self.n_super + position["subs"], position["supers"])
        return {"node_size": np.bincount(nodes, minlength=self.n_nodes)}

    def sweep(self, rng: np.random.Generator, position: Position, words: NDArray[Any]) -> Position:
        """Position after a sweep given other words of documents of the same lengths."""
        kernel = self.given(words)
        return kernel.step(rng, kernel.init(rng, position))[0].position

    def given(self, words: NDArray[Any]) -> PachinkoGibbs:
        """The sampler for other words of documents of the same lengths."""
        return replace(self, tokens=replace(self.tokens, words=np.asarray(words, dtype=np.int32)))

    def log_joint(self, position: Position, words: NDArray[Any] | None = None) -> float:
        """Log joint probability at a position, counted from scratch."""
        kernel = self if words is None else self.given(words)
        return kernel.init(np.random.default_rng(0), position).log_density

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw states of all tokens."""
        supers, subs = (np.zeros(self.tokens.n_tokens, dtype=np.int32) for _ in range(2))
        for begin, end in zip(self.tokens.offsets[:-1], self.tokens.offsets[1:]):
            supers[begin:end] = rng.choice(self.n_super + 1, size=end - begin, p=rng.dirichlet(self.root_prior))
            shares = np.array([rng.dirichlet(prior) for prior in self.sub_prior])
            for i in range(begin, end):
                if supers[i] > 0:
                    subs[i] = rng.choice(self.n_sub + 1, p=shares[supers[i] - 1])
        return {"supers": supers, "subs": subs}

    def sample_data(self, rng: np.random.Generator, position: Position) -> NDArray[np.int32]:
        """Draw the words of all tokens."""
        nodes = np.where(position["subs"] > 0, self.n_super + position["subs"], position["supers"])
        topics = rng.dirichlet(np.full(self.tokens.n_words, self.word_prior), size=self.n_nodes)
        reached = topics.cumsum(axis=1)[nodes, :-1]
        return (rng.random(len(nodes))[:, None] >= reached).sum(axis=1).astype(np.int32)

    def _pass(self, rng: np.random.Generator, state: PachinkoState) -> None:
        from pluri.topics.hierarchical._pachinko_kernels import (
            NodeRoom,
            Priors,
            States,
            Words,
            room_of_documents,
            sweep,
        )

        sweep(
            Words(self.tokens.words, self.tokens.offsets), rng.random((self.tokens.n_tokens, 2)),
            States(state.supers, state.subs, state.counts, state.sizes), Priors(self.root_prior, self.sub_prior),
            float(self.word_prior), room_of_documents(self.sub_prior), NodeRoom(*np.zeros((3, self.n_nodes))),
        )  # fmt: skip

    def _weigh(self, state: PachinkoState) -> None:
        """Log joint of a state; positions are compared only while the priors stay what they are."""
        state.uses = Uses.of(self.tokens, state.supers, state.subs, self.n_super, self.n_sub)
        value = state.uses.log_marginal(self.root_prior, self.sub_prior) + self._log_words(state)
        priors = {"root_prior": self.root_prior, "sub_prior": self.sub_prior}
        same = state.best and all(np.array_equal(state.best[name], values) for name, values in priors.items())
        state.log_density = value
        if not same or value > state.best_log_density:
            state.best = {name: np.array(values) for name, values in (dict(state.position) | priors).items()}
            state.best_log_density = value

    def _log_words(self, state: PachinkoState) -> float:
        from pluri.topics.hierarchical._nested_crp_kernels import count_of_counts

        histogram = np.zeros((1, int(state.counts.max(initial=0)) + 1), dtype=np.int64)
        ends = np.array([0, self.n_nodes])
        count_of_counts(state.counts, ends, ends[1:], histogram)
        values = np.flatnonzero(histogram[0])
        whole = self.word_prior * self.tokens.n_words
        words = float(histogram[0][values] @ (gammaln(self.word_prior + values) - gammaln(self.word_prior)))
        return words - float((gammaln(whole + state.sizes) - gammaln(whole)).sum())
