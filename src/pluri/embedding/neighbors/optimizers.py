"""Ways down a cost of points: jittered steps, momentum, the spectral direction, and L-BFGS.

Each takes a function of an array (n, width), one row an object, and gives a `Descended`. Loops are those of
`pluri.inference`: Ctrl-C keeps the best point so far.

References
----------
.. [1] Hinton, G. and Roweis, S. (2002). Stochastic neighbor embedding. NIPS 15 (jitter).
.. [2] van der Maaten, L. and Hinton, G. (2008). Visualizing data using t-SNE. JMLR 9 (momentum and gains).
.. [3] Vladymyrov, M. and Carreira-Perpinan, M. (2012). Partial-Hessian strategies for fast learning of nonlinear
   embeddings. ICML (the spectral direction).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from pluri.inference import HistoryRow
from pluri.inference.ascent import climb
from pluri.inference.variational.adam import descend, refuse_divergence

Array = NDArray[np.float64]
Objective = Callable[[Array], tuple[float, Array]]

#: A descent without jitter has settled when this many iterations gain less than the tolerance.
WINDOW = 10
#: Momentum in the first part of a run, and after it; gains of a coordinate grow and shrink so.
EARLY, LATE, EARLY_PART, GROW, SHRINK, LEAST_GAIN = 0.5, 0.8, 0.25, 0.2, 0.8, 0.01
#: Part of the gain promised by the slope that a step must bring; most halvings of one step.
ARMIJO, HALVINGS = 1e-4, 40


@dataclass(frozen=True)
class Settings:
    """What all descents share.

    Attributes
    ----------
    max_iter : iterations at most
    tol : the relative decrease of the cost over ten iterations below which a descent has settled
    rates : (n, 1): step of each object per unit of gradient
    jitter : standard deviation of the noise added to each coordinate after a step
    n_jittered : iterations with noise
    farthest : most that an iteration of L-BFGS may move a coordinate
    movable : how many of the columns are coordinates, to which noise may be added
    verbose : int
    """

    max_iter: int
    tol: float
    rates: Array
    jitter: float = 0.0
    n_jittered: int = 0
    farthest: float = math.inf
    movable: int | None = None
    verbose: int = 0


@dataclass
class Descended:
    """Where a descent ended.

    Attributes
    ----------
    points : (n, width): the best; the last ones if noise was still on
    value : cost there
    rows : one `HistoryRow` for each iteration
    converged, interrupted : bool
    """

    points: Array
    value: float = math.inf
    rows: list[HistoryRow] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False
    clock: float = field(default_factory=perf_counter)

    def record(self, value: float) -> None:
        """One more iteration, at whose beginning the cost was `value`."""
        before, self.clock = self.clock, perf_counter()
        self.rows.append(HistoryRow(0, len(self.rows) + 1, -value, -value, self.clock - before))

    def keep(self, points: Array, value: float) -> None:
        """Points that are better than all before."""
        if value <= self.value:
            self.points, self.value = points, value


def settled(losses: list[float], tol: float, since: int = 0) -> bool:
    """Whether ten iterations after number `since` have gained less than the tolerance."""
    if len(losses) - since <= WINDOW:
        return False
    return losses[-WINDOW - 1] - losses[-1] < tol * max(1e-8, abs(losses[-1]))


def run_jitter(objective: Objective, start: Array, settings: Settings, rng: np.random.Generator) -> Descended:
    """Steps down the gradient with noise after each, then without; there a step that goes up is halved and repeated."""
    found = Descended(start)
    noisy = settings.n_jittered if settings.jitter > 0 else 0
    movable = start.shape[1] if settings.movable is None else settings.movable
    points, shrink = start, 1.0
    last: tuple[Array, float, Array] | None = None  # the last points without noise that were accepted

    def step(number: int) -> float:
        nonlocal points, shrink, last
        value, gradient = objective(points)
        refuse_divergence(number, value, gradient)
        if number < noisy:
            moved = points - settings.rates * gradient
            moved[:, :movable] += settings.jitter * rng.standard_normal((len(points), movable))
            found.points, found.value = points, math.inf
        else:
            if last is not None and value > last[1] + 1e-12 * abs(last[1]):
                shrink *= 0.5
                points_from, value, gradient = last
            else:
                points_from = points
                last = points, value, gradient
                found.keep(points, value)
            moved = points_from - shrink * settings.rates * gradient
        points = moved
        found.record(value)
        return value

    done = descend(
        step,
        settings.max_iter,
        settled=lambda losses: shrink > 0.1 and settled(losses, settings.tol, noisy),
        kept="the points so far are kept",
        verbose=settings.verbose,
    )
    return _ended(found, objective, done.converged, done.interrupted)


def run_momentum(objective: Objective, start: Array, settings: Settings, rng: np.random.Generator) -> Descended:
    """Gradient descent with momentum and with gains for coordinates whose gradient keeps its sign."""
    found = Descended(start)
    points, velocity, gains = start, np.zeros_like(start), np.ones_like(start)
    early = int(EARLY_PART * settings.max_iter)

    def step(number: int) -> float:
        nonlocal points, velocity, gains
        value, gradient = objective(points)
        refuse_divergence(number, value, gradient)
        found.keep(points, value)
        same = velocity * gradient < 0.0
        gains = np.clip(np.where(same, gains + GROW, gains * SHRINK), LEAST_GAIN, 2.0)
        momentum = EARLY if number < early else LATE
        velocity = momentum * velocity - (1.0 - LATE) * gains * settings.rates * gradient
        points = points + velocity
        found.record(value)
        return value

    done = descend(
        step,
        settings.max_iter,
        settled=lambda losses: settled(losses, settings.tol, early),
        kept="the best points so far are kept",
        verbose=settings.verbose,
    )
    return _ended(found, objective, done.converged, done.interrupted)


def run_spectral(objective: Objective, start: Array, settings: Settings, solve: Callable[[Array], Array]) -> Descended:
    """Steps along -B^-1 gradient, B the curvature of the attraction alone, with a line search.

    Parameters
    ----------
    objective, start, settings
    solve : callable
        Gradient (n, width) to B^-1 gradient.
    """
    found = Descended(start)
    points, length = start, 1.0
    value, gradient = objective(points)
    found.keep(points, value)

    def step(number: int) -> float:
        nonlocal points, value, gradient, length
        direction = -solve(gradient)
        slope = float((direction * gradient).sum())
        if not slope < 0.0:  # rounding: the plain gradient always goes down
            direction = -settings.rates * gradient
            slope = float((direction * gradient).sum())
        length = min(1.0, 2.0 * length)
        for _ in range(HALVINGS):
            tried = objective(points + length * direction)
            if tried[0] <= value + ARMIJO * length * slope:
                points = points + length * direction
                value, gradient = tried
                break
            length *= 0.5
        found.keep(points, value)
        found.record(value)
        return value

    done = descend(
        step,
        settings.max_iter,
        settled=lambda losses: settled(losses, settings.tol),
        kept="the best points so far are kept",
        verbose=settings.verbose,
    )
    found.converged, found.interrupted = done.converged, done.interrupted
    return found


def run_lbfgs(objective: Objective, start: Array, settings: Settings) -> Descended:
    """L-BFGS; the tolerance is on the gain of one iteration, a tenth of that of ten."""
    best, least = start.ravel(), math.inf

    def negative(vector: Array) -> tuple[float, Array]:
        nonlocal best, least
        if np.abs(vector - best).max() > settings.farthest:
            return -math.inf, np.zeros(len(vector))  # turns the line search back
        value, gradient = objective(vector.reshape(start.shape))
        if value < least:
            best, least = vector.copy(), value
        return -value, -gradient.ravel()

    ascent = climb(
        negative, [start.ravel()], max_iter=settings.max_iter, tol=settings.tol / WINDOW, verbose=settings.verbose
    )
    rows = [HistoryRow(*row) for row in ascent.history.rows]
    points = ascent.point.reshape(start.shape)
    return Descended(points, -ascent.objective, rows, ascent.converged, ascent.interrupted)


def _ended(found: Descended, objective: Objective, converged: bool, interrupted: bool) -> Descended:
    """The record complete; the cost of points that noise was added to last is still to be had."""
    found.converged, found.interrupted = converged, interrupted
    if not math.isfinite(found.value):
        found.value = objective(found.points)[0]
    return found
