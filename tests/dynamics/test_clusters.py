"""Dynamical systems fitted on a Dask cluster equal those of one core, whatever happens to its workers."""

import os
import signal

import numpy as np
import pytest

from pluri.dynamics import LinearDynamicalSystem, PoissonDynamicalSystem, SwitchingDynamicalSystem
from pluri.dynamics.counts.learning import CountProblem
from pluri.dynamics.linear.learning import LinearProblem
from pluri.dynamics.switching.learning import SwitchingProblem
from pluri.engine import ArraySource
from pluri.validation import as_generator

SETTINGS = {"max_iter": 4, "tol": 0.0, "random_state": 0}
MODELS = [
    (LinearDynamicalSystem(2, **SETTINGS), LinearProblem),
    (SwitchingDynamicalSystem(2, 2, **SETTINGS), SwitchingProblem),
    (PoissonDynamicalSystem(2, **SETTINGS), CountProblem),
]


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
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "problem"), MODELS, ids=[type(model).__name__ for model, _ in MODELS])
def test_a_worker_killed_between_two_sweeps_leaves_the_result_unchanged(model, problem, client, monkeypatch):
    rng = as_generator(0)
    lengths = rng.integers(5, 20, size=12)
    X = rng.poisson(2.0, size=(int(lengths.sum()), 4)).astype(float)
    source = ArraySource(X, lengths, batch_size=40)
    expected = model.fit(source).transform(X, lengths=lengths)
    client.wait_for_workers(2)
    victims, updates = [], []
    maximize = problem.maximize

    def watched(self, *arguments):
        updates.append(self)
        if len(updates) == 2:
            victims.append(next(iter(client.run(os.getpid).values())))
            os.kill(victims[0], signal.SIGKILL)
        return maximize(self, *arguments)

    monkeypatch.setattr(problem, "maximize", watched)
    model.set_params(engine=client).fit(source)
    model.set_params(engine=None)
    assert len(victims) == 1
    np.testing.assert_allclose(model.transform(X, lengths=lengths), expected, rtol=1e-7, atol=1e-7)
