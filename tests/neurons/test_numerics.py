"""Integrators, channels, synapses, stimuli and wires against closed forms, dense solves and each other."""

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, poisson

from pluri.neurons import Simulation, SimulationError
from pluri.neurons.library.hodgkin_huxley import POTASSIUM, SODIUM, rate, steady_state, time_constant
from pluri.neurons.models import hodgkin_huxley_patch

METHODS = ["euler", "exp_euler", "backward_euler", "crank_nicolson"]


def spike_times(dt, method, *, dendrite=False):
    sim = hodgkin_huxley_patch(20.0, dt=dt, method=method, rate_tables=False)
    if dendrite:
        sim.create("passive_compartment", "/dend", length=200, diameter=2)
        sim.link("/dend", "/patch")
    return sim.run(30.0).spikes("/patch/axon")


@pytest.mark.parametrize(
    ("method", "dendrite", "order"),
    [
        ("exp_euler", True, 1),
        ("exp_euler", False, 2),  # gates and voltage take turns: within one compartment it does better than promised
        ("crank_nicolson", True, 2),
        ("crank_nicolson", False, 2),
        ("backward_euler", True, 1),
    ],
)
def test_halving_the_step_divides_the_error_of_spike_times_by_the_order(method, dendrite, order):
    fine, finer = (spike_times(dt, "crank_nicolson", dendrite=dendrite) for dt in (0.0025, 0.00125))
    reference = (4 * finer - fine) / 3
    steps = [0.04, 0.02, 0.01] if order == 2 else [0.02, 0.01, 0.005]
    errors = [np.abs(spike_times(dt, method, dendrite=dendrite) - reference).max() for dt in steps]
    ratios = np.array(errors[:-1]) / errors[1:]
    assert ratios == pytest.approx([2.0**order] * 2, rel=0.15)


def test_tables_change_spike_times_by_microseconds():
    times = [
        hodgkin_huxley_patch(10.0, dt=0.025, rate_tables=tables).run(40.0).spikes("/patch/axon")
        for tables in (True, False)
    ]
    assert np.abs(times[0] - times[1]).max() < 1e-3


def random_tree(rng, n, dt=0.1, method="backward_euler"):
    """A random passive tree with its conductance matrix, from the fields alone."""
    sim = Simulation(dt=dt, method=method)
    parents = [int(rng.integers(i)) for i in range(1, n)]
    for i in rng.permutation(n):
        sim.create(
            "passive_compartment",
            f"/c[{i}]",
            length=rng.uniform(5, 300),
            diameter=rng.uniform(0.3, 20),
            rm=rng.uniform(1e3, 1e5),
            initial_Vm=rng.uniform(-90, 20),
            Em=rng.uniform(-80, -50),
            inject=rng.normal(0, 0.05),
        )
    matrix = np.zeros((n, n))
    cells = [sim.element(f"/c[{i}]") for i in range(n)]
    for i, parent in enumerate(parents, start=1):
        one, other = (i, parent) if rng.random() < 0.5 else (parent, i)
        sim.link(cells[one], cells[other])
        halves = [c.ra * c.length / 2 / (np.pi * c.diameter**2 / 4) * 1e-2 for c in (cells[i], cells[parent])]
        g = 1 / sum(halves)
        matrix[i, i] += g
        matrix[parent, parent] += g
        matrix[i, parent] -= g
        matrix[parent, i] -= g
    area = np.array([np.pi * c.diameter * c.length * 1e-8 for c in cells])
    capacitance, leak = 1e3 * area, 1e6 * area / [c.rm for c in cells]
    matrix += np.diag(leak)
    drive = leak * [c.Em for c in cells] + [c.inject for c in cells]
    return sim, cells, matrix, capacitance, drive


@pytest.mark.parametrize("method", ["backward_euler", "crank_nicolson"])
@pytest.mark.parametrize("seed", range(5))
def test_elimination_on_trees_equals_a_dense_solve(method, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    sim, cells, matrix, capacitance, drive = random_tree(rng, n, method=method)
    v = np.array([c.initial_Vm for c in cells])
    for _ in range(3):
        h = 0.1 if method == "backward_euler" else 0.05
        w = np.linalg.solve(np.diag(capacitance / h) + matrix, capacitance / h * v + drive)
        v = w if method == "backward_euler" else 2 * w - v
        sim.step()
        assert np.abs([c.Vm for c in cells] - v).max() < 1e-10 * np.abs(v).max()


@pytest.mark.parametrize("method", METHODS)
def test_a_passive_tree_settles_where_the_linear_system_says(method):
    rng = np.random.default_rng(3)
    sim, cells, matrix, _, drive = random_tree(rng, 2, dt=0.005 if "exp" in method or method == "euler" else 0.5)
    sim.method = method
    sim.run(1500.0)
    assert np.abs([c.Vm for c in cells] - np.linalg.solve(matrix, drive)).max() < 1e-6


def test_injected_charge_is_membrane_charge():
    sim = Simulation(dt=0.02, method="crank_nicolson")
    sim.create("compartment", "/c", capacitance=0.01, resistance=300.0, Em=-54.387)
    sim.create("hh_sodium_channel", "/c/na", gbar=1.2, density=0.0)
    sim.create("hh_potassium_channel", "/c/k", gbar=0.36, density=0.0)
    for name in ("na", "k"):
        sim.link(f"/c/{name}", "/c")
        sim.record(f"/c/{name}", "g")
    sim.create("pulse_generator", "/pulse", delay=2, width=3, level=0.1, period=10)
    sim.link("/pulse", "/c")
    sim.record("/c", "Vm")
    result = sim.run(40.0)
    v = result["/c", "Vm"]
    middle = (v[1:] + v[:-1]) / 2  # conductances are those of the middle of each step
    membrane = (middle + 54.387) / 300.0
    for name, reversal in (("na", 50.0), ("k", -77.0)):
        membrane += result[f"/c/{name}", "g"][1:] * (middle - reversal)
    injected = 0.1 * 3 * 4
    assert 0.02 * membrane.sum() + 0.01 * (v[-1] - v[0]) == pytest.approx(injected, abs=1e-9)
    assert v.max() > 0  # it has spiked meanwhile


def test_a_gate_at_a_held_voltage_relaxes_exponentially():
    for tables, tolerance in ((False, 1e-12), (True, 1e-5)):
        sim = Simulation(dt=0.05, rate_tables=tables)
        sim.create("compartment", "/c", capacitance=1e9, initial_Vm=-30.0, Em=-30.0)  # too large to move
        sim.create("hh_sodium_channel", "/c/na", gbar=1e-9, density=0.0, initial_m=0.9, initial_h=0.1)
        sim.link("/c/na", "/c")
        sim.record("/c/na", "m")
        sim.record("/c/na", "h")
        result = sim.run(5.0)
        for gate, rates, start in (("m", SODIUM[0], 0.9), ("h", SODIUM[1], 0.1)):
            settled, tau = steady_state(rates, -30.0), time_constant(rates, -30.0)
            expected = settled + (start - settled) * np.exp(-result.time / tau)
            assert np.abs(result["/c/na", gate] - expected).max() < tolerance


def test_gates_stay_within_0_and_1():
    sim = hodgkin_huxley_patch(60.0, dt=0.1)
    for gate in "mhn":
        sim.record("/patch", gate)
    result = sim.run(300.0)
    for gate in "mhn":
        assert result["/patch", gate].min() >= 0
        assert result["/patch", gate].max() <= 1


def test_rates_have_their_limits_where_they_are_zero_over_zero():
    for one, at, limit in ((SODIUM[0].alpha, -40.0, 1.0), (POTASSIUM[0].alpha, -55.0, 0.1)):
        near = rate(one, at + np.array([-1e-4, -1e-7, 0.0, 1e-7, 1e-4]))
        assert near == pytest.approx([limit] * 5, rel=1e-4)


def alpha(t, tau):
    return np.where(t > 0, t / tau * np.exp(1 - t / tau), 0.0)


def dual(t, rise, decay):
    at = np.log(decay / rise) * rise * decay / (decay - rise)
    shape = lambda s: np.exp(-s / decay) - np.exp(-s / rise)  # noqa: E731
    return np.where(t > 0, shape(np.maximum(t, 0)) / shape(at), 0.0)


def synapse_trace(kind, times, *, dt=0.1, weight=1.0, exact=False, delay=1.0, **fields):
    sim = Simulation(dt=dt)
    sim.create("compartment", "/c", Em=-20.0, initial_Vm=-20.0, capacitance=1e9)
    sim.create(kind, "/c/syn", gmax=0.003, **fields)
    sim.create("time_table", "/events", times=times)
    sim.link("/c/syn", "/c")
    sim.connect("/events", "/c/syn", delay=delay, weight=weight, exact_delay=exact)
    sim.record("/c/syn", "g")
    result = sim.run(40.0)
    return result.time, result["/c/syn", "g"]


@pytest.mark.parametrize(
    ("kind", "fields", "shape"),
    [
        ("synapse", {"tau": 2.0}, lambda t: alpha(t, 2.0)),
        ("dual_exponential_synapse", {"tau_rise": 0.5, "tau_decay": 4.0}, lambda t: dual(t, 0.5, 4.0)),
        ("dual_exponential_synapse", {"tau_rise": 3.0, "tau_decay": 3.0}, lambda t: alpha(t, 3.0)),
        (
            "nmda_synapse",
            {"tau_rise": 1.0, "tau_decay": 8.0, "Mg": 2.0},
            lambda t: dual(t, 1.0, 8.0) / (1 + 2.0 / 3.57 * np.exp(0.062 * 20.0)),
        ),
    ],
)
def test_synapses_follow_their_closed_form_and_events_add_up(kind, fields, shape):
    t, g = synapse_trace(kind, (2.0, 5.5, 6.0), weight=0.7, **fields)
    expected = 0.003 * 0.7 * sum(shape(t - at) for at in (3.0, 6.5, 7.0))
    assert np.abs(g - expected).max() < 1e-12


def test_exact_delays_keep_the_time_between_two_steps():
    times, delay = (2.033, 7.31), 1.2345
    t, g = synapse_trace("synapse", times, exact=True, delay=delay)
    expected = 0.003 * sum(alpha(t - at - delay, 2.0) for at in times)
    # A step that is under way does not see what arrives in it; the next does, with the time that has passed.
    unseen = np.any([(t >= at + delay) & (t < at + delay + 0.1) for at in times], axis=0)
    assert unseen.sum() == 2
    assert np.abs(g - expected)[~unseen].max() < 1e-12


def test_facilitation_strengthens_events_that_follow():
    fields = {"tau": 0.2, "facilitation": 0.5, "facilitation_tau": 20.0}
    t, g = synapse_trace("synapse", (2.0, 12.0, 22.0), **fields)
    peaks = [g[(t >= at) & (t < at + 3)].max() for at in (3, 13, 23)]
    decay = np.exp(-10 / 20)
    assert np.array(peaks) / peaks[0] == pytest.approx([1, 1 + 0.5 * decay, 1 + (0.5 * decay + 0.5) * decay], rel=1e-9)


@pytest.mark.parametrize("delay", [0.1, 0.5, 3.33, 12.0])
def test_a_spike_arrives_after_its_delay_and_a_link_at_once(delay):
    sim = hodgkin_huxley_patch(10.0, dt=0.1)
    sim.create("compartment", "/c")
    sim.create("synapse", "/c/syn")
    sim.link("/c/syn", "/c")
    sim.connect("/patch/axon", "/c/syn", delay=delay)
    sim.record("/c/syn", "g")
    result = sim.run(30.0)
    first = result.spikes("/patch/axon")[0]
    opened = result.time[np.flatnonzero(result["/c/syn", "g"])[0]]
    assert abs(opened - (first + delay)) <= 2 * 0.1  # rounded to a step, and seen at the end of the next
    sim = Simulation(dt=0.1)
    sim.create("compartment", "/c", capacitance=0.1)
    sim.create("pulse_generator", "/pulse", delay=1.0, level=0.1)
    sim.link("/pulse", "/c")
    sim.record("/c", "Vm")
    result = sim.run(3.0)
    assert result.time[np.flatnonzero(result["/c", "Vm"] > -65.0)[0]] == pytest.approx(1.1)


def test_pulses_and_tables_give_the_charge_they_promise():
    sim = Simulation(dt=0.1)
    sim.create("compartment", "/c", capacitance=1.0, resistance=1e12)
    sim.create("pulse_generator", "/pulse", delay=1.0, width=0.5, level=2.0, period=5.0)
    sim.create("time_table", "/table", times=(0.0, 10.0, 20.0), values=(0.0, 1.0, 0.0))
    sim.link("/pulse", "/c")
    sim.link("/table", "/c")
    sim.run(20.0)
    assert sim.get("/c", "Vm") + 65 == pytest.approx(4 * 0.5 * 2.0 + 10.0, abs=1e-6)


def test_a_voltage_clamp_holds_and_tells_its_current():
    sim = Simulation(dt=0.01, method="backward_euler")
    sim.create("compartment", "/c", capacitance=0.1, resistance=50.0, Em=-65.0)
    sim.create("voltage_clamp", "/clamp", level=-20.0, base=-65.0, delay=5.0, width=20.0, resistance=0.5)
    sim.link("/clamp", "/c")
    sim.record("/c", "Vm")
    sim.record("/clamp", "I")
    result = sim.run(40.0)
    expected = (-20.0 / 0.5 - 65.0 / 50.0) / (1 / 0.5 + 1 / 50.0)
    at = result.time.searchsorted(24.0)
    assert result["/c", "Vm"][at] == pytest.approx(expected, abs=1e-6)
    assert result["/clamp", "I"][at] == pytest.approx((expected + 65.0) / 50.0, abs=1e-5)
    assert result["/c", "Vm"][-1] == pytest.approx(-65.0, abs=1e-6)


def test_an_integrate_and_fire_cell_fires_at_its_closed_form_rate():
    sim = Simulation(dt=0.01)
    fields = {"capacitance": 0.2, "resistance": 100.0, "Em": -65.0, "threshold": -50.0, "reset_voltage": -65.0}
    cell = sim.create("integrate_and_fire", "/cell", refractory=2.0, inject=0.3, **fields)
    spikes = sim.run(1000.0).spikes(cell)
    tau, drive = 20.0, 30.0
    period = 2.0 + tau * np.log(drive / (drive - 15.0))
    assert np.diff(spikes) == pytest.approx([period] * (len(spikes) - 1), abs=0.02)


def test_random_spikes_have_the_rate_and_the_spread_of_a_poisson_process():
    sim = Simulation(dt=0.5, random_state=1)
    for i in range(200):
        sim.create("random_spikes", f"/s[{i}]", rate=40.0)
    result = sim.run(2000.0)
    counts = np.array([len(result.spikes(f"/s[{i}]")) for i in range(200)])
    # The sum of 200 counts is Poisson, and normal to a good approximation; five standard errors are a false-alarm rate
    # below 1e-6, and so are the bounds of the dispersion.
    assert abs(counts.mean() - 80.0) < 5 * np.sqrt(80.0 / 200)
    assert 0.5 < counts.var() / 80.0 < 1.7
    assert len({tuple(result.spikes(f"/s[{i}]")) for i in range(200)}) == 200


@pytest.mark.parametrize("rate", [250.0, 1000.0])
def test_several_random_spikes_in_a_step_are_those_of_a_poisson_process(rate):
    """At up to one spike in a step on average; how many fall into a step, and where, against the distribution."""
    sim = Simulation(dt=1.0, random_state=5)
    for i in range(20):
        sim.create("random_spikes", f"/s[{i}]", rate=rate)
    result = sim.run(2000.0)
    times = np.concatenate([result.spikes(f"/s[{i}]") for i in range(20)])
    expected, n_steps = rate * 1e-3, 40_000
    in_step = result.counts(1.0).ravel()
    shares = poisson.pmf(np.arange(4), expected)
    seen = [(in_step == k).sum() for k in range(4)] + [(in_step > 3).sum()]
    # Each test raises a false alarm once in a million seeds.
    assert chisquare(seen, n_steps * np.append(shares, 1 - shares.sum())).pvalue > 1e-6
    assert kstest(times % 1.0, "uniform").pvalue > 1e-6
    sim.set("/s[3]", "rate", 1001.0)
    with pytest.raises(SimulationError, match=r"rate of /s\[3\] must be at most one spike in a step \(1000 Hz\)"):
        sim.run(1.0)


@pytest.mark.parametrize("method", ["backward_euler", "crank_nicolson", "exp_euler"])
def test_couplings_in_a_cycle_are_solved(method):
    sim = Simulation(dt=0.01, method=method)
    for i in range(3):
        sim.create("compartment", f"/c[{i}]", capacitance=0.1, resistance=20.0 + 10 * i, axial_resistance=5.0)
    for i in range(3):
        sim.link(f"/c[{i}]", f"/c[{(i + 1) % 3}]")
    sim.set("/c[0]", "inject", 0.2)
    if method == "exp_euler":
        sim.run(60.0)
    else:
        with pytest.warns(UserWarning, match="form a cycle"):
            sim.run(60.0)
    leak = np.diag([1 / 20, 1 / 30, 1 / 40])
    matrix = leak + 0.1 * (3 * np.eye(3) - 1)
    expected = np.linalg.solve(matrix, leak @ np.full(3, -65.0) + [0.2, 0, 0])
    assert [sim.get(f"/c[{i}]", "Vm") for i in range(3)] == pytest.approx(expected, abs=1e-4)


def test_a_slow_clock_records_less_often():
    sim = hodgkin_huxley_patch(10.0, dt=0.025)
    sim.set_clock(2, 0.5)
    sim.record("/patch", "Vm")
    sim.create("recorder", "/recorder", source="/patch", variable="m", clock=2)
    result = sim.run(20.0)
    assert len(result["/patch", "m"]) == 41
    assert result.times("/patch", "m")[-1] == pytest.approx(20.0)
    assert len(result.time) == 801
