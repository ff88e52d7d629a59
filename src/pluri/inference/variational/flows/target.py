"""The density to be approximated: a function of many points at a time, whose answers are checked.

A target is ``log p~(z)``, not normalised, with its gradient. Variational inference with samples needs both finite
wherever the approximation puts a sample, and something to fit: a constant is not a density on R^d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluri.engine.extras import import_extra
from pluri.inference.variational.flows.layer import Array

LogDensity = Callable[[Array], Any]


@dataclass(frozen=True)
class Target:
    """A log density with or without a gradient, on rows of `dim` numbers.

    Parameters
    ----------
    function : callable
        From (n, dim) to values (n,), or to a pair of values and gradients (n, dim).
    dim : int
    name : str
        What the caller knows the function as, for messages.
    """

    function: LogDensity
    dim: int
    name: str = "log_density_and_grad"

    def __call__(self, z: Array) -> tuple[Array, Array]:
        """Values and gradients at the rows of z; ValueError if either is not finite or has the wrong shape."""
        answer = self.function(z)
        if not (isinstance(answer, tuple | list) and len(answer) == 2):
            raise ValueError(
                f"{self.name} must return a pair (values of shape (n,), gradients of shape (n, {self.dim})), "
                f"got {type(answer).__name__}"
            )
        values = self._values(answer[0], z)
        gradient = np.asarray(answer[1], dtype=np.float64)
        if gradient.shape != z.shape:
            raise ValueError(
                f"{self.name} must return gradients of shape {z.shape} for {len(z)} points, got {gradient.shape}"
            )
        self._refuse(~np.isfinite(gradient).all(axis=1), z, gradient, "a finite gradient")
        return values, gradient

    def values(self, z: Array) -> Array:
        """Values only; the function may return the gradient too, which is then not looked at."""
        answer = self.function(z)
        return self._values(answer[0] if isinstance(answer, tuple) else answer, z)

    def _values(self, answer: Any, z: Array) -> Array:
        values = np.asarray(answer, dtype=np.float64)
        if values.shape != (len(z),):
            raise ValueError(
                f"{self.name} must take a row for each point and return values of shape ({len(z)},), got {values.shape}"
            )
        self._refuse(~np.isfinite(values), z, values, "a finite log density")
        return values

    def _refuse(self, bad: Any, z: Array, got: Array, wanted: str) -> None:
        if bad.any():
            first = int(np.argmax(bad))
            raise ValueError(
                f"{self.name} must give {wanted} wherever the approximation has samples, got {got[first]} at "
                f"{np.array2string(z[first], precision=4)}: use coordinates in which the density is positive everywhere"
            )


def check_target(target: Target, rng: np.random.Generator, *, with_gradient: bool = True) -> None:
    """Look at a few points before a long fit: shapes, finiteness, and that the density is not constant.

    Raises
    ------
    ValueError
        Also if the gradient is plainly not that of the values.
    """
    if not isinstance(target.dim, int | np.integer) or isinstance(target.dim, bool) or target.dim < 1:
        raise ValueError(f"dim must be an integer of at least 1, got {target.dim!r}")
    if not callable(target.function):
        raise ValueError(f"{target.name} must be callable, got {type(target.function).__name__}")
    z = 2.0 * rng.standard_normal((64, target.dim))
    values, gradient = target(z) if with_gradient else (target.values(z), None)
    if np.ptp(values) == 0 and (gradient is None or not gradient.any()):
        raise ValueError(
            f"{target.name} must be a density that can be normalised, got the constant {values[0]:.6g} at all points"
        )
    if gradient is not None:
        _check_gradient(target, z[:8], gradient[:8], rng)


def _check_gradient(target: Target, z: Array, gradient: Array, rng: np.random.Generator) -> None:
    direction = rng.standard_normal(z.shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    step = 1e-5 * (1.0 + np.abs(z).max())
    measured = (target.values(z + step * direction) - target.values(z - step * direction)) / (2.0 * step)
    claimed = np.einsum("nd,nd->n", gradient, direction)
    size = np.linalg.norm(gradient, axis=1) + np.abs(measured)
    # A kink or single precision may spoil some of the points; a wrong formula spoils nearly all.
    if np.median(np.abs(measured - claimed) / np.where(size > 0, size, 1.0)) > 0.05:
        raise ValueError(
            f"{target.name} must return the gradient of its values, got {claimed[0]:.6g} for a slope of "
            f"{measured[0]:.6g} by finite differences at {np.array2string(z[0], precision=4)}"
        )


def differentiate(log_density: Callable[[Any], Any]) -> LogDensity:
    """Values and gradients of many points from a JAX log density of one point.

    Parameters
    ----------
    log_density : callable
        From an array of shape (dim,) to a number, in ``jax.numpy``.

    Returns
    -------
    callable
        From (n, dim) to a pair of NumPy arrays (n,) and (n, dim), compiled for each n. JAX computes in single
        precision unless ``jax.config.update("jax_enable_x64", True)`` was called.
    """
    jax = import_extra("jax", "The gradient of a log density", extra="jax")
    compiled = jax.jit(jax.vmap(jax.value_and_grad(log_density)))

    def values_and_gradients(z: Array) -> tuple[Array, Array]:
        values, gradients = compiled(z)
        return np.asarray(values, dtype=np.float64), np.asarray(gradients, dtype=np.float64)

    return values_and_gradients
