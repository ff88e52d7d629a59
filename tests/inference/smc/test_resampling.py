"""Resampling schemes against their exact laws: expected counts, variances, support, special weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluri.inference.smc import (
    RESAMPLING_METHODS,
    ParticleDegeneracyError,
    effective_sample_size,
    normalize_log_weights,
    resample,
)

N, DRAWS = 50, 20_000


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(0).dirichlet(np.full(N, 0.5))


@pytest.fixture(scope="module")
def counts(weights):
    rng = np.random.default_rng(1)
    return {
        method: np.array([np.bincount(resample(weights, method, rng), minlength=N) for _ in range(DRAWS)])
        for method in RESAMPLING_METHODS
    }


@pytest.mark.parametrize("method", RESAMPLING_METHODS)
def test_expected_number_of_copies_is_n_times_the_weight(method, weights, counts):
    # Standard error of the mean count is at most sqrt(N w / DRAWS); 200 comparisons at 5 sigma: false alarm 1e-4.
    error = np.abs(counts[method].mean(axis=0) - N * weights)
    assert (error <= 5 * np.sqrt(N * weights / DRAWS) + 1e-12).all()
    assert (counts[method].sum(axis=1) == N).all()


def test_variances_of_the_resampled_mean_have_their_exact_values(weights, counts):
    values = np.random.default_rng(2).standard_normal(N)
    measured = {method: (table @ values / N).var() for method, table in counts.items()}
    mean = weights @ values
    multinomial = (weights @ values**2 - mean**2) / N
    rest = N * weights - np.floor(N * weights)
    left = rest.sum()
    residual = left / N**2 * (rest @ values**2 / left - (rest @ values / left) ** 2)
    # Stratified: independent draws, one from the part of the distribution that each interval covers.
    edges = np.concatenate([[0.0], np.cumsum(weights)])
    edges[-1] = 1.0
    stratified = 0.0
    for j in range(N):
        share = np.clip(np.minimum(edges[1:], (j + 1) / N) - np.maximum(edges[:-1], j / N), 0, None) * N
        stratified += (share @ values**2 - (share @ values) ** 2) / N**2
    # Systematic: a function of one uniform, integrated on a fine grid.
    grid = (np.arange(20_000) + 0.5) / 20_000
    points = (np.arange(N)[None, :] + grid[:, None]) / N
    systematic = values[np.searchsorted(edges[1:], points, side="right")].mean(axis=1).var()
    # A variance over 20,000 draws has a standard error of about one per cent: 6 % is far outside chance.
    for method, exact in (
        ("multinomial", multinomial),
        ("residual", residual),
        ("stratified", stratified),
        ("systematic", systematic),
    ):
        assert measured[method] == pytest.approx(exact, rel=0.06), method
    assert max(residual, stratified) < multinomial


def test_multinomial_counts_have_the_multinomial_covariance(weights, counts):
    exact = N * (np.diag(weights) - np.outer(weights, weights))
    assert np.abs(np.cov(counts["multinomial"].T) - exact).max() < 0.25


@pytest.mark.parametrize("method", RESAMPLING_METHODS)
def test_all_weight_on_one_particle_takes_only_that_one(method):
    for position in (0, 3, 6):
        weights = np.zeros(7)
        weights[position] = 1.0
        assert (resample(weights, method, 0) == position).all()


@pytest.mark.parametrize("method", ["systematic", "stratified", "residual"])
@pytest.mark.parametrize("n", [1, 3, 7, 49, 1000])
def test_equal_weights_keep_every_particle_once(method, n):
    for random_state in range(20):
        assert resample(np.full(n, 1 / n), method, random_state).tolist() == list(range(n))


@settings(max_examples=200, deadline=None)
@given(
    weights=st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1e6)), min_size=1, max_size=30),
    method=st.sampled_from(RESAMPLING_METHODS),
    n=st.integers(1, 60),
    random_state=st.integers(0, 1000),
)
def test_indices_ascend_and_never_take_a_particle_without_weight(weights, method, n, random_state):
    weights = np.array(weights)
    if not weights.any():
        weights[-1] = 1.0
    indices = resample(weights, method, random_state, n=n)
    assert indices.shape == (n,)
    assert (np.diff(indices) >= 0).all()
    assert (weights[indices] > 0).all()
    if method == "systematic":
        share = n * weights / weights.sum()
        copies = np.bincount(indices, minlength=weights.size)
        assert (np.abs(copies - share) < 1 + 1e-6).all()


@pytest.mark.parametrize("method", RESAMPLING_METHODS)
def test_scale_of_the_weights_does_not_matter_down_to_the_smallest_numbers(method):
    weights = np.array([0.25, 0.5, 0.25])
    reference = resample(weights, method, 0)
    assert (resample(weights * 1e-300, method, 0) == reference).all()
    assert (resample(weights * 2.0**400, method, 0) == reference).all()


def test_the_point_next_to_one_takes_the_last_particle_with_weight():
    from pluri.inference.smc import _kernels

    out = np.empty(3, dtype=np.int64)
    _kernels.invert_strata(np.array([0.1, 0.2, 0.7, 0.0]), np.array([1 - 2.0**-53]), out)
    assert out[-1] == 2
    _kernels.invert(np.array([0.1, 0.2, 0.7, 0.0]), np.array([0.0, 0.1, 1.0]), 3, out)
    assert out.tolist() == [0, 1, 2]


def test_same_random_state_gives_the_same_indices_and_weights_stay_untouched(weights):
    before = weights.copy()
    assert (resample(weights, random_state=5) == resample(weights, random_state=5)).all()
    assert (weights == before).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": [0.5, -0.1]}, "weights must be finite and not negative, got -0.1 at particle 1"),
        ({"weights": [0.5, np.nan]}, "got nan at particle 1"),
        ({"weights": [np.inf, 0.5]}, "got inf at particle 0"),
        ({"weights": [0.0, 0.0]}, "positive finite sum"),
        ({"weights": []}, "at least one entry"),
        ({"weights": [[0.5, 0.5]]}, r"got shape \(1, 2\)"),
        ({"weights": [1.0], "method": "roulette"}, "method must be one of"),
        ({"weights": [1.0], "n": 0}, "n must be an integer of at least 1, got 0"),
    ],
)
def test_wrong_input_is_refused_in_one_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        resample(**arguments)


def test_log_weights_are_normalised_without_overflow():
    weights, log_total = normalize_log_weights(np.array([1e4, 1e4 + np.log(3), -np.inf]))
    assert weights == pytest.approx([0.25, 0.75, 0.0])
    assert log_total == pytest.approx(1e4 + np.log(4))
    assert effective_sample_size(weights) == pytest.approx(1 / (0.25**2 + 0.75**2))


def test_log_weights_that_are_all_zero_or_nan_are_refused():
    with pytest.raises(ParticleDegeneracyError, match="all 2 log_weights are -inf"):
        normalize_log_weights([-np.inf, -np.inf])
    with pytest.raises(ValueError, match="got nan at particle 1"):
        normalize_log_weights([0.0, np.nan])
