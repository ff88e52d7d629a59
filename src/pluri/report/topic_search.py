"""What the search of a page about topics knows besides: every word of the vocabulary, and shares over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.report.topic_data import digits

if TYPE_CHECKING:
    from pluri.topics.over_time.records import TopicTrends

Array = NDArray[np.float64]

#: Words of the vocabulary that a page knows, the most frequent ones, and topics of each.
MOST_WORDS, N_TOPICS = 50_000, 3
#: A topic is named for a word if it has this share of its occurrences.
LEAST_SHARE = 0.02
#: Drifting words of a topic.
N_DRIFTING = 8


def vocabulary_data(topic_word: Array, weight: Array, words: NDArray[Any], index: list[int]) -> dict[str, Any]:
    """Every word, and the topics that it mostly comes from, with their share of its occurrences in percent.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.report.topic_search import vocabulary_data
    >>> topic_word, words = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array(["ice", "moon"])
    >>> found = vocabulary_data(topic_word, np.array([0.5, 0.5]), words, [0, 1])
    >>> found["words"], found["topics"], found["shares"]
    (['ice', 'moon'], [[0, 1], [1, 0]], [[82, 18], [89, 11]])
    """
    joint = weight[:, None] * topic_word
    marginal = joint.sum(axis=0)
    kept = np.sort(np.argsort(-marginal, kind="stable")[:MOST_WORDS])
    topics, shares = [], []
    for begin in range(0, len(kept), 4096):
        columns = kept[begin : begin + 4096]
        part = (joint[:, columns] / np.maximum(marginal[columns], 1e-300)).T
        best = np.argsort(-part, axis=1, kind="stable")[:, :N_TOPICS]
        for row, places in enumerate(best):
            own = [place for place in places if part[row, place] >= LEAST_SHARE] or [places[0]]
            topics.append([index[place] for place in own])
            shares.append([round(100 * float(part[row, place])) for place in own])
    return {
        "words": [str(words[column]) for column in kept],
        "topics": topics,
        "shares": shares,
        "total": int(topic_word.shape[1]),
    }


def _misfit(found: Any) -> dict[str, Any]:
    return {"since": found.since, "found": found.found, "share": digits(found.share), "before": digits(found.before),
            "words": list(found.words), "p": digits(found.p_value)}  # fmt: skip


def time_data(trends: TopicTrends, rows: list[int]) -> dict[str, Any]:
    """Shares over time of the topics that are shown, what emerges and fades, and words that drift."""
    over_time = trends.over_time
    place = {row: number for number, row in enumerate(rows)}

    def change(found: Any) -> dict[str, Any]:
        return {
            "topic": found.topic, "kind": found.kind, "since": found.since, "found": found.found,
            "share": digits(found.share), "error": digits(found.error), "before": digits(found.before),
            "p": digits(found.p_value),
        }  # fmt: skip

    drifting: dict[int, list[list[Any]]] = {}
    for drift in trends.drifting_words(n_words=N_DRIFTING):
        if drift.topic in place:
            drifting.setdefault(drift.topic, []).append([drift.word, digits(drift.early, 3), digits(drift.late, 3)])
    return {
        "period": over_time.period,
        "names": over_time.names,
        "days": [int(start.astype("datetime64[D]").astype(int)) for start in over_time.starts],
        "documents": over_time.n_documents.tolist(),
        "shares": [[digits(value, 3) for value in over_time.shares[:, row]] for row in rows],
        "errors": [[digits(value, 2) for value in over_time.errors[:, row]] for row in rows],
        "topics": rows,
        "changes": [change(one) for one in (*trends.emerging(), *trends.fading()) if one.topic in place],
        "drifting": [[topic, found] for topic, found in drifting.items()],
        "misfit": None if trends.misfit is None else _misfit(trends.misfit),
        "rate": trends.false_alarm_rate,
        "looks": trends.n_looks,
        "undated": over_time.n_undated,
    }
