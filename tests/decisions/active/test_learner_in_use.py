"""Learners as people use them: labels of any kind, ensembles of any make, frames of Polars."""

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.svm import LinearSVC

from pluri.decisions import ActiveLearner, committee_scores
from pluri.decisions.active.rows import check_disjoint, join, row_prints

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 3)) + np.repeat(np.eye(3) * 2, 20, axis=0)
CODES = np.repeat([0, 1, 2], 20)


@pytest.mark.parametrize("names", [[0, 1, 2], [1, 2, 5], ["a", "b", "c"]])
def test_members_of_adaboost_are_asked_by_their_labels(names):
    labels = np.array(names)[CODES]
    learner = ActiveLearner(AdaBoostClassifier(n_estimators=5, random_state=0), "kl").fit(ROWS, labels)
    members = np.array([member.predict_proba(ROWS) for member in learner.estimator_.estimators_])
    assert_allclose(learner.scores(ROWS), committee_scores(members), atol=1e-12)


@pytest.mark.parametrize("model", [OneVsRestClassifier(LogisticRegression()), BaggingClassifier(LinearSVC())])
def test_members_that_cannot_disagree_about_the_class_are_refused(model):
    learner = ActiveLearner(model, "vote_entropy").fit(ROWS, CODES)
    with pytest.raises(ValueError, match="must be used with several models"):
        learner.scores(ROWS)
    with pytest.raises(ValueError, match="must be used with several models"):
        ActiveLearner(OneVsOneClassifier(LogisticRegression()), "kl").fit(ROWS, CODES).scores(ROWS)


def test_corrections_of_a_boosted_sum_are_no_predictions():
    learner = ActiveLearner(GradientBoostingRegressor(n_estimators=5), "variance").fit(ROWS, ROWS[:, 0])
    with pytest.raises(ValueError, match="whose members predict the response, got GradientBoostingRegressor"):
        learner.scores(ROWS)


@pytest.mark.parametrize("unit", [1.0, 30.0])
def test_the_penalty_of_a_ridge_regression_counts_in_units_of_the_noise(unit):
    response = unit * (ROWS @ [1.0, -2.0, 0.5] + RNG.normal(size=60))
    learner = ActiveLearner(Ridge(alpha=5.0, fit_intercept=False), "fisher_d").fit(ROWS[:10], response[:10])
    # Coefficients have the covariance s^2 (X'X + alpha)^-1, so that a row gains log(1 + x'(X'X + alpha)^-1 x).
    inverse = np.linalg.inv(ROWS[:10].T @ ROWS[:10] + 5.0 * np.eye(3))
    expected = np.log1p(np.einsum("ni,ij,nj->n", ROWS, inverse, ROWS))
    assert_allclose(learner.scores(ROWS), expected, rtol=1e-9)


def test_numbers_and_texts_are_not_mixed():
    learner = ActiveLearner(random_state=0, n_queries=3).fit(ROWS, CODES)
    with pytest.raises(ValueError, match=r"y must be numbers as the labels so far .* got texts"):
        learner.teach(ROWS[:1], ["0"])
    with pytest.raises(ValueError, match="what oracle returns must be numbers"):
        learner.run(ROWS + 1.0, lambda rows: [str(code) for code in CODES[rows]])
    assert learner.y_.dtype.kind == "i"
    assert len(learner.y_) == 60
    texts = ActiveLearner().fit(ROWS, pandas.Series(list("abc")).loc[CODES].astype("string"))
    assert texts.teach(ROWS[:1], np.array(["c"])).y_[-1] == "c"


def test_a_missing_label_of_pandas_is_named():
    with pytest.raises(ValueError, match=r"y must be labels, got (<NA>|nan) for row 2"):
        ActiveLearner().fit(ROWS[:3], pandas.Series(["a", "b", None], dtype="string"))


def test_a_frame_of_polars_is_rows_and_not_columns():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})
    assert len(row_prints(frame)) == 3
    with pytest.raises(ValueError, match="got 1 of 1"):
        check_disjoint(frame, frame[1:2])
    assert join(frame, frame[:1]).columns == ["a", "b"]
    labels = polars.Series(["x", "y", "x"])
    learner = ActiveLearner(n_queries=2, random_state=0).fit(frame, labels).run(frame + 1.0, labels)
    assert list(learner.estimator_.feature_names_in_) == ["a", "b"]
    assert learner.X_.shape == (5, 2)
