"""Small optimisers on constrained sets, free of any model."""

from pluri.optimize.simplex import project_to_simplex

__all__ = ["project_to_simplex"]
