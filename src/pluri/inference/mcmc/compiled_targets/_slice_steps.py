"""Compiled steps of `Slice`, many in one call: those of `slice_sampling` and `slice_intervals`, on rows of one array.

Random numbers come from the chain's own generator in the same order as there, so that the two agree up to rounding.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled
from pluri.inference.mcmc.compiled_targets.addresses import density_at
from pluri.inference.mcmc.slice_intervals import MOST_DOUBLINGS, MOST_SHRINKS, MOST_STEPS, PATIENCE

Array = NDArray[np.float64]

#: Rows of the workspace: the point that is asked for, the position, a direction, bounds, widths, sides of a box, the
#: last intervals, and the sum of those that the warm-up has seen.
POINT, START, DIRECTION, LOW, HIGH, WIDTH, LEFT, RIGHT, INTERVAL, TOTAL, N_ROWS = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
#: Numbers of a chain, of which the first three are written into the path at each step.
VALUE, EVALUATIONS, UNDEFINED, FAULT, COUNT, N_NUMBERS = 0, 1, 2, 3, 4, 5
#: What may be wrong with a target.
FINE, INFINITE, ENDLESS, TOO_WIDE, STUCK = 0.0, 1.0, 2.0, 3.0, 4.0
#: How a vector is moved.
COORDINATE, ALONG_DIRECTION, BOX = 0, 1, 2


class Plan(NamedTuple):
    """Whole numbers of a target and of how it is sampled, in the order in which compiled code gets them.

    Attributes
    ----------
    address : of the rows
    function, data : addresses of the density
    mode, doubling, learning : `COORDINATE`, ...; whether intervals are doubled; whether widths follow the intervals
    max_steps : most steps or doublings, 0 if there is no limit
    """

    address: int
    function: int
    data: int
    mode: int
    doubling: int
    max_steps: int
    learning: int


class Line(NamedTuple):
    """A line through the position: along a coordinate, or along the direction if `axis` is negative."""

    rows: Array
    numbers: Array
    address: int
    function: int
    data: int
    axis: int
    low: float
    high: float
    level: float


@compiled(inner=True, allocates=False)
def value_at_point(line: Line) -> float:
    """The log density at row `POINT`, changing the counts; NaN is below every level, and +inf a fault."""
    numbers = line.numbers
    value = density_at(line.function, line.address, line.address, line.rows.shape[1], line.data)
    numbers[EVALUATIONS] += 1.0
    if value == math.inf:
        numbers[FAULT] = INFINITE
    if value != value:
        numbers[UNDEFINED] += 1.0
    return value if value < math.inf else -math.inf


@compiled(inner=True, allocates=False)
def height(line: Line, at: float) -> float:
    """The log density at a coordinate of the line, changing row `POINT`."""
    if not (line.low <= at <= line.high):
        return -math.inf
    rows = line.rows
    if line.axis >= 0:
        rows[POINT, line.axis] = at
    else:
        for k in range(rows.shape[1]):
            moved = rows[START, k] + at * rows[DIRECTION, k]
            rows[POINT, k] = min(max(moved, rows[LOW, k]), rows[HIGH, k])
    return value_at_point(line)


@compiled(inner=True, allocates=False)
def step_out(line: Line, rng: Any, left: float, right: float, width: float, max_steps: int) -> tuple[float, float]:
    """Add the width at either end while it is inside the slice; see `slice_intervals`."""
    room = MOST_STEPS
    room_right = MOST_STEPS
    if max_steps > 0:
        room = int(max_steps * rng.random())
        room_right = max_steps - 1 - room
    for side in range(2):
        end, sign = (left, -1.0) if side == 0 else (right, 1.0)
        steps = 0
        while steps < room and line.low < end < line.high and height(line, end) > line.level:
            end += sign * width
            steps += 1
            if max_steps == 0 and steps == PATIENCE:
                far = end + sign * 1e100 * max(1.0, abs(end), width)
                if height(line, far) > line.level:
                    line.numbers[FAULT] = ENDLESS
                    return left, right
        if max_steps == 0 and steps == MOST_STEPS:
            line.numbers[FAULT] = TOO_WIDE
            return left, right
        left, right = (end, right) if side == 0 else (left, end)
        room = room_right
    return left, right


@compiled(inner=True, allocates=False)
def double(line: Line, rng: Any, left: float, right: float, max_steps: int) -> tuple[float, float]:
    """Double the interval, to a random side, while an end is inside the slice."""
    room = max_steps if max_steps > 0 else MOST_DOUBLINGS
    left_value, right_value = height(line, left), height(line, right)
    while room > 0 and (left_value > line.level or right_value > line.level):
        leftwards = rng.random() < 0.5
        end = left - (right - left) if leftwards else right + (right - left)
        value = height(line, end)
        left, left_value = (end, value) if leftwards else (left, left_value)
        right, right_value = (right, right_value) if leftwards else (end, value)
        room -= 1
    if max_steps == 0 and room == 0 and (left_value > line.level or right_value > line.level):
        line.numbers[FAULT] = ENDLESS
    return left, right


@compiled(inner=True, allocates=False)
def reaches(line: Line, start: float, at: float, width: float, left: float, right: float) -> bool:
    """Whether doubling from `at` could have made the same interval: no half-way interval would have stopped it."""
    differ = False
    while right - left > 1.1 * width:
        middle = 0.5 * (left + right)
        differ = differ or (start < middle) != (at < middle)
        left, right = (left, middle) if at < middle else (middle, right)
        if differ and height(line, left) <= line.level and height(line, right) <= line.level:
            return False
    return True


@compiled(inner=True, allocates=False)
def slice_line(line: Line, rng: Any, start: float, width: float, plan: Any) -> tuple[float, float]:
    """New coordinate along a line and how wide the last interval was, changing the value of the position."""
    numbers, doubling, max_steps = line.numbers, plan[4] > 0, plan[5]
    left = start - width * rng.random()
    right = left + width
    if doubling:
        left, right = double(line, rng, left, right, max_steps)
    else:
        left, right = step_out(line, rng, left, right, width, max_steps)
    whole_left, whole_right = left, right
    left, right = max(left, line.low), min(right, line.high)
    shrinks = 0
    while numbers[FAULT] == FINE:
        at = left + (right - left) * rng.random()
        value = height(line, at)
        if value > line.level and (not doubling or reaches(line, start, at, width, whole_left, whole_right)):
            numbers[VALUE] = value
            return at, right - left
        left, right = (at, right) if at < start else (left, at)
        shrinks += 1
        if shrinks == MOST_SHRINKS and numbers[FAULT] == FINE:
            numbers[FAULT] = STUCK
    return start, 0.0


@compiled(inner=True, allocates=False)
def sweep(rows: Array, numbers: Array, plan: Any, rng: Any) -> None:
    """Move each coordinate in turn, changing the position."""
    for k in range(rows.shape[1]):
        level = numbers[VALUE] - rng.standard_exponential()
        line = Line(rows, numbers, plan[0], plan[1], plan[2], k, rows[LOW, k], rows[HIGH, k], level)
        found, rows[INTERVAL, k] = slice_line(line, rng, rows[START, k], rows[WIDTH, k], plan)
        rows[START, k] = rows[POINT, k] = found


@compiled(inner=True, allocates=False)
def along(rows: Array, numbers: Array, plan: Any, rng: Any) -> None:
    """Move along a random direction, changing the position."""
    square, low, high = 0.0, -math.inf, math.inf
    for k in range(rows.shape[1]):
        rows[DIRECTION, k] = rng.standard_normal()
        square += rows[DIRECTION, k] ** 2
    for k in range(rows.shape[1]):
        rows[DIRECTION, k] *= rows[WIDTH, k] / math.sqrt(square)
        direction = rows[DIRECTION, k]
        if direction != 0:
            to_low, to_high = (rows[LOW, k] - rows[START, k]) / direction, (rows[HIGH, k] - rows[START, k]) / direction
            low, high = max(low, min(to_low, to_high)), min(high, max(to_low, to_high))
    level = numbers[VALUE] - rng.standard_exponential()
    line = Line(rows, numbers, plan[0], plan[1], plan[2], -1, low, high, level)
    found, _ = slice_line(line, rng, 0.0, 1.0, plan)
    for k in range(rows.shape[1]):
        moved = rows[START, k] + found * rows[DIRECTION, k]
        rows[START, k] = min(max(moved, rows[LOW, k]), rows[HIGH, k])


@compiled(inner=True, allocates=False)
def within_box(rows: Array, numbers: Array, plan: Any, rng: Any) -> None:
    """Draw from a box around the position, which each point outside the slice shrinks; changes the position."""
    level = numbers[VALUE] - rng.standard_exponential()
    line = Line(rows, numbers, plan[0], plan[1], plan[2], -1, 0.0, 0.0, level)
    for k in range(rows.shape[1]):
        left = rows[START, k] - rows[WIDTH, k] * rng.random()
        rows[RIGHT, k] = min(left + rows[WIDTH, k], rows[HIGH, k])
        rows[LEFT, k] = max(left, rows[LOW, k])
    for _ in range(MOST_SHRINKS):
        for k in range(rows.shape[1]):
            rows[POINT, k] = rows[LEFT, k] + (rows[RIGHT, k] - rows[LEFT, k]) * rng.random()
        value = value_at_point(line)
        if numbers[FAULT] != FINE:
            return
        for k in range(rows.shape[1]):
            if value > level:
                rows[START, k] = rows[POINT, k]
            else:
                side = LEFT if rows[POINT, k] < rows[START, k] else RIGHT
                rows[side, k] = rows[POINT, k]
        if value > level:
            numbers[VALUE] = value
            return
    numbers[FAULT] = STUCK


@compiled(allocates=False)
def make_slice_steps(rows: Array, numbers: Array, path: Array, plan: Any, rng: Any) -> None:
    """Make as many steps as `path` has room for, changing it and the workspace; a fault of the target ends them.

    `plan` is the array of a `Plan`; a row of the path has the first three numbers, then the position.
    """
    mode, learning, dim = plan[3], plan[6], rows.shape[1]
    for step in range(len(path)):
        numbers[EVALUATIONS] = numbers[UNDEFINED] = 0.0
        if mode == COORDINATE:
            sweep(rows, numbers, plan, rng)
        elif mode == ALONG_DIRECTION:
            along(rows, numbers, plan, rng)
        else:
            within_box(rows, numbers, plan, rng)
        if numbers[FAULT] != FINE:
            return
        for column in range(FAULT):
            path[step, column] = numbers[column]
        for k in range(dim):
            path[step, FAULT + k] = rows[START, k]
        if learning > 0:  # `SliceAdaptation.update`
            numbers[COUNT] += 1.0
            for k in range(dim):
                rows[TOTAL, k] += rows[INTERVAL, k]
                rows[WIDTH, k] = rows[TOTAL, k] / (numbers[COUNT] + 1.0)
