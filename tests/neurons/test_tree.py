"""The tree: names, patterns, fields, messages, copies; and sentences for everything that is wrong."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluri.neurons import Element, Simulation, SimulationError, Slot, field, register_element
from pluri.neurons.models import two_neurons


def paths(elements):
    return [element.path for element in elements]


@pytest.fixture
def sim():
    return two_neurons()


def test_elements_have_names_parents_and_children(sim):
    soma = sim.element("/net/a/soma")
    assert (soma.name, soma.path, soma.parent.path, soma.class_name) == (
        "soma",
        "/net/a/soma",
        "/net/a",
        "active_compartment",
    )
    assert list(sim.element("/net/a").children) == ["soma", "dend", "axon"]
    assert sim.root.path == "/"
    assert sim.root.parent is None


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("/net/a/soma", ["/net/a/soma"]),
        ("/net/*/soma", ["/net/a/soma", "/net/b/soma"]),
        ("/net/a/*", ["/net/a/soma", "/net/a/dend", "/net/a/axon"]),
        ("/net/a/**", ["/net/a/soma", "/net/a/dend", "/net/a/dend/syn", "/net/a/axon"]),
        ("/**/syn", ["/net/a/dend/syn", "/net/b/dend/syn"]),
        ("/net/**/soma", ["/net/a/soma", "/net/b/soma"]),
        ("/net/a/s*", ["/net/a/soma"]),
        ("/net/a/./../b/axon", ["/net/b/axon"]),
        ("/nowhere/*", []),
        ("/", ["/"]),
    ],
)
def test_patterns_find_what_they_match_in_the_order_of_the_tree(sim, pattern, found):
    assert paths(sim.find(pattern)) == found


def test_relative_paths_begin_at_the_current_element(sim):
    sim.change_element("/net/a")
    assert sim.current == "/net/a"
    assert paths(sim.find("soma")) == ["/net/a/soma"]
    assert paths(sim.find("../b/*")) == ["/net/b/soma", "/net/b/dend", "/net/b/axon"]
    assert sim.create("group", "inside").path == "/net/a/inside"
    sim.delete("/net/a")
    assert sim.current == "/net"


def test_copies_take_over_fields_and_inner_messages_only(sim):
    n_links, n_wires = len(sim.links), len(sim.connections)
    sim.set("/net/b/soma", "gNa", 99.0)
    copy = sim.copy("/net/b", "/net/c")
    assert sim.get("/net/c/soma", "gNa") == 99.0
    assert paths(copy.below()) == [path.replace("/b", "/c") for path in paths(sim.element("/net/b").below())]
    assert len(sim.links) == n_links + 3
    assert len(sim.connections) == n_wires  # a -> b has one end outside
    sim.copy("/net", "/again")
    assert len(sim.connections) == n_wires + 1  # now both ends are inside
    assert sim.connections[-1].delay == 5


def test_copies_by_number_make_a_population(sim):
    cells = sim.copy("/net/a", "/net/cell", n=3)
    assert paths(cells) == [f"/net/cell[{i}]" for i in range(3)]
    assert paths(sim.find("/net/cell[1]/*")) == [f"/net/cell[1]/{name}" for name in ("soma", "dend", "axon")]
    assert paths(sim.find("/net/cell[*]/soma")) == [f"/net/cell[{i}]/soma" for i in range(3)]


def test_what_a_copy_leaves_out_is_listed(capsys):
    sim = two_neurons(verbose=1)
    capsys.readouterr()
    sim.copy("/net/b", "/net/c")
    assert capsys.readouterr().out == "not copied: /net/a/axon to /net/b/dend/syn\n"


def test_moving_keeps_messages_and_deleting_removes_them(sim):
    sim.move("/net/a", "/first")
    assert sim.connections[0].source.path == "/first/axon"
    n = len(sim.links)
    sim.delete("/first/soma")
    assert len(sim.links) == n - 3  # dendrite, axon, pulse
    sim.delete("/first")
    assert sim.connections == []
    assert not sim.exists("/first")
    sim.create("group", "/first")


def test_setting_by_pattern_sets_all_that_have_the_field_or_none(sim):
    sim.set("/net/**", "length", 30)
    assert {sim.get(path, "length") for path in ("/net/a/soma", "/net/b/dend")} == {30.0}
    with pytest.raises(SimulationError, match="length of /net/a/soma must be a positive number, got -1"):
        sim.set("/net/**", "length", -1)
    assert sim.get("/net/a/soma", "length") == 30.0


def test_fields_tell_value_unit_and_meaning(sim):
    one = sim.element("/net/a/soma").fields["gNa"]
    assert (one.value, one.unit, one.writable) == (120.0, "mS/cm^2", True)
    assert not sim.element("/net/a/soma").fields["area"].writable
    assert sim.element("/net/a/soma")["area"] == pytest.approx(np.pi * 400)


WRONG = {
    "class": (lambda s: s.create("axn", "/x"), "axn is no class of elements; did you mean axon"),
    "exists": (lambda s: s.create("group", "/net"), "/net already exists"),
    "unknown class": (
        lambda s: s.create("soma", "/x"),
        "soma is no class of elements; there are active_compartment, axon",
    ),
    "parent": (lambda s: s.create("group", "/nett/x"), "there is no element /nett; did you mean net"),
    "no parent": (lambda s: s.create("group", "/cell/x"), "there is no element /cell: create it first"),
    "name": (lambda s: s.create("group", "/3x"), "3x is no name of an element"),
    "root": (lambda s: s.create("group", "/"), "is no name of an element"),
    "empty": (lambda s: s.create("group", ""), "a path must be a string that is not empty"),
    "no string": (lambda s: s.element(None), "a path must be a string"),
    "field": (lambda s: s.create("axon", "/x", treshold=1), "has no field treshold; did you mean threshold"),
    "not a number": (lambda s: s.set("/net/a/soma", "length", "long"), "must be a positive number, got 'long'"),
    "nan": (lambda s: s.set("/net/a/soma", "Em", np.nan), "Em of /net/a/soma must be a number of at least -200"),
    "true": (lambda s: s.set("/net/a/soma", "length", True), "must be a positive number, got True"),
    "far": (lambda s: s.set("/net/a/soma", "Vm", 1000), "Vm of /net/a/soma must be a number of at least -200"),
    "output": (lambda s: s.set("/net/a/soma", "area", 3), "cannot be set"),
    "whole": (lambda s: s.set("/net/a/soma", "clock", 0.5), "clock of /net/a/soma must be an integer"),
    "no match": (lambda s: s.set("/nothing/*", "Vm", 0), "no element matches /nothing/"),
    "get": (lambda s: s.get("/net/a/some", "Vm"), "there is no element /net/a/some; did you mean soma"),
    "get field": (lambda s: s.get("/net/a", "Vm"), r"/net/a \(group\) has no field Vm"),
    "link": (lambda s: s.link("/net/a/axon", "/net/b/soma"), "cannot link /net/a/axon .* the first gives spike"),
    "itself": (lambda s: s.link("/net/a/soma", "/net/a/soma"), "cannot be linked to itself"),
    "twice": (lambda s: s.link("/net/a/soma", "/net/a/dend"), "are linked already"),
    "connect": (lambda s: s.connect("/net/a/soma", "/net/b/dend/syn"), "cannot connect"),
    "delay": (lambda s: s.connect("/net/a/axon", "/net/b/dend/syn", delay=-1), "delay must be a number of at least 0"),
    "weight": (lambda s: s.connect("/net/a/axon", "/net/b/dend/syn", weight=np.inf), "weight must be a finite number"),
    "slot": (lambda s: s.link("/net/a/soma.axail", "/net/b/soma"), "has no slot axail; did you mean axial"),
    "copy": (lambda s: s.copy("/net/a", "/net/b"), "/net/b already exists"),
    "copies": (lambda s: s.copy("/net/a", "/net/c", n=0), "n must be an integer of at least 1, got 0"),
    "numbered": (lambda s: s.copy("/net/a", "/net/c[1]", n=2), "has a number already"),
    "move": (lambda s: s.move("/net", "/net/a/net"), "/net cannot be moved below itself"),
    "move root": (lambda s: s.move("/", "/x"), "the root cannot be moved"),
    "delete root": (lambda s: s.delete("/"), "the root cannot be deleted"),
    "delete": (lambda s: s.delete("/net/z"), "there is no element /net/z"),
    "pairs": (
        lambda s: s.connect_all(["/net/a/axon"] * 2, ["/net/b/dend/syn"] * 3),
        "sources must be one element or 3",
    ),
    "dt": (lambda s: Simulation(dt=0), "dt must be a positive number, got 0"),
    "method": (lambda s: Simulation(method="crank_nicholson"), "did you mean crank_nicolson"),
    "clock": (lambda s: s.set_clock(1, 0.015), "must be a whole multiple of the time step"),
    "clock number": (lambda s: s.set_clock(-1, 1), "a clock must be from 0 to 63"),
    "record": (lambda s: s.record("/net/a/soma", "length"), "does not change in a run"),
    "record field": (lambda s: s.record("/net/a/soma", "Vn"), "has no field Vn; did you mean"),
    "duration": (lambda s: s.run(-1), "duration must be a number of at least 0"),
    "steps": (lambda s: s.step(1.5), "n_steps must be an integer of at least 0"),
    "other tree": (lambda s: s.get(two_neurons().element("/net"), "clock"), "is no element of this simulation"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_in_a_sentence_and_changes_nothing(sim, case):
    act, message = WRONG[case]
    before = (paths(sim.root.below()), len(sim.links), len(sim.connections))
    with pytest.raises(SimulationError, match=message):
        act(sim)
    assert (paths(sim.root.below()), len(sim.links), len(sim.connections)) == before


def test_a_deleted_element_is_refused(sim):
    soma = sim.element("/net/a/soma")
    sim.delete("/net/a")
    with pytest.raises(SimulationError, match="is no element of this simulation"):
        sim.link(soma, "/net/b/soma")


def test_a_slot_is_named_where_several_would_do():
    sim = Simulation()
    sim.create("compartment", "/a")
    sim.create("graded_synapse", "/a/inhibition")
    sim.link("/a/inhibition", "/a")
    sim.link("/a", "/a/inhibition.presynaptic")
    assert [link.destination_slot for link in sim.links] == ["channel", "presynaptic"]


def test_a_field_cannot_hide_an_attribute():
    class Bad(Element):
        path = field(1.0)

    with pytest.raises(SimulationError, match="path cannot be a field of bad"):
        register_element(Bad)
    with pytest.raises(SimulationError, match="needs a subclass of Element"):
        register_element(Slot)


@given(st.text(max_size=12))
def test_any_text_as_a_path_is_an_element_or_a_sentence(text):
    sim = Simulation()
    try:
        sim.create("group", text)
    except SimulationError:
        assert len(sim.root.below()) == 1
    else:
        assert sim.exists(text)
    with contextlib.suppress(SimulationError):
        sim.find(text)
        sim.link(text, text)
