r"""Structured determinantal point processes: several different paths, threads or poses at once.

An item is a whole structure: a state for every node of a chain or tree. With qualities that multiply over the nodes and
edges, and features that add up, :math:`L(y, y') = q(y) \, \phi(y)^\top \phi(y') \, q(y')` over exponentially many
structures has the small dual matrix :math:`C = \sum_y q(y)^2 \phi(y) \phi(y)^\top`, which messages on the tree give
exactly. Its eigenvalues are those of L; a structure is drawn by walking down the tree.

References
----------
.. [1] A. Kulesza and B. Taskar, "Structured determinantal point processes", NeurIPS 2010.
.. [2] J. Gillenwater, A. Kulesza and B. Taskar, "Discovering diverse and salient threads in document collections",
   EMNLP 2012 (random projections of the features).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.sizes import number_of_draws
from pluri.processes.dpp.structured.directions import chances, check_size, log_normalizer, take_directions
from pluri.processes.dpp.structured.factors import read_factors
from pluri.processes.dpp.structured.messages import (
    FactorTree,
    Moments,
    Weights,
    directional_moments,
    second_moment,
    state_moments,
    sum_weights,
)
from pluri.validation import RandomState, as_generator

#: Eigenvalues below this share of the largest, and angles below it, are rounding of zero.
NEGLIGIBLE = 1e-12
#: Proposals for one structure of a set of one; the mean for the last of k is k.
PATIENCE = 500


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


class StructuredDPP:
    """A process whose items are structures: assignments of a state to every node of a chain or tree.

    Parameters
    ----------
    node_features : array_like (n_nodes, n_states, n_features) or list of (n_states of the node, n_features)
        What each state of each node adds to the features of a structure.
    node_quality : array_like (n_nodes, n_states) or list of arrays, optional
        Non-negative factors; 1 by default, 0 forbids a state.
    edges : list of pairs of nodes, optional
        A tree (or several); the chain 0 - 1 - 2 - ... by default.
    edge_quality : list of array_like (n_states of the first, n_states of the second), optional
        Factor of each edge; one array serves all edges.
    edge_features : list of array_like (n_states of the first, n_states of the second, n_features), optional
        What each edge adds to the features; one array serves all edges.
    n_projections : int, optional
        Replace the features by this many random combinations of them, which keep lengths and angles approximately:
        for long features, since the cost grows with the square of their number.
    random_state : int, Generator or None
        For the projection.

    Attributes
    ----------
    log_odds : ndarray (rank,)
        Logarithms of the eigenvalues of C, largest first.

    Examples
    --------
    Two different paths of 50 steps on a line, each moving at most one place at a time:

    >>> import numpy as np
    >>> from pluri.processes.dpp.structured.process import StructuredDPP
    >>> places = np.arange(5)
    >>> step = (np.abs(places[:, None] - places) <= 1).astype(float)
    >>> features = np.broadcast_to(np.eye(5), (50, 5, 5))
    >>> process = StructuredDPP(features, edge_quality=step)
    >>> paths = process.sample(size=2, random_state=0)
    >>> paths.shape, bool((np.abs(np.diff(paths, axis=1)) <= 1).all())
    ((2, 50), True)
    """

    log_odds: Array

    def __init__(
        self,
        node_features: ArrayLike | Sequence[ArrayLike],
        node_quality: ArrayLike | Sequence[ArrayLike] | None = None,
        *,
        edges: Sequence[tuple[int, int]] | None = None,
        edge_quality: ArrayLike | Sequence[ArrayLike] | None = None,
        edge_features: ArrayLike | Sequence[ArrayLike] | None = None,
        n_projections: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self._tree = read_factors(
            node_features, node_quality, edges, edge_quality, edge_features, n_projections, as_generator(random_state)
        )
        self._weights: Weights = sum_weights(self._tree)
        values, vectors = np.linalg.eigh(second_moment(self._tree, self._weights))
        keep = np.flatnonzero(values > NEGLIGIBLE * max(float(values[-1]), 0.0))[::-1]
        self.log_odds = np.log(values[keep]) + self._weights.log_total
        # Directions in which the features of a structure drawn by q^2 / Z have a second moment of 1.
        self._directions = np.ascontiguousarray(vectors[:, keep] / np.sqrt(values[keep]))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self._tree.n_nodes

    @property
    def rank(self) -> int:
        """Largest possible number of structures."""
        return int(self.log_odds.size)

    @property
    def log_n_structures(self) -> float:
        """Logarithm of the number of structures, those of quality zero counted."""
        return float(sum(np.log(len(values)) for values in self._tree.log_node))

    @property
    def dual(self) -> Array:
        """``C``, the sum of ``q(y)^2 phi(y) phi(y)^T`` over all structures; may overflow where `log_odds` does not."""
        return second_moment(self._tree, self._weights) * np.exp(self._weights.log_total)

    @property
    def log_normalizer(self) -> float:
        """``log det(C + I)``."""
        return log_normalizer(self.log_odds, None)

    @property
    def expected_size(self) -> float:
        """Mean number of structures in a draw."""
        return float(chances(self.log_odds, None).sum())

    def log_prob(self, structures: ArrayLike, size: int | None = None) -> float:
        """Log probability of drawing exactly these structures, given ``size`` if the number is fixed.

        Parameters
        ----------
        structures : array_like of int (n_structures, n_nodes)
        size : int, optional
        """
        states = self._check_structures(structures)
        if size is not None and len(states) != check_size(size, self.rank):
            return -np.inf
        normalizer = log_normalizer(self.log_odds, size)
        if not len(states):
            return -normalizer
        log_quality, features = self._describe(states)
        length = np.sqrt((features**2).sum(axis=1))
        if not ((length > 0).all() and np.isfinite(log_quality).all()):
            return -np.inf
        # By a QR decomposition, which keeps twice the digits of the products of the features.
        pivots = np.abs(np.diagonal(np.linalg.qr((features / length[:, None]).T, mode="r")))
        if len(states) > pivots.size or pivots.min() < NEGLIGIBLE:
            return -np.inf
        return float((2.0 * np.log(pivots) + 2.0 * np.log(length) + log_quality).sum()) - normalizer

    def marginals(self, size: int | None = None) -> list[Array]:
        """Mean number of drawn structures that have each state at each node: a list of arrays (n_states,).

        They sum to the expected number of structures at every node. ``size`` fixes that number.
        """
        share = chances(self.log_odds, check_size(size, self.rank))
        moments = state_moments(self._tree, self._weights, self._directions, self._moments)
        result: list[Array] = [np.empty(0)] * self.n_nodes
        for place, values in zip(self._tree.order, moments):
            result[place] = values @ share
        return result

    def sample(
        self, n_samples: int | None = None, size: int | None = None, random_state: RandomState = None
    ) -> IntArray | list[IntArray]:
        """Draw sets of structures exactly.

        Parameters
        ----------
        n_samples : int, optional
            Number of sets; None gives one by itself.
        size : int, optional
            Number of structures in each set; None leaves it random.
        random_state : int, Generator or None

        Returns
        -------
        ndarray of int (n_structures, n_nodes), or a list of them
            The state of every node.
        """
        count, rng = number_of_draws(n_samples), as_generator(random_state)
        draws = self._draw(count, check_size(size, self.rank), rng)
        return draws[0] if n_samples is None else draws

    def _draw(self, n_draws: int, size: int | None, rng: np.random.Generator) -> list[IntArray]:
        from pluri.processes.dpp.structured._kernels import draw_sets

        taken, counts = take_directions(self.log_odds, n_draws, size, rng)
        structures, found = np.zeros((taken.size, self.n_nodes), dtype=np.int64), np.empty(n_draws, dtype=np.int64)
        if taken.size:
            draw_sets(rng, taken, counts, self._tables, self._directions, PATIENCE, structures, found)
            if (found < counts).any():
                warnings.warn(
                    "the features of the structures are not independent to working precision: some sets have fewer "
                    "structures than they should",
                    RuntimeWarning,
                    stacklevel=3,
                )
        placed = np.empty_like(structures)
        placed[:, self._tree.order] = structures
        parts = np.split(placed, np.cumsum(counts)[:-1]) if n_draws else []
        return [part[:count] for part, count in zip(parts, found if taken.size else counts)]

    @cached_property
    def _moments(self) -> Moments:
        return directional_moments(self._tree, self._weights, self._directions)

    @cached_property
    def _tables(self) -> PaddedTables:
        return pad_tables(self._tree, self._weights, self._moments)

    def _check_structures(self, structures: ArrayLike) -> IntArray:
        states = np.asarray(structures)
        if states.size == 0:
            return np.empty((0, self.n_nodes), dtype=np.int64)
        if states.ndim != 2 or states.shape[1] != self.n_nodes or states.dtype.kind not in "iu":
            raise ValueError(
                f"structures must be whole numbers of shape (n_structures, {self.n_nodes}), got shape {states.shape} "
                f"of {states.dtype}"
            )
        for place, node in enumerate(self._tree.order):
            n_states = len(self._tree.log_node[place])
            if states[:, node].min() < 0 or states[:, node].max() >= n_states:
                raise ValueError(f"structures must have states from 0 to {n_states - 1} at node {node}")
        return states.astype(np.int64)

    def _describe(self, states: IntArray) -> tuple[Array, Array]:
        """Logarithms of the squared qualities (n,), and features (n, n_features), of structures."""
        tree = self._tree
        log_quality, features = np.zeros(len(states)), np.zeros((len(states), tree.n_features))
        for c, node in enumerate(tree.order):
            log_quality += tree.log_node[c][states[:, node]]
            features += tree.node_features[c][states[:, node]]
            edge, edge_features = tree.log_edge[c], tree.edge_features[c]
            above = states[:, tree.order[tree.parent[c]]]
            if edge is not None:
                log_quality += edge[above, states[:, node]]
            if edge_features is not None:
                features += edge_features[above, states[:, node]]
        return log_quality, features

    def __repr__(self) -> str:
        return f"StructuredDPP(n_nodes={self.n_nodes}, rank={self.rank})"
