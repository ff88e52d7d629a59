"""Factors of structures as a person gives them, checked and hung on a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pluri.processes.dpp.kernel_forms import Array
from pluri.processes.dpp.structured.messages import FactorTree, root_tree
from pluri.validation import Whole, check_value

#: Features of structures above this would overflow in their products.
LARGEST = 1e140


def read_factors(
    node_features: Any,
    node_quality: Any,
    edges: Sequence[tuple[int, int]] | None,
    edge_quality: Any,
    edge_features: Any,
    n_projections: int | None,
    rng: np.random.Generator,
) -> FactorTree:
    """The arguments of `StructuredDPP` as a `FactorTree`; ValueError in one sentence where they do not fit."""
    features = _node_features(node_features)
    width, n_nodes = features[0].shape[1], len(features)
    sizes = [len(values) for values in features]
    quality = [np.ones(size) for size in sizes]
    if node_quality is not None:
        quality = [_quality(values, f"node_quality[{r}]", (sizes[r],)) for r, values in enumerate(node_quality)]
        if len(quality) != n_nodes:
            raise ValueError(f"node_quality must have {n_nodes} nodes like node_features, got {len(quality)}")
    pairs = [(r, r + 1) for r in range(n_nodes - 1)] if edges is None else _pairs(edges)
    order, parent, via = root_tree(n_nodes, pairs)
    shapes = [(sizes[one], sizes[other]) for one, other in pairs]
    between = [
        _quality(values, f"edge_quality[{e}]", shapes[e])
        for e, values in enumerate(_for_each_edge(edge_quality, len(pairs), 2, "edge_quality"))
    ]
    along = [
        _shaped(values, f"edge_features[{e}]", (*shapes[e], width))
        for e, values in enumerate(_for_each_edge(edge_features, len(pairs), 3, "edge_features"))
    ]
    if n_projections is not None:
        check_value(n_projections, "n_projections", Whole(1))
        projection = rng.standard_normal((width, int(n_projections))) / np.sqrt(n_projections)
        features = [values @ projection for values in features]
        along = [values @ projection for values in along]
    log_edge: list[Array | None] = [None] * n_nodes
    edge_rows: list[Array | None] = [None] * n_nodes
    for place, node in enumerate(order):
        if parent[place] < 0:
            continue
        above, edge = int(order[parent[place]]), int(via[place])
        # An edge may be given from the child to the parent.
        turned = edge >= 0 and pairs[edge][0] != above
        factor = between[edge] if between and edge >= 0 else np.ones((sizes[above], sizes[node]))
        log_edge[place] = _log_square(factor.T if turned and between else factor)
        if along and edge >= 0:
            edge_rows[place] = np.ascontiguousarray(along[edge].transpose(1, 0, 2) if turned else along[edge])
    log_node = [_log_square(quality[node]) for node in order]
    return FactorTree(order, parent, log_node, [features[node] for node in order], log_edge, edge_rows)


def _node_features(node_features: Any) -> list[Array]:
    features = [_finite(values, f"node_features[{r}]", 2) for r, values in enumerate(node_features)]
    if not features:
        raise ValueError("node_features must have at least one node, got none")
    for r, values in enumerate(features):
        if values.shape[1] != features[0].shape[1] or 0 in values.shape:
            raise ValueError(
                f"node_features must have the same number of columns at every node and a row for each state, got "
                f"shapes {features[0].shape} and {values.shape} (node {r})"
            )
    largest = max(float(np.abs(values).max()) for values in features)
    if largest > LARGEST / len(features):
        raise ValueError(f"node_features must be at most {LARGEST:g} over the number of nodes, got {largest:.3g}")
    return features


def _pairs(edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    pairs = np.asarray(edges)
    if pairs.size == 0:
        return []
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(f"edges must be pairs of node numbers, got shape {pairs.shape} of {pairs.dtype}")
    return [(int(one), int(other)) for one, other in pairs]


def _for_each_edge(values: Any, n_edges: int, ndim: int, name: str) -> list[Any]:
    """One array for each edge; a single array serves all."""
    if values is None:
        return []
    if isinstance(values, np.ndarray) and values.ndim == ndim:
        return [values] * n_edges
    given = list(values)
    if len(given) != n_edges:
        raise ValueError(f"{name} must be one array, or one for each of {n_edges} edges, got {len(given)}")
    return given


def _finite(values: Any, name: str, ndim: int) -> Array:
    array = np.array(values, dtype=np.float64)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimensions, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return array


def _shaped(values: Any, name: str, shape: tuple[int, ...]) -> Array:
    array = _finite(values, name, len(shape))
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def _quality(values: Any, name: str, shape: tuple[int, ...]) -> Array:
    array = _shaped(values, name, shape)
    if (array < 0).any():
        raise ValueError(f"{name} must not be negative, got {array.min():.3g}")
    return array


def _log_square(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(2.0 * np.log(values))
