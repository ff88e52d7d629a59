"""Mixtures and the classifiers that are built like them: a law for each class, and a distribution over classes."""

from pluri.mixtures.gaussian_density import GaussianMixtureDensity
from pluri.mixtures.metropolis_gaussian import MetropolisGaussianMixture
from pluri.mixtures.naive_bayes import LogOdds, NaiveBayes

__all__ = ["GaussianMixtureDensity", "LogOdds", "MetropolisGaussianMixture", "NaiveBayes"]
