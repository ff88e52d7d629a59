"""Reversible statistical embeddings: rows as a mixture of regressions on spectral coordinates."""

from pluri.embedding.regression.gibbs import SpectralRegressionGibbs
from pluri.embedding.regression.records import RegressionPriors

__all__ = ["RegressionPriors", "SpectralRegressionGibbs"]
