"""What a concept graph is told, checked; and how many nodes it may have."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.topics.concept_graph.first_positions import FIRST_BLANKS
from pluri.topics.concept_graph.given_graph import GivenGraph, read_labels

#: Nodes of each level, as published, where nothing is said of their number.
USUAL_NODES = 25
CHOICES = {
    "level_prior": ("geometric", "dirichlet"),
    "feasible": ("next_level", "deeper"),
    "path_sampler": ("dp", "enumerate"),
    "init": ("topics", "root"),
}


def check_settings(model: Any) -> None:
    """Refuse settings that cannot be used; see :class:`~pluri.topics.ConceptGraph`."""
    for name, least in (
        ("n_levels", 1), ("n_joint", 0), ("n_warmup", 0), ("n_draws", 1), ("thin", 1), ("n_chains", 1),
    ):  # fmt: skip
        value: Any = getattr(model, name)
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if model.n_levels > 100:
        raise ValueError(f"n_levels must be at most 100, got {model.n_levels}")
    most: Any = model.max_nodes_per_level
    whole = isinstance(most, Integral) and not isinstance(most, bool) and int(most) >= 1
    if not (most is None or whole or (isinstance(most, str) and most in ("auto", "given"))):
        raise ValueError(
            f"max_nodes_per_level must be 'auto', 'given', None or a whole number of at least 1, got {most!r}"
        )
    if isinstance(most, str) and most == "given" and model.graph is None:
        raise ValueError("max_nodes_per_level='given' needs a graph, whose nodes are given; got graph=None")
    for name in ("alpha", "beta", "topic_word_prior"):
        value = getattr(model, name)
        if name != "alpha" and isinstance(value, str) and value == "learn":
            continue
        if not isinstance(value, Real) or isinstance(value, bool) or not 1e-8 <= float(value) <= 1e6:
            learned = "" if name == "alpha" else "'learn' or "
            raise ValueError(f"{name} must be {learned}a number from 1e-8 to 1e6, got {value!r}")
    try:
        a, b = (float(value) for value in model.tau_prior)
    except (TypeError, ValueError):
        a = b = float("nan")
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise ValueError(f"tau_prior must be two positive numbers, got {model.tau_prior!r}")
    for name, allowed in CHOICES.items():
        if getattr(model, name) not in allowed:
            raise ValueError(f"{name} must be one of {allowed}, got {getattr(model, name)!r}")


def most_nodes(max_nodes_per_level: Any, given: GivenGraph, n_levels: int) -> int | NDArray[np.int64] | None:
    """Nodes of each level below the root: a number, one for each level, or None for no limit."""
    number = np.bincount(given.depth, minlength=n_levels + 1)[2:]
    if isinstance(max_nodes_per_level, str):
        if max_nodes_per_level == "given":
            return number
        fullest = int(number.max(initial=0))
        return max(USUAL_NODES, fullest + FIRST_BLANKS if fullest else 0)
    return None if max_nodes_per_level is None else int(max_nodes_per_level)


def labels_or_warning(model: Any, y: Any, given: GivenGraph, n_documents: int) -> NDArray[np.int64]:
    """Node of each document, -1 for any; a warning if there are labels without a graph whose nodes they could name."""
    if y is not None and model.graph is not None:
        return read_labels(y, given, n_documents)
    if y is not None and any(isinstance(value, str) for value in np.ravel(np.asarray(y, dtype=object))):
        warnings.warn(
            f"{type(model).__name__}: y is not used without a graph whose nodes it names; give graph=",
            UserWarning,
            stacklevel=4,
        )
    return np.full(n_documents, -1, dtype=np.int64)
