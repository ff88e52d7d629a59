"""Compiled steps of NUTS and HMC, many in one call; the step size is learned between two windows."""

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
    FAR,
    FINE,
    FRONT,
    GAMMA,
    HALVES,
    INFINITE,
    LEVEL,
    LOG_AVERAGED,
    NEAR,
    OFFSET,
    SLOPE,
    STACK,
    STEP,
    STEP_SIZE,
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
    turns,
    uniform,
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
    learning : whether step sizes are learned
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


@compiled(inner=True, allocates=False)
def grow(walk: Walk, rng: Any, end: int, depth: int, energy: float, step_size: float) -> int:
    """Build a subtree of ``2^depth`` states at the bottom of the stack, changing the workspace; see `Growth`."""
    rows, tree = walk.rows, STACK + 0
    for _ in range(1 << depth):
        change = leap(walk, end, tree, step_size, energy)
        if not change <= DIVERGENCE:  # NaN counts as divergent
            return DIVERGED
        if change == -math.inf:
            return INFINITE
        rows[WHOLE, ACCEPTANCE] += 1.0 if change <= 0 else math.exp(-change)
        while tree > STACK and rows[tree - TREE_ROWS, LEVEL] == rows[tree, LEVEL]:
            below, deep = tree - TREE_ROWS, rows[tree, LEVEL] > 0
            chance = uniform(rng) if deep else 0.0
            if turns(walk, below, tree, below + NEAR):
                return TURNED
            if not deep:
                chance = uniform(rng)
            gain = rows[tree, WEIGHT] - log_add(rows[below, WEIGHT], rows[tree, WEIGHT])
            joined(walk, below, tree, chance < math.exp(gain))
            tree = below
        tree += TREE_ROWS
    return FINE


@compiled(inner=True, allocates=False)
def learn(rows: Array) -> float:
    """Change the memory of a warm-up after a step (`DualAveraging.update`); gives the next step size."""
    memory = HALVES
    count = rows[memory, COUNT] + 1.0
    error = rows[memory, ERROR]
    error += (rows[memory, AIM] - rows[WHOLE, ACCEPTANCE] - error) / (count + rows[memory, OFFSET])
    log_step = rows[memory, CENTRE] - math.sqrt(count) / rows[memory, GAMMA] * error
    if abs(log_step) > 700.0:
        log_step = math.copysign(700.0, log_step)
    weight = math.exp(-rows[memory, DECAY] * math.log(count))
    rows[memory, LOG_AVERAGED] += weight * (log_step - rows[memory, LOG_AVERAGED])
    rows[memory, COUNT], rows[memory, ERROR], rows[memory, STEP] = count, error, math.exp(log_step)
    return math.exp(log_step)


@compiled(inner=True, allocates=False)
def taken(walk: Walk, path: Array, step: int, learning: int) -> float:
    """Write down a step, changing `path`, and learn from it; gives the next step size."""
    rows = walk.rows
    for k in range(walk.width):
        path[step, k] = rows[WHOLE, k]
    return learn(rows) if learning > 0 else rows[WHOLE, STEP_SIZE]


@compiled(allocates=False)
def make_nuts_steps(rows: Array, path: Array, plan: Any, rng: Any, step_size: float) -> int:
    """Make as many steps as `path` has room for, changing it and the workspace; `INFINITE` ends them.

    `plan` is the array of a `Plan`. See `nuts.extend`.
    """
    max_depth = plan[6]
    walk = Walk(rows, plan[0], plan[1], plan[2], plan[3], plan[4], plan[5])
    for step in range(len(path)):
        energy = begin(walk, rng, step_size)
        for i in range(2 * max_depth):
            rows[i, CHOICE] = uniform(rng)
        state = FINE
        for depth in range(max_depth):
            backwards = rows[2 * depth, CHOICE] < 0.5
            rows[WHOLE, DEPTH] = depth + 1
            end, signed, near = (1, -step_size, WHOLE + FAR) if backwards else (0, step_size, WHOLE + NEAR)
            state = grow(walk, rng, end, depth, energy, signed)
            if state != FINE:
                break
            gain = rows[STACK, WEIGHT] - rows[WHOLE, WEIGHT]
            turned = turns(walk, WHOLE + 0, STACK + 0, near)
            joined(walk, WHOLE + 0, STACK + 0, gain >= 0 or rows[2 * depth + 1, CHOICE] < math.exp(gain))
            if turned:
                break
        if state == INFINITE:
            return INFINITE
        rows[WHOLE, DIVERGENT] = state == DIVERGED
        rows[WHOLE, ACCEPTANCE] /= rows[WHOLE, EVALUATIONS]
        step_size = taken(walk, path, step, plan[8])
    return FINE


@compiled(allocates=False)
def make_hmc_steps(rows: Array, path: Array, plan: Any, rng: Any, step_size: float, jitter: float) -> int:
    """The same with trajectories of a given length."""
    width, n_leapfrog = plan[1], plan[7]
    walk = Walk(rows, plan[0], width, plan[2], plan[3], plan[4], plan[5])
    for step in range(len(path)):
        length = step_size * (1.0 + jitter * (2.0 * uniform(rng) - 1.0))
        energy = begin(walk, rng, length)
        change = 0.0
        for _ in range(n_leapfrog):
            change = leap(walk, ENDS + 0, STACK + 0, length, energy)
            if change == -math.inf:
                return INFINITE
            if not change <= DIVERGENCE:
                break
        divergent = not change <= DIVERGENCE
        acceptance = 0.0 if divergent else (math.exp(-change) if change > 0 else 1.0)
        accepted = uniform(rng) < acceptance
        rows[WHOLE, DIVERGENT], rows[WHOLE, ACCEPTANCE], rows[WHOLE, ACCEPTED] = divergent, acceptance, accepted
        rows[WHOLE, STEP_SIZE] = step_size
        if accepted:
            for k in range(FRONT, width):
                rows[WHOLE, k], rows[WHOLE + SLOPE, k] = rows[STACK, k], rows[STACK + SLOPE, k]
            rows[WHOLE, VALUE] = rows[STACK, VALUE]
        step_size = taken(walk, path, step, plan[8])
    return FINE
