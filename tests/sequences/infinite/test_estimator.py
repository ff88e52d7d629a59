"""The estimator of the infinite hidden Markov model: what it finds, says of new sequences, keeps and refuses."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.engine import ArraySource
from pluri.metrics import one_to_one_accuracy
from pluri.plotting import CoClusteringDisplay, SampledStatesDisplay
from pluri.priors import Beta, Gamma
from pluri.processes import DirichletMultinomial, NormalGamma
from pluri.sequences import GaussianHMM, InfiniteHMM, SequenceClassifier
from pluri.sequences.infinite.families import learn_model
from pluri.sequences.infinite.fitting import FitsStates
from pluri.validation import plain_array

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SMALL = {"n_draws": 20, "n_warmup": 40, "n_chains": 2, "random_state": 0}
STATES = np.repeat([0, 1, 2, 0, 2, 1], 25)


def rows(family, seed=0):
    rng = np.random.default_rng(seed)
    if family == "poisson":
        return rng.poisson(np.array([[1, 20], [10, 1], [40, 40]])[STATES]).astype(float)
    if family == "bernoulli":
        chances = np.array([[0.02] * 8, [0.98] * 8, [0.02] * 4 + [0.98] * 4])
        return (rng.random((len(STATES), 8)) < chances[STATES]).astype(float)
    if family == "categorical":
        return np.column_stack([2 * STATES + rng.integers(0, 2, len(STATES)), STATES])
    if family == "autoregressive":
        X = np.zeros((len(STATES), 1))
        slope, level = np.array([0.95, -0.9, 0.0])[STATES], np.array([0.0, 0.0, 8.0])[STATES]
        for t in range(1, len(STATES)):
            X[t] = level[t] + slope[t] * X[t - 1] + 0.3 * rng.normal()
        return X
    return rng.normal(size=(len(STATES), 2)) + 8.0 * np.array([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])[STATES]


@pytest.mark.parametrize(
    ("family", "inference"),
    [("gaussian", "beam"), ("diag", "direct"), ("categorical", "weak_limit"), ("poisson", "beam"),
     ("bernoulli", "weak_limit")],
)  # fmt: skip
def test_separated_states_are_found_exactly(family, inference):
    """States so far apart that, whatever the seed, no chain that has found them errs in more than a few steps."""
    X = rows(family)
    model = InfiniteHMM(family, inference=inference, **{**SMALL, "n_warmup": 80}).fit(X, lengths=[75, 75])
    assert one_to_one_accuracy(STATES, model.labels_) > 0.95
    assert one_to_one_accuracy(STATES, model.predict(X, lengths=[75, 75])) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_regressions_tell_what_levels_do_not():
    X = rows("autoregressive")
    model = InfiniteHMM("autoregressive", **{**SMALL, "n_warmup": 100}).fit(X)
    assert one_to_one_accuracy(STATES, model.labels_) > 0.85
    assert model.state_parameters_["coefficients"].shape == (model.n_states_, 1, 2)
    new, states = model.sample(50, random_state=1)
    assert new.shape == (50, 1)
    assert states.shape == (50,)


def test_score_is_that_of_the_chain_with_predictive_densities():
    """One state: a Student t for each row, so that the score is a sum over rows."""
    X = rows("gaussian")
    model = InfiniteHMM(**SMALL, max_components=1, inference="weak_limit")
    with pytest.warns(UserWarning, match="reached max_components=1"):
        model.fit(X)
    likelihood, sums = model.model_.likelihoods[0], model.state_sums_[0]
    expected = sum(float(likelihood.log_predictive(sums[0], x)) for x in X)
    assert np.isclose(model.score(X), expected)
    assert np.isclose(model.score(np.where(np.arange(150)[:, None] < 149, X, np.nan)), expected
                      - float(likelihood.log_predictive(sums[0], X[-1])))  # fmt: skip


def test_transitions_are_posterior_means_given_the_consensus():
    X = rows("gaussian")
    model = InfiniteHMM(**SMALL, stickiness=0.25, concentration=2.0, weight_concentration=1.5).fit(X)
    counts = np.zeros((model.n_states_ + 1, model.n_states_))
    for before, after in zip(np.append(model.n_states_, model.labels_[:-1]), model.labels_):
        counts[before, after] += 1
    tables = np.array([(np.delete(counts[:, k], k) > 0).sum() for k in range(model.n_states_)])
    weights = tables / (tables.sum() + 1.5)
    expected = counts[:-1] + 2.0 * (0.75 * weights + 0.25 * np.eye(model.n_states_))
    np.testing.assert_allclose(model.transmat_, expected / expected.sum(axis=1, keepdims=True))


def test_results_do_not_depend_on_threads_and_repeat():
    X = rows("gaussian")
    one, two = (InfiniteHMM(**SMALL, n_jobs=n_jobs).fit(X) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.trace_["labels"], two.trace_["labels"])
    np.testing.assert_array_equal(one.labels_, two.labels_)


def test_what_is_said_of_draws_agrees_with_them():
    model = InfiniteHMM(**SMALL).fit(rows("gaussian"))
    draws = model.trace_["labels"][model.best_chain_]
    numbers = np.array([len(set(draw)) for draw in draws.tolist()])
    np.testing.assert_array_equal(model.n_states_trace_[model.best_chain_], numbers)
    np.testing.assert_allclose(model.n_components_posterior(), np.bincount(numbers) / len(numbers))
    together = np.mean([draw[3] == draw[70] for draw in draws])
    assert np.isclose(model.similarity_matrix_[3, 70], together)
    assert model.to_arviz() is not None
    assert "states" in model.summary()
    for display in (CoClusteringDisplay, SampledStatesDisplay):
        assert display.from_estimator(model).figure_ is not None


def test_strings_are_symbols_and_come_back():
    words = [["a", "b", "a", "b"] * 5, ["c", "d", "c", None] * 5]
    model = InfiniteHMM("categorical", **SMALL).fit(words)
    assert [known.tolist() for known in model.vocabulary_] == [["a", "b", "c", "d"]]
    drawn, _ = model.sample(30, random_state=0)
    assert set(drawn.ravel()) <= {"a", "b", "c", "d"}
    with pytest.raises(ValueError, match="strings, as in fit"):
        model.predict([[0], [1]])


def test_symbols_that_were_not_seen_are_a_mistake_or_known_or_missing():
    X = np.repeat([0, 1, 0], 20)[:, None]
    strict = InfiniteHMM("categorical", **SMALL).fit(X)
    with pytest.raises(ValueError, match="set unseen='missing'"):
        strict.predict([[0], [2]])
    lenient, wide = (InfiniteHMM("categorical", **SMALL, **own).fit(X) for own in ({"unseen": "missing"},
                                                                                    {"n_features": 4}))  # fmt: skip
    assert lenient.score([[2]]) == 0.0
    tables = wide.state_parameters_["probabilities"]
    assert [table.shape[1] for table in tables] == [4]
    np.testing.assert_allclose(np.exp(wide.score([[3]])), wide.startprob_ @ tables[0][:, 3])
    with pytest.raises(ValueError, match="below n_features"):
        InfiniteHMM("categorical", **SMALL, n_features=1).fit(X)
    with pytest.raises(ValueError, match="n_features must be None for strings"):
        InfiniteHMM("categorical", **SMALL, n_features=3).fit(["a", "b"] * 5)


def test_a_classifier_shares_the_symbols_of_all_classes():
    """A symbol that one class alone uses is rare in the other, and no error."""
    sequences, y = [["a", "b"] * 8, ["a", "c"] * 8] * 3, ["left", "right"] * 3
    model = SequenceClassifier(InfiniteHMM("categorical", **SMALL)).fit(sequences, y)
    assert model.predict([["b", "a", "b"], ["c", "c", "a"]]).tolist() == ["left", "right"]
    assert [known.tolist() for known in model.vocabulary_] == [["a", "b", "c"]]
    codes = [np.repeat([[0], [1]], 8, axis=0), np.repeat([[0], [2]], 8, axis=0)] * 3
    numbers = SequenceClassifier(InfiniteHMM("categorical", **SMALL)).fit(codes, y)
    assert numbers.predict([[[1], [0], [1]], [[2], [2], [0]]]).tolist() == ["left", "right"]
    assert [hmm.n_symbols_ for hmm in numbers.hmms_] == [[3], [3]]
    lenient = SequenceClassifier(InfiniteHMM("categorical", unseen="missing", **SMALL)).fit(sequences, y)
    assert lenient.predict([["b", "new", "b"]]).tolist() == ["left"]


def test_cells_that_are_missing_only_when_predicting_are_left_out():
    X = rows("diag")
    model = InfiniteHMM("diag", **SMALL).fit(X)
    broken = X.copy()
    broken[::2, 0] = np.nan
    assert one_to_one_accuracy(model.labels_, model.predict(broken)) > 0.8


def test_a_list_of_sequences_is_the_same_as_lengths():
    X = rows("gaussian")
    joined, listed = InfiniteHMM(**SMALL).fit(X, lengths=[100, 50]), InfiniteHMM(**SMALL).fit([X[:100], X[100:]])
    np.testing.assert_array_equal(joined.labels_, listed.labels_)


def test_states_at_their_limit_are_warned_about():
    with pytest.warns(UserWarning, match="reached max_components=2"):
        InfiniteHMM(**SMALL, max_components=2).fit(rows("gaussian"))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"family": "normal"}, "family must be one of 'gaussian'"),
        ({"family": NormalGamma(3)}, "family is for 3 columns, but X has 2"),
        ({"inference": "gibbs"}, "inference must be"),
        ({"concentration": -1.0}, "concentration must be"),
        ({"weight_concentration": Beta(1.0, 1.0)}, "weight_concentration must be"),
        ({"stickiness": 1.0}, "stickiness must be"),
        ({"stickiness": Gamma(1.0, 1.0)}, "stickiness must be"),
        ({"order": -1}, "order must be"),
        ({"component_prior": {"shape": 1.0}}, "component_prior of 'gaussian' may have"),
        ({"max_components": 0}, "max_components must be"),
        ({"n_features": 0}, "n_features must be"),
        ({"unseen": "new"}, "unseen must be"),
        ({"point_estimate": "mean"}, "point_estimate must be"),
        ({"family": "poisson"}, "Negative values|counts"),
        ({"family": DirichletMultinomial(2), "inference": "direct"}, "Negative values|counts"),
        ({"family": "autoregressive", "order": 500}, "more than order=500 rows"),
    ],
)
def test_bad_settings_are_named(setting, message):
    model = InfiniteHMM(**{**SMALL, **setting})
    with pytest.raises(ValueError, match=message):
        model.fit(rows("gaussian"))
    with pytest.raises(NotFittedError):
        model.predict(rows("gaussian"))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[0.0, np.inf]]), "inf"),
        (np.empty((0, 2)), "minimum of 1 is required"),
        (np.array([[0.0, 1e200]]), "must not exceed"),
        (np.zeros((2, 2, 2)), "dim"),
    ],
)
def test_bad_data_are_named(X, message):
    with pytest.raises(ValueError, match=message):
        InfiniteHMM(**SMALL).fit(X)


@pytest.mark.parametrize("X", [np.zeros((1, 1)), np.full((6, 2), 3.0), np.full((5, 2), np.nan)])
def test_little_or_constant_or_missing_data_are_survived(X):
    model = InfiniteHMM(**SMALL).fit(X)
    assert len(model.labels_) == len(X)
    assert np.isfinite(model.transmat_).all()


def test_a_fit_that_fails_leaves_the_old_one():
    model = InfiniteHMM(**SMALL).fit(rows("gaussian"))
    before = model.labels_
    with pytest.raises(ValueError, match="inf"):
        model.fit(np.array([[0.0, np.inf]]))
    assert model.labels_ is before


def test_it_is_no_worse_than_a_model_that_knows_the_number():
    """The predictive chain on held-out data, beside EM with the true number of states."""
    train, test = rows("gaussian", 0), rows("gaussian", 1)
    ours = InfiniteHMM(**SMALL).fit(train).score(test)
    theirs = GaussianHMM(3, covariance_type="full", n_init=5, random_state=0).fit(train).score(test)
    assert ours > theirs - 0.05 * len(test)
    assert issubclass(InfiniteHMM, FitsStates)


#: What a model of sequences cannot do, and should not.
EXPECTED_FAILURES = {
    "check_methods_sample_order_invariance": "the state of a sample depends on the samples before and after it",
    "check_methods_subset_invariance": "the state of a sample depends on the samples before and after it",
}


@parametrize_with_checks(
    [
        InfiniteHMM(n_draws=4, n_warmup=4, n_chains=1),
        InfiniteHMM("diag", inference="weak_limit", n_draws=4, n_warmup=4, n_chains=1),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_a_source_is_refused_where_chains_are_run():
    with pytest.raises(TypeError, match="inference='beam', got a source: use inference='vb'"):
        InfiniteHMM(**SMALL).fit(ArraySource(rows("gaussian"), np.array([75, 75])))


@pytest.mark.filterwarnings("ignore:the states reached max_components")
def test_a_search_over_whole_sequences_scores_them():
    X = rows("gaussian")
    search = GridSearchCV(InfiniteHMM(**SMALL), {"max_components": [1, 8]}, cv=2)
    search.fit([X[:40], X[40:75], X[75:120], X[120:]])
    assert search.best_params_ == {"max_components": 8}


def test_a_fit_of_another_kind_leaves_nothing_behind():
    X = np.repeat([[0.0], [9.0]], 20, axis=0) + np.random.default_rng(0).normal(size=(40, 1))
    few = {"n_draws": 2, "n_warmup": 1, "n_chains": 1, "n_init": 1, "init_components": 3, "random_state": 0}
    ways = [{"inference": "vb"}, {"inference": "weak_limit", "durations": "poisson"}, {"inference": "weak_limit"}]
    model = InfiniteHMM(**few)
    for way in [*ways, ways[0], ways[2], ways[1], ways[0]]:
        model.set_params(**{"durations": None} | way).fit(X)
        assert set(vars(model)) == set(vars(InfiniteHMM(**few | way).fit(X)))


def test_memory_that_is_read_only_is_read_where_it_is():
    X = np.random.default_rng(0).normal(size=(50, 2))
    X.flags.writeable = False
    model = learn_model("gaussian", None, X, np.array([0, 50]), order=0)
    (part,) = model.prepare(X, np.array([0, 50])).parts
    assert np.shares_memory(part.rows, X)
    assert np.shares_memory(plain_array(part.rows), X)
