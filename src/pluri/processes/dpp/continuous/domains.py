"""Where points live: a box with its volume, or all of space under a normal distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.kernel_forms import Array

#: Quadrature nodes along each coordinate, by the number of coordinates; beyond three, points of a Sobol sequence.
NODES = {1: 400, 2: 64, 3: 24}
SOBOL = 14


class Domain(Protocol):
    """A base measure that can be drawn from and integrated over."""

    @property
    def n_dimensions(self) -> int:
        """Number of coordinates."""

    @property
    def mass(self) -> float:
        """Total mass of the base measure."""

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Points (n, n_dimensions) in proportion to the base measure."""

    def from_uniforms(self, uniforms: Array) -> Array:
        """Points of the base measure from points of the unit cube."""

    def nodes(self, refine: float = 1.0) -> tuple[Array, Array]:
        """Points and weights for integrals over the base measure."""

    def density(self, points: Array) -> Array:
        """Density of the base measure with respect to volume."""

    def bump_integral(self, centre: Array, width: Array) -> Array:
        """Integral of ``exp(-|x - centre|^2 / width^2)``; centres (..., n_dimensions)."""

    def wave_integral(self, frequency: Array) -> Any:
        """Integral of ``exp(i frequency . x)``; frequencies (..., n_dimensions)."""


@dataclass(frozen=True, eq=False)
class Box:
    """A box with its volume as base measure.

    Parameters
    ----------
    lower, upper : array_like (n_dimensions,)
        Its corners; both must be finite, as a kernel of constant quality has no finite trace otherwise.

    Examples
    --------
    >>> from pluri.processes.dpp.continuous.domains import Box
    >>> Box([0, 0], [2, 3]).mass
    6.0
    """

    lower: ArrayLike
    upper: ArrayLike

    def __post_init__(self) -> None:
        lower, upper = (np.atleast_1d(np.array(values, dtype=np.float64)) for values in (self.lower, self.upper))
        if lower.ndim != 1 or lower.shape != upper.shape or not lower.size:
            raise ValueError(f"lower and upper must be vectors of one length, got {lower.shape} and {upper.shape}")
        if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
            raise ValueError(
                "lower and upper must be finite: over an unbounded box the kernel has an infinite trace; use NormalBase"
            )
        if not (lower < upper).all():
            raise ValueError(f"lower must be below upper, got {lower.tolist()} and {upper.tolist()}")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def _corners(self) -> tuple[Array, Array]:
        return np.asarray(self.lower), np.asarray(self.upper)

    @property
    def n_dimensions(self) -> int:
        """Number of coordinates."""
        return int(np.size(self.lower))

    @property
    def mass(self) -> float:
        """Volume."""
        lower, upper = self._corners
        return float(np.prod(upper - lower))

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Points anywhere in the box."""
        return self.from_uniforms(rng.random((n, self.n_dimensions)))

    def from_uniforms(self, uniforms: Array) -> Array:
        """Points from points of the unit cube."""
        lower, upper = self._corners
        return np.asarray(lower + (upper - lower) * uniforms)

    def nodes(self, refine: float = 1.0) -> tuple[Array, Array]:
        """Gauss-Legendre nodes, or a Sobol sequence beyond three dimensions."""
        lower, upper = self._corners
        if self.n_dimensions not in NODES:
            return _sobol(self, refine)
        x, w = np.polynomial.legendre.leggauss(round(refine * NODES[self.n_dimensions]))
        return _product(
            [(0.5 * (low + high) + 0.5 * (high - low) * x, 0.5 * (high - low) * w) for low, high in zip(lower, upper)]
        )

    def density(self, points: Array) -> Array:
        """1 inside."""
        lower, upper = self._corners
        return np.asarray(((points >= lower) & (points <= upper)).all(axis=1), dtype=np.float64)

    def bump_integral(self, centre: Array, width: Array) -> Array:
        """By error functions."""
        from scipy.special import erf

        lower, upper = self._corners
        parts = erf((upper - centre) / width) - erf((lower - centre) / width)
        return np.asarray((0.5 * np.sqrt(np.pi) * width * parts).prod(axis=-1))

    def wave_integral(self, frequency: Array) -> Any:
        """By sines."""
        lower, upper = self._corners
        half, middle = 0.5 * (upper - lower), 0.5 * (upper + lower)
        # numpy's sinc(x) is sin(pi x) / (pi x).
        return (2.0 * half * np.sinc(frequency * half / np.pi)).prod(axis=-1) * np.exp(1j * (frequency @ middle))


@dataclass(frozen=True, eq=False)
class NormalBase:
    """All of space under a normal distribution with independent coordinates.

    Parameters
    ----------
    mean, scale : array_like (n_dimensions,)
        Means and standard deviations.

    Examples
    --------
    >>> from pluri.processes.dpp.continuous.domains import NormalBase
    >>> NormalBase([0, 0], [1, 2]).n_dimensions
    2
    """

    mean: ArrayLike = 0.0
    scale: ArrayLike = 1.0

    def __post_init__(self) -> None:
        mean, scale = np.broadcast_arrays(*(np.atleast_1d(np.asarray(v, dtype=float)) for v in (self.mean, self.scale)))
        if mean.ndim != 1 or not (np.isfinite(mean).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise ValueError(
                f"mean must be finite and scale positive, vectors of one length, got {self.mean!r} and {self.scale!r}"
            )
        object.__setattr__(self, "mean", np.array(mean))
        object.__setattr__(self, "scale", np.array(scale))

    @property
    def _moments(self) -> tuple[Array, Array]:
        return np.asarray(self.mean), np.asarray(self.scale)

    @property
    def n_dimensions(self) -> int:
        """Number of coordinates."""
        return int(np.size(self.mean))

    @property
    def mass(self) -> float:
        """1."""
        return 1.0

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Normal points."""
        mean, scale = self._moments
        return np.asarray(mean + scale * rng.standard_normal((n, self.n_dimensions)))

    def from_uniforms(self, uniforms: Array) -> Array:
        """Normal points from points of the unit cube."""
        from scipy.special import ndtri

        mean, scale = self._moments
        return np.asarray(mean + scale * ndtri(np.clip(uniforms, 1e-12, 1 - 1e-12)))

    def nodes(self, refine: float = 1.0) -> tuple[Array, Array]:
        """Gauss-Hermite nodes, or a Sobol sequence beyond three dimensions."""
        from scipy.special import roots_hermitenorm

        mean, scale = self._moments
        if self.n_dimensions not in NODES:
            return _sobol(self, refine)
        x, w = roots_hermitenorm(min(round(refine * NODES[self.n_dimensions]), 400))
        return _product([(m + s * x, w / np.sqrt(2.0 * np.pi)) for m, s in zip(mean, scale)])

    def density(self, points: Array) -> Array:
        """Normal density."""
        mean, scale = self._moments
        gap = (points - mean) / scale
        return np.asarray(np.exp(-0.5 * (gap**2).sum(axis=1)) / np.prod(np.sqrt(2.0 * np.pi) * scale))

    def bump_integral(self, centre: Array, width: Array) -> Array:
        """A product of two normal densities."""
        mean, scale = self._moments
        total = width**2 + 2.0 * scale**2
        return np.asarray((width / np.sqrt(total) * np.exp(-((centre - mean) ** 2) / total)).prod(axis=-1))

    def wave_integral(self, frequency: Array) -> Any:
        """The characteristic function."""
        mean, scale = self._moments
        return np.exp(1j * (frequency @ mean) - 0.5 * ((frequency * scale) ** 2).sum(axis=-1))


def _product(lines: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    points = np.stack(np.meshgrid(*(x for x, _ in lines), indexing="ij"), axis=-1).reshape(-1, len(lines))
    weights = np.stack(np.meshgrid(*(w for _, w in lines), indexing="ij"), axis=-1).prod(axis=-1).ravel()
    return points, weights


def _sobol(domain: Domain, refine: float) -> tuple[Array, Array]:
    power = SOBOL + round(np.log2(refine))
    points = domain.from_uniforms(spread_points(domain.n_dimensions, 2**power))
    return points, np.full(len(points), domain.mass / len(points))


def spread_points(n_dimensions: int, n: int) -> Array:
    """Points that fill the unit cube evenly: the first ``n`` of a Sobol sequence, always the same."""
    from scipy.stats import qmc

    power = max(0, int(np.ceil(np.log2(n))))
    return np.asarray(qmc.Sobol(n_dimensions, seed=0).random_base2(power)[:n])
