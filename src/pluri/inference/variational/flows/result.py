"""What a fitted flow gives back: draws, densities, and how close it came."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from pluri.inference.variational.flows.flow import Flow, log_standard_normal
from pluri.inference.variational.flows.importance import Evidence, evidence
from pluri.inference.variational.flows.layer import Array
from pluri.inference.variational.flows.target import Target
from pluri.validation import as_generator
from pluri.validation.inputs import RandomState


@dataclass(frozen=True)
class FlowResult:
    """A normalizing flow q fitted to a density p~ with normaliser Z.

    Attributes
    ----------
    flow : its layers
    parameters : (n_parameters,): the best found
    free_energy : (n_iter,): E_q[log q - log p~] of each batch, which is KL(q || p) - log Z plus noise; without
        annealing, whatever the objective of the iteration was
    temperature : (n_iter,): power of the target in the objective of each iteration, 1 at the end
    n_iter : number of iterations
    interrupted : whether Ctrl-C ended the fit
    target : the density
    """

    flow: Flow
    parameters: Array
    free_energy: Array
    temperature: Array
    n_iter: int
    interrupted: bool
    target: Target = field(repr=False)

    def __repr__(self) -> str:
        note = " (interrupted)" if self.interrupted else ""
        energy = f", free energy {self.free_energy[-1]:.4f}" if len(self.free_energy) else ""
        return f"<FlowResult: {len(self.flow.layers)} layers, dim {self.dim}, {self.n_iter} iterations{energy}>{note}"

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.flow.dim

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Array:
        """Independent draws from q, of shape (n_samples, dim)."""
        return self.flow.sample(self.parameters, n_samples, as_generator(random_state))

    def log_prob(self, z: ArrayLike) -> Array:
        """Log q at the rows of z."""
        z = np.asarray(z, dtype=np.float64)
        if z.ndim != 2 or z.shape[1] != self.dim:
            raise ValueError(f"z must have shape (n, {self.dim}), got {z.shape}")
        return self.flow.log_prob(self.parameters, z)

    def log_weights(self, n_samples: int = 10_000, random_state: RandomState = None) -> tuple[Array, Array]:
        """Draws from q, and log p~ - log q at them."""
        base = as_generator(random_state).standard_normal((n_samples, self.dim))
        z, log_det, _ = self.flow.forward(self.parameters, base)
        return z, self.target.values(z) - (log_standard_normal(base) - log_det)

    def evidence(self, n_samples: int = 10_000, random_state: RandomState = None) -> Evidence:
        """Evidence lower bound, importance-weighted log Z, and the Pareto shape of the weights."""
        return evidence(self.log_weights(n_samples, random_state)[1])

    def kl_estimate(
        self, log_z: float | None = None, n_samples: int = 10_000, random_state: RandomState = None
    ) -> float:
        """Estimate KL(q || p).

        Parameters
        ----------
        log_z : float, optional
            Log normaliser of the target. If it is not known, the importance-weighted estimate stands in for it,
            which is too low, and so is the divergence, when q misses a part of p.
        n_samples : int, default=10_000
        random_state : int, Generator, RandomState or None

        Returns
        -------
        float
            In nats.
        """
        found = self.evidence(n_samples, random_state)
        return float(found.log_z if log_z is None else log_z) - found.elbo
