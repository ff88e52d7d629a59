"""Hidden Markov models."""
from pluri.sequences.gaussian import GaussianHMM
from pluri.sequences.monitor import ConvergenceMonitor
__all__ = ["ConvergenceMonitor", "GaussianHMM"]
