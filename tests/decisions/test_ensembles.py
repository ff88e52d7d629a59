"""Diversity of ensembles against counting, and our estimators as members of scikit-learn's ensembles."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from pluri.decisions import CostSensitiveClassifier, diversity_of_predictions, ensemble_diversity
from pluri.mixtures import NaiveBayes
from pluri.processes import BayesianLinearRegression

X, Y = load_iris(return_X_y=True)
TRAIN, TEST = np.arange(150) % 2 == 0, np.arange(150) % 2 == 1


def test_pairs_are_counted():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=200)
    said = np.where(rng.random((4, 200)) < 0.7, truth, rng.integers(3, size=(4, 200)))
    report = diversity_of_predictions(said, truth)
    for a in range(4):
        for b in range(4):
            first, second = said[a] == truth, said[b] == truth
            n11, n00 = (first & second).sum(), (~first & ~second).sum()
            n10, n01 = (first & ~second).sum(), (~first & second).sum()
            assert_allclose(report.disagreement[a, b], (n10 + n01) / 200)
            assert_allclose(report.q_statistic[a, b], (n11 * n00 - n01 * n10) / (n11 * n00 + n01 * n10))
    assert_allclose(report.member_errors, (said != truth).mean(axis=1))
    votes = [np.bincount(column, minlength=3).argmax() for column in said.T]
    assert report.ensemble_error == pytest.approx((np.array(votes) != truth).mean())


def test_the_mean_is_better_by_the_ambiguity():
    rng = np.random.default_rng(1)
    said, truth = rng.normal(size=(5, 40)), rng.normal(size=40)
    report = diversity_of_predictions(said, truth, classify=False)
    assert_allclose(report.squared_error, report.mean_squared_error - report.ambiguity, rtol=1e-12)
    assert_allclose(report.squared_error, ((said.mean(axis=0) - truth) ** 2).mean())
    shares = rng.dirichlet(np.ones(3), size=(4, 30))
    labels = rng.integers(3, size=30)
    labels[:3] = [0, 1, 2]
    report = diversity_of_predictions(shares.argmax(axis=2), labels, shares)
    assert_allclose(report.squared_error, report.mean_squared_error - report.ambiguity, rtol=1e-12)


def test_members_that_agree_have_no_diversity():
    report = diversity_of_predictions(np.tile([0, 1, 1], (3, 1)), [0, 1, 0])
    assert report.mean_disagreement == 0.0
    assert report.mean_q == 1.0
    assert np.isnan(diversity_of_predictions([[0, 1], [0, 1]], [0, 1]).mean_q)  # no mistakes, no statistic


@pytest.mark.parametrize(
    "ensemble",
    [
        RandomForestClassifier(8, max_depth=2, random_state=0),
        BaggingClassifier(DecisionTreeClassifier(max_depth=2), 8, max_features=0.5, random_state=0),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=8, random_state=0),
        VotingClassifier([("nb", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=2, random_state=0))]),
        StackingClassifier([("nb", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=2, random_state=0))]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_ensembles_of_scikit_learn_are_read(ensemble):
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    ensemble.fit(X[TRAIN], names[TRAIN])
    report = ensemble_diversity(ensemble, X[TEST], names[TEST])
    assert len(report.names) == len(np.ravel(ensemble.estimators_))
    assert (report.member_errors < 0.6).all()
    assert report.ensemble_error < 0.5
    assert_allclose(report.squared_error, report.mean_squared_error - report.ambiguity, rtol=1e-9)
    assert "ambiguity" in report.summary()
    if isinstance(ensemble, VotingClassifier):
        assert report.names == ("nb", "tree")


def test_regression_and_lists():
    forest = RandomForestRegressor(5, random_state=0).fit(X[TRAIN, :3], X[TRAIN, 3])
    report = ensemble_diversity(forest, X[TEST, :3], X[TEST, 3])
    assert_allclose(report.squared_error, ((forest.predict(X[TEST, :3]) - X[TEST, 3]) ** 2).mean())
    assert np.isnan(report.mean_disagreement)
    models = [GaussianNB().fit(X[TRAIN], Y[TRAIN]), LogisticRegression(max_iter=1000).fit(X[TRAIN], Y[TRAIN])]
    assert ensemble_diversity(models, X[TEST], Y[TEST]).names == ("0", "1")


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: diversity_of_predictions([0, 1], [0, 1]), ValueError, "predictions must have shape"),
        (lambda: diversity_of_predictions([[0, 1]], [0]), ValueError, "predictions must have shape"),
        (lambda: diversity_of_predictions([[0, 1]], [0, 1], [[0.5]]), ValueError, "probabilities must have shape"),
        (lambda: ensemble_diversity(GaussianNB().fit(X, Y), X, Y), TypeError, "ensemble must have estimators_"),
        (lambda: ensemble_diversity([], X, Y), ValueError, "ensemble must have members"),
    ],
)
def test_mistakes_get_a_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


# Our estimators inside scikit-learn's ensembles ---------------------------------------------------------------------


def test_bagging_of_one_without_a_draw_is_the_member():
    for member in (NaiveBayes("gaussian"), CostSensitiveClassifier(NaiveBayes("gaussian"), 1 - np.eye(3))):
        bagged = BaggingClassifier(member, 1, bootstrap=False, random_state=0).fit(X[TRAIN], Y[TRAIN])
        assert_allclose(bagged.predict_proba(X[TEST]), member.fit(X[TRAIN], Y[TRAIN]).predict_proba(X[TEST]))
    regression = BaggingRegressor(BayesianLinearRegression(), 1, bootstrap=False).fit(X[TRAIN, :3], X[TRAIN, 3])
    alone = BayesianLinearRegression().fit(X[TRAIN, :3], X[TRAIN, 3])
    assert_allclose(regression.predict(X[TEST, :3]), alone.predict(X[TEST, :3]), rtol=1e-6)


def test_boosting_hands_its_weights_to_our_member():
    rounds = []

    class Watched(NaiveBayes):
        def fit(self, X, y, sample_weight=None):
            rounds.append(None if sample_weight is None else np.array(sample_weight))
            return super().fit(X, y, sample_weight=sample_weight)

    boosted = AdaBoostClassifier(Watched("gaussian", inference="ml"), n_estimators=4, random_state=0)
    boosted.fit(X[TRAIN], Y[TRAIN])
    assert len(rounds) >= 2
    assert all(weight is not None for weight in rounds)
    assert not np.allclose(rounds[0], rounds[1])
    # The law of the algorithm (SAMME): under the next weights the last member is as bad as chance, (K - 1) / K.
    first = boosted.estimators_[0]
    wrong = first.predict(X[TRAIN]) != Y[TRAIN]
    assert_allclose(rounds[1][wrong].sum() / rounds[1].sum(), 2.0 / 3.0, rtol=1e-6)


def test_stacking_takes_our_members_and_out_of_fold_predictions():
    stack = StackingClassifier(
        [("ours", NaiveBayes("gaussian")), ("tree", DecisionTreeClassifier(max_depth=2, random_state=0))], cv=3
    ).fit(X[TRAIN], Y[TRAIN])
    assert stack.score(X[TEST], Y[TEST]) > 0.9


def test_stacking_on_its_own_training_rows_trusts_a_memory():
    # 1-nearest-neighbour knows its rows by heart: fitted in sample, the meta-model trusts it far more than out of fold.
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(150) < 0.3, rng.integers(3, size=150), Y)
    members = [("memory", KNeighborsClassifier(1)), ("ours", NaiveBayes("gaussian"))]
    fitted = [(name, one.fit(X[TRAIN], noisy[TRAIN])) for name, one in members]
    leaking = StackingClassifier(fitted, cv="prefit").fit(X[TRAIN], noisy[TRAIN])
    honest = StackingClassifier(members, cv=5).fit(X[TRAIN], noisy[TRAIN])

    def trust(stack):
        sizes = np.abs(stack.final_estimator_.coef_)
        return sizes[:, :3].sum() / sizes.sum()

    assert trust(leaking) > 0.6 > trust(honest)
    assert leaking.score(X[TRAIN], noisy[TRAIN]) == 1.0
    assert_array_equal(leaking.predict(X[TRAIN]), noisy[TRAIN])


@pytest.mark.parametrize("names", [[0, 1, 2], [1, 2, 3], ["a", "b", "c"]])
def test_members_that_never_saw_the_first_class_are_read_by_their_codes(names):
    X, y = load_iris(return_X_y=True)
    labels = np.array(names)[y]
    few = np.r_[0:2, 50:56, 100:106]
    bagging = BaggingClassifier(KNeighborsClassifier(1), n_estimators=20, random_state=0).fit(X[few], labels[few])
    assert any(len(member.classes_) < 3 for member in bagging.estimators_)  # codes 1 and 2, which may be labels as well
    report = ensemble_diversity(bagging, X, labels)
    errors = [np.mean(np.array(names)[member.predict(X)] != labels) for member in bagging.estimators_]
    assert_allclose(report.member_errors, errors)
    assert_allclose(report.squared_error, report.mean_squared_error - report.ambiguity)


@pytest.mark.parametrize(
    "ensemble",
    [
        GradientBoostingClassifier(n_estimators=2),
        GradientBoostingRegressor(n_estimators=2),
        OneVsRestClassifier(LogisticRegression()),
    ],
)
def test_members_that_do_not_predict_the_response_are_refused(ensemble):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match=f"got {type(ensemble).__name__}, whose members are parts of it"):
        ensemble_diversity(ensemble.fit(X, y), X, y)
