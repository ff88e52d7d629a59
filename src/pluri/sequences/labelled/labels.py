"""Labels of samples as states 0 .. k-1, with -1 where a label is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from pluri.validation.sequences import is_sequence_list

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

#: Labels that mean "not known" if ``unknown="auto"``, among numbers and among strings.
MARKS = (-1, "")


def join_labels(y: Any) -> tuple[NDArray[Any], Integers | None]:
    """Labels in one array, and how many each sequence has if they came as a list of sequences."""
    if y is None:
        raise ValueError("HMMClassifier requires y to be passed, but the target y is None")
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] > 1:
        y = list(y)  # sequences of one length: a row for each
    if isinstance(y, list | tuple) and len(y) > 0 and all(_is_sequence(item) for item in y):
        parts = [_as_array(item) for item in y]
        filled = [part for part in parts if len(part)]  # an empty list would bring in a type of its own
        lengths = np.array([len(part) for part in parts], dtype=np.int64)
        joined = np.concatenate(filled) if filled else np.empty(0)
        return joined, lengths if is_sequence_list(y) else None  # [[0], [1]] is a column
    return _as_array(y), None


def _is_sequence(item: Any) -> bool:
    return hasattr(item, "__len__") and not isinstance(item, str | bytes) and np.ndim(item) == 1


def _as_array(y: Any) -> NDArray[Any]:
    if hasattr(y, "dtype") and not isinstance(y.dtype, np.dtype):
        # pandas' own types mark a missing value by pandas.NA, polars' by None
        y = np.asarray(y.astype(object)) if hasattr(y, "astype") else np.array([*y, None], dtype=object)[:-1]
    elif isinstance(y, list | tuple) and not all(_is_number(label) for label in y) and any(map(_is_missing, y)):
        y = np.array(y, dtype=object)  # NumPy would make a word of NaN
    return np.asarray(column_or_1d(y, warn=True))


def check_label_lengths(labels: NDArray[Any], label_lengths: Integers | None, lengths: Integers) -> None:
    """Refuse labels that are not one for each sample."""
    if len(labels) != lengths.sum():
        raise ValueError(
            f"y must have one label for each of {lengths.sum()} samples, got {len(labels)}: inconsistent numbers of "
            "samples (for one label a sequence use SequenceClassifier)"
        )
    if label_lengths is not None and len(label_lengths) == len(lengths):
        wrong = np.flatnonzero(label_lengths != lengths)
        if wrong.size:
            n = wrong[0]
            raise ValueError(
                f"y[{n}] must have as many labels as X[{n}] has samples ({lengths[n]}), got {label_lengths[n]}"
            )


def encode_labels(y: NDArray[Any], unknown: Any = "auto") -> tuple[NDArray[Any], Integers]:
    """The sorted classes, and the class number of each label, -1 where it is not known; see `HMMClassifier`."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        what = "NaN" if np.isnan(y).any() else "infinity"
        raise ValueError(f"Input y contains {what}: mark an unknown label by -1, or by None in an array of objects")
    missing, marked = find_unknown(y, unknown)
    others = y[~(missing | marked)]
    known = y[~missing] if _is_auto(unknown) and len(set(others.tolist())) < 2 else others
    if len(known) == 0:
        raise ValueError("y must have at least one known label, got none")
    is_known = ~missing if len(known) > len(others) else ~(missing | marked)
    if known.dtype.kind == "O" and all(_is_number(label) for label in known):
        known = np.array(known.tolist())
    try:
        check_classification_targets(known)
        classes, codes = np.unique(known, return_inverse=True)
    except TypeError as error:
        raise ValueError("y must hold labels that can be sorted, all numbers or all strings, got a mixture") from error
    states = np.full(len(y), -1, dtype=np.int64)
    states[is_known] = codes
    return classes, states


def find_unknown(y: NDArray[Any], unknown: Any = "auto") -> tuple[Booleans, Booleans]:
    """Where a label is missing (None, NaN), and where it is the mark of an unknown label."""
    missing, marked = np.zeros(len(y), dtype=bool), np.zeros(len(y), dtype=bool)
    if y.dtype.kind == "O":
        missing = np.array([_is_missing(label) for label in y], dtype=bool)
    if unknown is None:
        if missing.any():
            raise ValueError("y must have no None and no NaN when unknown is None")
        return missing, marked
    marks = MARKS if _is_auto(unknown) else (unknown,)
    if y.dtype.kind == "O":
        marked[~missing] = [label in marks for label in y[~missing]]
    else:
        for mark in marks:
            if y.dtype.kind == "S" and isinstance(mark, str):
                marked |= y == mark.encode()
            elif isinstance(mark, str) == (y.dtype.kind in "US"):
                marked |= y == mark
    return missing, marked


def _is_auto(unknown: Any) -> bool:
    return isinstance(unknown, str) and unknown == "auto"


def _is_number(label: Any) -> bool:
    return isinstance(label, int | float | np.number)


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float) and label != label) or type(label).__name__ == "NAType"
