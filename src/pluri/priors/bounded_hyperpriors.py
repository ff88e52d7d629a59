"""Priors of numbers in an interval: uniform, uniform in the logarithm, and beta."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pluri.priors.charts import Charted, check_interval, check_positive, log_sigmoid, logit


@dataclass(frozen=True)
class Uniform:
    """Constant density on [low, high], 0 <= low < high.

    Examples
    --------
    >>> from pluri.priors import Uniform
    >>> prior = Uniform(0, 10)
    >>> round(prior.log_density(3.0), 4), prior.log_density(11.0)
    (-2.3026, -inf)
    """

    low: float
    high: float
    logarithmic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_interval("Uniform", self.low, self.high, least=">= 0", allowed=self.low >= 0)

    @property
    def support(self) -> tuple[float, float]:
        """Ends of the interval."""
        return float(self.low), float(self.high)

    def log_density(self, value: float) -> float:
        """Log density at a value."""
        return -math.log(self.high - self.low) if self.low <= value <= self.high else -math.inf

    def gradient(self, value: float) -> float:
        """Zero."""
        return 0.0

    def chart(self, coordinate: float) -> Charted:
        """``x = low + (high - low) sig(s)``."""
        above, below = log_sigmoid(coordinate), log_sigmoid(-coordinate)
        width = self.high - self.low
        if self.low == 0:  # log x directly: x itself may underflow
            log_value, slope = math.log(width) + above, math.exp(below)
        else:
            value = self.low + width * math.exp(above)
            log_value, slope = math.log(value), width * math.exp(above + below) / value
        return Charted(log_value, slope, above + below, 1.0 - 2.0 * math.exp(above))

    def coordinate(self, value: float) -> float:
        """Free coordinate of a value."""
        return logit((value - self.low) / (self.high - self.low))

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return float(rng.uniform(self.low, self.high))


@dataclass(frozen=True)
class LogUniform:
    """Constant density of the logarithm on [log low, log high], 0 < low < high.

    Examples
    --------
    >>> import math
    >>> from pluri.priors import LogUniform
    >>> LogUniform(math.exp(-10), math.exp(5)).chart(0.0).log_value
    -2.5
    >>> round(LogUniform(1.0, math.e).mean, 4)
    1.7183
    """

    low: float
    high: float
    logarithmic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_interval("LogUniform", self.low, self.high, least="> 0", allowed=self.low > 0)

    @property
    def support(self) -> tuple[float, float]:
        """Ends of the interval."""
        return float(self.low), float(self.high)

    @property
    def _width(self) -> float:
        return math.log(self.high) - math.log(self.low)

    def log_density(self, value: float) -> float:
        """Log density at a value."""
        return -math.log(self._width * value) if self.low <= value <= self.high else -math.inf

    def gradient(self, value: float) -> float:
        """``-1/x``."""
        return -1.0 / value

    def chart(self, coordinate: float) -> Charted:
        """``log x = log low + (log high - log low) sig(s)``."""
        above, below = log_sigmoid(coordinate), log_sigmoid(-coordinate)
        share, width = math.exp(above), self._width
        return Charted(
            math.log(self.low) + width * share, width * math.exp(above + below), above + below, 1.0 - 2.0 * share
        )

    def coordinate(self, value: float) -> float:
        """Free coordinate of a value."""
        return logit((math.log(value) - math.log(self.low)) / self._width)

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return math.exp(rng.uniform(math.log(self.low), math.log(self.high)))

    @property
    def mean(self) -> float:
        """``(high - low) / (log high - log low)``."""
        return (self.high - self.low) / self._width


@dataclass(frozen=True)
class Beta:
    """Density proportional to ``x^(a - 1) (1 - x)^(b - 1)`` on (0, 1); its chart is a logistic.

    Examples
    --------
    >>> from pluri.priors import Beta
    >>> Beta(2.0, 2.0).mean, Beta(1.0, 1.0).log_density(0.3)
    (0.5, 0.0)
    """

    a: float
    b: float
    logarithmic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive("Beta", a=self.a, b=self.b)

    @property
    def support(self) -> tuple[float, float]:
        """The unit interval."""
        return 0.0, 1.0

    @property
    def _log_constant(self) -> float:
        return math.lgamma(self.a + self.b) - math.lgamma(self.a) - math.lgamma(self.b)

    def log_density(self, value: float) -> float:
        """Log density at a value."""
        if not 0 < value < 1:
            return -math.inf
        return self._log_constant + (self.a - 1.0) * math.log(value) + (self.b - 1.0) * math.log1p(-value)

    def gradient(self, value: float) -> float:
        """Derivative of the log density."""
        return (self.a - 1.0) / value - (self.b - 1.0) / (1.0 - value)

    def chart(self, coordinate: float) -> Charted:
        """``x = sig(s)``."""
        above, below = log_sigmoid(coordinate), log_sigmoid(-coordinate)
        density = self._log_constant + self.a * above + self.b * below
        return Charted(above, math.exp(below), density, self.a * math.exp(below) - self.b * math.exp(above))

    def coordinate(self, value: float) -> float:
        """Free coordinate of a value."""
        return logit(value)

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return float(rng.beta(self.a, self.b))

    @property
    def mean(self) -> float:
        """``a / (a + b)``."""
        return self.a / (self.a + self.b)
