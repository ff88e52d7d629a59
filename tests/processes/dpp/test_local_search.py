"""Local search: it only climbs, and ends where no single move helps."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from pluri.processes.dpp.kernel_forms import FeatureKernel
from pluri.processes.dpp.search.greedy import greedy_map
from pluri.processes.dpp.search.local_search import _Moves, local_search
from pluri.processes.dpp.search.set_constraints import Budget, Cardinality, PartitionMatroid


def random_features(n_items, n_features=None, seed=0, scale=0.6):
    return scale * np.random.default_rng(seed).normal(size=(n_items, n_features or n_items))


def log_det(kernel, items):
    items = sorted(items)
    sign, value = np.linalg.slogdet(kernel[np.ix_(items, items)]) if items else (1.0, 0.0)
    return value if sign > 0 else -np.inf


def neighbours(items, n_items, moves):
    inside, outside = set(items), set(range(n_items)) - set(items)
    if "add" in moves:
        yield from (inside | {j} for j in outside)
    if "delete" in moves:
        yield from (inside - {i} for i in inside)
    if "swap" in moves:
        yield from (inside - {i} | {j} for i in inside for j in outside)


@pytest.mark.parametrize(
    "moves", [("add", "delete", "swap"), ("swap",), ("add", "delete"), ("delete",), ("add",)], ids="-".join
)
def test_the_end_is_optimal_under_its_moves(moves):
    for seed in range(8):
        features = random_features(10, seed=seed)
        kernel = features @ features.T
        found = local_search(FeatureKernel(features), [0, 4, 7], moves=moves)
        assert found.log_det == pytest.approx(log_det(kernel, found.items.tolist()), abs=1e-9)
        best = max((log_det(kernel, other) for other in neighbours(found.items.tolist(), 10, moves)), default=0.0)
        assert best <= found.log_det + 1e-8


def test_the_determinant_never_falls():
    for seed in range(5):
        features = random_features(15, seed=seed)
        kernel = features @ features.T
        found = local_search(kernel, [0, 1, 2, 3])
        assert (found.gains > 1).all()
        start = log_det(kernel, [0, 1, 2, 3])
        assert start + np.log(found.gains).sum() == pytest.approx(found.log_det, abs=1e-8)


def test_gains_of_all_moves_equal_ratios_of_determinants_after_many_moves():
    features = random_features(9, seed=3)
    kernel = features @ features.T
    form, rng = FeatureKernel(features), np.random.default_rng(0)
    table = _Moves(form, np.array([1, 5]))
    for _ in range(30):
        outside = np.setdiff1d(np.arange(9), table.items)
        joining = int(rng.choice(outside)) if len(outside) > 2 and rng.random() < 0.7 else None
        leaving = int(rng.integers(len(table.items))) if len(table.items) > 1 and rng.random() < 0.6 else None
        table.make(leaving, joining)
    items = table.items.tolist()
    before = log_det(kernel, items)
    for j in set(range(9)) - set(items):
        assert np.log(table.left[j]) == pytest.approx(log_det(kernel, [*items, j]) - before, abs=1e-7)
        for p, i in enumerate(items):
            swapped = table.inverse[p, p] * table.left[j] + table.weights[p, j] ** 2
            assert np.log(swapped) == pytest.approx(log_det(kernel, {*items, j} - {i}) - before, abs=1e-7)
    for p, i in enumerate(items):
        assert np.log(table.inverse[p, p]) == pytest.approx(log_det(kernel, set(items) - {i}) - before, abs=1e-7)


def test_search_after_greedy_often_finds_the_best_set():
    """Never worse than greedy, and the best of all sets of its size in most of thirty kernels."""
    n_best = 0
    for seed in range(30):
        features = random_features(10, seed=seed)
        kernel = features @ features.T
        greedy = greedy_map(kernel, 4)
        found = local_search(kernel, greedy.items, moves=("swap",))
        assert len(found.items) == 4
        assert found.log_det >= greedy.log_det - 1e-9
        n_best += found.log_det > max(log_det(kernel, subset) for subset in combinations(range(10), 4)) - 1e-9
    assert n_best >= 24


def test_adding_alone_is_the_greedy_search():
    features = random_features(12, seed=4)
    found = local_search(FeatureKernel(features), moves=("add",))
    assert found.items.tolist() == sorted(greedy_map(FeatureKernel(features)).items.tolist())


def test_given_items_stay_and_excluded_ones_stay_out():
    features = random_features(12, seed=5)
    kernel = features @ features.T
    found = local_search(kernel, [3], given=[0, 1], exclude=[4, 5, 6])
    assert not {0, 1, 4, 5, 6} & set(found.items.tolist())
    allowed = [
        other
        for other in neighbours([0, 1, *found.items.tolist()], 12, ("add", "delete", "swap"))
        if {0, 1} <= other and not other & {4, 5, 6}
    ]
    assert max(log_det(kernel, other) for other in allowed) <= found.log_det + 1e-8


@pytest.mark.parametrize(
    "constraint",
    [
        Cardinality(3),
        Budget(np.arange(1.0, 11.0), 14.0),
        PartitionMatroid(np.arange(10) % 3, np.array([1, 2, 1])),
    ],
    ids=["cardinality", "budget", "groups"],
)
def test_constraints_hold_and_the_end_is_optimal_among_allowed_sets(constraint):
    for seed in range(6):
        features = random_features(10, seed=seed, scale=0.9)
        kernel = features @ features.T
        found = local_search(kernel, constraint=constraint)
        included = np.isin(np.arange(10), found.items)
        assert constraint.allows(included)
        for other in neighbours(found.items.tolist(), 10, ("add", "delete", "swap")):
            if constraint.allows(np.isin(np.arange(10), list(other))):
                assert log_det(kernel, other) <= found.log_det + 1e-8


def test_copies_are_never_together():
    features = np.vstack([random_features(5, seed=6, scale=2.0)] * 2)
    found = local_search(FeatureKernel(features))
    assert len(np.unique(found.items % 5)) == len(found.items)


def test_an_early_end_is_said():
    with pytest.warns(ConvergenceWarning, match="stopped after 2 moves"):
        found = local_search(3.0 * np.eye(5), max_moves=2)
    assert len(found.items) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"moves": ("jump",)}, "moves must be"),
        ({"moves": "add"}, "moves must be"),
        ({"moves": ()}, "moves must be"),
        ({"items": [0, 0]}, "twice"),
        ({"items": [5]}, "items must hold"),
        ({"items": [0], "exclude": [0]}, "exclude must name none"),
        ({"items": [0, 1], "constraint": Cardinality(1)}, "allowed by the constraint"),
        ({"constraint": Cardinality(-1)}, "size must be"),
        ({"constraint": Budget([1.0, 0.0, 1.0], 1.0)}, "costs must be"),
        ({"constraint": Budget([1.0, 1.0, 1.0], np.nan)}, "budget must be"),
        ({"constraint": PartitionMatroid([0, 1], [1, 1])}, "groups must be"),
        ({"constraint": PartitionMatroid([0, 1, 2], [1, 1])}, "groups must be"),
        ({"constraint": PartitionMatroid([0, 1, 1], [1, -1])}, "limits must be"),
        ({"max_moves": -1}, "max_moves must be"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        local_search(np.eye(3), **arguments)


def test_a_start_of_determinant_zero_is_refused():
    with pytest.raises(ValueError, match="positive determinant"):
        local_search(np.ones((3, 3)), [0, 1])
