r"""Where to observe a Gaussian process next: closed forms for information about the function, or about some places.

With K the posterior covariance of f at candidates (and at targets T) and noise s::

    about f at all candidates    1/2 log det(I + K_AA / s)
    about f at T                 1/2 log det(K_AA + s I) - 1/2 log det(K_AA|T + s I)

Both are the same for every outcome, so that planning ahead loses nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.decisions.selection.covariance_residuals import NOTHING_LEFT, Residuals

Array = NDArray[np.float64]


class PlacePlanner:
    """Information of noisy observations of a Gaussian field, exact.

    Parameters
    ----------
    covariance : (n, n)
        Of f at the candidates.
    noise : float
        Variance of an observation; positive.
    given_target : (n, n) or None
        The covariance given f at the target places.
    """

    def __init__(self, covariance: Array, noise: float, given_target: Array | None = None) -> None:
        self.candidates = list(range(len(covariance)))
        identity = np.eye(len(covariance))
        self.noise = noise
        self.before = Residuals.of(covariance + noise * identity)
        self.after = None if given_target is None else Residuals.of(given_target + noise * identity)

    def gains(self, places: list[int]) -> tuple[Array, Array]:
        """Information of each place given what is planned; exact, so without error."""
        chosen = np.asarray(places, dtype=np.int64)
        known = self.noise if self.after is None else np.maximum(self.after.left[chosen], NOTHING_LEFT * self.noise)
        found = 0.5 * np.log(np.maximum(self.before.left[chosen], NOTHING_LEFT * self.noise) / known)
        return np.maximum(found, 0.0), np.zeros(len(places))

    def add(self, place: int) -> None:
        """Change what is known: the place is observed."""
        self.before.pivot(place)
        if self.after is not None:
            self.after.pivot(place)
