"""Similarity kernels by name, as a function, or given as their matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

Array = NDArray[np.float64]
Kernel = str | Callable[[Any, Any], Any]


class KernelKind:
    """What a kernel may be, for tables of parameters."""

    def holds(self, value: Any) -> bool:
        """Whether it is a name that scikit-learn knows, "precomputed" or a function."""
        return callable(value) or (
            isinstance(value, str) and (value == "precomputed" or value in PAIRWISE_KERNEL_FUNCTIONS)
        )

    def __str__(self) -> str:
        return f"a function of two tables, 'precomputed' or one of {', '.join(sorted(PAIRWISE_KERNEL_FUNCTIONS))}"


def kernel_matrix(kernel: Kernel, settings: Mapping[str, Any] | None, X: Any, Y: Any) -> Array:
    """Similarities of the rows of X to those of Y, (n_x, n_y)."""
    if callable(kernel):
        found = np.asarray(kernel(X, Y, **(settings or {})), dtype=np.float64)
        if found.shape != (X.shape[0], Y.shape[0]):
            raise ValueError(
                f"kernel must give a matrix of shape {(X.shape[0], Y.shape[0])} for two tables of so many rows, "
                f"got shape {found.shape}"
            )
    else:
        try:
            found = pairwise_kernels(X, Y, metric=kernel, **(settings or {}))
        except TypeError as error:
            raise ValueError(f"kernel_params must be arguments of the kernel {kernel!r}, got {settings!r}") from error
        found = found.toarray() if hasattr(found, "toarray") else np.asarray(found, dtype=np.float64)
    if not np.isfinite(found).all():
        raise ValueError("kernel must give finite numbers, got NaN or infinity")
    return found


def self_similarity(kernel: Kernel, settings: Mapping[str, Any] | None, X: Any) -> Array:
    """Similarity of each row with itself, (n,), a few hundred rows at a time."""
    parts = [X[begin : begin + 256] for begin in range(0, X.shape[0], 256)]
    return np.concatenate([np.diag(kernel_matrix(kernel, settings, part, part)) for part in parts])


def check_gram(gram: Array) -> None:
    """Refuse what is no Gram matrix: it must be square and symmetric."""
    if gram.shape[0] != gram.shape[1]:
        raise ValueError(f"X must be a square matrix of similarities for kernel='precomputed', got shape {gram.shape}")
    scale = np.abs(gram).max(initial=0.0)
    if not np.allclose(gram, gram.T, rtol=0.0, atol=1e-8 * scale):
        raise ValueError("X must be symmetric for kernel='precomputed', got a matrix that differs from its transpose")
