"""One temperature of tempered sequential Monte Carlo: weights, resampling, and moves until the particles forgot."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.schedule import next_temperature
from pluri.inference.ais.tempered_path import Cloud, TemperedPath
from pluri.inference.ais.transitions import Moved, Moves
from pluri.inference.smc.resampling import draw_ancestors
from pluri.inference.smc.tempered.cooling import Cooling
from pluri.inference.smc.tempered.genealogy import Genealogy, first_generation

Array = NDArray[np.float64]
#: Moves go on if twice as many of them have brought the correlation down by a tenth at least; looked at from here on.
PATIENCE, GAIN = 16, 0.9


class Round(NamedTuple):
    """One temperature: where it leaves the particles, and what is told of it.

    Attributes
    ----------
    cloud, moves, genealogy : particles, the moves as they were last, who descends from whom
    beta, log_z, mean_gain, ess, acceptance : as in `TemperedResult`
    variance : of log_z if moves forgot everything; `chain_variance` if chains did, with what they did not
    memory : correlation of the log likelihood that the moves left
    carried : mean correlation of the states of a chain with its beginning; 0 if only the last is kept
    """

    cloud: Cloud
    moves: Moves
    genealogy: Genealogy
    beta: float = 0.0
    log_z: float = 0.0
    log_z_se: float = 0.0
    variance: float = 0.0
    chain_variance: float = 0.0
    n_families: float = math.nan
    mean_gain: float = math.nan
    ess: float = math.nan
    acceptance: float = math.nan
    memory: float = math.nan
    carried: float = 0.0
    n_steps: int = 0
    n_evaluations: int = 0
    undefined: int = 0


class _Walk(NamedTuple):
    """States (length) of the chains, the moves, and what happened."""

    states: list[Cloud]
    moves: Moves
    steps: list[Moved]
    memory: float
    carried: float


def first_round(cloud: Cloud, moves: Moves) -> Round:
    """Draws of the prior."""
    n = len(cloud.x)
    return Round(
        cloud, moves, first_generation(n), mean_gain=float(cloud.gain.mean()), ess=float(n), n_families=float(n),
        n_evaluations=n,
    )  # fmt: skip


def cool(rng: np.random.Generator, path: TemperedPath, before: Round, cooling: Cooling) -> Round:
    """One round: a temperature, weights, resampling, moves."""
    cloud, genealogy, n = before.cloud, before.genealogy, len(before.cloud.x)
    beta = next_temperature(cloud.gain, before.beta, cooling.ess_target)
    increments = (beta - before.beta) * cloud.gain
    largest = increments.max()
    weights = np.exp(increments - largest)
    log_z = before.log_z + float(largest + np.log(weights.mean()))
    weights /= weights.sum()
    ess = float(1.0 / np.square(weights).sum())
    variance = before.variance + 1.0 / ess - 1.0 / n
    chains = before.chain_variance + genealogy.chain_variance(weights) / (1.0 - before.carried) ** 2
    # Even moves that forget everything leave the first; the genealogy, or the chains, tell what they do not forget.
    total = max(variance, chains if cooling.waste_free else genealogy.variance(weights))

    length = cooling.chain_length(n)
    order = rng.permutation(n)
    chosen = order[draw_ancestors(rng, weights[order], cooling.resampling, n // length)]
    moves = before.moves.learn(cloud.x, weights)
    start = cloud.take(chosen)
    walk = _walk(rng, path, beta, moves.settle(rng, beta, start), start, cooling, length)
    after = Cloud(*(np.concatenate(parts) for parts in zip(*walk.states)))
    descent = genealogy.resampled(weights, chosen, length)
    return Round(
        after, walk.moves, descent, beta, log_z, math.sqrt(total), variance, chains,
        genealogy.n_families(weights), float(after.gain.mean()), ess,
        float(np.mean([step.acceptance for step in walk.steps])), walk.memory, walk.carried,
        len(walk.steps), sum(step.n_evaluations for step in walk.steps), sum(step.undefined for step in walk.steps),
    )  # fmt: skip


def _walk(
    rng: np.random.Generator, path: TemperedPath, beta: float, moves: Moves, start: Cloud, cooling: Cooling, length: int
) -> _Walk:
    """Move particles; keep the last state, or `length` of each chain, the first included if it does not forget."""
    steps: list[Moved] = []

    def step(cloud: Cloud) -> Cloud:
        nonlocal moves
        steps.append(moves.move(rng, path, beta, cloud, 1))
        moves = moves.retune(steps[-1].acceptance)
        return steps[-1].cloud

    if cooling.n_steps == "adaptive":
        memories = [1.0]
        cloud = start
        while memories[-1] > cooling.correlation and len(steps) < cooling.max_steps and not _stalled(memories):
            cloud = step(cloud)
            memories.append(memory(start, cloud))
        if memories[-1] <= cooling.correlation:
            # Correlations see what is linear; as many steps again square them, and let the rest be forgotten too.
            for _ in range(len(steps)):
                cloud = step(cloud)
        apart = len(steps)
    else:
        apart = 1 if cooling.waste_free else int(cooling.n_steps)
        cloud = start
        for _ in range(apart):
            cloud = step(cloud)
    after_first = cloud
    if length == 1:
        return _Walk([cloud], moves, steps, correlation(start.gain, cloud.gain), 0.0)
    # Who was far ahead would go on being copied if beginnings were kept: in many dimensions that decides the evidence.
    states = [cloud] if cooling.n_steps == "adaptive" else [start, cloud]
    while len(states) < length:
        for _ in range(apart):
            cloud = step(cloud)
        states.append(cloud)
    remembered = [memory(start, state) for state in states]
    likelihood = correlation(start.gain, after_first.gain)
    return _Walk(states, moves, steps, likelihood, min(float(np.mean(remembered)), 0.99))


def _stalled(memories: list[float]) -> bool:
    n = len(memories) - 1
    return n >= PATIENCE and memories[n] > GAIN * memories[n // 2]


def memory(before: Cloud, after: Cloud) -> float:
    """Correlation of the particles with where they were: of the log likelihood, or on average of the coordinates."""
    found = [correlation(before.gain, after.gain)]
    if before.x.dtype.kind == "f" and before.x.ndim == 2:
        found.append(correlation(before.x, after.x))
    return max(found)


def correlation(before: NDArray[Any], after: NDArray[Any]) -> float:
    """Mean correlation of the columns; constant ones have none."""
    a, b = before - before.mean(axis=0), after - after.mean(axis=0)
    scale = np.sqrt(np.square(a).sum(axis=0) * np.square(b).sum(axis=0))
    usable = scale > 1e-300
    products = (a * b).sum(axis=0)
    return float(np.mean(products[usable] / scale[usable])) if np.any(usable) else 0.0
