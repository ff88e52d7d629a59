"""Sampling with any kernel: where chains begin, and going on where a trace stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pluri.inference.mcmc.chain import Chain, recorded, resumed_warmup, stacked, start_chain
from pluri.inference.mcmc.kernel import Kernel
from pluri.inference.mcmc.rounds import Backend, Callback, OnStep, Plan, Record, run_chains
from pluri.inference.mcmc.trace import ChainEnd, Trace, restored_generator
from pluri.validation import RandomState, as_generator, check_count
from pluri.validation.interruption import interruptible


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
    backend: Backend = "processes",
    verbose: int = 0,
    callback: Callback | None = None,
    checkpoint: str | Path | None = None,
    warn: bool = True,
    draw_if_interrupted: bool = False,
    on_step: OnStep | None = None,
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
        Where chains run if `n_jobs` is not 1. Threads are enough for kernels that let others run, and
        always serve those with ``compiled=True``.
    verbose : int, default=0
        1 shows progress.
    callback : callable, optional
        ``callback(trace)`` sees the draws so far between rounds; True ends the run.
    checkpoint : path, optional
        File in which the draws so far are saved every 30 s and at the end, be it an error of the target. Before the
        first draw it has what the warm-up knows: :func:`resume` goes on with the warm-up.
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
    for name, value, least in zip(
        ("n_draws", "n_warmup", "n_chains", "thin"), (n_draws, n_warmup, n_chains, thin), (1, 0, 1, 1)
    ):
        check_count(value, name, least)
    if isinstance(kernel, type) or not (hasattr(kernel, "init") and hasattr(kernel, "step")):
        raise ValueError(f"kernel must be a kernel such as NUTS(value_and_grad), got {kernel!r}")
    streams = as_generator(random_state).spawn(n_chains)
    chains = [
        start_chain(kernel, position, rng, n_warmup)
        for position, rng in zip(initial_positions(initial, n_chains, streams), streams)
    ]
    plan = Plan(n_draws, n_warmup, thin, record, n_jobs, backend, verbose, callback, checkpoint, warn)
    return run_chains(chains, replace(plan, draw_if_interrupted=draw_if_interrupted, on_step=on_step))


@interruptible
def resume(
    trace: Trace,
    n_draws: int = 1000,
    *,
    kernel: Kernel | None = None,
    record: Record | None = None,
    n_jobs: int | None = None,
    backend: Backend = "processes",
    verbose: int = 0,
    callback: Callback | None = None,
    checkpoint: str | Path | None = None,
    warn: bool = True,
) -> Trace:
    """Go on where a trace stopped: the old draws and `n_draws` more, as if it had never stopped.

    A trace of which Ctrl-C left no draw, only a checkpoint, goes on with its warm-up.

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
    check_count(n_draws, "n_draws")
    if not trace.ends:
        raise ValueError(_why_not(trace))
    record = trace.ends[0].record if record is None else record
    chains = [_resumed(end, kernel, trace) for end in trace.ends]
    _check_same_variables(trace, chains[0].state.position, record)
    n_warmup = trace.n_warmup if trace.warmup_left else 0
    plan = Plan(n_draws, n_warmup, trace.thin, record, n_jobs, backend, verbose, callback, checkpoint, warn)
    return run_chains(chains, replace(plan, before=trace))


def _why_not(trace: Trace) -> str:
    """Why a trace cannot be gone on with."""
    if trace.origin:
        return (
            f"a trace of {trace.origin} cannot be resumed: the states of its chains are not kept. Begin another run at "
            f"its last draws, with {trace.origin}(..., initial=...), which warms up anew"
        )
    return "the trace does not know where its chains stopped: it was put together by hand"


def _resumed(end: ChainEnd, kernel: Kernel | None, trace: Trace) -> Chain:
    """A chain that goes on where another stopped, in the middle of its warm-up or of the steps to a draw maybe."""
    if kernel is None and end.kernel is None:
        raise ValueError("kernel must be given for a trace that was read from a file")
    rng = restored_generator(end.random_state)
    done = trace.n_warmup - trace.warmup_left if trace.warmup_left else len(end.since_draw)
    if kernel is None:
        moved, state = end.kernel, end.state
    else:
        moved = replace(kernel, **end.settings) if end.settings else kernel  # type: ignore[type-var]
        state = moved.init(rng, end.position)
        rng = restored_generator(end.random_state)  # whatever random numbers `init` used
    chain = Chain(moved, None, state, rng, done, tuple(end.since_draw))
    return resumed_warmup(chain, end.memory, trace.n_warmup) if end.memory is not None else chain


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
