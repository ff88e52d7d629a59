"""What tempered sequential Monte Carlo leaves behind: particles, the evidence, and how the cooling went."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pluri.inference.mcmc.trace import Trace

Array = NDArray[np.float64]
#: Effective families below which the error bar is doubted; correlation above which the moves are.
FEWEST_FAMILIES, MOST_MEMORY = 20.0, 0.8
#: Waste-free chains by dimension below which the error bar is doubted: with five it is right (twenty dimensions of
#: `benchmarks/accuracy/evidence_error_bars.py --only waste_free`).
CHAINS_BY_DIMENSION = 5


@dataclass(frozen=True)
class TemperedResult:
    """Particles of the posterior, all worth the same, and the evidence.

    After Ctrl-C the particles and `log_z` are those of the last temperature that was complete, ``betas[-1]``, not of
    the posterior.

    Attributes
    ----------
    x : array (n_particles, d)
    log_prior, log_likelihood : array (n_particles,)
    log_z : float
        Log evidence; its exponential is unbiased but for what the moves learn from the particles, which vanishes with
        their number.
    log_z_se : float
        Standard error, from which particles descend from which (:mod:`pluri.inference.smc.tempered.genealogy`).
    betas : array (n + 1,), from 0
    log_z_by_temperature, mean_log_likelihood : array (n + 1,)
        Log evidence up to there; mean over the particles.
    ess : array (n + 1,)
        Effective sample size after weighting, before resampling.
    acceptance : array (n + 1,)
        Mean acceptance of the moves; NaN at 0.
    n_families : array (n + 1,)
        Effective number of the first particles whose descendants are left: the error bar rests on them.
    n_steps : array (n + 1,)
        Steps of every particle, or chain.
    memory : array (n + 1,)
        Correlation of the log likelihood with that before these steps; with `waste_free` from one state of a chain to
        the next. Particles that stay in their modes may forget it all the same; the family tree has that in it.
    n_evaluations, undefined : int
        Evaluations of the log densities; proposals at which one was NaN or +inf, which were refused.
    interrupted : bool
    seconds : float
    waste_free : bool
    n_chains : int
        Chains at each temperature; as many as particles, unless `waste_free`.
    """

    x: NDArray[Any]
    log_prior: Array
    log_likelihood: Array
    log_z: float
    log_z_se: float
    betas: Array
    log_z_by_temperature: Array
    mean_log_likelihood: Array
    ess: Array
    acceptance: Array
    n_families: Array
    n_steps: NDArray[np.int64]
    memory: Array
    n_evaluations: int
    undefined: int
    interrupted: bool
    seconds: float
    waste_free: bool = False
    n_chains: int = 0

    def __len__(self) -> int:
        return len(self.x)

    def to_trace(self) -> Trace:
        """The particles as a trace of one chain."""
        from pluri.inference.mcmc.trace import Trace

        density = self.log_prior + self.betas[-1] * self.log_likelihood
        return Trace(
            {"x": self.x[None]}, {"log_density": density[None]}, interrupted=self.interrupted, seconds=self.seconds
        )

    def diagnose(self) -> list[str]:
        """What a careful reader should know before using the particles, a sentence each; empty if all is well."""
        problems = []
        if self.interrupted:
            problems.append(
                f"Interrupted at beta = {self.betas[-1]:.4g}: particles and log_z belong to that temperature, not to "
                "the posterior."
            )
        n_distinct = len(np.unique(self.x.reshape(len(self.x), -1), axis=0))
        if self.x.dtype.kind == "f" and n_distinct < 0.5 * len(self.x):
            problems.append(
                f"Only {n_distinct} of {len(self.x)} particles are different: the moves hardly moved them; use more "
                "steps or a better transition."
            )
        stuck = int((self.acceptance < 0.05).sum())  # False for NaN
        if stuck:
            problems.append(
                f"At {stuck} of {len(self.acceptance) - 1} temperatures fewer than 5% of the moves were accepted."
            )
        if self.ess.min() < min(50.0, 0.5 * len(self.x)):
            problems.append(
                f"At beta = {self.betas[int(self.ess.argmin())]:.3g} only {self.ess.min():.0f} particles were "
                "effective: the estimate of the evidence is noisy; use more particles."
            )
        problems += self._doubts_about_the_error()
        if self.undefined:
            problems.append(f"A log density was NaN or +inf at {self.undefined} proposals; they were refused.")
        return problems

    def _doubts_about_the_error(self) -> list[str]:
        problems = []
        families, least = float(self.n_families.min()), min(FEWEST_FAMILIES, 0.5 * len(self.x))
        if families < least and not self.waste_free:
            problems.append(
                f"The particles descend from {families:.0f} of the first {len(self.x)} (effectively): the standard "
                "error of log_z is itself uncertain, and too small if modes were lost on the way; use more particles "
                "or more steps."
            )
        dim = int(np.prod(self.x.shape[1:]))
        if self.waste_free and self.n_chains < CHAINS_BY_DIMENSION * dim:
            problems.append(
                f"There are {self.n_chains} chains in {dim} dimensions: what the moves learn from them is uncertain, "
                f"and the standard error too small; use {CHAINS_BY_DIMENSION * dim} chains at least."
            )
        remembers = self.memory > MOST_MEMORY  # False for NaN
        if remembers.any():
            worst = int(np.nanargmax(self.memory))
            problems.append(
                f"At {int(remembers.sum())} of {len(self.memory) - 1} temperatures the particles remember where they "
                f"were (their log likelihoods have a correlation of {self.memory[worst]:.2f} after "
                f"{self.n_steps[worst]} steps at beta = {self.betas[worst]:.3g}): the moves are too few or too "
                "short, or there are modes between which none go; raise max_steps, use more particles or a "
                "better transition."
            )
        return problems

    def summary(self) -> str:
        """A few lines to read."""
        lines = [
            repr(self),
            f"log Z        {self.log_z:.4f} +- {self.log_z_se:.4f}",
            f"temperatures {len(self.betas) - 1}",
            f"families     {self.n_families[-1]:.0f}",
        ]
        moved = self.acceptance[~np.isnan(self.acceptance)]
        if len(moved):
            lines.append(f"acceptance   {moved.min():.2f} to {moved.max():.2f}")
        return "\n".join(lines + self.diagnose())

    def __repr__(self) -> str:
        note = f" (interrupted at beta {self.betas[-1]:.3g})" if self.interrupted else ""
        return f"<TemperedResult: {len(self)} particles of shape {self.x.shape[1:]}, log Z {self.log_z:.4f}>{note}"


def warn_of_particles(result: TemperedResult) -> None:
    """Give each problem as a ConvergenceWarning."""
    problems = result.diagnose()
    if problems:
        from sklearn.exceptions import ConvergenceWarning

        for problem in problems:
            warnings.warn(problem, ConvergenceWarning, stacklevel=3)
