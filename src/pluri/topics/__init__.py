"""Topic models: what documents are about, as flat topics, graphs and trees."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.topics.agglomeration import TopicTree
    from pluri.topics.concept_graph import ConceptGraph
    from pluri.topics.editing import apply_edits, read_edits
    from pluri.topics.hdp import HDPTopicModel
    from pluri.topics.hierarchical import HierarchicalLDA, HierarchicalPachinko
    from pluri.topics.lda import LatentDirichletAllocation
    from pluri.topics.lda.streaming import CountFiles, write_counts
    from pluri.topics.number import TopicSearchCV, choose_n_topics
    from pluri.topics.supervised import SupervisedLDA, SupervisedLDAClassifier
    from pluri.topics.topic_graph import Example, Hierarchy, TopicEdge, TopicGraph, TopicNode
    from pluri.topics.topic_model import TopicModel
    from pluri.topics.tree import TreeTopicModel

__all__ = [
    "ConceptGraph",
    "CountFiles",
    "Example",
    "HDPTopicModel",
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
    "TopicSearchCV",
    "TopicTree",
    "TreeTopicModel",
    "apply_edits",
    "choose_n_topics",
    "read_edits",
    "write_counts",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "agglomeration": ["TopicTree"],
        "concept_graph": ["ConceptGraph"],
        "editing": ["apply_edits", "read_edits"],
        "hdp": ["HDPTopicModel"],
        "hierarchical": ["HierarchicalLDA", "HierarchicalPachinko"],
        "lda": ["LatentDirichletAllocation"],
        "lda.streaming": ["CountFiles", "write_counts"],
        "number": ["TopicSearchCV", "choose_n_topics"],
        "supervised": ["SupervisedLDA", "SupervisedLDAClassifier"],
        "topic_graph": ["Example", "Hierarchy", "TopicEdge", "TopicGraph", "TopicNode"],
        "topic_model": ["TopicModel"],
        "tree": ["TreeTopicModel"],
    },
)
