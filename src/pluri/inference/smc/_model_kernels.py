# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Loops over particles and time that are compiled around a user's functions of one particle."""

from __future__ import annotations

from typing import Any

from numba.core.dispatcher import Dispatcher

from pluri.engine.compiled import compiled
from pluri.inference.smc._filter_kernels import begin_step, end_step


def as_compiled(function):
    """A function as one that compiled loops can call."""
    # Not cached on disk: the function may stand in a notebook, and its loops would not notice a change of it.
    return function if isinstance(function, Dispatcher) else compiled(cache=False)(function)


class Loops:
    """The loops around three functions; each is compiled when it is first called."""

    def __init__(self, initial: Any, transition: Any, log_density: Any) -> None:
        initial, transition, log_density = as_compiled(initial), as_compiled(transition), as_compiled(log_density)

        @compiled(cache=False)
        def draw_first(rng, parameters, states):
            for i in range(states.shape[0]):
                initial(rng, parameters, states[i])

        @compiled(cache=False)
        def move(rng, t, parameters, old, new):
            for i in range(old.shape[0]):
                transition(rng, t, parameters, old[i], new[i])

        @compiled(cache=False)
        def weigh(t, parameters, observation, states, out):
            for i in range(states.shape[0]):
                out[i] = log_density(t, parameters, observation, states[i])

        @compiled(cache=False)
        def run(rng, parameters, observations, observed, start, stop, scheme, storage, records, room, lots):
            particles, log_weights, ancestors, _ = storage
            rows, n = log_weights.shape
            d = records[2].shape[1]
            for t in range(start, stop):
                begin_step(rng, t, scheme, storage, records, room, lots)
                now = particles[t % rows].reshape(n, d)
                before = particles[(t - 1) % rows].reshape(n, d)
                current = log_weights[t % rows]
                parents = ancestors[t % ancestors.shape[0]]
                for i in range(n):
                    if t == 0:
                        initial(rng, parameters, now[i])
                    else:
                        transition(rng, t, parameters, before[parents[i]], now[i])
                if observed[t]:
                    for i in range(n):
                        current[i] += log_density(t, parameters, observations[t], now[i])
                if not end_step(t, observed[t], storage, records):
                    return t
            return -1

        self.draw_first, self.move, self.weigh, self.run = draw_first, move, weigh, run


def comparison(log_transition_density: Any) -> Any:
    """Loop over pairs of states."""
    density = as_compiled(log_transition_density)

    @compiled(cache=False)
    def compare(t, parameters, old, new, out):
        for i in range(old.shape[0]):
            out[i] = density(t, parameters, old[i], new[i])

    return compare
