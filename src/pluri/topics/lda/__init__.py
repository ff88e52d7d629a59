"""Latent Dirichlet allocation, and the ways of learning it."""

from pluri.topics.lda.estimator import LatentDirichletAllocation

__all__ = ["LatentDirichletAllocation"]
