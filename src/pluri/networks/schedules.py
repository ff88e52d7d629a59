"""Schedules of scheduled sampling: the probability of feeding the true token, by minibatch or by epoch.

| class | probability at minibatch i |
| --- | --- |
| `LinearDecay` | max(minimum, offset - slope i), 1 at most |
| `ExponentialDecay` | max(minimum, base^i) |
| `InverseSigmoidDecay` | max(minimum, k / (k + exp(i / k))) |
| `EpochRamp` | start + (end - start) min(1, epoch / n_epochs) |
| `ConstantRate` | value |

The linear and the exponential fall are those of simulated annealing (`pluri.optimize.annealing.schedules`). Any
function of the number of the minibatch will do as well. Nothing here needs JAX.

References
----------
Bengio, Vinyals, Jaitly and Shazeer (2015), Scheduled sampling for sequence prediction with recurrent neural networks,
NeurIPS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, lambertw

from pluri.optimize.annealing.schedules import ExponentialDecay, LinearDecay
from pluri.validation import Number, Whole, check_value

__all__ = [
    "ConstantRate",
    "EpochRamp",
    "ExponentialDecay",
    "InverseSigmoidDecay",
    "LinearDecay",
    "as_schedule",
    "probability_at",
]

#: Schedules that can be asked for by name.
SCHEDULES = ("inverse_sigmoid", "linear", "exponential", "ramp")

PROBABILITY = Number(least=0, most=1)


@dataclass(frozen=True)
class InverseSigmoidDecay:
    """A slow beginning, a fall, and a slow end: ``max(minimum, k / (k + exp(i / k)))``.

    It begins at ``k / (k + 1)`` and is 1/2 at ``i = k log k``.

    Parameters
    ----------
    k : float
        At least 1.
    minimum : float, default=0.0

    Examples
    --------
    >>> from pluri.networks import InverseSigmoidDecay
    >>> schedule = InverseSigmoidDecay.from_midpoint(500)
    >>> round(float(schedule(500)), 6)
    0.5
    """

    k: float
    minimum: float = 0.0

    def __post_init__(self) -> None:
        check_value(self.k, "k", Number(least=1))
        check_value(self.minimum, "minimum", PROBABILITY)

    @classmethod
    def from_midpoint(cls, midpoint: float, minimum: float = 0.0) -> Self:
        """The schedule that is 1/2 at a minibatch: ``k = exp(W(midpoint))`` with Lambert's function W."""
        check_value(midpoint, "midpoint", Number(least=0))
        return cls(float(max(1.0, np.exp(lambertw(midpoint).real))), minimum)

    def __call__(self, i: ArrayLike) -> Any:
        """Probability at minibatch `i`, from 0."""
        return np.maximum(self.minimum, expit(np.log(self.k) - np.asarray(i, dtype=np.float64) / self.k))


@dataclass(frozen=True)
class EpochRamp:
    """A straight line from one value to another over the first epochs, constant afterwards.

    Parameters
    ----------
    start, end : float
    n_epochs : int, default=10

    Examples
    --------
    >>> from pluri.networks import EpochRamp
    >>> ramp = EpochRamp(0.5, 0.0)
    >>> [float(ramp(epoch)) for epoch in (0, 5, 30)]
    [0.5, 0.25, 0.0]
    """

    start: float
    end: float
    n_epochs: int = 10

    def __post_init__(self) -> None:
        check_value(self.start, "start", PROBABILITY)
        check_value(self.end, "end", PROBABILITY)
        check_value(self.n_epochs, "n_epochs", Whole(1))

    def __call__(self, epoch: ArrayLike) -> Any:
        """Probability in an epoch, from 0."""
        share = np.minimum(1.0, np.asarray(epoch, dtype=np.float64) / self.n_epochs)
        return self.start + (self.end - self.start) * share


@dataclass(frozen=True)
class ConstantRate:
    """The same probability always: 1 is teacher forcing, 0 always feeds the network its own tokens.

    Examples
    --------
    >>> from pluri.networks import ConstantRate
    >>> float(ConstantRate(0.5)(7))
    0.5
    """

    value: float

    def __post_init__(self) -> None:
        check_value(self.value, "value", PROBABILITY)

    def __call__(self, i: ArrayLike) -> Any:
        """The probability, whatever the minibatch."""
        return np.full(np.shape(i), float(self.value))[()]


def as_schedule(schedule: Any, n_steps: int, minimum: float) -> Callable[[Any], Any]:
    """The schedule that a name stands for in a training of so many minibatches; functions are as they are.

    Names are placed by the length of the training: the inverse sigmoid and the exponential are 1/2 half-way, the line
    reaches `minimum` at four fifths; "ramp" goes from 1/2 to `minimum` in ten epochs.
    """
    if schedule is None:
        return ConstantRate(1.0)
    if not isinstance(schedule, str):
        if not callable(schedule):
            raise ValueError(f"schedule must be one of {SCHEDULES}, a function or None, got {schedule!r}")
        return schedule
    half = max(1.0, n_steps / 2)
    if schedule == "inverse_sigmoid":
        return InverseSigmoidDecay.from_midpoint(half, minimum)
    if schedule == "linear":
        return LinearDecay((1.0 - minimum) / max(1.0, 0.8 * n_steps), 1.0, minimum)
    if schedule == "exponential":
        return ExponentialDecay(float(0.5 ** (1.0 / half)), minimum)
    if schedule == "ramp":
        return EpochRamp(0.5, minimum)
    raise ValueError(f"schedule must be one of {SCHEDULES}, a function or None, got {schedule!r}")


def probability_at(schedule: Callable[[Any], Any], step: int, epoch: int) -> float:
    """What a schedule gives, or an error if that is no probability."""
    place = epoch if isinstance(schedule, EpochRamp) else step
    value = schedule(place)
    if not PROBABILITY.holds(value):
        what = "epoch" if isinstance(schedule, EpochRamp) else "minibatch"
        raise ValueError(f"schedule must give probabilities from 0 to 1, got {value!r} at {what} {place}")
    return float(value)
