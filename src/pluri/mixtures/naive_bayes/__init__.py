"""Naive Bayes with a family for each feature."""

from pluri.mixtures.naive_bayes.estimator import NaiveBayes
from pluri.mixtures.naive_bayes.queries import LogOdds

__all__ = ["LogOdds", "NaiveBayes"]
