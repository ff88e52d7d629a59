"""The arrays that a compiled network consists of.

Everything that changes in a step is part of one array of numbers, ``state``, cut into named blocks; the records below
hold views of it, so that a field of an element, a recorder and the loops all look at the same numbers. Blocks whose
members are counted together form a family.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

#: Families of numbers, and their blocks in the state.
FAMILIES: dict[str, tuple[str, ...]] = {
    "compartment": ("voltage", "inject", "total", "push"),
    "channel": ("first_gate", "second_gate", "channel_conductance", "channel_current"),
    "synapse": ("synapse_conductance", "rising", "decaying", "boost", "boost_time"),
    "plastic": ("hebbian_weight", "event_trace", "spike_trace", "hebbian_voltage"),
    "graded": ("graded",),
    "stimulus": ("stimulus",),
    "pulse": ("pulse_level", "pulse_base"),
    "clamp": ("clamp_current",),
    "source": ("last_spike", "before"),
    "random": ("spike_rate",),
    "unit": ("unit", "unit_bias"),
}

#: Tables of gates: from the smallest to the largest voltage that a simulation accepts (mV), and nodes in each mV.
LOWEST, NODES_PER_MV = -200.0, 20.0
N_NODES = 8002  # one more than the range needs: interpolation looks at the next

#: Numbers of the methods.
EULER, EXP_EULER, BACKWARD_EULER, CRANK_NICOLSON = range(4)

#: Places in ``progress``: the step, spikes and rows of recordings in their buffers, spikes on their way, what stopped
#: the loop (0 nothing, 1 a voltage out of range, 2 too many random spikes) and the number of what did.
STEP, N_SPIKES, N_FLIGHTS, STATUS, WHERE = range(5)

#: Spikes of a random source in a step; with one on average, more have a chance of 6e-11.
MOST_AT_ONCE = 12


class Cells(NamedTuple):
    """Compartments, each after its parent in the tree of a cell (parent -1 at a root)."""

    voltage: Array
    inject: Array
    capacitance: Array
    conductance: Array  # of leak and neighbours, and of elements written in Python
    drive: Array  # conductance times reversal potential of the leak, and currents of elements written in Python
    parent: Array
    axial: Array  # conductance to the parent
    loop_from: Array  # further couplings, which close cycles
    loop_to: Array
    loop_axial: Array
    total: Array  # of this step: sum of conductances; added up where a clock is slower
    push: Array  # of this step: sum of currents at zero voltage; likewise
    period: Any  # steps from one tick of the clock of each to the next; None if all move in each step


class Channels(NamedTuple):
    """Channels, in blocks of the same kinetics."""

    first: Array
    second: Array
    conductance: Array
    current: Array
    compartment: Array
    largest: Array
    reversal: Array
    begin: Array  # of each block, and the end of the last
    powers: Array  # (n_blocks, 2)
    period: Array  # steps from one tick to the next
    table: Array  # (n_blocks, N_NODES, 4): a and b of x <- a + b x, of both gates
    rates: Any  # (n_blocks, 2, 2, 5), or None if all blocks are looked up
    direct: Any  # whether the rates of a block are evaluated, with the time constant of a step; or None


class Synapses(NamedTuple):
    """Synapses that events open, in blocks of the same time constants."""

    conductance: Array
    rising: Array
    decaying: Array
    boost: Array
    boost_time: Array
    compartment: Array
    scale: Array
    reversal: Array
    facilitation: Array  # (n_synapses, 2): jump, and rate of decay
    begin: Array
    step: Array  # (n_blocks, 3): rise, decay and inflow of a step
    look: Array  # (n_blocks, 3): the same up to where voltages look at conductances
    time_rate: Array  # (n_blocks, 2): 1/tau of the two, in 1/ms
    magnesium: Array


class Graded(NamedTuple):
    """Synapses that follow a voltage: address, lag in steps, weight of the older of two values, column of history."""

    s: Array
    address: Array
    lag: Array
    share: Array
    column: Array
    compartment: Array
    largest: Array
    reversal: Array
    half: Array
    slope: Array
    keep: Array  # exp(-dt/tau)


class Stimuli(NamedTuple):
    """Pulses, tables and clamps."""

    output: Array
    level: Array
    base: Array
    clamp_current: Array
    pulse_output: Array  # which output a pulse writes
    pulse_times: Array  # (n_pulses, 4): delay, width, period, and its clock in steps
    table_output: Array
    table_begin: Array
    table_time: Array
    table_value: Array
    table_interpolates: Array
    current_from: Array  # addresses in the state
    current_to: Array
    clamp_compartment: Array
    clamp_command: Array  # addresses in the state
    clamp_conductance: Array


class Sources(NamedTuple):
    """Sources of spikes, those that watch a voltage first, and the spikes of now."""

    last: Array
    before: Array
    compartment: Array
    threshold: Array
    refractory: Array
    resets: Array
    reset_voltage: Array
    spike_source: Array
    spike_time: Array  # in ms


class Plastic(NamedTuple):
    """Synapses whose weights learn."""

    weight: Array
    events: Array  # trace of what has arrived
    spikes: Array  # trace of the spikes of the compartment
    before: Array  # voltage of the step before
    of_synapse: Array  # number of each synapse here, or -1
    compartment: Array
    detector: Array  # the source of spikes that the compartment is itself, or -1
    threshold: Array
    change: Array  # (n, 3): gain, loss, and largest weight
    keep: Array  # (n, 2): what a step leaves of the two traces


class Wires(NamedTuple):
    """Random spikes and lists of times, what sources are wired to, and what is on its way."""

    most: int  # spikes that all sources can send in a step
    rate: Array
    random_source: Array
    random_key: Array
    random_period: Array
    listed_source: Array
    listed_begin: Array
    listed_time: Array
    begin: Array  # of the wires of each source
    target: Array
    weight: Array
    due: Array  # delay in steps, and half a step more where it is rounded, or a whole one where it is exact
    exact: Array
    flight_source: Array
    flight_time: Array  # in steps
    flight_next: Array


class Units(NamedTuple):
    """Rate units, in an order in which links can be followed, and then binary ones."""

    y: Array
    bias: Array
    n_rates: int
    function: Array
    keep: Array
    period: Array
    key: Array
    begin: Array  # of the inputs of each unit
    address: Array
    weight: Array
    lag: Array
    share: Array
    column: Array
    order: Array
    order_key: Array


class Watch(NamedTuple):
    """What is recorded, in groups of one clock each, and past values of what has delayed connections."""

    address: Array
    begin: Array
    period: Array
    buffer: Array
    buffer_begin: Array
    n_rows: Array
    past_address: Array
    past: Array  # (depth, n_columns)


class Arrays(NamedTuple):
    """A compiled network.

    There are several makes of it, so that the first network somebody runs does not wait for what it does without: cells
    with channels and axons alone, and with stimuli, synapses and wires; either with graded synapses, with units, with
    synapses that learn, or with compartments on slower clocks. What a make lacks is None.
    """

    state: Array
    progress: Array
    cells: Cells
    channels: Channels
    sources: Sources
    watch: Watch
    stimuli: Stimuli | None
    synapses: Synapses | None
    wires: Wires | None
    graded: Graded | None
    units: Units | None
    plastic: Plastic | None
