"""Where chains over concept graphs start without plain topics: documents at the root, or on the way to their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.topics.concept_graph.arrays import END
from pluri.topics.concept_graph.sampling.state import NOTHING, Integers, Position, atoms_by_depth

if TYPE_CHECKING:
    from pluri.topics.concept_graph.sampling.gibbs import ConceptGraphGibbs

#: Nodes of each depth that no path uses, where the number is not given, to begin with.
FIRST_BLANKS = 12


def first_position(kernel: ConceptGraphGibbs, rng: np.random.Generator, given_edges: Any = None) -> Position:
    """Documents at the root; labelled ones on a random path to their node, along given edges if there are any."""
    depth = np.asarray(kernel.given_depth, dtype=np.int64)
    n_nodes = np.bincount(depth, minlength=kernel.n_levels + 1)
    n_nodes[2:] = n_nodes[2:] + FIRST_BLANKS if kernel.max_nodes is None else kernel.max_nodes
    path = np.full((kernel.n_documents, kernel.n_levels), -1, dtype=np.int32)
    path[:, 0] = 0
    above: dict[int, list[int]] = {}
    for x, y in [] if given_edges is None else given_edges:
        above.setdefault(int(y), []).append(int(x))
    if kernel.labels is not None:
        for d in np.flatnonzero(kernel.labels > 0):
            nodes = [int(kernel.labels[d])]
            while depth[nodes[0]] > 1:
                choices = above.get(nodes[0]) or np.flatnonzero(depth == depth[nodes[0]] - 1).tolist() or [0]
                nodes.insert(0, int(rng.choice(choices)))
            path[d, : len(nodes)] = nodes
    tau = rng.beta(kernel.tau_prior.a, kernel.tau_prior.b, size=kernel.n_documents).clip(1e-6, 1 - 1e-6)
    position = {
        "node_depth": depth.astype(np.int32), "node_protected": np.ones(len(depth), dtype=bool),
        "node_name": np.arange(len(depth)), "order": draw_orders(kernel, rng, depth, n_nodes), "n_nodes": n_nodes,
        "path": path, "level": draw_levels(kernel, rng, path, tau), "tau": tau,
        "stick_beta": np.asarray(kernel.learned_beta.value),
        "topic_word_prior": np.asarray(kernel.learned_words.value),
    }  # fmt: skip
    return position


def draw_orders(
    kernel: ConceptGraphGibbs, rng: np.random.Generator, depth: Integers, n_nodes: Integers
) -> NDArray[np.int32]:
    """Orders of nodes of these depths, uniform over all."""
    n_atoms = atoms_by_depth(n_nodes, kernel.deeper)
    order = np.full((len(depth), int(n_atoms[depth].max())), NOTHING, dtype=np.int32)
    for row, k in zip(order, depth):
        atoms = [END]
        for below in range(k + 1, (kernel.n_levels if kernel.deeper else min(k + 1, kernel.n_levels)) + 1):
            there = np.flatnonzero(depth == below)
            atoms += there.tolist() + [-1 - below] * int(n_nodes[below] - len(there))
        row[: len(atoms)] = rng.permutation(atoms)
    return order


def draw_levels(kernel: ConceptGraphGibbs, rng: np.random.Generator, path: Any, tau: Any) -> NDArray[np.int8]:
    """Levels of all words given paths and tau."""
    level = np.zeros(len(kernel.words), dtype=np.int8)
    length = (np.asarray(path) >= 0).sum(axis=1)
    for d in np.flatnonzero(length > 1):
        n = int(kernel.offsets[d + 1] - kernel.offsets[d])
        if kernel.level_prior == "dirichlet":
            share = rng.dirichlet(kernel.level_concentration(int(length[d])))
        else:
            share = (1.0 - tau[d]) ** np.arange(length[d])
        level[kernel.offsets[d] : kernel.offsets[d + 1]] = rng.choice(length[d], size=n, p=share / share.sum())
    return level
