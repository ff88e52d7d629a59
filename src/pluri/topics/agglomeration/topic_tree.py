"""A tree of flat topics that fits on a page: few branches, each with a name, none too small to matter.

All mergers of topics (:func:`~pluri.topics.agglomeration.agglomerate`) make a tree of pairs, which nobody reads. Here a
node has as many children as can be looked over: of the mergers below it the dearest are taken apart first.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pluri.topics.agglomeration.mergers import Cost, Mergers, mergers_of
from pluri.topics.topic_graph import TopicEdge, TopicGraph, TopicNode
from pluri.validation import Number, Whole, check_count, check_value

Array = NDArray[np.float64]
#: So few topics need no branches.
FEW = 4
#: Words that a node is named by if nobody named it.
NAMING_WORDS = 3
TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class TopicTree:
    """Flat topics arranged in a tree, from all documents at the root to the topics.

    Made by :meth:`of`. It has the methods by which pictures and outlines read a model, such as
    :class:`~pluri.plotting.TopicGraphDisplay` and :func:`~pluri.report.tree_text`.

    Attributes
    ----------
    graph : TopicGraph
        Nodes (0 is the root) with names, shares and words, and edges from parents to children.
    topics : tuple of tuple of int
        Topics of the model that each node stands for.
    topic_word_ : ndarray of shape (n_nodes, n_words)
        Distribution over words of each node, in proportion to the shares of its topics.
    mergers : Mergers
        All mergers, and what each costs.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from pluri.topics import LatentDirichletAllocation, TopicTree
    >>> subjects = ["ice puck goal team game", "bat inning pitcher team game", "vote senate bill state party",
    ...             "judge court law state party"]
    >>> rng = np.random.default_rng(0)
    >>> texts = [" ".join(rng.choice(subjects[row % 4].split(), 30)) for row in range(200)]
    >>> vectorizer = CountVectorizer()
    >>> model = LatentDirichletAllocation(4, inference="gibbs", random_state=0)
    >>> model = model.fit(vectorizer.fit_transform(texts)).name_words(vectorizer)
    >>> tree = TopicTree.of(model)
    >>> len(tree.graph.nodes), tree.graph.roots()
    (5, (0,))
    >>> sports, state = tree.groups(2)  # two topics each
    >>> len(sports), len(state)
    (2, 2)
    """

    graph: TopicGraph
    topics: tuple[tuple[int, ...], ...]
    topic_word_: Array
    mergers: Mergers

    @classmethod
    def of(
        cls,
        model: Any,
        *,
        cost: Cost = "jensen_shannon",
        max_children: int = 12,
        least_share: float = 0.01,
        n_words: int = 8,
    ) -> Self:
        """Arrange the topics of a fitted flat model.

        Parameters
        ----------
        model : TopicModel
            Fitted, without a hierarchy of its own.
        cost : {"jensen_shannon", "likelihood"}, default="jensen_shannon"
            What a merger loses; see :func:`~pluri.topics.agglomeration.agglomerate`.
        max_children : int, default=12
            Of a node.
        least_share : float, default=0.01
            No node has a smaller share of the tokens: smaller topics are put to those most like them.
        n_words : int, default=8
            Words of each node: those of which it has more than the node above.
        """
        check_value(max_children, "max_children", Whole(2))
        check_value(least_share, "least_share", Number(0, 1))
        check_count(n_words, "n_words")
        mergers = mergers_of(model, cost, least_share)
        nodes = _Nodes(model, mergers, int(max_children))
        return nodes.tree(cls, int(n_words))

    def topic_graph(self, n_words: int = 8, *, feature_names: Any = None) -> TopicGraph:
        """The graph, as pictures and outlines ask for it; at most the words that the tree was made with."""
        return self.graph

    @property
    def topic_weight_(self) -> Array:
        """Share of the tokens of each node."""
        return np.array([node.weight for node in self.graph.nodes])

    def groups(self, n_groups: int) -> list[list[int]]:
        """Topics that are together when so many groups are left: what ``model.reduce(n_groups)`` merges."""
        return self.mergers.groups(n_groups)

    def summary(self, n_words: int = 6) -> str:
        """The tree as indented lines: share, name and words of each node, and the topics of the leaves."""
        graph = self.graph
        leaves = [node.index for node in graph.nodes if not graph.children(node.index)]
        widest = max(len(graph.children(node.index)) for node in graph.nodes)
        lines = [
            f"TopicTree: {self.mergers.n_topics} topics as {len(leaves)} leaves, "
            f"{len(graph.children(0))} branches, at most {widest} children"
        ]

        def tell(index: int) -> None:
            node = graph.nodes[index]
            if index:
                inner = graph.children(index)
                numbers = "" if inner else f"  [{', '.join(map(str, self.topics[index]))}]"
                indent = "  " * (node.depth - 1)
                lines.append(f"{node.weight:>6.1%}  {indent}{node.label}: {' '.join(node.words[:n_words])}{numbers}")
            for child in graph.children(index):
                tell(child)

        tell(0)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Lists, numbers and strings only: ready for JSON."""
        return {**self.graph.to_dict(), "topics": [list(topics) for topics in self.topics]}


class _Nodes:
    """The tree of pairs, and the wider one that is made of it."""

    def __init__(self, model: Any, mergers: Mergers, max_children: int) -> None:
        self.model, self.mergers, self.max_children = model, mergers, max_children
        n_topics = mergers.n_topics
        self.first_visible = n_topics + mergers.n_small
        self.topics: list[list[int]] = [[topic] for topic in range(n_topics)]
        for first, second in mergers.pairs:
            self.topics.append(sorted(self.topics[first] + self.topics[second]))
        made = {int(part) for pair in mergers.pairs[: mergers.n_small] for part in pair}
        leaves = [node for node in range(self.first_visible) if node not in made]
        self.n_leaves = dict.fromkeys(leaves, 1)
        for number in range(mergers.n_small, len(mergers.pairs)):
            first, second = (int(part) for part in mergers.pairs[number])
            self.n_leaves[n_topics + number] = self.n_leaves[first] + self.n_leaves[second]

    def parts(self, node: int) -> tuple[int, ...]:
        """The two that a merger put together; none of a leaf of the tree that is shown."""
        if self.n_leaves[node] == 1:
            return ()
        first, second = self.mergers.pairs[node - self.mergers.n_topics]
        return int(first), int(second)

    def children(self, node: int, is_root: bool) -> list[int]:
        """Take mergers below a node apart, the dearest first, until there are enough children."""
        n_leaves = self.n_leaves[node]
        if n_leaves <= (FEW if is_root else self.max_children):
            wanted = min(n_leaves, self.max_children)
        else:
            wanted = min(self.max_children, max(2, round(np.sqrt(n_leaves))))
        # Later mergers are dearer but for rounding, and their order is the same under every cost.
        whole: list[int] = [-part for part in self.parts(node)]
        heapq.heapify(whole)
        done: list[int] = []
        while whole and len(whole) + len(done) < wanted:
            part = -heapq.heappop(whole)
            below = self.parts(part)
            if below:
                for other in below:
                    heapq.heappush(whole, -other)
            else:
                done.append(part)
        return done + [-part for part in whole]

    def tree(self, cls: Any, n_words: int) -> Any:
        """Number the nodes from the root on, and name them."""
        model = self.model
        joint = model.topic_word_ * model.topic_weight_[:, None]
        words = model._words(None)
        names = getattr(model, "topic_names_", [None] * self.mergers.n_topics)
        root = len(self.topics) - 1
        nodes: list[TopicNode] = []
        edges: list[TopicEdge] = []
        topics: list[tuple[int, ...]] = []
        rows: list[Array] = []
        waiting: list[tuple[int, int | None]] = [(root, None)]
        while waiting:
            place, parent = waiting.pop(0)
            own = joint[self.topics[place]].sum(axis=0)
            weight = float(own.sum())
            row = own / max(weight, TINY)
            above = row if parent is None else rows[parent]
            order = _telling_columns(row, above, n_words)
            index = len(nodes)
            label = _label(names, self.topics[place], [str(words[column]) for column in order[:NAMING_WORDS]])
            nodes.append(
                TopicNode(
                    index,
                    0 if parent is None else nodes[parent].depth + 1,
                    weight,
                    tuple(str(words[column]) for column in order),
                    tuple(float(row[column]) for column in order),
                    "all" if parent is None else label,
                )
            )
            topics.append(tuple(self.topics[place]))
            rows.append(row)
            if parent is not None:
                edges.append(TopicEdge(parent, index, weight / max(nodes[parent].weight, TINY)))
            below = self.children(place, parent is None) if self.n_leaves[place] > 1 else []
            below.sort(key=lambda part: -float(joint[self.topics[part]].sum()))
            waiting += [(part, index) for part in below]
        facts = {"topics": str(self.mergers.n_topics), "leaves": str(self.n_leaves[root])}
        graph = TopicGraph("TopicTree", tuple(nodes), tuple(edges), facts)
        return cls(graph, tuple(topics), np.array(rows), self.mergers)


def _telling_columns(row: Array, above: Array, n_words: int) -> list[int]:
    """Words that tell a node from the one above: the largest parts of the divergence; the most probable at the root."""
    score = row if row is above else row * np.log(np.maximum(row, TINY) / np.maximum(above, TINY))
    order = np.argsort(-score, kind="stable")[:n_words]
    found = [int(column) for column in order if row[column] > 0 and score[column] > 0]
    return found or [int(row.argmax())]


def _label(names: Any, topics: list[int], words: list[str]) -> str:
    """The name that a single topic was given, or the words that tell a node."""
    if len(topics) == 1 and names[topics[0]] is not None:
        return str(names[topics[0]])
    return ", ".join(words)
