"""Numbers with bounds, as functions of numbers without: what lets a sampler of free vectors move them.

A variable ``x = T(u)`` with density p(x) has the density ``p(T(u)) |dT/du|`` in the free coordinate u. Each transform
gives x, ``log |dT/du|``, and, from the gradient of any f with respect to x, the gradient of ``f(T(u)) + log |dT/du|``
with respect to u.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Shape = int | tuple[int, ...]


def as_shape(shape: Any) -> tuple[int, ...]:
    """A shape given as a number or a tuple of numbers."""
    sizes = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    if not all(isinstance(size, int | np.integer) and size >= 1 for size in sizes):
        raise ValueError(f"shape must be whole numbers of at least 1, got {shape!r}")
    return tuple(int(size) for size in sizes)


def total(values: Array) -> float:
    """Sum as a float; `numpy.sum` takes longer than all the rest for the few numbers of a block."""
    return float(values.item()) if values.size == 1 else float(np.add.reduce(values, axis=None))


class Transform(ABC):
    """A variable of a given `shape` as a function of `size` free numbers."""

    shape: tuple[int, ...]
    size: int

    @abstractmethod
    def forward(self, free: Array) -> tuple[Array, float, Any]:
        """The variable, ``log |dT/du|``, and what :meth:`backward` wants to remember; `free` has shape (size,)."""

    @abstractmethod
    def backward(self, gradient: Any, memory: Any) -> Array:
        """Gradient (size,) of ``f(T(u)) + log |dT/du|``, from the gradient of f with respect to the variable."""

    @abstractmethod
    def inverse(self, value: Array) -> Array:
        """Free numbers (size,) of a variable; ValueError if it is outside the support or on its edge."""

    def _set_shape(self, shape: Any, size: int | None = None) -> None:
        object.__setattr__(self, "shape", as_shape(shape))
        object.__setattr__(self, "size", math.prod(self.shape) if size is None else size)


@dataclass(frozen=True)
class Real(Transform):
    """Numbers without bounds.

    Parameters
    ----------
    shape : int or tuple of int, default=()

    Examples
    --------
    >>> from pluri.inference.mcmc.transforms.scalars import Real
    >>> Real((2, 3)).size
    6
    """

    shape: Any = ()

    def __post_init__(self) -> None:
        self._set_shape(self.shape)

    def forward(self, free: Array) -> tuple[Array, float, Any]:
        """``x = u``."""
        return free.reshape(self.shape), 0.0, None

    def backward(self, gradient: Any, memory: Any) -> Array:
        """The gradient itself."""
        return np.asarray(gradient, dtype=np.float64).reshape(-1)

    def inverse(self, value: Array) -> Array:
        """``u = x``."""
        return value.reshape(-1)


@dataclass(frozen=True)
class Positive(Transform):
    """Positive numbers, ``x = exp(u)``.

    Parameters
    ----------
    shape : int or tuple of int, default=()

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc.transforms.scalars import Positive
    >>> value, log_jacobian, _ = Positive(2).forward(np.array([0.0, 1.0]))
    >>> value.round(3), log_jacobian
    (array([1.   , 2.718]), 1.0)
    """

    shape: Any = ()

    def __post_init__(self) -> None:
        self._set_shape(self.shape)

    def forward(self, free: Array) -> tuple[Array, float, Any]:
        """``x = exp(u)``; the logarithm of the Jacobian is the sum of u."""
        value = np.exp(free)
        return value.reshape(self.shape), total(free), value

    def backward(self, gradient: Any, memory: Any) -> Array:
        """``g x + 1``."""
        return np.asarray(gradient, dtype=np.float64).reshape(-1) * memory + 1.0

    def inverse(self, value: Array) -> Array:
        """``u = log x``."""
        if not (value > 0).all():
            raise ValueError("it must be positive")
        return np.log(value).reshape(-1)


@dataclass(frozen=True)
class LowerBound(Transform):
    """Numbers above a bound, ``x = low + exp(u)``.

    Parameters
    ----------
    low : float or array-like
    shape : int or tuple of int, optional
        The shape of `low` by default.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc.transforms.scalars import LowerBound
    >>> LowerBound(3.0).inverse(np.array(4.0))
    array([0.])
    """

    low: Any
    shape: Any = None
    sign = 1.0

    def __post_init__(self) -> None:
        bound = np.asarray(self.low, dtype=np.float64)
        self._set_shape(bound.shape if self.shape is None else self.shape)
        if not np.isfinite(bound).all():
            raise ValueError(f"the bound must be finite, got {self.low!r}")
        object.__setattr__(self, "_bound", np.broadcast_to(bound, self.shape).reshape(-1))

    def forward(self, free: Array) -> tuple[Array, float, Any]:
        """``x = low + exp(u)``; the logarithm of the Jacobian is the sum of u."""
        slope = self.sign * np.exp(free)
        return (self._bound + slope).reshape(self.shape), total(free), slope  # type: ignore[attr-defined]

    def backward(self, gradient: Any, memory: Any) -> Array:
        """``g (x - low) + 1``."""
        return np.asarray(gradient, dtype=np.float64).reshape(-1) * memory + 1.0

    def inverse(self, value: Array) -> Array:
        """``u = log(x - low)``."""
        distance = self.sign * (value.reshape(-1) - self._bound)  # type: ignore[attr-defined]
        if not (distance > 0).all():
            raise ValueError(f"it must be {'above' if self.sign > 0 else 'below'} {self.low!r}")
        return np.log(distance)


@dataclass(frozen=True)
class UpperBound(LowerBound):
    """Numbers below a bound, ``x = high - exp(u)``.

    Parameters
    ----------
    low : float or array-like
        The bound, given by position: ``UpperBound(1.0)``.
    shape : int or tuple of int, optional

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc.transforms.scalars import UpperBound
    >>> UpperBound(1.0).inverse(np.array(0.0))
    array([0.])
    """

    sign = -1.0


@dataclass(frozen=True)
class Interval(Transform):
    """Numbers between two bounds, ``x = low + (high - low) / (1 + exp(-u))``.

    Parameters
    ----------
    low, high : float or array-like
    shape : int or tuple of int, optional
        The common shape of the bounds by default.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc.transforms.scalars import Interval
    >>> float(Interval(-1, 3).forward(np.zeros(1))[0])
    1.0
    """

    low: Any = 0.0
    high: Any = 1.0
    shape: Any = None

    def __post_init__(self) -> None:
        low, high = np.asarray(self.low, dtype=np.float64), np.asarray(self.high, dtype=np.float64)
        self._set_shape(np.broadcast_shapes(low.shape, high.shape) if self.shape is None else self.shape)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ValueError(
                f"low and high must be finite, got {self.low!r} and {self.high!r}; see LowerBound, UpperBound and Real"
            )
        if (low == high).any():
            raise ValueError(
                f"the interval from {self.low!r} to {self.high!r} has no width: fix the variable at that value instead"
            )
        if not (low < high).all():
            raise ValueError(f"low must be below high, got {self.low!r} and {self.high!r}")
        object.__setattr__(self, "_low", np.broadcast_to(low, self.shape).reshape(-1))
        object.__setattr__(self, "_width", np.broadcast_to(high - low, self.shape).reshape(-1))
        object.__setattr__(self, "_log_width", float(np.log(self._width).sum()))  # type: ignore[attr-defined]

    def forward(self, free: Array) -> tuple[Array, float, Any]:
        """The logarithm of the Jacobian is the sum of ``log width + log s + log(1 - s)`` for ``s = 1/(1+exp(-u))``."""
        if self.size == 1:
            return self._forward_one(float(free[0]))
        # exp(-|u|) cannot overflow; s and 1 - s are then exact on either side.
        small = np.exp(-np.abs(free))
        share = np.where(free >= 0, 1.0, small) / (1.0 + small)
        log_jacobian = self._log_width - total(np.abs(free) + 2.0 * np.log1p(small))  # type: ignore[attr-defined]
        value = self._low + self._width * share  # type: ignore[attr-defined]
        return value.reshape(self.shape), log_jacobian, (share, small)

    def _forward_one(self, free: float) -> tuple[Array, float, Any]:
        """The same for one number, in a third of the time."""
        small = math.exp(-abs(free))
        share = (1.0 if free >= 0 else small) / (1.0 + small)
        log_jacobian = self._log_width - abs(free) - 2.0 * math.log1p(small)  # type: ignore[attr-defined]
        value = self._low + self._width * share  # type: ignore[attr-defined]
        return value.reshape(self.shape), log_jacobian, (share, small)

    def backward(self, gradient: Any, memory: Any) -> Array:
        """``g width s (1 - s) + 1 - 2 s``."""
        share, small = memory
        slope = self._width * small / (1.0 + small) ** 2  # type: ignore[attr-defined]
        return np.asarray(gradient, dtype=np.float64).reshape(-1) * slope + (1.0 - 2.0 * share)

    def inverse(self, value: Array) -> Array:
        """``u = log(x - low) - log(high - x)``."""
        below = value.reshape(-1) - self._low  # type: ignore[attr-defined]
        above = self._width - below  # type: ignore[attr-defined]
        if not ((below > 0) & (above > 0)).all():
            raise ValueError(f"it must lie strictly between {self.low!r} and {self.high!r}")
        return np.log(below) - np.log(above)
