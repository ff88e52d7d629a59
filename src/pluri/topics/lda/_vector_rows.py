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

from pluri.topics._vector_building import (
    INDEX,
    VECTOR,
    are_plain,
    array_of,
    load,
    multiply_add,
    splat,
    sum_lanes,
    vector_at,
)
from pluri.topics.lda.aligned_arrays import LANES

#: Words that are done at a time.
WORDS = 4


def _shuffled(builder, left, right, order):
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order)
    return builder.shuffle_vector(left, right, mask)


def _sum_lanes_of_four(builder, vectors):
    """The sums of four vectors of eight, as one vector of four: fewer instructions than one sum after another."""

    def paired(left, right, even, odd):
        return builder.fadd(_shuffled(builder, left, right, even), _shuffled(builder, left, right, odd))

    first, second, third, fourth = vectors
    even, odd = [0, 8, 2, 10, 4, 12, 6, 14], [1, 9, 3, 11, 5, 13, 7, 15]
    left, right = paired(first, second, even, odd), paired(third, fourth, even, odd)
    halves = paired(left, right, [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15])
    return paired(halves, halves, [0, 1, 2, 3], [4, 5, 6, 7])


def _blocks_of_words(context, builder, signature, arguments, body):
    """Call `body(first word, places of the four rows, width, arrays)` for every four words."""
    rows, first, second = (array_of(context, builder, signature.args[i], arguments[i]) for i in (0, 3, 4))
    width = arguments[2]
    with cgutils.for_range_slice(builder, INDEX(0), arguments[1], INDEX(WORDS), INDEX) as (word, _):
        starts = [builder.mul(builder.add(word, INDEX(i)), width) for i in range(WORDS)]
        body(word, starts, width, rows.data, first.data, second.data)
    return context.get_dummy_value()


def _generate_products(context, builder, signature, arguments):
    zero = ir.Constant(VECTOR, [0.0] * LANES)
    running = [cgutils.alloca_once_value(builder, zero) for _ in range(WORDS)]

    def body(word, starts, width, rows, factors, out):
        for place in running:
            builder.store(zero, place)
        with cgutils.for_range_slice(builder, INDEX(0), width, INDEX(LANES), INDEX) as (column, _):
            vector = load(builder, factors, column)
            for start, place in zip(starts, running):
                row = load(builder, rows, builder.add(start, column))
                builder.store(multiply_add(builder, builder.load(place), vector, row), place)
        totals = _sum_lanes_of_four(builder, [builder.load(place) for place in running])
        builder.store(totals, builder.bitcast(builder.gep(out, [word]), totals.type.as_pointer()), align=8)

    return _blocks_of_words(context, builder, signature, arguments, body)


def _generate_sums(context, builder, signature, arguments):
    def body(word, starts, width, rows, ratios, out):
        places = [builder.gep(ratios, [builder.add(word, INDEX(i))]) for i in range(WORDS)]
        factors = [splat(builder, builder.load(place)) for place in places]
        with cgutils.for_range_slice(builder, INDEX(0), width, INDEX(LANES), INDEX) as (column, _):
            total = load(builder, out, column)
            for start, factor in zip(starts, factors):
                total = multiply_add(builder, total, factor, load(builder, rows, builder.add(start, column)))
            builder.store(total, vector_at(builder, out, column), align=8)

    return _blocks_of_words(context, builder, signature, arguments, body)


def _generate_columns(context, builder, signature, arguments):
    columns, factors, counts, softening, norms, ratios, parts, sums = (
        array_of(context, builder, signature.args[i], arguments[i]).data for i in (0, 4, 5, 6, 7, 8, 9, 10)
    )
    columns = builder.gep(columns, [arguments[1]])
    n_words, n_columns = arguments[2], arguments[3]
    zero = ir.Constant(VECTOR, [0.0] * LANES)
    running = cgutils.alloca_once_value(builder, zero)
    with cgutils.for_range_slice(builder, INDEX(0), n_columns, INDEX(1), INDEX) as (column, _):
        builder.store(zero, vector_at(builder, parts, builder.mul(column, INDEX(LANES))), align=8)
    with cgutils.for_range_slice(builder, INDEX(0), n_words, INDEX(LANES), INDEX) as (word, _):
        builder.store(zero, running)
        with cgutils.for_range_slice(builder, INDEX(0), n_columns, INDEX(1), INDEX) as (column, _):
            factor = splat(builder, builder.load(builder.gep(factors, [column])))
            entries = load(builder, columns, builder.add(builder.mul(column, n_words), word))
            builder.store(multiply_add(builder, builder.load(running), factor, entries), running)
        norm = builder.load(running)
        builder.store(norm, vector_at(builder, norms, word), align=8)
        ratio = builder.fdiv(load(builder, counts, word), builder.fadd(norm, load(builder, softening, word)))
        builder.store(ratio, vector_at(builder, ratios, word), align=8)
        with cgutils.for_range_slice(builder, INDEX(0), n_columns, INDEX(1), INDEX) as (column, _):
            place = vector_at(builder, parts, builder.mul(column, INDEX(LANES)))
            entries = load(builder, columns, builder.add(builder.mul(column, n_words), word))
            builder.store(multiply_add(builder, builder.load(place, align=8), ratio, entries), place, align=8)
    with cgutils.for_range_slice(builder, INDEX(0), n_columns, INDEX(1), INDEX) as (column, _):
        total = sum_lanes(builder, load(builder, parts, builder.mul(column, INDEX(LANES))))
        builder.store(total, builder.gep(sums, [column]))
    return context.get_dummy_value()


@intrinsic
def rows_times(typing_context, rows, n_rows, width, factors, out):
    """out[w] = sum_k rows[w width + k] factors[k], w < n_rows; `width` and `n_rows` padded as said above."""
    if not are_plain(rows, factors, out):
        return None
    return types.void(rows, types.int64, types.int64, factors, out), _generate_products


@intrinsic
def add_rows(typing_context, rows, n_rows, width, ratios, out):
    """out[k] += sum_w ratios[w] rows[w width + k]."""
    if not are_plain(rows, ratios, out):
        return None
    return types.void(rows, types.int64, types.int64, ratios, out), _generate_sums


@intrinsic
def columns_step(
    typing_context, columns, base, n_rows, n_columns, factors, counts, softening, norms, ratios, parts, sums
):  # fmt: skip
    """All at once for a few columns that lie one after another, c_jw = columns[base + j n_rows + w].

    norms[w] = sum_j c_jw factors[j], ratios = counts / (norms + softening), sums[j] = sum_w ratios[w] c_jw; `parts` is
    memory, for a vector of each column.
    """
    arrays = (factors, counts, softening, norms, ratios, parts, sums)
    if not are_plain(columns, *arrays):
        return None
    return types.void(columns, types.int64, types.int64, types.int64, *arrays), _generate_columns
