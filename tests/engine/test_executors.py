"""Engines of this process: the same bits from each, in order, with nothing left behind."""

import gc
import threading
import time
import weakref
from dataclasses import dataclass

import numpy as np
import pytest

from pluri.engine import (
    ArraySource,
    Batch,
    Engine,
    IterableSource,
    NpySource,
    SerialEngine,
    Statistics,
    ThreadEngine,
    map_reduce,
    open_engine,
    resolve_engine,
)


@dataclass(frozen=True)
class Moments(Statistics):
    first: np.ndarray
    second: np.ndarray
    starts: np.ndarray
    log_likelihood: float


def moments(batch):
    X = batch.X
    starts = X[batch.offsets[:-1][batch.lengths > 0]].sum(axis=0)
    return Moments(X.sum(axis=0), X.T @ X, starts, float(-0.5 * (X**2).sum()))


def assert_same_bits(one, other):
    for name in ("first", "second", "starts", "log_likelihood"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), strict=True)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 40, size=300)
    return rng.normal(size=(lengths.sum(), 3)), lengths


@pytest.fixture
def source(data):
    return ArraySource(*data, batch_size=100)


ENGINES = [SerialEngine(), ThreadEngine(1), ThreadEngine(2), ThreadEngine(5)]


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_the_sum_is_the_direct_formula(engine, data, source):
    X, lengths = data
    result = map_reduce(moments, source, engine=engine)
    begins = (np.cumsum(lengths) - lengths)[lengths > 0]
    np.testing.assert_allclose(result.first, X.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(result.second, np.einsum("ni,nj->ij", X, X), rtol=1e-12)
    np.testing.assert_allclose(result.starts, X[begins].sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(result.log_likelihood, -0.5 * np.vdot(X, X), rtol=1e-12)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_every_engine_and_storage_gives_the_same_bits(engine, data, source, tmp_path):
    X, lengths = data
    expected = map_reduce(moments, source)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(X))
    sequences = np.split(X, np.cumsum(lengths)[:-1])
    for same in [
        source,
        ArraySource(np.asfortranarray(X), lengths, batch_size=100),
        ArraySource(np.repeat(X, 2, axis=1)[:, ::2], lengths, batch_size=100),
        ArraySource(np.load(tmp_path / "X.npy", mmap_mode="r"), lengths, batch_size=100),
        NpySource(tmp_path / "X.npy", lengths, batch_size=100),
        NpySource(tmp_path / "fortran.npy", lengths, batch_size=100),
        IterableSource(sequences, batch_size=100),
        IterableSource(lambda: iter(sequences), batch_size=100),
    ]:
        assert_same_bits(map_reduce(moments, same, engine=engine), expected)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_answers_come_in_order_even_if_the_first_is_the_slowest(engine):
    def slow_start(batch):
        time.sleep(0.02 if batch.X[0, 0] % 4 == 0 else 0.0)
        return int(batch.X[0, 0])

    source = ArraySource(np.arange(20.0)[:, None], batch_size=1)
    assert list(engine.map(slow_start, source)) == list(range(20))


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_many_sweeps_share_one_opening(engine, data, source):
    X, _ = data
    with open_engine(engine, None, source) as run:
        mean = run(lambda batch: batch.X.sum(axis=0)) / len(X)
        variance = run(lambda batch: ((batch.X - mean) ** 2).sum(axis=0)) / len(X)
    np.testing.assert_allclose(variance, X.var(axis=0), rtol=1e-12)


class PeculiarError(Exception):
    pass


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
@pytest.mark.parametrize("where", [0, 7, 19])
def test_an_error_keeps_its_type_and_leaves_no_thread(engine, where):
    def fail(batch):
        if batch.X[0, 0] == where:
            raise PeculiarError(where)
        return 0.0

    before = set(threading.enumerate())
    with pytest.raises(PeculiarError, match=str(where)):
        map_reduce(fail, ArraySource(np.arange(20.0)[:, None], batch_size=1), engine=engine)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_an_error_of_the_source_keeps_its_type(engine):
    def broken():
        yield np.zeros((3, 1))
        raise PeculiarError("disk")

    with pytest.raises(PeculiarError, match="disk"):
        map_reduce(lambda batch: 0.0, IterableSource(broken, group=False), engine=engine)


def test_an_interrupt_ends_the_threads_and_what_waits_is_not_run():
    done = []

    def interrupted(batch):
        index = int(batch.X[0, 0])
        done.append(index)
        if index == 1:
            raise KeyboardInterrupt
        time.sleep(0.01)
        return 0.0

    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        map_reduce(interrupted, ArraySource(np.arange(1000.0)[:, None], batch_size=1), engine="threads", n_jobs=2)
    assert set(threading.enumerate()) <= before
    assert len(done) < 20


def test_a_sweep_that_is_abandoned_leaves_no_thread(source):
    before = set(threading.enumerate())
    answers = ThreadEngine(2).map(moments, source)
    next(answers)
    answers.close()
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(("engine", "bound"), [(SerialEngine(), 2), (ThreadEngine(2), 6)], ids=repr)
def test_few_batches_are_alive_at_a_time(engine, bound):
    alive, most = weakref.WeakSet(), []

    def stream():
        for i in range(60):
            batch = Batch(np.full((10, 1), float(i)))
            alive.add(batch)
            most.append(len(alive))
            yield batch

    gc.disable()  # reference counts alone must do
    try:
        map_reduce(lambda batch: batch.X.sum(), IterableSource(stream), engine=engine)
    finally:
        gc.enable()
    assert len(most) == 60
    assert max(most) <= bound


def test_threads_work_at_the_same_time():
    both = threading.Barrier(2)
    # Each task waits for the other: with one thread the barrier would break.
    assert map_reduce(lambda batch: both.wait(timeout=10) >= 0, ArraySource(np.zeros((2, 1)), batch_size=1), n_jobs=2)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_no_data_is_an_error(engine):
    for empty in (ArraySource(np.zeros((0, 2))), ArraySource(np.zeros((0, 2)), []), IterableSource([])):
        with pytest.raises(ValueError, match="at least one batch"):
            map_reduce(moments, empty, engine=engine)


def test_engines_are_resolved_from_their_names():
    assert isinstance(resolve_engine(), SerialEngine)
    assert isinstance(resolve_engine(None, 1), SerialEngine)
    assert isinstance(resolve_engine("serial", 4), SerialEngine)
    for engine in (resolve_engine(None, 3), resolve_engine(None, -1), resolve_engine("threads")):
        assert isinstance(engine, ThreadEngine)
    mine = ThreadEngine(2)
    assert resolve_engine(mine, 7) is mine


@pytest.mark.parametrize("engine", ["spark", 3, object(), ThreadEngine])
def test_an_unknown_engine_is_refused(engine):
    with pytest.raises(ValueError, match=r"engine must be None, 'serial', 'threads', 'dask'"):
        resolve_engine(engine)


@pytest.mark.parametrize("n_jobs", [0, 2.0, "2", True])
def test_a_bad_number_of_jobs_is_refused(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be"):
        resolve_engine("threads", n_jobs)


def test_a_new_engine_only_says_how_it_sweeps(source):
    from contextlib import contextmanager

    class Backwards(Engine):
        """Evaluates in reverse, answers in order."""

        @contextmanager
        def over(self, source):
            yield lambda function: iter([function(item.load()) for item in [*source.batches()][::-1]][::-1])

    assert_same_bits(map_reduce(moments, source, engine=Backwards()), map_reduce(moments, source))
