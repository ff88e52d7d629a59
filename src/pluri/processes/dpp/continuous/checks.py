"""What a kernel over space must be: finite, symmetric, positive semi-definite, and of finite trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pluri.processes.dpp.continuous.domains import Domain, spread_points
from pluri.processes.dpp.continuous.point_gibbs import kernel_diagonal
from pluri.processes.dpp.kernel_checks import check_eigenvalues
from pluri.processes.dpp.kernel_forms import Array

#: Points at which a kernel is looked at.
N_POINTS = 64
#: An integral that grows by more than this factor each time its nodes are doubled has no end.
GROWTH = 1.2
#: How far a quality may rise above the largest of many points.
MARGIN = 1.1


def check_similarity(similarity: Callable[[Array, Array], Any], domain: Domain) -> None:
    """Refuse a kernel that is not finite, symmetric or positive semi-definite at points of the domain."""
    points = domain.from_uniforms(spread_points(domain.n_dimensions, N_POINTS))
    values = np.asarray(similarity(points, points), dtype=np.float64)
    if values.shape != (N_POINTS, N_POINTS):
        raise ValueError(f"kernel must give all pairs of {N_POINTS} and {N_POINTS} points, got shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("kernel must be finite, got NaN or infinity at points of the domain")
    if np.abs(values - values.T).max() > 1e-8 * np.abs(values).max():
        raise ValueError("kernel must be symmetric, got k(x, y) that differs from k(y, x) at points of the domain")
    check_eigenvalues(np.linalg.eigvalsh(values), "kernel at points of the domain")


def check_trace(
    similarity: Callable[[Array, Array], Any], quality: float | Callable[[Array], Any], domain: Domain
) -> None:
    """Refuse a quality that is not positive, or whose trace, the integral of L(x, x), does not settle."""
    if not callable(quality):
        if not (np.isfinite(quality) and quality > 0):
            raise ValueError(f"quality must be positive and finite, got {quality!r}")
        return
    traces = []
    for refine in (0.25, 0.5, 1.0):
        points, weights = domain.nodes(refine)
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.asarray(quality(points), dtype=np.float64)
            if values.size != weights.size:
                raise ValueError(f"quality must give one number for each of {weights.size} points, got {values.shape}")
            traces.append(float((weights * values.ravel() ** 2 * kernel_diagonal(similarity, points)).sum()))
    grows = traces[2] > GROWTH * traces[1] > GROWTH**2 * traces[0] > 0
    if not np.isfinite(traces).all() or grows:
        raise ValueError("quality must have a finite integral of its square: the kernel has an infinite trace")
    if not traces[2] > 0:
        raise ValueError("quality must be positive somewhere in the domain, got zero everywhere")


def largest_diagonal(
    similarity: Callable[[Array, Array], Any],
    quality: Callable[[Array], Array],
    domain: Domain,
    quality_bound: float | None,
    varies: bool,
) -> float:
    """A bound of L(x, x): given, or from many points with a margin; a draw that meets a larger value says so."""
    points = np.concatenate(
        [domain.nodes(0.5)[0][:4096], domain.from_uniforms(spread_points(domain.n_dimensions, 4096))]
    )
    seen = float((quality(points) * np.sqrt(kernel_diagonal(similarity, points))).max())
    if quality_bound is None:
        return (seen * (MARGIN if varies else 1.0 + 1e-9)) ** 2
    if not (np.isfinite(quality_bound) and quality_bound >= seen * (1 - 1e-9)):
        raise ValueError(f"quality_bound must be finite and at least {seen:.6g}, got {quality_bound!r}")
    return float(quality_bound) ** 2
