"""What an infinite hidden Markov model reads: numbers, counts, zeros and ones, or symbols, by its family."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.sequence_model import TakesSequences
from pluri.processes.conjugate_clusters.records import check_values, kind_of
from pluri.sequences.emissions.symbols import Symbols, are_words, check_symbols, decoded, is_text, learn_vocabulary
from pluri.sequences.infinite.families import family_name
from pluri.sequences.infinite.observations import LIKELIHOODS, WHOLE_ROWS, WITH_HOLES, Array, Integers

#: Larger numbers could not be squared and summed; a larger symbol is a mistake rather than a table that fits in memory.
LARGEST, MOST_SYMBOLS = 1e100, 10**7


class ReadsFamilies(TakesSequences):
    """The part of the estimator that turns X into numbers, NaN where something is missing."""

    family: Any
    inference: str
    n_features: int | None
    unseen: str
    n_symbols_: list[int]
    vocabulary_: list[NDArray[Any]] | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        name = self._name_of_family()
        tags.input_tags.allow_nan = name not in WHOLE_ROWS or (
            name in WITH_HOLES and self.inference in ("beam", "weak_limit")
        )
        tags.input_tags.positive_only = name in ("categorical", "poisson", "bernoulli", "multinomial")
        tags.input_tags.categorical = tags.input_tags.string = name == "categorical"
        return tags

    def _name_of_family(self) -> str:
        try:
            return family_name(self.family)
        except ValueError:
            return "gaussian"

    def _sequences(self, X: Any, lengths: ArrayLike | None, *, fitting: bool) -> tuple[NDArray[Any], Integers]:
        if self._name_of_family() == "categorical":
            if isinstance(X, str | bytes):
                raise TypeError("X must be a list or an array of symbols, got a string: list(X) is its characters")
            if isinstance(X, list | tuple) and X and are_words(X):
                X = np.array(X, dtype=object).reshape(-1, 1)  # one sequence of words
        return super()._sequences(X, lengths, fitting=fitting)

    def _check_data(self, X: Any, *, fitting: bool) -> Array:
        name = family_name(self.family)
        if name == "categorical":
            return self._codes(X, fitting)
        data = np.asarray(self._validated(X, fitting, dtype=np.float64), dtype=np.float64)
        there = data[~np.isnan(data)]
        if there.size and np.abs(there).max() > LARGEST:
            raise ValueError(f"X must not exceed {LARGEST:g} in size; rescale it")
        if name not in ("autoregressive", "gaussian", "diag"):
            check_values(kind_of(LIKELIHOODS[name](1)), there)
        return data

    def _codes(self, X: Any, fitting: bool) -> Array:
        """Symbols of each column as 0, ..., V - 1."""
        array = np.asarray(X)
        words = is_text(array)
        if words:
            data = self._validated(
                decoded(np.asarray(array, dtype=object)), fitting, dtype=None, ensure_all_finite=False
            )
        else:
            data = self._validated(X, fitting, dtype="numeric")
            check_symbols(data)
        if fitting:
            self._learn_symbols(data, words)
        elif words != (self.vocabulary_ is not None):
            raise ValueError(f"X must hold {'integers' if words else 'strings'}, as in fit")
        symbols = self._symbols()
        codes = symbols.encode(data)
        return np.where(codes < 0, np.nan, codes - symbols.offsets[:-1])

    def _learn_symbols(self, data: NDArray[Any], words: bool) -> None:
        if words:
            self.vocabulary_ = list(learn_vocabulary(data))
            self.n_symbols_ = [len(known) for known in self.vocabulary_]
            if self.n_features is not None and set(self.n_symbols_) != {self.n_features}:
                raise ValueError(
                    f"n_features must be None for strings, or as many as there are ({self.n_symbols_[0]}), got "
                    f"{self.n_features}"
                )
            return
        self.vocabulary_ = None
        values = np.where(np.isnan(data), 0, data) if data.dtype.kind == "f" else data
        self.n_symbols_ = [int(largest) + 1 for largest in values.max(axis=0)]
        if max(self.n_symbols_) > MOST_SYMBOLS:
            raise ValueError(
                f"X must hold symbols below {MOST_SYMBOLS}, got {max(self.n_symbols_) - 1}: number the symbols from 0, "
                "or give them as strings"
            )
        if self.n_features is not None:
            if max(self.n_symbols_) > self.n_features and self.unseen == "error":
                raise ValueError(
                    f"X must hold symbols below n_features ({self.n_features}), got a largest symbol of "
                    f"{max(self.n_symbols_) - 1}"
                )
            self.n_symbols_ = [int(self.n_features)] * len(self.n_symbols_)

    def _symbols(self) -> Symbols:
        words = self.vocabulary_
        return Symbols(tuple(self.n_symbols_), None if words is None else tuple(words), self.unseen)

    def _decoded(self, values: Array) -> NDArray[Any]:
        """Drawn values as X holds them."""
        if self._name_of_family() != "categorical":
            return values
        symbols = self._symbols()
        return np.column_stack([symbols.decode(f, values[:, f].astype(np.int64)) for f in range(values.shape[1])])
