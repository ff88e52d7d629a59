r"""The expected log-likelihood of an entry under a Gaussian belief about its natural parameter, and its derivatives.

For :math:`\theta \sim N(\mu, v)` the algorithms need a value :math:`f(\mu, v) \approx t \mu - E[a(\theta)]`, the
residual :math:`r = \partial f / \partial \mu` and the curvature :math:`c = -2 \, \partial f / \partial v`. Then with
:math:`\mu = w^\top m + b` and :math:`v = w^\top S w` the slopes are :math:`W^\top r` in :math:`m`, the precision that
maximises the bound over :math:`S` is :math:`I + W^\top \mathrm{diag}(c) W`, and the slope in :math:`w` is
:math:`\sum_n (r m - c S w)`. Three forms:

- second order, :math:`t\mu - a(\mu) - a''(\mu) v / 2` (the slope of :math:`a''` is neglected): Laplace's approximation,
  exact for Gaussian data;
- the bound of Jaakkola and Jordan for the logistic function,
  :math:`(t - \frac12)\mu - \log 2\cosh(\zeta/2)`, :math:`\zeta^2 = \mu^2 + v`, :math:`c = \tanh(\zeta/2) / 2\zeta`;
- the exact expectation for counts, :math:`t\mu - e^{\mu + v/2}`.

References
----------
.. [1] T. S. Jaakkola and M. I. Jordan, "Bayesian parameter estimation via variational methods", Statistics and
   Computing 10, 2000.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from pluri.factors.exponential_family.families import LARGEST_LOG_RATE, BinomialFamily, Family, PoissonFamily

Array = NDArray[np.float64]

INFERENCES = ("laplace", "vb", "map")


class Expansion(Protocol):
    """A form of the expected log-likelihood."""

    #: Whether the value depends on the variance entry by entry; otherwise -c v / 2 is added in the end.
    uses_variance: ClassVar[bool]
    #: Whether maximising the quadratic with these derivatives never lowers the value.
    is_bound: ClassVar[bool]

    def local(self, statistic: Array, mean: Array, variance: Array | None) -> tuple[Array, Array, Array]:
        """Value, residual and curvature, entry by entry."""
        ...

    def value(self, statistic: Array, mean: Array, variance: Array | None) -> Array:
        """The value alone."""
        ...


@dataclass(frozen=True)
class SecondOrder:
    """Around the mean; the variance enters by the curvature alone."""

    family: Family
    uses_variance: ClassVar[bool] = False
    is_bound: ClassVar[bool] = False

    def local(self, statistic: Array, mean: Array, variance: Array | None) -> tuple[Array, Array, Array]:
        partition, slope, curvature = self.family.expansion(mean)
        value = statistic * mean
        value -= partition
        return value, statistic - slope, curvature

    def value(self, statistic: Array, mean: Array, variance: Array | None) -> Array:
        out = statistic * mean
        out -= self.family.log_partition(mean)
        return out


@dataclass(frozen=True)
class JaakkolaBound:
    """A lower bound for the logistic log-likelihood, at its best auxiliary value."""

    trials: float = 1.0
    uses_variance: ClassVar[bool] = True
    is_bound: ClassVar[bool] = True

    def local(self, statistic: Array, mean: Array, variance: Array | None) -> tuple[Array, Array, Array]:
        size = self._size(mean, variance)
        # tanh(z / 2) = (1 - e^-z) / (1 + e^-z), with the exponential that the value needs too; 1/4 in the limit.
        small = np.exp(-size)
        curvature = 0.5 * self.trials * (1.0 - small) / ((1.0 + small) * np.maximum(size, 1e-12))
        curvature[size < 1e-6] = 0.25 * self.trials
        centred = statistic - 0.5 * self.trials
        value = centred * mean - self.trials * (0.5 * size + np.log(1.0 + small))
        return value, centred - curvature * mean, curvature

    def value(self, statistic: Array, mean: Array, variance: Array | None) -> Array:
        size = self._size(mean, variance)
        centred = statistic - 0.5 * self.trials
        return centred * mean - self.trials * (0.5 * size + np.log(1.0 + np.exp(-size)))

    @staticmethod
    def _size(mean: Array, variance: Array | None) -> Array:
        return np.abs(mean) if variance is None else np.sqrt(mean**2 + variance)


@dataclass(frozen=True)
class LogNormalRate:
    """The exact expectation of a Poisson log-likelihood."""

    uses_variance: ClassVar[bool] = True
    is_bound: ClassVar[bool] = False

    def local(self, statistic: Array, mean: Array, variance: Array | None) -> tuple[Array, Array, Array]:
        log_rate = mean if variance is None else mean + 0.5 * variance
        rate = np.exp(np.minimum(log_rate, LARGEST_LOG_RATE))
        return self.value(statistic, mean, variance), statistic - rate, rate

    def value(self, statistic: Array, mean: Array, variance: Array | None) -> Array:
        log_rate = mean if variance is None else mean + 0.5 * variance
        return statistic * mean - PoissonFamily().log_partition(log_rate)


def expansions(family: Family, inference: str) -> tuple[Expansion, Expansion]:
    """Forms for the latent variables and for the loadings.

    Examples
    --------
    >>> from pluri.factors.exponential_family import as_family
    >>> from pluri.factors.exponential_family.expansion import expansions
    >>> expansions(as_family("bernoulli"), "vb")
    (JaakkolaBound(trials=1.0), JaakkolaBound(trials=1.0))
    """
    plain = SecondOrder(family)
    if inference == "vb" and isinstance(family, BinomialFamily):
        bound = JaakkolaBound(float(family.trials))
        return bound, bound
    if isinstance(family, PoissonFamily) and inference != "map":
        # The expectation is known: there is no reason to cut its series, even around Laplace's mode.
        exact = LogNormalRate()
        return (exact if inference == "vb" else plain), exact
    return plain, plain
