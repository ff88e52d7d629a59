import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from pluri.testing import goodness_of_fit
from pluri.testing.goodness import cramer_von_mises_tail, permutation_test
from pluri.testing.stein import numerical_score, stein_matrix


def autoregression(rng, n, rho):
    x = np.empty(n)
    x[0] = rng.normal()
    for t in range(1, n):
        x[t] = rho * x[t - 1] + np.sqrt(1 - rho**2) * rng.normal()
    return x


def test_independent_draws_use_the_exact_tests():
    x = np.random.default_rng(0).normal(size=200)
    ks, cvm, *_, variance = goodness_of_fit(x, cdf=stats.norm, independent=True).comparisons
    assert ks.p_value == pytest.approx(stats.kstest(x, "norm").pvalue)
    assert cvm.p_value == pytest.approx(stats.cramervonmises(x, "norm").pvalue)
    below = stats.chi2(200).cdf((x**2).sum())
    assert variance.p_value == pytest.approx(2 * min(below, 1 - below))


def test_the_tail_of_cramer_and_von_mises_equals_tables():
    """Critical values of the limiting distribution (Csorgo and Faraway 1996, table 1)."""
    for level, value in ((0.1, 0.34730), (0.05, 0.46136), (0.01, 0.74346), (0.001, 1.16786)):
        assert cramer_von_mises_tail(value) == pytest.approx(level, rel=2e-4)
    assert cramer_von_mises_tail(1.999) == pytest.approx(cramer_von_mises_tail(2.001), rel=0.05)
    assert cramer_von_mises_tail(0.0) == 1.0


def test_dependent_draws_raise_no_more_alarms_than_stated():
    """100 slow chains at 5 %: more alarms than the limit have probability below 1e-6; without care nearly all fail."""
    rng = np.random.default_rng(1)
    chains = [autoregression(rng, 1000, 0.9) for _ in range(100)]
    careful = sum(goodness_of_fit(x, cdf=stats.norm, alpha=0.05).p_value < 0.05 for x in chains)
    careless = sum(goodness_of_fit(x, cdf=stats.norm, alpha=0.05, independent=True).p_value < 0.05 for x in chains)
    assert careful <= stats.binom.isf(1e-6, 100, 0.05)
    assert careless > 50


def test_wrong_targets_are_found_through_every_description():
    """The right one may fail once in a hundred, and does in three sets of draws with probability 1e-6."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(1500, 2))
    shifted = {
        "cdf": [stats.norm(0.3, 1), stats.norm],
        "reference": rng.normal([0.5, 0.0], 1.0, size=(500, 2)),
        "gradient": lambda point: -(point - np.array([0.4, 0.0])),
        "log_density": lambda point: -0.5 * float((point - np.array([0.4, 0.0])) @ (point - np.array([0.4, 0.0]))),
    }
    right = {
        "cdf": lambda: [stats.norm.cdf, None],
        "reference": lambda: rng.normal(size=(500, 2)),
        "gradient": lambda: lambda point: -point,
        "log_density": lambda: lambda point: -0.5 * float(point @ point),
    }
    for name in shifted:
        tries = (rng.normal(size=(1500, 2)) for _ in range(3))
        assert any(goodness_of_fit(own, **{name: right[name]()}, random_state=0).passed for own in tries), name
        assert not goodness_of_fit(x, **{name: shifted[name]}, random_state=0).passed, name


def test_counts_are_compared_with_probabilities():
    rng = np.random.default_rng(3)
    x = rng.poisson(1.5, size=800)
    p = {k: stats.poisson.pmf(k, 1.5) for k in range(20)}
    p[19] += 1 - sum(p.values())
    assert goodness_of_fit(x, probabilities=p, independent=True, alpha=1e-6).passed
    assert not goodness_of_fit(x, probabilities=np.append(np.full(8, 0.1), 0.2), independent=True).passed
    assert goodness_of_fit([0.0, 1.0, 7.0] * 20, probabilities=[0.5, 0.5]).p_value == 0.0


@pytest.mark.parametrize("distance", ["energy", "mmd"])
def test_permutation_distances_equal_their_definitions(distance):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(20, 2))
    scale = np.concatenate([x, y]).std(axis=0)
    a, b = x / scale, y / scale
    if distance == "energy":
        expected = 2 * cdist(a, b).mean() - cdist(a, a).mean() - cdist(b, b).mean()
    else:
        gaps = cdist(np.concatenate([a, b]), np.concatenate([a, b]))
        width = np.median(gaps[gaps > 0])
        k = lambda p, q: np.exp(-0.5 * (cdist(p, q) / width) ** 2).mean()  # noqa: E731
        expected = k(a, a) + k(b, b) - 2 * k(a, b)
    value, p_value = permutation_test(x, y, rng, distance, 99)
    assert value == pytest.approx(expected)
    assert 0.01 <= p_value <= 1


@pytest.mark.parametrize("distance", ["energy", "mmd"])
def test_permutation_p_values_have_their_level(distance):
    """200 tests at 10 %; more alarms than the limit have probability below 1e-6."""
    rng = np.random.default_rng(5)
    p = [permutation_test(*rng.normal(size=(2, 25, 1)), rng, distance, 99)[1] for _ in range(200)]
    assert sum(value <= 0.1 for value in p) <= stats.binom.isf(1e-6, 200, 0.1)


def test_the_stein_matrix_equals_differentiation():
    """The derivatives of the kernel by finite differences."""
    rng = np.random.default_rng(6)
    x, s = rng.normal(size=(2, 4, 3))
    h, step = 1.3, 1e-4

    def k(a, b):
        return (1 + ((a - b) ** 2).sum() / h**2) ** -0.5

    for i in range(4):
        for j in range(4):
            value = s[i] @ s[j] * k(x[i], x[j])
            for d in range(3):
                e = step * np.eye(3)[d]
                value += s[i, d] * (k(x[i], x[j] + e) - k(x[i], x[j] - e)) / (2 * step)
                value += s[j, d] * (k(x[i] + e, x[j]) - k(x[i] - e, x[j])) / (2 * step)
                corners = [k(x[i] + p * e, x[j] + q * e) * p * q for p in (1, -1) for q in (1, -1)]
                value += sum(corners) / (4 * step**2)
            assert stein_matrix(x, s, h)[i, j] == pytest.approx(value, abs=1e-5)


def test_the_stein_test_sees_tails_and_differences_give_the_gradient():
    rng = np.random.default_rng(7)
    heavy = rng.standard_t(3, size=600)
    assert not goodness_of_fit(heavy, gradient=lambda x: -x, independent=True, random_state=0).passed
    score = numerical_score(lambda x: -float(np.sum(x**4)))
    np.testing.assert_allclose(score(np.array([1.0, -2.0])), [-4.0, 32.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("draws", "settings", "message"),
    [
        (np.zeros(10), {}, "one of cdf"),
        (np.zeros((2, 2, 2, 2)), {"cdf": stats.norm}, "draws must have shape"),
        ([np.nan, 1.0], {"cdf": stats.norm}, "finite"),
        (np.zeros((10, 2)), {"cdf": stats.norm}, "for each of 2 coordinates, got 1"),
        (np.zeros((10, 2)), {"probabilities": [1.0]}, "one coordinate"),
        (np.zeros(10), {"probabilities": [0.5, 0.1]}, "sum to 1"),
        (np.random.default_rng(0).normal(size=(50, 2)), {"reference": np.zeros(9)}, "2 coordinates like draws, got 1"),
        (np.random.default_rng(0).normal(size=500), {"gradient": lambda x: [1.0, 2.0]}, "gradient must give 1"),
        (np.random.default_rng(0).normal(size=500), {"gradient": lambda x: [np.nan]}, "gradient must be finite"),
        (np.random.default_rng(0).normal(size=4), {"gradient": lambda x: -x}, "at least ten"),
    ],
)
def test_bad_input_is_refused(draws, settings, message):
    with pytest.raises(ValueError, match=message):
        goodness_of_fit(draws, **settings)


def test_the_name_of_a_distribution_is_no_distribution():
    with pytest.raises(ValueError, match="cdf must be a function, or a distribution"):
        goodness_of_fit(np.zeros(10) + np.arange(10), cdf="norm")


def test_a_result_is_shown_in_one_line_and_printed_as_a_table():
    result = goodness_of_fit(np.random.default_rng(0).normal(size=200), cdf=stats.norm)
    assert repr(result) == f"<FitResult: {result.headline()}>"
    assert str(result) == result.summary()
