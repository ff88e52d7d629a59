"""Text that stands for a topic, and how much room it takes."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pluri.topics.topic_graph import TopicGraph, TopicNode

#: Widths of characters in units of the font size, those of the broader sans-serif fonts.
NARROW, USUAL, BROAD, SQUARE = 0.33, 0.595, 0.86, 1.05


def shown_graph(model: Any, n_words: int) -> TopicGraph:
    """The readable part of the graph of a topic model, or a graph itself, without topics that have no tokens."""
    if hasattr(model, "topic_graph"):
        model = model.topic_graph(n_words).without_empty().readable()
    if not hasattr(model, "without_empty"):
        raise TypeError(f"graph must be a topic model or the TopicGraph of one, got {type(model).__name__}")
    found: TopicGraph = model.without_empty()
    return found


def topic_label(node: TopicNode, n_words: int = 4) -> str:
    """The name of a topic if it has one, else its most probable words.

    Examples
    --------
    >>> from pluri.report.labels import topic_label
    >>> from pluri.topics import TopicNode
    >>> topic_label(TopicNode(0, 0, 1.0, ("game", "team", "ice"), (0.3, 0.2, 0.1)), 2)
    'game team'
    """
    text = node.label or " ".join(node.words[:n_words])
    return " ".join(text.split()) or f"topic {node.index}"


def percent(share: float) -> str:
    """A share with as many digits as can be read.

    Examples
    --------
    >>> from pluri.report.labels import percent
    >>> percent(0.5), percent(0.01234), percent(0.0001), percent(0.0)
    ('50%', '1.2%', '<0.1%', '0%')
    """
    if share == 0:
        return "0%"
    if share < 0.001:
        return "<0.1%"
    return f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.1f}%"


def text_width(text: str, size: float) -> float:
    """Estimated width of a line in a sans-serif font of this size."""
    return size * sum(map(_character_width, text))


def _character_width(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return SQUARE
    if character in "ijltf.,:;'|!()[] I":
        return NARROW
    return BROAD if character in "mwMW@%" or character.isupper() else USUAL


def shortened(text: str, width: float, size: float) -> str:
    """The text, or as much of its beginning as fits, with an ellipsis.

    Examples
    --------
    >>> from pluri.report.labels import shortened
    >>> shortened("orbit", 100, 12), shortened("a long row of words", 60, 12)
    ('orbit', 'a long r…')
    """
    if text_width(text, size) <= width:
        return text
    room = width - size
    kept = 0
    for character in text:
        room -= size * _character_width(character)
        if room < 0:
            break
        kept += 1
    return text[:kept].rstrip() + "…"
