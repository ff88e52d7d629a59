"""Learning loops, free of any model: what a model must give, and what the loop does with it."""

from pluri.inference.acceleration import Anderson, Squarem
from pluri.inference.checkpoint import flatten, unflatten
from pluri.inference.em import expectation_maximization
from pluri.inference.history import History, HistoryRow
from pluri.inference.learnable import Learnable, Packable
from pluri.inference.result import EMResult, IterationState
from pluri.inference.run import AscentWarning

__all__ = [
    "Anderson",
    "AscentWarning",
    "EMResult",
    "History",
    "HistoryRow",
    "IterationState",
    "Learnable",
    "Packable",
    "Squarem",
    "expectation_maximization",
    "flatten",
    "unflatten",
]
