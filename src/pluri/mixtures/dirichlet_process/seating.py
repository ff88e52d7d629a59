"""Who sits where: clusters in slots, which compiled loops open and close."""

from __future__ import annotations

from typing import Any

import numpy as np

from pluri.mixtures.dirichlet_process._seating_kernels import split_or_merge, sweep_rows
from pluri.processes.conjugate_clusters._kernels import FIRST, Clusters
from pluri.processes.conjugate_clusters.records import (
    Integers,
    as_law,
    as_rows,
    as_slots,
    cluster_sums,
    log_predictive,
    row_constants,
)

#: Slots to spare before arrays must grow: three for a proposal, and new clusters.
SPARE = 16


def in_order(labels: Integers) -> Integers:
    """The same partition with clusters numbered in the order in which they appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


class Prepared:
    """Data and likelihood as compiled loops take them, and the log density of each row in a cluster of its own."""

    def __init__(self, likelihood: Any, data: Any) -> None:
        self.likelihood, self.data = likelihood, data
        self.rows, self.law = as_rows(likelihood, data), as_law(likelihood, data.shape[0])
        alone = log_predictive(likelihood, data, likelihood.empty(1), np.zeros(1))[:, 0]
        self.log_new = alone - row_constants(likelihood, data)


class Seating:
    """A partition on its way from one draw to the next. Rows labelled -1 are not in any cluster yet."""

    def __init__(self, prepared: Prepared, labels: Integers) -> None:
        self._of = prepared
        likelihood, seated = prepared.likelihood, labels >= 0
        n_clusters = int(labels.max(initial=-1)) + 1
        own = prepared.data if seated.all() else prepared.data[seated]
        sums = cluster_sums(likelihood, own, labels[seated], n_clusters)
        sizes = np.bincount(labels[seated], minlength=n_clusters)
        n_slots = FIRST + n_clusters + SPARE
        filled = as_slots(
            likelihood, np.concatenate([likelihood.empty(FIRST), sums]), np.append(np.zeros(FIRST), sizes)
        )
        slots = np.zeros((n_slots, filled.shape[1]))
        slots[: len(filled)] = filled
        self._clusters = Clusters(prepared.rows, prepared.law, slots, np.zeros(prepared.data.shape[1]))
        self._labels = np.where(seated, labels + FIRST, -1)
        self._seats = np.zeros((4, n_slots), dtype=np.int64)
        active, where, free, tally = self._seats
        active[:n_clusters] = np.arange(FIRST, FIRST + n_clusters)
        where[FIRST : FIRST + n_clusters] = np.arange(n_clusters)
        free[:SPARE] = np.arange(n_slots - 1, n_slots - 1 - SPARE, -1)
        tally[:2] = n_clusters, SPARE

    @property
    def labels(self) -> Integers:
        """Cluster of each row, numbered in the order in which they appear."""
        return in_order(self._labels)

    def sweep(self, rng: np.random.Generator, alpha: float) -> None:
        """Draw the cluster of each row given those of the others, in random order."""
        n = len(self._labels)
        order, uniforms = rng.permutation(n), rng.random(n)
        done = 0
        while done < n:
            self._make_room(1)
            weights = np.empty(self._seats.shape[1])
            log_alpha, log_new = np.log(alpha), self._of.log_new
            done = sweep_rows(
                self._clusters, self._seats, self._labels, order, uniforms, log_alpha, log_new, done, weights
            )

    def split_or_merge(self, rng: np.random.Generator, alpha: float, n_scans: int) -> bool:
        """Propose to split a cluster or to merge two; tells whether the proposal was accepted."""
        labels, n = self._labels, len(self._labels)
        if n < 2:
            return False
        self._make_room(3)
        pair = rng.choice(n, size=2, replace=False)
        others = (labels == labels[pair[0]]) | (labels == labels[pair[1]])
        others[pair] = False
        members = np.concatenate([pair, rng.permutation(np.flatnonzero(others))])
        uniforms = rng.random((n_scans + 2, len(members)))
        accepted = split_or_merge(
            self._clusters, self._seats, labels, members, labels[members], uniforms, np.log(alpha), n_scans
        )
        return bool(accepted)

    def _make_room(self, least: int) -> None:
        """Twice the slots, if fewer than `least` are free."""
        n_free, old = int(self._seats[3, 1]), self._seats.shape[1]
        if n_free >= least:
            return
        slots = self._clusters.slots
        self._clusters = self._clusters._replace(slots=np.concatenate([slots, np.zeros_like(slots)]))
        self._seats = np.concatenate([self._seats, np.zeros_like(self._seats)], axis=1)
        free = self._seats[2]
        # Those that were free are on top of the new ones, and so are used first.
        free[old : old + n_free] = free[:n_free].copy()
        free[:old] = np.arange(2 * old - 1, old - 1, -1)
        self._seats[3, 1] += old
