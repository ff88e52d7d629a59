r"""Which sets are allowed: at most so many items, within a budget, so many of each group.

All are down-closed (what is allowed stays allowed when an item leaves), and each has a polytope of fractional sets
:math:`x \in [0, 1]^n`, over which a linear function is maximised by sorting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.processes.dpp.kernel_forms import Array, IntArray

Mask = NDArray[np.bool_]


class SetConstraint(Protocol):
    """What a search needs to know of the sets that are allowed."""

    def check(self, n_items: int) -> None:
        """ValueError unless the constraint fits a ground set of `n_items` items."""

    def allows(self, x: ArrayLike) -> bool:
        """Whether a set (0 and 1), or a fractional one, is allowed."""

    def can_add(self, included: Mask) -> Mask:
        """(n_items,): whether each item may join the set."""

    def can_swap(self, items: IntArray, included: Mask) -> Mask:
        """(n, n_items): whether each item may take the place of each of `items`."""

    def best_vertex(self, slope: Array, upper: Array) -> Array:
        """The fractional set x <= upper that maximises ``slope @ x``."""


@dataclass(frozen=True)
class Unconstrained:
    """All sets.

    Examples
    --------
    >>> from pluri.processes.dpp import Unconstrained
    >>> Unconstrained().allows([1, 1, 1])
    True
    """

    def check(self, n_items: int) -> None:
        """Fits always."""

    def allows(self, x: ArrayLike) -> bool:
        """Whether a set is allowed: always."""
        return True

    def can_add(self, included: Mask) -> Mask:
        """Whether each item may join the set."""
        return ~included

    def can_swap(self, items: IntArray, included: Mask) -> Mask:
        """Whether each item may take the place of each of `items`."""
        return np.broadcast_to(~included, (len(items), len(included)))

    def best_vertex(self, slope: Array, upper: Array) -> Array:
        """The fractional set x <= upper that maximises ``slope @ x``."""
        return np.where(slope > 0, upper, 0.0)


@dataclass(frozen=True)
class Cardinality:
    """At most `size` items.

    Examples
    --------
    >>> from pluri.processes.dpp import Cardinality
    >>> Cardinality(2).allows([1, 1, 1]), Cardinality(2).allows([1, 0, 1])
    (False, True)
    """

    size: int

    def check(self, n_items: int) -> None:
        """ValueError unless the size is a whole number of at least 0."""
        if isinstance(self.size, bool) or not isinstance(self.size, int | np.integer) or self.size < 0:
            raise ValueError(f"size must be a whole number of at least 0, got {self.size!r}")

    def allows(self, x: ArrayLike) -> bool:
        """Whether a set has no more than `size` items."""
        return bool(np.sum(x) <= self.size + ROUNDING)

    def can_add(self, included: Mask) -> Mask:
        """Whether each item may join the set."""
        return ~included & (included.sum() < self.size)

    def can_swap(self, items: IntArray, included: Mask) -> Mask:
        """Whether each item may take the place of each of `items`."""
        return np.broadcast_to(~included, (len(items), len(included)))

    def best_vertex(self, slope: Array, upper: Array) -> Array:
        """The fractional set x <= upper that maximises ``slope @ x``."""
        return _fill_up(slope, upper, np.ones(len(slope)), float(self.size))


@dataclass(frozen=True, eq=False)
class Budget:
    """Items whose costs sum to at most `budget`.

    Examples
    --------
    >>> from pluri.processes.dpp import Budget
    >>> Budget([3.0, 2.0, 1.0], 4.0).allows([1, 0, 1])
    True
    """

    costs: Any
    budget: float

    def check(self, n_items: int) -> None:
        """ValueError unless there is a positive cost for each item."""
        costs = np.asarray(self.costs, dtype=np.float64)
        if costs.shape != (n_items,) or not (np.isfinite(costs).all() and (costs > 0).all()):
            raise ValueError(f"costs must be {n_items} positive numbers, one for each item, got {self.costs!r}")
        if not (np.isfinite(self.budget) and self.budget >= 0):
            raise ValueError(f"budget must be a finite number of at least 0, got {self.budget!r}")

    @property
    def _costs(self) -> Array:
        return np.asarray(self.costs, dtype=np.float64)

    @property
    def _most(self) -> float:
        return self.budget * (1.0 + ROUNDING)

    def allows(self, x: ArrayLike) -> bool:
        """Whether a set is within the budget."""
        return bool(self._costs @ np.asarray(x, dtype=np.float64) <= self._most)

    def can_add(self, included: Mask) -> Mask:
        """Whether each item may join the set."""
        return ~included & (self._costs @ included + self._costs <= self._most)

    def can_swap(self, items: IntArray, included: Mask) -> Mask:
        """Whether each item may take the place of each of `items`."""
        spent = self._costs @ included
        return ~included & (spent - self._costs[items][:, None] + self._costs <= self._most)

    def best_vertex(self, slope: Array, upper: Array) -> Array:
        """The fractional set x <= upper that maximises ``slope @ x``: best value for the money first."""
        return _fill_up(slope, upper, self._costs, self.budget)


@dataclass(frozen=True, eq=False)
class PartitionMatroid:
    """At most ``limits[g]`` items of each group g.

    Examples
    --------
    >>> from pluri.processes.dpp import PartitionMatroid
    >>> one_each = PartitionMatroid(groups=[0, 0, 1], limits=[1, 1])
    >>> one_each.allows([1, 1, 0]), one_each.allows([1, 0, 1])
    (False, True)
    """

    groups: Any
    limits: Any

    def check(self, n_items: int) -> None:
        """ValueError unless every item has a group and every group a limit."""
        groups, limits = np.asarray(self.groups), np.asarray(self.limits)
        if groups.shape != (n_items,) or not np.issubdtype(groups.dtype, np.integer):
            raise ValueError(f"groups must be {n_items} whole numbers, one for each item, got {self.groups!r}")
        if limits.ndim != 1 or not np.issubdtype(limits.dtype, np.integer) or (limits < 0).any():
            raise ValueError(f"limits must be whole numbers of at least 0, one for each group, got {self.limits!r}")
        if n_items and (groups.min() < 0 or groups.max() >= len(limits)):
            raise ValueError(f"groups must be numbers from 0 to {len(limits) - 1}, as there are limits, got {groups!r}")

    def _room(self, x: ArrayLike) -> Array:
        used = np.bincount(np.asarray(self.groups), weights=np.asarray(x, dtype=np.float64), minlength=len(self.limits))
        return np.asarray(self.limits) - used

    def allows(self, x: ArrayLike) -> bool:
        """Whether no group has more items than its limit."""
        return bool((self._room(x) >= -ROUNDING).all())

    def can_add(self, included: Mask) -> Mask:
        """Whether each item may join the set."""
        return ~included & (self._room(included)[np.asarray(self.groups)] >= 1)

    def can_swap(self, items: IntArray, included: Mask) -> Mask:
        """Whether each item may take the place of each of `items`."""
        groups = np.asarray(self.groups)
        return ~included & (self.can_add(included) | (groups[items][:, None] == groups))

    def best_vertex(self, slope: Array, upper: Array) -> Array:
        """The fractional set x <= upper that maximises ``slope @ x``."""
        groups, x = np.asarray(self.groups), np.zeros(len(slope))
        for group, limit in enumerate(np.asarray(self.limits)):
            members = np.flatnonzero(groups == group)
            x[members] = _fill_up(slope[members], upper[members], np.ones(len(members)), float(limit))
        return x


#: Share by which sums may exceed a limit.
ROUNDING = 1e-9


def _fill_up(slope: Array, upper: Array, costs: Array, budget: float) -> Array:
    """A fractional knapsack: items in order of slope per cost, as far as the budget goes."""
    order = np.argsort(-slope / costs, kind="stable")
    order = order[slope[order] > 0]
    spent = np.cumsum(costs[order] * upper[order])
    x = np.zeros(len(slope))
    before = spent - costs[order] * upper[order]
    x[order] = np.clip((budget - before) / costs[order], 0.0, upper[order])
    return x
