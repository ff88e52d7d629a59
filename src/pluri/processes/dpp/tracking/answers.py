"""What an estimator of subsets through time answers about the last time step."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import NotFittedError

from pluri.inference.smc.resampling import draw_ancestors
from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.sizes import number_of_draws
from pluri.processes.dpp.tracking.changes import Change
from pluri.processes.dpp.tracking.ids import as_ids
from pluri.processes.dpp.tracking.items import TrackedItems
from pluri.processes.dpp.tracking.state import Particles, Stamp, WeightedSubsets
from pluri.validation import Only, RandomState, Whole, as_generator, check_value
from pluri.validation.estimator import Estimator


class Follower(Protocol):
    """Weighted subsets and the kernel that they follow; a step is proposed, then accepted or rejected."""

    kernel: Array
    weights: Array
    ancestors: IntArray
    log_normalizer: float
    resolvent: Array | None
    stamp: Stamp

    @property
    def particles(self) -> Particles:
        """The subsets."""

    def propose(self, change: Change) -> Any:
        """The state after a change; it has a `stamp`."""

    def accept(self, proposal: Any) -> None:
        """Make it the present one."""

    def reject(self) -> None:
        """Forget it."""

    def rearrange(self, kept: IntArray, n_slots: int) -> None:
        """Renumber the slots."""


class SubsetAnswers(Estimator):
    """Weighted subsets of the last time step, and what is asked of them."""

    expected_size: float | None
    #: One record for each time step.
    history_: list[Stamp]

    _follower: Follower
    _items: TrackedItems
    _rng: np.random.Generator

    def sample(self, n_samples: int | None = None, random_state: RandomState = None) -> Any:
        """Draw from the weighted subsets: one, or a list of `n_samples`.

        Parameters
        ----------
        n_samples : int, optional
        random_state : int, Generator, RandomState or None
            None goes on with the estimator's own source.

        Returns
        -------
        tuple of ids, or list of tuples
        """
        follower = self._present()
        count = number_of_draws(n_samples)
        rng = self._rng if random_state is None else as_generator(random_state)
        drawn = draw_ancestors(rng, follower.weights, "multinomial", count)
        subsets = [self._subset(int(p)) for p in rng.permutation(drawn)]
        return subsets[0] if n_samples is None else subsets

    def inclusion_probabilities(self, *, exact: bool = False) -> Array:
        """Probability that each item is chosen, in the order of `item_ids_`.

        Parameters
        ----------
        exact : bool, default=False
            Whether to compute it from the kernel, instead of estimating it from the subsets.
        """
        follower = self._present()
        slots = self._items.slots
        if not exact:
            return np.asarray(follower.weights @ (follower.particles.places >= 0))[slots]
        if follower.resolvent is not None:
            return 1.0 - np.diagonal(follower.resolvent)[slots]
        return np.asarray(1.0 - np.diagonal(np.linalg.inv(follower.kernel + np.eye(len(follower.kernel))))[slots])

    def best_subset(self, method: str = "particle", size: int | None = None) -> tuple[Any, ...]:
        """A subset of high probability.

        Parameters
        ----------
        method : {"particle", "greedy"}, default="particle"
            The most probable of the particles, or items chosen one by one, each the best beside those before.
        size : int, optional
            Number of items: exactly for "greedy", as nearly as any particle has for "particle". By default
            `expected_size` if that is set, since the most probable subset of a process of a wanted mean size has mostly
            far fewer items; else whatever is most probable.
        """
        follower = self._present()
        n_items = len(self._items.slot_of)
        if size is None and self.expected_size is not None:
            size = min(max(1, round(self.expected_size)), n_items)
        check_value(size, "size", Whole(0, n_items) | Only(None))
        check_value(method, "method", Only("particle", "greedy"))
        if method == "particle":
            possible = follower.weights > 0
            if size is not None:
                distance = np.where(possible, np.abs(follower.particles.sizes - size), np.iinfo(np.int64).max)
                possible &= distance == distance.min()
            return self._subset(int(np.argmax(np.where(possible, follower.particles.log_determinants, -np.inf))))
        from pluri.processes.dpp.search.greedy import greedy_map

        slots = np.sort(self._items.slots)
        chosen = greedy_map(follower.kernel[np.ix_(slots, slots)], size).items
        return tuple(self._items.slot_ids[slot] for slot in slots[np.sort(chosen)].tolist())

    def score(self, subset: Iterable[Hashable]) -> float:
        """Exact log probability of a subset, given by ids, at the last time step."""
        follower = self._present()
        ids = as_ids(subset, "subset")
        for item in ids:
            if item not in self._items.slot_of:
                raise ValueError(f"subset must name present items, got the unknown id {item!r}")
        slots = [self._items.slot_of[item] for item in ids]
        log_normalizer = follower.log_normalizer
        if math.isnan(log_normalizer):
            log_normalizer = float(np.linalg.slogdet(follower.kernel + np.eye(len(follower.kernel)))[1])
        sign, log_determinant = np.linalg.slogdet(follower.kernel[np.ix_(slots, slots)])
        return float(log_determinant) - log_normalizer if sign > 0 else -math.inf

    @property
    def particles_(self) -> list[tuple[Any, ...]]:
        """Ids of the items of each subset."""
        return self._cloud().subsets

    @property
    def weights_(self) -> Array:
        """Weights of the subsets."""
        return self._present().weights.copy()

    @property
    def item_ids_(self) -> tuple[Hashable, ...]:
        """Ids of the present items."""
        self._present()
        return self._items.ids

    @property
    def expected_size_(self) -> float:
        """Exact mean size of a subset; NaN when there are too many items."""
        self._present()
        return self.history_[-1].expected_size

    def _has_begun(self) -> bool:
        return hasattr(self, "_follower")

    def _present(self) -> Follower:
        if not self._has_begun():
            name = type(self).__name__
            raise NotFittedError(f"this {name} has seen no time step yet: call fit, partial_fit or update")
        return self._follower

    def _subset(self, particle: int) -> tuple[Any, ...]:
        particles = self._follower.particles
        members = np.sort(particles.members[particle, : particles.sizes[particle]])
        return tuple(self._items.slot_ids[slot] for slot in members.tolist())

    def _cloud(self) -> WeightedSubsets:
        follower = self._present()
        particles = follower.particles
        return WeightedSubsets(
            follower.weights.copy(), particles.sizes.copy(), particles.log_determinants.copy(), follower.ancestors,
            self.history_[-1], particles.members.copy(), tuple(self._items.slot_ids),
        )  # fmt: skip
