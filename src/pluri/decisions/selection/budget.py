r"""Choice under a budget: the better of choosing by gain and by gain per cost.

Choosing by gain alone may spend everything on one item that is hardly better than a cheap one; choosing by gain per
cost may take a cheap item that leaves no room for the only valuable one. The better of the two reaches
:math:`\tfrac12 (1 - 1/e)` of the optimum for monotone submodular f [1]_ ("cost-effective lazy forward"); trying every
beginning of up to three items reaches :math:`1 - 1/e`, in :math:`O(n^5)` gains [2]_.

References
----------
.. [1] J. Leskovec et al., "Cost-effective outbreak detection in networks", KDD 2007.
.. [2] M. Sviridenko, "A note on maximizing a submodular set function subject to a knapsack constraint", Operations
   Research Letters 32, 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from pluri.decisions.selection.constraints import Constraint, Knapsack, Together
from pluri.decisions.selection.greedy import Search, Selection, choose, in_order
from pluri.decisions.selection.set_function import Array, SetFunction

#: Beginnings that partial enumeration tries at most.
MOST_BEGINNINGS = 50_000


def choose_within_budget(
    function: SetFunction,
    costs: Array,
    budget: float,
    *,
    method: str = "celf",
    n_enumerated: int = 0,
    others: Sequence[Constraint] = (),
    search: Search | None = None,
) -> Selection:
    """Choose items whose costs a budget pays for.

    Parameters
    ----------
    function : SetFunction
    costs : (n_items,)
        Non-negative; what costs nothing is taken first, as long as it brings something.
    budget : float
    method : {"celf", "benefit", "ratio"}
        The better of both; by gain alone; by gain per cost alone.
    n_enumerated : int
        Try every allowed beginning of up to so many items, and go on by gain per cost.
    others : sequence of Constraint
        What else is to hold.
    search : Search, optional
    """
    search = search or Search()
    constraint: Constraint = Knapsack(costs, budget)
    if others:
        constraint = Together([constraint, *others])
    free = _free_items(function, costs, constraint, search)
    prices = np.where(costs > 0, costs, 1.0)
    by_ratio = replace(search, prices=prices)
    runs = []
    if method in ("celf", "benefit"):
        runs.append(choose(function, constraint, search, free))
    if method in ("celf", "ratio"):
        runs.append(choose(function, constraint, by_ratio, free))
    if n_enumerated:
        runs += _enumerated(function, constraint, by_ratio, n_enumerated)
    best = max(runs, key=lambda run: _value(function, run))
    proved = choose(function, constraint, search) if free else min(runs, key=lambda run: run.upper_bounds[-1])
    bound = min([float(proved.upper_bounds[-1]), *(float(run.upper_bounds[-1]) for run in runs)])
    # With those that were given.
    return in_order(function, best.items, np.array([bound]), sum(run.n_evaluations for run in runs))


def _value(function: SetFunction, run: Selection) -> float:
    return run.value if len(run.values) else function.value(run.items)


def _free_items(function: SetFunction, costs: Array, constraint: Constraint, search: Search) -> list[int]:
    """Items that cost nothing, as long as they bring something."""
    if not (costs == 0).any():
        return []
    chosen = choose(function, Together([constraint, _Only(costs == 0)]), replace(search, prices=None, sample_size=None))
    return [int(item) for item in chosen.items]


class _Only(Constraint):
    """Nothing but some items."""

    def __init__(self, mask: NDArray[np.bool_]) -> None:
        self.mask = mask

    def allowed(self, items: Sequence[int]) -> NDArray[np.bool_]:
        free = self.mask.copy()
        free[list(items)] = False
        return free

    def relaxed_maxima(self, scores: Array) -> Array:
        return np.array([float(np.maximum(scores, 0.0)[self.mask].sum())])


def _enumerated(function: SetFunction, constraint: Constraint, search: Search, most: int) -> list[Selection]:
    number = sum(comb(function.n_items, size) for size in range(1, most + 1))
    if number > MOST_BEGINNINGS:
        raise ValueError(
            f"n_enumerated must leave at most {MOST_BEGINNINGS} beginnings to try, got {number} with "
            f"{function.n_items} items and n_enumerated={most}"
        )
    runs = []
    for size in range(1, most + 1):
        for beginning in combinations(range(function.n_items), size):
            if all(constraint.allowed(beginning[:place])[item] for place, item in enumerate(beginning)):
                runs.append(choose(function, constraint, search, beginning))
    return runs
