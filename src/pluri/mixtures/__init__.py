"""Mixtures, and classifiers that are built like them: a distribution for each class, and one over the classes."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.mixtures.batches.dependent_dirichlet_mixture import DependentDirichletMixture
    from pluri.mixtures.batches.dynamic_means import DynamicMeans
    from pluri.mixtures.bayesian_bernoulli.estimator import BayesianBernoulliMixture
    from pluri.mixtures.dirichlet_process import DirichletProcessMixture
    from pluri.mixtures.discrete.bernoulli import BernoulliMixture
    from pluri.mixtures.discrete.categorical import CategoricalMixture
    from pluri.mixtures.discrete.multinomial import MultinomialMixture
    from pluri.mixtures.discrete.poisson import PoissonMixture
    from pluri.mixtures.dp_means import DPMeans
    from pluri.mixtures.experts import InfiniteMixtureOfExperts
    from pluri.mixtures.exponential_family_pca import ExponentialFamilyPCAMixture
    from pluri.mixtures.factor_analyzers import FactorAnalyzerMixture, NonparametricFactorAnalyzerMixture
    from pluri.mixtures.gaussian.density import GaussianMixtureDensity
    from pluri.mixtures.gaussian.estimator import GaussianMixture
    from pluri.mixtures.gaussian.metropolis import MetropolisGaussianMixture
    from pluri.mixtures.mixture import DeadComponentWarning
    from pluri.mixtures.naive_bayes.estimator import LogOdds, NaiveBayes

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
        "bayesian_bernoulli.estimator": ["BayesianBernoulliMixture"],
        "discrete.bernoulli": ["BernoulliMixture"],
        "discrete.categorical": ["CategoricalMixture"],
        "batches.dependent_dirichlet_mixture": ["DependentDirichletMixture"],
        "dirichlet_process": ["DirichletProcessMixture"],
        "dp_means": ["DPMeans"],
        "batches.dynamic_means": ["DynamicMeans"],
        "exponential_family_pca": ["ExponentialFamilyPCAMixture"],
        "experts": ["InfiniteMixtureOfExperts"],
        "factor_analyzers": ["FactorAnalyzerMixture", "NonparametricFactorAnalyzerMixture"],
        "gaussian.estimator": ["GaussianMixture"],
        "gaussian.density": ["GaussianMixtureDensity"],
        "gaussian.metropolis": ["MetropolisGaussianMixture"],
        "mixture": ["DeadComponentWarning"],
        "discrete.multinomial": ["MultinomialMixture"],
        "naive_bayes.estimator": ["LogOdds", "NaiveBayes"],
        "discrete.poisson": ["PoissonMixture"],
    },
)
