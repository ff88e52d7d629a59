"""What cannot be run is refused before it runs, and what blows up says where and when."""

import signal
import threading
import time
import warnings
from typing import ClassVar

import numpy as np
import pytest

from pluri.neurons import (
    Element,
    Simulation,
    SimulationError,
    SimulationWarning,
    Slot,
    field,
    register_element,
    run_all,
)
from pluri.neurons.models import hodgkin_huxley_patch, hopfield, load_morphology, piriform, two_neurons


def test_a_voltage_that_runs_away_is_told_with_element_value_and_time():
    sim = two_neurons(500.0)
    with pytest.raises(SimulationError, match=r"V = -?[\d.e+]+ mV at /net/a/soma, t = 5\.\d+ ms; reduce dt"):
        sim.run(80.0)
    with pytest.raises(SimulationError, match="at /net/a/soma"):  # and does not go on
        sim.run(1.0)
    sim.reset()
    sim.set("/pulse", "level", 0.1)
    sim.run(1.0)


def test_what_was_recorded_before_a_failure_is_kept():
    sim = two_neurons(500.0)
    sim.record("/net/a/soma", "Vm")
    with pytest.raises(SimulationError):
        sim.run(80.0)
    assert 500 <= len(sim.result().time) < 600


def test_euler_refuses_a_step_that_is_too_long():
    sim = Simulation(dt=1.0, method="euler")
    sim.create("compartment", "/slow", capacitance=1.0, resistance=10.0)
    sim.create("compartment", "/fast", capacitance=0.01, resistance=10.0)
    with pytest.raises(SimulationError, match=r"dt must be below 0\.2 ms for the euler method at /fast, got 1"):
        sim.run(10.0)


def test_long_steps_with_fast_gates_are_warned_about():
    with pytest.warns(SimulationWarning, match="dt = 0.2 ms is long for voltage-gated channels"):
        hodgkin_huxley_patch(0.0, dt=0.2).run(1.0)


def test_a_delay_shorter_than_a_step_is_one_step_and_warned_about():
    sim = two_neurons()
    sim.connect("/net/b/axon", "/net/a/dend/syn", delay=0.001)
    with pytest.warns(SimulationWarning, match="delay of 1 connection is shorter than the time step"):
        sim.run(1.0)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("channel", r"/x \(channel\) is linked to no compartment"),
        ("synapse", r"/x \(synapse\) is linked to no compartment"),
        ("axon", r"/x \(axon\) is linked to no compartment"),
        ("voltage_clamp", r"/x \(voltage_clamp\) is linked to no compartment"),
    ],
)
def test_what_is_not_linked_is_found_by_check_and_refused(kind, message):
    sim = two_neurons()
    assert sim.check() == []
    sim.create(kind, "/x")
    assert any(kind in text for text in sim.check())
    with pytest.raises(SimulationError, match=message):
        sim.run(1.0)


def test_check_finds_islands_idle_stimuli_and_cycles():
    sim = two_neurons()
    sim.create("passive_compartment", "/net/a/lost")
    sim.create("pulse_generator", "/idle")
    assert sim.check() == [
        "/idle (pulse_generator) drives nothing",
        "/net/a/lost is coupled to no other compartment of /net/a",
    ]
    for name in "ab":
        sim.create("rate_unit", f"/{name}")
    sim.link("/a", "/b")
    sim.link("/b", "/a")
    assert any("links of rate units form a cycle" in text for text in sim.check())
    with pytest.raises(SimulationError, match="form a cycle"):
        sim.run(1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.set("/net/a/soma", "clock", 1), "clock 1 of /net/a/soma was not set"),
        (lambda s: (s.set_clock(1, 0.1), s.set("/net/a/axon", "clock", 1)), "must be on clock 0"),
        (lambda s: (s.set_clock(1, 0.1), s.set("/net/a/soma", "clock", 1)), "are coupled, and on different clocks"),
        (lambda s: s.create("time_table", "/t", times=(3.0, 1.0)), "times of /t must rise"),
        (lambda s: s.create("time_table", "/t", times=(1.0,), values=(1.0, 2.0)), "values of /t must be 1"),
        (lambda s: (s.create("channel", "/c", gbar=1.0), s.link("/c", "/net/a/soma")), "must be from 0 to 1"),
        (
            lambda s: (s.create("channel", "/c", gbar=1.0, m_alpha=(1, 2)), s.link("/c", "/net/a/soma")),
            "must be five numbers",
        ),
        (lambda s: (s.create("graded_synapse", "/g"), s.link("/g", "/net/a/soma")), "needs one presynaptic voltage"),
    ],
)
def test_other_faults_are_refused(change, message):
    sim = two_neurons()
    change(sim)
    with pytest.raises(SimulationError, match=message):
        sim.run(1.0)


def test_ctrl_c_ends_a_run_and_keeps_what_was_recorded():
    sim = two_neurons()
    sim.record("/net/a/soma", "Vm", clock=0)
    sim.step(10)
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sim.run(1e6)
    assert time.monotonic() - began < 30
    result = sim.result()
    assert len(result.time) == sim.n_steps + 1 > 11
    sim.run(1.0)  # and it can go on


def test_ctrl_c_at_any_line_of_a_run_loses_no_row_and_counts_none_twice(press_at_line):
    """At each line of the loop and of what keeps the records in turn, until a run ends before the line is reached."""
    whole = two_neurons()
    whole.record("/net/a/soma", "Vm", clock=0)
    expected = whole.run(100.0)
    lines = interrupted = 0
    ended = False
    while not ended:
        sim = two_neurons()
        sim.record("/net/a/soma", "Vm", clock=0)
        sim.compile()
        with press_at_line(lines, "network.py", "recording.py"):
            try:
                sim.run(100.0)
                ended = True
            except KeyboardInterrupt:
                interrupted += 1
        assert len(sim.result().time) == sim.n_steps + 1
        sim.run(100.0 - sim.time)
        result = sim.result()
        np.testing.assert_array_equal(result.time, expected.time)
        np.testing.assert_array_equal(result["/net/a/soma", "Vm"], expected["/net/a/soma", "Vm"])
        for mine, whole_run in zip(result.raster(), expected.raster(), strict=True):
            np.testing.assert_array_equal(mine, whole_run)
        lines += 1
    assert interrupted > 100


@register_element
class HalfWave(Element):
    """A rectifier of the membrane: current from the voltage, spikes where it is high, and a channel of its own."""

    gain = field(0.001, "uS", "Current per mV.")
    slots: ClassVar = {
        "voltage": Slot("voltage", "in"),
        "events": Slot("spike", "in"),
        "current": Slot("current", "out"),
        "spikes": Slot("spike", "out"),
        "conductance": Slot("conductance", "out"),
    }

    def process(self, t, dt):
        self.send("current", self.gain * (self.receive("voltage") + 65.0))
        self.send("conductance", (0.02, -50.0))
        if self.receive("events"):
            self.send("spikes", True)


def test_elements_written_in_python_run_beside_the_compiled_ones():
    sim = Simulation(dt=0.01, method="backward_euler")
    sim.create("compartment", "/c", capacitance=0.1, resistance=50.0, initial_Vm=-60.0)
    sim.create("half_wave", "/c/wave", gain=0.004)
    sim.link("/c", "/c/wave")
    sim.link("/c/wave.current", "/c")
    sim.link("/c/wave.conductance", "/c")
    sim.create("time_table", "/events", times=(3.0, 7.0))
    sim.connect("/events", "/c/wave", delay=1.0)
    result = sim.run(60.0)
    # 0 = (-65 - V)/50 + 0.004 (V + 65) + 0.02 (-50 - V)
    assert sim.get("/c", "Vm") == pytest.approx((-65 / 50 + 0.004 * 65 - 1.0) / (1 / 50 - 0.004 + 0.02), abs=1e-3)
    assert result.spikes("/c/wave") == pytest.approx([4.0, 8.0], abs=0.02)


@pytest.mark.parametrize("phase", [0, 5])
def test_a_slow_python_element_runs_at_its_ticks_only(phase):
    ticks = []

    class Watcher(Element):
        """Notes when it runs."""

        class_name = f"watcher_{phase}"

        def process(self, t, dt):
            ticks.append((round(t, 9), dt))

    Watcher.phase = phase
    register_element(Watcher)
    sim = hodgkin_huxley_patch(10.0, dt=0.1)
    sim.set_clock(1, 2.5)
    sim.create(f"watcher_{phase}", "/watcher", clock=1)
    plain = hodgkin_huxley_patch(10.0, dt=0.1).run(20.0).spikes("/patch/axon")
    sim.run(7.3)
    sim.run(12.7)
    expected = [0.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5] if phase == 0 else [2.5, 5, 7.5, 10, 12.5, 15, 17.5, 20]
    assert ticks == [(t, 2.5) for t in expected]
    assert np.array_equal(sim.result().spikes("/patch/axon"), plain)


def test_a_python_channel_equals_the_compiled_one():
    from pluri.neurons.library.channels import Channel
    from pluri.neurons.library.hodgkin_huxley import POTASSIUM, steady_state, time_constant

    @register_element
    class OwnPotassium(Channel):
        """The squid's potassium channel by its steady state and time constant."""

        E = field(-77.0, "mV", "Reversal potential.")
        p = field(4, "", "Power of the gate.")

        def kinetics(self, voltage):
            return [(steady_state(POTASSIUM[0], voltage), time_constant(POTASSIUM[0], voltage))]

    traces = []
    for kind in ("hh_potassium_channel", "own_potassium"):
        sim = Simulation()
        sim.create("passive_compartment", "/c", inject=0.02)
        sim.create(kind, "/c/k", density=36.0)
        sim.link("/c/k", "/c")
        sim.record("/c", "Vm")
        traces.append(sim.run(20.0)["/c", "Vm"])
    assert np.abs(traces[0] - traces[1]).max() < 1e-9


def test_rate_units_follow_links_at_once_and_connections_later():
    sim = Simulation(dt=1.0)
    for name in "abc":
        sim.create("rate_unit", f"/{name}", function="linear")
    sim.create("pulse_generator", "/in", delay=2.0, level=1.0)
    sim.link("/in", "/a")
    sim.link("/a", "/b")
    sim.connect("/b", "/c", delay=3.0, weight=2.0)
    for name in "abc":
        sim.record(f"/{name}", "y")
    result = sim.run(8.0)
    assert result["/a", "y"].tolist() == result["/b", "y"].tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert result["/c", "y"].tolist() == [0, 0, 0, 0, 0, 0, 2, 2, 2]


def energy(weights, state):
    return -0.5 * state @ weights @ state


def test_a_hopfield_network_recalls_and_its_energy_never_rises():
    n, n_patterns = 200, 20
    rng = np.random.default_rng(0)
    patterns = np.where(rng.random((n_patterns, n)) < 0.5, -1, 1)
    weights = patterns.T @ patterns / n
    np.fill_diagonal(weights, 0)
    sim = hopfield(patterns, random_state=0)
    units = sim.find("/unit[*]")
    sim.compile()
    good = 0
    for trial in range(100):
        target = patterns[trial % n_patterns]
        state = np.where(rng.random(n) < 0.1, -target, target)
        sim.network.arrays.units.y[:] = 0  # the order of arrays is not that of creation
        for unit, value in zip(units, state):
            unit.y = float(value)
        before = energy(weights, state)
        for _ in range(8):
            sim.step()
            state = np.array([unit.y for unit in units])
            assert energy(weights, state) <= before + 1e-9
            before = energy(weights, state)
        good += target @ state / n > 0.97
    assert good > 90


def test_a_hopfield_network_with_too_many_patterns_forgets_them():
    """Beyond 0.138 patterns for each unit they are no longer stable: at 0.3, most of those it begins at are left."""
    patterns = np.where(np.random.default_rng(1).random((60, 200)) < 0.5, -1, 1)
    sim = hopfield(patterns, random_state=0)
    units = sim.find("/unit[*]")
    kept = 0
    for target in patterns[:20]:
        for unit, value in zip(units, target):
            unit.y = float(value)
        sim.step(8)
        kept += target @ np.array([unit.y for unit in units]) / 200 > 0.97
    # The field of a unit has mean 1 and standard deviation sqrt(0.3): one in thirty is wrong from the start, and at
    # most two of 200 may be. The chance of that is 0.034 if no wrong one turned others; eight in twenty, 2e-7.
    assert kept <= 7


SWC = """# a soma, a dendrite that branches, and a piece of axon
1 1 0 0 0 10 -1
2 1 0 10 0 10 1
3 1 0 -10 0 10 1
4 3 110 0 0 1 1
5 3 160 50 0 0.5 4
6 3 160 -50 0 0.5 4
7 2 -60 0 0 0.5 1
"""


def test_morphologies_are_read(tmp_path):
    (tmp_path / "cell.swc").write_text(SWC)
    sim = Simulation(method="crank_nicolson", dt=0.025)
    cell = load_morphology(sim, tmp_path / "cell.swc", "/cell", max_length=60)
    assert [name for name in cell.children if "soma" in name] == ["soma[0]"]
    soma = sim.element("/cell/soma[0]")
    assert soma.area == pytest.approx(4 * np.pi * 100)
    length = sum(one.length for one in sim.find("/cell/dendrite[*]"))
    assert length == pytest.approx(100 + 2 * np.hypot(50, 50))  # the first piece begins at the edge of the soma
    assert sum(one.length for one in sim.find("/cell/axon[*]")) == pytest.approx(50)
    assert len([link for link in sim.links if link.kind == "axial"]) == len(cell.children) - 1
    sim.set("/cell/soma[0]", "inject", 0.5)
    sim.record("/cell/soma[0]", "Vm")
    assert len(sim.run(20.0).spikes("/cell/soma[0]")) >= 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no points"),
        ("1 1 0 0 0 1", "line 1 of .* must be seven numbers"),
        ("1 1 0 0 0 x -1", "must be seven numbers"),
        ("1 1 0 0 0 0 -1", "the radius positive"),
        ("1 1 0 0 0 1 -1\n1 1 0 0 0 1 -1", "there is a point 1 already"),
        ("1 1 0 0 0 1 -1\n2 3 5 0 0 1 9", "follows point 9, which is not there"),
        ("1 1 0 0 0 1 -1\n2 3 5 0 0 1 3\n3 3 9 0 0 1 2", "leads back to itself"),
    ],
)
def test_damaged_morphologies_are_refused(tmp_path, text, message):
    (tmp_path / "cell.swc").write_text(text)
    with pytest.raises(SimulationError, match=message):
        load_morphology(Simulation(), tmp_path / "cell.swc", "/cell")


def test_results_are_arrays_frames_sequences_and_counts():
    sim = two_neurons()
    sim.record("/net/*/soma", "Vm")
    result = sim.run(60.0)
    X, lengths = result.to_sequences("Vm", every=10)
    assert X.shape == (sum(lengths), 1)
    assert lengths == [601, 601]
    counts = result.counts(20.0)
    assert counts.tolist() == [[1, 1], [2, 1], [1, 2]]
    times, units, names = result.raster()
    assert len(times) == len(units) == 8
    assert set(names) == {"/net/a/axon", "/net/b/axon"}
    assert (np.diff(times) >= 0).all()
    assert result.spikes("/net/a/soma") == pytest.approx(result.spikes("/net/a/axon"), abs=1e-9)
    pandas = pytest.importorskip("pandas")
    frame = result.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["/net/a/soma.Vm", "/net/b/soma.Vm"]
    for call, message in (
        (lambda: result["/net/a/dend", "Vm"], "Vm of /net/a/dend was not recorded"),
        (lambda: result.spikes("/net/a/dend"), "is no source of spikes"),
        (lambda: result.counts(0), "bin_width must be a positive number"),
        (lambda: result.to_sequences("Vn"), "Vn was not recorded; did you mean Vm"),
        (lambda: result.to_sequences("inject"), "inject was not recorded: ask for it with record"),
    ):
        with pytest.raises(SimulationError, match=message):
            call()


@pytest.mark.parametrize("worth", [0.0, 1e9])
def test_simulations_on_threads_give_what_they_give_alone(monkeypatch, worth):
    monkeypatch.setattr("pluri.neurons.repeats.WORTH_THREADS", worth)

    def make(seed):
        return piriform(4, 2, 2, 10, random_state=seed)

    alone = [make(seed).run(30.0).raster()[0] for seed in range(4)]
    together = run_all([make(seed) for seed in range(4)], 30.0, n_jobs=2)
    for expected, result in zip(alone, together):
        assert np.array_equal(result.raster()[0], expected)
    one = make(0)
    with pytest.raises(ValueError, match="simulations must all be different"):
        run_all([one, one], 1.0)
    with pytest.raises(SimulationError, match="duration must be a number of at least 0"):
        run_all([one], -1.0, n_jobs=2)
    assert run_all([], 1.0, n_jobs=2) == []
    later = run_all([one], 2.0, n_jobs=2)[0]
    assert (later.begin, later.end) == (0.0, 2.0)
    with pytest.raises(SimulationError, match="n_jobs must be one of None, 1, got 2"):
        Simulation(n_jobs=2)


def test_nothing_to_run_is_fine():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = Simulation().run(1.0)
    assert len(result.time) == 0
    assert len(result.raster()[0]) == 0
