"""The element library: importing it makes its classes known by name."""

from pluri.neurons.graphics import elements as graphics
from pluri.neurons.library import channels, compartments, sources, stimuli, synapses, units

__all__ = ["channels", "compartments", "graphics", "sources", "stimuli", "synapses", "units"]
