"""Partitions, sticks and Dirichlet processes: enumeration, exact moments, and samples against them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln

from pluri.priors import Gamma
from pluri.processes import (
    ChineseRestaurantProcess,
    Dirichlet,
    DirichletProcess,
    PolyaUrn,
    StickBreaking,
    draw_concentration,
    draw_group_concentration,
    draw_log_dirichlet,
    draw_table_counts,
    log_stirling,
    sticks_to_weights,
    weights_to_sticks,
)


def partitions(n):
    """Every way to label n things, up to the names of the labels."""
    if n == 0:
        yield ()
        return
    for head in partitions(n - 1):
        for label in range(max(head, default=-1) + 2):
            yield (*head, label)


RESTAURANTS = [(1.0, 0.0), (2.5, 0.0), (0.1, 0.0), (1.0, 0.3), (0.0, 0.5), (-0.2, 0.6), (5.0, 0.9)]


@pytest.mark.parametrize(("alpha", "discount"), RESTAURANTS)
def test_probabilities_of_all_partitions_sum_to_one_and_give_the_moments(alpha, discount):
    restaurant = ChineseRestaurantProcess(alpha, discount)
    found = list(partitions(6))
    p = np.exp([restaurant.logpmf(labels) for labels in found])
    n_tables = np.array([max(labels) + 1 for labels in found])
    assert len(found) == 203
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert restaurant.expected_n_tables(6) == pytest.approx(p @ n_tables, abs=1e-10)
    assert restaurant.variance_n_tables(6) == pytest.approx(p @ n_tables**2 - (p @ n_tables) ** 2, abs=1e-9)
    assert restaurant.pmf_n_tables(6) == pytest.approx(np.bincount(n_tables, p, minlength=7), abs=1e-12)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.sampled_from(RESTAURANTS), st.randoms())
def test_seating_one_after_the_other_gives_the_same_probability_in_any_order(labels, parameters, random):
    restaurant = ChineseRestaurantProcess(*parameters)
    shuffled = list(labels)
    random.shuffle(shuffled)
    total, sizes = 0.0, {}
    for label in shuffled:
        p = restaurant.predictive(list(sizes.values()))
        total += np.log(p[list(sizes).index(label)] if label in sizes else p[-1])
        sizes[label] = sizes.get(label, 0) + 1
    assert restaurant.logpmf(labels) == pytest.approx(total, abs=1e-11)


@pytest.mark.parametrize(
    ("alpha", "n", "mean", "variance"),
    [
        (1, 100, 5.1874, 3.5524),
        (1, 1000, 7.4855, 5.8415),
        (2, 1000, 12.9729, 10.3972),
        (5, 1000, 27.0306, 21.5225),
        (10, 1000, 46.6546, 36.2370),
        (0.1, 1000, 1.7331, 0.7188),
    ],
)
def test_the_number_of_tables_has_its_known_moments(alpha, n, mean, variance):
    restaurant = ChineseRestaurantProcess(alpha)
    assert restaurant.expected_n_tables(n) == pytest.approx(mean, abs=5e-5)
    assert restaurant.variance_n_tables(n) == pytest.approx(variance, abs=5e-5)
    pmf = restaurant.pmf_n_tables(n)
    assert pmf.sum() == pytest.approx(1, abs=1e-10)
    assert pmf @ np.arange(n + 1) == pytest.approx(restaurant.expected_n_tables(n), rel=1e-10)


def test_the_number_of_tables_of_ten_customers_has_its_known_law():
    known = {
        1: [0.1, 0.28290, 0.32316, 0.19943, 0.07422, 0.01744, 0.00260, 0.00024, 0.00001, 0.0],
        2: [0.01818, 0.10287, 0.23503, 0.29008, 0.21591, 0.10145, 0.0303, 0.00558, 0.00058, 0.00003],
    }
    for alpha, expected in known.items():
        assert ChineseRestaurantProcess(alpha).pmf_n_tables(10)[1:] == pytest.approx(expected, abs=6e-6)


def test_stirling_numbers_count_permutations_by_cycles():
    assert np.exp(log_stirling(7)).round() == pytest.approx([0, 720, 1764, 1624, 735, 175, 21, 1])
    assert np.logaddexp.reduce(log_stirling(300)) == pytest.approx(gammaln(301))
    assert log_stirling(0) == pytest.approx([0.0])


@pytest.mark.parametrize(("alpha", "discount"), [(1.5, 0.0), (0.7, 0.4)])
def test_sampled_partitions_have_the_frequencies_of_their_probabilities(alpha, discount):
    # Chi-square over the 15 partitions of four, 20000 draws, false alarm 1e-6.
    restaurant, rng = ChineseRestaurantProcess(alpha, discount), np.random.default_rng(0)
    found = list(partitions(4))
    index = {labels: i for i, labels in enumerate(found)}
    counts = np.zeros(len(found))
    for _ in range(20_000):
        counts[index[tuple(restaurant.sample_partition(4, rng).tolist())]] += 1
    expected = 20_000 * np.exp([restaurant.logpmf(labels) for labels in found])
    assert stats.chisquare(counts, expected).pvalue > 1e-6


def test_sticks_and_restaurant_agree_on_the_number_of_clusters():
    # n = 10, 5000 draws, chi-square at 1e-6; tables of more than seven are pooled.
    rng = np.random.default_rng(1)
    gem, n_draws = StickBreaking(1.0), 5000
    counts = np.zeros(8)
    for weights in gem.sample(n_draws, tail_mass=1e-9, random_state=rng):
        drawn = np.searchsorted(np.cumsum(weights), rng.random(10))
        counts[min(len(set(drawn.tolist())), 7)] += 1
    pmf = ChineseRestaurantProcess(1.0).pmf_n_tables(10)
    expected = np.append(pmf[1:7], pmf[7:].sum()) * n_draws
    assert stats.chisquare(counts[1:], expected).pvalue > 1e-6


def test_sticks_have_their_known_means_and_lengths():
    assert StickBreaking(5).expected_weights(5).round(4).tolist() == [0.1667, 0.1389, 0.1157, 0.0965, 0.0804]
    assert StickBreaking(10).expected_weights(5).round(4).tolist() == [0.0909, 0.0826, 0.0751, 0.0683, 0.0621]
    assert (StickBreaking(5).n_sticks(1e-3), StickBreaking(10).n_sticks(1e-3)) == (38, 73)
    # 20000 draws, 5.5 standard errors for each of six means.
    weights = StickBreaking(5.0).sample(20_000, random_state=0)
    assert weights.sum(axis=1) == pytest.approx(np.ones(len(weights)))
    seen = np.column_stack([weights[:, :5], (weights**2).sum(axis=1)])
    expected = np.append(StickBreaking(5).expected_weights(5), 1 / 6)
    assert (np.abs(seen.mean(axis=0) - expected) < 5.5 * seen.std(axis=0) / np.sqrt(len(seen))).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_weights_and_sticks_are_inverse_to_each_other(sticks):
    weights = sticks_to_weights(sticks)
    left = 1.0
    for b, w in zip(sticks, weights):
        assert w == pytest.approx(b * left, abs=1e-12)
        left -= w
    assert sticks_to_weights(weights_to_sticks(weights)) == pytest.approx(weights, abs=1e-9)


@pytest.mark.parametrize("alpha", [0.3, 5.0, 200.0])
def test_breaking_goes_on_until_little_is_left(alpha):
    weights, left = StickBreaking(alpha).sample_until(1e-4, random_state=0)
    assert left < 1e-4
    assert weights.sum() + left == pytest.approx(1)
    assert weights[-1] + left >= 1e-4


@pytest.mark.parametrize(("alpha", "spread"), [(2.0, 0.28868), (50.0, 0.07001)])
def test_draws_of_a_process_scatter_around_the_base_as_they_should(alpha, spread):
    # 1500 distribution functions at three points; means and variances within 5.5 standard errors.
    process, rng = DirichletProcess(alpha, stats.norm()), np.random.default_rng(2)
    at = np.array([-1.0, 0.0, 0.7])
    draws = np.array([process.sample(random_state=rng).cdf(at) for _ in range(1500)])
    assert np.sqrt(process.variance_cdf(0.0)) == pytest.approx(spread, abs=1e-5)
    error = np.sqrt(process.variance_cdf(at) / len(draws))
    assert (np.abs(draws.mean(axis=0) - stats.norm.cdf(at)) < 5.5 * error).all()
    squares = (draws - stats.norm.cdf(at)) ** 2
    assert (np.abs(squares.mean(axis=0) - process.variance_cdf(at)) < 5.5 * squares.std(axis=0) / np.sqrt(1500)).all()


def test_the_posterior_of_a_partition_is_dirichlet():
    # Given 3 observations below zero and 1 above, G(below) ~ Beta(alpha/2 + 3, alpha/2 + 1): Kolmogorov, 1e-6.
    process = DirichletProcess(2.0, stats.norm()).posterior([-1.0, -1.0, -0.5, 2.0])
    rng = np.random.default_rng(3)
    below = [process.sample(random_state=rng).cdf(0.0) for _ in range(2000)]
    assert stats.kstest(below, stats.beta(1 + 3, 1 + 1).cdf).pvalue > 1e-6
    assert process.mean_cdf(0.0) == pytest.approx(4 / 6)
    assert process.concentration == 6.0


def test_simulating_and_conditioning_agree_on_the_posterior():
    # Draw (G, two observations); among those with both below zero, G(below) has the posterior law.
    prior, rng = DirichletProcess(1.5, stats.norm()), np.random.default_rng(4)
    kept = []
    for _ in range(6000):
        G = prior.sample(tail_mass=1e-4, random_state=rng)
        if (G.rvs(2, rng) < 0).all():
            kept.append(G.cdf(0.0))
    assert stats.kstest(kept, stats.beta(0.75 + 2, 0.75).cdf).pvalue > 1e-6


def test_limits_are_the_base_and_the_empirical_distribution():
    assert DirichletProcess(1e5, stats.norm()).sample(tail_mass=1e-2, random_state=0).cdf(0.5) == pytest.approx(
        stats.norm.cdf(0.5), abs=0.02
    )
    data = np.random.default_rng(5).uniform(size=20_000)
    draw = DirichletProcess(1.0, stats.norm()).posterior(data).sample(random_state=0)
    assert draw.cdf(0.3) == pytest.approx((data <= 0.3).mean(), abs=0.02)


def test_the_urn_has_the_base_as_margin_and_beta_shares():
    # Kolmogorov at 1e-6 each: the 5th ball, and the long-run share of the first colour.
    urn, rng = PolyaUrn(2.0, stats.norm()), np.random.default_rng(6)
    runs = [urn.sample(300, rng) for _ in range(1500)]
    assert stats.kstest([balls[4] for balls in runs], stats.norm.cdf).pvalue > 1e-6
    shares = [(balls == balls[0]).mean() for balls in runs]
    assert stats.kstest(shares, stats.beta(1, 2.0).cdf).pvalue > 1e-6
    balls = runs[0][:20]
    sizes = np.unique(balls, return_counts=True)[1]
    expected = len(sizes) * np.log(2.0) + gammaln(2.0) - gammaln(22.0) + gammaln(sizes).sum()
    assert urn.logpmf(balls) == pytest.approx(expected + stats.norm.logpdf(np.unique(balls)).sum(), abs=1e-12)
    assert urn.logpmf(balls[::-1]) == pytest.approx(urn.logpmf(balls), abs=1e-12)


def test_further_observations_follow_the_posterior():
    # P(the next ball is an observed one) = n / (alpha + n), 20000 draws, 5.5 standard errors.
    process = DirichletProcess(2.0, lambda rng, n: rng.normal(size=(n, 2))).posterior([[0.0, 1.0], [0.0, 1.0]])
    rng = np.random.default_rng(7)
    old = np.array([(process.sample_observations(1, rng)[0] == [0.0, 1.0]).all() for _ in range(20_000)])
    assert abs(old.mean() - 0.5) < 5.5 * 0.5 / np.sqrt(20_000)
    assert process.sample(random_state=0).atoms.shape[1] == 2


def test_concentrations_are_drawn_from_their_posterior():
    # The chain on alpha alone given n, K against the normalised density on a grid; 20000 steps thinned by 5.
    n, k, shape, rate = 30, 4, 2.0, 1.5
    rng, alpha, draws = np.random.default_rng(8), 1.0, []
    for _ in range(20_000):
        alpha = draw_concentration(rng, alpha, n, k, Gamma(shape, rate))
        draws.append(alpha)
    grid = np.linspace(1e-4, 25, 50_000)
    log_density = (shape - 1 + k) * np.log(grid) - rate * grid + gammaln(grid) - gammaln(grid + n)
    cdf = np.cumsum(np.exp(log_density - log_density.max()))
    assert stats.kstest(draws[::5], lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue > 1e-6


def test_the_concentration_of_groups_is_drawn_from_its_posterior():
    sizes, tables, prior = np.array([10, 20, 5]), 9, Gamma(1.0, 0.5)
    rng, alpha, draws = np.random.default_rng(9), 1.0, []
    for _ in range(20_000):
        alpha = draw_group_concentration(rng, alpha, sizes, tables, prior)
        draws.append(alpha)
    grid = np.linspace(1e-4, 40, 50_000)
    log_density = tables * np.log(grid) - 0.5 * grid + (gammaln(grid) - gammaln(grid + sizes[:, None])).sum(axis=0)
    cdf = np.cumsum(np.exp(log_density - log_density.max()))
    assert stats.kstest(draws[::5], lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue > 1e-6


def test_table_counts_have_the_law_of_a_restaurant():
    counts = draw_table_counts(np.random.default_rng(10), np.full(20_000, 6), 1.3)
    expected = 20_000 * ChineseRestaurantProcess(1.3).pmf_n_tables(6)
    assert stats.chisquare(np.bincount(counts, minlength=7)[1:], expected[1:]).pvalue > 1e-6
    assert draw_table_counts(np.random.default_rng(0), [[0, 3], [1, 0]], 1e-320).tolist() == [[0, 1], [1, 0]]


def test_the_dirichlet_law_has_its_moments_and_adds_up():
    # 40000 draws, 5.5 standard errors for 12 numbers.
    law = Dirichlet([0.5, 2.0, 5.0])
    x = law.rvs(40_000, random_state=0)
    for seen, expected in ((x, law.mean), ((x - law.mean) ** 2, law.variance), (np.log(x), law.expected_log)):
        assert (np.abs(seen.mean(axis=0) - expected) < 5.5 * seen.std(axis=0) / 200).all()
    assert stats.kstest(x[:, 0] + x[:, 1], stats.beta(2.5, 5.0).cdf).pvalue > 1e-6
    assert Dirichlet([2.0, 3.0]).logpdf([0.3, 0.7]) == pytest.approx(stats.beta(2, 3).logpdf(0.3))
    assert law.logpdf(x[:5]) == pytest.approx(stats.dirichlet(law.alpha).logpdf(x[:5].T))
    tiny = draw_log_dirichlet(np.random.default_rng(0), np.full(4, 1e-3), (1000,))
    assert np.isfinite(tiny).all()
    assert stats.chisquare(np.bincount(tiny.argmax(axis=1), minlength=4)).pvalue > 1e-6


def test_entropy_divergence_and_covariance_of_dirichlet_laws():
    # Against scipy, and means over 100000 draws within 5.5 standard errors.
    one, other = Dirichlet([0.7, 2.0, 5.0]), Dirichlet([3.0, 1.0, 0.5])
    assert one.entropy == pytest.approx(stats.dirichlet(one.alpha).entropy(), abs=1e-12)
    x = one.rvs(100_000, random_state=0)
    gap = one.logpdf(x) - other.logpdf(x)
    assert abs(gap.mean() - one.kl_divergence(other)) < 5.5 * gap.std() / np.sqrt(len(x))
    assert one.kl_divergence(one) == pytest.approx(0, abs=1e-12)
    assert one.covariance == pytest.approx(stats.dirichlet(one.alpha).cov(), abs=1e-12)
    assert np.diagonal(one.covariance) == pytest.approx(one.variance, abs=1e-14)
    assert one.aggregate([1, 0, 1]).alpha.tolist() == [2.0, 5.7]


def test_weights_of_sticks_have_their_variance():
    # 40000 draws, 5.5 standard errors of each of four variances.
    gem = StickBreaking(1.7)
    weights = gem.sample(40_000, random_state=1)[:, :4]
    squares = (weights - gem.expected_weights(4)) ** 2
    assert (np.abs(squares.mean(axis=0) - gem.variance_weights(4)) < 5.5 * squares.std(axis=0) / 200).all()
    everything = gem.variance_weights(2000) + gem.expected_weights(2000) ** 2
    assert everything.sum() == pytest.approx(gem.expected_sum_of_squares, abs=1e-12)


def test_the_law_on_intervals_is_that_of_draws():
    # Mean and variance of G((-1, 0.5]) for a posterior, 3000 draws, 5.5 standard errors.
    process = DirichletProcess(3.0, stats.norm()).posterior([-2.0, 0.0, 0.0, 4.0])
    law = process.partition_law([-1.0, 0.5])
    expected = 3 * np.diff([0, stats.norm.cdf(-1.0), stats.norm.cdf(0.5), 1]) + [1, 2, 1]
    assert law.alpha == pytest.approx(expected, abs=1e-12)
    rng = np.random.default_rng(12)
    drawn = [process.sample(random_state=rng) for _ in range(3000)]
    inside = np.array([np.diff(draw.cdf([-1.0, 0.5]))[0] for draw in drawn])
    assert abs(inside.mean() - law.mean[1]) < 5.5 * inside.std() / np.sqrt(3000)
    squares = (inside - law.mean[1]) ** 2
    assert abs(squares.mean() - law.variance[1]) < 5.5 * squares.std() / np.sqrt(3000)
    draw = drawn[0]
    assert draw.variance() == pytest.approx(draw.weights @ draw.atoms**2 - draw.mean() ** 2, abs=1e-10)


@pytest.mark.parametrize("alpha", [[1.0, 1.0, 1.0], [0.3, 5.0, 2.0], [40.0, 2.0, 1.0]])
def test_a_fitted_dirichlet_is_the_maximum_of_the_likelihood(alpha):
    x = Dirichlet(alpha).rvs(2000, random_state=1)
    fitted = Dirichlet.fit(x)
    best = fitted.logpdf(x).sum()
    assert best >= Dirichlet(alpha).logpdf(x).sum()
    for k in range(3):
        for factor in (0.99, 1.01):
            moved = fitted.alpha.copy()
            moved[k] *= factor
            assert Dirichlet(moved).logpdf(x).sum() < best
    assert fitted.alpha == pytest.approx(alpha, rel=0.15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ChineseRestaurantProcess(0.0), "alpha must be a positive number"),
        (lambda: ChineseRestaurantProcess(-0.5, 0.3), "alpha must be a number above -discount"),
        (lambda: ChineseRestaurantProcess(1.0, 1.0), "discount must be at least 0 and below 1"),
        (lambda: ChineseRestaurantProcess(1.0).sample_partition(-1), "n must be an integer of at least 0"),
        (lambda: ChineseRestaurantProcess(1.0).log_eppf([0, 1]), "sizes must be"),
        (lambda: ChineseRestaurantProcess(1.0).logpmf([[0, 1]]), "labels must have one axis"),
        (lambda: DirichletProcess(-1.0, stats.norm()), "alpha must be a positive number"),
        (lambda: DirichletProcess(1.0, 3).sample(), "base must have rvs"),
        (lambda: DirichletProcess(1.0, lambda rng, n: 0.0).sample(), "base must give"),
        (lambda: DirichletProcess(1.0, stats.norm()).posterior([]), "observations must have shape"),
        (lambda: DirichletProcess(1.0, stats.norm()).posterior([np.nan]), "observations must be finite"),
        (lambda: DirichletProcess(1.0, stats.norm()).posterior([[1.0, 2.0]]).sample(), "must look like the atoms"),
        (lambda: DirichletProcess(1.0, stats.norm()).sample(tail_mass=0), "tail_mass must lie between 0 and 1"),
        (lambda: StickBreaking(np.inf), "alpha must be a positive number"),
        (lambda: sticks_to_weights([1.5]), "sticks must be shares"),
        (lambda: weights_to_sticks([0.9, 0.9]), "weights must be at least 0"),
        (lambda: Dirichlet([1.0, 0.0]), "alpha must be one axis of positive numbers"),
        (lambda: Dirichlet.fit([[0.5, 0.5], [0.5, 0.5]]), "x must vary"),
        (lambda: Dirichlet([1.0, 2.0]).logpdf([0.5, 0.6]), "x must be probabilities"),
        (lambda: Dirichlet([1.0, 2.0]).kl_divergence(Dirichlet([1.0])), "other must have 2 outcomes"),
        (lambda: Dirichlet([1.0, 2.0]).aggregate([0.5, 1.0]), "groups must be"),
        (lambda: DirichletProcess(1.0, stats.norm()).partition_law([1.0, 0.0]), "edges must be"),
    ],
)
def test_wrong_input_gets_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
