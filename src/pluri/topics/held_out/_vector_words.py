# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""One word of a document given what the others are expected to be, in explicit vector instructions."""

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
    splat,
    sum_lanes,
    vector_at,
)
from pluri.topics.lda.aligned_arrays import LANES


def _each_vector(builder, width):
    return cgutils.for_range_slice(builder, INDEX(0), width, INDEX(LANES), INDEX)


def _running_sum(builder):
    """A running sum of vectors, and what adds to it."""
    running = cgutils.alloca_once_value(builder, ir.Constant(VECTOR, [0.0] * LANES))
    return running, lambda vector: builder.store(builder.fadd(builder.load(running), vector), running)


def _generate_weights(context, builder, signature, arguments):
    probabilities, shares, gamma, alpha, weight = (
        array_of(context, builder, signature.args[i], arguments[i]).data for i in (0, 1, 3, 4, 5)
    )
    begin, width = arguments[2], arguments[6]
    running, add = _running_sum(builder)
    with _each_vector(builder, width) as (column, _):
        place, least = builder.add(begin, column), load(builder, alpha, column)
        others = builder.fsub(load(builder, gamma, column), load(builder, shares, place))
        others = builder.select(builder.fcmp_ordered(">", others, least), others, least)
        product = builder.fmul(load(builder, probabilities, place), others)
        builder.store(product, vector_at(builder, weight, column), align=8)
        add(product)
    return sum_lanes(builder, builder.load(running))


def _generate_moves(context, builder, signature, arguments):
    shares, gamma, weight = (
        array_of(context, builder, signature.args[i], arguments[i]).data for i in (0, 2, 3)
    )  # fmt: skip
    begin, width = arguments[1], arguments[6]
    scale, count = splat(builder, arguments[4]), splat(builder, arguments[5])
    running, add = _running_sum(builder)
    kind = ir.FunctionType(VECTOR, [VECTOR])
    absolute = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fabs.v{LANES}f64")
    with _each_vector(builder, width) as (column, _):
        place = builder.add(begin, column)
        new = builder.fmul(scale, load(builder, weight, column))
        step = builder.fmul(count, builder.fsub(new, load(builder, shares, place)))
        builder.store(new, vector_at(builder, shares, place), align=8)
        builder.store(builder.fadd(load(builder, gamma, column), step), vector_at(builder, gamma, column), align=8)
        add(builder.call(absolute, [step]))
    return sum_lanes(builder, builder.load(running))


@intrinsic
def weigh_word(typing_context, probabilities, shares, begin, gamma, alpha, weight, width):
    """weight[k] = p_k max(gamma[k] - s_k, alpha[k]); their sum. p and s are `probabilities`, `shares` from `begin`."""
    arrays = (gamma, alpha, weight)
    if not are_plain(probabilities, shares, *arrays):
        return None
    return types.float64(probabilities, shares, types.int64, *arrays, types.int64), _generate_weights


@intrinsic
def move_word(typing_context, shares, begin, gamma, weight, scale, count, width):
    """Set s_k to scale weight[k] and add count times the change to gamma; the sum of the changes' sizes."""
    if not are_plain(shares, gamma, weight):
        return None
    numbers = (types.float64, types.float64, types.int64)
    return types.float64(shares, types.int64, gamma, weight, *numbers), _generate_moves
