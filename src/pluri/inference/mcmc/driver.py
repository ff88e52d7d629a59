"""Running chains: warm-up, draws, progress, Ctrl-C, and going on later.

Chains advance in rounds: each makes some steps, then all are looked at. So Ctrl-C ends them at the same length and
nothing that was drawn is lost; progress and checkpoints come between rounds; and chains can live in other processes,
as a chain is a record that can be sent there and back. Results do not depend on the rounds or on where they ran.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np

from pluri.inference.mcmc.chain import Chain, Segment, advance, recorded, stacked, start_chain
from pluri.inference.mcmc.health import warn_of_problems
from pluri.inference.mcmc.kernel import Kernel
from pluri.inference.mcmc.trace import ChainEnd, Trace, random_state_of, restored_generator
from pluri.inference.mcmc.workers import Advance, open_workers
from pluri.inference.result import IterationState
from pluri.validation import RandomState, as_generator, check_writable
from pluri.validation.interruption import Interrupted, hold, interruptible
from pluri.validation.interruption import kept as say_kept

#: How long a round should take: short enough for progress and Ctrl-C, long enough that sending chains does not matter.
ROUND_SECONDS = {"serial": 1.0, "threads": 1.0, "processes": 2.0}
CHECKPOINT_SECONDS = 30.0

Record = Callable[[Any], Mapping[str, Any]]


@interruptible
def sample(
    kernel: Kernel,
    initial: Any,
    *,
    n_draws: int = 1000,
    n_warmup: int = 1000,
    n_chains: int = 4,
    thin: int = 1,
    record: Record | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    backend: Literal["processes", "threads"] = "processes",
    verbose: int = 0,
    callback: Callable[[Trace], bool | None] | None = None,
    checkpoint: str | Path | None = None,
    warn: bool = True,
    draw_if_interrupted: bool = False,
    on_step: Callable[[IterationState[Any]], bool] | None = None,
) -> Trace:
    """Run several chains of a kernel.

    Parameters
    ----------
    kernel : Kernel
        What moves the chains: :class:`NUTS`, :class:`RandomWalk`, :class:`Gibbs`, ... or one of your own.
    initial : array of shape (dim,) or (n_chains, dim), dict of arrays, list of positions, or callable
        Where chains begin; a list gives each chain its own, a callable ``initial(rng)`` draws it.
    n_draws, n_warmup : int, default=1000
        Draws kept of each chain, and steps before them, during which the kernel learns its settings.
    n_chains : int, default=4
    thin : int, default=1
        Steps from one draw to the next.
    record : callable, optional
        ``record(position) -> dict of arrays``: what to keep of a position; all of it by default.
    random_state : int, Generator or None
        Chains get independent streams, so that results do not depend on `n_jobs`.
    n_jobs : int, optional
        Chains run at a time; None and 1 run them here, -1 uses all processors.
    backend : {"processes", "threads"}, default="processes"
        Where chains run if `n_jobs` is not 1. Threads are enough for compiled kernels that let others run.
    verbose : int, default=0
        1 shows progress.
    callback : callable, optional
        ``callback(trace)`` sees the draws so far between rounds; True ends the run.
    checkpoint : path, optional
        File in which the draws so far are saved every 30 s and at the end, be it an error of the target.
    warn : bool, default=True
        Give a ConvergenceWarning for each problem that :meth:`Trace.diagnose` finds.
    draw_if_interrupted : bool, default=False
        If Ctrl-C comes during the warm-up, take the place where each chain is then for its only draw, instead of
        letting the KeyboardInterrupt through.
    on_step : callable, optional
        ``on_step(state)`` is called after each step, which all chains make side by side, with its number and their
        mean log density; True ends the run, during the warm-up as in `draw_if_interrupted`.

    Returns
    -------
    Trace
        After Ctrl-C, the draws made until then are the attribute ``result`` of the ``KeyboardInterrupt``; see
        :func:`pluri.on_interrupt`. An error in the target goes through, with those draws as its attribute ``trace``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> trace = mcmc.sample(mcmc.NUTS(lambda x: (-0.5 * x @ x, -x)), np.zeros(2), n_draws=300, random_state=0)
    >>> trace["x"].shape
    (4, 300, 2)
    """
    for name, value, least in (
        ("n_draws", n_draws, 1), ("n_warmup", n_warmup, 0), ("n_chains", n_chains, 1), ("thin", thin, 1),
    ):  # fmt: skip
        if not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if isinstance(kernel, type) or not (hasattr(kernel, "init") and hasattr(kernel, "step")):
        raise ValueError(f"kernel must be a kernel such as NUTS(value_and_grad), got {kernel!r}")
    streams = as_generator(random_state).spawn(n_chains)
    chains = [
        start_chain(kernel, position, rng, n_warmup)
        for position, rng in zip(initial_positions(initial, n_chains, streams), streams)
    ]
    return _run(
        chains, n_draws, n_warmup, thin, record, n_jobs=n_jobs, backend=backend, verbose=verbose, callback=callback,
        checkpoint=checkpoint, warn=warn, draw_if_interrupted=draw_if_interrupted, on_step=on_step,
    )  # fmt: skip


@interruptible
def resume(
    trace: Trace,
    n_draws: int = 1000,
    *,
    kernel: Kernel | None = None,
    record: Record | None = None,
    n_jobs: int | None = None,
    backend: Literal["processes", "threads"] = "processes",
    verbose: int = 0,
    callback: Callable[[Trace], bool | None] | None = None,
    checkpoint: str | Path | None = None,
    warn: bool = True,
) -> Trace:
    """Go on where a trace stopped: the old draws and `n_draws` more, as if it had never stopped.

    Parameters
    ----------
    trace : Trace
    n_draws : int, default=1000
        Further draws of each chain.
    kernel : Kernel, optional
        Needed for a trace that was read from a file, which keeps what the kernel had learned but no code. It gets
        what was learned, and must have the same target.
    record : callable, optional
        As in :func:`sample`; that of the trace by default, which a file does not keep either.
    n_jobs, backend, verbose, callback, checkpoint, warn
        As in :func:`sample`.

    Returns
    -------
    Trace

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> kernel = mcmc.NUTS(lambda x: (-0.5 * x @ x, -x))
    >>> first = mcmc.sample(kernel, np.zeros(1), n_draws=100, random_state=0, warn=False)
    >>> both = mcmc.resume(first, 100, warn=False)
    >>> whole = mcmc.sample(kernel, np.zeros(1), n_draws=200, random_state=0, warn=False)
    >>> bool((both["x"] == whole["x"]).all())
    True
    """
    if not isinstance(n_draws, int | np.integer) or n_draws < 1:
        raise ValueError(f"n_draws must be a whole number of at least 1, got {n_draws!r}")
    if not trace.ends:
        raise ValueError("the trace does not know where its chains stopped: it was put together by hand")
    record = trace.ends[0].record if record is None else record
    chains = []
    for end in trace.ends:
        rng = restored_generator(end.random_state)
        if kernel is None and end.kernel is None:
            raise ValueError("kernel must be given for a trace that was read from a file")
        if kernel is None:
            chains.append(Chain(end.kernel, None, end.state, rng, 0))
            continue
        moved: Any = replace(kernel, **end.settings) if end.settings else kernel  # type: ignore[type-var]
        chains.append(Chain(moved, None, moved.init(rng, end.position), rng, 0))
    _check_same_variables(trace, chains[0].state.position, record)
    return _run(
        chains, n_draws, 0, trace.thin, record, n_jobs=n_jobs, backend=backend, verbose=verbose, callback=callback,
        checkpoint=checkpoint, warn=warn, before=trace,
    )  # fmt: skip


def _check_same_variables(trace: Trace, position: Any, record: Record | None) -> None:
    """Refuse to go on with other variables than those of the draws that are there."""
    there = {name: values.shape[2:] for name, values in trace.draws.items()}
    further = {name: values.shape[1:] for name, values in stacked([recorded(position, record)]).items()}
    if there and there != further:
        raise ValueError(
            f"record must keep what the draws of the trace are, {_listed(there)}; it would keep {_listed(further)}. "
            "Give the same record as before"
        )


def _listed(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items())


def initial_positions(initial: Any, n_chains: int, streams: Sequence[np.random.Generator]) -> list[Any]:
    """One position for each chain."""
    if callable(initial):
        return [initial(rng) for rng in streams]
    if isinstance(initial, Mapping):
        return [initial] * n_chains
    if isinstance(initial, list) and initial and (isinstance(initial[0], Mapping) or np.ndim(initial[0]) > 0):
        if len(initial) != n_chains:
            raise ValueError(f"initial must have a position for each of {n_chains} chains, got {len(initial)}")
        return list(initial)
    values = np.asarray(initial, dtype=np.float64 if np.asarray(initial).dtype.kind in "iufb" else None)
    if values.dtype.kind not in "iufbc":
        raise ValueError(f"initial must be numbers, a dict of arrays or a function, got {type(initial).__name__}")
    if values.ndim == 2:
        if len(values) != n_chains:
            raise ValueError(f"initial must have a row for each of {n_chains} chains, got shape {values.shape}")
        return list(values)
    return [np.atleast_1d(values)] * n_chains


def _run(
    chains: list[Chain], n_draws: int, n_warmup: int, thin: int, record: Record | None, *, n_jobs: int | None,
    backend: Literal["processes", "threads"], verbose: int, callback: Callable[[Trace], bool | None] | None,
    checkpoint: str | Path | None, warn: bool, before: Trace | None = None, draw_if_interrupted: bool = False,
    on_step: Callable[[IterationState[Any]], bool] | None = None,
) -> Trace:  # fmt: skip
    from pluri.progress import open_progress

    if checkpoint is not None:
        check_writable(checkpoint, "checkpoint")
    started = saved = perf_counter()
    n_steps = n_warmup + n_draws * thin
    kept: list[Any] = [[] for _ in chains]
    done, interrupted, round_steps = 0, False, 1
    workers = open_workers(n_jobs, backend, len(chains))
    goal = ROUND_SECONDS[workers.kind]
    move = partial(advance, n_warmup=n_warmup, thin=thin, record=record)

    def so_far() -> Trace:
        return _assemble(chains, kept, n_warmup, thin, interrupted, perf_counter() - started, before, record)

    try:
        with workers, open_progress(verbose) as report:
            while done < n_steps and not interrupted:
                began = perf_counter()
                count = 1 if on_step is not None else min(round_steps, n_steps - done)
                segments, interrupted = workers.map(move, chains, count)
                if interrupted:
                    hold()
                # After Ctrl-C chains may be of different lengths by a part of a round: let the shorter ones catch up.
                if interrupted:
                    longest = max(segment.chain.done for segment in segments)
                    segments = [_caught_up(segment, longest, move) for segment in segments]
                for index, segment in enumerate(segments):
                    chains[index] = segment.chain
                    if segment.draws:
                        kept[index].append((segment.draws, segment.stats))
                done = chains[0].done
                seconds = perf_counter() - began
                round_steps = max(1, min(16 * count, int(count * goal / max(seconds, 1e-6))))
                # A log density may take as long as a step: it is computed only if it is shown.
                for index, chain in enumerate(chains if verbose else ()):
                    report(chain.iteration_state(index, len(chains), n_steps, seconds))
                if on_step is not None and on_step(_mean_state(chains, n_steps, seconds)):
                    draw_if_interrupted = True
                    break
                if callback is not None and kept[0] and callback(so_far()):
                    break
                if checkpoint is not None and kept[0] and perf_counter() - saved > CHECKPOINT_SECONDS:
                    so_far().save(checkpoint)
                    saved = perf_counter()
    except KeyboardInterrupt as stop:  # between two rounds: those that are complete are kept
        hold(stop)
        interrupted = True
        for rounds in kept:
            del rounds[min(map(len, kept)) :]
    except Exception as error:
        if all(kept):
            error.trace = so_far()  # type: ignore[attr-defined]
            error.add_note("The draws made until then are the attribute `trace` of this error.")
            if checkpoint is not None:
                so_far().save(checkpoint)
        raise
    if not any(kept) and before is None:
        if not draw_if_interrupted:
            raise Interrupted  # there is no draw to keep
        for rounds, chain in zip(kept, chains):
            value = {"log_density": np.array([float(chain.state.log_density)])}
            rounds.append((stacked([recorded(chain.state.position, record)]), value))
    trace = so_far()
    if checkpoint is not None:
        trace.save(checkpoint)
    if interrupted:
        say_kept(f"interrupted after {trace.n_draws} draws of each chain; they are kept")
    elif warn:
        warn_of_problems(trace)
    return trace


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


def _assemble(
    chains: list[Chain], kept: list[Any], n_warmup: int, thin: int, interrupted: bool, seconds: float,
    before: Trace | None, record: Record | None,
) -> Trace:  # fmt: skip
    def joined(which: int, old: Mapping[str, Any]) -> dict[str, Any]:
        names = kept[0][0][which] if kept[0] else old
        parts: dict[str, Any] = {}
        for name in names:
            rows = [np.concatenate([segment[which][name] for segment in chain]) for chain in kept if chain]
            new = [np.stack(rows)] if rows else []
            parts[name] = np.concatenate(([old[name]] if name in old else []) + new, axis=1)
        return parts

    ends = tuple(
        ChainEnd(
            chain.state.position,
            random_state_of(chain.rng),
            {name: getattr(chain.kernel, name) for name in getattr(chain.kernel, "tuned", ())},
            chain.kernel,
            chain.state,
            record,
        )
        for chain in chains
    )
    if before is not None:
        n_warmup, seconds = before.n_warmup, seconds + before.seconds
    draws, stats = joined(0, before.draws if before else {}), joined(1, before.stats if before else {})
    return Trace(draws, stats, ends, n_warmup, thin, interrupted, seconds)
