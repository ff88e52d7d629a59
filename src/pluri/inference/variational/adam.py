"""Adam and RMSProp: stochastic gradient steps that are scaled by running moments of the gradient, and their loop.

With gradient ``g_t``: ``m_t = b1 m_(t-1) + (1 - b1) g_t``, ``v_t = b2 v_(t-1) + (1 - b2) g_t^2``, and the step is
``-rate * (m_t / (1 - b1^t)) / (sqrt(v_t / (1 - b2^t)) + epsilon)``. RMSProp is the case ``b1 = 0``.

References
----------
Kingma and Ba (2015), Adam: a method for stochastic optimization, ICLR.
Reddi, Kale and Kumar (2018), On the convergence of Adam and beyond, ICLR (why the rate must fall).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.progress import Step, open_progress
from pluri.validation import Only, check_value
from pluri.validation.interruption import holding

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
    check_value(optimizer, "optimizer", Only(*DECAYS))
    return DECAYS[optimizer]


class Adam:
    """Parameters that move by Adam, with the moments of their gradients.

    Parameters
    ----------
    parameters : array of shape (n_parameters,)
        Where to begin; it is not written to.
    decays : (float, float)
        As in `adam_step`.
    """

    def __init__(self, parameters: Array, decays: tuple[float, float] = DECAYS["adam"]) -> None:
        self.parameters = parameters
        self.moments = no_moments(parameters.size)
        self.decays = decays

    def move(self, gradient: Array, rate: float) -> None:
        """Step that lowers the objective of this gradient."""
        step, self.moments = adam_step(gradient, self.moments, rate, self.decays)
        self.parameters = self.parameters + step


class Descent(NamedTuple):
    """How a stochastic descent ended.

    Attributes
    ----------
    losses : one of each iteration
    converged : whether it was told to end
    interrupted : whether Ctrl-C ended it
    """

    losses: list[float]
    converged: bool
    interrupted: bool


def descend(
    step: Callable[[int], float],
    max_iter: int,
    *,
    settled: Callable[[list[float]], bool] | None = None,
    window: int = 1,
    kept: str = "the parameters so far are kept",
    verbose: int = 0,
    before: Sequence[float] = (),
) -> Descent:
    """Repeat a stochastic step: the one loop of all that is fitted by Adam, with progress and Ctrl-C.

    Parameters
    ----------
    step : callable
        ``step(number) -> loss``, with numbers from 0: take a batch, move the parameters, give the loss of the batch.
    max_iter : int
    settled : callable, optional
        Sees all losses after each step; True ends the descent.
    window : int, default=1
        Iterations over which the loss is averaged where it is shown, and from one showing to the next.
    kept : str
        What is said after Ctrl-C; before the first step it goes through.
    verbose : int, default=0
    before : sequence of float
        Losses of the steps done already, by a descent that this one goes on with.

    Returns
    -------
    Descent

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.adam import Adam, descend
    >>> adam = Adam(np.zeros(1))
    >>> def step(number):
    ...     gradient = 2.0 * (adam.parameters - 3.0)
    ...     adam.move(gradient, 0.1)
    ...     return float(gradient @ gradient) / 4.0
    >>> descend(step, 1000, settled=lambda losses: losses[-1] < 1e-8).converged, adam.parameters.round(3)
    (True, array([3.]))
    """
    losses = list(before)
    converged = bool(losses) and settled is not None and settled(losses)
    block = holding(lambda: f"fit interrupted after {len(losses)} of {max_iter} iterations; {kept}", having=losses)
    with block, open_progress(verbose) as report:
        while len(losses) < max_iter and not converged:
            losses.append(step(len(losses)))
            converged = settled is not None and settled(losses)
            if verbose and len(losses) % window == 0:
                report(_shown(losses, max_iter, window, converged))
    return Descent(losses, converged, block.interrupted)


def _shown(losses: list[float], max_iter: int, window: int, converged: bool) -> Step:
    recent = float(np.mean(losses[-window:]))
    earlier = float(np.mean(losses[-2 * window : -window])) if len(losses) >= 2 * window else math.nan
    reason = "converged" if converged else "max_iter" if len(losses) == max_iter else None
    return Step(len(losses), max_iter, -recent, earlier - recent, reason)


def refuse_divergence(number: int, loss: float, gradient: Array) -> None:
    """End a fit whose loss or gradient is not finite at iteration `number`, from 0."""
    if not (math.isfinite(loss) and np.isfinite(gradient).all()):
        raise FloatingPointError(f"the fit diverged at iteration {number + 1}: lower learning_rate")
