"""Rows of which nothing was observed have no say in a fit: not in where it starts, not in where it ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from pluri.mixtures import (
    BernoulliMixture,
    CategoricalMixture,
    FactorAnalyzerMixture,
    GaussianMixture,
    MultinomialMixture,
    PoissonMixture,
)

N = 120
FAMILIES: list[tuple[type, dict[str, Any]]] = [
    (GaussianMixture, {}),
    (GaussianMixture, {"covariance_type": "tied"}),
    (GaussianMixture, {"covariance_type": "diag"}),
    (GaussianMixture, {"covariance_type": "spherical"}),
    (FactorAnalyzerMixture, {}),
    (PoissonMixture, {}),
    (BernoulliMixture, {}),
    (MultinomialMixture, {}),
    (CategoricalMixture, {}),
]
#: Two groups so far apart that one row in a million is in doubt.
RATES = np.where(np.arange(2)[:, None] == np.arange(12) % 2, 30.0, 2.0)


def counts(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(N) % 2
    return rng.poisson(RATES[labels]).astype(float), labels


def rows_for(model: type, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, labels = counts(seed)
    return (X > 12).astype(float) if model in (BernoulliMixture, CategoricalMixture) else X, labels


def with_holes(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two thirds of empty rows among those of X, and where the rows of X now stand."""
    present = np.arange(3 * len(X)) % 3 == 0
    mixed = np.full((3 * len(X), X.shape[1]), np.nan)
    mixed[present] = X
    return mixed, present


@pytest.mark.parametrize(("model", "settings"), FAMILIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_empty_rows_do_not_move_the_starting_values(model: type, settings: dict[str, Any], weighted: bool) -> None:
    X, _ = rows_for(model, 0)
    mixed, present = with_holes(X)
    weight = np.random.default_rng(1).random(len(mixed)) if weighted else None
    # Smoothing has a row more for every component: the average, which empty rows do not change either.
    options = {"n_components": 3, "max_iter": 0, "random_state": 0, **settings}
    alone = model(**options).fit(X, sample_weight=None if weight is None else weight[present])
    among = model(**options).fit(mixed, sample_weight=weight)
    np.testing.assert_allclose(among.weights_, alone.weights_, rtol=1e-9)
    for name in ("means_", "covariances_", "loadings_", "rates_"):
        if hasattr(alone, name):
            np.testing.assert_allclose(getattr(among, name), getattr(alone, name), rtol=1e-6, atol=1e-9, err_msg=name)
    if hasattr(alone, "probabilities_"):
        np.testing.assert_allclose(np.hstack(list(among.probabilities_)), np.hstack(list(alone.probabilities_)))


@pytest.mark.parametrize(("model", "settings"), FAMILIES)
def test_two_groups_are_found_among_empty_rows(model: type, settings: dict[str, Any]) -> None:
    for seed in range(3):  # of 3 * 120 rows, fewer than one in a thousand runs has one in doubt
        X, labels = rows_for(model, seed)
        mixed, present = with_holes(X)
        fitted = model(n_components=2, random_state=seed, **settings).fit(mixed)
        assert adjusted_rand_score(labels, fitted.predict(mixed)[present]) > 0.9


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_documents_without_words_are_no_group_of_their_own(make: Any) -> None:
    X, labels = counts(0)
    both = make(np.concatenate([X, np.zeros((2 * N, X.shape[1]))]))
    fitted = MultinomialMixture(2, random_state=0).fit(both)
    assert adjusted_rand_score(labels, fitted.predict(both)[:N]) > 0.9


def test_counts_of_which_every_row_has_a_hole_are_refused() -> None:
    X, _ = counts(0)
    X[np.arange(N), np.arange(N) % X.shape[1]] = np.nan
    with pytest.raises(ValueError, match="X must have a row without missing values, got none"):
        MultinomialMixture(2).fit(X)
