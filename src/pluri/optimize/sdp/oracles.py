"""Separation oracles: a direction along which a symmetric matrix is not positive definite.

An oracle takes a matrix and gives a unit vector u with ``u'Gu <= 0``, or None if G is positive definite. The
eigenvector of the smallest eigenvalue is violated most; a failed Cholesky factorisation gives a vector much earlier:
if it stops at pivot k, with ``G_(k-1) = LL'`` the part before and g the column above the pivot,
``u = (-L^-T L^-1 g, 1, 0, ..., 0)`` has ``u'Gu`` equal to that pivot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Oracle = Callable[[Array], Array | None]
OracleName = Literal["auto", "eigen", "cholesky"]

#: Size from which on the eigenvector comes from Lanczos iterations.
LANCZOS = 400


def make_oracle(name: OracleName) -> Oracle:
    """The oracle of this name.

    "eigen" computes the smallest eigenvalue each time, "cholesky" the vector of the failed pivot, and "auto" tests by a
    Cholesky factorisation and computes the eigenvector only if that fails.
    """
    return {"eigen": eigen, "cholesky": failed_pivot, "auto": eigen_if_indefinite}[name]


def eigen(G: Array) -> Array | None:
    """Eigenvector of the smallest eigenvalue; None if that is positive."""
    smallest, u = smallest_eigenpair(G)
    return u if smallest <= 0 else None


def eigen_if_indefinite(G: Array) -> Array | None:
    """None if the Cholesky factorisation succeeds, else the eigenvector of the smallest eigenvalue."""
    return None if is_positive_definite(G) else smallest_eigenpair(G)[1]


def failed_pivot(G: Array) -> Array | None:
    """Vector of the pivot at which the Cholesky factorisation fails."""
    from scipy.linalg import lapack

    pivot = lapack.dpotrf(G, lower=1, clean=0)[1]
    if pivot == 0:
        return None
    u = np.zeros(len(G))
    u[pivot - 1] = 1.0
    if pivot > 1:
        # Factored again: what is left in the array after a failure differs between libraries.
        before, failed = lapack.dpotrf(G[: pivot - 1, : pivot - 1], lower=1, clean=0)
        if failed:
            return smallest_eigenpair(G)[1]
        u[: pivot - 1] = -lapack.dpotrs(before, G[: pivot - 1, pivot - 1], lower=1)[0]
        u /= np.linalg.norm(u)
    # With a pivot that is zero up to rounding the form may come out positive.
    return u if u @ G @ u <= 0 else smallest_eigenpair(G)[1]


def is_positive_definite(G: Array) -> bool:
    """Whether the Cholesky factorisation succeeds."""
    from scipy.linalg import lapack

    return bool(lapack.dpotrf(G, lower=1, clean=0)[1] == 0)


def smallest_eigenpair(G: Array) -> tuple[float, Array]:
    """Smallest eigenvalue and its eigenvector; of a large matrix any vector with a negative form that Lanczos finds."""
    from scipy.linalg import eigh

    if len(G) >= LANCZOS:
        u = _lanczos(G)
        value = float(u @ G @ u)
        # Only a violation is taken on trust: that there is none must be exact.
        if value < 0:
            return value, u
    values, vectors = eigh(G, subset_by_index=[0, 0], check_finite=False)
    return float(values[0]), vectors[:, 0]


def _lanczos(G: Array) -> Array:
    from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh

    start = np.cos(np.arange(1.0, len(G) + 1.0))
    try:
        return np.asarray(eigsh(G, k=1, which="SA", v0=start, tol=1e-2, maxiter=20 * len(G))[1][:, 0])
    except ArpackNoConvergence as error:
        found = error.eigenvectors
        return np.asarray(found[:, 0]) if found.shape[1] else start / np.linalg.norm(start)
    except ArpackError:
        return start / np.linalg.norm(start)
