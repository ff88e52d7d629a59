"""Folds of whole sequences, and the search over settings: against the same thing written out by hand."""

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler

from pluri.datasets import make_toy_hmm
from pluri.metrics import one_to_one_accuracy
from pluri.sequences import CategoricalHMM, GaussianHMM
from pluri.sequences.labelled.classifier import HMMClassifier
from pluri.sequences.selection.folds import SequenceKFold, block_lengths, sequence_ids
from pluri.sequences.selection.search import HMMSearchCV, log_likelihood_per_sample

TOY = make_toy_hmm(n_sequences=30, variance=0.3, random_state=0)
SEQUENCES, LABELS = (list(parts) for parts in zip(*TOY.sequences()))


# Folds --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", [False, True])
def test_folds_hold_whole_sequences_once(shuffle):
    lengths = np.array([3, 1, 0, 4, 2, 5, 1, 2])
    X = np.zeros((lengths.sum(), 2))
    splitter = SequenceKFold(3, shuffle=shuffle, random_state=0)
    ids = sequence_ids(lengths)
    tested = []
    for train, test in splitter.split(X, lengths=lengths):
        assert not set(ids[train]) & set(ids[test])
        assert sorted([*train, *test]) == list(range(len(X)))
        tested += test.tolist()
    assert sorted(tested) == list(range(len(X)))
    assert splitter.get_n_splits() == 3


def test_lengths_groups_and_lists_say_the_same():
    by_lengths = list(SequenceKFold(4, shuffle=True, random_state=1).split(TOY.X, lengths=TOY.lengths))
    groups = np.array([f"word {n:03d}" for n in sequence_ids(TOY.lengths)])
    by_groups = list(SequenceKFold(4, shuffle=True, random_state=1).split(TOY.X, None, groups))
    by_list = list(SequenceKFold(4, shuffle=True, random_state=1).split(SEQUENCES))
    ids = sequence_ids(TOY.lengths)
    for one, two, three in zip(by_lengths, by_groups, by_list):
        np.testing.assert_array_equal(one[1], two[1])
        np.testing.assert_array_equal(np.unique(ids[one[1]]), three[1])


def test_without_shuffle_equals_scikit_learn_on_the_sequences():
    ours = [test.tolist() for _, test in SequenceKFold(4).split(SEQUENCES)]
    assert ours == [test.tolist() for _, test in KFold(4).split(np.zeros(len(SEQUENCES)))]


@pytest.mark.parametrize(
    ("splitter", "arguments", "message"),
    [
        (SequenceKFold(1), {"lengths": [2, 2]}, "n_splits must be an integer of at least 2, got 1"),
        (SequenceKFold(3), {"lengths": [2, 2]}, r"at most the number of sequences \(2\), got 3"),
        (SequenceKFold(2), {}, "lengths or groups must be given"),
        (SequenceKFold(2), {"lengths": [2, 1]}, "lengths must sum to the number of samples"),
        (SequenceKFold(2), {"groups": [0, 1]}, "groups must have one entry for each of 4 samples"),
        (SequenceKFold(2), {"groups": [0, 0, 1, 1], "lengths": [2, 2]}, "must not both be given"),
    ],
)
def test_bad_folds_are_refused_in_a_sentence(splitter, arguments, message):
    with pytest.raises(ValueError, match=message):
        list(splitter.split(np.zeros((4, 1)), **arguments))


def test_blocks_cover_the_sequences():
    assert block_lengths(np.array([7, 3, 0, 4]), 3).tolist() == [3, 3, 1, 3, 0, 3, 1]
    assert block_lengths(np.array([2]), 5).tolist() == [2]


# Search -------------------------------------------------------------------------------------------------------------


def by_hand(estimator, splits, score):
    """Scores of one setting: fit and score on lists, fold by fold."""
    scores = []
    for train, test in splits:
        model = clone(estimator).fit(
            [SEQUENCES[n] for n in train],
            [LABELS[n] for n in train] if isinstance(estimator, HMMClassifier) else None,
        )
        scores.append(score(model, [SEQUENCES[n] for n in test], [LABELS[n] for n in test]))
    return np.array(scores)


def test_held_out_log_likelihood_equals_a_loop_by_hand():
    base = GaussianHMM(random_state=0, n_iter=5, tol=0)
    search = HMMSearchCV(base, n_components=[1, 2], diversity=[0.0, 1.0], cv=3, random_state=4)
    search.fit(TOY.X, lengths=TOY.lengths)
    splits = list(SequenceKFold(3, shuffle=True, random_state=4).split(SEQUENCES))
    assert len(search.cv_results_["params"]) == 4
    for index, settings in enumerate(search.cv_results_["params"]):
        expected = by_hand(
            clone(base).set_params(**settings),
            splits,
            lambda model, X, y: model.score(np.concatenate(X), lengths=[len(x) for x in X]) / sum(map(len, X)),
        )
        found = [search.cv_results_[f"split{fold}_test_score"][index] for fold in range(3)]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    best = clone(base).set_params(**search.best_params_).fit(TOY.X, lengths=TOY.lengths)
    np.testing.assert_array_equal(search.best_estimator_.transmat_, best.transmat_)


def test_accuracy_of_a_classifier_equals_a_loop_by_hand():
    base = HMMClassifier(GaussianHMM())
    grid = {"pseudo_count": [0.5, 50.0], "hmm__diversity": [0.0, 5.0]}
    search = HMMSearchCV(base, grid, cv=3, random_state=4).fit(TOY.X, TOY.y, TOY.lengths)
    splits = list(SequenceKFold(3, shuffle=True, random_state=4).split(SEQUENCES))
    for index, settings in enumerate(search.cv_results_["params"]):
        expected = by_hand(
            clone(base).set_params(**settings),
            splits,
            lambda model, X, y: np.mean(model.predict(X) == np.concatenate(y)),
        )
        np.testing.assert_allclose(search.cv_results_["mean_test_score"][index], expected.mean())
    assert search.classes_.tolist() == [0, 1, 2, 3, 4]
    assert search.score(TOY.X, TOY.y, TOY.lengths) == search.best_estimator_.score(TOY.X, TOY.y, TOY.lengths)


def test_lists_arrays_and_workers_agree():
    def fitted(*data, **settings):
        base = GaussianHMM(random_state=0, n_iter=3, tol=0)
        return HMMSearchCV(base, n_components=[1, 3], cv=3, random_state=4, **settings).fit(*data)

    reference = fitted(TOY.X, None, TOY.lengths).cv_results_["mean_test_score"]
    np.testing.assert_allclose(fitted(SEQUENCES).cv_results_["mean_test_score"], reference, rtol=1e-12)
    np.testing.assert_allclose(fitted(TOY.X, TOY.lengths).cv_results_["mean_test_score"], reference, rtol=1e-12)
    with joblib.parallel_config(backend="threading"):  # processes would only take longer to start
        parallel = fitted(SEQUENCES, n_jobs=2)
    np.testing.assert_allclose(parallel.cv_results_["mean_test_score"], reference, rtol=1e-12)


def test_number_of_states_is_found():
    toy = make_toy_hmm(n_sequences=60, random_state=2)
    search = HMMSearchCV(GaussianHMM(n_init=2, tol=0.5, random_state=0), n_components=[2, 5, 12], cv=2, random_state=0)
    assert search.fit(toy.X, lengths=toy.lengths).best_params_ == {"n_components": 5}


def test_methods_are_those_of_the_best_model():
    search = HMMSearchCV(GaussianHMM(random_state=0, n_iter=5, tol=0), n_components=[2, 3], cv=2, random_state=0)
    best = search.fit(SEQUENCES).best_estimator_
    np.testing.assert_array_equal(search.predict(TOY.X, TOY.lengths), best.predict(TOY.X, TOY.lengths))
    np.testing.assert_array_equal(search.predict_proba(SEQUENCES), best.predict_proba(SEQUENCES))
    assert search.decode(SEQUENCES)[0] == best.decode(SEQUENCES)[0]
    expected = best.score(TOY.X, lengths=TOY.lengths) / len(TOY.X)
    np.testing.assert_allclose(search.score(TOY.X, TOY.lengths), expected, rtol=1e-12)
    np.testing.assert_allclose(log_likelihood_per_sample(best, SEQUENCES), expected, rtol=1e-12)


def test_a_scoring_of_ones_own_sees_lists():
    def agreement(model, X, y):
        return one_to_one_accuracy(np.concatenate(y), model.predict(X))

    search = HMMSearchCV(
        GaussianHMM(random_state=0, n_init=2), n_components=[2, 5], scoring=agreement, cv=2, random_state=0
    ).fit(TOY.X, TOY.y, TOY.lengths)
    splits = SequenceKFold(2, shuffle=True, random_state=0).split(SEQUENCES)
    expected = by_hand(GaussianHMM(5, random_state=0, n_init=2), splits, agreement)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"][1], expected.mean())
    assert search.score(TOY.X, TOY.y, TOY.lengths) == agreement(search.best_estimator_, SEQUENCES, LABELS)


def test_one_long_sequence_is_cut_into_blocks_for_the_folds_only():
    with pytest.raises(ValueError, match=r"cv must be at most the number of sequences \(1\), got 5: .* block_length"):
        HMMSearchCV(GaussianHMM(), n_components=[1, 2]).fit(TOY.X)
    base = GaussianHMM(random_state=0, n_iter=3, tol=0)
    blocks = HMMSearchCV(base, n_components=[2], cv=3, block_length=20, random_state=0).fit(TOY.X)
    cut = block_lengths(np.array([len(TOY.X)]), 20)
    listed = HMMSearchCV(base, n_components=[2], cv=3, random_state=0).fit(TOY.X, lengths=cut)
    np.testing.assert_allclose(blocks.best_score_, listed.best_score_, rtol=1e-12)
    whole = clone(base).set_params(n_components=2).fit(TOY.X)
    np.testing.assert_array_equal(blocks.best_estimator_.startprob_, whole.startprob_)


def test_words_and_impossible_folds():
    words = [["a", "b", "a"], ["b", "a"], ["a", "a", "b"], ["b", "b"], ["a", "c"]]
    model = CategoricalHMM(random_state=0, n_iter=3, tol=0, unseen="missing")
    search = HMMSearchCV(model, {"emissionprob_prior": [1.0, 2.0]}, cv=2, random_state=0).fit(words)
    assert np.isfinite(search.best_score_)
    numbers = [[[0], [1], [0]], [[1], [0]], [[0], [0], [1]], [[1], [1]], [[0], [2]]]
    numbers = [np.array(item) for item in numbers]
    model = CategoricalHMM(random_state=0, n_iter=3, tol=0, n_features=3)
    with pytest.warns(UserWarning, match="non-finite"):
        search = HMMSearchCV(model, {"emissionprob_prior": [1.0, 2.0]}, cv=2, random_state=0).fit(numbers)
    assert search.cv_results_["mean_test_score"][0] == -np.inf
    assert search.best_params_ == {"emissionprob_prior": 2.0}


def test_without_refit_there_are_no_predictions():
    search = HMMSearchCV(GaussianHMM(random_state=0), n_components=[1, 2], cv=2, refit=False).fit(SEQUENCES)
    assert search.best_params_["n_components"] in (1, 2)
    with pytest.raises(AttributeError, match="refit must be True"):
        search.predict(SEQUENCES)


@pytest.mark.parametrize(
    ("search", "error", "message"),
    [
        (HMMSearchCV(GaussianHMM()), ValueError, "must say what to search over"),
        (HMMSearchCV(GaussianHMM(), {"tol": [1]}, n_components=[1]), ValueError, "when param_grid is given"),
        (HMMSearchCV(HMMClassifier(), n_components=[1]), ValueError, "it has a state for each class"),
        (HMMSearchCV(GaussianHMM(), n_components=[1], scoring="accuracy"), ValueError, "scoring must be"),
        (HMMSearchCV(StandardScaler(), {"with_mean": [True]}), TypeError, "estimator must be a hidden Markov model"),
        (HMMSearchCV(GaussianHMM(), n_components=[1], block_length=0), ValueError, "block_length must be an integer"),
    ],
)
def test_bad_searches_are_refused_in_a_sentence(search, error, message):
    with pytest.raises(error, match=message):
        search.fit(SEQUENCES, LABELS)


# scikit-learn's own search ------------------------------------------------------------------------------------------


def test_scikit_learns_search_on_lists_gives_the_same_scores():
    base, grid = HMMClassifier(GaussianHMM(), pseudo_count=1.0), {"hmm__diversity": [0.0, 10.0]}
    folds = SequenceKFold(3, shuffle=True, random_state=4)
    theirs = GridSearchCV(base, grid, cv=folds).fit(SEQUENCES, LABELS)
    ours = HMMSearchCV(base, diversity=[0.0, 10.0], cv=3, random_state=4).fit(SEQUENCES, LABELS)
    np.testing.assert_array_equal(theirs.cv_results_["mean_test_score"], ours.cv_results_["mean_test_score"])
    assert theirs.best_params_ == ours.best_params_


def test_scikit_learns_search_keeps_sequences_together_by_groups():
    ids = sequence_ids(TOY.lengths)
    base, grid = HMMClassifier(pseudo_count=1.0), {"pseudo_count": [0.1, 1.0]}
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(base, grid, cv=SequenceKFold(3), error_score="raise").fit(TOY.X, TOY.y, groups=ids)
    train, test = next(SequenceKFold(3).split(TOY.X, lengths=TOY.lengths))
    alone = HMMClassifier(pseudo_count=1.0).fit(TOY.X[train], TOY.y[train], groups=ids[train])
    expected = alone.score(TOY.X[test], TOY.y[test], groups=ids[test])
    assert search.cv_results_["split0_test_score"][1] == pytest.approx(expected)
