"""What a prior of a positive number must offer, and the chart in which the number is sampled.

A sampler moves freely in R. A chart ``s -> x`` maps a free coordinate to the support of the prior: a logistic for a
bounded one, an exponential for a half-line. The density of s is that of x times ``|dx/ds|``; for `Uniform` and
`LogUniform` it is the logistic density ``sig(s) sig(-s)``, whatever the bounds. Charts give log x and its derivative,
as Gaussian-process kernels are parameterised by logarithms; they do not underflow where x would.
"""

from __future__ import annotations

import math
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


def log_sigmoid(s: float) -> float:
    """Logarithm of the logistic function."""
    return -math.log1p(math.exp(-s)) if s > 0 else s - math.log1p(math.exp(s))


def logit(share: float) -> float:
    """Inverse of the logistic function, kept finite."""
    share = min(max(share, 1e-12), 1.0 - 1e-12)
    return math.log(share / (1.0 - share))


def check_interval(name: str, low: float, high: float, *, least: str, allowed: bool) -> None:
    """Refuse the bounds of a prior in one sentence."""
    if not (math.isfinite(low) and math.isfinite(high) and allowed):
        raise ValueError(f"{name}(low, high) must be finite with low {least}, got {low!r} and {high!r}")
    if not low < high:
        raise ValueError(f"{name}(low, high) must have low < high, an interval of some width, got {low!r} and {high!r}")


def check_positive(prior: str, **values: float) -> None:
    """Refuse parameters of a prior that are not positive and finite."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} of {prior} must be positive and finite, got {value!r}")
