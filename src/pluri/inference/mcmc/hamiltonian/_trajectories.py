"""Compiled trajectories of NUTS and HMC: the same steps as in `nuts`, `nuts_trees` and `hmc`, on rows of one array.

Random numbers come from the chain's own generator in the same order as there, so that the two agree up to rounding. All
vectors of a trajectory are rows of one workspace: the ends that it grows from, the leaf just made and the even one
before it, the whole so far, and a stack of subtrees, each with its proposal, sum of momenta and momenta at its ends.
The first columns hold the numbers that belong to a row. One array of one type is what compiles fast.
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
ENDS, HALVES, LEAF_GRADIENT, LEAF_MOMENTUM, SCRATCH, EVEN, WHOLE, STACK = 0, 2, 4, 5, 6, 7, 12, 17
#: A subtree has five rows: the position and gradient of its proposal, the sum of its momenta, those at its ends.
POINT, SLOPE, TOTAL, NEAR, FAR, TREE_ROWS = 0, 1, 2, 3, 4, 5
#: First columns of a subtree: logarithm of its weight, log density of the proposal, depth; of a momentum: its square.
WEIGHT, VALUE, LEVEL, KINETIC = 0, 1, 2, 3
#: First columns of `SCRATCH`: what a step tells; then of `HALVES`: what the warm-up knows (dual averaging, and how many
#: positions it has seen). The last of them has the choices of a trajectory, from the first row on.
ACCEPTANCE, EVALUATIONS, DIVERGENT, DEPTH, ENERGY, ACCEPTED, STEP_SIZE, N_TOLD = 0, 1, 2, 3, 4, 5, 6, 7
STEP, CENTRE, COUNT, ERROR, LOG_AVERAGED, AIM, GAMMA, OFFSET, DECAY, SEEN, CHOICE, FRONT = (
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
)  # fmt: skip
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
def drift(walk: Walk, end: int, step_size: float) -> None:
    """Change the position of an end by a step along its momentum."""
    rows, width, scale = walk.rows, walk.width, walk.scale
    for k in range(FRONT, width):
        if walk.dense:
            total = 0.0
            for j in range(FRONT, k + 1):
                total += rows[scale + k - FRONT, j] * rows[HALVES + end, j]
        else:
            total = rows[scale, k] * rows[HALVES + end, k]
        rows[ENDS + end, k] += step_size * total


@compiled(inner=True, allocates=False)
def pull(walk: Walk) -> None:
    """Change `SCRATCH` to the gradient of the leaf in the coordinates of the momenta."""
    rows, width, scale = walk.rows, walk.width, walk.scale
    for k in range(FRONT, width):
        if walk.dense:
            total = 0.0
            for j in range(k, width):
                total += rows[scale + j - FRONT, k] * rows[LEAF_GRADIENT, j]
        else:
            total = rows[scale, k] * rows[LEAF_GRADIENT, k]
        rows[SCRATCH, k] = total


@compiled(inner=True, allocates=False)
def leap(walk: Walk, end: int, step_size: float, energy: float) -> float:
    """Make one leapfrog step of an end, changing its rows and those of the leaf; gives the change of the energy.

    The log density and twice the kinetic energy of the leaf are first columns of its momentum.
    """
    rows, width = walk.rows, walk.width
    drift(walk, end, step_size)
    x = walk.address + 8 * (width * (ENDS + end) + FRONT)
    gradient = walk.address + 8 * (width * LEAF_GRADIENT + FRONT)
    value = density_at(walk.function, x, gradient, width - FRONT, walk.data)
    pull(walk)
    kinetic = 0.0
    for k in range(FRONT, width):
        kick = 0.5 * step_size * rows[SCRATCH, k]
        momentum = rows[HALVES + end, k] + kick
        kinetic += momentum * momentum
        rows[LEAF_MOMENTUM, k] = momentum
        rows[HALVES + end, k] = momentum + kick
    rows[LEAF_MOMENTUM, KINETIC], rows[LEAF_MOMENTUM, VALUE] = kinetic, value
    rows[SCRATCH, EVALUATIONS] += 1
    return 0.5 * kinetic - value - energy


@compiled(inner=True, allocates=False)
def begin(walk: Walk, rng: Any, step_size: float) -> float:
    """Draw a momentum and put both ends of a new trajectory at the whole, changing the workspace; gives the energy."""
    rows, width = walk.rows, walk.width
    kinetic = 0.0
    for k in range(FRONT, width):
        momentum = rng.standard_normal()
        kinetic += momentum * momentum
        rows[LEAF_GRADIENT, k] = rows[WHOLE + SLOPE, k]
        rows[ENDS, k] = rows[ENDS + 1, k] = rows[WHOLE + POINT, k]
        rows[WHOLE + TOTAL, k] = rows[WHOLE + NEAR, k] = rows[WHOLE + FAR, k] = momentum
    pull(walk)
    for k in range(FRONT, width):
        kick = 0.5 * step_size * rows[SCRATCH, k]
        rows[HALVES, k] = rows[WHOLE + NEAR, k] + kick
        rows[HALVES + 1, k] = rows[WHOLE + NEAR, k] - kick
    for column in range(N_TOLD):
        rows[SCRATCH, column] = 0.0
    rows[WHOLE, WEIGHT] = rows[WHOLE, LEVEL] = 0.0
    energy = rows[SCRATCH, ENERGY] = 0.5 * kinetic - rows[WHOLE, VALUE]
    return energy


@compiled(inner=True, allocates=False)
def log_add(a: float, b: float) -> float:
    """``log(exp(a) + exp(b))``."""
    return a + math.log1p(math.exp(b - a)) if a > b else b + math.log1p(math.exp(a - b))


@compiled(inner=True, allocates=False)
def joined(rows: Array, width: int, first: int, second: int, near: int, move: bool) -> bool:
    """Join two neighbours, changing the first; True if the whole turns back. See `nuts_trees.turns`.

    `near` is the row of the end of the first that is away from the second; the other end is given up for the far one of
    the second. `move` takes the proposal of the second.
    """
    far = 2 * first + NEAR + FAR - near
    ends, left, right = 0.0, 0.0, 0.0
    end_2, left_2, right_2 = 0.0, 0.0, 0.0
    for k in range(FRONT, width):
        first_total, second_total = rows[first + TOTAL, k], rows[second + TOTAL, k]
        start, middle = rows[near, k], rows[far, k]
        next_middle, stop = rows[second + NEAR, k], rows[second + FAR, k]
        total, across, back = first_total + second_total, first_total + next_middle, second_total + middle
        ends += total * start
        end_2 += total * stop
        left += across * start
        left_2 += across * next_middle
        right += back * middle
        right_2 += back * stop
        rows[first + TOTAL, k] = total
        rows[far, k] = stop
        if move:
            rows[first + POINT, k], rows[first + SLOPE, k] = rows[second + POINT, k], rows[second + SLOPE, k]
    turned = ends <= 0 or end_2 <= 0
    if rows[first, LEVEL] > 0:
        turned = turned or left <= 0 or left_2 <= 0 or right <= 0 or right_2 <= 0
    rows[first, WEIGHT] = log_add(rows[first, WEIGHT], rows[second, WEIGHT])
    rows[first, LEVEL] += 1
    if move:
        rows[first, VALUE] = rows[second, VALUE]
    return turned
