"""Compiled steps of NUTS and HMC, many in one call, with what a warm-up learns between two windows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled
from pluri.inference.mcmc.hamiltonian._trajectories import (
    ACCEPTANCE,
    ACCEPTED,
    AIM,
    CENTRE,
    CHOICE,
    COUNT,
    DECAY,
    DEPTH,
    DIVERGED,
    DIVERGENT,
    ENDS,
    ERROR,
    EVALUATIONS,
    EVEN,
    FAR,
    FINE,
    FRONT,
    GAMMA,
    HALVES,
    INFINITE,
    KINETIC,
    LEAF_GRADIENT,
    LEAF_MOMENTUM,
    LEVEL,
    LOG_AVERAGED,
    N_TOLD,
    NEAR,
    OFFSET,
    POINT,
    SCRATCH,
    SEEN,
    SLOPE,
    STACK,
    STEP,
    STEP_SIZE,
    TOTAL,
    TREE_ROWS,
    TURNED,
    VALUE,
    WEIGHT,
    WHOLE,
    Walk,
    begin,
    joined,
    leap,
    log_add,
)
from pluri.inference.mcmc.hamiltonian.leapfrog import DIVERGENCE

Array = NDArray[np.float64]


class Plan(NamedTuple):
    """Whole numbers of a `Walk` and of what is done with it, in the order in which compiled code gets them.

    Attributes
    ----------
    address, width, function, data, scale, dense : as in `Walk`
    max_depth : of a tree
    n_leapfrog : steps of a trajectory of a given length
    learning, watching : whether step sizes are learned, and variances: of a vector, or (2) of a matrix
    seen : row at which the mean of the positions seen stands, and below it their variances, or sums of products
    """

    address: int
    width: int
    function: int
    data: int
    scale: int
    dense: int
    max_depth: int
    n_leapfrog: int
    learning: int
    watching: int
    seen: int


@compiled(inner=True, allocates=False)
def pair(walk: Walk, end: int, tree: int, even_change: float, change: float, rng: Any) -> bool:
    """Make a subtree of the even leaf and the one just made, changing its rows; True if the two turn back."""
    rows, width = walk.rows, walk.width
    product, kinetic = 0.0, rows[LEAF_MOMENTUM, KINETIC]
    for k in range(FRONT, width):
        product += rows[LEAF_MOMENTUM, k] * rows[EVEN + NEAR, k]
    if rows[EVEN + NEAR, KINETIC] + product <= 0 or kinetic + product <= 0:
        return True
    weight = log_add(-even_change, -change)
    move = rng.random() < math.exp(-change - weight)
    for k in range(FRONT, width):
        even, odd = rows[EVEN + NEAR, k], rows[LEAF_MOMENTUM, k]
        rows[tree + TOTAL, k], rows[tree + NEAR, k], rows[tree + FAR, k] = even + odd, even, odd
        rows[tree + POINT, k] = rows[ENDS + end, k] if move else rows[EVEN + POINT, k]
        rows[tree + SLOPE, k] = rows[LEAF_GRADIENT, k] if move else rows[EVEN + SLOPE, k]
    rows[tree, WEIGHT], rows[tree, LEVEL] = weight, 1.0
    rows[tree, VALUE] = rows[LEAF_MOMENTUM, VALUE] if move else rows[EVEN + NEAR, VALUE]
    return False


@compiled(inner=True, allocates=False)
def grow(walk: Walk, rng: Any, end: int, depth: int, energy: float, step_size: float) -> int:
    """Build a subtree of ``2^depth`` states at the bottom of the stack, changing the workspace; see `Growth`."""
    rows, width = walk.rows, walk.width
    tree, even_change = STACK + 0, 0.0
    for leaf in range(1 << depth):
        change = leap(walk, end, step_size, energy)
        if not change <= DIVERGENCE:  # NaN counts as divergent
            return DIVERGED
        if change == -math.inf:
            return INFINITE
        rows[SCRATCH, ACCEPTANCE] += 1.0 if change <= 0 else math.exp(-change)
        if leaf % 2 == 0:
            even_change = change
            target = EVEN if depth > 0 else STACK
            for k in range(FRONT, width):
                rows[target + POINT, k], rows[target + SLOPE, k] = rows[ENDS + end, k], rows[LEAF_GRADIENT, k]
                momentum = rows[LEAF_MOMENTUM, k]
                rows[target + TOTAL, k] = rows[target + NEAR, k] = rows[target + FAR, k] = momentum
            rows[EVEN + NEAR, KINETIC] = rows[LEAF_MOMENTUM, KINETIC]
            rows[EVEN + NEAR, VALUE] = rows[LEAF_MOMENTUM, VALUE]
            rows[target, VALUE] = rows[LEAF_MOMENTUM, VALUE]
            rows[target, WEIGHT], rows[target, LEVEL] = -change, 0.0
            continue
        if pair(walk, end, tree, even_change, change, rng):
            return TURNED
        while tree > STACK and rows[tree - TREE_ROWS, LEVEL] == rows[tree, LEVEL]:
            below, uniform = tree - TREE_ROWS, rng.random()
            weight = log_add(rows[below, WEIGHT], rows[tree, WEIGHT])
            move = uniform < math.exp(rows[tree, WEIGHT] - weight)
            if joined(rows, width, below, tree, below + NEAR, move):
                return TURNED
            tree = below
        tree += TREE_ROWS
    return FINE


@compiled(inner=True, allocates=False)
def learn(rows: Array) -> float:
    """Change the memory of a warm-up after a step (`DualAveraging.update`); gives the next step size."""
    count = rows[HALVES, COUNT] + 1.0
    error = rows[HALVES, ERROR]
    missed = rows[HALVES, AIM] - rows[SCRATCH, ACCEPTANCE]
    error += 1.0 / (count + rows[HALVES, OFFSET]) * (missed - error)
    log_step = rows[HALVES, CENTRE] - math.sqrt(count) / rows[HALVES, GAMMA] * error
    log_step = min(max(log_step, -700.0), 700.0)
    weight = count ** -rows[HALVES, DECAY]
    rows[HALVES, LOG_AVERAGED] += weight * (log_step - rows[HALVES, LOG_AVERAGED])
    rows[HALVES, COUNT], rows[HALVES, ERROR] = count, error
    rows[HALVES, STEP] = math.exp(log_step)
    return rows[HALVES, STEP]


@compiled(inner=True, allocates=False)
def watch(rows: Array, width: int, mean: int, n_rows: int) -> None:
    """Change the mean and variances, or sums of products, of the positions seen (`RunningVariance.add`)."""
    rows[HALVES, SEEN] += 1
    share = 1.0 / rows[HALVES, SEEN]
    for i in range(n_rows):
        for j in range(FRONT, width):
            first = FRONT + i if n_rows > 1 else j
            product = (rows[WHOLE, first] - rows[mean, first]) * (rows[WHOLE, j] - rows[mean, j])
            rows[mean + 1 + i, j] += (1.0 - share) * product
    for k in range(FRONT, width):
        rows[mean, k] += share * (rows[WHOLE, k] - rows[mean, k])


@compiled(inner=True, allocates=False)
def taken(rows: Array, path: Array, plan: Any, step: int, step_size: float) -> float:
    """Write down a step, changing `path`, and learn from it; gives the next step size."""
    width = plan[1]
    rows[SCRATCH, STEP_SIZE] = step_size
    for k in range(FRONT, width):
        path[step, k] = rows[WHOLE, k]
    for column in range(N_TOLD):
        path[step, column] = rows[SCRATCH, column]
    path[step, N_TOLD] = rows[WHOLE, VALUE]
    if plan[9] > 0:
        watch(rows, width, plan[10], 1 if plan[9] == 1 else width - FRONT)
    return learn(rows) if plan[8] > 0 else step_size


@compiled(allocates=False)
def make_nuts_steps(rows: Array, path: Array, plan: Any, rng: Any, step_size: float) -> int:
    """Make as many steps as `path` has room for, changing it and the workspace; `INFINITE` ends them.

    `plan` is the array of a `Plan`. See `nuts.extend`.
    """
    width, max_depth = plan[1], plan[6]
    walk = Walk(rows, plan[0], width, plan[2], plan[3], plan[4], plan[5])
    for step in range(len(path)):
        energy = begin(walk, rng, step_size)
        for i in range(2 * max_depth):
            rows[i, CHOICE] = rng.random()
        state = FINE
        for depth in range(max_depth):
            backwards = rows[2 * depth, CHOICE] < 0.5
            rows[SCRATCH, DEPTH] = depth + 1
            end, signed = (1, -step_size) if backwards else (0, step_size)
            state = grow(walk, rng, end, depth, energy, signed)
            if state == INFINITE:
                return INFINITE
            if state != FINE:
                break
            gain = rows[STACK, WEIGHT] - rows[WHOLE, WEIGHT]
            move = gain >= 0 or rows[2 * depth + 1, CHOICE] < math.exp(gain)
            if joined(rows, width, WHOLE + 0, STACK + 0, WHOLE + (FAR if backwards else NEAR), move):
                break
        rows[SCRATCH, DIVERGENT] = state == DIVERGED
        rows[SCRATCH, ACCEPTANCE] /= rows[SCRATCH, EVALUATIONS]
        step_size = taken(rows, path, plan, step, step_size)
    return FINE


@compiled(allocates=False)
def make_hmc_steps(rows: Array, path: Array, plan: Any, rng: Any, step_size: float, jitter: float) -> int:
    """The same with trajectories of a given length."""
    width, n_leapfrog = plan[1], plan[7]
    walk = Walk(rows, plan[0], width, plan[2], plan[3], plan[4], plan[5])
    for step in range(len(path)):
        length = step_size * (1.0 + jitter * (2.0 * rng.random() - 1.0))
        energy = begin(walk, rng, length)
        change = 0.0
        for _ in range(n_leapfrog):
            change = leap(walk, ENDS + 0, length, energy)
            if change == -math.inf:
                return INFINITE
            if not change <= DIVERGENCE:
                break
        divergent = not change <= DIVERGENCE
        acceptance = 0.0 if divergent else math.exp(min(0.0, -change))
        accepted = rng.random() < acceptance
        rows[SCRATCH, DIVERGENT], rows[SCRATCH, ACCEPTANCE] = divergent, acceptance
        rows[SCRATCH, ACCEPTED] = accepted
        if accepted:
            for k in range(FRONT, width):
                rows[WHOLE + POINT, k], rows[WHOLE + SLOPE, k] = rows[ENDS, k], rows[LEAF_GRADIENT, k]
            rows[WHOLE, VALUE] = rows[LEAF_MOMENTUM, VALUE]
        step_size = taken(rows, path, plan, step, step_size)
    return FINE
