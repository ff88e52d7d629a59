"""Compiled trajectories of NUTS and HMC: the same steps as in `nuts`, `nuts_trees` and `hmc`, on rows of one array.

Random numbers come from the chain's own generator in the same order as there, so that the two agree up to rounding. All
vectors of a trajectory are rows of one workspace: the ends that it grows from, the whole so far, and a stack of
subtrees, on top of which each new state is put as a subtree of its own. The first columns hold the numbers that belong
to a row. One array of one type, and few statements, are what compiles fast.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled
from pluri.inference.mcmc.compiled_targets.addresses import density_at

Array = NDArray[np.float64]

#: Rows of the workspace; ends and their half-kicked momenta: forwards, then backwards.
ENDS, HALVES, SCRATCH, WHOLE, STACK = 0, 2, 4, 5, 10
#: A subtree has five rows: the position and gradient of its proposal, the sum of its momenta, those at its ends.
POINT, SLOPE, TOTAL, NEAR, FAR, TREE_ROWS = 0, 1, 2, 3, 4, 5
#: First columns of a subtree: logarithm of its weight, log density of the proposal, depth; then of `WHOLE`: what a step
#: tells. The last has the choices of a trajectory, from the first row on.
WEIGHT, VALUE, LEVEL = 0, 1, 2
ACCEPTANCE, EVALUATIONS, DIVERGENT, DEPTH, ENERGY, ACCEPTED, STEP_SIZE, CHOICE, FRONT = 3, 4, 5, 6, 7, 8, 9, 10, 11
#: First columns of `HALVES`: what the warm-up knows of the step size (dual averaging).
STEP, CENTRE, COUNT, ERROR, LOG_AVERAGED, AIM, GAMMA, OFFSET, DECAY, N_MEMORY = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
#: What a leaf did: it is part of the subtree, or ends the trajectory.
FINE, TURNED, DIVERGED, INFINITE = 0, 1, 2, 3


class Walk(NamedTuple):
    """A target, where its trajectories are computed, and how.

    Attributes
    ----------
    rows : (n_rows, width), and `address` of it; vectors begin at column `FRONT`
    width : of a row
    function, data : addresses of the density
    scale : row at which the root of the metric begins: one row of standard deviations, or a lower triangle
    dense : whether it is a triangle
    """

    rows: Array
    address: int
    width: int
    function: int
    data: int
    scale: int
    dense: int


@compiled(inner=True, allocates=False)
def uniform(rng: Any) -> float:
    """A uniform random number: here, so that it is compiled once."""
    value: float = rng.random()
    return value


@compiled(inner=True, allocates=False)
def stretched(walk: Walk, source: int, transposed: int) -> None:
    """Change `SCRATCH` to the root of the metric, or its transpose, times a row."""
    rows, width, scale, dense = walk.rows, walk.width, walk.scale, walk.dense
    for k in range(FRONT, width):
        total = rows[source, k]
        if dense:
            total = 0.0
            for j in range(FRONT, width):
                row, column = (j, k) if transposed else (k, j)
                total += rows[scale + row - FRONT, column] * rows[source, j]
        else:
            total *= rows[scale, k]
        rows[SCRATCH, k] = total


@compiled(inner=True, allocates=False)
def leap(walk: Walk, end: int, tree: int, step_size: float, energy: float) -> float:
    """Make one leapfrog step of an end, changing its rows and those of a subtree of one state.

    Gives the change of the energy.
    """
    rows, width, address, half = walk.rows, walk.width, walk.address, HALVES + end
    stretched(walk, half, 0)
    for k in range(FRONT, width):
        rows[end, k] += step_size * rows[SCRATCH, k]
        rows[tree, k] = rows[end, k]
    x = address + 8 * (width * tree + FRONT)
    value = density_at(walk.function, x, x + 8 * width, width - FRONT, walk.data)
    stretched(walk, tree + SLOPE, 1)
    kinetic = 0.0
    for k in range(FRONT, width):
        kick = 0.5 * step_size * rows[SCRATCH, k]
        momentum = rows[half, k] + kick
        rows[half, k] = momentum + kick
        rows[tree + TOTAL, k] = rows[tree + NEAR, k] = rows[tree + FAR, k] = momentum
        kinetic += momentum * momentum
    change = 0.5 * kinetic - value - energy
    rows[tree, WEIGHT], rows[tree, VALUE], rows[tree, LEVEL] = -change, value, 0.0
    rows[WHOLE, EVALUATIONS] += 1.0
    return change


@compiled(inner=True, allocates=False)
def begin(walk: Walk, rng: Any, step_size: float) -> float:
    """Draw a momentum and put both ends of a new trajectory at the whole, changing the workspace; gives the energy."""
    rows, width = walk.rows, walk.width
    stretched(walk, WHOLE + SLOPE, 1)
    kinetic = 0.0
    for k in range(FRONT, width):
        momentum = rng.standard_normal()
        kick = 0.5 * step_size * rows[SCRATCH, k]
        kinetic += momentum * momentum
        rows[ENDS, k] = rows[ENDS + 1, k] = rows[WHOLE, k]
        rows[WHOLE + TOTAL, k] = rows[WHOLE + NEAR, k] = rows[WHOLE + FAR, k] = momentum
        rows[HALVES, k], rows[HALVES + 1, k] = momentum + kick, momentum - kick
    for column in range(LEVEL, CHOICE):
        rows[WHOLE, column] = 0.0
    rows[WHOLE, WEIGHT], rows[WHOLE, STEP_SIZE] = 0.0, step_size
    energy = rows[WHOLE, ENERGY] = 0.5 * kinetic - rows[WHOLE, VALUE]
    return energy


@compiled(inner=True, allocates=False)
def log_add(a: float, b: float) -> float:
    """``log(exp(a) + exp(b))``."""
    high, low = (a, b) if a > b else (b, a)
    return high + math.log1p(math.exp(low - high))


@compiled(inner=True, allocates=False)
def turns(walk: Walk, first: int, second: int, near: int) -> bool:
    """Join the momenta of two neighbours, changing the first; True if the whole turns back. See `nuts_trees.turns`.

    `near` is the row of the end of the first that is away from the second; the other end is given up for the far one of
    the second.
    """
    rows, width = walk.rows, walk.width
    far, near_2, far_2 = 2 * first + NEAR + FAR - near, second + NEAR, second + FAR
    total_1, total_2 = first + TOTAL, second + TOTAL
    ends, left, right = 0.0, 0.0, 0.0
    end_2, left_2, right_2 = 0.0, 0.0, 0.0
    for k in range(FRONT, width):
        start, middle, next_middle, stop = rows[near, k], rows[far, k], rows[near_2, k], rows[far_2, k]
        before, after = rows[total_1, k], rows[total_2, k]
        total, across, back = before + after, before + next_middle, after + middle
        ends += total * start
        end_2 += total * stop
        left += across * start
        left_2 += across * next_middle
        right += back * middle
        right_2 += back * stop
        rows[total_1, k] = total
        rows[far, k] = stop
    if ends <= 0 or end_2 <= 0:
        return True
    return rows[first, LEVEL] > 0 and (left <= 0 or left_2 <= 0 or right <= 0 or right_2 <= 0)


@compiled(inner=True, allocates=False)
def joined(walk: Walk, first: int, second: int, move: bool) -> None:
    """Join two neighbours whose momenta are joined, changing the first; `move` takes the proposal of the second."""
    rows, width = walk.rows, walk.width
    rows[first, WEIGHT] = log_add(rows[first, WEIGHT], rows[second, WEIGHT])
    rows[first, LEVEL] += 1.0
    if move:
        rows[first, VALUE] = rows[second, VALUE]
        for k in range(FRONT, width):
            rows[first, k], rows[first + SLOPE, k] = rows[second, k], rows[second + SLOPE, k]
