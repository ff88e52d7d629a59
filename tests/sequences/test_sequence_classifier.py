"""One hidden Markov model a class: Bayes' rule, what it is given, what it says when a class has too little."""

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from scipy.special import logsumexp
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pluri
from pluri.engine import ArraySource
from pluri.sequences import (
    BayesianCategoricalHMM,
    CategoricalHMM,
    GaussianHMM,
    PoissonHMM,
    SequenceClassifier,
    TooManyParametersWarning,
    VariationalGaussianHMM,
)

LEVELS = {"low": [-2.0, 0.0], "high": [0.0, 2.0], "wide": [-3.0, 3.0]}


def sequences(seed=0, n_per_class=8, classes=("low", "high", "wide"), n_features=2):
    """Noisy paths between two levels that depend on the class, of different lengths: a list and their labels."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for label in classes:
        for _ in range(n_per_class):
            path = np.cumsum(rng.random(int(rng.integers(8, 20))) < 0.3) % 2
            X.append(np.take(LEVELS[label], path)[:, None] + 0.5 * rng.normal(size=(len(path), n_features)))
            y.append(label)
    order = rng.permutation(len(X))
    return [X[n] for n in order], np.array(y)[order]


def joined(X):
    return np.concatenate(X), np.array([len(item) for item in X])


SMALL = GaussianHMM(2, random_state=0)


# Bayes' rule --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("class_prior", "expected"),
    [
        ("learn", [8 / 22, 8 / 22, 6 / 22]),
        ("uniform", [1 / 3, 1 / 3, 1 / 3]),
        ([0.2, 0.5, 0.3], [0.2, 0.5, 0.3]),
        ({"wide": 0.3, "high": 0.2, "low": 0.5}, [0.2, 0.5, 0.3]),
    ],
)
def test_the_posterior_is_bayes_rule_of_models_fitted_by_hand(class_prior, expected):
    X, y = sequences()
    gone = np.flatnonzero(y == "wide")[:2]
    X, y = [item for n, item in enumerate(X) if n not in gone], np.delete(y, gone)
    other, _ = sequences(seed=1)
    model = SequenceClassifier(SMALL, class_prior=class_prior).fit(X, y)
    assert model.classes_.tolist() == ["high", "low", "wide"]
    np.testing.assert_allclose(model.class_prior_, expected)
    joint = np.empty((len(other), 3))
    for c, label in enumerate(model.classes_):
        own = clone(SMALL).fit([item for item, each in zip(X, y) if each == label])
        joint[:, c] = [own.score(item) + np.log(expected[c]) for item in other]
    log_posterior = joint - logsumexp(joint, axis=1, keepdims=True)
    np.testing.assert_allclose(model.log_likelihoods(other), joint - np.log(expected), rtol=1e-9)
    np.testing.assert_allclose(model.predict_log_proba(other), log_posterior, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(other).sum(axis=1), 1.0)
    np.testing.assert_allclose(model.decision_function(other), joint, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(other), model.classes_[joint.argmax(axis=1)])


def test_one_hmmlearn_model_a_class_gives_the_same_log_likelihoods():
    hmm = pytest.importorskip("hmmlearn.hmm")
    X, y = sequences(n_features=1)
    start = {"startprob_": np.array([0.6, 0.4]), "transmat_": np.array([[0.7, 0.3], [0.4, 0.6]]),
             "means_": np.array([[-1.0], [1.0]]), "covars_": np.array([[1.0], [1.0]])}  # fmt: skip
    ours = SequenceClassifier(
        GaussianHMM(2, n_iter=5, tol=-np.inf, min_covar=1e-3, covars_prior=1e-2,
                    **{f"{name}init": value for name, value in start.items()})
    ).fit(X, y)  # fmt: skip
    for c, label in enumerate(ours.classes_):
        rows, lengths = joined([item for item, each in zip(X, y) if each == label])
        peer = hmm.GaussianHMM(2, n_iter=5, tol=-np.inf, init_params="")
        for name, value in start.items():
            setattr(peer, name, value)
        peer.fit(rows, lengths)
        expected = [peer.score(item) for item in X]
        np.testing.assert_allclose(ours.log_likelihoods(X)[:, c], expected, rtol=1e-6)


def test_two_classes_have_log_odds_and_long_sequences_do_not_underflow():
    X, y = sequences(classes=("low", "high"))
    model = SequenceClassifier(SMALL).fit(X, y)
    long = np.tile(X[0], (2000, 1))
    odds = model.decision_function(long)
    assert odds.shape == (1,)
    log_posterior = model.predict_log_proba(long)
    np.testing.assert_allclose(odds, log_posterior[:, 1] - log_posterior[:, 0])
    assert abs(odds[0]) > 800  # exp would be infinite
    np.testing.assert_allclose(model.predict_proba(long).sum(), 1.0)


def test_a_sequence_without_values_has_the_class_prior():
    X, y = sequences()
    model = SequenceClassifier(SMALL).fit(X, y)
    unknown = [np.full((5, 2), np.nan), np.empty((0, 2)), X[0]]
    np.testing.assert_allclose(model.predict_proba(unknown)[:2], [model.class_prior_] * 2)


def test_missing_values_are_summed_out_as_the_models_do():
    X, y = sequences()
    for item in X:
        item[::4, 0] = np.nan
    model = SequenceClassifier(SMALL).fit(X, y)
    expected = [[own.score(item) for own in model.hmms_] for item in X]
    np.testing.assert_allclose(model.log_likelihoods(X), expected, rtol=1e-9)
    assert model.score(X, y) > 0.8  # the levels of the other column tell the classes


# What it is given ---------------------------------------------------------------------------------------------------


def test_all_ways_to_tell_sequences_give_the_same_model():
    X, y = sequences(n_per_class=4)
    rows, lengths = joined(X)
    ids = np.repeat(np.arange(len(X)), lengths)
    expected = SequenceClassifier(SMALL).fit(X, y)
    ways = {
        "lengths": {"X": rows, "y": y, "lengths": lengths},
        "groups": {"X": rows, "y": y, "groups": ids},
        "a label for each row": {"X": rows, "y": np.repeat(y, lengths), "groups": ids},
        "tuples": {"X": tuple(X), "y": list(y)},
        "an array of objects": {"X": np.fromiter(X, dtype=object, count=len(X)), "y": y},
    }
    for name, given in ways.items():
        model = SequenceClassifier(SMALL).fit(**given)
        asked = {key: value for key, value in given.items() if key != "y"}
        np.testing.assert_array_equal(model.log_likelihoods(**asked), expected.log_likelihoods(X), err_msg=name)
        assert model.score(**given) == expected.score(X, y), name


def test_an_array_with_three_axes_is_sequences_of_one_length():
    X, y = sequences(n_per_class=4)
    cut = np.stack([item[:8] for item in X])
    model = SequenceClassifier(SMALL).fit(cut, y)
    np.testing.assert_array_equal(model.predict(cut), SequenceClassifier(SMALL).fit(list(cut), y).predict(list(cut)))
    assert model.predict(cut[0]).shape == (1,)  # an array of samples is one sequence


def test_whole_weights_are_copies_of_sequences():
    X, y = sequences(n_per_class=4)
    weight = np.random.default_rng(0).integers(1, 4, size=len(X))
    start = GaussianHMM(1, covars_prior=0.0)  # one state: the fit does not depend on where it starts
    weighted = SequenceClassifier(start).fit(X, y, sequence_weight=weight)
    copied = SequenceClassifier(start).fit(
        [item for item, times in zip(X, weight) for _ in range(times)], np.repeat(y, weight)
    )
    np.testing.assert_allclose(weighted.predict_log_proba(X), copied.predict_log_proba(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(weighted.class_count_, copied.class_count_)
    right = weighted.predict(X) == y
    assert weighted.score(X, y, sample_weight=weight) == pytest.approx(weight[right].sum() / weight.sum())


def test_each_class_may_have_its_own_model():
    X, y = sequences()
    own = {"low": GaussianHMM(1), "high": GaussianHMM(2, random_state=0), "wide": VariationalGaussianHMM(3)}
    model = SequenceClassifier(own).fit(X, y)
    assert [each.n_components for each in model.hmms_] == [2, 1, 3]
    expected = clone(own["low"]).fit([item for item, label in zip(X, y) if label == "low"])
    np.testing.assert_allclose(model.log_likelihoods(X)[:, 1], expected.score_sequences(X))
    with pytest.raises(ValueError, match="a model for each class of y and no others, got none for 'wide'"):
        SequenceClassifier({"low": SMALL, "high": SMALL}).fit(X, y)
    with pytest.raises(ValueError, match="got one for 'other', which is not in y"):
        SequenceClassifier({**own, "other": SMALL}).fit(X, y)


def test_starting_values_set_by_hand_reach_every_class():
    X, y = sequences()
    start = GaussianHMM(2, init_params="smc", params="smc", random_state=0)
    start.transmat_ = np.array([[0.5, 0.5], [0.0, 1.0]])
    model = SequenceClassifier(start).fit(X, y)
    for own in model.hmms_:
        np.testing.assert_array_equal(own.transmat_, start.transmat_)


def test_a_word_of_one_class_is_improbable_in_the_others_and_not_missing():
    smooth = CategoricalHMM(1, emissionprob_prior=2.0)
    X = [["a", "b"], ["a", "a"], ["c", "b"], ["c", "c"]]
    model = SequenceClassifier(smooth).fit(X, [0, 0, 1, 1])
    # Class 0 has seen a a a b, each symbol once more by the prior: 4/7, 2/7, 1/7; class 1 the same with c for a.
    np.testing.assert_allclose(np.exp(model.log_likelihoods([np.array([word]) for word in "abc"])),
                               [[4 / 7, 1 / 7], [2 / 7, 2 / 7], [1 / 7, 4 / 7]])  # fmt: skip
    codes = {"a": 0, "b": 1, "c": 2}
    numbers = [np.array([[codes[word]] for word in item]) for item in X]
    np.testing.assert_allclose(
        SequenceClassifier(smooth).fit(numbers, [0, 0, 1, 1]).log_likelihoods(numbers), model.log_likelihoods(X)
    )
    with pytest.raises(ValueError, match="got 'd'"):
        model.predict([["a", "d"]])
    lenient = SequenceClassifier(clone(smooth).set_params(unseen="missing")).fit(X, [0, 0, 1, 1])
    np.testing.assert_allclose(lenient.predict_proba([["d", "d"]]), [[0.5, 0.5]])
    unsmoothed = SequenceClassifier(CategoricalHMM(1)).fit(X, [0, 0, 1, 1])
    assert unsmoothed.predict([["a", "b"]]).tolist() == [0]
    with pytest.raises(ValueError, match="sequence 1 has probability zero under the models of all classes"):
        unsmoothed.predict([["a", "b"], ["a", "c"]])


def test_other_families_and_sampled_models_serve_too():
    rng = np.random.default_rng(0)
    counts = [rng.poisson(rate, size=(12, 2)) for rate in (1.0, 6.0) for _ in range(6)]
    y = np.repeat([0, 1], 6)
    assert SequenceClassifier(PoissonHMM(2, random_state=0)).fit(counts, y).score(counts, y) == 1.0
    words = [["x", "y"] * 5] * 4 + [["x", "x", "z"] * 3] * 4
    sampled = SequenceClassifier(BayesianCategoricalHMM(2, n_draws=20, n_warmup=20, n_chains=1, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains this short need not agree
        sampled.fit(words, [0] * 4 + [1] * 4)
    assert sampled.predict([["x", "y"] * 3, ["x", "x", "z"] * 2]).tolist() == [0, 1]


# What it says -------------------------------------------------------------------------------------------------------


def test_a_class_with_too_little_is_named():
    X, y = sequences(n_per_class=6)
    short = [*X, np.zeros((1, 2))]
    with pytest.raises(ValueError, match=r"class 'tiny' \(1 sequences, 1 samples\): n_components must be at most"):
        SequenceClassifier(SMALL).fit(short, [*y, "tiny"])
    few = [*X, X[0][:4]]
    with pytest.warns(TooManyParametersWarning, match="class 'few': 11 free parameters were learned from 8 numbers"):
        SequenceClassifier(GaussianHMM(2, random_state=0)).fit(few, [*y, "few"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": None}, "requires y to be passed"),
        ({"y": ["low"] * 6}, "at least two classes, got one: 'low'"),
        ({"y": [0, 1]}, r"y must have one label for each of 6 sequences, got 2 labels"),
        ({"y": [[0, 1]] * 6}, "to label samples use HMMClassifier"),
        ({"y": np.linspace(0, 1, 6)}, "continuous"),
        ({"y": [0, 1] * 3, "lengths": [1, 2]}, "lengths must be None when X is a list of sequences"),
        ({"y": [0, 1] * 3, "sequence_weight": [1.0]}, "one weight for each sequence"),
        ({"y": [0, 1] * 3, "sequence_weight": [0, 1] * 3}, r"class 0 .*positive weight"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(given, message):
    X, _ = sequences(n_per_class=2)
    with pytest.raises(ValueError, match=message):
        SequenceClassifier(SMALL).fit(X, **given)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"hmm": "gaussian"}, TypeError, "hmm must be a hidden Markov model of pluri.sequences, a dict of them or"),
        ({"hmm": StandardScaler()}, TypeError, "got StandardScaler"),
        ({"class_prior": "flat"}, ValueError, "class_prior must be one of|class_prior must be 'learn' or 'uniform'"),
        ({"class_prior": [0.5, 0.5]}, ValueError, "a probability for each of 3 classes"),
        ({"class_prior": [0.5, 0.5, 0.5]}, ValueError, "class_prior"),
        ({"class_prior": {"low": 1.0}}, ValueError, "class_prior must have a probability for each class of y"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings, error, message):
    X, y = sequences(n_per_class=3)
    model = SequenceClassifier(**({"hmm": SMALL} | settings))
    with pytest.raises(error, match=message):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_labels_that_change_within_a_sequence_and_sources_are_refused():
    X, y = sequences(n_per_class=2)
    rows, lengths = joined(X)
    with pytest.raises(ValueError, match="y must be the same for all samples of a sequence"):
        SequenceClassifier(SMALL).fit(rows, np.arange(len(rows)) % 2, lengths)
    with pytest.raises(TypeError, match="got a ArraySource"):
        SequenceClassifier(SMALL).fit(ArraySource(rows, lengths), y)
    with pytest.raises(ValueError, match="features"):
        SequenceClassifier(SMALL).fit(X, y).predict([item[:, :1] for item in X])


# Among other tools --------------------------------------------------------------------------------------------------


def test_a_search_over_lists_finds_the_settings_of_a_loop():
    X, y = sequences()
    folds = StratifiedKFold(3)
    search = GridSearchCV(SequenceClassifier(SMALL), {"hmm__n_components": [1, 2]}, cv=folds, error_score="raise")
    search.fit(X, y)
    for place, k in enumerate([1, 2]):
        scores = []
        for train, test in folds.split(X, y):
            model = SequenceClassifier(GaussianHMM(k, random_state=0)).fit([X[n] for n in train], y[train])
            scores.append(np.mean(model.predict([X[n] for n in test]) == y[test]))
        np.testing.assert_allclose(search.cv_results_["mean_test_score"][place], np.mean(scores))
    assert search.best_estimator_.hmms_[0].n_components == search.best_params_["hmm__n_components"]


def test_rows_with_groups_are_routed_through_pipelines_and_cross_validation():
    X, y = sequences(n_per_class=6)
    rows, lengths = joined(X)
    ids, labels = np.repeat(np.arange(len(X)), lengths), np.repeat(y, lengths)
    pipeline = make_pipeline(StandardScaler(), SequenceClassifier(SMALL))
    with config_context(enable_metadata_routing=True):
        found = cross_val_score(pipeline, rows, labels, cv=GroupKFold(3), params={"groups": ids}, error_score="raise")
        whole = clone(pipeline).fit(rows, y, lengths=lengths)
        total = whole.score(rows, labels, groups=ids)
    scaled = StandardScaler().fit(rows)
    alone = SequenceClassifier(SMALL).fit(scaled.transform(rows), y, lengths)
    assert total == alone.score(scaled.transform(rows), y, lengths)
    expected = []
    for train, test in GroupKFold(3).split(rows, groups=ids):
        model = clone(pipeline).fit(rows[train], labels[train], sequenceclassifier__groups=ids[train])
        transformed = model[:-1].transform(rows[test])
        expected.append(model[-1].score(transformed, labels[test], groups=ids[test]))
    np.testing.assert_allclose(found, expected)
    with pytest.raises(ValueError, match="does not hand them on to the model"):
        cross_val_score(pipeline, rows, labels, cv=GroupKFold(3), groups=ids, error_score="raise")


def test_classes_fitted_at_the_same_time_are_the_same():
    X, y = sequences(n_per_class=4)
    alone = SequenceClassifier(SMALL, random_state=3).fit(X, y)
    with parallel_config("threading"):
        together = SequenceClassifier(SMALL, random_state=3, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(alone.log_likelihoods(X), together.log_likelihoods(X))
    seeds = [own.random_state for own in alone.hmms_]
    assert len(set(seeds)) == 3
    assert seeds == [own.random_state for own in together.hmms_]


@pytest.mark.thorough  # the test before this one does the same in threads, which start sooner
def test_two_processes_fit_what_one_fits():
    X, y = sequences(n_per_class=4)
    found = SequenceClassifier(SMALL, n_jobs=2).fit(X, y).log_likelihoods(X)
    np.testing.assert_array_equal(found, SequenceClassifier(SMALL).fit(X, y).log_likelihoods(X))
    with pytest.raises(ValueError, match="class 'tiny'"):
        SequenceClassifier(SMALL, n_jobs=2).fit([*X, X[0][:1]], [*y, "tiny"])


def test_it_comes_back_from_its_file_with_words_and_own_models(tmp_path):
    X = [["a", "b"], ["a", "a"], ["c", "b"], ["c", "c"]]
    own = {"x": CategoricalHMM(1, emissionprob_prior=2.0), "y": CategoricalHMM(2, emissionprob_prior=2.0)}
    model = SequenceClassifier(own).fit(X * 3, ["x", "x", "y", "y"] * 3)
    pluri.save(model, tmp_path / "model.skops")
    loaded = pluri.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.hmm.keys() == own.keys()


def test_frames_keep_the_names_of_their_columns():
    pandas = pytest.importorskip("pandas")
    X, y = sequences(n_per_class=3)
    frames = [pandas.DataFrame(item, columns=["left", "right"]) for item in X]
    model = SequenceClassifier(SMALL).fit(frames, y)
    assert model.feature_names_in_.tolist() == ["left", "right"]
    np.testing.assert_array_equal(model.log_likelihoods(frames), SequenceClassifier(SMALL).fit(X, y).log_likelihoods(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict([frame[["right", "left"]] for frame in frames])
