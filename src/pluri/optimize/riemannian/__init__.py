"""Descent along geodesics: L-BFGS and conjugate gradients on any manifold, with a strong Wolfe line search."""

from pluri.optimize.riemannian.conjugate_gradient import riemannian_cg
from pluri.optimize.riemannian.lbfgs import riemannian_lbfgs
from pluri.optimize.riemannian.line_search import LineStep, strong_wolfe
from pluri.optimize.riemannian.result import RiemannianResult

__all__ = ["LineStep", "RiemannianResult", "riemannian_cg", "riemannian_lbfgs", "strong_wolfe"]
