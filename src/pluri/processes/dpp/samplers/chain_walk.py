"""A walk over subsets: what the compiled steps work on, made ready, given room and read out.

A kernel that is a matrix or dense features goes to the compiled steps as it is. Any other is evaluated on the items
that a batch of steps can touch, which are those of Y and those proposed: only entries that may be needed are computed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.processes.dpp.kernel_forms import Array, DenseKernel, FeatureKernel, IntArray, KernelForm, as_kernel_form
from pluri.processes.dpp.samplers import _chain_kernels as compiled_steps
from pluri.processes.dpp.samplers._inverse_kernels import SIZE, invert

#: Name of a move to what a step does; and of a rule to how it is accepted.
MOVES = {"flip": compiled_steps.FLIP, "swap": compiled_steps.SWAP, "flip or swap": compiled_steps.FLIP_OR_SWAP}
RULES = {"metropolis": compiled_steps.METROPOLIS, "heat_bath": compiled_steps.HEAT_BATH}
#: Work between two looks at Ctrl-C, in multiplications, and the most steps it may hold.
BLOCK_WORK, BLOCK_STEPS = 2e8, 1 << 16
#: Steps for which a kernel that is computed on demand is evaluated at a time, at least.
BATCH = 64


@dataclass(frozen=True, eq=False)
class Target:
    """A kernel as the steps want it.

    Attributes
    ----------
    form : KernelForm
    matrix : (n_items, n_items) the kernel, (n_items, n_features) its features, or None: evaluated when needed
    from_features : whether `matrix` holds features
    diagonal : (n_items,)
    candidates : items with a positive diagonal; no others are ever proposed
    """

    form: KernelForm
    matrix: Array | None
    from_features: bool
    diagonal: Array
    candidates: IntArray

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.diagonal)


def target_of(kernel: Any) -> Target:
    """What the steps need to know of a kernel."""
    form = as_kernel_form(kernel)
    diagonal = np.ascontiguousarray(form.diagonal(), dtype=np.float64)
    if not np.isfinite(diagonal).all() or (diagonal < 0).any():
        raise ValueError("kernel must have a finite, non-negative diagonal")
    matrix, from_features = None, False
    if isinstance(form, DenseKernel):
        matrix = np.ascontiguousarray(form.matrix, dtype=np.float64)
    elif isinstance(form, FeatureKernel) and not form.is_sparse:
        matrix, from_features = np.ascontiguousarray(form.features, dtype=np.float64), True
    return Target(form, matrix, from_features, diagonal, np.flatnonzero(diagonal > 0).astype(np.int64))


@dataclass(eq=False)
class Walk:
    """A subset and the inverse of its kernel, in arrays with room for more items; see `_chain_kernels.WalkArrays`."""

    items: IntArray
    place: IntArray
    inverse: Array
    counts: IntArray
    numbers: Array
    marks: Array
    work: tuple[Array, Array, Array] = field(repr=False)

    @property
    def arrays(self) -> compiled_steps.WalkArrays:
        """For the compiled steps."""
        return compiled_steps.WalkArrays(
            self.items, self.place, self.inverse, self.counts, self.numbers, self.marks, *self.work
        )

    @property
    def size(self) -> int:
        """Number of items in the subset."""
        return int(self.counts[SIZE])

    @property
    def log_det(self) -> float:
        """Log determinant of the kernel over the subset."""
        return float(self.numbers[compiled_steps.LOG_DET])

    @property
    def n_steps(self) -> int:
        """Steps since counting started."""
        return int(self.counts[compiled_steps.STEPS])

    @property
    def n_accepted(self) -> int:
        """Steps that changed the subset since counting started."""
        return int(self.counts[compiled_steps.ACCEPTED])

    @property
    def summed_acceptance(self) -> float:
        """Probabilities of acceptance of these steps, summed."""
        return float(self.numbers[compiled_steps.ACCEPTANCE])

    @property
    def subset(self) -> IntArray:
        """The items, sorted."""
        return np.sort(self.items[: self.size])

    def copy(self) -> Walk:
        """A walk of its own; only the scratch arrays are shared."""
        return Walk(
            self.items.copy(), self.place.copy(), self.inverse.copy(), self.counts.copy(), self.numbers.copy(),
            self.marks, self.work,
        )  # fmt: skip

    def start_counting(self) -> None:
        """Forget the steps made so far."""
        self.counts[compiled_steps.ACCEPTED :] = 0
        self.numbers[compiled_steps.ACCEPTANCE] = 0.0

    def make_room(self) -> None:
        """Twice as much room as before."""
        room, n = 2 * len(self.items), len(self.items)
        items, inverse = np.empty(room, dtype=np.int64), np.zeros((room, room))
        items[:n], inverse[:n, :n] = self.items, self.inverse
        self.items, self.inverse, self.work = items, inverse, _scratch(room)


@dataclass(eq=False)
class Records:
    """What is kept of a walk: log determinants, sizes and sums of marks, and the items one subset after the other."""

    log_dets: Array
    sizes: IntArray
    mark_sums: Array
    drawn: IntArray
    made: int = 0
    written: int = 0

    @property
    def arrays(self) -> compiled_steps.RecordArrays:
        """For the compiled steps."""
        return compiled_steps.RecordArrays(self.log_dets, self.sizes, self.mark_sums, self.drawn)

    @classmethod
    def empty(cls, n: int, with_items: bool = False, expected_size: int = 8) -> Records:
        """Room for `n` records."""
        room = max(16, n * (expected_size + 1)) if with_items else 0
        return cls(np.empty(n), np.empty(n, dtype=np.int64), np.empty(n), np.empty(room, dtype=np.int64))

    def subsets(self) -> list[IntArray]:
        """The subsets that are recorded, each sorted."""
        drawn, ends = self.drawn[: self.written].copy(), np.cumsum(self.sizes[: self.made]).tolist()
        parts = [drawn[begin:end] for begin, end in zip([0, *ends], ends)]
        for part in parts:
            part.sort()
        return parts


def _scratch(room: int) -> tuple[Array, Array, Array]:
    return np.zeros((room, room)), np.zeros(room), np.zeros(room)


def start_walk(target: Target, items: ArrayLike, marks: Array | None = None) -> Walk:
    """A walk that begins with the subset `items`; ValueError if its determinant is zero."""
    chosen = np.array(items, dtype=np.int64)
    room = max(16, 2 * len(chosen))
    padded, place = np.zeros(room, dtype=np.int64), np.full(target.n_items, -1, dtype=np.int64)
    padded[: len(chosen)], place[chosen] = chosen, np.arange(len(chosen))
    marks = np.zeros(target.n_items) if marks is None else marks
    walk = Walk(padded, place, np.zeros((room, room)), np.zeros(6, dtype=np.int64), np.zeros(3), marks, _scratch(room))
    walk.counts[SIZE] = len(chosen)
    walk.numbers[compiled_steps.MARK] = marks[chosen].sum()
    block = np.ascontiguousarray(target.form.block(chosen, chosen), dtype=np.float64).reshape(len(chosen), len(chosen))
    log_det = invert(
        block, False, target.diagonal[chosen], np.arange(room), len(chosen), walk.inverse, walk.work[0], walk.work[1]
    )
    if not np.isfinite(log_det):
        raise ValueError(f"the {len(chosen)} items to start with must have a positive determinant, got zero")
    walk.numbers[compiled_steps.LOG_DET] = log_det
    return walk


@dataclass(frozen=True)
class Steps:
    """What a step does (`MOVES`), how it is accepted (`RULES`), and whether it does nothing half of the time."""

    moves: str = "flip"
    rule: str = "heat_bath"
    lazy: bool = False


def advance(
    target: Target, walk: Walk, steps: Steps, uniforms: Array, thin: int = 0, records: Records | None = None
) -> None:
    """One step for each row of `uniforms` (n, 3), in place; every `thin` steps are recorded."""
    n_candidates = len(target.candidates)
    chosen = np.minimum((uniforms[:, 0] * n_candidates).astype(np.int64), n_candidates - 1)
    proposals, rest = target.candidates[chosen], np.ascontiguousarray(uniforms[:, 1:])
    if target.matrix is not None:
        _advance_on(target.matrix, target, walk, steps, proposals, rest, thin, records)
        return
    begin = 0
    while begin < len(proposals):
        end = min(len(proposals), begin + max(BATCH, walk.size))
        _advance_nearby(target, walk, steps, proposals[begin:end], rest[begin:end], thin, records)
        begin = end


def _advance_nearby(
    target: Target, walk: Walk, steps: Steps, proposals: IntArray, uniforms: Array, thin: int, records: Records | None
) -> None:
    """Steps on the block of the kernel that they can touch, with items renumbered."""
    nearby = np.union1d(walk.items[: walk.size], proposals)
    block = np.ascontiguousarray(target.form.block(nearby, nearby), dtype=np.float64)
    local = Target(target.form, block, False, target.diagonal[nearby], nearby)
    place, marks, kept = walk.place, walk.marks, records.written if records is not None else 0
    size = walk.size
    walk.items[:size] = np.searchsorted(nearby, walk.items[:size])
    walk.place, walk.marks = place[nearby], marks[nearby]
    _advance_on(block, local, walk, steps, np.searchsorted(nearby, proposals), uniforms, thin, records)
    walk.items[: walk.size] = nearby[walk.items[: walk.size]]
    place[nearby] = walk.place
    walk.place, walk.marks = place, marks
    if records is not None and len(records.drawn):
        records.drawn[kept : records.written] = nearby[records.drawn[kept : records.written]]


def _advance_on(
    matrix: Array, target: Target, walk: Walk, steps: Steps, proposals: IntArray, uniforms: Array, thin: int,
    records: Records | None,
) -> None:  # fmt: skip
    kept = Records.empty(0) if records is None else records
    entries = compiled_steps.Entries(matrix, target.from_features, target.diagonal)
    done, n_steps = 0, len(proposals)
    while done < n_steps:
        done = compiled_steps.take_steps(
            entries, walk.arrays, proposals, uniforms, done, MOVES[steps.moves], RULES[steps.rule],
            0.5 if steps.lazy else 1.0, 0 if records is None else thin, kept.arrays,
        )  # fmt: skip
        if done < 0:
            raise FloatingPointError("the items of a chain have become linearly dependent: is the kernel symmetric?")
        if done < n_steps:
            if walk.size == len(walk.items):
                walk.make_room()
            else:
                kept.drawn = np.concatenate([kept.drawn, np.empty_like(kept.drawn)])
    if records is not None:
        records.made = int(walk.counts[compiled_steps.RECORDS])
        records.written = int(walk.counts[compiled_steps.WRITTEN])


def run_walk(
    target: Target, walk: Walk, steps: Steps, n_steps: int, rng: np.random.Generator, thin: int = 0,
    records: Records | None = None,
) -> None:  # fmt: skip
    """Many steps, in blocks short enough that Ctrl-C is heard; `records` always holds whole records."""
    walk.start_counting()
    done = 0
    while done < n_steps:
        width = target.matrix.shape[1] if target.matrix is not None and target.from_features else 1
        work = walk.size**2 + walk.size * width + 100
        count = min(n_steps - done, max(BATCH, min(BLOCK_STEPS, int(BLOCK_WORK / work))))
        advance(target, walk, steps, rng.random((count, 3)), thin, records)
        done += count


def transition_matrix(target: Target, steps: Steps, subsets: list[NDArray[Any]]) -> Array:
    """Probability of each subset after one step from each other, by trying everything that a step can do.

    A compiled step is a function of the state and of three uniform numbers: the item, the item to swap, and whether to
    accept. Here the first two take all their values and the third one accepts; so this is the chain itself, for tests.
    """
    index = {tuple(sorted(int(i) for i in subset)): row for row, subset in enumerate(subsets)}
    transition = np.zeros((len(subsets), len(subsets)))
    n = len(target.candidates)
    for subset, row in index.items():
        n_choices = max(1, len(subset)) * (2 if steps.moves == "flip or swap" else 1)
        for i in range(n):
            for choice in range(n_choices):
                walk = start_walk(target, subset)
                advance(target, walk, steps, np.array([[(i + 0.5) / n, 0.0, (choice + 0.5) / n_choices]]))
                acceptance = float(walk.numbers[compiled_steps.ACCEPTANCE])
                transition[row, index[tuple(walk.subset.tolist())]] += acceptance / (n * n_choices)
                transition[row, row] += (1.0 - acceptance) / (n * n_choices)
    return transition
