"""A Dask cluster as an engine: batches are shipped once, stay on the workers, and are shipped again if a worker dies.

Data that a client scatters exist nowhere else in the cluster. When the only worker that holds a batch dies, Dask
cancels what depends on it; the engine reads the batch again from the source, ships it and resubmits the work. Answers
are still taken in the order of the batches, so that a killed worker changes nothing in the result.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pluri.engine.batches import Batch, LazyBatch, Source
from pluri.engine.executors import Engine, Sweep, count_jobs
from pluri.engine.extras import import_extra

S = TypeVar("S")

MAX_ATTEMPTS = 5  # times that a batch is tried before the cluster is given up
PATIENCE = 5.0  # seconds between two looks at whether the inputs of a task still exist
WORKERS_TIMEOUT = 60.0  # seconds to wait for a first worker
PAUSE_TIMEOUT = 30.0  # seconds that all workers may stay paused, which Dask does when their memory is nearly full


class Parcel:
    """Something that travels in one piece.

    Dask sends the arrays inside an object as separate buffers, from which they come out unaligned and read-only: NumPy
    then avoids the BLAS, and the last bits differ from those of one core. Pickled whole, they come out as they were.
    """

    def __init__(self, content: Any) -> None:
        self.content = content

    def __reduce__(self) -> tuple[Any, ...]:
        import cloudpickle

        return _unpack, (cloudpickle.dumps(self.content, protocol=4),)


def _unpack(message: bytes) -> Parcel:
    import cloudpickle

    return Parcel(cloudpickle.loads(message))


def evaluate(function: Parcel, item: LazyBatch) -> Parcel:
    """Load a batch on a worker and apply the function to it."""
    return Parcel(function.content(item.load()))


class DaskEngine(Engine):
    """Work on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster. None: the current client if there is one, else processes on this machine, started for the
        purpose and closed at the end (a script that does so needs ``if __name__ == "__main__":``).
    n_jobs : int, optional
        Number of processes of a cluster that has to be started; all cores by default.
    memory : int, optional
        Number of bytes of data that may stay on the workers between sweeps; what is beyond is shipped in every
        sweep. By default half of what the workers have.

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import Client
    >>> from pluri.engine import ArraySource, DaskEngine
    >>> source = ArraySource(np.ones((5, 1)), batch_size=2)
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     list(DaskEngine(client).map(lambda batch: batch.n_samples, source))
    [2, 2, 1]
    """

    def __init__(self, client: Any = None, *, n_jobs: int | None = None, memory: int | None = None) -> None:
        self.client = client
        self.n_jobs = n_jobs
        self.memory = memory

    @contextmanager
    def over(self, source: Source) -> Iterator[Sweep]:
        """Hold the cluster, if it is ours, and the data on its workers."""
        with _connected(self.client, self.n_jobs) as client:
            _wait_for_workers(client)
            shipment = _Shipment(client, source, _half_of_memory(client) if self.memory is None else self.memory)
            try:
                yield shipment.sweep
            finally:
                shipment.kept.clear()

    def __repr__(self) -> str:
        return f"DaskEngine(client={self.client!r})"


def _import_distributed() -> Any:
    return import_extra("distributed", "engine='dask'", extra="dask")


@contextmanager
def _connected(client: Any, n_jobs: int | None) -> Iterator[Any]:
    distributed = _import_distributed()
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError:
            n_workers = count_jobs(-1 if n_jobs is None else n_jobs)
            options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
            with (
                distributed.LocalCluster(processes=True, **options) as cluster,
                distributed.Client(cluster, set_as_default=False) as started,
            ):
                yield started
            return
    if client.asynchronous:
        raise ValueError("engine must be a synchronous distributed.Client, got one made with asynchronous=True")
    yield client


@dataclass
class _Task:
    """A batch under way. It holds its inputs, since Dask forgets what no future refers to."""

    index: int
    function: Any
    batch: Any
    answer: Any
    attempts: int = 1


class _Reader:
    """Read batch number ``index`` of a source that only goes forwards: to go back is to start again."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._items: Iterator[LazyBatch] = iter(())
        self._next = sys.maxsize

    def read(self, index: int) -> LazyBatch | None:
        """Give the batch, or None after the last."""
        if index < self._next:
            self._items, self._next = self._source.batches(), 0
        item = next(itertools.islice(self._items, index - self._next, None), None)
        self._next = index + 1
        return item


class _Shipment:
    """The batches of one source on one cluster.

    They are shipped, submitted and collected by blocks, since every message to the cluster takes milliseconds; two
    blocks are under way at a time.
    """

    def __init__(self, client: Any, source: Source, memory: float) -> None:
        self.client = client
        self.source = source
        self.kept: dict[int, Any] = {}
        self._room = memory
        self._distributed: Any = _import_distributed()
        self._n_batches: int | None = None

    def sweep(self, function: Callable[[Batch], S]) -> Iterator[S]:
        """Map a function over the batches, in order."""
        (shipped_function,) = self._ship([Parcel(function)])
        block_size = 2 * max(1, sum(self.client.nthreads().values()))
        forwards, again = _Reader(self.source), _Reader(self.source)
        running: deque[_Task] = deque()
        try:
            for start in itertools.count(step=block_size):
                if shipped_function.status != "finished":
                    (shipped_function,) = self._ship([Parcel(function)])
                block = self._on_cluster(range(start, start + block_size), forwards)
                for index, batch in block.items():
                    answer = self.client.submit(evaluate, shipped_function, batch, pure=False)
                    running.append(_Task(index, shipped_function, batch, answer))
                at_end = len(block) < block_size
                while len(running) > (0 if at_end else block_size):
                    oldest = [running.popleft() for _ in range(min(block_size, len(running)))]
                    yield from self._collect(oldest, function, again)
                if at_end:
                    return
        finally:
            for task in running:  # after an error: what nobody waits for is not worth computing
                task.answer.release()

    def _on_cluster(self, indices: range, reader: _Reader) -> dict[int, Any]:
        """Give the futures of a block of batches, shipping those that are not there; fewer at the end of the data."""
        missing: dict[int, LazyBatch] = {}
        for index in indices:
            if index in self.kept and self.kept[index].status == "finished":
                continue
            item = None if index == self._n_batches else reader.read(index)
            if item is None:
                self._n_batches = index
                indices = range(indices.start, index)
                break
            missing[index] = item
        shipped = dict(zip(missing, self._ship(list(missing.values()))))
        for index, future in shipped.items():
            size = sys.getsizeof(missing[index])
            if index in self.kept:
                self.kept[index] = future
            elif size <= self._room:
                self.kept[index] = future
                self._room -= size
        return {index: shipped[index] if index in shipped else self.kept[index] for index in indices}

    def _collect(self, tasks: list[_Task], function: Callable[[Batch], S], reader: _Reader) -> Iterator[S]:
        """Wait for the answers of a block."""
        answers = [task.answer for task in tasks]
        try:
            self._distributed.wait(answers, timeout=PATIENCE)
            parcels = self.client.gather(answers)
        except Exception:  # whichever task it was, it comes up again when each is asked by itself
            for task in tasks:
                yield self._collect_one(task, function, reader)
        else:
            yield from (parcel.content for parcel in parcels)

    def _collect_one(self, task: _Task, function: Callable[[Batch], S], reader: _Reader) -> S:
        """Wait for an answer; start again from the source when a dead worker took the inputs with it."""
        pause = _Pause(self.client)
        while True:
            try:
                return task.answer.result(timeout=PATIENCE).content
            except self._distributed.KilledWorker as error:
                raise _gave_up(task) from error
            except (CancelledError, TimeoutError):
                if task.answer.status == "error":  # the function itself raised one of these
                    raise
                lost = {"cancelled", "lost"}
                if not lost & {task.answer.status, task.batch.status, task.function.status}:
                    pause.check()
                    continue
            self._resubmit(task, function, reader)

    def _resubmit(self, task: _Task, function: Callable[[Batch], Any], reader: _Reader) -> None:
        if task.attempts == MAX_ATTEMPTS:
            raise _gave_up(task)
        item = reader.read(task.index)
        if item is None:
            raise RuntimeError(f"source must give the same batches in every pass, got no batch {task.index} this time")
        task.attempts += 1
        task.function, task.batch = self._ship([Parcel(function), item])
        if task.index in self.kept:
            self.kept[task.index] = task.batch
        task.answer = self.client.submit(evaluate, task.function, task.batch, pure=False)

    def _ship(self, things: list[Any]) -> list[Any]:
        """Send things to the workers, trying again if one dies while it receives."""
        pause = _Pause(self.client)
        for attempt in itertools.count(1):
            try:
                # With hashing, equal batches would share a key and what is lost could not be told apart. Broadcasting
                # would never return if a worker died meanwhile (distributed 2026.8); workers copy from each other.
                return self.client.scatter(things, hash=False) if things else []
            except (OSError, TimeoutError, KeyError):  # KeyError: the scheduler looks for a worker that has gone
                pause.check()
                if attempt == MAX_ATTEMPTS:
                    raise
                _wait_for_workers(self.client)
        raise AssertionError("unreachable")


class _Pause:
    """How long all workers have been paused: their memory does not empty by itself, and nobody would ever answer."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._since: float | None = None

    def check(self) -> None:
        """Give the cluster up if none of its workers has taken work for too long."""
        workers = list(_workers(self._client).values())
        if not workers or any(worker.get("status") != "paused" for worker in workers):
            self._since = None
            return
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since < PAUSE_TIMEOUT:
            return
        used = max(worker.get("metrics", {}).get("memory", 0) for worker in workers)
        limit = min(worker.get("memory_limit") or 0 for worker in workers)
        raise RuntimeError(
            f"the Dask workers have stood still for {PAUSE_TIMEOUT:.0f} seconds because their memory is nearly full "
            f"({used / 1e6:.0f} of {limit / 1e6:.0f} MB): raise their memory_limit, or use a smaller batch_size or "
            "DaskEngine(memory=...) if it is the data that fill it"
        )


def _workers(client: Any) -> dict[str, Any]:
    """What the scheduler knows of each worker; newer versions of distributed tell of five only, unless asked."""
    try:
        info = client.scheduler_info(n_workers=-1)
    except TypeError:
        info = client.scheduler_info()
    return dict(info["workers"])


def _gave_up(task: _Task) -> RuntimeError:
    return RuntimeError(
        f"the Dask workers that had batch {task.index} died one after another: see their logs for the cause, "
        "often a lack of memory, for which a smaller batch_size helps"
    )


def _wait_for_workers(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_TIMEOUT)
    except TimeoutError as error:
        raise TimeoutError(f"the Dask cluster has no workers after {WORKERS_TIMEOUT:.0f} seconds") from error


def _half_of_memory(client: Any) -> float:
    limits = [worker.get("memory_limit") or float("inf") for worker in _workers(client).values()]
    return 0.5 * sum(limits)
