# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Sixteen numbers at a time in compiled loops.

Compilers turn loops over arrays into vector instructions, but not the one that a draw from K weights needs: cumulate,
compare, count. Here a variable of a compiled loop can hold sixteen float32 numbers (`load`, `add`, `cumulated`, ...);
LLVM makes of it what the processor has, one AVX-512 register or several smaller ones.
"""

from __future__ import annotations

from typing import Any

import numba.extending
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

intrinsic: Any = numba.extending.intrinsic

WIDTH = 16

_FLOAT, _INT, _LONG = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_FLOATS, _INTS = ir.VectorType(_FLOAT, WIDTH), ir.VectorType(_INT, WIDTH)
_REORDER = ("contract", "reassoc", "nsz")


class Lanes(types.Type):
    """Type of sixteen float32 numbers."""

    def __init__(self):
        super().__init__(name="Lanes")


_lanes = Lanes()
_single = types.float32


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, frontend_type):
        super().__init__(manager, frontend_type, _FLOATS)


def _address(context, builder, array_type, array, index, vector):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _constant(vector, values):
    return ir.Constant(vector, list(values))


def _spread(builder, scalar, vector):
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(_INT, 0))
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), _constant(_INTS, [0] * WIDTH))


@intrinsic
def load(typing, array, index):
    """Sixteen numbers of a one-dimensional float32 or int32 array from an index on."""
    whole = isinstance(array.dtype, types.Integer)

    def generate(context, builder, signature, arguments):
        vector = _INTS if whole else _FLOATS
        values = builder.load(_address(context, builder, signature.args[0], *arguments, vector), align=4)
        return builder.sitofp(values, _FLOATS) if whole else values

    return _lanes(array, types.int64), generate


@intrinsic
def store(typing, array, index, values):
    """Write sixteen numbers into a float32 array."""

    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], arguments[0], arguments[1], _FLOATS)
        builder.store(arguments[2], address, align=4)

    return types.void(array, types.int64, _lanes), generate


@intrinsic
def spread(typing, number):
    """The same number sixteen times."""

    def generate(context, builder, signature, arguments):
        return _spread(builder, arguments[0], _FLOATS)

    return _lanes(_single), generate


def _operation(name):
    @intrinsic
    def operation(typing, left, right):
        def generate(context, builder, signature, arguments):
            return getattr(builder, name)(*arguments, flags=_REORDER)

        return _lanes(_lanes, _lanes), generate

    return operation


add, subtract, multiply = _operation("fadd"), _operation("fsub"), _operation("fmul")


@intrinsic
def replaced(typing, values, lane, number):
    """`values` with `number` in a lane; unchanged if there is no such lane."""

    def generate(context, builder, signature, arguments):
        values, lane, number = arguments
        here = _spread(builder, builder.trunc(lane, _INT), _INTS)
        there = builder.icmp_signed("==", _constant(_INTS, range(WIDTH)), here)
        return builder.select(there, _spread(builder, number, _FLOATS), values)

    return _lanes(_lanes, types.int64, _single), generate


@intrinsic
def cumulated(typing, values):
    """Sums of the first, the first two, ... lanes, in four additions."""

    def generate(context, builder, signature, arguments):
        values, zeros = arguments[0], _constant(_FLOATS, [0.0] * WIDTH)
        shift = 1
        while shift < WIDTH:
            order = [lane - shift + WIDTH if lane >= shift else 0 for lane in range(WIDTH)]
            values = builder.fadd(values, builder.shuffle_vector(zeros, values, _constant(_INTS, order)))
            shift *= 2
        return values

    return _lanes(_lanes), generate


@intrinsic
def total(typing, values):
    """Sum of all lanes."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(_FLOAT, [_FLOAT, _FLOATS])
        reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fadd.v{WIDTH}f32")
        return builder.call(reduce, [ir.Constant(_FLOAT, 0.0), arguments[0]], fastmath=_REORDER)

    return _single(_lanes), generate


@intrinsic
def last(typing, values):
    """Number in the last lane."""

    def generate(context, builder, signature, arguments):
        return builder.extract_element(arguments[0], ir.Constant(_INT, WIDTH - 1))

    return _single(_lanes), generate


@intrinsic
def lane_of(typing, values, lane):
    """Number in a lane."""

    def generate(context, builder, signature, arguments):
        return builder.extract_element(arguments[0], builder.trunc(arguments[1], _INT))

    return _single(_lanes, types.int64), generate


@intrinsic
def count_at_most(typing, values, bound):
    """How many lanes are at most `bound`."""

    def generate(context, builder, signature, arguments):
        below = builder.fcmp_ordered("<=", arguments[0], _spread(builder, arguments[1], _FLOATS))
        return builder.zext(builder.ctpop(builder.bitcast(below, ir.IntType(WIDTH))), _LONG)

    return types.uint64(_lanes, _single), generate


@intrinsic
def lowest_bit(typing, bits):
    """Position of the lowest bit that is set; some must be."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def prefetch(typing, array, index):
    """Ask for an entry of an array that will be needed soon."""

    def generate(context, builder, signature, arguments):
        byte = ir.IntType(8).as_pointer()
        address = _address(context, builder, signature.args[0], *arguments, ir.IntType(8))
        kind = ir.FunctionType(ir.VoidType(), [byte, _INT, _INT, _INT])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(ask, [address, ir.Constant(_INT, 0), ir.Constant(_INT, 3), ir.Constant(_INT, 1)])

    return types.void(array, types.int64), generate
