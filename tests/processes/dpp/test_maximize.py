"""The searches for the most probable subset, through the processes, against looking at all subsets."""

import itertools

import numpy as np
import pytest

from pluri.processes.dpp import DPP, KDPP

RNG = np.random.default_rng(8)


def kernel(n=9):
    features = RNG.normal(size=(n, 4))
    return features @ features.T + 0.3 * np.eye(n)


def best(process, sizes):
    return max(
        process.log_prob(list(items))
        for size in sizes
        for items in itertools.combinations(range(process.n_items), size)
    )


@pytest.mark.parametrize("method", ["greedy", "lazy", "relaxation"])
def test_with_local_search_the_best_subset_is_mostly_found(method):
    found = []
    for _ in range(12):
        process = DPP(kernel())
        top = best(process, range(10))
        plain, searched = process.map(method=method), process.map(method=method, local_search=True)
        assert process.log_prob(searched) >= process.log_prob(plain) - 1e-9
        found.append(process.log_prob(searched) > top - 1e-9)
    assert np.mean(found) >= 0.75


@pytest.mark.parametrize("method", ["greedy", "lazy", "relaxation"])
def test_a_size_is_kept(method):
    L = kernel()
    for size in (0, 1, 4, 9):
        assert DPP(L).map(size, method=method).size == size
    process = KDPP(L, 4)
    found = process.map(method=method, local_search=True)
    assert found.size == 4
    assert process.log_prob(found) >= best(process, [4]) - 0.5


def test_what_is_included_stays_and_what_is_excluded_stays_out():
    process = DPP(kernel()).condition(include=[2], exclude=[0, 1])
    found = process.map()
    assert 2 in found
    assert not {0, 1} & set(found.tolist())
    exact = max(
        process.log_prob([2, *items]) for size in range(7) for items in itertools.combinations(range(3, 9), size)
    )
    assert process.log_prob(process.map(local_search=True)) <= exact + 1e-9


def test_bad_searches_are_refused():
    with pytest.raises(ValueError, match="method must be one of"):
        DPP(kernel()).map(method="best")
    with pytest.raises(ValueError, match="size must be a whole number from 0 to 9, got 10"):
        DPP(kernel()).map(10)
    with pytest.raises(ValueError, match="size must be 3 or None, got 4"):
        KDPP(kernel(), 3).map(4)


def test_an_empty_best_subset_is_told():
    process = DPP(0.3 * np.eye(4))
    with pytest.warns(UserWarning, match="no item makes the subset more probable"):
        assert process.map().size == 0
    assert process.map(2).size == 2
