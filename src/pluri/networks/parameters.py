"""Parameters of a network as plain arrays by name, for files and fitted attributes, and back.

A network is an equinox module, a tree whose leaves are arrays. A fitted estimator keeps a dict of NumPy arrays, which
`pluri.io` saves without pickle; the tree is made anew from the settings and filled. What does not fit is refused in one
sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.networks.backend import equinox, jax, jnp

Arrays = dict[str, NDArray[Any]]
#: From a JAX key to a network with its first parameters.
Make = Callable[[Any], Any]


def to_arrays(network: Any) -> Arrays:
    """Leaves of a network by name, as NumPy arrays.

    Examples
    --------
    >>> import equinox, jax
    >>> from pluri.networks.parameters import to_arrays
    >>> sorted(to_arrays(equinox.nn.Linear(3, 2, key=jax.random.PRNGKey(0))))
    ['bias', 'weight']
    """
    paths, _ = jax.tree_util.tree_flatten_with_path(network)
    return {_name(path): np.asarray(leaf) for path, leaf in paths}


def from_arrays(arrays: Mapping[str, Any], make: Make) -> Any:
    """The network of `make` with these arrays in place of its first parameters.

    Raises
    ------
    ValueError
        If an array is missing, too many, of another shape, or not finite.
    """
    skeleton = structure_of(make)
    paths, structure = jax.tree_util.tree_flatten_with_path(skeleton)
    expected = {_name(path): leaf for path, leaf in paths}
    for name in sorted(expected.keys() ^ arrays.keys()):
        what = "lacks" if name in expected else "must not hold"
        raise ValueError(f"params_ {what} {name!r}")
    leaves = []
    for name, leaf in expected.items():
        array = np.asarray(arrays[name])
        if array.shape != leaf.shape or array.dtype.kind != np.dtype(leaf.dtype).kind or not array.dtype.isnative:
            raise ValueError(
                f"params_[{name!r}] must have shape {leaf.shape} and type {leaf.dtype}, got {array.shape} {array.dtype}"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"params_[{name!r}] must be finite")
        leaves.append(jnp.asarray(array))
    return jax.tree_util.tree_unflatten(structure, leaves)


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path).lstrip(".")


def structure_of(make: Make) -> Any:
    """The network of `make` with shapes in place of arrays; nothing is computed."""
    return equinox.filter_eval_shape(make, jax.ShapeDtypeStruct((2,), np.uint32))


def key_from(rng: np.random.Generator) -> Any:
    """A JAX key drawn from a NumPy generator; compiles nothing."""
    return jnp.asarray(rng.integers(2**32, size=2, dtype=np.uint32))
