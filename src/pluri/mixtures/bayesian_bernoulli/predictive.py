"""What samples of the labels of a Bernoulli mixture say about other rows.

Given labels, the probabilities of a cluster are independent, so that with ``theta_ij = (b + N_ij) / (b + g + N_j)`` and
weights ``v_j = (N_j + a/k) / (N + a)``

    p(known entries, x_i = 1 | z) = sum_j v_j theta_ij prod_{l known} theta_lj^x_l (1 - theta_lj)^(1 - x_l)

exactly. All clusters without members are alike: they are one here, with the sum of their weights. A cluster differs
from an empty one of its size in few columns only, which are all that is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.factors.binary_completion import BinaryRows
from pluri.priors import Beta
from pluri.validation import Stored, check_compressed

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ClusterTables:
    """Clusters of several samples, one under the other; those of a sample by size, then the empty one.

    Attributes
    ----------
    sample : (n_rows,): the sample that a cluster belongs to
    sizes : (n_rows,): number of members
    log_weight : (n_rows,): log v_j
    background : (n_rows,): theta in the columns that no member has
    indptr, indices : the other columns of each cluster, as in a csr_array
    one, zero : theta and 1 - theta there
    n_features : number of columns
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "sample": Stored("n_all", whole=True, least=0),
        "sizes": Stored("n_all", whole=True, least=0),
        "log_weight": Stored("n_all", finite=False),
        "background": Stored("n_all"),
        "one": Stored("n_places"),
        "zero": Stored("n_places"),
        "indices": Stored("n_places", whole=True),
    }

    sample: Integers
    sizes: Integers
    log_weight: Array
    background: Array
    indptr: Integers
    indices: Integers
    one: Array
    zero: Array
    n_features: int

    @classmethod
    def of(
        cls, rows: BinaryRows, samples: list[Integers], alphas: list[float], n_components: int | None, prior: Beta
    ) -> ClusterTables:  # fmt: skip
        """Tables of samples of labels, which must be numbered from 0 by decreasing size."""
        (n, width), success, failure = rows.shape, prior.a, prior.b
        parts = []
        for t, (labels, alpha) in enumerate(zip(samples, alphas)):
            k = int(labels.max(initial=-1)) + 1
            members = sparse.csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, k + 1)).T
            sizes = np.append(np.bincount(labels, minlength=k), 0)
            if n_components is None:
                weight = np.append(sizes[:k], alpha)
            else:
                weight = sizes + alpha / n_components
                weight[k] = (n_components - k) * alpha / n_components
            with np.errstate(divide="ignore"):  # no cluster may be empty
                log_weight = np.log(weight / (n + alpha))
            ones = sparse.csr_array(members @ rows.ones)
            unknown = None if rows.missing is None else sparse.csr_array(members @ rows.missing)
            parts.append((np.full(k + 1, t), sizes, log_weight, ones, unknown))
        sizes = np.concatenate([part[1] for part in parts])
        ones = sparse.csr_array(sparse.vstack([part[3] for part in parts]))
        ones.eliminate_zeros()
        ones.sort_indices()
        owner, column = (places.astype(np.int64) for places in ones.nonzero())
        count, unseen = ones.data, np.zeros(ones.nnz)
        if rows.missing is not None:
            unknown = sparse.csr_array(sparse.vstack([part[4] for part in parts]))
            unknown.sort_indices()
            here = owner * width + column
            there = np.repeat(np.arange(len(sizes)), np.diff(unknown.indptr)) * width + unknown.indices
            either = np.union1d(here, there)
            count, unseen = np.zeros(len(either)), np.zeros(len(either))
            count[np.searchsorted(either, here)] = ones.data
            unseen[np.searchsorted(either, there)] = unknown.data
            owner, column = np.divmod(either, width)
        known = sizes[owner] - unseen
        total = success + failure + known
        return cls(
            np.concatenate([part[0] for part in parts]),
            sizes.astype(np.int64),
            np.concatenate([part[2] for part in parts]),
            success / (success + failure + sizes),
            np.searchsorted(owner, np.arange(len(sizes) + 1)),
            column,
            (success + count) / total,
            (failure + known - count) / total,
            width,
        )

    @property
    def n_rows(self) -> int:
        """Number of clusters of all samples together."""
        return len(self.sizes)

    def matrix(self, values: Array) -> Any:
        """csr_array (n_rows, n_features) with values at the stored places."""
        return sparse.csr_array((values, self.indices, self.indptr), shape=(self.n_rows, self.n_features))

    def owners(self) -> Integers:
        """Cluster of each stored place."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.indptr))

    def of_sample(self, t: int) -> slice:
        """Rows of a sample."""
        first, last = np.searchsorted(self.sample, [t, t + 1])
        return slice(int(first), int(last))

    def probabilities(self, rows: slice) -> Array:
        """Probabilities of a one in some clusters, dense."""
        dense = np.repeat(self.background[rows, None], self.n_features, axis=1)
        first, last = self.indptr[rows.start], self.indptr[rows.stop]
        dense[self.owners()[first:last] - rows.start, self.indices[first:last]] = self.one[first:last]
        return dense

    def log_joint(self, ones: Any, zeros: Any) -> Array:
        """Logarithms of v_j p(known entries | cluster) (n, n_rows), given patterns of the ones and the zeros."""
        total = np.tile(self.log_weight, (ones.shape[0], 1))
        owner = self.owners()
        for known, background, values in ((ones, self.background, self.one), (zeros, 1 - self.background, self.zero)):
            if known.nnz == 0:
                continue
            logs = np.log(background)
            counted = np.diff(known.indptr)
            total += counted[:, None] * logs
            total += (known @ self.matrix(np.log(values) - logs[owner]).T).toarray()
        return total

    def log_joint_complete(self, rows: BinaryRows) -> Array:
        """The same for rows whose other entries, but for missing ones, are zeros: these are never listed."""
        owner = self.owners()
        empty = np.log(1 - self.background)
        away = self.matrix(np.log(self.zero) - empty[owner])
        total = self.log_weight + self.n_features * empty + away.sum(axis=1)
        total = np.tile(total, (rows.shape[0], 1))
        odds = np.log(self.background) - empty
        for known, background, values in (
            (rows.ones, odds, np.log(self.one) - np.log(self.zero)),
            (rows.missing, -empty, -np.log(self.zero)),
        ):
            if known is None or known.nnz == 0:
                continue
            total += np.diff(known.indptr)[:, None] * background
            total += (known @ self.matrix(values - background[owner]).T).toarray()
        return total

    def posterior(self, log_joint: Array, combine: str) -> Array:
        """Weights of all clusters: normalised over all samples together ("joint") or in each ("average")."""
        if combine == "joint":
            weights = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
            return np.asarray(weights / weights.sum(axis=1, keepdims=True))
        starts = np.flatnonzero(np.diff(self.sample, prepend=-1))
        largest = np.maximum.reduceat(log_joint, starts, axis=1)[:, self.sample]
        weights = np.exp(log_joint - largest)
        totals = np.add.reduceat(weights, starts, axis=1)
        return np.asarray(weights / (totals[:, self.sample] * len(starts)))

    def expected(self, weights: Array) -> Array:
        """Mean theta (n, n_features) under weights (n, n_rows)."""
        lift = self.matrix(self.one - self.background[self.owners()])
        return np.asarray((weights @ self.background)[:, None] + (lift.T @ weights.T).T)

    def _check_fitted_state(self) -> None:
        check_compressed("tables_", self.indptr, self.indices, self.n_rows, self.n_features)
        # The clusters of a sample follow each other, and so do the samples.
        if np.any(np.diff(self.sample, prepend=0) < 0) or np.any(np.diff(self.sample, prepend=0) > 1):
            raise ValueError("sample must count the samples one after the other")
