r"""Moves that split a topic of an HDP in two, or merge two, all their tokens at once.

Single tokens seldom leave two topics that have the same words: a bridge of less likely states lies between. Two tokens
i and j are drawn, in half of the cases of the same word. If they are in one topic, a split is proposed: the other
tokens of the topic get a side by restricted Gibbs scans, of which the last one is the proposal, and the stick is broken
by ``u ~ Beta(D_A, D_B)``, with the numbers of documents on each side. If they are in two topics, the merge of these
is proposed, whose way back is that split. With the density of `pluri.topics.hdp.gibbs` a split is accepted with
probability

    min(1, p(w, z', beta') beta_k / [p(w, z, beta) q(sides) q(u)]).

References
----------
.. [1] Jain, S. and Neal, R. (2004). A split-merge Markov chain Monte Carlo procedure for the Dirichlet process mixture
   model. Journal of Computational and Graphical Statistics 13.
.. [2] Wang, C. and Blei, D. (2012). A split-merge MCMC algorithm for the hierarchical Dirichlet process. arXiv
   1201.1657, where tables are split; here sticks are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.topics.documents import Tokens
from pluri.topics.hdp.slots import SHORTEST, Hyperparameters

Array = NDArray[np.float64]
Labels = NDArray[np.int32]

#: Restricted scans before the one that is the proposal.
N_SCANS = 2


class WordIndex:
    """Where the tokens of each word are."""

    def __init__(self, tokens: Tokens) -> None:
        self.order = np.argsort(tokens.words, kind="stable")
        self.ends = np.cumsum(np.bincount(tokens.words, minlength=tokens.n_words))

    def draw_pair(self, rng: np.random.Generator, tokens: Tokens) -> tuple[int, int]:
        """Two tokens, in half of the cases of the same word; they may be one and the same."""
        first = int(rng.integers(tokens.n_tokens))
        if rng.random() < 0.5:
            return first, int(rng.integers(tokens.n_tokens))
        end = int(self.ends[tokens.words[first]])
        begin = int(self.ends[tokens.words[first] - 1]) if tokens.words[first] else 0
        return first, int(self.order[rng.integers(begin, end)])


class Sides(NamedTuple):
    """Side of each token of a topic (0, 1, or -1), tokens of each word (n_words, 2) and all tokens on both sides."""

    side: NDArray[np.int8]
    counts: NDArray[np.int32]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, side: NDArray[np.int8], n_words: int) -> Sides:
        """Sides that are not counted yet."""
        return cls(side, np.zeros((n_words, 2), dtype=np.int32), np.zeros(2, dtype=np.int64))


def split_or_merge(
    rng: np.random.Generator, tokens: Tokens, index: WordIndex, labels: Labels, weights: Array, hyper: Hyperparameters
) -> tuple[Labels, Array, bool]:
    """One proposal.

    Parameters
    ----------
    rng : numpy.random.Generator
    tokens : Tokens
    index : WordIndex
    labels : int32 array of shape (n_tokens,)
    weights : array of shape (n_topics + 1,)
        Sticks of the topics, and the rest.
    hyper : Hyperparameters

    Returns
    -------
    labels, weights, accepted
        Topics are numbered from 0 without gaps, as before.
    """
    from pluri.topics.hdp._split_merge_kernels import count_sides, log_gain, propose

    first, second = index.draw_pair(rng, tokens)
    if first == second:
        return labels, weights, False
    one, other = int(labels[first]), int(labels[second])
    splitting = one == other
    members = np.flatnonzero(labels == one if splitting else (labels == one) | (labels == other))
    weight = float(weights[one] if splitting else weights[one] + weights[other])
    level = math.log(rng.random())

    def log_ratio(sides: Sides, sticks: Array, n_first: int, n_second: int) -> float:
        """Of a split into these sides, but for the probability of proposing them."""
        gain = log_gain(members, tokens.documents, sides, hyper.alpha * sticks, hyper.eta)
        # The density of the sticks has gamma^K / (beta_1 ... beta_K); splitting one has the Jacobian beta_k.
        gain += math.log(hyper.gamma) - n_first * math.log(sticks[0] / weight) - n_second * math.log(sticks[1] / weight)
        return float(gain - math.lgamma(n_first + n_second) + math.lgamma(n_first) + math.lgamma(n_second))

    current = np.zeros(0, dtype=np.int8) if splitting else (labels[members] == other).astype(np.int8)
    ratio, sticks = math.inf, np.empty(0)
    if not splitting:
        sides, sticks = Sides.of(current, tokens.n_words), weights[[one, other]]
        ratio = -log_ratio(sides, sticks, *count_sides(members, tokens.arrays, sides))
        # No probability of the sides can make up for this: topics with other words are refused here, at little cost.
        if level >= ratio:
            return labels, weights, False
    sides = Sides.of(np.empty(len(members), dtype=np.int8), tokens.n_words)
    log_sides, n_first, n_second = propose(
        rng, members, tokens.arrays, first, second, current, hyper, weight, N_SCANS, sides, np.empty(2)
    )
    if splitting:
        share = rng.beta(n_first, n_second)
        sticks = weight * np.array([share, 1.0 - share])
        if sticks.min() < SHORTEST:
            return labels, weights, False
        ratio = log_ratio(sides, sticks, n_first, n_second) - log_sides
    else:
        ratio += log_sides
    if level >= ratio:
        return labels, weights, False
    if splitting:
        return *_split(labels, weights, members[sides.side == 1], one, sticks), True
    return *_merge(labels, weights, one, other), True


def _split(
    labels: Labels, weights: Array, leaving: NDArray[np.int64], topic: int, sticks: Array
) -> tuple[Labels, Array]:
    """Labels and weights after tokens left their topic for a new one."""
    labels, n_topics = labels.copy(), len(weights) - 1
    labels[leaving] = n_topics
    weights = np.insert(weights, n_topics, sticks[1])
    weights[topic] = sticks[0]
    return labels, weights


def _merge(labels: Labels, weights: Array, one: int, other: int) -> tuple[Labels, Array]:
    """Labels and weights with two topics as one, which has the smaller number."""
    kept, gone, weight = min(one, other), max(one, other), weights[one] + weights[other]
    labels = np.where(labels == gone, np.int32(kept), labels)
    labels[labels > gone] -= 1
    weights = np.delete(weights, gone)
    weights[kept] = weight
    return labels, weights
