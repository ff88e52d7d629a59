"""Tempered sequential Monte Carlo: particles that follow the path from a prior to a posterior.

Along ``prior(x) likelihood(x)^b`` each round takes the largest b at which a wanted share of the particles stays
effective, multiplies the estimate of the evidence by the mean weight of the step, resamples, and moves every particle
by transitions that leave the new density invariant. These learn their shape from the particles themselves, and go on
until the particles have forgotten where they were [3]_. The error bar of the evidence is from the family tree of the
particles. In the waste-free form [2]_ only some are resampled, and several states of their chains are kept.

References
----------
.. [1] Del Moral, P., Doucet, A. and Jasra, A. (2006). Sequential Monte Carlo samplers. JRSS B 68.
.. [2] Dau, H.-D. and Chopin, N. (2022). Waste-free sequential Monte Carlo. JRSS B 84.
.. [3] Buchholz, A., Chopin, N. and Jacob, P. E. (2021). Adaptive tuning of Hamiltonian Monte Carlo within sequential
   Monte Carlo. Bayesian Analysis 16.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.log_densities import LogDensity, Sampler
from pluri.inference.ais.tempered_path import Gradient, TemperedPath
from pluri.inference.ais.transitions import as_moves
from pluri.inference.smc.tempered.cooling import Cooling
from pluri.inference.smc.tempered.result import TemperedResult, warn_of_particles
from pluri.inference.smc.tempered.rounds import Round, cool, first_round
from pluri.validation import RandomState, as_generator, check_count
from pluri.validation.interruption import holding, interruptible, kept

__all__ = ["tempered_smc"]

Array = NDArray[np.float64]


@interruptible
def tempered_smc(
    log_prior: LogDensity,
    log_likelihood: LogDensity,
    sample_prior: Sampler,
    *,
    n_particles: int = 1000,
    transition: Any = "pcn",
    cooling: Cooling | None = None,
    grad_log_prior: Gradient | None = None,
    grad_log_likelihood: Gradient | None = None,
    vectorized: bool = True,
    random_state: RandomState = None,
    verbose: int = 0,
    warn: bool = True,
) -> TemperedResult:
    """Sample a posterior and estimate its evidence with particles that are cooled step by step.

    Parameters
    ----------
    log_prior : callable
        *Normalised* log density of the prior, points (n, d) to (n,).
    log_likelihood : callable
        Points (n, d) to (n,); not asked where the prior is zero.
    sample_prior : callable
        ``sample_prior(rng, n)`` draws points (n, d).
    n_particles : int, default=1000
    transition : {"pcn", "mh", "slice", "hmc", "identity"}, Moves or callable, default="pcn"
        As in :class:`pluri.inference.ais.annealed_importance.AnnealedImportanceSampler`.
    cooling : Cooling, optional
        How long the steps of the temperature are, and how particles are resampled and moved at each.
    grad_log_prior, grad_log_likelihood : callable, optional
        Points (n, d) to gradients (n, d), for "hmc".
    vectorized : bool, default=True
        False if log densities and gradients take one point (d,) at a time.
    random_state : int, Generator, RandomState or None
    verbose : int, default=0
        1 shows progress.
    warn : bool, default=True
        Give a ConvergenceWarning for each problem that ``diagnose()`` finds.

    Returns
    -------
    TemperedResult

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.smc.tempered import tempered_smc
    >>> normal = lambda x, y, sd: -0.5 * ((y - x[:, 0]) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    >>> result = tempered_smc(
    ...     lambda x: normal(x, 0.0, 1.0), lambda x: normal(x, 2.0, 0.1), lambda rng, n: rng.normal(size=(n, 1)),
    ...     random_state=0,
    ... )
    >>> exact = -0.5 * 4 / 1.01 - 0.5 * np.log(1.01) - 0.5 * np.log(2 * np.pi)
    >>> bool(abs(result.log_z - exact) < 0.2), round(float(result.x.mean()), 1)
    (True, 2.0)
    """
    from pluri.progress import Step, open_progress

    check_count(n_particles, "n_particles", 2)
    cooling = Cooling() if cooling is None else cooling
    cooling.chain_length(n_particles)
    moves = as_moves(transition)
    path = TemperedPath(log_prior, log_likelihood, True, vectorized, grad_log_prior, grad_log_likelihood)
    rng = as_generator(random_state)
    started = perf_counter()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"), open_progress(verbose) as report:
        cloud = path.start(sample_prior, rng, n_particles, vectors=moves.vectors)
        moves = moves.learn(cloud.x, np.full(n_particles, 1.0 / n_particles))
        rounds = [first_round(cloud, moves)]
        with holding(having=lambda: len(rounds) > 1) as block:
            while rounds[-1].beta < 1.0:
                if len(rounds) > cooling.max_temperatures:
                    raise ValueError(
                        f"only beta = {rounds[-1].beta:.3g} was reached in max_temperatures = "
                        f"{cooling.max_temperatures} steps: raise it, lower ess_target, or look whether the likelihood "
                        "is what it should be"
                    )
                rounds.append(cool(rng, path, rounds[-1], cooling))
                if verbose:
                    last = "converged" if rounds[-1].beta == 1.0 else None
                    report(Step(len(rounds) - 1, cooling.max_temperatures, rounds[-1].log_z, reason=last))
                # Only the last cloud is needed.
                rounds[-2] = rounds[-2]._replace(cloud=cloud, moves=moves, genealogy=rounds[0].genealogy)
    result = _result(rounds, block.interrupted, perf_counter() - started, cooling)
    if block.interrupted:
        kept(result.diagnose()[0])
    elif warn:
        warn_of_particles(result)
    return result


def _result(rounds: list[Round], interrupted: bool, seconds: float, cooling: Cooling) -> TemperedResult:
    last = rounds[-1]

    def along(name: str) -> Any:
        return np.array([getattr(one, name) for one in rounds])

    return TemperedResult(
        x=last.cloud.x,
        log_prior=last.cloud.base,
        log_likelihood=last.cloud.gain,
        log_z=last.log_z,
        log_z_se=last.log_z_se,
        betas=along("beta"),
        log_z_by_temperature=along("log_z"),
        mean_log_likelihood=along("mean_gain"),
        ess=along("ess"),
        acceptance=along("acceptance"),
        n_families=along("n_families"),
        n_steps=along("n_steps"),
        memory=along("memory"),
        n_evaluations=int(along("n_evaluations").sum()),
        undefined=int(along("undefined").sum()),
        interrupted=interrupted,
        seconds=seconds,
        waste_free=cooling.waste_free,
        n_chains=len(last.cloud.x) // cooling.chain_length(len(last.cloud.x)),
    )
