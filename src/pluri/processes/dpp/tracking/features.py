"""From features to rows of a kernel, fast enough for streams; checks of whole kernels, and their scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.kernel_checks import ROUNDING, check_kernel, check_quality, check_symmetric
from pluri.processes.dpp.kernel_forms import Array
from pluri.processes.dpp.similarity import as_similarity
from pluri.processes.dpp.sizes import scale_for_size
from pluri.processes.dpp.tracking.draws import SMALL, loops

#: Kernels to which only the direction of a row of features matters.
DIRECTIONS = ("cosine", "exponential_cosine")


class KernelRows:
    """Rows of the kernel of features; lengths and the like are computed once for each row.

    Parameters
    ----------
    kernel : str or callable
        As in `TimeVaryingDPP`.
    parameters : mapping or None
        Of a kernel given by its name.
    """

    def __init__(self, kernel: str | Callable[..., Any], parameters: Mapping[str, Any] | None) -> None:
        self.function = as_similarity(kernel, **(parameters or {}))
        self.name = kernel if isinstance(kernel, str) else None
        self.is_trusted = self.name is not None
        self.has_quality = False

    def prepare(self, features: Any, quality: ArrayLike | None = None) -> Array:
        """Checked features (n, n_features), of unit length where only directions count.

        If the stream was begun with qualities (`has_quality`), a last column holds them; 1 for items without.
        """
        rows = self._prepare(features)
        if quality is not None and not self.has_quality:
            raise ValueError("quality must be given from the first time step on: this stream was begun without")
        if not self.has_quality:
            return rows
        factors = np.ones(len(rows)) if quality is None else check_quality(quality, len(rows))
        return np.column_stack([rows, factors])

    def _prepare(self, features: Any) -> Array:
        rows = numbers_of(features)
        if rows.ndim != 2 or not rows.shape[1]:
            raise ValueError(f"features must have a row for each changed item, got shape {rows.shape}")
        if not loops().prepare_rows(rows, self.name in DIRECTIONS):
            raise ValueError("features must be finite, got NaN or infinity")
        if self.name == "rbf" and len(rows):
            self.function = self.function.fixed(rows)  # type: ignore[attr-defined]
        return rows

    def between(self, first: Array, second: Array) -> Array:
        """Kernel of prepared rows."""
        if not self.has_quality:
            return self._between(first, second)
        return self._between(first[:, :-1], second[:, :-1]) * first[:, -1:] * second[:, -1]

    def _between(self, first: Array, second: Array) -> Array:
        if self.name in ("cosine", "linear"):
            return first @ second.T
        if self.name == "exponential_cosine":
            product = first @ second.T
            product -= 1.0
            product *= self.function.alpha  # type: ignore[attr-defined]
            return np.exp(product, out=product)
        values = np.asarray(self.function(first, second), dtype=np.float64)
        if values.shape != (len(first), len(second)):
            raise ValueError(
                f"kernel must give a matrix of shape {(len(first), len(second))} for so many rows, got {values.shape}"
            )
        return values


def numbers_of(features: Any) -> Array:
    """A new array of float64 of features, dense or sparse."""
    try:
        return np.array(features.toarray() if hasattr(features, "toarray") else features, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("features must hold numbers only, in rows of one length") from None


def symmetric_kernel(rows: KernelRows, features: Array) -> Array:
    """Kernel of rows among themselves, exactly symmetric; that of a user's function is checked."""
    kernel = rows.between(features, features)
    return (
        check_symmetric(kernel, "kernel") if rows.is_trusted else checked_kernel(kernel, "the kernel of the features")
    )


def scale_to(kernel: Array, expected_size: float) -> float:
    """Scale at which the kernel has the wanted expected size."""
    values = np.linalg.eigvalsh(kernel)
    positive = np.asarray(values[values > 1e-12 * max(float(values[-1]), 0.0)], dtype=np.float64)
    if not 0 < expected_size < positive.size:
        raise ValueError(
            f"expected_size must be above 0 and below the rank of the kernel ({positive.size}), got {expected_size!r}"
        )
    return scale_for_size(positive, expected_size)


def checked_kernel(kernel: ArrayLike, name: str = "kernel") -> Array:
    """`check_kernel`, with a factorisation that needs no threads while the kernel is small."""
    matrix = check_symmetric(kernel, name)
    scale = float(np.abs(matrix).sum(axis=1).max())
    if len(matrix) > SMALL or not loops().is_positive(matrix.copy(), ROUNDING * scale / np.sqrt(len(matrix))):
        return check_kernel(matrix, name)
    return matrix
