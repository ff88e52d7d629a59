"""Where sequences begin and end: groups, lists of sequences, and scikit-learn's tools, which may lose both."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pluri.datasets import make_toy_hmm
from pluri.sequences import (
    GMMHMM,
    BayesianCategoricalHMM,
    BernoulliHMM,
    BoundaryWarning,
    CategoricalHMM,
    GaussianHMM,
    HMMClassifier,
    HMMSearchCV,
    MultinomialHMM,
    PoissonHMM,
    SequenceKFold,
    SymbolClassHMM,
    VariationalCategoricalHMM,
    VariationalGaussianHMM,
    sequence_ids,
)

TOY = make_toy_hmm(n_sequences=24, random_state=0)
IDS = sequence_ids(TOY.lengths)
GRID = {"hmmclassifier__pseudo_count": [0.5, 1.0]}

COUNTS = np.random.default_rng(0).integers(0, 2, size=(60, 1))
LENGTHS = [25, 5, 30]
GROUPS = np.repeat(["b", "a", "c"], LENGTHS)
MODELS = [
    GaussianHMM(2, random_state=0, n_iter=5, tol=-np.inf),
    GMMHMM(2, 2, random_state=0, n_iter=5, tol=-np.inf),
    PoissonHMM(2, random_state=0, n_iter=5, tol=-np.inf),
    BernoulliHMM(2, random_state=0, n_iter=5, tol=-np.inf),
    CategoricalHMM(2, random_state=0, n_iter=5, tol=-np.inf),
    VariationalGaussianHMM(2, random_state=0, n_iter=5, tol=-np.inf),
    VariationalCategoricalHMM(2, random_state=0, n_iter=5, tol=-np.inf),
    BayesianCategoricalHMM(2, random_state=0, n_draws=20, n_warmup=20),
    SymbolClassHMM(2, random_state=0, n_warmup=0, n_draws=20),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
# Twenty sweeps of a sampler are no fit, and a chain of two coins has no states to find.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::pluri.sequences.DeadStateWarning"),
]


def pipeline():
    return make_pipeline(StandardScaler(), HMMClassifier(pseudo_count=1.0))


# Groups ---------------------------------------------------------------------------------------------------------------


@every_model
def test_groups_say_the_same_as_lengths_everywhere(model):
    one, other = (type(model)(**model.get_params()) for _ in range(2))
    one.fit(COUNTS, lengths=LENGTHS)
    other.fit(COUNTS, groups=GROUPS)
    np.testing.assert_array_equal(one.transmat_, other.transmat_)
    np.testing.assert_array_equal(one.startprob_, other.startprob_)
    for name in ("predict", "predict_proba", "filter_proba", "score_sequences", "bic", "aic"):
        query = getattr(one, name)
        np.testing.assert_array_equal(query(COUNTS, LENGTHS), query(COUNTS, groups=GROUPS), err_msg=name)
    assert one.score(COUNTS, lengths=LENGTHS) == one.score(COUNTS, groups=GROUPS) != one.score(COUNTS)
    for algorithm in ("viterbi", "map"):
        expected = one.decode(COUNTS, LENGTHS, algorithm)
        assert one.decode(COUNTS, algorithm=algorithm, groups=GROUPS)[0] == expected[0]
    paths = [one.sample_paths(COUNTS, random_state=1, **where) for where in ({"lengths": LENGTHS}, {"groups": GROUPS})]
    np.testing.assert_array_equal(*paths)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 0, 1, 1, 0], "got 0 again in row 4 after another sequence"),
        ([0, 0, 1], r"one entry for each of 5 samples, got shape \(3,\)"),
        ([0.0, 0.0, np.nan, 1.0, 1.0], "got a missing value"),
        ([None, "a", "a", "b", "b"], "got a missing value"),
    ],
)
@pytest.mark.parametrize("model", [GaussianHMM(), HMMClassifier()])
def test_bad_groups_are_refused_in_a_sentence(model, groups, message):
    with pytest.raises(ValueError, match=message):
        model.fit(np.arange(5.0)[:, None], [0, 1, 0, 1, 1] if isinstance(model, HMMClassifier) else None, groups=groups)


def test_groups_and_lengths_together_are_refused():
    with pytest.raises(ValueError, match="must not both be given"):
        GaussianHMM().fit(TOY.X, lengths=TOY.lengths, groups=IDS)


def test_a_weight_in_the_scores_is_a_sequence_twice():
    model = GaussianHMM(2, random_state=0).fit(TOY.X, lengths=TOY.lengths)
    sequences = np.split(TOY.X, np.cumsum(TOY.lengths)[:-1])
    weight = np.where(np.arange(24) < 3, 2.0, 1.0)
    weight[-1] = 0.0
    written_out = sequences[:3] + sequences[:-1]
    for name in ("score", "bic", "aic"):
        weighted = getattr(model, name)(sequences, sequence_weight=weight)
        assert weighted == pytest.approx(getattr(model, name)(written_out)), name
        assert weighted == getattr(model, name)(sequences, sample_weight=weight), name


def test_labels_in_a_list_tell_the_boundaries_of_an_array():
    labels = np.split(TOY.y, np.cumsum(TOY.lengths)[:-1])
    model = HMMClassifier(pseudo_count=1.0).fit(TOY.X, labels)
    expected = HMMClassifier(pseudo_count=1.0).fit(TOY.X, TOY.y, TOY.lengths)
    np.testing.assert_array_equal(model.hmm_.startprob_, expected.hmm_.startprob_)
    assert model.score(TOY.X, labels) == expected.score(TOY.X, TOY.y, TOY.lengths)


# Lists of sequences ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [[20, 20, 20], [20, 20, 19]], ids=["equal", "unequal"])
@pytest.mark.parametrize("form", [np.asarray, list, lambda x: x[:, None]], ids=["array", "list", "column"])
@every_model
def test_a_list_of_equal_length_sequences_is_sequences(model, form, lengths):
    X = COUNTS[: sum(lengths), 0]
    sequences = [form(part) for part in np.split(X, np.cumsum(lengths)[:-1])]
    expected = type(model)(**model.get_params()).fit(X[:, None], lengths=lengths)
    other = type(model)(**model.get_params())
    if (
        form is list
        and lengths == [20, 20, 20]
        and "Categorical" not in type(model).__name__
        and not isinstance(model, SymbolClassHMM)
    ):
        with pytest.warns(UserWarning, match="3 lists of 20 numbers, is read as 3 sequences"):
            other.fit(sequences)
    else:
        other.fit(sequences)
    assert other.n_features_in_ == 1
    np.testing.assert_array_equal(other.transmat_, expected.transmat_)
    np.testing.assert_array_equal(other.score_sequences(sequences), expected.score_sequences(X[:, None], lengths))


def test_plain_lists_are_rows_where_they_cannot_be_sequences():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    model = GaussianHMM(2, random_state=0).fit(X.tolist(), lengths=[10, 20])
    assert model.means_.shape == (2, 3)
    np.testing.assert_array_equal(model.predict(X.tolist()), model.predict(X))
    column = GaussianHMM(2, random_state=0).fit(X[:, :1].tolist())
    np.testing.assert_array_equal(column.transmat_, GaussianHMM(2, random_state=0).fit(X[:, :1]).transmat_)
    labelled = HMMClassifier().fit(X.tolist(), rng.integers(2, size=30).tolist())
    assert labelled.n_features_in_ == 3


# scikit-learn's tools -------------------------------------------------------------------------------------------------


def test_routed_groups_give_the_boundaries_in_every_fold_and_the_refit():
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(pipeline(), GRID, cv=SequenceKFold(4)).fit(TOY.X, TOY.y, groups=IDS)
        found = search.score(TOY.X, TOY.y, groups=IDS)
        scores = cross_validate(pipeline(), TOY.X, TOY.y, cv=SequenceKFold(4), params={"groups": IDS})["test_score"]
    best = HMMClassifier(pseudo_count=search.best_params_["hmmclassifier__pseudo_count"])
    scaled = StandardScaler().fit_transform(TOY.X)
    best.fit(scaled, TOY.y, TOY.lengths)
    np.testing.assert_allclose(search.best_estimator_[-1].hmm_.startprob_, best.hmm_.startprob_)
    np.testing.assert_allclose(search.best_estimator_[-1].hmm_.transmat_, best.hmm_.transmat_)
    assert found == best.score(scaled, TOY.y, TOY.lengths)
    for (train, test), score in zip(SequenceKFold(4).split(TOY.X, groups=IDS), scores, strict=True):
        scaler = StandardScaler().fit(TOY.X[train])
        alone = HMMClassifier(pseudo_count=1.0).fit(scaler.transform(TOY.X[train]), TOY.y[train], groups=IDS[train])
        assert alone.score(scaler.transform(TOY.X[test]), TOY.y[test], groups=IDS[test]) == pytest.approx(score)


def test_requests_of_lengths_reach_the_last_step_of_a_pipeline():
    with config_context(enable_metadata_routing=True):
        last = HMMClassifier(pseudo_count=1.0).set_fit_request(lengths=True).set_score_request(lengths=True)
        model = make_pipeline(StandardScaler(), last).fit(TOY.X, TOY.y, lengths=TOY.lengths)
        scaled = StandardScaler().fit_transform(TOY.X)
        alone = HMMClassifier(pseudo_count=1.0).fit(scaled, TOY.y, TOY.lengths)
        assert model.score(TOY.X, TOY.y, lengths=TOY.lengths) == alone.score(scaled, TOY.y, TOY.lengths)
        np.testing.assert_array_equal(model.predict(TOY.X, groups=IDS), alone.predict(scaled, TOY.lengths))


def test_a_search_at_the_end_of_a_pipeline_is_told_the_boundaries_too():
    with config_context(enable_metadata_routing=True):
        search = HMMSearchCV(GaussianHMM(2, random_state=0), {"n_components": [1, 2]}, cv=2, random_state=0)
        model = make_pipeline(StandardScaler(), search).fit(TOY.X, groups=IDS)
        scaled = StandardScaler().fit_transform(TOY.X)
        alone = clone(search).fit(scaled, groups=IDS)
        assert model.score(TOY.X, groups=IDS) == alone.score(scaled, groups=IDS)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            model.score(TOY.X, groups=IDS, sample_weight=np.ones(24))


@pytest.mark.parametrize("cv", [SequenceKFold(4), GroupKFold(4), SequenceKFold(2)], ids=["sequences", "groups", "two"])
def test_groups_that_do_not_reach_the_model_are_an_error(cv):
    message = "does not hand them on to the model.*enable_metadata_routing=True"
    with pytest.raises(ValueError, match=message):
        GridSearchCV(pipeline(), GRID, cv=cv, error_score="raise").fit(TOY.X, TOY.y, groups=IDS)
    with pytest.raises(ValueError, match=message):
        cross_val_score(GaussianHMM(2), TOY.X, cv=cv, groups=IDS, error_score="raise")
    with pytest.raises(ValueError, match=message):
        cross_val_predict(pipeline(), TOY.X, TOY.y, cv=cv, groups=IDS)


def test_lengths_that_a_pipeline_would_drop_are_an_error():
    model = pipeline().fit(TOY.X, TOY.y, hmmclassifier__lengths=TOY.lengths)
    with pytest.raises(ValueError, match="score of scikit-learn got lengths or groups"):
        model.score(TOY.X, TOY.y, lengths=TOY.lengths)


def test_pieces_glued_by_cross_validation_are_warned_of():
    with pytest.warns(BoundaryWarning, match="rows that did not follow each other"):
        cross_val_score(GaussianHMM(2, random_state=0), TOY.X, cv=KFold(3))
    with (
        config_context(enable_metadata_routing=True),
        pytest.warns(BoundaryWarning, match="held-out rows come without"),
    ):
        cross_val_score(
            pipeline(),
            TOY.X,
            TOY.y,
            cv=SequenceKFold(3),
            params={"groups": IDS},
            scoring="accuracy",
            error_score="raise",
        )


def test_a_list_of_sequences_needs_no_routing():
    sequences, labels = (np.split(part, np.cumsum(TOY.lengths)[:-1]) for part in (TOY.X, TOY.y))
    search = GridSearchCV(HMMClassifier(), {"pseudo_count": [0.5, 1.0]}, cv=GroupKFold(3))
    search.fit(sequences, labels, groups=np.arange(24) // 2)
    assert search.best_score_ > 0.5


def test_one_long_sequence_is_still_one_sequence():
    plain = GaussianHMM(2, random_state=0).fit(TOY.X)
    said = GaussianHMM(2, random_state=0).fit(TOY.X, lengths=[len(TOY.X)])
    np.testing.assert_array_equal(plain.transmat_, said.transmat_)


# HMMSearchCV ----------------------------------------------------------------------------------------------------------


def test_a_pipeline_in_the_search_is_the_pipeline_by_hand():
    search = HMMSearchCV(pipeline(), diversity=[0.0, 1.0], cv=SequenceKFold(4)).fit(TOY.X, TOY.y, groups=IDS)
    assert list(search.best_params_) == ["hmmclassifier__hmm__diversity"]
    for n, (train, test) in enumerate(SequenceKFold(4).split(TOY.X, lengths=TOY.lengths)):
        scaler = StandardScaler().fit(TOY.X[train])
        alone = HMMClassifier(pseudo_count=1.0).fit(scaler.transform(TOY.X[train]), TOY.y[train], groups=IDS[train])
        expected = alone.score(scaler.transform(TOY.X[test]), TOY.y[test], groups=IDS[test])
        assert search.cv_results_[f"split{n}_test_score"][0] == pytest.approx(expected)
    best, scaled = search.best_estimator_[-1], StandardScaler().fit_transform(TOY.X)
    np.testing.assert_array_equal(search.predict(TOY.X, groups=IDS), best.predict(scaled, TOY.lengths))
    assert search.score(TOY.X, TOY.y, TOY.lengths) == best.score(scaled, TOY.y, TOY.lengths)


def test_a_pipeline_without_labels_is_searched_on_lists_and_frames():
    pandas = pytest.importorskip("pandas")
    model = make_pipeline(StandardScaler(), GaussianHMM(random_state=0))
    sequences = np.split(TOY.X, np.cumsum(TOY.lengths)[:-1])
    frame = pandas.DataFrame(TOY.X, columns=["x"])
    scores = []
    for X, lengths in ((sequences, None), (TOY.X, TOY.lengths), (frame, TOY.lengths)):
        search = HMMSearchCV(model, n_components=[1, 2], cv=3, random_state=0).fit(X, lengths=lengths)
        scores.append(search.cv_results_["mean_test_score"])
        assert search.predict(X, lengths).shape == TOY.y.shape
    np.testing.assert_allclose(scores[1], scores[0])
    np.testing.assert_allclose(scores[2], scores[0])


def test_multinomial_groups():
    X = np.random.default_rng(0).multinomial(5, [0.2, 0.3, 0.5], size=60)
    one = MultinomialHMM(2, random_state=0, n_iter=3, tol=-np.inf).fit(X, groups=GROUPS)
    other = MultinomialHMM(2, random_state=0, n_iter=3, tol=-np.inf).fit(X, lengths=LENGTHS)
    np.testing.assert_array_equal(one.transmat_, other.transmat_)
