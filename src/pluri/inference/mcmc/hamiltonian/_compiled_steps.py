"""Compiled steps of NUTS and HMC, many in one call, with what a warm-up learns between two windows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled
from pluri.inference.mcmc.hamiltonian._trajectories import (
    ACCEPTANCE, ACCEPTED, DEPTH, DIVERGED, DIVERGENCE, DIVERGENT, ENDS, ENERGY, EVALUATIONS, EVEN, FAR, FINE, INFINITE,
    LEAF_GRADIENT, LEAF_MOMENTUM, LEVEL, N_TOLD, NEAR, POINT, SCRATCH, SLOPE, STACK, STEP_SIZE, TOTAL, TREE_ROWS,
    TURNED, VALUE, WEIGHT, WHOLE, Walk, begin, joined, leap, log_add,
)  # fmt: skip

__all__ = ["ENERGY"]

Array = NDArray[np.float64]

#: Entries of the memory of a warm-up: that of dual averaging, and the number of positions seen.
STEP, CENTRE, COUNT, ERROR, LOG_AVERAGED, AIM, GAMMA, OFFSET, DECAY, SEEN, N_MEMORY = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10


class Course(NamedTuple):
    """What the steps of a chain tell, and what its warm-up learns of them.

    Attributes
    ----------
    positions : (n_steps, dim)
    told : (n_steps, N_TOLD + 1): the last column is the log density
    memory : (N_MEMORY,)
    mean : (dim,), and `spread` (1, dim) or (dim, dim): of the positions seen
    learning, watching : whether step sizes are learned, and variances
    """

    positions: Array
    told: Array
    memory: Array
    mean: Array
    spread: Array
    learning: bool
    watching: bool


@compiled(inner=True, allocates=False)
def pair(walk: Walk, end: int, tree: int, even_change: float, change: float, rng: Any) -> bool:
    """Make a subtree of the even leaf and the one just made, changing its rows; True if the two turn back."""
    rows, dim = walk.rows, walk.dim
    product, kinetic = 0.0, rows[LEAF_MOMENTUM, dim]
    for k in range(dim):
        product += rows[LEAF_MOMENTUM, k] * rows[EVEN + NEAR, k]
    if rows[EVEN + NEAR, dim] + product <= 0 or kinetic + product <= 0:
        return True
    weight = log_add(-even_change, -change)
    move = rng.random() < math.exp(-change - weight)
    for k in range(dim):
        even, odd = rows[EVEN + NEAR, k], rows[LEAF_MOMENTUM, k]
        rows[tree + TOTAL, k], rows[tree + NEAR, k], rows[tree + FAR, k] = even + odd, even, odd
        rows[tree + POINT, k] = rows[ENDS + end, k] if move else rows[EVEN + POINT, k]
        rows[tree + SLOPE, k] = rows[LEAF_GRADIENT, k] if move else rows[EVEN + SLOPE, k]
    rows[tree, dim + WEIGHT], rows[tree, dim + LEVEL] = weight, 1.0
    rows[tree, dim + VALUE] = rows[LEAF_MOMENTUM, dim + 1] if move else rows[EVEN + NEAR, dim + 1]
    return False


@compiled(inner=True, allocates=False)
def grow(walk: Walk, rng: Any, end: int, depth: int, energy: float, step_size: float) -> int:
    """Build a subtree of ``2^depth`` states at the bottom of the stack, changing the workspace; see `Growth`."""
    rows, dim = walk.rows, walk.dim
    tree, even_change = STACK + 0, 0.0
    for leaf in range(1 << depth):
        change = leap(walk, end, step_size, energy)
        if not change <= DIVERGENCE:  # NaN counts as divergent
            return DIVERGED
        if change == -math.inf:
            return INFINITE
        rows[SCRATCH, dim + ACCEPTANCE] += 1.0 if change <= 0 else math.exp(-change)
        if leaf % 2 == 0:
            even_change = change
            target = EVEN if depth > 0 else STACK
            for k in range(dim):
                rows[target + POINT, k], rows[target + SLOPE, k] = rows[ENDS + end, k], rows[LEAF_GRADIENT, k]
                momentum = rows[LEAF_MOMENTUM, k]
                rows[target + TOTAL, k] = rows[target + NEAR, k] = rows[target + FAR, k] = momentum
            for column in range(2):
                rows[EVEN + NEAR, dim + column] = rows[LEAF_MOMENTUM, dim + column]
            rows[target, dim + VALUE] = rows[LEAF_MOMENTUM, dim + 1]
            rows[target, dim + WEIGHT], rows[target, dim + LEVEL] = -change, 0.0
            continue
        if pair(walk, end, tree, even_change, change, rng):
            return TURNED
        while tree > STACK and rows[tree - TREE_ROWS, dim + LEVEL] == rows[tree, dim + LEVEL]:
            below, uniform = tree - TREE_ROWS, rng.random()
            weight = log_add(rows[below, dim + WEIGHT], rows[tree, dim + WEIGHT])
            move = uniform < math.exp(rows[tree, dim + WEIGHT] - weight)
            if joined(rows, dim, below, tree, below + NEAR, move):
                return TURNED
            tree = below
        tree += TREE_ROWS
    return FINE


@compiled(inner=True, allocates=False)
def nuts_step(walk: Walk, rng: Any, choices: Array, step_size: float) -> int:
    """One trajectory that turns back by itself, changing the workspace. See `nuts.extend`."""
    rows, dim = walk.rows, walk.dim
    energy = begin(walk, rng, step_size)
    for i in range(2 * walk.max_depth):
        choices[i] = rng.random()
    state = FINE
    for depth in range(walk.max_depth):
        backwards = choices[2 * depth] < 0.5
        rows[SCRATCH, dim + DEPTH] = depth + 1
        end, signed = (1, -step_size) if backwards else (0, step_size)
        state = grow(walk, rng, end, depth, energy, signed)
        if state != FINE:
            break
        gain = rows[STACK, dim + WEIGHT] - rows[WHOLE, dim + WEIGHT]
        move = gain >= 0 or choices[2 * depth + 1] < math.exp(gain)
        if joined(rows, dim, WHOLE + 0, STACK + 0, WHOLE + (FAR if backwards else NEAR), move):
            break
    rows[SCRATCH, dim + DIVERGENT] = state == DIVERGED
    rows[SCRATCH, dim + ACCEPTANCE] /= rows[SCRATCH, dim + EVALUATIONS]
    return state


@compiled(inner=True, allocates=False)
def hmc_step(walk: Walk, rng: Any, step_size: float) -> int:
    """One trajectory of a given length, accepted or not, changing the workspace."""
    rows, dim = walk.rows, walk.dim
    step_size *= 1.0 + walk.jitter * (2.0 * rng.random() - 1.0)
    energy = begin(walk, rng, step_size)
    change = 0.0
    for _ in range(walk.n_leapfrog):
        change = leap(walk, ENDS + 0, step_size, energy)
        if not change <= DIVERGENCE:
            break
        if change == -math.inf:
            return INFINITE
    divergent = not change <= DIVERGENCE
    acceptance = 0.0 if divergent else math.exp(min(0.0, -change))
    accepted = rng.random() < acceptance
    rows[SCRATCH, dim + DIVERGENT], rows[SCRATCH, dim + ACCEPTANCE] = divergent, acceptance
    rows[SCRATCH, dim + ACCEPTED] = accepted
    if accepted:
        for k in range(dim):
            rows[WHOLE + POINT, k], rows[WHOLE + SLOPE, k] = rows[ENDS, k], rows[LEAF_GRADIENT, k]
        rows[WHOLE, dim + VALUE] = rows[LEAF_MOMENTUM, dim + 1]
    return FINE


@compiled(inner=True, allocates=False)
def taken(walk: Walk, course: Course, step: int, step_size: float) -> float:
    """Write down a step, changing `course`, and learn from it: `DualAveraging.update` and `RunningVariance.add`."""
    rows, dim, memory, mean, spread = walk.rows, walk.dim, course.memory, course.mean, course.spread
    rows[SCRATCH, dim + STEP_SIZE] = step_size
    for column in range(N_TOLD):
        course.told[step, column] = rows[SCRATCH, dim + column]
    course.told[step, N_TOLD] = rows[WHOLE, dim + VALUE]
    for k in range(dim):
        course.positions[step, k] = rows[WHOLE, k]
    if not course.learning:
        return step_size
    memory[COUNT] += 1
    count = memory[COUNT]
    acceptance = rows[SCRATCH, dim + ACCEPTANCE]
    memory[ERROR] += 1.0 / (count + memory[OFFSET]) * (memory[AIM] - acceptance - memory[ERROR])
    log_step = min(max(memory[CENTRE] - math.sqrt(count) / memory[GAMMA] * memory[ERROR], -700.0), 700.0)
    memory[LOG_AVERAGED] += count ** -memory[DECAY] * (log_step - memory[LOG_AVERAGED])
    memory[STEP] = math.exp(log_step)
    if course.watching:
        memory[SEEN] += 1
        share = 1.0 / memory[SEEN]
        for i in range(len(spread)):
            for j in range(dim):
                first = i if len(spread) > 1 else j
                spread[i, j] += (rows[WHOLE, first] - mean[first]) * (1.0 - share) * (rows[WHOLE, j] - mean[j])
        for k in range(dim):
            mean[k] += share * (rows[WHOLE, k] - mean[k])
    return memory[STEP]


@compiled()
def make_nuts_steps(walk: Walk, course: Course, rng: Any, choices: Array, step_size: float) -> int:
    """Make as many steps as `course` has room for, changing it and the workspace; `INFINITE` ends them."""
    for step in range(len(course.told)):
        if nuts_step(walk, rng, choices, step_size) == INFINITE:
            return INFINITE
        step_size = taken(walk, course, step, step_size)
    return FINE


@compiled()
def make_hmc_steps(walk: Walk, course: Course, rng: Any, choices: Array, step_size: float) -> int:
    """The same with trajectories of a given length."""
    for step in range(len(course.told)):
        if hmc_step(walk, rng, step_size) == INFINITE:
            return INFINITE
        step_size = taken(walk, course, step, step_size)
    return FINE
