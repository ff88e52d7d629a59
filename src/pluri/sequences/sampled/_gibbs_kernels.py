# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""The compiled sweep of the collapsed Gibbs sampler: one new state for every step of every sequence.

With all counts taken without x_t, l = x_{t-1} and r = x_{t+1}, the new state s is drawn in proportion to

    (n_ls + a)  (n_sr + 1[l = s = r] + a) / (n_s. + 1[l = s] + k a)  prod_f (m_f,s,w + b) / (m_f,s. + V_f b),

where the first factor is (start count + c) for the first step of a sequence and the second is left out for the last.
`departures` counts what leaves each state: l -> x_t leaves l whatever x_t is, so that l's departures are never touched
and the 1[l = s] of the denominator is in them already.
"""

from __future__ import annotations

from pluri.engine.compiled import compiled


@compiled(reorder=True)
def resample_states(data, states, counts, concentration, inverse_temperature, uniforms, work):
    """Change `states` (n_samples,) and `counts` in place: a new state for every step.

    `data` and `counts` are `SymbolSequences` and `Counts` of `pluri.sequences.sampled.collapsed_gibbs`; `concentration`
    is (c, a, b); `uniforms` (n_samples,); `work` (n_columns + 2, k) is scratch. Counts are whole numbers held as
    doubles, so that nothing drifts.

    The changes of the counts are written out twice: a compiled function that takes all these arrays, called twice a
    step, took most of the time of a sweep.
    """
    codes = data.codes
    offsets = data.offsets
    columns = data.columns
    transition = counts.transition
    transposed = counts.transposed
    departures = counts.departures
    emission = counts.emission
    emitted = counts.emitted
    k = departures.shape[0]
    n_columns = codes.shape[1]
    transition_weight = concentration[1]
    emission_weight = concentration[2]
    weights = work[0]
    inverse_departures = work[1]
    inverse_emitted = work[2:]
    for s in range(k):
        inverse_departures[s] = 1.0 / (departures[s] + k * transition_weight)
        for f in range(n_columns):
            inverse_emitted[f, s] = 1.0 / (emitted[f, s] + (columns[f + 1] - columns[f]) * emission_weight)
    for n in range(offsets.shape[0] - 1):
        begin = offsets[n]
        end = offsets[n + 1]
        for t in range(begin, end):
            left = states[t - 1] if t > begin else k
            right = states[t + 1] if t + 1 < end else -1

            state = states[t]
            transition[left, state] -= 1.0
            transposed[state, left] -= 1.0
            if right >= 0:
                transition[state, right] -= 1.0
                transposed[right, state] -= 1.0
                departures[state] -= 1.0
                inverse_departures[state] = 1.0 / (departures[state] + k * transition_weight)
            for f in range(n_columns):
                code = codes[t, f]
                if code >= 0:
                    emission[code, state] -= 1.0
                    emitted[f, state] -= 1.0
                    prior = (columns[f + 1] - columns[f]) * emission_weight
                    inverse_emitted[f, state] = 1.0 / (emitted[f, state] + prior)

            arrival_weight = transition_weight if t > begin else concentration[0]
            for s in range(k):
                weights[s] = transition[left, s] + arrival_weight
            if right >= 0:
                for s in range(k):
                    weights[s] *= (transposed[right, s] + transition_weight) * inverse_departures[s]
                if left == right:
                    once = transition[left, left] + transition_weight
                    weights[left] *= (once + 1.0) / once
            for f in range(n_columns):
                code = codes[t, f]
                if code >= 0:
                    for s in range(k):
                        weights[s] *= (emission[code, s] + emission_weight) * inverse_emitted[f, s]
                if f % 16 == 15:  # many columns: stay clear of underflow
                    largest = 0.0
                    for s in range(k):
                        largest = max(largest, weights[s])
                    for s in range(k):
                        weights[s] /= largest
            if inverse_temperature != 1.0:
                largest = 0.0
                for s in range(k):
                    largest = max(largest, weights[s])
                for s in range(k):
                    weights[s] = (weights[s] / largest) ** inverse_temperature
            total = 0.0
            for s in range(k):
                total += weights[s]
            threshold = uniforms[t] * total
            state = 0
            cumulative = weights[0]
            while cumulative <= threshold and state < k - 1:
                state += 1
                cumulative += weights[state]

            states[t] = state
            transition[left, state] += 1.0
            transposed[state, left] += 1.0
            if right >= 0:
                transition[state, right] += 1.0
                transposed[right, state] += 1.0
                departures[state] += 1.0
                inverse_departures[state] = 1.0 / (departures[state] + k * transition_weight)
            for f in range(n_columns):
                code = codes[t, f]
                if code >= 0:
                    emission[code, state] += 1.0
                    emitted[f, state] += 1.0
                    prior = (columns[f + 1] - columns[f]) * emission_weight
                    inverse_emitted[f, state] = 1.0 / (emitted[f, state] + prior)
