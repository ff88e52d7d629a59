"""What a model gives so that expectation-maximisation can learn it: four pure functions.

The objective is the penalised log-likelihood ``J(theta) = log p(X | theta) + log p(theta)``. ``expect`` computes the
statistics that the M-step needs; they add up over batches, so the E-step can run anywhere.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Batch, Source

Params = TypeVar("Params")


class AdditiveStatistics(Protocol):
    """Statistics of a batch: they add up, and carry the batch's log-likelihood."""

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of the data these statistics come from."""
        ...

    def __add__(self, other: Any, /) -> Any:
        """Statistics of both batches together."""
        ...


Stats = TypeVar("Stats", bound=AdditiveStatistics)


class Learnable(Protocol[Params, Stats]):
    """A model that :func:`~pluri.inference.expectation_maximization` can fit."""

    def initialize(self, source: Source, rng: np.random.Generator) -> Params:
        """Parameters to start a run from; all randomness comes from ``rng``."""
        ...

    def expect(self, params: Params, batch: Batch) -> Stats:
        """E-step on one batch."""
        ...

    def maximize(self, stats: Stats, params: Params) -> Params:
        """M-step: the parameters that maximise the expected objective; priors act here."""
        ...

    def log_prior(self, params: Params) -> float:
        """Logarithm of the prior density at ``params`` (0 for maximum likelihood)."""
        ...


@runtime_checkable
class Packable(Protocol[Params]):
    """Extra that acceleration asks for: parameters as a vector in an unconstrained space.

    Coordinates that are not finite (the logarithm of a probability that is exactly zero) are left alone.
    """

    def pack(self, params: Params) -> NDArray[np.float64]:
        """Parameters as a 1-D array."""
        ...

    def unpack(self, vector: NDArray[np.float64], like: Params) -> Params:
        """Inverse of ``pack``; ``like`` gives the shapes and whatever the vector does not hold."""
        ...
