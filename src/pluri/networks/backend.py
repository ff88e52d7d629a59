"""JAX, equinox and optax: imported here and nowhere else in this folder, so that their absence is one sentence."""

from __future__ import annotations

import contextlib
from typing import Any

from pluri.engine.extras import import_extra

PURPOSE = "pluri.networks"

jax: Any = import_extra("jax", PURPOSE, extra="jax")
equinox: Any = import_extra("equinox", PURPOSE, extra="jax")
optax: Any = import_extra("optax", PURPOSE, extra="jax")
jnp: Any = jax.numpy
ravel_pytree: Any = import_extra("jax.flatten_util", PURPOSE, extra="jax").ravel_pytree


def double_precision() -> contextlib.AbstractContextManager[Any]:
    """A block in which new arrays have double precision; networks are trained in single precision otherwise."""
    # Called jax.experimental.enable_x64 before it moved.
    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()
