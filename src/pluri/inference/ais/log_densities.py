"""Log densities and samplers that a user gives, called with checks: shapes, NaN, infinities, no spread, no end.

A log density takes points (n, d) and gives (n,), or with ``vectorized=False`` one point (d,) and gives one number. A
sampler ``sample(rng, n)`` gives n points, one a row. What is wrong with them is said in one sentence, at the door.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.validation import Number

Array = NDArray[np.float64]
#: Points (n, ...) to their log densities (n,), up to a constant; or one point to one number.
LogDensity = Callable[[Any], Any]
#: ``sample(rng, n)`` draws n points (n, ...).
Sampler = Callable[[np.random.Generator, int], Any]


#: A number between 0 and 1, neither of them.
SHARE = Number(above=0, below=1)


def check_callable(value: Any, name: str) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise ValueError(f"{name} must be a function, got {type(value).__name__}")


def evaluate_rows(function: LogDensity, x: NDArray[Any], name: str, vectorized: bool = True) -> Array:
    """Log densities (n,) of the points `x` (n, ...); NaN and infinities go through.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.ais.log_densities import evaluate_rows
    >>> evaluate_rows(lambda row: -float(row @ row), np.array([[1.0, 0.0], [2.0, 0.0]]), "log_target", False)
    array([-1., -4.])
    """
    if not vectorized:
        values = np.empty(len(x))
        for row in range(len(x)):
            value = np.asarray(function(x[row]), dtype=np.float64)
            if value.size != 1:
                raise ValueError(f"{name} must give one number for one point, got shape {value.shape}")
            values[row] = value.item()
        return values
    values = np.asarray(function(x))
    if values.shape != (len(x),) or values.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must give one number for each of {len(x)} points, shape ({len(x)},), got shape {values.shape} of "
            f"{values.dtype}; a function of one point at a time needs vectorized=False"
        )
    return values.astype(np.float64)


def draw_points(sample: Sampler, rng: np.random.Generator, n: int, name: str) -> NDArray[Any]:
    """`n` points (n, ...) from a sampler."""
    points = np.array(sample(rng, n))
    if points.dtype.kind not in "iufb" or points.ndim < 2 or len(points) != n:
        hint = "; for one dimension give (n, 1)" if points.shape == (n,) else ""
        raise ValueError(f"{name}(rng, {n}) must give numbers of shape ({n}, d), got shape {points.shape}{hint}")
    if not points.size:
        raise ValueError(f"{name} must give points with at least one coordinate, got shape {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError(f"{name} must give finite numbers, got {int((~np.isfinite(points)).sum())} that are not")
    return points


def check_at_own_draws(values: Array, x: NDArray[Any], density: str, sampler: str) -> None:
    """Refuse a density that is not finite where its own sampler goes."""
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise ValueError(
            f"{density} must be finite at the draws of {sampler}, got {values[wrong[0]]} at {len(wrong)} of "
            f"{len(values)}, first at {_shown(x[wrong[0]])}: do the two belong to the same distribution?"
        )


def check_defined(values: Array, x: NDArray[Any], density: str) -> None:
    """Refuse NaN and +inf; -inf is a density of zero."""
    wrong = np.flatnonzero(np.isnan(values) | (values == np.inf))
    if len(wrong):
        raise ValueError(
            f"{density} must be a number below infinity, got {values[wrong[0]]} at {len(wrong)} of {len(values)} "
            f"draws, first at {_shown(x[wrong[0]])}"
        )


def check_somewhere_positive(values: Array, density: str, sampler: str) -> None:
    """Refuse a density that is zero at every draw."""
    if (values == -np.inf).all():
        raise ValueError(
            f"{density} is -inf at all {len(values)} draws of {sampler}: every weight is zero, and nothing can be "
            f"estimated; draw from a distribution that reaches where {density} is positive"
        )


def check_not_flat(function: LogDensity, values: Array, start: Array, x: NDArray[Any], name: str, rows: bool) -> None:
    """Refuse a target that is constant on the whole space; one that is constant on a bounded set is fine."""
    if x.dtype.kind != "f" or len(x) < 2 or (values != values[0]).any() or np.ptp(start) == 0 or values[0] == -np.inf:
        return
    centre, spread = x.mean(axis=0), np.ptp(x, axis=0).max()
    far = np.stack([centre + sign * distance * spread for distance in (1e3, 1e6) for sign in (-1.0, 1.0)])
    if (evaluate_rows(function, far, name, rows) == values[0]).all():
        raise ValueError(f"{name} is the same everywhere: a flat target on the whole space cannot be normalised")


def check_spread(x: NDArray[Any], sampler: str) -> None:
    """Refuse a sampler of vectors whose draws are the same in some coordinate."""
    if len(x) < 10:
        return
    still = np.flatnonzero(np.ptp(x.reshape(len(x), -1), axis=0) == 0)
    if len(still):
        raise ValueError(
            f"{sampler} gave the same value in coordinate {still[0]} of all {len(x)} draws: a distribution without "
            "width there has no density; leave the coordinate out"
        )


def _shown(point: NDArray[Any]) -> str:
    return np.array2string(point, precision=4, threshold=6)
