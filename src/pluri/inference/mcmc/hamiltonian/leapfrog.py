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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: A position (dim,) to its log density and the gradient (dim,).
ValueAndGrad = Callable[[Array], tuple[float, Array]]
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
    value_and_grad: ValueAndGrad, position: Array, value: float, gradient: Array, precision: float, again: bool = True
) -> None:
    """Hold the gradient against differences here, and where that tells nothing, as at a mode, a step away too."""
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
    if again and max(abs(expected), abs(slope)) <= noise + bend:
        elsewhere = position + 0.1 * max(1.0, float(np.abs(position).max())) * direction
        result = value_and_grad(elsewhere)
        there, slopes = float(np.asarray(result[0]).item()), np.array(result[1], dtype=np.float64)
        if math.isfinite(there) and np.isfinite(slopes).all():
            _check_gradient(value_and_grad, elsewhere, there, slopes, precision, again=False)
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
