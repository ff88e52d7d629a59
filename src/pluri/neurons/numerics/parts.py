"""Arrays of compartments, channels, synapses and stimuli."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pluri.neurons.library.compartments import ActiveCompartment, IntegrateAndFire
from pluri.neurons.numerics.assembling import Assembly
from pluri.neurons.numerics.records import (
    CRANK_NICOLSON,
    FAMILIES,
    N_NODES,
    Array,
    Cells,
    Channels,
    Graded,
    Plastic,
    Stimuli,
    Synapses,
)

#: With more kinds of channels than this, rates are evaluated: tables would be larger than the fast memory by far.
MOST_TABLES = 64
TABLES: dict[Any, Array] = {}


def integers(values: Any) -> Array:
    """Whole numbers of the one type that all loops have."""
    return np.array(values, dtype=np.int64).reshape(-1)


def numbers(values: Any) -> Array:
    """Numbers of the one type that all loops have."""
    return np.array(values, dtype=np.float64).reshape(-1)


def views(assembly: Assembly, family: str) -> list[Array]:
    """Blocks of a family, in their order."""
    return [assembly.layout.block(assembly.state, block) for block in FAMILIES[family]]


def begins(keys: list[Any]) -> tuple[Array, list[int]]:
    """Where runs of equal keys begin (and the last one ends), and the place of the first of each run."""
    first = [i for i, key in enumerate(keys) if i == 0 or key != keys[i - 1]]
    return integers([*first, len(keys)]), first


def make_cells(assembly: Assembly) -> Cells:
    """Arrays of compartments, their voltages and injected currents at the initial values."""
    forest = assembly.forest
    voltage, inject, total, push = views(assembly, "compartment")
    for i, one in enumerate(forest.members):
        voltage[i], inject[i] = _kept(one, "Vm"), _kept(one, "inject")
    leak = numbers([one.leak for one in forest.electrical])
    conductance = leak.copy()
    for i, above in enumerate(forest.parent.tolist()):
        if above >= 0:
            conductance[i] += forest.axial[i]
            conductance[above] += forest.axial[i]
    for start, end, axial in forest.loops:
        conductance[start] += axial
        conductance[end] += axial
    drive = leak * numbers([one.reversal for one in forest.electrical])
    period = integers([assembly.ticks(one) for one in forest.members])
    return Cells(
        voltage,
        inject,
        numbers([one.capacitance for one in forest.electrical]),
        conductance,
        drive,
        forest.parent,
        forest.axial,
        integers([loop[0] for loop in forest.loops]),
        integers([loop[1] for loop in forest.loops]),
        numbers([loop[2] for loop in forest.loops]),
        total,
        push,
        period if (period > 1).any() else None,
    )


def _kept(element: Any, name: str) -> float:
    """The value kept with an element, or its initial one, whatever the arrays of an earlier compilation say."""
    declaration = element.declared()[name]
    value = element.kept(name, None)
    return float(declaration.start(element) if value is None else value)


def make_channels(assembly: Assembly, voltage: Array, *, tables: bool) -> Channels:
    """Arrays of channels, their gates at the initial values."""
    rows, dt = assembly.channel_list, assembly.simulation.dt
    begin, first_of = begins([row[2] for row in rows])
    first, second, conductance, current = views(assembly, "channel")
    kinds = [rows[i] for i in first_of]
    compartment = integers([row[3] for row in rows])
    for b, (*_, kinetics) in enumerate(kinds):
        part = slice(begin[b], begin[b + 1])
        for gate, (settled, _) in zip((first, second), kinetics.settled(voltage[compartment[part]])):
            gate[part] = settled
    for j, (element, which, *_) in enumerate(rows):
        names = (("m", "h"), ("n", None))[which] if isinstance(element, ActiveCompartment) else ("m", "h")
        for gate, name in zip((first, second), names):
            if name is None:
                continue
            kept, start = element.kept(name, None), element[f"initial_{name}"]
            if kept is not None or start >= 0:
                gate[j] = start if kept is None else kept
    use_tables = [(tables and len(kinds) <= MOST_TABLES) or row[-1].rates is None for row in kinds]
    table = np.zeros((len(kinds), N_NODES if any(use_tables) else 2, 4))
    rates, direct = None, None
    if not all(use_tables):
        rates, direct = np.zeros((len(kinds), 2, 2, 5)), np.zeros(len(kinds))
        rates[..., 2], rates[..., 4] = 1.0, 1.0
    for b, row in enumerate(kinds):
        kinetics, ticks = row[-1], row[-2]
        if use_tables[b]:
            key = None if kinetics.rates is None else (kinetics.rates, ticks * dt)
            if key is None or key not in TABLES:
                made = kinetics.table(ticks * dt)
                if key is not None and len(TABLES) < MOST_TABLES:
                    TABLES[key] = made
            table[b] = made if key is None or key not in TABLES else TABLES[key]
        else:
            kinetics.table(ticks * dt)  # complains of what cannot be
            assert rates is not None
            assert direct is not None
            direct[b] = ticks * dt
            for k, gate_rates in enumerate(kinetics.rates or ()):
                rates[b, k, 0], rates[b, k, 1] = gate_rates.alpha, gate_rates.beta
    return Channels(
        first,
        second,
        conductance,
        current,
        compartment,
        numbers([row[4] for row in rows]),
        numbers([row[5] for row in rows]),
        begin,
        np.array([row[-1].powers for row in kinds], dtype=np.int64).reshape(-1, 2),
        integers([row[-2] for row in kinds]),
        table,
        rates,
        direct,
    )


def recursion(taus: tuple[float, float], dt: float) -> tuple[float, float, float]:
    """Factors of the two states of a synapse in `dt`, and what flows from the first to the second."""
    a, b = 1 / taus[0], 1 / taus[1]
    first, second = math.exp(-dt * a), math.exp(-dt * b)
    inflow = dt * second if abs(a - b) < 1e-6 * b else (second - first) / (a - b)
    return first, second, inflow


def make_synapses(assembly: Assembly) -> Synapses:
    """Arrays of synapses that events open; after them come places where events for elements in Python wait."""
    members, dt = assembly.synapses, assembly.simulation.dt
    begin, first_of = begins([(one.time_constants(), one.magnesium()) for one in members])
    kinds = [members[i] for i in first_of]
    conductance, rising, decaying, boost, boost_time = views(assembly, "synapse")
    for j, one in enumerate(members):
        conductance[j] = one.kept("g", 0.0)
    at_end = assembly.simulation.method_number != CRANK_NICOLSON
    step = [recursion(one.time_constants(), dt) for one in kinds]
    look = step if at_end else [recursion(one.time_constants(), dt / 2) for one in kinds]
    time_rate = [(1 / one.time_constants()[0], 1 / one.time_constants()[1]) for one in kinds]
    magnesium = [one.magnesium() for one in kinds]
    waiting = [0.0] * assembly.n_mailboxes
    if waiting:
        begin = integers([*begin, len(members) + len(waiting)])
        step, look = [*step, (1.0, 0.0, 0.0)], [*look, (1.0, 0.0, 0.0)]
        time_rate, magnesium = [*time_rate, (0.0, 1.0)], [*magnesium, 0.0]
    jumps = [(one.facilitation, 1 / one.facilitation_tau) for one in members] + [(0.0, 0.0)] * len(waiting)
    return Synapses(
        conductance,
        rising,
        decaying,
        boost,
        boost_time,
        integers([assembly.host[id(one)] for one in members] + [0] * len(waiting)),
        numbers([one.gmax / one.peak() for one in members] + waiting),
        numbers([one.E for one in members] + waiting),
        np.array(jumps, dtype=float).reshape(-1, 2),
        begin,
        np.array(step, dtype=float).reshape(-1, 3),
        np.array(look, dtype=float).reshape(-1, 3),
        np.array(time_rate, dtype=float).reshape(-1, 2),
        numbers(magnesium),
    )


def make_plastic(assembly: Assembly) -> Plastic | None:
    """Arrays of synapses whose weights learn; None if there are none."""
    members, dt = assembly.plastic, assembly.simulation.dt
    if not members:
        return None
    weight, events, spikes, before = views(assembly, "plastic")
    of_synapse = np.full(assembly.counts["synapse"], -1, dtype=np.int64)
    compartment = integers([assembly.host[id(one)] for one in members])
    before[:] = views(assembly, "compartment")[0][compartment]
    firing = {id(one): i for i, one in enumerate(assembly.detectors) if isinstance(one, IntegrateAndFire)}
    for k, one in enumerate(members):
        weight[k] = _kept(one, "w")
        of_synapse[assembly.numbers[id(one)][0]] = k
    return Plastic(
        weight,
        events,
        spikes,
        before,
        of_synapse,
        compartment,
        integers([firing.get(id(assembly.forest.members[at]), -1) for at in compartment.tolist()]),
        numbers([one.spike_threshold for one in members]),
        np.array([(one.gain, one.loss, one.w_max) for one in members]),
        np.exp(-dt / np.array([(one.tau_events, one.tau_spikes) for one in members])),
    )


def make_graded(assembly: Assembly, inputs: list[tuple[int, int, float, int]]) -> Graded:
    """Arrays of synapses that follow a voltage; `inputs` says where each finds it."""
    members, dt = assembly.graded, assembly.simulation.dt
    (s,) = views(assembly, "graded")
    for j, one in enumerate(members):
        s[j] = _kept(one, "s")
    return Graded(
        s,
        integers([one[0] for one in inputs]),
        integers([one[1] for one in inputs]),
        numbers([one[2] for one in inputs]),
        integers([one[3] for one in inputs]),
        integers([assembly.host[id(one)] for one in members]),
        numbers([one.gmax for one in members]),
        numbers([one.E for one in members]),
        numbers([one.half for one in members]),
        numbers([one.slope for one in members]),
        numbers([math.exp(-dt / one.tau) if one.tau > 0 else 0.0 for one in members]),
    )


def make_stimuli(assembly: Assembly, currents: list[tuple[int, int]], commands: list[int]) -> Stimuli:
    """Arrays of stimuli; `currents` are addresses and compartments, `commands` addresses of the commands of clamps."""
    output, level, base, clamp_current = (
        *views(assembly, "stimulus"),
        *views(assembly, "pulse"),
        *views(assembly, "clamp"),
    )
    for i, one in enumerate(assembly.pulses):
        level[i], base[i], output[i] = _kept(one, "level"), _kept(one, "base"), _kept(one, "base")
    with_values = [(i, one) for i, one in enumerate(assembly.tables) if one.values]
    pulse_times = [(p.delay, p.width, getattr(p, "period", 0.0), assembly.ticks(p)) for p in assembly.pulses]
    return Stimuli(
        output,
        level,
        base,
        clamp_current,
        integers(range(len(assembly.pulses))),
        np.array(pulse_times, dtype=float).reshape(-1, 4),
        integers([len(assembly.pulses) + i for i, _ in with_values]),
        integers(np.concatenate([[0], np.cumsum([len(one.times) for _, one in with_values])])),
        numbers([time for _, one in with_values for time in one.times]),
        numbers([value for _, one in with_values for value in one.values]),
        integers([one.interpolate for _, one in with_values]),
        integers([one[0] for one in currents]),
        integers([one[1] for one in currents]),
        integers([assembly.host[id(one)] for one in assembly.clamps]),
        integers(commands),
        numbers([1 / one.resistance for one in assembly.clamps]),
    )


def thresholds(assembly: Assembly) -> tuple[Array, Array, Array, Array, Array]:
    """Compartment, threshold, refractory time, whether it is reset and to what, of each detector of spikes."""
    rows = []
    for one in assembly.detectors:
        fires = isinstance(one, IntegrateAndFire)
        at = assembly.compartment[id(one)] if fires else assembly.host[id(one)]
        rows.append((at, one.threshold, one.refractory, fires, one.reset_voltage if fires else 0.0))
    columns = list(zip(*rows)) or [()] * 5
    return (
        integers(columns[0]),
        numbers(columns[1]),
        numbers(columns[2]),
        np.array(columns[3], dtype=np.int64),
        numbers(columns[4]),
    )
