"""A Dask cluster: the same bits as one core, data shipped once, and killed workers change nothing.

Functions are made inside the tests: a worker cannot import this file, so they have to travel by value.
"""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import dataclass

import numpy as np
import pytest

from pluri.engine import (
    ArraySource,
    Batch,
    DaskEngine,
    IterableSource,
    NpySource,
    ParquetSource,
    Statistics,
    map_reduce,
    open_engine,
    pairwise_sum,
    resolve_engine,
)

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    # These tests kill workers often: do not let the cluster dismiss one that dies twice, nor look long for a dead one.
    settings = {"distributed.deploy.lost-worker-timeout": "1h", "distributed.comm.timeouts.connect": "3s"}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 40, size=60)
    return rng.normal(size=(lengths.sum(), 3)), lengths


def make_moments(delay=0.0):
    import time

    def moments(batch):
        time.sleep(delay)
        return np.vstack([batch.X.sum(axis=0), batch.X.T @ batch.X, batch.X[batch.offsets[:-1][batch.lengths > 0]][:1]])

    return moments


def test_every_storage_gives_the_bits_of_one_core(client, data, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, lengths = data
    nonempty = lengths[lengths > 0]
    np.save(tmp_path / "X.npy", X)
    columns = {"id": np.repeat(np.arange(len(nonempty)), nonempty), **{f"x{i}": X[:, i] for i in range(3)}}
    pq.write_table(pa.table(columns), tmp_path / "X.parquet", row_group_size=37)
    function = make_moments()
    expected = map_reduce(function, ArraySource(X, nonempty, batch_size=100))
    for source in [
        ArraySource(X, nonempty, batch_size=100),
        ArraySource(np.asfortranarray(X), nonempty, batch_size=100),
        NpySource(tmp_path / "X.npy", nonempty, batch_size=100),
        IterableSource(lambda: iter(np.split(X, np.cumsum(nonempty)[:-1])), batch_size=100),
        ParquetSource(tmp_path / "X.parquet", ["x0", "x1", "x2"], sequence="id", batch_size=100),
    ]:
        np.testing.assert_array_equal(map_reduce(function, source, engine=client), expected, strict=True)


def test_arrays_arrive_aligned_and_with_the_parameters_writeable(client):
    parameters = [np.arange(float(n)).reshape(-1, 1) for n in range(1, 200)]

    def look(batch):
        travelled = [batch.X, batch.lengths, batch.weight, batch.labels, *parameters]
        assert all(array.flags.aligned for array in travelled)
        assert all(array.flags.writeable for array in parameters)
        return parameters

    X = np.zeros((7, 1))
    source = ArraySource(X, [3, 4], sample_weight=[1.0, 2.0], labels=np.zeros(7, dtype=int))
    answer = next(DaskEngine(client).map(look, source))
    assert all(array.flags.aligned and array.flags.writeable for array in answer)


def test_statistics_defined_by_the_user_come_back_and_add_up(client, data):
    @dataclass(frozen=True)
    class Total(Statistics):
        total: np.ndarray
        log_likelihood: float

    def total(batch):
        return Total(batch.X.sum(axis=0), float(batch.X.sum()))

    source = ArraySource(*data, batch_size=100)
    there, here = map_reduce(total, source, engine=client), map_reduce(total, source)
    assert type(there) is Total
    np.testing.assert_array_equal(there.total, here.total)
    assert there.log_likelihood == here.log_likelihood


class CountingSource:
    """Counts how many batches were read on this side."""

    def __init__(self, n_batches):
        self.n_batches = n_batches
        self.n_read = 0

    def batches(self):
        for i in range(self.n_batches):
            self.n_read += 1
            yield Batch(np.full((100, 2), float(i)))


def held_by(client):
    """Keys of what the workers keep."""
    return {key for keys in client.has_what().values() for key in keys}


def test_batches_are_shipped_once_for_many_sweeps_and_released_at_the_end(client):
    source, before = CountingSource(12), held_by(client)
    with open_engine(client, None, source) as run:
        for power in (1.0, 2.0, 3.0):
            assert run(lambda batch, power=power: batch.X[0, 0] ** power) == sum(i**power for i in range(12))
        assert source.n_read == 12
        shipped = held_by(client) - before
        assert len(shipped) >= 12
    gc.collect()
    wait_until(lambda: not held_by(client) & shipped)


def test_what_exceeds_the_memory_is_shipped_in_every_sweep(client):
    source = CountingSource(40)
    engine = DaskEngine(client, memory=5 * sys.getsizeof(Batch(np.zeros((100, 2)))))
    most = 0
    with engine.over(source) as sweep:
        for _ in range(2):
            for _ in sweep(lambda batch: batch.X[0, 0]):
                held = [key for keys in client.has_what().values() for key in keys if key.startswith("Batch")]
                most = max(most, len(set(held)))
    assert source.n_read == 80
    # Five that stay, two blocks of two for each of the two threads, and those about to be forgotten: usually one block,
    # more on a busy machine, never all.
    assert most < 40


def test_the_function_is_shipped_once_for_each_sweep(client):
    class Parameters:
        pickled = 0

        def __reduce__(self):
            Parameters.pickled += 1
            return dict, ()

    parameters = Parameters()
    with open_engine(client, None, CountingSource(20)) as run:
        for sweep in (1, 2):
            run(lambda batch: len(batch.X) + 0 * (parameters is None))
            assert Parameters.pickled == sweep


def test_lazy_batches_are_loaded_by_the_worker(client):
    def make_lazy():
        class Lazy:
            def load(self):
                return Batch(np.array([[float(os.getpid())]]))

        return Lazy()

    source = IterableSource([make_lazy() for _ in range(4)])
    answers = set(DaskEngine(client).map(lambda batch: int(batch.X[0, 0]), source))
    assert answers <= set(client.run(os.getpid).values())
    assert os.getpid() not in answers


def test_an_error_keeps_its_type_and_message(client):
    def fail(batch):
        if batch.X[0, 0] == 3:
            raise ZeroDivisionError("batch three")
        return 0.0

    with pytest.raises(ZeroDivisionError, match="batch three"):
        map_reduce(fail, CountingSource(20), engine=client)


@pytest.mark.parametrize("kind", [TimeoutError, OSError])
def test_errors_that_dask_uses_too_are_the_functions_own(client, kind):
    def fail(batch):
        raise kind("from the function")

    with pytest.raises(kind, match="from the function"):
        map_reduce(fail, CountingSource(3), engine=client)


def test_no_data_is_an_error(client):
    with pytest.raises(ValueError, match="at least one batch"):
        map_reduce(lambda batch: 0.0, CountingSource(0), engine=client)


def kill(client, which):
    # The pid in the scheduler's table may be of a worker that is already gone: ask the ones that answer.
    for pid in list(client.run(os.getpid).values())[which]:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("which", [slice(0, 1), slice(None)], ids=["one", "all"])
def test_a_killed_worker_changes_nothing(client, data, which):
    client.wait_for_workers(2)
    source = ArraySource(*data, batch_size=30)
    function = make_moments(delay=0.02)
    expected = map_reduce(make_moments(), source)
    with DaskEngine(client).over(source) as sweep:
        answers = []
        for answer in sweep(function):
            answers.append(answer)
            if len(answers) == 10:  # others are running, waiting, or done and not yet collected
                kill(client, which)
        np.testing.assert_array_equal(pairwise_sum(answers), expected, strict=True)
        # The data of the dead worker were shipped again, and stay.
        np.testing.assert_array_equal(pairwise_sum(sweep(function)), expected, strict=True)


def test_workers_killed_between_two_sweeps_change_nothing(client, data, tmp_path):
    client.wait_for_workers(2)
    np.save(tmp_path / "X.npy", data[0])
    function = make_moments()
    for source in (ArraySource(*data, batch_size=50), NpySource(tmp_path / "X.npy", data[1], batch_size=50)):
        expected = map_reduce(function, source)
        with open_engine(client, None, source) as run:
            np.testing.assert_array_equal(run(function), expected, strict=True)
            kill(client, slice(0, 1))
            np.testing.assert_array_equal(run(function), expected, strict=True)


def test_a_function_that_kills_every_worker_is_given_up(client, monkeypatch):
    import pluri.engine.dask_shipment

    def deadly(batch):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(pluri.engine.dask_shipment, "MAX_ATTEMPTS", 2)
    client.wait_for_workers(2)
    with pytest.raises(RuntimeError, match="workers that had batch 0 died one after another"):
        map_reduce(deadly, CountingSource(2), engine=client)


def test_a_client_is_recognised_and_the_current_one_is_used(client):
    assert resolve_engine(client).client is client
    with client.as_current():
        answers = set(resolve_engine("dask").map(lambda batch: os.getpid(), CountingSource(3)))
    assert answers <= set(client.run(os.getpid).values())


def test_an_asynchronous_client_is_refused(client):
    class Asynchronous:
        asynchronous = True

    with (
        pytest.raises(ValueError, match="synchronous"),
        DaskEngine(Asynchronous()).over(CountingSource(1)),
    ):
        pass


def test_without_distributed_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'engine=\'dask\' needs distributed.*pip install "pluri\[dask\]"'):
        map_reduce(lambda batch: 0.0, CountingSource(1), engine="dask")


def test_a_cluster_that_had_to_be_started_is_closed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing
            import numpy as np
            from pluri.engine import ArraySource, map_reduce

            if __name__ == "__main__":
                source = ArraySource(np.ones((10, 1)), batch_size=2)
                print(map_reduce(lambda batch: batch.X.sum(), source, engine="dask", n_jobs=1))
                print(len(multiprocessing.active_children()))
            """
        )
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout.split() == ["10.0", "0"]


def wait_until(condition, seconds=60.0):
    pause = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if condition():
            return
        pause.wait(0.05)
    raise AssertionError("the condition did not come true in time")
