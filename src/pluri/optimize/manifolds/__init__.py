"""Sets on which a point is moved along geodesics: positive definite matrices, plain arrays, and products of these."""

from pluri.optimize.manifolds.euclidean import Euclidean
from pluri.optimize.manifolds.manifold import Manifold
from pluri.optimize.manifolds.positive_definite import SPD
from pluri.optimize.manifolds.product import Product

__all__ = ["SPD", "Euclidean", "Manifold", "Product"]
