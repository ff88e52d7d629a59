"""The beta process truncated at K atoms: all rows use atom k with the same probability.

    z_ik ~ Bernoulli(pi_k),   pi_k ~ Beta(a / K, b (K - 1) / K)

As a / K is small, a drawn pi_k often rounds to zero, from where an atom could never come back: log pi and log (1 - pi)
are drawn instead. A row uses ``a K / (a + b (K - 1))`` atoms on average.

References
----------
Paisley and Carin (2009), Nonparametric factor analysis with beta process priors, ICML.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from pluri.processes.stick_draws import log_gamma_draws

Array = NDArray[np.float64]
Used = NDArray[np.int8]


class UsageProbabilities(NamedTuple):
    """Logarithms of the probabilities that an atom is used and that it is not: (n_components,) each."""

    log_on: Array
    log_off: Array


@dataclass(frozen=True)
class BetaProcessUsage:
    """Truncated beta process prior of which row uses which atom.

    Parameters
    ----------
    n_samples, n_components : int
        Shape of the binary matrix.
    a, b : float
        Numbers of the beta process.
    """

    n_samples: int
    n_components: int
    a: float = 10.0
    b: float = 1.0

    @property
    def shapes(self) -> tuple[float, float]:
        """Parameters of the beta distribution of one probability; one atom counts as one of two."""
        K = max(self.n_components, 2)
        return self.a / K, self.b * (K - 1) / K

    def start(self, used: Used, rng: np.random.Generator) -> UsageProbabilities:
        """Probabilities given the matrix."""
        return self._draw(used.sum(axis=0, dtype=np.float64), len(used), rng)

    def log_odds(self, state: UsageProbabilities) -> tuple[Array, NDArray[np.intp]]:
        """Log odds, (1, n_components), and group 0 for every row."""
        return (state.log_on - state.log_off)[None], np.zeros(self.n_samples, dtype=np.intp)

    def resample(self, state: UsageProbabilities, used: Used, rng: np.random.Generator) -> UsageProbabilities:
        """Draw the probabilities given the matrix."""
        return self.start(used, rng)

    def log_joint(self, state: UsageProbabilities, used: Used) -> float:
        """Log density of the matrix and of the log odds of the atoms.

        Of the log odds, not of the probabilities: where those round to zero, their density has no bound.
        """
        first, second = self.shapes
        counts = used.sum(axis=0, dtype=np.float64)
        total = (first + counts) @ state.log_on + (second + len(used) - counts) @ state.log_off
        return float(total - self.n_components * betaln(first, second))

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[UsageProbabilities, Used]:
        """Draw probabilities and a matrix from the prior."""
        state = self._draw(np.zeros(self.n_components), 0, rng)
        return state, (rng.random((n_samples, self.n_components)) < np.exp(state.log_on)).astype(np.int8)

    def _draw(self, counts: Any, n_rows: int, rng: np.random.Generator) -> UsageProbabilities:
        first, second = self.shapes
        on, off = log_gamma_draws(rng, first + counts), log_gamma_draws(rng, second + n_rows - counts)
        total = np.logaddexp(on, off)
        return UsageProbabilities(on - total, off - total)
