"""Falls from 1 towards 0, step by step: of a temperature, or of the share of true tokens in scheduled sampling.

| class | share at step i |
| --- | --- |
| `LinearDecay` | max(minimum, offset - slope i), 1 at most |
| `ExponentialDecay` | max(minimum, base^i) |
| `LogarithmicDecay` | max(minimum, 1 / log(i + e)) |
| `acceptance_target` | no share but the acceptance that an adaptive temperature aims at (Lam's schedule [1]_) |

A temperature is such a share of the initial one; any other function of i will do as well.

References
----------
.. [1] Cicirello, V. A. (2020). Optimizing the modified Lam annealing schedule. EAI Endorsed Transactions on Industrial
   Networks and Intelligent Systems 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation import Number, check_value

Array = NDArray[np.float64]
Schedule = Callable[[Any], Any]

#: Schedules of a temperature that can be asked for by name.
SCHEDULES = ("exponential", "linear", "logarithmic", "adaptive")

SHARE = Number(least=0, most=1)
#: Acceptance that the adaptive temperature keeps for most of a run.
MIDDLE_ACCEPTANCE = 0.44


@dataclass(frozen=True)
class LinearDecay:
    """A straight fall: ``max(minimum, offset - slope * i)``, held at 1 while it is above.

    Parameters
    ----------
    slope : float
        Fall from one step to the next.
    offset : float, default=1.0
        Value at step 0; above 1, the fall begins later.
    minimum : float, default=0.0

    Examples
    --------
    >>> from pluri.optimize.annealing import LinearDecay
    >>> schedule = LinearDecay(slope=0.01, minimum=0.25)
    >>> [float(schedule(i)) for i in (0, 50, 1000)]
    [1.0, 0.5, 0.25]
    """

    slope: float
    offset: float = 1.0
    minimum: float = 0.0

    def __post_init__(self) -> None:
        check_value(self.slope, "slope", Number(least=0))
        check_value(self.offset, "offset", Number(least=0))
        check_value(self.minimum, "minimum", SHARE)

    def __call__(self, i: ArrayLike) -> Any:
        """Share at step `i`, from 0."""
        return np.minimum(1.0, np.maximum(self.minimum, self.offset - self.slope * np.asarray(i, dtype=np.float64)))


@dataclass(frozen=True)
class ExponentialDecay:
    """A geometric fall: ``max(minimum, base ** i)``.

    Parameters
    ----------
    base : float
        Between 0 and 1, excluded.
    minimum : float, default=0.0

    Examples
    --------
    >>> from pluri.optimize.annealing import ExponentialDecay
    >>> round(float(ExponentialDecay(0.99)(100)), 4)
    0.366
    """

    base: float
    minimum: float = 0.0

    def __post_init__(self) -> None:
        check_value(self.base, "base", Number(above=0, below=1))
        check_value(self.minimum, "minimum", SHARE)

    def __call__(self, i: ArrayLike) -> Any:
        """Share at step `i`, from 0."""
        return np.maximum(self.minimum, np.exp(np.log(self.base) * np.asarray(i, dtype=np.float64)))


@dataclass(frozen=True)
class LogarithmicDecay:
    """The slow fall under which annealing provably ends at the optimum: ``max(minimum, 1 / log(i + e))``.

    Parameters
    ----------
    minimum : float, default=0.0

    Examples
    --------
    >>> from pluri.optimize.annealing import LogarithmicDecay
    >>> float(LogarithmicDecay()(0)), round(float(LogarithmicDecay()(1000)), 3)
    (1.0, 0.145)
    """

    minimum: float = 0.0

    def __post_init__(self) -> None:
        check_value(self.minimum, "minimum", SHARE)

    def __call__(self, i: ArrayLike) -> Any:
        """Share at step `i`, from 0."""
        return np.maximum(self.minimum, 1.0 / np.log(np.asarray(i, dtype=np.float64) + math.e))


def acceptance_target(progress: float) -> float:
    """Acceptance that suits the share of a run that is over: 1 at first, 0.44 from 15 to 65 %, then down to 0.001.

    Examples
    --------
    >>> from pluri.optimize.annealing.schedules import acceptance_target
    >>> [round(acceptance_target(progress), 3) for progress in (0.0, 0.15, 0.5, 1.0)]
    [1.0, 0.44, 0.44, 0.001]
    """
    if progress < 0.15:
        return MIDDLE_ACCEPTANCE + 0.56 * 560.0 ** (-progress / 0.15)
    if progress < 0.65:
        return MIDDLE_ACCEPTANCE
    return MIDDLE_ACCEPTANCE * 440.0 ** (-(progress - 0.65) / 0.35)


def shares(schedule: str | Schedule, cooling: float, n_levels: int) -> Array | None:
    """Share of the initial temperature at each level (n_levels,); None for "adaptive", which depends on the run."""
    levels = np.arange(n_levels)
    if isinstance(schedule, str):
        if schedule == "adaptive":
            return None
        if schedule == "exponential":
            schedule = ExponentialDecay(cooling) if cooling < 1 else np.ones_like
        elif schedule == "linear":
            schedule = LinearDecay(1.0 / n_levels)
        else:
            schedule = LogarithmicDecay()
        return np.asarray(schedule(levels), dtype=np.float64)
    if isinstance(schedule, LinearDecay | ExponentialDecay | LogarithmicDecay):
        return np.asarray(schedule(levels), dtype=np.float64)
    return np.array([_checked(schedule(level), level) for level in levels.tolist()])


def _checked(share: Any, level: int) -> float:
    if not Number(least=0).holds(share):
        raise ValueError(f"schedule must give numbers of at least 0, got {share!r} at level {level}")
    return float(share)
