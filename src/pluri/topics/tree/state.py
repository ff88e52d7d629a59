"""Where a chain over trees of topics is: a record of arrays with room for more scales and nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pluri.topics.tree.tree import Tree

Array = NDArray[np.float64]
Counts = NDArray[np.int32]
Numbers = NDArray[np.int64]
#: Fields that are not part of the position: counts follow from it, the log density too; the others look back.
DERIVED = ("node_word", "node_total", "passed", "log_density", "n_sweeps", "kept")


class Nodes(NamedTuple):
    """The nodes of a tree as compiled loops take them; the arrays are those of `TreeState`.

    `top` is the scale whose nodes documents choose among, `node_scale` the scale of each node, room included.
    """

    top: int
    depth: int
    widths: Numbers
    offsets: Numbers
    node_scale: Numbers
    word_scale: Counts
    sizes: Numbers
    transition: Array


class Placed(NamedTuple):
    """Where tokens are, and how many are where; the arrays are those of `TreeState`."""

    scale: Counts
    node: Counts
    paths: Counts
    node_word: Counts
    node_total: Numbers


@dataclass(eq=False)
class TreeState:
    """Tree, proportions of documents, and the scale, node and path of each token. Topics are integrated out.

    Node t of scale s stands at ``offsets[s] + t``. There is room for ``rooms[s]`` nodes of scale s, of which
    ``widths[s]`` are there; of the scales, the first `depth`.

    Attributes
    ----------
    rooms, widths : int arrays of shape (n_scales,)
    depth : int array of shape (1,)
    scale, node : int arrays of shape (n_tokens,)
    paths : int array of shape (n_tokens, n_scales), or (0, 0) where paths are not kept
    word_scale : int array of shape (n_words,), or (0,) if every scale has all words
    sizes : int array of shape (n_scales,), words of each scale
    base : array of shape (n_top + 1,), the last being what is left
    theta, theta_rest : arrays of shape (n_documents, n_top) and (n_documents,)
    usage, usage_rest : arrays of shape (n_documents, n_scales) and (n_documents,)
    transition : array of shape (n_nodes, widest): of a node (row) below each node of the scale above (column)
    transition_rest : array of shape (n_scales, widest): what is left of each column, by the scale of the children
    log_stop : array of shape (n_scales,), log probability that a word has each scale
    zeta : array of shape (n_scales,), concentration of the columns, by the scale of the children
    concentrations : array of lambda, eta, rho and psi
    node_word, node_total : int arrays of shape (n_words, n_nodes) and (n_nodes,): tokens at each node
    passed : int array of shape (n_nodes,), tokens whose path goes through each node, in the last sweep; before
        the first, tokens at each node
    log_density : log joint of scales, nodes and words given the other arrays
    n_sweeps, kept : sweeps so far, and trees that were kept of them
    """

    rooms: Numbers
    widths: Numbers
    depth: Numbers
    scale: Counts
    node: Counts
    paths: Counts
    word_scale: Counts
    sizes: Numbers
    base: Array
    theta: Array
    theta_rest: Array
    usage: Array
    usage_rest: Array
    transition: Array
    transition_rest: Array
    log_stop: Array
    zeta: Array
    concentrations: Array
    node_word: Counts
    node_total: Numbers
    passed: Numbers
    log_density: float = float("nan")
    n_sweeps: int = 0
    kept: tuple[Tree, ...] = ()

    @property
    def offsets(self) -> Numbers:
        """Where the nodes of each scale begin, and where those of the last one's room end."""
        return np.concatenate([[0], np.cumsum(self.rooms)])

    @property
    def position(self) -> dict[str, NDArray[Any]]:
        """All that the chain needs to go on."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in DERIVED}

    @classmethod
    def at(cls, position: Mapping[str, NDArray[Any]], words: NDArray[np.int32], n_words: int) -> TreeState:
        """State at a position, in copies."""
        arrays: dict[str, Any] = {name: np.array(values) for name, values in position.items()}
        n_nodes = int(arrays["rooms"].sum())
        node_word, node_total = np.zeros((n_words, n_nodes), dtype=np.int32), np.zeros(n_nodes, dtype=np.int64)
        state = cls(**arrays, node_word=node_word, node_total=node_total, passed=np.zeros(n_nodes, dtype=np.int64))
        count_words(words, state.scale, state.node, state.offsets, node_word, node_total)
        state.passed[:] = node_total  # until a sweep has drawn the paths
        return state

    def copy(self) -> TreeState:
        """The same in arrays of its own."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        copies: dict[str, Any] = {name: v.copy() if isinstance(v, np.ndarray) else v for name, v in values.items()}
        return TreeState(**copies)

    def nodes(self, top: int) -> Nodes:
        """The nodes as compiled loops take them."""
        return Nodes(
            top, int(self.depth[0]), self.widths, self.offsets, self.node_scale(), self.word_scale, self.sizes,
            self.transition,
        )  # fmt: skip

    @property
    def placed(self) -> Placed:
        """The tokens as compiled loops take them."""
        return Placed(self.scale, self.node, self.paths, self.node_word, self.node_total)

    def node_scale(self) -> Numbers:
        """Scale of each node, room included."""
        return np.repeat(np.arange(len(self.rooms)), self.rooms)

    def nodes_of(self, s: int) -> slice:
        """Places of the nodes of a scale."""
        start = int(self.rooms[:s].sum())
        return slice(start, start + int(self.widths[s]))

    def below(self, s: int) -> Array:
        """Transitions into scale s, a view: (nodes of s, nodes of the scale above)."""
        return self.transition[self.nodes_of(s), : self.widths[s - 1]]

    def ascent(self, top: int) -> Array:
        """Probability of each node (row) below each node of the top scale (column); zero for a root above that."""
        n_top, depth = int(self.widths[top]), int(self.depth[0])
        ascent = np.zeros((len(self.transition), n_top))
        ascent[self.nodes_of(top)] = np.eye(n_top)
        for s in range(top + 1, depth):
            ascent[self.nodes_of(s)] = self.below(s) @ ascent[self.nodes_of(s - 1)]
        return ascent

    def with_rooms(self, rooms: Numbers, top: int) -> TreeState:
        """The same tree with other rooms, none smaller than what is there."""
        new, old_scales, scales = self.copy(), len(self.rooms), len(rooms)
        shared = min(old_scales, scales)
        new.rooms = np.asarray(rooms, dtype=np.int64)
        widest, n_nodes = int(rooms.max()), int(rooms.sum())
        for name in ("widths", "sizes", "log_stop", "zeta"):
            values = np.zeros(scales, dtype=getattr(self, name).dtype)
            values[:shared] = getattr(self, name)[:shared]
            setattr(new, name, values)
        if not self.word_scale.size:
            new.sizes[:] = len(self.node_word)
        new.usage = _fitted(self.usage, (len(self.usage), scales))
        new.paths = _fitted(self.paths, (len(self.paths), scales)) if self.paths.size else self.paths.copy()
        n_top = int(rooms[top]) if top < scales else 0
        new.theta = _fitted(self.theta, (len(self.theta), n_top))
        new.base = np.append(_fitted(self.base[:-1], (n_top,)), self.base[-1])
        new.transition_rest = _fitted(self.transition_rest, (scales, widest))
        new.transition = np.zeros((n_nodes, widest))
        new.node_word, new.node_total = np.zeros((len(self.node_word), n_nodes), np.int32), np.zeros(n_nodes, np.int64)
        new.passed = np.zeros(n_nodes, np.int64)
        for s in range(int(self.depth[0])):
            old, there = self.nodes_of(s), new.nodes_of(s)
            new.node_word[:, there], new.node_total[there] = self.node_word[:, old], self.node_total[old]
            if s > top:
                new.transition[there, : self.widths[s - 1]] = self.transition[old, : self.widths[s - 1]]
        return new


def _fitted(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Array of another shape with the same entries where both have them."""
    fitted = np.zeros(shape, dtype=values.dtype)
    both = tuple(slice(0, min(a, b)) for a, b in zip(values.shape, shape))
    fitted[both] = values[both]
    return fitted


def count_words(
    words: NDArray[np.int32], scale: NDArray[Any], node: NDArray[Any], offsets: Numbers, node_word: Any, node_total: Any
) -> None:
    """Change the last two: count tokens of each word (row) and node (column); those without a node are left out."""
    placed = np.flatnonzero(node >= 0)
    nodes = offsets[scale[placed]] + node[placed]
    np.add.at(node_word, (words[placed], nodes), 1)
    np.add.at(node_total, nodes, 1)


def log_allocation(state: TreeState, documents: NDArray[np.signedinteger[Any]], top: int) -> float:
    """Log probability of the scales and nodes of all tokens, the nodes above them summed out."""
    depth, offsets, widths = int(state.depth[0]), state.offsets, state.widths
    n_documents, n_nodes = len(state.usage), int(offsets[depth])
    reach = np.zeros((n_documents, n_nodes))
    if top == 1:
        reach[:, 0] = 1.0
    for s in range(top, depth):
        here = slice(offsets[s], offsets[s] + widths[s])
        if s == top:
            reach[:, here] = state.theta[:, : widths[s]]
        else:
            above = slice(offsets[s - 1], offsets[s - 1] + widths[s - 1])
            reach[:, here] = reach[:, above] @ state.transition[here, : widths[s - 1]].T
    reach *= state.usage[:, state.node_scale()[:n_nodes]]
    # Tokens at the same node of a document have the same probability: a logarithm for each pair, not for each token.
    places = documents.astype(np.int64) * n_nodes + offsets[state.scale] + state.node
    counts = np.bincount(places, minlength=reach.size)
    pairs = np.flatnonzero(counts)
    return float(counts[pairs] @ np.log(np.maximum(reach.ravel()[pairs], 1e-320)))
