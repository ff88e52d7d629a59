"""From sequences to transitions: pairs of rows that follow each other in one sequence, those of a task together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation.sequences import offsets_of

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Larger data could not be squared and summed.
LARGEST = 1e100
#: Share of the largest variance that is added to all, so that constant coordinates have a precision.
RIDGE = 1e-6


@dataclass(frozen=True, eq=False)
class Transitions:
    """Pairs of rows that follow each other, in units in which they are centred and of order one.

    Attributes
    ----------
    starts, ends : (n, K)
    rows : (n,): the row of the data that each begins with
    offsets : (L + 1,): where those of each task begin and end
    center, scale : (K,) and a number: ``row = center + scale * value``
    scatter : (K, K): covariance of the rows in these units
    reach : distance of the farthest row from the centre, in the units of the data
    """

    starts: Array
    ends: Array
    rows: Integers
    offsets: Integers
    center: Array
    scale: float
    scatter: Array
    reach: float

    @classmethod
    def of(cls, data: Array, lengths: Integers, task_of_sequence: Integers, names: list[Any]) -> Transitions:
        """Transitions of sequences; those that touch a row with a missing value are left out."""
        complete = ~with_holes(data)
        first = transition_rows(lengths)
        first = first[complete[first] & complete[first + 1]]
        tasks = np.repeat(task_of_sequence, lengths)[first]
        order = np.argsort(tasks, kind="stable")
        first, counts = first[order], np.bincount(tasks, minlength=len(names))
        K = data.shape[1]
        if len(first) < K + 2:
            raise ValueError(
                f"X must have at least {K + 2} pairs of complete rows that follow each other in a sequence, two more "
                f"than it has features, got {len(first)} (minimum of {K + 2} is required)"
            )
        if (counts == 0).any():
            name = names[int(np.argmin(counts))]
            raise ValueError(f"tasks must each have two complete rows that follow each other, task {name!r} has none")
        seen = data[complete]
        if float(np.abs(seen).max()) > LARGEST:
            raise ValueError(f"X must not exceed {LARGEST:g} in size, got {np.abs(seen).max():.3g}; rescale it")
        center = seen.mean(axis=0)
        scale = float(np.sqrt(seen.var(axis=0).mean())) or 1.0
        values = (data - center) / scale
        spread = values[complete].T @ values[complete] / len(seen)
        scatter = spread + RIDGE * max(float(np.trace(spread)) / K, RIDGE) * np.eye(K)
        reach = float(np.linalg.norm(seen - center, axis=1).max())
        offsets = offsets_of(counts)
        return cls(values[first], values[first + 1], first, offsets, center, scale, scatter, reach)


def with_holes(rows: Array) -> NDArray[np.bool_]:
    """Which rows have a missing value."""
    return np.asarray(np.isnan(rows).any(axis=1), dtype=np.bool_)


def transition_rows(lengths: Integers) -> Integers:
    """Rows that have a successor in their sequence."""
    has_next = np.ones(int(lengths.sum()), dtype=bool)
    ends = np.cumsum(lengths)[lengths > 0]
    has_next[ends - 1] = False
    return np.flatnonzero(has_next)


def task_labels(tasks: ArrayLike | None, lengths: Integers) -> NDArray[Any] | None:
    """The task of each sequence, from one label for each of them or for each row; None if there are no labels."""
    if tasks is None:
        return None
    labels = np.asarray(tasks)
    if labels.ndim != 1 or labels.dtype.kind not in "iuUSbO":
        raise ValueError(f"tasks must be a list of integers or names, got shape {labels.shape} of {labels.dtype}")
    if labels.dtype.kind == "O":
        if any(not isinstance(label, str | int) for label in labels.tolist()):
            raise ValueError("tasks must be integers or names, got something else among them")
        labels = labels.astype(str)
    if len(labels) == len(lengths):
        return labels
    if len(labels) != lengths.sum():
        raise ValueError(f"tasks must have one label for each of {len(lengths)} sequences, got {len(labels)}")
    # Cross-validation cuts what has an entry for each row, and nothing else.
    firsts = np.minimum(np.cumsum(lengths) - lengths, len(labels) - 1)
    if not (np.repeat(labels[firsts], lengths) == labels).all():
        raise ValueError("tasks must not change within a sequence")
    return np.asarray(labels[firsts])
