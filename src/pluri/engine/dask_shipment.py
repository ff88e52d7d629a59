"""Batches on the workers of a Dask cluster: shipped once, worked on many times, and shipped again if a worker dies."""

from __future__ import annotations

import itertools
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, TypeVar

from pluri.engine.batches import Batch, LazyBatch, Source
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


def import_distributed() -> Any:
    return import_extra("distributed", "engine='dask'", extra="dask")


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


class Shipment:
    """The batches of one source on one cluster.

    They are shipped, submitted and collected by blocks, since every message to the cluster takes milliseconds; two
    blocks are under way at a time.
    """

    def __init__(self, client: Any, source: Source, memory: float) -> None:
        self.client = client
        self.source = source
        self.kept: dict[int, Any] = {}
        self._room = memory
        self._distributed: Any = import_distributed()
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
        pause = Pause(self.client)
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
        pause = Pause(self.client)
        for attempt in itertools.count(1):
            try:
                # With hashing, equal batches would share a key and what is lost could not be told apart. Broadcasting
                # would never return if a worker died meanwhile (distributed 2026.8); workers copy from each other.
                return self.client.scatter(things, hash=False) if things else []
            except (OSError, TimeoutError, KeyError):  # KeyError: the scheduler looks for a worker that has gone
                pause.check()
                if attempt == MAX_ATTEMPTS:
                    raise
                wait_for_workers(self.client)
        raise AssertionError("unreachable")


class Pause:
    """How long all workers have been paused: their memory does not empty by itself, and nobody would ever answer."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._since: float | None = None

    def check(self) -> None:
        """Give the cluster up if none of its workers has taken work for too long."""
        workers = list(living_workers(self._client).values())
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


def living_workers(client: Any) -> dict[str, Any]:
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


def wait_for_workers(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_TIMEOUT)
    except TimeoutError as error:
        raise TimeoutError(f"the Dask cluster has no workers after {WORKERS_TIMEOUT:.0f} seconds") from error
