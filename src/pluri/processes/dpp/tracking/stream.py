"""What all estimators of subsets through time share: processing time steps, and answering about the last one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.kernel_forms import Array
from pluri.processes.dpp.tracking.answers import Follower, SubsetAnswers
from pluri.processes.dpp.tracking.changes import Plan
from pluri.processes.dpp.tracking.features import KernelRows, checked_kernel, numbers_of
from pluri.processes.dpp.tracking.ids import as_ids
from pluri.processes.dpp.tracking.items import TrackedItems
from pluri.processes.dpp.tracking.state import Stamp, WeightedSubsets
from pluri.validation import Made, Number, Only, RandomState, as_generator, check_value
from pluri.validation.interruption import holding


class SubsetStream(SubsetAnswers, ABC):
    """An estimator that processes one time step after the other; see `TimeVaryingDPP` and `SeparateDPP`."""

    psd_repair: str
    kernel: str | Callable[..., Any]
    kernel_params: Mapping[str, Any] | None
    random_state: RandomState
    verbose: int

    def _check_fitted_state(self) -> None:
        if hasattr(self, "_follower") and len(self._follower.kernel) != len(self._items.slot_ids):
            raise ValueError(f"_items must have {len(self._follower.kernel)} slots, got {len(self._items.slot_ids)}")

    def fit(
        self,
        kernels: Iterable[ArrayLike],
        item_ids: Iterable[Iterable[Hashable]] | None = None,
        *,
        features: bool = False,
    ) -> Self:
        """Follow a whole sequence, from the beginning. Ctrl-C keeps the time steps so far.

        Parameters
        ----------
        kernels : iterable of array-like (n_items, n_items)
            Kernel of each time step; a generator is read one time step at a time.
        item_ids : iterable of iterables of hashable, optional
            Ids of the items of each time step; 0 to n_items - 1 by default.
        features : bool, default=False
            Whether the matrices are features (n_items, n_features), of which the kernel is to be made. Rows that did
            not change from one time step to the next are not touched.

        Returns
        -------
        self
        """
        from pluri.inference.mcmc.chain import sweep_state
        from pluri.progress import open_progress

        for name, value in (("kernels", kernels), ("item_ids", () if item_ids is None else item_ids)):
            a_number = isinstance(value, np.ndarray) and value.ndim == 0
            if isinstance(value, str | bytes) or not isinstance(value, Iterable) or a_number:
                raise ValueError(f"{name} must have an entry for each time step, got {value!r}")
        self._forget()
        ids = iter(item_ids) if item_ids is not None else None
        n_stamps = len(kernels) if isinstance(kernels, Sequence) else 0
        take = self._take_feature_matrix if features else self._take_kernel
        done: list[Stamp] = []
        kept = holding(lambda: f"interrupted: {len(self.history_)} time steps were processed", done)
        with kept, open_progress(self.verbose) as report:
            for t, matrix in enumerate(kernels):
                present = None
                if ids is not None:
                    present = next(ids, None)
                    if present is None:
                        raise ValueError(f"item_ids must have an entry for each kernel, got only {t}")
                take(matrix, present)
                done.append(self.history_[-1])
                if self.verbose:
                    report(
                        sweep_state(
                            chain=0, n_chains=1, sweep=t + 1, n_sweeps=max(n_stamps, t + 1),
                            log_joint=self.history_[-1].log_normalizer_ratio,
                            log_likelihood=self.history_[-1].log_normalizer_ratio, gain=math.nan,
                            seconds=sum(stamp.seconds for stamp in self.history_),
                        )
                    )  # fmt: skip
        if not done:
            raise ValueError("kernels must have at least one time step, got none")
        return self

    def partial_fit(
        self, kernel: ArrayLike, item_ids: Iterable[Hashable] | None = None, changed: Iterable[Hashable] | None = None
    ) -> Self:
        """Follow the process to a whole new kernel.

        Parameters
        ----------
        kernel : array-like (n_items, n_items)
            L-ensemble kernel of the present items, symmetric and positive semi-definite.
        item_ids : iterable of hashable, optional
            Who the items are, in the order of the kernel; 0 to n_items - 1 by default. Ids that were there before are
            the same items, wherever they stand.
        changed : iterable of hashable, optional
            Items whose rows changed though their ids did not. Found by comparison by default; if more than a fifth of
            the rows differ, subsets are then weighted by their determinants, each computed anew.

        Returns
        -------
        self
        """
        self._take_kernel(kernel, item_ids, changed)
        return self

    def update(
        self,
        changed_ids: Iterable[Hashable],
        features: Any,
        *,
        quality: ArrayLike | None = None,
        leaving: Iterable[Hashable] = (),
    ) -> WeightedSubsets:
        """Follow the process when a few items enter, leave, or change: the fast way, for streams.

        Parameters
        ----------
        changed_ids : iterable of hashable
            Items that are new or whose features changed. At the first call, all items.
        features : array-like (n_changed, n_features)
            Their features.
        quality : array-like (n_changed,), optional
            Non-negative factors: the kernel is ``quality_i * kernel(i, j) * quality_j``. A stream uses them from its
            first time step on or not at all; later items without have quality 1.
        leaving : iterable of hashable, default=()
            Items that go.

        Returns
        -------
        WeightedSubsets
            The subsets with their weights, the effective sample size, and what happened.
        """
        changed, gone = as_ids(changed_ids, "changed_ids"), as_ids(leaving, "leaving")
        if not self._has_begun():
            if gone:
                raise ValueError(f"leaving must be empty at the first time step, got {gone[0]!r}")
            items = self._new_items()
            self._open(items, items.begin_with_features(changed, features, quality))
            return self._cloud()
        items = self._items
        if items.features is None:
            raise ValueError("update needs features from the first time step on: this stream was begun with a kernel")
        n_new = sum(item not in items.slot_of for item in changed)
        for item in gone:
            if item not in items.slot_of:
                raise ValueError(f"leaving must name present items, got the unknown id {item!r}")
        if gone and not set(gone).isdisjoint(changed):
            both = next(item for item in gone if item in set(changed))
            raise ValueError(f"an item cannot both change and leave, got {both!r} in changed_ids and in leaving")
        if len(items.slot_of) + n_new == len(gone):
            raise ValueError("at least one item must stay or enter, but all are leaving")
        self._make_room(n_new, len(gone))
        plan = items.plan_features(changed, features, quality, gone, self._is_by_slot(), self._follower.kernel)
        self._follow(plan)
        return self._cloud()

    @abstractmethod
    def _begin(self, kernel: Array, n_items: int, rng: np.random.Generator) -> Follower:
        """Subsets at the first time step."""

    def _is_by_slot(self) -> bool:
        """Whether items whose content changed keep their place."""
        return False

    def _forget(self) -> None:
        for name in ("_follower", "_items", "_rng", "history_", "trace_", "converged_"):
            if hasattr(self, name):
                delattr(self, name)

    def _new_items(self) -> TrackedItems:
        check_value(self.expected_size, "expected_size", Number(above=0) | Only(None))
        check_value(self.psd_repair, "psd_repair", Only("raise", "clip", "shift"))
        check_value(self.kernel_params, "kernel_params", Made(Mapping, "a dictionary") | Only(None))
        return TrackedItems(KernelRows(self.kernel, self.kernel_params), self.expected_size)

    def _open(self, items: TrackedItems, kernel: Array) -> None:
        """Begin with the first time step."""
        rng = as_generator(self.random_state)
        follower = self._begin(kernel, len(items.slot_of), rng)
        self._items, self._rng, self.history_, self._follower = items, rng, [follower.stamp], follower
        self._note_best()

    def _follow(self, plan: Plan) -> None:
        """Make one time step of a plan, wholly or not at all."""
        follower, t = self._follower, len(self.history_)
        try:
            proposal = follower.propose(plan.change)
        except BaseException:
            follower.reject()
            self._items.reject(plan)
            raise
        is_written = False
        try:
            self._write_down(plan, proposal, t)
            is_written = True
        finally:
            if not is_written:  # Ctrl-C, and too late to go back: the time step is finished first
                self._write_down(plan, proposal, t)

    def _write_down(self, plan: Plan, proposal: Any, t: int) -> None:
        """Make a proposal the present state, as time step t; done twice, it is as if done once."""
        self._items.accept(plan)
        self._follower.accept(proposal)
        self.history_[t:] = [proposal.stamp]
        self._note_best()

    def _note_best(self) -> None:
        self.history_[-1] = self.history_[-1]._replace(best=self.best_subset())

    def _make_room(self, n_new: int, n_gone: int) -> None:
        """Grow the number of slots if need be; shrink it when most are empty."""
        items, n_slots = self._items, len(self._items.slot_ids)
        missing = items.missing_slots(n_new, n_gone)
        if missing:
            kept, n_next = np.arange(n_slots), n_slots + max(missing, n_slots // 4)
        elif n_slots > 2 * (len(items.slot_of) + n_new) + 16:
            kept = np.array(sorted(items.slot_of.values()), dtype=np.int64)
            n_next = kept.size + n_new
        else:
            return
        self._follower.rearrange(kept, n_next)
        items.rearrange(kept, n_next)

    def _take_kernel(
        self, kernel: ArrayLike, item_ids: Iterable[Hashable] | None, changed: Iterable[Hashable] | None = None
    ) -> None:
        begun = self._has_begun()
        items = self._items if begun else self._new_items()
        if self.psd_repair == "raise":
            matrix = checked_kernel(kernel)
        else:
            from pluri.priors.kernels import repair_kernel

            matrix = repair_kernel(kernel, self.psd_repair)
        ids = list(range(len(matrix))) if item_ids is None else as_ids(item_ids, "item_ids")
        if len(ids) != len(matrix):
            raise ValueError(f"item_ids must name each of the {len(matrix)} items of the kernel, got {len(ids)}")
        altered = None if changed is None else as_ids(changed, "changed")
        known = set(ids) if altered else set()
        for item in altered or ():
            if item not in known:
                raise ValueError(f"changed must name items of this time step, got the unknown id {item!r}")
        if not begun:
            self._open(items, items.begin_with_kernel(ids, matrix))
            return
        if items.features is not None:
            raise ValueError("this stream was begun with features: go on with update, or call fit to begin anew")
        n_new = sum(item not in items.slot_of for item in ids)
        self._make_room(n_new, len(items.slot_of) - len(ids) + n_new)
        self._follow(items.plan_kernel(matrix, ids, altered, self._is_by_slot(), self._follower.kernel))

    def _take_feature_matrix(self, features: Any, item_ids: Iterable[Hashable] | None) -> None:
        """A time step given by the features of all items: only those that differ are taken in."""
        shape = features.shape if hasattr(features, "shape") else np.shape(numbers_of(features))
        if len(shape) != 2:
            raise ValueError(f"kernels must hold features of shape (n_items, n_features), got shape {tuple(shape)}")
        n_items = int(shape[0])
        ids = list(range(n_items)) if item_ids is None else as_ids(item_ids, "item_ids")
        if len(ids) != n_items:
            raise ValueError(f"item_ids must name each of the {n_items} rows of the features, got {len(ids)}")
        if not self._has_begun():
            self.update(ids, features)
            return
        items = self._items
        assert items.features is not None
        prepared = items.rows.prepare(features)
        slot_of, stored = items.slot_of, items.features
        differs = [
            position
            for position, item in enumerate(ids)
            if item not in slot_of or not np.array_equal(stored[slot_of[item]], prepared[position])
        ]
        present = set(ids)
        gone = [item for item in slot_of if item not in present]
        rows = features[differs] if hasattr(features, "shape") else [features[i] for i in differs]
        self.update([ids[i] for i in differs], rows, leaving=gone)
