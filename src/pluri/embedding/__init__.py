"""Embeddings: maps on which neighbours stay neighbours, coordinates that run both ways, clusters with a certificate,
and how many dimensions there are.
"""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.embedding.dimension.estimator import IntrinsicDimension
    from pluri.embedding.neighbors import SNE, MixtureSNE, neighbor_probabilities
    from pluri.embedding.regression import (
        AlignedFactorAnalyzers,
        AlignedGibbs,
        SpectralRegression,
        SpectralRegressionGibbs,
        nsr_dimension,
    )
    from pluri.embedding.spectral.bounds import kmeans_lower_bound
    from pluri.embedding.spectral.diffusion import DiffusionMap
    from pluri.embedding.spectral.estimator import SpectralKMeans
    from pluri.embedding.spectral.random_walk import walk_matrix

__all__ = [
    "SNE",
    "AlignedFactorAnalyzers",
    "AlignedGibbs",
    "DiffusionMap",
    "IntrinsicDimension",
    "MixtureSNE",
    "SpectralKMeans",
    "SpectralRegression",
    "SpectralRegressionGibbs",
    "kmeans_lower_bound",
    "neighbor_probabilities",
    "nsr_dimension",
    "walk_matrix",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "dimension.estimator": ["IntrinsicDimension"],
        "neighbors": ["SNE", "MixtureSNE", "neighbor_probabilities"],
        "regression": [
            "AlignedFactorAnalyzers",
            "AlignedGibbs",
            "SpectralRegression",
            "SpectralRegressionGibbs",
            "nsr_dimension",
        ],
        "spectral.bounds": ["kmeans_lower_bound"],
        "spectral.diffusion": ["DiffusionMap"],
        "spectral.estimator": ["SpectralKMeans"],
        "spectral.random_walk": ["walk_matrix"],
    },
)
