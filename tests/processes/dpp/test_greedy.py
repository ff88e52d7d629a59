"""Greedy search for the most probable set, against enumeration and against itself by other ways."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from pluri.processes.dpp.kernel_forms import DenseKernel, FeatureKernel, FunctionKernel
from pluri.processes.dpp.search.greedy import greedy_map


def random_features(n_items, n_features, seed=0, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=(n_items, n_features))


def random_kernel(n_items, seed=0, scale=1.0):
    features = random_features(n_items, n_items, seed, scale)
    return features @ features.T


def log_det(kernel, items):
    items = list(items)
    return np.linalg.slogdet(kernel[np.ix_(items, items)])[1] if items else 0.0


def by_definition(kernel, size, given=(), exclude=(), window=None):
    """Greedy search by determinants alone."""
    chosen = []
    while len(chosen) < size:
        before = [*given, *chosen]
        before = before[len(before) - min(window, len(before)) :] if window else before
        gains = np.full(len(kernel), -np.inf)
        for item in set(range(len(kernel))) - {*given, *chosen, *exclude}:
            gains[item] = log_det(kernel, [*before, item]) - log_det(kernel, before)
        chosen.append(int(np.argmax(gains)))
    return chosen


@pytest.mark.parametrize("settings", [{}, {"lazy": True}], ids=["eager", "lazy"])
def test_each_choice_is_the_best_one(settings):
    for seed in range(5):
        kernel = random_kernel(12, seed)
        found = greedy_map(kernel, 7, **settings)
        assert found.items.tolist() == by_definition(kernel, 7)
        assert found.log_det == pytest.approx(log_det(kernel, found.items), abs=1e-9)
        assert np.log(found.gains).sum() == pytest.approx(found.log_det)
        assert (np.diff(found.gains) <= 1e-12).all()  # submodular: gains never grow


def test_greedy_is_close_to_the_best_of_all_sets():
    """Eigenvalues above 1 make it monotone: at least 1 - 1/e of the best, and the best itself in half of the cases."""
    n_best = 0
    for seed in range(30):
        kernel = random_kernel(10, seed) + np.eye(10)
        best = max(log_det(kernel, subset) for subset in combinations(range(10), 4))
        found = greedy_map(kernel, 4).log_det
        assert found >= (1 - 1 / np.e) * best
        n_best += found > best - 1e-9
    assert n_best >= 15


def test_without_a_size_the_set_grows_as_long_as_it_becomes_more_probable():
    for seed in range(10):
        kernel = random_kernel(10, seed, scale=0.5)
        found = greedy_map(kernel)
        assert (found.gains > 1).all()
        rest = set(range(10)) - set(found.items.tolist())
        assert all(log_det(kernel, [*found.items, item]) <= found.log_det + 1e-9 for item in rest)
    assert len(greedy_map(0.5 * np.eye(3)).items) == 0
    assert greedy_map(0.5 * np.eye(3)).log_det == 0.0
    assert greedy_map(2.0 * np.eye(3)).items.tolist() == [0, 1, 2]


@pytest.mark.parametrize("lazy", [False, True])
def test_every_form_of_a_kernel_gives_the_same_items(lazy):
    features = random_features(200, 30, 1)
    features[np.abs(features) < 0.8] = 0.0
    dense = greedy_map(DenseKernel(features @ features.T), 25)
    for form in (
        FeatureKernel(features),
        FeatureKernel(sparse.csr_array(features)),
        FunctionKernel(lambda a, b: a @ b.T, features),
        DenseKernel(features @ features.T),
    ):
        found = greedy_map(form, 25, lazy=lazy)
        assert found.items.tolist() == dense.items.tolist()
        assert np.allclose(found.gains, dense.gains, rtol=1e-7)
        assert found.log_det == pytest.approx(dense.log_det)


def test_many_items_from_features_need_no_square_matrix():
    """A hundred thousand items: the kernel written out would be 80 GB."""
    features = random_features(100_000, 8, 2)
    found = greedy_map(FeatureKernel(features), 8)
    chosen = features[found.items]
    assert found.log_det == pytest.approx(np.linalg.slogdet(chosen @ chosen.T)[1])


@pytest.mark.parametrize("lazy", [False, True])
def test_ties_go_to_the_lowest_number(lazy):
    assert greedy_map(np.eye(6), 4, lazy=lazy).items.tolist() == [0, 1, 2, 3]
    assert greedy_map(np.eye(6), 4, lazy=lazy).log_det == 0.0
    features = random_features(30, 6, 3)
    twice = np.vstack([features, features])
    alone, both = greedy_map(FeatureKernel(features), 6, lazy=lazy), greedy_map(FeatureKernel(twice), 6, lazy=lazy)
    assert both.items.tolist() == alone.items.tolist()
    circle = 2 * np.pi * np.arange(12) / 12
    for form in (
        FeatureKernel(np.column_stack([np.cos(circle), np.sin(circle)])),
        DenseKernel(np.cos(circle[:, None] - circle)),
    ):
        assert greedy_map(form, 2, lazy=lazy).items.tolist() == [0, 3]


@pytest.mark.parametrize("lazy", [False, True])
def test_items_that_are_given_or_excluded(lazy):
    features = random_features(15, 15, 4)
    kernel = features @ features.T
    expected = by_definition(kernel, 5, given=[2, 9], exclude=[0, 1, 3])
    for form in (kernel, FeatureKernel(features)):
        found = greedy_map(form, 5, given=[2, 9], exclude=[0, 1, 3], lazy=lazy)
        assert found.items.tolist() == expected
        assert found.log_det == pytest.approx(log_det(kernel, [2, 9, *expected]))
    schur = kernel - kernel[:, [2, 9]] @ np.linalg.solve(kernel[np.ix_([2, 9], [2, 9])], kernel[[2, 9]])
    rest = np.setdiff1d(np.arange(15), [2, 9])
    conditioned = greedy_map(DenseKernel(schur[np.ix_(rest, rest)]), 4)
    assert rest[conditioned.items].tolist() == greedy_map(kernel, 4, given=[2, 9], lazy=lazy).items.tolist()


@pytest.mark.parametrize("window", [1, 3, 30])
def test_only_the_last_choices_repel_in_a_window(window):
    kernel = random_kernel(20, 5)
    found = greedy_map(kernel, 15, window=window)
    assert found.items.tolist() == by_definition(kernel, 15, window=window)
    assert found.log_det == pytest.approx(log_det(kernel, found.items), abs=1e-7)


def test_a_window_makes_lists_longer_than_the_rank():
    features = random_features(40, 3, 6)
    found = greedy_map(FeatureKernel(features), 20, window=2)
    assert len(set(found.items.tolist())) == 20
    assert found.items.tolist() == by_definition(features @ features.T, 20, window=2)


def test_the_weight_of_quality():
    """With weight w the kernel is q^(w-1) L q^(w-1), q the root of the diagonal."""
    features = random_features(15, 15, 7) * np.random.default_rng(0).gamma(2.0, size=(15, 1))
    kernel = features @ features.T
    for weight in (0.0, 0.5, 2.0):
        scale = np.diagonal(kernel) ** (0.5 * (weight - 1.0))
        expected = greedy_map(scale[:, None] * kernel * scale, 6)
        for lazy in (False, True):
            found = greedy_map(kernel, 6, quality_weight=weight, lazy=lazy)
            assert found.items.tolist() == expected.items.tolist()
            assert np.allclose(found.gains, expected.gains)
            assert found.log_det == pytest.approx(log_det(kernel, found.items))


def test_relabelled_items_give_relabelled_choices():
    kernel, order = random_kernel(12, 8), np.random.default_rng(0).permutation(12)
    found, relabelled = greedy_map(kernel, 5), greedy_map(kernel[np.ix_(order, order)], 5)
    assert order[relabelled.items].tolist() == found.items.tolist()


def test_scale_does_not_matter_where_the_size_is_fixed():
    kernel = random_kernel(12, 9)
    for scale in (1e-20, 1e20):
        assert greedy_map(scale * kernel, 12).items.tolist() == greedy_map(kernel, 12).items.tolist()


@pytest.mark.parametrize("lazy", [False, True])
def test_a_size_above_the_rank_is_refused(lazy):
    features = random_features(10, 4, 10)
    for form in (FeatureKernel(features), DenseKernel(features @ features.T)):
        assert len(greedy_map(form, 4, lazy=lazy).items) == 4
        with pytest.raises(ValueError, match=r"do not depend on each other \(4\), got 5"):
            greedy_map(form, 5, lazy=lazy)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"size": 4}, r"size must be at most the number of items to choose from \(3\), got 4"),
        ({"size": 3, "exclude": [0]}, "size must be at most"),
        ({"size": -1}, "size must be a whole number"),
        ({"size": 1.5}, "size must be a whole number"),
        ({"window": 0}, "window must be a whole number of at least 1"),
        ({"quality_weight": np.nan}, "quality_weight"),
        ({"given": [0], "exclude": [0]}, "in common"),
        ({"given": [7]}, "given must hold items"),
        ({"given": [0, 0]}, "twice"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        greedy_map(np.eye(3), **arguments)


def test_given_items_that_depend_on_each_other_are_refused():
    for lazy in (False, True):
        with pytest.raises(ValueError, match="given must have a positive determinant"):
            greedy_map(np.ones((3, 3)), 1, given=[0, 1], lazy=lazy)


def test_bad_kernels_are_refused():
    with pytest.raises(ValueError, match="finite"):
        greedy_map([[1.0, np.nan], [np.nan, 1.0]])
    with pytest.raises(ValueError, match="positive semi-definite"):
        greedy_map([[1.0, 2.0], [2.0, 1.0]])


def test_small_cases():
    assert greedy_map([[3.0]]).items.tolist() == [0]
    assert greedy_map(np.eye(2), 0).items.tolist() == []
    assert greedy_map(np.zeros((2, 2))).items.tolist() == []
