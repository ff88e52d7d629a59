"""Random-walk moves of particles: the kernel that fits most targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Particles (n, ...) to log densities (n,), up to a constant; -inf where impossible.
LogTarget = Callable[[NDArray[Any]], Any]
#: (rng, particles, log densities, log target) to new particles, their log densities, and the share accepted.
MoveKernel = Callable[[np.random.Generator, NDArray[Any], Floats, LogTarget], tuple[NDArray[Any], Floats, float]]


def random_walk_kernel(scale: float | None = None) -> MoveKernel:
    """Random-walk Metropolis for particles that are vectors, in the shape of the cloud.

    Parameters
    ----------
    scale : float, optional
        Length of the steps relative to the spread of the particles; ``2.38 / sqrt(d)`` by default.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.smc.random_walk_moves import random_walk_kernel
    >>> log_target = lambda x: -0.5 * (x**2).sum(axis=1)
    >>> x = np.random.default_rng(0).normal(size=(500, 2))
    >>> moved, densities, rate = random_walk_kernel()(np.random.default_rng(1), x, log_target(x), log_target)
    >>> moved.shape, 0.2 < rate < 0.5
    ((500, 2), True)
    """
    if scale is not None and not scale > 0:
        raise ValueError(f"scale must be positive, got {scale!r}")

    def kernel(
        rng: np.random.Generator, particles: NDArray[Any], densities: Floats, log_target: LogTarget
    ) -> tuple[NDArray[Any], Floats, float]:
        n, d = particles.shape
        length = 2.38 / math.sqrt(d) if scale is None else scale
        spread = np.atleast_2d(np.cov(particles.T)) if n > 1 else np.eye(d)
        # A cloud that has shrunk to copies of one particle still needs steps of some length.
        root = np.linalg.cholesky(spread + 1e-12 * (1.0 + np.trace(spread) / d) * np.eye(d))
        proposals = particles + length * rng.normal(size=(n, d)) @ root.T
        proposed = evaluate_target(log_target, proposals, n)
        with np.errstate(invalid="ignore"):
            accepted = np.log(rng.random(n)) < proposed - densities
        accepted |= (densities == -math.inf) & (proposed > -math.inf)
        moved = np.where(accepted[:, None], proposals, particles)
        return moved, np.where(accepted, proposed, densities), float(accepted.mean())

    return kernel


def evaluate_target(log_target: LogTarget, particles: NDArray[Any], n: int, name: str = "log_target") -> Floats:
    values = np.asarray(log_target(particles), dtype=np.float64)
    if values.shape != (n,):
        raise ValueError(f"{name} must give one log density for each of the {n} particles, got shape {values.shape}")
    wrong = np.isnan(values) | (values == math.inf)
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"{name} must be below infinity and not NaN, got {values[i]} at particle {i}")
    return values
