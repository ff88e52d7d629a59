"""Running the symbol-class sampler: sweeps, the vote of the last ones, and several starts at a time.

The posterior of the classes has many modes, which a chain does not leave in a few hundred sweeps: a start finds one,
the last sweeps vote on the class of each symbol within it, and starts are compared by the mean log joint probability
of those sweeps, which needs no labels.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from pluri.inference import chains
from pluri.inference.chains import Watch, split_r_hat, sweep_state
from pluri.sequences import symbol_class_sampler as sampler
from pluri.sequences.symbol_class_sampler import Concentrations, Corpus, Tables

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Concentrations move on every third sweep, from a third of the sweeps on: by then the classes have taken shape.
CONCENTRATION_SWEEPS = 3


@dataclass(frozen=True)
class Schedule:
    """Sweeps of a chain, how many of the last ones vote, and whether concentrations are sampled."""

    n_sweeps: int = 200
    keep: int = 30
    learn_concentrations: bool = True

    def moves_concentrations(self, sweep: int) -> bool:
        """Whether the concentrations move after sweep number `sweep`, from 0."""
        return self.learn_concentrations and sweep >= self.n_sweeps // 3 and sweep % CONCENTRATION_SWEEPS == 0


@dataclass(frozen=True)
class SymbolClassChain:
    """What a chain leaves behind.

    Attributes
    ----------
    classes : (V,): the class that each symbol had in most of the last sweeps
    n_kept : how many these are
    log_joint, log_likelihood, seconds : (n_sweeps_done,): log p(c, w, x), log p(w, x | c) and duration of each sweep
    moved : (n_sweeps_done,): how many symbols changed class
    concentrations : (n_sweeps_done, 3 + F): of transitions, emissions, classes and each feature
    """

    classes: Integers
    n_kept: int
    log_joint: Array
    log_likelihood: Array
    seconds: Array
    moved: Integers
    concentrations: Array

    @property
    def n_sweeps(self) -> int:
        """Number of sweeps done."""
        return len(self.log_joint)

    @property
    def level(self) -> float:
        """Mean log joint of the sweeps that voted: what chains are ranked by."""
        return float(self.log_joint[-self.n_kept :].mean())

    @property
    def r_hat(self) -> float:
        """Split R-hat of these log joints: about 1 once they have stopped drifting; NaN if too few."""
        return split_r_hat(self.log_joint[-self.n_kept :])

    @property
    def mean_concentrations(self) -> Concentrations:
        """Means over the sweeps that voted."""
        transition, emission, classes, *features = self.concentrations[-self.n_kept :].mean(axis=0).tolist()
        return Concentrations(transition, emission, classes, tuple(features))


def run_chain(
    corpus: Corpus,
    n_components: int,
    concentrations: Concentrations,
    schedule: Schedule,
    rng: np.random.Generator,
    *,
    index: int = 0,
    n_chains: int = 1,
    watch: Watch | None = None,
    stop: threading.Event | None = None,
) -> SymbolClassChain | None:
    """Run one chain from random classes; `stop` ends it after the sweep under way. None if there was no sweep."""
    n_types = len(corpus.frequencies)
    point = sampler.assign(corpus, rng.integers(0, n_components, n_types), n_components)
    tables = Tables(corpus, n_components, concentrations)
    kept: deque[Integers] = deque(maxlen=schedule.keep)
    rows: list[tuple[float, float, float, int, tuple[float, ...]]] = []
    for number in range(schedule.n_sweeps):
        if stop is not None and stop.is_set():
            break
        started = perf_counter()
        moved = sampler.sweep(corpus, point, tables, rng)
        if schedule.moves_concentrations(number):
            concentrations = sampler.sample_concentrations(corpus, point.counts, concentrations, rng)
            tables = Tables(corpus, n_components, concentrations)
        log_joint = sampler.log_joint(corpus, point.counts, concentrations)
        log_likelihood = log_joint - sampler.log_types(point.counts, concentrations.classes)
        kept.append(point.classes.copy())
        gain = log_joint - rows[-1][0] if rows else np.nan
        seconds = perf_counter() - started
        rows.append((log_joint, log_likelihood, seconds, moved, concentrations.as_tuple()))
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
    columns = [np.array(column) for column in zip(*rows)]
    return SymbolClassChain(majority(kept, n_components), len(kept), *columns)


def majority(draws: deque[Integers], n_components: int) -> Integers:
    """The class that each symbol has in most draws (V,); the first of them where several have as many."""
    symbols = np.arange(len(draws[0]))
    votes = np.zeros((len(symbols), n_components), dtype=np.int64)
    for classes in draws:
        votes[symbols, classes] += 1
    return votes.argmax(axis=1).astype(np.int64)


def run_chains(
    corpus: Corpus,
    n_components: int,
    concentrations: Concentrations,
    schedule: Schedule,
    rng: np.random.Generator,
    *,
    n_chains: int = 1,
    n_threads: int = 1,
    watch: Watch | None = None,
) -> tuple[list[SymbolClassChain], bool]:
    """Run chains in threads; also tells whether Ctrl-C ended them early (see `pluri.inference.chains`)."""

    def one(
        index: int, stream: np.random.Generator, seen: Watch | None, stop: threading.Event
    ) -> SymbolClassChain | None:
        return run_chain(
            corpus,
            n_components,
            concentrations,
            schedule,
            stream,
            index=index,
            n_chains=n_chains,
            watch=seen,
            stop=stop,
        )

    return chains.run_chains(one, rng, n_chains=n_chains, n_threads=n_threads, watch=watch)
