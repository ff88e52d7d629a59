"""Neurons: compartments, channels, synapses and networks of them, simulated; what they do is data for the models."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.neurons.fitting.passive_membrane import PassiveMembraneFit, membrane_rows
    from pluri.neurons.fitting.simulator_likelihood import SimulatorLikelihood
    from pluri.neurons.library.channels import Channel
    from pluri.neurons.repeats import run_all
    from pluri.neurons.result import SimulationResult
    from pluri.neurons.simulation import Simulation
    from pluri.neurons.tree.element import Element, Slot, register_element
    from pluri.neurons.tree.errors import SimulationError, SimulationWarning
    from pluri.neurons.tree.fields import Field, field
    from pluri.neurons.tree.structure import ElementTree

__all__ = [
    "Channel",
    "Element",
    "ElementTree",
    "Field",
    "PassiveMembraneFit",
    "Simulation",
    "SimulationError",
    "SimulationResult",
    "SimulationWarning",
    "SimulatorLikelihood",
    "Slot",
    "field",
    "membrane_rows",
    "register_element",
    "run_all",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fitting.passive_membrane": ["PassiveMembraneFit", "membrane_rows"],
        "fitting.simulator_likelihood": ["SimulatorLikelihood"],
        "library.channels": ["Channel"],
        "repeats": ["run_all"],
        "result": ["SimulationResult"],
        "simulation": ["Simulation"],
        "tree.element": ["Element", "Slot", "register_element"],
        "tree.errors": ["SimulationError", "SimulationWarning"],
        "tree.fields": ["Field", "field"],
        "tree.structure": ["ElementTree"],
    },
)
