"""Sensors: fast gains against the naive ones, exact placements on a line against enumeration, bounds against optima."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from pluri.decisions import GaussianEntropy, GaussianMutualInformation, SensorPlacement


def log_det(matrix):
    return np.linalg.slogdet(matrix)[1] if len(matrix) else 0.0


def naive_greedy(covariance, size):
    """Algorithm of the definition: each gain from four determinants."""
    n = len(covariance)
    chosen: list[int] = []
    for _ in range(size):
        best, pick = 1e-12, None
        for y in range(n):
            if y in chosen:
                continue
            rest = [i for i in range(n) if i not in chosen and i != y]
            given_chosen = log_det(covariance[np.ix_([*chosen, y], [*chosen, y])]) - log_det(
                covariance[np.ix_(chosen, chosen)]
            )
            given_rest = log_det(covariance[np.ix_([*rest, y], [*rest, y])]) - log_det(covariance[np.ix_(rest, rest)])
            gain = 0.5 * (given_chosen - given_rest)
            if gain > best + 1e-10:
                best, pick = gain, y
        if pick is None:
            break
        chosen.append(pick)
    return chosen


@pytest.mark.parametrize("seed", range(8))
def test_fast_mutual_information_chooses_as_the_naive_one(seed):
    places = np.random.default_rng(seed).uniform(0, 5, (25, 2))
    model = SensorPlacement(8, kernel=RBF(1.0), noise_variance=0.1).fit(places)
    assert_array_equal(model.selected_, naive_greedy(RBF(1.0)(places) + 0.1 * np.eye(25), 8))


def test_greedy_is_nearly_optimal_and_the_bound_holds():
    places = np.random.default_rng(0).uniform(0, 4, (12, 2))
    function = GaussianMutualInformation(RBF(1.0)(places) + 0.1 * np.eye(12))
    for size in range(1, 7):
        model = SensorPlacement(size, kernel=RBF(1.0), noise_variance=0.1).fit(places)
        best = max(function.value(one) for one in combinations(range(12), size))
        assert_allclose(model.values_[-1], function.value(model.selected_), rtol=1e-10)
        assert 0.95 * best <= model.values_[-1] <= best + 1e-12
        assert model.upper_bound_ >= best - 1e-10
        assert np.isnan(model.apriori_bounds_).all()  # it holds for monotone functions only


def test_known_answers_on_a_line():
    # Best values of a published specification of this method for one to five sensors; enumeration beside them.
    times = np.sort(np.random.default_rng(0).uniform(0, 5, 11))[:, None]
    kernel = Matern(1.0, nu=0.5)
    function = GaussianMutualInformation(kernel(times))
    for size, known in enumerate([1.8441, 2.6202, 3.3519, 3.9834, 4.0507], start=1):
        exact = SensorPlacement(size, kernel=kernel, noise_variance=0.0, method="exact").fit(times)
        greedy = SensorPlacement(size, kernel=kernel, noise_variance=0.0).fit(times)
        best = max(function.value(one) for one in combinations(range(11), size))
        assert_allclose(exact.values_[-1], best, rtol=1e-10)
        assert_allclose(best, known, atol=6e-5)
        assert_allclose(exact.upper_bound_, best, rtol=1e-10)
        assert_allclose(greedy.values_[-1] / best, 1.0 if size < 5 else 0.9947, atol=5e-5)


@pytest.mark.parametrize("seed", range(5))
def test_the_exact_placement_on_a_line_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    times = rng.uniform(0, 3, (9, 1))  # in no order
    kernel = ConstantKernel(2.0) * Matern(float(rng.uniform(0.3, 2.0)), nu=0.5)
    for criterion, function in (
        ("mutual_information", GaussianMutualInformation(kernel(times))),
        ("entropy", GaussianEntropy(kernel(times))),
    ):
        for size in (1, 2, 4, 7):
            exact = SensorPlacement(size, criterion, kernel=kernel, noise_variance=0.0, method="exact").fit(times)
            sizes = [size] if criterion == "entropy" else range(1, size + 1)
            best = max(function.value(one) for number in sizes for one in combinations(range(9), number))
            assert_allclose(exact.values_[-1], best, rtol=1e-9)
            assert_allclose(function.value(exact.selected_), best, rtol=1e-9)


@pytest.mark.parametrize("criterion", ["mutual_information", "entropy", "information_gain", "variance"])
def test_the_posterior_variance_is_that_of_a_gaussian_process(criterion):
    places = np.random.default_rng(1).uniform(0, 4, (30, 2))
    model = SensorPlacement(5, criterion, kernel=RBF(0.8), noise_variance=0.2).fit(places)
    chosen = model.selected_
    assert len(chosen) == len(set(chosen)) == 5
    peer = GaussianProcessRegressor(RBF(0.8), alpha=0.2, optimizer=None).fit(places[chosen], np.zeros(5))
    assert_allclose(model.posterior_variance_, peer.predict(places, return_std=True)[1] ** 2, atol=1e-8)
    if criterion == "variance":
        assert_allclose(model.values_[-1], 30.0 - model.posterior_variance_.sum(), rtol=1e-9)
    if criterion == "information_gain":
        assert_allclose(model.apriori_bounds_, model.values_ / (1 - np.exp(-1)))
    else:
        assert np.isnan(model.apriori_bounds_).all()


def test_mutual_information_ends_where_a_sensor_more_tells_less():
    places = np.random.default_rng(2).uniform(0, 4, (10, 2))
    model = SensorPlacement(10, kernel=RBF(1.0)).fit(places)
    assert 4 <= len(model.selected_) <= 6  # about half: the information is that of the other half about them
    assert (model.gains_ > 0).all()


def test_a_budget_buys_cheap_sensors():
    places = np.random.default_rng(3).uniform(0, 4, (30, 2))
    costs = np.where(np.arange(30) % 2, 1.0, 10.0)
    model = SensorPlacement(None, kernel=RBF(1.0), budget=6.0).fit(places, costs=costs)
    assert model.cost_ <= 6.0
    assert (model.selected_ % 2 == 1).all()
    assert model.values_[-1] <= model.upper_bound_


def test_a_covariance_does_as_well_as_a_kernel():
    places = np.random.default_rng(4).uniform(0, 4, (20, 2))
    by_kernel = SensorPlacement(4, kernel=RBF(1.0)).fit(places)
    by_matrix = SensorPlacement(4, kernel="precomputed").fit(RBF(1.0)(places))
    assert_array_equal(by_kernel.selected_, by_matrix.selected_)
    assert_array_equal(by_kernel.transform(places), places[by_kernel.selected_])


PLACES = np.random.default_rng(5).uniform(0, 4, (8, 2))


@pytest.mark.parametrize(
    ("settings", "fit", "sentence"),
    [
        ({"size": 9}, {}, "size must be at most the number of rows"),
        ({"size": None}, {}, "one of size and budget must be given"),
        ({"size": 2, "budget": 3.0}, {}, "one of size and budget must be given"),
        ({"size": 2}, {"costs": np.ones(8)}, "costs are of use with a budget only"),
        ({"size": None, "budget": 0.0}, {}, "budget must be a positive number"),
        ({"size": None, "budget": 1.0}, {"costs": -np.ones(8)}, "costs must be finite and non-negative"),
        ({"size": None, "budget": 1.0}, {"costs": np.ones(7)}, "costs must be a number for each of 8 items"),
        ({"size": 2, "criterion": "mi"}, {}, "criterion must be one of"),
        ({"size": 2, "kernel": "rbf"}, {}, "kernel must be a kernel of scikit-learn"),
        ({"size": 2, "kernel": "precomputed"}, {}, "covariance must be a square matrix"),
        ({"size": 2, "criterion": "information_gain", "noise_variance": 0.0}, {}, "noise_variance must be a positive"),
        ({"size": 2, "kernel": RBF(1e4), "noise_variance": 0.0}, {}, "positive definite"),
        ({"size": 2, "method": "exact"}, {}, "kernel must be Matern"),
        ({"size": 2, "method": "exact", "criterion": "variance"}, {}, "criterion must be 'mutual_information' or"),
        ({"size": 2, "method": "exact", "kernel": Matern(nu=0.5)}, {}, "places on a line"),
        ({"size": None, "budget": 2.0, "method": "exact"}, {}, "size must be given with method='exact'"),
    ],
)
def test_mistakes_get_a_sentence(settings, fit, sentence):
    with pytest.raises(ValueError, match=sentence):
        SensorPlacement(**settings).fit(PLACES, **fit)


def test_places_that_coincide_are_refused_on_a_line():
    with pytest.raises(ValueError, match=r"places must be distinct|positive definite"):
        SensorPlacement(1, kernel=Matern(nu=0.5), noise_variance=0.0, method="exact").fit([[0.0], [0.0], [1.0]])


def test_prefixes_of_what_annealing_found_are_no_bounds():
    for seed in range(5):
        places = np.random.default_rng(seed).random((9, 2))
        settings = {"criterion": "information_gain", "noise_variance": 0.01, "random_state": seed, "max_iter": 200}
        found = SensorPlacement(4, method="annealing", **settings).fit(places)
        assert np.isnan(found.apriori_bounds_[:-1]).all()
        assert found.apriori_bounds_[-1] >= found.values_[-1]
