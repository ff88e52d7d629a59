"""What the compiled sweep of a Bernoulli mixture reads and changes: rows, counts of the clusters, tables, workspace."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.factors.binary_completion import BinaryRows
from pluri.priors.hyperpriors import Beta

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class ListedRows(NamedTuple):
    """Binary rows as the compiled loops read them.

    Attributes
    ----------
    indptr, indices : columns of the ones of each row; of all known entries if some are missing
    known : what the listed entries are (empty if all of them are ones)
    listed : whether zeros are listed too
    n_features, most : number of columns, and the largest number of ones in a column
    """

    indptr: Integers
    indices: NDArray[np.int32]
    known: NDArray[np.bool_]
    listed: bool
    n_features: int
    most: int

    @classmethod
    def of(cls, rows: BinaryRows) -> ListedRows:
        """List the entries of rows."""
        ones = rows.ones
        most = int(np.bincount(ones.indices, minlength=1).max()) if ones.nnz else 0
        if rows.missing is None:
            known, entries = np.empty(0, dtype=bool), ones
        else:
            entries = sparse.csr_array(ones + rows.zeros)
            entries.sort_indices()
            known = ones.toarray()[entries.nonzero()] > 0
        indptr, indices = entries.indptr.astype(np.int64), entries.indices.astype(np.int32)
        return cls(indptr, indices, known, rows.missing is not None, rows.shape[1], most)


class Counts(NamedTuple):
    """Members of the clusters and what they have: arrays that a sweep changes.

    Attributes
    ----------
    ones, zeros : (n_features, capacity); zeros are counted only where they are listed
    sizes : (capacity,) numbers of members
    histogram, top : number of columns by their count of ones, and the largest such count, of each cluster
    """

    ones: NDArray[np.int32]
    zeros: NDArray[np.int32]
    sizes: Integers
    histogram: NDArray[np.int32]
    top: Integers

    @classmethod
    def of(cls, rows: ListedRows, labels: Integers, capacity: int) -> Counts:
        """Count the rows that have a label."""
        from pluri.mixtures.bayesian_bernoulli._gibbs_kernels import count_rows

        width, listed = rows.n_features, rows.listed
        histogram = np.zeros((capacity, 1 if listed else rows.most + 1), dtype=np.int32)
        histogram[:, 0] = width
        counts = cls(
            np.zeros((width, capacity), dtype=np.int32),
            np.zeros((width if listed else 0, capacity), dtype=np.int32),
            np.zeros(capacity, dtype=np.int64),
            histogram,
            np.zeros(capacity, dtype=np.int64),
        )
        count_rows(rows, labels, counts)
        return counts


class Workspace(NamedTuple):
    """Room for a sweep: the weight of each cluster (see the compiled loops), two products and the score of a row."""

    log_weight: Array
    weight: Array
    without: Array
    above: Array
    below: Array
    scores: Array
    far: NDArray[np.int8]
    gauge: Array

    @classmethod
    def of(cls, capacity: int) -> Workspace:
        """For so many clusters."""
        log_weight, weight, without, above, below, scores = np.zeros((6, capacity))
        far, gauge = np.zeros(capacity, dtype=np.int8), np.zeros(2)
        return cls(log_weight, weight, without, above, below, scores, far, gauge)


class Tables(NamedTuple):
    """Logarithms of prior counts plus whole numbers: counts are integers, so that a sweep needs no others.

    `step` is how many factors can be multiplied by a weight before a double might overflow or underflow.
    """

    success: float
    failure: float
    step: int
    log_failure: Array
    log_total: Array
    rising_success: Array
    rising_failure: Array
    rising_total: Array

    @classmethod
    def of(cls, n_samples: int, prior: Beta) -> Tables:
        """Tables for clusters of up to `n_samples` rows."""
        from pluri.mixtures.bayesian_bernoulli._gibbs_kernels import ROOM, SPREAD

        success, failure = float(prior.a), float(prior.b)
        counts = np.arange(n_samples + 1.0)
        logs = [np.log(p + counts) for p in (failure, success + failure)]
        # Sums, not differences of gammaln: these lose all digits where a prior count is large.
        rising = [np.append(0.0, np.cumsum(np.log(p + counts[:-1]))) for p in (success, failure, success + failure)]
        factors = [success, failure, success + n_samples, failure + n_samples, success + failure + n_samples]
        ratios = [success / factors[4], failure / factors[4], factors[2] / failure]
        largest = max(abs(math.log(value)) for value in factors + ratios)
        step = max(1, int((ROOM - SPREAD) / max(largest, 1e-3)))
        return cls(success, failure, step, *logs, *rising)

    def log_prior(self, alpha: float, n_components: int | None) -> Array:
        """Log weight of a cluster by its size; that of size 0 is a new cluster if there is no limit."""
        counts = np.arange(float(len(self.log_failure)))
        if n_components is not None:
            return np.asarray(np.log(counts + alpha / n_components))
        return np.log(np.concatenate([[alpha], counts[1:]]))
