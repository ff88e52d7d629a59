"""Linear measurements of rows: ``y_i = S_i x_i`` with fewer measurements than features.

A set of projections is an array: of shape (n, P) if all rows are measured in the same way, of shape (N, n, P) if each
has a matrix of its own. `random_projections` draws one, `SVDProjection` takes it from a dictionary, and
`as_projections` makes one of whatever else stands for a linear map.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.sparse.linalg import LinearOperator

from pluri.validation import Allowed, Only, RandomState, Whole, as_generator, check_value

Array = NDArray[np.float64]
Kind = Literal["gaussian", "binary", "mask"]

#: What `random_projections` is checked by.
ALLOWED: Mapping[str, Allowed] = {
    "n_measurements": Whole(1),
    "n_features": Whole(1),
    "n_samples": Whole(1) | Only(None),
    "kind": Only("gaussian", "binary", "mask"),
}
#: Rows whose spread falls below this share of the largest carry nothing that the others do not.
RANK_TOLERANCE = 1e-10


def random_projections(
    n_measurements: int,
    n_features: int,
    n_samples: int | None = None,
    *,
    kind: Kind = "gaussian",
    random_state: RandomState = None,
) -> Array:
    """Draw projections at random, one for each row or one for all.

    Parameters
    ----------
    n_measurements : int
        Measurements of each row; at most `n_features`.
    n_features : int
    n_samples : int or None, default=None
        Number of rows, each with a projection of its own; None is one projection for all.
    kind : {"gaussian", "binary", "mask"}, default="gaussian"
        Independent N(0, 1) entries; +1 and -1 with equal probability; or a choice of features, in order.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    array of shape (n_samples, n_measurements, n_features) or (n_measurements, n_features)

    Examples
    --------
    >>> from pluri.factors.dictionaries.sensing import random_projections
    >>> random_projections(2, 5, kind="mask", random_state=0).sum(axis=1)
    array([1., 1.])
    """
    given = {"n_measurements": n_measurements, "n_features": n_features, "n_samples": n_samples, "kind": kind}
    for name, value in given.items():
        check_value(value, name, ALLOWED[name])
    check_few(n_measurements, n_features)
    rng = as_generator(random_state)
    shape = (1 if n_samples is None else int(n_samples), int(n_measurements), int(n_features))
    if kind == "gaussian":
        found: Array = rng.standard_normal(shape)
    elif kind == "binary":
        found = np.asarray(2.0 * rng.integers(0, 2, size=shape) - 1.0, dtype=np.float64)
    else:
        chosen = np.sort(rng.random((shape[0], shape[2])).argsort(axis=1)[:, : shape[1]], axis=1)
        found = np.asarray(np.eye(shape[2])[chosen], dtype=np.float64)
    return found[0] if n_samples is None else found


def check_few(n_measurements: int, n_features: int) -> None:
    """Refuse more measurements than features."""
    if n_measurements > n_features:
        raise ValueError(f"n_measurements must be at most the number of features ({n_features}), got {n_measurements}")


def as_projections(projections: Any, n_samples: int | None = None, n_features: int | None = None) -> Array:
    """Whatever stands for linear maps as an array of shape (n, P) or (N, n, P).

    Parameters
    ----------
    projections : array-like, LinearOperator, callable, or a list of these
        A matrix for all rows, or one for each. A function takes a vector of `n_features` and gives its measurements;
        it is applied to unit vectors, and refused if it is not linear.
    n_samples : int or None, default=None
        Number of rows, if it is known; that of the projections must be the same, or there is one for all.
    n_features : int or None, default=None
        Number of features, if it is known.

    Returns
    -------
    array of shape (n_measurements, n_features) or (n_samples, n_measurements, n_features)
    """
    single = isinstance(projections, LinearOperator) or (callable(projections) and not hasattr(projections, "shape"))
    if single:
        found = _as_matrix(projections, n_features)
    elif isinstance(projections, list | tuple) and projections and all(map(_is_map, projections)):
        rows = [_as_matrix(one, n_features) for one in projections]
        if len({row.shape for row in rows}) > 1:
            raise ValueError("projections must all give the same number of measurements")
        found = np.stack(rows)
    else:
        try:
            found = np.ascontiguousarray(projections, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "projections must be a matrix, one for each row, a LinearOperator or a function, "
                f"got {type(projections).__name__}"
            ) from error
    if found.ndim not in (2, 3) or not found.size:
        raise ValueError(
            "projections must have shape (n_measurements, n_features) or (n_samples, n_measurements, n_features), "
            f"got {found.shape}"
        )
    if not np.isfinite(found).all():
        raise ValueError("projections must be finite, got NaN or infinity")
    if n_features is not None and found.shape[-1] != n_features:
        raise ValueError(f"projections must have {n_features} columns, one for each feature, got {found.shape[-1]}")
    if n_samples is not None and found.ndim == 3 and len(found) != n_samples:
        raise ValueError(f"projections must be one for each of {n_samples} rows, or one for all, got {len(found)}")
    return found


def _is_map(value: Any) -> bool:
    return isinstance(value, LinearOperator) or (callable(value) and not hasattr(value, "shape"))


def _as_matrix(operator: LinearOperator | Callable[[Array], ArrayLike], n_features: int | None) -> Array:
    """The matrix of a linear map, column by column."""
    if isinstance(operator, LinearOperator):
        return np.ascontiguousarray(operator @ np.eye(operator.shape[1]), dtype=np.float64)
    if n_features is None:
        raise ValueError(
            "projections given as a function do not tell the number of features: "
            "give scipy.sparse.linalg.LinearOperator(shape, matvec=function) instead"
        )
    found = np.stack([np.asarray(operator(unit), dtype=np.float64).ravel() for unit in np.eye(n_features)], axis=1)
    probe = np.cos(np.arange(n_features) + 1.0)
    if not np.allclose(np.ravel(operator(probe)), found @ probe, rtol=1e-6, atol=1e-9 * np.abs(found).max(initial=1)):
        raise ValueError("projections must be linear: the function of a sum is not the sum of the function")
    return np.ascontiguousarray(found)


def measure(X: ArrayLike, projections: Any) -> Array:
    """Measurements ``S_i x_i`` of the rows of X: array of shape (n_samples, n_measurements)."""
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"X must have shape (n_samples, n_features), got {rows.shape}")
    S = as_projections(projections, *rows.shape)
    return np.asarray(rows @ S.T if S.ndim == 2 else np.einsum("inp,ip->in", S, rows))


def whitened(Y: Array, projections: Array) -> tuple[Array, Array]:
    """Measurements and projections after which noise of the signal is white.

    Noise e of variance v in each feature reaches the measurements as ``S e``, of covariance ``v S S'``. With ``S S' = L
    L'`` both sides are multiplied by the inverse of L.

    Raises
    ------
    ValueError
        If the rows of a projection depend on each other: some of the measurements would then be free of noise.
    """
    S = projections if projections.ndim == 3 else projections[None]
    gram = S @ S.transpose(0, 2, 1)
    values = np.linalg.eigvalsh(gram)
    if (values[:, 0] <= RANK_TOLERANCE * values[:, -1]).any():
        raise ValueError("projections must have independent rows if noise_model='signal'")
    root = np.linalg.cholesky(gram)
    if projections.ndim == 2:
        return (
            np.ascontiguousarray(solve_triangular(root[0], Y.T, lower=True).T),
            np.ascontiguousarray(solve_triangular(root[0], projections, lower=True)),
        )
    return np.linalg.solve(root, Y[:, :, None])[:, :, 0], np.linalg.solve(root, S)
