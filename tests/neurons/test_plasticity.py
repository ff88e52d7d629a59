"""Synapses that learn, against sums over all pairs of events and spikes."""

import numpy as np
import pytest

from pluri.neurons import Simulation, SimulationError

GAIN, LOSS = 0.05, 0.06


def plastic(kind="compartment", **fields):
    sim = Simulation(dt=0.1)
    if kind == "compartment":
        sim.create(kind, "/c", capacitance=0.001, resistance=1.0, Em=-65.0)  # follows its current at once
    else:
        sim.create(kind, "/c", capacitance=0.001, resistance=1.0, refractory=0.5)
    settings = {
        "gain": GAIN,
        "loss": LOSS,
        "tau_events": 15.0,
        "tau_spikes": 25.0,
        "gmax": 1e-9,
        "w_max": 10.0,
    } | fields
    sim.create("hebbian_synapse", "/c/s", **settings)
    sim.link("/c/s", "/c")
    sim.record("/c/s", "w")
    sim.record("/c", "Vm")
    return sim


def pairs(events, spikes, n, w=1.0):
    """Weight after each step, pair by pair; an event at a step comes before a spike that is found at its end."""
    found = np.full(n + 1, w)
    for k in range(n):
        if k in events:
            w -= LOSS * sum(np.exp(-0.1 * (k - s) / 25.0) for s in spikes if s <= k)
            w = max(w, 0.0)
        if k + 1 in spikes:
            w += GAIN * sum(np.exp(-0.1 * (k + 1 - e) / 15.0) for e in events if e <= k)
        found[k + 1] = w
    return found


@pytest.mark.parametrize("kind", ["compartment", "integrate_and_fire"])
def test_weights_are_sums_over_pairs_of_events_and_spikes(kind):
    rng = np.random.default_rng(1)
    sim = plastic(kind)
    onsets = np.sort(rng.choice(np.arange(20, 1480, 20), 12, replace=False))  # steps
    times = np.concatenate([[0.1 * at, 0.1 * at + 1.0] for at in onsets])
    values = np.tile([100.0, 0.0], len(onsets))  # nA through 1 MOhm: far above the threshold
    sim.create("time_table", "/current", times=times + 1e-6, values=values, interpolate=False)
    sim.link("/current", "/c")
    events = np.sort(rng.choice(np.arange(10, 1490), 30, replace=False))
    sim.create("time_table", "/events", times=0.1 * (events - 10))
    sim.connect("/events", "/c/s", delay=1.0)
    result = sim.run(150.0)
    v = result["/c", "Vm"]
    if kind == "compartment":
        spikes = set(np.flatnonzero((v[:-1] < 0) & (v[1:] >= 0)) + 1)
    else:
        spikes = set(np.ceil(np.round(result.spikes("/c") / 0.1, 6)).astype(int))
    assert len(spikes) >= 12
    assert result["/c/s", "w"] == pytest.approx(pairs(set(events.tolist()), spikes, 1500), abs=1e-9)
    assert np.ptp(result["/c/s", "w"]) > 3 * LOSS


def test_the_weight_is_a_factor_of_what_arrives_and_stays_within_its_bounds():
    peaks = []
    for w in (1.0, 0.25):
        sim = plastic(initial_w=w, gmax=0.001)
        sim.record("/c/s", "g")
        sim.create("time_table", "/events", times=(1.0,))
        sim.connect("/events", "/c/s", delay=1.0, weight=2.0)
        peaks.append(sim.run(10.0)["/c/s", "g"].max())
    assert peaks == pytest.approx([0.002, 0.0005], rel=1e-3)
    for fields, end in (({"gain": 5.0, "w_max": 1.5}, 1.5), ({"loss": 5.0, "gain": 0.0}, 0.0)):
        sim = plastic(**fields)
        sim.create("pulse_generator", "/pulse", delay=2.0, width=1.0, level=100.0, period=10.0)
        sim.link("/pulse", "/c")
        sim.create("time_table", "/events", times=np.arange(1.0, 90.0, 5.0))
        sim.connect("/events", "/c/s", delay=0.1)
        w = sim.run(100.0)["/c/s", "w"]
        assert w[-1] == end
        assert (w >= 0).all()
        assert (w <= 1.5).all()
    sim = plastic(initial_w=3.0, w_max=2.0)
    with pytest.raises(SimulationError, match="initial_w of /c/s must be at most its w_max"):
        sim.run(1.0)


def test_what_was_learned_is_saved_copied_and_reset(tmp_path):
    sim = plastic()
    sim.create("pulse_generator", "/pulse", delay=2.0, width=1.0, level=100.0, period=10.0)
    sim.link("/pulse", "/c")
    sim.create("time_table", "/events", times=np.arange(1.0, 90.0, 5.0))
    sim.connect("/events", "/c/s", delay=0.1)
    sim.run(42.0)
    learned = sim.get("/c/s", "w")
    assert learned != 1.0
    assert sim.copy("/c", "/d").children["s"].w == learned
    sim.delete("/d")
    sim.save(tmp_path / "file")
    other = Simulation.restore(tmp_path / "file")
    assert np.array_equal(sim.run(30.0)["/c/s", "w"], other.run(30.0)["/c/s", "w"])
    sim.reset()
    assert sim.get("/c/s", "w") == 1.0
