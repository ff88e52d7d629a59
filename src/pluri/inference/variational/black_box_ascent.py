"""The ascent of the ELBO: Adam with a rate that falls when a window of iterations has gained nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pluri.inference.variational.adam import Adam, Array, decays_of, refuse_divergence
from pluri.inference.variational.families import Family
from pluri.validation import Number, Only, Whole, check_value

#: Mean gradient over a window, in standard errors, above which a parameter still travels.
DRIFT = 4.0
#: Adam forgets squares of gradients faster than usual, as they fall by orders of magnitude while q narrows.
MEMORY = 0.99
#: The rate is multiplied by this when the ELBO has stopped rising, down to this share of the first rate.
COOLING, COLDEST = 0.4, 0.01


@dataclass(frozen=True)
class AscentSettings:
    """How an ascent of the ELBO goes.

    Parameters
    ----------
    optimizer : {"adam", "rmsprop"}, default="adam"
    learning_rate : float, default=0.05
        First rate.
    batch_size : int, optional
        Number of draws of an iteration; by default 16, or 256 with the score-function gradient.
    window : int, default=100
        Number of iterations over which the ELBO is averaged to see whether it still rises.
    n_final : int, default=4000
        Number of fresh draws for the final ELBO and importance weights.

    Examples
    --------
    >>> from pluri.inference.variational import AscentSettings
    >>> AscentSettings(learning_rate=0.01, batch_size=64).window
    100
    """

    optimizer: str = "adam"
    learning_rate: float = 0.05
    batch_size: int | None = None
    window: int = 100
    n_final: int = 4000

    def __post_init__(self) -> None:
        decays_of(self.optimizer)
        check_value(self.learning_rate, "learning_rate", Number(above=0))
        check_value(self.batch_size, "batch_size", Whole(2) | Only(None))
        check_value(self.window, "window", Whole(10))
        check_value(self.n_final, "n_final", Whole(2))


class CoolingAscent:
    """Parameters of q on their way up, to be run by `pluri.inference.variational.adam.descend`.

    Parameters
    ----------
    family : Family
    estimate : callable
        ``estimate(parameters, noise)``: ELBO of a batch and its gradient.
    settings : AscentSettings
    batch_size : int
        Draws of an iteration.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        family: Family,
        estimate: Callable[[Array, Array], tuple[float, Array]],
        settings: AscentSettings,
        batch_size: int,
        rng: np.random.Generator,
    ) -> None:
        self.family, self.estimate, self.settings, self.rng = family, estimate, settings, rng
        self.batch_size = batch_size
        slow, fast = decays_of(settings.optimizer)
        self.adam = Adam(family.standard(), (slow, min(fast, MEMORY)))
        self.rate = float(settings.learning_rate)
        self.gradients: list[Array] = []
        self.total, self.since, self.mean = np.zeros(family.n_parameters), 0, self.adam.parameters

    def step(self, number: int) -> float:
        """Climb once; gives the negative ELBO of the batch."""
        noise = self.rng.standard_normal((self.batch_size, self.family.dim))
        elbo, gradient = self.estimate(self.adam.parameters, noise)
        refuse_divergence(number, elbo, gradient)
        self.gradients.append(gradient)
        self.adam.move(-gradient, self.rate)
        self.total, self.since = self.total + self.adam.parameters, self.since + 1
        return -elbo

    def settled(self, losses: list[float]) -> bool:
        """At the end of a window: cool if nothing was gained; True at the last rate, when `mean` is the answer."""
        window = self.settings.window
        if len(self.gradients) < window:
            return False
        gain, error = _gain(losses, window)
        still = self.since >= 2 * window and gain < error and _average_out(self.gradients, gain, losses[-1])
        self.gradients.clear()
        if still:
            self.mean, self.total = self.total / self.since, np.zeros_like(self.total)
            self.rate, self.since = self.rate * COOLING, 0
        return self.rate < COLDEST * self.settings.learning_rate


def _gain(losses: list[float], window: int) -> tuple[float, float]:
    """Fall of the mean loss from one window to the next, and its standard error."""
    if len(losses) < 2 * window:
        return math.nan, 0.0
    now, before = np.array(losses[-window:]), np.array(losses[-2 * window : -window])
    error = math.sqrt((now.var() + before.var()) / window)
    return float(before.mean() - now.mean()), error + 1e-12 * abs(float(now.mean()))


def _average_out(gradients: list[Array], gain: float, loss: float) -> bool:
    """Whether the gradients of a window average out, or the ELBO is exact already."""
    if abs(gain) <= 1e-9 * (1.0 + abs(loss)):
        return True
    rows = np.array(gradients)
    error = rows.std(axis=0) / math.sqrt(len(rows))
    return bool((np.abs(rows.mean(axis=0)) <= DRIFT * error).all())
