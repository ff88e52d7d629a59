# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""The two products of an E-step over the words of a document, in explicit vector instructions, four words at a time.

Left to itself the compiler does the last columns of every row one by one, which is most of the time when there are
fifty topics. Rows are padded to whole vectors instead, and LLVM lowers these to whatever the machine has.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Topics of a word, and words of a document, are padded to a multiple of this.
LANES = 8
#: Words that are done at a time.
WORDS = 4

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_INDEX = ir.IntType(64)
_FUSED = ("contract",)


def _data(context, builder, array_type, value):
    return context.make_array(array_type)(context, builder, value)


def _pointer(builder, data, index):
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


def _load(builder, data, index):
    return builder.load(_pointer(builder, data, index), align=8)


def _splat(builder, scalar):
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _multiply_add(builder, running, left, right):
    return builder.fadd(running, builder.fmul(left, right, flags=_FUSED), flags=_FUSED)


def _sum_lanes(builder, vector):
    name = f"llvm.vector.reduce.fadd.v{LANES}f64"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_DOUBLE, [_DOUBLE, _VECTOR]), name)
    return builder.call(function, [ir.Constant(_DOUBLE, 0.0), vector], fastmath=("reassoc",))


def _blocks_of_words(context, builder, signature, arguments, body):
    """Call `body(first word, places of the four rows, width, arrays)` for every four words."""
    rows, first, second = (_data(context, builder, signature.args[i], arguments[i]) for i in (0, 3, 4))
    width = arguments[2]
    with cgutils.for_range_slice(builder, _INDEX(0), arguments[1], _INDEX(WORDS), _INDEX) as (word, _):
        starts = [builder.mul(builder.add(word, _INDEX(i)), width) for i in range(WORDS)]
        body(word, starts, width, rows.data, first.data, second.data)
    return context.get_dummy_value()


def _generate_products(context, builder, signature, arguments):
    zero = ir.Constant(_VECTOR, [0.0] * LANES)
    running = [cgutils.alloca_once_value(builder, zero) for _ in range(WORDS)]

    def body(word, starts, width, rows, factors, out):
        for place in running:
            builder.store(zero, place)
        with cgutils.for_range_slice(builder, _INDEX(0), width, _INDEX(LANES), _INDEX) as (column, _):
            vector = _load(builder, factors, column)
            for start, place in zip(starts, running):
                row = _load(builder, rows, builder.add(start, column))
                builder.store(_multiply_add(builder, builder.load(place), vector, row), place)
        for i, place in enumerate(running):
            target = builder.gep(out, [builder.add(word, _INDEX(i))])
            builder.store(_sum_lanes(builder, builder.load(place)), target)

    return _blocks_of_words(context, builder, signature, arguments, body)


def _generate_sums(context, builder, signature, arguments):
    def body(word, starts, width, rows, ratios, out):
        places = [builder.gep(ratios, [builder.add(word, _INDEX(i))]) for i in range(WORDS)]
        factors = [_splat(builder, builder.load(place)) for place in places]
        with cgutils.for_range_slice(builder, _INDEX(0), width, _INDEX(LANES), _INDEX) as (column, _):
            total = _load(builder, out, column)
            for start, factor in zip(starts, factors):
                total = _multiply_add(builder, total, factor, _load(builder, rows, builder.add(start, column)))
            builder.store(total, _pointer(builder, out, column), align=8)

    return _blocks_of_words(context, builder, signature, arguments, body)


def _generate_columns_times(context, builder, signature, arguments):
    columns, factors, out = (_data(context, builder, signature.args[i], arguments[i]) for i in (0, 3, 4))
    n_words, n_columns = arguments[1], arguments[2]
    with cgutils.for_range_slice(builder, _INDEX(0), n_words, _INDEX(LANES), _INDEX) as (word, _):
        builder.store(ir.Constant(_VECTOR, [0.0] * LANES), _pointer(builder, out.data, word), align=8)
    # Column after column: a sum that stays in a register would wait for itself.
    with cgutils.for_range_slice(builder, _INDEX(0), n_columns, _INDEX(1), _INDEX) as (column, _):
        factor = _splat(builder, builder.load(builder.gep(factors.data, [column])))
        start = builder.mul(column, n_words)
        with cgutils.for_range_slice(builder, _INDEX(0), n_words, _INDEX(LANES), _INDEX) as (word, _):
            place = _pointer(builder, out.data, word)
            entries = _load(builder, columns.data, builder.add(start, word))
            builder.store(_multiply_add(builder, builder.load(place, align=8), factor, entries), place, align=8)
    return context.get_dummy_value()


def _generate_columns_dot(context, builder, signature, arguments):
    columns, ratios, out = (_data(context, builder, signature.args[i], arguments[i]) for i in (0, 3, 4))
    n_words, n_columns = arguments[1], arguments[2]
    running = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * LANES))
    with cgutils.for_range_slice(builder, _INDEX(0), n_columns, _INDEX(1), _INDEX) as (column, _):
        builder.store(ir.Constant(_VECTOR, [0.0] * LANES), running)
        start = builder.mul(column, n_words)
        with cgutils.for_range_slice(builder, _INDEX(0), n_words, _INDEX(LANES), _INDEX) as (word, _):
            entries = _load(builder, columns.data, builder.add(start, word))
            product = _multiply_add(builder, builder.load(running), _load(builder, ratios.data, word), entries)
            builder.store(product, running)
        builder.store(_sum_lanes(builder, builder.load(running)), builder.gep(out.data, [column]))
    return context.get_dummy_value()


def _signature(*arrays):
    for array in arrays:
        if not (isinstance(array, types.Array) and array.dtype == types.float64 and array.layout == "C"):
            return None
    rows, first, second = arrays
    return types.void(rows, types.int64, types.int64, first, second)


@intrinsic
def rows_times(typing_context, rows, n_rows, width, factors, out):
    """out[w] = sum_k rows[w width + k] factors[k], w < n_rows; `width` and `n_rows` padded as said above."""
    signature = _signature(rows, factors, out)
    return None if signature is None else (signature, _generate_products)


@intrinsic
def add_rows(typing_context, rows, n_rows, width, ratios, out):
    """out[k] += sum_w ratios[w] rows[w width + k]."""
    signature = _signature(rows, ratios, out)
    return None if signature is None else (signature, _generate_sums)


@intrinsic
def columns_times(typing_context, columns, n_rows, n_columns, factors, out):
    """out[w] = sum_j columns[j n_rows + w] factors[j]: the same for a few columns that lie one after another."""
    signature = _signature(columns, factors, out)
    return None if signature is None else (signature, _generate_columns_times)


@intrinsic
def columns_dot(typing_context, columns, n_rows, n_columns, ratios, out):
    """out[j] = sum_w columns[j n_rows + w] ratios[w]."""
    signature = _signature(columns, ratios, out)
    return None if signature is None else (signature, _generate_columns_dot)
