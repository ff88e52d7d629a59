"""What a classifier of whole sequences is given: sequences in one array, one label each, and words as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from pluri.sequences.emissions.symbols import Symbols, are_words, decoded, is_text, learn_vocabulary
from pluri.validation import is_source, unmasked
from pluri.validation.sequences import (
    check_not_lost,
    check_sequence_lengths,
    is_sequence_list,
    join_sequences,
    offsets_of,
    refuse_streams,
    sequence_lengths,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def joined(X: Any, lengths: ArrayLike | None, groups: ArrayLike | None, *, fitting: bool) -> tuple[Any, Integers]:
    """Rows of all sequences end to end (frames stay frames), and the length of each sequence."""
    if is_source(X):
        raise TypeError(
            f"X must be an array or a list of sequences, got a {type(X).__name__}: one model is fitted for each class"
        )
    refuse_streams(X)
    X = _as_list(unmasked(X))
    lengths = sequence_lengths(X, lengths, groups)
    check_not_lost(X, lengths, fitting=fitting)
    if is_sequence_list(X):
        if lengths is not None:
            raise ValueError("lengths must be None when X is a list of sequences")
        return join_sequences(X)
    if isinstance(X, list | tuple) and len(X) and are_words(X):
        X = np.array(X, dtype=object)
    rows = X if hasattr(X, "shape") else np.asarray(X)
    if isinstance(rows, np.ndarray) and rows.ndim == 1 and is_text(rows):
        rows = rows.reshape(-1, 1)
    if rows.ndim != 2:
        raise ValueError(
            f"X must be a list of sequences, or an array with two axes (samples) or three (sequences of one length), "
            f"got shape {rows.shape}"
        )
    return rows, check_sequence_lengths(lengths, rows.shape[0])


def _as_list(X: Any) -> Any:
    """An array of sequences of one length, or an array of objects that are sequences, as a list of sequences."""
    if not isinstance(X, np.ndarray):
        return X
    of_sequences = X.ndim == 1 and X.dtype == object and X.size and all(isinstance(item, np.ndarray) for item in X)
    return list(X) if X.ndim == 3 or of_sequences else X


def labels_of_sequences(y: Any, lengths: Integers) -> NDArray[Any]:
    """One label for each sequence; also taken: one for each sample, if it does not change within a sequence."""
    if y is None:
        raise ValueError("SequenceClassifier requires y to be passed, but the target y is None")
    if isinstance(y, list | tuple) and any(np.ndim(label) for label in y):
        raise ValueError("y must have one label for each sequence, got lists: to label samples use HMMClassifier")
    labels = np.asarray(column_or_1d(y, warn=True))
    check_classification_targets(labels)
    n_samples = int(lengths.sum())
    if len(labels) == len(lengths):
        return labels
    if len(labels) != n_samples or (lengths == 0).any():
        raise ValueError(
            f"y must have one label for each of {len(lengths)} sequences, got {len(labels)} labels (X has {n_samples} "
            "samples): inconsistent numbers; where sequences end is told by lengths, by groups or by a list"
        )
    firsts = labels[offsets_of(lengths)[:-1]]
    if not np.array_equal(np.repeat(firsts, lengths), labels):
        raise ValueError(
            f"y must be the same for all samples of a sequence (X was taken for {len(lengths)} sequences): where they "
            "end is told by lengths, by groups or by a list; to label samples use HMMClassifier"
        )
    return firsts


def rows_of(member: NDArray[np.bool_], lengths: Integers) -> Integers:
    """Numbers of the rows of the sequences that are members."""
    return np.flatnonzero(np.repeat(member, lengths))


def learn_words(rows: Any) -> tuple[NDArray[Any], ...] | None:
    """Words of each column that any class uses, so that a word of one class is known to all; None for numbers."""
    if hasattr(rows, "iloc") and not any(kind.kind == "O" or str(kind) == "str" for kind in map(_dtype, rows.dtypes)):
        return None
    array = np.asarray(rows)
    return learn_vocabulary(decoded(np.asarray(array, dtype=object))) if is_text(array) else None


def _dtype(kind: Any) -> Any:
    return kind if isinstance(kind, np.dtype) else np.dtype(object)


def numbered(rows: Any, words: tuple[NDArray[Any], ...], unseen: str) -> Array:
    """Words as their numbers in a vocabulary, with NaN for a missing one."""
    symbols = Symbols(tuple(map(len, words)), words, unseen)
    codes = symbols.encode(decoded(np.asarray(rows, dtype=object)))
    return np.where(codes >= 0, codes - symbols.offsets[:-1], np.nan)
