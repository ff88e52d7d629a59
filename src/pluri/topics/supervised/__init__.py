"""Supervised topic models: topics that explain words, and ratings or classes of documents."""

from pluri.topics.supervised.classification import SupervisedLDAClassifier
from pluri.topics.supervised.regression import SupervisedLDA

__all__ = ["SupervisedLDA", "SupervisedLDAClassifier"]
