"""Learning the parameters of Dirichlet priors from counts.

Rows of counts ``n_d`` of length K, each drawn given its own probabilities ``theta_d ~ Dirichlet(a)``, have

    log p(n | a) = sum_d [lgamma(A) - lgamma(n_d + A)] + sum_dk [lgamma(n_dk + a_k) - lgamma(a_k)],  A = sum_k a_k

up to a constant. Counts are few different numbers, so that only how often each occurs is kept (`CountTable`): a step
costs as much as there are different counts, not documents. `fixed_point` is Minka's iteration [1]_, `slice_priors`
samples instead, and `newton_step` is for models that know ``E log theta`` instead of counts [2]_.

References
----------
.. [1] Minka, T. P. (2000). Estimating a Dirichlet distribution. Technical report, MIT.
.. [2] Blei, D. M., Ng, A. Y. and Jordan, M. I. (2003). Latent Dirichlet allocation. JMLR 3, 993-1022 (appendix A).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

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
    """

    columns: Integers
    counts: Integers
    times: Array
    totals: Integers
    total_times: Array
    n_columns: int

    @classmethod
    def of(
        cls, columns: NDArray[Any], counts: NDArray[Any], totals: NDArray[Any], n_columns: int, *, tied: bool = False
    ) -> CountTable:
        """Table of positive counts (in these columns) of rows with these sums.

        With `tied`, columns are not told apart: enough for a symmetric prior.
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
        sums, sum_times = np.unique(totals[totals > 0].astype(np.int64), return_counts=True)
        return cls(
            found // largest, found % largest, times.astype(np.float64), sums, sum_times.astype(np.float64), n_columns
        )

    def log_likelihood(self, prior: Array) -> float:
        """Log p(counts | prior), up to a constant."""
        total, own = float(prior.sum()), prior[self.columns]
        rows = self.total_times @ (gammaln(total) - gammaln(self.totals + total))
        return float(rows + self.times @ (gammaln(self.counts + own) - gammaln(own)))


def fixed_point(
    prior: Array,
    table: CountTable,
    *,
    symmetric: bool = False,
    gamma_prior: tuple[float, float] | None = None,
    max_iter: int = 100,
    tol: float = 1e-4,
) -> Array:
    """Likeliest parameters of a Dirichlet prior by Minka's iteration; the likelihood never falls.

    Parameters
    ----------
    prior : array of shape (n_columns,)
        Where to begin.
    table : CountTable
    symmetric : bool, default=False
        Keep all parameters equal.
    gamma_prior : (shape, rate), optional
        Gamma distribution of each parameter (of the common one if symmetric), shape at least 1: the maximum of the
        posterior density.
    max_iter : int, default=100
    tol : float, default=1e-4
        Stop when no parameter changes by a larger part of itself.

    Returns
    -------
    array of shape (n_columns,)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.lda.priors_learning import CountTable, fixed_point
    >>> rng = np.random.default_rng(0)
    >>> rows = np.array([rng.multinomial(50, rng.dirichlet([0.5, 2.0])) for _ in range(2000)])
    >>> _, columns = rows.nonzero()
    >>> table = CountTable.of(columns, rows[rows > 0], rows.sum(axis=1), 2)
    >>> fixed_point(np.ones(2), table).round(1)
    array([0.5, 2. ])
    """
    shape, rate = _checked_gamma(gamma_prior)
    prior = np.array(prior, dtype=np.float64)
    if table.totals.size == 0:
        return prior
    for _ in range(max_iter):
        own, total = prior[table.columns], float(prior.sum())
        terms = table.times * (digamma(table.counts + own) - digamma(own))
        grown = prior * np.bincount(table.columns, terms, minlength=table.n_columns)
        shrunk = float(table.total_times @ (digamma(table.totals + total) - digamma(total)))
        if symmetric:
            new = np.full_like(prior, (shape - 1.0 + grown.sum()) / (rate + table.n_columns * shrunk))
        else:
            new = (shape - 1.0 + grown) / (rate + shrunk)
        new = np.maximum(new, SMALLEST)
        change = float(np.abs(new / prior - 1.0).max())
        prior = new
        if change < tol:
            break
    return prior


def slice_priors(
    rng: np.random.Generator,
    prior: Array,
    table: CountTable,
    *,
    symmetric: bool = False,
    gamma_prior: tuple[float, float] | None = None,
) -> Array:
    """Draw the parameters of a Dirichlet prior given counts, one after another, by slice sampling of their logarithms.

    Parameters
    ----------
    rng : Generator
    prior : array of shape (n_columns,)
        Present values.
    table, symmetric, gamma_prior
        As in :func:`fixed_point`; the gamma distribution is Gamma(1, 1) by default.

    Returns
    -------
    array of shape (n_columns,)
        The next state of a Markov chain that has the posterior as its stationary distribution.
    """
    from pluri.inference.mcmc.slice_sampling import Slice

    shape, rate = _checked_gamma((1.0, 1.0) if gamma_prior is None else gamma_prior)
    prior = np.array(prior, dtype=np.float64)
    order = np.argsort(table.columns, kind="stable")
    starts = np.searchsorted(table.columns[order], np.arange(table.n_columns + 1))

    def moved(value: float, others: float, scale: float, counts: Integers, times: Array) -> float:
        def log_density(x: Array) -> float:
            a = math.exp(x[0])
            total = others + scale * a
            rows = table.total_times @ (gammaln(total) - gammaln(table.totals + total))
            return float(rows + times @ (gammaln(counts + a) - gammaln(a)) + shape * x[0] - rate * a)

        kernel = Slice(log_density, width=1.0)
        state, _ = kernel.step(rng, kernel.init(rng, np.array([math.log(value)])))
        return max(math.exp(float(state.position[0])), 1e-300)

    if symmetric:
        prior[:] = moved(float(prior[0]), 0.0, table.n_columns, table.counts, table.times)
        return prior
    for k in range(table.n_columns):
        mine = order[starts[k] : starts[k + 1]]
        others = float(prior[:k].sum() + prior[k + 1 :].sum())
        prior[k] = moved(float(prior[k]), others, 1.0, table.counts[mine], table.times[mine])
    return prior


def newton_step(prior: Array, mean_log: Array, n_rows: float) -> Array:
    """One Newton step, in time linear in K, towards the likeliest Dirichlet parameters given mean log probabilities.

    Parameters
    ----------
    prior : array of shape (n_columns,)
        Present values.
    mean_log : array of shape (n_columns,)
        Mean of ``E log theta_dk`` over rows.
    n_rows : float
        Number of rows.

    Returns
    -------
    array of shape (n_columns,)
        With the objective not below that of `prior`: the step is halved until then.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.lda.priors_learning import newton_step
    >>> theta = np.random.default_rng(0).dirichlet([0.5, 2.0], size=4000)
    >>> prior = np.ones(2)
    >>> for _ in range(10):
    ...     prior = newton_step(prior, np.log(theta).mean(axis=0), 4000)
    >>> prior.round(1)
    array([0.5, 2. ])
    """
    prior, total = np.asarray(prior, dtype=np.float64), float(np.sum(prior))

    def objective(values: Array) -> float:
        whole = float(values.sum())
        return float(gammaln(whole) - gammaln(values).sum() + (values - 1.0) @ mean_log)

    gradient = n_rows * (digamma(total) - digamma(prior) + mean_log)
    curvature = -n_rows * polygamma(1, prior)
    common = n_rows * float(polygamma(1, total))
    offset = (gradient / curvature).sum() / (1.0 / common + (1.0 / curvature).sum())
    direction = (gradient - offset) / curvature
    before, size = objective(prior), 1.0
    for _ in range(50):
        new = prior - size * direction
        if (new > SMALLEST).all() and objective(new) >= before:
            return np.asarray(new)
        size *= 0.5
    return prior


def _checked_gamma(gamma_prior: tuple[float, float] | None) -> tuple[float, float]:
    if gamma_prior is None:
        return 1.0, 0.0
    shape, rate = gamma_prior
    if not (shape >= 1.0 and rate >= 0.0 and math.isfinite(shape) and math.isfinite(rate)):
        raise ValueError(f"gamma_prior must be (shape of at least 1, rate of at least 0), got {gamma_prior!r}")
    return float(shape), float(rate)
