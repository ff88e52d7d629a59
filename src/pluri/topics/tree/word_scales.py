"""Words that move from one scale to another, with all their tokens.

Where each word has one scale, a token's scale follows from its word: neither can change without the other, and the
published updates of one given the other cannot move at all. Here a word v is offered another scale, its tokens put on
nodes there in turn, with topics, usages of scales and the nodes above integrated out, and the whole is accepted or
refused [1]_. With

    log p = log p(ell) + log p(scales of tokens | rho) + sum_tokens log reach_{d,ell(w)}(t)
            + sum_{s,t} {lnG(g |A_s|) - lnG(n_st + g |A_s|) + sum_{v in A_s} [lnG(n_st(v) + g) - lnG(g)]}

and q the probability of the seats, forwards and backwards, the chance of acceptance is ``p' q_back / (p q_forth)``. If
the depth varies, a word may also open a scale of its own below the deepest, or close that one if it is alone there;
both are offered with the same probability.

References
----------
.. [1] Metropolis-Hastings with sequential allocation as in Dahl, D. B. (2005). Sequentially-allocated merge-split
   sampler for conjugate and nonconjugate Dirichlet process mixture models.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.topics.documents import Tokens
from pluri.topics.tree.settings import TreeSettings
from pluri.topics.tree.state import TreeState


class WordMoves(NamedTuple):
    """How many words moved in a pass over all words, and how many scales were opened and closed by them."""

    accepted: int
    births: int
    deaths: int


def move_word_scales(
    rng: np.random.Generator,
    state: TreeState,
    tokens: Tokens,
    of_words: tuple[NDArray[np.int64], NDArray[np.int64]],
    settings: TreeSettings,
    *,
    varying: bool = False,
) -> WordMoves:
    """Offer every word another scale, in random order and in place; usages of scales must be drawn anew after it.

    Parameters
    ----------
    rng : Generator
    state : TreeState
        Every node of its scales must be there.
    tokens : Tokens
    of_words : tuple of arrays
        The tokens of each word, see :func:`tokens_of_words`.
    settings : TreeSettings
    varying : bool, default=False
        Whether the number of scales may change.

    Returns
    -------
    WordMoves
    """
    from pluri.topics.tree._word_kernels import OfWords, ScalePriors, WordRoom, move_words

    order = rng.permutation(tokens.n_words)
    n_documents, n_scales = state.usage.shape
    cells = tokens.documents.astype(np.int64) * n_scales + state.scale
    doc_scale = np.bincount(cells, minlength=n_documents * n_scales).reshape(n_documents, n_scales)
    depth, learned = int(state.depth[0]), settings.learned
    zeta_prior = np.array([0.0, learned.value, 0.0])
    if learned.prior is not None:
        shape, rate = learned.prior.shape, learned.prior.rate
        zeta_prior = np.array([shape, rate, shape * math.log(rate) - math.lgamma(shape)])
    priors = ScalePriors(
        state.log_stop, float(settings.topic_word_prior), float(state.concentrations[2]), state.zeta, zeta_prior,
        settings.least_depth if varying else depth, settings.most_depth if varying else depth,
    )  # fmt: skip
    new_depth, accepted, births, deaths = move_words(
        rng.integers(2**63, size=1).astype(np.uint64), order, OfWords(*of_words, tokens.documents),
        state.nodes(settings.top), priors, state.theta, state.placed, doc_scale,
        WordRoom.of(n_documents, tokens.n_tokens, len(state.node_total), len(state.sizes)),
    )  # fmt: skip
    state.depth[0] = new_depth
    return WordMoves(accepted, births, deaths)


def tokens_of_words(tokens: Tokens) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens in the order of their words, document after document, and where each word's begin."""
    order = np.argsort(tokens.words, kind="stable")
    counts = np.bincount(tokens.words, minlength=tokens.n_words)
    return np.concatenate([[0], np.cumsum(counts)]), order


def scales_by_frequency(tokens: Tokens, n_scales: int) -> NDArray[np.int32]:
    """Scale of each word to begin with: words of many documents at the top, scale s having s + 1 parts of all words."""
    if tokens.n_words < n_scales:
        raise ValueError(f"max_depth must be at most the number of words ({tokens.n_words}), got {n_scales}")
    pairs = np.unique(tokens.documents.astype(np.int64) * tokens.n_words + tokens.words)
    frequency = np.bincount(pairs % tokens.n_words, minlength=tokens.n_words)
    parts = np.cumsum(np.arange(1, n_scales + 1)) / (n_scales * (n_scales + 1) / 2)
    ends = np.round(parts * tokens.n_words).astype(np.int64)
    # Every scale needs a word.
    ends = np.minimum(np.maximum(ends, np.arange(1, n_scales + 1)), tokens.n_words - np.arange(n_scales)[::-1])
    scales = np.empty(tokens.n_words, dtype=np.int32)
    scales[np.argsort(-frequency, kind="stable")] = np.searchsorted(ends, np.arange(tokens.n_words), side="right")
    return scales
