"""Markov chains over concept graphs: where they start, where they are, and their steps."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.topics.concept_graph.sampling.gibbs import ConceptGraphGibbs
    from pluri.topics.concept_graph.sampling.starts import arranged_start
    from pluri.topics.concept_graph.sampling.state import GraphState

__all__ = ["ConceptGraphGibbs", "GraphState", "arranged_start"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "gibbs": ["ConceptGraphGibbs"],
        "starts": ["arranged_start"],
        "state": ["GraphState"],
    },
)
