r"""Riemannian conjugate gradients without vector transport.

Directions are :math:`p_{k+1} = -g_{k+1} + \beta p_k` in a frame that is carried along by parallel transport, with
:math:`y = g_{k+1} - g_k` and

.. math:: \beta_{HS+} = \max(0, \langle g_{k+1}, y\rangle / \langle p_k, y\rangle), \qquad
          \beta_{PR+} = \max(0, \langle g_{k+1}, y\rangle / \langle g_k, g_k\rangle).

References
----------
.. [1] P.-A. Absil, R. Mahony and R. Sepulchre, "Optimization Algorithms on Matrix Manifolds", Princeton 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.manifolds import Manifold
from pluri.optimize.riemannian.descent import Descent, LineSearch, Tolerances, downhill, run
from pluri.optimize.riemannian.problem import ManifoldProblem
from pluri.optimize.riemannian.result import RiemannianResult
from pluri.validation import Only, check_count, check_value
from pluri.validation.interruption import interruptible

Array = NDArray[np.float64]
Rule = Literal["hestenes_stiefel", "polak_ribiere"]


class ConjugateGradient:
    """Conjugate directions; starts afresh after as many steps as there are dimensions.

    Parameters
    ----------
    rule : {"hestenes_stiefel", "polak_ribiere"}
    restart : int
        Number of steps after which the past is forgotten.
    """

    def __init__(self, rule: Rule, restart: int) -> None:
        check_value(rule, "rule", Only("hestenes_stiefel", "polak_ribiere"))
        check_count(restart, "restart")
        self.rule = rule
        self.restart = restart
        self._last: tuple[Array, Array] | None = None  # direction, change of the slopes along it
        self._direction: Array | None = None
        self._age = 0

    def propose(self, slopes: Array, precondition: Callable[[Array], Array] | None) -> Array:
        """Downhill, bent towards the last direction."""
        if self._last is None or self._age >= self.restart:
            self._age = 0
            self._direction = downhill(slopes, precondition)
            return self._direction
        last, change = self._last
        scaled = slopes if precondition is None else precondition(slopes)
        if self.rule == "hestenes_stiefel":
            below = float(last @ change)
        else:
            before = slopes - change
            below = float(before @ (before if precondition is None else precondition(before)))
        beta = max(0.0, float(scaled @ change) / below) if below > 0 else 0.0
        self._direction = beta * last - scaled
        return self._direction

    def observe(self, move: Array, slopes: Array, change: Array) -> None:
        """Remember the direction and what it did to the slopes."""
        length = float(np.linalg.norm(move))
        if self._direction is not None and length > 0:
            move = move * (float(np.linalg.norm(self._direction)) / length)
        self._last, self._direction = (move, change), None
        self._age += 1

    def forget(self) -> bool:
        """Drop the last direction."""
        known = self._last is not None
        self._last = None
        self._age = 0
        return known


@interruptible
def riemannian_cg(
    value_and_gradient: Callable[[Any], tuple[float, Any]],
    manifold: Manifold,
    start: Any,
    *,
    tol: float = 1e-10,
    gradient_tol: float = 1e-6,
    max_iter: int = 1500,
    rule: Rule = "hestenes_stiefel",
    c1: float = 1e-4,
    c2: float = 0.1,
    on_iteration: Callable[[Descent], bool | None] | None = None,
) -> RiemannianResult:
    """Minimise a function on a manifold by nonlinear conjugate gradients.

    Parameters
    ----------
    value_and_gradient, manifold, start, tol, gradient_tol, max_iter, on_iteration
        As for :func:`riemannian_lbfgs`.
    rule : {"hestenes_stiefel", "polak_ribiere"}, default="hestenes_stiefel"
        How much of the last direction is kept; never a negative amount.
    c1, c2 : float, default=1e-4 and 0.1
        Constants of the line search, which must be closer here: see :func:`strong_wolfe`.

    Returns
    -------
    RiemannianResult

    Examples
    --------
    The matrix with the smallest sum of squared distances to two others is their geometric mean:

    >>> import numpy as np
    >>> from pluri.optimize.riemannian import riemannian_cg
    >>> from pluri.optimize.manifolds import SPD
    >>> manifold = SPD(2)
    >>> matrices = [np.eye(2), np.diag([4.0, 9.0])]
    >>> def value_and_gradient(S):
    ...     inverse = np.linalg.inv(S)
    ...     logs = [manifold.log(S, matrix) for matrix in matrices]
    ...     value = sum(manifold.distance(S, matrix) ** 2 for matrix in matrices)
    ...     return value, -2.0 * sum(inverse @ log @ inverse for log in logs)
    >>> riemannian_cg(value_and_gradient, manifold, np.eye(2)).point.round(4)
    array([[2., 0.],
           [0., 3.]])
    """
    problem = ManifoldProblem(value_and_gradient, manifold, start)
    return run(
        problem,
        ConjugateGradient(rule, max(manifold.dimension, 1)),
        Tolerances(tol, gradient_tol),
        LineSearch(c1, c2, cap_first_step=False),
        max_iter=max_iter,
        on_iteration=on_iteration,
    )
