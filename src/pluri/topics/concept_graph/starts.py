"""Where chains over concept graphs start: plain topics, arranged in levels.

From the published start, all documents at the root, single documents rarely find the way to a good graph: topics of
several levels stay mixed in one node. Here plain topics (latent Dirichlet allocation, a few Gibbs sweeps) are found
first, and then each gets a depth. A document with n_k words of topic k takes, at each depth, its most frequent topic,
and loses the words of others; the score of an arrangement is the log probability of the levels of the words that are
left (with the best tau), of the steps between the topics (their entropy), and of the words of each topic, less `LOST`
for each word that is lost. Topics change depth, one or two at a time, or become one, as long as the score rises.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.topics.concept_graph.gibbs import ConceptGraphGibbs
from pluri.topics.concept_graph.state import Position

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Documents that a plain topic needs at least.
DOCUMENTS_PER_TOPIC = 5
#: Plain topics for each level, sweeps that find them, and the prior of a document's proportions.
TOPICS_PER_LEVEL, FLAT_SWEEPS, DOC_PRIOR = 5, 80, 1.0
SPARSE_SWEEPS, SPARSE_PRIOR = 10, 0.1
#: How often plain topics are sought in corpora of up to so many tokens; the best are taken.
N_FLAT, MANY_TOKENS = 3, 200_000
#: Part of its expected share that the last topic of a path must have.
LAST_SHARE = 0.5
#: Only topics whose cosine is above this may become one.
ALIKE = 0.5
#: Part of a document below which a topic is not worth a step of the path, and least number of words.
TRIFLE, FEW = 0.04, 2
#: Log probability that a word loses if its topic is not on the path, and that an edge costs.
LOST, EDGE_COST = 6.0, 5.0
#: Arrangements from which the search starts, rounds of it, and most pairs tried in one.
N_TRIES, N_ROUNDS, MOST_PAIRS = 4, 20, 300
#: Documents by which arrangements are scored; more cost time and tell little.
MOST_ROWS = 2000
#: Values of tau that are tried.
TAU = np.linspace(0.04, 0.96, 12)


def flat_topics(
    rng: np.random.Generator, kernel: ConceptGraphGibbs, n_topics: int, eta: float
) -> tuple[NDArray[np.int32], Array]:
    """Plain topic of each token, and the words of the topics (n_topics, n_words)."""
    from pluri.topics.concept_graph._sweep_kernels import flat_sweep

    topic = rng.integers(n_topics, size=len(kernel.words)).astype(np.int32)
    word_count = np.zeros((kernel.n_words, n_topics), dtype=np.int32)
    np.add.at(word_count, (kernel.words, topic), 1)
    total = word_count.sum(axis=0).astype(np.int64)
    # A flat prior finds the topics, a sparse one then says which of them a document really has.
    for doc_prior in [DOC_PRIOR] * FLAT_SWEEPS + [SPARSE_PRIOR] * SPARSE_SWEEPS:
        flat_sweep(rng, kernel.words, kernel.offsets, topic, word_count, total, doc_prior, eta)
    return topic, word_count.T.astype(np.float64)


def log_marginal(counts: Array, eta: float) -> float:
    """Log probability of the words of a topic, its distribution integrated out."""
    prior, seen = eta * len(counts), counts[counts > 0]
    words = gammaln(eta + seen).sum() - len(seen) * gammaln(eta)
    return float(words + gammaln(prior) - gammaln(prior + seen.sum()))


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
        """Counts without trifles, which are not worth a step of the path."""
        total = self.raw.sum(axis=1, keepdims=True)
        worth = np.where(self.raw >= np.maximum(TRIFLE * total, FEW), self.raw, 0)
        self.counts = np.where(worth.any(axis=1, keepdims=True), worth, self.raw)

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
                    other = replace(self, raw=raw)
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
        chosen, size = chosen_topics(self.counts, depth, self.n_levels)
        on_path = chosen >= 0
        length = self.n_levels - on_path[:, ::-1].argmax(axis=1)
        value = -LOST * float((self.counts.sum(axis=1) - size.sum(axis=1)).sum())
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
            code, number = np.unique(before[going] * (n_topics + 2) + step[going] + 1, return_counts=True)
            value += float((number * np.log(number)).sum()) - EDGE_COST * len(code)
            _, whole = np.unique(before[going], return_counts=True)
            value -= float((whole * np.log(whole)).sum())
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


def arranged_start(rng: np.random.Generator, kernel: ConceptGraphGibbs) -> Position:
    """Start of a chain at plain topics that are arranged in levels."""
    position = dict(kernel.start(rng))
    if kernel.n_levels < 2 or kernel.n_documents < 2 or len(kernel.words) == 0:
        return position
    eta = max(float(position["topic_word_prior"]), 0.01)
    documents = np.repeat(np.arange(kernel.n_documents), np.diff(kernel.offsets))
    n_topics = min(TOPICS_PER_LEVEL * kernel.n_levels, 2 + kernel.n_documents // DOCUMENTS_PER_TOPIC)
    n_nodes = np.asarray(position["n_nodes"]).copy()
    if kernel.max_nodes is None:
        n_nodes[2:] = np.maximum(n_nodes[2:], n_topics)
    if n_nodes[1:].sum() < n_topics:
        return position
    rows = np.sort(rng.choice(kernel.n_documents, size=min(kernel.n_documents, MOST_ROWS), replace=False))
    raw = np.zeros((kernel.n_documents, n_topics), dtype=np.int64)
    found: list[tuple[float, NDArray[np.int32], Arrangement, Integers]] = []
    for _ in range(N_FLAT if len(kernel.words) <= MANY_TOKENS else 1):
        topic, words = flat_topics(rng, kernel, n_topics, eta)
        raw[:] = 0
        np.add.at(raw, (documents, topic), 1)
        part = Arrangement(raw[rows], words, eta, kernel.n_levels, n_nodes)
        depth = part.search(rng)
        value = part.score(depth) + sum(log_marginal(row, eta) for row in part.words)
        found.append((value, topic, part, depth))
    _, topic, part, depth = max(found, key=lambda item: item[0])
    topic = part.merged[topic].astype(np.int32)
    raw[:] = 0
    np.add.at(raw, (documents, topic), 1)
    counts = Arrangement(raw, part.words, eta, kernel.n_levels, n_nodes).counts
    return _position_of(rng, kernel, position, n_nodes, depth, counts, topic, documents)


def _trim(chosen: Integers, counts: Integers) -> None:
    """End paths where their last topic has far less than the share that geometric levels give it, 1 / S or more."""
    rows, total = np.arange(len(chosen)), counts.sum(axis=1)
    for k in range(chosen.shape[1] - 1, 0, -1):
        last = (chosen[:, k] >= 0) & (chosen[:, k + 1 :] < 0).all(axis=1)
        size = (chosen[:, : k + 1] >= 0).sum(axis=1)
        few = counts[rows, np.maximum(chosen[:, k], 0)] * size < LAST_SHARE * total
        chosen[last & few, k] = -1


def _position_of(
    rng: np.random.Generator, kernel: ConceptGraphGibbs, position: Position, n_nodes: Integers, depth: Integers,
    counts: Integers, topic: NDArray[np.int32], documents: Integers,
) -> Position:  # fmt: skip
    """Put documents on the paths of their topics; words whose topic is not there get a random level."""
    chosen, _ = chosen_topics(counts, depth, kernel.n_levels)
    if kernel.level_prior == "geometric":
        _trim(chosen, counts)
    length = kernel.n_levels - (chosen >= 0)[:, ::-1].argmax(axis=1)
    number = np.empty(len(depth), dtype=np.int64)
    by_depth = np.argsort(np.where(depth > 0, depth, kernel.n_levels + 1), kind="stable")
    number[by_depth] = np.arange(len(depth))
    node_depth = depth[by_depth]
    path = np.where(chosen >= 0, number[np.maximum(chosen, 0)], -1).astype(np.int32)
    if kernel.deeper:
        for row in path:
            row[:] = np.concatenate([row[row >= 0], row[row < 0]])
        length = (path >= 0).sum(axis=1)
    else:
        for k in range(1, kernel.n_levels):
            # A step without a topic of its own takes the node that most paths take.
            gap = (path[:, k] < 0) & (length > k)
            if gap.any():
                there = path[:, k][path[:, k] >= 0]
                usual = np.bincount(there).argmax() if len(there) else -1
                path[gap, k] = usual
                length[gap] = np.where(usual < 0, k, length[gap])
            path[length <= k, k] = -1
    used = np.unique(path[path >= 0])
    renumbered = np.full(len(depth), -1, dtype=np.int32)
    renumbered[used] = np.arange(len(used))
    path = np.where(path >= 0, renumbered[np.maximum(path, 0)], -1).astype(np.int32)
    own = renumbered[number[topic]]
    level = (rng.random(len(topic)) * length[documents]).astype(np.int8)
    for place in range(kernel.n_levels):
        here = path[documents, place] == own
        level[here & (own >= 0)] = (length[documents] - 1 - place)[here & (own >= 0)]
    node_depth = node_depth[used]
    return {
        **position, "node_depth": node_depth.astype(np.int32), "node_protected": node_depth == 1,
        "node_name": np.arange(len(used)), "order": kernel.draw_orders(rng, node_depth, n_nodes), "n_nodes": n_nodes,
        "path": path, "level": level,
    }  # fmt: skip
