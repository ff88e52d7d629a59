"""Filtering as the data arrive: one observation in, regimes and state out, at a constant cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.switching.rao_blackwell import Matrices, RaoBlackwellFilter
from pluri.inference.smc.cloud import Scheme
from pluri.validation import RandomState, as_generator
from pluri.validation.interrupt_pauses import whole_pieces

Array = NDArray[np.float64]


class OnlineSwitchingFilter:
    """The running distribution of regime and state, by the Rao-Blackwellised filter; made by a model's ``filter()``.

    Attributes
    ----------
    probabilities : array of shape (n_regimes,)
        P(regime now | observations so far).
    mean, covariance : arrays of shape (n_components,) and (n_components, n_components)
        Of the state now.
    log_likelihood : float
        Estimated log-likelihood of the observations so far; its exponential is unbiased.
    n_steps : int

    Examples
    --------
    >>> from pluri.dynamics import SwitchingDynamicalSystem, make_maneuvering_target
    >>> target = make_maneuvering_target()
    >>> online = SwitchingDynamicalSystem.from_model(target, random_state=0).filter()
    >>> for row in target.sample(20, random_state=0)[1]:
    ...     probabilities = online.update(row)
    >>> probabilities.shape, online.mean.shape, online.n_steps
    ((3,), (4,), 20)
    """

    def __init__(
        self, system: Matrices, check: Callable[[Any], Array], n_particles: int, random_state: RandomState = None
    ) -> None:
        self._system, self._check = system, check
        sizes = (len(system.start), system.b.shape[1], system.c.shape[1])
        self._cloud = RaoBlackwellFilter(Scheme(n_particles), "optimal", sizes, as_generator(random_state))
        self.log_likelihood = 0.0

    @property
    def n_steps(self) -> int:
        """Number of observations so far."""
        return self._cloud.n_steps

    @property
    def probabilities(self) -> Array:
        """P(regime now | observations so far): (n_regimes,); of the first regime before any observation."""
        return self._cloud.regime_probabilities if self.n_steps else self._system.start.copy()

    @property
    def mean(self) -> Array:
        """Mean of the state now: (n_components,)."""
        return self._moments()[0]

    @property
    def covariance(self) -> Array:
        """Covariance of the state now: (n_components, n_components)."""
        return self._moments()[1]

    def update(self, x: Any) -> Array:
        """Take one observation (n_features,), NaN where nothing was seen; return the regimes' probabilities."""
        row = self._check(x)
        with whole_pieces():
            self._cloud.step(self._system, row)
            self.log_likelihood += self._cloud.increment
        return self.probabilities

    def _moments(self) -> tuple[Array, Array]:
        if self.n_steps:
            return self._cloud.moments()
        start, first = self._system.start, self._system.first_mean
        mean = start @ first
        apart = first - mean
        return mean, np.tensordot(start, self._system.first_covariance, axes=1) + (start[:, None] * apart).T @ apart
