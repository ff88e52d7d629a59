"""Repeating a step until it changes nothing: the one loop behind Newton's method, message passing and inner ascents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

State = TypeVar("State")


class FixedPoint(NamedTuple, Generic[State]):
    """Where the repetition ended.

    Attributes
    ----------
    state : the last one
    n_iter : steps made
    change : what the last step changed; infinite if there was none
    converged : whether that is at most the tolerance
    """

    state: State
    n_iter: int
    change: float
    converged: bool


def iterate(
    step: Callable[[State], tuple[State, float]], state: State, *, max_iter: int, tol: float = 0.0
) -> FixedPoint[State]:
    """Repeat ``state, change = step(state)`` until `change` is at most `tol`, or `max_iter` times.

    Parameters
    ----------
    step : callable
        State to the next one and how much it differs; a negative change ends the repetition whatever `tol` is.
    state : object
        Where to begin.
    max_iter : int
    tol : float, default=0.0

    Returns
    -------
    FixedPoint

    Examples
    --------
    >>> import math
    >>> from pluri.optimize.fixed_point import iterate
    >>> found = iterate(lambda x: (math.cos(x), abs(math.cos(x) - x)), 1.0, max_iter=100, tol=1e-6)
    >>> round(found.state, 4), found.converged
    (0.7391, True)
    """
    change = float("inf")
    for count in range(max_iter):
        state, change = step(state)
        if change <= tol:
            return FixedPoint(state, count + 1, change, True)
    return FixedPoint(state, max_iter, change, False)
