"""Importance sampling: known variances, biases and coverage; Pareto tails against another library; abuse."""

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.inference.ais.importance import ImportanceSampler, importance_sample
from pluri.inference.ais.pareto_tail import fit_generalised_pareto, smooth_log_weights
from pluri.inference.ais.weighted_samples import WeightedSamples


def log_target(x):
    return -0.5 * (x[:, 0] - 1.0) ** 2


def log_proposal(x):
    return -0.5 * (x[:, 0] / 1.5) ** 2


def draw(rng, n):
    return rng.normal(0.0, 1.5, (n, 1))


def run(n, random_state, **settings):
    return importance_sample(log_target, draw, log_proposal, n, random_state=random_state, warn=False, **settings)


def first(x):
    return x[:, 0]


def test_errors_and_coverage_are_those_of_many_repeats():
    # 1000 repeats: the relative error of a variance is 4.5 %, and 25 % are five and a half of these; a coverage of .985
    # (the error is estimated) falls below 0.965 once in a million.
    repeats = [run(2000, seed) for seed in range(1000)]
    estimates = [samples.expect(first, ci=0.99) for samples in repeats]
    variance = np.var([estimate.value for estimate in estimates])
    assert variance == pytest.approx(5.69e-4, rel=0.25)
    assert np.mean([estimate.standard_error**2 for estimate in estimates]) == pytest.approx(5.79e-4, rel=0.03)
    assert 0.965 <= np.mean([estimate.low < 1.0 < estimate.high for estimate in estimates]) <= 1.0
    # n (E w)^2 / E w^2 by hand: E w^2 = 1.5 sqrt(1 / (2 - 1/2.25)) exp(2 / (2 - 1/2.25) - 1), up to a bias of order 1.
    precision = 2.0 - 1.0 / 2.25
    exact = 2000 / (1.5 * np.sqrt(1.0 / precision) * np.exp(2.0 / precision - 1.0))
    assert np.mean([samples.ess for samples in repeats]) == pytest.approx(exact, rel=0.003)
    assert min(samples.ess for samples in repeats) < 1222 < max(samples.ess for samples in repeats)
    errors = [samples.log_z - np.log(1 / 1.5) for samples in repeats]
    assert np.std(errors) == pytest.approx(np.mean([samples.log_z_se for samples in repeats]), rel=0.13)


@pytest.mark.parametrize(("n", "mean"), [(2, 0.572), (5, 0.878), (20, 0.976)])
def test_the_self_normalised_mean_is_biased_as_known_while_the_constant_is_not(n, mean):
    rng = np.random.default_rng(0)
    repeats = [run(n, rng) for _ in range(6000)]
    # Five standard errors: a false alarm in 2 million.
    values = np.array([samples.expect(first).value for samples in repeats])
    assert abs(values.mean() - mean) < 5 * values.std() / np.sqrt(6000) + 0.005
    ratios = np.exp([samples.log_z for samples in repeats])
    assert abs(ratios.mean() - 1 / 1.5) < 5 * ratios.std() / np.sqrt(6000)


def test_both_forms_of_the_effective_sample_size_are_equal():
    samples = run(2000, 3)
    weights = np.exp(samples.log_weights)
    assert samples.ess == pytest.approx(2000 / (1 + np.var(weights / weights.mean())), rel=1e-12)
    relative = np.sqrt((np.mean(weights**2) / np.mean(weights) ** 2 - 1) / 2000)
    assert samples.log_z_se == pytest.approx(relative, rel=1e-12)


def test_the_target_as_proposal_gives_equal_weights():
    samples = importance_sample(log_target, lambda rng, n: rng.normal(1, 1, (n, 1)), log_target, 300, random_state=0)
    assert samples.ess == pytest.approx(300, rel=1e-12)
    assert samples.log_z == pytest.approx(0.0, abs=1e-12)
    assert samples.log_z_se == pytest.approx(0.0, abs=1e-6)
    assert samples.diagnose() == []


def test_scaling_the_target_shifts_only_the_constant():
    plain, scaled = run(500, 1), importance_sample(
        lambda x: log_target(x) - 2000.0, draw, log_proposal, 500, random_state=1, warn=False
    )  # fmt: skip
    assert scaled.log_z == pytest.approx(plain.log_z - 2000.0, abs=1e-9)
    assert scaled.expect().value == pytest.approx(plain.expect().value, abs=1e-9)


def test_one_point_at_a_time_gives_the_same():
    rows = importance_sample(
        lambda x: -0.5 * (x[0] - 1) ** 2, draw, lambda x: -0.5 * (x[0] / 1.5) ** 2, 100, vectorized=False,
        random_state=2, warn=False,
    )  # fmt: skip
    together = run(100, 2)
    np.testing.assert_allclose(rows.log_weights, together.log_weights, rtol=1e-12)
    one_by_one = together.expect(lambda point: point[0] ** 2, vectorized=False)
    assert one_by_one.value == pytest.approx(together.expect(lambda x: x[:, 0] ** 2).value)


def test_the_sampler_is_the_function():
    sampler = ImportanceSampler(log_target, draw, log_proposal, random_state=4, warn=False)
    np.testing.assert_array_equal(sampler.run(50).log_weights, run(50, 4).log_weights)


def test_resampled_points_follow_the_target():
    samples = run(20_000, 5)
    points = samples.resample(5000, random_state=0)[:, 0]
    # Ties and the first sample's own error make the test a little anti-conservative: 1e-7, to be safe at 1e-6.
    assert stats.kstest(np.random.default_rng(0).permutation(points)[:1000], stats.norm(1, 1).cdf).pvalue > 1e-7
    trace = samples.to_trace(400, random_state=0)
    assert trace["x"].shape == (1, 400, 1)


def test_points_of_weight_zero_may_have_any_value():
    samples = WeightedSamples(np.array([[1.0], [2.0], [np.nan]]), np.array([0.0, 0.0, -np.inf]))
    assert samples.expect(lambda x: x[:, 0]).value == 1.5
    assert samples.lower_bound == -np.inf


def test_the_lorenz_curve_of_equal_weights_is_the_diagonal():
    points, shares = WeightedSamples(np.zeros((4, 1)), np.zeros(4)).lorenz()
    np.testing.assert_allclose(points, shares)


@pytest.mark.parametrize("shape", [-0.3, 0.2, 0.6, 1.2])
def test_the_tail_fit_recovers_the_shape(shape):
    excess = stats.genpareto(shape, scale=2.0).rvs(5000, random_state=np.random.default_rng(1))
    found, scale = fit_generalised_pareto(excess)
    # Standard error (1 + k) / sqrt(n): five of them.
    assert found == pytest.approx(shape, abs=5 * (1 + shape) / np.sqrt(5000))
    assert scale == pytest.approx(2.0, rel=0.2)


@pytest.mark.parametrize("sd", [0.5, 1.0, 2.5])
def test_pareto_smoothing_agrees_with_arviz(sd, psislw_of_arviz):
    # The tail is 3 sqrt(n) weights, rounded up until ArviZ 0.23 and down since: 1600 need no rounding.
    log_weights = np.random.default_rng(2).normal(0, sd, 1600)
    theirs, shape = psislw_of_arviz(log_weights.copy())
    ours = WeightedSamples(np.zeros((1600, 1)), log_weights)
    assert ours.pareto_k == pytest.approx(float(shape), abs=1e-6)
    smoothed = ours.smoothed()
    np.testing.assert_allclose(np.log(smoothed.weights), np.asarray(theirs), atol=1e-6)
    assert smoothed.log_z == pytest.approx(ours.log_z, abs=1e-9)


def test_the_shape_of_no_tail_few_weights_and_one_giant():
    assert smooth_log_weights(np.zeros(100))[1] == -np.inf
    assert np.isnan(smooth_log_weights(np.arange(10.0))[1])
    giant = np.zeros(100)
    giant[7] = 50.0
    assert smooth_log_weights(giant)[1] == np.inf


def test_a_poor_proposal_is_warned_of_in_words():
    with pytest.warns(ConvergenceWarning) as caught:
        importance_sample(
            lambda x: -0.5 * ((x - 4) ** 2).sum(1), lambda rng, n: rng.normal(size=(n, 5)),
            lambda x: -0.5 * (x**2).sum(1), 2000, random_state=0,
        )  # fmt: skip
    text = " ".join(str(warning.message) for warning in caught)
    assert "effective" in text
    assert "heavy tail" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_target": lambda x: np.full(len(x), -np.inf)}, "log_target is -inf at all 50 draws of sample_proposal"),
        (
            {"log_target": lambda x: np.full(len(x), np.nan)},
            "log_target must be a number below infinity, got nan at 50",
        ),
        ({"log_target": lambda x: x}, r"log_target must give one number for each of 50 points.*\(50, 1\)"),
        ({"log_target": lambda x: np.zeros(len(x))}, "log_target is the same everywhere"),
        ({"log_target": 3}, "log_target must be a function, got int"),
        ({"log_proposal": lambda x: np.where(x[:, 0] > 0, 0.0, -np.inf)}, "log_proposal must be finite at the draws"),
        ({"sample_proposal": lambda rng, n: rng.normal(size=n)}, r"shape \(50, d\), got shape \(50,\); for one"),
        ({"sample_proposal": lambda rng, n: np.full((n, 1), np.nan)}, "sample_proposal must give finite numbers"),
        ({"n": 0}, "n must be an integer of at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(change, message):
    settings = {"log_target": log_target, "sample_proposal": draw, "log_proposal": log_proposal, "n": 50} | change
    with pytest.raises(ValueError, match=message):
        importance_sample(**settings, random_state=0)


def test_a_target_that_is_flat_on_a_bounded_set_is_fine():
    samples = importance_sample(
        lambda x: np.where((x > 0) & (x < 1), 0.0, -np.inf)[:, 0], lambda rng, n: rng.beta(1.5, 1.5, (n, 1)),
        lambda x: np.log(8 / np.pi * np.sqrt(x[:, 0] * (1 - x[:, 0]))), 4000, random_state=0, warn=False,
    )  # fmt: skip
    # The weights have a variance of pi^2 / 8 - 1: a standard error of 0.008. They have a long tail too, so that one of
    # 400, which alone would make 0.1, comes once in 80 000 runs.
    assert samples.log_z == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize(
    ("x", "log_weights", "message"),
    [
        (np.zeros((2, 1)), [0.0], "as long"),
        (np.zeros((1, 1)), [np.nan], "not NaN"),
        (np.zeros((2, 1)), [-np.inf, -np.inf], "every weight is zero"),
    ],
)
def test_wrong_weights_are_refused(x, log_weights, message):
    with pytest.raises(ValueError, match=message):
        WeightedSamples(x, np.array(log_weights))


def test_a_function_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="a value for each of 50 points"):
        run(50, 0).expect(lambda x: 1.0)
    with pytest.raises(ValueError, match="ci must be a number above 0 and below 1"):
        run(50, 0).expect(ci=1.0)


def test_ctrl_c_keeps_the_batches_that_are_complete():
    calls = []

    def interrupted(x):
        calls.append(len(x))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return log_target(x)

    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 30 of 100 draws"):
        samples = importance_sample(
            interrupted, draw, log_proposal, 100, batch_size=10, random_state=0, warn=False
        )  # fmt: skip
    assert samples.interrupted
    assert len(samples) == 30
    np.testing.assert_allclose(samples.log_weights[:10], run(10, 0).log_weights)
    with pytest.raises(KeyboardInterrupt):
        importance_sample(lambda x: (_ for _ in ()).throw(KeyboardInterrupt), draw, log_proposal, 10)
