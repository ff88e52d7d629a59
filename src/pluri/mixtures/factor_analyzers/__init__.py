"""Mixtures of factor analysers: data near several low-dimensional subspaces."""

from pluri.mixtures.factor_analyzers.mixture import FactorAnalyzerMixture
from pluri.mixtures.factor_analyzers.nonparametric import NonparametricFactorAnalyzerMixture
from pluri.mixtures.factor_analyzers.nonparametric_gibbs import FactorMixtureGibbs

__all__ = ["FactorAnalyzerMixture", "FactorMixtureGibbs", "NonparametricFactorAnalyzerMixture"]
