r"""The generalized count distribution, a family that holds Poisson and all that vary less or more than it.

    p(k) = exp(theta k + g(k)) / (k! M(theta, g)),    k = 0, ..., K,    g(0) = 0

d log M / d theta is the mean and the second derivative the variance, so that the mean rises with theta. A linear g is
Poisson, a concave one has less variance than mean, a convex one more. g = -inf takes a count out of the support.

References
----------
Gao, Buesing, Shenoy and Cunningham (2015), High-dimensional neural spike train analysis with generalized count linear
dynamical systems, NeurIPS. Its table lacks the constant -log Gamma(r) of the negative binomial, without which g(0) is
not 0, and its sum for the COM-Poisson distribution has to begin at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from pluri.validation import Number, RandomState, Whole, as_generator, check_count, check_value

Array = NDArray[np.float64]

#: Terms that are this much smaller than the largest one end a series.
NEGLIGIBLE = np.log(1e-16)
#: Largest count that a series is followed to.
MOST_TERMS = 200_000


class GeneralizedCount:
    """Generalized count distribution on 0, ..., K.

    Parameters
    ----------
    theta : float or array
        Natural parameter; an array stands for as many distributions with one shape `g`.
    g : array of shape (K + 1,), or callable
        Shape, with ``g[0] == 0``; -inf where a count is impossible. A function of an array of counts has no largest
        count: it is cut off where the terms fall below 1e-16 of the largest, and refused if they do not.
    max_count : int, optional
        Largest count K of a function `g`, in place of the cut.

    Attributes
    ----------
    theta : array
    g : array of shape (K + 1,)
    max_count : int
        K.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.dynamics import GeneralizedCount
    >>> k = np.arange(40)
    >>> narrow = GeneralizedCount(1.0, -0.05 * k * (k - 1))  # concave: less variance than mean
    >>> round(float(narrow.mean()), 4), round(float(narrow.var()), 4)
    (2.2007, 1.8147)
    >>> GeneralizedCount.from_poisson(2.0).pmf([0, 1, 2]).round(4)
    array([0.1353, 0.2707, 0.2707])
    """

    theta: Array
    g: Array
    max_count: int

    def __init__(self, theta: ArrayLike, g: ArrayLike | Callable[[Any], Any], max_count: int | None = None) -> None:
        self.theta = np.asarray(theta, dtype=np.float64)
        if not np.isfinite(self.theta).all():
            raise ValueError("theta must be finite, got NaN or infinity")
        if callable(g):
            self.g = _cut_off(g, float(self.theta.max(initial=-np.inf)), max_count)
        else:
            if max_count is not None:
                raise ValueError("max_count must be None when g is an array, which has a largest count already")
            self.g = np.array(g, dtype=np.float64)
        _check_shape(self.g)
        self.max_count = len(self.g) - 1

    # Special cases ----------------------------------------------------------------------------------------------

    @classmethod
    def from_poisson(cls, rate: float, max_count: int | None = None) -> Self:
        """Poisson distribution of a positive mean; cut off at `max_count` if that is given."""
        check_value(rate, "rate", Number(above=0))
        return cls(np.log(rate), np.zeros_like, _count_or_none(max_count))

    @classmethod
    def from_bernoulli(cls, probability: float) -> Self:
        """One with this probability, zero otherwise."""
        check_value(probability, "probability", Number(above=0, below=1))
        return cls(np.log(probability) - np.log1p(-probability), [0.0, 0.0])

    @classmethod
    def from_negative_binomial(cls, shape: float, probability: float, max_count: int | None = None) -> Self:
        """Negative binomial: p(k) proportional to Gamma(k + shape) / k! probability^k.

        The mean is shape * probability / (1 - probability): `probability` is that of one more event, which
        ``scipy.stats.nbinom`` calls 1 - p.
        """
        check_value(shape, "shape", Number(above=0))
        check_value(probability, "probability", Number(above=0, below=1))

        def g(k: Array) -> Array:
            return np.asarray(gammaln(k + shape) - gammaln(shape))

        return cls(np.log(probability), g, _count_or_none(max_count))

    @classmethod
    def from_com_poisson(cls, rate: float, exponent: float, max_count: int | None = None) -> Self:
        """Conway-Maxwell-Poisson: p(k) proportional to rate^k / (k!)^exponent.

        An exponent of 1 is Poisson, 0 geometric (for a rate below 1), infinitely large Bernoulli.
        """
        check_value(rate, "rate", Number(above=0))
        check_value(exponent, "exponent", Number(least=0))
        if exponent == 0 and rate >= 1 and max_count is None:
            raise ValueError(f"rate must be below 1 when exponent is 0, where the series diverges, got {rate}")
        return cls(np.log(rate), lambda k: (1.0 - exponent) * gammaln(k + 1.0), _count_or_none(max_count))

    # Questions --------------------------------------------------------------------------------------------------

    def _log_table(self) -> Array:
        """Log probabilities of all counts: theta's shape and an axis of counts."""
        k = np.arange(self.max_count + 1)
        scores = self.theta[..., None] * k + (self.g - gammaln(k + 1.0))
        return np.asarray(scores - logsumexp(scores, axis=-1, keepdims=True))

    def log_normalizer(self) -> Array:
        """Log M(theta, g), of theta's shape."""
        k = np.arange(self.max_count + 1)
        return np.asarray(logsumexp(self.theta[..., None] * k + (self.g - gammaln(k + 1.0)), axis=-1))

    def logpmf(self, k: ArrayLike) -> Array:
        """Log probability of counts, which are broadcast against theta; -inf for what is no count of the support."""
        counts, theta = np.broadcast_arrays(np.asarray(k, dtype=np.float64), self.theta)
        possible = (counts >= 0) & (counts <= self.max_count) & (counts == np.floor(counts))
        whole = np.where(possible, counts, 0).astype(np.int64)
        values = (
            theta * whole + self.g[whole] - gammaln(whole + 1.0) - np.broadcast_to(self.log_normalizer(), theta.shape)
        )
        return np.asarray(np.where(possible, values, -np.inf))

    def pmf(self, k: ArrayLike) -> Array:
        """Probability of counts, which are broadcast against theta."""
        return np.exp(self.logpmf(k))

    def probabilities(self) -> Array:
        """Probabilities of 0, ..., K: theta's shape and an axis of counts."""
        return np.exp(self._log_table())

    def mean(self) -> Array:
        """Mean, of theta's shape."""
        return np.asarray(self.probabilities() @ np.arange(self.max_count + 1.0))

    def var(self) -> Array:
        """Variance, of theta's shape."""
        p, k = self.probabilities(), np.arange(self.max_count + 1.0)
        return np.asarray((p * (k - (p @ k)[..., None]) ** 2).sum(axis=-1))

    def cdf(self, k: ArrayLike) -> Array:
        """Probability of at most k, which is broadcast against theta."""
        counts, _ = np.broadcast_arrays(np.floor(np.asarray(k, dtype=np.float64)), self.theta)
        sums = np.broadcast_to(self._cumulated(), (*counts.shape, self.max_count + 1))
        whole = np.clip(counts, 0, self.max_count).astype(np.int64)
        found = np.take_along_axis(sums, whole[..., None], axis=-1)[..., 0]
        return np.where(counts < 0, 0.0, found)

    def ppf(self, q: ArrayLike) -> NDArray[np.int64]:
        """Smallest count of the support whose cumulated probability is at least q, which is broadcast against theta."""
        share = np.asarray(q, dtype=np.float64)
        if not ((share >= 0) & (share <= 1)).all():
            raise ValueError(f"q must be between 0 and 1, got {q!r}")
        share, _ = np.broadcast_arrays(share, self.theta)
        sums = np.broadcast_to(self._cumulated(), (*share.shape, self.max_count + 1))
        # Rounding: a cumulated probability that equals q in exact arithmetic should count as at least q.
        return np.asarray((sums < share[..., None] * (1 - 1e-14)).sum(axis=-1), dtype=np.int64)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> NDArray[np.int64]:
        """Draw counts by inversion: `n_samples` arrays, each of the shape of `theta`."""
        check_count(n_samples, "n_samples")
        rng = as_generator(random_state)
        return draw_counts(self._cumulated(), rng.random((n_samples, *self.theta.shape)))

    def _cumulated(self) -> Array:
        sums = np.cumsum(self.probabilities(), axis=-1)
        sums[..., int(np.flatnonzero(np.isfinite(self.g))[-1]) :] = 1.0
        return sums

    def __repr__(self) -> str:
        theta = f"{float(self.theta):g}" if self.theta.ndim == 0 else f"array of shape {self.theta.shape}"
        return f"GeneralizedCount(theta={theta}, max_count={self.max_count})"


def draw_counts(cumulated: Array, uniform: Array) -> NDArray[np.int64]:
    """Counts by inversion of cumulated probabilities, which may have fewer leading axes than `uniform`."""
    return np.asarray((uniform[..., None] >= cumulated).sum(axis=-1), dtype=np.int64)


def _count_or_none(max_count: int | None) -> int | None:
    if max_count is not None:
        check_value(max_count, "max_count", Whole(0))
    return max_count


def _check_shape(g: Array) -> None:
    if g.ndim != 1 or not len(g):
        raise ValueError(f"g must have one axis with an entry for each count 0, ..., K, got shape {g.shape}")
    if g[0] != 0:
        raise ValueError(f"g[0] must be 0, which makes theta and g unique, got {g[0]}")
    if np.isnan(g).any() or (g == np.inf).any():
        raise ValueError("g must be finite, or -inf where a count is impossible, got NaN or +inf")


def _cut_off(g: Callable[[Any], Any], theta: float, max_count: int | None) -> Array:
    """Values of a function up to the count whose terms no longer matter for the largest theta."""
    if max_count is not None:
        check_value(max_count, "max_count", Whole(0))
        return np.asarray(g(np.arange(max_count + 1.0)), dtype=np.float64)
    end = 64
    while end <= MOST_TERMS:
        k = np.arange(end + 1.0)
        shape = np.asarray(g(k), dtype=np.float64)
        terms = theta * k + shape - gammaln(k + 1.0)
        top = int(np.argmax(terms))
        small = np.flatnonzero(terms[top:] - terms[top] < NEGLIGIBLE)
        # They must go on falling: a g that grows faster than log k! makes a series rise again.
        if small.size and terms[-1] <= terms[top + small[0]] and terms[-1] <= terms[-2]:
            return shape[: top + int(small[0]) + 1]
        end *= 2
    raise ValueError(
        f"g must grow more slowly than log k! for the series to converge: its terms are still not negligible at "
        f"{MOST_TERMS} counts; give max_count"
    )
