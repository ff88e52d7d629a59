"""Similarity kernels: what a determinantal prior, or a determinantal point process, means by "alike".

A kernel is a small object: ``kernel(parameters)`` is the matrix of similarities, ``kernel.pullback`` its gradient, and
``kernel.features``, where it exists, a finite feature map for large numbers of items. Kernels of the nodes of a graph
are functions that return the matrix; `repair_kernel` mends matrices that are not positive semi-definite.
"""

from pluri.priors.kernels.graph import heat_kernel, regularized_laplacian_kernel, shortest_path_kernel
from pluri.priors.kernels.probability_product import ProbabilityProductKernel
from pluri.priors.kernels.repair import repair_kernel
from pluri.priors.kernels.similarity import SimilarityKernel, inverse_of_matrix, log_determinant_of_matrix
from pluri.priors.kernels.subspace import SubspaceKernel, canonical_signs
from pluri.priors.kernels.vectors import CosineKernel, ExponentialCosineKernel, LinearKernel, RBFKernel

__all__ = [
    "CosineKernel",
    "ExponentialCosineKernel",
    "LinearKernel",
    "ProbabilityProductKernel",
    "RBFKernel",
    "SimilarityKernel",
    "SubspaceKernel",
    "canonical_signs",
    "heat_kernel",
    "inverse_of_matrix",
    "log_determinant_of_matrix",
    "regularized_laplacian_kernel",
    "repair_kernel",
    "shortest_path_kernel",
]
