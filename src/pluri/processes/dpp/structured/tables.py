"""What the compiled walk down a tree reads: factors and moments, padded to the largest number of states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.structured.messages import FactorTree, Moments, Weights


class PaddedTables(NamedTuple):
    """Arrays over nodes and the states s of a node or t of its parent; see `FactorTree`, `Weights` and `Moments`.

    Attributes
    ----------
    root : (most_states,)
    parent, n_states : (n_nodes,)
    conditional : (n_nodes, t, s)
    mean, variance : (n_directions, n_nodes, s)
    message_mean, message_variance : (n_directions, n_nodes, t)
    has_edge : (n_nodes,), whether the edge to the parent has features
    edge_features : (n_nodes, t, s, n_features), or of no length if no edge has any
    node_features : (n_nodes, s, n_features)
    """

    root: Array
    parent: IntArray
    n_states: IntArray
    conditional: Array
    mean: Array
    variance: Array
    message_mean: Array
    message_variance: Array
    has_edge: NDArray[np.bool_]
    edge_features: Array
    node_features: Array


def pad_tables(tree: FactorTree, weights: Weights, moments: Moments) -> PaddedTables:
    """The tables of a tree, and of moments along some directions."""
    n_states = np.array([len(values) for values in tree.log_node], dtype=np.int64)
    most, n_nodes, width = int(n_states.max()), tree.n_nodes, tree.n_features
    has_edge = np.array([features is not None for features in tree.edge_features])
    edge_features = np.zeros((n_nodes, most, most, width) if has_edge.any() else (0, 0, 0, 0))
    for c, edge in enumerate(tree.edge_features):
        if edge is not None:
            edge_features[c, : edge.shape[0], : edge.shape[1]] = edge
    conditional, node_features = np.zeros((n_nodes, most, most)), np.zeros((n_nodes, most, width))
    for c, (shares, features) in enumerate(zip(weights.conditional, tree.node_features)):
        conditional[c, : shares.shape[0], : shares.shape[1]] = shares
        node_features[c, : len(features)] = features

    def by_direction(parts: Sequence[Array]) -> Array:
        table = np.zeros((moments.mean[0].shape[1], n_nodes, most))
        for c, part in enumerate(parts):
            table[:, c, : len(part)] = part.T if part.size else 0.0
        return table

    return PaddedTables(
        root=np.pad(weights.root, (0, most - len(weights.root))),
        parent=tree.parent.astype(np.int64),
        n_states=n_states,
        conditional=conditional,
        mean=by_direction(moments.mean),
        variance=by_direction(moments.variance),
        message_mean=by_direction(moments.message_mean),
        message_variance=by_direction(moments.message_variance),
        has_edge=has_edge,
        edge_features=edge_features,
        node_features=node_features,
    )
