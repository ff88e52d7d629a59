"""The arrays that the compiled sweeps of a concept graph read and change.

A node sits in a slot. Slot 0 is the root, at depth 1; the depth of a free slot is 0. What may follow a node of depth k
are its atoms: the end of the path, and every node of depth k + 1 (or of any greater depth). Nodes that no path uses
are all alike, so that they have no slot: they are blank places in the orders of the nodes above them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Atom at which a path ends. A blank place for a node of depth k is the atom -1 - k.
END = -1
#: Most paths compared in a joint move that frees one place.
MOST_PATHS = 48
#: Paths proposed by a joint move that frees all places, and those among which a document that has none chooses.
N_PROPOSED, N_FIRST = 4, 8


class Graph(NamedTuple):
    """Nodes, their words, and what follows what. There are c slots, V words and L levels.

    Attributes
    ----------
    depth, protected, name : (c,)
        Depth from 1, 0 if the slot is free; whether the node stays without documents; a number no other node gets.
    word_count, total : (V, c) and (c,)
        Tokens of each word at each node, and of all words.
    visits, edge : (c,) and (c, c + 1)
        Documents that pass each node, and each edge; the last column counts those that end there.
    order : (c, width)
        Atoms of each node in the order of its sticks.
    n_atoms, n_nodes, n_used : (L + 1,)
        By depth: atoms of a node there; nodes there, blank ones included; and those that have a slot.
    members : (L + 1, c)
        Slots in use at each depth; the first `n_used` of a row.
    probability : (c + L + 1, c + L + 2)
        Predictive probability of each step: to a slot, to a new node of depth k (column c + k), to the end (last). Row
        c + k is that of a new node of depth k.
    next_name : (1,)
    """

    depth: NDArray[np.int32]
    protected: NDArray[np.bool_]
    name: NDArray[np.int64]
    word_count: NDArray[np.int32]
    total: NDArray[np.int64]
    visits: NDArray[np.int64]
    edge: NDArray[np.int32]
    order: NDArray[np.int32]
    n_atoms: NDArray[np.int64]
    n_nodes: NDArray[np.int64]
    n_used: NDArray[np.int64]
    members: NDArray[np.int32]
    probability: NDArray[np.float64]
    next_name: NDArray[np.int64]


class Corpus(NamedTuple):
    """Documents, and where their words come from.

    Attributes
    ----------
    words, level : (n_tokens,)
        Word of each token, and how far from the end of the document's path its node is. Equal words of a document are
        next to each other.
    offsets : (n_documents + 1,)
    path, length : (n_documents, L) and (n_documents,)
        Slots on the path of each document from the root, -1 after its end; number of nodes on it.
    tau : (n_documents,)
    label : (n_documents,)
        Slot where the path must end, or -1.
    frozen : (n_documents,)
        Whether the document stays as it is.
    """

    words: NDArray[np.int32]
    level: NDArray[np.int8]
    offsets: NDArray[np.int64]
    path: NDArray[np.int32]
    length: NDArray[np.int64]
    tau: NDArray[np.float64]
    label: NDArray[np.int32]
    frozen: NDArray[np.bool_]


class Numbers(NamedTuple):
    """Hyper-parameters and choices, as the compiled loops take them."""

    alpha: float
    beta: float
    eta: float
    a: float
    b: float
    dirichlet: bool
    deeper: bool
    length_factor: bool
    reorder: bool


class Task(NamedTuple):
    """What a sweep does: factors that a product may have, joint moves of a document, and two choices.

    Paths are drawn given levels if `draw_paths`; at the end come swaps at all nodes if `swap_all`.
    """

    step: int
    n_joint: int
    draw_paths: bool
    swap_all: bool


class StickTables(NamedTuple):
    """lgamma(alpha + n), lgamma(beta + n) and lgamma(alpha + beta + n) for n up to the number of documents."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    both: NDArray[np.float64]


class Compared(NamedTuple):
    """Paths that a joint move compares, a row each: nodes, their number, levels of the words, tau, and log weight."""

    paths: NDArray[np.int64]
    lengths: NDArray[np.int64]
    levels: NDArray[np.int8]
    taus: NDArray[np.float64]
    logits: NDArray[np.float64]


class JointRoom(NamedTuple):
    """Room of a joint move: `states` that may follow; by level `share`, `sizes`, `seen`; by node the other three."""

    states: NDArray[np.int64]
    share: NDArray[np.float64]
    sizes: NDArray[np.int64]
    seen: NDArray[np.int64]
    factor: NDArray[np.float64]
    score: NDArray[np.float64]
    value: NDArray[np.float64]


class PathRoom(NamedTuple):
    """Room of the draw of a path: by level and node `log_term` and `product`, by length, place and node `back`."""

    path: NDArray[np.int64]
    decay: NDArray[np.float64]
    log_term: NDArray[np.float64]
    product: NDArray[np.float64]
    back: NDArray[np.float64]
    weight: NDArray[np.float64]
    highest: NDArray[np.float64]


def sweep_room(capacity: int, n_levels: int, longest: int) -> tuple[Compared, JointRoom, PathRoom]:
    """Memory of a sweep over documents of at most `longest` words."""
    n_paths, n_states = max(capacity, N_FIRST) + n_levels + 2, capacity + n_levels + 1
    compared = Compared(
        np.empty((n_paths, n_levels), dtype=np.int64), np.empty(n_paths, dtype=np.int64),
        np.empty((min(n_paths, MOST_PATHS + 1), longest), dtype=np.int8), np.empty(n_paths), np.empty(n_paths),
    )  # fmt: skip
    joint = JointRoom(
        np.empty(n_paths, dtype=np.int64), np.empty(n_levels), np.empty(n_levels, dtype=np.int64),
        np.empty(n_levels, dtype=np.int64), np.empty((longest, capacity)), np.empty(capacity), np.empty(n_states),
    )  # fmt: skip
    places = PathRoom(
        np.empty(n_levels, dtype=np.int64), np.empty(n_levels), np.empty((n_levels, capacity + 1)),
        np.empty((n_levels, capacity + 1)), np.empty((n_levels + 1, n_levels + 1, n_states)), np.empty(n_states),
        np.empty(n_levels + 2),
    )  # fmt: skip
    return compared, joint, places
