"""Likelihood of subsets and its gradients, against enumeration, determinants one by one, and finite differences."""

import itertools

import numpy as np
import pytest

from pluri.processes.dpp.learning import (
    count_subsets,
    log_likelihood_gradient,
    mean_log_likelihood,
    observations,
    subset_log_probabilities,
)
from pluri.processes.dpp.learning.fixed_points import eigen_point, responsibilities, rotation_slope
from pluri.processes.dpp.learning.gradients import CholeskyObjective, FactorObjective, popularity_weights
from pluri.processes.dpp.learning.likelihood import factor_value_and_gradient, kernel_value, kernel_value_and_gradient

EVERY = [list(one) for size in range(6) for one in itertools.combinations(range(5), size)]


def random_kernel(rng, n_items=5):
    X = rng.standard_normal((n_items, n_items))
    return X @ X.T / 2 + 0.2 * np.eye(n_items)


def one_by_one(L, subsets, weight=None):
    logs = [np.linalg.slogdet(L[np.ix_(one, one)])[1] if len(one) else 0.0 for one in subsets]
    return np.average(logs, weights=weight) - np.linalg.slogdet(L + np.eye(len(L)))[1]


def differences(function, x, step=1e-5):
    gradient = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        there, back = x.copy(), x.copy()
        there[index] += step
        back[index] -= step
        gradient[index] = (function(there) - function(back)) / (2 * step)
    return gradient


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_probabilities_of_all_subsets_sum_to_one(rng):
    L = random_kernel(rng)
    assert np.exp(subset_log_probabilities(L, EVERY)).sum() == pytest.approx(1.0, abs=1e-12)
    V = rng.standard_normal((5, 3))
    assert np.exp(subset_log_probabilities(V, EVERY, factor=True)).sum() == pytest.approx(1.0, abs=1e-12)


def test_value_equals_determinants_one_by_one_with_weights_and_masks(rng):
    L = random_kernel(rng)
    subsets = [EVERY[index] for index in rng.integers(0, len(EVERY), size=50)]
    weight = rng.random(50)
    assert mean_log_likelihood(L, subsets, sample_weight=weight) == pytest.approx(one_by_one(L, subsets, weight))
    masks = np.array([np.isin(np.arange(5), one) for one in subsets])
    assert mean_log_likelihood(L, masks) == pytest.approx(one_by_one(L, subsets))
    assert mean_log_likelihood(L, list(masks)) == pytest.approx(one_by_one(L, subsets))


def test_many_pieces_give_what_one_gives(rng, monkeypatch):
    L = random_kernel(rng)
    value, gradient = log_likelihood_gradient(L, EVERY)
    monkeypatch.setattr(observations, "LARGEST_STACK", 20)
    again, in_pieces = log_likelihood_gradient(L, EVERY)
    assert again == pytest.approx(value)
    np.testing.assert_allclose(in_pieces, gradient, atol=1e-12)
    np.testing.assert_allclose(subset_log_probabilities(L, EVERY), [one_by_one(L, [one]) for one in EVERY], atol=1e-12)


def test_gradient_with_respect_to_the_kernel_equals_differences(rng):
    L = random_kernel(rng)
    subsets = [EVERY[index] for index in rng.integers(0, len(EVERY), size=30)]
    _, gradient = log_likelihood_gradient(L, subsets)
    for _ in range(5):
        change = rng.standard_normal((5, 5))
        change += change.T
        step = 1e-5
        slope = (one_by_one(L + step * change, subsets) - one_by_one(L - step * change, subsets)) / (2 * step)
        assert (gradient * change).sum() == pytest.approx(slope, rel=1e-6)


def test_gradients_of_factors_equal_differences(rng):
    counts = count_subsets([one for one in EVERY if len(one) <= 3], 5)
    V = rng.standard_normal((5, 3))
    value, gradient = factor_value_and_gradient(V, counts)
    assert value == pytest.approx(one_by_one(V @ V.T, [one for one in EVERY if len(one) <= 3]))
    np.testing.assert_allclose(gradient, differences(lambda v: factor_value_and_gradient(v, counts)[0], V), rtol=1e-5)
    penalised = FactorObjective(counts, popularity_weights(counts, 7.0))
    np.testing.assert_allclose(
        penalised.value_and_gradient(V)[1], differences(penalised.value, V), rtol=1e-5, atol=1e-8
    )
    whole = CholeskyObjective(count_subsets(EVERY, 5))
    point = whole.point(random_kernel(rng))
    np.testing.assert_allclose(whole(point)[1], differences(lambda x: whole(x)[0], point), rtol=1e-5, atol=1e-8)


def test_popularity_penalty_follows_its_formula():
    counts = count_subsets([[0], [0, 1], [0], []], 3)
    V = np.array([[1.0, 0.5], [2.0, -1.0], [0.3, 0.0]])
    plain = factor_value_and_gradient(V, counts)[0]
    lengths = (V**2).sum(axis=1)
    expected = plain - 5.0 / (2 * 4) * (lengths[0] / 3 + lengths[1] / 1 + lengths[2] / 1)
    assert FactorObjective(counts, popularity_weights(counts, 5.0)).value(V) == pytest.approx(expected)


def test_responsibilities_equal_enumeration_of_the_chosen_eigenvectors(rng):
    vectors = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    probabilities = rng.uniform(0.1, 0.9, size=5)
    point = eigen_point(vectors, probabilities)
    for subset in ([], [2], [0, 3], [0, 1, 4], [0, 1, 2, 3, 4]):
        # P(J, Y) = prod_J kappa prod_not (1 - kappa) det([V_J V_J']_Y), for |J| = |Y|
        mass, picked = 0.0, np.zeros(5)
        for J in itertools.combinations(range(5), len(subset)):
            chosen = np.isin(np.arange(5), J)
            prior = np.prod(np.where(chosen, probabilities, 1 - probabilities))
            joint = prior * np.linalg.det(vectors[np.ix_(subset, J)]) ** 2
            mass += joint
            picked += joint * chosen
        counts = count_subsets([subset], 5)
        value, gradient = kernel_value_and_gradient(point.L, counts)
        inverses = gradient + np.linalg.inv(point.L + np.eye(5))
        found = responsibilities(point, inverses)
        assert np.exp(value) == pytest.approx(mass)
        np.testing.assert_allclose(found, picked / mass, atol=1e-10)
        assert found.sum() == pytest.approx(len(subset))


def test_slope_of_a_rotation_equals_differences(rng):
    from scipy.linalg import expm

    counts = count_subsets([EVERY[index] for index in rng.integers(0, len(EVERY), size=30)], 5)
    point = eigen_point(np.linalg.qr(rng.standard_normal((5, 5)))[0], rng.uniform(0.1, 0.9, size=5))
    gradient = kernel_value_and_gradient(point.L, counts)[1]
    skew = rotation_slope(point, gradient + np.linalg.inv(point.L + np.eye(5)))

    def along(angle):
        return kernel_value(eigen_point(expm(angle * skew) @ point.vectors, point.probabilities).L, counts)

    slope = (along(1e-6) - along(-1e-6)) / 2e-6
    assert slope == pytest.approx((skew**2).sum() / 2, rel=1e-5)


def test_weights_are_repetitions():
    weighted = count_subsets([[1, 0], [2], []], 4, sample_weight=[3, 1, 2])
    repeated = count_subsets([[0, 1], [1, 0], [], [2], [0, 1], []], 4)
    assert weighted.total == repeated.total
    for one, other in zip(weighted.groups, repeated.groups, strict=True):
        np.testing.assert_array_equal(one.items, other.items)
        np.testing.assert_array_equal(one.weight, other.weight)
    assert [group.size for group in count_subsets([[1], [0, 1]], sample_weight=[0, 1]).groups] == [2]


def test_item_and_pair_weights_equal_counting(rng):
    subsets = [EVERY[index] for index in rng.integers(0, len(EVERY), size=40)]
    weight = rng.random(40)
    masks = np.array([np.isin(np.arange(5), one) for one in subsets], dtype=float)
    counts = count_subsets(subsets, 5, weight)
    np.testing.assert_allclose(counts.pair_weights(), masks.T @ (weight[:, None] * masks))
    np.testing.assert_allclose(counts.item_weights(), weight @ masks)


def test_an_impossible_subset_is_named():
    L = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.warns(RuntimeWarning, match=r"subset \[0, 1\] has probability zero"):
        assert mean_log_likelihood(L, [[2], [0, 1]]) == -np.inf
    with pytest.raises(ValueError, match=r"subset \[0, 1\] has probability zero"):
        log_likelihood_gradient(L, [[2], [0, 1]])
    logs = subset_log_probabilities(L, [[2], [0, 1], [0]])
    assert logs[1] == -np.inf
    assert np.isfinite(logs[[0, 2]]).all()
    with pytest.warns(RuntimeWarning, match="has probability zero"):
        assert mean_log_likelihood(np.ones((3, 1)), [[0, 2]], factor=True) == -np.inf


@pytest.mark.parametrize(
    ("subsets", "settings", "sentence"),
    [
        ([], {}, "subsets must hold at least one subset, got none"),
        ([[0, 3]], {"n_items": 3}, "from 0 to 2, got 3 in subset 0"),
        ([[0], [-1, 1]], {}, "got -1 in subset 1"),
        ([[0, 1, 0]], {}, "got item 0 twice in subset 0"),
        ([[0.5]], {}, "must hold integer item numbers, got float64 in subset 0"),
        ([[[0]]], {}, "got shape"),
        ([[], []], {}, "n_items must be given when all subsets are empty"),
        ("abc", {}, "must be a list of subsets"),
        (3, {}, "must be a list of subsets"),
        ([[0]], {"n_items": 0}, "n_items must be an integer of at least 1"),
        ([[True, False]], {"n_items": 3}, "one entry per item"),
        ([[True, False], [True]], {}, "must have one length, got 2 and 1"),
        ([[0]], {"sample_weight": [1, 2]}, "one weight per subset"),
        ([[0]], {"sample_weight": [-1]}, "finite and non-negative"),
        ([[0]], {"sample_weight": [0]}, "at least one positive"),
    ],
)
def test_bad_subsets_get_a_sentence(subsets, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        count_subsets(subsets, **settings)


def test_empty_subsets_alone_are_allowed(rng):
    L = random_kernel(rng)
    assert mean_log_likelihood(L, [[], []]) == pytest.approx(-np.linalg.slogdet(L + np.eye(5))[1])
