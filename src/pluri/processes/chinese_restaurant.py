"""Random partitions in which the rich get richer: the Chinese restaurant, and the urn that draws values.

Customer n + 1 sits down at table k with probability ``(n_k - d) / (alpha + n)`` and at a new one with probability
``(alpha + d K) / (alpha + n)``; d is the discount, 0 for the Dirichlet process, positive for Pitman and Yor. The
probability of a partition does not depend on the order of the customers:
``prod_{i<K} (alpha + i d) / prod_{i=1}^{n-1} (alpha + i)  prod_k Gamma(n_k - d) / Gamma(1 - d)``.

References
----------
Pitman (2006), Combinatorial Stochastic Processes, Springer. Blackwell and MacQueen (1973), Annals of Statistics 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, polygamma, psi

from pluri.processes.base_measure import base_log_density, draw_from_base
from pluri.processes.concentration import log_stirling
from pluri.validation import RandomState, as_generator, check_count, check_positive

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ChineseRestaurantProcess:
    """Chinese restaurant process, or its Pitman-Yor generalisation.

    Parameters
    ----------
    alpha : float
        Concentration, above ``-discount``.
    discount : float, default=0.0
        At least 0, below 1; positive gives numbers of tables that grow as a power of n.

    Examples
    --------
    >>> from pluri.processes import ChineseRestaurantProcess
    >>> restaurant = ChineseRestaurantProcess(1.0)
    >>> restaurant.expected_n_tables(100)
    5.1873775
    >>> restaurant.sample_partition(8, random_state=0)
    array([0, 1, 2, 3, 3, 0, 3, 1])
    """

    alpha: float
    discount: float = 0.0

    def __post_init__(self) -> None:
        if not (np.ndim(self.discount) == 0 and 0 <= self.discount < 1):
            raise ValueError(f"discount must be at least 0 and below 1, got {self.discount!r}")
        if self.discount == 0:
            check_positive(self.alpha, "alpha")
        elif not (np.ndim(self.alpha) == 0 and np.isfinite(self.alpha) and self.alpha > -self.discount):
            raise ValueError(f"alpha must be a number above -discount ({-self.discount}), got {self.alpha!r}")

    def predictive(self, sizes: ArrayLike) -> Array:
        """Where the next customer sits down: probabilities of the tables of given sizes, and last of a new one."""
        counts = np.asarray(sizes, dtype=np.float64)
        total = self.alpha + counts.sum()
        if not counts.size:
            return np.ones(1)
        return np.append(counts - self.discount, self.alpha + self.discount * len(counts)) / total

    def sample_partition(self, n: int, random_state: RandomState = None) -> Integers:
        """Seat n customers: the table of each, numbered in the order in which they were opened."""
        check_count(n, "n", 0)
        rng = as_generator(random_state)
        labels = np.zeros(n, dtype=np.int64)
        # Who copies an earlier customer, chosen at random, is at a table in proportion to its size: no search.
        coins, guides = rng.random(n), rng.random(n)
        sizes: list[int] = []
        for i in range(n):
            if coins[i] * (self.alpha + i) < self.alpha + self.discount * len(sizes) or not sizes:
                labels[i] = len(sizes)
                sizes.append(1)
                continue
            table = labels[int(guides[i] * i)]
            while self.discount > 0 and rng.random() * sizes[table] < self.discount:
                table = labels[rng.integers(i)]
            labels[i] = table
            sizes[table] += 1
        return labels

    def log_eppf(self, sizes: ArrayLike) -> float:
        """Log probability of one partition with blocks of the given sizes."""
        counts = np.asarray(sizes, dtype=np.float64)
        if counts.ndim != 1 or (counts < 1).any():
            raise ValueError(f"sizes must be one axis of numbers of at least 1, got {sizes!r}")
        if not counts.size:
            return 0.0
        opened = np.log(self.alpha + self.discount * np.arange(1, len(counts))).sum()
        seated = gammaln(self.alpha + counts.sum()) - gammaln(self.alpha + 1)
        return float(opened - seated + (gammaln(counts - self.discount) - gammaln(1 - self.discount)).sum())

    def logpmf(self, labels: ArrayLike) -> float:
        """Log probability of the partition that labels describe; their names do not matter."""
        values = np.asarray(labels)
        if values.ndim != 1:
            raise ValueError(f"labels must have one axis, got shape {values.shape}")
        return self.log_eppf(np.unique(values, return_counts=True)[1])

    def expected_n_tables(self, n: int) -> float:
        """Mean number of tables of n customers, exactly."""
        if check_count(n, "n", 0) == 0:
            return 0.0
        a, d = self.alpha, self.discount
        if d == 0:
            return float(a * (psi(a + n) - psi(a)))
        log_ratio = gammaln(a + d + n) - gammaln(a + n) + gammaln(a + 1) - gammaln(a + d)
        return float((np.exp(log_ratio) - a) / d)

    def variance_n_tables(self, n: int) -> float:
        """Variance of the number of tables of n customers, exactly."""
        if check_count(n, "n", 0) == 0:
            return 0.0
        a, d = self.alpha, self.discount
        if d == 0:
            return float(self.expected_n_tables(n) + a**2 * (polygamma(1, a + n) - polygamma(1, a)))
        # E (K + a/d)(K + a/d + 1) has a closed form.
        log_ratio = gammaln(a + 2 * d + n) - gammaln(a + n) + gammaln(a + 1) - gammaln(a + 2 * d)
        rising = (a + d) / d**2 * np.exp(log_ratio)
        shifted = self.expected_n_tables(n) + a / d
        return float(max(rising - shifted - shifted**2, 0.0))

    def pmf_n_tables(self, n: int) -> Array:
        """Probabilities of 0, 1, ..., n tables when n customers are seated."""
        if check_count(n, "n", 0) == 0:
            return np.ones(1)
        a, d = self.alpha, self.discount
        opened = np.concatenate([[0.0, 0.0], np.cumsum(np.log(a + d * np.arange(1, n)))])
        return np.asarray(np.exp(log_stirling(n, d) + opened - gammaln(a + n) + gammaln(a + 1)))


@dataclass(frozen=True)
class PolyaUrn:
    """Blackwell-MacQueen urn: draws from a Dirichlet process without the process.

    The next ball is a new colour from the base with probability ``alpha / (alpha + n)``, otherwise it copies an earlier
    one. The sequence is exchangeable, and its colours have the shares of a Dirichlet process in the long run.

    Parameters
    ----------
    alpha : float
        Concentration.
    base : object with ``rvs(size, random_state)``, or callable
        Where new colours come from: a `scipy.stats` distribution, or ``base(rng, n)`` giving n draws.

    Examples
    --------
    >>> from scipy import stats
    >>> from pluri.processes import PolyaUrn
    >>> balls = PolyaUrn(2.0, stats.norm()).sample(100, random_state=0)
    >>> len(set(balls)) < 30
    True
    """

    alpha: float
    base: Any

    def __post_init__(self) -> None:
        check_positive(self.alpha, "alpha")

    @property
    def partition(self) -> ChineseRestaurantProcess:
        """Distribution of which balls share a colour."""
        return ChineseRestaurantProcess(self.alpha)

    def sample(self, n_samples: int, random_state: RandomState = None) -> Array:
        """Draw balls: their colours, shape (n_samples,) or (n_samples, n_features)."""
        rng = as_generator(random_state)
        labels = self.partition.sample_partition(n_samples, rng)
        colours = draw_from_base(self.base, rng, int(labels.max()) + 1 if n_samples else 0)
        return colours[labels]

    def logpmf(self, balls: ArrayLike) -> float:
        """Log density of a sequence of colours: of its partition, and of each distinct colour under the base."""
        values = np.asarray(balls)
        distinct, counts = np.unique(values, axis=0, return_counts=True)
        return self.partition.log_eppf(counts) + float(np.sum(base_log_density(self.base, distinct)))
