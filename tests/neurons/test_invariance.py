"""Traces depend on the network alone: not on the order of creation, on names, on copies, on pauses or on files."""

import numpy as np
import pytest

from pluri.neurons import Simulation, SimulationError
from pluri.neurons.models import piriform, two_neurons


def plan(rng, n_cells=6):
    """A network as lists of what to create, link and connect; cells of three compartments, loops and random inputs."""
    create, link, connect = [], [], []
    for c in range(n_cells):
        create.append(("group", f"/cell[{c}]", {}))
        for name in ("soma", "left", "right"):
            kind = "active_compartment" if name == "soma" else "passive_compartment"
            fields = {"length": float(rng.uniform(20, 200)), "diameter": 3.0}
            if (c, name) == (0, "soma"):
                fields["inject"] = 0.5  # fires whatever the rest does
            create.append((kind, f"/cell[{c}]/{name}", fields))
        link += [(f"/cell[{c}]/left", f"/cell[{c}]/soma"), (f"/cell[{c}]/right", f"/cell[{c}]/soma")]
        create.append(("axon", f"/cell[{c}]/axon", {}))
        link.append((f"/cell[{c}]/soma", f"/cell[{c}]/axon"))
        for k in range(4):  # of equal parameters on one compartment: their sum depends on the order of its terms
            create.append(("synapse", f"/cell[{c}]/left/syn[{k}]", {"gmax": 0.003, "tau": 1.5}))
            link.append((f"/cell[{c}]/left/syn[{k}]", f"/cell[{c}]/left"))
    for s in range(5):
        create.append(("random_spikes", f"/fibre[{s}]", {"rate": 150.0, "stream": s + 1}))
    for c in range(n_cells):
        for k in range(4):
            source = f"/fibre[{rng.integers(5)}]" if rng.random() < 0.6 else f"/cell[{rng.integers(n_cells)}]/axon"
            wire = {"delay": float(rng.uniform(1, 5)), "weight": float(rng.uniform(0.3, 2.0))}
            connect.append((source, f"/cell[{c}]/left/syn[{k}]", wire))
            connect.append((source, f"/cell[{c}]/left/syn[{(k + 1) % 4}]", wire))
    return create, link, connect


def build(network, *, rng=None, rename=lambda path: path, method="exp_euler"):
    create, link, connect = ([*part] for part in network)
    if rng is not None:
        keys = {path: rng.random() for _, path, _ in create}
        # A parent comes before its children; everything else is shuffled.
        create.sort(key=lambda row: (row[1].count("/"), keys[row[1]]))
        rng.shuffle(link)
        rng.shuffle(connect)
        link = [pair if rng.random() < 0.5 or "axon" in pair[1] else pair[::-1] for pair in link]
    sim = Simulation(dt=0.05, method=method, random_state=3)
    for kind, path, fields in create:
        sim.create(kind, rename(path), **fields)
    for source, destination in link:
        sim.link(rename(source), rename(destination))
    for source, destination, wire in connect:
        sim.connect(rename(source), rename(destination), **wire)
    return sim


def traces(sim, pattern="/cell[*]/*", duration=60.0):
    for element in sim.find(pattern):
        if "Vm" in element.addresses:
            sim.record(element, "Vm")
    result = sim.run(duration)
    return {path: result[path, "Vm"] for path, _ in result.names}


@pytest.mark.parametrize("method", ["exp_euler", "crank_nicolson"])
def test_the_order_of_creation_changes_no_bit(method):
    network = plan(np.random.default_rng(0))
    expected = traces(build(network, method=method))
    assert max(v.max() for v in expected.values()) > 0
    for seed in range(4):
        found = traces(build(network, rng=np.random.default_rng(seed), method=method))
        for path, v in expected.items():
            assert np.array_equal(found[path], v), path


def test_names_change_no_bit():
    network = plan(np.random.default_rng(1))
    expected = traces(build(network))
    other = {"cell": "zelle", "soma": "body", "left": "b", "right": "a", "syn": "contact", "fibre": "input"}

    def rename(path):
        for old, new in other.items():
            path = path.replace(old, new)
        return path

    found = traces(build(network, rename=rename), "/zelle[*]/*")
    for path, v in expected.items():
        assert np.array_equal(found[rename(path)], v), path


def test_moving_and_copying_change_no_bit_of_the_others():
    network = plan(np.random.default_rng(2))
    expected = traces(build(network))
    sim = build(network)
    sim.copy("/cell[0]", "/cell[100]")
    sim.copy("/fibre[0]", "/fibre[100]")
    sim.move("/cell[1]", "/moved")
    sim.record("/moved/*", "Vm")
    found = traces(sim)
    for path, v in expected.items():
        assert np.array_equal(found[path.replace("/cell[1]/", "/moved/")], v), path


def test_a_copy_of_a_cell_does_what_the_original_does():
    sim = two_neurons()
    sim.copy("/net", "/copy")
    sim.link("/pulse", "/copy/a/soma")
    sim.record("/**", "Vm")
    result = sim.run(40.0)
    for path in ("a/soma", "b/soma", "b/dend"):
        assert np.array_equal(result[f"/net/{path}", "Vm"], result[f"/copy/{path}", "Vm"])


def test_random_sources_follow_the_random_state_and_copies_have_streams_of_their_own():
    def spikes(seed):
        sim = Simulation(random_state=seed)
        sim.create("random_spikes", "/a", rate=100.0)
        sim.copy("/a", "/b")
        result = sim.run(500.0)
        return result.spikes("/a"), result.spikes("/b")

    (a, b), (again, _), (other, _) = spikes(1), spikes(1), spikes(2)
    assert np.array_equal(a, again)
    assert not np.array_equal(a[:5], b[:5])
    assert not np.array_equal(a[:5], other[:5])


@pytest.mark.parametrize("pieces", [[60.0], [0.05] * 7 + [59.65], [13.0, 0.0, 47.0]])
def test_pauses_change_nothing(pieces):
    network = plan(np.random.default_rng(3), n_cells=3)
    expected = traces(build(network))
    sim = build(network)
    sim.record("/cell[*]/*", "Vm")
    for piece in pieces:
        sim.run(piece)
    result = sim.result()
    for path, v in expected.items():
        assert np.array_equal(result[path, "Vm"], v)
    assert sim.time == pytest.approx(60.0)


def test_saving_and_restoring_in_the_middle_changes_nothing(tmp_path):
    for sim in (piriform(8, 3, 3, 20, random_state=5), two_neurons()):
        sim.record("/**", "Vm")
        sim.run(18.0)
        sim.save(tmp_path / "file")
        other = Simulation.restore(tmp_path / "file")
        assert other.time == sim.time
        a, b = sim.run(15.0), other.run(15.0)
        assert a.names == b.names
        for key in a.names:
            assert np.array_equal(a[key], b[key])
        for one, two in zip(sim.result().raster(), other.result().raster()):
            assert np.array_equal(one, two)
        assert np.array_equal(sim.result().time, other.result().time)


def test_a_saved_network_that_has_not_run_runs_alike(tmp_path):
    sim = two_neurons()
    sim.record("/net/b/soma", "Vm")
    sim.save(tmp_path / "file")
    other = Simulation.restore(tmp_path / "file")
    assert np.array_equal(sim.run(20.0)["/net/b/soma", "Vm"], other.run(20.0)["/net/b/soma", "Vm"])


def test_reset_goes_back_to_the_beginning():
    sim = two_neurons()
    sim.record("/net/b/soma", "Vm")
    first = sim.run(30.0)["/net/b/soma", "Vm"]
    sim.reset()
    assert sim.time == 0
    assert sim.get("/net/b/soma", "Vm") == -65.0
    assert np.array_equal(sim.run(30.0)["/net/b/soma", "Vm"], first)


def test_a_change_in_the_middle_leaves_what_is_under_way():
    """A parameter without effect on the traces has the network compiled anew, and changes rounding at most."""
    runs = []
    for changes in (False, True):
        sim = two_neurons()
        sim.record("/net/b/soma", "Vm")
        sim.run(9.0)  # a spike is on its way to the second neuron
        if changes:
            sim.create("compartment", "/else")
            sim.set("/net/a/axon", "refractory", 1.5)
        sim.run(15.0)
        if changes:
            sim.set("/else", "capacitance", 2.0)
        sim.run(20.0)
        runs.append(sim.result()["/net/b/soma", "Vm"])
    assert np.abs(runs[0] - runs[1]).max() < 1e-6


def test_fields_are_views_of_the_arrays():
    sim = two_neurons(0.0)
    soma = sim.element("/net/a/soma")
    sim.run(1.0)
    soma.inject = 0.3
    sim.run(0.5)
    assert soma.Vm > -60
    soma["Vm"] = -70.0
    assert sim.network.arrays.cells.voltage.min() == -70.0
    sim.reset()
    assert soma.inject == 0.3


@pytest.mark.parametrize("damage", ["text", "zip", "state", "path", "class"])
def test_damaged_files_are_refused(tmp_path, damage):
    import json
    import zipfile

    sim = two_neurons()
    sim.run(1.0)
    place = tmp_path / "file"
    sim.save(place)
    if damage == "text":
        place.write_bytes(b"hello")
    else:
        with zipfile.ZipFile(place) as archive:
            content = {name: archive.read(name) for name in archive.namelist()}
        text = json.loads(content["network.json"])
        if damage == "zip":
            del content["network.json"]
        elif damage == "state":
            content["state.npy"] = content["connections.npy"]
        elif damage == "path":
            text["elements"][3]["path"] = "/nowhere/x"
        else:
            text["elements"][3]["class"] = "not_there"
        with zipfile.ZipFile(place, "w") as archive:
            for name, data in content.items():
                archive.writestr(name, json.dumps(text) if name == "network.json" else data)
    with pytest.raises(SimulationError):
        Simulation.restore(place)
