"""Greedy, lazy, budgeted and streaming choices against the best choice of all, found by enumeration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri.decisions import (
    Cardinality,
    Coverage,
    FacilityLocation,
    FunctionOfSets,
    GaussianEntropy,
    GaussianMutualInformation,
    GraphCut,
    Knapsack,
    PartitionMatroid,
    SubmodularityWarning,
    Together,
    VarianceReduction,
)
from pluri.decisions.selection.budget import choose_within_budget
from pluri.decisions.selection.greedy import Search, choose
from pluri.decisions.selection.sieve import sieve

GUARANTEE = 1.0 - np.exp(-1.0)


def every_subset(n_items):
    """Masks (2^n, n) of all subsets."""
    return (np.arange(2**n_items)[:, None] >> np.arange(n_items)) & 1 == 1


def every_value(function):
    """f of each of them, from the definition."""
    masks = every_subset(function.n_items)
    if isinstance(function, Coverage):
        return (masks @ function.membership.toarray() > 0) @ function.weights
    if isinstance(function, FacilityLocation):
        return np.where(masks[:, :, None], function.similarity, 0.0).max(axis=1).clip(min=0.0).sum(axis=1)
    return np.array([function.value(np.flatnonzero(mask)) for mask in masks])


def optimum(function, allowed, values=None):
    """The largest value of a subset whose mask is allowed."""
    masks = every_subset(function.n_items)
    values = every_value(function) if values is None else values
    return values[allowed(masks)].max()


def at_most(number):
    return lambda masks: masks.sum(axis=1) <= number


def random_coverage(rng, n=10, m=25):
    return Coverage(rng.random((n, m)) < 0.2)


def random_field(rng, n=9):
    places = rng.uniform(0, 4, (n, 2))
    return np.exp(-0.5 * ((places[:, None] - places) ** 2).sum(axis=2)) + 0.1 * np.eye(n)


@pytest.mark.parametrize("seed", range(100))
def test_greedy_lazy_and_bounds_against_the_optimum(seed):
    rng = np.random.default_rng(seed)
    function = random_coverage(rng) if seed % 2 else FacilityLocation(rng.random((10, 14)))
    size = int(rng.integers(1, 5))
    constraint = Cardinality(size, function.n_items)
    greedy, lazy = choose(function, constraint, Search(lazy=False)), choose(function, constraint)
    assert_array_equal(lazy.items, greedy.items)
    assert_allclose(lazy.values, greedy.values)
    assert lazy.n_evaluations <= greedy.n_evaluations
    values = every_value(function)
    for number in range(1, len(greedy.items) + 1):
        best = optimum(function, at_most(number), values)
        assert greedy.values[number - 1] >= (GUARANTEE - 1e-12) * best
        for found in (greedy, lazy):
            assert found.upper_bounds[number] >= best - 1e-9
    assert greedy.value <= lazy.upper_bounds[-1] + 1e-9


@pytest.mark.parametrize("seed", range(100))
def test_a_budget_is_spent_well_and_bounded(seed):
    rng = np.random.default_rng(seed)
    function, costs, budget = random_coverage(rng, n=9, m=20), rng.uniform(0.5, 3.0, 9), 5.0
    best = optimum(function, lambda masks: masks @ costs <= budget)
    celf = choose_within_budget(function, costs, budget)
    assert costs[celf.items].sum() <= budget + 1e-9
    assert celf.value >= 0.5 * GUARANTEE * best
    assert celf.upper_bounds[-1] >= best - 1e-9
    assert_allclose(celf.values[-1], function.value(celf.items))
    alone = [choose_within_budget(function, costs, budget, method=method).value for method in ("benefit", "ratio")]
    assert celf.value == max(alone)
    if seed < 4:
        tried = choose_within_budget(function, costs, budget, n_enumerated=3)
        assert celf.value <= tried.value <= best
        assert tried.value >= GUARANTEE * best


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_for_functions_that_are_not_monotone(seed):
    rng = np.random.default_rng(seed)
    half = rng.random((8, 8))
    functions = [
        GraphCut(half + half.T, redundancy=1.0),
        GaussianMutualInformation(random_field(rng, 8)),
        GaussianEntropy(0.1 * random_field(rng, 8)),
        FunctionOfSets(lambda items: float(len(items) * (6 - len(items))), 8),
        1.0 * GraphCut(half + half.T, redundancy=1.0) + Coverage(rng.random((8, 12)) < 0.3),
        VarianceReduction(random_field(rng, 8), noise_variance=0.1),
    ]
    for function in functions:
        values = every_value(function)
        for size in (1, 3, 6):
            found = choose(function, Cardinality(size, 8), Search(keep_falling=True))
            assert found.upper_bounds[-1] >= optimum(function, at_most(size), values) - 1e-9
            assert np.isfinite(found.upper_bounds[-1])


def test_the_usual_bound_without_correction_would_be_wrong_for_a_cut():
    # The whole star is chosen but for its centre; the optimum is the centre alone.
    star = np.zeros((6, 6))
    star[0, 1:] = star[1:, 0] = 1.0
    function = GraphCut(star, redundancy=1.0)
    leaves = function.start([1, 2, 3])
    uncorrected = leaves.value + np.sort(function.gains(leaves))[::-1][:3].clip(min=0).sum()
    assert uncorrected < 5.0 + 1e-12  # 3 edges are cut, and two more at most
    assert choose(function, Cardinality(3, 6)).upper_bounds[-1] >= 5.0


@pytest.mark.parametrize("seed", range(10))
def test_groups_are_limited_and_half_of_the_optimum_is_reached(seed):
    rng = np.random.default_rng(seed)
    function, groups = random_coverage(rng), rng.integers(3, size=10)
    matroid = PartitionMatroid(groups, limits={0: 1, 1: 2})
    constraint = Together([matroid, Cardinality(4, 10)])

    def allowed(masks):
        first, second = (masks[:, groups == group].sum(axis=1) for group in (0, 1))
        return (first <= 1) & (second <= 2) & (masks.sum(axis=1) <= 4)

    best = optimum(function, allowed)
    found = choose(function, constraint)
    assert allowed(np.isin(np.arange(10), found.items)[None])[0]
    assert 0.5 * best <= found.value <= best <= found.upper_bounds[-1] + 1e-9
    two = Together([Knapsack(np.ones(10), 3.0), Knapsack(np.arange(10.0) + 1, 12.0)])
    spent = choose(function, two)
    assert len(spent.items) <= 3
    assert (spent.items + 1).sum() <= 12
    best = optimum(function, lambda masks: (masks.sum(axis=1) <= 3) & (masks @ (np.arange(10) + 1) <= 12))
    assert spent.upper_bounds[-1] >= best - 1e-9


def test_greedy_is_optimal_for_a_sum_of_weights():
    weights = np.array([3.0, 9.0, 1.0, 4.0])
    found = choose(Coverage(np.eye(4), weights), Cardinality(2, 4))
    assert_array_equal(found.items, [1, 3])
    assert found.upper_bounds.tolist() == [0.0, 9.0, 13.0]


def test_gain_alone_or_gain_per_cost_alone_can_fail():
    small = 0.01
    valuable = Coverage(np.eye(2), [2 * small, 10.0])
    costs = np.array([small, 10.0])
    assert choose_within_budget(valuable, costs, 10.0, method="ratio").items.tolist() == [0]
    assert choose_within_budget(valuable, costs, 10.0).items.tolist() == [1]
    dear = Coverage(np.eye(6), [1.0 + small, *[1.0] * 5])
    costs = np.array([5.0, *[1.0] * 5])
    assert choose_within_budget(dear, costs, 5.0, method="benefit").items.tolist() == [0]
    assert choose_within_budget(dear, costs, 5.0).items.tolist() == [1, 2, 3, 4, 5]


def test_at_equal_costs_all_ways_are_the_greedy_one():
    function = random_coverage(np.random.default_rng(1))
    plain = choose(function, Cardinality(4, 10))
    for method in ("benefit", "ratio", "celf"):
        assert_array_equal(choose_within_budget(function, np.ones(10), 4.0, method=method).items, plain.items)


def test_what_costs_nothing_is_taken_if_it_brings_something():
    function = Coverage([{1}, {1}, {2, 3}, {4}])
    found = choose_within_budget(function, np.array([0.0, 0.0, 2.0, 3.0]), 2.0)
    assert found.items.tolist() == [0, 2]
    assert found.value == 3.0
    assert found.upper_bounds[-1] >= 3.0


@pytest.mark.parametrize("seed", range(20))
def test_one_pass_reaches_nearly_half_of_the_optimum(seed):
    rng = np.random.default_rng(seed)
    function = random_coverage(rng)
    found = sieve(function, 3, rng.permutation(10), epsilon=0.1)
    best = optimum(function, at_most(3))
    assert (0.5 - 0.1) * best <= found.value <= best <= found.upper_bounds[-1] + 1e-9
    assert found.value == function.value(found.items)


def test_random_samples_reach_what_is_promised_on_average():
    # 1 - 1/e - 0.1 of the optimum is the least that the expectation can be; values lie in [0, optimum], so the mean of
    # 200 is below it by 0.12 with a probability below exp(-2 * 200 * 0.12^2) = 0.3 %, and far less as f is benign.
    rng = np.random.default_rng(0)
    function = random_coverage(rng, n=12)
    best = optimum(function, at_most(3))
    values = [
        choose(function, Cardinality(3, 12), Search(sample_size=10, rng=np.random.default_rng(seed))).value
        for seed in range(200)
    ]
    assert np.mean(values) / best > GUARANTEE - 0.1 - 0.12
    again = [choose(function, Cardinality(3, 12), Search(sample_size=10, rng=np.random.default_rng(7))) for _ in "ab"]
    assert_array_equal(again[0].items, again[1].items)


def test_equal_gains_are_taken_in_order_also_lazily():
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.random((5, 30)), 4, axis=0)  # each item four times
    function = FacilityLocation(rows)
    greedy, lazy = (choose(function, Cardinality(5, 20), Search(lazy=how)) for how in (False, True))
    assert_array_equal(greedy.items, lazy.items)
    assert set(greedy.items % 4) == {0}


def test_a_function_whose_gains_grow_is_found_out_on_the_way():
    function = FunctionOfSets(lambda items: float(len(items)) ** 2, 12)
    with pytest.warns(SubmodularityWarning, match=r"has risen from 1 to 3 with 1 items"):
        choose(function, Cardinality(3, 12), Search(verify=True, rng=np.random.default_rng(0)))


def test_a_lazy_search_calls_an_expensive_function_less():
    calls = []

    def expensive(items):
        calls.append(1)
        return float(len(set().union(*(set(range(3 * i, 3 * i + 40 - i)) for i in items))))

    function = FunctionOfSets(expensive, 30, monotone=True)
    lazy = choose(function, Cardinality(5, 30))
    n_lazy, calls[:] = len(calls), []
    greedy = choose(function, Cardinality(5, 30), Search(lazy=False))
    assert_array_equal(lazy.items, greedy.items)
    assert lazy.n_evaluations < 0.7 * greedy.n_evaluations
    assert n_lazy <= lazy.n_evaluations + 32  # the empty set, and the certificate


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Knapsack([1.0, -1.0], 1.0), "costs must be finite and non-negative, got -1.0"),
        (lambda: Knapsack([1.0, np.nan], 1.0), "costs must be finite and non-negative"),
        (lambda: Knapsack([1.0], 0.0), "budget must be a positive number, got 0"),
        (lambda: Knapsack([], 1.0), "costs must be a number for each item"),
        (lambda: PartitionMatroid(["a"], {"b": 1}), "limits must be of groups of the partition"),
        (lambda: PartitionMatroid(["a"], -1), "limits must be whole numbers"),
        (lambda: PartitionMatroid([], 1), "partition must name the group"),
        (lambda: Together([]), "constraints must have at least one"),
        (
            lambda: choose_within_budget(Coverage(np.eye(100)), np.ones(100), 3.0, n_enumerated=3),
            "at most 50000 beginnings",
        ),
        (lambda: choose(FunctionOfSets(lambda items: -np.inf, 3), Cardinality(2, 3)), "must be numbers, got NaN"),
    ],
)
def test_mistakes_get_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_the_bound_of_a_sieve_holds_for_functions_that_are_not_submodular():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        root = rng.normal(size=(7, 7))
        for function in (
            VarianceReduction(root @ root.T / 7 + 0.3 * np.eye(7), 0.3),
            FunctionOfSets(lambda items: len(items) ** 2, 7, monotone=True, submodular=False),
            FunctionOfSets(lambda items: len(items) ** 2 - 2 * (0 in items), 7, submodular=False),
        ):
            values = every_value(function)
            bounds = sieve(function, 4).upper_bounds
            for size in range(5):
                assert bounds[size] >= optimum(function, at_most(size), values) - 1e-9


def test_a_sample_in_which_nothing_is_worth_taking_does_not_end_the_search():
    worth = np.zeros(100)
    worth[:5] = 1.0
    function = Coverage(np.diag(worth))
    for seed in range(20):
        search = Search(sample_size=5, rng=np.random.default_rng(seed))
        found = choose(function, Cardinality(50, 100), search)
        assert sorted(found.items) == [0, 1, 2, 3, 4]
        assert found.upper_bounds[-1] == 5.0
