"""Chains of the HDP sampler, and what is told of them: how many topics there are, and the likeliest of the states."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference import mcmc
from pluri.topics.hdp.gibbs import TopicGibbs
from pluri.topics.hdp.starts import draw_start
from pluri.topics.interrupts import unnamed_warnings_ignored

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GibbsFit:
    """What is left of the chains.

    Attributes
    ----------
    trace : Trace
    components : (n_topics, n_words): counts of words plus their prior in the likeliest state, the largest topic first
    weight, prior : (n_topics,): share of the tokens, and alpha times the stick, of each topic
    log_joint : log density of that state
    rising : whether the chains were still on their way up
    """

    trace: mcmc.Trace
    components: Array
    weight: Array
    prior: Array
    log_joint: float
    rising: bool

    def numbers(self, name: str) -> tuple[int, dict[int, int], tuple[int, int]]:
        """Mode, times of each number and 95 % interval of a whole number in the trace."""
        draws = self.trace.flat(name)
        values, times = np.unique(draws, return_counts=True)
        low, high = np.quantile(draws, (0.025, 0.975), method="inverted_cdf")
        posterior = {int(value): int(n) for value, n in zip(values, times)}
        return int(values[np.argmax(times)]), posterior, (int(low), int(high))

    def mean(self, name: str) -> float:
        """Posterior mean of a number in the trace."""
        return float(self.trace.flat(name).mean())


def fit_chains(kernel: TopicGibbs, init: str, n_topics: int, **options: Any) -> GibbsFit:
    """Run chains from starts of a kind; `options` are those of `pluri.inference.mcmc.sample`."""
    start = partial(draw_start, kernel=kernel, init=init, n_topics=n_topics)
    with unnamed_warnings_ignored():
        trace = mcmc.sample(
            kernel, start, record=kernel.record, backend="threads", warn=False, draw_if_interrupted=True, **options
        )
    best = max((end.state for end in trace.ends), key=lambda state: state.best_log_density)
    table, sizes = kernel.word_counts(best.best)
    order = np.argsort(-sizes, kind="stable")
    return GibbsFit(
        trace,
        table.T[order].astype(np.float64) + float(best.best["eta"]),
        sizes[order] / sizes.sum(),
        float(best.best["alpha"]) * best.best["weights"][:-1][order],
        float(best.best_log_density),
        not trace.interrupted and _still_rising(np.asarray(trace.stats["log_density"])),
    )


def _still_rising(log_joint: Array) -> bool:
    """Whether the last third of the draws is above the first, by more than chance and more than a trifle."""
    third = log_joint.shape[1] // 3
    if third < 5:
        return False
    first, last = log_joint[:, :third], log_joint[:, -third:]
    rise = float((last.mean(axis=1) - first.mean(axis=1)).mean())
    spread = float(np.sqrt(first.var(axis=1).mean() + last.var(axis=1).mean()))
    return rise > 2.0 * spread and rise > 1e-3 * abs(float(last.mean()))
