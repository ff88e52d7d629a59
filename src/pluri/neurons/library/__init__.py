"""The element library: importing it makes its classes known by name."""

from pluri.neurons.library import channels, compartments, sources, stimuli, synapses, units

__all__ = ["channels", "compartments", "sources", "stimuli", "synapses", "units"]
