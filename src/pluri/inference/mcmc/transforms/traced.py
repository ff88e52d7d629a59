"""The transforms of a `Space` in `jax.numpy`, and densities of constrained variables that JAX can trace.

The formulas are those of `scalars`, `vectors` and `matrices`; gradients are JAX's own, so that only the variables and
the logarithm of the Jacobian are given here. JAX is imported when a density is first called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.engine.extras import import_extra
from pluri.inference.mcmc.transforms.matrices import CorrelationCholesky, CovarianceCholesky
from pluri.inference.mcmc.transforms.scalars import Interval, LowerBound, Positive, Real, Transform
from pluri.inference.mcmc.transforms.vectors import Ordered, Simplex

if TYPE_CHECKING:
    from pluri.inference.mcmc.transforms.space import Space


class JaxDensity:
    """Log density of the free vector of a space, from that of its variables, both in JAX.

    Parameters
    ----------
    space : Space
    log_density : callable
        Dict of the variables, JAX arrays, to their log density up to a constant.
    """

    def __init__(self, space: Space, log_density: Callable[[Mapping[str, Any]], Any]):
        self.space, self.log_density = space, log_density

    def __call__(self, vector: Any) -> Any:
        values, volume = traced_variables(self.space, vector)
        return self.log_density(values) + volume


def traced_variables(space: Space, vector: Any) -> tuple[dict[str, Any], Any]:
    """Variables of a free vector, by name, and the logarithm of the Jacobian."""
    jax = import_extra("jax", "Space.jax_density", extra="jax")
    vector = jax.numpy.asarray(vector)
    if vector.shape != (space.size,):
        raise ValueError(f"the vector must have {space.size} entries, got shape {vector.shape}")
    values, volume, start = {}, jax.numpy.zeros((), vector.dtype), 0
    for name, transform in space.variables.items():
        values[name], term = traced(transform, vector[start : start + transform.size], jax)
        volume = volume + term
        start += transform.size
    return values, volume


@singledispatch
def traced(transform: Transform, free: Any, jax: Any) -> tuple[Any, Any]:
    """The variable and ``log |dT/du|``, in JAX."""
    raise TypeError(f"{type(transform).__name__} cannot be traced by JAX yet")


@traced.register
def _(transform: Real, free: Any, jax: Any) -> tuple[Any, Any]:
    return free.reshape(transform.shape), 0.0


@traced.register
def _(transform: Positive, free: Any, jax: Any) -> tuple[Any, Any]:
    return jax.numpy.exp(free).reshape(transform.shape), free.sum()


@traced.register
def _(transform: LowerBound, free: Any, jax: Any) -> tuple[Any, Any]:
    bound: Any = transform._bound  # type: ignore[attr-defined]
    return (bound + transform.sign * jax.numpy.exp(free)).reshape(transform.shape), free.sum()


@traced.register
def _(transform: Interval, free: Any, jax: Any) -> tuple[Any, Any]:
    low, width, log_width = transform._low, transform._width, transform._log_width  # type: ignore[attr-defined]
    value = (low + width * jax.nn.sigmoid(free)).reshape(transform.shape)
    return value, log_width - (jax.nn.softplus(free) + jax.nn.softplus(-free)).sum()


@traced.register
def _(transform: Simplex, free: Any, jax: Any) -> tuple[Any, Any]:
    jnp = jax.numpy
    logit = free.reshape(*transform.shape[:-1], transform.k - 1) - transform._offset  # type: ignore[attr-defined]
    log_left = jnp.cumsum(-jax.nn.softplus(logit), axis=-1)
    before = jnp.concatenate([jnp.zeros_like(log_left[..., :1]), log_left[..., :-1]], axis=-1)
    log_value = jnp.concatenate([before - jax.nn.softplus(-logit), log_left[..., -1:]], axis=-1)
    return jnp.exp(log_value), log_value.sum()


@traced.register
def _(transform: Ordered, free: Any, jax: Any) -> tuple[Any, Any]:
    jnp = jax.numpy
    free = free.reshape(transform.shape)
    if transform.positive:
        return jnp.cumsum(jnp.exp(free), axis=-1), free.sum()
    gaps = jnp.concatenate([free[..., :1], jnp.exp(free[..., 1:])], axis=-1)
    return jnp.cumsum(gaps, axis=-1), free[..., 1:].sum()


@traced.register
def _(transform: CovarianceCholesky, free: Any, jax: Any) -> tuple[Any, Any]:
    jnp, k, lead = jax.numpy, transform.k, transform.shape[:-2]
    diagonal: Any = transform._diagonal  # type: ignore[attr-defined]
    triangle, power, constant = transform._triangle, transform._power, transform._constant  # type: ignore[attr-defined]
    entries = free.reshape(*lead, -1)
    logarithms = entries[..., diagonal]
    entries = entries.at[..., diagonal].set(jnp.exp(logarithms))
    factor = jnp.zeros((*lead, k * k), free.dtype).at[..., triangle].set(entries).reshape(transform.shape)
    value = factor @ jnp.swapaxes(factor, -1, -2) if transform.whole else factor
    return value, (logarithms * power).sum() + constant


@traced.register
def _(transform: CorrelationCholesky, free: Any, jax: Any) -> tuple[Any, Any]:
    jnp, k, lead = jax.numpy, transform.k, transform.shape[:-2]
    triangle, power = transform._triangle, transform._power  # type: ignore[attr-defined]
    spread = jnp.zeros((*lead, k * k), free.dtype).at[..., triangle].set(free.reshape(*lead, -1))
    spread = spread.reshape(transform.shape)
    # log sqrt(1 - tanh^2 u) = -log cosh u
    log_left = math.log(2.0) - spread - jax.nn.softplus(-2.0 * spread)
    before = jnp.exp(jnp.cumsum(log_left, axis=-1) - log_left)
    factor = jnp.where(np.eye(k, dtype=bool), before, jnp.tanh(spread) * before)
    value = factor @ jnp.swapaxes(factor, -1, -2) if transform.whole else factor
    return value, (power * log_left).sum()
