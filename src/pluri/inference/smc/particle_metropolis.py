"""Particle marginal Metropolis-Hastings: parameters of a state-space model given observations.

The chain walks through the parameters and accepts with the ratio of p(theta) p^(y | theta), where p^ is a particle
filter's unbiased estimate of the evidence. The estimate at the current point is kept, not renewed, which leaves the
exact posterior invariant for any number of particles; their number should make the standard deviation of log p^ about
one.

References
----------
Andrieu, Doucet and Holenstein (2010), Particle Markov chain Monte Carlo methods, JRSS B 72.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.inference.mcmc.adaptation import RunningVariance
from pluri.inference.mcmc.kernel import Info
from pluri.inference.smc.cloud import Scheme
from pluri.inference.smc.filter import run_filter
from pluri.inference.smc.gaussian import covariance_factor
from pluri.inference.smc.weights import ParticleDegeneracyError
from pluri.validation import Number, check_value

__all__ = ["ParticleMarginalMetropolis"]

Floats = NDArray[np.float64]


class MarginalState(NamedTuple):
    """Parameters, log p(theta) + log p^(y | theta), and log p^(y | theta) alone."""

    position: Floats
    log_density: float
    log_evidence: float


@dataclass(frozen=True, eq=False)
class ParticleMarginalMetropolis:
    """Random-walk Metropolis on parameters, with the evidence estimated by a particle filter.

    Parameters
    ----------
    make_model : callable
        Parameters (dim,) to a model.
    log_prior : callable
        Parameters (dim,) to their log prior density; where it is -inf no model is made.
    observations : array-like
        As for :func:`particle_filter`.
    n_particles : int, default=500
        Number of particles.
    step_size : float, optional
        Scale of the proposals; ``2.38 / sqrt(dim)`` if not given. Learned in the warm-up.
    covariance : array-like (dim, dim), optional
        Shape of the proposals; the identity if not given. Learned in the warm-up.
    target_accept : float, default=0.2
        Acceptance that the warm-up aims at; lower than without the noise of the evidence.
    resampling, ess_threshold, proposal
        As for :func:`particle_filter`.

    Examples
    --------
    >>> from pluri.inference import mcmc
    >>> from pluri.dynamics import LinearGaussianModel
    >>> from pluri.inference.smc import ParticleMarginalMetropolis
    >>> _, observations = LinearGaussianModel(0.8, 1.0, 1.0, 1.0, 0.0, 1.0).sample(30, random_state=0)
    >>> kernel = ParticleMarginalMetropolis(
    ...     make_model=lambda theta: LinearGaussianModel(theta[0], 1.0, 1.0, 1.0, 0.0, 1.0),
    ...     log_prior=lambda theta: 0.0 if abs(theta[0]) < 1 else -float("inf"),
    ...     observations=observations,
    ...     n_particles=100,
    ... )
    >>> trace = mcmc.sample(kernel, [0.5], n_draws=20, n_warmup=20, n_chains=1, random_state=0, warn=False)
    >>> trace["x"].shape
    (1, 20, 1)
    """

    make_model: Callable[[Floats], Any]
    log_prior: Callable[[Floats], float]
    observations: ArrayLike
    n_particles: int = 500
    step_size: float | None = None
    covariance: Any = None
    target_accept: float = 0.2
    resampling: str = "systematic"
    ess_threshold: float = 0.5
    proposal: str = "bootstrap"

    tuned = ("step_size", "covariance")
    healthy_acceptance = (0.03, 0.6)

    def __post_init__(self) -> None:
        Scheme(self.n_particles, self.resampling, self.ess_threshold, self.proposal)
        if self.step_size is not None and not 0 < self.step_size < math.inf:
            raise ValueError(f"step_size must be positive, got {self.step_size!r}")
        check_value(self.target_accept, "target_accept", Number(above=0, below=1))

    @cached_property
    def _factor(self) -> Floats | None:
        if self.covariance is None:
            return None
        return covariance_factor(
            np.atleast_2d(np.asarray(self.covariance, dtype=np.float64)), "covariance", definite=True
        )

    def init(self, rng: np.random.Generator, position: Any) -> MarginalState:
        """State at some parameters, with an estimate of the evidence there."""
        theta = np.atleast_1d(np.array(position, dtype=np.float64))
        if theta.ndim != 1 or not np.isfinite(theta).all():
            raise ValueError(f"parameters must be a finite vector, got {position!r}")
        if self._factor is not None and len(self._factor) != len(theta):
            raise ValueError(f"covariance must be for {len(theta)} parameters, got shape {self._factor.shape}")
        prior = self._log_prior(theta)
        if prior == -math.inf:
            raise ValueError(f"log_prior must be finite where a chain begins, got -inf at {theta}")
        evidence = self._log_evidence(rng, theta)
        if evidence == -math.inf:
            raise ValueError(
                f"the observations must be possible where a chain begins, but no particle survives at {theta}"
            )
        return MarginalState(theta, prior + evidence, evidence)

    def step(self, rng: np.random.Generator, state: MarginalState) -> tuple[MarginalState, Info]:
        """Propose parameters, filter, accept or not."""
        dim = len(state.position)
        scale = self.step_size if self.step_size is not None else 2.38 / math.sqrt(dim)
        move = rng.standard_normal(dim)
        position = state.position + scale * (move if self._factor is None else self._factor @ move)
        prior = self._log_prior(position)
        evidence = self._log_evidence(rng, position) if prior > -math.inf else -math.inf
        proposed = MarginalState(position, prior + evidence, evidence)
        acceptance = math.exp(min(0.0, proposed.log_density - state.log_density))
        accepted = rng.random() < acceptance
        info = {
            "acceptance": acceptance,
            "accepted": float(accepted),
            "n_evaluations": float(prior > -math.inf),
            "divergent": 0.0,
            "log_evidence": proposed.log_evidence if accepted else state.log_evidence,
        }
        return (proposed if accepted else state), info

    def adaptation(self, n_warmup: int) -> MarginalAdaptation:
        """Covariance of the draws so far, and the step size that has the acceptance wanted."""
        return MarginalAdaptation(n_warmup)

    def _log_prior(self, theta: Floats) -> float:
        value = float(self.log_prior(theta))
        if math.isnan(value) or value == math.inf:
            raise ValueError(f"log_prior must return a number below infinity, got {value} at {theta}")
        return value

    def _log_evidence(self, rng: np.random.Generator, theta: Floats) -> float:
        model = self.make_model(theta)
        scheme = Scheme(self.n_particles, self.resampling, self.ess_threshold, self.proposal)
        scheme.check(model)
        try:
            return run_filter(model, self.observations, scheme, rng, keep=False).log_evidence
        except ParticleDegeneracyError:
            return -math.inf


class MarginalAdaptation:
    """Warm-up of `ParticleMarginalMetropolis`: Robbins-Monro for the step size, Welford for the covariance."""

    def __init__(self, n_warmup: int) -> None:
        self._n_warmup = n_warmup
        self._done = 0
        self._certain = 0

    def start(
        self, rng: np.random.Generator, kernel: ParticleMarginalMetropolis, state: MarginalState
    ) -> ParticleMarginalMetropolis:
        """Begin with the kernel as it is."""
        dim = len(state.position)
        self._seen = RunningVariance(dim, dense=True)
        self._log_step = math.log(kernel.step_size if kernel.step_size is not None else 2.38 / math.sqrt(dim))
        return replace(kernel, step_size=math.exp(self._log_step))

    def update(
        self, rng: np.random.Generator, kernel: ParticleMarginalMetropolis, state: MarginalState, info: Info
    ) -> ParticleMarginalMetropolis:
        """See one step."""
        self._done += 1
        self._certain += info["acceptance"] == 1.0
        self._log_step += (self._done + 1) ** -0.6 * (info["acceptance"] - kernel.target_accept)
        settings: dict[str, Any] = {"step_size": math.exp(self._log_step)}
        # The first fifth finds the posterior; what is learned after it has its shape.
        if self._done > self._n_warmup // 5:
            self._seen.add(state.position)
            if self._seen.count >= 20 and self._seen.count % 10 == 0:
                covariance = self._seen.covariance + 1e-10 * np.eye(len(state.position))
                if (np.diag(self._seen.covariance) > 0).all():
                    if kernel.covariance is None:  # from the identity to the posterior's scale
                        self._log_step = math.log(2.38 / math.sqrt(len(state.position)))
                    settings = {"step_size": math.exp(self._log_step), "covariance": covariance}
        return replace(kernel, **settings)

    def finish(self, kernel: ParticleMarginalMetropolis) -> ParticleMarginalMetropolis:
        """Refuse a target that never refused a step."""
        if self._done >= 50 and self._certain == self._done:
            raise ValueError(
                f"every proposal of the warm-up ({self._done} steps) was accepted for certain: the log density looks "
                "constant. Do the prior and the model depend on the parameters?"
            )
        return kernel
