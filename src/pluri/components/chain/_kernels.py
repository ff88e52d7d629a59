# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""The compiled loops over time: the forward and the backward pass.

Layout. The number of states k is padded to a multiple of four, K, with impossible states (zero start and
transition probability, zero likelihood), so that every inner loop runs over whole vector registers; at k = 15 this
is 1.6 times faster than the unpadded loop. Arrays over time are (n_samples, K), sequences lie end to end, sequence n
occupies rows ``offsets[n]:offsets[n+1]``.

Notation. b_t(j) = p(x_t | j) / max_i p(x_t | i); alpha_t = filtered distribution; c_t = sum_j of the unnormalised
alpha_t; v_t(j) = b_t(j) beta_t(j) / c_t, so that

    beta_{t-1} = A v_t,   posterior_t = alpha_t beta_t,   pair_t(i, j) = alpha_{t-1}(i) A_ij v_t(j).
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from pluri.components.chain._vector_ops import add_outer, row_times_matrix
from pluri.engine.compiled import compiled

#: A scale factor under this is treated as an underflow, and the sequence is done again in log space.
UNDERFLOW = 1e-150
#: So is a backward variable, divided by the scale factor of its step, over this: what the forward pass rounded to zero
#: (at 1e-308, before it divided by the scale factor) may matter after all.
TOO_LARGE = 1e250


@intrinsic
def _float_from_bits(typing_context, bits):
    """Reinterpret an int64 as the float64 with these bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@compiled(fastmath={"contract"}, inline="always")
def exp_nonpositive(x):
    """e^x for x <= 0, to one unit in the last place; 0 below -708.

    Straight-line code that the compiler turns into vector instructions (a call of the C library's exp is not):
    x = n ln 2 + r with |r| <= ln 2 / 2, then the Taylor polynomial of degree 13 and the exponent n put into the bits.
    """
    clamped = max(x, -708.0)
    n = np.floor(clamped * 1.4426950408889634 + 0.5)
    r = (clamped - n * 0.693145751953125) - n * 1.4286068203094172e-06
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * _float_from_bits((np.int64(n) + 1023) << 52) if x >= -708.0 else 0.0


@compiled(fastmath={"contract"}, allocates=False)
def exponentiate(log_emission, maxima):
    """Replace each row by exp(row - max), and write the maxima; a row of -inf becomes zeros with maximum 0."""
    n_samples, width = log_emission.shape
    for t in range(n_samples):
        largest = log_emission[t, 0]
        for j in range(1, width):
            value = log_emission[t, j]
            largest = value if value > largest else largest
        maxima[t] = largest if largest > -np.inf else 0.0
    for t in range(n_samples):
        largest = maxima[t]
        for j in range(width):
            log_emission[t, j] = exp_nonpositive(log_emission[t, j] - largest)


@compiled(reorder=True, allocates=False)
def forward(steps, begin, end, initial, transition, first, alpha, work):
    """Change `alpha` and `steps.inverse_scale`: filtered distributions of rows begin:end; False on underflow.

    `steps` are `Steps` of `pluri.components.chain.forward_backward`, here and below; `work` (K,) is scratch.
    With `first`, `initial` (K,) is the start distribution; otherwise the filtered distribution one step earlier.
    """
    likelihood = steps.likelihood
    width = work.shape[0]
    if first:
        for j in range(width):
            work[j] = initial[j]
    else:
        row_times_matrix(initial, 0, transition, work)
    for t in range(begin, end):
        total = 0.0
        for j in range(width):
            value = work[j] * likelihood[t, j]
            alpha[t, j] = value
            total += value
        if not total > UNDERFLOW:
            return False
        inverse = 1.0 / total
        steps.inverse_scale[t] = inverse
        for j in range(width):
            alpha[t, j] *= inverse
        row_times_matrix(alpha, t, transition, work)
    return True


@compiled(reorder=True, allocates=False)
def log_scale(steps, begin, end):
    """Sum over begin:end of log c_t + max_t: the log-likelihood of these rows."""
    total = 0.0
    product = 1.0
    for t in range(begin, end):
        total += steps.maxima[t]
        # One logarithm for many factors: 1/c_t lies in [1, 1/UNDERFLOW], so the product cannot overflow below.
        product *= steps.inverse_scale[t]
        if product > 1e100:
            total -= np.log(product)
            product = 1.0
    return total - np.log(product)


@compiled(reorder=True, inline="always", allocates=False)
def backward(steps, begin, end, weight, transposed, alpha, beta, previous, pairs):
    """Turn `alpha` into weighted posteriors on rows begin:end, add the pair sums, and leave beta_{begin-1} in `beta`.

    On entry `beta` (1, K) is beta_{end-1}: ones at the end of a sequence. The likelihood is overwritten with v_t.
    `previous` (1, K) is alpha_{begin-1}, or zeros if `begin` starts the sequence. The pair sums lack the factor A_ij.
    """
    likelihood = steps.likelihood
    width = beta.shape[1]
    for t in range(end - 1, begin - 1, -1):
        factor = steps.inverse_scale[t]
        for j in range(width):
            alpha[t, j] *= beta[0, j] * weight
            likelihood[t, j] *= beta[0, j] * factor
        if t > begin:
            add_outer(alpha, t - 1, likelihood, t, weight, pairs)
        else:
            add_outer(previous, 0, likelihood, t, weight, pairs)
        row_times_matrix(likelihood, t, transposed, beta[0])


@compiled(reorder=True, allocates=False)
def keeps_footing(steps, begin, end, transposed, beta, work):
    """Whether no beta_t / c_t on rows begin:end is too large; leaves beta_{begin-1} in `beta`.

    A state whose unnormalised alpha_t was rounded to zero had less than 1e-308 / c_t of the filtered probability, and
    so takes less than 1e-308 beta_t / c_t of the likelihood with it.

    Only a chain with (nearly) forbidden transitions can fail: elsewhere a state that has been rounded away is
    reached again from the others, with far more probability than was lost.
    """
    width = beta.shape[1]
    for t in range(end - 1, begin - 1, -1):
        largest = 0.0
        factor = steps.inverse_scale[t]
        for j in range(width):
            value = beta[0, j]
            largest = value if value > largest else largest
            work[0, j] = value * steps.likelihood[t, j] * factor
        if not largest * factor < TOO_LARGE:
            return False
        row_times_matrix(work, 0, transposed, beta[0])
    return True


@compiled(reorder=True, allocates=False)
def smooth_sequences(steps, weight, chain, alpha, work, sums):
    """Change all but `weight` and `chain`: forward-backward over all sequences of a batch.

    `chain` and `sums` are `Chain` and `Sums` of `pluri.components.chain.forward_backward`. `alpha` becomes the weighted
    posteriors; `sums.pairs` lacks the factor A_ij. `work` is (3, K). Returns how many sequences lost their footing;
    their score is NaN.
    """
    offsets = steps.offsets
    starts = sums.starts
    scores = sums.scores
    width = chain.start.shape[0]
    n_failed = 0
    nothing = work[0:1]
    beta = work[1:2]
    for n in range(offsets.shape[0] - 1):
        begin = offsets[n]
        end = offsets[n + 1]
        scores[n] = 0.0
        if begin == end:
            continue
        good = forward(steps, begin, end, chain.start, chain.transition, True, alpha, work[0])
        if good and chain.has_gaps:
            for j in range(width):
                beta[0, j] = 1.0
            good = keeps_footing(steps, begin, end, chain.transposed, beta, work[2:3])
        if not good:
            scores[n] = np.nan
            n_failed += 1
            for t in range(begin, end):
                for j in range(width):
                    alpha[t, j] = 0.0
            continue
        scores[n] = log_scale(steps, begin, end)
        for j in range(width):
            beta[0, j] = 1.0
            nothing[0, j] = 0.0
        backward(steps, begin, end, weight[n], chain.transposed, alpha, beta, nothing, sums.pairs)
        for j in range(width):
            starts[j] += alpha[begin, j]
    return n_failed


@compiled(reorder=True, allocates=False)
def score_sequences(steps, chain, work, scores):
    """Change `scores` (and `work`, `steps.inverse_scale`): log-likelihood of each sequence by the forward pass alone.

    Only one filtered distribution is kept (`work`: (4, K)). Returns how many sequences lost their footing; their score
    is NaN.
    """
    likelihood = steps.likelihood
    offsets = steps.offsets
    width = chain.start.shape[0]
    n_failed = 0
    alpha = work[0]
    predicted = work[1]
    for n in range(offsets.shape[0] - 1):
        scores[n] = 0.0
        failed = False
        for t in range(offsets[n], offsets[n + 1]):
            if t == offsets[n]:
                for j in range(width):
                    predicted[j] = chain.start[j]
            else:
                row_times_matrix(work, 0, chain.transition, predicted)
            total = 0.0
            for j in range(width):
                predicted[j] *= likelihood[t, j]
                total += predicted[j]
            if not total > UNDERFLOW:
                failed = True
                break
            inverse = 1.0 / total
            steps.inverse_scale[t] = inverse
            for j in range(width):
                alpha[j] = predicted[j] * inverse
        if chain.has_gaps and not failed:
            for j in range(width):
                work[2, j] = 1.0
            failed = not keeps_footing(steps, offsets[n], offsets[n + 1], chain.transposed, work[2:3], work[3:4])
        if failed:
            scores[n] = np.nan
            n_failed += 1
        else:
            scores[n] = log_scale(steps, offsets[n], offsets[n + 1])
    return n_failed
