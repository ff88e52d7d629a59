"""Weighted rows: estimates without bias, and with less variance than independent rows."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.cluster import KMeans

from pluri.priors.kernels import RBFKernel
from pluri.processes.dpp import KDPP, FunctionKernel
from pluri.processes.dpp.approximations.nystrom import nystrom_features
from pluri.processes.dpp.selection.coreset import Coreset, coreset

RNG = np.random.default_rng(11)
CENTRES = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])


def groups(n_rows):
    sizes = [n_rows // 2, n_rows // 3, n_rows - n_rows // 2 - n_rows // 3]
    return np.concatenate([RNG.normal(centre, 1.0, size=(size, 2)) for centre, size in zip(CENTRES, sizes)])


def costs(rows):
    """Squared distance to the nearest of three centres beside the true ones."""
    return (((rows[:, None] - CENTRES - 0.4) ** 2).sum(axis=2)).min(axis=1)


def log_likelihoods(rows):
    """Of a mixture of three Gaussian distributions of unit variance."""
    exponents = -0.5 * ((rows[:, None] - CENTRES) ** 2).sum(axis=2) - np.log(2 * np.pi)
    return logsumexp(exponents + np.log([0.5, 1 / 3, 1 / 6]), axis=1)


def estimates(rows, values, n, n_draws, seed=0, **options):
    rng = np.random.default_rng(seed)
    found = [coreset(rows, n, random_state=rng, **options) for _ in range(n_draws)]
    return np.array([few.total(values[few.indices]) for few in found])


def test_weights_are_inverse_probabilities_by_enumeration():
    rows = RNG.normal(size=(6, 2))
    squared = ((rows[:, None] - rows) ** 2).sum(axis=2)
    weights = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])
    L = np.exp(-0.5 * squared) * np.sqrt(weights * weights[:, None])
    volume = {s: np.linalg.det(L[np.ix_(s, s)]) for s in itertools.combinations(range(6), 3)}
    inclusion = [sum(v for s, v in volume.items() if i in s) / sum(volume.values()) for i in range(6)]
    few = coreset(rows, 3, kernel_params={"length_scale": 1.0}, sample_weight=weights, random_state=0)
    np.testing.assert_allclose(few.weights, (weights / inclusion)[few.indices])


def test_estimates_have_no_bias():
    # Two functions, weighted or not: 4 z-tests at 5.5 standard errors of 200 draws, false alarm 1e-6.
    rows = groups(60)
    values = np.column_stack([costs(rows), rows[:, 0]])
    for weights in (None, RNG.uniform(0.2, 2.0, size=60)):
        truth = values.sum(axis=0) if weights is None else weights @ values
        found = estimates(rows, values, 8, 200, sample_weight=weights)
        error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
        assert (np.abs(found.mean(axis=0) - truth) < 5.5 * error).all()


def test_weights_of_many_rows_are_inverse_probabilities_of_the_approximate_law():
    rows = groups(1200)
    few = coreset(rows, 6, kernel_params={"length_scale": 3.0}, random_state=0)
    # 200 landmarks are enough for this smooth kernel: other landmarks moved a weight by at most 1 % at 60 seeds (in the
    # median by .02 %); the weights themselves differ by a factor of three.
    law = KDPP(features=nystrom_features(FunctionKernel(RBFKernel(3.0), rows), n_landmarks=200), size=6)
    np.testing.assert_allclose(few.weights, 1 / law.inclusion_probabilities()[few.indices], rtol=0.1)
    assert law.inclusion_probabilities().sum() == pytest.approx(6)


# One column takes long, and four are the same claim: it is a second opinion.
@pytest.mark.parametrize("n_columns", [pytest.param(1, marks=pytest.mark.thorough), 4])
def test_estimates_from_many_rows_have_no_bias_and_rows_far_from_all_others_no_enormous_weights(n_columns):
    # Two z-tests at 5 standard errors, false alarm 1e-6.
    rows = np.random.default_rng(3).normal(size=(1100, n_columns))
    rows[0] = 50.0
    values = np.column_stack([np.cos(rows.sum(axis=1)), np.arange(1100) == 0])
    rng = np.random.default_rng(4)
    found = [coreset(rows, 20, random_state=rng) for _ in range(100)]
    totals = np.array([few.total(values[few.indices]) for few in found])
    error = totals.std(axis=0, ddof=1) / 10
    assert (np.abs(totals.mean(axis=0) - values.sum(axis=0)) < 5 * error + 1e-6).all()
    # Rows in a uniform sample stand for 55 rows each.
    assert max(few.weights.max() for few in found) < 10 * 55


def test_a_coreset_is_taken_apart():
    indices, weights = few = coreset(groups(30), 5, random_state=0)
    assert indices is few.indices
    assert weights is few.weights


def test_sparse_rows_have_no_gaussian_kernel():
    with pytest.raises(TypeError, match="got a sparse matrix: use kernel='cosine' or 'linear'"):
        coreset(sparse.csr_array(groups(30)), 5)


def test_variance_is_below_that_of_independent_rows():
    # The ratio of variances is 0.24 for the cost of k-means, 0.39 for the mean, 0.57 for the log-likelihood, whose
    # standard errors are 0.1 of it from 200 draws and 0.07 from 400: a ratio above 0.85 has a chance below 1e-6.
    rows = groups(60)
    n = 10
    values = np.column_stack([costs(rows), rows[:, 0]])
    independent = values.var(axis=0) * 60**2 / n
    assert (estimates(rows, values, n, 200).var(axis=0) < 0.85 * independent).all()
    likelihoods = log_likelihoods(rows)
    found = estimates(rows, likelihoods, n, 400, normalize=True)
    error = np.mean((found - likelihoods.sum()) ** 2)
    assert error < 0.85 * likelihoods.var() * 60**2 / n


def test_normalized_weights_sum_to_the_weight_of_all_rows():
    rows, weights = groups(90), RNG.uniform(size=90)
    for options in ({"method": "map"}, {"normalize": True, "random_state": 0}):
        assert coreset(rows, 10, **options).weights.sum() == pytest.approx(90)
        assert coreset(rows, 10, sample_weight=weights, **options).weights.sum() == pytest.approx(weights.sum())


def test_greedy_rows_stand_for_the_nearest_rows():
    rows = groups(90)
    few = coreset(rows, 8, method="map")
    nearest = ((rows[:, None] - rows[few.indices]) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_allclose(few.weights, np.bincount(nearest, minlength=8))
    np.testing.assert_array_equal(few.indices, coreset(rows, 8, method="map").indices)


def test_clusters_of_the_coreset_are_those_of_the_data():
    rows = groups(300)
    few = coreset(rows, 40, random_state=0)
    whole = KMeans(3, n_init=3, random_state=0).fit(rows)
    quick = KMeans(3, n_init=3, random_state=0).fit(rows[few.indices], sample_weight=few.weights)
    assert -quick.score(rows) < 1.2 * whole.inertia_


def test_sparse_rows_are_weighted_like_dense_ones():
    dense = np.abs(RNG.normal(size=(40, 6)))
    few = coreset(sparse.csr_array(dense), 4, kernel="cosine", random_state=0)
    law = KDPP(features=dense / np.linalg.norm(dense, axis=1, keepdims=True), size=4)
    np.testing.assert_allclose(few.weights, 1 / law.inclusion_probabilities()[few.indices])


def test_rows_without_weight_are_never_drawn():
    rows = groups(30)
    weights = np.where(np.arange(30) % 2, 1.0, 0.0)
    few = coreset(rows, 10, sample_weight=weights, random_state=0)
    assert (few.indices % 2 == 1).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 31}, r"size must be at most the number of rows \(n_samples = 30\), got 31"),
        ({"size": None}, "size must be a whole number or a share, got None"),
        ({"size": 3, "method": "mcmc"}, "method must be 'exact' or 'map', got 'mcmc'"),
        ({"size": 3, "kernel": "linear"}, "size must be at most 2, the number of the 30 rows"),
        ({"size": 3, "sample_weight": np.ones(29)}, "sample_weight must be 30 finite, non-negative numbers"),
        ({"size": 3, "sample_weight": np.zeros(30)}, "not all zero"),
    ],
)
def test_mistakes_are_refused_in_a_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        coreset(groups(30), **arguments)


def test_rows_that_are_never_drawn_are_refused():
    rows = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="got 1 rows that this kernel never draws, such as row 1"):
        coreset(rows, 2, kernel="cosine")


def test_totals_need_a_value_for_each_row():
    few = Coreset(np.array([0, 2]), np.array([1.0, 2.0]))
    assert few.total([3.0, 4.0]) == 11.0
    np.testing.assert_array_equal(few.total([[1.0, 0.0], [0.0, 1.0]]), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"values must be given for the 2 rows, got shape \(3,\)"):
        few.total([1.0, 2.0, 3.0])
