"""Engines: where a function is mapped over the batches of a source, and how its answers are added up.

Every engine gives the answers in the order of the batches and `pairwise_sum` adds them in that order, so that one
core, many threads and a cluster agree to the last bit. Look-ahead is bounded: data larger than memory stay so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeVar

from pluri.engine.batches import Batch, LazyBatch, Source
from pluri.engine.reduction import pairwise_sum

S = TypeVar("S")


class Sweep(Protocol):
    """Map a function over every batch of a source that an engine has opened; answers come in order."""

    def __call__(self, function: Callable[[Batch], S]) -> Iterator[S]:
        """Start a sweep."""
        ...


class Run(Protocol):
    """Map a function over every batch of a source that an engine has opened, and add up its answers."""

    def __call__(self, function: Callable[[Batch], S]) -> S:
        """Make one sweep."""
        ...


class Engine(ABC):
    """A place where work runs. A new one implements `over`."""

    @abstractmethod
    def over(self, source: Source) -> AbstractContextManager[Sweep]:
        """Hold what many sweeps over the same source share (threads, data on a cluster); released on exit."""

    def map(self, function: Callable[[Batch], S], source: Source) -> Iterator[S]:
        """Make one sweep over a source; answers come in the order of its batches."""
        with self.over(source) as sweep:
            yield from sweep(function)


def evaluate(function: Callable[[Batch], S], item: LazyBatch) -> S:
    """Load the batch and apply the function, in the thread or process that does the work."""
    return function(item.load())


class SerialEngine(Engine):
    """Work in the calling thread, one batch after another.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.engine import ArraySource, SerialEngine
    >>> source = ArraySource(np.ones((5, 1)), batch_size=2)
    >>> list(SerialEngine().map(lambda batch: batch.n_samples, source))
    [2, 2, 1]
    """

    @contextmanager
    def over(self, source: Source) -> Iterator[Sweep]:
        """Nothing to hold."""

        def sweep(function: Callable[[Batch], S]) -> Iterator[S]:
            for item in source.batches():
                yield evaluate(function, item)

        yield sweep

    def __repr__(self) -> str:
        return "SerialEngine()"


class ThreadEngine(Engine):
    """Work in threads of this process: for functions that spend their time in NumPy or in nogil kernels.

    At most ``2 * n_jobs`` batches are under way at a time. Linear algebra libraries are held to one thread each while
    a sweep runs, since the batches fill the cores already.

    Parameters
    ----------
    n_jobs : int, default=-1
        Number of threads, by joblib's convention: -1 is all cores, -2 all but one.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.engine import ArraySource, ThreadEngine
    >>> source = ArraySource(np.ones((5, 1)), batch_size=2)
    >>> list(ThreadEngine(n_jobs=2).map(lambda batch: batch.n_samples, source))
    [2, 2, 1]
    """

    def __init__(self, n_jobs: int = -1) -> None:
        self.n_jobs = n_jobs
        self._n_threads = count_jobs(n_jobs)

    @contextmanager
    def over(self, source: Source) -> Iterator[Sweep]:
        """Hold the threads; on exit they finish the batch they are at and end."""
        from threadpoolctl import ThreadpoolController

        libraries = ThreadpoolController()
        pool = ThreadPoolExecutor(self._n_threads, thread_name_prefix="pluri")

        def sweep(function: Callable[[Batch], S]) -> Iterator[S]:
            running: deque[Future[S]] = deque()
            try:
                with libraries.limit(limits=1, user_api="blas"):
                    for item in source.batches():
                        running.append(pool.submit(evaluate, function, item))
                        if len(running) >= 2 * self._n_threads:
                            yield running.popleft().result()
                    while running:
                        yield running.popleft().result()
            finally:
                for future in running:
                    future.cancel()

        try:
            yield sweep
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def __repr__(self) -> str:
        return f"ThreadEngine(n_jobs={self.n_jobs})"


def count_jobs(n_jobs: int) -> int:
    """Give the number of workers that ``n_jobs`` stands for."""
    import joblib

    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}")
    return int(joblib.effective_n_jobs(n_jobs))


def resolve_engine(engine: Any = None, n_jobs: int | None = None) -> Engine:
    """Turn what a user may pass as ``engine`` into an `Engine`.

    Parameters
    ----------
    engine : None, "serial", "threads", "dask", Engine or distributed.Client
        None: threads if ``n_jobs`` asks for more than one, else the calling thread. "dask": the current Dask client
        if there is one, else a cluster on this machine that lives as long as it is needed.
    n_jobs : int, optional
        Number of threads, or of processes of a cluster that has to be started; -1 is all cores. None: one, or all
        cores when an engine is named.

    Examples
    --------
    >>> from pluri.engine import resolve_engine
    >>> resolve_engine(), resolve_engine(n_jobs=2), resolve_engine("threads")
    (SerialEngine(), ThreadEngine(n_jobs=2), ThreadEngine(n_jobs=-1))
    """
    if isinstance(engine, Engine):
        return engine
    if engine is None:
        return SerialEngine() if n_jobs in (None, 1) else ThreadEngine(n_jobs)
    if engine == "serial":
        return SerialEngine()
    if engine == "threads":
        return ThreadEngine(-1 if n_jobs is None else n_jobs)
    # A distributed.Client is known by its methods: importing distributed takes longer than many fits.
    is_client = all(callable(getattr(engine, name, None)) for name in ("scatter", "submit", "wait_for_workers"))
    if is_client or engine == "dask":
        from pluri.engine.dask import DaskEngine

        return DaskEngine(engine if is_client else None, n_jobs=n_jobs)
    raise ValueError(
        "engine must be None, 'serial', 'threads', 'dask', a pluri.engine.Engine or a distributed.Client, "
        f"got {engine!r}"
    )


@contextmanager
def open_engine(engine: Any, n_jobs: int | None, source: Source) -> Iterator[Run]:
    """Open an engine over a source for many sweeps: data go to a cluster once, and are released at the end.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.engine import ArraySource, open_engine
    >>> source = ArraySource(np.arange(10.0).reshape(5, 2), batch_size=2)
    >>> with open_engine(None, 2, source) as run:
    ...     mean = run(lambda batch: batch.X.sum(axis=0)) / 5
    ...     spread = run(lambda batch: ((batch.X - mean) ** 2).sum(axis=0)) / 5
    >>> mean, spread
    (array([4., 5.]), array([8., 8.]))
    """
    with resolve_engine(engine, n_jobs).over(source) as sweep:

        def run(function: Callable[[Batch], S]) -> S:
            return pairwise_sum(sweep(function))

        yield run


def map_reduce(function: Callable[[Batch], S], source: Source, *, engine: Any = None, n_jobs: int | None = None) -> S:
    """Apply a function to every batch of a source and add up its answers.

    Parameters
    ----------
    function : callable
        Takes a `Batch`, gives anything that adds up with ``+``, such as `Statistics`. It must not write to the batch.
    source : Source
        The data.
    engine, n_jobs
        Where to run, as `resolve_engine` takes them. The answer does not depend on them.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.engine import ArraySource, map_reduce
    >>> map_reduce(lambda batch: float(batch.X.sum()), ArraySource(np.ones((1000, 2)), batch_size=10), n_jobs=2)
    2000.0
    """
    with open_engine(engine, n_jobs, source) as run:
        return run(function)
