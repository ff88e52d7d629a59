"""One pass along a path of temperatures, in either direction: weigh, then move, for all runs at a time."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.pilot import AnnealingPlan
from pluri.inference.ais.samples import AnnealedSamples, ReverseSamples
from pluri.inference.ais.tempered_path import Cloud, TemperedPath
from pluri.progress import Step, open_progress
from pluri.validation.interruption import holding

Array = NDArray[np.float64]


def anneal(
    rng: np.random.Generator,
    path: TemperedPath,
    plan: AnnealingPlan,
    cloud: Cloud,
    n_steps: int,
    *,
    reverse: bool = False,
    keep_paths: bool = True,
    verbose: int = 0,
    started: float | None = None,
) -> AnnealedSamples:
    """Carry a cloud from one end of the path to the other.

    The cloud must have been drawn from the density at the beginning. Ctrl-C keeps the weights and points of the last
    temperature that is complete; before the first it goes through.
    """
    started = perf_counter() if started is None else started
    order = -1 if reverse else 1
    betas, moves = plan.betas[::order], plan.moves[::order]
    log_weights = np.zeros(len(cloud.x))
    records = [_look(cloud, log_weights)]
    rates, paths = [np.nan], [log_weights]
    counts = np.array([len(cloud.x), 0, 0])
    reached: tuple[int, Cloud, Array] = 0, cloud, log_weights
    with holding(having=lambda: reached[0] > 0) as block, open_progress(verbose) as report:
        for j in range(1, len(betas)):
            log_weights = log_weights + (betas[j] - betas[j - 1]) * cloud.gain
            if not (log_weights < np.inf).all():
                raise ValueError(f"at beta = {betas[j - 1]:.4g} the transition moved runs to where the target is zero")
            record = _look(cloud, log_weights)
            if verbose:
                report(Step(j, len(betas) - 1, record[1], reason="max_iter" if j == len(betas) - 1 else None))
            records.append(record)
            rates.append(np.nan)
            if keep_paths:
                paths.append(log_weights)
            # The weighted points are right for this temperature before the move and after it.
            reached = j, cloud, log_weights
            if j < len(betas) - 1:
                moved = moves[j].move(rng, path, float(betas[j]), cloud, n_steps)
                rates[j], cloud = moved.acceptance, moved.cloud
                counts = counts + np.array([moved.n_evaluations, moved.undefined, moved.uncovered])
                reached = j, cloud, log_weights
    j, cloud, log_weights = reached
    ess, log_z, mean_gain = np.array(records[: j + 1]).T
    kind = ReverseSamples if reverse else AnnealedSamples
    return kind(
        cloud.x, log_weights, block.interrupted, betas[: j + 1].copy(), np.array(rates[: j + 1]), ess, log_z, mean_gain,
        np.stack(paths[: j + 1], axis=1) if keep_paths else None, plan, int(counts[0]), int(counts[1]),
        int(counts[2]), perf_counter() - started,
    )  # fmt: skip


def _look(cloud: Cloud, log_weights: Array) -> tuple[float, float, float]:
    """Effective sample size, log mean weight and weighted mean gain."""
    largest = log_weights.max()
    if largest == -np.inf:
        raise ValueError("every run has weight zero: the target is -inf wherever the runs are")
    weights = np.exp(log_weights - largest)
    total = weights.sum()
    used = weights > 0
    gain = float(weights[used] @ cloud.gain[used] / total)
    return float(total**2 / np.square(weights).sum()), float(largest + np.log(total / len(weights))), gain
