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
    from pluri.topics.over_time.changes import Scan
    from pluri.topics.over_time.records import Misfit, TopicChange, TopicTrends, WordDrift
    from pluri.topics.over_time.shares import SharesOverTime, topic_shares_over_time
    from pluri.topics.over_time.trends import topic_trends
    from pluri.topics.supervised import SupervisedLDA, SupervisedLDAClassifier
    from pluri.topics.text.cutting import WordCutter
    from pluri.topics.text.phrases import find_phrases
    from pluri.topics.text.stop_words import stop_words
    from pluri.topics.topic_graph import Example, Hierarchy, TopicEdge, TopicGraph, TopicNode
    from pluri.topics.topic_model import TopicModel
    from pluri.topics.tree import TreeTopicModel
    from pluri.topics.updating.forgetting import forget
    from pluri.topics.updating.monitor import DocumentCheck, Ratio, TopicMonitor

__all__ = [
    "ConceptGraph",
    "CountFiles",
    "DocumentCheck",
    "Example",
    "HDPTopicModel",
    "HierarchicalLDA",
    "HierarchicalPachinko",
    "Hierarchy",
    "LatentDirichletAllocation",
    "Misfit",
    "Ratio",
    "Scan",
    "SharesOverTime",
    "SupervisedLDA",
    "SupervisedLDAClassifier",
    "TopicChange",
    "TopicEdge",
    "TopicGraph",
    "TopicModel",
    "TopicMonitor",
    "TopicNode",
    "TopicSearchCV",
    "TopicTree",
    "TopicTrends",
    "TreeTopicModel",
    "WordCutter",
    "WordDrift",
    "apply_edits",
    "choose_n_topics",
    "find_phrases",
    "forget",
    "read_edits",
    "stop_words",
    "topic_shares_over_time",
    "topic_trends",
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
        "over_time.changes": ["Scan"],
        "over_time.shares": ["SharesOverTime", "topic_shares_over_time"],
        "over_time.records": ["Misfit", "TopicChange", "TopicTrends", "WordDrift"],
        "over_time.trends": ["topic_trends"],
        "supervised": ["SupervisedLDA", "SupervisedLDAClassifier"],
        "text.cutting": ["WordCutter"],
        "text.phrases": ["find_phrases"],
        "text.stop_words": ["stop_words"],
        "topic_graph": ["Example", "Hierarchy", "TopicEdge", "TopicGraph", "TopicNode"],
        "topic_model": ["TopicModel"],
        "tree": ["TreeTopicModel"],
        "updating.forgetting": ["forget"],
        "updating.monitor": ["DocumentCheck", "Ratio", "TopicMonitor"],
    },
)
