"""Selectors of rows: what they choose, what they prove, and what they refuse."""

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.utils.estimator_checks import check_estimator

import pluri
from pluri.decisions import (
    BudgetSelector,
    FacilityLocation,
    GreedySelector,
    MaxKCover,
    SensorPlacement,
    SetCover,
    SubmodularityWarning,
)

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 3))
SETS = (RNG.random((12, 30)) < 0.2).astype(float)


@pytest.mark.parametrize("function", ["facility_location", "graph_cut", "log_det"])
def test_lazy_and_greedy_choose_the_same_rows(function):
    lazy = GreedySelector(8, function).fit(ROWS)
    greedy = GreedySelector(8, function, method="greedy").fit(ROWS)
    assert_array_equal(lazy.selected_, greedy.selected_)
    assert lazy.n_evaluations_ <= greedy.n_evaluations_
    assert_allclose(np.cumsum(lazy.gains_), lazy.values_)
    assert 1 - np.exp(-1) - 1e-9 <= lazy.certificate_ <= 1 + 1e-9
    assert_array_equal(lazy.transform(ROWS), ROWS[lazy.selected_])


def test_precomputed_similarities_are_taken_dense_and_sparse():
    similarity = cosine_similarity(ROWS)
    by_rows = GreedySelector(5, kernel="cosine").fit(ROWS)
    by_matrix = GreedySelector(5, kernel="precomputed").fit(similarity)
    by_sparse = GreedySelector(5, kernel="precomputed").fit(sparse.csr_matrix(similarity.clip(min=0)))
    own = GreedySelector(5, FacilityLocation(similarity)).fit(ROWS)
    for other in (by_matrix, by_sparse, own):
        assert_array_equal(other.selected_, by_rows.selected_)
        assert_allclose(other.upper_bound_, by_rows.upper_bound_)


def test_columns_are_covered():
    model = GreedySelector(4, "coverage").fit(SETS)
    assert model.values_[-1] == (SETS[model.selected_].sum(axis=0) > 0).sum()
    assert_array_equal(GreedySelector(4, "coverage").fit(sparse.csr_matrix(SETS)).selected_, model.selected_)
    features = GreedySelector(4, "features").fit(SETS)
    assert_allclose(features.values_[-1], np.sqrt(SETS[features.selected_].sum(axis=0)).sum())


@pytest.mark.parametrize("method", ["stochastic", "sieve"])
def test_quick_methods_are_bounded_too(method):
    model = GreedySelector(4, "coverage", method=method, random_state=0).fit(SETS)
    best = GreedySelector(4, "coverage").fit(SETS)
    assert model.upper_bound_ >= best.values_[-1]
    assert model.values_[-1] >= 0.4 * best.values_[-1]
    assert np.isnan(model.apriori_bounds_).all()


def test_a_function_of_ones_own_is_called_with_row_numbers():
    seen = set()

    def spread(items):
        seen.update(items)
        return float(np.ptp(ROWS[items, 0])) if items else 0.0

    model = GreedySelector(2, spread, stop_nonpositive=False, method="greedy").fit(ROWS)
    assert seen == set(range(40))
    assert len(model.selected_) == 2
    assert np.isnan(model.apriori_bounds_).all()  # nobody said that it is monotone


def test_groups_have_limits():
    groups = np.arange(40) % 4
    model = GreedySelector(10, limits=2).fit(ROWS, partition=groups)
    assert np.bincount(groups[model.selected_]).tolist() == [2, 2, 2, 2]
    assert np.isnan(model.apriori_bounds_).all()
    bought = BudgetSelector(10.0, limits={0: 1}).fit(ROWS, costs=np.full(40, 2.0), partition=groups)
    assert (groups[bought.selected_] == 0).sum() <= 1
    assert bought.cost_ == 10.0


def test_unit_costs_are_a_number_of_rows():
    settings = {"kernel_params": {"length_scale": 1.0}}  # its default depends on the size
    bought, counted = BudgetSelector(5.0, **settings).fit(ROWS), GreedySelector(5, **settings).fit(ROWS)
    assert_array_equal(bought.selected_, counted.selected_)


def test_frames_texts_and_files(tmp_path):
    frame = pandas.DataFrame(ROWS, index=[f"r{i}" for i in range(40)], columns=["a", "b", "c"])
    model = GreedySelector(3).fit(frame)
    assert list(model.transform(frame).index) == [f"r{i}" for i in model.selected_]
    assert model.transform([f"text {i}" for i in range(40)])[0] == f"text {model.selected_[0]}"
    assert model.get_support().sum() == 3
    for one in (model, BudgetSelector(3.0).fit(ROWS), SensorPlacement(3).fit(ROWS)):
        pluri.save(one, tmp_path / "model.skops")
        loaded = pluri.load(tmp_path / "model.skops")
        assert_array_equal(loaded.selected_, one.selected_)
        assert clone(loaded).get_params().keys() == one.get_params().keys()


def test_a_function_whose_gains_grow_is_found_out():
    with pytest.warns(SubmodularityWarning, match="not submodular"):
        GreedySelector(3, lambda items: float(len(items) ** 2), verify=True, random_state=0).fit(ROWS)


def test_scikit_learn_finds_no_fault():
    # Rows are chosen, so that their number changes, and one row alone is never among others.
    changes = "the number of rows changes, as it should"
    names = [
        "check_transformer_general",
        "check_transformer_data_not_an_array",
        "check_methods_subset_invariance",
        "check_methods_sample_order_invariance",
        "check_fit_idempotent",
    ]
    expected = dict.fromkeys(names, changes)
    for model in (GreedySelector(2), BudgetSelector(2.0), SensorPlacement(2), SetCover(), MaxKCover(2)):
        results = check_estimator(model, on_fail=None, on_skip=None, expected_failed_checks=expected)
        assert [r["check_name"] for r in results if r["status"] == "failed"] == []


@pytest.mark.parametrize(
    ("model", "given", "sentence"),
    [
        (GreedySelector(41), {}, "size must be at most the number of rows"),
        (GreedySelector(0), {}, "size must be a whole number of at least 1"),
        (GreedySelector(None), {}, "size must be a whole number or a share"),
        (GreedySelector(2, "cover"), {}, "function must be a SetFunction, a callable or one of"),
        (GreedySelector(2, method="quick"), {}, "method must be one of"),
        (GreedySelector(2, kernel="tanh"), {}, "kernel must be one of"),
        (GreedySelector(2, kernel="precomputed"), {}, "X must be a square matrix of similarities"),
        (GreedySelector(2, epsilon=0.0), {}, "epsilon must be a number above 0"),
        (GreedySelector(2, limits=1), {}, "partition and limits belong together"),
        (GreedySelector(2), {"partition": np.zeros(40)}, "partition and limits belong together"),
        (GreedySelector(2, limits=1), {"partition": np.zeros(3)}, "partition must name the group of each of the 40"),
        (GreedySelector(2, limits=1, method="sieve"), {"partition": np.zeros(40)}, "limits must be None"),
        (GreedySelector(2, FacilityLocation(np.eye(3))), {}, "X must have a row for each of the 3 items"),
        (BudgetSelector(0.0), {}, "budget must be a positive number"),
        (BudgetSelector(1.0), {"costs": -np.ones(40)}, "costs must be finite and non-negative"),
        (BudgetSelector(1.0), {"costs": np.ones(3)}, "costs must be a number for each of 40 items"),
        (BudgetSelector(1.0, n_enumerated=4), {}, "n_enumerated must be from 0 to 3"),
    ],
)
def test_mistakes_get_a_sentence(model, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fit(ROWS, **given)


def test_missing_values_and_empty_tables_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        GreedySelector(2).fit(np.where(np.arange(3) == 1, np.nan, ROWS[:5]))
    with pytest.raises(ValueError, match="0 sample"):
        GreedySelector(2).fit(np.empty((0, 3)))
