"""Symbols and codes: columns of integers or strings as rows of one table.

Column f with V_f symbols owns rows ``offset_f .. offset_f + V_f`` of a table over all columns' symbols; a missing or
(by request) unseen symbol has the code -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.validation import check_width, plain_array

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Symbols:
    """What the columns may hold.

    Attributes
    ----------
    sizes : number of symbols of each column
    vocabulary : sorted words of each column, or None if symbols are the integers 0 .. V-1
    unseen : "error" or "missing": what to do with a symbol that is not among them
    """

    sizes: tuple[int, ...]
    vocabulary: tuple[NDArray[Any], ...] | None = None
    unseen: str = "error"

    @property
    def offsets(self) -> Integers:
        """First table row of each column, and the total: (n_columns + 1,)."""
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.sizes)]).astype(np.int64)

    def encode(self, X: NDArray[Any]) -> Integers:
        """Table rows of the symbols of X: (n_samples, n_columns), -1 where missing."""
        if self.vocabulary is None and X.dtype == np.int64 and X.shape[1] == 1 and _within(X, self.sizes[0]):
            return plain_array(X, np.int64)  # already the rows of the table
        check_width(X, len(self.sizes))
        codes = np.empty(X.shape, dtype=np.int64)
        offsets = self.offsets
        for f in range(X.shape[1]):
            column = self._integers(X[:, f], f) if self.vocabulary is None else self._words(X[:, f], f)
            codes[:, f] = np.where(column >= 0, column + offsets[f], -1)
        return codes

    def decode(self, column: int, codes: Integers) -> NDArray[Any]:
        """Symbols of one column from its own codes 0 .. V-1."""
        return codes if self.vocabulary is None else self.vocabulary[column][codes]

    def _integers(self, values: NDArray[Any], column: int) -> Integers:
        check_symbols(values)  # a batch of a source was never looked at before
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
        # Compared before the cast, which wraps around what an int64 cannot hold.
        too_large = ~missing & (values >= self.sizes[column])
        if too_large.any() and self.unseen == "error":
            raise ValueError(
                f"X must hold symbols below {self.sizes[column]} in column {column}, the number the model knows, got "
                f"{values[too_large].max()}; set unseen='missing' to treat others as missing"
            )
        integers = np.where(missing | too_large, 0, values).astype(np.int64)
        integers[missing | too_large] = -1
        return integers

    def _words(self, values: NDArray[Any], column: int) -> Integers:
        assert self.vocabulary is not None
        known = self.vocabulary[column]
        missing = missing_words(values)
        texts = np.where(missing, known[0], values.astype(object)).astype(str)
        places = np.minimum(np.searchsorted(known, texts), len(known) - 1)
        found = known[places] == texts
        if self.unseen == "error" and not (found | missing).all():
            word = str(texts[~(found | missing)][0])
            raise ValueError(
                f"X must hold symbols that fit has seen in column {column}, got {word!r}; set unseen='missing' to "
                "treat others as missing"
            )
        return np.where(found & ~missing, places, -1)


def _within(X: Integers, size: int) -> bool:
    return len(X) == 0 or (int(X.min()) >= 0 and int(X.max()) < size)


def is_text(X: NDArray[Any]) -> bool:
    """Whether an array holds words (perhaps with None or NaN among them)."""
    if X.dtype.kind in "US":
        return True
    return X.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in X.ravel())


def are_words(X: Sequence[Any]) -> bool:
    """Whether a list holds words, perhaps with missing ones among them: no item is a sequence of symbols."""
    words = [isinstance(item, str | bytes) for item in X]
    return any(words) and all(word or not hasattr(item, "__len__") for word, item in zip(words, X))


def decoded(X: NDArray[Any]) -> NDArray[Any]:
    """An array of objects with byte strings (in UTF-8) as strings."""
    if not any(isinstance(value, bytes) for value in X.ravel()):
        return X
    try:
        cells = [value.decode() if isinstance(value, bytes) else value for value in X.ravel()]
    except UnicodeDecodeError as error:
        raise ValueError(f"X must hold text or byte strings in UTF-8, got {error.object!r}") from error
    words = np.empty(len(cells), dtype=object)
    words[:] = cells
    return words.reshape(X.shape)


def missing_words(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where an array of words holds None, NaN or one of pandas' missing values."""
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    flat = [
        value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")
        for value in values.ravel()
    ]
    return np.array(flat, dtype=bool).reshape(values.shape)


def learn_vocabulary(X: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Sorted words of each column."""
    words = []
    for f in range(X.shape[1]):
        column = X[:, f]
        seen = column[~missing_words(column)]
        if len(seen) == 0:
            raise ValueError(f"X must have at least one symbol in column {f}, got only missing values")
        words.append(np.unique(seen.astype(str)))
    return tuple(words)


def check_symbols(X: NDArray[Any]) -> None:
    """Refuse what is not a non-negative integer (NaN is a missing value)."""
    if X.dtype.kind not in "biuf":
        raise ValueError("X must hold symbols as integers when it comes in batches or was fitted so, got strings")
    values = X[~np.isnan(X)] if X.dtype.kind == "f" else X
    if values.size and values.min() < 0:
        raise ValueError(f"X must hold symbols as non-negative integers, got {values.min()}: Negative values in data")
    if values.dtype.kind not in "iub" and not np.array_equal(values, np.floor(values)):
        raise ValueError("X must hold symbols as integers or strings, got numbers that are not integers")


def distinct_symbols(codes: Integers, symbols: Symbols) -> tuple[Integers, Integers, Integers]:
    """Symbols that occur (V,), number of each sample's among them (n_samples,), and their features (V, F).

    `codes` (n_samples, 1 + F) are the columns' own; a symbol with two values of a feature is refused.
    """
    seen, firsts, types = np.unique(codes[:, 0], return_index=True, return_inverse=True)
    features = codes[firsts, 1:]
    differs = codes[:, 1:] != features[types]
    if differs.any():
        t, f = (int(index) for index in np.argwhere(differs)[0])
        word = symbols.decode(0, codes[t : t + 1, 0])[0]
        values = [symbols.decode(f + 1, code[None])[0] for code in (features[types[t], f], codes[t, f + 1])]
        raise ValueError(
            f"X must have one value of the feature in column {f + 1} wherever symbol {word} stands, got {values[0]} "
            f"and {values[1]}"
        )
    return seen.astype(np.int64), types.astype(np.int64), features
