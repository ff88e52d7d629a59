"""What the semidefinite perceptron gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Reason = Literal["gap", "feasible", "max_updates", "infeasible", "unbounded", "interrupted", "stopped", "margin"]

#: Number and sentence for each way to end.
ENDINGS: dict[Reason, tuple[int, str]] = {
    "gap": (0, "the relative gap between objective and lower bound is at most tol"),
    "feasible": (0, "a strictly feasible point was found"),
    "max_updates": (1, "max_updates was reached"),
    "infeasible": (2, "no strictly feasible point: see rho_upper and direction"),
    "unbounded": (3, "the objective falls without bound"),
    "interrupted": (4, "interrupted; the best point and bound so far are kept"),
    "stopped": (5, "callback ended it"),
    "margin": (6, "no point lower than the best by a margin of rho_min exists, and the gap is above tol"),
}
FIELDS = ("updates", "oracle_calls", "phase", "c0", "objective", "lower_bound", "rho_upper", "seconds")


@dataclass(frozen=True)
class SDPResult:
    """A strictly feasible point of a semidefinite programme, and a proof of how good it is.

    The names are those of `scipy.optimize.OptimizeResult` where it has one.

    Attributes
    ----------
    x : ndarray of shape (n,)
        The best strictly feasible point; NaN if none was found.
    fun : float
        Its objective, an upper bound of the optimum; infinite if none was found.
    lower_bound : float
        No feasible point has a lower objective; minus infinity if nothing is proved.
    gap : float
        ``(fun - lower_bound) / max(1, |fun|)``.
    success : bool
        Whether the gap is at most ``tol``, or a point was found if there is no objective.
    status : int
        0 success, 1 too many updates, 2 infeasible, 3 unbounded, 4 interrupted, 5 ended by the callback, 6 no lower
        point of a margin of ``rho_min``.
    message : str
        The same in words.
    dual : ndarray of shape (m, m) or None
        The matrix Y that proves `lower_bound`: positive semidefinite, with ``<F_i, Y> = c_i`` up to rounding.
    n_updates, n_oracle : int
        Updates of the perceptron, and questions to the separation oracle.
    rho_upper : float
        The cone of the last phase holds no ball of a larger radius around a unit vector.
    direction : ndarray of shape (m,) or None
        If ``u'F_i u = 0`` for all i, so that nothing is strictly feasible: this u.
    history : dict of str to ndarray
        ``updates``, ``oracle_calls``, ``phase``, ``c0`` (trial value), ``objective``, ``lower_bound``, ``rho_upper``
        and ``seconds``: an entry for each time that the bounds were computed.
    interrupted : bool
        Whether Ctrl-C cut it short.
    """

    x: Array
    fun: float
    lower_bound: float
    gap: float
    success: bool
    status: int
    message: str
    dual: Array | None
    n_updates: int
    n_oracle: int
    rho_upper: float
    direction: Array | None
    history: dict[str, Array]
    interrupted: bool = False


@dataclass(frozen=True)
class SDPProgress:
    """Where a search stands, as its callback sees it.

    Attributes
    ----------
    n_updates, n_oracle, phase : int
    c0 : float
        Trial value of the objective; infinite while any feasible point is sought.
    x : ndarray or None
        Best feasible point.
    fun, lower_bound, gap : float
    dual : ndarray or None
        Matrix that proves the bound.
    rho_upper : float
    """

    n_updates: int
    n_oracle: int
    phase: int
    c0: float
    x: Array | None
    fun: float
    lower_bound: float
    gap: float
    dual: Array | None
    rho_upper: float


@dataclass
class Journal:
    """Rows of the history while a search goes on."""

    rows: list[tuple[float, ...]] = field(default_factory=list)
    started: float = field(default_factory=perf_counter)

    def add(self, now: SDPProgress) -> None:
        """Write a row down, with the time."""
        self.rows.append(
            (now.n_updates, now.n_oracle, now.phase, now.c0, now.fun, now.lower_bound, now.rho_upper,
             perf_counter() - self.started)
        )  # fmt: skip

    def arrays(self) -> dict[str, Array]:
        """Columns by name."""
        table = np.array(self.rows, dtype=np.float64).reshape(-1, len(FIELDS))
        return {name: table[:, column].copy() for column, name in enumerate(FIELDS)}
