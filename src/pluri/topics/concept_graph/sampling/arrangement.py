"""Depths of plain topics: where in a concept graph they would stand.

A document with n_k words of topic k takes, at each depth, its most frequent topic, and loses the words of others; the
score of an arrangement is the log probability of the levels of the words that are left (with the best tau), of the
steps between the topics (their entropy), and of the words of each topic, less `LOST` for each word that is lost. Topics
change depth, one or two at a time, or become one, as long as the score rises.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Only topics whose cosine is above this may become one.
ALIKE = 0.5
#: Part of a document below which a topic is not worth a step of the path, and least number of words.
NEGLIGIBLE, FEW = 0.04, 2
#: Log probability that a word loses if its topic is not on the path, and that an edge costs.
LOST, EDGE_COST = 6.0, 5.0
#: Arrangements from which the search starts, rounds of it, and most pairs tried in one.
N_TRIES, N_ROUNDS, MOST_PAIRS = 4, 20, 300
#: Values of tau that are tried.
TAU = np.linspace(0.04, 0.96, 12)


def log_marginal(counts: Array, eta: float) -> float:
    """Log probability of the words of a topic, its distribution integrated out."""
    prior, seen = eta * len(counts), counts[counts > 0]
    words = gammaln(eta + seen).sum() - len(seen) * gammaln(eta)
    return float(words + gammaln(prior) - gammaln(prior + seen.sum()))


def _occurring(codes: Integers) -> Integers:
    """How often each of the codes occurs that do occur; the codes are small, so that counting beats sorting."""
    counts: Integers = np.bincount(codes)
    return counts[counts > 0]


def chosen_topics(counts: Integers, depth: Integers, n_levels: int) -> tuple[Integers, Integers]:
    """Topic that each document takes at each depth, -1 for none, and its number of words."""
    n = len(counts)
    chosen, size = np.full((n, n_levels), -1), np.zeros((n, n_levels), dtype=np.int64)
    rows = np.arange(n)
    for k in range(1, n_levels + 1):
        there = np.flatnonzero(depth == k)
        if len(there):
            best = there[counts[:, there].argmax(axis=1)]
            size[:, k - 1] = counts[rows, best]
            chosen[:, k - 1] = np.where(size[:, k - 1] > 0, best, -1)
    chosen[:, 0] = np.flatnonzero(depth == 1)[0]
    return chosen, size


@dataclass
class Arrangement:
    """Scores depths of topics, given how many words of each topic the documents have.

    Attributes
    ----------
    raw : (n_documents, n_topics)
        Words of each topic in each document.
    words : (n_topics, n_words)
        How often each topic has each word.
    eta : float
    n_levels : int
    most : (n_levels + 1,)
        Most topics of each depth.
    merged : (n_topics,)
        The topic that each has become.
    """

    raw: Integers
    words: Array
    eta: float
    n_levels: int
    most: Integers

    def __post_init__(self) -> None:
        self.merged = np.arange(len(self.words))
        self._count()
        powers = (1.0 - TAU)[:, None] ** np.arange(self.n_levels)
        self._log_share = [
            np.log(powers[:, :length] / powers[:, :length].sum(axis=1, keepdims=True))
            for length in range(1, self.n_levels + 1)
        ]

    def _count(self) -> None:
        """Counts without the negligible ones, which are not worth a step of the path."""
        total = self.raw.sum(axis=1, keepdims=True)
        worth = np.where(self.raw >= np.maximum(NEGLIGIBLE * total, FEW), self.raw, 0)
        self.counts = np.where(worth.any(axis=1, keepdims=True), worth, self.raw)
        self._scores: dict[bytes, float] = {}  # by depths: a climb comes back to a third of them

    def merge(self, depth: Integers) -> Integers:
        """Make topics one where the score rises; depths, 0 for topics that are gone."""
        while True:
            value = self.score(depth)
            alone = [log_marginal(row, self.eta) for row in self.words]
            unit = self.words / np.maximum(np.linalg.norm(self.words, axis=1, keepdims=True), 1.0)
            alike = unit @ unit.T > ALIKE
            best, gain = None, 0.0
            for s, t in permutations(np.flatnonzero(depth > 0), 2):
                if depth[t] > 1 and (alike[s, t] or not self.words[t].any()):
                    together = log_marginal(self.words[s] + self.words[t], self.eta) - alone[s] - alone[t]
                    raw, new = self.raw.copy(), depth.copy()
                    raw[:, s] += raw[:, t]
                    raw[:, t] = 0
                    new[t] = 0
                    other = copy(self)
                    other.raw = raw
                    other._count()
                    rise = together + other.score(new) - value
                    if rise > gain:
                        best, gain = (s, t), rise
            if best is None:
                return depth
            s, t = best
            self.raw[:, s] += self.raw[:, t]
            self.raw[:, t] = 0
            self.words[s] += self.words[t]
            self.words[t] = 0.0
            self.merged[self.merged == t] = s
            depth = depth.copy()
            depth[t] = 0
            self._count()

    def score(self, depth: Integers) -> float:
        """Score of the module."""
        key = depth.tobytes()
        if key not in self._scores:
            self._scores[key] = self._new_score(depth)
        return self._scores[key]

    def _new_score(self, depth: Integers) -> float:
        chosen, size = chosen_topics(self.counts, depth, self.n_levels)
        on_path = chosen >= 0
        length = self.n_levels - on_path[:, ::-1].argmax(axis=1)
        value = -LOST * float(self.counts.sum() - size.sum())
        for n in range(1, self.n_levels + 1):
            rows = length == n
            if rows.any():
                value += float((size[rows, :n][:, ::-1] @ self._log_share[n - 1].T).max(axis=1).sum())
        n_topics = self.counts.shape[1]
        before = chosen[:, 0].copy()
        for k in range(1, self.n_levels + 1):
            after = chosen[:, k] if k < self.n_levels else np.full(len(chosen), -1)
            going = length >= k
            step = np.where(length > k, after, n_topics)
            edges = _occurring(before[going] * (n_topics + 2) + step[going] + 1)
            value += float((edges * np.log(edges)).sum()) - EDGE_COST * len(edges)
            nodes = _occurring(before[going])
            value -= float((nodes * np.log(nodes)).sum())
            before = np.where(after >= 0, after, before)
        return value

    def search(self, rng: np.random.Generator) -> Integers:
        """Depths of a high score; topics that are gone have depth 0."""
        depth = self.merge(self._best_of_several(rng, np.full(len(self.words), 1), 1))
        # Topics that were there twice stood in each other's way: look again from everywhere.
        return self._best_of_several(rng, depth, N_TRIES)

    def _best_of_several(self, rng: np.random.Generator, before: Integers, n_tries: int) -> Integers:
        """Climb from all topics below the root, from random depths, and from where we are if that is somewhere."""
        gone = before == 0
        often = np.where(gone, -1, (self.counts > 0).sum(axis=0))
        starts = [np.full(len(gone), 2)] + [rng.integers(2, self.n_levels + 1, size=len(gone)) for _ in range(n_tries)]
        best, highest = before, -np.inf
        for depth in starts:
            for k in range(2, self.n_levels):
                depth[np.flatnonzero(depth == k)[self.most[k] :]] = k + 1
            depth[int(often.argmax())] = 1
            depth[gone] = 0
            depth, value = self._climb(rng, depth)
            if value > highest:
                best, highest = depth, value
        if (before == 1).sum() == 1:
            depth, value = self._climb(rng, before)
            best = depth if value > highest else best
        return best

    def _climb(self, rng: np.random.Generator, depth: Integers) -> tuple[Integers, float]:
        value = self.score(depth)
        n_topics = len(depth)
        for _ in range(N_ROUNDS):
            before = value
            for t in rng.permutation(n_topics):
                if depth[t] < 2:
                    continue
                for k in range(2, self.n_levels + 1):
                    if k != depth[t] and (depth == k).sum() < self.most[k]:
                        new = depth.copy()
                        new[t] = k
                        depth, value = self._better(depth, value, new)
            pairs = list(combinations(range(n_topics), 2))
            for index in rng.permutation(len(pairs))[:MOST_PAIRS]:
                s, t = pairs[index]
                if depth[s] != depth[t] and depth[s] > 0 and depth[t] > 0:
                    new = depth.copy()
                    new[s], new[t] = depth[t], depth[s]
                    depth, value = self._better(depth, value, new)
            if value <= before:
                break
        return depth, value

    def _better(self, depth: Integers, value: float, new: Integers) -> tuple[Integers, float]:
        score = self.score(new)
        return (new, score) if score > value else (depth, value)
