"""Checks of kernels, features and qualities as a person gives them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]

#: Entries of a kernel above this, or of features above its root, would overflow once they are added up.
LARGEST = 1e300
#: Asymmetry, and negative eigenvalues, up to this share of the largest entry or eigenvalue count as rounding.
ROUNDING = 1e-8
#: The same for a matrix of single precision.
SINGLE_ROUNDING = 1e-5


def check_kernel(kernel: ArrayLike, name: str = "L") -> Array:
    """A finite, symmetric, positive semi-definite matrix as float64; what is neither is refused.

    Asymmetry up to 1e-8 of the largest entry is averaged away. Whether the matrix is positive semi-definite is judged
    by a Cholesky factorisation of the slightly shifted matrix, and by its eigenvalues only where that fails.

    Examples
    --------
    >>> from pluri.processes.dpp import check_kernel
    >>> check_kernel([[1, 2], [2, 1]])
    Traceback (most recent call last):
        ...
    ValueError: L must be positive semi-definite, got the eigenvalue -1 (the largest is 3)
    """
    matrix = check_symmetric(kernel, name)
    scale = float(np.abs(matrix).sum(axis=1).max())
    if scale > 0:
        if not np.diagonal(matrix).any():
            raise ValueError(
                f"{name} must hold similarities, got a diagonal of zeros, as distances have: turn them into "
                "similarities first, for instance by exp(-distance**2)"
            )
        # The largest eigenvalue is at least scale / sqrt(n): what passes with this shift is within the rounding.
        shifted = matrix.copy()
        shifted.flat[:: len(matrix) + 1] += ROUNDING * scale / np.sqrt(len(matrix))
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            if _tolerance(kernel) > ROUNDING:
                return _without_negative(matrix, _tolerance(kernel), name)
            check_eigenvalues(np.linalg.eigvalsh(matrix), name)
    return matrix


def _tolerance(kernel: ArrayLike) -> float:
    """Share of the largest entry or eigenvalue that is rounding: more for numbers of single precision."""
    kind = getattr(kernel, "dtype", None)
    return SINGLE_ROUNDING if kind in (np.float32, np.float16) else ROUNDING


def _without_negative(matrix: Array, tolerance: float, name: str) -> Array:
    """A kernel of single precision without the negative eigenvalues that its rounding gave it."""
    values, vectors = np.linalg.eigh(matrix)
    check_eigenvalues(values, name, tolerance)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def check_symmetric(kernel: ArrayLike, name: str = "L") -> Array:
    """A finite, symmetric matrix of at least one item as a new float64 array; rounding is averaged away."""
    if hasattr(kernel, "toarray"):
        raise ValueError(f"{name} must be a dense matrix, got a sparse one: call its toarray(), or give features=")
    if isinstance(kernel, list | tuple):
        kernel = _as_array(kernel, name)
    if np.iscomplexobj(kernel):
        raise ValueError(f"{name} must be real, got complex numbers")
    matrix = _numbers(kernel, name)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {matrix.shape}")
    if matrix.shape[0] == 0:
        raise ValueError(f"{name} must have at least one item, got an empty matrix")
    largest = float(np.abs(matrix).max())
    if not np.isfinite(largest):
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if largest > LARGEST:
        raise ValueError(f"{name} must have entries of at most {LARGEST:g}, got {largest:.3g}: scale it down")
    asymmetry = float(np.abs(matrix - matrix.T).max())
    if asymmetry > _tolerance(kernel) * max(largest, np.finfo(np.float64).tiny):
        raise ValueError(f"{name} must be symmetric, got entries that differ by {asymmetry:.3g} from their mirror")
    matrix += matrix.T.copy()
    matrix *= 0.5
    return matrix


def check_eigenvalues(values: NDArray[Any], name: str, tolerance: float = ROUNDING) -> None:
    """Refuse a negative eigenvalue that is no rounding."""
    smallest, largest = float(values.min()), float(np.abs(values).max())
    if smallest < -tolerance * largest:
        small = smallest > -1e-2 * largest
        hint = "; if that is rounding, pluri.priors.kernels.repair_kernel mends it" if small else ""
        raise ValueError(
            f"{name} must be positive semi-definite, got the eigenvalue {smallest:.6g} (the largest is "
            f"{largest:.6g}){hint}"
        )


def _as_array(values: Any, name: str) -> NDArray[Any]:
    """An array of whatever type; rows of several lengths are none."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must hold numbers only, in rows of one length") from error


def _numbers(values: Any, name: str) -> Array:
    """A new float64 array."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers only, in rows of one length") from error


def check_features(features: Any, name: str = "features") -> Any:
    """Finite feature rows as a float64 array, or as a CSR array if they are sparse."""
    from scipy import sparse

    if sparse.issparse(features):
        rows = sparse.csr_array(features, dtype=np.float64)
        finite = np.isfinite(rows.data).all()
    else:
        rows = _numbers(features, name)
        finite = bool(np.isfinite(rows).all())
    if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] == 0:
        raise ValueError(f"{name} must be a matrix with a row for each item, got shape {rows.shape}")
    if not finite:
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return check_lengths(rows, name)


def check_lengths(rows: Any, name: str) -> Any:
    """The feature rows as they are, unless their products would overflow."""
    entries = rows if isinstance(rows, np.ndarray) else rows.data
    largest = float(np.abs(entries).max(initial=0.0))
    if not largest < np.sqrt(LARGEST / rows.shape[1]):
        raise ValueError(f"{name} must be so small that their products stay finite, got {largest:.3g}: scale them down")
    return rows


def check_quality(quality: ArrayLike, n_items: int) -> Array:
    """Finite, non-negative numbers, one for each item."""
    values = np.array(quality, dtype=np.float64)
    if values.shape != (n_items,) or not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(
            f"quality must be {n_items} finite, non-negative numbers, one for each item, got shape {values.shape}"
            + (f" with a minimum of {values.min():.3g}" if values.size else "")
        )
    return values
