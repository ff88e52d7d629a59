"""What looks harmless and would give a wrong answer: each is an error in a sentence, or the right answer."""

import numpy as np
import pytest

from pluri.neurons import Element, Simulation, SimulationError, SimulatorLikelihood, Slot, field, register_element
from pluri.neurons.models import hodgkin_huxley_patch, two_neurons


def cell_with_synapse(**settings):
    sim = Simulation(**settings)
    sim.create("compartment", "/c")
    sim.create("synapse", "/c/s", tau=1.0)
    sim.link("/c/s", "/c")
    return sim


def test_a_deleted_element_neither_reads_nor_writes_the_place_of_another():
    sim = Simulation()
    gone, left = sim.create("compartment", "/a"), sim.create("compartment", "/b")
    sim.run(1.0)
    sim.delete("/a")
    sim.run(1.0)
    with pytest.raises(SimulationError, match=r"a \(compartment\) was deleted, and has no inject any more"):
        gone.inject = 5.0
    with pytest.raises(SimulationError, match="was deleted, and has no Vm any more"):
        _ = gone.Vm
    assert left.inject == 0.0
    assert sim.create("compartment", "/a").Vm == -65.0


def test_what_each_step_works_out_cannot_be_set():
    sim = two_neurons()
    sim.create("hh_sodium_channel", "/net/a/soma/na")
    for path, name in (
        ("/net/b/dend/syn", "g"),
        ("/net/a/soma/na", "g"),
        ("/net/a/soma/na", "I"),
        ("/net/a/soma", "INa"),
        ("/pulse", "output"),
    ):
        with pytest.raises(SimulationError, match=f"{name} of {path} is worked out in each step and cannot be set"):
            sim.set(path, name, 0.1)


def test_the_same_link_twice_is_refused_and_possible_again_after_deleting():
    sim = two_neurons()
    with pytest.raises(SimulationError, match="/pulse and /net/a/soma are linked already"):
        sim.link("/pulse", "/net/a/soma")
    sim.create("pulse_generator", "/second", level=0.1)
    sim.link("/second", "/net/a/soma")
    sim.delete("/second")
    sim.create("pulse_generator", "/second", level=0.1)
    sim.link("/second", "/net/a/soma")
    assert len(sim.links) == 8


def test_a_clamp_has_one_command():
    sim = Simulation()
    sim.create("compartment", "/c")
    sim.create("voltage_clamp", "/clamp")
    sim.link("/clamp", "/c")
    for name in ("a", "b"):
        sim.create("pulse_generator", f"/{name}", level=-50.0)
        sim.link(f"/{name}", "/clamp.command")
    with pytest.raises(SimulationError, match="/clamp has two commands"):
        sim.run(1.0)


@pytest.mark.parametrize("slot", ["/c.injection", "/clamp.command", "/axon.membrane", "/recorder.input"])
def test_a_delay_where_none_can_be_is_refused(slot):
    sim = cell_with_synapse()
    for kind in ("voltage_clamp", "axon", "recorder", "pulse_generator", "compartment"):
        sim.create(kind, f"/{kind.removeprefix('voltage_').removesuffix('_generator')}")
    source = "/compartment" if slot == "/axon.membrane" else "/pulse"
    with pytest.raises(SimulationError, match=f"{slot} takes links only"):
        sim.connect(source, slot, delay=1.0)
    if slot != "/clamp.command":  # a list has no names of slots, and a clamp gives out more than it takes
        with pytest.raises(SimulationError, match="takes links only"):
            sim.connect_all([source], [slot.split(".")[0]])
    assert sim.connections == []


def test_tables_without_values_drive_nothing_and_those_with_values_send_no_spikes():
    sim = cell_with_synapse(dt=0.1)
    sim.create("time_table", "/t", times=(1.0, 2.0))
    sim.link("/t", "/c")
    with pytest.raises(SimulationError, match="/t is linked to /c, and has no values"):
        sim.run(1.0)
    sim.set("/t", "values", (0.1, 0.0))
    sim.run(1.0)
    sim.connect("/t", "/c/s", delay=1.0)
    with pytest.raises(SimulationError, match="/t is connected to /c/s, and has values, and so no spikes"):
        sim.run(1.0)


def test_no_listed_spike_is_lost_however_close():
    rng = np.random.default_rng(0)
    times = np.unique(np.round(rng.uniform(0, 100, 400), 3))
    sim = cell_with_synapse(dt=1.0)
    sim.create("time_table", "/t", times=times)
    sim.connect("/t", "/c/s", delay=2.0)
    sim.record("/c/s", "g")
    result = sim.run(120.0)
    assert np.array_equal(result.spikes("/t"), times)
    # An event acts from the step nearest to its arrival on; conductances are those of the exact recursion.
    arrivals = np.floor(times + 2.0 + 0.5)
    since = result.time[:, None] - arrivals
    expected = 0.001 * np.where(since > 0, since * np.exp(1 - since), 0.0).sum(axis=1)
    assert np.abs(result["/c/s", "g"] - expected).max() < 1e-12


def test_a_negative_weight_of_a_conductance_is_refused():
    sim = cell_with_synapse()
    sim.create("random_spikes", "/r")
    sim.connect("/r", "/c/s", delay=1.0, weight=-1.0)
    with pytest.raises(SimulationError, match="weight of /r to /c/s must be at least 0, got -1"):
        sim.run(1.0)


def test_depression_ends_at_nothing():
    sim = cell_with_synapse(dt=0.1)
    sim.set("/c/s", "facilitation", -0.6)
    sim.create("time_table", "/t", times=np.arange(1.0, 12.0, 0.5))
    sim.connect("/t", "/c/s", delay=0.1)
    sim.record("/c/s", "g")
    assert sim.run(20.0)["/c/s", "g"].min() >= 0


def test_pulses_between_two_steps_and_pulses_without_end_are_told():
    sim = cell_with_synapse(dt=0.1)
    sim.create("pulse_generator", "/p", delay=1.0, width=0.04, level=1.0)
    sim.link("/p", "/c")
    with pytest.raises(SimulationError, match=r"width of /p \(0.04 ms\) must be at least a step \(0.1 ms\)"):
        sim.run(1.0)
    sim.set("/p", "width", 30.0)
    sim.set("/p", "period", 20.0)
    assert "width of /p (30 ms) is not below its period (20 ms): it never ends" in sim.check()


def test_recordings_follow_their_clock_when_it_is_set_anew():
    sim = cell_with_synapse(dt=0.1)
    sim.set_clock(1, 0.5)
    sim.record("/c", "Vm", clock=1)
    sim.set_clock(1, 1.0)
    sim.set_clock(0, 0.25)
    assert sim.run(4.0).time == pytest.approx([0, 1, 2, 3, 4])


def test_a_field_recorded_at_two_clocks_is_one_series_at_the_faster():
    sim = cell_with_synapse(dt=0.1)
    sim.set_clock(1, 0.5)
    sim.record("/c", "Vm", clock=1)
    sim.record("/c", "Vm")
    result = sim.run(2.0)
    assert result.times("/c", "Vm") == pytest.approx(0.1 * np.arange(21))


def test_series_of_several_clocks_are_no_sequences_of_one_model():
    sim = two_neurons()
    sim.set_clock(1, 0.5)
    sim.record("/net/a/soma", "Vm")
    sim.record("/net/b/soma", "Vm", clock=1)
    result = sim.run(5.0)
    with pytest.raises(SimulationError, match="recorded at several clocks"):
        result.to_sequences()
    with pytest.raises(SimulationError, match="every must be an integer of at least 1, got 0"):
        result.to_sequences(every=0)


def test_counts_are_of_whole_bins():
    sim = hodgkin_huxley_patch(20.0)
    result = sim.run(95.0)
    spikes = result.spikes("/patch/axon")
    assert result.counts(20.0)[:, 0].tolist() == [
        int(((spikes >= a) & (spikes < a + 20)).sum()) for a in range(0, 80, 20)
    ]
    assert result.counts(100.0).shape == (0, 1)
    assert result.counts(0.1).shape == (950, 1)


def test_what_was_to_be_recorded_and_is_not_there_is_told():
    sim = two_neurons()
    sim.record("/net/a/soma", "Vm")
    assert sim.check() == []
    sim.move("/net/a", "/first")
    assert sim.check() == ["nothing matches /net/a/soma, whose Vm was to be recorded"]


def test_the_method_does_not_change_to_or_from_crank_nicolson_on_the_way():
    sim = hodgkin_huxley_patch(10.0)
    sim.run(1.0)
    sim.method = "backward_euler"
    with pytest.raises(SimulationError, match="only at time 0"):
        sim.method = "crank_nicolson"
    sim.reset()
    sim.method = "crank_nicolson"
    sim.run(1.0)
    with pytest.raises(SimulationError, match="only at time 0"):
        sim.method = "euler"


def test_steps_of_nothing_before_the_first_move_no_gate():
    traces = []
    for nothing in (0, 3):
        sim = hodgkin_huxley_patch(10.0, method="crank_nicolson")
        sim.set("/patch", "initial_m", 0.9)
        sim.record("/patch", "Vm")
        for _ in range(nothing):
            sim.run(0.0)
        sim.run(5.0)
        traces.append(sim.result()["/patch", "Vm"])
    assert np.array_equal(*traces)


def test_copies_of_copies_hold_all_that_is_inside_and_run_alike():
    sim = Simulation(dt=0.05)
    sim.create("group", "/g")
    sim.create("active_compartment", "/g/c", length=20, diameter=20, inject=0.1)
    sim.create("axon", "/g/a")
    sim.create("synapse", "/g/s", gmax=0.002)
    sim.link("/g/c", "/g/a")
    sim.link("/g/s", "/g/c")
    sim.connect("/g/a", "/g/s", delay=2.0)
    sim.copy("/g", "/h", n=2)
    sim.copy("/h[1]", "/k", n=2)
    sim.copy("/k[0]", "/k[0]/inside")
    assert (len(sim.links), len(sim.connections)) == (12, 6)
    sim.record("/**", "Vm")
    result = sim.run(40.0)
    traces = [values for _, values in result.series.values()]
    assert len(traces) == 6
    for trace in traces[1:]:
        assert np.array_equal(trace, traces[0])


def test_a_copy_of_a_running_cell_begins_where_it_is_with_closed_synapses():
    sim = two_neurons()
    sim.run(16.0)
    assert sim.get("/net/b/dend/syn", "g") > 1e-3
    sim.copy("/net/b", "/copy")
    for path, name in (("soma", "Vm"), ("soma", "n"), ("dend", "Vm")):
        assert sim.get(f"/copy/{path}", name) == sim.get(f"/net/b/{path}", name)
    sim.run(1.0)
    assert sim.get("/copy/dend/syn", "g") == 0.0


def test_nothing_written_in_python_can_bring_in_what_is_no_number():
    @register_element
    class NotANumber(Element):
        bad = field(0.0, "nA", "What it sends.")
        slots = {"output": Slot("current", "out")}  # noqa: RUF012

        def process(self, t, dt):
            self.send("output", np.nan)

    sim = cell_with_synapse()
    sim.create("not_a_number", "/n")
    sim.link("/n", "/c")
    with pytest.raises(SimulationError, match=r"V = nan mV at /c, t = 0\.025 ms"):
        sim.run(1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_parameters_of_a_likelihood_that_are_no_numbers_have_none(bad):
    sim = hodgkin_huxley_patch(10.0, dt=0.05)
    sim.record("/patch", "Vm")
    model = SimulatorLikelihood(
        sim, "/patch", {"gNa": (".", "gNa")}, lambda result, path: result[path, "Vm"][::40], duration=5.0, noise=1.0
    )
    observed = model.simulate([[120.0]], random_state=0)[0]
    assert np.isneginf(model.log_likelihood([[bad], [120.0]], observed)).tolist() == [True, False]
    with pytest.raises(ValueError, match="observed must be finite"):
        model.log_likelihood([[120.0]], np.where(np.arange(len(observed)) == 1, np.nan, observed))
