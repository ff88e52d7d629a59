"""Neurons: compartments, channels, synapses and networks of them, simulated; what they do is data for the models."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.neurons.result import SimulationResult
    from pluri.neurons.simulation import Simulation
    from pluri.neurons.tree.element import Element, Slot, register_element
    from pluri.neurons.tree.errors import SimulationError, SimulationWarning
    from pluri.neurons.tree.fields import Field, field
    from pluri.neurons.tree.structure import ElementTree

__all__ = [
    "Element",
    "ElementTree",
    "Field",
    "Simulation",
    "SimulationError",
    "SimulationResult",
    "SimulationWarning",
    "Slot",
    "field",
    "register_element",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "result": ["SimulationResult"],
        "simulation": ["Simulation"],
        "tree.element": ["Element", "Slot", "register_element"],
        "tree.errors": ["SimulationError", "SimulationWarning"],
        "tree.fields": ["Field", "field"],
        "tree.structure": ["ElementTree"],
    },
)
