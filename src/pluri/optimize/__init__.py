"""Small optimisers on constrained sets, free of any model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pluri.optimize import manifolds
from pluri.optimize.annealing import Proposal, SimulatedAnnealing
from pluri.optimize.riemannian import LineStep, RiemannianResult, riemannian_cg, riemannian_lbfgs, strong_wolfe
from pluri.optimize.simplex import project_to_simplex

if TYPE_CHECKING:
    from pluri.optimize import sdp

__all__ = [
    "LineStep",
    "Proposal",
    "RiemannianResult",
    "SimulatedAnnealing",
    "manifolds",
    "project_to_simplex",
    "riemannian_cg",
    "riemannian_lbfgs",
    "sdp",
    "strong_wolfe",
]


def __getattr__(name: str) -> Any:
    # It has compiled functions, which most who import this package do not need.
    if name == "sdp":
        return import_module("pluri.optimize.sdp")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
