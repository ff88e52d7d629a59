"""A change of the items: what it does to the kernel, to subsets and to the ground set, and how they are to follow."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.tracking.state import Particles, Stamp

#: Entries that differ by less than this share of the largest are the same: they were computed in another order.
SAME = 1e-12
#: Up to this share of the rows, changes found in a whole kernel are treated as items that were replaced.
REPLACED_SHARE = 0.2
#: Of many rows that changed, those that changed by more than this, relative to the diagonal, are replaced; so many at
#: most.
LARGE_CHANGE, MOST_REPLACED = 0.2, 16


@dataclass(frozen=True)
class TrackerSettings:
    """How particles follow the kernel; see `TimeVaryingDPP` for the meaning of each."""

    n_particles: int = 100
    ess_threshold: float = 0.5
    n_moves: int | str = "auto"
    metropolis: bool = False
    resampling: str = "systematic"
    init: str = "exact"
    restart_fraction: float = 0.5
    restart_on_collapse: bool = True


class Change(NamedTuple):
    """Which rows of the kernel change, and what that means for the items.

    Attributes
    ----------
    slots : slots whose rows are replaced
    rows : (n, n_slots), the new rows; zero for a slot that is left empty
    leaving, entering, reweighed : slots of items that leave (or whose old content does), that enter, that stay
    factor : scale of the new kernel relative to the old one, on the items that stay unchanged
    n_items, n_changed : number of items after the change, and of those that it touches
    turnover : share of the items that are new, gone or other than before
    """

    slots: IntArray
    rows: Array
    leaving: IntArray
    entering: IntArray
    reweighed: IntArray
    factor: float
    n_items: int
    n_changed: int
    turnover: float


class Proposal(NamedTuple):
    """The state after a change, which `Tracker.accept` makes the present one."""

    particles: Particles
    spare: Particles
    weights: Array
    spare_weights: Array
    resolvent: Array | None
    spare_resolvent: Array | None
    resolvent_age: int
    log_normalizer: float
    ancestors: IntArray
    n_items: int
    stamp: Stamp


class Plan(NamedTuple):
    """A change, and what the ground set will be after it.

    Attributes
    ----------
    change : Change
    gone : ids that leave
    placed : pairs of an id that enters and its slot
    written, features, previous : slots whose features are replaced, by what, and what was there
    order : slots in the order in which the items were told; None to leave it
    raw, scale : the kernel before it is scaled to the wanted size, and its scale
    """

    change: Change
    gone: tuple[Hashable, ...]
    placed: tuple[tuple[Hashable, int], ...]
    written: IntArray
    features: Array | None
    previous: Array | None
    order: IntArray | None
    raw: Array | None
    scale: float


def split_altered(before: Array, after: Array, items: IntArray, by_slot: bool) -> tuple[IntArray, IntArray, IntArray]:
    """Those of the altered items that leave, that enter, and that stay where they are and are reweighed."""
    was, becomes = np.diagonal(before)[items] > 0, np.diagonal(after)[items] > 0
    stays = was & becomes
    if not by_slot:
        stays &= ~most_altered(before, after, items)
    return items[was & ~stays], items[becomes & ~stays], items[stays]


def most_altered(before: Array, after: Array, items: IntArray) -> Any:
    """Mask of those items whose rows changed most, in units of the geometric mean of the diagonal.

    They are worth being replaced instead of reweighed: subsets that were next to impossible with them may be probable
    now, and the weights of the few particles that have such a subset would outweigh all others.
    """
    root = np.sqrt(np.maximum(np.diagonal(before), np.diagonal(after)))
    root = np.where(root > 0, root, 1.0)
    change = (np.abs(after[items] - before[items]) / root / root[items, None]).max(axis=1, initial=0.0)
    threshold = (
        max(LARGE_CHANGE, float(np.sort(change)[-MOST_REPLACED])) if change.size > MOST_REPLACED else LARGE_CHANGE
    )
    return change > threshold


def cover(differs: Any) -> IntArray:
    """Few rows that account for all entries that differ: those with most differences first."""
    left = np.array(differs)
    chosen: list[int] = []
    counts = left.sum(axis=1)
    while counts.any():
        worst = int(np.argmax(counts))
        chosen.append(worst)
        counts -= left[:, worst]
        left[worst] = left[:, worst] = False
        counts[worst] = 0
    return np.array(sorted(chosen), dtype=np.int64)
