"""Names of the similarities that processes over rows of data know."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

#: Short name to the class in `pluri.priors.kernels`.
SIMILARITIES = {
    "cosine": "CosineKernel",
    "exponential_cosine": "ExponentialCosineKernel",
    "linear": "LinearKernel",
    "rbf": "RBFKernel",
}


def as_similarity(kernel: str | Callable[..., Any], **parameters: Any) -> Callable[..., Any]:
    """The kernel of a name and its parameters; a callable of two sets of rows is taken as it is.

    Examples
    --------
    >>> from pluri.processes.dpp.similarity import as_similarity
    >>> as_similarity("rbf", length_scale=0.5)
    RBFKernel(length_scale=0.5)
    """
    if isinstance(kernel, str):
        if kernel not in SIMILARITIES:
            raise ValueError(f"kernel must be one of {sorted(SIMILARITIES)} or a callable, got {kernel!r}")
        from pluri.priors import kernels

        law = getattr(kernels, SIMILARITIES[kernel])
        unknown = sorted(set(parameters) - set(signature(law).parameters))
        if unknown:
            allowed = sorted(signature(law).parameters)
            raise ValueError(f"the kernel {kernel!r} takes the parameters {allowed}, got {unknown}")
        made: Callable[..., Any] = law(**parameters)
        return made
    if not callable(kernel):
        raise ValueError(f"kernel must be one of {sorted(SIMILARITIES)} or a callable, got {kernel!r}")
    if parameters:
        raise ValueError(f"parameters of a callable kernel belong to it, got {sorted(parameters)} beside it")
    return kernel
