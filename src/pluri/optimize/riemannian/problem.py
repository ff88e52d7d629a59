"""What the descent loop asks of an objective: values along a curve, and gradients in a frame that moves with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.manifolds import Manifold

Array = NDArray[np.float64]
Along = Callable[[float], tuple[float, float]]


class CurveProblem(Protocol):
    """An objective with a current point; coordinates are those of a frame there, which is transported along."""

    @property
    def n_evaluations(self) -> int:
        """Number of evaluations of objective and gradient so far."""
        ...

    @property
    def precondition(self) -> Callable[[Array], Array] | None:
        """Multiplication by a positive definite approximation of the inverse Hessian, if there is one."""
        ...

    def evaluate(self) -> tuple[float, Array]:
        """Objective and the coordinates of its gradient at the current point."""
        ...

    def along(self, direction: Array) -> Along:
        """Objective and its derivative as functions of the step along a direction."""
        ...

    def advance(self, step: float) -> tuple[float, Array]:
        """Go a step along the direction last asked for; return what :meth:`evaluate` returns there."""
        ...

    def longest(self, direction: Array) -> float:
        """Longest step allowed along a direction."""
        ...


class ManifoldProblem:
    """A function of a point with its partial derivatives, on any manifold.

    Parameters
    ----------
    value_and_gradient : callable
        From a point to the objective and its partial derivatives, in the shape of a point.
    manifold : Manifold
    start : object
        First point.
    """

    precondition: Callable[[Array], Array] | None = None

    def __init__(self, value_and_gradient: Callable[[Any], tuple[float, Any]], manifold: Manifold, start: Any) -> None:
        self.function = value_and_gradient
        self.manifold = manifold
        self.frame = manifold.frame(manifold.check(start))
        self.n_evaluations = 0
        self._direction: Array = np.empty(0)
        self._trials: dict[float, tuple[Any, float, Array]] = {}

    @property
    def point(self) -> Any:
        """Where the descent is."""
        return self.manifold.point(self.frame)

    def _at(self, frame: Any) -> tuple[float, Array]:
        self.n_evaluations += 1
        value, partials = self.function(self.manifold.point(frame))
        return float(value), self.manifold.slopes(frame, partials)

    def evaluate(self) -> tuple[float, Array]:
        """Objective and the coordinates of its gradient."""
        value, slopes = self._at(self.frame)
        if not (math.isfinite(value) and np.isfinite(slopes).all()):
            raise ValueError(f"value_and_gradient must be finite at the start, got {value} there or a bad gradient")
        return value, slopes

    def along(self, direction: Array) -> Along:
        """Objective and derivative along the geodesic; trials are kept until the next call."""
        self._direction, self._trials = direction, {}

        def phi(step: float) -> tuple[float, float]:
            frame = self.manifold.move(self.frame, step * direction)
            value, slopes = self._at(frame)
            self._trials[step] = (frame, value, slopes)
            return value, float(slopes @ direction)

        return phi

    def advance(self, step: float) -> tuple[float, Array]:
        """Take a step that was tried."""
        if step not in self._trials:
            frame = self.manifold.move(self.frame, step * self._direction)
            self._trials[step] = (frame, *self._at(frame))
        self.frame, value, slopes = self._trials[step]
        self._trials = {}
        return value, slopes

    def longest(self, direction: Array) -> float:
        """No limit."""
        return math.inf
