"""What the tests of driven models share."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def two_states():
    """Inputs (n, 2) and states: the first input pushes the chain out of state 0, the second holds it in state 1."""

    def simulate(rng, n_samples, effects=(1.5, -1.0)):
        inputs, state, states = rng.normal(size=(n_samples, 2)), 0, []
        for t in range(n_samples):
            leave = -1.5 + (effects[0] * inputs[t, 0] if state == 0 else effects[1] * inputs[t, 1])
            state = 1 - state if rng.random() < 1.0 / (1.0 + np.exp(-leave)) else state
            states.append(state)
        return inputs, np.array(states)

    return simulate
