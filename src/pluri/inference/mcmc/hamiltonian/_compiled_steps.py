"""Compiled steps of NUTS and HMC, many in one call, with what a warm-up learns between two windows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled
from pluri.inference.mcmc.hamiltonian._trajectories import (
    ACCEPTANCE, ACCEPTED, AIM, CENTRE, COUNT, DECAY, DEPTH, DIVERGED, DIVERGENCE, DIVERGENT, ENDS, ENERGY, ERROR,
    EVALUATIONS, EVEN, FAR, FINE, GAMMA, HALVES, INFINITE, LEAF_GRADIENT, LEAF_MOMENTUM, LEVEL, LOG_AVERAGED, NEAR,
    OFFSET, POINT, SCRATCH, SEEN, SLOPE, STACK, STEP, STEP_SIZE, TOTAL, TREE_ROWS, TURNED, VALUE, WEIGHT, WHOLE, Course,
    Walk, add_rows, copy_rows, dot, leap, log_add, scaled, turns,
)  # fmt: skip

Array = NDArray[np.float64]


@compiled(inner=True)
def new_leaf(rows: Array, end: int, target: int) -> None:
    """Change the rows of a subtree to those of the leaf just made at an end."""
    copy_rows(rows, ENDS + end, target + POINT, 1)
    copy_rows(rows, LEAF_GRADIENT, target + SLOPE, 1)
    for row in (TOTAL, NEAR, FAR):
        copy_rows(rows, LEAF_MOMENTUM, target + row, 1)


@compiled(inner=True)
def join(walk: Walk, first: int, second: int, below: int, uniform: float) -> bool:
    """Merge the upper of two subtrees of the stack into the lower, changing it; True if the whole turns back."""
    rows, trees = walk.rows, walk.trees
    if turns(rows, first, second, trees[below, LEVEL], False):
        return True
    weight = log_add(trees[below, WEIGHT], trees[below + 1, WEIGHT])
    if uniform < math.exp(trees[below + 1, WEIGHT] - weight):
        copy_rows(rows, second, first, 2)
        trees[below, VALUE] = trees[below + 1, VALUE]
    copy_rows(rows, SCRATCH, first + TOTAL, 1)
    copy_rows(rows, second + FAR, first + FAR, 1)
    trees[below, WEIGHT] = weight
    trees[below, LEVEL] += 1
    return False


@compiled(inner=True)
def grow(walk: Walk, rng: Any, end: int, depth: int, energy: float, step_size: float, told: Array) -> int:
    """Build a subtree of ``2^depth`` states at the bottom of the stack, changing the workspace; see `Growth`."""
    rows, trees = walk.rows, walk.trees
    top, even_kinetic, even_change = 0, 0.0, 0.0
    for leaf in range(1 << depth):
        value = leap(walk, end, step_size)
        kinetic = dot(rows, LEAF_MOMENTUM, LEAF_MOMENTUM)
        change = 0.5 * kinetic - value - energy
        told[EVALUATIONS] += 1
        if not change <= DIVERGENCE:  # NaN counts as divergent
            return DIVERGED
        if change == -math.inf:
            return INFINITE
        told[ACCEPTANCE] += 1.0 if change <= 0 else math.exp(-change)
        row = STACK + TREE_ROWS * top
        if leaf % 2 == 0:
            new_leaf(rows, end, EVEN if depth > 0 else row)
            even_kinetic, even_change = kinetic, change
            trees[0, VALUE] = value
            if depth == 0:
                trees[2, WEIGHT], trees[2, VALUE], trees[2, LEVEL] = -change, value, 0.0
            continue
        product = dot(rows, LEAF_MOMENTUM, EVEN + NEAR)
        if even_kinetic + product <= 0 or kinetic + product <= 0:
            return TURNED
        weight = log_add(-even_change, -change)
        trees[2 + top, WEIGHT], trees[2 + top, LEVEL] = weight, 1.0
        if rng.random() < math.exp(-change - weight):
            new_leaf(rows, end, row)
            trees[2 + top, VALUE] = value
        else:
            copy_rows(rows, EVEN, row, 2)
            copy_rows(rows, LEAF_MOMENTUM, row + FAR, 1)
            trees[2 + top, VALUE] = trees[0, VALUE]
        copy_rows(rows, EVEN + NEAR, row + NEAR, 1)
        add_rows(rows, EVEN + NEAR, LEAF_MOMENTUM, row + TOTAL)
        while top > 0 and trees[1 + top, LEVEL] == trees[2 + top, LEVEL]:
            if join(walk, row - TREE_ROWS, row, 1 + top, rng.random()):
                return TURNED
            top -= 1
            row -= TREE_ROWS
        top += 1
    return FINE


@compiled(inner=True)
def extend(walk: Walk, backwards: bool, uniform: float) -> bool:
    """Put the grown subtree at one end of the whole, changing it; True if the whole now turns. See `nuts.extend`."""
    rows, trees = walk.rows, walk.trees
    whole, grown = trees[1, WEIGHT], trees[2, WEIGHT]
    if grown >= whole or uniform < math.exp(grown - whole):
        copy_rows(rows, STACK, WHOLE, 2)
        trees[1, VALUE] = trees[2, VALUE]
    turned = turns(rows, WHOLE, STACK, trees[1, LEVEL], backwards)
    copy_rows(rows, SCRATCH, WHOLE + TOTAL, 1)
    copy_rows(rows, STACK + FAR, WHOLE + (NEAR if backwards else FAR), 1)
    trees[1, WEIGHT] = log_add(whole, grown)
    trees[1, LEVEL] += 1
    return turned


@compiled(inner=True)
def begin(walk: Walk, course: Course, rng: Any, step_size: float) -> float:
    """Draw a momentum and put both ends of a new trajectory there, changing the workspace; gives the energy."""
    rows, trees, scale = walk.rows, walk.trees, walk.scale
    dim = rows.shape[1]
    for k in range(dim):
        momentum = rng.standard_normal()
        rows[LEAF_MOMENTUM, k] = momentum
        rows[LEAF_GRADIENT, k] = course.gradient[k]
        rows[ENDS, k] = rows[ENDS + 1, k] = course.position[k]
    new_leaf(rows, 0, WHOLE)
    for k in range(dim):
        kick = 0.5 * step_size * scaled(scale, rows, LEAF_GRADIENT, k, True)
        rows[HALVES, k], rows[HALVES + 1, k] = rows[LEAF_MOMENTUM, k] + kick, rows[LEAF_MOMENTUM, k] - kick
    trees[1, WEIGHT], trees[1, VALUE], trees[1, LEVEL] = 0.0, course.value[0], 0.0
    return 0.5 * dot(rows, LEAF_MOMENTUM, LEAF_MOMENTUM) - course.value[0]


@compiled(inner=True)
def nuts_step(walk: Walk, course: Course, rng: Any, step_size: float, choices: Array, told: Array) -> int:
    """One trajectory that turns back by itself, changing the workspace."""
    energy = told[ENERGY] = begin(walk, course, rng, step_size)
    for i in range(2 * walk.max_depth):
        choices[i] = rng.random()
    state = FINE
    for depth in range(walk.max_depth):
        backwards = choices[2 * depth] < 0.5
        told[DEPTH] = depth + 1
        end, signed = (1, -step_size) if backwards else (0, step_size)
        state = grow(walk, rng, end, depth, energy, signed, told)
        if state != FINE or extend(walk, backwards, choices[2 * depth + 1]):
            break
    told[DIVERGENT] = state == DIVERGED
    told[ACCEPTANCE] /= told[EVALUATIONS]
    return state


@compiled(inner=True)
def hmc_step(walk: Walk, course: Course, rng: Any, step_size: float, told: Array) -> int:
    """One trajectory of a given length, accepted or not, changing the workspace."""
    rows, trees = walk.rows, walk.trees
    step_size *= 1.0 + walk.jitter * (2.0 * rng.random() - 1.0)
    energy = told[ENERGY] = begin(walk, course, rng, step_size)
    change, value = 0.0, course.value[0]
    for _ in range(walk.n_leapfrog):
        value = leap(walk, 0, step_size)
        told[EVALUATIONS] += 1
        change = 0.5 * dot(rows, LEAF_MOMENTUM, LEAF_MOMENTUM) - value - energy
        if not change <= DIVERGENCE or change == -math.inf:
            break
    if change == -math.inf:
        return INFINITE
    told[DIVERGENT] = not change <= DIVERGENCE
    told[ACCEPTANCE] = 0.0 if told[DIVERGENT] else math.exp(min(0.0, -change))
    told[ACCEPTED] = rng.random() < told[ACCEPTANCE]
    if told[ACCEPTED]:
        new_leaf(rows, 0, WHOLE)
        trees[1, VALUE] = value
    return FINE


@compiled(inner=True)
def learn(course: Course, acceptance: float, watching: bool) -> None:
    """Change the memory of a warm-up after one step: `DualAveraging.update`, and `RunningVariance.add` if watching."""
    memory, mean, spread = course.memory, course.mean, course.spread
    memory[COUNT] += 1
    count = memory[COUNT]
    memory[ERROR] += 1.0 / (count + memory[OFFSET]) * (memory[AIM] - acceptance - memory[ERROR])
    log_step = memory[CENTRE] - math.sqrt(count) / memory[GAMMA] * memory[ERROR]
    log_step = min(max(log_step, -700.0), 700.0)
    memory[LOG_AVERAGED] += count ** -memory[DECAY] * (log_step - memory[LOG_AVERAGED])
    memory[STEP] = math.exp(log_step)
    if not watching:
        return
    memory[SEEN] += 1
    dense = spread.shape[0] > 1
    for j in range(len(mean)):
        difference = course.position[j] - mean[j]
        if not dense:
            mean[j] += difference / memory[SEEN]
            spread[0, j] += difference * (course.position[j] - mean[j])
    if dense:
        share = 1.0 - 1.0 / memory[SEEN]
        for i in range(len(mean)):
            for j in range(len(mean)):
                spread[i, j] += share * (course.position[i] - mean[i]) * (course.position[j] - mean[j])
        for i in range(len(mean)):
            mean[i] += (course.position[i] - mean[i]) / memory[SEEN]


@compiled()
def make_steps(walk: Walk, course: Course, rng: Any, step_size: float, learning: bool, watching: bool) -> int:
    """Make as many steps as `course` has room for, changing it and the workspace; gives what the last one did.

    Other than `FINE`, `TURNED` and `DIVERGED`, it ends the work.
    """
    rows, position, gradient = walk.rows, course.position, course.gradient
    choices = np.empty(2 * walk.max_depth)
    state = FINE
    for step in range(len(course.values)):
        told = course.told[step]
        told[:] = 0.0
        told[STEP_SIZE] = step_size
        if walk.max_depth > 0:
            state = nuts_step(walk, course, rng, step_size, choices, told)
        else:
            state = hmc_step(walk, course, rng, step_size, told)
        if state == INFINITE:
            return state
        for k in range(len(position)):
            position[k] = course.positions[step, k] = rows[WHOLE + POINT, k]
            gradient[k] = rows[WHOLE + SLOPE, k]
        course.value[0] = course.values[step] = walk.trees[1, VALUE]
        if learning:
            learn(course, told[ACCEPTANCE], watching)
            step_size = course.memory[STEP]
    return state
