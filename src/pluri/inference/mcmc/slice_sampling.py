"""Slice sampling: draw a level under the density, then a point of the set that lies above it.

At x with ``log y = log f(x) - Exp(1)`` the slice is ``{x': log f(x') > log y}``. An interval around x is widened until
its ends are outside, and points are drawn from it; each that is outside shrinks it towards x. The width of the first
interval changes what a draw costs, not its distribution. Vectors are moved one coordinate at a time, along random
directions, or in a box that only shrinks.

References
----------
.. [1] Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.accept_reject.metropolis_hastings import LogDensity, as_vector, initial_point
from pluri.inference.mcmc.compiled_targets.chains import Block, advance_compiled, compiled_step
from pluri.inference.mcmc.kernel import Info
from pluri.inference.mcmc.slice_adaptation import SliceAdaptation
from pluri.inference.mcmc.slice_intervals import MOST_SHRINKS, Slicing, slice_line, stuck

Array = NDArray[np.float64]
Mode = Literal["coordinate", "direction", "box"]


class SliceState(NamedTuple):
    """Where a chain is, and how wide the last interval of each coordinate was (zero where there was none)."""

    position: Array
    log_density: float
    interval: Array


@dataclass(frozen=True)
class Slice:
    """Slice sampling of a density on vectors, which needs no tuning to be right and little to be fast.

    Parameters
    ----------
    log_density : callable
        Position (dim,) to the log density of the target, up to a constant.
    width : float or array-like of shape (dim,), default=1.0
        Width of the first interval of each coordinate: about the width of the target.
    max_steps : int or None, default=None
        Most steps that widen an interval; None widens until both ends are outside the slice. With "double": most
        doublings.
    mode : {"coordinate", "direction", "box"}, default="coordinate"
        Each coordinate in turn; one random direction; or a box around the position that only shrinks.
    bounds : pair (low, high), optional
        Support of the target, numbers or vectors; the density is not called outside.
    expansion : {"step", "double"}, default="step"
        Widen an interval by steps of its width, or by doubling it, which is faster if the width is far too small.
    adapt : bool, default=True
        Learn the widths in the warm-up.
    compiled : bool, default=False
        Whether `log_density` is a function that Numba can compile, ``log_density(x, data) -> float``. All steps then
        run compiled, chains side by side on threads if `n_jobs` is more than 1.
    data : tuple, array or number, optional
        What the compiled function gets as its second argument, as in :class:`NUTS`; without it it takes one argument.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.inference.mcmc.slice_sampling import Slice
    >>> kernel = Slice(lambda x: -float(x[0]), bounds=(0, np.inf))  # exponential
    >>> trace = mcmc.sample(kernel, np.ones(1), n_draws=1000, n_warmup=200, random_state=0)
    >>> bool(abs(trace["x"].mean() - 1) < 0.1)
    True

    A density that Numba compiles gets its data as an argument:

    >>> def gamma(x, shape):
    ...     return (shape - 1) * np.log(x[0]) - x[0]
    >>> kernel = Slice(gamma, bounds=(0, np.inf), compiled=True, data=3.0)
    >>> trace = mcmc.sample(kernel, np.ones(1), n_draws=1000, n_warmup=200, random_state=0)
    >>> bool(abs(trace["x"].mean() - 3) < 0.3)
    True
    """

    log_density: LogDensity
    width: Any = 1.0
    max_steps: int | None = None
    mode: Mode = "coordinate"
    bounds: Any = None
    expansion: Literal["step", "double"] = "step"
    adapt: bool = True
    compiled: bool = field(default=False, kw_only=True)
    data: Any = field(default=None, kw_only=True)

    limits: tuple[Array, Array] = field(init=False, repr=False, compare=False)

    tuned = ("width",)

    def __post_init__(self) -> None:
        width = np.asarray(self.width, dtype=np.float64)
        if width.ndim > 1 or width.size == 0 or not ((width > 0) & np.isfinite(width)).all():
            raise ValueError(f"width must be positive, a number or one for each coordinate, got {self.width!r}")
        if self.max_steps is not None and self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1 or None, got {self.max_steps!r}")
        for name, allowed in (("mode", ("coordinate", "direction", "box")), ("expansion", ("step", "double"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {getattr(self, name)!r}")
        low, high = (-np.inf, np.inf) if self.bounds is None else self.bounds
        low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        if not (low < high).all():
            raise ValueError(f"bounds must leave room: the low one must be below the high one, got {self.bounds!r}")
        object.__setattr__(self, "width", width)
        object.__setattr__(self, "limits", (low, high))
        if self.data is not None and not self.compiled:
            raise ValueError("data is for compiled=True; a plain log_density finds its data by itself")
        if self.compiled and not hasattr(self.log_density, "target"):
            from pluri.inference.mcmc.compiled_targets.compiled_density import CompiledLogDensity

            object.__setattr__(self, "log_density", CompiledLogDensity(self.log_density, self.data))

    def init(self, rng: np.random.Generator, position: Any) -> SliceState:
        """State at a position."""
        vector = as_vector(position)
        low, high = self.limits
        for name, values in (("width", self.width), ("bounds", low), ("bounds", high)):
            if values.ndim == 1 and len(values) != len(vector):
                raise ValueError(f"{name} must have {len(vector)} entries, got {len(values)}")
        if not ((vector >= low) & (vector <= high)).all():
            raise ValueError(f"the initial position must lie within the bounds {self.bounds!r}, got {position!r}")
        return SliceState(*initial_point(self.log_density, vector), np.zeros(len(vector)))

    def step(self, rng: np.random.Generator, state: SliceState) -> tuple[SliceState, Info]:
        """A new point of the slice, or one for each coordinate."""
        if self.compiled:
            return compiled_step(self, rng, state)
        dim = len(state.position)
        low, high = (np.broadcast_to(limit, dim) for limit in self.limits)
        width = np.broadcast_to(self.width, dim)
        slicing = Slicing(self.log_density)
        if self.mode == "coordinate":
            position, value = state.position, state.log_density
            interval = np.empty(dim)
            for index in range(dim):
                position, value, interval[index] = self._along_axis(
                    rng, slicing, position, value, index, float(width[index]), float(low[index]), float(high[index])
                )
        elif self.mode == "direction":
            position, value = self._along_direction(rng, slicing, state, width, low, high)
            interval = np.zeros(dim)
        else:
            position, value = _within_box(rng, slicing, state, width, low, high)
            interval = np.zeros(dim)
        return SliceState(position, value, interval), {
            "acceptance": 1.0,
            "n_evaluations": slicing.n_evaluations,
            "undefined": float(slicing.n_undefined),
        }

    def _along_axis(
        self, rng: np.random.Generator, slicing: Slicing, position: Array, value: float, index: int, width: float,
        low: float, high: float,
    ) -> tuple[Array, float, float]:  # fmt: skip
        def place(at: float) -> Array:
            moved = position.copy()
            moved[index] = at
            return moved

        found, value, wide = slice_line(
            rng, slicing, place, float(position[index]), value, width, low, high, self.max_steps, self.expansion
        )
        return place(found), value, wide

    def _along_direction(
        self, rng: np.random.Generator, slicing: Slicing, state: SliceState, width: Array, low: Array, high: Array
    ) -> tuple[Array, float]:
        start = state.position
        direction = rng.standard_normal(len(start))
        direction *= width / math.sqrt(float(direction.dot(direction)))
        nearest, furthest = line_limits(start, direction, low, high)

        def place(at: float) -> Array:
            # Rounding must not carry a point across a bound that it may touch.
            return np.clip(start + at * direction, low, high)

        found, value, _ = slice_line(
            rng, slicing, place, 0.0, state.log_density, 1.0, nearest, furthest, self.max_steps, self.expansion
        )
        return place(found), value

    @property
    def advance_together(self) -> Any:
        """How several steps of chains of this kernel are made in one go; None if they are made one by one."""
        return advance_compiled if self.compiled else None

    def block(self, rng: np.random.Generator, state: SliceState, n_steps: int, adaptation: Any = None) -> Block:
        """Some steps of a compiled density, which an adaptation learns from."""
        from pluri.inference.mcmc.compiled_targets.slice_blocks import make_block

        return make_block(self, rng, state, n_steps, adaptation)

    def adaptation(self, n_warmup: int) -> SliceAdaptation | None:
        """Widths: the mean interval of each coordinate, or the spread of the draws."""
        return SliceAdaptation(n_warmup, self.mode) if self.adapt else None


def line_limits(start: Array, direction: Array, low: Array, high: Array) -> tuple[float, float]:
    """Where the line ``start + t direction`` enters and leaves the box."""
    moving = direction != 0
    to_low = (low[moving] - start[moving]) / direction[moving]
    to_high = (high[moving] - start[moving]) / direction[moving]
    return float(np.minimum(to_low, to_high).max()), float(np.maximum(to_low, to_high).min())


def _within_box(
    rng: np.random.Generator, slicing: Slicing, state: SliceState, width: Array, low: Array, high: Array
) -> tuple[Array, float]:
    """Draw from a box around the position; a point outside the slice shrinks every side towards the position."""
    level = state.log_density - rng.standard_exponential()
    left = state.position - width * rng.random(len(width))
    right = np.minimum(left + width, high)
    left = np.maximum(left, low)
    for _ in range(MOST_SHRINKS):
        point = left + (right - left) * rng.random(len(width))
        value = slicing.value(point)
        if value > level:
            return point, value
        below = point < state.position
        left, right = np.where(below, point, left), np.where(below, right, point)
    raise stuck(state.position)
