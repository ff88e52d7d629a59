"""A look at the first sequences of the data: what starting values and the scales of priors are chosen from.

A sequence counts by its weight: one of weight two as if it were there twice, one of weight zero not at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Source

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FirstSequences:
    """The first sequences that count.

    Attributes
    ----------
    rows : (n, m), NaN where a value is missing
    lengths : (n_sequences,)
    weight : (n,): that of the sequence of each row
    places : (n,): the number of each row in the source
    """

    rows: Array
    lengths: Integers
    weight: Array
    places: Integers

    @property
    def offsets(self) -> Integers:
        """Where each sequence begins and ends: (n_sequences + 1,)."""
        return np.append(0, np.cumsum(self.lengths)).astype(np.int64)


def first_sequences(source: Source, most_rows: int) -> FirstSequences:
    """Sequences up to `most_rows` rows; the last is cut where it would be too long."""
    parts: list[Array] = []
    weights: list[float] = []
    begins: list[int] = []
    left, before = most_rows, 0
    for lazy in source.batches():
        batch = lazy.load()
        offsets = batch.offsets
        weight = np.ones(batch.n_sequences) if batch.weight is None else batch.weight
        for s in np.flatnonzero((np.diff(offsets) > 0) & (weight > 0)):
            if left <= 0:
                break
            parts.append(np.asarray(batch.X[offsets[s] : min(offsets[s + 1], offsets[s] + left)], dtype=np.float64))
            weights.append(float(weight[s]))
            begins.append(before + int(offsets[s]))
            left -= len(parts[-1])
        if left <= 0:
            break
        before += batch.n_samples
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    places = [begin + np.arange(length) for begin, length in zip(begins, lengths)]
    return FirstSequences(np.concatenate(parts), lengths, np.repeat(weights, lengths), np.concatenate(places))


def weighted_mean(rows: Array, weight: Array) -> Array:
    """Mean of each column (m,)."""
    return np.asarray(weight @ rows / weight.sum())


def weighted_spread(rows: Array, weight: Array) -> Array:
    """Standard deviation of each column (m,)."""
    return np.sqrt(weighted_mean(np.square(rows - weighted_mean(rows, weight)), weight))


def seen_moments(rows: Array, weight: Array) -> tuple[Array, Array]:
    """Mean and variance of what was seen of each column; zeros for a column that never was."""
    seen = ~np.isnan(rows)
    shares = seen * weight[:, None]
    shares = shares / np.maximum(shares.sum(axis=0), 1e-300)
    mean = (shares * np.where(seen, rows, 0.0)).sum(axis=0)
    return mean, (shares * np.square(np.where(seen, rows - mean, 0.0))).sum(axis=0)


def feature_variance(first: FirstSequences, n_features: int | None = None) -> Array:
    """Variance of what was seen of each of the first features (all if None); 1 for one constant or never seen."""
    return seen_variance(first.rows[:, :n_features], first.weight)


def seen_variance(rows: Array, weight: Array) -> Array:
    """Variance of what was seen of each column; 1 for one constant or never seen."""
    mean, variance = seen_moments(rows, weight)
    # What rounding leaves of a constant is no scale to go by.
    return np.where(variance > np.square(1e-12 * np.abs(mean)), variance, 1.0)


def fill_holes(rows: Array, lengths: Integers, weight: Array) -> Array:
    """Rows with NaN interpolated in each sequence; the mean of the column where a sequence has never seen it."""
    seen = ~np.isnan(rows)
    if seen.all():
        return rows
    out = np.where(seen, rows, seen_moments(rows, weight)[0])
    ends = np.cumsum(lengths)
    for begin, end in zip(ends - lengths, ends):
        for i in np.flatnonzero(~seen[begin:end].all(axis=0)):
            known = np.flatnonzero(seen[begin:end, i])
            if known.size:
                out[begin:end, i] = np.interp(np.arange(end - begin), known, rows[begin:end, i][known])
    return out
