"""Every command has its twin in Python, which gives the same numbers; and shipped scripts do what they say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pluri.neurons import Simulation
from pluri.neurons.language import Interpreter
from pluri.neurons.language.commands import COMMANDS
from pluri.neurons.scripts import first_comment, shipped_scripts, title_of

SCRIPT = """
method crank_nicolson
setclock 0 0.05
setclock 1 0.5
seed 5
create group /net
create group /net/a
create active_compartment /net/a/soma -length 20 -diameter 20
create passive_compartment /net/a/dend -length 200 -diameter 2
create synapse /net/a/dend/syn -tau 2 -gmax 0.005
create axon /net/a/axon -threshold 0
link /net/a/dend to /net/a/soma
link /net/a/dend/syn to /net/a/dend
link /net/a/soma to /net/a/axon
copy /net/a to /net/b
copy /net/b to /net/more -n 2
move /net/more[1] to /net/last
delete /net/more[0]
connect /net/a/axon to /net/b/dend/syn -delay 5 -weight 1.5
connect /net/b/axon to /net/last/dend/syn -delay 2.02 -exact_delay 1
create random_spikes /noise -rate 50
connect /noise to /net/a/dend/syn -delay 1 -weight 0.5
create recorder /watch -source /net/last/soma -clock 1
ce /net
set a/soma inject 0.15
set */dend rm 20000
record /net/*/dend Vm
graph a/soma Vm
reset
step -time 20
set a/soma inject 0.25
step 333
"""


def python_twin():
    sim = Simulation(dt=0.05, method="crank_nicolson", random_state=5)
    sim.set_clock(1, 0.5)
    sim.create("group", "/net")
    sim.create("group", "/net/a")
    soma = sim.create("active_compartment", "/net/a/soma", length=20, diameter=20)
    sim.create("passive_compartment", "/net/a/dend", length=200, diameter=2)
    sim.create("synapse", "/net/a/dend/syn", tau=2, gmax=0.005)
    sim.create("axon", "/net/a/axon", threshold=0)
    sim.link("/net/a/dend", "/net/a/soma")
    sim.link("/net/a/dend/syn", "/net/a/dend")
    sim.link("/net/a/soma", "/net/a/axon")
    sim.copy("/net/a", "/net/b")
    sim.copy("/net/b", "/net/more", n=2)
    sim.move("/net/more[1]", "/net/last")
    sim.delete("/net/more[0]")
    sim.connect("/net/a/axon", "/net/b/dend/syn", delay=5, weight=1.5)
    sim.connect("/net/b/axon", "/net/last/dend/syn", delay=2.02, exact_delay=True)
    sim.create("random_spikes", "/noise", rate=50)
    sim.connect("/noise", "/net/a/dend/syn", delay=1, weight=0.5)
    sim.create("recorder", "/watch", source="/net/last/soma", clock=1)
    soma.inject = 0.15
    sim.set("/net/*/dend", "rm", 20000)
    sim.record("/net/*/dend", "Vm")
    sim.record("/net/a/soma", "Vm")
    sim.reset()
    sim.run(20)
    soma.inject = 0.25
    sim.step(333)
    return sim.result()


def same(first, second):
    assert first.names
    assert sorted(first.names) == sorted(second.names)
    for name in first.names:
        np.testing.assert_array_equal(first.times(*name), second.times(*name))
        np.testing.assert_array_equal(first[name], second[name])
    for one, other in zip(first.raster(), second.raster()):
        assert list(one) == list(other)


def test_a_script_gives_what_python_gives_bit_for_bit(tmp_path):
    (tmp_path / "net.g").write_text(SCRIPT)
    result = Simulation().run_script(tmp_path / "net.g")
    expected = python_twin()
    same(result, expected)
    assert len(result.spikes("/net/a/axon")) >= 2
    assert len(result.spikes("/noise")) >= 1
    assert len(result.times("/net/last/soma", "Vm")) < len(result.time)


def test_saved_in_the_middle_and_restored_a_script_goes_on_as_if_nothing_had_been(tmp_path):
    begin, _, rest = SCRIPT.partition("set a/soma inject 0.25")
    path = tmp_path / "middle.npz"
    first = Interpreter(Simulation())
    first.run_text(f"{begin}\nsave {path}")
    second = Interpreter(Simulation())
    second.run_text(f"restore {path}\nce /net\nset a/soma inject 0.25\n{rest}")
    same(second.simulation.result(), python_twin())


def test_every_command_names_a_twin_that_exists():
    for name, form in COMMANDS.items():
        found = re.match(r"(?:Simulation\.)?(\w+)\(", form.twin)
        assert name == "quit" or name == "call" or found, name
        if found and found[1] not in ("Simulation", "print", "help"):
            assert callable(getattr(Simulation, found[1])), form.twin


def test_shipped_scripts_have_a_comment_and_a_title():
    assert set(shipped_scripts()) == {
        "two_neurons", "hodgkin_huxley", "cable", "branched_tree", "half_centre", "hopfield", "piriform",
        "olfactory_bulb", "inferior_olive",
    }  # fmt: skip
    for path in shipped_scripts().values():
        assert 20 < len(first_comment(path)) < 110
        assert 5 < len(title_of(path)) < 40


@pytest.fixture(scope="module")
def ran():
    """Results of the shipped scripts, and what they said; each runs once."""
    found = {}

    def run(name):
        if name not in found:
            said = []
            interpreter = Interpreter(Simulation(random_state=0), output=said.append)
            interpreter.run_file(shipped_scripts()[name])
            found[name] = interpreter, interpreter.simulation.result(), said
        return found[name]

    return run


def test_two_neurons_fire_when_they_should(ran):
    _, result, _ = ran("two_neurons")
    # Reference: an adaptive stiff solver; 0.1 ms are four steps of a method of second order.
    np.testing.assert_allclose(result.spikes("/net/a/axon"), [7.047, 21.559, 35.726, 49.875], atol=0.1)
    np.testing.assert_allclose(result.spikes("/net/b/axon"), [14.654, 29.521, 43.775, 57.936], atol=0.1)


def test_the_patch_has_its_rate_and_its_panel_works(ran):
    interpreter, result, _ = ran("hodgkin_huxley")
    np.testing.assert_allclose(1000 / np.diff(result.spikes("/axon")).mean(), 68.3, rtol=0.01)
    interpreter.run_text("call block_sodium 1\nstep -time 50\nbefore = time()\nstep -time 50")
    late = interpreter.simulation.result().spikes("/axon")
    assert not (late > 150).any()
    interpreter.run_text("call block_sodium 0")
    assert interpreter.simulation.get("/patch", "gNa") == 120


def test_cable_and_tree_agree_with_the_theory(ran):
    _, result, said = ran("cable")
    near, far = (result[f"/cable/part[{part}]", "Vm"][-1] for part in (0, 99))
    # Steady state of the finite cable; 100 compartments, whose middles lie 5 um from the ends, are 0.5 % off.
    lambda_mv = 0.1 * 1273.2
    assert near + 65 == pytest.approx(lambda_mv / np.tanh(1), rel=0.01)
    assert far + 65 == pytest.approx(lambda_mv / np.sinh(1), rel=0.01)
    assert said[0].startswith("near end 1")
    _, result, said = ran("branched_tree")
    tree, cylinder = result["/tree/trunk/part[0]", "Vm"], result["/cylinder/one/part[0]", "Vm"]
    assert np.abs(tree - cylinder).max() < 0.001 * (cylinder.max() + 65) + 1e-9
    assert "they differ by" in said[0]


def test_half_centres_take_turns(ran):
    _, result, _ = ran("half_centre")
    left, right = result["/net/left/soma", "Vm"], result["/net/right/soma", "Vm"]
    late = result.time > 150
    assert np.corrcoef(left[late], right[late])[0, 1] == pytest.approx(-0.883, abs=0.02)
    up = np.flatnonzero((left[:-1] < -50) & (left[1:] >= -50) & late[1:])
    assert np.diff(result.time[up]).mean() == pytest.approx(82.7, rel=0.01)
    assert left[late].max() == pytest.approx(-28.89, abs=0.3)
    assert left[late].min() == pytest.approx(-74.55, abs=0.3)


def test_the_hopfield_network_finds_its_pattern(ran):
    # 3 patterns in 48 units and 15 % noise: far below the capacity. The seed stands in the script; of 200 others one
    # stayed at an overlap of 0.9 or less (`python tests/neurons/test_script_twins.py`).
    _, result, said = ran("hopfield")
    assert result["/overlap[1]", "y"][-1] > 0.9
    assert said[0].startswith("overlaps after ten sweeps")


def test_networks_spike(ran):
    _, result, _ = ran("olfactory_bulb")
    counts = [len(result.spikes(f"/bulb/mitral[{one}]/axon")) for one in range(12)]
    assert sum(counts) > 0
    _, result, _ = ran("inferior_olive")
    assert all(np.ptp(result[f"/olive/cell[{one}]/soma", "Vm"]) > 10 for one in range(6))


@pytest.mark.parametrize("name", ["piriform"])
def test_the_large_network_has_its_size(ran, name):
    interpreter, result, _ = ran(name)
    sim = interpreter.simulation
    assert len(sim.find("/net/pyramidal*")) == 400
    assert len(sim.find("/net/pyramidal*/*")) == 400 * 9
    assert len(sim.connections) == 400 * 50 + 50 * 40
    delays = [one.delay for one in sim.connections]
    assert min(delays) >= 1
    assert max(delays) <= 10
    n_spikes = sum(len(result.spikes(one)) for one in sim.find("/net/pyramidal*/axon"))
    assert n_spikes > 20


if __name__ == "__main__":
    failed = 0
    for seed in range(200):
        sim = Simulation()
        text = shipped_scripts()["hopfield"].read_text().replace("seed 1", f"seed {seed}")
        Interpreter(sim, output=lambda text: None).run_text(text)
        failed += sim.get("/overlap[1]", "y") <= 0.9
    print(f"{failed} of 200 seeds stayed at an overlap of 0.9 or less")
