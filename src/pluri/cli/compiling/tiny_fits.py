"""A small fit of every public estimator, and small runs of what is no estimator: the one list of first calls.

``pluri compile`` runs them to fill the cache of compiled code; ``benchmarks/first_call.py`` measures how long the first
of them takes. Estimators are found by introspection; `KIND_OF_DATA` says what they learn from, where that is not a
table of real numbers, and a test fails for an estimator that cannot learn from what stands there.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from pluri.cli.compiling.tiny_data import DATA, kernels, numbers

#: Subpackages with something to compile.
PACKAGES = (
    "sequences", "mixtures", "topics", "factors", "embedding", "dynamics", "processes", "networks", "neurons",
    "decisions", "cochange", "inference",
)  # fmt: skip

#: Settings that make any fit short, by the names that all models share.
SMALL: Mapping[str, Any] = {
    "random_state": 0,
    "n_components": 2,
    "n_clusters": 2,
    "size": 2,
    "n_chains": 2,
    "n_draws": 8,
    "n_warmup": 8,
    "thin": 1,
    "n_init": 1,
    "n_particles": 8,
    "n_predictive": 20,
    "max_topics": 4,
    "max_doc_topics": 3,
    "n_super": 2,
    "n_sub": 2,
    "n_trees": 2,
    "max_nodes": (1, 2, 2),
    "max_components": 3,
    "hidden": 8,
    "hidden_size": 6,
    "embedding_size": 4,
    "max_epochs": 3,
    "n_layers": 2,
    "min_support": 2,
}

#: What an estimator learns from, if not from a table of real numbers.
KIND_OF_DATA: Mapping[str, str] = {
    "ActiveLearner": "numbers and labels",
    "BasisPursuit": "numbers and target",
    "BayesianBernoulliMixture": "binary",
    "BayesianCategoricalHMM": "symbols",
    "BayesianLinearRegression": "numbers and target",
    "BernoulliHMM": "binary",
    "BernoulliMixture": "binary",
    "BiLSTMClassifier": "symbols and labels",
    "BinaryRBM": "binary",
    "CategoricalHMM": "symbols",
    "CategoricalMixture": "symbols",
    "CoOccurrence": "binary",
    "CommitNeighbors": "binary",
    "Committee": "numbers and labels",
    "CompressiveRecovery": "measurements",
    "ConceptGraph": "counts",
    "ConditionalDPP": "items and subsets",
    "CostSensitiveClassifier": "numbers and labels",
    "CountDynamicalSystem": "counts",
    "DPPKernelLearner": "subsets",
    "DPPVariableSelection": "numbers and target",
    "FastBCS": "numbers and target",
    "FileRecommender": "commits",
    "FrameTagger": "numbers and labels",
    "FrequentItemsets": "binary",
    "GaussianProcessClassifier": "numbers and labels",
    "GaussianProcessRegressor": "numbers and target",
    "GeneralizedCountRegression": "numbers and labels",
    "HDPTopicModel": "counts",
    "HMMClassifier": "numbers and labels",
    "HMMSearchCV": "sequences",
    "HierarchicalLDA": "counts",
    "HierarchicalPachinko": "counts",
    "InfiniteMixtureOfExperts": "numbers and target",
    "ImageDenoiser": "picture",
    "ImageInpainter": "picture",
    "IsingDenoiser": "image",
    "LarsLasso": "numbers and target",
    "LatentDirichletAllocation": "counts",
    "LatentInhibition": "binary",
    "LogisticPCA": "binary",
    "MatchingPursuit": "numbers and target",
    "MultinomialHMM": "trials",
    "MultinomialMixture": "trials",
    "NaiveBayes": "binary and labels",
    "PassiveMembraneFit": "numbers and target",
    "PatchCompressor": "image",
    "PatchExtractor": "picture",
    "PoissonDynamicalSystem": "counts",
    "PoissonHMM": "counts",
    "PoissonMixture": "counts",
    "Popularity": "binary",
    "QueryByCommittee": "numbers and labels",
    "SeparateDPP": "kernels",
    "StOMP": "numbers and target",
    "SequenceClassifier": "sequences and labels",
    "SequenceDecoder": "vectors and tokens",
    "SequenceParser": "sentences and trees",
    "SequenceSVC": "sequences and labels",
    "SequenceSVR": "sequences and numbers",
    "SequentialDPPLearner": "segments",
    "SupervisedLDA": "counts and target",
    "SupervisedLDAClassifier": "counts and labels",
    "SymbolClassHMM": "symbols",
    "TextCNNClassifier": "symbols and labels",
    "TimeVaryingDPP": "kernels",
    "TopicSearchCV": "counts",
    "TreeTopicModel": "counts",
    "VariationalBCS": "numbers and target",
    "VariationalCategoricalHMM": "symbols",
}

#: Parameters whose choices are other compiled functions; each documented choice is tried.
CHOICES = (
    "inference", "hyper_inference", "method", "family", "covariance_type", "noise_type", "implementation", "flow",
    "level_prior", "feasible", "path_sampler", "coefficients", "width", "move", "resampling", "noise_model", "init",
    "elbo", "distribution",
)  # fmt: skip
#: What a choice needs beside it.
NEEDED_BESIDE: Mapping[tuple[str, str, str], Mapping[str, Any]] = {
    ("CompressiveRecovery", "inference", "vb"): {"dictionary": [[1.0, 0, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1]]},
    ("ExponentialFamilyPCA", "inference", "map"): {"loading_prior": "ridge"},
    ("ExponentialFamilyPCAMixture", "inference", "map"): {"loading_prior": "ridge"},
    ("IsingDenoiser", "noise_model", "flip"): {"flip_prob": 0.1},
}
#: Choices that have nothing of their own to compile: JAX does it, or another choice does, which needs no further data.
COMPILED_ELSEWHERE = {
    ("FlowDensity", "flow", "autoregressive"),
    ("BetaProcessDictionary", "noise_type", "per_group"),
    ("SensorPlacement", "method", "exact"),
}
#: What the distribution `family` of an observation is a distribution of.
OF_FAMILY = {"gaussian": "numbers", "diag": "numbers", "autoregressive": "numbers", "bernoulli": "binary",
             "poisson": "counts", "multinomial": "counts", "categorical": "symbols"}  # fmt: skip
#: What a fitted model is asked for: first the questions that take the data again, then those that take none.
QUESTIONS = ("predict", "predict_proba", "transform", "score_samples", "score", "perplexity", "sample")


def _particle_filter() -> Any:
    from pluri.dynamics import StochasticVolatility
    from pluri.inference.smc import particle_filter

    model = StochasticVolatility(level=-1.0, persistence=0.95, scale=0.3)
    return particle_filter(model, numbers()[:, :1], 100, random_state=0)


def _linear_particle_filter() -> Any:
    from pluri.dynamics import LinearGaussianModel
    from pluri.inference.smc import particle_filter

    model = LinearGaussianModel(0.9, 1.0, 1.0, 0.25, 0.0, 5.0)
    return particle_filter(model, numbers()[:, :1], 100, random_state=0)


def _rao_blackwell_filter() -> Any:
    from pluri.dynamics import make_maneuvering_target, rao_blackwell_filter

    target = make_maneuvering_target()
    return rao_blackwell_filter(target, target.sample(5, random_state=0)[1], 20, random_state=0)


def _dpp() -> Any:
    from pluri.processes.dpp import DPP

    return DPP(kernels()[0]).sample(5, random_state=0)


def _dpp_of_features() -> Any:
    from pluri.processes.dpp import DPP

    return DPP(features=numbers()).sample(5, random_state=0)


def _fixed_size_dpp() -> Any:
    from pluri.processes.dpp import KDPP

    return KDPP(kernels()[0], size=2).sample(5, random_state=0)


def _sampler(name: str, *, gradient: bool) -> Callable[[], Any]:
    """A few draws of a standard normal distribution by one kernel of a Markov chain."""

    def run() -> Any:
        from pluri.inference import mcmc

        def log_density(x: Any) -> Any:
            value = -0.5 * float(x @ x)
            return (value, -x) if gradient else value

        kernel = getattr(mcmc, name)(log_density)
        return mcmc.sample(
            kernel, lambda rng: rng.normal(size=3), n_draws=20, n_warmup=20, n_chains=2, random_state=0, warn=False
        )

    return run


def _neurons(model: str) -> Callable[[], Any]:
    """A short run of a network."""

    def run() -> Any:
        from pluri.neurons import models

        return getattr(models, model)().run(1.0)

    return run


#: What is no estimator: its package and how it is run.
RUNS: Mapping[str, tuple[str, Callable[[], Any]]] = {
    "particle_filter": ("pluri.inference.smc", _particle_filter),
    "particle_filter of a linear model": ("pluri.inference.smc", _linear_particle_filter),
    "rao_blackwell_filter": ("pluri.dynamics", _rao_blackwell_filter),
    "DPP": ("pluri.processes.dpp", _dpp),
    "DPP of features": ("pluri.processes.dpp", _dpp_of_features),
    "KDPP": ("pluri.processes.dpp", _fixed_size_dpp),
    "Simulation of cells": ("pluri.neurons", _neurons("hodgkin_huxley_patch")),
    "Simulation of a network": ("pluri.neurons", _neurons("two_neurons")),
    "Simulation of units": ("pluri.neurons", _neurons("half_centre")),
    "NUTS": ("pluri.inference.mcmc", _sampler("NUTS", gradient=True)),
    "HMC": ("pluri.inference.mcmc", _sampler("HMC", gradient=True)),
    "Slice": ("pluri.inference.mcmc", _sampler("Slice", gradient=False)),
    "RandomWalk": ("pluri.inference.mcmc", _sampler("RandomWalk", gradient=False)),
}


@dataclass(frozen=True)
class TinyFit:
    """One estimator with one setting, or one function.

    Attributes
    ----------
    name : name of the estimator or function
    package : where it is public
    setting : what is not at its default, beside what makes the fit short
    data : kind of data, a key of `DATA`; empty for what is no estimator
    """

    name: str
    package: str
    data: str
    setting: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name, with the setting."""
        words = ", ".join(f"{name}={value!r}" for name, value in self.setting.items())
        return f"{self.name}({words})" if words else self.name

    def prepare(self) -> Callable[[], Any]:
        """Import what is needed; gives a function that fits and returns the fitted model."""
        if not self.data:
            return RUNS[self.name][1]
        kind = getattr(import_module(self.package), self.name)
        arguments = DATA[self.data]()
        return lambda: make_small(kind, self.setting).fit(*arguments)

    def ask(self, model: Any) -> None:
        """Ask a fitted model for all that it can tell of the data it learned from."""
        if self.data:
            X, *rest = DATA[self.data]()
            for name in QUESTIONS:
                if callable(getattr(model, name, None)):  # a perplexity may be a setting
                    _ask(getattr(model, name), X, rest[0] if rest else None)


def _ask(method: Callable[..., Any], X: Any, y: Any) -> None:
    """Call a method with the data if these are all it needs."""
    taken = inspect.signature(method).parameters
    known = {"X": X} | ({} if y is None else {"y": y})
    needed = {name for name, one in taken.items() if one.default is one.empty and one.kind <= one.KEYWORD_ONLY
              and one.kind is not one.VAR_POSITIONAL}  # fmt: skip
    if needed <= set(known):
        method(**{name: value for name, value in known.items() if name in taken})


def make_small(kind: type, setting: Mapping[str, Any]) -> Any:
    """An estimator whose fits are short; a model inside it is a hidden Markov model."""
    names = inspect.signature(kind).parameters
    given = {name: value for name, value in SMALL.items() if name in names}
    if "estimator" in names and names["estimator"].default is inspect.Parameter.empty:
        grid = {"n_components": [1, 2]}
        given = {name: value for name, value in given.items() if name == "random_state"} | {"cv": 2}
        if "param_distributions" in names:
            from pluri.mixtures import GaussianMixture

            given |= {"estimator": GaussianMixture(2, random_state=0), "param_distributions": grid, "n_iter": 2}
        else:
            from pluri.sequences import GaussianHMM

            given |= {"estimator": GaussianHMM(2, random_state=0), "param_grid": grid}
    return kind(**given | dict(setting))


def tiny_fits(*, every_setting: bool = False) -> list[TinyFit]:
    """The small fits, by package and name.

    Parameters
    ----------
    every_setting : bool, default=False
        Whether each documented choice of `CHOICES` is tried, one after the other; otherwise defaults alone.

    Examples
    --------
    >>> from pluri.cli.compiling.tiny_fits import tiny_fits
    >>> sorted(fit.title for fit in tiny_fits() if fit.name.startswith("Poisson"))
    ['PoissonDynamicalSystem', 'PoissonHMM', 'PoissonMixture']
    """
    found = [fit for name, package, kind in _estimators() for fit in _settings(name, package, kind, every_setting)]
    return found + [TinyFit(name, package, "") for name, (package, _) in RUNS.items()]


def _settings(name: str, package: str, kind: type, every_setting: bool) -> Iterator[TinyFit]:
    data = KIND_OF_DATA.get(name, "numbers")
    yield TinyFit(name, package, data)
    if not every_setting:
        return
    documented = re.findall(r'^(\w+) : \{([^}]*)\}(?:.*default="?(\w+))?', inspect.getdoc(kind) or "", re.MULTILINE)
    for parameter, choices, default in documented:
        for choice in re.findall(r'"([\w-]+)"', choices) if parameter in CHOICES else ():
            if choice != default and (name, parameter, choice) not in COMPILED_ELSEWHERE:
                other = OF_FAMILY[choice] if parameter == "family" else None
                beside = NEEDED_BESIDE.get((name, parameter, choice), {})
                yield TinyFit(name, package, _other_rows(data, other), {parameter: choice, **beside})
    names = inspect.signature(kind).parameters
    if "diversity" in names and "param_grid" not in names:
        yield TinyFit(name, package, data, {"diversity": 1.0})


def _other_rows(data: str, rows: str | None) -> str:
    """The same kind of data with other rows: "binary and labels" with numbers is "numbers and labels"."""
    return data if rows is None else " ".join([rows, *data.split(" ")[1:]])


@cache
def _estimators() -> tuple[tuple[str, str, type], ...]:
    """Name, package and class of every public estimator that can be made."""
    from sklearn.base import BaseEstimator

    found: dict[str, tuple[str, type]] = {}
    for package in _public_packages():
        module = import_module(package)
        for name in getattr(module, "__all__", ()):
            try:
                kind = getattr(module, name)
            except ImportError:  # of an extra that is not installed
                continue
            if inspect.isclass(kind) and issubclass(kind, BaseEstimator) and hasattr(kind, "fit"):
                found.setdefault(kind.__name__, (package, kind))
    bases = {base for _, kind in found.values() for base in kind.__mro__[1:]}  # there to be derived from
    return tuple(
        (name, package, kind)
        for name, (package, kind) in sorted(found.items(), key=lambda item: (item[1][0], item[0]))
        if kind not in bases or kind._get_param_names()  # type: ignore[attr-defined]
    )


def _public_packages() -> Iterator[str]:
    for name in PACKAGES:
        package = import_module(f"pluri.{name}")
        yield package.__name__
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.ispkg and not any(part.startswith("_") for part in module.name.split(".")):
                yield module.name
