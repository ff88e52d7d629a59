r"""What a feature can be, given the class: Bernoulli, categorical or Gaussian, each with its conjugate prior.

A family counts (statistics add up over batches), estimates (maximum likelihood, posterior mode, or posterior mean and
exact predictive), and scores: log p(x_j | class), the log-likelihood of what was counted, the log prior density of the
estimates, and the log evidence with all parameters integrated out.

    Bernoulli    theta ~ Beta(b1, b0)        mode (N_1 + b1 - 1) / (N + b1 + b0 - 2), mean (N_1 + b1) / (N + b1 + b0)
    categorical  theta ~ Dirichlet(e, .., e) mode (N_k + e - 1) / (N + K e - K),      mean (N_k + e) / (N + K e)
    Gaussian     Normal-Gamma                mode of mean and precision jointly,      Student-t predictive
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import betaln, gammaln, xlog1py, xlogy

from pluri.priors import Beta

Array = NDArray[np.float64]
Inference = Literal["ml", "map", "bayes"]
#: Rows that are made dense at a time.
ROWS = 4096
#: Larger codes of categories are numbers of another kind: a table of all codes below them would not fit in memory.
LARGEST_CODE = 10_000_000


def product(left: Any, right: Array) -> Array:
    """Matrix product of a dense or sparse array and a dense one, as a dense array."""
    return np.asarray(left @ right)


def modes(counts: Array, prior: Array, name: str, inference: Inference) -> Array:
    """Probabilities along the last axis from counts (..., K) and Dirichlet concentrations that broadcast to them."""
    pseudo = {"ml": np.zeros(1), "map": prior - 1.0, "bayes": prior}[inference]
    mass = counts + pseudo
    if (mass < 0).any():
        raise ValueError(
            f"{name} below 1 leaves no posterior mode where nothing was counted; use inference='bayes', got {name} "
            f"{float(np.min(prior))}"
        )
    total = mass.sum(axis=-1, keepdims=True)
    # Nothing counted and a flat prior: every value is a mode, and the middle one is as good as any.
    return np.where(total > 0, mass / np.where(total > 0, total, 1.0), 1.0 / counts.shape[-1])


def log_dirichlet(probabilities: Array, prior: Array) -> float:
    """Log density of Dirichlet distributions with the same concentrations, summed; 0 * log 0 is 0."""
    prior = np.broadcast_to(prior, probabilities.shape)
    normalizers = gammaln(prior.sum(axis=-1)) - gammaln(prior).sum(axis=-1)
    return float(normalizers.sum() + xlogy(prior - 1.0, probabilities).sum())


def log_dirichlet_evidence(counts: Array, prior: Array) -> float:
    """Log probability of categorical draws with these counts, in their order, with the probabilities integrated out."""
    prior = np.broadcast_to(prior, counts.shape)
    terms = gammaln(counts + prior) - gammaln(prior)
    totals = gammaln(prior.sum(axis=-1)) - gammaln((counts + prior).sum(axis=-1))
    return float(terms.sum() + totals.sum())


# Bernoulli ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BernoulliStatistics:
    """ones (C, d): weight of ones; total (C,): weight of rows."""

    ones: Array
    total: Array

    def __add__(self, other: BernoulliStatistics) -> BernoulliStatistics:
        return BernoulliStatistics(self.ones + other.ones, self.total + other.total)


@dataclass(frozen=True)
class BernoulliFeatures:
    """Columns of zeros and ones: `prior` is Beta(b1, b0); a one is above `threshold` (None: values are 0 and 1)."""

    prior: Beta = Beta(2.0, 2.0)
    threshold: float | None = 0.0

    def prepare(self, X: Any) -> Any:
        """Zeros and ones; a sparse matrix stays sparse."""
        if sparse.issparse(X):
            if self.threshold is None:
                values = X.data
            elif self.threshold < 0:
                return self.prepare(X.toarray())
            else:
                return (self.threshold < X).astype(np.float64)
        elif self.threshold is not None:
            return (self.threshold < X).astype(np.float64)
        else:
            values = X
        if not np.isin(values, (0.0, 1.0)).all():
            raise ValueError("X must hold zeros and ones in Bernoulli columns with binarize=None, got other values")
        return X

    def count(self, X: Any, membership: Array) -> BernoulliStatistics:
        return BernoulliStatistics(product(X.T, membership).T, membership.sum(axis=0))

    def estimate(self, stats: BernoulliStatistics, inference: Inference) -> Array:
        """P(x = 1 | class), (C, d)."""
        prior = np.array([self.prior.a, self.prior.b])
        return modes(self._pairs(stats), prior, "probabilities_prior", inference)[..., 0]

    def log_likelihood(self, theta: Array, X: Any) -> Array:
        """Log p(x | class) of all columns together, (n, C)."""
        certain = (theta == 0) | (theta == 1)
        safe = np.where(certain, 0.5, theta)
        log_one = np.where(certain, 0.0, np.log(safe))
        log_zero = np.where(certain, 0.0, np.log1p(-safe))
        joint = product(X, (log_one - log_zero).T) + log_zero.sum(axis=1)
        if certain.any():
            never, always = (theta == 0).astype(np.float64), (theta == 1).astype(np.float64)
            broken = product(X, (never - always).T) + always.sum(axis=1)
            joint[broken > 0.5] = -np.inf
        return joint

    def contributions(self, theta: Array, X: Any) -> Array:
        """Log p(x_j | class) of each column, (n, C, d)."""
        values = dense(X)[:, None, :]
        return xlogy(values, theta) + xlog1py(1.0 - values, -theta)

    def log_score(self, stats: BernoulliStatistics, theta: Array) -> float:
        """Log-likelihood of everything counted."""
        return float((xlogy(stats.ones, theta) + xlog1py(stats.total[:, None] - stats.ones, -theta)).sum())

    def log_prior(self, theta: Array, stats: BernoulliStatistics) -> float:
        return log_dirichlet(np.stack([theta, 1.0 - theta], axis=-1), np.array([self.prior.a, self.prior.b]))

    def log_evidence(self, stats: BernoulliStatistics) -> float:
        b1, b0 = self.prior.a, self.prior.b
        zeros = stats.total[:, None] - stats.ones
        return float((betaln(stats.ones + b1, zeros + b0) - betaln(b1, b0)).sum())

    @staticmethod
    def _pairs(stats: BernoulliStatistics) -> Array:
        return np.stack([stats.ones, stats.total[:, None] - stats.ones], axis=-1)


# Categorical --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CategoricalStatistics:
    """counts: for each column (C, K_j), the weight of every value in every class."""

    counts: tuple[Array, ...]

    def __add__(self, other: CategoricalStatistics) -> CategoricalStatistics:
        return CategoricalStatistics(tuple(_widened_sum(a, b) for a, b in zip(self.counts, other.counts)))


def _widened_sum(left: Array, right: Array) -> Array:
    """Sum of counts of which one may know more values than the other."""
    total = np.zeros((len(left), max(left.shape[1], right.shape[1])))
    total[:, : left.shape[1]] += left
    total[:, : right.shape[1]] += right
    return total


@dataclass(frozen=True)
class CategoricalFeatures:
    """Columns of codes 0, 1, ..., K - 1: `prior` is the Dirichlet concentration, `n_categories` K if it is known."""

    prior: float = 2.0
    n_categories: int | None = None

    def prepare(self, X: Any) -> Array:
        values = dense(X)
        if values.size and (not (values == np.floor(values)).all() or values.min() < 0):
            raise ValueError("X must hold whole numbers from 0 on in categorical columns, got other values")
        if values.size and values.max() > LARGEST_CODE:
            raise ValueError(
                f"X must hold codes of at most {LARGEST_CODE} in categorical columns, got {values.max():g}: number the "
                "categories from 0 on"
            )
        if self.n_categories is not None and values.size and values.max() >= self.n_categories:
            raise ValueError(f"X must hold codes below n_categories ({self.n_categories}), got {int(values.max())}")
        return values

    def count(self, X: Array, membership: Array) -> CategoricalStatistics:
        counts: list[Array] = []
        for column in X.T.astype(np.int64):
            size = self.n_categories or int(column.max(initial=0)) + 1
            rows = [np.bincount(column, weight, minlength=size) for weight in membership.T]
            counts.append(np.array(rows, dtype=np.float64))
        return CategoricalStatistics(tuple(counts))

    def estimate(self, stats: CategoricalStatistics, inference: Inference) -> list[Array]:
        """P(value | class) of each column, (C, K_j)."""
        return [
            modes(counts, np.full(counts.shape[1], self.prior), "category_prior", inference) for counts in stats.counts
        ]

    def log_likelihood(self, tables: list[Array], X: Array) -> Array:
        return self.contributions(tables, X).sum(axis=2)

    def contributions(self, tables: list[Array], X: Array) -> Array:
        parts = []
        for number, (table, column) in enumerate(zip(tables, X.T.astype(np.int64))):
            if column.size and column.max() >= table.shape[1]:
                raise ValueError(
                    f"X must hold codes below {table.shape[1]} in categorical column {number}, as in fit, got "
                    f"{column.max()}; set n_categories"
                )
            with np.errstate(divide="ignore"):
                parts.append(np.log(table)[:, column].T)
        return np.stack(parts, axis=2)

    def log_score(self, stats: CategoricalStatistics, tables: list[Array]) -> float:
        return float(sum(xlogy(counts, table).sum() for counts, table in zip(stats.counts, tables)))

    def log_prior(self, tables: list[Array], stats: CategoricalStatistics) -> float:
        return sum(log_dirichlet(table, np.array(self.prior)) for table in tables)

    def log_evidence(self, stats: CategoricalStatistics) -> float:
        return sum(log_dirichlet_evidence(counts, np.array(self.prior)) for counts in stats.counts)


def dense(X: Any) -> Array:
    """An array, whether X is sparse or not."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
