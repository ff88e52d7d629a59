"""What an edit of topics leaves behind so that it can be taken back, also after the model went through a file.

A step keeps the rows that the edit changed as they were, and where each topic went; rows that it left alone are not
kept twice. Taking a step back therefore gives the numbers of before to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.topics import checked_state

Array = NDArray[np.float64]
#: What a step of an edit that changes words or numbers of topics has.
ARRAYS = ("became", "kept", "components", "totals", "topic_weight", "doc_topic_prior", "topic_word_prior")


def name_step(model: Any) -> dict[str, Any]:
    """What is needed to take back an edit that changes names only."""
    return {"names": _listed(model, "topic_names_")}


def topic_step(model: Any, became: NDArray[np.int64], kept: NDArray[np.bool_]) -> dict[str, Any]:
    """What is needed to take back an edit after which old topic k is topic ``became[k]``, or none (-1).

    Rows that are ``kept`` are the same in both.
    """
    return {
        **name_step(model),
        "examples": _listed(model, "examples_"),
        "became": np.asarray(became, dtype=np.int64),
        "kept": np.asarray(kept, dtype=bool),
        "components": np.array(model.components_[~kept]),
        # As they were divided by: sums in another order differ in the last bit.
        "totals": np.asarray(model.components_.sum(axis=1))[~kept],
        "topic_weight": np.array(model.topic_weight_),
        "doc_topic_prior": np.array(model.doc_topic_prior_, dtype=np.float64),
        "topic_word_prior": np.array(model.topic_word_prior_, dtype=np.float64),
    }


def take_back(model: Any, step: dict[str, Any]) -> None:
    """Put a model back as it was before a step."""
    if "became" in step:
        became, kept = step["became"], step["kept"]
        old = np.empty((len(became), model.components_.shape[1]))
        words = np.empty_like(old)
        old[kept], words[kept] = model.components_[became[kept]], model.topic_word_[became[kept]]
        old[~kept] = step["components"]
        words[~kept] = old[~kept] / step["totals"][:, None]
        model.components_, model.topic_word_ = old, words
        model.topic_weight_ = step["topic_weight"]
        for name in ("doc_topic_prior", "topic_word_prior"):
            setattr(model, f"{name}_", as_fitted(step[name]))
        _put(model, "examples_", step["examples"])
        if hasattr(model, "n_components"):
            model.n_components = len(old)
    _put(model, "topic_names_", step["names"])


def as_fitted(value: Any) -> Any:
    """An array, or the number that it holds."""
    return float(value) if np.ndim(value) == 0 else np.asarray(value)


def check_history(model: Any, n_topics: int, n_words: int) -> None:
    """Raise a ValueError if names or steps do not fit the topics, as in a file that was changed by hand."""
    _check_names("topic_names_", getattr(model, "topic_names_", None), n_topics)
    edits, steps = getattr(model, "edits_", []), getattr(model, "_undo_steps", [])
    checked_state.one_for_each("edits_", edits, dict)
    checked_state.one_for_each("_undo_steps", steps, dict, len(edits))
    for step in reversed(steps):
        n_topics = _check_step(step, n_topics, n_words)


def _check_step(step: dict[str, Any], n_after: int, n_words: int) -> int:
    """Number of topics before a step that left `n_after` of them."""
    missing = {"names", *(ARRAYS if "became" in step else ())} - step.keys()
    if missing:
        raise ValueError(f"_undo_steps must have {', '.join(sorted(missing))} in each step, got {sorted(step)}")
    if "became" not in step:
        _check_names("_undo_steps: names", step["names"], n_after)
        return n_after
    became = checked_state.indices("_undo_steps: became", step["became"], (None,), n_after, least=-1)
    kept, n_before = step["kept"], len(became)
    if not isinstance(kept, np.ndarray) or kept.dtype != bool or kept.shape != (n_before,):
        raise ValueError(f"_undo_steps: kept must be {n_before} truth values, got {kept!r:.60}")
    if (became[kept] < 0).any() or len(np.unique(became[kept])) != kept.sum():
        raise ValueError("_undo_steps: became must lead each topic that is kept to one of its own, got others")
    n_changed = n_before - int(kept.sum())
    if n_before < 1:
        raise ValueError("_undo_steps: became must have at least one topic, got none")
    rows = checked_state.numbers("_undo_steps: components", step["components"], (n_changed, n_words), least=0)
    totals = checked_state.numbers("_undo_steps: totals", step["totals"], (n_changed,), above=0)
    if not np.allclose(rows.sum(axis=1), totals):
        raise ValueError("_undo_steps: totals must be the sums of components, got others")
    checked_state.numbers("_undo_steps: topic_weight", step["topic_weight"], (n_before,), least=0)
    alpha, eta = (np.asarray(step[name]) for name in ("doc_topic_prior", "topic_word_prior"))
    shapes: dict[int, tuple[int, ...]] = {0: (), 1: (n_words,), 2: (n_before, n_words)}
    checked_state.numbers("_undo_steps: doc_topic_prior", alpha, (n_before,) if alpha.ndim else (), least=0)
    checked_state.numbers("_undo_steps: topic_word_prior", eta, shapes.get(eta.ndim, ()), least=0)
    _check_names("_undo_steps: names", step["names"], n_before)
    examples = step.get("examples")
    if examples is not None:
        checked_state.one_for_each("_undo_steps: examples", examples, list, n_before)
    return n_before


def _check_names(what: str, names: Any, n_topics: int) -> None:
    if names is None:
        return
    if not isinstance(names, list) or len(names) != n_topics:
        raise ValueError(f"{what} must be a list with a name or None for each of {n_topics} topics, got {names!r:.60}")
    wrong = [name for name in names if not (name is None or isinstance(name, str))]
    if wrong:
        raise ValueError(f"{what} must be strings or None, got {wrong[0]!r}")


def _listed(model: Any, name: str) -> list[Any] | None:
    value = getattr(model, name, None)
    return None if value is None else list(value)


def _put(model: Any, name: str, value: Any) -> None:
    if value is None:
        vars(model).pop(name, None)
    else:
        setattr(model, name, value)
