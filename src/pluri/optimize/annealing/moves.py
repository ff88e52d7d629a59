"""Moves of simulated annealing: where a state may go next.

Steps of numbers are Gaussian, steps of integers are rounded ones that are never zero; at bounds both are reflected.
All are symmetric, ``q(x' | x) = q(x | x')``. Moves of one's own may be of any states, and need not be symmetric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
#: ``(rng, state)``, or ``(rng, state, step_size)`` if there is one, to the next state or a `Proposal`.
Move = Callable[..., Any]

#: Step of numbers with bounds, as a share of their distance.
FIRST_STEP = 0.1


class Proposal(NamedTuple):
    """What a move may return instead of a state, if it knows more.

    Attributes
    ----------
    state : object
    energy : float, optional
        Its energy, if the move has computed it on the way (from that of the old state, say); the function to be
        minimised is not asked then.
    log_ratio : float, default=0.0
        ``log q(x | x') - log q(x' | x)`` of a move from x to x' that is more probable one way than the other.

    Examples
    --------
    >>> from pluri.optimize.annealing import Proposal
    >>> Proposal((1, 2)).log_ratio
    0.0
    """

    state: Any
    energy: float | None = None
    log_ratio: float = 0.0


@dataclass(frozen=True)
class GaussianSteps:
    """``x' = x + step z``, reflected at the bounds; each coordinate has its own."""

    bounds: Array | None

    def __call__(self, rng: np.random.Generator, x: Array, step_size: Array) -> Array:
        """A neighbour of x."""
        moved = x + step_size * rng.standard_normal(x.shape)
        return moved if self.bounds is None else reflected(moved, self.bounds[:, 0], self.bounds[:, 1])


@dataclass(frozen=True)
class IntegerSteps:
    """Rounded Gaussian steps; if all are zero, one coordinate goes up or down by one."""

    bounds: NDArray[np.int64] | None

    def __call__(self, rng: np.random.Generator, x: NDArray[np.int64], step_size: Array) -> NDArray[np.int64]:
        """A neighbour of x."""
        step = np.rint(step_size * rng.standard_normal(x.shape)).astype(np.int64)
        if not step.any():
            step[rng.integers(len(x))] = 1 if rng.random() < 0.5 else -1
        if self.bounds is None:
            return x + step
        # Walls half a unit outside: a mirror on a lattice point would be reached from one side only.
        low, high = self.bounds.T.astype(np.float64)
        inside = reflected((x + step).astype(np.float64), low - 0.5, high + 0.5)
        return np.rint(inside).astype(np.int64)


def reflected(x: Array, low: Array, high: Array) -> Array:
    """Coordinates folded into the bounds, as by mirrors on both sides.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.optimize.annealing.moves import reflected
    >>> reflected(np.array([-0.25, 0.5, 1.5, 2.25]), np.zeros(4), np.ones(4)).tolist()
    [0.25, 0.5, 0.5, 0.25]
    """
    if ((x >= low) & (x <= high)).all():
        return x
    width = high - low
    # A width of zero leaves one point.
    folded = np.mod(x - low, np.where(width > 0, 2.0 * width, 1.0))
    return np.where(width > 0, low + np.minimum(folded, 2.0 * width - folded), low)


def check_bounds(bounds: ArrayLike | None, integer: bool) -> Any:
    """Bounds as an array (n_dimensions, 2), or None."""
    if bounds is None:
        return None
    try:
        pairs = np.array(bounds, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"bounds must be pairs (low, high) of numbers, got {bounds!r}") from error
    if pairs.ndim != 2 or pairs.shape[1:] != (2,) or len(pairs) == 0:
        raise ValueError(f"bounds must be pairs (low, high), one for each coordinate, got {bounds!r}")
    if not np.isfinite(pairs).all() or (pairs[:, 0] > pairs[:, 1]).any():
        bad = int(np.flatnonzero(~(np.isfinite(pairs).all(axis=1) & (pairs[:, 0] <= pairs[:, 1])))[0])
        raise ValueError(f"bounds must be finite, low before high, got {tuple(pairs[bad].tolist())} as pair {bad}")
    if not integer:
        return pairs
    whole = np.array([np.ceil(pairs[:, 0]), np.floor(pairs[:, 1])]).T.astype(np.int64)
    if (whole[:, 0] > whole[:, 1]).any():
        raise ValueError(f"bounds must hold an integer in each pair, got {bounds!r}")
    return whole


def check_steps(step_size: Any, bounds: Array | None, n_dimensions: int) -> Array:
    """Step of each coordinate (n_dimensions,); by default a tenth of the distance of its bounds, or 1."""
    if step_size is None:
        if bounds is None:
            return np.ones(n_dimensions)
        width = (bounds[:, 1] - bounds[:, 0]).astype(np.float64)
        return np.where(width > 0, FIRST_STEP * width, 1.0)
    try:
        steps = np.broadcast_to(np.asarray(step_size, dtype=np.float64), (n_dimensions,)).copy()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"step_size must be a number or one for each of {n_dimensions} coordinates, got {step_size!r}"
        ) from error
    if not (np.isfinite(steps).all() and (steps > 0).all()):
        raise ValueError(f"step_size must be positive, got {step_size!r}")
    return steps


def array_state(x0: Any, integer: bool, bounds: Any) -> Any:
    """A beginning as an array with one axis."""
    kind: Any = np.int64 if integer else np.float64
    try:
        values = np.array(x0, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"x0 must be numbers if moves={'integer' if integer else 'gaussian'!r}, got {x0!r}") from error
    if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
        raise ValueError(f"x0 must be finite numbers with one axis, got {x0!r}")
    if integer and (values != np.rint(values)).any():
        raise ValueError(f"x0 must be integers if moves='integer', got {x0!r}")
    if bounds is not None:
        if len(values) != len(bounds):
            raise ValueError(f"x0 must have {len(bounds)} coordinates, as many as there are bounds, got {len(values)}")
        if ((values < bounds[:, 0]) | (values > bounds[:, 1])).any():
            raise ValueError(f"x0 must lie within the bounds, got {x0!r}")
    return values.astype(kind)
