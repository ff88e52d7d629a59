# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled loop of a particle filter around a linear Gaussian model."""

from pluri.engine.compiled import compiled
from pluri.inference.smc._filter_kernels import begin_step, end_step


@compiled(reorder=True)
def filter_linear(rng, parameters, observations, observed, start, stop, scheme, storage, records, room, lots):
    """Linear Gaussian: x_t = A x_{t-1} + b + B w_t, and the whitened observation h_t = H x_t + v_t.

    `parameters` are A, b, B, H, the constant of the log density of an observation, and the mean and the factor of the
    covariance of x_0; `observations` are whitened.
    """
    particles, log_weights, ancestors, _ = storage
    rows, n = log_weights.shape
    dynamics, offset, factor, emission, constant, first_mean, first_factor = parameters
    d = offset.shape[0]
    noise = room[0]
    for t in range(start, stop):
        begin_step(rng, t, scheme, storage, records, room, lots)
        now = particles[t % rows]
        before = particles[(t - 1) % rows]
        current = log_weights[t % rows]
        parents = ancestors[t % ancestors.shape[0]]
        for i in range(n * d):
            noise[i] = rng.standard_normal()
        centre = offset if t > 0 else first_mean
        spread_by = factor if t > 0 else first_factor
        if d == 1:
            slope = dynamics[0, 0]
            for i in range(n):
                now[i] = centre[0] + spread_by[0, 0] * noise[i]
            if t > 0:
                for i in range(n):
                    now[i] += slope * before[parents[i]]
        else:
            for i in range(n):
                for k in range(d):
                    value = centre[k]
                    for l in range(d):
                        value += spread_by[k, l] * noise[i * d + l]
                    if t > 0:
                        for l in range(d):
                            value += dynamics[k, l] * before[parents[i] * d + l]
                    now[i * d + k] = value
        if observed[t]:
            for j in range(emission.shape[0]):
                target = observations[t, j]
                if d == 1:
                    gain = emission[j, 0]
                    for i in range(n):
                        residual = target - gain * now[i]
                        current[i] -= 0.5 * residual * residual
                else:
                    for i in range(n):
                        residual = target
                        for k in range(d):
                            residual -= emission[j, k] * now[i * d + k]
                        current[i] -= 0.5 * residual * residual
            for i in range(n):
                current[i] += constant
        if not end_step(t, observed[t], storage, records):
            return t
    return -1
