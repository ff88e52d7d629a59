"""Draws of states and observations from a state-space model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.smc.model import require
from pluri.validation import RandomState, as_generator, check_count

__all__ = ["simulate"]


def simulate(model: Any, n_samples: int, random_state: RandomState = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw one path of states and its observations.

    Parameters
    ----------
    model : StateSpaceModel
        With ``sample_observation(rng, particles, t)`` besides.
    n_samples : int
        Length.
    random_state : int, Generator, RandomState or None
        Source of randomness.

    Returns
    -------
    states : ndarray (n_samples, ...)
    observations : ndarray (n_samples, ...)

    Examples
    --------
    >>> from pluri.dynamics import StochasticVolatility
    >>> from pluri.inference.smc import simulate
    >>> states, observations = simulate(StochasticVolatility(), 5, random_state=0)
    >>> states.shape, observations.shape
    ((5, 1), (5, 1))
    """
    require(model, ("sample_observation",), "simulation")
    check_count(n_samples, "n_samples")
    rng = as_generator(random_state)
    state = model.sample_initial(rng, 1)
    states, observations = [state[0]], [model.sample_observation(rng, state, 0)[0]]
    for t in range(1, int(n_samples)):
        state = model.sample_transition(rng, state, t)
        states.append(state[0])
        observations.append(model.sample_observation(rng, state, t)[0])
    return np.array(states), np.array(observations)
