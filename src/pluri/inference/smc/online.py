"""A particle filter for streams: one observation at a time, only the last cloud in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.smc.cloud import Cloud, Scheme, first_cloud, next_cloud
from pluri.inference.smc.model import StateSpaceModel, as_observations
from pluri.validation import RandomState, as_generator

__all__ = ["ParticleFilter"]


class ParticleFilter:
    """Follow the state of a model as observations come in.

    An observation that fails (all weights zero, a density that is NaN) raises and leaves the filter as it was.

    Parameters
    ----------
    model, n_particles, resampling, ess_threshold, proposal, random_state
        As in :func:`particle_filter`; the loop over time is the one for any model.

    Attributes
    ----------
    cloud : Cloud or None
        Weighted particles after the last observation.
    log_evidence : float
        log p(y_{0:t}) so far.
    n_steps : int
        Number of observations so far.

    Examples
    --------
    >>> from pluri.dynamics import StochasticVolatility
    >>> from pluri.inference.smc import ParticleFilter
    >>> stream = ParticleFilter(StochasticVolatility(), n_particles=100, random_state=0)
    >>> for value in (0.1, -2.0, 0.4):
    ...     cloud = stream.update(value)
    >>> stream.n_steps, cloud.mean.shape
    (3, (1,))
    """

    def __init__(
        self,
        model: StateSpaceModel,
        n_particles: int = 1000,
        resampling: str = "systematic",
        ess_threshold: float = 0.5,
        proposal: str = "bootstrap",
        random_state: RandomState = None,
    ) -> None:
        self.scheme = Scheme(n_particles, resampling, ess_threshold, proposal)
        self.scheme.check(model)
        self.model = model
        self.cloud: Cloud | None = None
        self.log_evidence = 0.0
        self.n_steps = 0
        self._rng = as_generator(random_state)

    def update(self, observation: Any) -> Cloud:
        """Take in the next observation; all NaN means that nothing was seen.

        Parameters
        ----------
        observation : array-like
            One row of what :func:`particle_filter` takes.

        Returns
        -------
        Cloud
            Particles, weights, mean and variance, and the increment of the log evidence.
        """
        row: NDArray[Any] = as_observations(self.model, np.asarray(observation)[None])[0]
        if self.cloud is None:
            cloud = first_cloud(self.model, row, self.scheme, self._rng)
        else:
            cloud = next_cloud(self.model, self.cloud, row, self.scheme, self._rng)
        self.cloud = cloud
        self.log_evidence += cloud.increment
        self.n_steps += 1
        return cloud
