"""Sequences end to end, as kernels take them; and what cannot be taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from pluri.validation import unmasked
from pluri.validation.sequences import is_sequence_list, join_sequences, offsets_of

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Frames that the median distance is taken of, at equal distances from each other.
MEDIAN_FRAMES = 1000
#: The frames along a diagonal are compared in blocks of so many, some beyond its end, which are not looked at: what a
#: vector loop leaves over would be done one by one, which takes as long as several blocks.
BLOCK = 8


class Columns(NamedTuple):
    """Sequences end to end: (n_features, n_frames), and where each begins and ends, (n_sequences + 1,).

    For the alignment `BLOCK` more columns of zeros stand at the end.
    """

    values: NDArray[np.float64]
    offsets: NDArray[np.int64]


@dataclass(frozen=True)
class Frames:
    """Sequences end to end.

    Attributes
    ----------
    rows : (n_frames, n_features)
    lengths : (n_sequences,)
    """

    rows: Array
    lengths: Integers

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, number: int) -> Array:
        """One sequence."""
        begin = int(self.lengths[:number].sum())
        return self.rows[begin : begin + int(self.lengths[number])]

    def take(self, numbers: Integers) -> Frames:
        """Some of the sequences."""
        offsets = offsets_of(self.lengths)
        parts = [np.arange(offsets[number], offsets[number + 1]) for number in numbers]
        places = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        return Frames(self.rows[places], self.lengths[numbers])

    def columns(self, *, reverse: bool = False) -> Columns:
        """Frames as columns for the compiled loops, those of each sequence from the last to the first if `reverse`."""
        offsets = offsets_of(self.lengths)
        order = np.arange(len(self.rows))
        if reverse:
            order = np.repeat(offsets[1:] + offsets[:-1] - 1, self.lengths) - order
        beyond = np.zeros((BLOCK, self.rows.shape[1]))
        return Columns(np.ascontiguousarray(np.concatenate([self.rows[order], beyond]).T), offsets)


def as_frames(X: Any, *, width: int | None = None, name: str = "X") -> Frames:
    """Sequences end to end; a list of arrays, or an array with three axes."""
    X = list(X) if getattr(X, "ndim", 0) == 3 else unmasked(X)
    if not is_sequence_list(X):
        told = f"an array with {X.ndim} axes" if hasattr(X, "ndim") else type(X).__name__
        raise ValueError(
            f"{name} must be a list of sequences, or an array (n_sequences, length, n_features), got {told}"
        )
    try:
        rows, lengths = join_sequences(X)
        rows = np.ascontiguousarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(str(error).replace("X must", f"{name} must", 1)) from error
    check_frames(rows, lengths, name)
    if width is not None and rows.shape[1] != width:
        raise ValueError(f"{name} must have {width} features, as many as it is compared with, got {rows.shape[1]}")
    return Frames(rows, lengths)


def check_frames(rows: Array, lengths: Integers, name: str = "X") -> None:
    """Refuse frames with missing or infinite values, and sequences without frames."""
    if np.isnan(rows).any():
        raise ValueError(
            f"{name} must have no missing values, got NaN in frame {int(np.isnan(rows).any(axis=1).argmax())} of all "
            "frames: a kernel compares whole frames; fill the gaps first, or use a hidden Markov model"
        )
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} must be finite, got infinity")
    if not (lengths > 0).all():
        raise ValueError(f"{name} must hold sequences of at least one frame, got none in sequence {lengths.argmin()}")


def median_distance(frames: Frames, kind: str) -> float:
    """Median distance of frames, times the root of the median length for sums of paths; 1 if all frames are equal."""
    places = np.unique(np.linspace(0, len(frames.rows) - 1, MEDIAN_FRAMES).astype(int))
    distances = pdist(frames.rows[places])
    distances = distances[distances > 0]
    if not distances.size:
        return 1.0
    return float(np.median(distances) * (np.sqrt(np.median(frames.lengths)) if kind == "sum" else 1.0))
