"""Sequences of different lengths as padded arrays, their masks, and minibatches of similar lengths.

JAX compiles a program anew for each shape it meets, which takes seconds. So a fit pads to at most three lengths
(`bucket_edges`), every minibatch has the same number of rows (the last ones are filled with empty sequences), and what
is asked of a fitted network is padded to the lengths of a coarse grid (`rounded_length`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]

#: Different padded lengths of a fit at most: each has a program of its own.
N_BUCKETS = 3
#: Of batches whose size is left to us: sequences at most, and steps of an epoch at least.
LARGEST_BATCH, LEAST_STEPS = 32, 8


class Padded(NamedTuple):
    """Sequences side by side.

    Attributes
    ----------
    values : (n_rows, length, ...): zeros (or another fill value) after the end of each sequence
    mask : (n_rows, length): True where there is something; False in all of an empty row
    """

    values: NDArray[Any]
    mask: NDArray[np.bool_]


class Minibatch(NamedTuple):
    """Which sequences belong together.

    Attributes
    ----------
    rows : numbers of the sequences, at most the batch size
    length : to which they are padded
    """

    rows: Integers
    length: int


def pad(sequences: Sequence[ArrayLike], length: int | None = None, n_rows: int | None = None, fill: Any = 0) -> Padded:
    """Sequences as one array.

    Parameters
    ----------
    sequences : list of arrays of shape (n_steps,) or (n_steps, ...)
        Alike in all but their lengths.
    length : int, optional
        Of the padded axis; that of the longest by default.
    n_rows : int, optional
        Of the array; empty rows are added.
    fill : scalar, default=0

    Returns
    -------
    Padded

    Examples
    --------
    >>> from pluri.networks.batches import pad
    >>> values, mask = pad([[3, 1], [2]], length=3)
    >>> values
    array([[3, 1, 0],
           [2, 0, 0]])
    >>> mask.sum(axis=1)
    array([2, 1])
    """
    arrays = [np.asarray(sequence) for sequence in sequences]
    lengths = np.array([len(array) for array in arrays], dtype=np.int64)
    length = int(lengths.max(initial=0)) if length is None else length
    n_rows = len(arrays) if n_rows is None else n_rows
    if lengths.max(initial=0) > length:
        raise ValueError(f"length must be at least that of the longest sequence ({lengths.max()}), got {length}")
    filled = [array for array in arrays if len(array)]
    inner, kind = (filled[0].shape[1:], np.result_type(*filled)) if filled else ((), np.dtype(np.int64))
    values = np.full((n_rows, length, *inner), fill, dtype=kind)
    for row, array in enumerate(arrays):
        if len(array):
            values[row, : len(array)] = array
    mask = np.zeros((n_rows, length), dtype=np.bool_)
    mask[: len(arrays)] = np.arange(length) < lengths[:, None]
    return Padded(values, mask)


def bucket_edges(lengths: ArrayLike, least_rows: int = 1) -> Integers:
    """Lengths to pad to: the longest, and its half and quarter if enough sequences are as short.

    Parameters
    ----------
    lengths : array of shape (n_sequences,)
    least_rows : int, default=1
        Sequences that a bucket must have to be worth a program of its own.

    Examples
    --------
    >>> from pluri.networks.batches import bucket_edges
    >>> bucket_edges([60, 60, 60])
    array([60])
    >>> bucket_edges([3, 5, 9, 20, 18])
    array([ 5, 10, 20])
    """
    counts = np.asarray(lengths, dtype=np.int64)
    longest = max(1, int(counts.max(initial=1)))
    edges: list[int] = [longest]
    for power in range(N_BUCKETS - 1, 0, -1):
        edge, below = -(-longest // 2**power), edges[-2] if len(edges) > 1 else 0
        if ((counts > below) & (counts <= edge)).sum() >= max(1, least_rows) and edge < longest:
            edges.insert(-1, edge)
    return np.array(edges, dtype=np.int64)


def rounded_length(length: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, 16, 24, ...: few programs for what users ask of a fitted network.

    Examples
    --------
    >>> from pluri.networks.batches import rounded_length
    >>> [rounded_length(length) for length in (1, 5, 17, 60)]
    [1, 6, 24, 64]
    """
    power = 1
    while power < length:
        if power + power // 2 >= length:
            return power + power // 2
        power *= 2
    return power


def rows_of_batches(batch_size: int | str, n: int) -> int:
    """Sequences of a minibatch of a fit to `n` of them: as given, or chosen for ``"auto"``.

    That is 32, and half of it, a quarter, ... where an epoch would have fewer than eight steps: with few sequences the
    same number of epochs would otherwise be too few steps to learn anything.
    """
    if not isinstance(batch_size, str):
        return int(batch_size)
    rows = LARGEST_BATCH
    while rows > 1 and n < LEAST_STEPS * rows:
        rows //= 2
    return rows


def minibatches(
    lengths: ArrayLike, batch_size: int, edges: ArrayLike, rng: np.random.Generator | None = None
) -> list[Minibatch]:
    """Minibatches of sequences that are padded to the same length.

    Parameters
    ----------
    lengths : array of shape (n_sequences,)
    batch_size : int
    edges : array
        What `bucket_edges` gave; the last must be at least the longest length.
    rng : numpy.random.Generator, optional
        Shuffles the sequences within a bucket, and then the minibatches; without it, all are in order.

    Examples
    --------
    >>> from pluri.networks.batches import minibatches
    >>> [(batch.rows.tolist(), batch.length) for batch in minibatches([2, 9, 3, 8, 7], 2, [4, 10])]
    [([0, 2], 4), ([1, 3], 10), ([4], 10)]
    """
    counts, limits = np.asarray(lengths, dtype=np.int64), np.asarray(edges, dtype=np.int64)
    if counts.max(initial=0) > limits[-1]:
        raise ValueError(f"edges must reach the longest length ({counts.max()}), got {limits[-1]}")
    bucket = np.searchsorted(limits, counts)
    found: list[Minibatch] = []
    for number, edge in enumerate(limits.tolist()):
        members = np.flatnonzero(bucket == number)
        if rng is not None:
            members = rng.permutation(members)
        cuts = range(0, len(members), batch_size)
        found += [Minibatch(members[begin : begin + batch_size], edge) for begin in cuts]
    if rng is not None:
        found = [found[place] for place in rng.permutation(len(found))]
    return found


def chunks(lengths: ArrayLike, chunk_size: int, known: ArrayLike = ()) -> Iterator[Minibatch]:
    """Sequences to be asked about: chunks of similar lengths, padded to a known length or one of the coarse grid.

    Parameters
    ----------
    lengths : array of shape (n_sequences,)
    chunk_size : int
        Sequences of a chunk at most.
    known : array
        Lengths for which there may be a program already.
    """
    counts = np.asarray(lengths, dtype=np.int64)
    edges = {_fitting(int(count), known) for count in counts.tolist()} or {1}
    yield from minibatches(counts, chunk_size, sorted(edges))


def _fitting(length: int, known: ArrayLike) -> int:
    fitting = [int(edge) for edge in np.asarray(known).tolist() if edge >= length]
    return min(fitting, default=rounded_length(max(1, length)))


def rounded_rows(n_rows: int, most: int) -> int:
    """Rows of the array for a chunk of so many sequences: 16, 64, 256 and so on, at most `most`."""
    found = 16
    while found < n_rows:
        found *= 4
    return min(most, found)
