"""Emissions of a hidden Markov model whose states own their symbols, and the chance of a symbol never seen before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.sequences.emissions import _count_kernels as kernels
from pluri.sequences.emissions.categorical import CategoricalEmission, CategoricalParameters
from pluri.sequences.emissions.symbols import Symbols, missing_words

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: What a symbol may be that was not seen in fit.
UNSEEN = ("new", "missing", "error")


@dataclass(frozen=True)
class SymbolClassEmission(CategoricalEmission):
    """Categorical emissions of a chain whose states own their symbols.

    A symbol that `fit` saw is certain of its state, and its features tell nothing more. One that it did not see has
    the features' probabilities and, if it counts as new, `newcomer`.

    Attributes
    ----------
    classes : (V,): state of each symbol of the first column, -1 for numbers that did not occur
    features : (V, n_columns - 1): the symbol's codes in the other columns
    newcomer : (k,): log probability that a token in a state is a symbol not seen before
    unseen : "new", "missing" or "error"
    """

    classes: Integers = field(kw_only=True)
    features: Integers = field(kw_only=True)
    newcomer: Array = field(kw_only=True)
    unseen: str = field(kw_only=True)

    def prepare(self, X: NDArray[Any]) -> Integers:
        codes = self.symbols.encode(X)
        if np.may_share_memory(codes, X):
            codes = codes.copy()  # these are the user's own numbers
        known = codes[:, 0] >= 0
        known[known] = self.classes[codes[known, 0]] >= 0
        missing = missing_words(X[:, 0]) if self.symbols.vocabulary is not None else np.isnan(X[:, 0].astype(float))
        fresh = ~(known | missing)
        if self.unseen == "error" and fresh.any():
            symbol = X[fresh, 0].tolist()[0]
            raise ValueError(
                f"X must hold symbols that fit has seen in column 0, got {symbol!r}; set unseen='new' or 'missing' to "
                "allow others"
            )
        codes[~known, 0] = -1
        if self.unseen == "new":
            codes[fresh, 0] = self.symbols.offsets[-1]  # the row after those of all columns
        codes[known, 1:] = -1
        return codes

    def log_prob(self, parameters: CategoricalParameters, X: Integers, out: Array) -> None:
        n_rows, k = parameters.table.shape
        table = np.full((n_rows + 1, out.shape[1]), -np.inf)
        with np.errstate(divide="ignore"):
            np.log(parameters.table, out=table[:-1, :k])
        own = table[: len(self.classes), :k]
        own[self.classes[:, None] != np.arange(k)] = -np.inf
        table[-1, :k] = self.newcomer
        kernels.look_up(X, table, out)

    def sample(self, parameters: CategoricalParameters, states: Integers, rng: np.random.Generator) -> NDArray[Any]:
        words = self.symbols.vocabulary
        first = Symbols(self.symbols.sizes[:1], None if words is None else words[:1])
        table = parameters.table[: len(self.classes)]
        drawn = CategoricalEmission(first).sample(CategoricalParameters(table), states, rng)
        features = self.features[first.encode(drawn)[:, 0]]
        columns = [self.symbols.decode(f + 1, features[:, f]) for f in range(features.shape[1])]
        return np.stack([drawn[:, 0], *columns], axis=1)

    def impute(self, parameters: CategoricalParameters, X: Integers, posterior: Array) -> NDArray[Any]:
        raise TypeError("SymbolClassHMM fills no missing values: use CategoricalHMM on the column that has them")

    def n_free(self, parameters: CategoricalParameters) -> int:
        k = parameters.table.shape[1]
        types = np.bincount(self.classes[self.classes >= 0], minlength=k)
        return int(np.maximum(types - 1, 0).sum()) + sum(k * (size - 1) for size in self.symbols.sizes[1:])


def log_newcomer(types: Integers, tokens: Array, emission: float, classes: float) -> Array:
    """Log probability that one more token in each state is a symbol not seen before, up to its features: (k,).

    It is the ratio of the log joints with and without a symbol of frequency 1 in the state: the symbol's class, and
    the token among the state's symbols, of which there is one more.
    """
    k = len(types)
    share = np.log(types + classes) - np.log(types.sum() + k * classes)
    wider = (types + 1) * emission
    own = np.where(types > 0, types, 1) * emission
    before = np.where(types > 0, gammaln(own) - gammaln(own + tokens), 0.0)
    return share + gammaln(wider) - gammaln(wider + tokens + 1) - before + np.log(emission)
