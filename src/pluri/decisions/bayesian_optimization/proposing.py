"""Where to evaluate next: the point of a space with the highest utility.

The utility of a point is the acquisition of the objective's model, times the probability that each constraint holds.
It is looked up at thousands of random points and near the best ones so far; from the highest of them, numbers climb by
their gradients (L-BFGS) and integers and choices from neighbour to neighbour, in turn. Points that are known, or under
way, are not proposed again while there are others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.decisions.bayesian_optimization.acquisition import Criterion, averaged, log_feasible
from pluri.decisions.bayesian_optimization.space import Space
from pluri.decisions.bayesian_optimization.surrogate import Surrogate

Array = NDArray[np.float64]

#: Points drawn from the whole space, and near the best ones.
N_RANDOM, N_NEAR = 2000, 200
#: Points at which a function is drawn as a whole (the work grows with the cube).
N_DRAWN = 800
#: Highest points from which the search climbs, and rounds of climbing.
N_STARTS, N_ROUNDS = 4, 4
#: Codes that differ by less are the same point.
SAME = 1e-6


@dataclass(frozen=True)
class Utility:
    """What is maximised.

    Attributes
    ----------
    model : Surrogate of the objective
    criterion : Criterion
    constraints : Surrogates of what must be at most 0
    """

    model: Surrogate
    criterion: Criterion
    constraints: tuple[Surrogate, ...] = ()

    def at(self, rows: Array) -> Array:
        """Utility, or its logarithm, at rows of codes (m,)."""
        value = averaged(self.criterion.evaluate(*self.model.predict(rows))[0], None, self.criterion.logarithmic)[0]
        for constraint in self.constraints:
            value = value + averaged(log_feasible(*constraint.predict(rows))[0], None, True)[0]
        return np.asarray(value)

    def climb(self, row: Array, dimensions: NDArray[np.int64]) -> tuple[float, Array]:
        """Utility at one row and its derivative along some dimensions (n_chosen,)."""
        mean, std, mean_slope, std_slope = self.model.slopes(row, dimensions)
        value, by_mean, by_std = self.criterion.evaluate(mean, std)
        gradients = by_mean[:, None] * mean_slope + by_std[:, None] * std_slope
        total, gradient = averaged(value, gradients, self.criterion.logarithmic)
        for constraint in self.constraints:
            mean, std, mean_slope, std_slope = constraint.slopes(row, dimensions)
            value, by_mean, by_std = log_feasible(mean, std)
            gradients = by_mean[:, None] * mean_slope + by_std[:, None] * std_slope
            more, more_gradient = averaged(value, gradients, True)
            total, gradient = total + more, gradient + more_gradient
        return float(total), gradient


def best_point(utility: Utility, near: Array, taken: Array, rng: np.random.Generator) -> tuple[Array, float]:
    """The point of highest utility that is not taken, and its utility.

    Parameters
    ----------
    utility : Utility
    near : (k, n_dimensions)
        The best points so far, near which to look more closely.
    taken : (n, n_dimensions)
        Points that are known or under way.
    rng : Generator
    """
    space = utility.model.space
    rows = candidates(space, near, rng, N_RANDOM, N_NEAR)
    heights = utility.at(rows)
    order = np.argsort(-heights, kind="stable")
    climbed = [climbed_to_top(utility, rows[index]) for index in distinct(rows[order], N_STARTS, order)]
    found = np.concatenate([np.array([row for row, _ in climbed]), rows[order]])
    values = np.concatenate([[value for _, value in climbed], heights[order]])
    ranking = np.argsort(-values, kind="stable")
    for index in ranking:
        if not is_taken(found[index], taken):
            return found[index], float(values[index])
    free = free_point(space, taken, rng)
    if free is not None:
        return free, float(utility.at(free[None])[0])
    return found[ranking[0]], float(values[ranking[0]])  # every point is taken


def candidates(space: Space, near: Array, rng: np.random.Generator, n_random: int, n_near: int) -> Array:
    """Points of the whole space, and changes of the best ones at all scales."""
    rows = space.sample(rng, n_random)
    if not len(near):
        return rows
    centres = near[rng.integers(len(near), size=n_near)]
    scales = 10.0 ** rng.uniform(-3.0, -0.5, size=(n_near, 1))
    moved = centres + scales * rng.standard_normal(centres.shape)
    others = space.sample(rng, n_near)
    categorical = np.array([one.categorical for one in space.dimensions])
    moved[:, categorical] = np.where(
        rng.random((n_near, int(categorical.sum()))) < 0.2, others[:, categorical], centres[:, categorical]
    )
    # Some changes leave most coordinates as they are.
    kept = rng.random(centres.shape) < rng.choice([0.0, 0.5], size=(n_near, 1))
    return np.concatenate([rows, space.snap(np.where(kept, centres, moved))])


def distinct(ordered: Array, count: int, order: NDArray[np.int64]) -> list[int]:
    """Numbers of the first rows that are not all but the same."""
    chosen: list[int] = []
    for place in range(len(ordered)):
        if all(np.abs(ordered[place] - ordered[other]).max() > 1e-3 for other in chosen):
            chosen.append(place)
        if len(chosen) == count:
            break
    return [int(order[place]) for place in chosen]


def climbed_to_top(utility: Utility, row: Array) -> tuple[Array, float]:
    """Climb from a point: numbers by gradients, others from neighbour to neighbour, until neither leads higher."""
    space = utility.model.space
    dimensions = np.flatnonzero(space.continuous)
    value = float(utility.at(row[None])[0])
    for _ in range(N_ROUNDS):
        before = value
        if len(dimensions):
            row, value = _along_gradients(utility, row, value, dimensions)
        beside = space.neighbours(row)
        if len(beside):
            heights = utility.at(beside)
            if heights.max() > value:
                row, value = beside[int(np.argmax(heights))], float(heights.max())
        if not len(beside) or value <= before:
            break
    return row, value


def _along_gradients(utility: Utility, row: Array, value: float, dimensions: NDArray[np.int64]) -> tuple[Array, float]:
    from scipy.optimize import minimize

    def negative(codes: Array) -> tuple[float, Array]:
        moved = row.copy()
        moved[dimensions] = codes
        height, gradient = utility.climb(moved, dimensions)
        return (-height, -gradient) if np.isfinite(height) else (1e25, np.zeros(len(dimensions)))

    result = minimize(
        negative, row[dimensions], jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * len(dimensions),
        options={"maxiter": 50},
    )  # fmt: skip
    moved = row.copy()
    moved[dimensions] = result.x
    moved = utility.model.space.snap(moved[None])[0]
    height = float(utility.at(moved[None])[0])
    return (moved, height) if height > value else (row, value)


def drawn_point(
    model: Surrogate, constraints: tuple[Surrogate, ...], near: Array, taken: Array, rng: np.random.Generator
) -> Array:
    """Thompson's choice: the minimum of a function drawn from the posterior, among points that are not taken.

    Constraints are drawn too; if no point keeps them, the one that breaks them least is chosen.
    """
    space = model.space
    rows = candidates(space, near, rng, N_DRAWN - N_NEAR, N_NEAR)
    rows = np.unique(rows, axis=0)
    free = np.array([not is_taken(row, taken) for row in rows])
    rows = rows[free] if free.any() else rows
    values = model.draw(rows, rng)
    violation = np.zeros(len(rows))
    for constraint in constraints:
        violation += np.maximum(constraint.draw(rows, rng) / constraint.scale, 0.0)
    order = np.lexsort([values, violation])
    return np.asarray(rows[order[0]])


def is_taken(row: Array, taken: Array) -> bool:
    """Whether a point is one of the taken."""
    return bool(len(taken)) and bool((np.abs(taken - row).max(axis=1) < SAME).any())


def free_point(space: Space, taken: Array, rng: np.random.Generator) -> Array | None:
    """Some point that is not taken; None if there is none."""
    if np.isfinite(space.n_points) and space.n_points <= 10_000:
        grid = np.meshgrid(*[one.levels() for one in space.dimensions], indexing="ij")
        rows = rng.permutation(np.stack(grid, axis=-1).reshape(-1, space.n_dimensions))
    else:
        rows = space.sample(rng, 100)
    return next((row for row in rows if not is_taken(row, taken)), None)
