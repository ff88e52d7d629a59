r"""The two KL projections of a density onto Gaussians.

    reverse (I-projection)   argmin_q KL(q || p)   seeks one mode: q avoids places where p is small
    forward (M-projection)   argmin_q KL(p || q)   covers all mass: q has the mean and covariance of p

The reverse direction needs p up to a constant only, p~ = p Z: what is minimised is the free energy
J(q) = E_q[log q - log p~] = KL(q || p) - log Z >= -log Z. It is estimated with fixed standard normal points eps_s,
x_s = m + L eps_s, and minimised over m and the Cholesky factor L from several starts; there may be several optima.
The points are a scrambled Sobol sequence: with as many independent draws, the minimum leans on their accidents. What
is reported is measured with other points than those that were minimised over.

References
----------
Bishop (2006), Pattern recognition and machine learning, section 10.1.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.inference.variational.mixture_density import LOG_2PI, MixtureDensity
from pluri.validation import Only, RandomState, as_generator, check_value

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DensityGrid:
    """Midpoints of equal cells of a box, and the density's share of each."""

    points: Array
    log_density: Array
    log_cell: float

    @classmethod
    def of(cls, target: Callable[[Array], Array], box: Array, resolution: int | None) -> DensityGrid | None:
        """Cells of a box of at most three dimensions."""
        d = len(box)
        per_axis = {1: 20_000, 2: 400, 3: 80}[d] if resolution is None else resolution
        widths = (box[:, 1] - box[:, 0]) / per_axis
        axes = [low + width * (np.arange(per_axis) + 0.5) for (low, _), width in zip(box, widths)]
        points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        return cls(points, checked_log_density(target, points), float(np.log(widths).sum()))

    @property
    def log_normalizer(self) -> float:
        """Logarithm of the integral over the box."""
        highest = self.log_density.max()
        return float(highest + np.log(np.exp(self.log_density - highest).sum()) + self.log_cell)

    def moments(self) -> tuple[Array, Array]:
        """Mean and covariance."""
        share = np.exp(self.log_density - self.log_density.max())
        share /= share.sum()
        mean = share @ self.points
        spread = self.points - mean
        return mean, (share[:, None] * spread).T @ spread

    def divergence(self, log_q: Array) -> float:
        """KL divergence from a density whose logarithm at the points is given."""
        log_p = self.log_density - self.log_normalizer
        share = np.exp(log_p + self.log_cell)
        return float((share * np.where(share > 0, log_p - log_q, 0.0)).sum())


def checked_log_density(target: Callable[[Array], Array], X: Array) -> Array:
    """Log densities at the rows of X, below infinity."""
    value = np.asarray(target(X), dtype=np.float64)
    if value.shape != (len(X),):
        raise ValueError(f"target must give one log density per row ({len(X)}), got shape {value.shape}")
    if np.isnan(value).any() or (value == np.inf).any():
        raise ValueError("target must give log densities below infinity, got NaN or +inf")
    return value


@dataclass(frozen=True)
class GaussianProjection:
    """A Gaussian closest to a density.

    Attributes
    ----------
    mean : (d,)
    covariance : (d, d)
    kl : float
        KL(q || p), or KL(p || q) in the forward direction; NaN if the density's normaliser is not known.
    free_energy : float
        KL(q || p) - log Z; NaN in the forward direction.
    direction : {"reverse", "forward"}
    optima : tuple of GaussianProjection
        Reverse direction: all distinct optima that the starts led to, this one first.
    """

    mean: Array
    covariance: Array
    kl: float
    free_energy: float
    direction: str
    optima: tuple[GaussianProjection, ...] = field(default=(), repr=False)


def kl_project(
    target: Callable[[Array], Array],
    direction: Literal["reverse", "forward"] = "reverse",
    family: Literal["gaussian", "diagonal"] = "gaussian",
    *,
    bounds: ArrayLike | None = None,
    gradient: Callable[[Array], Array] | None = None,
    n_starts: int = 8,
    n_samples: int = 2000,
    resolution: int | None = None,
    random_state: RandomState = None,
) -> GaussianProjection:
    """Project a density onto the Gaussians.

    Parameters
    ----------
    target : MixtureDensity or callable
        The density; a callable gives its logarithm, up to a constant, at the rows of an array (n, d).
    direction : {"reverse", "forward"}, default="reverse"
        KL(q || p) or KL(p || q).
    family : {"gaussian", "diagonal"}, default="gaussian"
        Gaussians with any covariance, or with a diagonal one.
    bounds : array of shape (d, 2), optional
        Box that holds practically all mass of a callable (at most 3 dimensions are integrated over); its starts are
        drawn from it. A `MixtureDensity` needs none.
    gradient : callable, optional
        Gradient (n, d) of the log density; differences are used without it.
    n_starts : int, default=8
        Number of random starts of the reverse direction.
    n_samples : int, default=2000
        Number of points that estimate the free energy, rounded up to a power of 2.
    resolution : int, optional
        Points per axis of the integration grid.
    random_state : int, numpy Generator, RandomState or None, default=None

    Returns
    -------
    GaussianProjection
        The best optimum; ``optima`` has them all.

    Examples
    --------
    Two far modes: one direction covers both, the other takes one and misses half of the mass, KL = log 2.

    >>> import numpy as np
    >>> from pluri.inference.variational import MixtureDensity, kl_project
    >>> target = MixtureDensity([0.5, 0.5], [[-4.0], [4.0]], np.ones((2, 1, 1)))
    >>> cover = kl_project(target, "forward")
    >>> cover.mean, cover.covariance
    (array([0.]), array([[17.]]))
    >>> seek = kl_project(target, "reverse", random_state=0)
    >>> abs(seek.mean).round(2), seek.covariance.round(2), round(seek.kl, 3), len(seek.optima)
    (array([4.]), array([[1.]]), 0.693, 2)
    """
    check_value(direction, "direction", Only("reverse", "forward"))
    check_value(family, "family", Only("gaussian", "diagonal"))
    if n_starts < 1 or n_samples < 1:
        raise ValueError(f"n_starts and n_samples must be at least 1, got {n_starts} and {n_samples}")
    rng = as_generator(random_state)
    box = _as_box(bounds, isinstance(target, MixtureDensity))
    grid = DensityGrid.of(target, box, resolution) if box is not None and len(box) <= 3 else None
    if direction == "forward":
        return _forward(target, grid, family, rng)
    log_normalizer = 0.0 if isinstance(target, MixtureDensity) else grid.log_normalizer if grid else math.nan
    return _reverse(target, gradient, box, family, log_normalizer, n_starts, n_samples, rng)


def _forward(target: Any, grid: DensityGrid | None, family: str, rng: np.random.Generator) -> GaussianProjection:
    if isinstance(target, MixtureDensity):
        mean, covariance = target.moments()
    elif grid is not None:
        mean, covariance = grid.moments()
    else:
        raise ValueError(
            "target must be a MixtureDensity, or a callable with bounds of at most 3 dimensions, to find its moments"
        )
    covariance = np.diag(np.diag(covariance)) if family == "diagonal" else covariance
    q = MixtureDensity(np.ones(1), mean[None], covariance[None])
    if grid is not None:
        kl = grid.divergence(q(grid.points))
    else:
        draws = target.sample(20_000, rng)
        kl = float((target(draws) - q(draws)).mean())
    return GaussianProjection(mean, covariance, kl, math.nan, "forward")


def _reverse(
    target: Any,
    gradient: Callable[[Array], Array] | None,
    box: Array | None,
    family: str,
    log_normalizer: float,
    n_starts: int,
    n_samples: int,
    rng: np.random.Generator,
) -> GaussianProjection:
    from scipy.optimize import minimize

    if isinstance(target, MixtureDensity):
        starts = target.sample(n_starts, rng)
        spread = np.sqrt(np.diagonal(target.covariances, axis1=1, axis2=2)).mean(axis=0)
    else:
        assert box is not None
        starts = rng.uniform(box[:, 0], box[:, 1], size=(n_starts, len(box)))
        spread = (box[:, 1] - box[:, 0]) / 20.0
    d = starts.shape[1]
    noise, fresh = _normal_points(n_samples, d, rng), _normal_points(max(n_samples, 2**14), d, rng)
    energy = _FreeEnergy(target, gradient, spread, family == "gaussian", noise)
    found: list[GaussianProjection] = []
    for start in starts:
        vector = np.concatenate([start, np.log(spread), np.zeros(energy.n_below)])
        solution = minimize(energy, vector, jac=True, method="L-BFGS-B", options={"maxiter": 500, "gtol": 1e-7})
        mean, factor = energy.unpack(solution.x)
        value = energy.at(mean, factor, fresh)
        candidate = GaussianProjection(mean, factor @ factor.T, value + log_normalizer, value, "reverse")
        if math.isfinite(value) and not any(_same(candidate, other, spread) for other in found):
            found.append(candidate)
    if not found:
        raise FloatingPointError("the free energy is not finite from any start; check the density, or give bounds")
    found.sort(key=lambda optimum: optimum.free_energy)
    best = found[0]
    return GaussianProjection(best.mean, best.covariance, best.kl, best.free_energy, "reverse", tuple(found))


@dataclass(frozen=True)
class _FreeEnergy:
    """Free energy of a Gaussian, as a function of its mean, log diagonal and lower triangle, on fixed noise."""

    target: Any
    gradient: Callable[[Array], Array] | None
    spread: Array
    full: bool
    noise: Array

    @property
    def n_below(self) -> int:
        """Entries of the factor below its diagonal."""
        d = len(self.spread)
        return d * (d - 1) // 2 if self.full else 0

    def unpack(self, vector: Array) -> tuple[Array, Array]:
        """Mean and lower triangular factor of the covariance."""
        d = len(self.spread)
        factor = np.diag(np.exp(vector[d : 2 * d]))
        if self.n_below:
            factor[np.tril_indices(d, -1)] = vector[2 * d :]
        return vector[:d], factor

    def __call__(self, vector: Array) -> tuple[float, Array]:
        """Value and gradient at the parameters."""
        mean, factor = self.unpack(vector)
        d = len(mean)
        value, slope = self._log_density(mean + self.noise @ factor.T)
        by_factor = slope.T @ self.noise / len(self.noise)
        descent = np.concatenate([slope.mean(axis=0), np.diag(by_factor) * np.diag(factor) + 1.0])
        if self.n_below:
            descent = np.concatenate([descent, by_factor[np.tril_indices(d, -1)]])
        entropy = vector[d : 2 * d].sum() + 0.5 * d * (1.0 + LOG_2PI)
        return float(-entropy - value.mean()), -descent

    def at(self, mean: Array, factor: Array, noise: Array) -> float:
        """Value on other noise."""
        entropy = np.log(np.diag(factor)).sum() + 0.5 * len(mean) * (1.0 + LOG_2PI)
        return float(-entropy - checked_log_density(self.target, mean + noise @ factor.T).mean())

    def _log_density(self, X: Array) -> tuple[Array, Array]:
        """Log densities and their gradients; by differences if there is no gradient."""
        if isinstance(self.target, MixtureDensity):
            return self.target.value_and_gradient(X)
        value = checked_log_density(self.target, X)
        if self.gradient is not None:
            return value, np.asarray(self.gradient(X), dtype=np.float64)
        slope = np.empty_like(X)
        for axis, step in enumerate(1e-5 * self.spread):
            shift = np.zeros(X.shape[1])
            shift[axis] = step
            above, below = checked_log_density(self.target, X + shift), checked_log_density(self.target, X - shift)
            slope[:, axis] = (above - below) / (2.0 * step)
        return value, slope


def _normal_points(n_points: int, d: int, rng: np.random.Generator) -> Array:
    """At least `n_points` well-spread standard normal points, of mean 0 and covariance 1 exactly."""
    from scipy.special import ndtri
    from scipy.stats.qmc import Sobol

    power = max(math.ceil(math.log2(max(n_points, 4 * d))), 1)
    # The generator's place in the stream, not the generator: its argument has had two names.
    points = ndtri(np.clip(Sobol(d, seed=int(rng.integers(2**31))).random_base2(power), 1e-12, 1.0 - 1e-12))
    points -= points.mean(axis=0)
    return np.linalg.solve(np.linalg.cholesky(points.T @ points / len(points)), points.T).T


def _same(one: GaussianProjection, other: GaussianProjection, spread: Array) -> bool:
    near = np.abs(one.mean - other.mean).max() < 0.1 * spread.max()
    return bool(near and np.abs(one.covariance - other.covariance).max() < 0.1 * spread.max() ** 2)


def _as_box(bounds: ArrayLike | None, optional: bool) -> Array | None:
    if bounds is None:
        if optional:
            return None
        raise ValueError("bounds must be given for a callable target, got None")
    box = np.asarray(bounds, dtype=np.float64)
    if box.ndim != 2 or box.shape[1] != 2 or not np.isfinite(box).all() or not (box[:, 0] < box[:, 1]).all():
        raise ValueError(f"bounds must be a pair (low, high) for each dimension with low < high, got {bounds!r}")
    return box
