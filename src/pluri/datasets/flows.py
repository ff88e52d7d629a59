"""Paths through flows that change with the place: two tasks that share a rotation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.validation import Number, RandomState, as_generator, check_count, check_value

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Where paths of each task are drawn to in the right half plane.
TARGETS = ((2.0, 0.0), (2.0, 2.0))
#: Rotation of a step in the left half plane, and what is left of the distance to the target in the right one.
ANGLE, CONTRACTION = 0.2, 0.9


@dataclass(frozen=True, eq=False, repr=False)
class SwitchingFlow:
    """Sequences and the regime of each row.

    Attributes
    ----------
    X : list of arrays of shape (n_steps, 2)
    tasks : array of shape (n_sequences,)
        The task of each sequence, 0 or 1.
    regimes : list of arrays of shape (n_steps,)
        What each row is followed by: 0 is the rotation, which both tasks have, 1 and 2 are the contractions of the
        first and of the second task.
    """

    X: list[Array]
    tasks: Integers
    regimes: list[Integers]

    def __repr__(self) -> str:
        """Sequences and rows."""
        return f"SwitchingFlow({len(self.X)} sequences, {sum(map(len, self.X))} rows)"


def make_switching_flow(
    n_sequences: int = 30, n_steps: int = 20, *, noise_scale: float = 0.02, random_state: RandomState = None
) -> SwitchingFlow:
    """Draw paths of two tasks in the plane.

    In the left half plane both tasks turn about the origin, by 0.2 rad a step; in the right one a path goes a tenth of
    the way to (2, 0) in the first task, and to (2, 2) in the second. Paths begin on the left and never return to it:
    long ones are mostly noise about their target.

    Parameters
    ----------
    n_sequences : int, default=30
        Sequences of each task.
    n_steps : int, default=20
        Rows of each sequence.
    noise_scale : float, default=0.02
        Standard deviation of the noise of a step.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    SwitchingFlow

    Examples
    --------
    >>> from pluri.datasets import make_switching_flow
    >>> make_switching_flow(random_state=0)
    SwitchingFlow(60 sequences, 1200 rows)
    """
    check_count(n_sequences, "n_sequences")
    check_count(n_steps, "n_steps", least=2)
    check_value(noise_scale, "noise_scale", Number(least=0))
    rng = as_generator(random_state)
    turn = np.array([[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]])
    tasks = np.repeat(np.arange(2), n_sequences)
    found = SwitchingFlow([], tasks, [])
    for task in tasks.tolist():
        target = np.array(TARGETS[task])
        rows, regimes = np.empty((n_steps, 2)), np.empty(n_steps, dtype=np.int64)
        x = _begin(rng)
        for step in range(n_steps):
            rows[step] = x
            on_the_left = x[0] < 0
            regimes[step] = 0 if on_the_left else 1 + task
            x = turn @ x if on_the_left else target + CONTRACTION * (x - target)
            x = x + noise_scale * rng.standard_normal(2)
        found.X.append(rows)
        found.regimes.append(regimes)
    return found


def _begin(rng: np.random.Generator) -> Array:
    """A row of the left half plane, between 1 and 2 from the origin."""
    angle, radius = rng.uniform(0.5 * np.pi, 1.5 * np.pi), rng.uniform(1.0, 2.0)
    return radius * np.array([np.cos(angle), np.sin(angle)])
