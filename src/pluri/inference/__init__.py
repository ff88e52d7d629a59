"""Learning loops, free of any model: what a model must give, and what the loop does with it.

EM is here; the other ways of learning are packages of their own, imported when they are first used:
``pluri.inference.mcmc`` (Markov chains), ``pluri.inference.variational`` (coordinate ascent, stochastic and black-box
variational inference, normalizing flows), ``pluri.inference.smc`` (particle filters and samplers) and
``pluri.inference.ais`` (importance sampling, plain and annealed).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pluri.inference.acceleration import Anderson, Squarem
from pluri.inference.checkpoint import Checkpoint, flatten, unflatten
from pluri.inference.em import EMResult, expectation_maximization
from pluri.inference.learnable import Learnable, Packable
from pluri.inference.run import AscentWarning, History, HistoryRow, IterationState

if TYPE_CHECKING:
    from pluri.inference import ais, mcmc, smc, variational

__all__ = [
    "Anderson",
    "AscentWarning",
    "Checkpoint",
    "EMResult",
    "History",
    "HistoryRow",
    "IterationState",
    "Learnable",
    "Packable",
    "Squarem",
    "ais",
    "expectation_maximization",
    "flatten",
    "mcmc",
    "smc",
    "unflatten",
    "variational",
]


def __getattr__(name: str) -> Any:
    if name in ("ais", "mcmc", "smc", "variational"):
        return import_module(f"pluri.inference.{name}")
    raise AttributeError(f"module 'pluri.inference' has no attribute {name!r}")
