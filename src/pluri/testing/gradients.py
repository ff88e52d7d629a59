"""Gradients against finite differences, coordinate by coordinate, and which one is wrong.

Central differences over two widths, ``(8 [f(x + h) - f(x - h)] - [f(x + 2h) - f(x - 2h)]) / 12 h``, have an error of
order h^4; how far they are from the plain ``[f(x + h) - f(x - h)] / 2h`` tells how far to trust them. The complex step
``Im f(x + ih) / h`` has no rounding at all, where f takes complex numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.testing.comparison import aligned
from pluri.validation import Only, check_value

Array = NDArray[np.float64]


class GradientError(AssertionError):
    """A gradient disagrees with differences of its function; the message is a table of the worst coordinates."""


@dataclass(frozen=True)
class GradientCheck:
    """A gradient and what differences say.

    Attributes
    ----------
    names : tuple of str
    gradient, differences : ndarray of shape (dim,)
    error : ndarray of shape (dim,)
        ``|gradient - differences| / max(|gradient|, |differences|, scale)``, the scale being the mean size of the
        gradient's entries: a coordinate that should be zero is not held to a relative error.
    tolerance : ndarray of shape (dim,)
        What the error may be: `rtol`, or more where the differences themselves are that uncertain.
    """

    names: tuple[str, ...]
    gradient: Array
    differences: Array
    error: Array
    tolerance: Array

    @property
    def worst(self) -> str:
        """Name of the coordinate with the largest error, relative to what is allowed."""
        return self.names[int(np.argmax(self.error / self.tolerance))]

    @property
    def passed(self) -> bool:
        """Whether every coordinate agrees."""
        return bool((self.error <= self.tolerance).all())

    def summary(self, n_worst: int = 8) -> str:
        """Coordinates with the largest errors, as a plain table."""
        order = np.argsort(-self.error / self.tolerance, kind="stable")[:n_worst]
        rows = [
            (self.names[i], f"{self.gradient[i]:.8g}", f"{self.differences[i]:.8g}", f"{self.error[i]:.2e}",
             "ok" if self.error[i] <= self.tolerance[i] else "WRONG")
            for i in order
        ]  # fmt: skip
        return aligned(("coordinate", "gradient", "differences", "error", ""), rows)

    def __str__(self) -> str:
        return self.summary()


def check_gradients(
    value_and_grad: Callable[[Array], tuple[Any, Any]],
    position: ArrayLike,
    *,
    method: Literal["central", "complex"] = "central",
    step: float | None = None,
    rtol: float = 1e-5,
    names: Sequence[str] | None = None,
    raise_error: bool = True,
) -> GradientCheck:
    """Compare a gradient with finite differences of its function.

    Parameters
    ----------
    value_and_grad : callable
        Position (any shape) to the value and the gradient (the same shape).
    position : array-like
    method : {"central", "complex"}, default="central"
        "complex" needs a value that is computed without conjugates or absolute values.
    step : float, optional
        Width of the differences, relative to the size of a coordinate where that is above 1.
    rtol : float, default=1e-5
        Largest relative error that passes.
    names : sequence of str, optional
        Names of the coordinates.
    raise_error : bool, default=True
        Raise a `GradientError` if the gradient is wrong.

    Returns
    -------
    GradientCheck

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.testing import check_gradients
    >>> check_gradients(lambda x: (np.sum(x**3), 3 * x**2), [1.0, 2.0]).passed
    True
    >>> check = check_gradients(lambda x: (np.sum(x**3), np.array([3.0, 10.0])), [1.0, 2.0], raise_error=False)
    >>> check.worst
    'x[1]'
    """
    check_value(method, "method", Only("central", "complex"))
    x = np.array(position, dtype=np.float64)
    if x.size == 0 or not np.isfinite(x).all():
        raise ValueError("position must be finite and not empty")
    value, gradient = value_and_grad(x.copy())
    gradient = np.asarray(gradient, dtype=np.float64)
    if np.size(value) != 1 or not np.isfinite(value):
        raise ValueError(f"the value must be one finite number at the position, got {value!r}")
    if gradient.shape != x.shape:
        raise ValueError(f"the gradient must have the shape of the position {x.shape}, got {gradient.shape}")
    if names is None:
        names = [f"x[{','.join(map(str, index))}]" if index else "x" for index in np.ndindex(x.shape)]
    if len(names) != x.size:
        raise ValueError(f"names must have one entry for each of {x.size} coordinates, got {len(names)}")

    def along(j: int, shift: Any) -> Any:
        moved = x.astype(np.result_type(x, type(shift))).reshape(-1)
        moved[j] += shift
        return np.asarray(value_and_grad(moved.reshape(x.shape))[0]).item()

    differences, uncertainty = np.empty(x.size), np.zeros(x.size)
    for j, coordinate in enumerate(x.reshape(-1)):
        if method == "complex":
            differences[j] = along(j, 1e-30j).imag / 1e-30
            continue
        width = (step if step is not None else 1e-4) * max(1.0, abs(coordinate))
        near, far = (along(j, h) - along(j, -h) for h in (width, 2.0 * width))
        differences[j] = (8.0 * near - far) / (12.0 * width)
        rounding = 4.0 * np.finfo(float).eps * max(abs(float(value)), 1.0) / width
        # The plain difference is off by order h^2; the corrected one by about the square of that, relatively.
        bend = abs(near / (2.0 * width) - differences[j])
        uncertainty[j] = rounding + bend**2 / max(abs(differences[j]), bend, 1e-300)
    flat = gradient.reshape(-1)
    scale = np.maximum(np.maximum(np.abs(flat), np.abs(differences)), max(float(np.abs(differences).mean()), 1e-8))
    error = np.abs(flat - differences) / scale
    error[~np.isfinite(error)] = np.inf
    check = GradientCheck(tuple(names), flat.copy(), differences, error, rtol + np.nan_to_num(uncertainty) / scale)
    if raise_error and not check.passed:
        wrong = int((check.error > check.tolerance).sum())
        raise GradientError(f"the gradient is wrong in {wrong} of {x.size} coordinates, worst {check.worst}\n{check}")
    return check
