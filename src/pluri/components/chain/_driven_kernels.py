# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Compiled loops over time for a chain whose transitions depend on inputs, in log space.

    P_t(i, j) = A_ij exp(w_ij . u_t) / sum_l A_il exp(w_il . u_t)

takes the chain from step t - 1 to step t. The matrix of a step is computed when it is needed, forwards and again
backwards, so that no array of n_samples x k x k exists. Arrays over time are (n_samples, k), sequences lie end to end,
sequence n occupies rows ``offsets[n]:offsets[n+1]``. `chain` is `DrivenChain` of `pluri.components.chain.driven`.
"""

from __future__ import annotations

import numpy as np

from pluri.components.chain._log_space import log_sum
from pluri.engine.compiled import compiled


@compiled(inner=True)
def _log_matrix(chain, inputs, t, out):
    """Write log P_t into `out` (k, k)."""
    base = chain.log_transition
    coef = chain.coef
    width = base.shape[0]
    for i in range(width):
        largest = -np.inf
        for j in range(width):
            value = base[i, j]
            if value > -np.inf:
                for d in range(inputs.shape[1]):
                    value += coef[i, j, d] * inputs[t, d]
            out[i, j] = value
            largest = max(largest, value)
        total = 0.0
        for j in range(width):
            total += np.exp(out[i, j] - largest)
        largest += np.log(total)
        for j in range(width):
            out[i, j] -= largest


@compiled(inner=True)
def _predict(log_alpha, matrix, work, out):
    """out_j = log sum_i exp(log_alpha_i + matrix_ij)."""
    width = matrix.shape[0]
    for j in range(width):
        for i in range(width):
            work[i] = log_alpha[i] + matrix[i, j]
        out[j] = log_sum(work)


@compiled()
def filter_driven(rows, inputs, offsets, chain, log_predicted, log_filtered, scores):
    """Write log P(state_t | observations before t), the same with x_t, and log-likelihoods, which may be -inf."""
    width = rows.shape[1]
    matrix = np.empty((width, width))
    work = np.empty(width)
    for n in range(offsets.shape[0] - 1):
        scores[n] = 0.0
        for t in range(offsets[n], offsets[n + 1]):
            if t == offsets[n]:
                for j in range(width):
                    log_predicted[t, j] = chain.log_start[j]
            else:
                _log_matrix(chain, inputs, t, matrix)
                _predict(log_filtered[t - 1], matrix, work, log_predicted[t])
            for j in range(width):
                work[j] = log_predicted[t, j] + rows[t, j]
            norm = log_sum(work)
            scores[n] += norm
            for j in range(width):
                log_filtered[t, j] = work[j] - norm if norm > -np.inf else -np.inf


@compiled(inner=True)
def _add_curvature(weight, probabilities, outer, curvature):
    """Add weight * (diag(p) - p p^T) x u u^T to the lower triangle of states, (k, k, n_products)."""
    for j in range(probabilities.shape[0]):
        if probabilities[j] == 0.0:
            continue
        for m in range(j + 1):
            factor = -weight * probabilities[j] * probabilities[m]
            if m == j:
                factor += weight * probabilities[j]
            if factor != 0.0:
                for a in range(outer.shape[0]):
                    curvature[j, m, a] += factor * outer[a]


@compiled(inner=True)
def _add_step(weight, joint, matrix, extended, outer, sums):
    """Add what one step tells of the transitions; `joint` (k, k) is P(state_{t-1} = i, state_t = j | sequence).

    gradient_ij += weight * (joint_ij - joint_i. P_ij) (1, u), and the curvature, its expected outer product.
    """
    width = matrix.shape[0]
    place = 0
    for a in range(extended.shape[0]):
        for b in range(a + 1):
            outer[place] = extended[a] * extended[b]
            place += 1
    for i in range(width):
        mass = 0.0
        for j in range(width):
            mass += joint[i, j]
            matrix[i, j] = np.exp(matrix[i, j])
        if mass == 0.0:
            continue
        for j in range(width):
            sums.pairs[i, j] += weight * joint[i, j]
            difference = weight * (joint[i, j] - mass * matrix[i, j])
            for a in range(extended.shape[0]):
                sums.gradient[i, j, a] += difference * extended[a]
        _add_curvature(weight * mass, matrix[i], outer, sums.curvature[i])


@compiled()
def smooth_driven(rows, inputs, offsets, weight, chain, log_filtered, scores, posterior, sums):
    """Change `posterior` (n_samples, at least k) and `sums`: weighted posteriors, and what they tell of the chain.

    `log_filtered` and `scores` come from `filter_driven`; a sequence of probability zero has posterior zero. With
    `sums` None only the posteriors are found.
    """
    width = rows.shape[1]
    matrix = np.empty((width, width))
    joint = np.empty((width, width))
    ahead = np.empty(width)
    log_beta = np.empty(width)
    work = np.empty(width)
    extended = np.empty(inputs.shape[1] + 1)
    outer = np.empty(extended.shape[0] * (extended.shape[0] + 1) // 2)
    extended[0] = 1.0
    for n in range(offsets.shape[0] - 1):
        begin = offsets[n]
        end = offsets[n + 1]
        if scores[n] == -np.inf:
            for t in range(begin, end):
                for j in range(width):
                    posterior[t, j] = 0.0
            continue
        for j in range(width):
            log_beta[j] = 0.0
        for t in range(end - 1, begin - 1, -1):
            if t + 1 < end:
                _log_matrix(chain, inputs, t + 1, matrix)
                for j in range(width):
                    ahead[j] = rows[t + 1, j] + log_beta[j]
                for i in range(width):
                    for j in range(width):
                        work[j] = matrix[i, j] + ahead[j]
                    log_beta[i] = log_sum(work)
                if sums is not None:
                    for i in range(width):
                        work[i] = log_filtered[t, i] + log_beta[i]
                    norm = log_sum(work)
                    for i in range(width):
                        for j in range(width):
                            joint[i, j] = np.exp(log_filtered[t, i] + matrix[i, j] + ahead[j] - norm)
                    for d in range(inputs.shape[1]):
                        extended[d + 1] = inputs[t + 1, d]
                    _add_step(weight[n], joint, matrix, extended, outer, sums)
                norm = log_sum(log_beta)
                for i in range(width):
                    log_beta[i] -= norm
            for i in range(width):
                work[i] = log_filtered[t, i] + log_beta[i]
            norm = log_sum(work)
            for i in range(width):
                posterior[t, i] = weight[n] * np.exp(work[i] - norm)
        if sums is not None and end > begin:
            for i in range(width):
                sums.starts[i] += posterior[begin, i]


@compiled()
def viterbi_driven(best, inputs, offsets, chain, path, scores):
    """Change `best` from log densities to delta_t; write the best path of each sequence, the lowest index on a tie."""
    width = best.shape[1]
    matrix = np.empty((width, width))
    for n in range(offsets.shape[0] - 1):
        begin = offsets[n]
        end = offsets[n + 1]
        scores[n] = 0.0
        if begin == end:
            continue
        for j in range(width):
            best[begin, j] += chain.log_start[j]
        for t in range(begin + 1, end):
            _log_matrix(chain, inputs, t, matrix)
            for j in range(width):
                value = best[t - 1, 0] + matrix[0, j]
                for i in range(1, width):
                    value = max(value, best[t - 1, i] + matrix[i, j])
                best[t, j] += value
        state = 0
        for j in range(1, width):
            if best[end - 1, j] > best[end - 1, state]:
                state = j
        scores[n] = best[end - 1, state]
        path[end - 1] = state
        for t in range(end - 2, begin - 1, -1):
            _log_matrix(chain, inputs, t + 1, matrix)
            origin = 0
            for i in range(1, width):
                if best[t, i] + matrix[i, state] > best[t, origin] + matrix[origin, state]:
                    origin = i
            state = origin
            path[t] = state


@compiled()
def sample_driven(log_filtered, inputs, offsets, chain, uniforms, paths):
    """Backward sampling given log filtered probabilities; `uniforms` and `paths` are (n_paths, n_samples)."""
    width = log_filtered.shape[1]
    matrix = np.empty((width, width))
    masses = np.empty(width)
    for n in range(offsets.shape[0] - 1):
        end = offsets[n + 1]
        for t in range(end - 1, offsets[n] - 1, -1):
            if t + 1 < end:
                _log_matrix(chain, inputs, t + 1, matrix)
            for p in range(paths.shape[0]):
                for i in range(width):
                    masses[i] = log_filtered[t, i] + (matrix[i, paths[p, t + 1]] if t + 1 < end else 0.0)
                norm = log_sum(masses)
                threshold = uniforms[p, t]
                running = 0.0
                state = -1
                for i in range(width):
                    mass = np.exp(masses[i] - norm)
                    running += mass
                    if mass > 0.0 and (state < 0 or running - mass <= threshold):
                        state = i
                paths[p, t] = state
