"""Records that descent on a manifold hands out."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Reason = Literal["converged", "gradient", "step", "max_iter", "line_search", "stopped", "interrupted"]


@dataclass(frozen=True)
class RiemannianResult:
    """What an optimiser on a manifold gives back.

    Attributes
    ----------
    point : object
        The best point found, as the manifold keeps points.
    value : float
        Objective there.
    gradient_norm : float
        Length of the Riemannian gradient there.
    converged : bool
        Whether the last change of the objective, the gradient or the step was below its tolerance.
    reason : {"converged", "gradient", "step", "max_iter", "line_search", "stopped", "interrupted"}
        Why the loop ended: a small change of the objective, a small gradient, a small step, no iterations left, no
        step that lowers the objective, ``on_iteration`` said so, or Ctrl-C.
    n_iter : int
        Number of accepted steps.
    n_evaluations : int
        Number of evaluations of the objective with its gradient.
    history : dict of str to ndarray
        ``objective``, ``gradient_norm``, ``step``, ``slope`` (of the objective along the direction, at the start of
        the step), ``strong`` (1.0 where both Wolfe conditions hold), ``evaluations`` and ``seconds`` (both since the
        start), ``branch`` (0.0; for callers that descend several times): an entry for the start and one for each step.
    interrupted : bool
        Whether Ctrl-C cut the loop short.
    """

    point: Any
    value: float
    gradient_norm: float
    converged: bool
    reason: Reason
    n_iter: int
    n_evaluations: int
    history: dict[str, Array]
    interrupted: bool = False


FIELDS = ("objective", "gradient_norm", "step", "slope", "strong", "evaluations", "branch", "seconds")


@dataclass
class Journal:
    """Rows of the history while the loop runs."""

    rows: list[tuple[float, ...]] = field(default_factory=list)
    started: float = field(default_factory=perf_counter)
    branch: int = 0

    def add(
        self,
        objective: float,
        gradient_norm: float,
        evaluations: int,
        *,
        step: float = 0.0,
        slope: float = 0.0,
        strong: bool = True,
    ) -> None:
        """Write a row down, with the time."""
        elapsed = perf_counter() - self.started
        self.rows.append(
            (objective, gradient_norm, step, slope, float(strong), float(evaluations), float(self.branch), elapsed)
        )

    def arrays(self) -> dict[str, Array]:
        """Columns by name."""
        table = np.array(self.rows, dtype=np.float64).reshape(-1, len(FIELDS))
        return {name: table[:, column].copy() for column, name in enumerate(FIELDS)}
