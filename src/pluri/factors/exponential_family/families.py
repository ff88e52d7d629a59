r"""Exponential families in their natural parameter: the distribution of one entry of the data given a real number.

.. math:: \log p(x \mid \theta) = t(x) \theta - a(\theta) + h(x), \qquad E[t] = a'(\theta), \quad Var[t] = a''(\theta)

with the statistic :math:`t`, the log-partition :math:`a` and the base measure :math:`h`. For all families here
:math:`t(x) = x`, except for Gaussians whose noise has another standard deviation than one: there :math:`t(x) = x/s^2`,
so that :math:`\theta` is the mean.

References
----------
.. [1] M. Collins, S. Dasgupta and R. Schapire, "A generalization of principal component analysis to the exponential
   family", NIPS 2001.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, gammaln, xlogy

from pluri.factors.exponential_family.gaussian_family import GaussianFamily
from pluri.validation import check_count

Array = NDArray[np.float64]

#: Log-rates of Poisson counts beyond this are followed linearly: e^30 is 10^13.
LARGEST_LOG_RATE = 30.0


class Family(Protocol):
    """What the algorithms ask of a family; all functions work entry by entry."""

    name: ClassVar[str]

    def check(self, X: Array) -> None:
        """Refuse data that the family cannot produce; NaN is missing."""
        ...

    def statistic(self, X: Array) -> Array:
        """Sufficient statistic t(x)."""
        ...

    def base_measure(self, X: Array) -> Array:
        """Log base measure h(x)."""
        ...

    def log_partition(self, theta: Array) -> Array:
        """a(theta)."""
        ...

    def derivatives(self, theta: Array) -> tuple[Array, Array]:
        """First and second derivative of the log-partition: mean and variance of the statistic."""
        ...

    def expansion(self, theta: Array) -> tuple[Array, Array, Array]:
        """The log-partition and both derivatives."""
        ...

    def mean(self, theta: Array) -> Array:
        """E[x]."""
        ...

    def natural(self, statistic: Array) -> Array:
        """The theta at which the statistic has this mean: the inverse of a'."""
        ...

    def smoothed(self, total: Array, count: Array) -> Array:
        """Mean of the statistic from its sum over ``count`` rows, moved inside the range of a' where it must be."""
        ...

    def spread(self, statistic: Array) -> Array:
        """Factor that turns a residual t - a' into a step of theta, for starting values."""
        ...

    def log_integral(self, total: Array, count: Array) -> Array:
        """Log of the integral of exp(total theta - count a(theta)) over theta, for conjugate priors."""
        ...

    def saturated(self, X: Array) -> Array:
        """Largest log density of x over all theta, without the base measure."""
        ...

    def sample(self, theta: Array, rng: np.random.Generator) -> Array:
        """One draw for each theta."""
        ...


@dataclass(frozen=True)
class BinomialFamily:
    """Counts of successes among a known number of trials, ``theta = logit p``.

    Parameters
    ----------
    trials : int, default=1
        Number of trials of every entry.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.exponential_family import BinomialFamily
    >>> BinomialFamily(4).mean(np.array([0.0, np.log(3.0)]))
    array([2., 3.])
    """

    trials: int = 1
    name: ClassVar[str] = "binomial"

    def __post_init__(self) -> None:
        check_count(self.trials, "trials")

    def check(self, X: Array) -> None:
        known = X[~np.isnan(X)]
        if known.size and (known.min() < 0 or known.max() > self.trials):
            raise ValueError(
                f"X must lie between 0 and {self.trials} for the {self.name} family, "
                f"got values from {known.min():.6g} to {known.max():.6g}"
            )
        if (known != np.rint(known)).any():
            warnings.warn(
                f"X has fractions, which the {self.name} family cannot produce; they are read as expected values",
                UserWarning,
                stacklevel=4,
            )

    def statistic(self, X: Array) -> Array:
        return X

    def base_measure(self, X: Array) -> Array:
        if self.trials == 1:
            return np.zeros_like(X)
        m = float(self.trials)
        return np.asarray(gammaln(m + 1.0) - gammaln(X + 1.0) - gammaln(m - X + 1.0))

    def log_partition(self, theta: Array) -> Array:
        # log, not log1p: what it loses is below the rounding of the sums, and it is several times faster.
        out = np.abs(theta)
        np.negative(out, out=out)
        np.exp(out, out=out)
        out += 1.0
        np.log(out, out=out)
        out += np.maximum(theta, 0.0)
        return out if self.trials == 1 else self.trials * out

    def derivatives(self, theta: Array) -> tuple[Array, Array]:
        return self.expansion(theta)[1:]

    def expansion(self, theta: Array) -> tuple[Array, Array, Array]:
        # One exponential serves all three.
        small = np.abs(theta)
        np.negative(small, out=small)
        np.exp(small, out=small)
        whole = 1.0 + small
        partition = np.log(whole)
        partition += np.maximum(theta, 0.0)
        np.reciprocal(whole, out=whole)
        small *= whole
        mean = np.where(theta >= 0, whole, small)
        small *= whole
        if self.trials == 1:
            return partition, mean, small
        return self.trials * partition, self.trials * mean, self.trials * small

    def mean(self, theta: Array) -> Array:
        return np.asarray(self.trials * expit(theta))

    def natural(self, statistic: Array) -> Array:
        return np.asarray(np.log(statistic) - np.log(self.trials - statistic))

    def smoothed(self, total: Array, count: Array) -> Array:
        return (total + 0.5) / (count * self.trials + 1.0) * self.trials

    def spread(self, statistic: Array) -> Array:
        return np.full_like(statistic, 4.0 / self.trials)

    def log_integral(self, total: Array, count: Array) -> Array:
        return np.asarray(betaln(total, self.trials * count - total))

    def saturated(self, X: Array) -> Array:
        m = float(self.trials)
        return np.asarray(xlogy(X, X / m) + xlogy(m - X, (m - X) / m))

    def sample(self, theta: Array, rng: np.random.Generator) -> Array:
        return rng.binomial(int(self.trials), expit(theta)).astype(np.float64)


@dataclass(frozen=True)
class BernoulliFamily(BinomialFamily):
    """Zeros and ones, ``theta = logit p``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.exponential_family import BernoulliFamily
    >>> BernoulliFamily().mean(np.array([0.0, np.log(3.0)]))
    array([0.5 , 0.75])
    """

    name: ClassVar[str] = "bernoulli"

    def __post_init__(self) -> None:
        if self.trials != 1:
            raise ValueError(f"trials must be 1 for the bernoulli family, got {self.trials!r}")


@dataclass(frozen=True)
class PoissonFamily:
    """Counts, ``theta = log rate``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.exponential_family import PoissonFamily
    >>> PoissonFamily().mean(np.log([2.0, 5.0]))
    array([2., 5.])
    """

    name: ClassVar[str] = "poisson"

    def check(self, X: Array) -> None:
        known = X[~np.isnan(X)]
        if known.size and known.min() < 0:
            raise ValueError(f"X must be counts for the poisson family, got {known.min():.6g}: Negative values in data")
        if (known != np.rint(known)).any():
            raise ValueError("X must be counts for the poisson family, got values with fractions")

    def statistic(self, X: Array) -> Array:
        return X

    def base_measure(self, X: Array) -> Array:
        return -np.asarray(gammaln(X + 1.0))

    def log_partition(self, theta: Array) -> Array:
        # Beyond the limit the tangent: convex, with a continuous slope, and free of overflow.
        return np.exp(np.minimum(theta, LARGEST_LOG_RATE)) * (1.0 + np.maximum(theta - LARGEST_LOG_RATE, 0.0))

    def derivatives(self, theta: Array) -> tuple[Array, Array]:
        rate = np.exp(np.minimum(theta, LARGEST_LOG_RATE))
        return rate, rate

    def expansion(self, theta: Array) -> tuple[Array, Array, Array]:
        rate = np.exp(np.minimum(theta, LARGEST_LOG_RATE))
        return rate * (1.0 + np.maximum(theta - LARGEST_LOG_RATE, 0.0)), rate, rate

    def mean(self, theta: Array) -> Array:
        return np.asarray(np.exp(np.minimum(theta, LARGEST_LOG_RATE)))

    def natural(self, statistic: Array) -> Array:
        return np.asarray(np.log(statistic))

    def smoothed(self, total: Array, count: Array) -> Array:
        return (total + 0.5) / (count + 1.0)

    def spread(self, statistic: Array) -> Array:
        return np.asarray(1.0 / (0.5 + statistic))

    def log_integral(self, total: Array, count: Array) -> Array:
        return np.asarray(gammaln(total) - total * np.log(count))

    def saturated(self, X: Array) -> Array:
        return np.asarray(xlogy(X, X) - X)

    def sample(self, theta: Array, rng: np.random.Generator) -> Array:
        return rng.poisson(self.mean(theta)).astype(np.float64)


FAMILIES: dict[str, Any] = {
    "bernoulli": BernoulliFamily,
    "poisson": PoissonFamily,
    "gaussian": GaussianFamily,
}


def as_family(family: Any) -> Family:
    """Turn a name into a family; an object that is one passes.

    Examples
    --------
    >>> from pluri.factors.exponential_family import as_family
    >>> as_family("gaussian")
    GaussianFamily(scale=1.0)
    """
    if isinstance(family, str) and family in FAMILIES:
        made: Family = FAMILIES[family]()
        return made
    if isinstance(family, (BinomialFamily, PoissonFamily, GaussianFamily)):
        return family
    raise ValueError(
        f"family must be one of {tuple(FAMILIES)}, BinomialFamily(trials) or GaussianFamily(scale), got {family!r}"
    )
