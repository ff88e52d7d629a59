"""Stochastic neighbor embedding: maps whose points have the neighbours that the objects have."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.embedding.neighbors.input_data import neighbor_probabilities
    from pluri.embedding.neighbors.mixture_sne import MixtureSNE
    from pluri.embedding.neighbors.sne import SNE

__all__ = ["SNE", "MixtureSNE", "neighbor_probabilities"]

__getattr__, __dir__ = lazy_names(
    __name__, {"input_data": ["neighbor_probabilities"], "mixture_sne": ["MixtureSNE"], "sne": ["SNE"]}
)
