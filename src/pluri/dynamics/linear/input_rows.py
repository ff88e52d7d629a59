"""Inputs u_t as users pass them: one row for each row of the data, in an array or a list of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.validation import unmasked
from pluri.validation.sequences import is_sequence_list, join_sequences

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def input_rows(inputs: Any, lengths: Integers, n_inputs: int | None, name: str = "inputs") -> Array:
    """Inputs (n_rows, n_inputs) for sequences of these lengths, or a sentence about what is wrong with them.

    Parameters
    ----------
    inputs : array, list of sequences, or None
    lengths : ndarray (n_sequences,)
    n_inputs : int or None
        How many the model has; None if that is to be learned from them.
    name : str
        For error messages.
    """
    n_rows = int(lengths.sum())
    if inputs is None:
        if n_inputs:
            raise ValueError(f"{name} must be given, {n_inputs} for each row: the model was fitted with inputs")
        return np.zeros((n_rows, 0))
    inputs = unmasked(inputs)
    if is_sequence_list(inputs) and len(inputs) == len(lengths) and _is_nested(inputs):
        found, own = join_sequences(inputs)
        if not np.array_equal(own, lengths):
            raise ValueError(f"{name} must have the lengths of X ({lengths.tolist()}), got {own.tolist()}")
        inputs = found
    try:
        rows = np.asarray(inputs, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers with one row for each row of X") from None
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) != n_rows:
        raise ValueError(f"{name} must have one row for each of the {n_rows} rows of X, got shape {rows.shape}")
    if n_inputs == 0 and rows.shape[1]:
        raise ValueError(f"{name} must be None: the model was fitted without inputs, got {rows.shape[1]} of each row")
    if n_inputs is not None and rows.shape[1] != n_inputs:
        raise ValueError(f"{name} must have {n_inputs} columns, those of the fit, got {rows.shape[1]}")
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} must be finite: values of X may be missing, those of inputs may not")
    return rows


def _is_nested(inputs: Any) -> bool:
    """Whether the items are sequences of rows rather than rows: arrays, or lists of lists."""
    first = inputs[0]
    return hasattr(first, "shape") or (len(first) > 0 and hasattr(first[0], "__len__"))
