"""Mixtures and the classifiers that are built like them: a law for each class, and a distribution over classes."""

from pluri.mixtures.dependent_dirichlet_mixture import DependentDirichletMixture
from pluri.mixtures.dynamic_means import DynamicMeans
from pluri.mixtures.experts import InfiniteMixtureOfExperts
from pluri.mixtures.gaussian import GaussianMixture
from pluri.mixtures.gaussian_density import GaussianMixtureDensity
from pluri.mixtures.metropolis_gaussian import MetropolisGaussianMixture
from pluri.mixtures.mixture import DeadComponentWarning
from pluri.mixtures.naive_bayes import LogOdds, NaiveBayes

__all__ = [
    "DeadComponentWarning",
    "DependentDirichletMixture",
    "DynamicMeans",
    "GaussianMixture",
    "GaussianMixtureDensity",
    "InfiniteMixtureOfExperts",
    "LogOdds",
    "MetropolisGaussianMixture",
    "NaiveBayes",
]
