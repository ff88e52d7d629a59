r"""Low-rank features of a kernel over space: Nystrom's, from landmark points, and random Fourier features.

A kernel :math:`L(x, y) = q(x) k(x, y) q(y)` is replaced by :math:`\phi(x)^\top \phi(y)` with

.. math:: \phi(x) = q(x) \, k_Z^{-1/2} k(Z, x) \quad \text{or} \quad
   \phi(x) = \frac{q(x)}{\sqrt m} \left( \cos \omega_j^\top x, \; \sin \omega_j^\top x \right)_{j \le m}

and everything goes through the second moment :math:`C = \int \phi \phi^\top d\mu`: in closed form for the Gaussian
kernel with constant quality, by quadrature otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluri.processes.dpp.continuous.domains import Domain
from pluri.processes.dpp.kernel_forms import Array

#: Directions of the landmarks below this share of the largest are left out: C would be all rounding in them.
NO_DIRECTION = 1e-9


@dataclass(frozen=True, eq=False)
class GaussianSimilarity:
    """``exp(-|x - y|^2 / (2 length_scale^2))`` with a length scale for each coordinate."""

    length_scale: Array

    def __call__(self, X: Array, Y: Array) -> Array:
        """All pairs."""
        one, other = X / self.length_scale, Y / self.length_scale
        squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2.0 * one @ other.T
        return np.asarray(np.exp(-0.5 * np.maximum(squares, 0.0)))


@dataclass(frozen=True, eq=False)
class LowRank:
    """Features of points, without the quality, and their second moment with it.

    Attributes
    ----------
    features : callable, points (n, n_dimensions) to (n, n_features)
    moment : (n_features, n_features)
    """

    features: Callable[[Array], Array]
    moment: Array


def nystrom(
    similarity: Callable[[Array, Array], Any],
    landmarks: Array,
    domain: Domain,
    quality: Callable[[Array], Array] | float,
) -> LowRank:
    """From landmark points."""
    values, vectors = np.linalg.eigh(np.asarray(similarity(landmarks, landmarks), dtype=np.float64))
    keep = values > NO_DIRECTION * values[-1]
    root = vectors[:, keep] / np.sqrt(values[keep])

    def features(points: Array) -> Array:
        return np.asarray(similarity(points, landmarks), dtype=np.float64) @ root

    if isinstance(similarity, GaussianSimilarity) and not callable(quality):
        # k(z, x) k(x, z') is a bump around the middle of z and z', times their own kernel at sqrt(2) the scale.
        apart = (landmarks[:, None] - landmarks[None]) / similarity.length_scale
        middle = 0.5 * (landmarks[:, None] + landmarks[None])
        overlap = np.exp(-0.25 * (apart**2).sum(axis=-1)) * domain.bump_integral(middle, similarity.length_scale)
        return LowRank(features, float(quality) ** 2 * root.T @ overlap @ root)
    return LowRank(features, by_quadrature(features, domain, quality))


def fourier(frequencies: Array, domain: Domain, quality: Callable[[Array], Array] | float) -> LowRank:
    """From frequencies (n_frequencies, n_dimensions) drawn from the spectral density of the kernel."""
    scale = 1.0 / np.sqrt(len(frequencies))

    def features(points: Array) -> Array:
        phase = points @ frequencies.T
        return np.asarray(scale * np.column_stack([np.cos(phase), np.sin(phase)]))

    if callable(quality):
        return LowRank(features, by_quadrature(features, domain, quality))
    apart = domain.wave_integral(frequencies[:, None] - frequencies[None])
    together = domain.wave_integral(frequencies[:, None] + frequencies[None])
    cross = 0.5 * (together.imag - apart.imag)
    moment = np.block([[0.5 * (apart.real + together.real), cross], [cross.T, 0.5 * (apart.real - together.real)]])
    return LowRank(features, (float(quality) * scale) ** 2 * moment)


def by_quadrature(
    features: Callable[[Array], Array], domain: Domain, quality: Callable[[Array], Array] | float
) -> Array:
    """The second moment from quadrature nodes, some at a time."""
    points, weights = domain.nodes()
    total: Array | float = 0.0
    for begin in range(0, len(points), 4096):
        block = points[begin : begin + 4096]
        factor = quality(block) if callable(quality) else float(quality)
        rows = features(block) * (np.sqrt(weights[begin : begin + 4096]) * factor)[:, None]
        total = total + rows.T @ rows
    return np.asarray(total)
