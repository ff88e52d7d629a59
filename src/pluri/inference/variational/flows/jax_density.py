"""Flows of flowjax behind the same few functions as ours: coupling, spline and masked autoregressive flows.

The record holds settings only; what JAX compiles for it is kept in a cache, so that a fitted model is its settings
and one array of parameters. JAX computes in single precision here, unless the program has asked for double.

References
----------
Ward, flowjax: distributions and normalizing flows in JAX, github.com/danielward27/flowjax.
Papamakarios, Pavlakou and Murray (2017), Masked autoregressive flow for density estimation, NeurIPS.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.extras import import_extra
from pluri.inference.variational.flows.layer import Array

JAX_FLOWS = ("coupling", "spline", "autoregressive")


@dataclass(frozen=True)
class JaxDensity:
    """A flow of flowjax.

    Parameters
    ----------
    kind : {"coupling", "spline", "autoregressive"}
        Affine coupling, spline coupling, or masked autoregressive with splines.
    dim, n_layers : int
    hidden : tuple of int
        Hidden layers of the networks, which must all have the same size.
    n_bins, bound
        Pieces of each spline, and half the width of its box.
    key : int
        Makes the masks, permutations and first parameters.
    """

    kind: str
    dim: int
    n_layers: int
    hidden: tuple[int, ...]
    n_bins: int
    bound: float
    key: int

    def __post_init__(self) -> None:
        if self.kind not in JAX_FLOWS:
            raise ValueError(f"flow must be one of {JAX_FLOWS} with backend='jax', got {self.kind!r}")
        if len(set(self.hidden)) != 1:
            raise ValueError(f"hidden must be layers of one size with backend='jax', got {self.hidden}")
        if self.dim == 1 and self.kind != "autoregressive":
            raise ValueError(
                f"flow must be 'autoregressive' with backend='jax' for one column, got {self.kind!r}; "
                "backend='numpy' takes all flows"
            )

    def initialize(self, rng: np.random.Generator) -> Array:
        """See `DensityModel.initialize`."""
        return _compile(self).start.copy()

    def loss_and_gradient(self, parameters: Array, X: Array, weights: Array) -> tuple[float, Array]:
        """See `DensityModel.loss_and_gradient`."""
        padded = _padded(X)
        shares = np.zeros(len(padded))
        shares[: len(X)] = weights / len(X)
        loss, gradient = _compile(self).loss_and_gradient(parameters, padded, shares)
        return float(loss), np.asarray(gradient, dtype=np.float64)

    def encode(self, parameters: Array, X: Array) -> tuple[Array, Array]:
        """See `DensityModel.encode`."""
        Z, log_prob = _compile(self).encode(parameters, _padded(X))
        return np.asarray(Z, dtype=np.float64)[: len(X)], np.asarray(log_prob, dtype=np.float64)[: len(X)]

    def decode(self, parameters: Array, Z: Array) -> Array:
        """See `DensityModel.decode`."""
        return np.asarray(_compile(self).decode(parameters, _padded(Z)), dtype=np.float64)[: len(Z)]


def _padded(X: Array) -> Array:
    """Rows of zeros up to a power of two: JAX compiles anew for each shape, which takes seconds."""
    n_rows = max(256, 1 << (len(X) - 1).bit_length())
    return np.pad(X, ((0, n_rows - len(X)), (0, 0)))


class _Compiled(NamedTuple):
    start: Array
    loss_and_gradient: Any
    encode: Any
    decode: Any


@lru_cache(maxsize=8)
def _compile(model: JaxDensity) -> _Compiled:
    purpose = "A flow with backend='jax'"
    jax = import_extra("jax", purpose, extra="jax")
    import_extra("flowjax", purpose, extra="jax")
    flows, bijections, distributions = (
        import_extra(f"flowjax.{part}", purpose, extra="jax") for part in ("flows", "bijections", "distributions")
    )
    equinox, paramax = (import_extra(name, purpose, extra="jax") for name in ("equinox", "paramax"))
    flatten = import_extra("jax.flatten_util", purpose, extra="jax").ravel_pytree
    jnp = jax.numpy

    splines = bijections.RationalQuadraticSpline(knots=model.n_bins, interval=model.bound)
    make = flows.masked_autoregressive_flow if model.kind == "autoregressive" else flows.coupling_flow
    built = make(
        jax.random.key(model.key),
        # Its mean and scale are parameters too: learned, the noise would no longer be standard normal.
        base_dist=paramax.non_trainable(distributions.Normal(jnp.zeros(model.dim))),
        flow_layers=model.n_layers,
        nn_width=model.hidden[0],
        nn_depth=len(model.hidden),
        **({} if model.kind == "coupling" else {"transformer": splines}),
    )
    learned, fixed = equinox.partition(
        built, equinox.is_inexact_array, is_leaf=lambda leaf: isinstance(leaf, paramax.NonTrainable)
    )
    flat, restore = flatten(learned)

    def flow(parameters: Any) -> Any:
        return paramax.unwrap(equinox.combine(restore(parameters.astype(flat.dtype)), fixed))

    def loss(parameters: Any, X: Any, weights: Any) -> Any:
        return -jnp.sum(weights * flow(parameters).log_prob(X))

    def encode(parameters: Any, X: Any) -> Any:
        current = flow(parameters)
        return jax.vmap(current.bijection.inverse)(X), current.log_prob(X)

    def decode(parameters: Any, Z: Any) -> Any:
        return jax.vmap(flow(parameters).bijection.transform)(Z)

    start = np.asarray(flat, dtype=np.float64)
    return _Compiled(start, jax.jit(jax.value_and_grad(loss)), jax.jit(encode), jax.jit(decode))
