"""Objects as points: maps on which neighbours stay neighbours."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.embedding.neighbors import SNE, MixtureSNE, neighbor_probabilities

__all__ = ["SNE", "MixtureSNE", "neighbor_probabilities"]

__getattr__, __dir__ = lazy_names(__name__, {"neighbors": ["SNE", "MixtureSNE", "neighbor_probabilities"]})
