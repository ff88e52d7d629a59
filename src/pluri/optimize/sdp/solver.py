r"""Semidefinite programmes by perceptron learning, with a certified gap.

Minimise ``c'x`` subject to ``F(x) = F_0 + sum_i x_i F_i`` positive semidefinite. For a trial value c_0 the points
below it are a cone in ``(x_0, x)``: ``x_0 F_0 + sum_i x_i F_i`` positive definite, ``c_0 x_0 - c'x > 0`` and
``x_0 > 0``, in which the perceptron finds a point [1]_. Lower bounds come from the updates themselves; see
`pluri.optimize.sdp.certificates`.

References
----------
.. [1] T. Graepel, R. Herbrich, A. Kharechko and J. Shawe-Taylor, "Semidefinite programming by perceptron learning",
   NIPS 2003.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.optimize.sdp.matrices import LowRank, MatrixFamily, matrix_family
from pluri.optimize.sdp.oracles import OracleName
from pluri.optimize.sdp.result import ENDINGS, SDPProgress, SDPResult
from pluri.optimize.sdp.search import Search, Settings, Strategy
from pluri.progress import open_progress
from pluri.validation import Flag, Number, Only, RandomState, Whole, as_generator, check_positive, check_value
from pluri.validation.interruption import holding, interruptible

Array = NDArray[np.float64]


@interruptible
def solve_sdp(
    c: ArrayLike,
    F: Sequence[Any],
    F0: Any = None,
    *,
    oracle: OracleName = "auto",
    strategy: Strategy = "threshold",
    tau: float | str = "auto",
    bounds: tuple[float | None, float | None] | None = None,
    tol: float = 1e-2,
    max_updates: int = 1_000_000,
    rho_min: float = 1e-6,
    rescale: bool = False,
    memory: int = 100,
    random_state: RandomState = None,
    verbose: int = 0,
    callback: Callable[[SDPProgress], bool | None] | None = None,
) -> SDPResult:
    """Minimise ``c'x`` subject to ``F0 + sum_i x_i F[i]`` positive semidefinite, by perceptron learning.

    Every point that is returned is strictly feasible, and comes with a lower bound that a dual matrix proves. An
    accuracy of 0.1 to 1 % is what the method is for; solvers of another kind (interior points, SCS) are far more
    accurate.

    Parameters
    ----------
    c : array-like of shape (n,)
        Objective; if all zero, any strictly feasible point will do.
    F : sequence of n matrices of size m
        Each a symmetric array, a diagonal (one axis), a sparse array of SciPy, or a `LowRank`.
    F0 : matrix of size m, optional
        Zero by default.
    oracle : {"auto", "eigen", "cholesky"}, default="auto"
        How a violated constraint is found: by the smallest eigenvalue, by the pivot at which a Cholesky factorisation
        fails, or by the eigenvector only when the factorisation has failed.
    strategy : {"threshold", "bisection"}, default="threshold"
        Ask for a value lower than the last by a slack `tau` and go on from there, or halve the interval between what
        is attained and what is out of reach.
    tau : float or "auto", default="auto"
        Slack of the objective's row. "auto" begins each phase with half the length of that row and halves it whenever
        the phase stalls.
    bounds : tuple of two floats or None, optional
        What is known of the optimal value, from below and from above. Bisection begins at the lower one; the upper one
        is where the first phase begins. Neither counts as proved.
    tol : float, default=1e-2
        Ends when ``(fun - lower_bound) / max(1, |fun|)`` is at most this.
    max_updates : int, default=1_000_000
        Updates of the perceptron.
    rho_min : float, default=1e-6
        A cone without a ball of this radius (around a unit vector) counts as empty.
    rescale : bool, default=False
        Stretch the cone along a random walk's end whenever a phase stalls.
    memory : int, default=100
        Violated constraints that are remembered, and tried before the oracle is asked; with 0 each update asks it.
    random_state : int, Generator or None, default=None
        For rescaling.
    verbose : int, default=0
        1 shows progress on stderr; the gain shown is the relative gap, below zero.
    callback : callable, optional
        Called with an `SDPProgress` each time that the bounds are computed; returning True ends the search.

    Returns
    -------
    SDPResult

    Warns
    -----
    ConvergenceWarning
        If the gap is above `tol` at the end, with the gap.

    Examples
    --------
    The smallest t with ``t I - A`` positive semidefinite is the largest eigenvalue of A:

    >>> import numpy as np
    >>> from pluri.optimize.sdp import solve_sdp
    >>> A = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> result = solve_sdp([1.0], [np.eye(2)], -A, tol=1e-3)
    >>> result.lower_bound <= 3.0 < result.fun, result.gap <= 1e-3
    (True, True)
    """
    costs = _check_objective(c)
    matrices = list(F)
    if len(matrices) != len(costs):
        raise ValueError(f"F must hold a matrix for each of the {len(costs)} entries of c, got {len(matrices)}")
    low, high = _check_bounds(bounds)
    settings = Settings(oracle, strategy, tau, tol, max_updates, rho_min, rescale, memory, low, high)
    _check_settings(settings)
    family, units = _equilibrated(matrices, F0)
    with open_progress(verbose) as report:
        search = Search(family, costs / units, settings, as_generator(random_state), report, callback)
        search.units = units
        with holding(lambda: _interrupted(search)) as block:
            search.run()
    if block.interrupted:
        search.reason = "interrupted"
    result = _result(search)
    if not result.success and result.status in (1, 6):
        _warn(result, tol)
    return result


@interruptible
def lmi_feasible_point(
    F0: Any,
    F: Sequence[Any],
    *,
    oracle: OracleName = "auto",
    max_updates: int = 1_000_000,
    rho_min: float = 1e-6,
    rescale: bool = False,
    memory: int = 100,
    random_state: RandomState = None,
    verbose: int = 0,
) -> SDPResult:
    """Find x with ``F0 + sum_i x_i F[i]`` positive definite.

    Parameters
    ----------
    F0 : matrix of size m or None
        None for zero.
    F : sequence of n matrices of size m
    oracle, max_updates, rho_min, rescale, memory, random_state, verbose
        As in `solve_sdp`.

    Returns
    -------
    SDPResult
        Without an objective: ``x`` is feasible if ``success``; else ``rho_upper`` tells how small the set is.

    Examples
    --------
    A Lyapunov function of x' = Ax: P positive definite with A'P + PA negative definite.

    >>> import numpy as np
    >>> from pluri.optimize.sdp import lmi_feasible_point
    >>> A = np.array([[-1.0, 3.0], [0.0, -2.0]])
    >>> basis = [np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.diag([0.0, 1.0])]
    >>> both = [np.block([[P, np.zeros((2, 2))], [np.zeros((2, 2)), -(A.T @ P + P @ A)]]) for P in basis]
    >>> found = lmi_feasible_point(None, both)
    >>> P = sum(value * one for value, one in zip(found.x, basis))
    >>> bool(np.linalg.eigvalsh(P).min() > 0 > np.linalg.eigvalsh(A.T @ P + P @ A).max())
    True
    """
    matrices = list(F)
    return solve_sdp(
        np.zeros(len(matrices)),
        matrices,
        F0,
        oracle=oracle,
        max_updates=max_updates,
        rho_min=rho_min,
        rescale=rescale,
        memory=memory,
        random_state=random_state,
        verbose=verbose,
    )


def _check_objective(c: ArrayLike) -> Array:
    costs = np.asarray(c, dtype=np.float64)
    if costs.ndim != 1 or len(costs) == 0:
        raise ValueError(f"c must have one axis and at least one entry, got shape {costs.shape}")
    if not np.isfinite(costs).all():
        raise ValueError("c must be finite, got NaN or infinity")
    return costs


def _check_bounds(bounds: tuple[float | None, float | None] | None) -> tuple[float, float]:
    if bounds is None:
        return -math.inf, math.inf
    try:
        low, high = bounds
    except (TypeError, ValueError) as error:
        raise ValueError(f"bounds must be a pair (low, high), got {bounds!r}") from error
    low, high = -math.inf if low is None else float(low), math.inf if high is None else float(high)
    if not low < high:
        raise ValueError(f"bounds must be a pair with low below high, got {bounds!r}")
    return low, high


def _check_settings(settings: Settings) -> None:
    check_value(settings.oracle, "oracle", Only("auto", "eigen", "cholesky"))
    check_value(settings.strategy, "strategy", Only("threshold", "bisection"))
    if settings.tau != "auto":
        check_value(settings.tau, "tau", Number(0.0) | Only("auto"))
    check_positive(settings.tol, "tol")
    check_positive(settings.rho_min, "rho_min")
    check_value(settings.max_updates, "max_updates", Whole(1))
    check_value(settings.memory, "memory", Whole(0))
    check_value(settings.rescale, "rescale", Flag())


def _equilibrated(matrices: list[Any], F0: Any) -> tuple[MatrixFamily, Array]:
    """F_0, and the others with a Frobenius norm of one; the norms they had."""
    if F0 is None:
        shape = np.shape(matrices[0]) if not hasattr(matrices[0], "shape") else matrices[0].shape
        F0 = LowRank(np.zeros((shape[0] if shape else 0, 0)))
    family = matrix_family([F0, *matrices], "F", first="F0")
    units = family.norms[1:].copy()
    units[units == 0] = 1.0
    return family.scaled(np.concatenate([[1.0], 1.0 / units])), units


def _interrupted(search: Search) -> str:
    return (
        f"solve_sdp was interrupted after {search.perceptron.n_updates} updates: the best point (objective "
        f"{search.fun:.6g}) and lower bound ({search.certificate.bound:.6g}) are kept"
    )


def _result(search: Search) -> SDPResult:
    now = search.progress()
    assert search.reason is not None
    status, message = ENDINGS[search.reason]
    if now.x is None and math.isfinite(search.settings.highest):
        message += f" (below bounds[1]={search.settings.highest:g})"
    x = np.full(len(search.c), np.nan) if now.x is None else now.x
    if not search.journal.rows or search.journal.rows[-1][0] != now.n_updates:
        search.journal.add(now)
    return SDPResult(
        x=x,
        fun=now.fun,
        lower_bound=now.lower_bound,
        gap=now.gap,
        success=status == 0,
        status=status,
        message=message,
        dual=now.dual,
        n_updates=now.n_updates,
        n_oracle=now.n_oracle,
        rho_upper=now.rho_upper,
        direction=search.direction,
        history=search.journal.arrays(),
        interrupted=search.reason == "interrupted",
    )


def _warn(result: SDPResult, tol: float) -> None:
    # Imported here: scikit-learn is slow to load, and this is rarely needed.
    from sklearn.exceptions import ConvergenceWarning

    advice = "raise max_updates or tol" if math.isfinite(result.gap) else "raise max_updates"
    if not math.isfinite(result.fun):
        advice += ", or regularise F0 (add a small multiple of the identity) if the constraints leave no interior"
    elif not math.isfinite(result.lower_bound):
        advice += "; no inner point of the dual was found, without which there is no lower bound"
    warnings.warn(
        f"solve_sdp stopped with a gap of {result.gap:.2g}, above tol={tol:g}, because {result.message}: {advice}",
        ConvergenceWarning,
        stacklevel=3,
    )
