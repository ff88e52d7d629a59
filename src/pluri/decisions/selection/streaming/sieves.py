r"""Sieves for rows in batches: the choice of `pluri.decisions.selection.sieve`, which sees the items one by one.

For each guess v of a geometric grid a sieve keeps a row if it is worth the rest of the way to v/2. Gains of a whole
batch are computed together; those after a row that was kept once more. No gain can rise, so that the largest gains of
rows that were passed over bound what any of them could still add: with the value of the sieve they bound the optimum
among all rows that came.

References
----------
.. [1] A. Badanidiyuru et al., "Streaming submodular maximization: massive data summarization on the fly", KDD 2014.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pluri.decisions.selection.set_function import Array, IntArray
from pluri.decisions.selection.streaming.row_functions import RowFunction


@dataclass
class Sieve:
    """Rows kept for one guess of the optimum.

    Attributes
    ----------
    items : list of int
        Their numbers in the stream.
    gains : list of float
    passed : (size,)
        The largest gains of the rows that were passed over, when they came.
    """

    items: list[int]
    gains: list[float]
    passed: Array

    @property
    def value(self) -> float:
        """Of the kept rows."""
        return math.fsum(self.gains)


@dataclass
class Sieves:
    """All sieves, and what they need to know of the rows that came.

    Attributes
    ----------
    size : int
        Rows at most.
    epsilon : float
        Ratio of neighbouring guesses minus one.
    alone : (size,)
        The largest values of single rows.
    kept : dict of int to Sieve
        By the exponent of the guess.
    rows : dict of int to row
        The rows that some sieve keeps, by their number in the stream.
    n_seen : int
    """

    size: int
    epsilon: float
    alone: Array
    kept: dict[int, Sieve] = field(default_factory=dict)
    rows: dict[int, Any] = field(default_factory=dict)
    n_seen: int = 0

    def add(self, function: RowFunction, rows: Any, stack: Any) -> None:
        """Change the sieves: rows come by. `stack` makes a matrix of a list of rows."""
        batch = function.batch(rows)
        alone = function.look(None, batch).gains(0)
        before, highest = self.alone, np.maximum.accumulate(np.maximum(alone, self.alone[0]))
        self.alone = top(self.alone, alone)
        if highest[-1] > 0:
            exponents = self._exponent(2.0 * self.size * highest)
            lowest = math.ceil(math.log(highest[-1]) / math.log1p(self.epsilon) - 1e-9)
            sieves = {}
            for guess in range(lowest, int(exponents[-1]) + 1):
                begin = int(np.searchsorted(exponents, guess)) if guess not in self.kept else 0
                sieve = self.kept.get(guess) or Sieve([], [], top(before, alone[:begin]))
                self._pass(function, guess, sieve, batch, alone, begin, stack, rows)
                sieves[guess] = sieve
            self.kept = sieves
        held = {item for sieve in self.kept.values() for item in sieve.items}
        self.rows = {item: row for item, row in self.rows.items() if item in held}
        self.n_seen += len(alone)

    def _exponent(self, values: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.floor(np.log(values) / math.log1p(self.epsilon) + 1e-9)

    def _pass(
        self, function: RowFunction, guess: int, sieve: Sieve, batch: Any, alone: Array, begin: int, stack: Any,
        rows: Any,
    ) -> None:  # fmt: skip
        """Change the sieve: the rows of a batch from `begin` on come by."""
        look = None
        while begin < len(alone):
            missing = self.size - len(sieve.items)
            if not missing:
                sieve.passed = top(sieve.passed, alone[begin:])
                return
            if look is None:
                look = function.look(stack([self.rows[item] for item in sieve.items]) if sieve.items else None, batch)
            gains = look.gains(begin)
            worth = ((1.0 + self.epsilon) ** guess / 2.0 - sieve.value) / missing
            enough = np.flatnonzero((gains >= worth) & (gains > 0))
            if not len(enough):
                sieve.passed = top(sieve.passed, gains)
                return
            first = int(enough[0])
            sieve.passed = top(sieve.passed, gains[:first])
            place = begin + first
            look.insert(place)
            sieve.items.append(self.n_seen + place)
            sieve.gains.append(float(gains[first]))
            self.rows[self.n_seen + place] = rows[[place]]
            begin = place + 1

    def best(self) -> Sieve:
        """The sieve with the highest value."""
        empty = Sieve([], [], self.alone)
        return max(self.kept.values(), key=lambda sieve: sieve.value, default=empty)

    def upper_bound(self) -> float:
        """No choice of `size` of the rows that came is worth more."""
        bounds = [sieve.value + float(sieve.passed.sum()) for sieve in self.kept.values()]
        return min([float(self.alone.sum()), *bounds])

    def arrays(self) -> dict[str, IntArray | Array]:
        """Everything but the rows, in four arrays."""
        kept = list(self.kept.items())
        return {
            "guesses": np.array([guess for guess, _ in kept], dtype=np.int64),
            "items": _padded([sieve.items for _, sieve in kept], self.size, -1).astype(np.int64),
            "gains": _padded([sieve.gains for _, sieve in kept], self.size, 0.0),
            "passed": np.array([sieve.passed for _, sieve in kept]).reshape(-1, self.size),
        }

    @classmethod
    def of(
        cls, size: int, epsilon: float, alone: Array, arrays: dict[str, Any], rows: dict[int, Any], n_seen: int
    ) -> Sieves:
        """From `arrays`."""
        kept = {}
        for guess, items, gains, passed in zip(*(arrays[name] for name in ("guesses", "items", "gains", "passed"))):
            n_kept = int((items >= 0).sum())
            kept[int(guess)] = Sieve(items[:n_kept].tolist(), gains[:n_kept].tolist(), passed.copy())
        return cls(size, epsilon, alone, kept, rows, n_seen)


def top(largest: Array, more: Array) -> Array:
    """The largest of both, as many as there were, in falling order."""
    together = np.concatenate([largest, more])
    return np.sort(np.partition(together, len(more))[len(more) :])[::-1].copy()


def _padded(lists: list[Any], size: int, filler: float) -> Array:
    out = np.full((len(lists), size), filler)
    for row, one in zip(out, lists):
        row[: len(one)] = one
    return out
