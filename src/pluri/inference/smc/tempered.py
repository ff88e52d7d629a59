"""Tempered sequential Monte Carlo: particles that follow the path from a prior to a posterior.

Along ``prior(x) likelihood(x)^b`` each round takes the largest b at which a wanted share of the particles stays
effective, multiplies the estimate of the evidence by the mean weight of the step, resamples, and moves every particle
by transitions that leave the new density invariant. These learn their shape from the particles themselves. In the
waste-free form [2]_ only some particles are resampled, and all states of their chains are kept.

References
----------
.. [1] Del Moral, P., Doucet, A. and Jasra, A. (2006). Sequential Monte Carlo samplers. JRSS B 68.
.. [2] Dau, H.-D. and Chopin, N. (2022). Waste-free sequential Monte Carlo. JRSS B 84.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.log_densities import SHARE, LogDensity, Sampler
from pluri.inference.ais.pilot import choose, weigh
from pluri.inference.ais.schedule import next_temperature
from pluri.inference.ais.tempered_path import Cloud, Gradient, TemperedPath
from pluri.inference.ais.transitions import Moved, Moves, as_moves
from pluri.inference.smc.resampling import check_method
from pluri.inference.smc.tempered_result import TemperedResult, warn_of_particles
from pluri.validation import RandomState, as_generator, check_count, check_value
from pluri.validation.interruption import holding, interruptible, kept

__all__ = ["Cooling", "TemperedResult", "tempered_smc"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Cooling:
    """How particles go from one temperature to the next.

    Parameters
    ----------
    ess_target : float, default=0.5
        Share of the particles that stays effective at each step of the temperature; more makes shorter steps.
    n_steps : int, default=5
        Steps of every particle at each temperature; with `waste_free` the length of the chains.
    resampling : {"systematic", "stratified", "residual", "multinomial"}, default="systematic"
    waste_free : bool, default=False
        Resample ``n_particles / n_steps`` particles and keep all states of their chains.
    max_temperatures : int, default=1000

    Examples
    --------
    >>> from pluri.inference.smc import Cooling
    >>> Cooling(n_steps=10, waste_free=True).ess_target
    0.5
    """

    ess_target: float = 0.5
    n_steps: int = 5
    resampling: str = "systematic"
    waste_free: bool = False
    max_temperatures: int = 1000

    def __post_init__(self) -> None:
        check_value(self.ess_target, "ess_target", SHARE)
        check_count(self.n_steps, "n_steps", 2 if self.waste_free else 1)
        check_count(self.max_temperatures, "max_temperatures")
        check_method(self.resampling, "resampling")


class _Round(NamedTuple):
    """One temperature: where it leaves the particles, and what is told of it."""

    cloud: Cloud
    moves: Moves
    beta: float
    log_z: float
    variance: float
    mean_gain: float
    ess: float
    acceptance: float
    n_evaluations: int
    undefined: int


@interruptible
def tempered_smc(
    log_prior: LogDensity,
    log_likelihood: LogDensity,
    sample_prior: Sampler,
    *,
    n_particles: int = 1000,
    transition: Any = "mh",
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
    transition : {"mh", "slice", "hmc", "identity"}, Moves or callable, default="mh"
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
    if cooling.waste_free and n_particles % cooling.n_steps:
        raise ValueError(f"waste_free needs n_steps that divides n_particles ({n_particles}), got {cooling.n_steps}")
    moves = as_moves(transition)
    path = TemperedPath(log_prior, log_likelihood, True, vectorized, grad_log_prior, grad_log_likelihood)
    rng = as_generator(random_state)
    started = perf_counter()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"), open_progress(verbose) as report:
        cloud = path.start(sample_prior, rng, n_particles, vectors=moves.vectors)
        moves = moves.learn(cloud.x, np.full(n_particles, 1.0 / n_particles))
        n = n_particles
        rounds = [_Round(cloud, moves, 0.0, 0.0, 0.0, _mean(cloud.gain), float(n), math.nan, n, 0)]
        with holding(having=lambda: len(rounds) > 1) as block:
            while rounds[-1].beta < 1.0:
                if len(rounds) > cooling.max_temperatures:
                    raise ValueError(
                        f"only beta = {rounds[-1].beta:.3g} was reached in max_temperatures = "
                        f"{cooling.max_temperatures} steps: raise it, lower ess_target, or look whether the likelihood "
                        "is what it should be"
                    )
                rounds.append(_cool(rng, path, rounds[-1], cooling))
                if verbose:
                    last = "converged" if rounds[-1].beta == 1.0 else None
                    report(Step(len(rounds) - 1, cooling.max_temperatures, rounds[-1].log_z, reason=last))
                # Only the last cloud is needed.
                rounds[-2] = rounds[-2]._replace(cloud=cloud, moves=moves)
    result = _result(rounds, block.interrupted, perf_counter() - started)
    if block.interrupted:
        kept(result.diagnose()[0])
    elif warn:
        warn_of_particles(result)
    return result


def _cool(rng: np.random.Generator, path: TemperedPath, before: _Round, cooling: Cooling) -> _Round:
    """One round: a temperature, weights, resampling, moves."""
    n = len(before.cloud.x)
    beta = next_temperature(before.cloud.gain, before.beta, cooling.ess_target)
    increments = (beta - before.beta) * before.cloud.gain
    largest = increments.max()
    log_z = before.log_z + float(largest + np.log(np.exp(increments - largest).mean()))
    alive, weights = weigh(before.cloud, beta - before.beta)
    ess = float(1.0 / np.square(weights).sum())
    moves = before.moves.learn(alive.x, weights)
    chosen = choose(rng, alive, weights, cooling.resampling, n // cooling.n_steps if cooling.waste_free else n)
    moves = moves.settle(rng, beta, chosen)
    steps: list[Moved] = []
    kept = [chosen]
    for _ in range(cooling.n_steps - 1 if cooling.waste_free else cooling.n_steps):
        steps.append(moves.move(rng, path, beta, kept[-1], 1))
        kept.append(steps[-1].cloud)
        moves = moves.retune(steps[-1].acceptance)
    cloud = Cloud(*(np.concatenate(parts) for parts in zip(*kept))) if cooling.waste_free else kept[-1]
    return _Round(
        cloud, moves, beta, log_z, before.variance + 1.0 / ess - 1.0 / n, _mean(cloud.gain), ess,
        float(np.mean([step.acceptance for step in steps])), sum(step.n_evaluations for step in steps),
        sum(step.undefined for step in steps),
    )  # fmt: skip


def _mean(values: Array) -> float:
    return float(values.mean())


def _result(rounds: list[_Round], interrupted: bool, seconds: float) -> TemperedResult:
    last = rounds[-1]

    def along(name: str) -> Array:
        return np.array([getattr(one, name) for one in rounds])

    return TemperedResult(
        x=last.cloud.x,
        log_prior=last.cloud.base,
        log_likelihood=last.cloud.gain,
        log_z=last.log_z,
        log_z_se=math.sqrt(max(last.variance, 0.0)),
        betas=along("beta"),
        log_z_by_temperature=along("log_z"),
        mean_log_likelihood=along("mean_gain"),
        ess=along("ess"),
        acceptance=along("acceptance"),
        n_evaluations=int(along("n_evaluations").sum()),
        undefined=int(along("undefined").sum()),
        interrupted=interrupted,
        seconds=seconds,
    )
