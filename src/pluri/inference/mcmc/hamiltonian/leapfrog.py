"""Hamiltonian Monte Carlo: a target seen as a landscape, and the leapfrog steps that roll over it.

``H(q, p) = -log f(q) + p' M^-1 p / 2``. A leapfrog step (half a kick, a drift, half a kick) is reversible and keeps
volume, so that a trajectory needs correcting only for the small change of H along it. `inverse_mass` is ``M^-1``: the
variances of the target (a vector) or its covariance (a matrix).

References
----------
.. [1] Neal, R. M. (2011). MCMC using Hamiltonian dynamics. Handbook of Markov chain Monte Carlo.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.adaptation import DualAveraging, RunningVariance, window_ends
from pluri.inference.mcmc.kernel import Info

Array = NDArray[np.float64]
#: A position (dim,) to its log density and the gradient (dim,).
ValueAndGrad = Callable[[Array], tuple[float, Array]]
Metric = Literal["diag", "dense", "unit"]
#: A trajectory whose energy rises by more than this has left the true one.
DIVERGENCE = 1000.0


class GradientState(NamedTuple):
    """Where a chain is, with the log density and its gradient there."""

    position: Array
    log_density: float
    gradient: Array


class Landscape(NamedTuple):
    """A target in coordinates in which its metric is the identity: the inner loop then needs no mass matrix.

    With ``M^-1 = S S'`` the momentum is ``S' p``, a standard normal; positions and gradients stay those of the target.

    Attributes
    ----------
    value_and_grad : the target
    scale : (dim,) square roots of the inverse mass, or (dim, dim) its lower Cholesky factor
    """

    value_and_grad: ValueAndGrad
    scale: Array


def landscape(value_and_grad: ValueAndGrad, inverse_mass: Array) -> Landscape:
    """Factor a metric."""
    factor = np.sqrt(inverse_mass) if inverse_mass.ndim == 1 else np.linalg.cholesky(inverse_mass)
    return Landscape(value_and_grad, np.asarray(factor, dtype=np.float64))


def strides_of(terrain: Landscape, step_size: float) -> tuple[Array, Array]:
    """What a whole drift and half a kick multiply by: ``e S`` and ``e S' / 2``."""
    return step_size * terrain.scale, (0.5 * step_size) * terrain.scale.T


def value_at(value_and_grad: ValueAndGrad, position: Array) -> tuple[float, Array]:
    """What a density gives, in double precision: arrays of another library would spread to all that follows.

    A matrix that cannot be factored, as it comes about where a trajectory runs away, counts as a density of zero.
    """
    try:
        log_density, gradient = value_and_grad(position)
    except np.linalg.LinAlgError:
        return -math.inf, np.zeros(len(position))
    return float(log_density), np.asarray(gradient, dtype=np.float64)


def leapfrog(
    terrain: Landscape, position: Array, momentum: Array, gradient: Array, step_size: float
) -> tuple[Array, Array, float, Array]:
    """One step: the new position, momentum, log density and gradient."""
    drift, kick = strides_of(terrain, step_size)
    if drift.ndim == 1:
        half = momentum + kick * gradient
        position = position + drift * half
        log_density, gradient = value_at(terrain.value_and_grad, position)
        return position, half + kick * gradient, log_density, gradient
    half = momentum + kick.dot(gradient)
    position = position + drift.dot(half)
    log_density, gradient = value_at(terrain.value_and_grad, position)
    return position, half + kick.dot(gradient), log_density, gradient


def initial_state(value_and_grad: ValueAndGrad, position: Any, *, check_gradient: bool = True) -> GradientState:
    """State at a position, after asking of the target all that can be asked once.

    The value must be one finite number, the gradient as long as the position and finite; by default it is also
    compared with finite differences along one random direction, and a target that is flat all around is refused.
    """
    if isinstance(position, Mapping):
        raise ValueError(
            "the position must be a vector, got a dict: begin at Space.unconstrain(values), with record=Space.constrain"
        )
    position = np.array(position, dtype=np.float64)
    if position.ndim != 1 or position.size == 0:
        raise ValueError(f"the position must be a vector with at least one entry, got shape {position.shape}")
    if not np.isfinite(position).all():
        raise ValueError("the initial position must be finite")
    result = value_and_grad(position)
    if not (isinstance(result, tuple) and len(result) == 2):
        raise ValueError(f"value_and_grad must return (log density, gradient), got {type(result).__name__}")
    value, gradient = np.asarray(result[0], dtype=np.float64), np.asarray(result[1], dtype=np.float64)
    if value.size != 1:
        raise ValueError(f"the log density must be one number, got shape {value.shape}")
    if gradient.shape != position.shape:
        raise ValueError(f"the gradient must have the shape of the position {position.shape}, got {gradient.shape}")
    if not np.isfinite(value).all():
        raise ValueError(f"the log density must be finite at the initial position, got {float(value.item())}")
    if not np.isfinite(gradient).all():
        raise ValueError("the gradient must be finite at the initial position")
    if check_gradient:
        _check_arrays(value_and_grad, position, gradient)
        precision = np.finfo(np.float64).eps
        for given in result:  # a density in single precision is held to less
            kind = np.asarray(given).dtype
            precision = max(precision, np.finfo(kind).eps) if kind.kind == "f" else precision
        _check_gradient(value_and_grad, position, float(value.item()), gradient, float(precision))
    return GradientState(position, float(value.item()), gradient)


def _check_arrays(value_and_grad: ValueAndGrad, position: Array, gradient: Array) -> None:
    """Refuse a density that writes into the position, or into the gradient that it gave before."""
    elsewhere = position + 1e-6 * np.maximum(1.0, np.abs(position))
    given, before = elsewhere.copy(), gradient.copy()
    value_and_grad(given)
    if not np.array_equal(given, elsewhere):
        raise ValueError("value_and_grad changed the position that it was given: it must leave it as it is")
    if not np.array_equal(gradient, before):
        raise ValueError("value_and_grad gives the same array at every call: the gradient must be a new one each time")


def _check_gradient(
    value_and_grad: ValueAndGrad, position: Array, value: float, gradient: Array, precision: float
) -> None:
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(len(position))
    direction /= np.linalg.norm(direction)
    double = precision < 1e-12
    width = (1e-5 if double else 1e-2) * max(1.0, float(np.abs(position).max()))
    above, below = (float(value_and_grad(position + sign * width * direction)[0]) for sign in (1.0, -1.0))
    if not (math.isfinite(above) and math.isfinite(below)):
        return
    expected, slope = float(gradient @ direction), (above - below) / (2.0 * width)
    # Rounding of the two values, and curvature over the width.
    noise = (1e-12 if double else 1e2 * precision) * abs(value) / width
    noise += 1e-3 * (abs(expected) + abs(slope)) + (1e-5 if double else 1e-2)
    bend = abs(above + below - 2.0 * value) / width
    if abs(expected - slope) > noise + bend:
        raise ValueError(
            f"the gradient disagrees with finite differences of the log density: along a random direction it gives "
            f"{expected:.6g}, differences give {slope:.6g}"
        )
    if not gradient.any():
        probes = [position + scale * rng.standard_normal(len(position)) for scale in (0.1, 1.0, 10.0, 100.0)]
        flat = all(float(v) == value and not np.any(g) for v, g in map(value_and_grad, probes))
        if flat:
            raise ValueError("the log density is constant: a flat target on the whole space cannot be normalised")


def first_step_size(
    rng: np.random.Generator, terrain: Landscape, state: GradientState, step_size: float, target: float = 0.8
) -> float:
    """Double or halve a step size until the acceptance of one leapfrog step crosses `target`."""
    direction = 0
    for _ in range(700):
        momentum = rng.standard_normal(len(state.position))
        before = 0.5 * float(momentum.dot(momentum)) - state.log_density
        _, momentum, log_density, _ = leapfrog(terrain, state.position, momentum, state.gradient, step_size)
        after = 0.5 * float(momentum.dot(momentum)) - log_density
        accepted = before - after > math.log(target)  # False for NaN
        turn = 1 if accepted else -1
        if direction and turn != direction:
            break
        direction = turn
        step_size *= 2.0**turn
        if step_size > 1e100:
            raise ValueError("every step is accepted however long: the log density does not depend on the position")
        if step_size < 1e-100:
            raise ValueError("no step is short enough to be accepted: is the log density continuous at the start?")
    return step_size


class OneRow:
    """A function of rows, for a single position."""

    def __init__(self, function: Callable[[Array], tuple[Any, Array]]):
        self._function = function

    def __call__(self, position: Array) -> tuple[float, Array]:
        result = self._function(position[np.newaxis])
        if not (isinstance(result, tuple) and len(result) == 2):
            raise ValueError(f"value_and_grad must return (log densities, gradients), got {type(result).__name__}")
        values, gradients = np.asarray(result[0]), np.asarray(result[1])
        if values.shape != (1,) or gradients.shape != (1, len(position)):
            raise ValueError(
                f"a vectorized value_and_grad must give shapes (n,) and (n, {len(position)}) for n rows, "
                f"got {values.shape} and {gradients.shape} for one"
            )
        return float(values[0]), gradients[0]


@dataclass(frozen=True)
class HamiltonianKernel:
    """What HMC and NUTS share: a target, a metric and a step size.

    Parameters
    ----------
    value_and_grad : callable
        Position (dim,) to the log density and its gradient (dim,).
    step_size : float or None, default=None
        Length of a leapfrog step. The warm-up begins with it (with 1 if it is None) and adapts it; without a warm-up
        it stays as it is.
    inverse_mass : array-like of shape (dim,) or (dim, dim), optional
        Variances (or covariance) of the target as far as they are known; ones at first.
    metric : {"diag", "dense", "unit"}, default="diag"
        What the warm-up learns of the inverse mass; "unit" learns nothing.
    target_accept : float, default=0.8
        Mean acceptance that the warm-up aims at.
    check_gradient : bool, default=True
        Compare the gradient with finite differences at the start.
    vectorized : bool, default=False
        Whether `value_and_grad` takes a row for each chain, (n, dim), and gives (n,) and (n, dim).
    """

    value_and_grad: ValueAndGrad
    step_size: float | None = None
    inverse_mass: Any = None
    metric: Metric = "diag"
    target_accept: float = 0.8
    check_gradient: bool = True
    vectorized: bool = False

    one_row: ValueAndGrad = field(init=False, repr=False, compare=False)

    #: Settings that the warm-up learns: what a saved trace keeps of a kernel.
    tuned = ("step_size", "inverse_mass")

    def __post_init__(self) -> None:
        if self.metric not in ("diag", "dense", "unit"):
            raise ValueError(f"metric must be 'diag', 'dense' or 'unit', got {self.metric!r}")
        if not 0 < self.target_accept < 1:
            raise ValueError(f"target_accept must lie between 0 and 1, got {self.target_accept!r}")
        if self.step_size is not None and not (self.step_size > 0 and math.isfinite(self.step_size)):
            raise ValueError(f"step_size must be positive, got {self.step_size!r}")
        if self.inverse_mass is not None:
            inverse_mass = np.asarray(self.inverse_mass, dtype=np.float64)
            diagonal = np.diagonal(inverse_mass) if inverse_mass.ndim == 2 else inverse_mass
            if inverse_mass.ndim not in (1, 2) or not (np.isfinite(inverse_mass).all() and (diagonal > 0).all()):
                raise ValueError("inverse_mass must be a vector of variances or a covariance matrix, positive")
            object.__setattr__(self, "inverse_mass", inverse_mass)
        # What every step needs is worked out once; it follows from the fields, so the record stays what it was.
        object.__setattr__(self, "one_row", OneRow(self.value_and_grad) if self.vectorized else self.value_and_grad)
        if self.inverse_mass is not None:
            object.__setattr__(self, "_terrain", landscape(self.one_row, self.inverse_mass))

    def init(self, rng: np.random.Generator, position: Any) -> GradientState:
        """State at a position."""
        state = initial_state(self.one_row, position, check_gradient=self.check_gradient)
        if self.inverse_mass is not None and len(self.inverse_mass) != len(state.position):
            raise ValueError(
                f"inverse_mass must be for {len(state.position)} coordinates, got shape {self.inverse_mass.shape}"
            )
        return state

    def terrain(self, dim: int) -> Landscape:
        """The target with its metric; ones where none is known."""
        if self.inverse_mass is None:
            return landscape(self.one_row, np.ones(dim))
        prepared: Landscape = self._terrain  # type: ignore[attr-defined]
        return prepared

    @property
    def used_step_size(self) -> float:
        """The step size, or 1 where none is known."""
        return self.step_size if self.step_size is not None else 1.0

    def strides(self, dim: int) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """What a drift and half a kick multiply by, forwards and backwards."""
        found: tuple[tuple[Array, Array], tuple[Array, Array]] | None = self.__dict__.get("_strides")
        if found is None:
            drift, kick = strides_of(self.terrain(dim), self.used_step_size)
            found = (drift, kick), (-drift, -kick)
            if self.inverse_mass is not None:  # the dimension is that of the metric
                object.__setattr__(self, "_strides", found)
        return found

    def adaptation(self, n_warmup: int) -> HamiltonianAdaptation:
        """Step size by dual averaging; the inverse mass from the draws, in windows."""
        return HamiltonianAdaptation(n_warmup, self.metric, self.target_accept)


H = TypeVar("H", bound=HamiltonianKernel)


class HamiltonianAdaptation:
    """Warm-up of HMC and NUTS."""

    def __init__(self, n_warmup: int, metric: Metric, target_accept: float):
        self._ends = window_ends(n_warmup) if metric != "unit" else ()
        self._metric = metric
        self._averaging = DualAveraging(target=target_accept)
        self._done = 0

    def start(self, rng: np.random.Generator, kernel: H, state: GradientState) -> H:
        """Find a step size to begin with."""
        inverse_mass = kernel.inverse_mass if kernel.inverse_mass is not None else np.ones(len(state.position))
        if self._metric == "dense" and inverse_mass.ndim == 1:
            inverse_mass = np.diag(inverse_mass)
        kernel = replace(kernel, inverse_mass=inverse_mass)
        terrain = kernel.terrain(len(state.position))
        step_size = first_step_size(rng, terrain, state, kernel.step_size or 1.0)
        self._averaging.restart(step_size)
        self._seen = RunningVariance(len(state.position), dense=self._metric == "dense")
        return replace(kernel, step_size=step_size)

    def update(self, rng: np.random.Generator, kernel: H, state: GradientState, info: Info) -> H:
        """Adapt the step size; at the end of a window, the inverse mass as well."""
        self._done += 1
        step_size = self._averaging.update(info["acceptance"])
        if not self._ends or self._done <= self._ends[0] or self._done > self._ends[-1]:
            return _with_step(kernel, step_size)
        self._seen.add(state.position)
        if self._done not in self._ends:
            return _with_step(kernel, step_size)
        inverse_mass = self._seen.regularised()
        if kernel.inverse_mass.ndim > inverse_mass.ndim:  # chains that move together need metrics of one shape
            inverse_mass = np.diag(inverse_mass)
        kernel = replace(kernel, inverse_mass=inverse_mass, step_size=step_size)
        self._seen = RunningVariance(len(state.position), dense=self._metric == "dense")
        step_size = first_step_size(rng, kernel.terrain(len(state.position)), state, step_size)
        self._averaging.restart(step_size)
        return _with_step(kernel, step_size)

    def finish(self, kernel: H) -> H:
        """Keep the averaged step size."""
        return _with_step(kernel, self._averaging.averaged)


def _with_step(kernel: H, step_size: float) -> H:
    """The kernel with another step size and the same prepared metric: cheap, as it happens at every step."""
    other: H = object.__new__(type(kernel))
    other.__dict__.update(kernel.__dict__)
    other.__dict__.pop("_strides", None)
    object.__setattr__(other, "step_size", step_size)
    return other
