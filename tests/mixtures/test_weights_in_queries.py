"""A weight of two is the row twice, in what is asked of a fitted model as in the fit."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import numpy as np
import pytest

from pluri.mixtures import BernoulliMixture, GaussianMixture

#: What may be asked for a number that sums over rows.
TOTALS = ("score", "bic", "aic", "hierarchical_bic")
RNG = np.random.default_rng(3)
REAL = np.concatenate([RNG.normal(size=(30, 3)), RNG.normal(size=(30, 3)) + 3.0])
COUNTS = RNG.poisson(np.where(np.arange(60)[:, None] < 30, [2.0, 9.0, 4.0], [9.0, 2.0, 4.0]))
WEIGHT = RNG.integers(0, 4, size=60)
SETTINGS: dict[str, dict[str, Any]] = {
    "BernoulliMixture": {"n_components": 2},
    "CategoricalMixture": {"n_components": 2},
    "DirichletProcessMixture": {"inference": "vb"},
    "ExponentialFamilyPCAMixture": {"n_components": 2, "n_latent": 1, "max_iter": 20},
    "ExponentialFamilyPCA": {"n_components": 1},
    "FactorAnalyzerMixture": {"n_components": 2},
    "FlowDensity": {"max_iter": 2, "n_layers": 1, "hidden": (4,)},
    "GaussianMixture": {"n_components": 2},
    "MultinomialMixture": {"n_components": 2},
    "PoissonMixture": {"n_components": 2},
}
COUNTED = ("BernoulliMixture", "CategoricalMixture", "MultinomialMixture", "NaiveBayes", "PoissonMixture")


def weighted_estimators() -> list[type]:
    """Every public estimator of these families whose `fit` takes rows and weights."""
    found = []
    for family in ("mixtures", "factors", "processes"):
        module = importlib.import_module(f"pluri.{family}")
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.isclass(value) or not hasattr(value, "fit") or not hasattr(value, "get_params"):
                continue
            if "sample_weight" in inspect.signature(value.fit).parameters:
                found.append(value)
    return found


@pytest.mark.parametrize("cls", weighted_estimators())
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")
def test_totals_with_weights_are_those_of_the_rows_written_out(cls: type) -> None:
    X = COUNTS if cls.__name__ in COUNTED else REAL
    options = SETTINGS.get(cls.__name__, {})
    if "random_state" in inspect.signature(cls).parameters:
        options = {**options, "random_state": 0}
    needs_labels = hasattr(cls, "predict") and not hasattr(cls, "score_samples") and cls.__name__ != "DPMeans"
    y = (np.arange(60) >= 30).astype(float) if needs_labels else None
    model = cls(**options).fit(X, y, sample_weight=WEIGHT)
    written, labels = np.repeat(X, WEIGHT, axis=0), None if y is None else np.repeat(y, WEIGHT)
    asked = [name for name in TOTALS if hasattr(model, name)]
    assert asked
    for name in asked:
        query = getattr(model, name)
        first, second = ((X,), (written,)) if name != "score" else ((X, y), (written, labels))
        assert "sample_weight" in inspect.signature(query).parameters, name
        np.testing.assert_allclose(query(*first, sample_weight=WEIGHT), query(*second), rtol=1e-9, err_msg=name)


def test_the_number_of_components_by_bic_does_not_depend_on_how_copies_are_told() -> None:
    # Three groups, the third of few distinct rows that stand for many: rows alone would not pay for it.
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-8, 1, 150), rng.normal(0, 1, 150), rng.normal(4.0, 1.0, 6)])[:, None]
    weight = np.repeat([1, 1, 40], [150, 150, 6])
    written = np.repeat(X, weight, axis=0)
    told, spelled = [], []
    for k in (1, 2, 3):
        # All of the start is given: by chance three components may end where two are enough.
        start = {
            "weights_init": np.full(k, 1 / k), "means_init": np.array([[-8.0], [0.0], [4.0]])[:k],
            "precisions_init": np.ones((k, 1, 1)), "reg_covar": 0.1,
        }  # fmt: skip
        told.append(GaussianMixture(k, **start).fit(X, sample_weight=weight).bic(X, sample_weight=weight))
        spelled.append(GaussianMixture(k, **start).fit(written).bic(written))
    np.testing.assert_allclose(told, spelled, rtol=1e-6)
    assert np.argmin(told) == np.argmin(spelled) == 2


def test_an_impossible_row_of_weight_zero_does_not_count() -> None:
    X = np.array([[0, 1], [1, 0], [0, 1], [1, 0]])
    model = BernoulliMixture(1, smoothing=0).fit(X)
    assert np.isfinite(model.score(X, sample_weight=[1, 1, 0, 0]))
    model.score_samples = lambda X: np.array([-1.0, -1.0, -np.inf, -1.0])  # type: ignore[method-assign]
    assert model.score(X, sample_weight=[1, 1, 0, 1]) == -1.0
    assert model.aic(X, sample_weight=[1, 1, 0, 1]) == 6.0 + 2.0 * 2


@pytest.mark.parametrize("query", ["score", "bic", "aic"])
def test_weights_of_another_length_are_refused(query: str) -> None:
    model = GaussianMixture(2, random_state=0).fit(REAL)
    with pytest.raises(ValueError, match="one weight for each row"):
        getattr(model, query)(REAL, sample_weight=np.ones(5))
