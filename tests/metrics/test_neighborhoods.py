"""Measures of maps against scikit-learn, brute force and the limit that they describe."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.manifold import trustworthiness as of_scikit_learn

from pluri.metrics import antigeometric_mismatch, neighborhood_preservation, neighborhoods, trustworthiness

RNG = np.random.default_rng(4)
X, Y = RNG.normal(size=(70, 6)), RNG.normal(size=(70, 2))


@pytest.mark.parametrize("n_neighbors", [1, 5, 20])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_trustworthiness_is_that_of_scikit_learn(n_neighbors, metric, monkeypatch):
    expected = of_scikit_learn(X, Y, n_neighbors=n_neighbors, metric=metric)
    assert trustworthiness(X, Y, n_neighbors, metric=metric) == pytest.approx(expected, abs=1e-12)
    monkeypatch.setattr(neighborhoods, "BLOCK", 200)  # two rows at a time
    assert trustworthiness(X, Y, n_neighbors, metric=metric) == pytest.approx(expected, abs=1e-12)


def test_preservation_is_the_share_of_common_neighbours():
    for data, metric in ((X, "euclidean"), (RNG.random((70, 70)), "precomputed")):
        d = data.copy() if metric == "precomputed" else cdist(data, data)
        other = cdist(Y, Y)
        np.fill_diagonal(d, np.inf)
        np.fill_diagonal(other, np.inf)
        shares = [len(set(np.argsort(a)[:7]) & set(np.argsort(b)[:7])) / 7 for a, b in zip(d, other, strict=True)]
        assert neighborhood_preservation(data, Y, 7, metric=metric) == pytest.approx(np.mean(shares))


def test_trustworthiness_takes_asymmetric_dissimilarities():
    d = cdist(X, X)
    assert trustworthiness(d, Y, metric="precomputed") == pytest.approx(trustworthiness(X, Y))
    assert trustworthiness(d * RNG.random(d.shape), Y, metric="precomputed") < 1


def test_the_cost_of_wide_neighbourhoods_tends_to_the_mismatch():
    def cost(d, other):
        rows = []
        for i in range(len(d)):
            k = np.arange(len(d)) != i
            p, q = np.exp(-d[i, k]), np.exp(-other[i, k])
            p, q = p / p.sum(), q / q.sum()
            rows.append((p * np.log(p / q)).sum())
        return sum(rows)

    d, other = (cdist(points, points, "sqeuclidean") for points in (X[:7], 1.5 * Y[:7]))
    ratios = [12 * cost(d / s, other / s) / antigeometric_mismatch(d / s, other / s) for s in (10, 1e2, 1e3, 1e4)]
    gaps = np.abs(np.array(ratios) - 1)
    assert (np.diff(gaps) < 0).all()
    assert gaps[-1] < 1e-3


def test_the_mismatch_is_that_of_the_definition_and_ignores_the_diagonal():
    d, other = RNG.random((5, 5)), RNG.random((5, 5))
    total = 0.0
    for i in range(5):
        k = [j for j in range(5) if j != i]
        g, h = (-np.log(np.exp(-table[i, k]).mean()) for table in (d, other))
        total += sum(((d[i, j] - g) - (other[i, j] - h)) ** 2 for j in k)
    assert_allclose(antigeometric_mismatch(d, other), total)
    assert_allclose(antigeometric_mismatch(d + 9 * np.eye(5), other), total)


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(ValueError, match="n_neighbors must be below the number of samples"):
        neighborhood_preservation(X, Y, 70)
    with pytest.raises(ValueError, match="below half the number of samples"):
        trustworthiness(X, Y, 35)
    with pytest.raises(ValueError, match="X must be square"):
        neighborhood_preservation(X, Y, metric="precomputed")
    with pytest.raises(ValueError, match="inconsistent"):
        neighborhood_preservation(X, Y[:5])
    with pytest.raises(ValueError, match="must be square"):
        antigeometric_mismatch(X, X)
