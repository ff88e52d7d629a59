"""Several Markov chains at a time, in threads, each with a random stream of its own.

The loop of a chain is the sampler's; what chains have in common is here: how they are started, watched and stopped,
what Ctrl-C leaves, and whether a trace has settled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pluri.inference.result import IterationState, sweep_state
from pluri.validation.interruption import Interrupted, hold

__all__ = ["IterationState", "Watch", "run_chains", "split_r_hat", "sweep_state"]

Chain = TypeVar("Chain")
#: Sees each sweep; True ends the chain, StopIteration all of them.
Watch = Callable[[IterationState[Any]], bool]


def run_chains(
    run: Callable[[int, np.random.Generator, Watch | None, threading.Event], Chain | None],
    rng: np.random.Generator,
    *,
    n_chains: int = 1,
    n_threads: int = 1,
    watch: Watch | None = None,
) -> tuple[list[Chain], bool]:
    """Run chains in threads; also tells whether Ctrl-C ended them early.

    After Ctrl-C every chain finishes the sweep under way and gives what it has; KeyboardInterrupt goes through only
    if no chain has done a sweep.

    Parameters
    ----------
    run : callable
        ``run(index, rng, watch, stop)`` runs one chain until its end, until `watch` says so or until the event `stop`
        is set; None if it has done no sweep.
    rng : numpy.random.Generator
        Each chain gets a stream spawned from it.
    n_chains, n_threads : int
    watch : callable, optional
        Sees the sweeps of all chains.

    Returns
    -------
    chains : list
    interrupted : bool
    """
    stop, interrupted = threading.Event(), False

    def guarded(state: IterationState[Any]) -> bool:
        assert watch is not None
        try:
            return watch(state)
        except BaseException as error:
            stop.set()
            if isinstance(error, StopIteration):
                return True
            raise

    seen = None if watch is None else guarded
    with ThreadPoolExecutor(min(n_threads, n_chains)) as pool:
        futures = [pool.submit(run, index, stream, seen, stop) for index, stream in enumerate(rng.spawn(n_chains))]
        try:
            # A wait without a time limit cannot be interrupted on every platform.
            while wait(futures, timeout=0.1).not_done:
                pass
        except KeyboardInterrupt as ctrl_c:
            hold(ctrl_c, "fit interrupted; the sweeps so far are kept")
            interrupted = True
        finally:
            stop.set()
    chains = [chain for chain in (future.result() for future in futures) if chain is not None]
    if interrupted and not chains:
        raise Interrupted
    return chains, interrupted


def split_r_hat(values: NDArray[np.float64]) -> float:
    """Split R-hat of one trace: about 1 once it has stopped drifting; NaN if it is shorter than four.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.chains import split_r_hat
    >>> bool(split_r_hat(np.random.default_rng(0).normal(size=1000)) < 1.01)
    True
    >>> bool(split_r_hat(np.arange(100.0)) > 2)
    True
    """
    half = len(values) // 2
    if half < 2:
        return np.nan
    halves = values[-2 * half :].reshape(2, half)
    within = halves.var(axis=1, ddof=1).mean()
    between = halves.mean(axis=1).var(ddof=1)
    return float(np.sqrt((half - 1) / half + between / within)) if within > 0 else 1.0
