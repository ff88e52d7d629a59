r"""Greedy choice, one item after the other, and what it proves about every other choice.

Each step takes the item with the largest gain. For a monotone submodular f the first l picks reach
:math:`f(S_l) \ge (1 - e^{-l/k}) \, \mathrm{OPT}_k` [1]_. Since gains only fall, a gain computed for a smaller set
bounds the gain now, and most need not be computed again: the lazy search [2]_ makes the same picks. A stochastic step
looks at :math:`(n/k) \log(1/\epsilon)` random items only [3]_.

A certificate needs no guarantee: for every set A and every allowed S,

.. math:: f(S) \le f(A) + \sum_{e \in S} [f(A \cup e) - f(A)]_+ + \sum_{a \in A} [f(V \setminus a) - f(V)]_+,

whose right side is largest for the S that a constraint's relaxation finds. The last sum is zero for monotone f; without
it the bound is wrong for others, such as mutual information. Old gains, being bounds, serve as well as new ones.

References
----------
.. [1] G. Nemhauser, L. Wolsey and M. Fisher, "An analysis of approximations for maximizing submodular set functions",
   Mathematical Programming 14, 1978.
.. [2] M. Minoux, "Accelerated greedy algorithms for maximizing submodular set functions", 1978.
.. [3] B. Mirzasoleiman et al., "Lazier than lazy greedy", AAAI 2015.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pluri.decisions.selection.constraints import Cardinality, Constraint
from pluri.decisions.selection.set_function import Array, IntArray, SelectionState, SetFunction

#: Gains that differ by less than this share are equal, and the first of the items is taken.
TIE = 1e-10
#: The same beside the largest gain of all: rounding of long sums.
TIE_OF_LARGEST = 1e-14
#: Share of gains that are computed again only to see whether they have risen.
VERIFIED = 0.01


class SubmodularityWarning(UserWarning):
    """A gain has risen, so the function is not submodular: lazy choices and bounds are then not to be trusted."""


@dataclass(frozen=True)
class Selection:
    """Items chosen one by one.

    Attributes
    ----------
    items : (n,) int64
        In the order of choice.
    gains, values : (n,)
        What each added, and f after it.
    upper_bounds : (n_sizes,)
        No allowed set has a higher value than the last; before it, the bounds for sets of 0, 1, ... items, if the
        number of items is what is limited.
    n_evaluations : int
        Gains that were computed in order to choose.
    """

    items: IntArray
    gains: Array
    values: Array
    upper_bounds: Array
    n_evaluations: int

    @property
    def value(self) -> float:
        """F of all chosen items."""
        return float(self.values[-1]) if len(self.values) else float("nan")


@dataclass
class Search:
    """How to search.

    Attributes
    ----------
    lazy : bool
        Whether old gains serve as bounds.
    prices : (n_items,) or None
        Choose by gain per price.
    sample_size : int or None
        Look at so many random items in each step.
    keep_falling : bool
        Whether to go on when the best item lowers the value.
    verify : bool
        Whether to watch for gains that rise.
    rng : Generator or None
        For samples and for what is verified.
    """

    lazy: bool = True
    prices: Array | None = None
    sample_size: int | None = None
    keep_falling: bool = False
    verify: bool = False
    rng: np.random.Generator | None = None


@dataclass
class _Gains:
    """Gains as far as they are known: `bounds` of all items, and which are those of the present state."""

    function: SetFunction
    search: Search
    bounds: Array
    fresh: NDArray[np.bool_]
    n_evaluations: int = 0
    largest: float = 0.0
    notes: list[tuple[int, Array]] = field(default_factory=list)
    warned: bool = False

    def refresh(self, state: SelectionState, items: IntArray) -> None:
        """Change the gains of these items to those of the state."""
        found = self.function.gains(state, items)
        if np.isnan(found).any():
            raise ValueError(f"gains of a set function must be numbers, got NaN for item {items[np.isnan(found)][0]}")
        if self.search.verify and not self.warned:
            risen = found > self.bounds[items] + self.tolerance(float(np.abs(found).max(initial=0.0)))
            if risen.any():
                which, self.warned = items[risen][0], True
                warnings.warn(
                    f"the gain of item {which} has risen from {self.bounds[which]:.6g} to {found[risen][0]:.6g} with "
                    f"{len(state.items)} items chosen: the function is not submodular",
                    SubmodularityWarning,
                    stacklevel=2,
                )
        self.bounds[items], self.fresh[items] = found, True
        self.n_evaluations += len(items)

    def tolerance(self, best: float) -> float:
        """Differences that are ties."""
        return TIE * abs(best) + TIE_OF_LARGEST * self.largest if np.isfinite(best) else 0.0

    def best(self, state: SelectionState, candidates: NDArray[np.bool_]) -> int | None:
        """The candidate with the largest gain (by price), or None."""
        if not self.search.lazy:
            self.refresh(state, np.flatnonzero(candidates & ~self.fresh))
        prices = self.search.prices
        while True:
            keys = np.where(candidates, self.bounds if prices is None else self.bounds / prices, -np.inf)
            known = np.where(self.fresh, keys, -np.inf)
            best = float(known.max())
            slack = self.tolerance(best)
            stale = np.flatnonzero(candidates & ~self.fresh & (keys >= best - 2.0 * slack))
            if not len(stale):
                break
            if len(stale) > self.function.batch:
                stale = stale[np.argpartition(-keys[stale], self.function.batch - 1)[: self.function.batch]]
            self.refresh(state, np.sort(stale))
        return None if best == -np.inf else int(np.argmax(known >= best - slack))


def choose(
    function: SetFunction, constraint: Constraint, search: Search | None = None, given: Sequence[int] = ()
) -> Selection:
    """Choose items greedily.

    Parameters
    ----------
    function : SetFunction
    constraint : Constraint
        What may be chosen together.
    search : Search, optional
        How; lazily by default.
    given : sequence of int
        Items that are chosen already.

    Returns
    -------
    Selection
        Without certificate (`upper_bounds` of infinity) beside `given` items.
    """
    search = search or Search()
    if search.lazy and not function.submodular:
        search = Search(False, search.prices, search.sample_size, search.keep_falling, search.verify, search.rng)
    state = function.start(given)
    gains = _Gains(function, search, np.full(function.n_items, np.inf), np.zeros(function.n_items, dtype=bool))
    added: list[float] = []
    values: list[float] = []
    while True:
        allowed = constraint.allowed(state.items)
        if not allowed.any():
            break
        candidates = _some_of(allowed, search)
        _look_again(gains, state, candidates, search)
        pick = gains.best(state, candidates)
        if not state.items[len(given) :]:
            gains.largest = float(np.abs(gains.bounds[np.isfinite(gains.bounds)]).max(initial=0.0))
        _note(gains, state, constraint)
        if pick is None:
            break
        if gains.bounds[pick] <= 0 and not search.keep_falling:
            # Of a sample nothing may be worth taking while there is something outside of it.
            pick = gains.best(state, allowed) if search.sample_size is not None else None
            if pick is None or gains.bounds[pick] <= 0:
                break
        added.append(float(gains.bounds[pick]))
        function.add(pick, state, added[-1])
        values.append(state.value)
        gains.fresh[:] = False
        gains.bounds[pick] = 0.0  # it brings nothing any more
    n_evaluations = gains.n_evaluations
    upper = np.array([np.inf]) if len(given) else certificate(function, constraint, state, gains)
    return Selection(np.array(state.items, dtype=np.int64), np.array(added), np.array(values), upper, n_evaluations)


def in_order(function: SetFunction, items: IntArray, upper_bounds: Array, n_evaluations: int) -> Selection:
    """A selection of items that were found in another way, with the gains of this order."""
    state = function.start()
    gains = []
    for item in items:
        gains.append(function.gain(int(item), state))
        function.add(int(item), state, gains[-1])
    values = function.empty_value() + np.cumsum(gains)
    return Selection(np.asarray(items, dtype=np.int64), np.array(gains), values, upper_bounds, n_evaluations)


def _some_of(allowed: NDArray[np.bool_], search: Search) -> NDArray[np.bool_]:
    if search.sample_size is None or search.rng is None:
        return allowed
    free = np.flatnonzero(allowed)
    drawn = np.zeros(len(allowed), dtype=bool)
    drawn[search.rng.choice(free, size=min(search.sample_size, len(free)), replace=False)] = True
    return drawn


def _look_again(gains: _Gains, state: SelectionState, candidates: NDArray[np.bool_], search: Search) -> None:
    """In verify mode: compute some gains that nobody needs."""
    if search.verify and search.rng is not None and state.items:
        possible = np.flatnonzero(candidates & ~gains.fresh)
        number = min(len(possible), int(np.ceil(VERIFIED * len(possible))))
        gains.refresh(state, np.sort(search.rng.choice(possible, size=number, replace=False)))


def _note(gains: _Gains, state: SelectionState, constraint: Constraint) -> None:
    """Keep what this state proves: its value, and what an allowed set could add to it at most."""
    if gains.function.submodular and not np.isposinf(gains.bounds).any():
        gains.notes.append((len(state.items), state.value + constraint.relaxed_maxima(gains.bounds)))


def certificate(function: SetFunction, constraint: Constraint, state: SelectionState, gains: _Gains) -> Array:
    """Upper bounds of every allowed set, from all states on the way to this one."""
    best = np.full(constraint.size + 1 if isinstance(constraint, Cardinality) else 1, np.inf)
    if isinstance(constraint, Cardinality):
        known = function.size_bounds(constraint.size)
        if known is not None:
            best = np.minimum(best, known)
    larger = function.majorant()
    if larger is not None:
        best = np.minimum(best, _bounds_along(larger, constraint, state.items))
    if function.submodular:
        gains.refresh(state, np.flatnonzero(~gains.fresh & ~np.isin(np.arange(function.n_items), state.items)))
        gains.bounds[state.items] = 0.0
        _note(gains, state, constraint)
        excess = np.zeros(len(state.items) + 1)
        if not function.monotone:
            excess[1:] = np.cumsum(np.maximum(-function.last_gains(state.items), 0.0))
        for n_chosen, bounds in gains.notes:
            best = np.minimum(best, bounds + excess[n_chosen])
    elif function.monotone:
        best = np.minimum(best, function.value(np.arange(function.n_items)))
    if isinstance(constraint, Cardinality):
        # A bound for more items holds for fewer: "at most" so many.
        best = np.minimum.accumulate(best[::-1])[::-1]
    return best


def _bounds_along(function: SetFunction, constraint: Constraint, items: Sequence[int]) -> Array:
    state = function.start()
    best = state.value + constraint.relaxed_maxima(function.gains(state))
    for item in items:
        function.add(item, state)
        best = np.minimum(best, state.value + constraint.relaxed_maxima(function.gains(state)))
    return np.asarray(best)
