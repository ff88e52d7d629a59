# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled sweep of the collapsed Gibbs sampler: one new state for every step of every sequence.

With all counts taken without x_t, l = x_{t-1} and r = x_{t+1}, the new state s is drawn in proportion to

    (n_ls + a)  (n_sr + 1[l = s = r] + a) / (n_s. + 1[l = s] + k a)  prod_f (m_f,s,w + b) / (m_f,s. + V_f b),

where the first factor is (start count + c) for the first step of a sequence and the second is left out for the last.
`departures` counts what leaves each state: l -> x_t leaves l whatever x_t is, so that l's departures are never touched
and the 1[l = s] of the denominator is in them already.
"""

from __future__ import annotations

from pluri.engine.compiled import compiled


@compiled(inline="always")
def _change(
    amount,
    state,
    left,
    right,
    t,
    codes,
    sizes,
    transition_weight,
    emission_weight,
    transition,
    transposed,
    departures,
    emission,
    emitted,
    inverse_departures,
    inverse_emitted,
):
    """Add `amount` (1 or -1) of step t in `state` to the counts, and renew the reciprocals that depend on them."""
    k = transition.shape[1]
    transition[left, state] += amount
    transposed[state, left] += amount
    if right >= 0:
        transition[state, right] += amount
        transposed[right, state] += amount
        departures[state] += amount
        inverse_departures[state] = 1.0 / (departures[state] + k * transition_weight)
    for f in range(codes.shape[1]):
        code = codes[t, f]
        if code >= 0:
            emission[code, state] += amount
            emitted[f, state] += amount
            inverse_emitted[f, state] = 1.0 / (emitted[f, state] + sizes[f] * emission_weight)


@compiled()
def resample_states(
    codes,
    offsets,
    sizes,
    concentration,
    inverse_temperature,
    uniforms,
    states,
    transition,
    transposed,
    departures,
    emission,
    emitted,
    work,
):
    """Resample every state in place, and keep the counts in step.

    `codes` (n_samples, n_columns) are rows of `emission` (V_total, k), -1 where missing; `sizes` (n_columns,) the
    number of symbols of each column; `concentration` is (c, a, b); `uniforms` (n_samples,); `work` (n_columns + 2, k).
    The other counts are `transition` (k + 1, k), whose last row has the starts, its transpose, `departures` (k,) and
    `emitted` (n_columns, k). Counts are whole numbers held as doubles, so that nothing drifts.
    """
    k = departures.shape[0]
    n_columns = codes.shape[1]
    start_weight = concentration[0]
    transition_weight = concentration[1]
    emission_weight = concentration[2]
    weights = work[0]
    inverse_departures = work[1]
    inverse_emitted = work[2:]
    for s in range(k):
        inverse_departures[s] = 1.0 / (departures[s] + k * transition_weight)
        for f in range(n_columns):
            inverse_emitted[f, s] = 1.0 / (emitted[f, s] + sizes[f] * emission_weight)
    for n in range(offsets.shape[0] - 1):
        begin = offsets[n]
        end = offsets[n + 1]
        for t in range(begin, end):
            left = states[t - 1] if t > begin else k
            right = states[t + 1] if t + 1 < end else -1
            # fmt: off
            _change(-1.0, states[t], left, right, t, codes, sizes, transition_weight, emission_weight, transition,
                    transposed, departures, emission, emitted, inverse_departures, inverse_emitted)
            # fmt: on
            into = transition_weight if t > begin else start_weight
            for s in range(k):
                weights[s] = 1.0
            for f in range(1, n_columns):
                code = codes[t, f]
                if code >= 0:
                    for s in range(k):
                        weights[s] *= (emission[code, s] + emission_weight) * inverse_emitted[f, s]
            if left == right:
                once = transition[left, left] + transition_weight
                weights[left] *= (once + 1.0) / once
            code = codes[t, 0]
            # The running sum in the same loop keeps it from being vectorised, on purpose: the counts have just been
            # written one by one, and a vector load would wait for those stores (five times slower, all in all).
            cumulative = 0.0
            if code >= 0 and right >= 0 and inverse_temperature == 1.0:
                for s in range(k):
                    cumulative += (
                        weights[s]
                        * ((transition[left, s] + into) * (transposed[right, s] + transition_weight))
                        * ((emission[code, s] + emission_weight) * (inverse_departures[s] * inverse_emitted[0, s]))
                    )
                    weights[s] = cumulative
            else:
                for s in range(k):
                    weight = weights[s] * (transition[left, s] + into)
                    if right >= 0:
                        weight *= (transposed[right, s] + transition_weight) * inverse_departures[s]
                    if code >= 0:
                        weight *= (emission[code, s] + emission_weight) * inverse_emitted[0, s]
                    if inverse_temperature != 1.0:
                        weight = weight**inverse_temperature
                    cumulative += weight
                    weights[s] = cumulative
            threshold = uniforms[t] * cumulative
            new = 0
            while weights[new] <= threshold and new < k - 1:
                new += 1
            states[t] = new
            # fmt: off
            _change(1.0, new, left, right, t, codes, sizes, transition_weight, emission_weight, transition,
                    transposed, departures, emission, emitted, inverse_departures, inverse_emitted)
            # fmt: on
