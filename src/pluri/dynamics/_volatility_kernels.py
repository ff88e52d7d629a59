# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""A particle filter of stochastic volatility in one loop; arguments as in `pluri.inference.smc._filter_kernels`."""

from __future__ import annotations

from pluri.engine.compiled import compiled
from pluri.inference.smc._filter_kernels import LOG_2_PI, begin_step, end_step, exponential


@compiled(reorder=True)
def filter_volatility(rng, parameters, observations, observed, start, stop, scheme, storage, records, room, lots):
    """Stochastic volatility: x_t = m + phi (x_{t-1} - m) + s e_t, y_t ~ N(0, exp(x_t)).

    `parameters` are m, phi, s and the standard deviation of x_0.
    """
    particles, log_weights, ancestors, _ = storage
    rows, n = log_weights.shape
    level, persistence, scale, first_scale = parameters
    noise = room[0]
    for t in range(start, stop):
        begin_step(rng, t, scheme, storage, records, room, lots)
        now = particles[t % rows]
        before = particles[(t - 1) % rows]
        current = log_weights[t % rows]
        parents = ancestors[t % ancestors.shape[0]]
        for i in range(n):
            noise[i] = rng.standard_normal()
        if t == 0:
            for i in range(n):
                now[i] = level + first_scale * noise[i]
        else:
            shift = level * (1.0 - persistence)
            for i in range(n):
                now[i] = shift + persistence * before[parents[i]] + scale * noise[i]
        if observed[t]:
            square = observations[t, 0] * observations[t, 0]
            for i in range(n):
                current[i] -= 0.5 * (LOG_2_PI + now[i] + square * exponential(-now[i]))
        if not end_step(t, observed[t], storage, records):
            return t
    return -1
