# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Small dense products in explicit four-wide vector instructions.

The compiler cannot keep a running vector of unknown length in registers, so a plain loop over ``out[j] += a * M[i, j]``
spends most of its time loading and storing `out`. Here each block of four columns is one vector value that lives in a
register while i runs. LLVM lowers the four-wide operations to whatever the machine has.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_LANES = 4
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, _LANES)
_INDEX = ir.IntType(64)
_CONTRACT = ("contract",)


def _data(context, builder, array_type, value):
    return context.make_array(array_type)(context, builder, value)


def _load_vector(builder, pointer):
    return builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)


def _splat(builder, scalar):
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [0] * _LANES))


def _product(initial, combine, merge):
    """Code generator of out_j = merge over i of combine(running_j, row_i, matrix_ij); width a multiple of four."""

    def generate(context, builder, signature, arguments):
        rows_type, _, matrix_type, out_type = signature.args
        rows = _data(context, builder, rows_type, arguments[0])
        matrix = _data(context, builder, matrix_type, arguments[2])
        out = _data(context, builder, out_type, arguments[3])
        width = cgutils.unpack_tuple(builder, out.shape, 1)[0]
        row = builder.gep(rows.data, [builder.mul(arguments[1], width)])
        one, step = ir.Constant(_INDEX, 1), ir.Constant(_INDEX, _LANES)
        start = ir.Constant(_VECTOR, [initial] * _LANES)
        running = [cgutils.alloca_once_value(builder, start) for _ in range(_LANES)]
        with cgutils.for_range_slice(builder, _INDEX(0), width, step, _INDEX) as (column, _):
            for place in running:
                builder.store(start, place)
            with cgutils.for_range_slice(builder, _INDEX(0), width, step, _INDEX) as (first, _):
                # Four independent chains hide the latency of the operation.
                index = first
                for place in running:
                    scalar = builder.load(builder.gep(row, [index]))
                    offset = builder.add(builder.mul(index, width), column)
                    entries = _load_vector(builder, builder.gep(matrix.data, [offset]))
                    builder.store(combine(builder, builder.load(place), _splat(builder, scalar), entries), place)
                    index = builder.add(index, one)
            parts = [builder.load(place) for place in running]
            total = merge(builder, merge(builder, parts[0], parts[1]), merge(builder, parts[2], parts[3]))
            target = builder.bitcast(builder.gep(out.data, [column]), _VECTOR.as_pointer())
            builder.store(total, target, align=8)
        return context.get_dummy_value()

    return generate


def _add(builder, left, right):
    return builder.fadd(left, right, flags=_CONTRACT)


def _multiply_add(builder, running, scalar, entries):
    return builder.fadd(running, builder.fmul(scalar, entries, flags=_CONTRACT), flags=_CONTRACT)


def _maximum(builder, left, right):
    return builder.select(builder.fcmp_ordered(">", left, right), left, right)


def _add_maximum(builder, running, scalar, entries):
    return _maximum(builder, builder.fadd(scalar, entries), running)


def _signature(rows, t, matrix, out):
    for array in (rows, matrix, out):
        if not (isinstance(array, types.Array) and array.dtype == types.float64 and array.layout == "C"):
            return None
    return types.void(rows, types.int64, matrix, out)


@intrinsic
def row_times_matrix(typing_context, rows, t, matrix, out):
    """out_j = sum_i rows[t, i] matrix[i, j]; all contiguous, width a multiple of four, out apart from the others."""
    signature = _signature(rows, t, matrix, out)
    return None if signature is None else (signature, _product(0.0, _multiply_add, _add))


@intrinsic
def row_plus_matrix_maximum(typing_context, rows, t, matrix, out):
    """out_j = max_i (rows[t, i] + matrix[i, j]); same layout."""
    signature = _signature(rows, t, matrix, out)
    return None if signature is None else (signature, _product(float("-inf"), _add_maximum, _maximum))


def _add_outer(context, builder, signature, arguments):
    """Code generator of matrix[i, j] += weight * left[t, i] * right[u, j]."""
    left_type, _, right_type, _, _, matrix_type = signature.args
    left = _data(context, builder, left_type, arguments[0])
    right = _data(context, builder, right_type, arguments[2])
    matrix = _data(context, builder, matrix_type, arguments[5])
    width = cgutils.unpack_tuple(builder, matrix.shape, 2)[1]
    left_row = builder.gep(left.data, [builder.mul(arguments[1], width)])
    right_row = builder.gep(right.data, [builder.mul(arguments[3], width)])
    one, step = ir.Constant(_INDEX, 1), ir.Constant(_INDEX, _LANES)
    with cgutils.for_range_slice(builder, _INDEX(0), width, one, _INDEX) as (i, _):
        scalar = builder.fmul(builder.load(builder.gep(left_row, [i])), arguments[4])
        factor = _splat(builder, scalar)
        row = builder.gep(matrix.data, [builder.mul(i, width)])
        with cgutils.for_range_slice(builder, _INDEX(0), width, step, _INDEX) as (j, _):
            place = builder.bitcast(builder.gep(row, [j]), _VECTOR.as_pointer())
            entries = _load_vector(builder, builder.gep(right_row, [j]))
            updated = _multiply_add(builder, builder.load(place, align=8), factor, entries)
            builder.store(updated, place, align=8)
    return context.get_dummy_value()


@intrinsic
def add_outer(typing_context, left, t, right, u, weight, matrix):
    """matrix[i, j] += weight left[t, i] right[u, j]; same layout, matrix apart from the others."""
    if _signature(left, t, right, matrix) is None:
        return None
    return types.void(left, types.int64, right, types.int64, types.float64, matrix), _add_outer
