r"""Line search for the strong Wolfe conditions.

With :math:`\phi(a)` the objective along a geodesic, a step is accepted when

.. math:: \phi(a) \le \phi(0) + c_1 a \phi'(0) \quad\text{and}\quad |\phi'(a)| \le c_2 |\phi'(0)| .

Brackets a step by cubic extrapolation, then narrows the bracket by safeguarded cubic interpolation [1]_.

References
----------
.. [1] J. Nocedal and S. Wright, "Numerical Optimization", second edition, Springer 2006, algorithms 3.5 and 3.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple


class LineStep(NamedTuple):
    """Outcome of a line search.

    Attributes
    ----------
    step : float
        Length of the step; 0.0 if no step was found that lowers the objective enough.
    value, slope : float
        Objective and its derivative there.
    n_evaluations : int
        Number of trial steps.
    strong : bool
        Whether both Wolfe conditions hold; otherwise the best trial that satisfies the first one was taken.
    """

    step: float
    value: float
    slope: float
    n_evaluations: int
    strong: bool


class _Trial(NamedTuple):
    step: float
    value: float
    slope: float


def strong_wolfe(
    phi: Callable[[float], tuple[float, float]],
    value: float,
    slope: float,
    *,
    first: float = 1.0,
    longest: float = math.inf,
    c1: float = 1e-4,
    c2: float = 0.9,
    max_evaluations: int = 20,
) -> LineStep:
    """Find a step that satisfies the strong Wolfe conditions.

    Parameters
    ----------
    phi : callable
        From a step to the objective and its derivative; both may be NaN or infinite where the step is too long.
    value, slope : float
        ``phi(0)`` and ``phi'(0)``, which must be negative.
    first : float, default=1.0
        The first trial.
    longest : float, default=inf
        No trial is longer. A trial of this length that lowers the objective enough and still goes downhill is
        accepted (``strong`` is then False).
    c1, c2 : float, default=1e-4 and 0.9
        Constants of the two conditions, ``0 < c1 < c2 < 1``.
    max_evaluations : int, default=20
        Largest number of trials.

    Returns
    -------
    LineStep

    Examples
    --------
    >>> from pluri.optimize.riemannian import strong_wolfe
    >>> found = strong_wolfe(lambda a: ((a - 3.0) ** 2, 2.0 * (a - 3.0)), 9.0, -6.0, first=0.1, c2=0.1)
    >>> abs(found.step - 3.0) < 0.3, found.strong
    (True, True)
    """
    if not 0 < c1 < c2 < 1:
        raise ValueError(f"c1 and c2 must satisfy 0 < c1 < c2 < 1, got {c1!r} and {c2!r}")
    if not slope < 0:
        raise ValueError(f"slope must be negative (a direction of descent), got {slope!r}")
    start = _Trial(0.0, value, slope)
    best = start
    previous, low, high = start, None, None
    step = min(first, longest)
    ceiling = longest
    # Below this, values tell nothing and slopes have to do (the approximate Wolfe conditions of Hager and Zhang, 2005).
    rounding = 1e-14 * max(1.0, abs(value))
    for count in range(1, max_evaluations + 1):
        trial = _Trial(step, *phi(step))
        if not (math.isfinite(trial.value) and math.isfinite(trial.slope)):
            # Too long to be evaluated: never go there again.
            ceiling, step = step, (low or previous).step + 0.1 * (step - (low or previous).step)
            high = None if low is None else _Trial(ceiling, math.inf, math.nan)
            continue
        enough = trial.value <= value + c1 * step * slope or (
            trial.value <= value + rounding and trial.slope <= (2.0 * c1 - 1.0) * slope
        )
        if enough and abs(trial.slope) <= c2 * abs(slope):
            return LineStep(*trial, count, True)
        if enough and trial.value < best.value:
            best = trial
        if low is None:
            if not enough or (previous.step > 0 and trial.value >= previous.value):
                low, high = previous, trial
            elif trial.slope >= 0:
                low, high = trial, previous
            elif step >= longest:
                return LineStep(*trial, count, False)
            else:
                step, previous = _beyond(previous, trial, ceiling), trial
                continue
        elif not enough or trial.value >= low.value:
            high = trial
        else:
            assert high is not None
            if trial.slope * (high.step - low.step) >= 0:
                high = low
            low = trial
        assert high is not None
        if low.value < value and abs((high.step - low.step) * low.slope) < 1e-10 * max(1.0, abs(value)):
            break
        step = _between(low, high)
    return LineStep(*best, count, False)


def _cubic(first: _Trial, second: _Trial) -> float:
    """Minimiser of the cubic through two values and slopes; NaN if it has none."""
    gap = second.step - first.step
    if gap == 0 or not math.isfinite(second.value) or not math.isfinite(second.slope):
        return math.nan
    middle = first.slope + second.slope - 3.0 * (second.value - first.value) / gap
    discriminant = middle * middle - first.slope * second.slope
    if not discriminant >= 0:
        return math.nan
    root = math.copysign(math.sqrt(discriminant), gap)
    denominator = second.slope - first.slope + 2.0 * root
    return math.nan if denominator == 0 else second.step - gap * (second.slope + root - middle) / denominator


def _beyond(previous: _Trial, trial: _Trial, ceiling: float) -> float:
    """Extrapolate, but not to more than ten times the step."""
    proposed = _cubic(previous, trial)
    longest = min(10.0 * trial.step, ceiling if math.isfinite(ceiling) else math.inf)
    if not proposed > trial.step:
        return longest
    return min(max(proposed, trial.step + 0.01 * (trial.step - previous.step)), longest)


def _between(low: _Trial, high: _Trial) -> float:
    """Interpolate, at least a tenth of the bracket away from both ends."""
    left, right = min(low.step, high.step), max(low.step, high.step)
    proposed = _cubic(low, high)
    if math.isnan(proposed):
        return 0.5 * (left + right)
    margin = 0.1 * (right - left)
    return min(max(proposed, left + margin), right - margin)
