"""Running the collapsed Gibbs sampler: sweeps, annealing, what is kept of them, and several chains at a time.

A chain throws away its burn-in, then keeps every `thin`-th sweep. States have no names of their own: two chains may
call the same state differently, so averages are only ever taken within one chain.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from pluri.inference import chains
from pluri.inference.chains import Watch, split_r_hat, sweep_state
from pluri.sequences import collapsed_gibbs as gibbs
from pluri.sequences.collapsed_gibbs import Concentrations, SymbolSequences

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Schedule:
    """Temperature of each sweep (burn_in + n_samples * thin of them), and which are kept."""

    temperatures: Array
    burn_in: int
    thin: int
    learn_concentrations: bool

    @property
    def n_sweeps(self) -> int:
        """Number of sweeps of a chain."""
        return len(self.temperatures)

    def keeps(self, sweep: int) -> bool:
        """Whether sweep number `sweep`, from 0, is kept."""
        return sweep >= self.burn_in and (sweep - self.burn_in + 1) % self.thin == 0

    def learns(self, sweep: int) -> bool:
        """Whether the concentrations are sampled too.

        Not in the first half of the burn-in: states that are still random ask for large concentrations, which then
        keep the states random.
        """
        return self.learn_concentrations and sweep >= self.burn_in // 2 and bool(self.temperatures[sweep] == 1.0)


@dataclass(frozen=True)
class GibbsChain:
    """What a chain leaves behind.

    Attributes
    ----------
    log_joint, log_likelihood, seconds : (n_sweeps_done,): log p(z, w), log p(w | z) and duration of each sweep
    transition_concentration, emission_concentration : (n_sweeps_done,)
    kept : (n_sweeps_done,): which sweeps the means below are over (none, if it was interrupted early)
    start, transition, emission : posterior means of the probabilities; those of the best sweep if none was kept
    labels : (n_samples,): most frequent state of each step; those of the best sweep if none was kept
    occupancy : (k,): mean number of steps in each state
    best_labels, best_log_joint : states of the sweep with the highest log joint probability
    """

    log_joint: Array
    log_likelihood: Array
    seconds: Array
    transition_concentration: Array
    emission_concentration: Array
    kept: NDArray[np.bool_]
    start: Array
    transition: Array
    emission: Array
    labels: Integers
    occupancy: Array
    best_labels: Integers
    best_log_joint: float

    @property
    def rank(self) -> tuple[bool, float]:
        """What chains are compared by: the mean log joint probability of the kept sweeps, if there are any."""
        kept = bool(self.kept.any())
        return kept, float(self.log_joint[self.kept].mean()) if kept else self.best_log_joint

    @property
    def r_hat(self) -> float:
        """Split R-hat of the kept log joint probabilities: about 1 once they have stopped drifting; NaN if too few."""
        return split_r_hat(self.log_joint[self.kept])


def run_chain(
    data: SymbolSequences,
    n_components: int,
    concentrations: Concentrations,
    schedule: Schedule,
    rng: np.random.Generator,
    *,
    index: int = 0,
    n_chains: int = 1,
    watch: Watch | None = None,
    stop: threading.Event | None = None,
) -> GibbsChain | None:
    """Run one chain from random states; `stop` ends it after the sweep under way. None if there was no sweep."""
    k, n_samples = n_components, len(data.codes)
    states = rng.integers(k, size=n_samples)
    counts = gibbs.count(data, states, k)
    rows: list[tuple[float, float, float, float, float]] = []
    kept: list[bool] = []
    best_labels, best_log_joint, best_concentrations = states, -np.inf, concentrations
    votes = np.zeros((n_samples, k), dtype=np.int32)
    steps = np.arange(n_samples)
    sums: list[Array] = []
    for number, temperature in enumerate(schedule.temperatures):
        if stop is not None and stop.is_set():
            break
        started = perf_counter()
        gibbs.sweep(data, states, counts, concentrations, rng, temperature=float(temperature))
        if schedule.learns(number):
            concentrations = gibbs.sample_concentrations(data, counts, concentrations, rng)
        log_joint, log_likelihood = gibbs.log_joint(data, counts, concentrations)
        if log_joint > best_log_joint:
            best_labels, best_log_joint, best_concentrations = states.copy(), log_joint, concentrations
        if schedule.keeps(number):
            votes[steps, states] += 1
            means = gibbs.posterior_mean(data, counts, concentrations)
            sums = [total + mean for total, mean in zip(sums, means)] if sums else list(means)
        kept.append(schedule.keeps(number))
        gain = log_joint - rows[-1][0] if rows else np.nan
        seconds = perf_counter() - started
        rows.append((log_joint, log_likelihood, seconds, concentrations.transition, concentrations.emission))
        if watch is not None and watch(
            sweep_state(
                chain=index,
                n_chains=n_chains,
                sweep=number + 1,
                n_sweeps=schedule.n_sweeps,
                log_joint=log_joint,
                log_likelihood=log_likelihood,
                gain=gain,
                seconds=seconds,
            )
        ):
            break
    if not rows:
        return None
    if sums:
        start, transition, emission = (total / sum(kept) for total in sums)
        labels, occupancy = votes.argmax(axis=1), votes.sum(axis=0) / sum(kept)
    else:
        best_counts = gibbs.count(data, best_labels, k)
        start, transition, emission = gibbs.posterior_mean(data, best_counts, best_concentrations)
        labels, occupancy = best_labels, np.bincount(best_labels, minlength=k).astype(np.float64)
    trace = np.array(rows)
    return GibbsChain(
        log_joint=trace[:, 0],
        log_likelihood=trace[:, 1],
        seconds=trace[:, 2],
        transition_concentration=trace[:, 3],
        emission_concentration=trace[:, 4],
        kept=np.array(kept),
        start=start,
        transition=transition,
        emission=emission,
        labels=labels.astype(np.int64),
        occupancy=occupancy,
        best_labels=best_labels,
        best_log_joint=best_log_joint,
    )


def run_chains(
    data: SymbolSequences,
    n_components: int,
    concentrations: Concentrations,
    schedule: Schedule,
    rng: np.random.Generator,
    *,
    n_chains: int = 1,
    n_threads: int = 1,
    watch: Watch | None = None,
) -> tuple[list[GibbsChain], bool]:
    """Run chains in threads; also tells whether Ctrl-C ended them early (see `pluri.inference.chains`)."""

    def one(index: int, stream: np.random.Generator, seen: Watch | None, stop: threading.Event) -> GibbsChain | None:
        return run_chain(
            data, n_components, concentrations, schedule, stream, index=index, n_chains=n_chains, watch=seen, stop=stop
        )

    return chains.run_chains(one, rng, n_chains=n_chains, n_threads=n_threads, watch=watch)
