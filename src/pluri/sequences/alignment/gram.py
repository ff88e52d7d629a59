"""Values of an alignment kernel for pairs of sequences: cut into pieces, computed by threads, mirrored.

Pairs are independent of each other, so that the answer does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.spatial.distance import cdist

from pluri.engine.executors import count_jobs
from pluri.sequences.alignment._kernels import (
    Warping,
    align_pairs,
    best_paths,
    log_sum_of_paths,
    resample_pairs,
)
from pluri.sequences.alignment.frames import BLOCK, Frames

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Cells of a piece of work: some tens of milliseconds, after which Ctrl-C is heard.
PIECE = 10_000_000


@dataclass(frozen=True)
class Comparison:
    """What an alignment kernel does with a pair, its settings checked; see `TimeAlignmentKernel`."""

    kind: str
    frame_kernel: str | Callable[[Array, Array], Any]
    sigma: float
    max_step: int
    window: int
    length: int

    @property
    def warping(self) -> Warping:
        """Settings of the compiled loops."""
        linear = self.frame_kernel == "linear"
        return Warping(linear, 1.0 if linear else self.sigma**-2, self.max_step, self.window)

    def similarity(self, x: Array, v: Array) -> Array:
        """The frame kernel of all pairs of frames, (n, m)."""
        if callable(self.frame_kernel):
            found = np.asarray(self.frame_kernel(x, v), dtype=np.float64)
            if found.shape != (len(x), len(v)) or not np.isfinite(found).all():
                raise ValueError(
                    f"frame_kernel must give finite numbers of shape {(len(x), len(v))} for two sequences of so many "
                    f"frames, got shape {found.shape}"
                )
            return found
        if self.frame_kernel == "linear":
            return np.asarray(x @ v.T)
        return np.asarray(np.exp(-cdist(x, v, "sqeuclidean") / self.sigma**2))

    def of_pair(self, x: Array, v: Array) -> float:
        """The kernel (its logarithm for sums of paths) from the whole matrix of frames: slower, for any frames."""
        if self.kind == "linear":
            steps = np.arange(1, (self.length or max(len(x), len(v))) + 1)
            i, j = (-(-len(part) * steps // steps[-1]) - 1 for part in (x, v))
            return float(self.similarity(x, v)[i, j].mean())
        if self.kind == "max":
            return float(best_paths(self.similarity(x, v), self.max_step, self.window)[-1, -1] / (len(x) + len(v)))
        if callable(self.frame_kernel):
            similar = self.similarity(x, v)
            if (similar < 0).any():
                raise ValueError(f"frame_kernel must not be negative for kind='sum', got {similar.min()}")
            with np.errstate(divide="ignore"):
                logs = np.log(similar)
        else:
            squares = cdist(x, v, "sqeuclidean") / self.sigma**2
            logs = -squares - np.log1p(-np.expm1(-squares))  # of k / (2 - k)
        return float(log_sum_of_paths(logs, self.max_step, self.window))


@cache
def path_growth(max_step: int) -> float:
    """Logarithm of the rate at which paths multiply from one diagonal to the next.

    Their number is at most p_d = sum over steps (a, b) of p_(d - a - b), whose growth solves
    sum over (a, b) of rate^-(a + b) = 1.
    """
    steps = np.add.outer(np.arange(max_step + 1), np.arange(max_step + 1)).ravel()[1:]
    return float(brentq(lambda rate: np.exp(-rate * steps).sum() - 1.0, 1e-6, 2.0 * np.log(len(steps) + 1)))


def pair_values(
    comparison: Comparison, left: Frames, right: Frames, rows: Integers, columns: Integers, n_jobs: int | None
) -> Array:
    """Kernel of sequence rows[p] of `left` with columns[p] of `right`; the logarithm of it for sums of paths."""
    values = np.empty(len(rows))
    if callable(comparison.frame_kernel):
        for p, (row, column) in enumerate(zip(rows.tolist(), columns.tolist())):
            values[p] = comparison.of_pair(left[row], right[column])
        return values
    warping = comparison.warping
    growth = path_growth(comparison.max_step) if comparison.kind == "sum" else None
    forward, other = left.columns(), right.columns(reverse=comparison.kind != "linear")
    width = int(left.lengths.max()) + 1 + 3 * warping.max_step

    def work(piece: slice) -> None:
        part = rows[piece], columns[piece]
        if comparison.kind == "linear":
            resample_pairs(*part, forward, other, warping, comparison.length, values[piece])
        else:
            ring = np.empty((2 * warping.max_step + 1, width))
            align_pairs(*part, forward, other, warping, growth, ring, np.empty(width + BLOCK), values[piece])

    _in_threads(work, list(_pieces(left.lengths[rows] * right.lengths[columns])), n_jobs)
    for p in np.flatnonzero(np.isnan(values)).tolist():  # sums of which too much may have been lost
        values[p] = comparison.of_pair(left[rows[p]], right[columns[p]])
    return values


def _pieces(cells: Integers) -> Iterator[slice]:
    """Runs of pairs of about `PIECE` cells."""
    numbers = np.cumsum(cells) // PIECE
    ends = np.append(np.flatnonzero(np.diff(numbers)) + 1, len(cells))
    for begin, end in zip(np.append(0, ends[:-1]).tolist(), ends.tolist()):
        yield slice(begin, end)


def _in_threads(work: Callable[[slice], None], pieces: list[slice], n_jobs: int | None) -> None:
    n_threads = min(1 if n_jobs is None else count_jobs(n_jobs), len(pieces))
    if n_threads <= 1:
        for piece in pieces:
            work(piece)
        return
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="pluri")
    try:
        for _ in pool.map(work, pieces):
            pass
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def gram_matrix(comparison: Comparison, left: Frames, right: Frames | None, n_jobs: int | None) -> Array:
    """Values of all pairs (logarithms for sums of paths); half of them if there is one set of sequences."""
    if right is None:
        rows, columns = np.triu_indices(len(left))
        values = np.empty((len(left), len(left)))
        values[rows, columns] = pair_values(comparison, left, left, rows, columns, n_jobs)
        values[columns, rows] = values[rows, columns]
        return values
    rows, columns = (places.ravel() for places in np.indices((len(left), len(right))))
    return pair_values(comparison, left, right, rows, columns, n_jobs).reshape(len(left), len(right))


def self_values(comparison: Comparison, frames: Frames, n_jobs: int | None) -> Array:
    """Values of each sequence with itself (logarithms for sums of paths), (n_sequences,)."""
    numbers = np.arange(len(frames))
    return pair_values(comparison, frames, frames, numbers, numbers, n_jobs)
