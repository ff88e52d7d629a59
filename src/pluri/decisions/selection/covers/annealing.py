"""Covers and subsets by simulated annealing: swap one set for another, add one, drop one.

A swap keeps the number of sets and serves the cover of most elements and subsets of a fixed size; adding and dropping
serve the cheapest cover, whose missing elements have a price above every set's. All moves are as probable as their
reverse. Beginning with the greedy choice, the result is never worse than it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.decisions.selection.set_function import Array, IntArray
from pluri.optimize.annealing import Proposal, SimulatedAnnealing


class CoverState(NamedTuple):
    """Which sets are chosen (n_sets,), and how many of them hold each element (n_elements,)."""

    chosen: NDArray[np.bool_]
    counts: IntArray


class CoverMoves:
    """Moves between choices of sets, with the energy that they lead to.

    Parameters
    ----------
    membership : compressed matrix of shape (n_sets, n_elements)
    costs : (n_sets,)
        Energy of a chosen set.
    prices : (n_elements,)
        Energy of an element that is not covered.
    keep_size : bool
        Whether every move is a swap.
    """

    def __init__(self, membership: Any, costs: Array, prices: Array, *, keep_size: bool) -> None:
        self.costs, self.prices, self.keep_size = costs, prices, keep_size
        starts = membership.indptr
        self.held = [membership.indices[starts[row] : starts[row + 1]] for row in range(membership.shape[0])]

    def state(self, items: Sequence[int] | IntArray) -> CoverState:
        """The state in which these sets are chosen."""
        chosen = np.zeros(len(self.held), dtype=bool)
        counts = np.zeros(len(self.prices), dtype=np.int64)
        for item in items:
            chosen[item] = True
            counts[self.held[item]] += 1
        return CoverState(chosen, counts)

    def energy(self, state: CoverState) -> float:
        """Cost of the chosen sets and price of what they do not cover."""
        return float(self.costs[state.chosen].sum() + self.prices[state.counts == 0].sum())

    def __call__(self, rng: np.random.Generator, state: CoverState) -> Proposal:
        """A neighbour."""
        inside = np.flatnonzero(state.chosen)
        if self.keep_size or rng.random() < 0.5:
            if not 0 < len(inside) < len(state.chosen):
                return Proposal(state)  # nothing to swap
            out = inside[rng.integers(len(inside))]
            outside = np.flatnonzero(~state.chosen)
            changes = [out, outside[rng.integers(len(outside))]]
        else:
            changes = [int(rng.integers(len(state.chosen)))]
        chosen, counts = state.chosen.copy(), state.counts.copy()
        for item in changes:
            counts[self.held[item]] += -1 if chosen[item] else 1
            chosen[item] = not chosen[item]
        return Proposal(CoverState(chosen, counts), self.energy(CoverState(chosen, counts)))


def anneal_cover(moves: CoverMoves, start: Any, **settings: Any) -> tuple[IntArray, int]:
    """Sets chosen in the best state, and how many states were looked at.

    Parameters
    ----------
    moves : CoverMoves
    start : list of int, or callable
        Sets chosen at the beginning, or ``start(rng)``, which draws them for each run.
    **settings
        Of `pluri.optimize.SimulatedAnnealing`.
    """
    begin = (lambda rng: moves.state(start(rng))) if callable(start) else moves.state(start)
    result = SimulatedAnnealing(moves=moves, **settings).minimize(moves.energy, begin)
    return np.flatnonzero(result.x.chosen), int(result.nit)


def anneal_subset(
    value: Callable[[IntArray], float], n_items: int, start: IntArray, **settings: Any
) -> tuple[IntArray, int]:
    """The best subset of the size of `start`, found by swaps, and how many values were computed.

    Parameters
    ----------
    value : callable
        Of an array of items, to be maximised.
    n_items : int
    start : (size,)
    **settings
        Of `pluri.optimize.SimulatedAnnealing`.
    """

    def swap(rng: np.random.Generator, items: IntArray) -> IntArray:
        others = np.setdiff1d(np.arange(n_items), items)
        if not len(others) or not len(items):
            return items
        moved = items.copy()
        moved[rng.integers(len(items))] = others[rng.integers(len(others))]
        return moved

    result = SimulatedAnnealing(moves=swap, **settings).minimize(lambda items: -value(items), start)
    return np.sort(result.x), int(result.nfev)
