"""A density that Numba compiles, behind one address: compiled samplers call it without knowing what it is.

A sampler that took the density as a Numba function would be compiled anew for each density. Here the density is
compiled alone, as a C function of four whole numbers, and its data (arrays and numbers, in tuples) lie behind the last:
so that one sampler, compiled once and cached on disk, serves them all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.callees import callee
from pluri.engine.compiler_shortcuts import hurried

Array = NDArray[np.float64]


class Target(NamedTuple):
    """What compiled code needs of a density: the addresses of the function and of its data."""

    function: int
    data: int


class CompiledDensity:
    """A log density with gradient, compiled; from Python it is called like a plain ``value_and_grad``.

    Parameters
    ----------
    function : callable
        ``function(x, gradient, data) -> float``, which writes into `gradient`; without `data` if that is None.
    data : tuple of arrays, numbers and tuples of them, an array, a number, or None
    """

    has_gradient = True

    def __init__(self, function: Callable[..., float], data: Any = None):
        if not callable(function):
            raise ValueError(f"a compiled density must be a function, got {type(function).__name__}")
        self.function, self.data = function, _plain_data(data)
        # Kept: the compiled code reads the arrays where they lie.
        self._words = np.array(_words(self.data), dtype=np.int64)
        self._code = _compiled_code(function, None if data is None else _type_of(self.data), self.has_gradient)
        self.target = Target(int(self._code.address), int(self._words.ctypes.data))

    def __call__(self, position: Array) -> Any:
        gradient = np.zeros(len(position))
        return self._value(position, gradient), gradient

    def _value(self, position: Array, gradient: Array) -> float:
        position = np.ascontiguousarray(position, dtype=np.float64)
        return float(self._code.ctypes(position.ctypes.data, gradient.ctypes.data, len(position), self.target.data))

    def __reduce__(self) -> Any:
        return type(self), (self.function, self.data)


class CompiledLogDensity(CompiledDensity):
    """A log density without a gradient, compiled: ``function(x, data) -> float``, called like a plain one."""

    has_gradient = False

    def __call__(self, position: Array) -> float:
        return self._value(position, position)


def _plain_data(data: Any) -> Any:
    """Data with numbers as Python's own: whole ones and others."""
    if data is None or isinstance(data, np.ndarray):
        return data
    if isinstance(data, tuple):
        parts = [_plain_data(part) for part in data]
        return type(data)(*parts) if hasattr(data, "_fields") else tuple(parts)
    if isinstance(data, int | np.integer) and not isinstance(data, bool):
        return int(data)
    if isinstance(data, float | np.floating):
        return float(data)
    raise ValueError(
        f"data must be arrays and numbers, or tuples of them, got {type(data).__name__}; turn lists into arrays"
    )


def _type_of(data: Any) -> Any:
    import numba

    typeof: Any = numba.typeof
    found = typeof(data)
    if isinstance(data, np.ndarray) and not isinstance(found, numba.types.Array):
        raise ValueError(f"data must be arrays of numbers, got dtype {data.dtype}")
    return found


def _words(data: Any) -> list[int]:
    """Data as Numba lays them out, in words of eight bytes; arrays without an owner, so that nobody counts them."""
    if data is None:
        return [0]
    if isinstance(data, np.ndarray):
        return [0, 0, data.size, data.itemsize, data.ctypes.data, *data.shape, *data.strides]
    if isinstance(data, tuple):
        return [word for part in data for word in _words(part)]
    return [data if isinstance(data, int) else int(np.float64(data).view(np.int64))]


@cache
def _compiled_code(function: Callable[..., float], data_type: Any, has_gradient: bool) -> Any:
    """The density as a C function ``double f(int64 x, int64 gradient, int64 dim, int64 data)``.

    An error in it, such as a matrix that cannot be factored where a trajectory runs away, counts as a density of zero.
    """
    import numba
    from numba import types

    from pluri.inference.mcmc.compiled_targets.addresses import loader_of, vector_at

    # Without machine code of its own: the C function has it.
    options = getattr(function, "targetoptions", {"error_model": "numpy"})
    options = {name: value for name, value in options.items() if name != "nopython"}
    density = callee(getattr(function, "py_func", function), options)
    load: Any = None if data_type is None else loader_of(data_type)
    if has_gradient and load is None:

        def asked(x: int, gradient: int, dim: int, data: int) -> float:
            return density(vector_at(x, dim), vector_at(gradient, dim))

    elif has_gradient:

        def asked(x: int, gradient: int, dim: int, data: int) -> float:
            return density(vector_at(x, dim), vector_at(gradient, dim), load(data))

    elif load is None:

        def asked(x: int, gradient: int, dim: int, data: int) -> float:
            return density(vector_at(x, dim))

    else:

        def asked(x: int, gradient: int, dim: int, data: int) -> float:
            return density(vector_at(x, dim), load(data))

    ask: Any = numba.njit(inline="always")(asked)

    def at(x: int, gradient: int, dim: int, data: int) -> float:
        try:
            return ask(x, gradient, dim, data)
        except Exception:
            return -np.inf

    signature = types.float64(types.int64, types.int64, types.int64, types.int64)
    cfunc: Any = numba.cfunc
    with hurried():
        return cfunc(signature, nopython=True, error_model="numpy")(at)
