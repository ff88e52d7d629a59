"""Smoothers against the Rauch-Tung-Striebel smoother."""

import numpy as np
import pytest

from pluri import on_interrupt
from pluri.dynamics import LinearGaussianModel, kalman_filter, kalman_smoother, make_maneuvering_target
from pluri.inference.smc import (
    CompiledModel,
    ancestral_paths,
    backward_simulation,
    fixed_lag_smoother,
    particle_filter,
    smoothing,
)


@pytest.fixture(scope="module")
def model():
    return LinearGaussianModel(0.9, 1.0, 1.0, 1.0, 0.0, 5.0)


@pytest.fixture(scope="module")
def observations(model):
    return model.sample(40, random_state=0)[1]


@pytest.fixture(scope="module")
def result(model, observations):
    return particle_filter(model, observations, 500, random_state=0, store="paths")


def z_scores(values, exact):
    """How many standard errors the mean of independent runs (runs, ...) is off."""
    return np.abs(values.mean(axis=0) - exact) / (values.std(axis=0, ddof=1) / np.sqrt(len(values)))


@pytest.mark.parametrize("method", ["exact", "rejection"])
def test_backward_simulation_has_the_moments_of_the_exact_smoother(model, observations, method):
    observations = observations[:15]
    exact = kalman_smoother(model, observations)
    # Smoothed covariance of neighbours: G_t P_{t+1}, with the gain of the smoother.
    filtered = kalman_filter(model, observations)
    gain = 0.9 * filtered.covariance[:-1, 0, 0] / filtered.predicted_covariance[1:, 0, 0]
    together = gain * exact.covariance[1:, 0, 0]
    means, variances, products = [], [], []
    for i in range(25):
        clouds = particle_filter(model, observations, 300, random_state=i)
        paths = backward_simulation(model, clouds, 200, method, random_state=i)[:, :, 0] - exact.mean
        means.append(paths.mean(axis=1))
        variances.append((paths**2).mean(axis=1))
        products.append((paths[1:] * paths[:-1]).mean(axis=1))
    # Student's t with 24 degrees of freedom goes beyond 7.5 once in ten million; 44 comparisons: false alarm 4e-6.
    assert (z_scores(np.array(means), np.zeros(15)) < 7.5).all()
    assert (z_scores(np.array(variances), exact.covariance[:, 0, 0]) < 7.5).all()
    assert (z_scores(np.array(products), together) < 7.5).all()


def test_both_methods_have_the_same_law_when_all_is_known_by_enumeration(model):
    # Three particles, two steps: the probabilities of the nine paths are known.
    short = particle_filter(model, [0.3, -0.4], 3, random_state=0)
    weights, particles = short.weights, short.particles
    table = np.array(
        [
            [
                weights[1, j]
                * weights[0, i]
                * np.exp(model.log_transition(particles[1, j : j + 1], particles[0, i : i + 1], 1)[0])
                for j in range(3)
            ]
            for i in range(3)
        ]
    )
    table = table / table.sum(axis=0) * weights[1]
    for method in ("exact", "rejection"):
        paths = backward_simulation(model, short, 20_000, method, random_state=0)
        counts = [
            [((paths[0, :, 0] == particles[0, i, 0]) & (paths[1, :, 0] == particles[1, j, 0])).mean() for j in range(3)]
            for i in range(3)
        ]
        # Standard error at most 0.0035.
        assert np.array(counts) == pytest.approx(table, abs=0.018)


def test_rejection_that_gives_up_still_has_the_right_law(model, monkeypatch):
    short = particle_filter(model, [0.3, -0.4, 2.0], 100, random_state=0)
    exact = backward_simulation(model, short, 20_000, random_state=0)
    monkeypatch.setattr(smoothing, "ROUNDS", 1)
    paths = backward_simulation(model, short, 20_000, "rejection", random_state=1)
    # Two means of 20,000 draws, of spread below 1: standard error of the difference 0.01.
    assert paths.mean(axis=1) == pytest.approx(exact.mean(axis=1), abs=0.05)
    assert paths.var(axis=1) == pytest.approx(exact.var(axis=1), rel=0.1)


@pytest.mark.parametrize("lag", [0, 1, 4])
def test_fixed_lag_equals_the_smoother_that_ends_there(model, observations, lag):
    observations = observations[:15]
    ends = [kalman_smoother(model, observations[: t + lag + 1]) for t in range(15)]
    mean, variance = (
        np.array([getattr(end, name)[t].ravel() for t, end in enumerate(ends)]) for name in ("mean", "covariance")
    )
    runs = [
        fixed_lag_smoother(particle_filter(model, observations, 1000, random_state=i, store="paths"), lag)
        for i in range(25)
    ]
    assert (z_scores(np.array([run[0] for run in runs]), mean) < 7.5).all()
    # The variance within a cloud is low by the variance of its mean: a bias of one over the particles that count.
    assert np.mean([run[1] for run in runs], axis=0) == pytest.approx(variance, rel=0.05)


def test_ancestral_paths_follow_the_parents(result):
    paths = ancestral_paths(result)
    assert (paths[-1] == result.particles[-1]).all()
    index = 17
    for t in range(result.n_steps - 1, -1, -1):
        assert (paths[t, 17] == result.particles[t, index]).all()
        index = result.ancestors[t, index]
    # Histories merge: the first states have fewer values than the last ones.
    assert len(np.unique(paths[0])) < len(np.unique(paths[-1])) / 10
    assert (ancestral_paths(result, np.array([17]))[:, 0] == paths[:, 17]).all()


def test_switching_systems_are_smoothed_with_their_regimes():
    model = make_maneuvering_target()
    gains = []
    for seed in range(20):  # what comes later helps on average, not every time
        states, observations = model.sample(40, random_state=seed)
        result = particle_filter(model, observations, 300, random_state=0)
        paths = backward_simulation(model, result, 50, random_state=0)
        filtered = np.square(result.mean[:, 1:] - states[:, 1:]).mean()
        gains.append(np.log(filtered / np.square(paths[:, :, 1:].mean(axis=1) - states[:, 1:]).mean()))
    assert np.mean(gains) > 0


def test_a_compiled_model_is_smoothed_through_its_own_density(model, observations):
    def initial(rng, parameters, state):
        state[0] = np.sqrt(5.0) * rng.standard_normal()

    def transition(rng, t, parameters, old, new):
        new[0] = 0.9 * old[0] + rng.standard_normal()

    def log_density(t, parameters, observation, state):
        return -0.5 * (observation[0] - state[0]) ** 2 - 0.9189385332046727

    def log_move(t, parameters, old, new):
        return -0.5 * (new[0] - 0.9 * old[0]) ** 2 - 0.9189385332046727

    own = CompiledModel(initial, transition, log_density, log_transition_density=log_move)
    short = observations[:10]
    mine = particle_filter(own, short, 100, random_state=0)
    expected = particle_filter(model, short, 100, random_state=0)
    paths = backward_simulation(own, mine, 20, random_state=0)
    assert paths == pytest.approx(backward_simulation(model, expected, 20, random_state=0))
    plain = CompiledModel(initial, transition, log_density)
    with pytest.raises(TypeError, match="backward simulation needs a model with log_transition"):
        backward_simulation(plain, mine)


def test_what_was_not_stored_is_asked_for(model, observations):
    moments = particle_filter(model, observations, 20, random_state=0, store="moments")
    with pytest.raises(ValueError, match="result must hold all clouds"):
        backward_simulation(model, moments)
    with pytest.raises(ValueError, match="filter with store='paths'"):
        ancestral_paths(moments)
    with pytest.raises(ValueError, match="filter with store='paths'"):
        fixed_lag_smoother(moments, 2)


def test_interrupted_simulation_keeps_complete_paths(model, observations, result, monkeypatch):
    original = smoothing._backward_paths
    calls = []

    def interrupt(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(smoothing, "PAIRS", 500 * 5)
    monkeypatch.setattr(smoothing, "_backward_paths", interrupt)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 10 paths"):
        paths = backward_simulation(model, result, 50, random_state=0)
    assert paths.shape == (40, 10, 1)


def test_a_bound_that_is_none_is_refused(result):
    class Wrong(LinearGaussianModel):
        def log_transition_bound(self, t):
            return -5.0

    with pytest.raises(ValueError, match="log_transition_bound is exceeded"):
        backward_simulation(Wrong(0.9, 1.0, 1.0, 1.0, 0.0, 5.0), result, 10, "rejection", random_state=0)
