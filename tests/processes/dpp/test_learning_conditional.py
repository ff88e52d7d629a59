"""Conditional processes: gradients, the one optimum, recovery of known coefficients, and first mistakes."""

import itertools

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from pluri.inference.ascent import climb
from pluri.processes.dpp.learning import ConditionalDPP, subset_log_probabilities
from pluri.processes.dpp.learning.log_linear import Candidates, LogLinearObjective, log_partition, observe

N = 5
EVERY = [np.array(one, dtype=int) for size in range(N + 1) for one in itertools.combinations(range(N), size)]


def ground_set(rng, n_items=N, n_features=2):
    place = rng.random((n_items, 2))
    similarity = np.exp(-((place[:, None] - place) ** 2).sum(axis=-1) / (2 * 0.4**2))
    return rng.standard_normal((n_items, n_features)), similarity


def kernel_of(pair, theta, intercept=0.0):
    quality = np.exp((pair[0] @ theta + intercept) / 2)
    return quality[:, None] * pair[1] * quality


def examples(rng, theta, intercept, n_sets, n_features=2):
    X = [ground_set(rng, n_features=n_features) for _ in range(n_sets)]
    y = []
    for pair in X:
        law = np.exp(subset_log_probabilities(kernel_of(pair, theta, intercept), EVERY))
        y.append(EVERY[rng.choice(len(EVERY), p=law / law.sum())])
    return X, y


def objective_of(X, y, alpha=0.1, fit_intercept=True):
    candidates = [Candidates(*pair) for pair in X]
    return LogLinearObjective(observe(candidates, y, np.ones(len(y))), alpha, fit_intercept)


@pytest.fixture
def rng():
    return np.random.default_rng(8)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_value_gradient_and_hessian_equal_enumeration_and_differences(rng, fit_intercept):
    X, y = examples(rng, np.array([1.0, -0.5]), 0.3, 10)
    objective = objective_of(X, y, fit_intercept=fit_intercept)
    theta = rng.standard_normal(3 if fit_intercept else 2)
    value, gradient = objective(theta)
    coef, intercept = objective.split(theta)
    logs = [subset_log_probabilities(kernel_of(pair, coef, intercept), [one])[0] for pair, one in zip(X, y)]
    assert value == pytest.approx(np.mean(logs) - 0.05 * coef @ coef)
    for index in range(len(theta)):
        step = np.zeros(len(theta))
        step[index] = 1e-5
        there, back = objective(theta + step), objective(theta - step)
        assert gradient[index] == pytest.approx((there[0] - back[0]) / 2e-5, rel=1e-5, abs=1e-8)
        np.testing.assert_allclose(
            -objective.information(theta)[index] / objective.total, (there[1] - back[1]) / 2e-5, rtol=1e-5, atol=1e-8
        )


def test_huge_scores_do_not_overflow():
    similarity = np.array([[1.0, 0.5], [0.5, 1.0]])
    value, K = log_partition(np.array([2000.0, 1500.0]), similarity)
    assert value == pytest.approx(3500 + np.log(0.75))
    np.testing.assert_allclose(K, np.eye(2), atol=1e-12)
    value, K = log_partition(np.array([0.3, -2000.0]), similarity)
    assert value == pytest.approx(np.log1p(np.exp(0.3)))
    assert K[1, 1] == pytest.approx(0.0)


def test_all_starts_lead_to_one_optimum(rng):
    X, y = examples(rng, np.array([1.0, -0.5]), 0.0, 40)
    objective = objective_of(X, y)
    tops = [climb(objective, [3 * rng.standard_normal(3)], tol=1e-14).point for _ in range(5)]
    for top in tops[1:]:
        np.testing.assert_allclose(top, tops[0], atol=1e-4)


def test_known_coefficients_are_recovered_within_their_errors(rng):
    """The squared distance in standard errors is chi-square with 3 degrees: beyond the bound once in a million fits."""
    theta, intercept = np.array([1.0, -0.7]), 0.5
    X, y = examples(rng, theta, intercept, 600)
    model = ConditionalDPP(alpha=0.0).fit(X, y)
    offset = np.append(model.coef_ - theta, model.intercept_ - intercept)
    assert offset @ np.linalg.solve(model.covariance_, offset) < chi2.isf(1e-6, 3)
    assert (model.standard_errors_ < 0.2).all()
    assert model.converged_
    fresh, chosen = examples(rng, theta, intercept, 300)
    truth = np.mean([subset_log_probabilities(kernel_of(p, theta, intercept), [s])[0] for p, s in zip(fresh, chosen)])
    assert model.score(fresh, chosen) > truth - 0.03
    blind = ConditionalDPP(alpha=1e6).fit(X, y)
    assert model.score(fresh, chosen) > blind.score(fresh, chosen) + 0.1


def test_independent_items_are_a_logistic_regression(rng):
    from sklearn.linear_model import LogisticRegression

    features = rng.standard_normal((40, 2))
    chosen = rng.random((25, 40)) < 1 / (1 + np.exp(-features @ [1.0, -1.0]))
    model = ConditionalDPP(alpha=0.0).fit((features, np.eye(40)), list(chosen))
    other = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    other.fit(np.tile(features, (25, 1)), chosen.ravel())
    np.testing.assert_allclose(model.coef_, other.coef_[0], atol=1e-3)
    assert model.intercept_ == pytest.approx(other.intercept_[0], abs=1e-3)


def test_one_ground_set_for_all_equals_a_list_of_it(rng):
    pair = ground_set(rng)
    y = [EVERY[index] for index in rng.integers(0, 20, size=15)]
    shared = ConditionalDPP().fit(pair, y)
    listed = ConditionalDPP().fit([pair] * 15, y)
    apart = ConditionalDPP().fit([(pair[0].copy(), pair[1].copy()) for _ in range(15)], y)
    np.testing.assert_allclose(shared.coef_, listed.coef_, atol=1e-6)
    np.testing.assert_allclose(shared.coef_, apart.coef_, atol=1e-6)
    np.testing.assert_allclose(shared.log_prob(pair, y), apart.log_prob([pair] * 15, y), atol=1e-6)


def test_weights_are_the_same_as_repetitions(rng):
    X, y = examples(rng, np.array([1.0, 0.0]), 0.0, 6)
    weight = [2, 0, 1, 3, 1, 1]
    repeated = [index for index, times in enumerate(weight) for _ in range(times)]
    one = ConditionalDPP().fit(X, y, sample_weight=weight)
    other = ConditionalDPP().fit([X[index] for index in repeated], [y[index] for index in repeated])
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)
    np.testing.assert_allclose(one.covariance_, other.covariance_, atol=1e-5)
    assert one.score(X, y, sample_weight=weight) == pytest.approx(
        one.score([X[i] for i in repeated], [y[i] for i in repeated])
    )


def test_similarity_from_rows_equals_the_matrix(rng):
    X, y = examples(rng, np.array([1.0, 0.0]), 0.0, 8)
    rows = [rng.standard_normal((N, 6)) for _ in X]
    matrices = [(pair[0], (one @ one.T) / np.outer(*[np.linalg.norm(one, axis=1)] * 2)) for pair, one in zip(X, rows)]
    expected = ConditionalDPP().fit(matrices, y).coef_
    pairs = [(pair[0], one) for pair, one in zip(X, rows)]
    np.testing.assert_allclose(ConditionalDPP("cosine").fit(pairs, y).coef_, expected, atol=1e-6)

    def cosine(one, other):
        return (one @ other.T) / np.outer(np.linalg.norm(one, axis=1), np.linalg.norm(other, axis=1))

    np.testing.assert_allclose(ConditionalDPP(cosine).fit(pairs, y).coef_, expected, atol=1e-6)
    alone = list(rows)
    both = [(one, one) for one in rows]
    np.testing.assert_allclose(
        ConditionalDPP("rbf").fit(alone, y).coef_, ConditionalDPP("rbf").fit(both, y).coef_, atol=1e-6
    )


def test_answers_follow_the_process(rng):
    X, y = examples(rng, np.array([1.5, -0.5]), 0.5, 60)
    model = ConditionalDPP().fit(X, y)
    np.testing.assert_allclose(
        model.log_prob(X, y), [process.log_prob(one) for process, one in zip(model.dpp(X), y)], atol=1e-9
    )
    pair = X[0]
    draws = model.sample(pair, 4000, random_state=0)
    seen = np.mean([np.isin(np.arange(N), one) for one in draws], axis=0)
    # Five means with standard errors of at most 0.008: beyond 0.045 once in ten million runs.
    np.testing.assert_allclose(seen, model.dpp(pair).inclusion_probabilities(), atol=0.045)
    assert len(model.sample(X, random_state=0)) == len(X)
    again = model.sample(X, random_state=0)
    assert all((one == other).all() for one, other in zip(model.sample(X, random_state=0), again))


def test_predictions_are_probable_subsets(rng):
    X, y = examples(rng, np.array([1.5, -0.5]), 0.5, 60)
    model = ConditionalDPP().fit(X, y)
    found = model.predict(X)
    best = [max(model.log_prob(pair, EVERY)) for pair in X]
    # Greedy choices of at most five items are mostly the best ones.
    assert np.mean(np.isclose(model.log_prob(X, found), best)) > 0.8
    assert len(model.predict(X[0], size=2)) == 2


def test_scikit_learn_conventions(rng):
    model = ConditionalDPP("rbf", alpha=0.5, fit_intercept=False)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.predict([ground_set(rng)])
    X, y = examples(rng, np.array([1.0, 0.0]), 0.0, 5)
    assert model.set_params(similarity="precomputed").fit(X, y).intercept_ == 0.0
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        ConditionalDPP(max_iter=1).fit(X, y)


def test_bad_input_gets_a_sentence(rng):
    features, similarity = ground_set(rng)
    holes = features.copy()
    holes[0, 0] = np.nan
    cases = [
        ((holes, similarity), [[0]], "features of X must be finite"),
        ([(features, similarity), (holes, similarity)], [[0], [1]], r"features of X\[1\] must be finite"),
        ([], [], "X must hold at least one ground set"),
        ((features, similarity), [], "y must hold at least one subset"),
        ((features, similarity), 3, "y must be a list of subsets"),
        ([(features, similarity)], [[0], [1]], "one subset per ground set"),
        ([features], [[0]], "must be a pair"),
        ("abc", [[0]], "X must be a pair"),
        ((features, similarity[:3, :3]), [[0]], "one row per item"),
        ((features, -similarity), [[0]], "positive semi-definite"),
        ((features, similarity), [[0, 9]], r"y\[0\]"),
        ((features, similarity), [[1, 1]], r"y\[0\]"),
        ((features, np.ones((N, N))), [[0], [0, 1]], r"y\[1\] = \[0, 1\] has probability zero whatever"),
        ([(features, similarity), (features[:, :1], similarity)], [[0], [1]], "must have 2 columns, got 1"),
    ]
    for X, y, sentence in cases:
        with pytest.raises(ValueError, match=sentence):
            ConditionalDPP().fit(X, y)
    with pytest.raises(ValueError, match="alpha must be a number of at least 0"):
        ConditionalDPP(alpha=-1).fit((features, similarity), [[0]])
    model = ConditionalDPP().fit((features, similarity), [[0], [1]])
    with pytest.raises(ValueError, match="must have 2 columns"):
        model.predict((features[:, :1], similarity))
    assert model.score((features, np.ones((N, N))), [[0, 1]]) == -np.inf
