"""What is kept of the chains over a concept graph: the draw of highest log joint probability, and some others."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference import mcmc
from pluri.topics.concept_graph.evaluation.draws import draw_of
from pluri.topics.concept_graph.given_graph import GivenGraph
from pluri.topics.concept_graph.sampling.gibbs import ConceptGraphGibbs
from pluri.topics.concept_graph.sampling.state import GraphState, Position

Array = NDArray[np.float64]


def keep(model: Any, kernel: ConceptGraphGibbs, given: GivenGraph, trace: mcmc.Trace) -> None:
    """Write what the chains found into the attributes of a model."""
    states: list[GraphState] = [end.state for end in trace.ends]
    for state in states:
        if state.best is None:  # Ctrl-C came during the warm-up
            state.best, state.best_density = state.position, state.log_density
    best = int(np.argmax([state.best_density for state in states]))
    state = states[best]
    assert state.best is not None
    position = _sorted_nodes(state.best, kernel.n_documents)
    fitted = kernel.init(np.random.default_rng(0), position)
    graph, n = fitted.graph, len(position["node_depth"])
    eta = fitted.topic_word_prior
    model._best_draw = draw_of(graph, eta, kernel.deeper)
    model.draws_ = state.kept.draws or [model._best_draw]
    model.position_ = position
    model.components_ = np.asarray(graph.word_count[:, :n].T + eta, dtype=np.float64)
    model.topic_word_ = model.components_ / model.components_.sum(axis=1, keepdims=True)
    total: Array = graph.total[:n].astype(np.float64)
    model.topic_weight_ = np.full(n, 1.0 / n) if total.sum() == 0 else np.divide(total, total.sum())
    model.node_depth_ = position["node_depth"].astype(np.int64) - 1
    used = np.bincount(model.node_depth_, minlength=kernel.n_levels)
    model.nodes_by_level_ = np.column_stack([used, position["n_nodes"][1:]])
    names, given_before = position["node_name"], position["node_protected"]
    model.node_labels_ = [given.names[name] if known else None for name, known in zip(names, given_before)]
    model.node_documents_ = graph.visits[:n].copy()
    edge = graph.edge[:n, :n]
    model.edges_ = np.argwhere(edge > 0)
    upper, lower = model.edges_.T
    model.edge_count_ = edge[upper, lower].astype(np.int64)
    model._step = model._best_draw["step"][:n, :n]
    model.edge_probability_ = model._step[upper, lower]
    model.end_probability_ = graph.probability[:n, -1].copy()
    model.edge_stability_ = np.array(
        [state.presence.get((int(names[x]), int(names[y])), 0) / max(1, state.n_collected) for x, y in model.edges_]
    )
    model.paths_ = position["path"].astype(np.int64)
    model.labels_ = model.paths_[np.arange(len(model.paths_)), (model.paths_ >= 0).sum(axis=1) - 1]
    model.best_log_joint_, model.best_chain_ = float(state.best_density), best
    model.stick_beta_, model.topic_word_prior_ = fitted.stick_beta, eta
    model.acceptance_ = {name: float(np.mean(values)) for name, values in trace.stats.items() if name != "log_density"}
    model.n_topics_ = n
    model._words_seen, model._offsets, model._document_labels = kernel.words, kernel.offsets, kernel.labels
    model.given_labels_, model._given = list(given.names), (given.depth, given.edges)


def warn_of_nodes(model: Any, given: GivenGraph, n_documents: int) -> None:
    """Tell if the usual number of nodes is reached, or if there are nodes for every other document without a limit."""
    name, most = type(model).__name__, model.max_nodes_per_level
    if most is None and model.n_topics_ > max(len(given.depth), n_documents / 2):
        warnings.warn(
            f"{name}: {model.n_topics_} nodes for {n_documents} documents; give max_nodes_per_level, or a larger "
            "topic_word_prior",
            UserWarning,
            stacklevel=5,
        )
    if isinstance(most, str) and most == "auto":
        used, there = model.nodes_by_level_.T
        full = np.flatnonzero((used == there) & (np.arange(len(used)) > 0))
        if len(full):
            warnings.warn(
                f"{name}: all {there[full[0]]} nodes of level {' and '.join(map(str, full))} are used; give "
                f"max_nodes_per_level, a larger number for more of them or {there[full[0]]} if they are enough",
                UserWarning,
                stacklevel=5,
            )


def _sorted_nodes(position: Position, n_documents: int) -> Position:
    """The same with nodes by depth and number of documents."""
    path = np.asarray(position["path"])
    visits = np.bincount(path[path >= 0], minlength=len(position["node_depth"]))
    order = np.lexsort((position["node_name"], -visits, position["node_depth"]))
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order))
    atoms = np.asarray(position["order"])[order]
    return {
        **position, **{name: position[name][order] for name in ("node_depth", "node_protected", "node_name")},
        "order": np.where(atoms >= 0, number[np.maximum(atoms, 0)], atoms).astype(np.int32),
        "path": np.where(path >= 0, number[np.maximum(path, 0)], -1).astype(np.int32),
    }  # fmt: skip
