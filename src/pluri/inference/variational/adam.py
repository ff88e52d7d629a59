"""Adam and RMSProp: stochastic gradient steps that are scaled by running moments of the gradient.

With gradient ``g_t``: ``m_t = b1 m_(t-1) + (1 - b1) g_t``, ``v_t = b2 v_(t-1) + (1 - b2) g_t^2``, and the step is
``-rate * (m_t / (1 - b1^t)) / (sqrt(v_t / (1 - b2^t)) + epsilon)``. RMSProp is the case ``b1 = 0``.

References
----------
Kingma and Ba (2015), Adam: a method for stochastic optimization, ICLR.
Reddi, Kale and Kumar (2018), On the convergence of Adam and beyond, ICLR (why the rate must fall).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Decay of the first and of the second moment, by name of the optimiser.
DECAYS = {"adam": (0.9, 0.999), "rmsprop": (0.0, 0.99)}


class Moments(NamedTuple):
    """Running moments of the gradient.

    Attributes
    ----------
    first, second : (n_parameters,): running means of the gradient and of its square, not yet corrected for the start
    n_seen : number of gradients seen
    """

    first: Array
    second: Array
    n_seen: int


def no_moments(n_parameters: int) -> Moments:
    """Moments before the first gradient."""
    return Moments(np.zeros(n_parameters), np.zeros(n_parameters), 0)


def adam_step(
    gradient: Array,
    moments: Moments,
    learning_rate: float,
    decays: tuple[float, float] = DECAYS["adam"],
    epsilon: float = 1e-8,
) -> tuple[Array, Moments]:
    """Step that lowers an objective, to be added to the parameters, and the new moments.

    Parameters
    ----------
    gradient : array of shape (n_parameters,)
    moments : Moments
    learning_rate : float
    decays : (float, float)
        Of the first and of the second moment; see `DECAYS`.
    epsilon : float

    Returns
    -------
    step : array of shape (n_parameters,)
    moments : Moments

    Examples
    --------
    The first step has the length of the learning rate whatever the scale of the gradient.

    >>> import numpy as np
    >>> from pluri.inference.variational.adam import adam_step, no_moments
    >>> step, moments = adam_step(np.array([1e-3, -50.0]), no_moments(2), learning_rate=0.1)
    >>> step.round(4)
    array([-0.1,  0.1])
    """
    slow, fast = decays
    n_seen = moments.n_seen + 1
    first = slow * moments.first + (1.0 - slow) * gradient
    second = fast * moments.second + (1.0 - fast) * gradient**2
    scale = np.sqrt(second / (1.0 - fast**n_seen)) + epsilon
    return -learning_rate / (1.0 - slow**n_seen) * first / scale, Moments(first, second, n_seen)


def decays_of(optimizer: str) -> tuple[float, float]:
    """Decays of a named optimiser."""
    if optimizer not in DECAYS:
        raise ValueError(f"optimizer must be one of {sorted(DECAYS)}, got {optimizer!r}")
    return DECAYS[optimizer]
