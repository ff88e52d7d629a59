"""Simulated annealing: minimise what has many minima, over numbers, integers or states of one's own."""

from pluri.optimize.annealing.annealing import SimulatedAnnealing
from pluri.optimize.annealing.moves import Proposal
from pluri.optimize.annealing.run import AnnealingProgress
from pluri.optimize.annealing.schedules import ExponentialDecay, LinearDecay, LogarithmicDecay

__all__ = ["AnnealingProgress", "ExponentialDecay", "LinearDecay", "LogarithmicDecay", "Proposal", "SimulatedAnnealing"]
