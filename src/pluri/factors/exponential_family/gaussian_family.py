"""The Gaussian among the exponential families: real numbers with noise of a known size; see `families`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pluri.validation import check_positive

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GaussianFamily:
    """Real numbers with noise of known standard deviation, ``theta`` = mean.

    Parameters
    ----------
    scale : float, default=1.0
        Standard deviation of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.exponential_family import GaussianFamily
    >>> family = GaussianFamily(scale=2.0)
    >>> family.statistic(np.array([4.0])), family.log_partition(np.array([4.0]))
    (array([1.]), array([2.]))
    """

    scale: float = 1.0
    name: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        check_positive(self.scale, "scale")

    @property
    def precision(self) -> float:
        """One over the variance of the noise."""
        return 1.0 / float(self.scale) ** 2

    def check(self, X: Array) -> None:
        """Every real number can occur."""

    def statistic(self, X: Array) -> Array:
        return X * self.precision

    def base_measure(self, X: Array) -> Array:
        return -0.5 * X**2 * self.precision - 0.5 * math.log(2 * math.pi) - math.log(self.scale)

    def log_partition(self, theta: Array) -> Array:
        return 0.5 * self.precision * theta**2

    def derivatives(self, theta: Array) -> tuple[Array, Array]:
        return self.precision * theta, np.full_like(theta, self.precision)

    def expansion(self, theta: Array) -> tuple[Array, Array, Array]:
        return (self.log_partition(theta), *self.derivatives(theta))

    def mean(self, theta: Array) -> Array:
        return np.array(theta)

    def natural(self, statistic: Array) -> Array:
        return statistic / self.precision

    def smoothed(self, total: Array, count: Array) -> Array:
        return total / np.maximum(count, 1e-300)

    def spread(self, statistic: Array) -> Array:
        return np.full_like(statistic, 1.0 / self.precision)

    def log_integral(self, total: Array, count: Array) -> Array:
        precision = self.precision * count
        return np.asarray(0.5 * total**2 / precision - 0.5 * np.log(precision / (2 * math.pi)))

    def saturated(self, X: Array) -> Array:
        return 0.5 * self.precision * X**2

    def sample(self, theta: Array, rng: np.random.Generator) -> Array:
        return theta + self.scale * rng.normal(size=theta.shape)
