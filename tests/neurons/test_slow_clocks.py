"""Cells on slower clocks: the same as with a longer step, beside cells that move in each step."""

import numpy as np
import pytest

from pluri.neurons import Simulation, SimulationError


def cell(sim, path, clock):
    sim.create("active_compartment", path, length=20, diameter=20, inject=0.15, clock=clock)
    sim.create("passive_compartment", f"{path}/dend", length=200, diameter=2, clock=clock)
    sim.create("axon", f"{path}/axon")
    sim.link(path, f"{path}/dend")
    sim.link(path, f"{path}/axon")
    sim.record(path, "Vm")


@pytest.mark.parametrize("method", ["euler", "exp_euler", "backward_euler", "crank_nicolson"])
def test_a_cell_on_a_slow_clock_does_what_it_does_with_a_longer_step(method):
    slow, long = Simulation(dt=0.01, method=method), Simulation(dt=0.04, method=method)
    slow.set_clock(1, 0.04)
    cell(slow, "/slow", 1)
    cell(slow, "/fast", 0)
    cell(long, "/slow", 0)
    a, b = slow.run(40.0), long.run(40.0)
    v = a["/slow", "Vm"]
    assert np.abs(v[::4] - b["/slow", "Vm"]).max() < 1e-8
    assert np.array_equal(v[:-1].reshape(-1, 4), np.repeat(v[:-1:4, None], 4, axis=1))  # held in between
    assert a.spikes("/slow/axon") == pytest.approx(b.spikes("/slow/axon"), abs=1e-8)
    assert len(b.spikes("/slow/axon")) == 3
    assert np.abs(a["/fast", "Vm"][::4] - v[::4]).max() > 0.1


def test_all_charge_arrives_on_a_slow_clock():
    sim = Simulation(dt=0.1)
    sim.set_clock(1, 0.7)
    sim.create("compartment", "/c", capacitance=1.0, resistance=1e12, clock=1)
    sim.create("pulse_generator", "/pulse", delay=1.1, width=0.5, level=2.0, period=5.0)
    sim.link("/pulse", "/c")
    sim.run(21.0)
    assert sim.get("/c", "Vm") + 65 == pytest.approx(4 * 0.5 * 2.0, abs=1e-9)


def test_a_synapse_on_a_slow_cell_gives_the_charge_of_its_events():
    charges = []
    for clock in (0, 1):
        sim = Simulation(dt=0.05)
        sim.set_clock(1, 0.4)
        sim.create("compartment", "/c", capacitance=1e4, resistance=1e9, clock=clock)
        sim.create("synapse", "/c/s", tau=2.0, gmax=0.01)
        sim.create("time_table", "/t", times=(1.03, 4.4))
        sim.link("/c/s", "/c")
        sim.connect("/t", "/c/s", delay=1.0)
        sim.run(48.0)
        charges.append(1e4 * (sim.get("/c", "Vm") + 65))
    assert charges[1] == pytest.approx(charges[0], rel=1e-6)
    assert charges[0] == pytest.approx(2 * 65 * 0.01 * 2.0 * np.e, rel=0.01)  # an alpha function encloses gmax tau e


def test_saving_in_the_middle_of_a_slow_step_changes_nothing(tmp_path):
    sim = Simulation(dt=0.01)
    sim.set_clock(1, 0.04)
    cell(sim, "/slow", 1)
    sim.run(10.02)
    sim.save(tmp_path / "file")
    other = Simulation.restore(tmp_path / "file")
    sim.create("group", "/else")  # and so does compiling anew
    assert np.array_equal(sim.run(10.0)["/slow", "Vm"], other.run(10.0)["/slow", "Vm"])


def test_couplings_in_a_cycle_need_clock_0_where_they_are_solved():
    sim = Simulation(method="backward_euler")
    sim.set_clock(1, 0.1)
    for i in range(3):
        sim.create("compartment", f"/c[{i}]", clock=1)
    for i in range(3):
        sim.link(f"/c[{i}]", f"/c[{(i + 1) % 3}]")
    with pytest.raises(SimulationError, match="need all compartments on clock 0"):
        sim.run(1.0)
