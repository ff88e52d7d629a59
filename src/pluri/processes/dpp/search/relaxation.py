r"""The softmax relaxation of the search for the most probable set, and conditional gradients on it.

For a fractional set :math:`x \in [0, 1]^n`,

.. math:: F(x) = \log\det(\mathrm{diag}(x)(L - I) + I)

equals :math:`\log\det L_Y` where x is the indicator of Y, and is concave along every non-negative direction; its
gradient is the diagonal of :math:`G = (L - I)(\mathrm{diag}(x)(L - I) + I)^{-1}`. Conditional gradients (Frank-Wolfe)
climb it over the polytope of the sets that are allowed. As F is not monotone, a second run climbs over what the first
has left, :math:`x \le 1 - y`; the better of the two has at least a quarter of the highest value, where all values are
non-negative [1]_. Then x is rounded, and improved by `local_search`.

References
----------
.. [1] J. Gillenwater, A. Kulesza and B. Taskar, "Near-optimal MAP inference for determinantal point processes",
   NeurIPS 2012.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.optimize.fixed_point import iterate
from pluri.processes.dpp.kernel_forms import Array, IntArray, KernelForm, as_kernel_form
from pluri.processes.dpp.representation import LARGEST_DENSE
from pluri.processes.dpp.search.greedy import NOTHING_LEFT, MapResult
from pluri.processes.dpp.search.local_search import local_search
from pluri.processes.dpp.search.set_constraints import SetConstraint, Unconstrained
from pluri.validation import check_value
from pluri.validation.parameters import SHARED


def softmax_relaxation(kernel: ArrayLike, x: ArrayLike) -> float:
    """Value F(x) of a fractional set.

    Parameters
    ----------
    kernel : array-like of shape (n_items, n_items)
        The kernel L.
    x : array-like of shape (n_items,)
        How much of each item is in the set, from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import softmax_relaxation
    >>> L = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> round(softmax_relaxation(L, [1.0, 1.0]), 4), round(softmax_relaxation(L, [0.5, 0.5]), 4)
    (1.0986, 0.6931)
    """
    matrix, fractions = _checked(kernel, x)
    return _value(matrix, fractions)


def softmax_gradient(kernel: ArrayLike, x: ArrayLike) -> Array:
    """Gradient of `softmax_relaxation`.

    Parameters
    ----------
    kernel : array-like of shape (n_items, n_items)
        The kernel L.
    x : array-like of shape (n_items,)
        How much of each item is in the set, from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import softmax_gradient
    >>> softmax_gradient(np.array([[2.0, 1.0], [1.0, 2.0]]), [0.0, 0.0])
    array([1., 1.])
    """
    matrix, fractions = _checked(kernel, x)
    return np.diagonal(_resolvent(matrix, fractions)).copy()


@dataclass(frozen=True, eq=False)
class RelaxedMap(MapResult):
    """A set found by way of the relaxation.

    Attributes
    ----------
    items, gains, log_det
        As in `MapResult`; the gains are those of the moves that improved the rounded set.
    x : (n_items,)
        The fractional set that was rounded.
    value : float
        F(x).
    history : tuple of lists
        F after each step of the two runs.
    """

    x: Array
    value: float
    history: tuple[list[float], list[float]]


def relaxed_map(
    kernel: Any,
    constraint: SetConstraint | None = None,
    *,
    max_iter: int = 500,
    tol: float = 1e-4,
    improve: bool = True,
) -> RelaxedMap:
    """Search for the most probable allowed set by conditional gradients on the relaxation.

    Parameters
    ----------
    kernel : KernelForm or array-like of shape (n_items, n_items)
        The kernel L. A step costs O(n_items^3).
    constraint : Cardinality, Budget, PartitionMatroid or None
        Which sets are allowed; all by default.
    max_iter : int, default=500
        Steps of each of the two runs.
    tol : float, default=1e-4
        A run ends when no allowed direction rises by more than this, or a step gains less.
    improve : bool, default=True
        Improve the rounded set by `local_search`.

    Returns
    -------
    RelaxedMap
        Without a constraint its value is at least F(x), as each coordinate goes to its better end. With one, no
        guarantee is claimed.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import Budget, relaxed_map
    >>> L = np.array([[2.0, 1.9, 0.0], [1.9, 2.1, 0.0], [0.0, 0.0, 1.5]])
    >>> relaxed_map(L).items, relaxed_map(L, Budget([3.0, 5.0, 2.0], 5.0)).items
    (array([1, 2]), array([0, 2]))
    """
    form = as_kernel_form(kernel)
    allowed: SetConstraint = Unconstrained() if constraint is None else constraint
    allowed.check(form.n_items)
    check_value(max_iter, "max_iter", SHARED["max_iter"])
    check_value(tol, "tol", SHARED["tol"])
    if form.n_items > LARGEST_DENSE:
        raise ValueError(
            f"kernel must have at most {LARGEST_DENSE} items for the relaxation, which writes it out, got "
            f"{form.n_items}: use greedy_map"
        )
    everything = np.arange(form.n_items)
    matrix = np.asarray(form.block(everything, everything), dtype=np.float64)
    first, first_history = _climb(matrix, allowed, np.ones(form.n_items), max_iter, tol)
    # Where something is left to the second run.
    second, second_history = _climb(matrix, allowed, 1.0 - first, max_iter, tol)
    x = first if first_history[-1] >= second_history[-1] else second
    rounded = _round(form, matrix, allowed, x)
    if improve:
        result = local_search(form, rounded, constraint=allowed)
    else:
        sign, log_det = np.linalg.slogdet(matrix[np.ix_(rounded, rounded)])
        result = MapResult(rounded, np.empty(0), float(log_det) if sign > 0 else float("-inf"))
    return RelaxedMap(
        result.items, result.gains, result.log_det, x, max(first_history[-1], second_history[-1]),
        (first_history, second_history),
    )  # fmt: skip


def _checked(kernel: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    matrix, fractions = np.asarray(kernel, dtype=np.float64), np.asarray(x, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"kernel must be a finite square matrix, got shape {matrix.shape}")
    if fractions.shape != (len(matrix),) or not ((fractions >= 0) & (fractions <= 1)).all():
        raise ValueError(f"x must be {len(matrix)} numbers from 0 to 1, got {x!r}")
    return matrix, fractions


def _value(matrix: Array, x: Array) -> float:
    # diag(1 - x) + sqrt(x) L sqrt(x) has the same determinant, is symmetric, and only its rows with x > 0 matter.
    inside = np.flatnonzero(x > 0)
    if not len(inside):
        return 0.0
    root = np.sqrt(x[inside])
    symmetric = root[:, None] * matrix[np.ix_(inside, inside)] * root
    symmetric.flat[:: len(inside) + 1] += 1.0 - x[inside]
    sign, value = np.linalg.slogdet(symmetric)
    return float(value) if sign > 0 else float("-inf")


def _resolvent(matrix: Array, x: Array) -> Array:
    """``G = (L - I)(diag(x)(L - I) + I)^-1``."""
    shifted = matrix - np.eye(len(matrix))
    inner = x[:, None] * shifted
    inner.flat[:: len(matrix) + 1] += 1.0
    return np.asarray(np.linalg.solve(inner.T, shifted.T).T)


def _line(matrix: Array, x: Array, direction: Array, upper: Array) -> Callable[[float], float]:
    """F as a function of the length of a step."""
    return lambda step: _value(matrix, np.clip(x + step * direction, 0.0, upper))


def _climb(matrix: Array, allowed: SetConstraint, upper: Array, max_iter: int, tol: float) -> tuple[Array, list[float]]:
    """Conditional gradients from the empty set over the allowed x <= upper; F never falls."""
    from scipy.optimize import minimize_scalar

    history = [0.0]

    def rise(x: Array) -> tuple[Array, float]:
        slope = np.diagonal(_resolvent(matrix, x))
        direction = allowed.best_vertex(slope, upper) - x
        if slope @ direction <= tol:
            return x, 0.0
        step_to = _line(matrix, x, direction, upper)
        found = minimize_scalar(
            lambda step: -step_to(step), bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-4}
        )
        ends = [(step_to(step), step) for step in (1.0, float(found.x))]
        value, step = max(ends)
        if value <= history[-1] + tol * 1e-3:
            return x, 0.0
        history.append(value)
        return np.clip(x + step * direction, 0.0, upper), value - history[-2]

    found = iterate(rise, np.zeros(len(matrix)), max_iter=max_iter, tol=tol)
    if found.converged:
        return found.state, history
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"the relaxation was still rising after {max_iter} steps; raise max_iter or tol",
        ConvergenceWarning,
        stacklevel=3,
    )
    return found.state, history


def _round(form: KernelForm, matrix: Array, allowed: SetConstraint, x: Array) -> IntArray:
    """The best allowed set among a few near a fractional one."""
    if isinstance(allowed, Unconstrained):
        return _round_coordinates(matrix, x)
    best, highest = np.empty(0, dtype=np.int64), 0.0
    order = np.argsort(-x, kind="stable")
    for threshold in (0.0, 0.25, 0.5, 0.75):
        included = np.zeros(len(x), dtype=bool)
        members: list[int] = []
        before = 0.0
        for item in order[x[order] > threshold]:
            if not allowed.can_add(included)[item]:
                continue
            sign, value = np.linalg.slogdet(matrix[np.ix_([*members, item], [*members, item])])
            # A dependent item would make all that follows worthless.
            if sign <= 0 or not np.exp(value - before) > NOTHING_LEFT * matrix[item, item]:
                continue
            members.append(int(item))
            before = float(value)
            included[item] = True
            if value > highest:
                best, highest = np.sort(np.array(members, dtype=np.int64)), float(value)
    grown = local_search(form, moves=("add",), constraint=allowed)
    return grown.items if grown.log_det > highest else best


def _round_coordinates(matrix: Array, x: Array) -> IntArray:
    """Each coordinate goes to its better end: the determinant is affine in it, so it never loses."""
    x, resolvent = x.copy(), _resolvent(matrix, x)
    for i in np.flatnonzero((x > 0) & (x < 1)):
        end = 1.0 if resolvent[i, i] > 0 else 0.0
        change = end - x[i]
        resolvent -= np.outer(resolvent[:, i], resolvent[i]) * (change / (1.0 + change * resolvent[i, i]))
        x[i] = end
    return np.flatnonzero(x == 1.0).astype(np.int64)
