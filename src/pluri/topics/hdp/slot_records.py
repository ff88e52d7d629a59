"""What the compiled passes of the HDP sampler take: its state in slots, its numbers, and room to work in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Hyperparameters(NamedTuple):
    """Concentration of the documents, of the corpus, and prior count of every word."""

    alpha: float
    gamma: float
    eta: float


class SlotState(NamedTuple):
    """Topics of the tokens (-1 for none), tokens of each word in each slot, tokens of each slot, and sticks.

    `rest` has one entry, the part of the stick without topics.
    """

    labels: NDArray[np.int32]
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
