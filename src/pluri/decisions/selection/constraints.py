"""What may be chosen together: so many items, what a budget pays for, so many of each group.

All of these close under leaving out: once an item does not fit any more, it never will. Each also bounds what a sum of
separate scores can reach under it, from which searches make their certificates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.decisions.selection.set_function import Array
from pluri.validation import Number, check_value

#: Costs may exceed a budget by this share: sums of decimal fractions are not exact.
ROUNDING = 1e-12


class Constraint(ABC):
    """Which sets of items are allowed."""

    @abstractmethod
    def allowed(self, items: Sequence[int]) -> NDArray[np.bool_]:
        """Items (n_items,) that may still be added to these."""

    @abstractmethod
    def relaxed_maxima(self, scores: Array) -> Array:
        """Upper bounds of the sum of non-negative scores over an allowed set.

        The last one is that of the constraint itself; before it, those of the smaller sizes if there are some.
        """


class Cardinality(Constraint):
    """At most `size` items of `n_items`."""

    def __init__(self, size: int, n_items: int) -> None:
        self.size, self.n_items = int(size), int(n_items)

    def allowed(self, items: Sequence[int]) -> NDArray[np.bool_]:
        """Every other item until there are enough."""
        free = np.full(self.n_items, len(items) < self.size)
        free[list(items)] = False
        return free

    def relaxed_maxima(self, scores: Array) -> Array:
        """Sums of the highest 0, 1, ..., size scores."""
        positive = np.maximum(scores, 0.0)
        if self.size < len(positive):
            positive = np.partition(positive, len(positive) - self.size)[len(positive) - self.size :]
        sums = np.cumsum(np.sort(positive)[::-1])
        padding = np.full(self.size - len(sums), sums[-1] if len(sums) else 0.0)
        return np.concatenate([[0.0], sums, padding])


class Knapsack(Constraint):
    """Items that together cost no more than a budget.

    Parameters
    ----------
    costs : array-like of shape (n_items,)
        Non-negative.
    budget : float

    Examples
    --------
    >>> from pluri.decisions import Knapsack
    >>> Knapsack([1.0, 2.0, 3.0], budget=3.0).allowed([0]).tolist()
    [False, True, False]
    """

    def __init__(self, costs: ArrayLike, budget: float) -> None:
        check_value(budget, "budget", Number(above=0))
        self.costs = checked_costs(costs)
        self.budget = float(budget)

    def allowed(self, items: Sequence[int]) -> NDArray[np.bool_]:
        """What the rest of the budget pays for."""
        chosen = list(items)
        free = self.costs <= self.budget * (1.0 + ROUNDING) - self.costs[chosen].sum()
        free[chosen] = False
        return np.asarray(free)

    def relaxed_maxima(self, scores: Array) -> Array:
        """The fractional knapsack: the best ratios first, and a part of the last item."""
        positive = np.where(self.costs <= self.budget * (1.0 + ROUNDING), np.maximum(scores, 0.0), 0.0)
        free = self.costs == 0
        total = positive[free].sum()
        costs, worth = self.costs[~free], positive[~free]
        order = np.argsort(-worth / costs, kind="stable")
        before = np.concatenate([[0.0], np.cumsum(costs[order])])[:-1]
        share = np.clip((self.budget * (1.0 + ROUNDING) - before) / costs[order], 0.0, 1.0)
        return np.array([total + float(share @ worth[order])])


class PartitionMatroid(Constraint):
    """At most so many items of each group.

    Parameters
    ----------
    partition : array-like of shape (n_items,)
        Group of each item.
    limits : int or dict
        The most of every group, or of each by name; a group that is not named has no limit.

    Examples
    --------
    >>> from pluri.decisions import PartitionMatroid
    >>> PartitionMatroid(["a", "a", "b"], limits=1).allowed([0]).tolist()
    [False, False, True]
    """

    def __init__(self, partition: ArrayLike, limits: int | Mapping[Any, int]) -> None:
        given = np.asarray(partition)
        if given.ndim != 1 or not given.size:
            raise ValueError(f"partition must name the group of each item, got shape {given.shape}")
        self.names, self.groups = np.unique(given, return_inverse=True)
        if isinstance(limits, Mapping):
            unknown = [name for name in limits if name not in self.names]
            if unknown:
                raise ValueError(f"limits must be of groups of the partition, got one of {unknown[0]!r}")
            each = [limits.get(name, len(given)) for name in self.names.tolist()]
        else:
            each = [limits] * len(self.names)
        for limit in each:
            if not isinstance(limit, int | np.integer) or isinstance(limit, bool) or limit < 0:
                raise ValueError(f"limits must be whole numbers of at least 0, got {limit!r}")
        self.limits = np.array(each, dtype=np.int64)

    def allowed(self, items: Sequence[int]) -> NDArray[np.bool_]:
        """Items of groups that are not full."""
        chosen = list(items)
        used = np.bincount(self.groups[chosen], minlength=len(self.limits))
        free = (used < self.limits)[self.groups]
        free[chosen] = False
        return np.asarray(free)

    def relaxed_maxima(self, scores: Array) -> Array:
        """The highest scores of each group."""
        positive = np.maximum(scores, 0.0)
        best = [np.sort(positive[self.groups == g])[::-1][:limit].sum() for g, limit in enumerate(self.limits)]
        return np.array([float(np.sum(best))])


class Together(Constraint):
    """What several constraints all allow, such as two budgets, or a size and a limit for each group."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        if not constraints:
            raise ValueError("constraints must have at least one, got none")
        self.constraints = list(constraints)

    def allowed(self, items: Sequence[int]) -> NDArray[np.bool_]:
        """What all of them allow."""
        return np.asarray(np.logical_and.reduce([one.allowed(items) for one in self.constraints]))

    def relaxed_maxima(self, scores: Array) -> Array:
        """The least of their bounds."""
        return np.array([min(float(one.relaxed_maxima(scores)[-1]) for one in self.constraints)])


def checked_costs(costs: ArrayLike, n_items: int | None = None) -> Array:
    """Finite non-negative costs, one for each item."""
    found = np.asarray(costs, dtype=np.float64)
    if found.ndim != 1 or not found.size or (n_items is not None and len(found) != n_items):
        told = "each item" if n_items is None else f"each of {n_items} items"
        raise ValueError(f"costs must be a number for {told}, got shape {found.shape}")
    if not np.isfinite(found).all() or (found < 0).any():
        wrong = found[~np.isfinite(found) | (found < 0)][0]
        raise ValueError(f"costs must be finite and non-negative, got {wrong}")
    return found
