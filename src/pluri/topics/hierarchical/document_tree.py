"""The tree of a nested Chinese restaurant process as arrays that a compiled sweep changes.

A node is a column; the columns of a level stand together, with room for further nodes, and columns of nodes that no
document visits any more are used again. Nodes are counted from scratch when the tree is made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.topics.documents import Tokens

Integers = NDArray[np.int64]
#: Columns of a level to begin with.
FIRST_ROOM = 16
#: A level with this many columns, most of them idle, is made anew.
LARGE, BUSY = 64, 0.25


class TreeArrays(NamedTuple):
    """The arrays of a `DocumentTree`, where they are described, as the compiled sweep takes them.

    ``free[first[l] : first[l] + n_free[l]]`` are the columns of level l that are used again.
    """

    first: Integers
    top: Integers
    free: Integers
    n_free: Integers
    counts: NDArray[np.int32]
    parent: Integers
    n_tokens: Integers
    n_documents: Integers
    paths: Integers
    levels: NDArray[np.int8]


class DocumentTree:
    """Nodes, what is in them, and the path of each document.

    Attributes
    ----------
    paths : int64 array of shape (n_documents, n_levels)
        Column of the node at each level; -1 for a document that has no path yet.
    levels : int8 array of shape (n_tokens,)
    first : int64 array of shape (n_levels + 1,)
        First column of each level; the root is column 0.
    top : int64 array of shape (n_levels,)
        End of the columns of each level that have been used.
    counts : int32 array of shape (n_words, n_columns)
        Tokens of each word in each node.
    n_tokens, n_documents, parent : int64 arrays of shape (n_columns,)
    """

    def __init__(self, tokens: Tokens, paths: Integers, levels: NDArray[np.int8]) -> None:
        from pluri.topics.hierarchical._nested_crp_kernels import count_documents

        self.tokens = tokens
        paths, n_nodes = compact(paths)
        rooms = np.maximum(FIRST_ROOM, n_nodes + n_nodes // 2)
        rooms[0] = 1
        self.first = np.concatenate([[0], np.cumsum(rooms)]).astype(np.int64)
        self.top = self.first[:-1] + np.maximum(n_nodes, np.arange(len(n_nodes)) == 0)
        self.paths = np.ascontiguousarray(np.where(paths < 0, -1, paths + self.first[:-1]))
        self.levels = np.array(levels, dtype=np.int8)
        width = int(self.first[-1])
        self.free = np.zeros(width, dtype=np.int64)
        self.n_free = np.zeros(len(n_nodes), dtype=np.int64)
        self.counts = np.zeros((tokens.n_words, width), dtype=np.int32)
        self.parent = np.full(width, -1, dtype=np.int64)
        self.n_tokens = np.zeros(width, dtype=np.int64)
        self.n_documents = np.zeros(width, dtype=np.int64)
        count_documents(
            tokens.words, tokens.offsets, self.levels, self.paths, self.parent, self.counts, self.n_tokens,
            self.n_documents,
        )  # fmt: skip

    @property
    def arrays(self) -> TreeArrays:
        """As the compiled sweep takes them."""
        return TreeArrays(
            self.first, self.top, self.free, self.n_free, self.counts, self.parent, self.n_tokens, self.n_documents,
            self.paths, self.levels,
        )  # fmt: skip

    @property
    def n_levels(self) -> int:
        """Nodes on each path."""
        return len(self.top)

    @property
    def n_nodes(self) -> Integers:
        """Nodes of each level that documents visit, and the root."""
        ends = [self.n_documents[a:b] for a, b in zip(self.first[:-1], self.top)]
        numbers = np.array([np.count_nonzero(part) for part in ends], dtype=np.int64)
        numbers[0] = 1
        return numbers

    @property
    def inner_sizes(self) -> Integers:
        """Documents of each node that has children."""
        sizes: Integers = self.n_documents[: self.first[-2]]
        return sizes[sizes > 0]

    @property
    def child_sizes(self) -> Integers:
        """Documents of each node but the root."""
        sizes: Integers = self.n_documents[1:]
        return sizes[sizes > 0]

    def tokens_by_level(self) -> Integers:
        """Number of tokens of each document at each level: (n_documents, n_levels)."""
        places = self.tokens.documents.astype(np.int64) * self.n_levels + self.levels
        shape = (self.tokens.n_documents, self.n_levels)
        return np.bincount(places, minlength=shape[0] * shape[1]).reshape(shape)

    def idle(self) -> bool:
        """Whether most columns of a large level are not in use."""
        used = self.top - self.first[:-1]
        return bool(((used > LARGE) & (self.n_nodes < BUSY * used)).any())

    def grow(self) -> None:
        """Double the room of the levels that have none left."""
        rooms = np.diff(self.first)
        full = (self.n_free == 0) & (self.top == self.first[1:])
        full[0] = False
        rooms[full] *= 2
        first = np.concatenate([[0], np.cumsum(rooms)]).astype(np.int64)
        shift = first[:-1] - self.first[:-1]
        old = np.concatenate([np.arange(a, b) for a, b in zip(self.first[:-1], self.first[1:])])
        level = np.repeat(np.arange(len(shift)), np.diff(self.first))
        new, width = old + shift[level], int(first[-1])
        parent = np.where(self.parent >= 0, self.parent + shift[np.maximum(level - 1, 0)], -1)
        # All at once, so that Ctrl-C leaves a whole tree.
        vars(self).update(
            counts=np.ascontiguousarray(_moved(self.counts.T, old, new, width, 0).T),
            parent=_moved(parent, old, new, width, -1),
            free=_moved(self.free + shift[level], old, new, width, 0),
            n_tokens=_moved(self.n_tokens, old, new, width, 0),
            n_documents=_moved(self.n_documents, old, new, width, 0),
            paths=np.ascontiguousarray(np.where(self.paths >= 0, self.paths + shift, -1)),
            top=self.top + shift,
            first=first,
        )


def compact(paths: Integers) -> tuple[Integers, Integers]:
    """The same paths with the nodes of each level numbered from 0, and the number of nodes of each level."""
    numbered = np.full(paths.shape, -1, dtype=np.int64)
    placed = np.flatnonzero(paths[:, 0] >= 0)
    n_nodes = np.zeros(paths.shape[1], dtype=np.int64)
    above = np.zeros(len(placed), dtype=np.int64)
    for level in range(paths.shape[1]):
        # A node is its number and its parent: the same number below another parent is another node.
        own = np.unique(paths[placed, level], return_inverse=True)[1] if level else np.zeros_like(above)
        found, above = np.unique(above * (len(placed) + 1) + own, return_inverse=True)
        n_nodes[level] = len(found)
        numbered[placed, level] = above
    return numbered, n_nodes


def _moved(values: NDArray[Any], old: Integers, new: Integers, size: int, fill: int) -> NDArray[Any]:
    moved = np.full((size, *values.shape[1:]), fill, dtype=values.dtype)
    moved[new] = values[old]
    return moved
