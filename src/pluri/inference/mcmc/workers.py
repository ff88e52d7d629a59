"""Where chains run at the same time: in threads, or in other processes."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from pluri.inference.mcmc.chain import Chain, Remembered, Segment, memory_of, settings_of

if TYPE_CHECKING:
    from pluri.inference.mcmc.rounds import Advance, Kind, Workers


class Pool:
    """Chains sent to the workers of an executor and back."""

    def __init__(self, kind: Kind, executor: Executor, n_workers: int):
        self.kind: Kind = kind
        self._executor = executor
        self._n_workers = n_workers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.kind == "threads":
            # A second Ctrl-C does not wait for the round under way.
            self._executor.shutdown(wait=not isinstance(error[1], KeyboardInterrupt), cancel_futures=True)

    def map(self, advance: Advance, chains: Sequence[Chain], n_steps: int) -> tuple[list[Segment], bool]:
        """Segments in order, and whether Ctrl-C came."""
        run = _deaf if self.kind == "processes" else _plain
        n_workers = self._n_workers
        futures = [self._executor.submit(run, advance, chains[i::n_workers], n_steps) for i in range(n_workers)]
        # A wait without a time limit cannot be interrupted on every platform.
        interrupted = through_one_interrupt(lambda: not wait(futures, timeout=0.1).not_done)
        return _interleaved([future.result() for future in futures], len(chains)), interrupted


class Forked:
    """Chains that live in copies of this process: nothing is imported or sent before the first step.

    Each worker keeps its share of the chains from round to round and sends back what it drew. What a kernel learned
    comes back as its settings: the functions inside it never travel.
    """

    kind: Kind = "processes"

    def __init__(self, n_workers: int):
        self._n_workers = n_workers
        self._workers: list[tuple[Any, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for process, pipe in self._workers:
            pipe.close()  # a worker ends when nobody listens
            process.join(timeout=0.0 if isinstance(error[1], KeyboardInterrupt) else 1.0)
            if process.is_alive():
                process.terminate()
                process.join()
        self._workers = []

    def map(self, advance: Advance, chains: Sequence[Chain], n_steps: int) -> tuple[list[Segment], bool]:
        """Segments in order, and whether Ctrl-C came."""
        if not self._workers:
            self._start(advance, chains)
        for _, pipe in self._workers:
            pipe.send(n_steps)
        answers: list[Any] = [None] * len(self._workers)

        def all_came() -> bool:
            for index, (_, pipe) in enumerate(self._workers):
                if answers[index] is None and pipe.poll(0.05):
                    _receive(pipe, answers, index)
            return all(answer is not None for answer in answers)

        try:
            interrupted = through_one_interrupt(all_came)
        except EOFError:
            raise RuntimeError("a process that ran a chain ended: was it killed, or out of memory?") from None
        shares = [pickle.loads(answer) for answer in answers]
        for share in shares:
            if isinstance(share, BaseException):
                raise share
        segments = _interleaved(shares, len(chains))
        return [_unpacked(segment, chain.kernel) for segment, chain in zip(segments, chains)], interrupted

    def _start(self, advance: Advance, chains: Sequence[Chain]) -> None:
        import multiprocessing

        context = multiprocessing.get_context("fork")
        for first in range(self._n_workers):
            here, there = context.Pipe()
            earlier = [pipe for _, pipe in self._workers] + [here]
            arguments = (there, earlier, advance, list(chains[first :: self._n_workers]))
            process = context.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            there.close()
            self._workers.append((process, here))


def _serve(pipe: Any, inherited: Sequence[Any], advance: Advance, chains: list[Chain]) -> None:
    """Life of a forked worker: told a number of steps, it makes them and sends the segments."""
    import signal

    # Ctrl-C reaches the whole group of processes; what it means is for the parent to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in inherited:
        other.close()
    first = [chain.kernel for chain in chains]
    while True:
        try:
            n_steps = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            segments = advance(chains, n_steps)
            chains = [segment.chain for segment in segments]
            answer = _dumps([_packed(segment, kernel) for segment, kernel in zip(segments, first)])
        except BaseException as error:
            answer = _dumps(_sendable(error))
        try:
            pipe.send_bytes(answer)
        except OSError:
            return


def _receive(pipe: Any, answers: list[Any], index: int) -> None:
    """Read an answer; Ctrl-C waits until it is there, as half of it read would spoil all that follows."""
    import signal

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        answers[index] = pipe.recv_bytes()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _packed(segment: Segment, first: Any) -> Segment:
    """A segment whose kernel is reduced to what it learned, or to nothing if it is still the first one.

    The adaptation stays in the worker, which alone needs it; what it knows comes along.
    """
    chain, kernel = segment.chain, segment.chain.kernel
    adaptation: Any = None if chain.adaptation is None else Remembered(memory_of(chain.adaptation))
    if hasattr(kernel, "tuned"):
        so_far = getattr(kernel, "settings_so_far", None)
        kernel = settings_of(kernel) if so_far is None or adaptation is None else so_far()
    elif kernel is first:
        kernel = None
    return replace(segment, chain=replace(chain, kernel=kernel, adaptation=adaptation))


def _unpacked(segment: Segment, first: Any) -> Segment:
    """The same with the kernel made whole again."""
    kernel = segment.chain.kernel
    if hasattr(first, "tuned"):
        kernel = replace(first, **kernel)
    elif kernel is None:
        kernel = first
    return replace(segment, chain=replace(segment.chain, kernel=kernel))


def _sendable(error: BaseException) -> BaseException:
    """An error, or one with its text if it cannot be put together again from what is sent."""
    try:
        pickle.loads(_dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__} in a process that ran a chain: {error}")
    return error


def _dumps(value: Any) -> bytes:
    """Pickle; functions that have no name to be found by are sent whole."""
    try:
        return pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        return _whole(value)


def _whole(value: Any) -> bytes:
    try:
        import cloudpickle
    except ImportError:  # older joblib brings a copy of its own
        from joblib.externals import cloudpickle
    found: bytes = cloudpickle.dumps(value)
    return found


def through_one_interrupt(finished: Callable[[], bool]) -> bool:
    """Wait until `finished`; tells whether Ctrl-C came meanwhile. A second one is not waited for."""
    interrupted = False
    while True:
        try:
            while not finished():
                pass
            return interrupted
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True


def _interleaved(shares: Sequence[list[Segment]], n_chains: int) -> list[Segment]:
    """Segments in the order of the chains: worker i had the chains i, i + n, i + 2n, ..."""
    return [shares[index % len(shares)][index // len(shares)] for index in range(n_chains)]


def _plain(advance: Advance, chains: Sequence[Chain], n_steps: int) -> list[Segment]:
    return advance(chains, n_steps)


def _deaf(advance: Advance, chains: Sequence[Chain], n_steps: int) -> list[Segment]:
    """In another process, where Ctrl-C is not to be heard."""
    import signal

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return advance(chains, n_steps)
    except Exception as error:
        raise _sendable(error) from None
    finally:
        signal.signal(signal.SIGINT, before)


def can_fork() -> bool:
    """Whether a copy of this process would work: on Linux, with no other thread and no library that forbids it."""
    return sys.platform == "linux" and threading.active_count() == 1 and not {"jax", "torch"} & set(sys.modules)


def open_pool(backend: str, n_workers: int) -> Workers:
    """Workers for chains, more than one."""
    if backend == "threads":
        return Pool("threads", ThreadPoolExecutor(n_workers), n_workers)
    if can_fork():
        return Forked(n_workers)
    from joblib.executor import get_memmapping_executor

    # loky sends functions by value, so that a density defined in a notebook can go to another process. Its workers are
    # asked for through joblib: there is one such pool in a process, and joblib takes one that it did not make for its
    # own, after which every n_jobs of scikit-learn fails. Arrays are sent as they are, to be writable there.
    return Pool("processes", get_memmapping_executor(n_workers, timeout=60, max_nbytes=None), n_workers)
