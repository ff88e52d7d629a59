"""Mixtures, and classifiers that are built like them: a distribution for each class, and one over the classes."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.mixtures.bayesian_bernoulli import BayesianBernoulliMixture
    from pluri.mixtures.bernoulli import BernoulliMixture
    from pluri.mixtures.categorical import CategoricalMixture
    from pluri.mixtures.dependent_dirichlet_mixture import DependentDirichletMixture
    from pluri.mixtures.dirichlet_process import DirichletProcessMixture
    from pluri.mixtures.dp_means import DPMeans
    from pluri.mixtures.dynamic_means import DynamicMeans
    from pluri.mixtures.experts import InfiniteMixtureOfExperts
    from pluri.mixtures.exponential_family_pca import ExponentialFamilyPCAMixture
    from pluri.mixtures.factor_analyzers import FactorAnalyzerMixture, NonparametricFactorAnalyzerMixture
    from pluri.mixtures.gaussian import GaussianMixture
    from pluri.mixtures.gaussian_density import GaussianMixtureDensity
    from pluri.mixtures.metropolis_gaussian import MetropolisGaussianMixture
    from pluri.mixtures.mixture import DeadComponentWarning
    from pluri.mixtures.multinomial import MultinomialMixture
    from pluri.mixtures.naive_bayes import LogOdds, NaiveBayes
    from pluri.mixtures.poisson import PoissonMixture

__all__ = [
    "BayesianBernoulliMixture",
    "BernoulliMixture",
    "CategoricalMixture",
    "DPMeans",
    "DeadComponentWarning",
    "DependentDirichletMixture",
    "DirichletProcessMixture",
    "DynamicMeans",
    "ExponentialFamilyPCAMixture",
    "FactorAnalyzerMixture",
    "GaussianMixture",
    "GaussianMixtureDensity",
    "InfiniteMixtureOfExperts",
    "LogOdds",
    "MetropolisGaussianMixture",
    "MultinomialMixture",
    "NaiveBayes",
    "NonparametricFactorAnalyzerMixture",
    "PoissonMixture",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "bayesian_bernoulli": ["BayesianBernoulliMixture"],
        "bernoulli": ["BernoulliMixture"],
        "categorical": ["CategoricalMixture"],
        "dependent_dirichlet_mixture": ["DependentDirichletMixture"],
        "dirichlet_process": ["DirichletProcessMixture"],
        "dp_means": ["DPMeans"],
        "dynamic_means": ["DynamicMeans"],
        "exponential_family_pca": ["ExponentialFamilyPCAMixture"],
        "experts": ["InfiniteMixtureOfExperts"],
        "factor_analyzers": ["FactorAnalyzerMixture", "NonparametricFactorAnalyzerMixture"],
        "gaussian": ["GaussianMixture"],
        "gaussian_density": ["GaussianMixtureDensity"],
        "metropolis_gaussian": ["MetropolisGaussianMixture"],
        "mixture": ["DeadComponentWarning"],
        "multinomial": ["MultinomialMixture"],
        "naive_bayes": ["LogOdds", "NaiveBayes"],
        "poisson": ["PoissonMixture"],
    },
)
