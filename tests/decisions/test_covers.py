"""Covers: dynamic programming against brute force, greedy against its guarantee, annealing against greedy."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import pluri
from pluri.decisions import GaussianMutualInformation, MaxKCover, SensorPlacement, SetCover


def every_choice(n_sets):
    return (np.arange(2**n_sets)[:, None] >> np.arange(n_sets)) & 1 == 1


def random_sets(rng, n_sets, n_elements, density):
    """Sets that hold every element."""
    sets = rng.random((n_sets, n_elements)) < density
    sets[rng.integers(n_sets, size=n_elements), np.arange(n_elements)] = True
    return sets


@pytest.mark.parametrize("seed", range(5))
def test_the_exact_cover_is_the_cheapest_of_all(seed):
    rng = np.random.default_rng(seed)
    sets, costs = random_sets(rng, 12, 10, 0.25), rng.uniform(0.5, 3.0, 12)
    choices = every_choice(12)
    best = (choices @ costs)[((choices @ sets) > 0).all(axis=1)].min()
    exact = SetCover("exact").fit(sets, costs=costs)
    greedy = SetCover().fit(sets, costs=costs)
    annealed = SetCover("annealing", random_state=seed).fit(sets, costs=costs)
    assert exact.cost_ == pytest.approx(best)
    harmonic = np.sum(1.0 / np.arange(1, 11))
    assert best - 1e-9 <= annealed.cost_ <= greedy.cost_ + 1e-9 <= harmonic * best + 1e-9
    for model in (exact, greedy, annealed):
        assert model.covered_.all()
        assert model.lower_bound_ <= best + 1e-9
        assert not model.optimal_ or model.cost_ == pytest.approx(best)
        assert (sets[model.selected_].sum(axis=0) > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_exact_maximum_cover_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    sets, weights = rng.random((12, 14)) < 0.2, rng.uniform(0.5, 2.0, 14)
    choices = every_choice(12)
    values = ((choices @ sets) > 0) @ weights
    for size in (1, 3, 5):
        best = values[choices.sum(axis=1) <= size].max()
        exact = MaxKCover(size, "exact").fit(sets, element_weight=weights)
        greedy = MaxKCover(size).fit(sets, element_weight=weights)
        annealed = MaxKCover(size, "annealing", random_state=seed).fit(sets, element_weight=weights)
        assert exact.value_ == pytest.approx(best)
        assert len(exact.selected_) <= size
        assert (1 - np.exp(-1)) * best <= greedy.value_ <= annealed.value_ + 1e-9 <= best + 2e-9
        assert min(greedy.upper_bound_, annealed.upper_bound_) >= best - 1e-9
        assert exact.optimal_


def test_intervals_are_covered_exactly_whatever_their_number():
    rng = np.random.default_rng(0)
    n_elements = 60
    starts = rng.integers(n_elements, size=80)
    ends = np.minimum(starts + rng.integers(1, 15, size=80), n_elements)
    sets = np.array([(np.arange(n_elements) >= a) & (np.arange(n_elements) < b) for a, b in zip(starts, ends)])
    sets = np.vstack([sets, np.eye(n_elements, dtype=bool)])
    costs = rng.uniform(0.5, 3.0, len(sets))
    exact = SetCover("exact").fit(sets, costs=costs)
    # Matrices of intervals are totally unimodular: linear programming has the same optimum.
    assert exact.cost_ == pytest.approx(SetCover().fit(sets, costs=costs).lower_bound_)


def test_annealing_is_better_than_greedy_on_average():
    # In 100 instances of a published specification it was better in 45 and worse in 3 from random beginnings. From the
    # greedy one it is never worse; not being better in any of 25 has a probability below 0.55^25 = 3e-7.
    better = 0
    for seed in range(25):
        sets = np.random.default_rng(seed).random((30, 100)) < 0.15
        greedy = MaxKCover(5).fit(sets)
        annealed = MaxKCover(5, "annealing", max_iter=1000, random_state=seed).fit(sets)
        assert annealed.value_ >= greedy.value_
        better += annealed.value_ > greedy.value_
    assert better > 0
    drawn = MaxKCover(5, "annealing", init="random", max_iter=200, random_state=0).fit(sets)
    assert_array_equal(
        drawn.selected_, MaxKCover(5, "annealing", init="random", max_iter=200, random_state=0).fit(sets).selected_
    )


def test_the_trap_in_which_greedy_takes_more_than_it_needs():
    # Two rows of seven cover all; columns of eight, four and two lure.
    rows = [set(range(7)), set(range(7, 14))]
    columns = [{0, 1, 2, 3, 7, 8, 9, 10}, {4, 5, 11, 12}, {6, 13}]
    assert SetCover().fit(rows + columns).selected_.tolist() == [2, 3, 4]
    assert SetCover("exact").fit(rows + columns).selected_.tolist() == [0, 1]
    assert len(SetCover("annealing", init="random", n_init=5, random_state=0).fit(rows + columns).selected_) == 2


def test_all_sets_twice_and_all_sets_at_once():
    sets = random_sets(np.random.default_rng(3), 8, 10, 0.3)
    once, twice = SetCover("exact").fit(sets), SetCover("exact").fit(np.vstack([sets, sets]))
    assert once.cost_ == twice.cost_
    for method in ("greedy", "annealing", "exact"):
        assert MaxKCover(8, method, random_state=0).fit(sets).covered_.all()


def test_mutual_information_by_swaps_is_never_worse_than_greedy():
    improved = 0
    for seed in range(6):
        places = np.random.default_rng(seed).uniform(0, 4, (14, 2))
        greedy = SensorPlacement(6).fit(places)
        annealed = SensorPlacement(6, method="annealing", max_iter=400, random_state=0).fit(places)
        assert annealed.values_[-1] >= greedy.values_[-1]
        assert annealed.values_[-1] <= annealed.upper_bound_
        improved += annealed.values_[-1] > greedy.values_[-1] + 1e-9
    covariance = np.cov(np.random.default_rng(0).normal(size=(6, 40)))
    function = GaussianMutualInformation(covariance)
    parts = [np.linalg.slogdet(covariance[np.ix_(one, one)])[1] for one in ([0, 3], [1, 2, 4, 5], range(6))]
    assert function.value([0, 3]) == pytest.approx(0.5 * (parts[0] + parts[1] - parts[2]), rel=1e-10)


def test_matrices_lists_and_files(tmp_path):
    sets = random_sets(np.random.default_rng(4), 9, 12, 0.3)
    lists = [set(np.flatnonzero(row).tolist()) for row in sets]
    for kind in (SetCover(), MaxKCover(3)):
        first = kind.fit(sets).selected_
        assert_array_equal(kind.fit(sparse.csr_matrix(sets)).selected_, first)
        assert_array_equal(kind.fit(lists).selected_, first)
        assert kind.transform(lists) == [lists[i] for i in first]
        pluri.save(kind, tmp_path / "cover.skops")
        assert_array_equal(pluri.load(tmp_path / "cover.skops").selected_, first)


@pytest.mark.parametrize(
    ("model", "given", "sentence"),
    [
        (SetCover(), {"costs": [-1.0, 1.0]}, "costs must be finite and non-negative"),
        (SetCover(), {"costs": [1.0]}, "costs must be a number for each of 2 items"),
        (SetCover("dp"), {}, "method must be one of"),
        (SetCover(init="best"), {}, "init must be one of"),
        (SetCover("annealing", max_iter=0), {}, "max_iter must be an integer of at least 1"),
        (MaxKCover(3), {}, "size must be at most the number of rows"),
        (MaxKCover(0), {}, "size must be a whole number"),
        (MaxKCover(1), {"element_weight": [1.0]}, "weights must be a finite non-negative number for each element"),
        (MaxKCover(1), {"element_weight": [-1.0, 1.0, 1.0]}, "weights must be a finite non-negative number"),
    ],
)
def test_mistakes_get_a_sentence(model, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fit([{1, 2}, {3}], **given)


def test_what_no_set_holds_is_named():
    with pytest.raises(ValueError, match=r"got 2 that are in none: 1, 3"):
        SetCover().fit([[1, 0, 1, 0], [1, 0, 0, 0]])


def test_a_table_that_would_not_fit_is_refused():
    sets = np.random.default_rng(0).random((40, 30)) < 0.3
    sets[0] = True
    for model in (SetCover("exact"), MaxKCover(3, "exact")):
        with pytest.raises(ValueError, match="at most 22 elements"):
            model.fit(sets)


def test_costs_of_very_different_sizes_are_traced_back():
    # Along the table a small cost is lost beside a large one, and cannot be found again by taking away the latter.
    sets = [{0, 2}, {1, 3}, {0, 1}, {2, 3}]
    for costs in ([0.1, 1e10, 5e10, 5e10], [1e-20, 3e-20, 5e-20, 7e-20], [1e15, 0.3, 4e15, 5e15]):
        found = SetCover(method="exact").fit(sets, costs=costs)
        assert found.selected_.tolist() == [0, 1]
        assert found.cost_ == costs[0] + costs[1]
