"""Two switching systems of the literature: random ones whose regimes differ in scale, and a target that turns."""

from __future__ import annotations

import numpy as np

from pluri.dynamics.switching.known import SwitchingLinearModel
from pluri.validation import RandomState, as_generator

__all__ = ["make_maneuvering_target", "make_slds_random"]


def make_slds_random(
    n_regimes: int = 4, n_states: int = 1, n_outputs: int = 2, random_state: RandomState = None
) -> SwitchingLinearModel:
    """A random switching system whose regimes differ in scale: A_i and C_i are i times standard normal entries.

    Parameters
    ----------
    n_regimes, n_states, n_outputs : int
        Sizes.
    random_state : int, Generator, RandomState or None
        Source of randomness.

    Examples
    --------
    >>> from pluri.dynamics import make_slds_random
    >>> make_slds_random(random_state=0).arrays.C.shape
    (4, 2, 1)
    """
    rng = as_generator(random_state)
    factor = np.arange(1, n_regimes + 1)[:, None, None]
    rows = rng.integers(1, 11, size=(n_regimes + 1, n_regimes)).astype(np.float64)
    rows /= rows.sum(axis=1, keepdims=True)
    return SwitchingLinearModel(
        transition=rows[1:],
        initial_probabilities=rows[0],
        dynamics=factor * rng.standard_normal((n_regimes, n_states, n_states)),
        dynamics_noise=np.tile(0.01 * np.eye(n_states), (n_regimes, 1, 1)),
        emission=factor * rng.standard_normal((n_regimes, n_outputs, n_states)),
        emission_noise=np.tile(0.01 * np.eye(n_outputs), (n_regimes, 1, 1)),
        initial_mean=np.zeros(n_states),
        initial_covariance=0.1 * np.eye(n_states),
    )


def make_maneuvering_target() -> SwitchingLinearModel:
    """A target in the plane that goes straight or turns either way: position and speed of both axes, in noise.

    The state is (position, speed, position, speed); the second and third regime push it in opposite directions.

    Examples
    --------
    >>> from pluri.dynamics import make_maneuvering_target
    >>> make_maneuvering_target().arrays.A.shape
    (3, 4, 4)
    """
    push = np.array([-1.225, -0.35, 1.225, 0.35])
    step = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]])
    return SwitchingLinearModel(
        transition=np.full((3, 3), 0.05) + 0.85 * np.eye(3),
        initial_probabilities=np.array([0.0, 1.0, 0.0]),
        dynamics=np.tile(step, (3, 1, 1)),
        dynamics_noise=np.tile(0.2 * np.eye(4), (3, 1, 1)),
        emission=np.tile(np.eye(4), (3, 1, 1)),
        emission_noise=np.tile(3 * np.diag([2.0, 1.0, 2.0, 1.0]), (3, 1, 1)),
        initial_mean=np.zeros(4),
        initial_covariance=np.eye(4),
        dynamics_input=np.stack([np.zeros(4), push, -push])[:, :, None],
        inputs=np.ones(1),
    )
