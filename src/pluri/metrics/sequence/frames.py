"""Errors of labels that are aligned with frames, and the perplexity of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation import check_row_weight, weighted_mean


def frame_error_rate(
    y_true: ArrayLike | Sequence[ArrayLike],
    y_pred: ArrayLike | Sequence[ArrayLike],
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of frames whose label is wrong.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_frames,), or list of such arrays
        Labels: one after the other, or sequence by sequence with the same lengths in both.
    sample_weight : array-like, optional
        A weight for each frame; for lists of sequences, for each sequence, which all of its frames have.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from pluri.metrics import frame_error_rate
    >>> frame_error_rate([["a", "a", "b"], ["c"]], [["a", "b", "b"], ["c"]])
    0.25
    """
    true, nested = _sequences(y_true, "y_true")
    predicted, _ = _sequences(y_pred, "y_pred")
    lengths, others = [len(one) for one in true], [len(one) for one in predicted]
    if lengths != others:
        place = next((i for i, pair in enumerate(zip(lengths, others)) if pair[0] != pair[1]), None)
        where = f"{len(lengths)} and {len(others)} sequences" if place is None else (
            f"{lengths[place]} and {others[place]} in sequence {place}"
        )  # fmt: skip
        raise ValueError(f"y_true and y_pred must have a label for each of the same frames, got {where}")
    wrong = np.concatenate([np.asarray(a != b, dtype=np.float64) for a, b in zip(true, predicted)])
    return _mean(wrong, lengths if nested else None, sample_weight)


def perplexity(log_prob: ArrayLike | Sequence[ArrayLike], *, sample_weight: ArrayLike | None = None) -> float:
    """Exponential of the mean of minus the log-probabilities of tokens: among how many tokens one chooses, as it were.

    Parameters
    ----------
    log_prob : array-like of shape (n_tokens,), or list of such arrays
        Natural log-probability of each true token given those before it; minus infinity makes the perplexity infinite.
    sample_weight : array-like, optional
        A weight for each token; for lists of sequences, for each sequence, which all of its tokens have.

    Returns
    -------
    float
        At least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.metrics import perplexity
    >>> round(perplexity(np.log([0.5, 0.125])), 12)
    4.0
    """
    sequences, nested = _sequences(log_prob, "log_prob")
    values = np.concatenate(sequences).astype(np.float64)
    if np.isnan(values).any() or (values > 1e-9).any():
        raise ValueError(f"log_prob must be at most 0, got {values[~(values <= 1e-9)][0]}")
    with np.errstate(over="ignore"):
        lengths = [len(one) for one in sequences] if nested else None
        return float(np.exp(-_mean(np.minimum(values, 0.0), lengths, sample_weight)))


def _sequences(values: Any, name: str) -> tuple[list[NDArray[Any]], bool]:
    """One array for each sequence, and whether there was a list of them; a single array of labels is one sequence."""
    if len(values) == 0:
        raise ValueError(f"{name} must have at least one frame, got none")
    nested = not isinstance(values[0], str | bytes) and np.ndim(values[0]) > 0
    found = [np.asarray(one) for one in values] if nested else [np.asarray(values)]
    if any(one.ndim != 1 for one in found) or not sum(map(len, found)):
        raise ValueError(f"{name} must be labels in one row, or a list of such rows, and not all of them empty")
    return found, nested


def _mean(values: NDArray[np.float64], lengths: list[int] | None, sample_weight: ArrayLike | None) -> float:
    """Mean over frames; where there are lengths, a weight is that of all frames of a sequence."""
    weight = check_row_weight(sample_weight, values.size if lengths is None else len(lengths))
    return weighted_mean(values, weight if weight is None or lengths is None else np.repeat(weight, lengths))
