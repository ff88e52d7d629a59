"""Topics whose number is learned: the hierarchical Dirichlet process of documents."""

from pluri.topics.hdp.estimator import HDPTopicModel
from pluri.topics.hdp.gibbs import TopicGibbs

__all__ = ["HDPTopicModel", "TopicGibbs"]
