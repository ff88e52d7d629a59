"""One slice along a line: widening an interval until it holds the slice, and shrinking it onto a new point.

`stepping out` adds the width on either side, `doubling` doubles the interval and afterwards asks whether the new point
could have led to the same interval [1]_.

References
----------
.. [1] Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767. Figures 3 to 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pluri.inference.mcmc.accept_reject.metropolis_hastings import LogDensity, one_number

#: A slice of positive width is met long before this.
MOST_SHRINKS = 200
#: Steps out before asking whether the target ends at all; then steps out before giving up.
PATIENCE, MOST_STEPS = 100, 1_000_000
MOST_DOUBLINGS = 60


class Slicing:
    """A target that counts its evaluations and refuses +inf."""

    __slots__ = ("_log_density", "n_evaluations", "n_undefined")

    def __init__(self, log_density: LogDensity):
        self._log_density = log_density
        self.n_evaluations = 0
        self.n_undefined = 0

    def value(self, point: Any) -> float:
        """Log density at a point; NaN, which is below every level, is counted."""
        value = one_number(self._log_density(point))
        self.n_evaluations += 1
        if value == math.inf:
            raise infinite()
        if value != value:
            self.n_undefined += 1
            return -math.inf
        return value


def infinite() -> ValueError:
    """What to say of a density that is not one."""
    return ValueError("the log density is +inf at a point of the slice: it must be finite or -inf")


def never_ends() -> ValueError:
    """What to say of a slice without an end."""
    return ValueError(
        "the slice never ends: the log density stays as high however far out it is asked for, so that the target "
        "cannot be normalised. Give bounds, or a density that falls"
    )


def too_wide(width: Any) -> ValueError:
    """What to say of a slice that is wide beside the width."""
    with np.printoptions(precision=3):
        return ValueError(
            f"the slice is wider than {MOST_STEPS} steps of width {width}: give a larger width, or expansion='double'"
        )


def stuck(position: Any) -> ValueError:
    """What to say when no point of the slice can be found again."""
    return ValueError(
        f"the interval shrank {MOST_SHRINKS} times around {position!r} without meeting the slice: the log density "
        "changes from call to call, or jumps at that point"
    )


def slice_line(
    rng: np.random.Generator,
    slicing: Slicing,
    place: Callable[[float], Any],
    start: float,
    value: float,
    width: float,
    low: float,
    high: float,
    max_steps: int | None,
    expansion: str,
) -> tuple[float, float, float]:
    """New coordinate along a line, the log density there, and how wide the last interval was.

    `place` puts a coordinate on the line into the space of the target; `low` and `high` bound the support.
    """
    level = value - rng.standard_exponential()

    def height(at: float) -> float:
        return slicing.value(place(at)) if low <= at <= high else -math.inf

    left = start - width * rng.random()
    right = left + width
    if expansion == "step":
        left, right = _step_out(rng, height, level, left, right, width, low, high, max_steps)
        whole = None
    else:
        left, right = whole = _double(rng, height, level, left, right, max_steps)
    left, right = max(left, low), min(right, high)
    for _ in range(MOST_SHRINKS):
        at = left + (right - left) * rng.random()
        new = slicing.value(place(at))
        if new > level and (whole is None or _reaches(height, level, start, at, width, whole)):
            return at, new, right - left
        if at < start:
            left = at
        else:
            right = at
    raise stuck(place(start))


def _step_out(
    rng: np.random.Generator, height: Callable[[float], float], level: float, left: float, right: float,
    width: float, low: float, high: float, max_steps: int | None,
) -> tuple[float, float]:  # fmt: skip
    """Add the width at either end while it is inside the slice."""
    if max_steps is None:
        room_left = room_right = MOST_STEPS
    else:
        room_left = int(max_steps * rng.random())
        room_right = max_steps - 1 - room_left
    for sign, room in ((-1.0, room_left), (1.0, room_right)):
        end = left if sign < 0 else right
        steps = 0
        while steps < room and low < end < high and height(end) > level:
            end += sign * width
            steps += 1
            if max_steps is None and steps == PATIENCE and height(_far(end, sign, width)) > level:
                raise never_ends()
        if max_steps is None and steps == MOST_STEPS:
            raise too_wide(f"{width:.3g}")
        if sign < 0:
            left = end
        else:
            right = end
    return left, right


def _far(end: float, sign: float, width: float) -> float:
    """A point so far out that every proper target has fallen."""
    return end + sign * 1e100 * max(1.0, abs(end), width)


def _double(
    rng: np.random.Generator, height: Callable[[float], float], level: float, left: float, right: float,
    max_steps: int | None,
) -> tuple[float, float]:  # fmt: skip
    """Double the interval, to a random side, while an end is inside the slice."""
    room = MOST_DOUBLINGS if max_steps is None else max_steps
    inside_left, inside_right = height(left) > level, height(right) > level
    while room > 0 and (inside_left or inside_right):
        if rng.random() < 0.5:
            left -= right - left
            inside_left = height(left) > level
        else:
            right += right - left
            inside_right = height(right) > level
        room -= 1
    if max_steps is None and room == 0 and (inside_left or inside_right):
        raise never_ends()
    return left, right


def _reaches(
    height: Callable[[float], float], level: float, start: float, at: float, width: float, whole: tuple[float, float]
) -> bool:
    """Whether doubling from `at` could have made the same interval: no half-way interval would have stopped it."""
    left, right = whole
    differ = False
    while right - left > 1.1 * width:
        middle = 0.5 * (left + right)
        differ = differ or (start < middle) != (at < middle)
        if at < middle:
            right = middle
        else:
            left = middle
        if differ and height(left) <= level and height(right) <= level:
            return False
    return True
