"""Riemannian L-BFGS without vector transport.

In a frame that is carried along by parallel transport, the method reads as in flat space: the pairs of steps and
gradient changes of the last iterations keep their coordinates [1]_ [2]_.

References
----------
.. [1] R. Hosseini and S. Sra, "Matrix manifold optimization for Gaussian mixtures", NIPS 2015.
.. [2] R. Godaz et al., "Vector transport free Riemannian LBFGS for optimization on symmetric positive definite matrix
   manifolds", ACML 2021.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.manifolds import Manifold
from pluri.optimize.riemannian.descent import Descent, FirstStep, LineSearch, Tolerances, downhill, run
from pluri.optimize.riemannian.problem import ManifoldProblem
from pluri.optimize.riemannian.result import RiemannianResult
from pluri.validation import check_count
from pluri.validation.interruption import interruptible

Array = NDArray[np.float64]

#: A pair is kept if its curvature is at least this, relative to the lengths of both vectors.
CURVATURE = 1e-10


class QuasiNewton:
    """L-BFGS directions from the last steps and changes of the gradient.

    Parameters
    ----------
    memory : int
        Largest number of pairs.
    """

    def __init__(self, memory: int) -> None:
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=memory)
        self._skipped = 0

    def propose(self, slopes: Array, precondition: Callable[[Array], Array] | None) -> Array:
        """Two-loop recursion on ``-slopes``; downhill if nothing is known yet.

        A preconditioner has a scale of its own; without one the last pair gives it.
        """
        if not self.pairs:
            return downhill(slopes, precondition)
        running = -slopes
        weights = []
        for move, change, curvature in reversed(self.pairs):
            weight = float(move @ running) / curvature
            weights.append(weight)
            running = running - weight * change
        _, change, curvature = self.pairs[-1]
        if precondition is None:
            running = running * (curvature / float(change @ change))
        else:
            running = precondition(running)
        for (move, change, curvature), weight in zip(self.pairs, reversed(weights), strict=True):
            running = running + (weight - float(change @ running) / curvature) * move
        return running

    def observe(self, move: Array, slopes: Array, change: Array) -> None:
        """Keep the pair if it has positive curvature; forget all after two in a row that have not."""
        curvature = float(move @ change)
        if curvature > CURVATURE * float(np.linalg.norm(move)) * float(np.linalg.norm(change)):
            self.pairs.append((move, change, curvature))
            self._skipped = 0
            return
        self._skipped += 1
        if self._skipped == 2:
            self.forget()

    def forget(self) -> bool:
        """Drop all pairs."""
        known = bool(self.pairs)
        self.pairs.clear()
        self._skipped = 0
        return known


@interruptible
def riemannian_lbfgs(
    value_and_gradient: Callable[[Any], tuple[float, Any]],
    manifold: Manifold,
    start: Any,
    *,
    tol: float = 1e-10,
    gradient_tol: float = 1e-6,
    max_iter: int = 1500,
    memory: int = 20,
    c1: float = 1e-4,
    c2: float = 0.9,
    first_step: FirstStep = "scaled",
    on_iteration: Callable[[Descent], bool | None] | None = None,
) -> RiemannianResult:
    """Minimise a function on a manifold by L-BFGS.

    Parameters
    ----------
    value_and_gradient : callable
        From a point to the objective and its array of partial derivatives (a tuple of arrays on a product). NaN or
        infinity away from the start is taken as "too far".
    manifold : Manifold
        See :mod:`pluri.optimize.manifolds`.
    start : point
        Where to begin.
    tol : float, default=1e-10
        Ends when a step changes the objective by less.
    gradient_tol : float, default=1e-6
        Ends when the Riemannian gradient is shorter.
    max_iter : int, default=1500
        Largest number of steps.
    memory : int, default=20
        Number of steps that the approximation of the Hessian is made of.
    c1, c2 : float, default=1e-4 and 0.9
        Constants of the line search: see :func:`strong_wolfe`.
    first_step : {"scaled", "unit"}, default="scaled"
        First trial of a line search: from the decrease of the last step and at most one, or always one.
    on_iteration : callable, optional
        Called with the state (``value``, ``slopes``, ``n_iter``) after each step; returning True ends the loop.

    Returns
    -------
    RiemannianResult

    Warns
    -----
    ConvergenceWarning
        If no tolerance was met.

    Examples
    --------
    The covariance of a sample, as the maximiser of the likelihood:

    >>> import numpy as np
    >>> from pluri.optimize.riemannian import riemannian_lbfgs
    >>> from pluri.optimize.manifolds import SPD
    >>> scatter = np.array([[2.0, 0.5], [0.5, 1.0]])
    >>> def value_and_gradient(S):
    ...     inverse = np.linalg.inv(S)
    ...     value = 0.5 * (np.linalg.slogdet(S)[1] + np.trace(inverse @ scatter))
    ...     return value, 0.5 * (inverse - inverse @ scatter @ inverse)
    >>> result = riemannian_lbfgs(value_and_gradient, SPD(2), np.eye(2))
    >>> result.point.round(4)
    array([[2. , 0.5],
           [0.5, 1. ]])
    """
    check_count(memory, "memory")
    problem = ManifoldProblem(value_and_gradient, manifold, start)
    return run(
        problem,
        QuasiNewton(memory),
        Tolerances(tol, gradient_tol),
        LineSearch(c1, c2, first_step),
        max_iter=max_iter,
        on_iteration=on_iteration,
    )
