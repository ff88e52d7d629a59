"""Embeddings: coordinates of few dimensions, the clusters that they show, and how many dimensions there are."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.embedding.spectral.bounds import kmeans_lower_bound
    from pluri.embedding.spectral.estimator import SpectralKMeans

__all__ = ["SpectralKMeans", "kmeans_lower_bound"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "spectral.bounds": ["kmeans_lower_bound"],
        "spectral.estimator": ["SpectralKMeans"],
    },
)
