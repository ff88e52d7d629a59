"""A Dask cluster as an engine: batches are shipped once, stay on the workers, and are shipped again if a worker dies.

Data that a client scatters exist nowhere else in the cluster. When the only worker that holds a batch dies, Dask
cancels what depends on it; the engine reads the batch again from the source, ships it and resubmits the work. Answers
are still taken in the order of the batches, so that a killed worker changes nothing in the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pluri.engine.batches import Source
from pluri.engine.dask_shipment import Shipment, import_distributed, living_workers, wait_for_workers
from pluri.engine.executors import Engine, Sweep, count_jobs


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
            wait_for_workers(client)
            shipment = Shipment(client, source, _half_of_memory(client) if self.memory is None else self.memory)
            try:
                yield shipment.sweep
            finally:
                shipment.kept.clear()

    def __repr__(self) -> str:
        return f"DaskEngine(client={self.client!r})"


@contextmanager
def _connected(client: Any, n_jobs: int | None) -> Iterator[Any]:
    distributed = import_distributed()
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


def _half_of_memory(client: Any) -> float:
    limits = [worker.get("memory_limit") or float("inf") for worker in living_workers(client).values()]
    return 0.5 * sum(limits)
