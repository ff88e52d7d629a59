# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over spikes: detected, sent out, on their way, and received.

A spike on its way is one entry, whatever the number of its targets: the wires of a source are sorted by delay, and the
entry knows the next of them. Random numbers are made from the number of the step and a key of the source, so that they
depend on nothing else.
"""

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.neurons.numerics.records import MOST_AT_ONCE, N_FLIGHTS, N_SPIKES, STATUS, STEP, WHERE

GOLDEN, FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@compiled(inner=True, allocates=False)
def uniform(key, counter):
    """A number from [0, 1) by splitmix64 (Steele, Lea and Flood 2014), the counter-th of the stream of a key."""
    z = key + (np.uint64(counter) + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled(inner=True, allocates=False)
def send(sources, wires, progress, source, time, dt):
    """Change the lists of spikes and of what is on its way by a spike at `time` (in steps)."""
    n = progress[N_SPIKES]
    sources.spike_source[n], sources.spike_time[n] = source, time * dt
    progress[N_SPIKES] = n + 1
    sources.last[source] = max(sources.last[source], time * dt)
    put_on_its_way(wires, progress, source, time)


@compiled(inner=True, allocates=False)
def put_on_its_way(wires, progress, source, time):
    """Change the list of what is on its way by a spike that has targets."""
    if wires is None:
        return
    if wires.begin[source] < wires.begin[source + 1]:
        n = progress[N_FLIGHTS]
        wires.flight_source[n], wires.flight_time[n] = source, time
        wires.flight_next[n] = wires.begin[source]
        progress[N_FLIGHTS] = n + 1


@compiled(inner=True, allocates=False)
def has_room(sources, wires, progress):
    """Whether all that sources can send in the next step will find room."""
    if wires is None:
        return progress[N_SPIKES] + len(sources.last) <= len(sources.spike_time)
    if progress[N_SPIKES] + wires.most > len(sources.spike_time):
        return False
    return progress[N_FLIGHTS] + wires.most <= len(wires.flight_time)


@compiled(inner=True, allocates=False)
def receive_spikes(wires, synapses, plastic, progress, dt):
    """Change synapses, and what they learn, by the spikes due at this step, and the list of what is on its way."""
    if wires is None:
        return
    step, kept = progress[STEP], 0
    begin, target, weight, due, exact = wires.begin, wires.target, wires.weight, wires.due, wires.exact
    for i in range(progress[N_FLIGHTS]):
        source, time, at = wires.flight_source[i], wires.flight_time[i], wires.flight_next[i]
        end = begin[source + 1]
        while at < end and time + due[at] < step + 1:
            late = (step - (time + due[at] - 1.0)) * dt if exact[at] else 0.0
            receive(synapses, target[at], learned(plastic, target[at], weight[at]), late, step * dt)
            at += 1
        if at < end:
            wires.flight_source[kept], wires.flight_time[kept], wires.flight_next[kept] = source, time, at
            kept += 1
    progress[N_FLIGHTS] = kept


@compiled(inner=True, allocates=False)
def learned(plastic, j, weight):
    """The weight of an event at a synapse with what that has learned, which the event changes; None where none does."""
    if plastic is None:
        return weight
    k = plastic.of_synapse[j]
    if k < 0:
        return weight
    weight *= plastic.weight[k]
    plastic.weight[k] = max(plastic.weight[k] - plastic.change[k, 1] * plastic.spikes[k], 0.0)
    plastic.events[k] += 1.0
    return weight


@compiled(inner=True, allocates=False)
def learn_from_spikes(plastic, sources, voltage, step, dt):
    """Change the weights of synapses whose compartment has just spiked, and what is remembered; or None."""
    if plastic is None:
        return
    for k in range(len(plastic.weight)):
        plastic.events[k] *= plastic.keep[k, 0]
        plastic.spikes[k] *= plastic.keep[k, 1]
        v, detector = voltage[plastic.compartment[k]], plastic.detector[k]
        if detector >= 0:
            spiked = sources.last[detector] > (step - 1 + 1e-9) * dt
        else:
            spiked = plastic.before[k] < plastic.threshold[k] <= v
        plastic.before[k] = v
        if spiked:
            grown = plastic.weight[k] + plastic.change[k, 0] * plastic.events[k]
            plastic.weight[k] = min(grown, max(plastic.change[k, 2], plastic.weight[k]))
            plastic.spikes[k] += 1.0


@compiled(inner=True, allocates=False)
def span(period, i):
    """Steps in which compartment i moves once; None where all move in each."""
    if period is None:
        return 1
    return period[i]


@compiled(inner=True, allocates=False)
def is_due(period, i, step):
    """Whether a compartment moves at the end of a step; None where all move in each."""
    if period is None:
        return True
    return (step + 1) % period[i] == 0


@compiled(inner=True, allocates=False)
def receive(synapses, j, weight, late, now):
    """Change one synapse by an event that arrived `late` ms ago."""
    block = 0
    if synapses.facilitation[j, 0] != 0.0:
        boost = synapses.boost[j] * math.exp(-(now - synapses.boost_time[j]) * synapses.facilitation[j, 1])
        weight *= 1.0 + boost
        # Depression ends at nothing.
        synapses.boost[j], synapses.boost_time[j] = max(boost + synapses.facilitation[j, 0], -1.0), now
    if late > 0.0:
        while synapses.begin[block + 1] <= j:
            block += 1
        a, b = synapses.time_rate[block, 0], synapses.time_rate[block, 1]
        rise, decay = math.exp(-late * a), math.exp(-late * b)
        inflow = late * decay if abs(a - b) < 1e-6 * b else (decay - rise) / (a - b)
        synapses.rising[j] += weight * rise
        synapses.decaying[j] += weight * inflow
    else:
        synapses.rising[j] += weight


@compiled(inner=True, allocates=False)
def emit_spikes(wires, sources, progress, dt):
    """Change the lists of spikes by those of random sources and of lists of times."""
    if wires is None:
        return
    step = progress[STEP]
    for i in range(len(wires.random_source)):
        period = wires.random_period[i]
        if step % period != 0:
            continue
        expected = wires.rate[i] * 1e-3 * dt * period
        if expected > 1.0:
            progress[STATUS], progress[WHERE] = 2, i
            return
        # The number of spikes by inversion of its distribution, from above.
        drawn, share, below = uniform(wires.random_key[i], 2 * step), math.exp(-expected), math.exp(-expected)
        if drawn >= -math.expm1(-expected):
            continue
        part, n = uniform(wires.random_key[i], 2 * step + 1), 1
        send(sources, wires, progress, wires.random_source[i], step + part * period, dt)
        share *= expected
        below += share
        while n < MOST_AT_ONCE and drawn < 1.0 - below:
            part = uniform(wires.random_key[i] ^ SECOND, MOST_AT_ONCE * step + n)
            send(sources, wires, progress, wires.random_source[i], step + part * period, dt)
            n += 1
            share *= expected / n
            below += share
    for i in range(len(wires.listed_source)):
        first, last = wires.listed_begin[i], wires.listed_begin[i + 1]
        low, high = first, last
        while low < high:  # the first time of this step or later
            k = (low + high) // 2
            if wires.listed_time[k] < step - 1e-9:
                low = k + 1
            else:
                high = k
        while low < last and wires.listed_time[low] < step + 1 - 1e-9:
            send(sources, wires, progress, wires.listed_source[i], wires.listed_time[low], dt)
            low += 1


@compiled(inner=True, allocates=False)
def detect_spikes(sources, wires, cells, progress, dt):
    """Change the lists of spikes by voltages that have risen through a threshold, and reset those that are reset."""
    step, voltage = progress[STEP], cells.voltage
    before, last = sources.before, sources.last
    for i in range(len(sources.compartment)):
        c = sources.compartment[i]
        v, old, threshold = voltage[c], before[i], sources.threshold[i]
        if sources.resets[i] and step * dt - last[i] < sources.refractory[i] + 1e-9:
            voltage[c] = sources.reset_voltage[i]
        elif v >= threshold and (old < threshold or sources.resets[i]):
            n = span(cells.period, c)
            time = step - n + n * (threshold - old) / (v - old) if old < threshold else np.float64(step)
            if time * dt - last[i] >= sources.refractory[i]:
                send(sources, wires, progress, i, time, dt)
                if sources.resets[i]:
                    voltage[c] = sources.reset_voltage[i]
        before[i] = voltage[c]
