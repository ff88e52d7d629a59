"""Figures that the networks must reproduce: from reference solutions of an adaptive stiff solver, or from theory."""

import numpy as np
import pytest

from pluri.neurons import Simulation
from pluri.neurons.models import branched_tree, cable, half_centre, hodgkin_huxley_patch, two_neurons

FIRST = {
    0.05: [13.263],
    0.1: [8.424],
    0.15: [7.507, 23.727, 39.696, 55.744],
    0.2: [7.047, 21.559, 35.726, 49.875],
    0.3: [6.562, 19.243, 31.453, 43.629, 56.26],
}


@pytest.mark.parametrize(("dt", "tolerance"), [(0.01, 0.05), (0.05, 0.3)])
@pytest.mark.parametrize("current", FIRST)
def test_two_neurons_spike_when_the_reference_does(current, dt, tolerance):
    result = two_neurons(current, dt=dt).run(80.0)
    spikes = result.spikes("/net/a/axon")
    assert len(spikes) == len(FIRST[current])
    assert np.abs(spikes - FIRST[current]).max() < tolerance


@pytest.mark.parametrize(
    ("gmax", "expected"), [(0.005, [14.654, 29.521, 43.775, 57.936]), (0.02, [13.611, 28.312, 42.496, 56.646])]
)
def test_the_second_neuron_follows_the_first(gmax, expected):
    sim = two_neurons(gmax=gmax)
    sim.record("/net/**", "Vm")
    result = sim.run(80.0)
    assert result.spikes("/net/b/axon") == pytest.approx(expected, abs=0.05)
    assert result["/net/a/soma", "Vm"].max() == pytest.approx(35.93, abs=0.05)
    assert result["/net/a/dend", "Vm"].max() == pytest.approx(15.74, abs=0.05)


def test_a_weak_synapse_stays_below_the_threshold():
    sim = two_neurons(gmax=0.001)
    sim.record("/net/b/soma", "Vm")
    result = sim.run(80.0)
    assert len(result.spikes("/net/b/axon")) == 0
    assert result["/net/b/soma", "Vm"].max() == pytest.approx(-58.36, abs=0.02)


def test_a_single_event_gives_the_reference_potential():
    sim = two_neurons(0.0, gmax=0.0005)
    sim.create("time_table", "/event", times=(9.0,))
    sim.connect("/event", "/net/b/dend/syn", delay=1.0)
    sim.record("/net/b/*", "Vm")
    result = sim.run(40.0)
    soma, dendrite = result["/net/b/soma", "Vm"], result["/net/b/dend", "Vm"]
    rest = soma[result.time.searchsorted(9.9)]
    assert soma.max() - rest == pytest.approx(2.596, abs=0.02)
    assert result.time[soma.argmax()] == pytest.approx(14.66, abs=0.05)
    assert dendrite.max() - dendrite[990] == pytest.approx(3.091, abs=0.02)


#: Current density in uA/cm^2, to the number of spikes in a second and the rate at its end.
RATES = {
    2: (0, 0),
    5: (1, 0),
    6.2: (3, 0),
    6.3: (53, 52.37),
    7: (59, 58.33),
    10: (69, 68.32),
    15: (79, 78.65),
    20: (87, 86.47),
}


@pytest.mark.parametrize("method", ["exp_euler", "crank_nicolson"])
def test_hodgkin_huxley_patches_fire_at_the_reference_rates(method):
    sim = hodgkin_huxley_patch(n_cells=len(RATES), dt=0.01, method=method)
    for i, density in enumerate(RATES):
        sim.set(f"/patch[{i}]", "inject", 1e-2 * density)
        sim.set(f"/patch[{i}]", "initial_Vm", -64.9964)
    sim.record("/patch[5]", "Vm")
    result = sim.run(1000.0)
    for i, (number, rate) in enumerate(RATES.values()):
        spikes = result.spikes(f"/patch[{i}]/axon")
        assert len(spikes) == number
        if rate:
            assert 1000 / (spikes[-1] - spikes[-2]) == pytest.approx(rate, rel=0.01)
    v = result["/patch[5]", "Vm"]
    assert v.max() == pytest.approx(40.26, abs=0.05)
    assert v.min() == pytest.approx(-75.08, abs=0.05)
    assert result.spikes("/patch[5]/axon")[0] == pytest.approx(1.901, abs=0.01)


def test_a_patch_rests_where_the_reference_does():
    sim = hodgkin_huxley_patch(0.0, method="crank_nicolson")
    sim.run(400.0)
    assert sim.get("/patch", "Vm") == pytest.approx(-64.9964, abs=1e-3)


def test_a_short_pulse_has_its_threshold_between_6_and_7():
    sim = hodgkin_huxley_patch(0.0, n_cells=3, dt=0.01, method="crank_nicolson")
    for i, density in enumerate((6, 7, 10)):
        sim.set(f"/patch[{i}]", "initial_Vm", -64.9964)
        sim.create("current_clamp", f"/clamp[{i}]", delay=1, width=1, level=1e-2 * density)
        sim.link(f"/clamp[{i}]", f"/patch[{i}]")
    sim.record("/patch[1]", "Vm")
    result = sim.run(30.0)
    assert len(result.spikes("/patch[0]/axon")) == 0
    assert result.spikes("/patch[1]/axon") == pytest.approx([6.04], abs=0.05)
    assert result["/patch[1]", "Vm"].max() == pytest.approx(34.86, abs=0.1)
    assert result.spikes("/patch[2]/axon") == pytest.approx([3.27], abs=0.05)


def cable_theory(distance, time, n_terms=300):
    """Response of a finite cable with sealed ends to a current at one end, in units of I R_inf."""
    n = np.arange(1, n_terms)[:, None]
    steady = np.cosh(1 - distance) / np.sinh(1.0)
    decay = 1 + (n * np.pi) ** 2
    series = (np.cos(n * np.pi * distance) * np.exp(-decay * time) / decay).sum(axis=0)
    return steady - np.exp(-time) - 2 * series


def test_a_cable_follows_the_theory():
    sim = cable(1000)
    for place in (0, 999):
        sim.record(f"/cable[{place}]", "Vm")
    result = sim.run(250.0)
    scale = 0.1 * 1273.2395
    for place, steady in ((0, 102.18), (999, 43.34)):
        expected = scale * cable_theory((place + 0.5) / 1000, result.time[1:] / 40.0)
        v = result[f"/cable[{place}]", "Vm"][1:] + 65.0
        assert np.sqrt(((v - expected) ** 2).mean() / (expected**2).mean()) < 0.01
        assert v[-1] - 65.0 == pytest.approx(steady, abs=0.6)
    sim.run(750.0)
    assert sim.get("/cable[0]", "Vm") == pytest.approx(102.18, abs=0.1)
    assert sim.get("/cable[999]", "Vm") == pytest.approx(43.34, abs=0.05)


def test_a_tree_that_matches_is_a_cylinder():
    n = 64
    tree = branched_tree(3, per_branch=n)
    stem = Simulation(dt=0.05, method="crank_nicolson")
    for i in range(3 * n):
        stem.create("passive_compartment", f"/cable[{i}]", length=300 / n, diameter=4.0, rm=20000.0, ra=100.0)
        if i:
            stem.link(f"/cable[{i - 1}]", f"/cable[{i}]")
    stem.set("/cable[0]", "inject", 0.1)
    tree.record("/tree/stem[0]", "Vm")
    stem.record("/cable[0]", "Vm")
    v, w = tree.run(60.0)["/tree/stem[0]", "Vm"] + 65, stem.run(60.0)["/cable[0]", "Vm"] + 65
    assert np.abs(v - w).max() < 1e-3 * w.max()
    ends = [tree.get(f"/tree/branch{k}[{n - 1}]", "Vm") for k in ("00", "01", "10", "11")]
    assert np.ptp(ends) < 1e-9
    assert ends[0] + 65 == pytest.approx(stem.get(f"/cable[{3 * n - 1}]", "Vm") + 65, rel=1e-3)


@pytest.mark.parametrize("method", ["exp_euler", "crank_nicolson"])
def test_a_half_centre_takes_turns(method):
    sim = half_centre(dt=0.01, method=method)
    sim.record("/*", "Vm")
    result = sim.run(1500.0)
    left, right = (result[path, "Vm"][50000:] for path in ("/left", "/right"))

    def rising(v):
        return 0.01 * np.flatnonzero((v[:-1] < -50) & (v[1:] >= -50))

    period = np.diff(rising(left)).mean()
    assert period == pytest.approx(82.7, abs=0.3)
    assert left.min() == pytest.approx(-74.55, abs=0.1)
    assert left.max() == pytest.approx(-28.89, abs=0.1)
    assert np.corrcoef(left, right)[0, 1] == pytest.approx(-0.883, abs=0.005)
    shift = (rising(right)[1] - rising(left)[:2]) % period / period
    assert shift == pytest.approx([0.5, 0.5], abs=0.01)
