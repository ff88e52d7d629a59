"""What black-box variational inference gives back: a Gaussian, and how far it can be trusted.

Whether an approximation that found its optimum is any good is said by importance weights. Draws of q, weighted by p /
q, are worth ``ESS = (sum w)^2 / sum w^2`` draws of p. Its share of the draws falls as ``KL(q || p)`` grows; the Pareto
shape k of the largest weights tells whether that share can be trusted. Neither is enough alone: k is above 0.7 for
nearly perfect fits whose tails are thinner than those of p (above 2 with a divergence of 0.005 nats for the logarithm
of a gamma variable of shape 20), and below 0.7 for some funnels whose draws are worth a tenth of their number (`python
benchmarks/accuracy/black_box_verdicts.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pluri.inference.variational.adam import Array
from pluri.inference.variational.flows.importance import Evidence
from pluri.validation import as_generator
from pluri.validation.inputs import RandomState

#: Coordinates that a summary shows.
SHOWN = 20


#: Shape of the tail of importance weights above which their mean is not to be relied on (Yao et al., 2018).
PARETO_LIMIT = 0.7
#: Effective share of the draws below which q is poor: in any case, and if the tail is heavy as well.
POOR_SHARE, POOR_SHARE_HEAVY = 0.5, 0.75
#: Divergence in nats below which a heavy tail is no matter: one draw of thousands may halve the effective share.
HARMLESS = 0.1


class ApproximationWarning(UserWarning):
    """The best member of the family is a poor approximation: more iterations will not help, another family may."""


def is_poor(found: Evidence) -> bool:
    """Whether importance weights show that draws of q are no draws of p; what q never visits, they cannot show.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.black_box_result import is_poor
    >>> from pluri.inference.variational.flows import evidence
    >>> z = np.random.default_rng(0).normal(size=4000)
    >>> is_poor(evidence(0.02 * z)), is_poor(evidence(1.5 * z))
    (False, True)
    """
    share = found.effective_sample_size / found.n_samples
    if found.pareto_k > PARETO_LIMIT:
        return share < POOR_SHARE_HEAVY and found.log_z - found.elbo > HARMLESS
    return share < POOR_SHARE


@dataclass(frozen=True, repr=False)
class BlackBoxResult:
    """A Gaussian fitted to a density.

    That the ELBO has converged says that no better Gaussian was found, not that this one is good:
    `diagnose` tells.

    Attributes
    ----------
    mean, cov : (dim,), (dim, dim): moments of q
    elbo, elbo_standard_error : estimated from fresh draws
    elbo_trace : (n_iter,): ELBO of each batch
    evidence : importance-weighted evidence, effective number of draws, and the Pareto shape k of the weights
    n_iter : number of iterations
    converged, interrupted : how the fit ended
    factor : (dim, dim): lower triangular, cov = factor factor^T
    """

    mean: Array
    cov: Array
    elbo: float
    elbo_standard_error: float
    elbo_trace: Array
    evidence: Evidence
    n_iter: int
    converged: bool
    interrupted: bool
    factor: Array

    @property
    def pareto_k(self) -> float:
        """Shape of the tail of the importance weights p / q; above 0.7, what they estimate is not to be relied on."""
        return self.evidence.pareto_k

    @property
    def divergence(self) -> float:
        """Estimate of KL(q || p) in nats, log Z - ELBO; too small where q misses a part of p."""
        return self.evidence.log_z - self.elbo

    def diagnose(self) -> list[str]:
        """What a careful reader should know before using q, a sentence each; empty if all is well."""
        problems = []
        if self.interrupted:
            problems.append(f"Interrupted after {self.n_iter} iterations: q is what was found so far.")
        elif not self.converged:
            problems.append(f"The ELBO may still rise after {self.n_iter} iterations: raise max_iter.")
        share = self.evidence.effective_sample_size / self.evidence.n_samples
        if is_poor(self.evidence):
            problems.append(
                f"q is a poor approximation: weighted by p / q, its draws are worth {share:.0%} of their number "
                f"(Pareto k = {self.pareto_k:.2f}), and KL(q || p) is about {self.divergence:.2g} nats or more; its "
                "means, its variances (mostly too small) and the ELBO are not to be trusted. Change the parameters so "
                "that the density is closer to a Gaussian, take family='full_rank' or a flow (fit_flow), or sample "
                "(pluri.inference.mcmc)."
            )
        elif self.pareto_k > PARETO_LIMIT:
            problems.append(
                f"The tails of the density are heavier than those of q (Pareto k = {self.pareto_k:.2f}, above "
                f"{PARETO_LIMIT}), though its draws are worth {share:.0%} of their number: means and variances will "
                "do, probabilities of rare values will not."
            )
        return problems

    def summary(self) -> str:
        """A few lines to read."""
        lines = [
            repr(self),
            f"ELBO           {self.elbo:.4f} +- {self.elbo_standard_error:.4f}",
            f"log Z          {self.evidence.log_z:.4f} +- {self.evidence.log_z_standard_error:.4f}",
            f"KL(q || p)     {self.divergence:.4f}",
            f"effective      {self.evidence.effective_sample_size:.1f} of {self.evidence.n_samples} draws",
            f"Pareto k       {self.pareto_k:.2f}",
            "coordinate     mean          standard deviation",
        ]
        rows = zip(self.mean[:SHOWN], np.sqrt(np.diag(self.cov)))
        lines += [f"{index:<14} {mean:<13.5g} {deviation:.5g}" for index, (mean, deviation) in enumerate(rows)]
        if len(self.mean) > SHOWN:
            lines.append(f"... and {len(self.mean) - SHOWN} more")
        return "\n".join(lines + self.diagnose())

    def __repr__(self) -> str:
        how = "interrupted" if self.interrupted else "converged" if self.converged else "not converged"
        return (
            f"<BlackBoxResult: dim {len(self.mean)}, ELBO {self.elbo:.4f}, Pareto k {self.pareto_k:.2f}, "
            f"{self.n_iter} iterations, {how}>"
        )

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Array:
        """Independent draws, of shape (n_samples, dim)."""
        noise = as_generator(random_state).standard_normal((n_samples, len(self.mean)))
        return self.mean + noise @ self.factor.T

    def log_prob(self, z: ArrayLike) -> Array:
        """Log q at the rows of z."""
        z = np.asarray(z, dtype=np.float64)
        if z.ndim != 2 or z.shape[1] != len(self.mean):
            raise ValueError(f"z must have shape (n, {len(self.mean)}), got {z.shape}")
        noise = np.linalg.solve(self.factor, (z - self.mean).T)
        constant = np.log(np.diag(self.factor)).sum() + 0.5 * len(self.mean) * np.log(2.0 * np.pi)
        return -0.5 * (noise * noise).sum(axis=0) - constant
