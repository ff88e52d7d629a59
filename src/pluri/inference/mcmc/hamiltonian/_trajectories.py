"""Compiled trajectories of NUTS and HMC: the same steps as in `nuts`, `nuts_trees` and `hmc`, on rows of one array.

Random numbers come from the chain's own generator in the same order as there, so that the two agree up to rounding. All
vectors of a trajectory are rows of one workspace: the ends that it grows from, the leaf just made and the even one before
it, the whole so far, and a stack of subtrees, each with its proposal, sum of momenta and momenta at its two ends. Further
columns hold the numbers that belong to a row. One array of one type is what compiles fast: each further array, function
and constant argument takes a tenth of a second.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled
from pluri.inference.mcmc.hamiltonian.addresses import density_at
from pluri.inference.mcmc.hamiltonian.leapfrog import DIVERGENCE

Array = NDArray[np.float64]

#: Rows of the workspace; ends and their half-kicked momenta: forwards, then backwards.
ENDS, HALVES, LEAF_GRADIENT, LEAF_MOMENTUM, SCRATCH, EVEN, WHOLE, STACK = 0, 2, 4, 5, 6, 7, 12, 17
#: A subtree has five rows: the position and gradient of its proposal, the sum of its momenta, those at its ends.
POINT, SLOPE, TOTAL, NEAR, FAR, TREE_ROWS = 0, 1, 2, 3, 4, 5
#: Further columns of the first row of a subtree: logarithm of its weight, log density of the proposal, depth.
WEIGHT, VALUE, LEVEL = 0, 1, 2
#: Further columns of `SCRATCH`: what a step tells.
ACCEPTANCE, EVALUATIONS, DIVERGENT, DEPTH, ENERGY, ACCEPTED, STEP_SIZE, N_TOLD = 0, 1, 2, 3, 4, 5, 6, 7
#: What a leaf did: it is part of the subtree, or ends the trajectory.
FINE, TURNED, DIVERGED, INFINITE = 0, 1, 2, 3


class Walk(NamedTuple):
    """A target, where its trajectories are computed, and how.

    Attributes
    ----------
    rows : (n_rows, dim + N_TOLD), and `address` of it
    dim : length of a position
    function, data : addresses of the density
    scale : row at which the root of the metric begins: one row of standard deviations, or a lower triangle
    dense : whether it is a triangle
    max_depth : of a tree
    n_leapfrog, jitter : of trajectories of a given length
    """

    rows: Array
    address: int
    dim: int
    function: int
    data: int
    scale: int
    dense: bool
    max_depth: int
    n_leapfrog: int
    jitter: float


@compiled(inner=True, allocates=False)
def drift(walk: Walk, end: int, step_size: float) -> None:
    """Change the position of an end by a step along its momentum."""
    rows, dim, scale = walk.rows, walk.dim, walk.scale
    for k in range(dim):
        if walk.dense:
            total = 0.0
            for j in range(k + 1):
                total += rows[scale + k, j] * rows[HALVES + end, j]
        else:
            total = rows[scale, k] * rows[HALVES + end, k]
        rows[ENDS + end, k] += step_size * total


@compiled(inner=True, allocates=False)
def pull(walk: Walk) -> None:
    """Change `SCRATCH` to the gradient of the leaf in the coordinates of the momenta."""
    rows, dim, scale = walk.rows, walk.dim, walk.scale
    for k in range(dim):
        if walk.dense:
            total = 0.0
            for j in range(k, dim):
                total += rows[scale + j, k] * rows[LEAF_GRADIENT, j]
        else:
            total = rows[scale, k] * rows[LEAF_GRADIENT, k]
        rows[SCRATCH, k] = total


@compiled(inner=True, allocates=False)
def leap(walk: Walk, end: int, step_size: float, energy: float) -> float:
    """Make one leapfrog step of an end, changing its rows and those of the leaf; gives the change of the energy.

    The log density and twice the kinetic energy of the leaf are the further columns of its momentum.
    """
    rows, dim = walk.rows, walk.dim
    drift(walk, end, step_size)
    width = 8 * rows.shape[1]
    gradient = walk.address + width * LEAF_GRADIENT
    value = density_at(walk.function, walk.address + width * (ENDS + end), gradient, dim, walk.data)
    pull(walk)
    kinetic = 0.0
    for k in range(dim):
        kick = 0.5 * step_size * rows[SCRATCH, k]
        momentum = rows[HALVES + end, k] + kick
        kinetic += momentum * momentum
        rows[LEAF_MOMENTUM, k] = momentum
        rows[HALVES + end, k] = momentum + kick
    rows[LEAF_MOMENTUM, dim], rows[LEAF_MOMENTUM, dim + 1] = kinetic, value
    rows[SCRATCH, dim + EVALUATIONS] += 1
    return 0.5 * kinetic - value - energy


@compiled(inner=True, allocates=False)
def begin(walk: Walk, rng: Any, step_size: float) -> float:
    """Draw a momentum and put both ends of a new trajectory at the whole, changing the workspace; gives the energy."""
    rows, dim = walk.rows, walk.dim
    kinetic = 0.0
    for k in range(dim):
        momentum = rng.standard_normal()
        kinetic += momentum * momentum
        rows[LEAF_GRADIENT, k] = rows[WHOLE + SLOPE, k]
        rows[ENDS, k] = rows[ENDS + 1, k] = rows[WHOLE + POINT, k]
        rows[WHOLE + TOTAL, k] = rows[WHOLE + NEAR, k] = rows[WHOLE + FAR, k] = momentum
    pull(walk)
    for k in range(dim):
        kick = 0.5 * step_size * rows[SCRATCH, k]
        rows[HALVES, k] = rows[WHOLE + NEAR, k] + kick
        rows[HALVES + 1, k] = rows[WHOLE + NEAR, k] - kick
    for column in range(N_TOLD):
        rows[SCRATCH, dim + column] = 0.0
    rows[WHOLE, dim + WEIGHT] = rows[WHOLE, dim + LEVEL] = 0.0
    energy = rows[SCRATCH, dim + ENERGY] = 0.5 * kinetic - rows[WHOLE, dim + VALUE]
    return energy


@compiled(inner=True, allocates=False)
def log_add(a: float, b: float) -> float:
    """``log(exp(a) + exp(b))``."""
    return a + math.log1p(math.exp(b - a)) if a > b else b + math.log1p(math.exp(a - b))


@compiled(inner=True, allocates=False)
def joined(rows: Array, dim: int, first: int, second: int, near: int, move: bool) -> bool:
    """Join two neighbours, changing the first; True if the whole turns back. See `nuts_trees.turns`.

    `near` is the row of the end of the first that is away from the second; the other end is given up for the far one of
    the second. `move` takes the proposal of the second.
    """
    far = 2 * first + NEAR + FAR - near
    ends, left, right = 0.0, 0.0, 0.0
    end_2, left_2, right_2 = 0.0, 0.0, 0.0
    for k in range(dim):
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
    if rows[first, dim + LEVEL] > 0:
        turned = turned or left <= 0 or left_2 <= 0 or right <= 0 or right_2 <= 0
    rows[first, dim + WEIGHT] = log_add(rows[first, dim + WEIGHT], rows[second, dim + WEIGHT])
    rows[first, dim + LEVEL] += 1
    if move:
        rows[first, dim + VALUE] = rows[second, dim + VALUE]
    return turned
