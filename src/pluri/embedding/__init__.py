"""Embeddings: coordinates of few dimensions, the clusters that they show, and how many dimensions there are."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.embedding.dimension.estimator import IntrinsicDimension
    from pluri.embedding.spectral.bounds import kmeans_lower_bound
    from pluri.embedding.spectral.diffusion import DiffusionMap
    from pluri.embedding.spectral.estimator import SpectralKMeans
    from pluri.embedding.spectral.random_walk import walk_matrix

__all__ = ["DiffusionMap", "IntrinsicDimension", "SpectralKMeans", "kmeans_lower_bound", "walk_matrix"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "dimension.estimator": ["IntrinsicDimension"],
        "spectral.bounds": ["kmeans_lower_bound"],
        "spectral.diffusion": ["DiffusionMap"],
        "spectral.estimator": ["SpectralKMeans"],
        "spectral.random_walk": ["walk_matrix"],
    },
)
