"""Graphical elements: what they hold without a screen, what matplotlib draws, and the layout and film of a page."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluri.neurons import Simulation, SimulationError
from pluri.neurons.graphics.film import SAMPLE, Film
from pluri.neurons.graphics.layout import output_layout, segments_of, short_names
from pluri.neurons.language import Interpreter


def patch(**settings):
    sim = Simulation(dt=0.05, **settings)
    sim.create("active_compartment", "/soma", length=20, diameter=20, inject=0.2)
    sim.create("axon", "/axon")
    sim.link("/soma", "/axon")
    return sim


def test_a_graph_holds_what_was_recorded_and_draws_it(tmp_path):
    sim = patch()
    graph = sim.graph("/soma", "Vm", title="Voltage")
    assert sim.graph("/soma", "Vm") is graph  # one trace, not two
    sim.graph("/soma", "n", name="gates")
    result = sim.run(20)
    times, values = graph.data()["/soma", "Vm"]
    np.testing.assert_array_equal(times, result.time)
    np.testing.assert_array_equal(values, result["/soma", "Vm"])
    sim.run(10)
    assert graph.data()["/soma", "Vm"][0][-1] == pytest.approx(30)
    for kind in ("png", "pdf", "svg"):
        graph.save(tmp_path / f"v.{kind}")
    assert (tmp_path / "v.png").read_bytes().startswith(b"\x89PNG")
    assert "Voltage" in (tmp_path / "v.svg").read_text()
    with pytest.raises(ValueError, match=r"must be a file of type \.png"):
        graph.save(tmp_path / "v.txt")
    sim.reset()
    assert len(graph.data()["/soma", "Vm"][0]) == 0


def test_a_picture_shows_the_values_that_were_recorded():
    from pluri.neurons.graphics.figure import draw_graph

    sim = patch()
    graph = sim.graph("/soma", "Vm")
    result = sim.run(20)
    (line,) = draw_graph(graph).axes[0].lines
    np.testing.assert_array_equal(line.get_xdata(), result.time)
    np.testing.assert_array_equal(line.get_ydata(), result["/soma", "Vm"])


def test_what_cannot_be_drawn_is_told():
    sim = patch()
    for call, says in (
        (lambda: sim.graph("/nothing", "Vm"), "/nothing"),
        (lambda: sim.graph("/soma", "Vmm"), "did you mean Vm"),
        (lambda: sim.graph("/soma", "length"), "does not change"),
        (lambda: sim.cell_view("/axon"), "no compartment"),
        (lambda: sim.cell_view("/soma", low=3, high=3), "low must be below high"),
        (lambda: sim.network_view("/soma"), "no source of spikes"),
        (lambda: sim.dialog("a", form="none"), "no form /output/none"),
        (lambda: (sim.form("f"), sim.form("f")), "already exists"),
        (lambda: (sim.form("Vm"), sim.graph("/soma", "Vm")), "already exists"),
    ):
        with pytest.raises(SimulationError, match=says):
            call()
    assert output_layout(sim)["graphs"] == []


def test_widgets_go_into_the_latest_form_and_changing_them_compiles_nothing():
    sim = patch()
    sim.dialog("early", value=2)
    sim.form("panel", title="Panel")
    sim.dialog("current", label="current", value=0.2, unit="nA", command="set /soma inject {value}")
    sim.toggle("switch", value=1)
    sim.button("go", form="controls", label="Go")
    forms = output_layout(sim)["forms"]
    assert [(form["title"], [one["label"] for one in form["widgets"]]) for form in forms] == [
        ("Controls", ["early", "Go"]),
        ("Panel", ["current", "switch"]),
    ]
    sim.step()
    network = sim.network
    sim.set("/output/panel/current", "value", "0.5")
    assert sim.element("/output/panel/switch").used(0) == 0
    sim.step()
    assert sim.network is network
    dialog = sim.element("/output/panel/current")
    assert dialog.used(" 0.25 ") == 0.25
    with pytest.raises(SimulationError, match="current must be a number, got 'much'"):
        dialog.used("much")
    with pytest.raises(SimulationError, match="must be 0 or 1"):
        sim.element("/output/panel/switch").used(3)


def test_scripts_and_widgets_set_each_other():
    said = []
    interpreter = Interpreter(patch(), output=said.append)
    interpreter.run_text(
        'form f\ndialog d -value 0.2 -command "set /soma inject {value}"\ntoggle t -command "echo {value}"\n'
        "set /output/f/d value 0.7\nset /output/f/t value 1\necho {getfield(/output/f/d, value) + 1}"
    )
    sim = interpreter.simulation
    assert sim.get("/soma", "inject") == 0.2  # a script that sets a widget does not use it
    widget = sim.element("/output/f/d")
    interpreter.run_action(widget.command, "d", widget.used("0.4"))
    assert sim.get("/soma", "inject") == 0.4
    toggle = sim.element("/output/f/t")
    interpreter.run_action(toggle.command, "t", toggle.used(0))
    assert said == ["1.7", "0"]


def test_graphical_elements_are_saved_and_restored(tmp_path):
    interpreter = Interpreter(patch())
    interpreter.run_text('graph /soma Vm -title "A title"\nform f\ndialog d -value 3 -unit mV\nstep -time 5')
    layout = output_layout(interpreter.simulation)
    interpreter.simulation.save(tmp_path / "a.npz")
    restored = Simulation.restore(tmp_path / "a.npz")
    assert output_layout(restored) == layout
    restored.run(5)
    interpreter.simulation.run(5)
    path = layout["graphs"][0]["path"]
    for one, other in zip(*(sim.element(path).data()["/soma", "Vm"] for sim in (restored, interpreter.simulation))):
        np.testing.assert_array_equal(one, other)


def tree_of(parents, lengths):
    sim = Simulation()
    sim.create("group", "/cell")
    for number, (parent, length) in enumerate(zip(parents, lengths)):
        sim.create("passive_compartment", f"/cell/c[{number}]", length=length, diameter=10.0 if number == 0 else 1.0)
        if number:
            sim.link(f"/cell/c[{number}]", f"/cell/c[{parent}]")
    return sim


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=40),
    st.lists(st.floats(1.5, 300), min_size=41, max_size=41),
)
def test_drawn_compartments_have_their_length_and_touch_their_neighbours(choices, lengths):
    parents = [0, *(choice % (number + 1) for number, choice in enumerate(choices))]
    sim = tree_of(parents, lengths)
    cells = sim.find("/cell/*")
    segments = segments_of(sim, cells)
    for number, (x0, y0, x1, y1, wide) in enumerate(segments):
        drawn = math.hypot(x1 - x0, y1 - y0)
        if number == 0 and lengths[0] <= 30:
            assert (drawn, wide) == (0, 10)  # a disc
            continue
        assert drawn == pytest.approx(lengths[number], rel=1e-9)
        if number:
            px0, py0, px1, py1, pwide = segments[parents[number]]
            gap = math.hypot(x0 - px1, y0 - py1)
            assert gap == pytest.approx(pwide / 2 if (px0, py0) == (px1, py1) else 0, abs=1e-6)


def test_compartments_without_a_shape_are_discs_in_a_row():
    sim = Simulation()
    for number in range(3):
        sim.create("compartment", f"/c[{number}]")
        if number:
            sim.link(f"/c[{number - 1}]", f"/c[{number}]")
    assert segments_of(sim, sim.find("/c*")) == [(x, 10, x, 10, 20) for x in (0, 30, 60)]


def test_cells_with_coordinates_are_drawn_there():
    sim = tree_of([0, 0, 1], [10, 20, 20])
    for number, (x, y) in enumerate([(5, 5), (20, 5), (40, 5)]):
        sim.set(f"/cell/c[{number}]", "x", x)
        sim.set(f"/cell/c[{number}]", "y", y)
    segments = segments_of(sim, sim.find("/cell/*"))
    np.testing.assert_allclose(segments[2], (30, 5, 50, 5, 1))


def test_a_film_in_pieces_is_the_film_of_the_whole():
    def views(sim):
        sim.graph("/soma", "Vm")
        sim.cell_view("/soma")
        sim.network_view("/axon")
        return output_layout(sim)

    whole, pieces = patch(), patch()
    layout = views(whole)
    whole.run(60)
    expected = Film.of(whole, layout).whole()
    film = Film(views(pieces))
    rng = np.random.default_rng(0)
    while pieces.time < 60 - 1e-9:
        film.add(pieces.run(min(float(rng.integers(1, 90)) * 0.05, 60 - pieces.time)))
    assert film.whole() == expected
    graph = expected["graphs"]["/output/Vm"]
    assert np.diff(graph["t"]).min() > 0.5 * SAMPLE
    assert graph["t"][-1] == pytest.approx(60)
    assert max(graph["v"][0]) > 20  # spikes are not lost
    assert len(expected["networks"]["/output/network"]["t"]) == len(whole.result().spikes("/axon")) > 2
    json.dumps(expected, allow_nan=False)
    first = film.since({})
    later = film.since(dict.fromkeys(film.ends(), 100))
    assert first["graphs"]["/output/Vm"]["t"][100:] == later["graphs"]["/output/Vm"]["t"]


def test_a_film_keeps_the_latest_and_counts_all(monkeypatch):
    monkeypatch.setattr("pluri.neurons.graphics.film.MOST_SAMPLES", 50)
    sim = patch()
    sim.graph("/soma", "Vm")
    film = Film(output_layout(sim))
    for _ in range(20):
        film.add(sim.run(1))
    strip = film.graphs["/output/Vm"]
    assert len(strip.times) <= 55
    assert strip.end >= 200
    assert strip.times[-1] == pytest.approx(20)
    assert film.whole()["begin"] == strip.times[0] > 10
    assert film.since({"/output/Vm": strip.end - 3})["graphs"]["/output/Vm"]["t"] == strip.times[-3:]


def test_short_names_leave_out_what_all_share():
    assert short_names(["/a/b/c"]) == ["c"]
    assert short_names(["/a/b", "/a/b/c"]) == ["b", "b/c"]
    assert short_names(["/x", "/y"]) == ["x", "y"]


def test_old_rows_are_let_go_in_runs_without_end():
    sim = patch()
    sim.record("/soma", "Vm")
    for _ in range(50):
        last = sim.run(1)
        sim.recording.forget(300)
    kept = sim.result()
    assert len(kept.time) <= 340
    assert kept.time[-1] == pytest.approx(50)
    np.testing.assert_array_equal(kept["/soma", "Vm"][-len(last.time) :], last["/soma", "Vm"])
    np.testing.assert_allclose(np.diff(kept.time), 0.05)
