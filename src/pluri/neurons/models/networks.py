"""Networks: two neurons, a half-centre oscillator, a Hopfield network, and one of the size of a piriform cortex."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from pluri.neurons.simulation import Simulation
from pluri.validation import RandomState, as_generator


def two_neurons(current: float = 0.2, gmax: float = 0.005, **settings: Any) -> Simulation:
    """Two neurons of a soma and a dendrite each; the first drives the second through a synapse.

    Parameters
    ----------
    current : float, default=0.2
        Into the soma of the first, from 5 to 55 ms, in nA.
    gmax : float, default=0.005
        Of the synapse on the dendrite of the second, in uS.
    **settings
        Of the `Simulation`; the method is "crank_nicolson" and the step 0.01 ms if nothing is said.

    Returns
    -------
    Simulation
        With ``/net/a`` and ``/net/b`` (soma, dend, dend/syn, axon) and ``/pulse``.

    Examples
    --------
    >>> from pluri.neurons.models import two_neurons
    >>> result = two_neurons().run(60.0)
    >>> result.spikes("/net/a/axon").round(1).tolist()
    [7.0, 21.6, 35.7, 49.9]
    """
    simulation = Simulation(**cast(dict[str, Any], {"dt": 0.01, "method": "crank_nicolson"} | settings))
    simulation.create("group", "/net")
    simulation.create("group", "/net/a")
    simulation.create("active_compartment", "/net/a/soma", length=20, diameter=20)
    simulation.create("passive_compartment", "/net/a/dend", length=200, diameter=2, rm=10000, x=-110)
    simulation.create("synapse", "/net/a/dend/syn", tau=2, gmax=gmax)
    simulation.create("axon", "/net/a/axon", threshold=0)
    simulation.link("/net/a/dend", "/net/a/soma")
    simulation.link("/net/a/dend/syn", "/net/a/dend")
    simulation.link("/net/a/soma", "/net/a/axon")
    simulation.copy("/net/a", "/net/b")
    simulation.connect("/net/a/axon", "/net/b/dend/syn", delay=5)
    simulation.create("pulse_generator", "/pulse", delay=5, width=50, level=current)
    simulation.link("/pulse", "/net/a/soma")
    return simulation


def half_centre(**settings: Any) -> Simulation:
    """Two cells that inhibit each other and rebound from inhibition, so that they take turns.

    X.-J. Wang and J. Rinzel (1992). Alternating and synchronous rhythms in reciprocally inhibitory model neurons.
    Neural Computation 4, 84-97.

    Parameters
    ----------
    **settings
        Of the `Simulation`.

    Returns
    -------
    Simulation
        With ``/left`` and ``/right``.

    Examples
    --------
    >>> from pluri.neurons.models import half_centre
    >>> sim = half_centre()
    >>> sim.record("/*", "Vm")
    >>> result = sim.run(1000.0)
    >>> bool(np.corrcoef(result["/left", "Vm"][8000:], result["/right", "Vm"][8000:])[0, 1] < -0.8)
    True
    """
    simulation = Simulation(**settings)
    for name, voltage, ready in (("left", -60.0, 0.2), ("right", -80.0, 0.6)):
        simulation.create("compartment", f"/{name}", capacitance=1, resistance=10, Em=-60, initial_Vm=voltage)
        simulation.create("rebound_channel", f"/{name}/rebound", gbar=0.3, E=120, initial_h=ready)
        simulation.create("graded_synapse", f"/{name}/inhibition", gmax=0.3, E=-80, half=-44, slope=2)
        simulation.link(f"/{name}/rebound", f"/{name}")
        simulation.link(f"/{name}/inhibition", f"/{name}")
    simulation.link("/left", "/right/inhibition")
    simulation.link("/right", "/left/inhibition")
    return simulation


def hopfield(patterns: ArrayLike, start: ArrayLike | None = None, **settings: Any) -> Simulation:
    """A Hopfield network that stores patterns: w_ij is the mean of the products of their units.

    Parameters
    ----------
    patterns : array-like of shape (n_patterns, n_units)
        Of -1 and 1.
    start : array-like of shape (n_units,) or None, default=None
        What the units are at reset; the first pattern if None.
    **settings
        Of the `Simulation`; the step is 1 ms if nothing is said.

    Returns
    -------
    Simulation
        With ``/unit[0]`` and so on. In each step all units change once, one after another.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.neurons.models import hopfield
    >>> patterns = np.where(np.random.default_rng(0).random((2, 30)) < 0.5, -1, 1)
    >>> start = patterns[0].copy()
    >>> start[:3] *= -1  # three units are wrong
    >>> sim = hopfield(patterns, start, random_state=0)
    >>> sim.step(3)
    >>> recalled = [unit.y for unit in sim.find("/unit[*]")]
    >>> bool(np.all(recalled == patterns[0]))
    True
    """
    stored = np.atleast_2d(np.asarray(patterns, dtype=float))
    if not np.isin(stored, (-1, 1)).all():
        raise ValueError("patterns must be of -1 and 1")
    first = stored[0] if start is None else np.asarray(start, dtype=float)
    n_units = stored.shape[1]
    if first.shape != (n_units,):
        raise ValueError(f"start must have the shape ({n_units},), got {first.shape}")
    weights = stored.T @ stored / n_units
    simulation = Simulation(**cast(dict[str, Any], {"dt": 1.0} | settings))
    units = [simulation.create("binary_unit", f"/unit[{i}]", initial_y=first[i]) for i in range(n_units)]
    to, source = np.nonzero(~np.eye(n_units, dtype=bool))
    simulation.connect_all([units[j] for j in source], [units[i] for i in to], weight=weights[to, source])
    return simulation


def piriform(
    n_pyramidal: int = 400,
    n_feedback: int = 50,
    n_feedforward: int = 50,
    n_afferents: int = 500,
    n_inputs: int = 20,
    *,
    network_seed: RandomState = 0,
    **settings: Any,
) -> Simulation:
    """A network of the size of the piriform cortex model that simulators of this kind were first shown with.

    Pyramidal cells of five compartments (an active soma, four of dendrite), two populations of inhibitory cells of one
    compartment, and afferent fibres that fire at random. Only the size follows the published model, whose parameters
    were not published: M. A. Wilson, U. S. Bhalla, J. D. Uhley and J. M. Bower (1988). GENESIS: a system for simulating
    neural networks. NIPS 1.

    Parameters
    ----------
    n_pyramidal, n_feedback, n_feedforward, n_afferents : int
        Numbers of cells and of fibres.
    n_inputs : int, default=20
        Inputs of each cell, drawn at random, with delays of 1 to 10 ms.
    network_seed : int or Generator, default=0
        Of the wiring.
    **settings
        Of the `Simulation`.

    Returns
    -------
    Simulation
        With ``/pyramidal[0]``, ``/feedback[0]``, ``/feedforward[0]``, ``/afferent[0]`` and so on.

    Examples
    --------
    >>> from pluri.neurons.models import piriform
    >>> sim = piriform(20, 5, 5, 30, random_state=0)
    >>> len(sim.find("/pyramidal[*]")), len(sim.connections)
    (20, 600)
    """
    rng = as_generator(network_seed)
    simulation = Simulation(**settings)
    for name, n, dendrites in (
        ("pyramidal", n_pyramidal, 4),
        ("feedback", n_feedback, 0),
        ("feedforward", n_feedforward, 0),
    ):
        _cell(simulation, "/template", dendrites)
        simulation.copy("/template", f"/{name}", n=n)
        simulation.delete("/template")
    for i in range(n_afferents):
        simulation.create("random_spikes", f"/afferent[{i}]", rate=15.0)
    fibres = simulation.find("/afferent[*]")
    axons = {name: simulation.find(f"/{name}[*]/axon") for name in ("pyramidal", "feedback", "feedforward")}
    for name, excitation in (("pyramidal", [*fibres, *axons["pyramidal"]]), ("feedback", axons["pyramidal"]), (
        "feedforward", fibres
    )):  # fmt: skip
        inhibition = [*axons["feedback"], *axons["feedforward"]]
        for kind, senders, share in (("excitation", excitation, 0.8), ("inhibition", inhibition, 0.2)):
            targets = simulation.find(f"/{name}[*]/**/{kind}")
            n_each = round(n_inputs * share)
            if not targets or not senders:
                continue
            chosen = rng.integers(len(senders), size=len(targets) * n_each)
            simulation.connect_all(
                [senders[k] for k in chosen],
                [target for target in targets for _ in range(n_each)],
                delay=rng.uniform(1.0, 10.0, len(chosen)),
                weight=rng.uniform(0.5, 1.5, len(chosen)),
            )
    return simulation


def _cell(simulation: Simulation, path: str, n_dendrites: int) -> None:
    """A cell with an active soma, a chain of dendrite, an axon, and a synapse of each kind."""
    simulation.create("group", path)
    simulation.create("active_compartment", f"{path}/soma", length=20, diameter=20)
    simulation.create("axon", f"{path}/axon")
    simulation.link(f"{path}/soma", f"{path}/axon")
    above = f"{path}/soma"
    for k in range(n_dendrites):
        dendrite = f"{path}/dend[{k}]"
        simulation.create("passive_compartment", dendrite, length=100, diameter=2, y=60.0 + 100 * k)
        simulation.link(above, dendrite)
        above = dendrite
    simulation.create("synapse", f"{above}/excitation", tau=2.0, gmax=0.002, E=0.0)
    simulation.link(f"{above}/excitation", above)
    simulation.create("dual_exponential_synapse", f"{path}/soma/inhibition", gmax=0.004, E=-75.0)
    simulation.link(f"{path}/soma/inhibition", f"{path}/soma")
