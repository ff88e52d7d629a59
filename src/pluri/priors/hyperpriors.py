"""Priors of positive hyper-parameters (length-scales, concentrations), and hyper-parameters as a person gives them.

Everywhere in the library a hyper-parameter is a number, which is then fixed; one of these priors, under which it is
then learned; or ``"learn"``, which is short for a prior that the model names (`as_hyperparameter`). How a prior is
sampled is said in `pluri.priors.charts`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pluri.priors.bounded_hyperpriors import Beta, LogUniform, Uniform
from pluri.priors.charts import Charted, HyperPrior, check_positive
from pluri.validation.parameters import Made, Number, Only, check_value

__all__ = [
    "Beta",
    "BetaProcess",
    "Charted",
    "Gamma",
    "HalfNormal",
    "HyperPrior",
    "Hyperparameter",
    "LogNormal",
    "LogUniform",
    "Uniform",
    "as_hyperparameter",
]


class _HalfLine:
    """What priors of all positive numbers share."""

    @property
    def support(self) -> tuple[float, float]:
        """The half-line."""
        return 0.0, math.inf

    def coordinate(self, value: float) -> float:
        """Free coordinate of a value."""
        return math.log(value)


@dataclass(frozen=True)
class LogNormal(_HalfLine):
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
        check_positive("LogNormal", scale=self.scale)

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
class Gamma(_HalfLine):
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
        check_positive("Gamma", shape=self.shape, rate=self.rate)

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

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return float(rng.gamma(self.shape, 1.0 / self.rate))

    @property
    def mean(self) -> float:
        """``shape / rate``."""
        return self.shape / self.rate


@dataclass(frozen=True)
class HalfNormal(_HalfLine):
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
        check_positive("HalfNormal", scale=self.scale)

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

    def sample(self, rng: np.random.Generator) -> float:
        """One draw."""
        return abs(float(rng.normal(0.0, self.scale)))


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
        check_positive("BetaProcess", a=self.a, b=self.b)


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
