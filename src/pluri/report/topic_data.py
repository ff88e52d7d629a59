r"""What a page about topics knows: words and their relevance, documents, neighbours, as numbers and strings.

The relevance of a word to a topic [1]_ is :math:`\lambda \log p(w \mid t) + (1 - \lambda) \log \{p(w \mid t) / p(w)\}`,
with :math:`p(w) = \sum_t p(t) p(w \mid t)`: the reader moves :math:`\lambda` between the most probable words (1) and
those that occur nowhere else (0). Kept are the words that come first for some value of it.

References
----------
.. [1] Sievert, C. & Shirley, K. E. (2014). LDAvis: A method for visualizing and interpreting topics. Proceedings of the
   Workshop on Interactive Language Learning, Visualization, and Interfaces, 63-70.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.report.labels import topic_label

if TYPE_CHECKING:
    from pluri.topics.topic_graph import TopicGraph

#: Values between them change the order little; what they would bring in is near the end of the list.
LAMBDAS = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)
N_NEAREST = 5
#: Characters of all excerpts together: a page stays small enough to be sent by mail.
EXCERPTS = 400_000
LEAST_EXCERPT, MOST_TITLE = 120, 200
TINY = np.finfo(float).tiny

Array = NDArray[np.float64]


def relevant_words(
    topic_word: Array, marginal: Array, n_words: int, own: NDArray[np.bool_] | None = None
) -> list[NDArray[np.int64]]:
    """For each topic, the columns among the most relevant for some weight of the lift, most probable first.

    Only those are given that a topic has (`own`); by default all of positive probability.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.report.topic_data import relevant_words
    >>> topic_word = np.array([[0.6, 0.3, 0.1], [0.6, 0.1, 0.3]])
    >>> [columns.tolist() for columns in relevant_words(topic_word, topic_word.mean(axis=0), 1)]
    [[0, 1], [0, 2]]
    """
    n_words = min(n_words, topic_word.shape[1])
    log_marginal = np.log(np.maximum(marginal, TINY))
    found = []
    for row, has in zip(topic_word, topic_word > 0 if own is None else own):
        log_row = np.log(np.maximum(row, TINY))
        kept: set[int] = set()
        for weight in LAMBDAS:
            relevance = log_row - (1.0 - weight) * log_marginal
            relevance[~has] = -np.inf
            best = np.argpartition(-relevance, n_words - 1)[:n_words]
            kept.update(int(column) for column in best if has[column])
        columns = np.array(sorted(kept, key=lambda column: (-row[column], column)), dtype=np.int64)
        found.append(columns)
    return found


def topic_data(
    graph: TopicGraph,
    topic_word: Array,
    words: NDArray[Any],
    *,
    n_words: int,
    distances: Array,
    scores: Mapping[str, Array],
    colors: Mapping[int, int],
    own: NDArray[np.bool_] | None = None,
) -> dict[str, Any]:
    """Everything the program of the page needs, ready for JSON."""
    weight = np.array([node.weight for node in graph.nodes])
    marginal = weight @ topic_word / (weight.sum() or 1.0)
    relevant = relevant_words(topic_word, marginal, n_words, own)
    used = np.unique(np.concatenate(relevant)) if relevant else np.zeros(0, dtype=np.int64)
    number = {int(column): place for place, column in enumerate(used)}
    documents, shown = _documents(graph)
    nearest = _nearest(distances)
    strength = {(edge.parent, edge.child): edge.weight for edge in graph.edges}
    nodes = []
    for place, node in enumerate(graph.nodes):
        children, parents = graph.children(node.index), graph.parents(node.index)
        nodes.append(
            {
                "index": node.index,
                "depth": node.depth,
                "weight": digits(node.weight),
                "color": colors[node.index],
                "name": node.label,
                "label": topic_label(node, 4),
                "words": [number[int(column)] for column in relevant[place]],
                "p": [digits(topic_word[place, column]) for column in relevant[place]],
                "documents": shown[place],
                "parents": [[other, digits(strength[other, node.index])] for other in parents],
                "children": [[other, digits(strength[node.index, other])] for other in children],
                "near": [[graph.nodes[other].index, digits(1.0 - distance)] for other, distance in nearest[place]],
                "scores": [digits(values[place]) for values in scores.values()],
            }
        )
    return {
        "nodes": nodes,
        "roots": list(graph.roots()),
        "words": [str(words[column]) for column in used],
        "marginal": [digits(marginal[column]) for column in used],
        "documents": documents,
        "scores": list(scores),
        "shown": n_words,
    }


def readable_part(graph: TopicGraph) -> dict[str, Any] | None:
    """Topics and edges of the part of a graph that is shown first; None if that is all of it."""
    part = graph.readable()
    if len(part.nodes) == len(graph.nodes) and len(part.edges) == len(graph.edges):
        return None
    return {
        "nodes": [node.index for node in part.nodes],
        "edges": [[edge.parent, edge.child] for edge in part.edges],
    }


def digits(value: float, n_digits: int = 4) -> float | None:
    """A number short enough to be written many times; None if it is not finite."""
    return float(f"{value:.{n_digits}g}") if np.isfinite(value) else None


def _documents(graph: TopicGraph) -> tuple[list[list[str]], list[list[list[Any]]]]:
    """Titles and excerpts, each once however many topics it stands for, and which of them each topic shows."""
    number: dict[tuple[int, str, str], int] = {}
    shown = []
    for node in graph.nodes:
        row = []
        for example in node.examples:
            key = (example.document, example.title, example.excerpt)
            row.append([number.setdefault(key, len(number)), digits(example.share, 3)])
        shown.append(row)
    room = max(LEAST_EXCERPT, EXCERPTS // max(len(number), 1))
    return [[_cut(title, MOST_TITLE), _cut(excerpt, room)] for _, title, excerpt in number], shown


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1].rstrip() + "…"


def _nearest(distances: Array) -> list[list[tuple[int, float]]]:
    """For each topic, those with the most similar words."""
    others = distances + np.diag(np.full(len(distances), np.inf))
    order = np.argsort(others, axis=1, kind="stable")[:, : min(N_NEAREST, len(distances) - 1)]
    return [[(int(other), float(distances[row, other])) for other in found] for row, found in enumerate(order)]
