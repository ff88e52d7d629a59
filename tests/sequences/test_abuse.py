"""Bad input: the right answer, or one sentence that names the argument; and nothing is half-fitted."""

import copy
import pickle
import re
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from pluri.engine import Batch, IterableSource
from pluri.sequences import (
    GMMHMM,
    BernoulliHMM,
    CategoricalHMM,
    DeadStateWarning,
    GaussianHMM,
    MultinomialHMM,
    PoissonHMM,
)

FAMILIES = {
    "gaussian-spherical": lambda **options: GaussianHMM(2, "spherical", random_state=0, **options),
    "gaussian-diag": lambda **options: GaussianHMM(2, "diag", random_state=0, **options),
    "gaussian-full": lambda **options: GaussianHMM(2, "full", random_state=0, **options),
    "gaussian-tied": lambda **options: GaussianHMM(2, "tied", random_state=0, **options),
    "gmm-diag": lambda **options: GMMHMM(2, 2, random_state=0, **options),
    "gmm-full": lambda **options: GMMHMM(2, 2, covariance_type="full", random_state=0, **options),
    "categorical": lambda **options: CategoricalHMM(2, random_state=0, **options),
    "bernoulli": lambda **options: BernoulliHMM(2, random_state=0, **options),
    "poisson": lambda **options: PoissonHMM(2, random_state=0, **options),
    "multinomial": lambda **options: MultinomialHMM(2, random_state=0, **options),
}
COUNTS = ("categorical", "bernoulli", "poisson", "multinomial")
#: What depends on the observations is asked of one model of each family; what only the shared shell does, of two.
ONE_OF_EACH = ("gaussian-diag", "gmm-full", "categorical", "bernoulli", "poisson", "multinomial")
families = pytest.mark.parametrize("family", ONE_OF_EACH)
all_shapes = pytest.mark.parametrize("family", FAMILIES)
two_families = pytest.mark.parametrize("family", ["gaussian-full", "categorical"])


def make(family, **options):
    return FAMILIES[family](**{"n_iter": 2, "tol": -np.inf} | options)


def data(family, n_samples=40):
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=(n_samples, 1))
    if family == "categorical":
        return (rng.integers(3, size=(n_samples, 1)) + groups).astype(float)
    if family == "bernoulli":
        return (rng.random((n_samples, 3)) < 0.2 + 0.6 * groups).astype(float)
    if family in ("poisson", "multinomial"):
        return rng.poisson(2.0 + 6.0 * groups * [1, 0, 1]).astype(float)
    return rng.normal(size=(n_samples, 3)) + 4.0 * groups


def quietly(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DeadStateWarning)
        return function(*args, **kwargs)


def parameters(model):
    return {name: copy.deepcopy(value) for name, value in vars(model).items()}


def assert_same(left, right):
    assert left.keys() == right.keys()
    for name, value in left.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, right[name], err_msg=name)
        elif isinstance(value, list):
            for one, other in zip(value, right[name], strict=True):
                np.testing.assert_array_equal(one, other, err_msg=name)


# What X may look like --------------------------------------------------------------------------------------------

EQUIVALENT = {
    "fortran": np.asfortranarray,
    "read-only": lambda X: _frozen(X.copy()),
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X: X[::-1].copy()[::-1],
    "float32": lambda X: X.astype(np.float32).astype(np.float32),
    "list of lists": lambda X: X.tolist(),
    "big-endian": lambda X: X.astype(">f8"),
    "object": lambda X: X.astype(object),
    "unaligned": lambda X: _unaligned(X),
}


def _frozen(X):
    X.setflags(write=False)
    return X


def _unaligned(X):
    buffer = np.zeros(X.nbytes + 1, dtype=np.uint8)
    view = np.frombuffer(buffer.data, dtype=np.float64, count=X.size, offset=1).reshape(X.shape)
    view = view.copy() if view.flags.aligned and not view.flags.writeable else view
    np.copyto(view, X)
    return view


@pytest.mark.parametrize("form", EQUIVALENT)
@two_families
def test_the_form_of_x_changes_nothing(family, form):
    X = data(family)
    if form == "float32":
        X = X.astype(np.float32).astype(np.float64)
    given = EQUIVALENT[form](X)
    plain, other = make(family).fit(X, lengths=[15, 25]), make(family).fit(given, lengths=[15, 25])
    assert plain.score(X, lengths=[15, 25]) == other.score(given, lengths=[15, 25])
    np.testing.assert_array_equal(plain.transmat_, other.transmat_)
    np.testing.assert_array_equal(plain.predict_proba(X), other.predict_proba(given))


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, bool])
@pytest.mark.parametrize("family", ["gaussian-diag", *COUNTS])
def test_integers_of_every_size_are_numbers(family, dtype):
    X = data("bernoulli" if dtype is bool else "poisson" if family not in COUNTS else family).astype(dtype)
    X = X[:, :1] if family == "categorical" else X
    exact = quietly(make(family).fit, X.astype(float))
    other = quietly(make(family).fit, X)
    assert exact.score(X.astype(float)) == other.score(X)


@families
def test_a_data_frame_is_taken_and_its_names_are_remembered(family):
    pandas = pytest.importorskip("pandas")
    X = data(family)
    frame = pandas.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    model = make(family).fit(frame)
    np.testing.assert_array_equal(model.feature_names_in_, frame.columns)
    assert model.score(frame) == make(family).fit(X).score(X)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"f0": "another"}))


@pytest.mark.parametrize("listed", [False, True], ids=["array", "list"])
@families
def test_masked_values_are_missing_values(family, listed):
    X = data(family)
    holes = X.copy()
    holes[[3, 17]] = np.nan
    masked = np.ma.masked_invalid(holes)
    np.copyto(masked.data, np.where(np.isnan(holes), 1.0, holes))  # a value behind the mask that must not be seen
    if listed:
        fitted, expected = make(family).fit([masked[:15], masked[15:]]), make(family).fit([holes[:15], holes[15:]])
    else:
        fitted, expected = make(family).fit(masked), make(family).fit(holes)
    np.testing.assert_array_equal(fitted.transmat_, expected.transmat_)
    given = [masked[:15], masked[15:]] if listed else masked
    assert fitted.score(given) == expected.score([holes[:15], holes[15:]] if listed else holes)


@families
def test_ragged_lists_with_an_empty_sequence_equal_lengths(family):
    X = data(family)
    listed = [X[:7], X[7:7], X[7:8], X[8:]]
    left, right = make(family).fit(listed), make(family).fit(X, lengths=[7, 0, 1, 32])
    for name in ("startprob_", "transmat_"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    np.testing.assert_array_equal(left.predict(listed), right.predict(X, lengths=[7, 0, 1, 32]))
    np.testing.assert_array_equal(left.predict_proba(listed), right.predict_proba(X, lengths=[7, 0, 1, 32]))
    assert left.score_sequences(listed)[1] == 0.0


@families
def test_input_is_never_modified(family):
    X = data(family)
    X[4] = np.nan
    lengths, weight = np.array([15, 0, 25]), np.array([1.0, 0.0, 2.0])
    copies = X.copy(), lengths.copy(), weight.copy()
    model = make(family).fit(X, lengths=lengths, sequence_weight=weight)
    before = parameters(model)
    model.score(X, lengths=lengths)
    model.score_samples(X, lengths)
    model.decode(X, lengths)
    model.decode(X, lengths, algorithm="map")
    model.best_paths(X, 3)
    model.sample_paths(X, lengths, random_state=0)
    model.filter_proba(X, lengths)
    model.filter().update(X[0])
    model.summary()
    for one, other in zip((X, lengths, weight), copies, strict=True):
        np.testing.assert_array_equal(one, other)
    assert_same(parameters(model), before)
    assert parameters(model).keys() == before.keys()


@all_shapes
def test_given_starting_values_are_never_modified(family):
    X = data(family)
    first = make(family).fit(X)
    second = make(family, init_params="").set_params(n_iter=3)
    for name in ("startprob_", "transmat_", *type(first)._emission_attributes.values()):
        value = getattr(first, "_covars_" if name == "covars_" and "gaussian" in family else name)
        setattr(second, name, np.array(value))
    before = {name: copy.deepcopy(value) for name, value in vars(second).items() if isinstance(value, np.ndarray)}
    handed = {name: value for name, value in vars(second).items() if isinstance(value, np.ndarray)}
    second.fit(X)
    for name, value in handed.items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)


# What X must not look like ---------------------------------------------------------------------------------------

REFUSED = {
    "inf": (lambda X: _with(X, np.inf), "infinity"),
    "minus inf": (lambda X: _with(X, -np.inf), "infinity|egative"),
    "three dimensions": (lambda X: np.stack([X, X]), "dim 3|2 dimensions|3D"),
    "a number": (lambda X: np.array(5.0), "Expected 2D array|dim"),
    "no rows": (lambda X: X[:0], "0 sample|minimum of 1"),
    "no columns": (lambda X: X[:, :0], r"0 feature|minimum of 1"),
    "empty list": (lambda X: [], "Expected 2D array|at least one|minimum of 1|0 sample"),
    "only empty sequences": (lambda X: [X[:0], X[:0]], "at least one observation"),
    "None": (lambda X: None, "Expected 2D|None|NoneType"),
    "a dict": (lambda X: {"X": X}, "X|array|dict"),
    "complex": (lambda X: X + 1j, "[Cc]omplex"),
    "sparse": (lambda X: sparse.csr_matrix(X), "[Ss]parse"),
    "sequences of unequal width": (lambda X: [X, np.hstack([X, X])], "same number of features"),
    "dates": (lambda X: np.full(X.shape, np.datetime64("2020-01-01")), "."),
}


def _with(X, value):
    X = X.copy()
    X[3, 0] = value
    return X


@pytest.mark.parametrize("case", REFUSED)
@two_families
def test_what_x_must_not_be(family, case):
    hostile, message = REFUSED[case]
    X = data(family)
    model = make(family)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(hostile(X))
    with pytest.raises(NotFittedError):
        model.predict(X)
    fitted = make(family).fit(X)
    with pytest.raises((ValueError, TypeError), match=message):
        fitted.predict(hostile(X))


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "categorical"])
def test_words_are_refused_where_numbers_are_meant(family):
    with pytest.raises(ValueError, match=r"could not convert string|must hold"):
        make(family).fit(np.array([["a"], ["b"], ["c"]]))
    with pytest.raises(ValueError, match=r"could not convert string|must hold"):
        make(family).fit([["a", "b", "c"]])


@pytest.mark.parametrize("family", ["poisson", "multinomial", "categorical"])
def test_negative_counts_are_refused(family):
    X = data(family)
    with pytest.raises(ValueError, match=r"X must hold .*non-negative.*-1"):
        make(family).fit(_with(X, -1.0))
    with pytest.raises(ValueError, match=r"X must hold .*non-negative.*-1"):
        make(family).fit(X).score(_with(X, -1.0))


def test_symbols_that_are_no_integers_are_refused():
    with pytest.raises(ValueError, match="X must hold symbols"):
        make("categorical").fit(_with(data("categorical"), 0.5))


@pytest.mark.parametrize("value", [4.0, 1e300, 2.0**63, np.uint64(2**63 + 5)])
def test_symbols_that_fit_did_not_see(value):
    X = data("categorical")
    model = make("categorical").fit(X)
    odd = np.array([[1], [value]], dtype=np.asarray(value).dtype)
    with pytest.raises(ValueError, match=r"X must hold symbols below 4 in column 0"):
        model.predict(odd)
    model.set_params(unseen="missing")
    np.testing.assert_allclose(model.score(odd), model.score(np.array([[1], [np.nan]])))


def test_unseen_words_are_refused_even_if_they_begin_like_a_known_one():
    model = CategoricalHMM(2, random_state=0, n_iter=2, tol=-np.inf).fit([["cat", "dog", "cat"], ["dog", "cat"]])
    for words in (["catfish", "dog"], ["catfish", None], ["cat", "do", None], ["catfish", np.nan]):
        X = np.array(words, dtype=object)[:, None]
        with pytest.raises(ValueError, match=r"X must hold symbols that fit has seen in column 0, got '(catfish|do)'"):
            model.predict(X)
    model.set_params(unseen="missing")
    unknown, none = (np.array([word, "dog", None], dtype=object)[:, None] for word in ("catfish", None))
    assert model.score(unknown) == model.score(none)


def test_a_symbol_that_needs_an_impossible_table_is_refused():
    with pytest.raises(ValueError, match="X must hold symbols"):
        make("categorical").fit(np.array([[1e15], [1.0]]))


@families
def test_another_number_of_features_is_refused(family):
    X = data(family)
    model = make(family).fit(X)
    for query in (model.predict, model.score, model.predict_proba, model.best_paths, model.filter_proba):
        with pytest.raises(ValueError, match="features"):
            query(np.hstack([X, X]))
    with pytest.raises(ValueError, match="features"):
        model.filter().update(np.zeros(7))


@all_shapes
def test_all_values_missing(family):
    X = np.full_like(data(family), np.nan)
    model = make(family)
    with pytest.raises(ValueError, match="X must hold at least one value that is not missing, got none"):
        model.fit(X)
    assert not hasattr(model, "transmat_")
    np.testing.assert_allclose(quietly(make(family).fit, data(family)).score(X), 0.0, atol=1e-12)


# Degenerate but legal --------------------------------------------------------------------------------------------

DEGENERATE = {
    "one sample": lambda X: X[:1],
    "two samples": lambda X: X[:2],
    "one row repeated": lambda X: np.repeat(X[:1], 20, axis=0),
    "two rows repeated": lambda X: np.repeat(X[:2], 10, axis=0),
    "a constant column": lambda X: np.hstack([X[:, :-1], np.ones((len(X), 1))]),
    "a column of zeros": lambda X: np.hstack([X[:, :-1], np.zeros((len(X), 1))]),
    "all zeros": np.zeros_like,
    "an outlier": lambda X: _with(X, 50.0),
    "a column never seen": lambda X: np.hstack([X[:, :-1], np.full((len(X), 1), np.nan)]),
    "one value seen": lambda X: np.where(np.arange(X.size).reshape(X.shape) == 4 * X.shape[1], X, np.nan),
}


@pytest.mark.parametrize("case", DEGENERATE)
@all_shapes
def test_degenerate_data_give_finite_parameters(family, case):
    X = DEGENERATE[case](data(family))
    if np.isnan(X).all():  # the only column is the one never seen: see test_all_values_missing
        return
    model = make(family, n_iter=12).set_params(n_components=1 if case == "one sample" else 2)
    quietly(model.fit, X)
    for name in ("startprob_", "transmat_", *type(model)._emission_attributes.values()):
        assert np.isfinite(getattr(model, name)).all(), name
    np.testing.assert_allclose(model.transmat_.sum(axis=1), 1.0)
    assert np.isfinite(model.score(X))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("scale", [1e-140, 1e30, 1e130])
@pytest.mark.parametrize("family", ["gaussian-spherical", "gaussian-diag", "gaussian-full", "gmm-full"])
def test_the_unit_of_the_data_does_not_matter(family, scale):
    # Powers of two scale every double exactly; priors and floors that have a unit are scaled along.
    scale = 2.0 ** np.round(np.log2(scale))
    X = data(family)
    unit, scaled = make(family, min_covar=1e-3), make(family, min_covar=1e-3 * scale**2)
    if family.startswith("gaussian"):
        unit.set_params(covars_prior=1e-2)
        scaled.set_params(covars_prior=1e-2 * scale**2)
    quietly(unit.fit, X)
    quietly(scaled.fit, X * scale)
    np.testing.assert_allclose(scaled.means_ / scale, unit.means_, rtol=1e-6)
    np.testing.assert_allclose(scaled.covars_ / scale / scale, unit.covars_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(scaled.predict(X * scale), unit.predict(X))


@pytest.mark.parametrize("ratio", [1e5])
@pytest.mark.parametrize("family", ["gaussian-diag", "gaussian-full", "gaussian-tied", "gmm-diag", "gmm-full"])
def test_columns_with_different_units_do_not_disturb_each_other(family, ratio):
    X = data(family)
    scale = np.array([1.0, ratio, 1.0 / ratio])
    unit, scaled = (make(family, n_iter=10, init_params="st") for _ in range(2))
    prior = {} if family.startswith("gmm") else {"covars_prior": 0.0, "covars_weight": 0.0}
    for model, factor in ((unit, np.ones(3)), (scaled, scale)):
        model.set_params(**prior)
        means = np.array([[0.0, 0.0, 0.0], [4.0, 4.0, 4.0]]) * factor
        variances = 2.0 * np.diag(factor**2)
        if family.startswith("gmm"):
            model.weights_ = np.full((2, 2), 0.5)
            model.means_ = np.stack([means - 0.5 * factor, means + 0.5 * factor], axis=1)
            shaped = np.diag(variances) if family == "gmm-diag" else variances
            model.covars_ = np.broadcast_to(shaped, (2, 2, *shaped.shape))
        else:
            model.means_ = means
            shaped = {"diag": np.tile(np.diag(variances), (2, 1)), "full": np.tile(variances, (2, 1, 1))}
            model.covars_ = shaped.get(family.split("-")[1], variances)
    unit.fit(X)
    scaled.fit(X * scale)
    np.testing.assert_allclose(scaled.means_ / scale, unit.means_, rtol=1e-6)
    covars = np.asarray(scaled.covars_)
    covars = covars / scale**2 if family == "gmm-diag" else covars / np.outer(scale, scale)
    np.testing.assert_allclose(covars, unit.covars_, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name.startswith(("gaussian", "gmm"))])
def test_values_whose_square_is_no_double_are_refused_in_one_sentence(family):
    X = data(family) * 1e300
    with pytest.raises(ValueError, match=r"X must"):
        quietly(make(family).fit, X)


# Lengths and weights ---------------------------------------------------------------------------------------------

LENGTHS = {
    "too short": [10, 20],
    "too long": [20, 30],
    "negative": [50, -10],
    "floats": [20.0, 20.0],
    "strings": ["20", "20"],
    "a number": 40,
    "two-dimensional": [[20, 20]],
    "empty": [],
    "nan": [np.nan, 40],
    "bool": [True] * 40,
    "none inside": [None, 40],
}


@pytest.mark.parametrize("case", LENGTHS)
@pytest.mark.parametrize("family", ["gaussian-diag", "categorical"])
def test_lengths_that_make_no_sense(family, case):
    X = data(family)
    with pytest.raises((ValueError, TypeError), match="lengths"):
        make(family).fit(X, lengths=LENGTHS[case])
    model = make(family).fit(X)
    for query in (model.predict, model.predict_proba, model.score_samples, model.decode, model.score_sequences):
        with pytest.raises((ValueError, TypeError), match="lengths"):
            query(X, LENGTHS[case])
    with pytest.raises((ValueError, TypeError), match="lengths"):
        model.score(X, lengths=LENGTHS[case])


@pytest.mark.parametrize("case", ["too short", "too long", "negative", "floats", "strings", "nan"])
def test_lengths_in_second_place_are_checked_too(case):
    X = data("gaussian-diag")
    with pytest.raises(ValueError, match="lengths"):
        make("gaussian-diag").fit(X, np.array(LENGTHS[case]))
    with pytest.raises(ValueError, match="lengths"):
        make("gaussian-diag").fit(X).score(X, np.array(LENGTHS[case]))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint64])
def test_lengths_of_small_types_do_not_overflow(dtype):
    X = np.tile(data("gaussian-diag"), (10, 1))
    exact = make("gaussian-diag").fit(X, lengths=[100] * 4)
    small = make("gaussian-diag").fit(X, lengths=np.array([100] * 4, dtype=dtype))
    np.testing.assert_array_equal(exact.transmat_, small.transmat_)
    for name in ("predict", "predict_proba", "score_sequences"):
        given = np.array([100] * 4, dtype=dtype)
        np.testing.assert_array_equal(getattr(small, name)(X, given), getattr(exact, name)(X, [100] * 4))
    with pytest.raises(ValueError, match=r"lengths must sum to .*400.*656"):
        small.predict(X, np.array([82] * 8, dtype=dtype))  # 656 = 400 in a byte


def test_lengths_with_a_list_of_sequences_are_refused():
    X = data("gaussian-diag")
    with pytest.raises(ValueError, match="lengths must be None"):
        make("gaussian-diag").fit([X[:10], X[10:]], lengths=[10, 30])


@pytest.mark.parametrize(
    "weight", [[1.0], [1.0, 2.0, 3.0], [-1.0, 1.0], [np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0], [[1.0, 1.0]], "ab"]
)
def test_weights_that_make_no_sense(weight):
    with pytest.raises((ValueError, TypeError), match=r"sequence_weight|convert string"):
        make("gaussian-diag").fit(data("gaussian-diag"), lengths=[15, 25], sequence_weight=weight)


@two_families
def test_what_y_holds_does_not_matter(family):
    X = data(family)
    expected = make(family).fit(X).transmat_
    for y in (np.full(40, np.nan), np.arange(40), np.zeros(40, dtype=int), ["a"] * 40, np.ones((40, 2)), 7, "y"):
        with pytest.warns(UserWarning, match="y is ignored"):
            model = make(family).fit(X, y)
        np.testing.assert_array_equal(model.transmat_, expected)


# Parameters ------------------------------------------------------------------------------------------------------

SETTINGS = [
    ("n_components", 0),
    ("n_components", -1),
    ("n_components", 2.5),
    ("n_components", "three"),
    ("n_components", None),
    ("n_components", True),
    ("n_components", 1000),
    ("n_components", np.nan),
    ("n_iter", -1),
    ("n_iter", 2.5),
    ("n_iter", "many"),
    ("n_init", 0),
    ("n_init", 1.5),
    ("tol", "small"),
    ("tol", np.nan),
    ("tol", None),
    ("params", "xyz"),
    ("params", 7),
    ("init_params", "S"),
    ("init_params", None),
    ("implementation", "fast"),
    ("algorithm", "guess"),
    ("acceleration", "rocket"),
    ("engine", "warp"),
    ("n_jobs", 0),
    ("n_jobs", 1.5),
    ("random_state", -1),
    ("random_state", "seed"),
    ("diversity", -1.0),
    ("diversity", np.nan),
    ("diversity", "much"),
    ("startprob_prior", np.ones(7)),
    ("startprob_prior", np.nan),
    ("startprob_prior", "flat"),
    ("transmat_prior", np.ones((3, 3))),
    ("transmat_prior", np.inf),
    ("checkpoint", "/no/such/folder/file.npz"),
    ("verbose", "loud"),
]


@pytest.mark.parametrize(("name", "value"), SETTINGS, ids=[f"{name}={value!r}" for name, value in SETTINGS])
@pytest.mark.parametrize("family", ["gaussian-diag", "categorical"])
def test_settings_are_checked_by_fit_and_named_in_the_message(family, name, value):
    model = make(family).set_params(**{name: value})
    with pytest.raises((ValueError, TypeError), match=name):
        model.fit(data(family))
    with pytest.raises(NotFittedError):
        make(family).set_params(**{name: value}).score(data(family))


OWN_SETTINGS = [
    ("gaussian-diag", "covariance_type", "round"),
    ("gaussian-diag", "covars_prior", np.ones((2, 7))),
    ("gaussian-diag", "covars_prior", -1.0),
    ("gaussian-diag", "covars_prior", np.nan),
    ("gaussian-full", "covars_prior", np.ones((4, 4))),
    ("gaussian-diag", "means_prior", np.ones(5)),
    ("gaussian-diag", "means_weight", -1.0),
    ("gaussian-diag", "means_weight", np.ones(7)),
    ("gaussian-diag", "min_covar", -1.0),
    ("gaussian-diag", "covars_weight", "heavy"),
    ("gmm-diag", "n_mix", 0),
    ("gmm-diag", "n_mix", 1.5),
    ("gmm-diag", "weights_prior", np.ones((3, 5))),
    ("gmm-diag", "covariance_type", "round"),
    ("gmm-diag", "means_prior", np.ones(5)),
    ("categorical", "emissionprob_prior", np.ones(9)),
    ("categorical", "n_features", 0),
    ("categorical", "n_features", 2.5),
    ("categorical", "n_features", 2),
    ("categorical", "unseen", "ignore"),
    ("bernoulli", "probs_prior", 0.5),
    ("bernoulli", "probs_prior", np.ones((2, 9))),
    ("bernoulli", "probs_prior", np.nan),
    ("bernoulli", "binarize", "yes"),
    ("poisson", "lambdas_prior", -1.0),
    ("poisson", "lambdas_weight", -1.0),
    ("poisson", "lambdas_prior", np.ones((2, 9))),
    ("multinomial", "n_trials", -3),
    ("multinomial", "n_trials", np.ones(7)),
    ("multinomial", "n_trials", "five"),
    ("multinomial", "emissionprob_prior", np.ones(9)),
]


@pytest.mark.parametrize(
    ("family", "name", "value"), OWN_SETTINGS, ids=[f"{f}-{name}={value!r}" for f, name, value in OWN_SETTINGS]
)
def test_settings_of_the_emissions_are_checked_too(family, name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        make(family).set_params(**{name: value}).fit(data(family))


def test_zeros_and_ones_are_demanded_when_nothing_is_binarised():
    with pytest.raises(ValueError, match="X must hold only zeros and ones"):
        make("bernoulli", binarize=None).fit(_with(data("bernoulli"), 2.0))


def hand_set(**wrong):
    model = GaussianHMM(2)
    model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.full((2, 2), 0.5)
    model.means_, model.covars_ = np.zeros((2, 3)), np.ones((2, 3))
    for name, value in wrong.items():
        setattr(model, name, value)
    return model


WRONG = [
    ("startprob_", [0.5, 0.6]),
    ("startprob_", [1.0]),
    ("startprob_", [-0.5, 1.5]),
    ("startprob_", [np.nan, 1.0]),
    ("startprob_", [[0.5, 0.5]]),
    ("transmat_", np.full((2, 2), 0.4)),
    ("transmat_", np.full((3, 3), 1 / 3)),
    ("transmat_", [0.5, 0.5]),
    ("transmat_", [[np.nan, 1.0], [0.5, 0.5]]),
    ("means_", np.zeros((3, 3))),
    ("means_", np.zeros(2)),
    ("means_", np.full((2, 3), np.nan)),
    ("means_", "here"),
    ("_covars_", np.ones((2, 1))),
    ("_covars_", np.ones((2, 9))),
    ("_covars_", np.full((2, 3), np.nan)),
    ("_covars_", np.full((2, 3), np.inf)),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=[f"{name}-{i}" for i, (name, _) in enumerate(WRONG)])
def test_parameters_set_by_hand_are_checked_when_used(name, value):
    model = hand_set(**{name: value})
    with pytest.raises(ValueError, match=name.strip("_") + "|float"):
        model.predict(np.zeros((4, 3)))
    start = hand_set(**{name: value}).set_params(init_params="", n_iter=2)
    with pytest.raises(ValueError, match=name.strip("_") + "|float"):
        start.fit(data("gaussian-diag"))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("diag", np.ones(2)),
        ("diag", -np.ones((2, 3))),
        ("diag", np.zeros((2, 3))),
        ("spherical", np.ones((2, 3))),
        ("spherical", np.zeros(2)),
        ("full", np.ones((2, 3))),
        ("full", np.ones((2, 3, 3))),
        ("full", np.tile(np.array([[1.0, 2.0], [0.0, 1.0]]), (2, 1, 1))),
        ("tied", np.ones((2, 3, 3))),
        ("tied", -np.eye(3)),
        ("full", np.full((2, 3, 3), np.nan)),
        ("diag", np.full((2, 3), np.nan)),
    ],
)
def test_covariances_of_the_wrong_shape_or_sign_are_refused_when_set(kind, value):
    with pytest.raises(ValueError, match=f"'{kind}' covars_ must"):
        GaussianHMM(2, kind).covars_ = value


@pytest.mark.parametrize(
    ("family", "values"),
    [
        ("gaussian-diag", {"means_": np.zeros((2, 1)), "covars_": np.ones((2, 1))}),
        ("gaussian-full", {"means_": np.zeros((2, 1)), "covars_": np.ones((2, 1, 1))}),
        ("gaussian-diag", {"means_": np.zeros((2, 300)), "covars_": np.ones((2, 300))}),
        ("gmm-diag", {"means_": np.zeros((2, 2, 1)), "covars_": np.ones((2, 2, 1)), "weights_": np.full((2, 2), 0.5)}),
        ("gmm-full", {"means_": np.zeros((2, 2, 1)), "covars_": np.ones((2, 2, 1, 1))}),
        ("gmm-diag", {"weights_": np.full((2, 3), 1 / 3)}),
        ("bernoulli", {"probs_": np.full((2, 9), 0.5)}),
        ("poisson", {"lambdas_": np.full((2, 9), 0.5)}),
        ("multinomial", {"emissionprob_": np.full((2, 9), 1 / 9)}),
        ("categorical", {"emissionprob_": np.full((2, 2), 1 / 2)}),
    ],
)
def test_starting_values_of_another_width_never_reach_the_compiled_loops(family, values):
    X = np.tile(data(family), (20, 1 if family == "categorical" else 10))
    model = make(family, init_params="st")
    for name, value in values.items():
        setattr(model, name, value)
    with pytest.raises(ValueError, match="|".join(values) + "|X must"):
        model.fit(X)


def test_parameters_may_be_lists():
    model = GaussianHMM(2)
    model.startprob_, model.transmat_ = [0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]]
    model.means_, model.covars_ = [[0.0], [3.0]], [[1.0], [1.0]]
    assert model.predict([[0.1], [2.9]]).tolist() == [0, 1]
    assert "2 states, 1 feature" in model.summary()
    model.set_params(init_params="", n_iter=2, tol=-np.inf).fit(np.array([[0.1], [2.9], [3.0], [0.2]]))


@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied"])
def test_covariances_may_be_given_without_means(kind):
    shapes = {"spherical": np.full(2, 7.0), "diag": np.full((2, 3), 7.0), "full": np.tile(7.0 * np.eye(3), (2, 1, 1))}
    model = GaussianHMM(2, kind, init_params="stm", params="st", n_iter=2, tol=-np.inf, random_state=0)
    model.covars_ = shapes.get(kind, 7.0 * np.eye(3))
    model.fit(data("gaussian-diag"))
    np.testing.assert_array_equal(model.covars_, np.tile(7.0 * np.eye(3), (2, 1, 1)))


def test_parameters_set_by_hand_may_change_their_width():
    model = hand_set()
    model.predict(np.zeros((4, 3)))
    model.means_, model.covars_ = np.zeros((2, 1)), np.ones((2, 1))
    assert len(model.predict(np.zeros((4, 1)))) == 4
    with pytest.raises(ValueError, match="features"):
        model.predict(np.zeros((4, 3)))


# Not fitted, half fitted -----------------------------------------------------------------------------------------

QUERIES = {
    "predict": lambda model, X: model.predict(X),
    "predict_proba": lambda model, X: model.predict_proba(X),
    "score": lambda model, X: model.score(X),
    "score_samples": lambda model, X: model.score_samples(X),
    "decode": lambda model, X: model.decode(X),
    "best_paths": lambda model, X: model.best_paths(X),
    "sample_paths": lambda model, X: model.sample_paths(X),
    "filter_proba": lambda model, X: model.filter_proba(X),
    "filter": lambda model, X: model.filter(),
    "sample": lambda model, X: model.sample(3),
    "aic": lambda model, X: model.aic(X),
    "bic": lambda model, X: model.bic(X),
    "summary": lambda model, X: model.summary(),
    "n_free_parameters": lambda model, X: model.n_free_parameters(),
    "get_stationary_distribution": lambda model, X: model.get_stationary_distribution(),
}


@pytest.mark.parametrize("query", QUERIES)
@two_families
def test_a_model_that_is_not_fitted_says_so(family, query):
    with pytest.raises(NotFittedError):
        QUERIES[query](make(family), data(family))


@pytest.mark.parametrize("query", [name for name in QUERIES if name != "get_stationary_distribution"])
@two_families
def test_a_model_with_only_its_chain_set_is_not_fitted(family, query):
    model = make(family)
    model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.full((2, 2), 0.5)
    with pytest.raises(NotFittedError):
        QUERIES[query](model, data(family))


FAILURES = {
    "fewer samples than states": (lambda X: np.hstack([X, X])[:1], {}),
    "bad lengths": (lambda X: np.hstack([X, X]), {"lengths": [3]}),
    "bad weights": (lambda X: np.hstack([X, X]), {"sequence_weight": [-1.0]}),
    "bad letters": (lambda X: np.hstack([X, X]), {}),
    "infinite": (lambda X: np.hstack([_with(X, np.inf), X]), {}),
    "an error in the middle": (lambda X: np.hstack([X, X]), {}),
}


@pytest.mark.parametrize("case", FAILURES)
@two_families
def test_a_fit_that_fails_leaves_the_earlier_one_intact(family, case, monkeypatch):
    X = data(family)
    model = make(family).fit(X, lengths=[15, 25])
    states, score, before = model.predict(X), model.score(X), parameters(model)
    hostile, arguments = FAILURES[case]
    if case == "bad letters":
        model.set_params(params="?")
    if case == "an error in the middle":
        from pluri.sequences import learning

        monkeypatch.setattr(learning.HiddenMarkovProblem, "maximize", lambda *_: 1 / 0)
    with pytest.raises((ValueError, ZeroDivisionError)):
        model.fit(hostile(X), **arguments)
    monkeypatch.undo()
    model.set_params(params=make(family).params)
    np.testing.assert_array_equal(model.predict(X), states)
    assert model.score(X) == score
    assert_same(parameters(model), before)


def test_a_failed_fit_on_other_words_keeps_the_vocabulary():
    model = CategoricalHMM(2, random_state=0, n_iter=2, tol=-np.inf).fit([["a", "b", "a"], ["b", "c"]])
    states = model.predict(["a", "b", "c"])
    with pytest.raises(ValueError):
        model.set_params(params="?").fit([["x", "y"], ["z"]])
    np.testing.assert_array_equal(model.set_params(params="ste").predict(["a", "b", "c"]), states)
    with pytest.raises(ValueError):
        model.set_params(n_components=9).fit([["x", "y"], ["z"]])
    np.testing.assert_array_equal(model.set_params(n_components=2).predict(["a", "b", "c"]), states)


@two_families
def test_a_first_fit_that_fails_leaves_the_model_unfitted(family):
    model = make(family, params="?")
    with pytest.raises(ValueError, match="params"):
        model.fit(data(family))
    with pytest.raises(NotFittedError):
        model.predict(data(family))


@families
def test_no_iterations_store_the_starting_values(family):
    X = data(family)
    model = make(family, n_iter=0).fit(X)
    assert len(model.predict(X)) == len(X)
    assert len(model.history_) == 0
    assert isinstance(model.summary(), str)


@families
def test_clones_and_pickles_of_fitted_models(family):
    X = data(family)
    model = make(family).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


# Sources that break their word -----------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [False, True], ids=["from-data", "from-given-values"])
def test_a_source_whose_batches_have_unequal_widths(given):
    X = data("gaussian-diag")
    model = make("gaussian-diag")
    if given:
        model.set_params(init_params="st")
        model.means_, model.covars_ = np.zeros((2, 3)), np.ones((2, 3))
    source = IterableSource([Batch(X, [40]), Batch(np.tile(X, (1, 9)), [40])])
    with pytest.raises(ValueError, match="features"):
        model.fit(source)


@pytest.mark.parametrize("family", ["poisson", "multinomial", "categorical"])
def test_a_source_with_negative_counts_in_a_later_batch(family):
    X = data(family)
    source = IterableSource([Batch(X, [40]), Batch(_with(X, -1.0), [40])])
    options = {"n_features": 4} if family == "categorical" else {}
    with pytest.raises(ValueError, match="non-negative"):
        make(family, **options).fit(source)


def test_a_source_with_words_is_refused():
    words = IterableSource([Batch(np.array([["a"], ["b"]]), [2])])
    with pytest.raises(ValueError, match="X must hold symbols as integers"):
        make("categorical", n_features=3).fit(words)


@families
def test_a_source_with_infinity_in_a_later_batch(family):
    X = data(family)
    options = {"n_features": 4} if family == "categorical" else {}
    with pytest.raises(ValueError, match=r"infinity|X must|probability zero"):
        make(family, **options).fit(IterableSource([Batch(X, [40]), Batch(_with(X, np.inf), [40])]))


def test_a_source_with_lengths_or_weights_beside_it_is_refused():
    X = data("gaussian-diag")
    source = IterableSource([X])
    with pytest.raises(ValueError, match="lengths and sequence_weight must be None"):
        make("gaussian-diag").fit(source, lengths=[40])
    with pytest.raises(ValueError, match="lengths and sequence_weight must be None"):
        make("gaussian-diag").fit(source, sequence_weight=[1.0])
    with pytest.raises(ValueError, match="empty source"):
        make("gaussian-diag").fit(IterableSource([]))


# Questions to a fitted model -------------------------------------------------------------------------------------

QUESTIONS = [
    (lambda model, X: model.best_paths(X, 0), "n_paths"),
    (lambda model, X: model.best_paths(X, 2.5), "n_paths"),
    (lambda model, X: model.best_paths([X, X[:3]]), "one sequence"),
    (lambda model, X: model.sample_paths(X, n_paths=-1), "n_paths"),
    (lambda model, X: model.sample_paths(X, n_paths=1.5), "n_paths"),
    (lambda model, X: model.sample(-1), "n_samples"),
    (lambda model, X: model.sample(0), "n_samples"),
    (lambda model, X: model.sample(2.5), "n_samples"),
    (lambda model, X: model.sample(3, currstate=2), "currstate"),
    (lambda model, X: model.sample(3, currstate=-1), "currstate"),
    (lambda model, X: model.sample(3, random_state="x"), "random_state"),
    (lambda model, X: model.decode(X, algorithm="guess"), "algorithm"),
]


@pytest.mark.parametrize(("ask", "name"), QUESTIONS, ids=[f"{i}-{name}" for i, (_, name) in enumerate(QUESTIONS)])
def test_questions_that_make_no_sense(ask, name):
    X = data("gaussian-diag")
    model = make("gaussian-diag").fit(X)
    with pytest.raises((ValueError, TypeError), match=name):
        ask(model, X)


def test_parameters_swapped_for_narrower_ones_do_not_crash_the_interpreter():
    """In a process of its own: what this guards against is memory corruption."""
    program = """
        import numpy as np
        from pluri.sequences import GaussianHMM
        X = np.random.default_rng(0).normal(size=(400, 40))
        for kind, narrow in {"diag": np.ones((2, 1)), "full": np.ones((2, 1, 1))}.items():
            model = GaussianHMM(2, kind, n_iter=2, tol=-np.inf, random_state=0).fit(X)
            model.means_, model._covars_ = np.zeros((2, 1)), narrow
            try:
                model.score(X)
            except ValueError as error:
                print(error)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=100
    )
    assert result.returncode == 0, result.stderr
    assert len(re.findall("features", result.stdout)) >= 2


def test_empty_table_of_symbol_probabilities_is_refused():
    model = CategoricalHMM(n_components=2)
    model.startprob_, model.transmat_ = np.full(2, 0.5), np.full((2, 2), 0.5)
    model.emissionprob_ = []
    with pytest.raises(ValueError, match="emissionprob_"):
        model.sample(3)
