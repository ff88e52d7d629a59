"""Learning the parameters of Dirichlet priors from counts.

Rows of counts ``n_d`` of length K, each drawn given its own probabilities ``theta_d ~ Dirichlet(a)``, have

    log p(n | a) = sum_d [lgamma(A) - lgamma(n_d + A)] + sum_dk [lgamma(n_dk + a_k) - lgamma(a_k)],  A = sum_k a_k

up to a constant. Counts are few different numbers, so that only how often each occurs is kept (`CountTable`): a step
costs as much as there are different counts, not documents. `fixed_point` is Minka's iteration [1]_

    a_k  <-  a_k sum_d [psi(n_dk + a_k) - psi(a_k)] / sum_d [psi(n_d + A) - psi(A)].

References
----------
.. [1] Minka, T. P. (2000). Estimating a Dirichlet distribution. Technical report, MIT.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from pluri.optimize.fixed_point import iterate
from pluri.validation import Number, check_value

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Learned parameters stay above this: a topic that nobody uses would get zero and never come back.
SMALLEST = 1e-6


@dataclass(frozen=True, eq=False)
class CountTable:
    """How often each count occurs.

    Attributes
    ----------
    columns, counts, times : arrays of shape (n_entries,)
        `times` rows have the count `counts` > 0 in column `columns`.
    totals, total_times : arrays
        Row sums, and how many rows have them.
    n_columns : int
        Of all groups together.
    groups : array of int
        Group of each of `totals`; the columns of a group stand together.
    n_groups : int, default=1
    """

    columns: Integers
    counts: Integers
    times: Array
    totals: Integers
    total_times: Array
    n_columns: int
    groups: Integers
    n_groups: int = 1

    @classmethod
    def of(
        cls,
        columns: NDArray[Any],
        counts: NDArray[Any],
        totals: NDArray[Any],
        n_columns: int,
        *,
        tied: bool = False,
        groups: NDArray[Any] | None = None,
        n_groups: int = 1,
    ) -> CountTable:
        """Table of positive counts (in these columns) of rows with these sums.

        With `tied`, columns are not told apart: enough for a symmetric prior. With `groups`, one for each row, columns
        are those of several priors, one after another, and a row is a draw from one of them.
        """
        largest = int(counts.max(initial=0)) + 1
        keys = counts.astype(np.int64) if tied else columns.astype(np.int64) * largest + counts
        n_keys = largest if tied else n_columns * largest
        # A histogram is faster than sorting if it is not much longer than the data.
        if n_keys <= 4 * keys.size + 100_000:
            histogram = np.bincount(keys, minlength=n_keys)
            found = np.flatnonzero(histogram)
            times = histogram[found]
        else:
            found, times = np.unique(keys, return_counts=True)
        seen = totals > 0
        lengths = totals[seen].astype(np.int64)
        longest = int(lengths.max(initial=0)) + 1
        keys = lengths if groups is None else groups[seen].astype(np.int64) * longest + lengths
        sums, sum_times = np.unique(keys, return_counts=True)
        return cls(
            found // largest, found % largest, times.astype(np.float64), sums % longest, sum_times.astype(np.float64),
            n_columns, sums // longest, n_groups,
        )  # fmt: skip

    def prior_totals(self, prior: Array) -> Array:
        """Sum of the parameters of each group."""
        return np.asarray(prior.reshape(self.n_groups, -1).sum(axis=1))

    def log_likelihood(self, prior: Array) -> float:
        """Log p(counts | prior), up to a constant."""
        total, own = self.prior_totals(prior)[self.groups], prior[self.columns]
        rows = self.total_times @ (gammaln(total) - gammaln(self.totals + total))
        return float(rows + self.times @ (gammaln(self.counts + own) - gammaln(own)))


def fixed_point(
    prior: Array,
    table: CountTable,
    *,
    symmetric: bool = False,
    shape: float = 1.0,
    rate: float = 0.0,
    max_iter: int = 100,
    tol: float = 1e-4,
    smallest: float = SMALLEST,
) -> Array:
    """Likeliest parameters of a Dirichlet prior by Minka's iteration; the likelihood never falls.

    Parameters
    ----------
    prior : array of shape (n_columns,)
        Where to begin.
    table : CountTable
    symmetric : bool, default=False
        Keep all parameters equal.
    shape, rate : float, default=1.0 and 0.0
        Of the gamma distribution of each parameter (of the common one if symmetric), at least 1 and 0: the maximum of
        the posterior density. Flat by default.
    max_iter : int, default=100
    tol : float, default=1e-4
        Stop when no parameter changes by a larger part of itself.
    smallest : float, default=1e-6
        Parameters are not below this.

    Returns
    -------
    array of shape (n_columns,)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.dirichlet_counts import CountTable, fixed_point
    >>> rng = np.random.default_rng(0)
    >>> rows = np.array([rng.multinomial(50, rng.dirichlet([0.5, 2.0])) for _ in range(2000)])
    >>> _, columns = rows.nonzero()
    >>> table = CountTable.of(columns, rows[rows > 0], rows.sum(axis=1), 2)
    >>> fixed_point(np.ones(2), table).round(1)
    array([0.5, 2. ])
    """
    check_value(shape, "shape", Number(least=1))
    check_value(rate, "rate", Number(least=0))
    prior = np.array(prior, dtype=np.float64)
    if table.totals.size == 0:
        return prior

    def step(prior: Array) -> tuple[Array, float]:
        own, total = prior[table.columns], table.prior_totals(prior)[table.groups]
        terms = table.times * (digamma(table.counts + own) - digamma(own))
        grown = prior * np.bincount(table.columns, terms, minlength=table.n_columns)
        terms = table.total_times * (digamma(table.totals + total) - digamma(total))
        if symmetric:
            new = np.full_like(prior, (shape - 1.0 + grown.sum()) / (rate + table.n_columns * terms.sum()))
        else:
            shrunk = np.repeat(np.bincount(table.groups, terms, minlength=table.n_groups), prior.size // table.n_groups)
            with np.errstate(divide="ignore", invalid="ignore"):  # groups without rows stay as they are
                new = np.where(shrunk > 0, (shape - 1.0 + grown) / (rate + shrunk), prior)
        new = np.maximum(new, smallest)
        return new, float(np.abs(new / prior - 1.0).max())

    return iterate(step, prior, max_iter=max_iter, tol=tol).state
