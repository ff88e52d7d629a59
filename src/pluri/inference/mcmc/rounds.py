"""Running chains: warm-up, draws, progress, Ctrl-C, and going on later.

Chains advance in rounds: each makes some steps, then all are looked at. So Ctrl-C ends them at the same length and
nothing that was drawn is lost; progress and checkpoints come between rounds; and chains can live in other processes,
as a chain is a record that can be sent there and back. Results do not depend on the rounds or on where they ran.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np

from pluri.inference.mcmc.chain import Chain, Segment, Snapshot, advance, recorded, settings_of, snapshot_of, stacked
from pluri.inference.mcmc.health import warn_of_problems
from pluri.inference.mcmc.trace import ChainEnd, Trace, plain_random_state
from pluri.inference.run import IterationState
from pluri.validation import Only, check_value, check_writable
from pluri.validation.interruption import Interrupted, hold
from pluri.validation.interruption import kept as say_kept

#: How long a round should take: short enough for progress and Ctrl-C, long enough that sending chains does not matter.
ROUND_SECONDS = {"serial": 1.0, "threads": 1.0, "processes": 2.0}
CHECKPOINT_SECONDS = 30.0

Record = Callable[[Any], Mapping[str, Any]]
Backend = Literal["processes", "threads"]
Callback = Callable[[Trace], bool | None]
OnStep = Callable[[IterationState[Any]], bool]
#: Makes some steps of several chains.
Advance = Callable[[Sequence[Chain], int], list[Segment]]
Kind = Literal["serial", "threads", "processes"]


class Workers(Protocol):
    """Run rounds of all chains."""

    kind: Kind

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
    def map(self, advance: Advance, chains: Sequence[Chain], n_steps: int) -> tuple[list[Segment], bool]:
        """Segments in order, and whether Ctrl-C came; the round under way is finished all the same."""


class Serial:
    """One chain after another, in this thread."""

    kind: Kind = "serial"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, advance: Advance, chains: Sequence[Chain], n_steps: int) -> tuple[list[Segment], bool]:
        """Segments in order, and whether Ctrl-C came: then chains differ in length, and the driver evens them out."""
        segments = advance(chains, n_steps)
        return segments, any(segment.interrupted for segment in segments)


@dataclass(frozen=True)
class Plan:
    """How far chains run, where, and who watches them; the words are those of :func:`sample`.

    `before` is the trace that the chains go on from.
    """

    n_draws: int
    n_warmup: int
    thin: int
    record: Record | None
    n_jobs: int | None = None
    backend: Backend = "processes"
    verbose: int = 0
    callback: Callback | None = None
    checkpoint: str | Path | None = None
    warn: bool = True
    before: Trace | None = None
    draw_if_interrupted: bool = False
    on_step: OnStep | None = None

    @property
    def n_steps(self) -> int:
        """Steps of each chain."""
        return self.n_warmup + self.n_draws * self.thin


def run_chains(chains: list[Chain], plan: Plan) -> Trace:
    """Run chains to the end of the plan, or until they are told to stop."""
    from pluri.progress import open_progress

    if plan.checkpoint is not None:
        check_writable(plan.checkpoint, "checkpoint")
    rounds = _Rounds(chains, plan)
    # Compiled chains let other threads run, and threads have nothing to send.
    backend = "threads" if getattr(chains[0].kernel, "compiled", False) else plan.backend
    workers = open_workers(plan.n_jobs, backend, len(chains))
    stopped = False
    try:
        with workers, open_progress(plan.verbose) as report:
            while rounds.done < plan.n_steps and not rounds.interrupted and not stopped:
                seconds = rounds.advance(workers)
                # A log density may take as long as a step: it is computed only if it is shown.
                for index, chain in enumerate(rounds.chains if plan.verbose else ()):
                    report(chain.iteration_state(index, len(chains), plan.n_steps, seconds))
                stopped = rounds.look(seconds)
    except KeyboardInterrupt as stop:  # between two rounds: those that are complete are kept
        hold(stop)
        rounds.interrupted = True
        rounds.go_back()
    except Exception as error:
        rounds.go_back()
        if rounds.has_draws:
            error.trace = rounds.trace()  # type: ignore[attr-defined]
            error.add_note("The draws made until then are the attribute `trace` of this error.")
            rounds.save()
        raise
    if not rounds.has_draws and (plan.before is None or plan.before.n_draws == 0):
        if not (plan.draw_if_interrupted or stopped):
            rounds.save()  # the warm-up can be gone on with
            raise Interrupted  # there is no draw to keep
        rounds.draw_here()
    trace = rounds.save()
    if rounds.interrupted:
        say_kept(f"interrupted after {trace.n_draws} draws of each chain; they are kept")
    elif plan.warn:
        warn_of_problems(trace)
    return trace


def open_workers(n_jobs: int | None, backend: str, n_chains: int) -> Workers:
    """Workers for chains; `n_jobs` counts as in joblib."""
    check_value(backend, "backend", Only("processes", "threads"))
    if n_jobs is not None and (not isinstance(n_jobs, int) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, got {n_jobs!r}")
    processors = os.cpu_count() or 1
    count = 1 if n_jobs is None else n_jobs if n_jobs > 0 else max(1, processors + 1 + n_jobs)
    count = min(count, n_chains)
    if count == 1:
        return Serial()
    from pluri.inference.mcmc.workers import open_pool

    return open_pool(backend, count)


#: Draws and statistics of one chain in one round.
Part = tuple[Mapping[str, Any], Mapping[str, Any]]


class Reached(NamedTuple):
    """Where all chains are after a round, how to get back there, and what each has drawn until then."""

    chains: list[Chain]
    snapshots: list[Snapshot]
    kept: list[list[Part]]


class _Rounds:
    """Chains under way, and the draws of the rounds that are complete."""

    def __init__(self, chains: list[Chain], plan: Plan) -> None:
        self.plan = plan
        self.reached = Reached(chains, [snapshot_of(chain) for chain in chains], [[] for _ in chains])
        self.interrupted = False
        self._length = 1
        self._started = self._saved = perf_counter()
        self._move: Advance = partial(advance, n_warmup=plan.n_warmup, thin=plan.thin, record=plan.record)

    @property
    def chains(self) -> list[Chain]:
        """The chains after the last complete round."""
        return self.reached.chains

    @property
    def done(self) -> int:
        """Steps of each chain."""
        return self.chains[0].done

    @property
    def has_draws(self) -> bool:
        """Whether there is anything to keep."""
        return bool(self.reached.kept[0])

    def advance(self, workers: Workers) -> float:
        """One round; gives the seconds that it took, from which the length of the next one follows."""
        began = perf_counter()
        count = 1 if self.plan.on_step is not None else min(self._length, self.plan.n_steps - self.done)
        segments, self.interrupted = workers.map(self._move, self.chains, count)
        if self.interrupted:
            hold()
            # Chains may be of different lengths by a part of a round: let the shorter ones catch up.
            longest = max(segment.chain.done for segment in segments)
            segments = [_caught_up(segment, longest, self._move) for segment in segments]
        chains = [segment.chain for segment in segments]
        new: list[list[Part]] = [[(part.draws, part.stats)] if part.draws else [] for part in segments]
        kept = [old + more for old, more in zip(self.reached.kept, new)]
        # At once: Ctrl-C leaves all chains in this round, or all in the one before.
        self.reached = Reached(chains, [snapshot_of(chain) for chain in chains], kept)
        seconds = perf_counter() - began
        self._length = max(1, min(16 * count, int(count * ROUND_SECONDS[workers.kind] / max(seconds, 1e-6))))
        return seconds

    def look(self, seconds: float) -> bool:
        """Show the round to those who watch, and save it now and then; True if they want the run to end."""
        plan = self.plan
        if plan.on_step is not None and plan.on_step(_mean_state(self.chains, plan.n_steps, seconds)):
            return True
        if plan.callback is not None and self.has_draws and plan.callback(self.trace()):
            return True
        if plan.checkpoint is not None and perf_counter() - self._saved > CHECKPOINT_SECONDS:
            self.save()
            self._saved = perf_counter()
        return False

    def save(self) -> Trace:
        """The trace so far, written to the checkpoint if there is to be one."""
        trace = self.trace()
        if self.plan.checkpoint is not None:
            trace.save(self.plan.checkpoint)
        return trace

    def go_back(self) -> None:
        """Forget what was done since the last complete round, the random numbers used in it included."""
        for snapshot in self.reached.snapshots:
            snapshot.restored()

    def draw_here(self) -> None:
        """Take the place where each chain is for its only draw."""
        for parts, chain in zip(self.reached.kept, self.chains):
            value = {"log_density": np.array([float(chain.state.log_density)])}
            parts.append((stacked([recorded(chain.state.position, self.plan.record)]), value))

    def trace(self) -> Trace:
        """The draws so far, after those of the trace that the chains go on from."""
        n_warmup, seconds, before = self.plan.n_warmup, perf_counter() - self._started, self.plan.before
        draws, stats = self._joined(0, before.draws if before else {}), self._joined(1, before.stats if before else {})
        if before is not None:
            n_warmup, seconds = before.n_warmup, seconds + before.seconds
        ends = tuple(_end(snapshot, self.plan.record) for snapshot in self.reached.snapshots)
        left = 0 if draws else max(self.plan.n_warmup - self.done, 0)
        return Trace(draws, stats, ends, n_warmup, self.plan.thin, self.interrupted, seconds, warmup_left=left)

    def _joined(self, which: int, old: Mapping[str, Any]) -> dict[str, Any]:
        kept = self.reached.kept
        names = kept[0][0][which] if kept[0] else old
        parts: dict[str, Any] = {}
        for name in names:
            rows = [np.concatenate([segment[which][name] for segment in chain]) for chain in kept if chain]
            new = [np.stack(rows)] if rows else []
            parts[name] = np.concatenate(([old[name]] if name in old else []) + new, axis=1)
        return parts


def _end(snapshot: Snapshot, record: Record | None) -> ChainEnd:
    chain, kernel = snapshot.chain, snapshot.chain.kernel
    so_far = getattr(kernel, "settings_so_far", None)
    settings = settings_of(kernel) if so_far is None else so_far()
    random_state = plain_random_state(snapshot.random_state)
    return ChainEnd(
        chain.state.position, random_state, settings, kernel, chain.state, record, snapshot.memory, chain.since_draw
    )


def _mean_state(chains: list[Chain], n_steps: int, seconds: float) -> IterationState[Any]:
    value = float(np.mean([chain.state.log_density for chain in chains]))
    return replace(chains[0].iteration_state(0, 1, n_steps, seconds), objective=value, log_likelihood=value)


def _caught_up(segment: Segment, n_done: int, move: Advance) -> Segment:
    """A segment with the steps that its chain is behind the others."""
    if segment.chain.done == n_done:
        return segment
    more = move([segment.chain], n_done - segment.chain.done)[0]
    if more.interrupted:
        hold()  # a second time: this does not return
    return segment.followed_by(more)
