"""Topics on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pluri.topics.topic_graph import TopicGraph, TopicNode

N_WORDS = 8
#: Lines of a tree; the page has all of it.
MOST_LINES = 150
#: Topics with a smaller share of the tokens are counted, not listed.
SMALL = 0.001


def topic_lines(model: Any, coherence: NDArray[Any] | None = None) -> str:
    """A table of the topics, the largest first, or an outline where some lie below others."""
    graph = model.topic_graph(N_WORDS).without_empty()
    head = _number_of_topics(model)
    return "\n".join([*head, _outline(graph) if graph.edges else _table(graph, coherence, ratings_of(model))])


def coherence_of(notes: Mapping[str, Any], model: Any) -> NDArray[Any] | None:
    """The coherence of each topic as it was noted in the file of a model, if it is of these topics."""
    import numpy as np

    noted = notes.get("coherence")
    fitting = isinstance(noted, list) and len(noted) == len(getattr(model, "topic_word_", ()))
    return np.array(noted, dtype=np.float64) if fitting else None


def figures(score: Any) -> dict[str, float]:
    """How well the held-out documents were predicted."""
    if score is None:
        return {}
    return {"held-out documents": len(score.n_tokens), "held-out perplexity": round(float(score.perplexity), 2)}


def topics_as_json(
    model: Any,
    facts: Mapping[str, Any],
    coherence: NDArray[Any] | None,
    score: Any,
    outputs: Mapping[str, Path | None],
    interrupted: bool,
    trends: Any = None,
) -> dict[str, Any]:
    """All topics, also those without tokens, and what is known of the fit."""
    graph = model.topic_graph(N_WORDS)
    table, ratings = model.topic_table(N_WORDS), ratings_of(model)
    for row in table:
        row["words"] = graph.nodes[row["topic"]].words
        if ratings:
            row["rating"] = ratings[row["topic"]]
        if coherence is not None:
            row["coherence"] = float(coherence[row["topic"]])
    return {
        "model": graph.model,
        **facts,
        "interrupted": interrupted,
        "held_out_perplexity": None if score is None else score.perplexity,
        **{name: None if path is None else str(path) for name, path in outputs.items()},
        "topics": table,
        "edges": [[edge.parent, edge.child, edge.weight] for edge in graph.edges],
        **({} if trends is None else {"over_time": trends_as_json(trends)}),
    }


def trends_as_json(trends: Any) -> dict[str, Any]:
    """Shares over time with their errors, and what changes."""
    from dataclasses import asdict

    return {
        "period": trends.over_time.period,
        "starts": [str(start) for start in trends.over_time.starts],
        "documents": trends.over_time.n_documents,
        "shares": trends.over_time.shares,
        "errors": trends.over_time.errors,
        "false_alarm_rate": trends.false_alarm_rate,
        "emerging": [asdict(change) for change in trends.emerging()],
        "fading": [asdict(change) for change in trends.fading()],
        "misfit": None if trends.misfit is None else asdict(trends.misfit),
        "drifting_words": [asdict(drift) for drift in trends.drifting_words()],
    }


def _number_of_topics(model: Any) -> list[str]:
    """How many topics there are, of a model that finds that out, and how sure it is."""
    if not hasattr(model, "n_large_topics_"):
        return []
    large, whole = f"{model.n_large_topics_} topics with 1 % or more of the tokens", f"{model.n_topics_} in all"
    if hasattr(model, "n_topics_interval_"):
        large += " (95 % of the draws: {} to {})".format(*model.n_large_topics_interval_)
        whole += " ({} to {}); listed are those of the best draw".format(*model.n_topics_interval_)
    return [f"{large}, {whole}", ""]


def _outline(whole: TopicGraph) -> str:
    from pluri.report import tree_text

    graph = whole.readable()
    texts = (tree_text(graph, n_words=N_WORDS, max_depth=depth) for depth in (None, 4, 3, 2, 1))
    text = next((text for text in texts if text.count("\n") < MOST_LINES), tree_text(graph, max_depth=1))
    n_small = len(whole.nodes) - len(graph.nodes)
    if not n_small:
        return text
    said = "1 smaller topic is" if n_small == 1 else f"{n_small} smaller topics are"
    return f"{text}\n{said} counted with those above; --report and --json have all"


def ratings_of(model: Any) -> list[str]:
    """What the topics of a supervised model say of a document that has nothing else: a rating, or a class."""
    if not hasattr(model, "coef_") or not hasattr(model, "_remark"):
        return []
    return [str(model._remark(topic)) for topic in range(len(model.topic_word_))]


def _table(graph: TopicGraph, coherence: NDArray[Any] | None, ratings: list[str]) -> str:
    nodes = sorted(graph.nodes, key=lambda node: (-node.weight, node.index))
    large = [node for node in nodes if node.weight >= SMALL]
    small = nodes[len(large) :] if large else []
    if len(small) == 1:  # takes no more room than its number
        small = []
    head = "topic   share  " + ("  NPMI  " if coherence is not None else "") + ("rating  " if ratings else "") + "words"
    lines = [head, *(_row(node, coherence, ratings) for node in nodes[: len(nodes) - len(small)])]
    if small:
        lines.append(f"{len(small)} more with {sum(node.weight for node in small):.1%} together")
    return "\n".join(lines)


def _row(node: TopicNode, coherence: NDArray[Any] | None, ratings: list[str]) -> str:
    npmi = "" if coherence is None else f"{coherence[node.index]:>6.3f}  "
    name = f"{node.label}: " if node.label else ""
    rating = f"{ratings[node.index]:>6}  " if ratings else ""
    return f"{node.index:>5}  {node.weight:>6.1%}  {npmi}{rating}{name}{' '.join(node.words)}"
