"""A pilot run: it finds the temperatures and the settings of the moves, which are then kept for the run that counts.

The pilot is a small sequential Monte Carlo sampler of its own: at each temperature its points are weighted, resampled
and moved, so that they follow the path, while the moves learn the cloud's shape and the right length of step. What it
finds is independent of the draws of the second run, whose estimate is therefore exactly unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.log_densities import Sampler
from pluri.inference.ais.schedule import next_temperature
from pluri.inference.ais.tempered_path import Cloud, TemperedPath
from pluri.inference.ais.transitions import Moves

Array = NDArray[np.float64]
MOST_TEMPERATURES = 10_000


@dataclass(frozen=True)
class AnnealingPlan:
    """Inverse temperatures and the moves at each, ready to be used again.

    Attributes
    ----------
    betas : array (n + 1,), from 0 to 1
    moves : tuple of n + 1 Moves; those at the two ends are never used
    """

    betas: Array
    moves: tuple[Moves, ...]

    def __post_init__(self) -> None:
        if len(self.betas) != len(self.moves):
            raise ValueError(f"there must be moves for each of {len(self.betas)} betas, got {len(self.moves)}")


def make_plan(
    rng: np.random.Generator,
    path: TemperedPath,
    sample_prior: Sampler,
    betas: Array | None,
    moves: Moves,
    *,
    n_pilot: int,
    n_steps: int,
    share: float,
    tune: bool,
) -> AnnealingPlan:
    """Find what is not given: temperatures if `betas` is None, settings of the moves if they adapt.

    Parameters
    ----------
    n_pilot : int
        Points of the pilot.
    n_steps : int
        Steps at each temperature, with a correction of the settings after each.
    share : float
        Conditional effective share of an adaptive schedule.
    tune : bool
        Whether moves that adapt may do so.
    """
    adapts = moves.adapts and tune
    if betas is not None and not adapts:
        return AnnealingPlan(betas, (moves,) * len(betas))
    cloud = path.start(sample_prior, rng, n_pilot, vectors=moves.vectors)
    if adapts:
        moves = moves.learn(cloud.x, np.full(n_pilot, 1.0 / n_pilot))
    beta = 0.0
    found, settings = [beta], [moves]
    while beta < 1.0:
        if len(found) > MOST_TEMPERATURES:
            raise ValueError(
                f"an adaptive schedule reached only beta = {beta:.3g} in {MOST_TEMPERATURES} temperatures: the target "
                "is too far from the prior; give a schedule, or ask for a smaller conditional_ess"
            )
        before, beta = beta, next_temperature(cloud.gain, beta, share) if betas is None else float(betas[len(found)])
        cloud, weights = weigh(cloud, beta - before)
        if adapts:
            moves = moves.learn(cloud.x, weights)
        cloud = choose(rng, cloud, weights, n=n_pilot)
        if beta < 1.0:
            if adapts:
                moves, cloud = moves.tune(rng, path, beta, cloud, n_steps)
            else:
                cloud = moves.move(rng, path, beta, cloud, n_steps).cloud
        found.append(beta)
        settings.append(moves)
    return AnnealingPlan(np.array(found), tuple(settings))


def weigh(cloud: Cloud, step: float) -> tuple[Cloud, Array]:
    """The points that survive a step of the inverse temperature, and their weights, which add up to one."""
    increments = step * cloud.gain
    weights = np.exp(increments - increments.max())
    alive = weights > 0
    if not alive.all():
        cloud, weights = cloud.take(alive), weights[alive]
    return cloud, weights / weights.sum()


def choose(
    rng: np.random.Generator, cloud: Cloud, weights: Array, method: str = "systematic", n: int | None = None
) -> Cloud:
    """Resampled points, all worth the same."""
    from pluri.inference.smc.resampling import resample

    return cloud.take(resample(weights, method, rng, n))
