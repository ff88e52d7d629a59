"""Reversible statistical embeddings: rows as a mixture of regressions on coordinates."""

from pluri.embedding.regression.aligned import AlignedFactorAnalyzers
from pluri.embedding.regression.aligned_gibbs import AlignedGibbs
from pluri.embedding.regression.dimension_estimate import DimensionEstimate, nsr_dimension
from pluri.embedding.regression.estimator import SpectralRegression
from pluri.embedding.regression.gibbs import SpectralRegressionGibbs
from pluri.embedding.regression.prediction import EmbeddedDistribution
from pluri.embedding.regression.queries import Novelty
from pluri.embedding.regression.records import RegressionPriors

__all__ = [
    "AlignedFactorAnalyzers",
    "AlignedGibbs",
    "DimensionEstimate",
    "EmbeddedDistribution",
    "Novelty",
    "RegressionPriors",
    "SpectralRegression",
    "SpectralRegressionGibbs",
    "nsr_dimension",
]
