"""How far a partition lies from those of a posterior: co-clustering, and expected losses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def as_draws(draws: ArrayLike) -> Integers:
    """Labels of each draw, numbered from 0; chains, if there are any, one after another."""
    values = np.asarray(draws)
    if values.ndim < 2 or values.size == 0 or values.dtype.kind not in "iub":
        raise ValueError(f"draws must be whole numbers of shape (n_draws, n_samples), got shape {values.shape}")
    values = values.reshape(-1, values.shape[-1])
    if values.min() >= 0 and values.max() < values.shape[1]:
        present = np.zeros((len(values), values.shape[1]), dtype=bool)
        np.put_along_axis(present, values.astype(np.int64), True, axis=1)
        new = np.cumsum(present, axis=1) - 1
        return np.asarray(np.take_along_axis(new, values.astype(np.int64), axis=1))
    return np.stack([np.unique(row, return_inverse=True)[1] for row in values]).astype(np.int64)


def as_partition(labels: ArrayLike, n_samples: int) -> Integers:
    values = np.asarray(labels)
    if values.shape != (n_samples,):
        raise ValueError(f"labels must have shape ({n_samples},) as the draws do, got {values.shape}")
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def size_terms(counts: NDArray[np.generic], n: int, loss: str) -> Array:
    values = counts.astype(np.float64)
    if loss == "binder":
        return values**2 / max(n * (n - 1), 1)
    return values * np.log(np.maximum(values, 1.0)) / n


def partition_distances(labels: Integers, draws: Integers, loss: str) -> Array:
    """Loss of a partition against each draw."""
    n_draws, n = draws.shape
    width = int(draws.max()) + 1
    n_clusters = int(labels.max()) + 1
    own = size_terms(np.bincount(labels), n, loss).sum()
    losses = np.empty(n_draws)
    for s, draw in enumerate(draws):
        meets = np.bincount(labels * width + draw, minlength=n_clusters * width).reshape(n_clusters, width)
        losses[s] = own + size_terms(meets.sum(axis=0), n, loss).sum() - 2 * size_terms(meets, n, loss).sum()
    return np.maximum(losses, 0.0)


def co_clustering_matrix(draws: ArrayLike) -> NDArray[np.float32]:
    """Share of the draws in which each pair of items is in one cluster.

    Parameters
    ----------
    draws : array-like of ints, shape (n_draws, n_samples) or (n_chains, n_draws, n_samples)

    Returns
    -------
    array of shape (n_samples, n_samples), float32

    Examples
    --------
    >>> from pluri.metrics.partition_losses import co_clustering_matrix
    >>> co_clustering_matrix([[0, 0, 1], [0, 1, 1]])
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]], dtype=float32)
    """
    labels = as_draws(draws)
    n_draws, n = labels.shape
    total = np.zeros((n, n), dtype=np.float32)
    sizes = labels.max(axis=1) + 1
    for block in _blocks(sizes):
        offsets = np.cumsum(sizes[block]) - sizes[block]
        member = np.zeros((n, int(sizes[block].sum())), dtype=np.float32)
        for offset, draw in zip(offsets, labels[block]):
            member[np.arange(n), offset + draw] = 1.0
        total += member @ member.T
    return total / np.float32(n_draws)


def _blocks(sizes: Integers) -> Iterator[slice]:
    """Draws side by side, as many as have enough clusters for a matrix product to be worth while."""
    begin = 0
    while begin < len(sizes):
        end = begin + max(1, int(np.searchsorted(np.cumsum(sizes[begin:]), 512)))
        yield slice(begin, end)
        begin = end


def expected_variation_of_information(labels: ArrayLike, draws: ArrayLike) -> float:
    """Mean variation of information, in nats, from a partition to the draws.

    Examples
    --------
    >>> from pluri.metrics.partition_losses import expected_variation_of_information
    >>> expected_variation_of_information([0, 0, 1, 1], [[1, 1, 0, 0], [0, 0, 0, 0]])
    0.3465735
    """
    values = as_draws(draws)
    return float(partition_distances(as_partition(labels, values.shape[1]), values, "vi").mean())


def expected_binder(labels: ArrayLike, draws: ArrayLike) -> float:
    """Mean share of pairs that a partition and a draw do not agree on (one minus the Rand index).

    Examples
    --------
    >>> from pluri.metrics.partition_losses import expected_binder
    >>> expected_binder([0, 0, 1, 1], [[1, 1, 0, 0], [0, 0, 0, 0]])
    0.3333333
    """
    values = as_draws(draws)
    return float(partition_distances(as_partition(labels, values.shape[1]), values, "binder").mean())
