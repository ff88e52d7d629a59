"""The items of a ground set that changes: who they are, where their rows stand, and what a change does to the kernel.

Each item has an id, which says who it is, and a slot, the row of the kernel where it stands; slots of items that have
gone are given to those that come. A change is planned first and accepted when the particles have followed it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.kernel_checks import check_symmetric
from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.tracking.changes import REPLACED_SHARE, SAME, Change, Plan, cover, split_altered
from pluri.processes.dpp.tracking.draws import NONE
from pluri.processes.dpp.tracking.features import KernelRows, checked_kernel, scale_to, symmetric_kernel
from pluri.processes.dpp.tracking.ids import check_ids
from pluri.validation import Stored, check_layout


class TrackedItems:
    """The ground set: ids, slots, features, and the kernel before any scaling.

    Parameters
    ----------
    rows : KernelRows
        How features become rows of the kernel.
    expected_size : float or None
        Expected size that the kernel is scaled to at every time step.
    """

    def __init__(self, rows: KernelRows, expected_size: float | None) -> None:
        self.rows = rows
        self.expected_size = expected_size
        self.slot_of: dict[Hashable, int] = {}
        self.slot_ids: list[Hashable] = []
        self.free: list[int] = []
        self.features: Array | None = None
        self.raw: Array | None = None
        self.scale = 1.0
        self.order: IntArray | None = None

    def _check_fitted_state(self) -> None:
        n_slots = len(self.slot_ids)
        slots = [*self.slot_of.values(), *self.free]
        if any(type(slot) is not int or not 0 <= slot < n_slots for slot in slots):
            raise ValueError(f"slot_of must lie between 0 and {n_slots - 1}, got {slots}")
        layout = {
            "features": Stored(n_slots, None),
            "raw": Stored(n_slots, n_slots),
            "order": Stored(None, whole=True, least=0, below=n_slots),
        }
        check_layout(self, layout)

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """Ids of the present items, in the order in which they were told."""
        return tuple(self.slot_ids[slot] for slot in self.slots.tolist())

    @property
    def slots(self) -> IntArray:
        """Slots of the present items, in the order of `ids`."""
        if self.order is not None:
            return self.order
        return np.array(sorted(self.slot_of.values()), dtype=np.int64)

    def begin_with_features(self, ids: Sequence[Hashable], features: Any, quality: ArrayLike | None = None) -> Array:
        """Take the first items; returns their kernel."""
        self._begin(ids)
        self.rows.has_quality = quality is not None
        self.features = self.rows.prepare(features, quality)
        self._check_count(len(ids), len(self.features))
        return self._scaled(symmetric_kernel(self.rows, self.features))

    def begin_with_kernel(self, ids: Sequence[Hashable], kernel: Array) -> Array:
        """Take the first items, by a checked kernel; returns it, scaled."""
        self._begin(ids)
        self.order = np.arange(len(ids))
        return self._scaled(kernel)

    def _begin(self, ids: Sequence[Hashable]) -> None:
        check_ids(ids, "item_ids")
        if not len(ids):
            raise ValueError("the first time step must have at least one item, got none")
        self.slot_of = {item: slot for slot, item in enumerate(ids)}
        self.slot_ids = list(ids)

    def _scaled(self, kernel: Array) -> Array:
        if self.expected_size is None:
            return kernel
        self.raw = kernel
        self.scale = scale_to(kernel, self.expected_size)
        return kernel * self.scale

    def missing_slots(self, n_new: int, n_gone: int) -> int:
        """How many slots there are too few."""
        return max(n_new - n_gone - len(self.free), 0)

    def rearrange(self, kept: IntArray, n_slots: int) -> None:
        """The slots `kept` become the first of `n_slots`; the others are free."""
        new_slot = np.full(len(self.slot_ids), -1, dtype=np.int64)
        new_slot[kept] = np.arange(kept.size)
        ids: list[Hashable] = [None] * n_slots
        slot_of = {item: int(new_slot[slot]) for item, slot in self.slot_of.items()}
        for item, slot in slot_of.items():
            ids[slot] = item
        if self.features is not None:
            features = np.zeros((n_slots, self.features.shape[1]))
            features[: kept.size] = self.features[kept]
            self.features = features
        if self.raw is not None:
            raw = np.zeros((n_slots, n_slots))
            raw[: kept.size, : kept.size] = self.raw[np.ix_(kept, kept)]
            self.raw = raw
        if self.order is not None:
            self.order = new_slot[self.order]
        taken = set(slot_of.values())
        self.slot_of, self.slot_ids = slot_of, ids
        self.free = [slot for slot in range(n_slots) if slot not in taken]

    def plan_features(
        self, changed_ids: Sequence[Hashable], features: Any, quality: ArrayLike | None, leaving: Sequence[Hashable],
        by_slot: bool, kernel: Array,
    ) -> Plan:  # fmt: skip
        """What new features of some items, and the leaving of others, do to the present kernel."""
        assert self.features is not None
        slot_of = self.slot_of
        width = self.features.shape[1]
        prepared = self.rows.prepare(features, quality) if len(changed_ids) else np.empty((0, width))
        self._check_count(len(changed_ids), len(prepared))
        if prepared.shape[1] != width:
            extra = int(self.rows.has_quality)
            raise ValueError(f"features must have {width - extra} columns as before, got {prepared.shape[1] - extra}")
        vacated = [slot_of[item] for item in leaving]
        vacancies = iter(vacated + self.free)
        placed: list[tuple[Hashable, int]] = []
        slots: list[int] = []
        stayed: list[int] = []
        for item in changed_ids:
            slot = slot_of.get(item)
            if slot is None:
                slot = next(vacancies)
                placed.append((item, slot))
            else:
                stayed.append(slot)
            slots.append(slot)
        written = np.array(slots, dtype=np.int64)
        abandoned = list(vacancies)  # slots without an item after the change
        left = [slot for slot in vacated if slot in abandoned] if abandoned else []
        previous = self.features[written]
        try:
            rows = self._new_rows(written, prepared, abandoned, kernel, left)
        except BaseException:
            self.features[written] = previous
            raise
        n_items = len(slot_of) + len(placed) - len(vacated)
        turnover = (len(stayed) + max(len(placed), len(vacated))) / n_items
        every = np.array(slots + left, dtype=np.int64) if left else written
        gone, come, reweighed = every, written, NONE
        if len(placed) > len(vacated):
            gone = np.array(vacated + stayed, dtype=np.int64)
        if by_slot and stayed:
            present = np.diagonal(self.raw if self.raw is not None else kernel)
            kept = {s for a, s in enumerate(slots) if s in set(stayed) and present[s] > 0 and rows[a, s] > 0}
            reweighed = np.array(sorted(kept), dtype=np.int64)
            gone = np.array([s for s in gone.tolist() if s not in kept], dtype=np.int64)
            come = np.array([s for s in slots if s not in kept], dtype=np.int64)
        change = Change(every, rows, gone, come, reweighed, 1.0, n_items, len(slots) + len(left), turnover)
        order = None
        if self.order is not None:
            order = np.array([*(s for s in self.order.tolist() if s not in set(vacated)), *(s for _, s in placed)])
        try:
            return self._plan(change, tuple(leaving), tuple(placed), written, prepared, previous, order)
        except BaseException:  # a target size that the new kernel cannot have
            self.features[written] = previous
            raise

    def _new_rows(
        self, written: IntArray, prepared: Array, abandoned: list[int], kernel: Array, left: list[int]
    ) -> Array:
        """Rows of the kernel at slots with new features, then rows of zeros for slots that are left empty."""
        assert self.features is not None
        self.features[written] = prepared
        rows = self.rows.between(prepared, self.features)
        if not self.rows.is_trusted:
            rows[:, written] = check_symmetric(rows[:, written], "the kernel of the features")
        if abandoned:
            rows[:, abandoned] = 0.0
        if left:
            rows = np.concatenate([rows, np.zeros((len(left), rows.shape[1]))])
        if not self.rows.is_trusted and written.size:
            whole = (self.raw if self.raw is not None else kernel).copy()
            every = np.array([*written.tolist(), *left], dtype=np.int64)
            whole[every] = rows
            whole[:, every] = rows.T
            checked_kernel(whole, "the kernel of the features")
        return rows

    def plan_kernel(
        self, kernel: Array, ids: Sequence[Hashable], changed: Sequence[Hashable] | None, by_slot: bool, present: Array
    ) -> Plan:
        """What a whole new kernel, checked and in the order of `ids`, does to the present one."""
        raw = self.raw if self.raw is not None else present
        n_slots = len(self.slot_ids)
        coming = set(ids)
        gone = [item for item in self.slot_of if item not in coming]
        vacated = [self.slot_of[item] for item in gone]
        vacancies = iter(vacated + self.free)
        placed: list[tuple[Hashable, int]] = []
        order = np.empty(len(ids), dtype=np.int64)
        for position, item in enumerate(ids):
            slot = self.slot_of.get(item)
            if slot is None:
                slot = next(vacancies)
                placed.append((item, slot))
            order[position] = slot
        entered = [slot for _, slot in placed]
        if len(ids) == n_slots and (order[:-1] < order[1:]).all():
            full = kernel
        else:
            full = np.zeros((n_slots, n_slots))
            full[np.ix_(order, order)] = kernel
        # The largest entry of a kernel is on its diagonal.
        differs = np.abs(full - raw) > SAME * max(float(kernel.diagonal().max()), float(raw.diagonal().max()))
        if placed or len(ids) < n_slots:
            stays = np.zeros(n_slots, dtype=bool)
            stays[order] = True
            stays[entered] = False
            differs &= stays[:, None] & stays
        if changed is None:
            altered = cover(differs)
            replaced = altered.size <= REPLACED_SHARE * len(ids)
        else:
            altered = np.array([self.slot_of[item] for item in changed if item in self.slot_of], dtype=np.int64)
            differs[altered] = False
            differs[:, altered] = False
            if differs.any():
                missed = self.slot_ids[int(np.flatnonzero(differs.any(axis=1))[0])]
                raise ValueError(f"changed must name every item whose row of the kernel changed, it lacks {missed!r}")
            replaced = True
        n_turned = altered.size if replaced else 0
        turnover = max(len(placed) + n_turned, len(vacated) + n_turned) / max(len(ids), 1)
        left = sorted(set(vacated) - set(entered))
        leaving, entering, reweighed = altered, altered, NONE
        if not replaced or (by_slot and altered.size):
            leaving, entering, reweighed = split_altered(raw, full, altered, by_slot)
        slots = np.array([*altered.tolist(), *entered, *left], dtype=np.int64)
        change = Change(
            slots, full[slots], np.concatenate([leaving, np.array(vacated, dtype=np.int64)]),
            np.concatenate([entering, np.array(entered, dtype=np.int64)]), reweighed, 1.0, len(ids), slots.size,
            turnover,
        )  # fmt: skip
        return self._plan(change, tuple(gone), tuple(placed), NONE, None, None, order)

    def accept(self, plan: Plan) -> None:
        """Carry out a plan; done twice, it is as if done once."""
        vacated = [self.slot_of.get(item) for item in plan.gone]
        for item, slot in zip(plan.gone, vacated):
            if slot is not None and self.slot_ids[slot] == item:
                self.slot_ids[slot] = None
        for item, slot in plan.placed:
            self.slot_ids[slot] = item
            self.slot_of[item] = slot
        for item in plan.gone:
            self.slot_of.pop(item, None)
        if plan.gone or plan.placed:
            taken = set(self.slot_of.values())
            if len(taken) < len(self.slot_ids) or self.free:
                self.free = [slot for slot in range(len(self.slot_ids)) if slot not in taken]
        if plan.raw is not None:
            self.raw, self.scale = plan.raw, plan.scale
        if plan.order is not None:
            self.order = plan.order

    def reject(self, plan: Plan) -> None:
        """Put the features back; done twice, it is as if done once."""
        if plan.previous is not None and self.features is not None:
            self.features[plan.written] = plan.previous

    def _plan(
        self, change: Change, gone: tuple[Hashable, ...], placed: tuple[tuple[Hashable, int], ...], written: IntArray,
        features: Array | None, previous: Array | None, order: IntArray | None,
    ) -> Plan:  # fmt: skip
        if self.raw is None:
            return Plan(change, gone, placed, written, features, previous, order, None, 1.0)
        raw = self.raw.copy()
        raw[change.slots] = change.rows
        raw[:, change.slots] = change.rows.T
        assert self.expected_size is not None
        scale = scale_to(raw, self.expected_size)
        change = change._replace(slots=np.arange(len(raw)), rows=raw * scale, factor=scale / self.scale)
        return Plan(change, gone, placed, written, features, previous, order, raw, scale)

    def _check_count(self, n_ids: int, n_rows: int) -> None:
        if n_ids != n_rows:
            raise ValueError(f"features must have a row for each of the {n_ids} changed items, got {n_rows}")
