r"""Gibbs sampling of trees of topics whose nodes have several parents [1]_.

Scale s has T_s nodes with topics ``phi_st ~ Dirichlet(g)`` on the words A_s of the scale; column m of P^(s) says which
nodes lie below node m, ``p_m ~ Stick(zeta_s)``. A document has proportions theta_d of the nodes of the top scale and
``pi_d ~ Stick(rho)`` of the scales. A token draws its scale c from pi_d, a path ``z^(1) ~ theta_d``,
``z^(s+1) ~ p_{z^(s)}`` down to scale c, and its word from the topic there. With scale-dependent words each word v has
one scale: it comes down the scales, ``ell(v) = s`` with probability ``tau_s prod_{h<s} (1 - tau_h)``,
``tau_s ~ Beta(1, psi)``, given that no scale is left without words.

A sweep draws

- the scales of words, topics and paths integrated out (`pluri.topics.tree.word_scales`),
- the scale, node and path of every token: all at once in a tree of given size; or one token after the other in a tree
  that grows as needed (`pluri.topics.tree.retrospective`),
- sticks, proportions and concentrations (`pluri.topics.tree.sticks`, `pluri.topics.tree.concentrations`).

Where the published sampler differs: proportions of documents use the weights alpha_t, not the stick fractions; the
scales of words move together with their tokens, as a word that has tokens cannot change scale otherwise.

References
----------
.. [1] Chen, H., Dunson, D. B. and Carin, L. (2011). Topic modeling with nonparametric Markov tree. ICML.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.topics.documents import Tokens
from pluri.topics.tree.concentrations import draw_document_level
from pluri.topics.tree.path_counts import PathCounts
from pluri.topics.tree.settings import TreeSettings
from pluri.topics.tree.state import Array, Numbers, TreeState, log_allocation
from pluri.topics.tree.sticks import draw_fractions, draw_sticks

Position = Mapping[str, NDArray[Any]]
Inference = Literal["truncated", "retrospective", "slice"]
#: Scales that a record of a sweep tells of.
TOLD = 16


@dataclass(frozen=True, eq=False)
class TreeGibbs:
    """Sampler of a tree of topics: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts of the arrays of `TreeState`; topics are integrated out of them.

    Parameters
    ----------
    tokens : Tokens
    settings : TreeSettings
        Size of the tree and priors.
    inference : {"truncated", "retrospective", "slice"}, default="truncated"
    width : {"retrospective", "adaptive"}, default="retrospective"
        With retrospective inference: make nodes as needed, or give the whole leftover of a stick to one new node.
    collapsed : bool, default=True
        Draw tokens of a truncated tree one after the other with topics, proportions of documents and usages of scales
        integrated out, instead of all at once given these.
    keep : tuple of int, default=()
        Sweeps after which the tree is kept in the state.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.inference import mcmc
    >>> from pluri.priors import Gamma
    >>> from pluri.topics.documents import tokens_of
    >>> from pluri.topics.tree.gibbs import TreeGibbs
    >>> from pluri.topics.tree.settings import TreeSettings
    >>> X = np.repeat([[5, 5, 0, 0, 3], [0, 0, 5, 5, 3]], 10, axis=0)
    >>> kernel = TreeGibbs(tokens_of(sparse.csr_matrix(X)), TreeSettings((1, 4), concentration=Gamma(1.0, 1.0)))
    >>> trace = mcmc.sample(kernel, kernel.start, record=kernel.record, n_draws=20, n_warmup=50, n_chains=1,
    ...                     random_state=0, warn=False)
    >>> int(trace["n_words"][0, -1].sum())  # each word has one scale
    5
    """

    tokens: Tokens
    settings: TreeSettings
    inference: Inference = "truncated"
    width: Literal["retrospective", "adaptive"] = "retrospective"
    collapsed: bool = True
    keep: tuple[int, ...] = ()
    _of_words: tuple[Numbers, Numbers] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        from pluri.topics.tree.word_scales import tokens_of_words

        object.__setattr__(self, "_of_words", tokens_of_words(self.tokens))

    @property
    def grows(self) -> bool:
        """Whether tokens keep their paths and move one by one."""
        return self.inference != "truncated"

    def adaptation(self, n_warmup: int) -> None:
        """Nothing is tuned."""
        return None

    def start(self, rng: np.random.Generator) -> Position:
        """Position to begin with: words by the number of their documents, tokens put on nodes in turn."""
        from pluri.topics.tree.starts import first_position

        return first_position(rng, self)

    def init(self, rng: np.random.Generator, position: Position) -> TreeState:
        """State at a position, in copies."""
        state = TreeState.at(position, self.tokens.words, self.tokens.n_words)
        if state.scale.shape != self.tokens.words.shape:
            raise ValueError(
                f"position['scale'] must have shape {self.tokens.words.shape}, one for each token, "
                f"got {state.scale.shape}"
            )
        state.log_density = self.log_joint(state)
        return state

    def step(self, rng: np.random.Generator, state: TreeState) -> tuple[TreeState, dict[str, float]]:
        """One sweep: words, tokens, tree and documents, in copies."""
        new = state.copy()
        info = {"moved_words": 0.0, "births": 0.0, "deaths": 0.0}
        if self.settings.scale_dependent:
            from pluri.topics.tree.word_scales import move_word_scales

            moves = move_word_scales(rng, new, self.tokens, self._of_words, self.settings, varying=self.grows)
            info = {"moved_words": moves.accepted / self.tokens.n_words, "births": float(moves.births),
                    "deaths": float(moves.deaths)}  # fmt: skip
        if self.grows:
            from pluri.topics.tree.retrospective import move_all_tokens

            new, counts = move_all_tokens(rng, new, self)
        else:
            counts = self.draw_all_tokens(rng, new)
        new.passed = counts.passed(new, self.settings.top)
        self.draw_parameters(rng, new, counts)
        new.log_density = self.log_joint(new)
        new.n_sweeps += 1
        if new.n_sweeps in self.keep:
            from pluri.topics.tree.tree import tree_of

            new.kept = (*new.kept, tree_of(new, self.settings))
        return new, info

    def draw_topics(self, rng: np.random.Generator, state: TreeState) -> Array:
        """Draw topics given tokens, ``phi_st ~ Dirichlet(g + n_st)`` on the words of the scale: (n_words, n_nodes)."""
        shapes = state.node_word + float(self.settings.topic_word_prior)
        if state.word_scale.size:
            shapes[state.word_scale[:, None] != state.node_scale()] = 0.0
        phi: Array = rng.standard_gamma(shapes)
        # Too small a prior can leave nothing of a word: it keeps the smallest chance there is.
        np.maximum(phi, 1e-290, out=phi, where=shapes > 0)
        phi /= np.maximum(phi.sum(axis=0), 1e-290)
        return phi

    def draw_all_tokens(self, rng: np.random.Generator, state: TreeState) -> PathCounts:
        """Draw scales and nodes of all tokens in a tree of given size."""
        tokens, counts, top = self.tokens, PathCounts.none(state), self.settings.top
        if self.collapsed:
            from pluri.topics.tree._collapsed_kernels import Below, Room, draw_tokens_in_turn

            ascent, n_top = state.ascent(top), int(state.widths[top])
            _, eta, rho, _ = state.concentrations
            below = Below(ascent, ascent.T.copy(), eta * state.base[:n_top], np.zeros(len(state.node_total)))
            draw_tokens_in_turn(
                stream(rng), tokens.words, tokens.offsets, state.nodes(top), float(self.settings.topic_word_prior),
                float(rho), state.theta, below, state.placed, counts,
                Room.of(len(state.node_total), n_top, int(state.depth[0]), len(tokens.words)),
            )  # fmt: skip
            return counts
        from pluri.topics.tree._token_kernels import draw_tokens

        phi = self.draw_topics(rng, state)
        state.node_word[:], state.node_total[:] = 0, 0
        draw_tokens(
            stream(rng), tokens.words, tokens.offsets, state.nodes(top), state.theta, state.usage, phi, state.placed,
            counts,
        )  # fmt: skip
        return counts

    def draw_parameters(self, rng: np.random.Generator, state: TreeState, counts: PathCounts) -> None:
        """Draw sticks, proportions of documents and concentrations, in place."""
        settings, depth = self.settings, int(state.depth[0])
        top, prior = settings.top, settings.learned.prior
        base_concentration, eta, rho, psi = state.concentrations
        if depth > top:
            n_top = int(state.widths[top])
            level = draw_document_level(
                rng, counts.doc_top[:, :n_top], np.append(state.base[:n_top], state.base[-1]), base_concentration, eta,
                prior, settings.learned_eta.prior, closed=n_top == settings.cap(top),
            )  # fmt: skip
            state.base[:n_top], state.base[-1] = level.base[:-1], level.base[-1]
            state.theta[:, :n_top], state.theta_rest = level.theta, level.rest
            base_concentration, eta = level.base_concentration, level.doc_concentration
        for s in range(top + 1, depth):
            nodes, width, n_above = state.nodes_of(s), int(state.widths[s]), int(state.widths[s - 1])
            sticks = draw_sticks(
                rng, counts.moves[nodes, :n_above].T, float(state.zeta[s]), prior, closed=width == settings.cap(s)
            )
            state.transition[nodes, :n_above] = sticks.pieces.T
            state.transition_rest[s, :n_above] = sticks.rest
            state.zeta[s] = sticks.concentration
        closed = settings.scale_dependent or depth == settings.most_depth
        sticks = draw_sticks(rng, counts.doc_scale[:, :depth], rho, prior, closed=closed)
        state.usage[:, :depth], state.usage[:, depth:] = sticks.pieces, 0.0
        state.usage_rest, rho = sticks.rest, sticks.concentration
        if settings.scale_dependent:
            psi = self._draw_stopping(rng, state, psi)
        state.concentrations = np.array([base_concentration, eta, rho, psi])

    def _draw_stopping(self, rng: np.random.Generator, state: TreeState, psi: float) -> float:
        """Draw ``tau_s ~ Beta(1 + |A_s|, psi + words below)`` and psi."""
        taken, left, psi = draw_fractions(rng, state.sizes, psi, self.settings.learned.prior, closed=True)
        state.log_stop = np.append(taken, 0.0) + np.concatenate([[0.0], np.cumsum(left)])
        return psi

    def log_joint(self, state: TreeState) -> float:
        """Log joint of words, their scales, and scales and nodes of tokens, topics summed out.

        The nodes above that of a token are summed out too, unless the tree grows.
        """
        depth, top = int(state.depth[0]), self.settings.top
        if self.grows:
            documents, deep = self.tokens.documents, state.scale >= top
            with np.errstate(divide="ignore"):
                total = float(np.log(state.usage[documents, state.scale]).sum())
                if depth > top:
                    total += float(np.log(state.theta[documents[deep], state.paths[deep, top]]).sum())
                for s in range(top + 1, depth):
                    here = state.paths[state.scale >= s]
                    total += float(np.log(state.transition[state.offsets[s] + here[:, s], here[:, s - 1]]).sum())
        else:
            total = log_allocation(state, self.tokens.documents, top)
        if state.word_scale.size:
            total += float(state.sizes[:depth] @ state.log_stop[:depth])
        return total + self.log_evidence(state)

    def log_evidence(self, state: TreeState) -> float:
        """Log probability of the words given scales and nodes of tokens, topics integrated out."""
        g = self.settings.topic_word_prior
        seen = np.bincount(state.node_word.ravel(), minlength=1)
        total = float(seen @ (gammaln(np.arange(seen.size) + g) - gammaln(g)))
        for s in range(int(state.depth[0])):
            n, weight = state.node_total[state.nodes_of(s)], g * float(state.sizes[s])
            total += float((gammaln(weight) - gammaln(n + weight)).sum())
        return total

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of each sweep: numbers of nodes in use, words and tokens of each scale, and concentrations."""
        used, depth = np.zeros(TOLD, dtype=np.int64), int(position["depth"][0])
        words, tokens = np.zeros(TOLD, dtype=np.int64), np.zeros(TOLD, dtype=np.int64)
        for s in range(min(depth, TOLD)):
            used[s] = len(np.unique(position["node"][position["scale"] == s]))
            tokens[s] = (position["scale"] == s).sum()
            words[s] = position["sizes"][s]
        return {
            "n_nodes": used, "n_words": words, "n_tokens": tokens, "depth": np.asarray(depth),
            "concentrations": position["concentrations"],
        }  # fmt: skip


def stream(rng: np.random.Generator) -> NDArray[np.uint64]:
    """State of the random numbers of a compiled loop."""
    return rng.integers(2**63, size=1).astype(np.uint64)
