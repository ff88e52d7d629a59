"""Both sides of a normalising constant: annealing forward gives a lower bound on average, backward an upper one.

By Jensen's inequality ``E log(mean w) <= log Z`` for weights whose mean is unbiased for Z, and the reverse runs, whose
mean weight is unbiased for 1/Z, give ``E[-log(mean w)] >= log Z``. The gap tells how far either can be off; it closes
as temperatures are added. The upper bound needs *exact* draws of the target, as one has for simulated data (the
parameters that made them), or draws of a chain that has converged.

References
----------
.. [1] Grosse, R. B., Ghahramani, Z. and Adams, R. P. (2015). Sandwiching the marginal likelihood using bidirectional
   Monte Carlo. arXiv:1511.02543.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from pluri.inference.ais.annealed_importance import AnnealedImportanceSampler
from pluri.inference.ais.samples import AnnealedSamples, ReverseSamples

__all__ = ["Sandwich", "bidirectional"]


@dataclass(frozen=True)
class Sandwich:
    """Two estimates of ``log Z``, one from below and one from above.

    Attributes
    ----------
    lower, upper : float
        ``log_z`` of the forward and of the reverse runs.
    lower_se, upper_se : float
        Their standard errors.
    forward, reverse : AnnealedSamples, ReverseSamples
    """

    lower: float
    upper: float
    lower_se: float
    upper_se: float
    forward: AnnealedSamples
    reverse: ReverseSamples

    @property
    def gap(self) -> float:
        """``upper - lower``; slightly negative when both are right up to noise."""
        return self.upper - self.lower

    def diagnose(self) -> list[str]:
        """Problems of either direction, and bounds that cross by more than their errors."""
        problems = [f"Forward: {problem}" for problem in self.forward.diagnose()]
        problems += [f"Reverse: {problem}" for problem in self.reverse.diagnose()]
        if self.gap < -4.0 * math.hypot(self.lower_se, self.upper_se):
            problems.append(
                f"The upper bound {self.upper:.4f} lies below the lower one {self.lower:.4f} by more than their "
                "errors: the draws were not from the target, or do not reach all of it."
            )
        return problems

    def __repr__(self) -> str:
        return f"<Sandwich: {self.lower:.4f} <= log Z <= {self.upper:.4f}, gap {self.gap:.4f}>"


def bidirectional(sampler: AnnealedImportanceSampler, draws: ArrayLike) -> Sandwich:
    """Anneal forward from the prior and backward from draws of the target, with the same temperatures and moves.

    Parameters
    ----------
    sampler : AnnealedImportanceSampler
    draws : array (n, d)
        Exact draws of the target.

    Returns
    -------
    Sandwich

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.ais.annealed_importance import AnnealedImportanceSampler
    >>> from pluri.inference.ais.bidirectional import bidirectional
    >>> sampler = AnnealedImportanceSampler(
    ...     lambda x: -((x[:, 0] - 3) ** 2) / 0.5,
    ...     lambda x: -(x[:, 0] ** 2) / 2,
    ...     lambda rng, n: rng.normal(size=(n, 1)),
    ...     n_steps_per_temperature=2,
    ...     random_state=0,
    ... )
    >>> sandwich = bidirectional(sampler, np.random.default_rng(1).normal(3, 0.5, (1000, 1)))
    >>> bool(sandwich.lower - 0.1 < np.log(0.5) < sandwich.upper + 0.1)
    True
    """
    plan = sampler.make_plan()
    forward = sampler.run(plan)
    reverse = sampler.run_reverse(draws, plan)
    return Sandwich(forward.log_z, reverse.log_z, forward.log_z_se, reverse.log_z_se, forward, reverse)
