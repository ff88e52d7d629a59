"""What a tree of topics looks like: how many words its topics use, which nodes have several parents, how it grew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.topics.tree.tree import Tree


class SharedChild(NamedTuple):
    """A node with more than one parent.

    Attributes
    ----------
    scale : int
        From 0 at the top.
    node : int
        Number of the node in its scale.
    parents : tuple of int
        Numbers in the scale above, the one with the largest share first.
    shares : tuple of float
        Probability of the node below each of them.
    """

    scale: int
    node: int
    parents: tuple[int, ...]
    shares: tuple[float, ...]


def terms_per_topic(counts: Sequence[NDArray[np.integer]], coverage: float | None = None) -> list[NDArray[np.int64]]:
    """Number of words that each topic uses, scale by scale.

    Parameters
    ----------
    counts : list of int arrays of shape (n_nodes, n_words)
        Tokens of each word at the nodes of each scale.
    coverage : float, optional
        Count the most frequent words that make up this part of the node's tokens; by default all that have a token.

    Returns
    -------
    list of arrays of shape (n_nodes,)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.tree.structure import terms_per_topic
    >>> terms_per_topic([np.array([[90, 6, 4, 0]])]), terms_per_topic([np.array([[90, 6, 4, 0]])], coverage=0.95)
    ([array([3])], [array([2])])
    """
    if coverage is not None and not 0 < coverage <= 1:
        raise ValueError(f"coverage must be above 0 and at most 1, got {coverage!r}")
    if coverage is None:
        return [(tokens > 0).sum(axis=1) for tokens in counts]
    numbers = []
    for tokens in counts:
        reached = np.cumsum(-np.sort(-tokens, axis=1), axis=1)
        goal = np.ceil(coverage * reached[:, -1:] - 1e-9)
        numbers.append(np.where(reached[:, -1] > 0, (reached < goal).sum(axis=1) + 1, 0))
    return numbers


def shared_children(tree: Tree, threshold: float = 0.05) -> list[SharedChild]:
    """Nodes that lie, with a probability above the threshold, below at least two nodes of the scale above."""
    found = []
    for s in range(tree.top + 1, tree.depth):
        for node, row in enumerate(tree.transitions[s - 1]):
            parents = np.flatnonzero(row > threshold)
            if parents.size >= 2:
                order = parents[np.argsort(-row[parents], kind="stable")]
                found.append(SharedChild(s, node, tuple(map(int, order)), tuple(float(row[m]) for m in order)))
    return found


def node_histograms(n_nodes: NDArray[np.integer]) -> list[dict[int, int]]:
    """How often each number of nodes was met at each scale: ``n_nodes`` is (n_draws, n_scales)."""
    found = []
    for column in n_nodes.T:
        values, times = np.unique(column, return_counts=True)
        found.append({int(value): int(n) for value, n in zip(values, times)})
    return found
