"""Miners and counting models against enumeration of all sets."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from pluri.cochange import CoOccurrence, FrequentItemsets, Popularity, apriori, association_rules, fpgrowth, fpmax
from pluri.cochange.models.mining import TooManyItemsets


def databases(count, n_items=7, n_rows=14):
    rng = np.random.default_rng(3)
    for _ in range(count):
        yield rng.random((n_rows, n_items)) < rng.uniform(0.2, 0.7)


def subsets(items):
    return chain.from_iterable(combinations(items, size) for size in range(1, len(items) + 1))


def all_supports(X):
    """Support of every set, by looking at all of them."""
    return {items: int(X[:, list(items)].all(axis=1).sum()) for items in subsets(range(X.shape[1]))}


def test_the_miners_find_what_enumeration_finds():
    for X in databases(100):
        supports = all_supports(X)
        frequent = {items: count for items, count in supports.items() if count >= 4}
        assert fpgrowth(X, 4) == frequent
        assert apriori(X, 4) == frequent
        maximal = {
            items: count for items, count in frequent.items() if not any(set(items) < set(other) for other in frequent)
        }
        assert fpmax(X, 4) == maximal


def test_the_unions_of_patterns_are_what_the_shortcut_answers():
    rng = np.random.default_rng(4)
    for X in databases(100):
        given = set(rng.choice(X.shape[1], size=rng.integers(1, 4), replace=False).tolist())
        model = FrequentItemsets(3).fit(X)
        scores = model.predict_missing(sorted(given))
        expected = set(np.flatnonzero(scores).tolist()) - given
        for mine in (fpgrowth, fpmax, apriori):
            patterns = [set(items) for items in mine(X, 3)]
            assert set().union(*(items - given for items in patterns if given <= items), set()) == expected
        for item in expected:
            assert scores[item] == X[:, sorted(given | {item})].all(axis=1).sum()


def test_rules_are_those_of_the_definition():
    for X in databases(20):
        supports = all_supports(X)
        frequent = fpgrowth(X, 3)
        found = {
            (rule.antecedent, rule.consequent): rule for rule in association_rules(frequent, len(X), min_confidence=0.6)
        }
        expected = {}
        for items in frequent:
            for left in subsets(items):
                right = tuple(item for item in items if item not in left)
                if right and supports[items] / supports[left] >= 0.6:
                    expected[left, right] = supports[items] / supports[left]
        assert found.keys() == expected.keys()
        for key, rule in found.items():
            assert rule.confidence == pytest.approx(expected[key])
            assert rule.lift == pytest.approx(expected[key] / (supports[key[1]] / len(X)))
            assert rule.support == supports[tuple(sorted(key[0] + key[1]))]
        assert all(len(rule.consequent) == 1 for rule in association_rules(frequent, len(X), max_consequent=1))
    with pytest.raises(ValueError, match="itemsets must hold all subsets"):
        association_rules({(0, 1): 3}, 5)


def test_lengths_and_numbers_of_sets_are_limited():
    X = np.ones((5, 25), dtype=bool)
    assert len(fpgrowth(X, 5, max_length=2)) == len(apriori(X, 5, max_length=2)) == 25 + 300
    assert fpmax(X, 5) == {tuple(range(25)): 5}
    for mine in (fpgrowth, apriori):
        with pytest.raises(TooManyItemsets, match="max_itemsets must be at least"):
            mine(X, 5, max_itemsets=1000)
        with pytest.raises(ValueError, match="min_support must be at least 1"):
            mine(X, 0)
        with pytest.raises(ValueError, match="max_length must be at least 1"):
            mine(X, 1, max_length=0)


def test_transactions_come_as_lists_arrays_or_sparse_matrices():
    X = next(databases(1))
    as_lists = [np.flatnonzero(row).tolist() for row in X]
    for mine in (fpgrowth, fpmax, apriori):
        assert mine(X, 3) == mine(as_lists, 3) == mine(sparse.csr_array(X), 3) == mine(sparse.csc_matrix(X), 3)
    assert fpgrowth([], 1) == fpmax([], 1) == apriori([[], []], 1) == {}


def test_scores_are_the_counts_they_claim_to_be():
    rng = np.random.default_rng(5)
    for X in databases(30):
        present, absent = [1, 4], [2]
        matching = X[X[:, present].all(axis=1) & ~X[:, absent].any(axis=1)]
        support = CoOccurrence("support").fit(X).predict_missing(present, absent)
        others = [0, 3, 5, 6]
        assert support[others].tolist() == matching[:, others].sum(axis=0).tolist()
        confidence = CoOccurrence().fit(X).predict_missing(present, absent)
        np.testing.assert_allclose(confidence[others], matching[:, others].sum(axis=0) / max(len(matching), 1))
        assert confidence[[1, 4, 2]].tolist() == [1.0, 1.0, 0.0]
        pairs = [X[X[:, item]].mean(axis=0) if X[:, item].any() else np.zeros(7) for item in present]
        mean = CoOccurrence(combine="mean").fit(X).predict_missing(present)
        np.testing.assert_allclose(mean[others], np.mean(pairs, axis=0)[others])
        popular = Popularity().fit(X).predict_missing([0])
        np.testing.assert_allclose(popular[1:], X.mean(axis=0)[1:])
        assert FrequentItemsets(1).fit(X).support(present) == X[:, present].all(axis=1).sum()
        # A weight of two is the same as a second copy.
        weights = rng.integers(0, 3, size=len(X))
        for model in (CoOccurrence(), FrequentItemsets(2), Popularity()):
            doubled = model.fit(np.repeat(X, weights, axis=0)).predict_missing([3]) if weights.sum() else None
            weighted = model.fit(X, sample_weight=weights).predict_missing([3])
            np.testing.assert_allclose(weighted, doubled)


def test_rows_are_asked_one_by_one():
    X = next(databases(1)).astype(float)
    for model in (CoOccurrence(), FrequentItemsets(2), Popularity()):
        model.fit(sparse.csr_array(X))
        starters = sparse.csr_array(np.array([[1, 0, 0, 0, 1, 0, 0], [0] * 7, [0, 0, 1, 0, 0, 0, 0]]))
        single = [model.predict_missing(items) for items in ([0, 4], [], [2])]
        np.testing.assert_array_equal(model.predict_missing_rows(starters), single)
        dense = np.full((1, 7), np.nan)
        dense[0, [0, 4]], dense[0, 5] = 1, 0
        np.testing.assert_array_equal(model.predict_missing_rows(dense)[0], model.predict_missing([0, 4], [5]))


def test_permuting_rows_and_columns_changes_nothing():
    rng = np.random.default_rng(6)
    X = next(databases(1))
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    for model in (CoOccurrence(), FrequentItemsets(2), Popularity()):
        plain = model.fit(X).predict_missing([columns[0], columns[3]])
        np.testing.assert_allclose(model.fit(X[rows][:, columns]).predict_missing([0, 3]), plain[columns])


def test_what_never_came_together_has_no_answer():
    model = FrequentItemsets(1).fit(np.eye(3))
    assert model.support([0, 1]) == 0
    assert model.predict_missing([0, 1]).tolist() == [1, 1, 0]
    assert CoOccurrence().fit(np.eye(3)).predict_missing([0, 1])[2] == 0


@pytest.mark.parametrize("model", [FrequentItemsets(), CoOccurrence(), Popularity()])
def test_the_models_keep_to_the_conventions_of_scikit_learn(model):
    check_estimator(model, on_skip=None)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (FrequentItemsets(0), "min_support must be at least 1"),
        (FrequentItemsets(algorithm="eclat"), "algorithm must be one of 'fpmax'"),
        (CoOccurrence("lift"), "measure must be one of"),
        (CoOccurrence(combine="max"), "combine must be one of"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(np.eye(3))


def test_patterns_and_rules_of_a_fitted_model():
    X = next(databases(1))
    assert FrequentItemsets(3, "fpgrowth").fit(X).patterns() == FrequentItemsets(3, "apriori").fit(X).patterns()
    assert FrequentItemsets(3).fit(X).patterns() == fpmax(X, 3)
    rules = FrequentItemsets(3, "apriori").fit(X).rules(min_confidence=0.7)
    assert rules == association_rules(apriori(X, 3), len(X), min_confidence=0.7)
    with pytest.raises(ValueError, match="algorithm must be 'fpgrowth' or 'apriori'"):
        FrequentItemsets(3).fit(X).rules()
    with pytest.raises(ValueError, match="max_length must be None"):
        FrequentItemsets(3).fit(X).patterns(max_length=2)


@pytest.mark.parametrize("model", [FrequentItemsets(1), CoOccurrence(), CoOccurrence(combine="mean"), Popularity()])
def test_items_that_a_sparse_matrix_stores_twice_count_once(model):
    X = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    twice = sparse.csr_array((np.ones(12), np.repeat(X.nonzero()[1], 2)[::-1], [0, 4, 8, 12]), shape=X.shape)
    expected = clone(model).fit(twice.toarray() > 0)
    found = clone(model).fit(twice)
    assert twice.nnz == 12
    np.testing.assert_array_equal(found.frequencies_, [2, 2, 2])
    for present in ([], [0], [0, 1]):
        np.testing.assert_array_equal(found.predict_missing(present), expected.predict_missing(present))
    assert found.support([0]) == 2
