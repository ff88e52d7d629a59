"""Models by name: how each is built for a history of a given size, and what is worth trying when it is tuned."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator, clone

from pluri.priors import Beta

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class ModelEntry:
    """Where a model is found, its settings here, and the values to choose from on validation data."""

    module: str
    name: str
    settings: Settings = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def load(self) -> type:
        """The class; imported only when it is asked for."""
        kind: type = getattr(import_module(self.module), self.name)
        return kind


#: Of a file in a cluster of commits, as Hu et al. (2010) had it.
SPARSE_PRIOR = {"probabilities_prior": Beta(0.005, 0.95)}

MODELS: dict[str, ModelEntry] = {
    "neighbors": ModelEntry(
        "pluri.cochange.models.neighbors",
        "CommitNeighbors",
        {},
        {"size_power": (0.5, 1.0), "age_scale": (300.0, 1000.0, None)},
    ),
    "bayesian": ModelEntry(
        "pluri.mixtures.bayesian_bernoulli.estimator",
        "BayesianBernoulliMixture",
        # Fewer chains than the model's own 30: suggestions hardly change, and training takes a seventh of the time.
        {"n_components": 400, "weight_concentration": 200.0, "n_chains": 4, **SPARSE_PRIOR},
        {"n_components": (200, 400), "weight_concentration": (50.0, 200.0, 1000.0)},
    ),
    "dp": ModelEntry(
        "pluri.mixtures.bayesian_bernoulli.estimator",
        "BayesianBernoulliMixture",
        {"n_components": None, "weight_concentration": 200.0, "n_chains": 4, **SPARSE_PRIOR},
        {"weight_concentration": (50.0, 200.0, 1000.0)},
    ),
    "mixture": ModelEntry(
        "pluri.mixtures.discrete.bernoulli",
        "BernoulliMixture",
        {"n_components": 200},
        {"n_components": (50, 100, 200, 400)},
    ),
    "rbm": ModelEntry(
        "pluri.factors.binary_rbm",
        "BinaryRBM",
        # As Hu et al. ask it: files that are not named count as untouched, which also is far faster than sampling.
        {"n_components": 50, "inference": "factorised"},
        {"n_components": (25, 50, 100)},
    ),
    "logistic_pca": ModelEntry(
        "pluri.factors.logistic_pca",
        "LogisticPCA",
        # Rare files are separable: with the model's own small penalty the loadings of these grow without end.
        {"n_components": 20, "alpha": 3.0, "fold_in_alpha": 0.1, "max_iter": 60},
        {"n_components": (10, 20), "alpha": (1.0, 3.0, 10.0)},
    ),
    "cooccurrence": ModelEntry(
        "pluri.cochange.models.baselines",
        "CoOccurrence",
        {},
        {"measure": ("confidence", "support")},
    ),
    "pairwise": ModelEntry("pluri.cochange.models.baselines", "CoOccurrence", {"combine": "mean"}),
    "itemsets": ModelEntry(
        "pluri.cochange.models.baselines",
        "FrequentItemsets",
        {"min_support": 2},
        {"min_support": (2, 3, 5, 10)},
    ),
    "counter": ModelEntry("pluri.cochange.models.baselines", "CoOccurrence", {"measure": "support", "combine": "mean"}),
    "popular": ModelEntry("pluri.cochange.models.baselines", "Popularity"),
}


def build_model(model: Any, settings: Settings | None, n_commits: int, random_state: int | None) -> Any:
    """An unfitted model: of that name, or a copy of the given one.

    Parameters
    ----------
    model : str or estimator
        One of `MODELS`, or anything with ``fit`` and ``predict_missing``.
    settings : dict, optional
        Parameters to set.
    n_commits : int
        Number of rows that it will be fitted to; no more components than these are asked for.
    random_state : int, optional
        For models that draw.

    Examples
    --------
    >>> from pluri.cochange.models.registry import build_model
    >>> build_model("cooccurrence", {"measure": "support"}, n_commits=50, random_state=0)
    CoOccurrence(measure='support')
    """
    if isinstance(model, str):
        entry = find_entry(model)
        built = entry.load()()
        limited = {
            name: min(value, max(n_commits, 1)) if name == "n_components" and value else value
            for name, value in entry.settings.items()
        }
        built.set_params(**limited)
        if random_state is not None and "random_state" in built.get_params():
            built.set_params(random_state=random_state)
    elif isinstance(model, BaseEstimator) and hasattr(model, "predict_missing"):
        built = clone(model)
    else:
        raise ValueError(
            f"model must be one of {', '.join(MODELS)}, or an estimator with fit and predict_missing, got {model!r}"
        )
    unknown = sorted(set(settings or {}) - set(built.get_params()))
    if unknown:
        raise ValueError(
            f"model_params must be parameters of {type(built).__name__} "
            f"({', '.join(sorted(built.get_params()))}), got {unknown[0]}"
        )
    return built.set_params(**dict(settings or {}))


def find_entry(name: str) -> ModelEntry:
    """The model of a name."""
    if name not in MODELS:
        near = difflib.get_close_matches(name, MODELS, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(f"model must be one of {', '.join(MODELS)}, got {name!r}{hint}")
    return MODELS[name]
