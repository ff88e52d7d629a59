"""Estimators of subsets through time side by side: how probable, how diverse, how steady, how fast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pluri.processes.dpp.kernel_forms import Array
from pluri.processes.dpp.tracking.stream import SubsetStream


class Comparison(NamedTuple):
    """How two or more estimators did on the same stream.

    Attributes
    ----------
    log_probability : (n_estimators, n_stamps), exact log probability of the best subset
    similarity : (n_estimators, n_stamps), mean cosine of the pairs inside the best subset; NaN below two items
    seconds : (n_estimators, n_stamps), accumulated time of the samplers
    overlap : (n_estimators, n_stamps), Jaccard overlap of the best subset with that of the time step before; NaN at
    first
    inclusion_error : (n_estimators, n_stamps), mean absolute error of the inclusion probabilities
    """

    log_probability: Array
    similarity: Array
    seconds: Array
    overlap: Array
    inclusion_error: Array


def jaccard_overlap(first: Iterable[Any], second: Iterable[Any]) -> float:
    """Share of the items of either set that are in both; 1 for two empty sets.

    Examples
    --------
    >>> from pluri.processes.dpp.tracking.comparison import jaccard_overlap
    >>> jaccard_overlap([1, 2, 3], [2, 3, 4])
    0.5
    """
    a, b = set(first), set(second)
    return len(a & b) / len(a | b) if a or b else 1.0


def inner_similarity(model: SubsetStream, subset: Sequence[Any]) -> float:
    """Mean of ``L_ij / sqrt(L_ii L_jj)`` over the pairs of a subset; NaN below two items."""
    if len(subset) < 2:
        return math.nan
    slots = [model._items.slot_of[item] for item in subset]
    block = model._present().kernel[np.ix_(slots, slots)]
    roots = np.sqrt(np.diagonal(block))
    return float((block / np.outer(roots, roots))[np.triu_indices(len(slots), 1)].mean())


def compare_streams(
    models: Sequence[SubsetStream], stream: Iterable[tuple[Any, ...]], callback: Callable[..., None] | None = None
) -> Comparison:
    """Let estimators take in the same stream, and compare what they show.

    Parameters
    ----------
    models : sequence of TimeVaryingDPP and SeparateDPP
        Not begun yet.
    stream : iterable of (changed_ids, features) or (changed_ids, features, leaving)
        What `update` takes at each time step.
    callback : callable, optional
        Called after each time step with its number.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.tracking.comparison import compare_streams
    >>> from pluri.processes.dpp.tracking.separate import SeparateDPP
    >>> from pluri.processes.dpp.tracking.time_varying import TimeVaryingDPP
    >>> rng = np.random.default_rng(0)
    >>> stream = [(range(8), rng.normal(size=(8, 4)))] + [([t], rng.normal(size=(1, 4))) for t in range(5)]
    >>> result = compare_streams([TimeVaryingDPP(random_state=0), SeparateDPP(random_state=0)], stream)
    >>> result.log_probability.shape, bool(np.isfinite(result.log_probability).all())
    ((2, 6), True)
    """
    columns = []
    shown: list[tuple[Any, ...] | None] = [None] * len(models)
    for t, (changed, features, *rest) in enumerate(stream):
        column = []
        for m, model in enumerate(models):
            model.update(changed, features, leaving=rest[0] if rest else ())
            best = model.best_subset()
            error = model.inclusion_probabilities() - model.inclusion_probabilities(exact=True)
            before = shown[m]
            column.append(
                (
                    model.score(best),
                    inner_similarity(model, best),
                    model.history_[-1].seconds,
                    math.nan if before is None else jaccard_overlap(before, best),
                    float(np.abs(error).mean()),
                )
            )
            shown[m] = best
        columns.append(column)
        if callback is not None:
            callback(t)
    if not columns:
        raise ValueError("stream must have at least one time step, got none")
    table = np.array(columns).transpose(2, 1, 0)
    return Comparison(table[0], table[1], np.cumsum(table[2], axis=1), table[3], table[4])
