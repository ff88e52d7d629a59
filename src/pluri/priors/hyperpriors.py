"""Priors of positive hyper-parameters (length-scales, concentrations), and the charts in which they are sampled.

Everywhere in the library a hyper-parameter is a number, which is then fixed; one of these priors, under which it is
then learned; or ``"learn"``, which is short for a prior that the model names (`as_hyperparameter`).

A sampler moves freely in R. A chart ``s -> x`` maps a free coordinate to the support of the prior: a logistic for a
bounded one, an exponential for a half-line. The density of s is that of x times ``|dx/ds|``; for `Uniform` and
`LogUniform` it is the logistic density ``sig(s) sig(-s)``, whatever the bounds. Charts give log x and its derivative,
as Gaussian-process kernels are parameterised by logarithms; they do not underflow where x would.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from pluri.validation.parameters import Made, Number, Only, check_value


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
    >>> from pluri.priors import Uniform
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

    @property
    def mean(self) -> float:
        """``(high - low) / (log high - log low)``."""
        return (self.high - self.low) / self._width


@dataclass(frozen=True)
class LogNormal:
    """``log x ~ N(mean, scale^2)``; its chart is ``log x = mean + scale s``.

    Examples
    --------
    >>> from pluri.priors import LogNormal
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
    >>> from pluri.priors import Gamma
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

    @property
    def mean(self) -> float:
        """``shape / rate``."""
        return self.shape / self.rate


@dataclass(frozen=True)
class HalfNormal:
    """The absolute value of ``N(0, scale^2)``; its chart is ``x = exp(s)``.

    Examples
    --------
    >>> from pluri.priors import HalfNormal
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
        _check_positive("Beta", a=self.a, b=self.b)

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
        above, below = _log_sigmoid(coordinate), _log_sigmoid(-coordinate)
        density = self._log_constant + self.a * above + self.b * below
        return Charted(above, math.exp(below), density, self.a * math.exp(below) - self.b * math.exp(above))

    def coordinate(self, value: float) -> float:
        """Free coordinate of a value."""
        return _logit(value)

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return float(rng.beta(self.a, self.b))

    @property
    def mean(self) -> float:
        """``a / (a + b)``."""
        return self.a / (self.a + self.b)


@dataclass(frozen=True)
class BetaProcess:
    """Beta process of which atoms are in use: each of K has probability ``Beta(a / K, b (K - 1) / K)``.

    The expected number of atoms in use is about ``a / b`` for large K.

    Examples
    --------
    >>> from pluri.priors import BetaProcess
    >>> BetaProcess(2.0, 1.0)
    BetaProcess(a=2.0, b=1.0)
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        _check_positive("BetaProcess", a=self.a, b=self.b)


class Hyperparameter(NamedTuple):
    """A number that is fixed, or learned under a prior.

    Attributes
    ----------
    value : the number; where learning begins, if it is learned
    prior : None if it is fixed
    """

    value: float
    prior: Any = None

    @property
    def learned(self) -> bool:
        """Whether it is learned."""
        return self.prior is not None


def as_hyperparameter(
    value: Any, name: str, learned: HyperPrior, *, kinds: type | tuple[type, ...] = Gamma, start: float | None = None
) -> Hyperparameter:
    """A hyper-parameter as a person gives it: a positive number, a prior, or ``"learn"``.

    Parameters
    ----------
    value : float, prior or "learn"
    name : str
        Of the parameter, for the sentence that refuses anything else.
    learned : prior
        What "learn" stands for.
    kinds : class or tuple of classes, default=Gamma
        Priors under which the model can learn it.
    start : float, optional
        Where learning begins; the mean of the prior by default.

    Examples
    --------
    >>> from pluri.priors import Gamma
    >>> from pluri.priors.hyperpriors import as_hyperparameter
    >>> as_hyperparameter(2.0, "concentration", Gamma(1.0, 1.0))
    Hyperparameter(value=2.0, prior=None)
    >>> as_hyperparameter("learn", "concentration", Gamma(3.0, 1.0))
    Hyperparameter(value=3.0, prior=Gamma(shape=3.0, rate=1.0))
    >>> as_hyperparameter((1.0, 1.0), "concentration", Gamma(1.0, 1.0))
    Traceback (most recent call last):
    ValueError: concentration must be a positive number or 'learn' or a prior (Gamma), got (1.0, 1.0)
    """
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    names = ", ".join(kind.__name__ for kind in kinds)
    check_value(value, name, Number(above=0) | Only("learn") | Made(kinds, f"a prior ({names})"))
    if not isinstance(value, (str, *kinds)):
        return Hyperparameter(float(value))
    prior: Any = learned if isinstance(value, str) else value
    return Hyperparameter(float(prior.mean if start is None else start), prior)
