"""Networks that are ready to run, as Python functions: each gives a `Simulation`."""

from pluri.neurons.models.cells import branched_tree, cable, hodgkin_huxley_patch
from pluri.neurons.models.morphology import load_morphology
from pluri.neurons.models.networks import half_centre, hopfield, piriform, two_neurons
from pluri.neurons.models.neuroml import write_neuroml

__all__ = [
    "branched_tree",
    "cable",
    "half_centre",
    "hodgkin_huxley_patch",
    "hopfield",
    "load_morphology",
    "piriform",
    "two_neurons",
    "write_neuroml",
]
