r"""Passes of the HDP sampler over tokens, and over tables, in an array with room for topics that are born.

Tokens are drawn one at a time. That seldom moves the tokens of a document from one topic to another that has the same
words: each of them is held by the others. So some documents also move all tokens of a table at once. Given topics and
sticks, tokens of topic k in a document sit at tables by a Chinese restaurant process of concentration alpha beta_k;
given tables, each has topic k with probability ``beta_k p(words of the table | other words of topic k)``. The tables
are forgotten afterwards: they are an auxiliary variable, and every draw is from its conditional distribution.

References
----------
Teh, Jordan, Beal and Blei (2006), Hierarchical Dirichlet processes, JASA 101, sections 5.1 and 5.3.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.topics.documents import Tokens

Array = NDArray[np.float64]
Labels = NDArray[np.int32]
Indices = NDArray[np.int64]

#: No stick is shorter, so that logarithms of sticks stay finite.
SHORTEST = 1e-290
#: Topics that are tried at least when some are to be dissolved.
LEAST_TRIES = 50
#: Share of the tokens from which on a topic is not tried: the others, with fewer tokens, do not predict its words.
TOO_LARGE = 0.5
#: Slots up to which all of them are read for each token; above, only those of the topics that its word has.
FEW = 128


class Hyperparameters(NamedTuple):
    """Concentration of the documents, of the corpus, and prior count of every word."""

    alpha: float
    gamma: float
    eta: float


class SlotState(NamedTuple):
    """Topics of the tokens (-1 for none), tokens of each word in each slot, tokens of each slot, and sticks.

    `rest` has one entry, the part of the stick without topics.
    """

    labels: Labels
    counts: NDArray[np.int32]
    sizes: Indices
    weights: Array
    rest: Array


class TopicLists(NamedTuple):
    """Topics that each word has, and its tokens there; the list of word w begins at ``begins[w]``."""

    begins: Indices
    lengths: Indices
    topics: NDArray[np.uint32]
    numbers: NDArray[np.uint32]


class SlotRoom(NamedTuple):
    """Room for a number of every slot: tokens of a document, what scores owe to it, scores, and their denominators."""

    here: Array
    base: Array
    scores: Array
    below: Array

    @classmethod
    def of(cls, capacity: int) -> SlotRoom:
        """Zeros."""
        return cls(*np.zeros((4, capacity)))


class TableRoom(NamedTuple):
    """Room for the tables of a document.

    `here` and `place` have an entry for every slot and `same` for every word; these are zero before and after. The
    others have one for every token of the longest document: `members` gets the tokens, table after table, of which the
    i-th ends at ``ends[i]``.
    """

    here: Indices
    place: Indices
    same: Indices
    order: Indices
    table: Indices
    ends: Indices
    members: Indices
    distinct: Indices

    @classmethod
    def of(cls, capacity: int, n_words: int, longest: int) -> TableRoom:
        """Zeros."""
        here, place = np.zeros((2, capacity), dtype=np.int64)
        return cls(here, place, np.zeros(n_words, dtype=np.int64), *np.zeros((5, longest), dtype=np.int64))

    def for_slots(self, capacity: int) -> TableRoom:
        """The same tables, with room for another number of slots."""
        here, place = np.zeros((2, capacity), dtype=np.int64)
        return self._replace(here=here, place=place)


class BoundRoom(NamedTuple):
    """Room for bounds of scores by slot; ``rise[m]`` is the sum of log(e + eta) over e < m. `gain` is zero between."""

    rise: Array
    gain: Array
    log_weight: Array
    log_base: Array
    found: Indices

    @classmethod
    def of(cls, capacity: int, most: int, eta: float) -> BoundRoom:
        """Room for words with `most` tokens at most."""
        rise = np.concatenate([[0.0], np.cumsum(np.log(np.arange(most) + eta))])
        gain, log_weight, log_base = np.zeros((3, capacity))
        return cls(rise, gain, log_weight, log_base, np.zeros(capacity, dtype=np.int64))


def count_table(tokens: Tokens, labels: Labels, capacity: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Tokens of each word in each topic, (n_words, capacity), and tokens of each topic."""
    from pluri.topics.hdp._gibbs_kernels import count_words

    counts, sizes = np.zeros((tokens.n_words, capacity), dtype=np.int32), np.zeros(capacity, dtype=np.int64)
    count_words(tokens.words, labels, counts, sizes)
    return counts, sizes


class Slots:
    """Topics of the tokens with counts and sticks in slots, some of which are free; all are copies, and change.

    Parameters
    ----------
    tokens : Tokens
    labels : int32 array of shape (n_tokens,)
        -1 for a token without a topic.
    sticks : array of shape (n_topics + 1,)
        The rest comes last.
    alpha, gamma, eta : float
    """

    def __init__(
        self, tokens: Tokens, labels: Labels, sticks: Array, alpha: float, gamma: float, eta: float
    ) -> None:  # fmt: skip
        from pluri.topics.hdp._gibbs_kernels import BLOCK

        self.tokens, self.hyper = tokens, Hyperparameters(alpha, gamma, eta)
        self.labels = np.array(labels, dtype=np.int32)
        self.weights = np.asarray(sticks[:-1], dtype=np.float64)
        self.rest = np.array(sticks[-1:], dtype=np.float64)
        self.listed: TopicLists | None = None
        self._make_room(BLOCK * (1 + (len(self.weights) + BLOCK // 2) // BLOCK))

    def _make_room(self, capacity: int) -> None:
        self.capacity = capacity
        self.counts, self.sizes = count_table(self.tokens, self.labels, capacity)
        self.weights = np.concatenate([self.weights, np.zeros(capacity - len(self.weights))])

    def _state(self) -> SlotState:
        return SlotState(self.labels, self.counts, self.sizes, self.weights, self.rest)

    def _grow(self) -> None:
        from pluri.topics.hdp._gibbs_kernels import BLOCK

        self._make_room(self.capacity + max(BLOCK, self.capacity // 2 // BLOCK * BLOCK))

    def pass_over_tokens(self, rng: np.random.Generator, start: int = 0) -> None:
        """Draw the topics of all tokens in turn, beginning with token `start`."""
        from pluri.topics.hdp._gibbs_kernels import sweep
        from pluri.topics.hdp._sparse_kernels import sparse_sweep

        tokens = self.tokens.arrays
        while True:
            state, lists, room = self._state(), self._lists(), SlotRoom.of(self.capacity)
            if lists is None:
                start = sweep(rng, tokens, start, self.hyper, state, room)
            else:
                start = sparse_sweep(rng, tokens, start, self.hyper, state, lists, room)
            if start == self.tokens.n_tokens:
                return
            self._grow()

    def _lists(self) -> TopicLists | None:
        """Lists of the topics that each word has; there are none if there are few slots."""
        from pluri.topics.hdp._sparse_kernels import list_topics

        if self.capacity <= FEW or self.listed is not None:
            return self.listed
        tokens = self.tokens
        ends = np.cumsum(np.bincount(tokens.words, minlength=tokens.n_words))
        begins = np.concatenate([[0], ends[:-1]])
        self.listed = TopicLists(begins, np.zeros_like(begins), *np.zeros((2, tokens.n_tokens), dtype=np.uint32))
        list_topics(self.counts, self.listed)
        return self.listed

    def pass_over_tables(self, rng: np.random.Generator, documents: NDArray[np.int64]) -> None:
        """Draw the topics of the tables of these documents."""
        from pluri.topics.hdp._sparse_table_kernels import move_tables_sparsely
        from pluri.topics.hdp._table_kernels import move_tables

        tokens, longest = self.tokens, int(np.diff(self.tokens.offsets).max(initial=1))
        tables, cursor = TableRoom.of(self.capacity, tokens.n_words, longest), np.array([0, 0, -1])
        while True:
            lists, room = self._lists(), SlotRoom.of(self.capacity)
            given = rng, documents, tokens.arrays, self.hyper, self._state()
            if lists is None:
                move_tables(*given, room, tables, cursor)
            else:
                most = int(np.diff(lists.begins, append=tokens.n_tokens).max())
                bounds = BoundRoom.of(self.capacity, most, self.hyper.eta)
                move_tables_sparsely(*given, lists, room, bounds, tables, cursor)
            if cursor[0] == len(documents):
                return
            self._grow()
            tables = tables.for_slots(self.capacity)

    def dissolve_topics(self, rng: np.random.Generator, share: float) -> int:
        """Try to do without some topics, and let those go whose words others predict better; returns their number.

        This does not keep the posterior. It is for the warm-up, where topics that mix the words of two others, or
        double one, would last for many sweeps. A `share` of the topics is tried, but at least `LEAST_TRIES` of them.
        """
        self.listed = None
        alive = np.flatnonzero(self.sizes)
        n_tries = min(max(LEAST_TRIES, int(share * len(alive))), len(alive) - 1)
        most = TOO_LARGE * self.tokens.n_tokens
        return sum(self._dissolve(rng, int(k)) for k in rng.permutation(alive)[:n_tries] if self.sizes[k] < most)

    def _dissolve(self, rng: np.random.Generator, gone: int) -> bool:
        from pluri.topics.hdp._dissolve_kernels import dissolve

        members, stick, gamma = np.flatnonzero(self.labels == gone), float(self.weights[gone]), self.hyper.gamma
        ratio = stick / max(float(self.rest[0]), SHORTEST)
        log_prior = math.log(max(stick, SHORTEST) / gamma) + (gamma - 1.0) * math.log1p(ratio)
        room, wanted = SlotRoom.of(self.capacity), np.empty_like(self.labels[members])
        accepted = dissolve(rng, members, self.tokens.arrays, self.hyper, log_prior, self._state(), room, wanted)
        if accepted:
            self.rest += stick
            self.weights[gone] = 0.0
        return bool(accepted)

    def close(self) -> tuple[Labels, Array]:
        """Labels without gaps, and sticks with the rest last."""
        alive = np.flatnonzero(self.sizes)
        number: NDArray[Any] = np.full(self.capacity, -1, dtype=np.int32)
        number[alive] = np.arange(len(alive))
        return number[self.labels], np.maximum(np.append(self.weights[alive], self.rest), SHORTEST)
