"""Small optimisers on constrained sets, free of any model."""

from pluri.optimize import manifolds
from pluri.optimize.riemannian import LineStep, RiemannianResult, riemannian_cg, riemannian_lbfgs, strong_wolfe
from pluri.optimize.simplex import project_to_simplex

__all__ = [
    "LineStep",
    "RiemannianResult",
    "manifolds",
    "project_to_simplex",
    "riemannian_cg",
    "riemannian_lbfgs",
    "strong_wolfe",
]
