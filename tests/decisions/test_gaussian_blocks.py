"""Mutual information of blocks of variables: determinants, single variables, bounds against all choices."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri.decisions import BudgetSelector, GaussianBlockInformation, GaussianMutualInformation, GreedySelector


def covariance(rng, n):
    places = rng.uniform(0, 4, (n, 2))
    return np.exp(-0.5 * ((places[:, None] - places) ** 2).sum(axis=2)) + 0.1 * np.eye(n)


def information(C, inside):
    """I(X_inside; X_rest) by three determinants."""
    rest = np.setdiff1d(np.arange(len(C)), inside)
    logs = [np.linalg.slogdet(C[np.ix_(one, one)])[1] for one in (inside, rest, np.arange(len(C)))]
    return 0.5 * (logs[0] + logs[1] - logs[2])


def test_values_are_those_of_determinants_and_nothing_at_both_ends():
    rng = np.random.default_rng(0)
    C = covariance(rng, 12)
    blocks = [[0, 1, 2], [3], [4, 5, 6, 7], [8, 9], [10, 11]]
    f = GaussianBlockInformation(C, [range(3), {3}, *blocks[2:]])
    for chosen in ([0], [2, 4], [0, 1, 3]):
        inside = np.concatenate([blocks[block] for block in chosen])
        assert_allclose(f.value(chosen), information(C, inside), rtol=1e-10)
    assert f.value([]) == f.value(range(5)) == 0.0
    assert f.submodular


def test_blocks_of_one_variable_are_the_variables():
    C = covariance(np.random.default_rng(1), 9)
    one, plain = GaussianBlockInformation(C, np.arange(9)), GaussianMutualInformation(C)
    state, other = one.start([3, 7]), plain.start([3, 7])
    assert_allclose(one.gains(state), plain.gains(other), rtol=1e-10, atol=1e-12)
    rows = np.zeros((9, 1))
    assert_array_equal(GreedySelector(4, one).fit(rows).selected_, GreedySelector(4, plain).fit(rows).selected_)


@pytest.mark.parametrize("seed", range(10))
def test_greedy_and_its_bound_against_all_choices(seed):
    rng = np.random.default_rng(seed)
    f = GaussianBlockInformation(
        covariance(rng, 20), rng.permutation(np.repeat(np.arange(9), [1, 2, 3, 1, 2, 3, 2, 3, 3]))
    )
    rows = np.zeros((9, 1))
    model = GreedySelector(3, f).fit(rows)
    best = max(f.value(list(one)) for n in (1, 2, 3) for one in combinations(range(9), n))
    assert_allclose(model.values_[-1], f.value(model.selected_), rtol=1e-9)
    # The guarantee of monotone functions, which it is nearly for few of many blocks.
    assert (1 - np.exp(-1)) * best <= model.values_[-1] <= best + 1e-9
    assert best - 1e-9 <= model.upper_bound_ < np.inf
    costs = rng.uniform(1, 3, 9)
    bought = BudgetSelector(5.0, f).fit(rows, costs=costs)
    affordable = [one for n in range(1, 6) for one in combinations(range(9), n) if costs[list(one)].sum() <= 5.0]
    best = max(f.value(list(one)) for one in affordable)
    assert 0.3 * best <= bought.values_[-1] <= best + 1e-9 <= bought.upper_bound_ + 2e-9


def test_the_majorant_is_nowhere_below():
    rng = np.random.default_rng(2)
    f = GaussianBlockInformation(covariance(rng, 14), np.repeat(np.arange(7), 2))
    larger = f.majorant()
    for n in range(8):
        for chosen in combinations(range(7), n):
            assert larger.value(list(chosen)) >= f.value(list(chosen)) - 1e-10
    assert_allclose(larger.start([4, 0, 2]).value, larger.value([0, 2, 4]), rtol=1e-10)


def test_blocks_that_overlap_have_no_proof():
    C = covariance(np.random.default_rng(3), 6)
    f = GaussianBlockInformation(C, [[0, 1], [1, 2], [3, 4]])
    assert not f.submodular
    assert f.majorant() is None
    model = GreedySelector(2, f, method="greedy").fit(np.zeros((3, 1)))
    assert model.upper_bound_ == np.inf


@pytest.mark.parametrize(
    ("blocks", "sentence"),
    [
        ([[0, 1], []], "blocks must each have at least one variable, got none in block 1"),
        ([0, 2, 2, 0], "blocks must each have at least one variable, got none in block 1"),
        ([[0, 9]], "items must be distinct and from 0 to 3"),
        ([[0, 0]], "items must be distinct"),
        ([0, 1], "blocks must be lists of variables, or the number of the block of each of 4 variables"),
        ([-1, -1, -1, -1], "blocks must be lists of variables"),
        ([0.0, 1.0, 2.0, 3.0], "blocks must be lists of variables"),
        ([], "blocks must be lists of variables"),
    ],
)
def test_mistakes_get_a_sentence(blocks, sentence):
    with pytest.raises(ValueError, match=sentence):
        GaussianBlockInformation(np.eye(4), blocks)
