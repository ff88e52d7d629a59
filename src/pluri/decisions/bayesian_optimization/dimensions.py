"""Dimensions of a search space: how each parameter is written as one number, and back.

A real number or an integer becomes its place between the bounds, from 0 to 1 (on the logarithms if `log`), a choice the
number of its place in the list, a parameter with a distribution the value of its distribution function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pluri.validation import Flag, Number, Whole, check_value

Array = NDArray[np.float64]


class Dimension(Protocol):
    """A parameter to be searched."""

    @property
    def n_levels(self) -> float:
        """Number of different values; infinite for real numbers."""

    @property
    def categorical(self) -> bool:
        """Whether codes are numbers of choices, without an order."""

    def spread(self, share: Array) -> Array:
        """Codes of values that divide all values evenly, for shares from 0 to 1."""

    def snap(self, code: Array) -> Array:
        """The nearest codes that values have."""

    def levels(self) -> list[float]:
        """All codes, if there are finitely many."""

    def value(self, code: float) -> Any:
        """Value of a code."""

    def code(self, value: Any) -> float:
        """Code of a value; ValueError if it is none of the dimension."""


@dataclass(frozen=True)
class Real:
    """A real number.

    Parameters
    ----------
    low, high : float
    log : bool, default=False
        Whether ratios matter instead of differences, as for a learning rate.

    Examples
    --------
    >>> from pluri.decisions import Real
    >>> rate = Real(1e-5, 1e-1, log=True)
    >>> float(rate.value(0.5)), rate.code(1e-2)
    (0.001, 0.75)
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        check_value(self.low, "low", Number())
        check_value(self.high, "high", Number())
        check_value(self.log, "log", Flag())
        _check_order(self)

    @property
    def n_levels(self) -> float:
        """Infinite, or 1 if the bounds are equal."""
        return math.inf if self.low < self.high else 1.0

    categorical = False

    def spread(self, share: Array) -> Array:
        """The shares themselves."""
        return self.snap(share)

    def snap(self, code: Array) -> Array:
        """Codes from 0 to 1."""
        return np.clip(code, 0.0, 1.0) if self.low < self.high else np.zeros_like(code)

    def levels(self) -> list[float]:
        """The only code, if the bounds are equal."""
        return [0.0]

    def value(self, code: float) -> float:
        """The number at a place between the bounds."""
        if code in (0.0, 1.0):  # the logarithm of a bound and back is a bit off
            return float(self.high if code else self.low)
        if self.log:
            between = math.exp((1.0 - code) * math.log(self.low) + code * math.log(self.high))
        else:
            between = (1.0 - code) * self.low + code * self.high
        return float(min(max(between, self.low), self.high))

    def code(self, value: Any) -> float:
        """Place of a number between the bounds."""
        check_value(value, "it", Number(least=self.low, most=self.high))
        if self.low == self.high:
            return 0.0
        low, high, x = (math.log(v) if self.log else float(v) for v in (self.low, self.high, value))
        return (x - low) / (high - low)


@dataclass(frozen=True)
class Integer:
    """A whole number, both bounds included.

    Parameters
    ----------
    low, high : int
    log : bool, default=False
        Whether ratios matter instead of differences.

    Examples
    --------
    >>> from pluri.decisions import Integer
    >>> Integer(10, 20).value(0.52), Integer(10, 20).code(12)
    (15, 0.2)
    """

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        check_value(self.low, "low", Whole())
        check_value(self.high, "high", Whole())
        check_value(self.log, "log", Flag())
        _check_order(self)

    @property
    def n_levels(self) -> float:
        """Number of integers between the bounds."""
        return float(self.high - self.low + 1)

    categorical = False

    def spread(self, share: Array) -> Array:
        """Each integer for an equal part of the shares, or of their logarithms."""
        if self.log:
            low, high = math.log(self.low - 0.5), math.log(self.high + 0.5)
            return self._codes(np.exp(low + share * (high - low)))
        return self._codes(self.low - 0.5 + share * self.n_levels)

    def snap(self, code: Array) -> Array:
        """Codes of integers."""
        low, high = (math.log(v) if self.log else float(v) for v in (self.low, self.high))
        between = low + np.clip(code, 0.0, 1.0) * (high - low)
        return self._codes(np.exp(between) if self.log else between)

    def levels(self) -> list[float]:
        """Codes of all integers."""
        return self._codes(np.arange(self.low, self.high + 1, dtype=np.float64)).tolist()

    def value(self, code: float) -> int:
        """The nearest integer."""
        low, high = (math.log(v) if self.log else float(v) for v in (self.low, self.high))
        between = low + min(max(code, 0.0), 1.0) * (high - low)
        return min(max(round(math.exp(between) if self.log else between), int(self.low)), int(self.high))

    def code(self, value: Any) -> float:
        """Place of an integer between the bounds; a float that is whole, as tables and JSON give it, is one."""
        if isinstance(value, float | np.floating) and float(value).is_integer():
            value = int(value)
        check_value(value, "it", Whole(int(self.low), int(self.high)))
        return float(self._codes(np.array([float(value)]))[0])

    def _codes(self, numbers: Array) -> Array:
        whole = np.clip(np.rint(numbers), self.low, self.high)
        if self.low == self.high:
            return np.zeros_like(whole)
        if self.log:
            return np.log(whole / self.low) / math.log(self.high / self.low)
        return (whole - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class Categorical:
    """One of several values, which have no order.

    Parameters
    ----------
    choices : sequence

    Examples
    --------
    >>> from pluri.decisions import Categorical
    >>> kernel = Categorical(["rbf", "poly", None])
    >>> kernel.code("poly"), kernel.value(2.0)
    (1.0, None)
    """

    choices: tuple[Any, ...]

    def __init__(self, choices: Sequence[Any]) -> None:
        if isinstance(choices, str | bytes) or not hasattr(choices, "__len__") or len(choices) == 0:
            raise ValueError(f"choices must be a list of at least one value, got {choices!r}")
        values = tuple(choice.item() if isinstance(choice, np.generic) else choice for choice in choices)
        object.__setattr__(self, "choices", values)
        for number, one in enumerate(values):
            if any(same(one, other) for other in values[:number]):
                raise ValueError(f"choices must differ, got {one!r} twice")

    @property
    def n_levels(self) -> float:
        """Number of choices."""
        return float(len(self.choices))

    categorical = True

    def spread(self, share: Array) -> Array:
        """Each choice for an equal part of the shares."""
        return np.minimum(np.floor(share * len(self.choices)), len(self.choices) - 1.0)

    def snap(self, code: Array) -> Array:
        """Whole numbers."""
        return np.clip(np.rint(code), 0.0, len(self.choices) - 1.0)

    def levels(self) -> list[float]:
        """Numbers of the choices."""
        return [float(number) for number in range(len(self.choices))]

    def value(self, code: float) -> Any:
        """The choice of this number."""
        return self.choices[int(code)]

    def code(self, value: Any) -> float:
        """The number of a choice."""
        for number, one in enumerate(self.choices):
            if same(one, value):
                return float(number)
        raise ValueError(f"it must be one of {', '.join(map(repr, self.choices))}, got {value!r}")


def same(one: Any, other: Any) -> bool:
    """Whether two choices are the same: 1, 1.0 and True are three."""
    if isinstance(other, np.generic):
        other = other.item()
    return one is other or (type(one) is type(other) and bool(np.all(one == other)))


def _check_order(dimension: Any) -> None:
    if dimension.low > dimension.high:
        raise ValueError(f"low must be at most high, got low={dimension.low!r} and high={dimension.high!r}")
    if dimension.log and dimension.low <= 0:
        raise ValueError(f"low must be positive if log, got {dimension.low!r}")
