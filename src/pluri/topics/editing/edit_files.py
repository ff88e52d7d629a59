"""Edits of topics as a file, which a page or a person writes and a program applies to a model.

The file is JSON::

    {
      "topics": 20,
      "edits": [
        {"edit": "rename", "topic": 3, "name": "ice hockey"},
        {"edit": "merge", "topics": [1, 4], "name": "space"},
        {"edit": "drop", "topic": 2},
        {"edit": "pin", "topic": 5, "words": ["gene", "cell"], "strength": 100},
        {"edit": "split", "topic": 6, "into": 2}
      ]
    }

**Topics are counted as in the model before any edit of the file**, whatever was merged or dropped on the way. A topic
that was merged stands for what it was merged into; one that was dropped cannot be named again. ``topics`` (optional) is
how many topics the model had when the edits were made: a file for another model is then refused. ``name`` of a merger,
``strength`` (100) and ``into`` (2) are optional; a ``name`` of null takes a name away. A topic that is split keeps its
number for its largest part. Edits are applied in order, all of them or none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pluri.topics.editing.named import NamedTopics
from pluri.validation import restored_on_failure

#: Keys of each edit that must be there, and those that may.
KEYS: dict[str, tuple[set[str], set[str]]] = {
    "rename": ({"topic", "name"}, set()),
    "merge": ({"topics"}, {"name"}),
    "drop": ({"topic"}, set()),
    "pin": ({"topic", "words"}, {"strength"}),
    "split": ({"topic"}, {"into"}),
}


def read_edits(edits: Any) -> tuple[list[dict[str, Any]], int | None]:
    """Edits of a file, or of what is in one, and for how many topics they were made (None if that is not told).

    Parameters
    ----------
    edits : path, dict, or list of dict
        A file of edits; or what it holds; or only the list.

    Returns
    -------
    edits : list of dict
    n_topics : int or None

    Examples
    --------
    >>> from pluri.topics import read_edits
    >>> read_edits({"topics": 8, "edits": [{"edit": "drop", "topic": 2}]})
    ([{'edit': 'drop', 'topic': 2}], 8)
    >>> read_edits([{"edit": "forget", "topic": 2}])
    Traceback (most recent call last):
    ...
    ValueError: edit 1 must be one of rename, merge, drop, pin, split, got 'forget'
    """
    if isinstance(edits, str | PathLike):
        text = Path(edits).read_text(encoding="utf-8")
        try:
            edits = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"the file of edits must be JSON, got {error}") from error
    n_topics = None
    if isinstance(edits, Mapping):
        extra = edits.keys() - {"edits", "topics"}
        if extra or "edits" not in edits:
            raise ValueError(f"a file of edits must have edits, and may have topics, got {sorted(edits)}")
        n_topics, edits = edits.get("topics"), edits["edits"]
        if n_topics is not None and not _is_whole(n_topics, 1):
            raise ValueError(f"topics must be the number of topics of the model, got {n_topics!r}")
    if isinstance(edits, str) or not isinstance(edits, Sequence):
        raise ValueError(f"edits must be a list, got {type(edits).__name__}")
    return [_checked(edit, number) for number, edit in enumerate(edits, 1)], n_topics


def apply_edits(model: Any, edits: Any, X: Any = None) -> Any:
    """Apply a file of edits to a fitted topic model, in place.

    Parameters
    ----------
    model : TopicModel
        Fitted. All have names; words and numbers of topics can be edited of `LatentDirichletAllocation` and
        `HDPTopicModel`.
    edits : path, dict, or list of dict
        See :mod:`pluri.topics.editing.edit_files` for the form. Topics are counted as in the model as it is now.
    X : array-like or sparse matrix of shape (n_documents, n_words), optional
        Documents, needed to split topics; with them, tokens of a topic that is dropped go where their documents say.

    Returns
    -------
    model
        The same; each edit can be taken back by :meth:`~pluri.topics.TopicModel.undo`. If one of them fails, none is
        applied.

    Examples
    --------
    >>> from pluri.topics import LatentDirichletAllocation, apply_edits
    >>> X = [[4, 4, 0, 0, 0, 0], [0, 0, 4, 4, 0, 0], [0, 0, 0, 0, 4, 4]] * 20
    >>> model = LatentDirichletAllocation(3, inference="gibbs", random_state=0).fit(X)
    >>> edits = [{"edit": "merge", "topics": [0, 1]}, {"edit": "rename", "topic": 2, "name": "the last"}]
    >>> apply_edits(model, edits).topic_names_
    [None, 'the last']
    >>> len(model.undo().undo().topic_word_)
    3
    """
    if not isinstance(model, NamedTopics):
        raise TypeError(f"model must be a topic model, got {type(model).__name__}")
    check_is_fitted(model, "topic_word_")
    listed, expected = read_edits(edits)
    n_topics = len(model.topic_word_)  # type: ignore[attr-defined]
    if expected is not None and expected != n_topics:
        raise ValueError(f"the edits must be of a model with {n_topics} topics, as this one, got edits of {expected}")
    places: Any = np.arange(n_topics)
    with restored_on_failure(model):
        for number, edit in enumerate(listed, 1):
            try:
                places = _apply(model, edit, places, X)
            except (ValueError, TypeError, AttributeError) as error:
                raise type(error)(f"edit {number} ({edit['edit']}): {error}") from error
    return model


def _apply(model: Any, edit: dict[str, Any], places: Any, X: Any) -> Any:
    """Do one edit; where each topic of the beginning is now."""
    kind = edit["edit"]
    if kind != "rename" and not hasattr(model, kind):
        raise TypeError(
            "words and numbers of topics can be edited of LatentDirichletAllocation and HDPTopicModel, got "
            f"{type(model).__name__}"
        )
    if kind == "rename":
        model.rename(_now(edit["topic"], places), edit["name"])
        return places
    if kind == "merge":
        model.merge(sorted({_now(topic, places) for topic in edit["topics"]}), name=edit.get("name"))
    elif kind == "drop":
        model.drop(_now(edit["topic"], places), X)
    elif kind == "pin":
        model.pin(_now(edit["topic"], places), edit["words"], strength=edit.get("strength", 100.0))
    else:
        if X is None:
            raise ValueError("a topic can be split only with documents, got none")
        model.split(_now(edit["topic"], places), X, into=edit.get("into", 2))
    became = model._undo_steps[-1]["became"]
    return np.where(places >= 0, became[places], -1)


def _now(topic: int, places: Any) -> int:
    if topic >= len(places):
        raise ValueError(f"topics must be whole numbers from 0 to {len(places) - 1}, got {topic}")
    if places[topic] < 0:
        raise ValueError(f"topic {topic} must not be named after it was dropped")
    return int(places[topic])


def _checked(edit: Any, number: int) -> dict[str, Any]:
    """One edit, with the keys and kinds of values that it must have."""
    if not isinstance(edit, Mapping):
        raise ValueError(f"edit {number} must be an object such as {{'edit': 'drop', 'topic': 2}}, got {edit!r:.60}")
    kind = edit.get("edit")
    if not isinstance(kind, str) or kind not in KEYS:
        raise ValueError(f"edit {number} must be one of {', '.join(KEYS)}, got {kind!r}")
    needed, allowed = KEYS[kind]
    given = edit.keys() - {"edit"}
    if needed - given or given - needed - allowed:
        may = f", and may have {' and '.join(sorted(allowed))}" if allowed else ""
        raise ValueError(
            f"edit {number} ({kind}) must have {' and '.join(sorted(needed))}{may}, got {sorted(map(str, given))}"
        )
    checks: dict[str, tuple[Callable[[Any], bool], str]] = {
        "topic": (lambda value: _is_whole(value, 0), "the number of a topic"),
        "topics": (lambda value: _is_list(value, lambda one: _is_whole(one, 0)), "a list of numbers of topics"),
        "name": (lambda value: value is None or isinstance(value, str), "a text or null"),
        "words": (lambda value: _is_list(value, lambda one: isinstance(one, str)), "a list of words"),
        "strength": (lambda value: isinstance(value, int | float) and not isinstance(value, bool), "a number"),
        "into": (lambda value: _is_whole(value, 2), "a whole number of at least 2"),
    }
    for key in given:
        good, wanted = checks[key]
        if not good(edit[key]):
            raise ValueError(f"edit {number} ({kind}): {key} must be {wanted}, got {edit[key]!r:.60}")
    return dict(edit)


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def _is_list(value: Any, good: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0 and all(map(good, value))
