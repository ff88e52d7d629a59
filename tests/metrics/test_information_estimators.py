"""Entropy, mutual information and divergence from samples: against the truth, enumeration and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import entr
from scipy.stats import gaussian_kde
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

from pluri.metrics import (
    bootstrap_interval,
    entropy,
    entropy_from_samples,
    gaussian_entropy,
    gaussian_kl,
    gaussian_mutual_information,
    kl_from_samples,
    mi_from_samples,
    mutual_information,
    variational_mutual_information,
)


def correlated(rho, n, seed):
    return np.random.default_rng(seed).multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=n).T


def test_counting_estimates_equal_their_definitions():
    labels = np.array([0, 0, 0, 1, 1, 4])
    counts = np.array([3, 2, 1])
    plug_in = entropy(counts / 6)
    assert entropy_from_samples(labels, "plug_in") == pytest.approx(plug_in)
    assert entropy_from_samples(labels, "miller_madow") == pytest.approx(plug_in + 2 / 12)
    left_out = [entropy(np.bincount(np.delete(labels, i)) / 5) for i in range(6)]
    assert entropy_from_samples(labels, "jackknife") == pytest.approx(6 * plug_in - 5 * np.mean(left_out))
    assert entropy_from_samples(np.zeros(5), "jackknife") == pytest.approx(0, abs=1e-12)
    # The Dirichlet estimate is the mean entropy over the posterior; 200000 draws, 5.5 standard errors.
    draws = entr(np.random.default_rng(0).dirichlet([3.5, 2.5, 1.5, 0.5], size=200_000)).sum(axis=1)
    estimate = entropy_from_samples(labels, "dirichlet", n_outcomes=4)
    assert abs(estimate - draws.mean()) < 5.5 * draws.std() / np.sqrt(len(draws))
    assert entropy_from_samples([["a", "b"], ["a", "c"]], "plug_in", base=2) == 1.0


def test_corrections_take_out_most_of_the_bias_of_counting():
    p, n = np.full(10, 0.1), 50
    draws = np.random.default_rng(0).choice(10, p=p, size=(300, n))
    error = {
        method: abs(np.mean([entropy_from_samples(row, method) for row in draws]) - np.log(10))
        for method in ("plug_in", "miller_madow", "jackknife")
    }
    assert error["plug_in"] > 0.07  # about 9 / 100, and 0.003 for the mean of 300
    assert error["miller_madow"] < 0.03
    assert error["jackknife"] < 0.03


@pytest.mark.parametrize(("d", "measured", "spread"), [(1, 1.399, 0.040), (2, 2.814, 0.019), (5, 7.042, 0.026)])
def test_nearest_neighbours_give_the_entropy_of_a_normal_law(d, measured, spread):
    values = [entropy_from_samples(np.random.default_rng(seed).normal(size=(1000, d))) for seed in range(10)]
    truth = gaussian_entropy(np.eye(d))
    # The spread of the mean of ten runs; six of them, plus the known bias in five dimensions.
    assert abs(np.mean(values) - truth) < 6 * spread / np.sqrt(10) + (0.06 if d == 5 else 0.01)
    assert abs(np.mean(values) - measured) < 6 * spread * np.sqrt(2 / 10)


@pytest.mark.parametrize(("rho", "measured", "spread"), [(0.0, 0.011, 0.019), (0.5, 0.165, 0.029), (0.9, 0.850, 0.046)])
def test_nearest_neighbours_give_the_information_of_correlated_normals(rho, measured, spread):
    values = [mi_from_samples(*correlated(rho, 1000, seed)) for seed in range(10)]
    truth = gaussian_mutual_information([[1, rho], [rho, 1]])
    assert abs(np.mean(values) - truth) < 6 * spread / np.sqrt(10)
    assert abs(np.mean(values) - measured) < 6 * spread * np.sqrt(2 / 10)


def test_one_column_against_one_equals_scikit_learn():
    x, y = correlated(0.7, 400, 1)
    theirs = mutual_info_regression(x[:, None], y, n_neighbors=3, random_state=0)[0]
    assert mi_from_samples(x, y) == pytest.approx(theirs, abs=2e-3)
    labels = (x > 0).astype(int) + (x > 1)
    theirs = mutual_info_classif(y[:, None], labels, n_neighbors=3, random_state=0)[0]
    assert mi_from_samples(labels, y, "mixed") == pytest.approx(theirs, abs=2e-3)


def test_several_columns_are_counted_as_by_brute_force():
    from scipy.special import digamma

    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(60, 2)), rng.normal(size=(60, 3))
    y[:, :2] += x
    scaled = [(v - v.mean(axis=0)) / v.std(axis=0) for v in (x, y)]
    dx, dy = (np.abs(v[:, None] - v).max(axis=2) for v in scaled)
    radius = np.sort(np.maximum(dx, dy), axis=1)[:, 4]
    near = [(d < radius[:, None]).sum(axis=1) for d in (dx, dy)]
    expected = digamma(4) + digamma(60) - (digamma(near[0]) + digamma(near[1])).mean()
    assert mi_from_samples(x, y, k=4) == pytest.approx(expected, abs=1e-12)


def test_monotone_maps_leave_the_information_as_it_is():
    x, y = correlated(0.8, 1000, 3)
    assert mi_from_samples(np.exp(x), y**3) == pytest.approx(mi_from_samples(x, y), abs=0.15)
    copula = mi_from_samples(x, y, "gaussian_copula")
    assert mi_from_samples(np.exp(x), y**3, "gaussian_copula") == pytest.approx(copula, abs=1e-12)
    assert copula == pytest.approx(gaussian_mutual_information([[1, 0.8], [0.8, 1]]), abs=0.15)  # six standard errors


def test_plug_in_information_is_that_of_the_empirical_table():
    x, y = ["a", "a", "b", "b", "b"], [0, 1, 1, 1, 0]
    table = np.array([[1, 1], [1, 2]]) / 5
    assert mi_from_samples(x, y, "plug_in") == pytest.approx(mutual_information(table))


def test_the_mixed_estimate_finds_the_information_of_two_separate_clusters():
    rng = np.random.default_rng(4)
    labels = rng.integers(2, size=1000)
    assert mi_from_samples(labels, rng.normal(size=1000) + 20 * labels, "mixed") == pytest.approx(np.log(2), abs=0.02)
    assert mi_from_samples(labels, rng.normal(size=1000), "mixed") == pytest.approx(0, abs=0.12)


def test_kernel_gaussian_and_histogram_estimates_are_near_the_truth():
    points = np.random.default_rng(5).normal(size=(1500, 2))
    truth = gaussian_entropy(np.eye(2))  # the mean of 1500 log densities has a standard error of 0.026
    for method, reach in (("gaussian", 0.16), ("kde", 0.25), ("kde_leave_one_out", 0.25)):
        assert entropy_from_samples(points, method) == pytest.approx(truth, abs=reach), method
    assert entropy_from_samples(points[:, 0], "histogram") == pytest.approx(truth / 2, abs=0.13)
    density = gaussian_kde(points[:200].T)
    assert entropy_from_samples(points[:200], "kde") == pytest.approx(-np.log(density(points[:200].T)).mean())


def test_divergence_by_neighbours_is_near_the_truth():
    # Ten runs; the spread of one is about 0.06, so that six standard errors are 0.12.
    rng = np.random.default_rng(6)
    cov = np.array([[1.0, 0.5], [0.5, 1.0]])
    values = [
        kl_from_samples(rng.normal(size=(1000, 2)) + 0.5, rng.multivariate_normal([0, 0], cov, size=1500))
        for _ in range(10)
    ]
    assert np.mean(values) == pytest.approx(gaussian_kl([0.5, 0.5], np.eye(2), [0, 0], cov), abs=0.12)
    same = [kl_from_samples(rng.normal(size=1000), rng.normal(size=1000)) for _ in range(10)]
    assert np.mean(same) == pytest.approx(0, abs=0.1)


@pytest.mark.filterwarnings("ignore:less than 75% of the points")
def test_equal_points_do_not_break_the_neighbours():
    repeated = np.repeat(np.random.default_rng(7).normal(size=50), 4)
    assert np.isfinite(entropy_from_samples(repeated))
    assert np.isfinite(mi_from_samples(repeated, np.round(repeated)))
    assert np.isfinite(kl_from_samples(repeated, repeated))
    assert entropy_from_samples(np.zeros(10)) < -15


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    # 100 intervals at level 0.9: fewer than 74 covering has probability 3e-6 if the level is right.
    rng = np.random.default_rng(8)
    p = np.array([0.5, 0.3, 0.2])
    hits = 0
    for _ in range(100):
        found = bootstrap_interval(
            lambda s: entropy_from_samples(s, "miller_madow"),
            rng.choice(3, p=p, size=150),
            level=0.9,
            n_resamples=99,
            random_state=rng,
        )
        hits += found.low < entropy(p) < found.high
    assert hits >= 74


def test_halves_give_the_standard_error_of_a_mean_and_of_unpaired_samples():
    x, y = np.random.default_rng(9).normal(size=(2, 400))
    found = bootstrap_interval(np.mean, x, with_replacement=False, n_resamples=800, random_state=0)
    assert found.standard_error == pytest.approx(x.std() / 20, rel=0.18)
    assert found.low < found.estimate < found.high
    apart = bootstrap_interval(lambda a, b: a.mean() - b.mean(), x, y[:200], paired=False, random_state=0)
    assert apart.standard_error == pytest.approx(np.sqrt(x.var() / 400 + y[:200].var() / 200), rel=0.3)


def test_the_variational_bound_is_met_by_the_true_conditional_and_by_no_other():
    x, y = correlated(0.8, 20_000, 10)
    truth, h = gaussian_mutual_information([[1, 0.8], [0.8, 1]]), gaussian_entropy(1.0)

    def guess(slope, variance):
        return lambda x, y: -0.5 * np.log(2 * np.pi * variance) - (x - slope * y) ** 2 / (2 * variance)

    best = variational_mutual_information(guess(0.8, 0.36), x, y, h, level=0.9999)
    assert best.low < truth < best.high
    for slope, variance in ((0.5, 0.36), (0.8, 1.0), (0.0, 1.0)):
        assert variational_mutual_information(guess(slope, variance), x, y, h, level=0.9999).high < truth


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: entropy_from_samples([1.0, 2.0], "guess"), "method must be one of"),
        (lambda: entropy_from_samples([1.0, np.nan, 2.0, 3.0]), "X must be finite"),
        (lambda: entropy_from_samples([1.0, 2.0, 3.0]), "k must be an integer from 1 to 2"),
        (lambda: entropy_from_samples([]), "X must hold at least 2 samples"),
        (lambda: entropy_from_samples(np.ones((5, 2)), "kde"), "X must vary in every direction"),
        (lambda: entropy_from_samples(np.ones((5, 2)), "histogram"), "X must have one column"),
        (lambda: entropy_from_samples([1, 2], "dirichlet", n_outcomes=1), "n_outcomes must be at least"),
        (lambda: entropy_from_samples([1, 2], "dirichlet", concentration=0), "concentration must be a positive"),
        (lambda: mi_from_samples([1, 2], [1, 2, 3]), "X and Y must have equal lengths"),
        (lambda: mi_from_samples([1, 2], [1, 2], "guess"), "method must be one of"),
        (lambda: mi_from_samples([1, 2, 3, 4], [1, 2, 3, 4], "mixed"), "label that occurs twice"),
        (lambda: kl_from_samples(np.ones((5, 2)), np.ones(5)), "X and Y must have equally many columns"),
        (lambda: kl_from_samples(np.arange(9), [1.0]), "k must be at most the size of Y"),
        (lambda: bootstrap_interval(np.mean, [1.0]), "samples must be one or more arrays"),
        (lambda: bootstrap_interval(np.mean, [1, 2], [1, 2, 3]), "samples must have equal lengths if paired"),
        (lambda: bootstrap_interval(np.mean, [1, 2], level=2), "level must be a number above 0 and below 1"),
        (lambda: variational_mutual_information(lambda x, y: 0.0, [1], [1], 0.0), "log_q_x_given_y must give one"),
    ],
)
def test_wrong_input_gets_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("estimate", [entropy_from_samples, lambda x: mi_from_samples(x, x[::-1])])
def test_labels_taken_for_points_are_noticed(estimate):
    with pytest.warns(UserWarning, match="plug_in"):
        estimate(np.random.default_rng(0).integers(0, 5, size=100))


def test_a_bootstrap_of_nearest_neighbours_that_draws_points_twice_warns_in_one_text():
    x, y = np.random.default_rng(0).normal(size=(2, 100))
    with pytest.warns(UserWarning, match="with_replacement=False") as caught:
        bootstrap_interval(mi_from_samples, x, y, n_resamples=5, random_state=0)
    assert len({str(warning.message) for warning in caught}) == 1


def test_words_without_a_counting_method_are_answered_with_one():
    with pytest.raises(ValueError, match="plug_in"):
        entropy_from_samples(["a", "b", "a"])
