"""What annealed importance sampling leaves behind: weighted points, and how the weights grew along the path."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.pilot import AnnealingPlan
from pluri.inference.ais.weighted_samples import WeightedSamples

Array = NDArray[np.float64]


def _nothing() -> Array:
    return np.empty(0)


@dataclass(frozen=True, repr=False)
class AnnealedSamples(WeightedSamples):
    """Weighted points at the end of an annealing run, one for each run.

    A run that Ctrl-C ended early has weights and points for the density ``f_b`` of the last temperature it reached,
    ``betas[-1]``: they are *not* an estimate for the target.

    Attributes
    ----------
    betas : array (n + 1,)
        Inverse temperatures, in the order visited.
    acceptance : array (n + 1,)
        Mean acceptance of the moves at each; NaN at the ends, where nothing moves.
    ess_by_temperature : array (n + 1,)
        Effective sample size of the weights up to there.
    log_z_by_temperature : array (n + 1,)
        Log ratio of constants, that of ``f_b`` to the beginning.
    mean_gain : array (n + 1,)
        ``E_b[gain]``, the derivative of the log constant by b: the curve of thermodynamic integration. The gain is
        the log likelihood, or the log target less the log prior.
    log_weight_paths : array (n_runs, n + 1) or None
        Logarithm of each run's weight at each temperature; None if not kept.
    plan : AnnealingPlan
        Temperatures and frozen moves, to be used again.
    n_evaluations : int
        Evaluations of the log densities, without the pilot's.
    undefined, uncovered : int
        Proposals at which a density was NaN or +inf (they were refused); at which the target was positive and the
        prior zero.
    seconds : float
    """

    betas: Array = field(default_factory=_nothing)
    acceptance: Array = field(default_factory=_nothing)
    ess_by_temperature: Array = field(default_factory=_nothing)
    log_z_by_temperature: Array = field(default_factory=_nothing)
    mean_gain: Array = field(default_factory=_nothing)
    log_weight_paths: Array | None = None
    plan: AnnealingPlan | None = None
    n_evaluations: int = 0
    undefined: int = 0
    uncovered: int = 0
    seconds: float = float("nan")

    _least_share = 0.01
    _advice = "use more temperatures, another schedule, more steps at each, or transitions that mix better"

    @property
    def log_z_se(self) -> float:
        """Standard error of `log_z` by the jackknife: from how much leaving out each run changes the logarithm.

        With W the weights that add up to one these changes are ``log(1 - W)``. For even weights that is the relative
        error of the mean weight, ``sqrt((n / ess - 1) / n)``; a run that has much of all weight makes it larger. It is
        estimated from the weights as well: too small when the largest have not been seen.
        """
        n = len(self)
        with np.errstate(divide="ignore"):
            changes = np.log1p(-self.weights)
        if changes.min() == -math.inf:
            return math.inf
        return math.sqrt((n - 1.0) / n * float(np.square(changes - changes.mean()).sum()))

    @property
    def log_z_thermodynamic(self) -> float:
        """Log ratio of constants by thermodynamic integration of `mean_gain`; a check that has its own bias."""
        return float((0.5 * (self.mean_gain[1:] + self.mean_gain[:-1]) * np.diff(self.betas)).sum())

    def diagnose(self) -> list[str]:
        """What a careful reader should know before using the estimates, a sentence each; empty if all is well."""
        problems = []
        if self.interrupted:
            problems.append(
                f"Interrupted at beta = {self.betas[-1]:.4g}: weights and points belong to the density at that "
                "temperature; this is not an estimate for the end of the path."
            )
        problems += super().diagnose()
        moved = self.acceptance[~np.isnan(self.acceptance)]
        stuck = int((moved < 0.01).sum())
        if stuck:
            problems.append(
                f"At {stuck} of {len(moved)} temperatures fewer than 1% of the moves were accepted: the points hardly "
                "moved there; use shorter steps, or let the pilot tune them."
            )
        if self.undefined:
            problems.append(f"A log density was NaN or +inf at {self.undefined} proposals; they were refused.")
        if self.uncovered:
            problems.append(
                f"log_prior was -inf at {self.uncovered} proposals where log_target was not: the prior must be "
                "positive wherever the target is, or the estimate is that of the part inside the prior."
            )
        return problems


@dataclass(frozen=True, repr=False)
class ReverseSamples(AnnealedSamples):
    """Annealing from the target back to the prior: the mean weight is an unbiased estimate of ``1 / Z``.

    ``log_z`` is ``-log mean w``, which is too *large* on average (Jensen): an upper bound, to set against the lower one
    of a forward run. The points are weighted for the prior.
    """

    @property
    def log_inverse_z(self) -> float:
        """Logarithm of the unbiased estimate of ``Z_prior / Z_target``."""
        return self.log_mean_weight

    @property
    def log_z(self) -> float:
        """``-log_inverse_z``: on average above the true ``log(Z_target / Z_prior)``."""
        return -self.log_mean_weight

    @property
    def log_z_se(self) -> float:
        """Relative error of the mean weight: wide enough for a bound, and not so wide that bounds never cross."""
        return WeightedSamples.log_z_se.__get__(self)

    @property
    def upper_bound(self) -> float:
        """``-mean log w``: an upper bound on average, looser than `log_z`."""
        return -float(self.log_weights.mean())

    @property
    def log_z_thermodynamic(self) -> float:
        """Log ratio of constants by thermodynamic integration of `mean_gain`."""
        return -super().log_z_thermodynamic
