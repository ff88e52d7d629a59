"""What is kept and told of particles of subsets: their buffers, the record of a time step, and the weighted subsets."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.validation import Stored, check_layout

#: Columns of the stored inverses come in blocks of this many.
BLOCK = 8
#: Entries of the report of the compiled loops: log of the mean weight, effective sample size, accepted moves, mean size
#: of the subsets, its squared standard error, and their largest size.
LOG_RATIO, EFFECTIVE, ACCEPTED, MEAN_SIZE, SIZE_VARIANCE, LARGEST_SIZE = range(6)


def in_blocks(n: int) -> int:
    """The number, rounded up to whole blocks; at least one block."""
    return max(-(-n // BLOCK), 1) * BLOCK


class Particles(NamedTuple):
    """Buffers of subsets: what the compiled loops work on.

    Attributes
    ----------
    members : (n_particles, room) int32, slots of the items; the first `sizes` count
    sizes : (n_particles,)
    places : (n_particles, n_slots) int32, where in `members` each slot is; -1 if it is not
    inverses : (n_particles, room, room), inverse of the kernel of the members
    log_determinants : (n_particles,), log det of the kernel of the members
    ages : (n_particles,), changes since the inverse was made from the kernel
    """

    members: NDArray[np.int32]
    sizes: IntArray
    places: NDArray[np.int32]
    inverses: Array
    log_determinants: Array
    ages: IntArray

    def _check_fitted_state(self) -> None:
        check_layout(
            self,
            {
                "members": Stored("n_all", "room_", whole=True, least=0),
                "sizes": Stored("n_all", whole=True, least=0),
                "places": Stored("n_all", "n_slots_", whole=True, least=-1, below="room_"),
                "inverses": Stored("n_all", "room_", "room_", finite=False),
                "log_determinants": Stored("n_all", finite=False),
                "ages": Stored("n_all", whole=True),
            },
        )
        for name, most in (("sizes", self.room), ("members", self.places.shape[1] - 1)):
            if getattr(self, name).max(initial=0) > max(most, 0):
                raise ValueError(f"{name} must be at most {most}, got {getattr(self, name).max()}")

    @property
    def room(self) -> int:
        """Number of items that a subset may have."""
        return int(self.members.shape[1])

    @classmethod
    def empty(cls, n_particles: int, room: int, n_slots: int) -> Particles:
        """Empty subsets with room for at least this many items."""
        room = in_blocks(room)
        return cls(
            np.zeros((n_particles, room), dtype=np.int32),
            np.zeros(n_particles, dtype=np.int64),
            np.full((n_particles, n_slots), -1, dtype=np.int32),
            np.zeros((n_particles, room, room)),
            np.zeros(n_particles),
            np.zeros(n_particles, dtype=np.int64),
        )

    def widened(self, room: int) -> Particles:
        """The same subsets with more room."""
        wide = Particles.empty(len(self.sizes), room, self.places.shape[1])
        wide.members[:, : self.room] = self.members
        wide.inverses[:, : self.room, : self.room] = self.inverses
        return self._replace(members=wide.members, inverses=wide.inverses)

    def on_slots(self, kept: IntArray, n_slots: int) -> Particles:
        """The same subsets after the slots `kept` became the first of `n_slots`."""
        n_before = self.places.shape[1]
        new_place = np.zeros(n_before, dtype=np.int32)
        new_place[kept] = np.arange(kept.size, dtype=np.int32)
        places = np.full((len(self.sizes), n_slots), -1, dtype=np.int32)
        places[:, : kept.size] = self.places[:, kept]
        return self._replace(members=new_place[self.members], places=places)

    def resample(self, drawn: IntArray) -> IntArray:
        """Copy particles over those that were not drawn, in place; the particle that each one comes from."""
        copies = np.bincount(drawn, minlength=len(self.sizes))
        free = np.flatnonzero(copies == 0)
        sources = np.repeat(np.arange(copies.size), np.maximum(copies - 1, 0))
        for array in self:
            array[free] = array[sources]
        ancestors = np.arange(copies.size)
        ancestors[free] = sources
        return ancestors


class Workspace(NamedTuple):
    """Buffers that the compiled loops write to.

    Attributes
    ----------
    panel : (n_slots, 2 * width), columns of the kernel at items that leave, then at those that enter
    images : (room, 2 * width), the inverse of a subset times its rows of the panel
    conditional, lower, pivots : (n_moved, width), (n_moved, n_moved) and (n_moved,), kernel of the items that leave or
        enter given a subset, and its factors
    column, image : (room,), entries of the kernel between an item and a subset, and the inverse times them
    report : (6,), see `LOG_RATIO` and those after it
    """

    panel: Array
    images: Array
    conditional: Array
    lower: Array
    pivots: Array
    column: Array
    image: Array
    report: Array

    @classmethod
    def empty(cls, n_slots: int, n_moved: int, room: int) -> Workspace:
        """For a number of slots, of items that leave or enter, and of items in a subset."""
        width = in_blocks(n_moved)
        return cls(
            panel=np.zeros((n_slots, 2 * width)),
            images=np.zeros((room, 2 * width)),
            conditional=np.zeros((n_moved, width)),
            lower=np.zeros((n_moved, n_moved)),
            pivots=np.zeros(n_moved),
            column=np.zeros(room),
            image=np.zeros(room),
            report=np.zeros(6),
        )

    def fits(self, n_slots: int, n_moved: int, room: int) -> bool:
        """Whether it is large enough; panels must be no wider than needed, or they would slow down what follows."""
        enough = len(self.pivots) >= n_moved and len(self.column) >= room
        return enough and self.panel.shape == (n_slots, 2 * in_blocks(n_moved))

    def widened(self, room: int) -> Workspace:
        """The same for larger subsets."""
        images = np.zeros((room, self.images.shape[1]))
        return self._replace(images=images, column=np.zeros(room), image=np.zeros(room))


class Stamp(NamedTuple):
    """What happened at one time step.

    Attributes
    ----------
    n_items, n_changed : number of items, and of those that entered, left or changed
    ess : effective sample size after weighing, before any resampling
    resampled, restarted : whether particles were resampled; whether they were drawn anew
    n_moves : moves of each particle
    acceptance : share of moves that changed a subset; NaN without moves
    log_normalizer_ratio : estimate of log det(L_t + I) - log det(L_{t-1} + I) from the particles
    log_normalizer_ratio_exact : the same computed; NaN when there are too many items to do so
    expected_size : exact mean size of a subset; NaN when there are too many items
    estimated_size : mean size of the weighted subsets
    seconds : time taken
    best : ids of the most probable of the subsets
    """

    n_items: int
    n_changed: int
    ess: float
    resampled: bool
    restarted: bool
    n_moves: int
    acceptance: float
    log_normalizer_ratio: float
    log_normalizer_ratio_exact: float
    expected_size: float
    estimated_size: float
    seconds: float
    best: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class WeightedSubsets:
    """Subsets with weights that add up to one, at one time step.

    Attributes
    ----------
    weights : (n_particles,)
    sizes : (n_particles,), number of items of each subset
    log_determinants : (n_particles,), log det of the kernel of each: their log probabilities, up to the normaliser
    ancestors : (n_particles,), from which particle of the last time step each comes; -1 if drawn anew
    stamp : Stamp, what happened
    """

    weights: Array
    sizes: IntArray
    log_determinants: Array
    ancestors: IntArray
    stamp: Stamp
    members: NDArray[np.int32]
    slot_ids: tuple[Hashable, ...]

    def __len__(self) -> int:
        return len(self.weights)

    def __repr__(self) -> str:
        return (
            f"<{len(self)} weighted subsets of {self.stamp.n_items} items, {self.weights @ self.sizes:.1f} on average; "
            f"effective sample size {self.ess:.1f}>"
        )

    @cached_property
    def subsets(self) -> list[tuple[Any, ...]]:
        """Ids of the items of each subset, in the order of the slots."""
        ids = self.slot_ids
        return [tuple(ids[i] for i in np.sort(row[:n]).tolist()) for row, n in zip(self.members, self.sizes.tolist())]

    @property
    def ess(self) -> float:
        """Effective sample size after weighing, before any resampling."""
        return self.stamp.ess

    @property
    def log_normalizer_ratio(self) -> float:
        """Estimate of the change of the log normaliser."""
        return self.stamp.log_normalizer_ratio

    @property
    def best(self) -> tuple[Any, ...]:
        """The most probable of the subsets, of whatever size."""
        alive = np.where(self.weights > 0, self.log_determinants, -np.inf)
        return self.subsets[int(np.argmax(alive))]
