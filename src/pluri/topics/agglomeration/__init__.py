"""Flat topics put together, step by step, by what a merger costs: a tree to read, or fewer topics."""

from pluri.topics.agglomeration.mergers import Mergers, agglomerate
from pluri.topics.agglomeration.topic_tree import TopicTree

__all__ = ["Mergers", "TopicTree", "agglomerate"]
