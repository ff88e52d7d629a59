"""A page about a topic model: its graph or map, an outline, a table, and everything about one topic at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.topics.topic_map import hellinger_distances
from pluri.report.fit_curve import draw_curve, fit_curve
from pluri.report.labels import percent
from pluri.report.markup import escape
from pluri.report.page import html_page, write_page
from pluri.report.svg import svg_element
from pluri.report.svg_cards import HEIGHT, MARGIN, PITCH, branch_colors, draw_cards
from pluri.report.svg_map import draw_map
from pluri.report.tables import facts_table, parameter_table
from pluri.report.topic_data import readable_part, topic_data
from pluri.report.topic_search import time_data, vocabulary_data

if TYPE_CHECKING:
    from pluri.report.document_index import DocumentIndex
    from pluri.topics.held_out import HeldOut
    from pluri.topics.over_time.records import TopicTrends
    from pluri.topics.topic_graph import TopicGraph

STYLES = ("colors.css", "page.css", "graph.css", "layout.css", "topics.css", "topic_parts.css")
SCRIPTS = ("topic_parts.js", "topic_time.js", "topic_documents.js", "topic_edits.js", "topics.js")
TABLE_WORDS = 10
BUTTONS = (
    ("fold", "⊟", "Fold or unfold all branches"),
    ("in", "+", "Larger"),
    ("out", "\N{MINUS SIGN}", "Smaller"),
    ("fit", "⤢", "Fit the picture"),
)


def topic_report(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    feature_names: ArrayLike | None = None,
    n_words: int = 20,
    facts: Mapping[str, Any] | None = None,
    held_out: HeldOut | None = None,
    scores: Mapping[str, ArrayLike] | None = None,
    documents: DocumentIndex | None = None,
    trends: TopicTrends | None = None,
) -> str:
    """Write a page on which a reader can walk through the topics of a model.

    The page is one file: it loads nothing, runs nothing that comes from the documents, and can be sent, archived and
    printed. ``page.html#node=3`` opens it at topic 3. Topics without tokens are left out. Words (up to 50,000) and
    documents (up to 5 MB of titles and beginnings) are part of it, so that it stays below 10 MB whatever the corpus.

    Parameters
    ----------
    model : TopicModel
        Fitted. Its words are those given to ``name_words``, its documents those given to ``keep_examples``.
    path : path, optional
        File to write.
    title : str, optional
        Heading; by default the kind of model and the number of topics.
    feature_names : array-like of str, optional
        Words of the columns, if the model does not know them.
    n_words : int, default=20
        Words shown of each topic.
    facts : dict, optional
        More to tell about the model, names and values.
    held_out : HeldOut, optional
        How well new documents were predicted; see ``TopicModel.held_out``.
    scores : dict of array-like of shape (n_topics,), optional
        Numbers of each topic, such as its coherence, for the table.
    documents : DocumentIndex, optional
        Documents to list and search; by default those of ``keep_examples``.
    trends : TopicTrends, optional
        Shares over time; see :func:`pluri.topics.topic_trends`.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from pluri.report import topic_report
    >>> topic_report("no model")
    Traceback (most recent call last):
    ...
    TypeError: model must be a topic model, with topic_graph() and topic_word_, got str
    """
    if not hasattr(model, "topic_graph"):
        raise TypeError(f"model must be a topic model, with topic_graph() and topic_word_, got {type(model).__name__}")
    graph: TopicGraph = model.topic_graph(max(TABLE_WORDS, min(n_words, 50)), feature_names=feature_names)
    n_topics = len(graph.nodes)
    graph = graph.without_empty()
    rows = [node.index for node in graph.nodes]
    topic_word = np.asarray(model.topic_word_, dtype=np.float64)[rows]
    given = {name: _checked(name, values, n_topics)[rows] for name, values in (scores or {}).items()}
    heading = title or f"{_spaced(graph.model)}: {len(graph.nodes)} topics"
    told = {"model": _spaced(graph.model), **graph.facts, **_held_out_facts(held_out), **(facts or {})}
    distances = hellinger_distances(topic_word)
    data = topic_data(
        graph,
        topic_word,
        model._words(feature_names),
        n_words=n_words,
        distances=distances,
        scores=given,
        colors=branch_colors(graph),
        own=model._own_words()[rows],
    )
    data["readable"] = readable_part(graph)
    data["rows"] = {"pitch": PITCH, "margin": MARGIN + HEIGHT / 2}
    weight = np.array([node.weight for node in graph.nodes])
    data["vocabulary"] = vocabulary_data(topic_word, weight, model._words(feature_names), rows)
    data["index"] = None if documents is None else documents.to_dict()
    data["time"] = None if trends is None else time_data(trends, rows)
    curve = fit_curve(model)
    overview = (
        facts_table(told)
        + (draw_curve(curve) if curve is not None else "")
        + (parameter_table(model.get_params(deep=False)) if hasattr(model, "get_params") else "")
    )
    body = _body(heading, graph, distances, overview, given, trends is not None)
    page = html_page(heading, body, styles=STYLES, script=SCRIPTS, data=data)
    if path is not None:
        write_page(page, path)
    return page


def _checked(name: str, values: ArrayLike, n_topics: int) -> NDArray[np.float64]:
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (n_topics,):
        raise ValueError(f"scores[{name!r}] must have one number for each of {n_topics} topics, got {found.shape}")
    return found


def _held_out_facts(held_out: HeldOut | None) -> dict[str, Any]:
    if held_out is None:
        return {}
    return {
        "held-out perplexity": held_out.perplexity,
        "held-out log likelihood per word": held_out.per_word,
        "held-out tokens": int(held_out.n_tokens.sum()),
        "held-out method": held_out.method.replace("_", " "),
    }


def _spaced(name: str) -> str:
    """Words of the name of a class: ``HierarchicalLDA`` is "Hierarchical LDA"."""
    letters = []
    for place, letter in enumerate(name):
        after = name[place + 1 : place + 2]
        if place and letter.isupper() and (name[place - 1].islower() or after.islower()):
            letters.append(" ")
        letters.append(letter)
    return "".join(letters)


def _body(
    heading: str,
    graph: TopicGraph,
    distances: NDArray[np.float64],
    overview: str,
    scores: Mapping[str, Any],
    dated: bool,
) -> str:
    views = {}
    if graph.edges:
        views["graph"] = ("Graph", _canvas(svg_element(draw_cards(graph, 4), label="Graph of the topics")))
    views["map"] = ("Map", _canvas(svg_element(draw_map(graph, distances), label="Map of the topics")))
    views["outline"] = ("Outline" if graph.edges else "List", '<div class="outline"></div>')
    views["table"] = ("Table", f'<div class="scroll">{_table(graph, scores)}</div>')
    if dated:
        views["time"] = ("Time", '<div class="over-time"></div>')
    views["documents"] = ("Documents", '<div class="browse"></div>')
    tabs = "".join(
        f'<button role="tab" type="button" id="tab-{name}" aria-controls="view-{name}" data-view="{name}">'
        f"{told}</button>"
        for name, (told, _) in views.items()
    )
    panels = "".join(
        f'<div role="tabpanel" class="view" id="view-{name}" aria-labelledby="tab-{name}">{content}</div>'
        for name, (_, content) in views.items()
    )
    zoom = "".join(
        f'<button type="button" data-zoom="{way}" title="{told}" aria-label="{told}">{sign}</button>'
        for way, sign, told in BUTTONS
    )
    return f"""<header class="top">
<h1><a href="#">{escape(heading)}</a></h1>
<div class="search"><input id="find" type="search" placeholder="Find words, topics, documents" autocomplete="off"
 spellcheck="false" aria-label="Find words, topics and documents" aria-controls="found">
<div id="found" hidden></div></div>
</header>
<noscript><p class="note">This page answers clicks only with JavaScript; pictures and a table are below.</p></noscript>
<main>
<section class="views" aria-label="Topics">
<div class="bar"><div role="tablist" aria-label="Views">{tabs}</div>
<div class="tools"></div><div class="zoom" role="group" aria-label="Size">{zoom}</div></div>
{panels}
</section>
<aside id="panel" aria-label="About" tabindex="-1">
<section id="overview"><h2>About the model</h2>{overview}
<p class="note hint">Choose a topic to see its words, documents and neighbours. Arrow keys walk through the topics,
<kbd>/</kbd> searches, <kbd>Esc</kbd> clears what was chosen and searched.</p><div id="edits"></div></section>
<section id="topic" aria-live="polite" hidden></section>
</aside>
</main>"""


def _canvas(picture: str) -> str:
    return f'<div class="canvas" tabindex="-1">{picture}</div>'


def _table(graph: TopicGraph, scores: Mapping[str, NDArray[np.float64]]) -> str:
    heaviest = max((node.weight for node in graph.nodes), default=1.0) or 1.0
    place = {node.index: number for number, node in enumerate(graph.nodes)}
    names = ["topic", *(["level"] if graph.edges else []), "share", *scores, "words"]
    head = "".join(f'<th scope="col"{"" if name == "words" else " data-sort"}>{escape(name)}</th>' for name in names)
    rows = []
    for node in sorted(graph.nodes, key=lambda node: (-node.weight, node.index)):
        words = " ".join(node.words[:TABLE_WORDS])
        label = f"<b>{escape(node.label)}</b> " if node.label else ""
        level = f"<td data-value={node.depth}>{node.depth}</td>" if graph.edges else ""
        figures = "".join(_figure(float(values[place[node.index]])) for values in scores.values())
        rows.append(
            f'<tr data-node="{node.index}">'
            f'<td data-value={node.index}><a href="#node={node.index}">{node.index}</a></td>{level}'
            f'<td class="share" data-value={node.weight:.6g} style="--share:{100 * node.weight / heaviest:.0f}%">'
            f"{escape(percent(node.weight))}</td>{figures}<td>{label}{escape(words)}</td></tr>"
        )
    return f'<table class="topic-table"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _figure(value: float) -> str:
    return f"<td data-value={value:.6g}>{value:.3f}</td>" if np.isfinite(value) else '<td data-value="-1e9"></td>'
