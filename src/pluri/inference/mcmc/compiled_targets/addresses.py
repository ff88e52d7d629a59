"""How compiled code gets from an address to what lies there: a vector, a density, the data of a density.

Written for Numba's compiler: each function gives the type of its result, and the instructions that make it.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types as numba_types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic as numba_intrinsic
from numba.np.numpy_support import carray

#: Without types of their own: what the compiler makes is called with other arguments than it is written with.
types: Any = numba_types
intrinsic: Any = numba_intrinsic
njit: Any = numba.njit
borrowed: Any = impl_ret_borrowed


@intrinsic
def pointer_to_double(typing: Any, address: Any) -> Any:
    """An address as a pointer to numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float64)(types.int64), generate


@njit(inline="always")
def vector_at(address: int, dim: int) -> Any:
    """The vector of `dim` numbers at an address."""
    return carray(pointer_to_double(address), (dim,))


@intrinsic
def density_at(typing: Any, function: Any, x: Any, gradient: Any, dim: Any, data: Any) -> Any:
    """Call a density: ``double f(int64 x, int64 gradient, int64 dim, int64 data)`` at the address `function`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.DoubleType(), [word] * 4)
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return types.float64(*[types.int64] * 5), generate


def loader_of(data_type: Any) -> Any:
    """A function for compiled code that reads data of a type from their address."""

    @intrinsic
    def load(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            layout = context.get_value_type(data_type)
            value = builder.load(builder.inttoptr(arguments[0], layout.as_pointer()))
            return borrowed(context, builder, data_type, value)

        return data_type(types.int64), generate

    return load
