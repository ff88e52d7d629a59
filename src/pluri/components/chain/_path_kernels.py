# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""The compiled loops over time that find or draw state paths; arrays as in `pluri.components.chain._kernels`."""

from __future__ import annotations

import numpy as np

from pluri.components.chain._vector_ops import row_plus_matrix_maximum
from pluri.engine.compiled import compiled


@compiled(allocates=False)
def viterbi_sequences(best, offsets, log_start, log_transition, transposed, work, path, scores):
    """Most probable path of each sequence; `best` holds log emissions on entry and delta_t on return.

    No back-pointers are kept: the argmax is found again on the way back for the one state on the path, which leaves
    the k x k loop free of bookkeeping. The lowest index wins a tie.
    """
    width = log_start.shape[0]
    for n in range(offsets.shape[0] - 1):
        begin = offsets[n]
        end = offsets[n + 1]
        scores[n] = 0.0
        if begin == end:
            continue
        for j in range(width):
            best[begin, j] += log_start[j]
        for t in range(begin + 1, end):
            row_plus_matrix_maximum(best, t - 1, log_transition, work)
            for j in range(width):
                best[t, j] += work[j]
        state = 0
        for j in range(1, width):
            if best[end - 1, j] > best[end - 1, state]:
                state = j
        scores[n] = best[end - 1, state]
        path[end - 1] = state
        for t in range(end - 2, begin - 1, -1):
            origin = 0
            value = best[t, 0] + transposed[state, 0]
            for i in range(1, width):
                candidate = best[t, i] + transposed[state, i]
                if candidate > value:
                    value = candidate
                    origin = i
            state = origin
            path[t] = state


@compiled()
def sample_paths(log_filtered, offsets, log_transition, uniforms, masses, paths):
    """Backward sampling given log filtered probabilities; `uniforms` and `paths` are (n_paths, n_samples)."""
    width = log_transition.shape[0]
    for p in range(paths.shape[0]):
        for n in range(offsets.shape[0] - 1):
            state = -1
            for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
                largest = -np.inf
                for i in range(width):
                    masses[i] = log_filtered[t, i] + (log_transition[i, state] if state >= 0 else 0.0)
                    largest = max(largest, masses[i])
                total = 0.0
                for i in range(width):
                    masses[i] = np.exp(masses[i] - largest)
                    total += masses[i]
                threshold = uniforms[p, t] * total
                running = 0.0
                for i in range(width):
                    running += masses[i]
                    if masses[i] > 0.0:
                        state = i
                        if running > threshold:
                            break
                paths[p, t] = state


@compiled()
def best_paths(log_emission, log_start, log_transition, n_paths, values, origin_state, origin_rank, paths, scores):
    """The n most probable paths of one sequence (list Viterbi), best first; returns how many exist.

    `values`, `origin_state`, `origin_rank` are (n_samples, k, n_paths): the r-th best score of a path that ends in
    state j at time t, and where it came from. `log_transition` is (1, k, k), or (n_samples, k, k) if it changes.
    """
    n_samples, width = log_emission.shape
    for j in range(width):
        for r in range(n_paths):
            values[0, j, r] = -np.inf
        values[0, j, 0] = log_start[j] + log_emission[0, j]
    changes = log_transition.shape[0] > 1
    for t in range(1, n_samples):
        step = t if changes else 0
        for j in range(width):
            filled = 0
            for i in range(width):
                for r in range(n_paths):
                    value = values[t - 1, i, r] + log_transition[step, i, j]
                    if value == -np.inf:
                        break
                    if filled == n_paths and not value > values[t, j, n_paths - 1]:
                        break
                    # Insertion into the sorted list; strict > keeps the lower index first on ties.
                    place = filled if filled < n_paths else n_paths - 1
                    while place > 0 and value > values[t, j, place - 1]:
                        values[t, j, place] = values[t, j, place - 1]
                        origin_state[t, j, place] = origin_state[t, j, place - 1]
                        origin_rank[t, j, place] = origin_rank[t, j, place - 1]
                        place -= 1
                    values[t, j, place] = value
                    origin_state[t, j, place] = i
                    origin_rank[t, j, place] = r
                    filled = min(filled + 1, n_paths)
            for r in range(n_paths):
                values[t, j, r] = values[t, j, r] + log_emission[t, j] if r < filled else -np.inf
    found = 0
    last = n_samples - 1
    taken = np.zeros(width, np.int64)
    while found < n_paths:
        state = -1
        value = -np.inf
        for j in range(width):
            if taken[j] < n_paths and values[last, j, taken[j]] > value:
                value = values[last, j, taken[j]]
                state = j
        if state < 0:
            break
        rank = taken[state]
        taken[state] += 1
        scores[found] = value
        for t in range(last, -1, -1):
            paths[found, t] = state
            if t > 0:
                previous = origin_state[t, state, rank]
                rank = origin_rank[t, state, rank]
                state = previous
        found += 1
    return found


@compiled()
def sample_chain(start_cumulative, transition_cumulative, uniforms, current, states):
    """States of one sequence by inversion; `current` is the first state, or -1 to draw it."""
    width = start_cumulative.shape[0]
    for t in range(states.shape[0]):
        if t == 0 and current >= 0:
            states[0] = current
            continue
        cumulative = start_cumulative if t == 0 else transition_cumulative[states[t - 1]]
        threshold = uniforms[t] * cumulative[width - 1]
        state = 0
        while state < width - 1 and cumulative[state] <= threshold:
            state += 1
        states[t] = state
