# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over channels and synapses, which open conductances."""

import math

from pluri.engine.compiled import compiled
from pluri.neurons.numerics._unit_kernels import past_value
from pluri.neurons.numerics.records import LOWEST, NODES_PER_MV

#: Below this a decaying conductance is nothing; still smaller numbers would slow the processor down.
TINY = 1e-60


@compiled(inner=True, allocates=False)
def power(x, n):
    """The n-th power, n from 0 to 8."""
    square = x * x
    if n == 1:
        return x
    if n == 3:
        return square * x
    if n == 4:
        return square * square
    result = 1.0
    for _ in range(n):
        result *= x
    return result


@compiled(inner=True, allocates=False)
def rate(k, v):
    """(A + B v)/(C + exp((v + D)/F)), or its limit."""
    argument = (v + k[3]) / k[4]
    if k[2] == -1.0 and abs(argument) < 1e-6:
        return k[1] * k[4] * (1.0 - argument / 2)
    return (k[0] + k[1] * v) / (k[2] + math.exp(argument))


@compiled(inner=True, allocates=False)
def moved_directly(x, rates, v, dt):
    """A gate after a step, its rates evaluated."""
    alpha, beta = rate(rates[0], v), rate(rates[1], v)
    settled = alpha / (alpha + beta)
    return settled + (x - settled) * math.exp(-dt * (alpha + beta))


@compiled(inner=True, allocates=False)
def looked_up(x, table, node, f, k):
    """A gate after a step, by the k-th pair of columns of its table."""
    a = table[node, k] + f * (table[node + 1, k] - table[node, k])
    b = table[node, k + 1] + f * (table[node + 1, k + 1] - table[node, k + 1])
    return a + b * x


@compiled(inner=True, allocates=False)
def move_gates(channels, voltage, block, rates, direct):
    """Change the gates of a block; `rates` is None where all blocks are looked up."""
    first, second, compartment, table = channels.first, channels.second, channels.compartment, channels.table[block]
    two = channels.powers[block, 1] > 0
    begin, end = channels.begin[block], channels.begin[block + 1]
    if rates is not None:
        dt = direct[block]
        if dt > 0.0:
            for j in range(begin, end):
                v = voltage[compartment[j]]
                first[j] = moved_directly(first[j], rates[block, 0], v, dt)
                if two:
                    second[j] = moved_directly(second[j], rates[block, 1], v, dt)
            return
    for j in range(begin, end):
        at = (voltage[compartment[j]] - LOWEST) * NODES_PER_MV
        node = int(at)
        first[j] = looked_up(first[j], table, node, at - node, 0)
        if two:
            second[j] = looked_up(second[j], table, node, at - node, 2)


@compiled(inner=True, allocates=False)
def open_channels(channels, cells, step):
    """Change gates, conductances, total and push: gates from the voltages of now, for the time of a step."""
    voltage, total, push = cells.voltage, cells.total, cells.push
    first, second, conductance, current = channels.first, channels.second, channels.conductance, channels.current
    compartment, largest, reversal = channels.compartment, channels.largest, channels.reversal
    for block in range(len(channels.begin) - 1):
        if step % channels.period[block] == 0:
            move_gates(channels, voltage, block, channels.rates, channels.direct)
        p, q = channels.powers[block, 0], channels.powers[block, 1]
        for j in range(channels.begin[block], channels.begin[block + 1]):
            c = compartment[j]
            g = largest[j] * power(first[j], p)
            if q > 0:
                g *= power(second[j], q)
            conductance[j] = g
            current[j] = g * (reversal[j] - voltage[c])
            total[c] += g
            push[c] += g * reversal[j]


@compiled(inner=True, allocates=False)
def open_synapses(synapses, cells):
    """Change conductances of synapses by the exact recursion of a step, and total and push."""
    if synapses is None:
        return
    voltage, total, push = cells.voltage, cells.total, cells.push
    conductance, rising, decaying = synapses.conductance, synapses.rising, synapses.decaying
    compartment, scale, reversal = synapses.compartment, synapses.scale, synapses.reversal
    for block in range(len(synapses.begin) - 1):
        rise, decay, inflow = synapses.step[block, 0], synapses.step[block, 1], synapses.step[block, 2]
        look_decay, look_inflow = synapses.look[block, 1], synapses.look[block, 2]
        magnesium = synapses.magnesium[block]
        for j in range(synapses.begin[block], synapses.begin[block + 1]):
            r, d = rising[j], decaying[j]
            if r == 0.0 and d == 0.0:
                continue
            c = compartment[j]
            g = scale[j] * (look_decay * d + look_inflow * r)
            d = decay * d + inflow * r
            r = rise * r
            rising[j] = r if abs(r) > TINY else 0.0
            decaying[j] = d if abs(d) > TINY else 0.0
            factor = 1.0
            if magnesium > 0.0:
                factor = 1.0 / (1.0 + magnesium / 3.57 * math.exp(-0.062 * voltage[c]))
            conductance[j] = scale[j] * d * factor
            total[c] += g * factor
            push[c] += g * factor * reversal[j]


@compiled(inner=True, allocates=False)
def open_graded(graded, cells, state, past, step):
    """Change the share s of synapses that follow a voltage, and total and push; None where there are none."""
    if graded is None:
        return
    s = graded.s
    for j in range(len(s)):
        v = past_value(state[graded.address[j]], past, step, graded.lag[j], graded.share[j], graded.column[j])
        settled = 1.0 / (1.0 + math.exp(-(v - graded.half[j]) / graded.slope[j]))
        s[j] = settled + (s[j] - settled) * graded.keep[j]
        g, c = graded.largest[j] * s[j], graded.compartment[j]
        cells.total[c] += g
        cells.push[c] += g * graded.reversal[j]
