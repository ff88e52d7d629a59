"""How far apart the draws of a chain must be: where the autocorrelations of what is followed have become small."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pluri.inference.mcmc import autocorrelation, ess_mean
from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.samplers.chain_walk import Records, Steps, Target, Walk, run_walk

#: Autocorrelation below which draws count as independent.
THRESHOLD = 0.02
#: Gaps that the steps behind an estimate of the gap should span, and those below which it is not to be trusted.
ENOUGH_GAPS, FEW_GAPS = 50, 10
#: Steps looked at first, at least and for each item; and at most, at least and for each item.
FIRST_STEPS, FIRST_SWEEPS, MOST_STEPS, MOST_SWEEPS = 5000, 20, 3_000_000, 40


class Gap(NamedTuple):
    """What was measured.

    Attributes
    ----------
    steps : int
        Steps from one draw to the next.
    lags : (n_lags,), in steps
    acf : dict of arrays of shape (n_lags,)
        Autocorrelations; what never changes is left out.
    times : dict
        Integrated autocorrelation times, in steps.
    """

    steps: int
    lags: IntArray
    acf: dict[str, Array]
    times: dict[str, float]


def measure_gap(statistics: Mapping[str, Array], stride: int) -> Gap:
    """The gap from what was followed, each (n_chains, n_records) with `stride` steps between records."""
    n_records = next(iter(statistics.values())).shape[1]
    gap = 1
    acf: dict[str, Array] = {}
    times: dict[str, float] = {}
    for name, values in statistics.items():
        if np.ptp(values) <= 1e-9 * max(1.0, np.abs(values).max()):
            continue
        correlations = autocorrelation(values).mean(axis=0)
        acf[name] = correlations
        times[name] = stride * values.size / ess_mean(values)
        if name != "det":  # a few small sets may have nearly all of it
            below = np.flatnonzero(correlations < THRESHOLD)
            gap = max(gap, int(below[0]) if len(below) else n_records)
    if not acf:  # the marks of two sets are never equal: nothing has moved
        gap = n_records
    shown = min(n_records, 4 * gap + 1)
    return Gap(gap * stride, stride * np.arange(shown), {name: values[:shown] for name, values in acf.items()}, times)


def run_until_known(
    target: Target, walks: list[Walk], steps: Steps, rngs: list[np.random.Generator]
) -> tuple[Gap, int, bool]:
    """Walk, in place, until the gap is known well enough: the gap, steps made, and whether it is to be trusted."""
    n_candidates = len(target.candidates)
    stride = max(1, n_candidates // 50)
    total, done = max(FIRST_STEPS, FIRST_SWEEPS * n_candidates), 0
    most = most_steps(target)
    runs: list[list[Records]] = [[] for _ in walks]
    while True:
        n_records = (total - done) // stride
        for walk, rng, run in zip(walks, rngs, runs, strict=True):
            run.append(Records.empty(n_records))
            run_walk(target, walk, steps, n_records * stride, rng, stride, run[-1])
        done += n_records * stride
        # The first half may still remember the start.
        joined = {name: [np.concatenate([getattr(part, name) for part in run]) for run in runs] for name in RECORDED}
        halves = {RECORDED[name]: np.stack(values)[:, len(values[0]) // 2 :] for name, values in joined.items()}
        gap = measure_gap(with_determinants(halves), stride)
        if done // 2 >= ENOUGH_GAPS * gap.steps or 2 * total > most:
            return gap, done, done // 2 >= FEW_GAPS * gap.steps
        total *= 2


#: What `Records` call the draws.
RECORDED = {"log_dets": "log_det", "sizes": "size", "mark_sums": "items"}


def most_steps(target: Target) -> int:
    """Steps that a chain is worth."""
    return max(MOST_STEPS, MOST_SWEEPS * len(target.candidates))


def with_determinants(followed: Mapping[str, Array]) -> dict[str, Array]:
    """What is followed, as numbers, with the determinants relative to the largest."""
    statistics = {name: np.asarray(values, dtype=np.float64) for name, values in followed.items()}
    log_dets = statistics["log_det"]
    return statistics | {"det": np.exp(log_dets - log_dets.max())}
