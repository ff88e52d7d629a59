r"""Functions of subsets whose gains diminish, and what a search needs to know of them.

A function f of subsets of n items is submodular if an item brings the less, the more is there already:

.. math:: f(A \cup e) - f(A) \ge f(B \cup e) - f(B), \qquad A \subseteq B, \; e \notin B.

Every function here has a `value`, which is computed from its definition, and gains that are brought up to date when an
item is added to a state, which is what searches use.

References
----------
.. [1] A. Krause and D. Golovin, "Submodular function maximization", in Tractability, Cambridge University Press, 2014.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation import Number, check_count, check_value

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass
class SelectionState:
    """Items chosen so far, their value, and what the function keeps of them.

    Attributes
    ----------
    items : list of int
        In the order in which they were added.
    value : float
        f of the items.
    memory : object
        Of the function's own making.
    """

    items: list[int]
    value: float
    memory: Any


class SetFunction(ABC):
    """A function of subsets of ``0, ..., n_items - 1``.

    A class of one's own has `n_items`, `value`, `_begin`, `_gains` and `_insert`. Functions can be added, and
    multiplied by positive numbers.

    Attributes
    ----------
    n_items : int
    monotone : bool or None
        Whether no item ever lowers the value; None: not known.
    submodular : bool
        Whether gains diminish; lazy searches and bounds rest on it.
    batch : int
        How many gains are worth computing at a time.
    """

    n_items: int
    monotone: bool | None = True
    submodular: bool = True
    batch: int = 64

    @abstractmethod
    def value(self, items: ArrayLike) -> float:
        """f(items), from the definition.

        Parameters
        ----------
        items : array-like of int
            Distinct items.
        """

    @abstractmethod
    def _begin(self) -> Any:
        """Memory of the empty set."""

    @abstractmethod
    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        """Gain of each item, none of which is in the state."""

    @abstractmethod
    def _insert(self, item: int, state: SelectionState) -> None:
        """Change the memory of the state: the item is added."""

    def start(self, items: Iterable[int] = ()) -> SelectionState:
        """State of a set, the empty one unless items are given."""
        state = SelectionState([], self.empty_value(), self._begin())
        for item in items:
            self.add(int(item), state)
        return state

    def empty_value(self) -> float:
        """F of the empty set."""
        return 0.0

    def gains(self, state: SelectionState, items: ArrayLike | None = None) -> Array:
        """What each item would add to a state: f(A and item) - f(A); 0 for items that are there already.

        Parameters
        ----------
        state : SelectionState
        items : array-like of int, optional
            All by default.
        """
        asked = np.arange(self.n_items) if items is None else np.asarray(items, dtype=np.int64)
        found = np.zeros(len(asked))
        new = ~np.isin(asked, state.items)
        if new.any():
            found[new] = self._gains(state, asked[new])
        return found

    def gain(self, item: int, state: SelectionState) -> float:
        """What one item would add."""
        return float(self.gains(state, [item])[0])

    def add(self, item: int, state: SelectionState, gain: float | None = None) -> None:
        """Change the state: the item is in it from now on (`gain` is what it adds, if that is known)."""
        if item in state.items:
            raise ValueError(f"item must not be chosen yet, got {item}, which is")
        if gain is None:
            gain = float(self._gains(state, np.array([item], dtype=np.int64))[0])
        self._insert(item, state)
        state.items.append(item)
        state.value += gain

    def last_gains(self, items: Sequence[int]) -> Array:
        """What each item adds to all the others: f(V) - f(V without item), the least that it ever adds."""
        everything = np.arange(self.n_items)
        whole = self.value(everything)
        return np.array([whole - self.value(np.delete(everything, item)) for item in items])

    def majorant(self) -> SetFunction | None:
        """A monotone submodular function that is nowhere below this one, if a good one is known."""
        return None

    def size_bounds(self, size: int) -> Array | None:
        """Upper bounds (size + 1,) of the best value of each size that need no search, if some are known."""
        return None

    def __add__(self, other: SetFunction) -> ConicSum:
        return ConicSum([*_terms(self), *_terms(other)])

    def __mul__(self, weight: float) -> ConicSum:
        return ConicSum([(weight * factor, function) for factor, function in _terms(self)])

    __rmul__ = __mul__


def _terms(function: SetFunction) -> list[tuple[float, SetFunction]]:
    if not isinstance(function, SetFunction):
        raise TypeError(f"only set functions can be added to one, got {type(function).__name__}")
    return list(function.terms) if isinstance(function, ConicSum) else [(1.0, function)]


class ConicSum(SetFunction):
    """A sum of set functions with positive weights, which is submodular if each of them is.

    Parameters
    ----------
    terms : list of (float, SetFunction)
        Weights and functions of the same items.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions import Coverage, FacilityLocation
    >>> both = Coverage(np.eye(3)) + 0.5 * FacilityLocation(np.eye(3))
    >>> both.value([0, 2])
    3.0
    """

    def __init__(self, terms: Sequence[tuple[float, SetFunction]]) -> None:
        self.terms = [(weight, function) for weight, function in terms]
        if not self.terms:
            raise ValueError("terms must have at least one function, got none")
        for weight, function in self.terms:
            check_value(weight, "the weight of a set function", Number(above=0))
            if function.n_items != self.terms[0][1].n_items:
                raise ValueError(
                    f"terms must be functions of the same items, got {self.terms[0][1].n_items} and {function.n_items}"
                )
        self.n_items = self.terms[0][1].n_items
        known = [function.monotone for _, function in self.terms]
        self.monotone = True if all(known) else None
        self.submodular = all(function.submodular for _, function in self.terms)
        self.batch = min(function.batch for _, function in self.terms)

    def value(self, items: ArrayLike) -> float:
        """f(items)."""
        return float(sum(weight * function.value(items) for weight, function in self.terms))

    def empty_value(self) -> float:
        """F of the empty set."""
        return float(sum(weight * function.empty_value() for weight, function in self.terms))

    def _begin(self) -> list[SelectionState]:
        return [function.start() for _, function in self.terms]

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        parts = [weight * f._gains(one, items) for (weight, f), one in zip(self.terms, state.memory)]
        return np.asarray(np.sum(parts, axis=0))

    def _insert(self, item: int, state: SelectionState) -> None:
        for (_, function), one in zip(self.terms, state.memory):
            function.add(item, one)

    def last_gains(self, items: Sequence[int]) -> Array:
        """What each item adds to all the others."""
        return np.asarray(np.sum([weight * function.last_gains(items) for weight, function in self.terms], axis=0))


class FunctionOfSets(SetFunction):
    """Any function of a list of items as a set function; each gain is a call.

    Parameters
    ----------
    function : callable
        Takes a list of distinct items in the order of choice and gives a number.
    n_items : int
    monotone : bool or None, default=None
        Whether no item ever lowers the value. If that is not known, a bound costs one call more for each chosen item.
    submodular : bool, default=True
        Whether gains diminish. `pluri.decisions.check_submodular` looks whether they do.

    Examples
    --------
    >>> from pluri.decisions import FunctionOfSets
    >>> distinct_letters = FunctionOfSets(lambda items: len(set("".join("abc ab d".split()[i] for i in items))), 3)
    >>> state = distinct_letters.start([0])
    >>> distinct_letters.gains(state)
    array([0., 0., 1.])
    """

    batch = 1

    def __init__(
        self,
        function: Callable[[list[int]], float],
        n_items: int,
        *,
        monotone: bool | None = None,
        submodular: bool = True,
    ) -> None:
        if not callable(function):
            raise TypeError(f"function must be a function of a list of items, got {type(function).__name__}")
        check_count(n_items, "n_items")
        self.function, self.n_items = function, int(n_items)
        self.monotone, self.submodular = monotone, submodular

    def value(self, items: ArrayLike) -> float:
        """f(items)."""
        given = [int(item) for item in np.asarray(items, dtype=np.int64)]
        found = self.function(given)
        if not Number(finite=False).holds(found) or found == np.inf:
            raise ValueError(f"function must give a number below infinity, got {found!r} for items {given[:10]}")
        return float(found)

    def empty_value(self) -> float:
        """F of the empty set."""
        return self.value([])

    def _begin(self) -> None:
        return None

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        return np.array([self.value([*state.items, item]) - state.value for item in items])

    def _insert(self, item: int, state: SelectionState) -> None:
        """Nothing is kept but the items."""


def checked_items(items: ArrayLike, n_items: int) -> IntArray:
    """Distinct items as an array of integers."""
    found = np.asarray(items)
    if found.size == 0:
        return np.zeros(0, dtype=np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ValueError(f"items must be a list of integers, got {found.dtype} of shape {found.shape}")
    if found.min() < 0 or found.max() >= n_items or len(np.unique(found)) != len(found):
        raise ValueError(f"items must be distinct and from 0 to {n_items - 1}, got {found}")
    return found.astype(np.int64)
