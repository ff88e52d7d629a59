"""Topic models: what documents are about, as flat topics, graphs and trees."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.topics.hierarchical import HierarchicalLDA, HierarchicalPachinko
    from pluri.topics.lda import LatentDirichletAllocation
    from pluri.topics.supervised import SupervisedLDA, SupervisedLDAClassifier
    from pluri.topics.topic_graph import Example, Hierarchy, TopicEdge, TopicGraph, TopicNode
    from pluri.topics.topic_model import TopicModel

__all__ = [
    "Example",
    "HierarchicalLDA",
    "HierarchicalPachinko",
    "Hierarchy",
    "LatentDirichletAllocation",
    "SupervisedLDA",
    "SupervisedLDAClassifier",
    "TopicEdge",
    "TopicGraph",
    "TopicModel",
    "TopicNode",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "hierarchical": ["HierarchicalLDA", "HierarchicalPachinko"],
        "lda": ["LatentDirichletAllocation"],
        "supervised": ["SupervisedLDA", "SupervisedLDAClassifier"],
        "topic_graph": ["Example", "Hierarchy", "TopicEdge", "TopicGraph", "TopicNode"],
        "topic_model": ["TopicModel"],
    },
)
