"""The process of what a person gives: a kernel, its marginal kernel, features, or a similarity between rows of data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.kernel_checks import (
    check_features,
    check_kernel,
    check_lengths,
    check_quality,
    check_symmetric,
)
from pluri.processes.dpp.kernel_forms import DenseKernel, FeatureKernel, FunctionKernel, KernelForm, checked_form
from pluri.processes.dpp.representation import LARGEST_DENSE, Representation


def representation(
    L: ArrayLike | KernelForm | None, K: ArrayLike | None, features: Any, quality: ArrayLike | None
) -> Representation:
    """Check what a process was given, and hold it in the form in which it came."""
    given = [name for name, value in (("L", L), ("K", K), ("features", features)) if value is not None]
    if len(given) != 1:
        raise ValueError(f"exactly one of L, K and features must be given, got {', '.join(given) or 'none'}")
    if K is not None:
        if quality is not None:
            raise ValueError("quality belongs to L or features, got it together with K")
        process = Representation(None, check_symmetric(K, "K"))
        process.spectrum  # noqa: B018 (refuses eigenvalues outside [0, 1] now rather than at the first draw)
        return process
    if features is not None:
        rows = check_features(features)
        if quality is not None:
            factors = check_quality(quality, rows.shape[0])
            rows = rows * factors[:, None] if isinstance(rows, np.ndarray) else rows.multiply(factors[:, None]).tocsr()
        return Representation(FeatureKernel(check_lengths(rows, "features times quality")))
    if isinstance(L, DenseKernel) or all(hasattr(L, part) for part in ("n_items", "diagonal", "rows", "block")):
        if quality is not None:
            raise ValueError("quality must be part of a kernel object, got it beside one")
        return Representation(checked_form(L))  # type: ignore[arg-type]
    matrix = check_kernel(L)  # type: ignore[arg-type]
    if quality is not None:
        factors = check_quality(quality, len(matrix))
        # One factor after the other: their product alone may overflow where that with the entries does not.
        with np.errstate(over="ignore"):
            matrix *= factors
            matrix *= factors[:, None]
        matrix = check_symmetric(matrix, "L times quality")
    return Representation(DenseKernel(matrix))


def similarity_representation(
    X: Any, kernel: str | Callable[..., Any], quality: ArrayLike | None, parameters: dict[str, Any]
) -> Representation:
    """The process of a similarity between rows of data, in the cheapest exact form."""
    form = similarity_form(X, kernel, quality, parameters)
    if isinstance(form, FeatureKernel) or form.n_items > LARGEST_DENSE:
        return Representation(form)
    return Representation(DenseKernel(check_kernel(form.rows(np.arange(form.n_items)), "kernel(X, X)")))


def similarity_form(
    X: Any, kernel: str | Callable[..., Any], quality: ArrayLike | None, parameters: dict[str, Any]
) -> KernelForm:
    """The kernel of a similarity between rows of data: by features if it has any, else computed on demand."""
    from pluri.processes.dpp.similarity import as_similarity

    if kernel == "rbf":
        parameters = {"length_scale": "median"} | parameters
    similarity = as_similarity(kernel, **parameters)
    rows = check_features(X, "X")
    factors = None if quality is None else check_quality(quality, rows.shape[0])
    if hasattr(similarity, "fixed"):
        similarity = similarity.fixed(rows)  # what is learned from the data is learned from all of them
    if hasattr(similarity, "features"):
        return representation(None, None, similarity.features(rows), factors).kernel
    return FunctionKernel(similarity, rows, factors)
