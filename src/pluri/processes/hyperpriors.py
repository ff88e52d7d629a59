"""Priors of positive hyper-parameters (length-scales, variances), and the charts in which they are sampled.

A sampler moves freely in R. A chart ``s -> x`` maps a free coordinate to the support of the prior: a logistic for a
bounded one, an exponential for a half-line. The density of s is that of x times ``|dx/ds|``; for `Uniform` and
`LogUniform` it is the logistic density ``sig(s) sig(-s)``, whatever the bounds. Charts give log x and its derivative,
as Gaussian-process kernels are parameterised by logarithms; they do not underflow where x would.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np


class Charted(NamedTuple):
    """A free coordinate s seen in the chart of a prior.

    Attributes
    ----------
    log_value : log x(s)
    slope : d log x / ds
    log_density : log p(s), the Jacobian included
    gradient : d log p(s) / ds
    """

    log_value: float
    slope: float
    log_density: float
    gradient: float


class HyperPrior(Protocol):
    """Prior of one positive number."""

    #: Whether the prior is stated for the logarithm: the coordinate in which a posterior mode is sought.
    logarithmic: ClassVar[bool]

    @property
    def support(self) -> tuple[float, float]:
        """Ends of the interval outside of which the density is 0."""

    def log_density(self, value: float) -> float:
        """Log density at a value; -inf outside the support."""

    def gradient(self, value: float) -> float:
        """Derivative of the log density with respect to the value."""

    def chart(self, coordinate: float) -> Charted:
        """Value and density at a free coordinate."""

    def coordinate(self, value: float) -> float:
        """Free coordinate of a value inside the support."""

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""


def _log_sigmoid(s: float) -> float:
    return -math.log1p(math.exp(-s)) if s > 0 else s - math.log1p(math.exp(s))


def _sigmoid(s: float) -> float:
    return math.exp(_log_sigmoid(s))


def _logit(share: float) -> float:
    share = min(max(share, 1e-12), 1.0 - 1e-12)
    return math.log(share / (1.0 - share))


def _check_interval(name: str, low: float, high: float, *, least: str, allowed: bool) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and allowed):
        raise ValueError(f"{name}(low, high) must be finite with low {least}, got {low!r} and {high!r}")
    if not low < high:
        raise ValueError(f"{name}(low, high) must have low < high, an interval of some width, got {low!r} and {high!r}")


def _check_positive(prior: str, **values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} of {prior} must be positive and finite, got {value!r}")


@dataclass(frozen=True)
class Uniform:
    """Constant density on [low, high], 0 <= low < high.

    Examples
    --------
    >>> from pluri.processes.hyperpriors import Uniform
    >>> prior = Uniform(0, 10)
    >>> round(prior.log_density(3.0), 4), prior.log_density(11.0)
    (-2.3026, -inf)
    """

    low: float
    high: float
    logarithmic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_interval("Uniform", self.low, self.high, least=">= 0", allowed=self.low >= 0)

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
        above, below = _log_sigmoid(coordinate), _log_sigmoid(-coordinate)
        width = self.high - self.low
        if self.low == 0:  # log x directly: x itself may underflow
            log_value, slope = math.log(width) + above, math.exp(below)
        else:
            value = self.low + width * math.exp(above)
            log_value, slope = math.log(value), width * math.exp(above + below) / value
        return Charted(log_value, slope, above + below, 1.0 - 2.0 * math.exp(above))

    def coordinate(self, value: float) -> float:
        """Free coordinate of a value."""
        return _logit((value - self.low) / (self.high - self.low))

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return float(rng.uniform(self.low, self.high))


@dataclass(frozen=True)
class LogUniform:
    """Constant density of the logarithm on [log low, log high], 0 < low < high.

    Examples
    --------
    >>> import math
    >>> from pluri.processes.hyperpriors import LogUniform
    >>> LogUniform(math.exp(-10), math.exp(5)).chart(0.0).log_value
    -2.5
    """

    low: float
    high: float
    logarithmic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_interval("LogUniform", self.low, self.high, least="> 0", allowed=self.low > 0)

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
        above, below = _log_sigmoid(coordinate), _log_sigmoid(-coordinate)
        share, width = math.exp(above), self._width
        return Charted(
            math.log(self.low) + width * share, width * math.exp(above + below), above + below, 1.0 - 2.0 * share
        )

    def coordinate(self, value: float) -> float:
        """Free coordinate of a value."""
        return _logit((math.log(value) - math.log(self.low)) / self._width)

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return math.exp(rng.uniform(math.log(self.low), math.log(self.high)))


@dataclass(frozen=True)
class LogNormal:
    """``log x ~ N(mean, scale^2)``; its chart is ``log x = mean + scale s``.

    Examples
    --------
    >>> from pluri.processes.hyperpriors import LogNormal
    >>> round(LogNormal(0.0, 1.0).log_density(1.0), 4)
    -0.9189
    """

    mean: float = 0.0
    scale: float = 1.0
    logarithmic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not math.isfinite(self.mean):
            raise ValueError(f"mean of LogNormal must be finite, got {self.mean!r}")
        _check_positive("LogNormal", scale=self.scale)

    @property
    def support(self) -> tuple[float, float]:
        """The half-line."""
        return 0.0, math.inf

    def log_density(self, value: float) -> float:
        """Log density at a value."""
        if not value > 0:
            return -math.inf
        score = (math.log(value) - self.mean) / self.scale
        return -0.5 * score * score - math.log(value * self.scale) - 0.5 * math.log(2.0 * math.pi)

    def gradient(self, value: float) -> float:
        """Derivative of the log density."""
        return -(1.0 + (math.log(value) - self.mean) / self.scale**2) / value

    def chart(self, coordinate: float) -> Charted:
        """Standard normal s."""
        density = -0.5 * coordinate * coordinate - 0.5 * math.log(2.0 * math.pi)
        return Charted(self.mean + self.scale * coordinate, self.scale, density, -coordinate)

    def coordinate(self, value: float) -> float:
        """Free coordinate of a value."""
        return (math.log(value) - self.mean) / self.scale

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return float(rng.lognormal(self.mean, self.scale))


@dataclass(frozen=True)
class Gamma:
    """Density proportional to ``x^(shape - 1) exp(-rate x)``; its chart is ``x = exp(s)``.

    Examples
    --------
    >>> from pluri.processes.hyperpriors import Gamma
    >>> Gamma(shape=1.0, rate=2.0).gradient(0.3)
    -2.0
    """

    shape: float
    rate: float
    logarithmic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_positive("Gamma", shape=self.shape, rate=self.rate)

    @property
    def support(self) -> tuple[float, float]:
        """The half-line."""
        return 0.0, math.inf

    def log_density(self, value: float) -> float:
        """Log density at a value."""
        if not value > 0:
            return -math.inf
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return constant + (self.shape - 1.0) * math.log(value) - self.rate * value

    def gradient(self, value: float) -> float:
        """Derivative of the log density."""
        return (self.shape - 1.0) / value - self.rate

    def chart(self, coordinate: float) -> Charted:
        """``x = exp(s)``."""
        value = math.exp(min(coordinate, 700.0))
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        density = constant + self.shape * coordinate - self.rate * value
        return Charted(coordinate, 1.0, density, self.shape - self.rate * value)

    def coordinate(self, value: float) -> float:
        """Free coordinate of a value."""
        return math.log(value)

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return float(rng.gamma(self.shape, 1.0 / self.rate))


@dataclass(frozen=True)
class HalfNormal:
    """The absolute value of ``N(0, scale^2)``; its chart is ``x = exp(s)``.

    Examples
    --------
    >>> from pluri.processes.hyperpriors import HalfNormal
    >>> HalfNormal(2.0).gradient(4.0)
    -1.0
    """

    scale: float = 1.0
    logarithmic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_positive("HalfNormal", scale=self.scale)

    @property
    def support(self) -> tuple[float, float]:
        """The half-line."""
        return 0.0, math.inf

    def log_density(self, value: float) -> float:
        """Log density at a value."""
        if not value >= 0:
            return -math.inf
        return 0.5 * math.log(2.0 / math.pi) - math.log(self.scale) - 0.5 * (value / self.scale) ** 2

    def gradient(self, value: float) -> float:
        """Derivative of the log density."""
        return -value / self.scale**2

    def chart(self, coordinate: float) -> Charted:
        """``x = exp(s)``."""
        square = math.exp(min(2.0 * (coordinate - math.log(self.scale)), 700.0))
        density = 0.5 * math.log(2.0 / math.pi) - math.log(self.scale) - 0.5 * square + coordinate
        return Charted(coordinate, 1.0, density, 1.0 - square)

    def coordinate(self, value: float) -> float:
        """Free coordinate of a value."""
        return math.log(value)

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return abs(float(rng.normal(0.0, self.scale)))
