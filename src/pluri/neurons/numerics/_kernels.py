# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over one step after another; the order of the phases is that of `advance`."""

import math

from pluri.engine.compiled import compiled
from pluri.neurons.numerics._conductance_kernels import open_channels, open_graded, open_synapses
from pluri.neurons.numerics._spike_kernels import (
    detect_spikes,
    emit_spikes,
    has_room,
    is_due,
    learn_from_spikes,
    receive_spikes,
    span,
)
from pluri.neurons.numerics._unit_kernels import move_units
from pluri.neurons.numerics.records import (
    BACKWARD_EULER,
    EULER,
    EXP_EULER,
    LOWEST,
    STATUS,
    STEP,
    WHERE,
)


@compiled(inner=True, allocates=False)
def run_stimuli(stimuli, cells, state, step, dt):
    """Change outputs of stimuli, and push and total of the compartments that they and clamps act on."""
    if stimuli is None:
        return
    middle = (step + 0.5) * dt
    output, level, base = stimuli.output, stimuli.level, stimuli.base
    times, place = stimuli.pulse_times, stimuli.pulse_output
    for i in range(len(place)):
        if step % int(times[i, 3]) != 0:
            continue
        since = middle - times[i, 0]
        if times[i, 2] > 0.0 and since > 0.0:
            since -= math.floor(since / times[i, 2]) * times[i, 2]
        output[place[i]] = level[i] if 0.0 <= since < times[i, 1] else base[i]
    time, value = stimuli.table_time, stimuli.table_value
    for i in range(len(stimuli.table_output)):
        first, last = stimuli.table_begin[i], stimuli.table_begin[i + 1] - 1
        low, high = first, last + 1  # the first time after the middle, by bisection
        while low < high:
            k = (low + high) // 2
            if time[k] <= middle:
                low = k + 1
            else:
                high = k
        if low == first:
            result = 0.0
        elif low == last + 1 or not stimuli.table_interpolates[i]:
            result = value[low - 1]
        else:
            part = (middle - time[low - 1]) / (time[low] - time[low - 1])
            result = value[low - 1] + part * (value[low] - value[low - 1])
        output[stimuli.table_output[i]] = result
    total, push, v = cells.total, cells.push, cells.voltage
    for i in range(len(stimuli.current_to)):
        push[stimuli.current_to[i]] += state[stimuli.current_from[i]]
    for i in range(len(stimuli.clamp_compartment)):
        c, g, command = stimuli.clamp_compartment[i], stimuli.clamp_conductance[i], state[stimuli.clamp_command[i]]
        total[c] += g
        push[c] += g * command
        stimuli.clamp_current[i] = g * (command - v[c])


@compiled(inner=True, allocates=False)
def begin_sums(cells, period, step):
    """Change total and push to what acts without channels and synapses; sums go on until a slow clock ticks."""
    total, push, conductance, drive, inject = cells.total, cells.push, cells.conductance, cells.drive, cells.inject
    if period is None:
        for i in range(len(total)):
            total[i] = conductance[i]
            push[i] = drive[i] + inject[i]
        return
    for i in range(len(total)):
        if step % period[i] == 0:
            total[i], push[i] = 0.0, 0.0
        total[i] += conductance[i]
        push[i] += drive[i] + inject[i]


@compiled(inner=True, allocates=False)
def end_sums(cells, period, step):
    """Change total and push to means over the steps since the clock of a compartment ticked; or None."""
    if period is None:
        return
    for i in range(len(period)):
        if is_due(period, i, step):
            cells.total[i] /= period[i]
            cells.push[i] /= period[i]


@compiled(inner=True, allocates=False)
def add_couplings(cells, step):
    """Change push by what flows from neighbours, whose voltages are those of now."""
    v, push, parent, axial, period = cells.voltage, cells.push, cells.parent, cells.axial, cells.period
    for i in range(len(v)):
        p = parent[i]
        if p >= 0 and is_due(period, i, step):
            push[i] += axial[i] * v[p]
            push[p] += axial[i] * v[i]
    for k in range(len(cells.loop_from)):
        i, j = cells.loop_from[k], cells.loop_to[k]
        if not is_due(period, i, step):
            continue
        push[i] += cells.loop_axial[k] * v[j]
        push[j] += cells.loop_axial[k] * v[i]


@compiled(inner=True, allocates=False)
def solve_trees(cells, h, step):
    """Change `push` to the voltages of an implicit step of h, by elimination from the leaves to the roots and back.

    (C/h + B_i) V_i - sum of a_ij V_j = C/h V_i(t) + A_i, with B and A in `total` and `push`, which are used up.
    """
    v, total, push, parent, axial = cells.voltage, cells.total, cells.push, cells.parent, cells.axial
    capacitance = cells.capacitance
    n = len(v)
    period = cells.period
    for i in range(n):
        if not is_due(period, i, step):
            continue
        per_time = capacitance[i] / (h * span(period, i))
        total[i] += per_time
        push[i] += per_time * v[i]
    for i in range(n - 1, -1, -1):
        p = parent[i]
        if p >= 0 and is_due(period, i, step):
            factor = axial[i] / total[i]
            total[p] -= factor * axial[i]
            push[p] += factor * push[i]
    for i in range(n):
        p = parent[i]
        if is_due(period, i, step):
            push[i] = (push[i] + axial[i] * push[p]) / total[i] if p >= 0 else push[i] / total[i]


@compiled(inner=True, allocates=False)
def move_voltages(cells, method, dt, solved, step):
    """Change voltages by a step of the method; if `solved`, `push` holds the implicit solution already."""
    v, total, push, capacitance, period = cells.voltage, cells.total, cells.push, cells.capacitance, cells.period
    n = len(v)
    if not solved:
        end_sums(cells, period, step)
    if method == EXP_EULER:
        add_couplings(cells, step)
        for i in range(n):
            if is_due(period, i, step):
                per = dt * span(period, i) / capacitance[i]
                x = total[i] * per
                # V goes to A/B by 1 - exp(-x); written so that nothing is lost where B is next to nothing.
                share = (1.0 - math.exp(-x)) / x if x > 1e-5 else 1.0 - x / 2
                v[i] += per * (push[i] - total[i] * v[i]) * share
    elif method == EULER:
        add_couplings(cells, step)
        for i in range(n):
            if is_due(period, i, step):
                v[i] += dt * span(period, i) / capacitance[i] * (push[i] - total[i] * v[i])
    elif method == BACKWARD_EULER:
        if not solved:
            solve_trees(cells, dt, step)
        for i in range(n):
            if is_due(period, i, step):
                v[i] = push[i]
    else:  # Crank and Nicolson: backward Euler to the middle of the step, and as far again
        if not solved:
            solve_trees(cells, dt / 2, step)
        for i in range(n):
            if is_due(period, i, step):
                v[i] = 2.0 * push[i] - v[i]


@compiled(inner=True, allocates=False)
def out_of_range(voltage):
    """The first compartment whose voltage is too large or not a number; -1 if all are in range."""
    fine = True
    for i in range(len(voltage)):
        fine &= abs(voltage[i]) <= -LOWEST
    if fine:
        return -1
    for i in range(len(voltage)):
        if not abs(voltage[i]) <= -LOWEST:
            return i
    return -1


@compiled(inner=True, allocates=False)
def record(watch, state, step):
    """Change the buffers of recordings, and past values."""
    for group in range(len(watch.period)):
        if step % watch.period[group] != 0:
            continue
        first, last = watch.begin[group], watch.begin[group + 1]
        row = watch.buffer_begin[group] + watch.n_rows[group] * (last - first)
        for j in range(first, last):
            watch.buffer[row + j - first] = state[watch.address[j]]
        watch.n_rows[group] += 1
    now = step % watch.past.shape[0]
    for j in range(len(watch.past_address)):
        watch.past[now, j] = state[watch.past_address[j]]


@compiled(inner=True, allocates=False)
def before_voltages(arrays, dt):
    """Change everything that voltages depend on: phases 0 and 1."""
    cells, step = arrays.cells, arrays.progress[STEP]
    begin_sums(cells, cells.period, step)
    receive_spikes(arrays.wires, arrays.synapses, arrays.plastic, arrays.progress, dt)
    run_stimuli(arrays.stimuli, cells, arrays.state, step, dt)
    emit_spikes(arrays.wires, arrays.sources, arrays.progress, dt)
    open_channels(arrays.channels, cells, step)
    open_synapses(arrays.synapses, cells)
    open_graded(arrays.graded, cells, arrays.state, arrays.watch.past, step)
    move_units(arrays.units, arrays.state, arrays.watch.past, step)


@compiled(inner=True, allocates=False)
def after_voltages(arrays, dt):
    """Detect spikes, send them out, and record: phases 3, 4 and 5; whether all is well."""
    progress = arrays.progress
    wrong = out_of_range(arrays.cells.voltage)
    progress[STEP] += 1
    if wrong >= 0:
        progress[STATUS], progress[WHERE] = 1, wrong
        return False
    detect_spikes(arrays.sources, arrays.wires, arrays.cells, progress, dt)
    learn_from_spikes(arrays.plastic, arrays.sources, arrays.cells.voltage, progress[STEP], dt)
    record(arrays.watch, arrays.state, progress[STEP])
    return True


@compiled(allocates=False)
def advance(arrays, method, dt, n_steps, part):
    """Change a network by up to `n_steps` steps; it ends early where a voltage is out of range or a buffer is full.

    With `part` 1 it does what comes before voltages move, and with 2 the rest of that step, the implicit solution being
    in ``push``: for couplings in cycles, which SciPy solves. With 0 it does all.
    """
    for _ in range(n_steps):
        if part != 2:
            if not has_room(arrays.sources, arrays.wires, arrays.progress):
                return
            before_voltages(arrays, dt)
        if part == 1:
            return
        move_voltages(arrays.cells, method, dt, part == 2, arrays.progress[STEP])
        if not after_voltages(arrays, dt):
            return
