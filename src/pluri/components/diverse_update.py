r"""The M-step under a determinantal prior: climb ``Q(theta) + w log det K(theta)``, never down.

The log determinant couples the components, so that no closed form is left; a few steps of L-BFGS with backtracking take
its place. They begin at the better of the old parameters and of those that would be best without the prior, and go
uphill only, which is all that EM needs for its objective never to fall (a generalised M-step).

References
----------
.. [1] Dempster, Laird and Rubin (1977). Maximum likelihood from incomplete data via the EM algorithm. JRSS B 39, 1-38.
.. [2] Nocedal (1980). Updating quasi-Newton matrices with limited storage. Mathematics of Computation 35, 773-782.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.fixed_point import iterate
from pluri.priors import DiversityWarning

Array = NDArray[np.float64]
Evaluator = Callable[[Array], tuple[float, Array]]

#: Pairs of steps and changes of the gradient that L-BFGS remembers.
MEMORY = 8
#: Share of the gain that the slope promises which a step must reach.
ARMIJO = 1e-4
MOST_HALVINGS = 30


def ascend(
    value_and_gradient: Evaluator,
    starts: Sequence[Array],
    max_iter: int = 20,
    *,
    curvature: Array | None = None,
    tol: float = 1e-8,
) -> Array:
    """A point at least as good as every start, and usually a local maximum.

    Parameters
    ----------
    value_and_gradient : callable
        ``vector -> (value, gradient)``; a value of minus infinity (parts coincide) or NaN is a wall.
    starts : sequence of vectors
        The climb begins at the best. If none has a finite value they are told apart by a little noise.
    max_iter : int, default=20
        Largest number of steps.
    curvature : vector, optional
        Rough positive second derivatives of minus the value, which give every direction its own unit.
    tol : float, default=1e-8
        The climb ends when a step gains less than this, relatively.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.components.diverse_update import ascend
    >>> def value_and_gradient(x):
    ...     return -float(((x - 3.0) ** 2).sum()), -2.0 * (x - 3.0)
    >>> ascend(value_and_gradient, [np.zeros(2), np.ones(2)]).round(6)
    array([3., 3.])
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiversityWarning)  # where parts coincide: a wall, not a mistake
        first = _best(value_and_gradient, starts)
        unit = np.ones_like(first.point) if curvature is None else 1.0 / np.maximum(curvature, 1e-12)
        steps: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)

        def climb(here: _Place) -> tuple[_Place, float]:
            direction = _two_loops(here.gradient, steps, unit)
            slope = float(direction @ here.gradient)
            if not slope > 0:
                steps.clear()
                direction = unit * here.gradient
                slope = float(direction @ here.gradient)
                if not slope > 0:
                    return here, -1.0
            # Without a unit the first step knows nothing of the scale: it is at most one long.
            length = 1.0 if steps or curvature is not None else min(1.0, 1.0 / float(np.abs(direction).max()))
            there = _backtrack(value_and_gradient, here, direction, slope, length)
            if there is None:
                return here, -1.0
            step, bend = there.point - here.point, here.gradient - there.gradient
            product = float(step @ bend)
            if product > 1e-12 * float(np.sqrt((step @ step) * (bend @ bend))):
                steps.append((step, bend, product))
            return there, (there.value - here.value) - tol * (1.0 + abs(there.value))

        return iterate(climb, first, max_iter=max_iter).state.point


class _Place(NamedTuple):
    point: Array
    value: float
    gradient: Array


def _best(value_and_gradient: Evaluator, starts: Sequence[Array]) -> _Place:
    """The best start, or the first that noise makes finite."""
    best: _Place | None = None
    for start in starts:
        value, gradient = _finite(value_and_gradient, start)
        if value > -np.inf and (best is None or value > best.value):
            best = _Place(start, value, gradient)
    if best is not None:
        return best
    rng = np.random.default_rng(0)
    base = starts[-1]
    spread, reach = max(float(base.std()), 1e-3), max(float(np.abs(base).mean()), 1.0)
    for size in (0.01 * spread, 0.1 * spread, spread, 0.01 * reach, 0.1 * reach, reach):
        point = base + size * rng.normal(size=base.shape)
        value, gradient = _finite(value_and_gradient, point)
        if value > -np.inf:
            return _Place(point, value, gradient)
    raise ValueError(
        "diversity must leave room for all components: their kernel matrix stays singular; use fewer components or "
        "another kernel"
    )


def _finite(value_and_gradient: Evaluator, point: Array) -> tuple[float, Array]:
    value, gradient = value_and_gradient(point)
    return (float(value), gradient) if np.isfinite(value) and np.isfinite(gradient).all() else (-np.inf, gradient)


def _two_loops(gradient: Array, steps: deque[tuple[Array, Array, float]], unit: Array) -> Array:
    """The inverse Hessian that the remembered steps imply, times the gradient."""
    direction = gradient.copy()
    shares = []
    for step, bend, product in reversed(steps):
        share = float(step @ direction) / product
        direction -= share * bend
        shares.append(share)
    scale = 1.0
    if steps:
        _, bend, product = steps[-1]
        scale = product / float(bend @ (unit * bend))
    direction *= scale * unit
    for (step, bend, product), share in zip(steps, reversed(shares)):
        direction += (share - float(bend @ direction) / product) * step
    return direction


def _backtrack(
    value_and_gradient: Evaluator, here: _Place, direction: Array, slope: float, length: float
) -> _Place | None:
    """The first of halved steps that gains what the slope promises, or None."""
    for _ in range(MOST_HALVINGS):
        trial = here.point + length * direction
        value, gradient = _finite(value_and_gradient, trial)
        if value >= here.value + ARMIJO * length * slope:
            return _Place(trial, value, gradient)
        length *= 0.5
    return None
