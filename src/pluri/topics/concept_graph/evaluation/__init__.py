"""What a fitted concept graph says of documents."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.topics.concept_graph.evaluation.fitted import FittedGraph
    from pluri.topics.concept_graph.evaluation.levels import level_distribution

__all__ = ["FittedGraph", "level_distribution"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fitted": ["FittedGraph"],
        "levels": ["level_distribution"],
    },
)
