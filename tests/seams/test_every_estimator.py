"""The places where an estimator meets other tools: there the silent errors live.

Every public estimator is taken through all of them (`conftest.py` finds them), a new one without being added here. What
an estimator cannot do must be an error; an answer must be the one that the model gives alone.
"""

import inspect
import re

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.feature_selection import VarianceThreshold
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import pluri
from pluri.inference import mcmc

pytestmark = pytest.mark.filterwarnings("ignore")
of = pytest.mark.of.with_args  # called with a function alone, a mark would take that for the test

N_ROWS = 36
GROUPS = np.repeat(np.arange(6), N_ROWS // 6)


def has(kind, method, argument):
    """Whether a class has a method with an argument of this name."""
    return hasattr(kind, method) and argument in inspect.signature(getattr(kind, method)).parameters


def takes_weights(kind):
    return has(kind, "fit", "sample_weight")


def reads_sequences(kind):
    return has(kind, "fit", "lengths")


def has_states_along_sequences(kind):
    """Unlike batches in the order of time, whose rows have no neighbours."""
    return reads_sequences(kind) and has(kind, "predict", "lengths")


def scores_rows_one_by_one(kind):
    return has(kind, "score", "X") and not reads_sequences(kind)


def can_be_updated(kind):
    return has(kind, "partial_fit", "X") and has(kind, "score", "X")


def transforms(kind):
    # scikit-learn's searches have the method of their best model, and no output of their own to set.
    return has(kind, "transform", "X") and not issubclass(kind, BaseSearchCV)


def fitted_names(model):
    return {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}


def answers(model, names, X):
    """What a model says of rows, by the name of the method; plain arrays."""
    return {name: np.asarray(getattr(model, name)(X)) for name in names}


def assert_same_answers(found, expected, **tolerance):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if value.dtype.kind in "OUS":
            assert_array_equal(found[name], value, err_msg=name)
        else:
            assert_allclose(found[name], value, err_msg=name, **(tolerance or {"rtol": 1e-7, "atol": 1e-9}))


def test_fitting_leaves_the_settings_and_a_clone_has_them(case):
    model = case.make()
    before = {name: repr(value) for name, value in model.get_params(deep=False).items()}
    model.fit(*case.arguments)
    assert {name: repr(value) for name, value in model.get_params(deep=False).items()} == before
    copy = clone(model)
    assert {name: repr(value) for name, value in copy.get_params(deep=False).items()} == before
    assert not fitted_names(copy)


def test_the_same_seed_gives_the_same_answers(table):
    again = table.make().fit(*table.arguments)
    assert_same_answers(answers(again, table.queries(), table.X), answers(table.fitted(), table.queries(), table.X))


def test_data_are_not_changed(table):
    X, *rest = (np.array(part) for part in table.arguments)
    X.setflags(write=False)
    model = table.make().fit(X, *rest)
    answers(model, table.queries(), X)
    assert_array_equal(X, table.X)


@pytest.mark.parametrize("layout", ["Fortran", "strided", "narrow", "frame"])
def test_the_layout_of_the_data_does_not_matter(table, layout):
    X = np.asarray(table.X)
    other = {
        "Fortran": lambda: np.asfortranarray(X),
        "strided": lambda: np.repeat(X, 2, axis=0)[::2],
        "narrow": lambda: X.astype(np.float32 if X.dtype.kind == "f" else np.int32),
        "frame": lambda: pandas.DataFrame(X, columns=[f"column {number}" for number in range(X.shape[1])]),
    }[layout]()
    model = table.fitted() if layout != "frame" else table.make().fit(other, *table.arguments[1:])
    # Numbers of half the width are other numbers; a class near a tie may then be another one.
    names = [name for name in table.queries() if layout != "narrow" or name != "predict"]
    tolerance = {"rtol": 2e-3, "atol": 2e-3} if layout == "narrow" else {"rtol": 1e-6, "atol": 1e-8}
    assert_same_answers(answers(model, names, other), answers(table.fitted(), names, X), **tolerance)


def test_a_pipeline_answers_as_the_model_alone(table):
    pipeline = make_pipeline(VarianceThreshold(), table.make()).fit(*table.arguments)
    assert_same_answers(answers(pipeline, table.queries(), table.X), answers(table.fitted(), table.queries(), table.X))


@of(scores_rows_one_by_one)
def test_a_search_scores_what_a_loop_scores(table):
    pipeline = make_pipeline(VarianceThreshold(), table.make())
    search = GridSearchCV(pipeline, {}, cv=GroupKFold(3), error_score="raise", refit=False)
    search.fit(table.X, table.y, groups=GROUPS)
    found = [search.cv_results_[f"split{number}_test_score"][0] for number in range(3)]
    expected = []
    for train, test in GroupKFold(3).split(table.X, groups=GROUPS):
        model = table.make().fit(*(part[train] for part in table.arguments))
        expected.append(model.score(*(part[test] for part in table.arguments)))
    assert np.isfinite(found).all()
    # The layout of an array may change where an ascent stops, within its tolerance.
    assert_allclose(found, expected, rtol=1e-4)


@of(transforms)
def test_frames_come_out_where_they_are_asked_for(table):
    frame = pandas.DataFrame(table.X, index=[f"row {number}" for number in range(len(table.X))])
    frame.columns = [f"column {number}" for number in range(frame.shape[1])]
    model = table.make().set_output(transform="pandas")
    first = model.fit_transform(frame, *table.arguments[1:]) if hasattr(table.kind, "fit_transform") else None
    second = model.fit(frame, *table.arguments[1:]).transform(frame)
    for found in (first, second):
        if found is not None:
            assert isinstance(found, pandas.DataFrame)
            assert list(found.columns) == list(model.get_feature_names_out())
    assert len(second) != len(frame) or list(second.index) == list(frame.index)


@of(takes_weights)
def test_weights_are_taken_by_every_total_of_a_weighted_fit(table):
    for name in table.totals():
        assert table.takes(name, "sample_weight"), f"{name} ignores the weights that fit takes"


@of(takes_weights)
def test_a_weighted_total_is_that_of_the_rows_written_out(table):
    weights = 1 + np.arange(len(table.X)) % 3
    many = tuple(np.repeat(part, weights, axis=0) for part in table.arguments)
    for name in table.totals():
        if table.takes(name, "sample_weight"):
            total = getattr(table.fitted(), name)
            given = table.arguments if "y" in inspect.signature(total).parameters else table.arguments[:1]
            found, expected = total(*given, sample_weight=weights), total(*many[: len(given)])
            # What is drawn at random for each row is drawn anew for each copy of it.
            tolerance = 1e-7 if total(*given) == total(*(part[::-1] for part in given)) else 0.1
            assert_allclose(found, expected, rtol=tolerance, err_msg=name)


@of(takes_weights)
def test_weights_of_one_change_nothing(table):
    model = table.make().fit(*table.arguments, sample_weight=np.ones(len(table.X)))
    assert_same_answers(answers(model, table.queries(), table.X), answers(table.fitted(), table.queries(), table.X))


@of(takes_weights)
@pytest.mark.parametrize("weights", ["negative", "NaN", "too few"])
def test_bad_weights_are_refused(table, weights):
    given = {"negative": -np.ones(N_ROWS), "NaN": np.full(N_ROWS, np.nan), "too few": np.ones(N_ROWS - 1)}[weights]
    with pytest.raises(ValueError, match=r"weight|inconsistent"):
        table.make().fit(*table.arguments, sample_weight=given)


@of(can_be_updated)
def test_an_update_with_the_same_data_does_not_spoil_a_fit(table):
    model = table.make()
    if not hasattr(model, "partial_fit"):  # only where it learns from minibatches
        model.set_params(inference="svi")
    before = model.fit(*table.arguments).score(*table.arguments)
    model.partial_fit(*table.arguments)
    # An update by the data it was learned from has nothing to tell a model; steps of an online method are noisy.
    assert model.score(*table.arguments) > before - 0.05 * abs(before)


def test_a_missing_value_is_taken_or_refused(table):
    X = np.array(table.X, dtype=float)
    X[::5, 0] = np.nan
    if get_tags(table.make()).input_tags.allow_nan:
        model = table.make().fit(X, *table.arguments[1:])
        for name, value in answers(model, table.queries(), X).items():
            assert value.dtype.kind not in "fc" or np.isfinite(value).all(), f"{name} of rows with a missing value"
    else:
        with pytest.raises(ValueError, match="X"):
            table.make().fit(X, *table.arguments[1:])
        for name in table.queries():  # what was learned without holes may still answer for rows with some
            try:
                answer = np.asarray(getattr(table.fitted(), name)(X))
            except ValueError:
                continue
            assert answer.dtype.kind not in "fc" or np.isfinite(answer).all(), f"{name} of rows with a missing value"


def test_a_pipeline_comes_back_from_its_file(table, tmp_path):
    pipeline = make_pipeline(VarianceThreshold(), table.make()).fit(*table.arguments)
    pluri.save(pipeline, tmp_path / "pipeline.skops")
    loaded = pluri.load(tmp_path / "pipeline.skops")
    assert_same_answers(answers(loaded, table.queries(), table.X), answers(pipeline, table.queries(), table.X))


def test_a_model_comes_back_from_its_file(case, tmp_path):
    pluri.save(case.fitted(), tmp_path / "model.skops")
    loaded = pluri.load(tmp_path / "model.skops")
    assert type(loaded) is case.kind
    assert fitted_names(loaded) >= {
        name for name in fitted_names(case.fitted()) if not callable(vars(case.fitted())[name])
    }
    if case.is_table:
        assert_same_answers(
            answers(loaded, case.queries(), case.X),
            answers(case.fitted(), case.queries(), case.X),
            rtol=1e-10,
            atol=1e-12,
        )


def ways_of_sampling(kind):
    """Settings by which a model may be learned by sampling: its own, then every choice that names a sampler."""
    yield {}
    samplers = "gibbs|slice|nuts|hmc|metropolis|random_walk|mcmc"
    for names, choices in re.findall(r"^(\w+) : \{([^}]*)\}", inspect.getdoc(kind), re.MULTILINE):
        if names in ("inference", "hyper_inference", "method"):
            yield from ({names: choice} for choice in re.findall(rf'"((?:\w+_)?(?:{samplers}))"', choices))


@of(lambda kind: "n_draws" in inspect.signature(kind.__init__).parameters)
def test_what_is_sampled_is_in_a_trace_that_arviz_reads(case):
    pytest.importorskip("arviz")
    n_sampled = 0
    for setting in ways_of_sampling(case.kind):
        model = case.make(**setting).fit(*case.arguments)
        if not setting and getattr(model, "trace_", None) is None:
            continue  # it is not sampled unless that is asked for
        n_sampled += 1
        assert isinstance(model.trace_, mcmc.Trace), setting
        assert (model.trace_.n_chains, model.trace_.n_draws) == (model.n_chains, model.n_draws), setting
        sizes = model.to_arviz().posterior.sizes
        assert (sizes["chain"], sizes["draw"]) == (model.n_chains, model.n_draws), setting
    assert n_sampled, "no way of learning that samples"


def assert_same_fit(found, expected):
    """Numbers that were learned are the same."""
    for name in fitted_names(expected):
        value = vars(expected)[name]
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            assert_allclose(vars(found)[name], value, rtol=1e-7, err_msg=name)


def one_answer_a_sequence(table):
    """Whether a model of sequences answers once for each of them, instead of once for each row."""
    has_both = table.y is not None and has(table.kind, "predict", "lengths")
    return has_both and len(table.fitted().predict(table.X, lengths=[N_ROWS])) == 1


def labels_along(table, ids):
    """What `fit` takes beside rows: the same for all rows of a sequence if the model answers for whole sequences."""
    if not one_answer_a_sequence(table):
        return table.arguments[1:]
    return tuple((ids % 2).astype(part.dtype) for part in table.arguments[1:])


@of(reads_sequences)
def test_a_list_of_sequences_of_equal_length_is_sequences(table):
    parts = np.split(table.X, 3)
    lengths = [len(part) for part in parts]
    labels = labels_along(table, np.repeat(np.arange(3), lengths))
    apart = [part[:: lengths[0]] if one_answer_a_sequence(table) else np.split(part, 3) for part in labels]
    expected = table.make().fit(table.X, *labels, lengths=lengths)
    assert_same_fit(table.make().fit(parts, *apart), expected)
    if table.X.shape[1] == 1:
        assert_same_fit(table.make().fit([part[:, 0] for part in parts], *apart), expected)


@of(has_states_along_sequences)
def test_an_array_of_sequences_is_refused_with_what_to_pass(table):
    """Some keep time in the last axis, others features: nobody can tell, and a guess would be a silent wrong answer."""
    if one_answer_a_sequence(table):
        pytest.skip("answers for whole sequences, and takes them in an array")
    stacked = np.stack(np.split(table.X, 3))
    labels = [part[:3] for part in table.arguments[1:]]
    for name in ("fit", *(name for name in (*table.queries(), *table.totals()) if table.takes(name, "lengths"))):
        model = table.make() if name == "fit" else table.fitted()
        given = [stacked, *labels] if table.takes(name, "y") else [stacked]
        with pytest.raises(ValueError, match=r"X must have two axes, or be a list of sequences, .* pass list\(X\)"):
            getattr(model, name)(*given)


@of(has_states_along_sequences)
def test_groups_say_the_same_as_lengths(table):
    lengths = np.unique(GROUPS, return_counts=True)[1]
    given = (table.X, *labels_along(table, GROUPS))
    model = table.make().fit(*given, lengths=lengths)
    assert_same_fit(table.make().fit(*given, groups=GROUPS), model)
    tried = [name for name in (*table.queries(), *table.totals()) if table.takes(name, "lengths")]
    assert {"predict", "score"} <= set(tried)
    for name in tried:
        query = getattr(model, name)
        arguments = given if table.takes(name, "y") else (table.X,)
        found, expected = query(*arguments, groups=GROUPS), query(*arguments, lengths=lengths)
        assert_array_equal(found, expected, err_msg=name)


@of(has_states_along_sequences)
def test_boundaries_are_routed_through_pipelines_and_cross_validation(table):
    # A symbol of one fold may be in no other.
    settings = {"unseen": "missing"} if "unseen" in table.make().get_params() else {}
    given = (table.X, *labels_along(table, GROUPS))
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(VarianceThreshold(), table.make(**settings)).fit(*given, groups=GROUPS)
        found = cross_val_score(
            make_pipeline(VarianceThreshold(), table.make(**settings)), *given, cv=GroupKFold(3),
            params={"groups": GROUPS}, error_score="raise",
        )  # fmt: skip
        total = pipeline.score(*given, groups=GROUPS)
    alone = table.make(**settings).fit(*given, groups=GROUPS)
    assert_same_fit(pipeline[-1], alone)
    assert_allclose(total, alone.score(*given, groups=GROUPS), rtol=1e-7)
    expected = []
    for train, test in GroupKFold(3).split(table.X, groups=GROUPS):
        model = table.make(**settings).fit(*(part[train] for part in given), groups=GROUPS[train])
        expected.append(model.score(*(part[test] for part in given), groups=GROUPS[test]))
    assert_allclose(found, expected, rtol=1e-7)


@of(has_states_along_sequences)
def test_boundaries_that_would_be_lost_are_an_error(table):
    """Without routing, a search hands groups to the folds alone."""
    with pytest.raises(ValueError, match="does not hand them on to the model"):
        cross_val_score(table.make(), *table.arguments, cv=GroupKFold(3), groups=GROUPS, error_score="raise")


@pytest.mark.parametrize("wrong", ["a column more", "no rows", "text"])
def test_rows_that_cannot_be_meant_are_refused(table, wrong):
    X = np.asarray(table.X)
    given = {
        "a column more": lambda: np.column_stack([X, X[:, 0]]),
        "no rows": lambda: X[:0],
        "text": lambda: np.full(X.shape, "one two"),
    }[wrong]()
    for name in table.queries():
        try:
            found = np.asarray(getattr(table.fitted(), name)(given))
        except (ValueError, TypeError):
            continue
        # To choose rows or columns, one need not read what is in them.
        assert wrong == "text", f"{name} answers for {wrong}"
        assert (found == "one two").all(), f"{name} makes numbers of text"
