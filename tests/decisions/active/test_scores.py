"""Scores of rows: bounds, identities, closed forms, and gains of information against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB

from pluri.decisions import committee_scores, expected_error_scores, fisher_scores, uncertainty_scores
from pluri.decisions.active import fisher

KINDS = ("least_confident", "margin", "entropy")


def random_probabilities(seed, *shape, sparse=False):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(shape[-1], 0.5), size=shape[:-1])
    if sparse:
        P[P < 0.05] = 0.0
        P /= P.sum(axis=-1, keepdims=True)
    return P


@given(st.integers(0, 10**6))
def test_two_classes_are_ranked_alike_by_all_three(seed):
    P = random_probabilities(seed, 20, 2)
    orders = [np.argsort(uncertainty_scores(P, kind)) for kind in KINDS]
    assert (orders[0] == orders[1]).all()
    assert (orders[0] == orders[2]).all()


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_the_uniform_distribution_is_the_most_uncertain_and_a_tie_has_margin_zero(seed, n_classes):
    P = np.vstack([np.full(n_classes, 1 / n_classes), random_probabilities(seed, 30, n_classes)])
    for kind in KINDS:
        scores = uncertainty_scores(P, kind)
        assert scores[0] >= scores.max() - 1e-12
    tie = np.zeros((1, n_classes))
    tie[0, :2] = 0.5
    assert uncertainty_scores(tie, "margin")[0] == 0


def test_uncertainty_equals_the_definitions_written_out():
    P = random_probabilities(0, 50, 4)
    ordered = np.sort(P, axis=1)
    assert_allclose(uncertainty_scores(P, "margin"), ordered[:, -2] - ordered[:, -1])
    assert_allclose(uncertainty_scores(P, "least_confident"), 1 - ordered[:, -1])
    assert_allclose(uncertainty_scores(P, "entropy"), -(P * np.log(P)).sum(axis=1))


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(2, 5))
def test_bald_is_the_mean_divergence_and_stays_within_its_bounds(seed, n_members, n_classes):
    P = random_probabilities(seed, n_members, 15, n_classes, sparse=True)
    mean = P.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = np.where(P > 0, P * np.log(P / mean), 0.0).sum(axis=2).mean(axis=0)
    bald, entropy = committee_scores(P, "kl"), committee_scores(P, "consensus_entropy")
    assert_allclose(bald, divergence, atol=1e-12)
    assert_allclose(entropy, uncertainty_scores(mean, "entropy"), atol=1e-12)
    assert (bald >= 0).all()
    assert (bald <= entropy).all()
    assert (bald <= np.log(min(n_members, n_classes)) + 1e-12).all()
    assert (entropy <= np.log(n_classes) + 1e-12).all()


def test_votes_and_members_that_agree():
    unanimous, split = [[0.9, 0.1, 0.0]] * 3, np.eye(3)
    P = np.stack([unanimous, split], axis=1)  # three members, two items
    assert_allclose(committee_scores(P, "vote_entropy"), [0, np.log(3)], atol=1e-12)
    same = np.repeat(random_probabilities(1, 1, 10, 3), 4, axis=0)
    assert_allclose(committee_scores(same, "kl"), 0, atol=1e-15)
    torn = np.array([[[0.5, 0.5]], [[0.5, 0.5]]])  # a vote is shared by classes that tie
    assert_allclose(committee_scores(torn, "vote_entropy"), np.log(2))


@given(st.integers(0, 10**6))
def test_scores_do_not_depend_on_the_names_of_the_classes(seed):
    rng = np.random.default_rng(seed)
    P, order = random_probabilities(seed, 3, 10, 4), rng.permutation(4)
    for kind in KINDS:
        assert_allclose(uncertainty_scores(P[0], kind), uncertainty_scores(P[0][:, order], kind), atol=1e-12)
    for kind in ("vote_entropy", "kl", "consensus_entropy"):
        assert_allclose(committee_scores(P, kind), committee_scores(P[:, :, order], kind), atol=1e-12)
    X, L = rng.normal(size=(10, 2)), rng.normal(size=(5, 2))
    P_L = random_probabilities(seed + 1, 5, 4)
    for criterion in "ade":
        one = fisher_scores(X, P[0], X_labelled=L, P_labelled=P_L, criterion=criterion)
        other = fisher_scores(X, P[0][:, order], X_labelled=L, P_labelled=P_L[:, order], criterion=criterion)
        assert_allclose(one, other, atol=1e-10)


def written_out(X, P, X_labelled, P_labelled, criterion, alpha, target=None):
    """Gains by inverting the information with and without each row."""

    def weights(p):
        return np.array([[p * (1 - p)]]) if np.ndim(p) == 0 else np.diag(p) - np.outer(p, p)

    def information(rows, probabilities):
        return sum(np.kron(weights(p), np.outer(x, x)) for x, p in zip(rows, probabilities))

    before = information(X_labelled, P_labelled)
    before = before + alpha * np.eye(len(before))

    def value(matrix):
        inverse = np.linalg.inv(matrix)
        if criterion == "d":
            return -np.linalg.slogdet(inverse)[1]
        if criterion == "e":
            return -np.linalg.eigvalsh(inverse)[-1]
        return -np.trace(inverse if target is None else inverse @ information(*target))

    return np.array([value(before + information([x], [p])) - value(before) for x, p in zip(X, P)])


@pytest.mark.parametrize("criterion", ["a", "d", "e"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("n_labelled", [2, 12])  # with few rows most variances are equal
def test_gains_of_information_equal_brute_force(criterion, n_classes, n_labelled):
    rng = np.random.default_rng(n_classes)
    X, L = rng.normal(size=(25, 4)), rng.normal(size=(n_labelled, 4))
    X[0] = 0.0
    P, P_L = random_probabilities(1, 25, n_classes), random_probabilities(2, n_labelled, n_classes)
    P[1] = np.eye(n_classes)[0]  # certain: no information
    found = fisher_scores(X, P, X_labelled=L, P_labelled=P_L, criterion=criterion, alpha=0.7)
    given = (P[:, 0], P_L[:, 0]) if n_classes == 2 else (P, P_L)
    expected = written_out(X, given[0], L, given[1], criterion, 0.7)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    assert_allclose(found[:2], 0, atol=1e-12)
    for form in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array):
        again = fisher_scores(form(X), P, X_labelled=form(L), P_labelled=P_L, criterion=criterion, alpha=0.7)
        assert_allclose(again, found, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_variance_of_predictions_of_rows_of_interest_equals_brute_force(n_classes):
    rng = np.random.default_rng(0)
    X, L, T = rng.normal(size=(15, 3)), rng.normal(size=(6, 3)), rng.normal(size=(8, 3))
    P, P_L, P_T = (random_probabilities(seed, len(rows), n_classes) for seed, rows in enumerate((X, L, T)))
    found = fisher_scores(X, P, X_labelled=L, P_labelled=P_L, criterion="a", X_target=T, P_target=P_T)
    if n_classes == 2:
        P, P_L, P_T = P[:, 0], P_L[:, 0], P_T[:, 0]
    assert_allclose(found, written_out(X, P, L, P_L, "a", 1.0, (T, P_T)), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("criterion", ["a", "d", "e"])
def test_linear_regression_gains_equal_brute_force_and_its_covariance(criterion):
    rng = np.random.default_rng(3)
    X, L = rng.normal(size=(20, 3)), rng.normal(size=(9, 3))
    found = fisher_scores(X, X_labelled=L, criterion=criterion, alpha=0.2, noise_variance=0.25)
    before = L.T @ L / 0.25 + 0.2 * np.eye(3)
    value = {
        "d": lambda m: np.linalg.slogdet(m)[1],
        "a": lambda m: -np.trace(np.linalg.inv(m)),
        "e": lambda m: -1 / np.linalg.eigvalsh(m)[0],
    }[criterion]
    expected = [value(before + np.outer(x, x) / 0.25) - value(before) for x in X]
    assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_one_coefficient_has_the_information_of_a_bernoulli_logit():
    p, x = np.array([0.5, 0.8, 0.99]), np.array([1.0, -2.0, 3.0])
    found = fisher_scores(x[:, None], p, X_labelled=[[2.0]], P_labelled=[0.3], alpha=0.5)
    assert_allclose(found, np.log1p(p * (1 - p) * x**2 / (0.21 * 4 + 0.5)))


def test_the_chunks_of_candidates_do_not_matter(monkeypatch):
    rng = np.random.default_rng(5)
    X, P, L, P_L = rng.normal(size=(40, 3)), random_probabilities(6, 40, 3), rng.normal(size=(5, 3)), None
    P_L = random_probabilities(7, 5, 3)
    whole = fisher_scores(X, P, X_labelled=L, P_labelled=P_L, criterion="e")
    monkeypatch.setattr(fisher, "CHUNK", 1)
    assert_allclose(fisher_scores(X, P, X_labelled=L, P_labelled=P_L, criterion="e"), whole, atol=1e-14)


def test_expected_error_equals_the_sum_written_out():
    rng = np.random.default_rng(2)
    X, L, y = rng.integers(2, size=(6, 3)), rng.integers(2, size=(8, 3)), np.array(list("abcabcab"))
    X_all = {loss: [] for loss in ("log", "zero_one")}
    first = BernoulliNB().fit(L, y)
    for x in X:
        risk = dict.fromkeys(X_all, 0.0)
        for label, weight in zip(first.classes_, first.predict_proba([x])[0]):
            later = BernoulliNB()
            later.fit(np.vstack([L, x]), [*y, label])
            P = later.predict_proba(X)
            risk["log"] += weight * np.mean([-(row * np.log(row)).sum() for row in P])
            risk["zero_one"] += weight * np.mean(1 - P.max(axis=1))
        for loss, values in X_all.items():
            values.append(-risk[loss])
    for loss, expected in X_all.items():
        found = expected_error_scores(BernoulliNB(), X, X_labelled=L, y_labelled=y, loss=loss)
        assert_allclose(found, expected, rtol=1e-10)
        sparse_found = expected_error_scores(
            BernoulliNB(), sparse.csr_array(X), X_labelled=sparse.csr_array(L), y_labelled=y, loss=loss
        )
        assert_allclose(sparse_found, expected, rtol=1e-10)


def test_candidates_that_are_not_tried_come_last():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    scores = expected_error_scores(
        LogisticRegression(), X, X_labelled=X[:4], y_labelled=[0, 1, 0, 1], n_candidates=5, random_state=0
    )
    assert np.isfinite(scores).sum() == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: uncertainty_scores([[0.5, 0.6]]), "P must be probabilities that sum to 1"),
        (lambda: uncertainty_scores([[-0.5, 1.5]]), "P must be probabilities"),
        (lambda: uncertainty_scores([[np.nan, 1.0]]), "P must be probabilities"),
        (lambda: uncertainty_scores([0.5, 0.5]), r"P must have shape \(n_samples, n_classes\), got \(2,\)"),
        (lambda: uncertainty_scores(np.ones((2, 1)), "guess"), "kind must be one of 'least_confident'"),
        (lambda: committee_scores([[0.5, 0.5]]), r"P_members must have shape \(n_members, n_samples, n_classes\)"),
        (lambda: committee_scores(np.empty((0, 2, 2))), "P_members must have shape"),
        (lambda: committee_scores([[[0.5, 0.5]]], "bald?"), "kind must be one of"),
        (
            lambda: fisher_scores([[1.0]], [0.5], X_labelled=[[1.0]], P_labelled=[1.5]),
            "P_labelled must be probabilities",
        ),
        (lambda: fisher_scores([[1.0]], [0.5], X_labelled=[[1.0, 2.0]], P_labelled=[0.5]), "as many features"),
        (
            lambda: fisher_scores([[1.0]], [0.5, 0.5], X_labelled=[[1.0]], P_labelled=[0.5]),
            "P must have a row for each",
        ),
        (lambda: fisher_scores([[np.nan]], [0.5], X_labelled=[[1.0]], P_labelled=[0.5]), "Input X contains NaN"),
        (
            lambda: fisher_scores([[1.0]], [0.5], X_labelled=[[1.0]], P_labelled=[0.5], alpha=0),
            "alpha must be a positive",
        ),
        (
            lambda: fisher_scores([[1.0]], [0.5], X_labelled=[[1.0]], P_labelled=[0.5], criterion="t"),
            "criterion must be",
        ),
        (
            lambda: fisher_scores(
                [[1.0]], [0.5], X_labelled=[[1.0]], P_labelled=[0.5], X_target=[[1.0]], P_target=[0.5]
            ),
            "X_target must be None unless criterion is 'a'",
        ),
        (lambda: fisher_scores(np.ones((2, 5000)), X_labelled=np.ones((2, 5000))), "at most 4000 coefficients"),
    ],
)
def test_what_cannot_be_scored_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_one_class_is_certain_and_no_rows_have_no_scores():
    assert uncertainty_scores(np.ones((3, 1)), "entropy").tolist() == [0, 0, 0]
    assert uncertainty_scores(np.ones((3, 1)), "margin").tolist() == [-1, -1, -1]
    assert uncertainty_scores(np.empty((0, 3))).shape == (0,)
