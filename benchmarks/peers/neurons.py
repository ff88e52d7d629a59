"""Speed of `pluri.neurons` beside NEURON, brian2 and Arbor; the cost of a large network; memory.

    python benchmarks/peers/neurons.py                                    # what is installed here
    python benchmarks/peers/neurons.py --peers-python /path/to/python     # peers in an environment of their own
    python benchmarks/peers/neurons.py --brian-python /path/to/python     # brian2 2.9 needs one with NumPy 1
    python benchmarks/peers/neurons.py --quick                            # without brian2, which compiles for long
    python benchmarks/peers/neurons.py --picture scaling.png              # cost by cells and connections, as a picture

100 Hodgkin-Huxley neurons for 1 s at 0.025 ms, on one thread, each with its own current. A ratio is printed only
if every neuron has the same number of spikes in both, give or take the one that may fall on the last step. brian2
moves gates and voltages from the same moment, and pluri gates first: there, each must have the number of spikes that
its order gives in NumPy (`in_numpy`), and the two orders must come together when the step is a quarter of it.

Each library runs in a process of its own, and the best of three runs counts; "first" is from the start of Python to the
last spike on an empty cache of compiled code, with what compilers take. Times are CPU seconds, but for two threads.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

N_CELLS, DURATION, DT = 100, 1000.0, 0.025
CURRENTS = [0.09 + 0.0015 * i for i in range(N_CELLS)]  # nA into 400 pi um^2


def cpu() -> float:
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def run_pluri(method: str = "exp_euler") -> dict[str, object]:
    from pluri.neurons import Simulation

    sim = Simulation(dt=DT, method=method)
    for i, current in enumerate(CURRENTS):
        sim.create("active_compartment", f"/c[{i}]", length=20, diameter=20, inject=current)
        sim.create("axon", f"/c[{i}]/axon")
        sim.link(f"/c[{i}]", f"/c[{i}]/axon")
    times = []
    for _ in range(3):
        sim.reset()
        sim.step(1)
        sim.reset()
        began = time.process_time()
        result = sim.run(DURATION)
        times.append(time.process_time() - began)
    return {"cpu": min(times), "spikes": [len(result.spikes(f"/c[{i}]/axon")) for i in range(N_CELLS)]}


def first_pluri() -> dict[str, object]:
    from pluri.neurons import Simulation

    sim = Simulation(dt=DT)
    for i, current in enumerate(CURRENTS):
        sim.create("active_compartment", f"/c[{i}]", length=20, diameter=20, inject=current)
        sim.create("axon", f"/c[{i}]/axon")
        sim.link(f"/c[{i}]", f"/c[{i}]/axon")
    result = sim.run(DURATION)
    spikes = [len(result.spikes(f"/c[{i}]/axon")) for i in range(N_CELLS)]
    return {"cpu": cpu(), "spikes": spikes}


def run_neuron() -> dict[str, object]:
    from neuron import h

    h.load_file("stdrun.hoc")
    h.celsius, h.dt, h.steps_per_ms = 6.3, DT, 1 / DT
    cells, counters, clamps = [], [], []
    for i, current in enumerate(CURRENTS):
        cell = h.Section(name=f"c{i}")
        cell.L = cell.diam = 20
        cell.insert("hh")
        cell(0.5).hh.el = -54.387
        cell.ena, cell.ek = 50, -77
        clamp = h.IClamp(cell(0.5))
        clamp.delay, clamp.dur, clamp.amp = 0, 1e9, current
        counter = h.APCount(cell(0.5))
        counter.thresh = 0
        cells.append(cell)
        counters.append(counter)
        clamps.append(clamp)
    times = []
    for _ in range(3):
        h.finitialize(-65)
        began = time.process_time()
        h.continuerun(DURATION)
        times.append(time.process_time() - began)
    return {"cpu": min(times), "spikes": [int(one.n) for one in counters]}


def first_brian2() -> dict[str, object]:
    import brian2 as b

    b.prefs.codegen.target = "cython"
    b.prefs.codegen.runtime.cython.cache_dir = tempfile.mkdtemp()
    b.defaultclock.dt = DT * b.ms
    equations = """
    dv/dt = (I - gna*m**3*h*(v - 50*mV) - gk*n**4*(v + 77*mV) - gl*(v + 54.387*mV))/C : volt
    dm/dt = 1/exprel(-(v/mV + 40)/10)/ms*(1 - m) - 4*exp(-(v/mV + 65)/18)/ms*m : 1
    dh/dt = 0.07*exp(-(v/mV + 65)/20)/ms*(1 - h) - 1/(1 + exp(-(v/mV + 35)/10))/ms*h : 1
    dn/dt = 0.1/exprel(-(v/mV + 55)/10)/ms*(1 - n) - 0.125*exp(-(v/mV + 65)/80)/ms*n : 1
    I : amp
    """
    area = 400 * 3.141592653589793e-8 * b.cm**2
    space = {
        "gna": 120 * b.msiemens / b.cm**2 * area, "gk": 36 * b.msiemens / b.cm**2 * area,
        "gl": 0.3 * b.msiemens / b.cm**2 * area, "C": 1 * b.ufarad / b.cm**2 * area,
    }  # fmt: skip
    group = b.NeuronGroup(
        N_CELLS, equations, method="exponential_euler", threshold="v > 0*mV", refractory="v > 0*mV", namespace=space
    )
    group.v, group.m, group.h, group.n = -65 * b.mV, 0.05293, 0.59612, 0.31768
    group.I = [current * 1e-9 for current in CURRENTS] * b.amp
    spikes = b.SpikeMonitor(group)
    b.run(DURATION * b.ms)
    first = cpu()
    began = time.process_time()
    b.run(DURATION * b.ms)
    counts = [int((spikes.t[spikes.i == i] < DURATION * b.ms).sum()) for i in range(N_CELLS)]
    return {"cpu": first, "again": time.process_time() - began, "spikes": counts}


def run_arbor() -> dict[str, object]:
    import arbor as a

    class Recipe(a.recipe):
        def __init__(self) -> None:
            a.recipe.__init__(self)
            self.properties = a.neuron_cable_properties()
            self.properties.catalogue = a.default_catalogue()

        def num_cells(self) -> int:
            return N_CELLS

        def cell_kind(self, gid: int) -> object:
            return a.cell_kind.cable

        def cell_description(self, gid: int) -> object:
            tree = a.segment_tree()
            tree.append(a.mnpos, a.mpoint(-10, 0, 0, 10), a.mpoint(10, 0, 0, 10), tag=1)
            labels = a.label_dict({"soma": "(tag 1)", "middle": "(location 0 0.5)"})
            decor = a.decor().set_property(Vm=-65 * a.units.mV, cm=0.01 * a.units.F / a.units.m2)
            decor = decor.set_property(tempK=279.45 * a.units.Kelvin)
            decor = decor.paint('"soma"', a.density("hh", {"el": -54.387}))
            decor = decor.place('"middle"', a.i_clamp(0 * a.units.ms, 1e6 * a.units.ms, CURRENTS[gid] * a.units.nA))
            decor = decor.place('"middle"', a.threshold_detector(0 * a.units.mV), "d")
            return a.cable_cell(tree, decor, labels)

        def global_properties(self, kind: object) -> object:
            return self.properties

    recipe = Recipe()
    sim = a.simulation(recipe, a.context(threads=1))
    sim.record(a.spike_recording.local)  # in the wheel of 0.12.2, which has no MPI, "all" records none
    began = time.process_time()
    sim.run(tfinal=DURATION * a.units.ms, dt=DT * a.units.ms)
    taken = time.process_time() - began
    counts = [0] * N_CELLS
    for gid in sim.spikes()["source"]["gid"].tolist():
        counts[gid] += 1
    return {"cpu": taken, "spikes": counts}


def piriform_cost() -> dict[str, object]:
    from pluri.neurons.models import piriform

    rows = []
    for scale, n_inputs in ((1, 20), (2, 20), (4, 20), (8, 20), (1, 80), (1, 320), (1, 640)):
        sim = piriform(400 * scale, 50 * scale, 50 * scale, 500 * scale, n_inputs, random_state=0)
        if n_inputs > 20:  # as much drive as with 20 inputs
            sim.set("/**/excitation", "gmax", 0.002 * 20 / n_inputs)
            sim.set("/**/inhibition", "gmax", 0.004 * 20 / n_inputs)
        sim.step(400)
        began = time.process_time()
        sim.step(2000)
        rows.append([500 * scale, len(sim.connections), (time.process_time() - began) / 2000 * 1e3])
    return {"rows": rows}


def memory() -> dict[str, object]:
    from pluri.neurons import Simulation

    sim = Simulation(random_state=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sources = [sim.create("random_spikes", f"/s[{i}]") for i in range(100)]
    synapses = []
    for i in range(1000):
        cell = sim.create("active_compartment", f"/c[{i}]")
        for k in range(100):
            synapse = sim.create("synapse", f"/c[{i}]/s[{k}]", gmax=1e-5)
            sim.link(synapse, cell)
            synapses.append(synapse)
    sim.connect_all([sources[i % 100] for i in range(len(synapses))], synapses, delay=2.0)
    sim.step(200)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"synapses": len(synapses), "megabytes": peak, "before": before}


def two_threads() -> dict[str, object]:
    """Wall seconds of 4 and 16 repeats of networks of several sizes, on one thread and on two."""
    from pluri.neurons import Simulation, run_all
    from pluri.neurons.models import piriform

    def make(scale: int, seed: int) -> Simulation:
        return piriform(4 * scale, scale, scale, 5 * scale, random_state=seed)

    rows = []
    for scale, duration, n in (
        (1, 10.0, 4),
        (1, 100.0, 4),
        (1, 1000.0, 4),
        (10, 100.0, 4),
        (10, 100.0, 16),
        (100, 100.0, 4),
    ):
        taken = {1: 1e9, 2: 1e9}
        for _ in range(3):
            for n_jobs in taken:
                simulations = [make(scale, seed) for seed in range(n)]
                for one in simulations:
                    one.compile()
                began = time.perf_counter()
                run_all(simulations, duration, n_jobs=n_jobs)
                taken[n_jobs] = min(taken[n_jobs], time.perf_counter() - began)
        rows.append([6 * scale, duration, n, taken[1], taken[2]])
    return {"rows": rows}


def first_network(kind: str) -> dict[str, object]:
    """The first ten milliseconds of a network that needs a make of the compiled loop, on an empty cache."""
    from pluri.neurons.models import half_centre, hodgkin_huxley_patch, hopfield, two_neurons

    if kind == "units":
        sim = hopfield([[1, -1] * 10])
    else:
        made = {"cells": hodgkin_huxley_patch, "slow clocks": hodgkin_huxley_patch, "graded synapses": half_centre}
        sim = made.get(kind, two_neurons)()
    if kind == "slow clocks":
        sim.set_clock(1, 0.05)
        sim.set("/patch", "clock", 1)
    if kind == "synapses that learn":
        sim.create("hebbian_synapse", "/learns")
        sim.link("/learns", "/net/b/dend")
    sim.run(10.0)
    return {"cpu": cpu()}


MAKES = ("cells", "synapses and wires", "graded synapses", "units", "synapses that learn", "slow clocks")

RUNS = {
    **{f"first, {kind}": (lambda kind=kind: first_network(kind)) for kind in MAKES},
    "pluri": run_pluri,
    "pluri, backward Euler": lambda: run_pluri("backward_euler"),
    "NEURON": run_neuron,
    "Arbor": run_arbor,
    "pluri, first": first_pluri,
    "brian2, first": first_brian2,
    "piriform": piriform_cost,
    "memory": memory,
    "orders": lambda: orders(),
    "two threads": two_threads,
}


def in_process(name: str, python: str) -> dict[str, object] | None:
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ)
        if "first" in name:
            environment["NUMBA_CACHE_DIR"] = cache
        done = subprocess.run(
            [python, __file__, "--run", name], capture_output=True, text=True, env=environment, check=False
        )
    if done.returncode:
        print(f"{name}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}", flush=True)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def in_numpy(together: bool, dt: float) -> list[int]:
    """Numbers of spikes by exponential Euler; gates and voltage move from the same moment, or gates first."""
    import numpy as np

    area = 400 * np.pi * 1e-8
    v = np.full(N_CELLS, -65.0)
    m, h, n = np.full(N_CELLS, 0.05293), np.full(N_CELLS, 0.59612), np.full(N_CELLS, 0.31768)
    current = np.array(CURRENTS) * 1e-3 / area  # uA/cm^2
    above, counts = v > 0, np.zeros(N_CELLS, dtype=int)

    def vtrap(x: np.ndarray) -> np.ndarray:
        return np.where(np.abs(x) < 1e-9, 1.0, x / -np.expm1(-np.where(x == 0, 1.0, x)))

    for _ in range(round(DURATION / dt)):
        old = m, h, n
        rates = (
            (vtrap((v + 40) / 10), 4 * np.exp(-(v + 65) / 18)),
            (0.07 * np.exp(-(v + 65) / 20), 1 / (1 + np.exp(-(v + 35) / 10))),
            (0.1 * vtrap((v + 55) / 10), 0.125 * np.exp(-(v + 65) / 80)),
        )
        m, h, n = (a / (a + b) + (x - a / (a + b)) * np.exp(-dt * (a + b)) for x, (a, b) in zip(old, rates))
        am, ah, an = old if together else (m, h, n)
        sodium, potassium = 120 * am**3 * ah, 36 * an**4
        total = sodium + potassium + 0.3
        settled = (50 * sodium - 77 * potassium - 54.387 * 0.3 + current) / total
        v = settled + (v - settled) * np.exp(-dt * total)
        counts += (v > 0) & ~above
        above = v > 0
    return counts.tolist()


def orders() -> dict[str, object]:
    found = {f"{name} {dt:g}": in_numpy(together, dt) for name, together in (("together", True), ("gates first", False))
             for dt in (DT, DT / 4)}  # fmt: skip
    return {"spikes": found}


def apart(first: list[int], second: list[int]) -> int:
    return max(abs(a - b) for a, b in zip(first, second))


def same(first: dict[str, object], second: dict[str, object]) -> str:
    """Largest difference of the numbers of spikes; empty if it is at most one, of 59 to 85."""
    worst = apart(first["spikes"], second["spikes"])  # type: ignore[arg-type]
    return "" if worst <= 1 else f" (numbers of spikes differ by up to {worst})"


def same_by_order(first: dict[str, object], second: dict[str, object]) -> str:
    """Empty if both libraries have the spikes of their own order in NumPy, and the orders agree at a quarter step."""
    counts: dict[str, list[int]] = in_process("orders", sys.executable)["spikes"]  # type: ignore[index, assignment]
    rows = (
        ("pluri and its order", first["spikes"], counts[f"gates first {DT:g}"]),
        ("brian2 and its order", second["spikes"], counts[f"together {DT:g}"]),
        ("both orders at a quarter of the step", counts[f"gates first {DT / 4:g}"], counts[f"together {DT / 4:g}"]),
        ("both orders", counts[f"gates first {DT:g}"], counts[f"together {DT:g}"]),
    )
    worst = {name: apart(a, b) for name, a, b in rows}  # type: ignore[arg-type]
    print(f"    spikes of all neurons: pluri {sum(first['spikes'])}, brian2 {sum(second['spikes'])}")  # type: ignore[call-overload]
    print("    largest difference of a neuron: " + ", ".join(f"{name} {value}" for name, value in worst.items()))
    worst.pop("both orders")
    return "" if max(worst.values()) <= 1 else " (not the same work)"


def picture(rows: list[list[float]], path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained", sharey=True)
    for ax, column, chosen, label in (
        (axes[0], 0, rows[:4], "cells (20 connections each)"),
        (axes[1], 1, [rows[0], *rows[4:]], "connections (500 cells)"),
    ):
        ax.plot([row[column] for row in chosen], [row[2] for row in chosen], "o-")
        ax.set(xlabel=label, xlim=(0, None), ylim=(0, None))
    axes[0].set_ylabel("CPU ms per step")
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--brian-python", default=None, help="brian2 2.9 needs NumPy 1")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--picture")
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(RUNS[options.run]()))
        return
    ours = in_process("pluri", sys.executable)
    implicit = in_process("pluri, backward Euler", sys.executable)
    assert ours is not None
    assert implicit is not None
    print(f"100 Hodgkin-Huxley neurons, 1 s: pluri {ours['cpu']:.3f}, backward Euler {implicit['cpu']:.3f}", flush=True)
    for name in ("NEURON", "Arbor"):
        peer = in_process(name, options.peers_python)
        if peer is not None:
            different = same(implicit, peer) and same(ours, peer)
            ratio = (
                different
                or f", ratio {peer['cpu'] / implicit['cpu']:.1f} (default method {peer['cpu'] / ours['cpu']:.1f})"
            )
            print(f"    {name} {peer['cpu']:.3f}{ratio}", flush=True)
    first = in_process("pluri, first", sys.executable)
    assert first is not None
    print(f"first run on an empty cache: pluri {first['cpu']:.2f}", flush=True)
    if not options.quick:
        peer = in_process("brian2, first", options.brian_python or options.peers_python)
        if peer is not None:
            ratio = same_by_order(first, peer) or f", ratio {peer['cpu'] / first['cpu']:.1f}"
            print(f"    brian2 {peer['cpu']:.2f}{ratio}; its second run {peer['again']:.2f}", flush=True)
    for kind in MAKES:
        print(f"first run with {kind}: {(in_process(f'first, {kind}', sys.executable) or {})['cpu']:.2f}", flush=True)
    for cells, duration, n, one, two in (in_process("two threads", sys.executable) or {"rows": []})["rows"]:  # type: ignore[attr-defined]
        print(
            f"{n} runs of {cells} cells for {duration:g} ms: {one:.4f} s on one thread, {two:.4f} s on two", flush=True
        )
    cost = in_process("piriform", sys.executable)
    assert cost is not None
    for cells, connections, each in cost["rows"]:  # type: ignore[attr-defined]
        print(f"piriform: {cells:5d} cells, {connections:7d} connections: {each:.4f} CPU ms a step", flush=True)
    if options.picture:
        picture(cost["rows"], options.picture)  # type: ignore[arg-type]
    used = in_process("memory", sys.executable)
    if used is not None:
        print(f"{used['synapses']} synapses: {used['megabytes']:.0f} MB at most, {used['before']:.0f} MB before")


if __name__ == "__main__":
    main()
