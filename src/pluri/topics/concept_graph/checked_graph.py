"""A fitted concept graph whose arrays lead nowhere but into each other; see `pluri.topics.checked_state`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.topics.checked_state import indices, number, numbers, one_for_each, whole_number
from pluri.topics.concept_graph.arrays import END
from pluri.topics.concept_graph.sampling.state import NOTHING, atoms_by_depth

#: Nodes that may be there unused; there is room for all of them in the arrays of a sweep.
MOST_UNUSED = 100_000


def check_graph(model: Any, n_topics: int, n_words: int) -> None:
    """Raise a ValueError if anything of a fitted :class:`~pluri.topics.ConceptGraph` does not fit together."""
    n_levels = whole_number("n_levels", model.n_levels, 1)
    depth = indices("node_depth_", model.node_depth_, (n_topics,), n_levels)
    _check_steps("_step", model._step, n_topics, n_levels)
    numbers("end_probability_", model.end_probability_, (n_topics,), least=0)
    edges = indices("edges_", model.edges_, (None, 2), n_topics)
    for name in ("edge_count_", "edge_probability_", "edge_stability_"):
        numbers(name, getattr(model, name), (len(edges),), least=0)
    numbers("node_documents_", model.node_documents_, (n_topics,), least=0)
    one_for_each("node_labels_", model.node_labels_, object, n_topics)
    numbers("nodes_by_level_", model.nodes_by_level_, (n_levels, 2), least=0)
    if whole_number("n_topics_", model.n_topics_) != n_topics:
        raise ValueError(f"n_topics_ must be {n_topics}, as there are topics, got {model.n_topics_}")
    for draw in one_for_each("draws_", [*one_for_each("draws_", model.draws_, dict), model._best_draw], dict):
        _check_draw(draw, n_words, n_levels)
    n_given = len(one_for_each("given_labels_", model.given_labels_, object))
    given_depth, given_edges = one_for_each("_given", model._given, np.ndarray, 2)
    indices("depths of the given graph", given_depth, (n_given,), n_levels + 1, least=1)
    indices("edges of the given graph", given_edges, (None, 2), n_given)
    _check_position(model, depth, n_words, n_levels, n_given)


def _check_steps(name: str, step: Any, n_nodes: int, n_levels: int) -> None:
    """Steps go down, and not round and round."""
    reached = numbers(name, step, (n_nodes, n_nodes), least=0) > 0
    walk = np.eye(n_nodes, 1, dtype=bool).ravel()
    for _ in range(n_levels):
        walk = walk @ reached
    if walk.any():
        raise ValueError(f"{name} must lead from the root to an end in fewer than {n_levels} steps, got a longer path")


def _check_draw(draw: dict[str, Any], n_words: int, n_levels: int) -> None:
    name = "draws_"
    missing = {"name", "count", "word", "offset", "n_words", "topic_word_prior", "step", "end"} - draw.keys()
    if missing:
        raise ValueError(f"{name} must have all of a draw, got one without {min(missing)}")
    names = numbers(f"{name}: name", draw["name"], (None,), least=0)
    n_nodes = len(names)
    if draw["n_words"] != n_words:
        raise ValueError(f"{name}: n_words must be {n_words}, got {draw['n_words']!r}")
    number(f"{name}: topic_word_prior", draw["topic_word_prior"], above=0)
    counts = numbers(f"{name}: count", draw["count"], (None,), least=0)
    indices(f"{name}: word", draw["word"], (len(counts),), n_words)
    _check_offsets(f"{name}: offset", draw["offset"], n_nodes, len(counts))
    sparse.csr_matrix((counts, draw["word"], draw["offset"]), shape=(n_nodes, n_words)).check_format(full_check=True)
    n_all = n_nodes + n_levels - 1
    _check_steps(f"{name}: step", draw["step"], n_all, n_levels)
    numbers(f"{name}: end", draw["end"], (n_all,), least=0)


def _check_offsets(name: str, offsets: Any, n_parts: int, size: int) -> None:
    found = indices(name, offsets, (n_parts + 1,), size + 1)
    if found[0] != 0 or found[-1] != size or (np.diff(found.astype(np.int64)) < 0).any():
        raise ValueError(f"{name} must rise from 0 to {size}, got {found[0]} to {found[-1]}")


def _check_position(model: Any, depth: NDArray[Any], n_words: int, n_levels: int, n_given: int) -> None:
    """What :meth:`partial_fit` goes on from."""
    position = model.position_
    wanted = ("node_depth", "node_protected", "node_name", "order", "n_nodes", "path", "level", "tau", "stick_beta")
    for name in (*wanted, "topic_word_prior"):
        if not isinstance(position, dict) or name not in position:
            raise ValueError(f"position_ must have {name}, got none")
    n = len(depth)
    node_depth = indices("position_: node_depth", position["node_depth"], (n,), n_levels + 1, least=1)
    if (node_depth != depth + 1).any() or node_depth[0] != 1 or (node_depth == 1).sum() != 1:
        raise ValueError("position_: node_depth must be node_depth_ + 1, with one root, which comes first")
    protected = numbers("position_: node_protected", position["node_protected"], (n,), least=0, most=1).astype(bool)
    names = numbers("position_: node_name", position["node_name"], (n,), least=0)
    if (names[protected] >= n_given).any() or len(np.unique(names)) != n:
        raise ValueError("position_: node_name must be different numbers, those of given nodes their place among them")
    if "next_name" in position:
        numbers("position_: next_name", np.asarray(position["next_name"]), (), above=float(names.max()))
    n_nodes = numbers("position_: n_nodes", position["n_nodes"], (n_levels + 1,), least=0)
    used = np.bincount(node_depth, minlength=n_levels + 1)
    if (n_nodes < used).any() or (n_nodes - used).sum() > MOST_UNUSED:
        raise ValueError(f"position_: n_nodes must be at least {used.tolist()}, got {n_nodes.tolist()}")
    _check_orders(position["order"], node_depth, n_nodes.astype(np.int64), used, model.feasible == "deeper")
    for name in ("stick_beta", "topic_word_prior"):
        numbers(f"position_: {name}", np.asarray(position[name]), (), above=0)
    path = indices("position_: path", position["path"], (None, n_levels), n, least=-1)
    length = (path >= 0).sum(axis=1)
    stops = np.where(path >= 0, node_depth[np.maximum(path, 0)], n_levels + 1 + np.arange(n_levels))
    if (length < 1).any() or (path[:, 0] != 0).any() or (np.diff(stops, axis=1) <= 0).any():
        raise ValueError("position_: path must lead downwards from the root, and have -1 after its end")
    n_documents = len(path)
    words = indices("_words_seen", model._words_seen, (None,), n_words)
    _check_offsets("_offsets", model._offsets, n_documents, len(words))
    level = indices("position_: level", position["level"], (len(words),), n_levels)
    if (level >= np.repeat(length, np.diff(model._offsets))).any():
        raise ValueError("position_: level must be less than the number of nodes on the path of the document")
    numbers("position_: tau", position["tau"], (n_documents,), least=0, most=1)
    indices("_document_labels", model._document_labels, (n_documents,), n_given, least=-1)
    indices("paths_", model.paths_, (n_documents, n_levels), n, least=-1)


def _check_orders(
    order: Any, node_depth: NDArray[Any], n_nodes: NDArray[np.int64], used: NDArray[Any], deeper: bool
) -> None:
    """What follows each node: the end, each node below it and the unused ones, each once."""
    n_levels = len(n_nodes) - 1
    rows = indices("position_: order", order, (len(node_depth), None), len(node_depth), least=NOTHING)
    n_atoms = atoms_by_depth(n_nodes, deeper)
    for row, depth in zip(rows, node_depth):
        below = range(depth + 1, n_levels + 1) if deeper else range(depth + 1, min(depth + 2, n_levels + 1))
        blanks = [np.full(n_nodes[k] - used[k], -1 - k) for k in below]
        atoms = np.concatenate([np.flatnonzero(np.isin(node_depth, [*below])), *blanks, [END]])
        there = row[: n_atoms[depth]]
        if not np.array_equal(np.sort(there), np.sort(atoms)) or (row[n_atoms[depth] :] != NOTHING).any():
            raise ValueError("position_: order must have all that may follow a node once, got a row that has not")
