"""The items of a conditioned process: which are still open, and which are in every subset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.kernel_forms import IntArray, as_subset


@dataclass(frozen=True, eq=False)
class GroundSet:
    """Items 0 to ``n_items - 1``: ``free`` ones may or may not be chosen, ``fixed`` ones always are, others never.

    Subsets are told in these ids; a kernel knows the free items only, by their position in ``free``.
    """

    n_items: int
    free: IntArray
    fixed: IntArray

    @classmethod
    def of_size(cls, n_items: int) -> GroundSet:
        """All items free."""
        return cls(n_items, np.arange(n_items), np.empty(0, dtype=np.int64))

    def positions(self, items: ArrayLike, name: str = "Y") -> tuple[IntArray, IntArray, bool]:
        """Positions of the free items among ``items``, the fixed ones among them, and whether none is impossible."""
        subset = as_subset(items, self.n_items, name)
        is_fixed = np.isin(subset, self.fixed)
        rest = subset[~is_fixed]
        place = np.searchsorted(self.free, rest)
        known = place < self.free.size
        known[known] = self.free[place[known]] == rest[known]
        return place[known].astype(np.int64), subset[is_fixed], bool(known.all())

    def subset(self, positions: IntArray) -> IntArray:
        """Ids of the subset whose free items have these positions."""
        if not self.fixed.size and self.free.size == self.n_items:
            return positions
        return np.sort(np.concatenate([self.free[positions], self.fixed]))

    def spread(self, values: np.ndarray) -> np.ndarray:
        """A probability of each free item to one of every item: 1 for the fixed, 0 for the excluded."""
        everything = np.zeros(self.n_items)
        everything[self.free] = values
        everything[self.fixed] = 1.0
        return everything

    def conditioned(self, include: IntArray, keep: IntArray) -> GroundSet:
        """Positions ``include`` become fixed, positions ``keep`` stay free, the others are excluded."""
        return GroundSet(self.n_items, self.free[keep], np.sort(np.concatenate([self.fixed, self.free[include]])))
