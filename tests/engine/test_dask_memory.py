"""Dask workers whose memory is full: Dask pauses them for ever, and the engine says so instead of waiting.

Pausing needs workers with a memory limit below what Python and its libraries take, and half a minute; the scheduler's
account of them is enough to test what is made of it.
"""

import pytest

from pluri.engine import dask_shipment as engine


class Cluster:
    """A client that knows nothing but the state of its workers."""

    def __init__(self, *states):
        self.states = states

    def scheduler_info(self, n_workers=5):
        worker = {"metrics": {"memory": 340_000_000}, "memory_limit": 400_000_000}
        states = self.states if n_workers < 0 else self.states[:n_workers]
        return {"workers": {f"tcp://{n}": worker | {"status": state} for n, state in enumerate(states)}}


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(engine.time, "monotonic", lambda: now[0])
    return now


def test_workers_that_stay_paused_are_given_up_in_a_sentence(clock):
    pause = engine.Pause(Cluster("paused", "paused"))
    pause.check()
    clock[0] = 0.9 * engine.PAUSE_TIMEOUT
    pause.check()
    clock[0] = 1.1 * engine.PAUSE_TIMEOUT
    with pytest.raises(RuntimeError, match=r"memory is nearly full \(340 of 400 MB\): raise their memory_limit"):
        pause.check()


def test_one_worker_that_runs_is_enough(clock):
    cluster = Cluster(*["paused"] * 7, "running")
    pause = engine.Pause(cluster)
    for clock[0] in (0.0, 100.0, 200.0):
        pause.check()
    cluster.states = ("paused",) * 8
    for clock[0] in (300.0, 320.0):
        pause.check()  # the time counts from when the last one stopped
    clock[0] = 340.0
    with pytest.raises(RuntimeError, match="stood still"):
        pause.check()
