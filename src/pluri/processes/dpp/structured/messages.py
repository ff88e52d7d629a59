r"""Messages on a tree of factors: first and second moments of a sum of features over exponentially many structures.

A structure gives every node r a state. Its quality is a product of factors and its features are a sum,

.. math:: q(y) = \prod_r q_r(y_r) \prod_{(r, s)} q_{rs}(y_r, y_s), \qquad
   \phi(y) = \sum_r \phi_r(y_r) + \sum_{(r, s)} \phi_{rs}(y_r, y_s)

and :math:`C = \sum_y q(y)^2 \phi(y) \phi(y)^\top` follows from messages in the semiring of triples (p, a, M) with
:math:`(p, a, M) (p', a', M') = (p p', \; p a' + p' a, \; p M' + p' M + a a'^\top + a' a^\top)`. Here a triple is
carried as :math:`\log p`, mean :math:`a / p` and covariance :math:`M / p - a a^\top / p^2`: in a product all three
simply add, a sum mixes them, nothing underflows on long chains, and covariances stay positive.

References
----------
.. [1] Z. Li and J. Eisner, "First- and second-order expectation semirings", EMNLP 2009.
.. [2] A. Kulesza and B. Taskar, "Structured determinantal point processes", NeurIPS 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pluri.processes.dpp.kernel_forms import Array, IntArray

#: Entries of the largest array that a message may make at a time.
ROOM = 4_000_000


@dataclass(frozen=True, eq=False)
class FactorTree:
    """Factors on a rooted tree whose nodes come after their parents.

    Attributes
    ----------
    order : (n_nodes,): the caller's number of each node
    parent : (n_nodes,): place of its parent, -1 for the first
    log_node : for each node (n_states,): logarithm of its squared quality
    node_features : for each node (n_states, n_features)
    log_edge : for each node (n_parent_states, n_states): logarithm of the squared quality of the edge to its parent
    edge_features : for each node (n_parent_states, n_states, n_features), or None where an edge has no features
    """

    order: IntArray
    parent: IntArray
    log_node: Sequence[Array]
    node_features: Sequence[Array]
    log_edge: Sequence[Array | None]
    edge_features: Sequence[Array | None]

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.log_node)

    @property
    def n_features(self) -> int:
        """Length of the feature vectors."""
        return int(self.node_features[0].shape[1])


@dataclass(frozen=True, eq=False)
class Weights:
    """The distribution of a structure drawn with probability ``q(y)^2 / Z``.

    Attributes
    ----------
    log_total : log Z
    root : (n_states of the root,)
    conditional : for each node (n_parent_states, n_states): its distribution given the state of its parent
    """

    log_total: float
    root: Array
    conditional: Sequence[Array]


@dataclass(frozen=True, eq=False)
class Moments:
    """Means and variances of ``n_directions`` linear functions of the features, below each node.

    Attributes
    ----------
    mean, variance : for each node (n_states, n_directions): over its subtree, given its state
    message_mean, message_variance : for each node (n_parent_states, n_directions): given its parent's state
    """

    mean: Sequence[Array]
    variance: Sequence[Array]
    message_mean: Sequence[Array]
    message_variance: Sequence[Array]


def root_tree(n_nodes: int, edges: Sequence[tuple[int, int]]) -> tuple[IntArray, IntArray, IntArray]:
    """Order, parents (as places in the order) and the edge that leads to each node (-1 where there is none).

    Separate trees are hung on the first root by edges that are not in the list. ValueError if there is a loop.
    """
    neighbours: list[list[tuple[int, int]]] = [[] for _ in range(n_nodes)]
    for number, (one, other) in enumerate(edges):
        if not (0 <= one < n_nodes and 0 <= other < n_nodes):
            raise ValueError(f"edges must join nodes from 0 to {n_nodes - 1}, got {(one, other)}")
        if one == other:
            raise ValueError(f"edges must join two nodes, got {(one, other)}")
        neighbours[one].append((other, number))
        neighbours[other].append((one, number))
    place = np.full(n_nodes, -1)
    order: list[int] = []
    parent: list[int] = []
    via: list[int] = []
    for root in range(n_nodes):
        if place[root] >= 0:
            continue
        stack = [(root, -1 if root == 0 else 0, -1)]
        while stack:
            node, above, edge = stack.pop()
            if place[node] >= 0:
                raise ValueError(
                    f"edges must form a tree: sums over structures are exact only there, got a loop through node {node}"
                )
            place[node] = len(order)
            order.append(node)
            parent.append(above)
            via.append(edge)
            stack.extend((other, int(place[node]), number) for other, number in neighbours[node] if number != edge)
    return np.array(order), np.array(parent), np.array(via)


def sum_weights(tree: FactorTree) -> Weights:
    """One pass towards the root in logarithms."""
    beliefs = [np.array(values) for values in tree.log_node]
    conditional: list[Array] = [np.empty((0, 0))] * tree.n_nodes
    for c in range(tree.n_nodes - 1, 0, -1):
        edge = tree.log_edge[c]
        assert edge is not None
        table = edge + beliefs[c]
        conditional[c], message = _shares(table)
        beliefs[tree.parent[c]] += message
    root, total = _shares(beliefs[0][None])
    log_total = float(total[0])
    if not np.isfinite(log_total):
        raise ValueError(
            "node_quality and edge_quality must allow at least one structure, got none of positive quality"
        )
    return Weights(log_total, root[0], conditional)


def _shares(table: Array) -> tuple[Array, Array]:
    """Rows of ``exp(table)`` as shares of their sums, and logarithms of the sums; an impossible row has no shares."""
    top = table.max(axis=1)
    shares = np.exp(table - np.where(np.isfinite(top), top, 0.0)[:, None])
    total = shares.sum(axis=1)
    possible = total > 0
    shares /= np.where(possible, total, 1.0)[:, None]
    return shares, np.where(possible, top + np.log(np.where(possible, total, 1.0)), -np.inf)


def second_moment(tree: FactorTree, weights: Weights) -> Array:
    """``C / Z``: second moment of the features of a structure drawn with probability ``q(y)^2 / Z``."""
    width = tree.n_features
    means = [np.array(values) for values in tree.node_features]
    covariances: dict[int, Array] = {}
    for c in range(tree.n_nodes - 1, 0, -1):
        above = int(tree.parent[c])
        n_above, n_states = weights.conditional[c].shape
        inner = covariances.pop(c, None)
        total = covariances.setdefault(above, np.zeros((len(means[above]), width, width)))
        step = max(1, ROOM // (n_states * width))
        for begin in range(0, n_above, step):
            rows = slice(begin, begin + step)
            share = weights.conditional[c][rows]
            values = _with_edge(means[c], tree.edge_features[c], rows)
            mean = np.einsum("ps,psd->pd", share, values) if values.ndim == 3 else share @ values
            gap = (values - mean[:, None]) * np.sqrt(share)[:, :, None]
            total[rows] += gap.transpose(0, 2, 1) @ gap
            if inner is not None:
                total[rows] += (share @ inner.reshape(n_states, -1)).reshape(-1, width, width)
            means[above][rows] += mean
    result = (means[0] * weights.root[:, None]).T @ means[0]
    if 0 in covariances:
        result += np.einsum("s,sde->de", weights.root, covariances[0])
    return np.asarray(0.5 * (result + result.T))


def directional_moments(tree: FactorTree, weights: Weights, directions: Array) -> Moments:
    """Moments of ``directions.T @ phi`` below each node; ``directions`` is (n_features, n_directions)."""
    mean = [values @ directions for values in tree.node_features]
    variance = [np.zeros_like(values) for values in mean]
    message_mean, message_variance = [np.empty((0, 0))] * tree.n_nodes, [np.empty((0, 0))] * tree.n_nodes
    for c in range(tree.n_nodes - 1, 0, -1):
        above = int(tree.parent[c])
        share, edge = weights.conditional[c], tree.edge_features[c]
        values = mean[c] if edge is None else mean[c] + edge @ directions
        message_mean[c] = np.einsum("ps,psd->pd", share, values) if values.ndim == 3 else share @ values
        gap = values - message_mean[c][:, None]
        message_variance[c] = share @ variance[c] + np.einsum("ps,psd->pd", share, gap**2)
        mean[above] += message_mean[c]
        variance[above] += message_variance[c]
    return Moments(mean, variance, message_mean, message_variance)


def state_moments(tree: FactorTree, weights: Weights, directions: Array, moments: Moments) -> list[Array]:
    """For each node (n_states, n_directions): sum of ``q(y)^2 / Z (directions.T @ phi(y))^2`` over y with that state.

    One pass from the root: what lies outside a subtree is what its parent knows without the subtree's own message.
    """
    share = [weights.root] + [np.empty(0)] * (tree.n_nodes - 1)
    mean, variance = list(moments.mean), list(moments.variance)
    for c in range(1, tree.n_nodes):
        above = int(tree.parent[c])
        joint = share[above][:, None] * weights.conditional[c]
        share[c] = joint.sum(axis=0)
        back = joint / np.where(share[c] > 0, share[c], 1.0)
        outside = mean[above] - moments.message_mean[c]
        spread = np.maximum(variance[above] - moments.message_variance[c], 0.0)
        edge = tree.edge_features[c]
        values = outside[:, None] if edge is None else outside[:, None] + edge @ directions
        values = np.broadcast_to(values, (*back.shape, directions.shape[1]))
        centre = np.einsum("ps,psd->sd", back, values)
        mean[c] = moments.mean[c] + centre
        variance[c] = moments.variance[c] + back.T @ spread + np.einsum("ps,psd->sd", back, (values - centre) ** 2)
    return [p[:, None] * (v + m**2) for p, m, v in zip(share, mean, variance)]


def _with_edge(values: Array, edge: Array | None, rows: slice) -> Array:
    return values if edge is None else values + edge[rows]
