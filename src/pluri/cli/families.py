"""What the commands must know of each family of models: where it is, what it calls its parts, and what it takes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

OUTCOME = ("converged_", "n_iter_", "objective_", "log_det_", "n_features_in_", "classes_")


@dataclass(frozen=True)
class Family:
    """Models that are used alike.

    Attributes
    ----------
    title : what they are, in the list of models
    package : where their public names are
    unit : what each row is labelled with
    names : those that take the rows of a file; all by default
    ordered : whether rows follow each other in sequences
    rating : what their score is; None where it differs from model to model
    rating_is_mean : whether the score is a mean over rows, instead of a sum
    symbols : attribute with the words of each column, where columns may hold words
    classifier : the model of the family that learns from labels
    outcome : attributes that tell how the fit went
    command : the command that fits them, if ``fit`` does not
    """

    title: str
    package: str
    unit: str
    names: tuple[str, ...] | None = None
    ordered: bool = False
    rating: str | None = "log_likelihood"
    rating_is_mean: bool = False
    symbols: str = "categories_"
    classifier: str | None = None
    outcome: tuple[str, ...] = OUTCOME
    command: str | None = None

    def public_names(self) -> list[str]:
        """Names that may be models; nothing else is imported for them."""
        return list(import_module(self.package).__all__ if self.names is None else self.names)

    def find(self, name: str) -> type | None:
        """The model of a public name: an estimator with a constructor of its own (bases have none)."""
        from sklearn.base import BaseEstimator

        kind = getattr(import_module(self.package), name)
        is_model = inspect.isclass(kind) and issubclass(kind, BaseEstimator) and "__init__" in vars(kind)
        return kind if is_model else None

    def models(self) -> Iterator[tuple[str, type]]:
        """Names and classes, by name."""
        for name in sorted(self.public_names()):
            kind = self.find(name)
            if kind is not None:
                yield name, kind


SEQUENCES = Family(
    "Hidden Markov models",
    "pluri.sequences",
    "state",
    ordered=True,
    symbols="vocabulary_",
    classifier="HMMClassifier",
    outcome=(*OUTCOME, "best_params_", "best_score_"),
)
MIXTURES = Family(
    "Mixtures",
    "pluri.mixtures",
    "component",
    names=(
        "BayesianBernoulliMixture",
        "BernoulliMixture",
        "CategoricalMixture",
        "DirichletProcessMixture",
        "ExponentialFamilyPCAMixture",
        "FactorAnalyzerMixture",
        "GaussianMixture",
        "MetropolisGaussianMixture",
        "MultinomialMixture",
        "NaiveBayes",
        "NonparametricFactorAnalyzerMixture",
        "PoissonMixture",
    ),
    rating_is_mean=True,
    classifier="NaiveBayes",
    outcome=(*OUTCOME, "n_clusters_", "n_components_", "lower_bound_", "weights_"),
)
CLUSTERS = Family(
    "Clusters by distance",
    "pluri.mixtures",
    "cluster",
    names=("DPMeans",),
    rating="minus_squared_distance",
    outcome=(*OUTCOME, "n_clusters_", "penalty_", "inertia_"),
)
TOPICS = Family(
    "Topics",
    "pluri.topics",
    "topic",
    names=(
        "ConceptGraph",
        "HDPTopicModel",
        "HierarchicalLDA",
        "HierarchicalPachinko",
        "LatentDirichletAllocation",
        "SupervisedLDA",
        "SupervisedLDAClassifier",
        "TreeTopicModel",
    ),
    rating=None,
    outcome=(*OUTCOME, "n_topics_", "n_topics_interval_", "n_large_topics_", "n_large_topics_interval_", "bound_"),
    command="pluri topics",
)
DYNAMICS = Family(
    "Dynamical systems",
    "pluri.dynamics",
    "regime",
    names=("CountDynamicalSystem", "LinearDynamicalSystem", "PoissonDynamicalSystem", "SwitchingDynamicalSystem"),
    ordered=True,
    rating="score",  # a log-likelihood, or a lower bound of it
)
FACTORS = Family(
    "Factors and dictionaries",
    "pluri.factors",
    "prediction",
    names=(
        "BayesianFactorAnalysis",
        "BetaProcessDictionary",
        "BinaryRBM",
        "ExponentialFamilyPCA",
        "IBPLinearGaussian",
        "LogisticPCA",
    ),
    rating="score",  # a log density, its bound or an estimate
    rating_is_mean=True,
)
EMBEDDINGS = Family(
    "Maps",
    "pluri.embedding",
    "cluster",
    names=("SNE", "SpectralKMeans", "SpectralRegression"),
    rating=None,
)
FAMILIES = (SEQUENCES, MIXTURES, CLUSTERS, DYNAMICS, FACTORS, EMBEDDINGS, TOPICS)
#: Models that are fitted elsewhere: their files can be looked at.
OTHERS = Family("Others", "pluri", "prediction", names=(), rating=None)


def family_of(model: Any) -> Family:
    """The family that names the class of a model, or else the one whose package it comes from, if any."""
    kind = type(model)
    for family in FAMILIES:
        if kind.__name__ in (family.names or ()):
            return family
    for family in FAMILIES:
        if kind.__module__.startswith(f"{family.package}."):
            return family
    return OTHERS
