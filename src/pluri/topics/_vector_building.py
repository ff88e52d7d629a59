# mypy: allow-untyped-defs, allow-untyped-calls
"""Pieces of compiled loops in explicit vector instructions of double precision; LLVM makes of them what there is.

Left to itself the compiler does the last columns of every row one by one, which is most of the time when there are
fifty topics. Rows are padded to whole vectors instead (`pluri.topics.lda.aligned_arrays`).
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils

from pluri.topics.lda.aligned_arrays import LANES

DOUBLE = ir.DoubleType()
VECTOR = ir.VectorType(DOUBLE, LANES)
INDEX = ir.IntType(64)
FUSED = ("contract",)


def array_of(context, builder, array_type, value):
    """The parts of an array that a compiled function was given."""
    return context.make_array(array_type)(context, builder, value)


def vector_at(builder, data, index):
    """Address of a whole vector from an index on."""
    return builder.bitcast(builder.gep(data, [index]), VECTOR.as_pointer())


def load(builder, data, index):
    """A whole vector from an index on."""
    return builder.load(vector_at(builder, data, index), align=8)


def splat(builder, scalar):
    """The same number in all lanes."""
    undefined = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def multiply_add(builder, running, left, right):
    """Running + left right, fused if the machine can."""
    return builder.fadd(running, builder.fmul(left, right, flags=FUSED), flags=FUSED)


def sum_lanes(builder, vector):
    """Sum over the lanes."""
    name = f"llvm.vector.reduce.fadd.v{LANES}f64"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(DOUBLE, [DOUBLE, VECTOR]), name)
    return builder.call(function, [ir.Constant(DOUBLE, 0.0), vector], fastmath=("reassoc",))


def are_plain(*arrays):
    """Whether all are contiguous arrays of double precision."""
    return all(isinstance(a, types.Array) and a.dtype == types.float64 and a.layout == "C" for a in arrays)
