"""Topic models: what documents are about, as flat topics, graphs and trees."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.topics.supervised import SupervisedLDA, SupervisedLDAClassifier
    from pluri.topics.topic_graph import Example, Hierarchy, TopicEdge, TopicGraph, TopicNode
    from pluri.topics.topic_model import TopicModel

__all__ = [
    "Example",
    "Hierarchy",
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
        "supervised": ["SupervisedLDA", "SupervisedLDAClassifier"],
        "topic_graph": ["Example", "Hierarchy", "TopicEdge", "TopicGraph", "TopicNode"],
        "topic_model": ["TopicModel"],
    },
)
