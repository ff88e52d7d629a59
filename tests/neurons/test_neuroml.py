"""Cells as NeuroML: read back with the formulas of its schema, what they were is there."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from pluri.neurons import Simulation, SimulationError
from pluri.neurons.library.hodgkin_huxley import POTASSIUM, SODIUM, rate
from pluri.neurons.models import branched_tree, cable, half_centre, two_neurons, write_neuroml

SPACE = {"n": "http://www.neuroml.org/schema/neuroml2"}


def written(sim, path, tmp_path):
    write_neuroml(sim, path, tmp_path / "cell.nml")
    return ElementTree.parse(tmp_path / "cell.nml").getroot()


def number(text):
    return float(text.split()[0])


def rate_of(node, v):
    """The three forms, as the schema defines them."""
    size, x = number(node.get("rate")), (v - number(node.get("midpoint"))) / number(node.get("scale"))
    if node.get("type") == "HHExpRate":
        return size * np.exp(x)
    if node.get("type") == "HHSigmoidRate":
        return size / (1 + np.exp(-x))
    return size * x / (1 - np.exp(-x))


def active_cell():
    sim = two_neurons()
    sim.set("/net/a/soma", "gNa", 100.0)
    own = {"p": 2, "q": 1, "m_alpha": (0.5, 0, 0, 30, -9), "m_beta": (1.5, 0, 3.0, 20, 7), "E": -90.0, "gbar": 0.01}
    sim.create("channel", "/net/a/dend/x", h_alpha=SODIUM[1].alpha, h_beta=SODIUM[1].beta, **own)
    sim.link("/net/a/dend/x", "/net/a/dend")
    return sim


def test_channels_have_their_rates_powers_and_densities(tmp_path):
    sim = active_cell()
    root = written(sim, "/net/a", tmp_path)
    dend, v = sim.element("/net/a/dend"), np.linspace(-90, 40, 53) + 0.123
    expected = {"hh_sodium": SODIUM, "hh_potassium": POTASSIUM}
    found = {one.get("id"): one for one in root.findall("n:ionChannelHH", SPACE)}
    own = next(name for name in found if name not in expected)
    x = sim.element("/net/a/dend/x")
    expected[own] = [(x.m_alpha, x.m_beta), (x.h_alpha, x.h_beta)]
    powers = {"hh_sodium": [3, 1], "hh_potassium": [4], own: [2, 1]}
    assert set(found) == set(expected)
    for name, gates in expected.items():
        nodes = found[name].findall("n:gateHHrates", SPACE)
        assert [int(one.get("instances")) for one in nodes] == powers[name]
        for node, gate in zip(nodes, gates):
            for child, coefficients in zip(node, gate):
                assert rate_of(child, v) == pytest.approx(rate(coefficients, v), rel=1e-9)
    densities = {}
    for one in root.iter(f"{{{SPACE['n']}}}channelDensity"):
        assert one.get("condDensity").endswith(" mS_per_cm2")
        densities[one.get("ionChannel"), one.get("segmentGroup")] = (
            number(one.get("condDensity")),
            number(one.get("erev")),
        )
    assert densities == {
        ("passive", "group_0"): (0.3, -54.387),
        ("hh_sodium", "group_0"): (100.0, 50.0),
        ("hh_potassium", "group_0"): (36.0, -77.0),
        ("passive", "group_1"): (0.1, -65.0),
        (own, "group_1"): (pytest.approx(0.01 / (1e-5 * dend.area)), -90.0),
    }


@pytest.mark.parametrize(("make", "path"), [(lambda: branched_tree(3, per_branch=4), "/tree"), (lambda: cable(9), "/")])
def test_morphologies_have_their_lengths_diameters_and_couplings(tmp_path, make, path):
    sim = make()
    root = written(sim, path, tmp_path)
    segments = {int(one.get("id")): one for one in root.iter(f"{{{SPACE['n']}}}segment")}
    cells = [one for one in sim.root.below() if "Vm" in one.addresses]
    assert len(segments) == len(cells)
    shapes, couplings = [], set()
    for one in segments.values():
        ends = [
            np.array([float(one.find(f"n:{name}", SPACE).get(axis)) for axis in "xyz"])
            for name in ("proximal", "distal")
        ]
        width = {float(one.find(f"n:{name}", SPACE).get("diameter")) for name in ("proximal", "distal")}
        shapes.append((np.linalg.norm(ends[1] - ends[0]), *width))
        above = one.find("n:parent", SPACE)
        if above is not None:
            couplings.add(frozenset((one.get("name"), segments[int(above.get("segment"))].get("name"))))
            place = segments[int(above.get("segment"))].find("n:distal", SPACE)
            assert ends[0] == pytest.approx([float(place.get(axis)) for axis in "xyz"])
    assert np.sort(np.array(shapes), axis=0) == pytest.approx(np.sort([(c.length, c.diameter) for c in cells], axis=0))

    def name(element):
        return "".join(c if c.isalnum() else "_" for c in element.path).strip("_")

    assert couplings == {frozenset((name(one.source), name(one.destination))) for one in sim.links}
    assert sum(len(one) for one in root.iter(f"{{{SPACE['n']}}}segmentGroup")) == len(cells)


def own_kinetics(sim):
    sim.create("rebound_channel", "/net/a/dend/own", gbar=0.01)
    sim.link("/net/a/dend/own", "/net/a/dend")


@pytest.mark.parametrize(
    ("make", "path", "message"),
    [
        (half_centre, "/left", r"/left \(compartment\) has no length and diameter"),
        (two_neurons, "/net", "/net/b/soma is not coupled to /net/a/soma"),
        (two_neurons, "/pulse", "there are no compartments at /pulse"),
        (two_neurons, "/nowhere", "there is no element /nowhere"),
    ],
)
def test_what_is_no_cell_of_neuroml_is_told(tmp_path, make, path, message):
    with pytest.raises(SimulationError, match=message):
        write_neuroml(make(), path, tmp_path / "cell.nml")
    assert not (tmp_path / "cell.nml").exists()


def test_rates_that_neuroml_does_not_have_are_told(tmp_path):
    sim = two_neurons()
    own_kinetics(sim)
    with pytest.raises(SimulationError, match="/net/a/dend/own has kinetics of its own"):
        write_neuroml(sim, "/net/a", tmp_path / "cell.nml")
    sim.delete("/net/a/dend/own")
    sim.create("channel", "/net/a/dend/x", gbar=1.0, m_alpha=(1.0, 0.5, 1.0, 0, 1.0), m_beta=(1.0, 0, 0, 0, 1.0))
    sim.link("/net/a/dend/x", "/net/a/dend")
    with pytest.raises(SimulationError, match="none of the forms that NeuroML has"):
        write_neuroml(sim, "/net/a", tmp_path / "cell.nml")
    sim = Simulation()
    for i in range(3):
        sim.create("passive_compartment", f"/c[{i}]")
    for i in range(3):
        sim.link(f"/c[{i}]", f"/c[{(i + 1) % 3}]")
    with pytest.raises(SimulationError, match="form a cycle"):
        write_neuroml(sim, "/", tmp_path / "cell.nml")


def test_files_are_valid_by_the_schema_of_libneuroml(tmp_path):
    neuroml = pytest.importorskip("neuroml", reason="libNeuroML, which brings the schema, is not installed")
    etree = pytest.importorskip("lxml.etree", reason="lxml, which checks the schema, is not installed")
    schema = etree.XMLSchema(etree.parse(Path(neuroml.__file__).parent / "nml" / "NeuroML_v2.3.xsd"))
    for sim, path in ((active_cell(), "/net/a"), (cable(5), "/"), (branched_tree(2, per_branch=2), "/tree")):
        write_neuroml(sim, path, tmp_path / "cell.nml")
        schema.assertValid(etree.parse(tmp_path / "cell.nml"))
