"""Likelihoods whose parameters can be integrated out: counts and binary data.

The sufficient statistics of a cluster are one vector, the sum of those of its members, so that a point is added by
``+`` and removed by ``-`` and the statistics of several clusters are the rows of an array. Log densities are exact:
``log_marginal`` is that of all members, ``log_predictive`` that of one more. Gaussian data: `conjugate_gaussian`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln

from pluri.validation import Stored

Array = NDArray[np.float64]


class Conjugate(Protocol):
    """A likelihood with its conjugate prior."""

    @property
    def n_features(self) -> int:
        """Number of columns of the data."""

    def empty(self, n_clusters: int | None = None) -> Array:
        """Statistics of no data: (n_statistics,), or a row for each of several clusters."""

    def check(self, X: ArrayLike) -> Array:
        """Data as the likelihood wants it, (n_samples, n_features), or a ValueError."""

    def statistics(self, X: Array) -> Array:
        """Statistics of each row of data: (n_samples, n_statistics)."""

    def add(self, statistics: Array, x: Array) -> Array:
        """Statistics with one more row of data."""

    def remove(self, statistics: Array, x: Array) -> Array:
        """Statistics with one row of data less."""

    def log_marginal(self, statistics: Array) -> Array:
        """Log density of the data that `statistics`, shape (..., n_statistics), sum up."""

    def log_predictive(self, statistics: Array, x: Array) -> Array:
        """Log density of a row of data after those that `statistics`, shape (..., n_statistics), sum up."""

    def sample_posterior(self, rng: np.random.Generator, statistics: Array) -> Any:
        """Draw the parameters of one cluster from their posterior."""

    def sample_data(self, rng: np.random.Generator, parameters: Any, n: int) -> Array:
        """Draw n rows of data given parameters."""


class AdditiveStatistics:
    """What all conjugate likelihoods share: points come and go by addition and subtraction."""

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {"_alpha": Stored("n_features"), "_prior[]": Stored("n_features")}

    n_statistics: int

    def statistics(self, X: Array) -> Array:
        raise NotImplementedError  # abstract

    def empty(self, n_clusters: int | None = None) -> Array:
        """Statistics of no data: (n_statistics,), or a row for each of several clusters."""
        return np.zeros(self.n_statistics if n_clusters is None else (n_clusters, self.n_statistics))

    def add(self, statistics: Array, x: Array) -> Array:
        """Statistics with one more row of data."""
        return statistics + self.statistics(np.atleast_2d(x))[0]

    def remove(self, statistics: Array, x: Array) -> Array:
        """Statistics with one row of data less."""
        return statistics - self.statistics(np.atleast_2d(x))[0]


def check_columns(X: ArrayLike, n_features: int) -> Array:
    """Check a finite matrix with the right number of columns; a vector is one column."""
    data = np.asarray(X, dtype=np.float64)
    data = data[:, None] if data.ndim == 1 else data
    if data.ndim != 2 or data.shape[1] != n_features:
        raise ValueError(f"X must have shape (n_samples, {n_features}), got {np.shape(X)}")
    if not np.isfinite(data).all():
        raise ValueError("X must be finite, got NaN or infinity")
    return data


def as_positive(value: ArrayLike, n_features: int, name: str) -> Array:
    """A positive number for each column, of one number or of so many."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (n_features,)):
        raise ValueError(f"{name} must be a number or {n_features} numbers, got shape {array.shape}")
    if not (np.isfinite(array) & (array > 0)).all():
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return np.broadcast_to(array, (n_features,))


def _check_counts(X: ArrayLike, n_features: int, largest: float = np.inf) -> Array:
    data = check_columns(X, n_features)
    if ((data < 0) | (data > largest) | (data != np.rint(data))).any():
        raise ValueError(f"X must hold {'zeros and ones' if largest == 1 else 'counts'}, got other values")
    return data


@dataclass(frozen=True)
class DirichletMultinomial(AdditiveStatistics):
    """Counts of categories with a Dirichlet prior on their probabilities.

    Densities are those of the sequence of tokens that was counted, without the multinomial coefficient.

    Parameters
    ----------
    n_features : int
        Number of categories.
    concentration : float or array-like of shape (n_features,), default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import DirichletMultinomial
    >>> words = DirichletMultinomial(2)
    >>> float(np.exp(words.log_predictive(words.empty(), np.array([1, 0]))))
    0.5
    """

    n_features: int
    concentration: float | tuple[float, ...] = 1.0
    _alpha: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_alpha", as_positive(self.concentration, self.n_features, "concentration"))

    @property
    def n_statistics(self) -> int:  # type: ignore[override]
        """Length of the statistics: the counts."""
        return self.n_features

    def check(self, X: ArrayLike) -> Array:
        """Counts, (n_samples, n_features)."""
        return _check_counts(X, self.n_features)

    def statistics(self, X: Array) -> Array:
        """Counts themselves."""
        return np.asarray(X, dtype=np.float64)

    def log_marginal(self, statistics: Array) -> Array:
        """Log probability of the tokens."""
        a = self._alpha
        seen = (gammaln(a + statistics) - gammaln(a)).sum(axis=-1)
        return np.asarray(seen + gammaln(a.sum()) - gammaln(a.sum() + statistics.sum(axis=-1)))

    def log_predictive(self, statistics: Array, x: Array) -> Array:
        """Log probability of the tokens of one more row."""
        a = self._alpha
        used = np.flatnonzero(x)
        base = a[used] + statistics[..., used]
        total = a.sum() + statistics.sum(axis=-1)
        terms = (gammaln(base + x[used]) - gammaln(base)).sum(axis=-1)
        return np.asarray(terms + gammaln(total) - gammaln(total + x.sum()))

    def sample_posterior(self, rng: np.random.Generator, statistics: Array) -> Array:
        """Draw the probabilities of the categories."""
        return rng.dirichlet(self._alpha + statistics)

    def sample_data(self, rng: np.random.Generator, parameters: Array, n: int, n_tokens: int = 1) -> Array:
        """Draw n rows of `n_tokens` tokens each."""
        return rng.multinomial(n_tokens, parameters, size=n).astype(np.float64)


@dataclass(frozen=True)
class BetaBernoulli(AdditiveStatistics):
    """Independent binary columns with Beta(a, b) priors.

    Parameters
    ----------
    n_features : int
    a, b : float or array-like of shape (n_features,), default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import BetaBernoulli
    >>> coin = BetaBernoulli(1)
    >>> seen = coin.add(coin.empty(), np.array([1]))
    >>> float(np.exp(coin.log_predictive(seen, np.array([1]))))
    0.6666667
    """

    n_features: int
    a: float | tuple[float, ...] = 1.0
    b: float | tuple[float, ...] = 1.0
    _prior: tuple[Array, Array] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        prior = as_positive(self.a, self.n_features, "a"), as_positive(self.b, self.n_features, "b")
        object.__setattr__(self, "_prior", prior)

    @property
    def n_statistics(self) -> int:  # type: ignore[override]
        """Length of the statistics: the number of rows, and of ones in each column."""
        return self.n_features + 1

    def check(self, X: ArrayLike) -> Array:
        """Zeros and ones, (n_samples, n_features)."""
        return _check_counts(X, self.n_features, 1)

    def statistics(self, X: Array) -> Array:
        """One, and the row."""
        return np.column_stack([np.ones(len(X)), X])

    def _heads_and_tails(self, statistics: Array) -> tuple[Array, Array]:
        a, b = self._prior
        heads = statistics[..., 1:]
        return a + heads, b + statistics[..., :1] - heads

    def log_marginal(self, statistics: Array) -> Array:
        """Log probability of the rows."""
        a, b = self._prior
        return np.asarray((betaln(*self._heads_and_tails(statistics)) - betaln(a, b)).sum(axis=-1))

    def log_predictive(self, statistics: Array, x: Array) -> Array:
        """Log probability of one more row."""
        heads, tails = self._heads_and_tails(statistics)
        return np.asarray((np.log(np.where(x > 0, heads, tails)) - np.log(heads + tails)).sum(axis=-1))

    def sample_posterior(self, rng: np.random.Generator, statistics: Array) -> Array:
        """Draw the probabilities of a one."""
        return np.asarray(rng.beta(*self._heads_and_tails(statistics)))

    def sample_data(self, rng: np.random.Generator, parameters: Array, n: int) -> Array:
        """Draw n rows."""
        return (rng.random((n, self.n_features)) < parameters).astype(np.float64)


@dataclass(frozen=True)
class GammaPoisson(AdditiveStatistics):
    """Independent counts with Gamma(shape, rate) priors on their means.

    Parameters
    ----------
    n_features : int
    shape, rate : float or array-like of shape (n_features,), default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import GammaPoisson
    >>> arrivals = GammaPoisson(1)
    >>> float(np.exp(arrivals.log_predictive(arrivals.empty(), np.array([0]))))
    0.5
    """

    n_features: int
    shape: float | tuple[float, ...] = 1.0
    rate: float | tuple[float, ...] = 1.0
    _prior: tuple[Array, Array] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        prior = (
            as_positive(self.shape, self.n_features, "shape"),
            as_positive(self.rate, self.n_features, "rate"),
        )
        object.__setattr__(self, "_prior", prior)

    @property
    def n_statistics(self) -> int:  # type: ignore[override]
        """Length of the statistics: the number of rows, the sum of ``log x!``, and the sum of each column."""
        return self.n_features + 2

    def check(self, X: ArrayLike) -> Array:
        """Counts, (n_samples, n_features)."""
        return _check_counts(X, self.n_features)

    def statistics(self, X: Array) -> Array:
        """One, ``sum log x!``, and the row."""
        return np.column_stack([np.ones(len(X)), gammaln(np.asarray(X) + 1.0).sum(axis=1), X])

    def log_marginal(self, statistics: Array) -> Array:
        """Log probability of the rows."""
        shape, rate = self._prior
        n, factorials, total = statistics[..., :1], statistics[..., 1], statistics[..., 2:]
        terms = gammaln(shape + total) - gammaln(shape) + shape * np.log(rate) - (shape + total) * np.log(rate + n)
        return np.asarray(terms.sum(axis=-1) - factorials)

    def log_predictive(self, statistics: Array, x: Array) -> Array:
        """Log probability of one more row, which is negative binomial."""
        shape, rate = self._prior
        r, p = shape + statistics[..., 2:], rate + statistics[..., :1]
        terms = gammaln(r + x) - gammaln(r) - gammaln(x + 1.0) - r * np.log1p(1 / p) - x * np.log1p(p)
        return np.asarray(terms.sum(axis=-1))

    def sample_posterior(self, rng: np.random.Generator, statistics: Array) -> Array:
        """Draw the means."""
        shape, rate = self._prior
        return np.asarray(rng.gamma(shape + statistics[..., 2:]) / (rate + statistics[..., :1]))

    def sample_data(self, rng: np.random.Generator, parameters: Array, n: int) -> Array:
        """Draw n rows."""
        return rng.poisson(parameters, size=(n, self.n_features)).astype(np.float64)
