"""Vectors with constraints as functions of free vectors: shares that sum to one, and numbers in ascending order.

Shares break a stick: ``x_j = z_j (1 - z_1) ... (1 - z_{j-1})`` with ``z_j = 1 / (1 + (k - j) exp(-u_j))``, so that
u = 0 gives equal shares. Since ``d log x_i / d u_j`` is ``1 - z_j`` for i = j and ``-z_j`` for i > j, the Jacobian is
simply the product of all k shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.transforms.scalars import Transform, as_shape, total

Array = NDArray[np.float64]
#: Vectors shorter than this are quicker number by number.
FEW = 12


def checked_count(k: Any, least: int, name: str = "k") -> int:
    """A number of entries."""
    if not isinstance(k, int | np.integer) or k < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {k!r}")
    return int(k)


def sums_from_the_end(values: Array) -> Array:
    """``s_j = sum_{i >= j} v_i`` along the last axis."""
    return np.add.accumulate(values[..., ::-1], axis=-1)[..., ::-1]


@dataclass(frozen=True)
class Simplex(Transform):
    """k positive shares that sum to one; the density is one of the first k - 1.

    Parameters
    ----------
    k : int
    shape : int or tuple of int, default=()
        Several vectors: the variable has shape ``(*shape, k)``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc.transforms.vectors import Simplex
    >>> Simplex(4).forward(np.zeros(3))[0]
    array([0.25, 0.25, 0.25, 0.25])
    """

    k: int
    shape: Any = ()

    def __post_init__(self) -> None:
        checked_count(self.k, 2)
        lead = as_shape(self.shape)
        self._set_shape((*lead, self.k), math.prod(lead) * (self.k - 1))
        object.__setattr__(self, "_offset", np.log(np.arange(self.k - 1, 0, -1.0)))

    def forward(self, free: Array) -> tuple[Array, float, Any]:
        """In logarithms, as the last shares may be very small."""
        if self.size < FEW and len(self.shape) == 1:
            return self._forward_few(free.tolist())
        logit = free.reshape(*self.shape[:-1], self.k - 1) - self._offset  # type: ignore[attr-defined]
        # log z = -log(1 + exp(-logit)) and log(1 - z) = -log(1 + exp(logit)), without overflow.
        softplus = np.log1p(np.exp(-np.abs(logit)))
        log_broken = np.minimum(logit, 0.0) - softplus
        log_left = np.add.accumulate(-np.maximum(logit, 0.0) - softplus, axis=-1)
        log_value = np.empty(self.shape)
        log_value[..., :-1] = log_broken
        log_value[..., 1:-1] += log_left[..., :-1]
        log_value[..., -1] = log_left[..., -1]
        value = np.exp(log_value)
        return value, total(log_value), (value, np.exp(log_broken))

    def backward(self, gradient: Any, memory: Any) -> Array:
        """``h_j - z_j sum_{i >= j} h_i`` for ``h = g x + 1``."""
        value, broken = memory
        with_respect_to_log = np.asarray(gradient, dtype=np.float64) * value + 1.0
        after = sums_from_the_end(with_respect_to_log)
        return (with_respect_to_log[..., :-1] - broken * after[..., :-1]).reshape(-1)

    def _forward_few(self, free: list[float]) -> tuple[Array, float, Any]:
        """The same for one short vector, in a third of the time."""
        log_left, log_jacobian = 0.0, 0.0
        shares, broken = [], []
        for number, offset in zip(free, self._offset.tolist()):  # type: ignore[attr-defined]
            logit = number - offset
            softplus = math.log1p(math.exp(-abs(logit)))
            log_broken = min(logit, 0.0) - softplus
            log_jacobian += log_left + log_broken
            shares.append(math.exp(log_left + log_broken))
            broken.append(math.exp(log_broken))
            log_left -= max(logit, 0.0) + softplus
        shares.append(math.exp(log_left))
        value = np.array(shares)
        return value, log_jacobian + log_left, (value, np.array(broken))

    def inverse(self, value: Array) -> Array:
        """Free numbers of shares."""
        if not (value > 0).all():
            raise ValueError("its shares must be positive")
        if not np.allclose(value.sum(axis=-1), 1.0, rtol=0, atol=1e-8):
            raise ValueError("its shares must sum to 1 along the last axis")
        left = sums_from_the_end(value)[..., 1:]
        return (np.log(value[..., :-1]) - np.log(left) + self._offset).reshape(-1)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Ordered(Transform):
    """k numbers in ascending order, ``x_1 = u_1`` and ``x_j = x_{j-1} + exp(u_j)``.

    Parameters
    ----------
    k : int
    shape : int or tuple of int, default=()
        Several vectors: the variable has shape ``(*shape, k)``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc.transforms.vectors import Ordered
    >>> Ordered(3).forward(np.array([-1.0, 0.0, 0.0]))[0]
    array([-1.,  0.,  1.])
    """

    k: int
    shape: Any = ()
    positive = False

    def __post_init__(self) -> None:
        checked_count(self.k, 1)
        self._set_shape((*as_shape(self.shape), self.k))

    def forward(self, free: Array) -> tuple[Array, float, Any]:
        """The logarithm of the Jacobian is the sum of the logarithms of the gaps."""
        free = free.reshape(self.shape)
        gaps = np.exp(free)
        log_jacobian = total(free)
        if not self.positive:
            gaps[..., 0] = free[..., 0]
            log_jacobian -= total(free[..., 0])
        return np.add.accumulate(gaps, axis=-1), log_jacobian, gaps

    def backward(self, gradient: Any, memory: Any) -> Array:
        """``gap_j sum_{i >= j} g_i + 1``; the first number moves all the others along with it."""
        after = sums_from_the_end(np.asarray(gradient, dtype=np.float64))
        result = memory * after + 1.0
        if not self.positive:
            result[..., 0] = after[..., 0]
        return result.reshape(-1)

    def inverse(self, value: Array) -> Array:
        """Free numbers of a sequence."""
        gaps = np.diff(value, axis=-1, prepend=0.0)
        if not (gaps[..., 0 if self.positive else 1 :] > 0).all():
            raise ValueError("it must ascend along the last axis" + (" from above 0" if self.positive else ""))
        free = np.empty_like(gaps)
        free[..., 1:] = np.log(gaps[..., 1:])
        free[..., 0] = np.log(gaps[..., 0]) if self.positive else gaps[..., 0]
        return free.reshape(-1)


@dataclass(frozen=True)
class PositiveOrdered(Ordered):
    """k positive numbers in ascending order: x_j is the sum of ``exp(u_1)`` to ``exp(u_j)``.

    Parameters
    ----------
    k : int
    shape : int or tuple of int, default=()
        Several vectors: the variable has shape ``(*shape, k)``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc.transforms.vectors import PositiveOrdered
    >>> PositiveOrdered(3).forward(np.zeros(3))[0]
    array([1., 2., 3.])
    """

    positive = True
