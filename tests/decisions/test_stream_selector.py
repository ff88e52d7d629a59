"""Rows of a stream: the choice of sieves that see items one by one, bounds against all choices, and going on later."""

from itertools import combinations

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import pluri
from pluri.decisions import Coverage, FacilityLocation, FeatureCoverage, GreedySelector, LogDeterminant, StreamSelector
from pluri.decisions.selection.sieve import sieve
from pluri.priors.kernels import RBFKernel

LENGTH = {"length_scale": 0.7}


def rows_for(function, rng, n_rows=60):
    if function in ("facility_location", "log_det"):
        return rng.normal(size=(n_rows, 2))
    return (rng.random((n_rows, 25)) < 0.12) * (1.0 if function == "coverage" else rng.random((n_rows, 25)))


def set_function(function, X, reference=None):
    """The same function of all rows at once."""
    similarity = RBFKernel(0.7)
    return {
        "facility_location": lambda: FacilityLocation(similarity(X, X if reference is None else reference)),
        "log_det": lambda: LogDeterminant(similarity(X, X), jitter=1.0),
        "coverage": lambda: Coverage(X),
        "features": lambda: FeatureCoverage(X),
    }[function]()


def selector(function, size=5, **settings):
    by_kernel = function in ("facility_location", "log_det")
    return StreamSelector(size, function, kernel_params=LENGTH if by_kernel else None, **settings)


FUNCTIONS = pytest.mark.parametrize("function", ["facility_location", "log_det", "coverage", "features"])


@FUNCTIONS
@pytest.mark.parametrize("epsilon", [0.05, 0.4])
def test_batches_of_any_sizes_choose_what_one_by_one_is_chosen(function, epsilon):
    rng = np.random.default_rng(0)
    for _ in range(5):
        X = rows_for(function, rng)
        first = 20  # the rows that stand for all
        oracle = set_function(function, X, X[:first])
        expected = sieve(oracle, 5, epsilon=epsilon)
        model = selector(function, epsilon=epsilon).partial_fit(X[:first])
        for begin, end in [(20, 21), (21, 40), (40, 60)]:
            model.partial_fit(X[begin:end])
        assert_array_equal(model.selected_, expected.items)
        assert_allclose(model.values_, expected.values, rtol=1e-10)
        assert_allclose(model.values_[-1], oracle.value(model.selected_), rtol=1e-10)
        assert_array_equal(model.rows_, X[model.selected_])
        assert model.n_samples_fit_ == 60


@FUNCTIONS
def test_the_bound_is_above_every_choice_and_the_guarantee_holds(function):
    rng = np.random.default_rng(1)
    for _ in range(25):
        X = rows_for(function, rng, 11)
        f = set_function(function, X)
        best = max(f.value(list(one)) for one in combinations(range(11), 3))
        model = selector(function, 3).fit(X)
        assert (0.5 - 0.1) * best <= model.values_[-1] <= best + 1e-9
        assert model.upper_bound_ >= best - 1e-9
        assert_allclose(model.certificate_, model.values_[-1] / model.upper_bound_)


@FUNCTIONS
def test_fit_is_the_sieve_of_the_selector_that_has_all_rows(function):
    X = rows_for(function, np.random.default_rng(2), 1100)  # more than one block
    params = LENGTH if function in ("facility_location", "log_det") else None
    whole = GreedySelector(6, function, kernel_params=params, method="sieve").fit(X)
    model = selector(function, 6).fit(X)
    assert_array_equal(model.selected_, whole.selected_)
    assert_array_equal(model.transform(X), X[whole.selected_])
    assert model.n_kept_ < 150
    assert_array_equal(selector(function, 6).fit(X[:30]).fit(X).selected_, whole.selected_)  # fit begins anew


@pytest.mark.parametrize(("function", "kernel"), [("coverage", "rbf"), ("features", "rbf"), ("log_det", "cosine")])
def test_sparse_rows_choose_what_dense_rows_do(function, kernel):
    X = rows_for("features", np.random.default_rng(3), 90)
    dense = StreamSelector(4, function, kernel=kernel).partial_fit(X[:50]).partial_fit(X[50:])
    rows = sparse.csr_matrix(X)
    model = StreamSelector(4, function, kernel=kernel).partial_fit(rows[:50]).partial_fit(rows[50:])
    assert_array_equal(model.selected_, dense.selected_)
    assert_allclose(model.rows_.toarray(), dense.rows_)
    with pytest.raises(TypeError, match="X must be sparse as in the first call, got dense rows"):
        model.partial_fit(X)


@FUNCTIONS
def test_a_stream_goes_on_after_a_file(function, tmp_path):
    X = rows_for(function, np.random.default_rng(4), 80)
    straight = selector(function).partial_fit(X[:40]).partial_fit(X[40:])
    begun = selector(function).partial_fit(X[:40])
    pluri.save(begun, tmp_path / "stream.pluri")
    again = pluri.load(tmp_path / "stream.pluri").partial_fit(X[40:])
    assert_array_equal(again.selected_, straight.selected_)
    assert again.upper_bound_ == straight.upper_bound_


def test_frames_keep_their_names_and_a_change_on_the_way_is_refused():
    frame = pandas.DataFrame(np.random.default_rng(5).normal(size=(30, 2)), columns=["a", "b"])
    model = selector("log_det").partial_fit(frame)
    assert list(model.transform(frame).columns) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["b", "a"]])
    for name, value in [("size", 3), ("epsilon", 0.2), ("function", "coverage"), ("kernel", "cosine")]:
        other = clone(model).fit(frame).set_params(**{name: value})
        with pytest.raises(ValueError, match=f"{name} must stay what it was in the first call"):
            other.partial_fit(frame)


def test_rows_that_are_worth_nothing_are_not_kept():
    model = StreamSelector(3, "coverage").fit(np.zeros((20, 4)))
    assert len(model.selected_) == 0
    assert model.rows_.shape == (0, 4)
    assert model.certificate_ == 1.0
    model.partial_fit(np.eye(4))
    assert_array_equal(model.selected_, [20, 21, 22])


@pytest.mark.parametrize(
    ("model", "X", "sentence"),
    [
        (StreamSelector(0), [[1.0]], "size must be an integer of at least 1"),
        (StreamSelector(0.5), [[1.0]], "size must be an integer of at least 1"),
        (StreamSelector(2, "graph_cut"), [[1.0]], "function must be one of"),
        (StreamSelector(2, epsilon=1.0), [[1.0]], "epsilon must be"),
        (StreamSelector(2, kernel="precomputed"), [[1.0]], "kernel must be one of"),
        (StreamSelector(2, "features"), [[-1.0]], "X must be non-negative with function='features'"),
        (StreamSelector(2), [[np.nan]], "contains NaN"),
        (StreamSelector(2, kernel_params={"scale": 1.0}), [[1.0]], "takes the parameters"),
        (StreamSelector(2), np.zeros((20_001, 1)), "X must have at most 20000 rows that stand for all"),
        (StreamSelector(2, kernel_params=[1]), [[1.0]], "kernel_params must be a dict or None"),
        (StreamSelector(2, kernel=lambda a, b: np.ones(3)), [[1.0]], r"kernel must give similarities \(1, 1\)"),
        (StreamSelector(2, kernel=lambda a, b: np.full((len(a), len(b)), np.nan)), [[1.0]], "finite similarities"),
        (StreamSelector(2, "log_det", kernel=lambda a, b: -a @ b.T), [[1.0]], "kernel must be positive semi-definite"),
        (StreamSelector(2, "log_det", kernel=lambda a, b: a + b.T), [[1.0], [9.0]], "positive semi-definite"),
        (StreamSelector(2, "log_det", kernel="linear"), [[1e200]], "finite similarities"),
    ],
)
def test_mistakes_get_a_sentence(model, X, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fit(X)
    assert not hasattr(model, "selected_")


def test_it_is_a_scikit_learn_estimator():
    changes = "rows are chosen among those of the fit"
    names = [
        "check_transformer_general",
        "check_transformer_data_not_an_array",
        "check_methods_subset_invariance",
        "check_methods_sample_order_invariance",
        "check_fit_idempotent",
    ]
    for model in (StreamSelector(2), StreamSelector(2, "log_det", kernel="linear"), StreamSelector(2, "coverage")):
        results = check_estimator(
            model, on_fail=None, on_skip=None, expected_failed_checks=dict.fromkeys(names, changes)
        )
        assert [one["check_name"] for one in results if one["status"] == "failed"] == []
