"""Compiled trajectories of NUTS and HMC: the same steps as in `nuts`, `nuts_trees` and `hmc`, on rows of one array.

Random numbers come from the chain's own generator in the same order as there, so that the two agree up to rounding. All
vectors of a trajectory are rows of one workspace: the ends that it grows from, the whole so far, the leaf just made and
the even one before it, and a stack of subtrees, each with its proposal, sum of momenta and momenta at its two ends.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled
from pluri.inference.mcmc.hamiltonian.addresses import density_at
from pluri.inference.mcmc.hamiltonian.leapfrog import DIVERGENCE

Array = NDArray[np.float64]

#: Rows of the workspace. Ends: forwards, then backwards.
ENDS, HALVES, LEAF_GRADIENT, LEAF_MOMENTUM, SCRATCH = 0, 2, 4, 5, 6
#: A subtree has five rows: the position and gradient of its proposal, the sum of its momenta, those at its ends.
POINT, SLOPE, TOTAL, NEAR, FAR, TREE_ROWS = 0, 1, 2, 3, 4, 5
EVEN, WHOLE, STACK = 7, 12, 17
#: Columns of what a step tells.
ACCEPTANCE, EVALUATIONS, DIVERGENT, DEPTH, ENERGY, STEP_SIZE, ACCEPTED = 0, 1, 2, 3, 4, 5, 6
N_TOLD = 7
#: Entries of the memory of a warm-up: that of dual averaging, and the number of positions seen.
STEP, CENTRE, COUNT, ERROR, LOG_AVERAGED, AIM, GAMMA, OFFSET, DECAY, SEEN = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
N_MEMORY = 10
#: Of subtrees: logarithm of the weight, log density of the proposal, depth.
WEIGHT, VALUE, LEVEL = 0, 1, 2
#: What a leaf did: it is part of the subtree, or ends the trajectory.
FINE, TURNED, DIVERGED, INFINITE = 0, 1, 2, 3


class Walk(NamedTuple):
    """A target, where its trajectories are computed, and how.

    Attributes
    ----------
    function, data : addresses of the density
    rows : (n_rows, dim), and `address` of it
    trees : (n_trees, 3): numbers of the even leaf, the whole, and the stack
    scale : (1, dim) square roots of the inverse mass, or (dim, dim) its Cholesky factor
    max_depth : of a tree; 0 for trajectories of `n_leapfrog` steps
    jitter : of the step size
    """

    function: int
    data: int
    rows: Array
    address: int
    trees: Array
    scale: Array
    max_depth: int
    n_leapfrog: int
    jitter: float


class Course(NamedTuple):
    """Where a chain is (changed at each step), what its steps tell, and what its warm-up learns.

    Attributes
    ----------
    position, gradient : (dim,)
    value : (1,) log density
    positions : (n_steps, dim)
    values : (n_steps,)
    told : (n_steps, N_TOLD)
    memory : (N_MEMORY,)
    mean : (dim,), and `spread` (1, dim) or (dim, dim): of the positions seen
    """

    position: Array
    gradient: Array
    value: Array
    positions: Array
    values: Array
    told: Array
    memory: Array
    mean: Array
    spread: Array


@compiled(inner=True)
def dot(rows: Array, a: int, b: int) -> float:
    """Product of two rows."""
    total = 0.0
    for k in range(rows.shape[1]):
        total += rows[a, k] * rows[b, k]
    return total


@compiled(inner=True)
def copy_rows(rows: Array, source: int, target: int, count: int) -> None:
    """Change some rows into others."""
    for row in range(count):
        for k in range(rows.shape[1]):
            rows[target + row, k] = rows[source + row, k]


@compiled(inner=True)
def add_rows(rows: Array, a: int, b: int, target: int) -> None:
    """Change a row into the sum of two."""
    for k in range(rows.shape[1]):
        rows[target, k] = rows[a, k] + rows[b, k]


@compiled(inner=True)
def scaled(scale: Array, rows: Array, row: int, k: int, transposed: bool) -> float:
    """Entry k of the metric's root, or its transpose, times a row."""
    if scale.shape[0] == 1:
        return scale[0, k] * rows[row, k]
    total = 0.0
    if transposed:
        for j in range(k, rows.shape[1]):
            total += scale[j, k] * rows[row, j]
    else:
        for j in range(k + 1):
            total += scale[k, j] * rows[row, j]
    return total


@compiled(inner=True)
def leap(walk: Walk, end: int, step_size: float) -> float:
    """Make one leapfrog step of an end, changing its rows and those of the leaf; gives the log density."""
    rows, scale, address = walk.rows, walk.scale, walk.address
    dim = rows.shape[1]
    for k in range(dim):
        rows[ENDS + end, k] += step_size * scaled(scale, rows, HALVES + end, k, False)
    x, gradient = address + 8 * dim * (ENDS + end), address + 8 * dim * LEAF_GRADIENT
    value = density_at(walk.function, x, gradient, dim, walk.data)
    for k in range(dim):
        kick = 0.5 * step_size * scaled(scale, rows, LEAF_GRADIENT, k, True)
        momentum = rows[HALVES + end, k] + kick
        rows[LEAF_MOMENTUM, k] = momentum
        rows[HALVES + end, k] = momentum + kick
    return value


@compiled(inner=True)
def log_add(a: float, b: float) -> float:
    """``log(exp(a) + exp(b))``."""
    return a + math.log1p(math.exp(b - a)) if a > b else b + math.log1p(math.exp(a - b))


@compiled(inner=True)
def turns(rows: Array, first: int, second: int, depth: float, reverse: bool) -> bool:
    """Whether two joined stretches turn, changing `SCRATCH` to the sum of their momenta; see `nuts_trees.turns`."""
    near, far = (first + FAR, first + NEAR) if reverse else (first + NEAR, first + FAR)
    turned = False
    if depth > 0:
        add_rows(rows, first + TOTAL, second + NEAR, SCRATCH)
        turned = dot(rows, SCRATCH, near) <= 0 or dot(rows, SCRATCH, second + NEAR) <= 0
        if not turned:
            add_rows(rows, second + TOTAL, far, SCRATCH)
            turned = dot(rows, SCRATCH, far) <= 0 or dot(rows, SCRATCH, second + FAR) <= 0
    add_rows(rows, first + TOTAL, second + TOTAL, SCRATCH)
    return turned or dot(rows, SCRATCH, near) <= 0 or dot(rows, SCRATCH, second + FAR) <= 0
