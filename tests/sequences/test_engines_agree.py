"""One fit, many places: serial, threads, mapped files, iterables, Parquet and a Dask cluster give the same bits."""

import contextlib
import os
import signal

import numpy as np
import pytest

from pluri.engine import ArraySource, IterableSource, NpySource, ParquetSource
from pluri.sequences import CategoricalHMM, GaussianHMM

OPTIONS = {"n_iter": 5, "tol": -np.inf, "random_state": 0, "diversity": 1.0}
BATCH = 60


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 40, size=25)
    n = int(lengths.sum())
    return rng.normal(size=(n, 2)) + 2.0 * rng.integers(3, size=(n, 1)), lengths


@pytest.fixture(scope="module")
def expected(data):
    return fit(ArraySource(*data, batch_size=BATCH))


def fit(source, **options):
    return GaussianHMM(3, "full", **OPTIONS | options).fit(source)


def assert_same_bits(one, other):
    for name in ("startprob_", "transmat_", "means_", "covars_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.history_.objective, other.history_.objective)


def sources(data, folder):
    X, lengths = data
    np.save(folder / "X.npy", X)
    yield "array", ArraySource(X, lengths, batch_size=BATCH)
    yield "fortran", ArraySource(np.asfortranarray(X), lengths, batch_size=BATCH)
    yield "npy", NpySource(folder / "X.npy", lengths, batch_size=BATCH)
    yield "iterable", IterableSource(lambda: iter(np.split(X, np.cumsum(lengths)[:-1])), batch_size=BATCH)
    with contextlib.suppress(ImportError):
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {"id": np.repeat(np.arange(len(lengths)), lengths), "x0": X[:, 0], "x1": X[:, 1]}
        pq.write_table(pa.table(columns), folder / "X.parquet", row_group_size=37)
        yield "parquet", ParquetSource(folder / "X.parquet", ["x0", "x1"], sequence="id", batch_size=BATCH)


@pytest.mark.parametrize("engine", [("serial", None), ("threads", 1), ("threads", 2), ("threads", 3), (None, 2)])
def test_every_number_of_threads_gives_the_bits_of_one_core(data, expected, engine, tmp_path):
    for _, source in sources(data, tmp_path):
        assert_same_bits(fit(source, engine=engine[0], n_jobs=engine[1]), expected)


@pytest.mark.parametrize(("diversity", "tolerance"), [(None, 1e-9), (1.0, 1e-6)])  # the row solver stops at 1e-10
def test_the_cut_into_batches_changes_only_rounding(data, diversity, tolerance):
    plain, *others = (fit(ArraySource(*data, batch_size=n), diversity=diversity) for n in (BATCH, 1, 30, 10**6))
    for other in others:
        for name in ("startprob_", "transmat_", "means_", "covars_"):
            np.testing.assert_allclose(getattr(other, name), getattr(plain, name), rtol=tolerance, atol=tolerance)


def test_arrays_and_sources_start_alike(data, expected):
    X, lengths = data
    for given in (X, np.asfortranarray(X)):
        plain = GaussianHMM(3, "full", **OPTIONS).fit(given, lengths=lengths)
        for name in ("startprob_", "transmat_", "means_", "covars_"):
            np.testing.assert_allclose(getattr(plain, name), getattr(expected, name), rtol=1e-6, atol=1e-6)


@pytest.fixture(scope="module")
def client():
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    settings = {"distributed.deploy.lost-worker-timeout": "1h", "distributed.comm.timeouts.connect": "3s"}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.slow
def test_a_cluster_gives_the_bits_of_one_core(data, expected, client, tmp_path):
    for _, source in sources(data, tmp_path):
        assert_same_bits(fit(source, engine=client), expected)


@pytest.mark.slow
def test_symbols_fitted_on_a_cluster_have_the_bits_of_one_core(client):
    rng = np.random.default_rng(1)
    words = [[str(symbol) for symbol in rng.integers(9, size=length)] for length in rng.integers(2, 20, size=20)]
    options = {"n_iter": 4, "tol": -np.inf, "random_state": 0}
    here, there = (CategoricalHMM(3, engine=engine, **options).fit(words) for engine in (None, client))
    np.testing.assert_array_equal(here.transmat_, there.transmat_)
    np.testing.assert_array_equal(here.emissionprob_, there.emissionprob_)


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_of_a_fit_leaves_the_result_unchanged(data, expected, client):
    client.wait_for_workers(2)
    victims = []

    class Killer(GaussianHMM):
        """Kills a worker after the second iteration."""

        def _open_monitor(self):
            monitor, own = super()._open_monitor()
            report = monitor.report

            def reported(objective):
                report(objective)
                if monitor.iter == 2 and not victims:
                    victims.append(next(iter(client.run(os.getpid).values())))
                    os.kill(victims[0], signal.SIGKILL)

            monitor.report = reported
            return monitor, own

    model = Killer(3, "full", engine=client, **OPTIONS).fit(ArraySource(*data, batch_size=BATCH))
    assert len(victims) == 1
    assert_same_bits(model, expected)
