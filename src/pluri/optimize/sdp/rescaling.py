r"""Rescaling: stretching a thin cone until the perceptron gets through it, which makes the number of steps polynomial.

If the cone holds no large ball, walk to a unit vector y that no constraint contradicts by more than sigma, and replace
all normals a by :math:`(I + yy')a`. A random start of the walk makes the margin larger on average [1]_; a solution of
the stretched problem is mapped back by :math:`(I + yy')`.

References
----------
.. [1] J. Dunagan and S. Vempala, "A simple polynomial-time rescaling algorithm for solving linear programs", STOC 2004.
.. [2] T. Graepel, R. Herbrich, A. Kharechko and J. Shawe-Taylor, "Semidefinite programming by perceptron learning",
   NIPS 2003.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.sdp.matrices import MatrixFamily, matrix_family
from pluri.optimize.sdp.oracles import OracleName, make_oracle
from pluri.optimize.sdp.perceptron import Perceptron
from pluri.validation import Only, RandomState, Whole, as_generator, check_count, check_positive, check_value
from pluri.validation.interruption import interruptible

Array = NDArray[np.float64]

#: Eigenvectors of the matrix at y that are tried as directions of contradiction, and steps of descent from the best.
TRIED, DESCENT = 4, 5


def failure_schedule(attempt: int, delta: float = 1e-3) -> tuple[float, int]:
    """Allowed probability of failure of a rescaling, and the walks that it may take.

    Parameters
    ----------
    attempt : int
        1 for the first rescaling.
    delta : float, default=1e-3
        Probability of failure of all of them together: ``6 delta / (pi i)^2`` for the i-th. With 1/2 these are the
        published numbers, whose sum is one half.

    Returns
    -------
    tuple of float and int

    Examples
    --------
    >>> from pluri.optimize.sdp.rescaling import failure_schedule
    >>> failure_schedule(1, 0.5)[1], failure_schedule(10, 0.5)[1]
    (5, 21)
    """
    allowed = 6 * delta / (math.pi * attempt) ** 2
    return allowed, math.ceil(math.log(allowed) / math.log(0.75))


def contradiction(family: MatrixFamily, y: Array, stretch: Array, rows: Sequence[Array] = ()) -> tuple[float, Array]:
    """The most negative ``y'a / ||a||`` found among the constraints ``B'a_u`` and ``B'row``, and that unit normal.

    The eigenvectors of the smallest eigenvalues of ``G(By)`` are tried, and a few steps of descent on the ratio.
    """
    from scipy.linalg import eigh

    def ratio(normal: Array) -> tuple[float, Array]:
        normal = normal @ stretch
        length = float(np.linalg.norm(normal))
        return (float(normal @ y) / length, normal / length) if length > 0 else (math.inf, normal)

    found = [ratio(row) for row in rows]
    G = family.combine(stretch @ y)
    last = min(TRIED, family.m) - 1
    vectors = eigh(G, subset_by_index=[0, last], check_finite=False)[1]
    tried = [(ratio(family.forms(u)), u) for u in vectors.T]
    (best, u) = min(tried, key=lambda one: one[0][0])
    found.append(best)
    step = 1.0
    for _ in range(DESCENT):
        # Gradient of u'Gu / ||a_u|| in u, where the length of the normal counts too.
        value, normal = best
        pull = family.combine(stretch @ normal)
        slope = G @ u - value * (pull @ u)
        slope -= (slope @ u) * u  # along the sphere
        steepness = float(np.linalg.norm(slope))
        if steepness < 1e-12:
            break
        moved = u - step / steepness * slope
        moved /= np.linalg.norm(moved)
        trial = ratio(family.forms(moved))
        if trial[0] < best[0]:
            best, u = trial, moved
        else:
            step /= 4
    found.append(best)
    return min(found, key=lambda one: one[0])


def improve(
    family: MatrixFamily,
    rng: np.random.Generator,
    *,
    stretch: Array,
    rows: Sequence[Array] = (),
    sigma: float | None = None,
    max_steps: int | None = None,
) -> Array | None:
    """Walk from a random direction to one that no constraint contradicts by more than `sigma`.

    Parameters
    ----------
    family : MatrixFamily
    rng : Generator
    stretch : ndarray of shape (n, n)
        B of the rescalings so far.
    rows : sequence of ndarray
        Linear constraints beside those of the matrices.
    sigma : float, optional
        ``1 / (32 n)`` by default.
    max_steps : int, optional
        ``1024 n^2 log n`` by default.

    Returns
    -------
    ndarray of shape (n,) or None
        Unit vector y to stretch along; None if the walk did not end.
    """
    n = family.n
    sigma = 1 / (32 * n) if sigma is None else sigma
    max_steps = math.ceil(1024 * n**2 * math.log(max(n, 2))) if max_steps is None else max_steps
    y = np.zeros(n)
    for _ in range(max_steps):
        length = float(np.linalg.norm(y))
        if length < 1e-12:
            y = rng.standard_normal(n)
            length = float(np.linalg.norm(y))
        y /= length
        against, normal = contradiction(family, y, stretch, rows)
        if against > -sigma:
            return y
        y = y - (y @ normal) * normal
    return None


@interruptible
def positive_definite_perceptron(
    matrices: Sequence[Any],
    *,
    oracle: OracleName = "auto",
    rho_min: float = 1e-3,
    delta: float = 1e-3,
    max_updates: int | None = None,
    max_rescalings: int | None = None,
    max_steps: int | None = None,
    memory: int = 0,
    random_state: RandomState = None,
) -> Array | None:
    """Find x with ``sum_i x_i G_i`` positive definite by perceptron learning and rescaling, in polynomial time.

    The published algorithm with its constants, which are for theory: in practice `lmi_feasible_point` and `solve_sdp`
    rescale only when the perceptron stalls.

    Parameters
    ----------
    matrices : sequence of matrices
        Symmetric arrays, diagonals, sparse arrays or `LowRank`, all of one size.
    oracle : {"auto", "eigen", "cholesky"}, default="auto"
        How a violated constraint is found.
    rho_min : float, default=1e-3
        Radius of a ball that the cone is believed to hold: there are at most ``2048 n log(1 / rho_min)`` rescalings.
    delta : float, default=1e-3
        Probability that it fails although there is such a ball.
    max_updates : int, optional
        Updates of the perceptron between rescalings, ``16 n^2`` by default.
    max_rescalings : int, optional
        At most so many, whatever `rho_min` is.
    max_steps : int, optional
        Steps of one walk, ``1024 n^2 log n`` by default.
    memory : int, default=0
        Constraints remembered between updates; see `solve_sdp`.
    random_state : int, Generator or None, default=None

    Returns
    -------
    ndarray of shape (n,) or None
        x of length one in the original coordinates; None if there is no ball of radius `rho_min`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.optimize.sdp import positive_definite_perceptron
    >>> x = positive_definite_perceptron([np.diag([1.0, -1.0]), np.array([[0.0, 1.0], [1.0, 3.0]])], random_state=0)
    >>> bool(np.linalg.eigvalsh(x[0] * np.diag([1.0, -1.0]) + x[1] * np.array([[0.0, 1.0], [1.0, 3.0]])).min() > 0)
    True
    """
    check_positive(rho_min, "rho_min")
    check_positive(delta, "delta")
    check_value(memory, "memory", Whole(0))
    check_value(oracle, "oracle", Only("auto", "eigen", "cholesky"))
    for name, value in {"max_updates": max_updates, "max_rescalings": max_rescalings, "max_steps": max_steps}.items():
        if value is not None:
            check_count(value, name)
    family = matrix_family(matrices, "matrices")
    rng, n, ask = as_generator(random_state), family.n, make_oracle(oracle)
    rounds = max(1, math.ceil(2048 * n * math.log(1 / min(rho_min, 0.5))))
    stretch = np.eye(n)
    for attempt in range(1, min(rounds, max_rescalings or rounds) + 1):
        perceptron = Perceptron(family, memory=memory, affine=False, stretch=stretch)
        budget = max_updates or 16 * n**2
        while perceptron.n_updates < budget:
            found = perceptron.search(ask, budget - perceptron.n_updates)
            if found == "feasible":
                return perceptron.point
            if found == "degenerate":
                return None
        for _ in range(failure_schedule(attempt, delta)[1]):
            y = improve(family, rng, stretch=stretch, max_steps=max_steps)
            if y is not None:
                break
        else:
            return None
        stretch = stretch + np.outer(stretch @ y, y)
    return None
