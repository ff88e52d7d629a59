"""Where a chain over concept graphs is: the arrays that its sweeps change, and the same in a compact form.

The compact form, a position, is a dict of arrays: ``node_depth`` (from 1), ``node_protected`` and ``node_name`` of the
nodes in use, the root first; ``order``, their atoms (see `pluri.topics.concept_graph.arrays`; -1000 after the last);
``n_nodes`` of each depth, unused ones included; ``path`` and ``level`` and ``tau`` of the documents; ``stick_beta``
and ``topic_word_prior``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.topics.concept_graph.arrays import Corpus, Graph
from pluri.topics.concept_graph.evaluation.draws import KeptDraws

Position = Mapping[str, NDArray[Any]]
Integers = NDArray[np.int64]
#: What fills the rows of `order` up to the same length.
NOTHING = -1000


def atoms_by_depth(n_nodes: Integers, deeper: bool) -> Integers:
    """Number of atoms of a node of each depth: the end, and the nodes below it."""
    n_levels = len(n_nodes) - 1
    n_atoms = np.ones(n_levels + 1, dtype=np.int64)
    for k in range(1, n_levels):
        n_atoms[k] += n_nodes[k + 1 :].sum() if deeper else n_nodes[k + 1]
    return n_atoms


class GraphState:
    """State of a chain, changed in place by sweeps.

    Attributes
    ----------
    graph, corpus : arrays of the compiled loops
    stick_beta, topic_word_prior : float
    log_density : float
        log p of words, levels, paths, tau, orders, number of nodes, and what is learned.
    best, best_density : position of highest log density so far, and that density
    kept : KeptDraws
        Some draws, evenly apart.
    presence, n_collected : how many draws had each edge, by the names of its nodes; number of draws
    n_sweeps : int
    """

    def __init__(self, position: Position, words: Any, offsets: Integers, n_words: int, deeper: bool) -> None:
        depth = np.asarray(position["node_depth"])
        n_nodes = np.asarray(position["n_nodes"], dtype=np.int64).copy()
        n, n_levels = len(depth), len(n_nodes) - 1
        capacity = int(n_nodes.sum())
        n_atoms = atoms_by_depth(n_nodes, deeper)
        order = np.asarray(position["order"])
        names = np.asarray(position["node_name"])
        self.deeper = deeper
        self.graph = empty_graph(capacity, int(n_atoms.max()), n_words, n_nodes, n_atoms)
        self.graph.depth[:n] = depth
        self.graph.protected[:n] = position["node_protected"]
        self.graph.name[:n] = names
        self.graph.next_name[0] = int(position.get("next_name", names.max() + 1))
        self.graph.order[:n, : order.shape[1]] = order
        path = np.asarray(position["path"], dtype=np.int32).reshape(-1, n_levels)
        self.corpus = Corpus(
            words=words,
            level=np.array(position["level"], dtype=np.int8),
            offsets=offsets,
            path=path.copy(),
            length=(path >= 0).sum(axis=1).astype(np.int64),
            tau=np.array(position["tau"], dtype=np.float64),
            label=np.full(len(path), -1, dtype=np.int32),
            frozen=np.zeros(len(path), dtype=bool),
        )
        self.stick_beta = float(position["stick_beta"])
        self.topic_word_prior = float(position["topic_word_prior"])
        self.log_density = float("nan")
        self.best: Position | None = None
        self.best_density = -np.inf
        self.kept = KeptDraws()
        self.presence: dict[tuple[int, int], int] = {}
        self.n_collected = 0
        self.n_sweeps = 0

    @property
    def position(self) -> Position:
        """The same in compact form: copies, nodes numbered from 0."""
        graph = self.graph
        slots = np.flatnonzero(graph.depth)
        number = np.full(len(graph.depth), -1, dtype=np.int32)
        number[slots] = np.arange(len(slots))
        width = int(graph.n_atoms[graph.depth[slots]].max())
        order = np.full((len(slots), width), NOTHING, dtype=np.int32)
        for row, slot in zip(order, slots):
            n = graph.n_atoms[graph.depth[slot]]
            atoms = graph.order[slot, :n]
            row[:n] = np.where(atoms >= 0, number[np.maximum(atoms, 0)], atoms)
        path = self.corpus.path
        return {
            "node_depth": graph.depth[slots], "node_protected": graph.protected[slots], "node_name": graph.name[slots],
            "next_name": graph.next_name[0].copy(), "order": order, "n_nodes": graph.n_nodes.copy(),
            "path": np.where(path >= 0, number[np.maximum(path, 0)], -1).astype(np.int32),
            "level": self.corpus.level.copy(), "tau": self.corpus.tau.copy(),
            "stick_beta": np.asarray(self.stick_beta), "topic_word_prior": np.asarray(self.topic_word_prior),
        }  # fmt: skip

    def add_blanks(self, depth: int, number: int) -> None:
        """Add nodes that no path uses, last in the orders of all nodes above them; the arrays grow."""
        graph, old = self.graph, len(self.graph.depth)
        n_nodes = graph.n_nodes.copy()
        n_nodes[depth] += number
        n_atoms = atoms_by_depth(n_nodes, self.deeper)
        new = empty_graph(old + number, int(n_atoms.max()), graph.word_count.shape[0], n_nodes, n_atoms)
        for name in ("depth", "protected", "name", "total", "visits"):
            getattr(new, name)[:old] = getattr(graph, name)
        new.word_count[:, :old] = graph.word_count
        new.edge[:old, :old] = graph.edge[:, :old]
        new.edge[:old, -1] = graph.edge[:, -1]
        new.order[:old, : graph.order.shape[1]] = graph.order
        for x in np.flatnonzero(graph.depth):
            k = graph.depth[x]
            new.order[x, graph.n_atoms[k] : n_atoms[k]] = -1 - depth
        new.next_name[0] = graph.next_name[0]
        new.n_used[:] = graph.n_used
        new.members[:, :old] = graph.members
        self.graph = new

    def collect(self) -> None:
        """Note which edges there are, and keep the draw if it is its turn."""
        graph = self.graph
        self.kept.add(graph, self.topic_word_prior, self.deeper)
        for x, y in zip(*np.nonzero(graph.edge[:, :-1])):
            key = (int(graph.name[x]), int(graph.name[y]))
            self.presence[key] = self.presence.get(key, 0) + 1
        self.n_collected += 1


def empty_graph(capacity: int, width: int, n_words: int, n_nodes: Integers, n_atoms: Integers) -> Graph:
    """Arrays with room for so many nodes, all free."""
    n_levels = len(n_nodes) - 1
    return Graph(
        depth=np.zeros(capacity, dtype=np.int32),
        protected=np.zeros(capacity, dtype=bool),
        name=np.full(capacity, -1, dtype=np.int64),
        word_count=np.zeros((n_words, capacity), dtype=np.int32),
        total=np.zeros(capacity, dtype=np.int64),
        visits=np.zeros(capacity, dtype=np.int64),
        edge=np.zeros((capacity, capacity + 1), dtype=np.int32),
        order=np.full((capacity, width), NOTHING, dtype=np.int32),
        n_atoms=n_atoms.copy(),
        n_nodes=n_nodes.copy(),
        n_used=np.zeros(n_levels + 1, dtype=np.int64),
        members=np.zeros((n_levels + 1, capacity), dtype=np.int32),
        probability=np.zeros((capacity + n_levels + 1, capacity + n_levels + 2)),
        next_name=np.zeros(1, dtype=np.int64),
    )


def count_corpus(graph: Graph, corpus: Corpus) -> None:
    """Change `graph`: count all words and paths afresh, and list the slots in use."""
    for counts in (graph.word_count, graph.total, graph.visits, graph.edge, graph.n_used):
        counts[...] = 0
    path, on_path = corpus.path, corpus.path >= 0
    end = np.full((len(path), 1), -1, dtype=path.dtype)
    following = np.concatenate([path[:, 1:], end], axis=1)
    np.add.at(graph.visits, path[on_path], 1)
    np.add.at(graph.edge, (path[on_path], following[on_path]), 1)  # the last column counts the ends
    documents = np.repeat(np.arange(len(path)), np.diff(corpus.offsets))
    seated = corpus.length[documents] > 0
    nodes = path[documents, corpus.length[documents] - 1 - corpus.level][seated]
    np.add.at(graph.word_count, (corpus.words[seated], nodes), 1)
    np.add.at(graph.total, nodes, 1)
    for k in range(1, len(graph.n_used)):
        slots = np.flatnonzero(graph.depth == k)
        graph.n_used[k] = len(slots)
        graph.members[k, : len(slots)] = slots


def count_histogram(word_count: NDArray[np.int32]) -> Integers:
    """How often each count of a word at a node occurs."""
    return np.bincount(word_count.ravel())
