"""What a hidden Markov model or a mixture asks of its components: densities, statistics and an M-step, on arrays.

A family object holds hyper-parameters (priors, which parameters are updated); the parameters themselves are a
frozen record of its own. `posterior` and `out` have the width of `pluri.engine.aligned.padded_width`.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Statistics

P = TypeVar("P")
S = TypeVar("S", bound=Statistics)
Array = NDArray[np.float64]


class ComponentFamily(Protocol[P, S]):
    """The distribution of the observations, given the state or component that they come from."""

    def prepare(self, X: NDArray[Any]) -> NDArray[Any]:
        """Raw observations of some rows in the form that the methods below read (types, codes, contiguity)."""

    def initialize(self, X: NDArray[Any], n_components: int, rng: np.random.Generator) -> P:
        """Parameters to start from, given (a sample of) the observations."""

    def log_prob(self, parameters: P, X: NDArray[Any], out: Array) -> None:
        """Write log p(x_t | component j) into ``out[:, :k]``; log p of a missing observation is 0."""

    def accumulate(self, parameters: P, X: NDArray[Any], posterior: Array) -> S:
        """Additive statistics of the rows of X under weighted probabilities of the components."""

    def maximize(self, stats: S, parameters: P) -> P:
        """Parameters that maximise the expected log-likelihood plus the log prior."""

    def log_prior(self, parameters: P) -> float:
        """Log prior density of the parameters, up to a constant, consistent with `maximize`."""

    def sample(self, parameters: P, states: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        """One observation for each of the named components: (len(states), n_features)."""

    def n_free(self, parameters: P) -> int:
        """Number of free scalar parameters, for AIC and BIC."""

    def pack(self, parameters: P) -> Array:
        """Parameters as one unconstrained vector, for accelerated EM."""

    def unpack(self, vector: Array, like: P) -> P:
        """The inverse of `pack`."""
