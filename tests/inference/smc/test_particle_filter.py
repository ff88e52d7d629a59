"""Particle filters against the Kalman filter, the forward algorithm of a hidden Markov model, and their own laws."""

import math

import numpy as np
import pytest

from pluri import on_interrupt
from pluri.dynamics import LinearGaussianModel, StochasticVolatility, kalman_filter
from pluri.inference.smc import (
    RESAMPLING_METHODS,
    CompiledModel,
    ParticleDegeneracyError,
    ParticleFilter,
    particle_filter,
)
from pluri.inference.smc import filter as filter_module

PROPOSALS = ("bootstrap", "guided", "auxiliary")


@pytest.fixture(scope="module")
def scalar():
    model = LinearGaussianModel(0.9, 1.0, 1.0, 0.5, 0.0, 5.0)
    return model, model.sample(40, random_state=0)[1]


@pytest.fixture(scope="module")
def plane():
    model = LinearGaussianModel(
        [[0.9, 0.2], [-0.1, 0.8]],
        0.3 * np.eye(2),
        [[1.0, 0.0], [1.0, 1.0], [0.0, 0.5]],
        0.5 * np.eye(3),
        [1.0, 2.0],
        np.eye(2),
        [0.1, 0.2],
        [1.0, 2.0, 3.0],
    )
    return model, model.sample(30, random_state=1)[1]


class Chain:
    """A hidden Markov model with two symbols, as particles."""

    transition = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4]])
    emission = np.array([[0.9, 0.1], [0.5, 0.5], [0.05, 0.95]])

    def sample_initial(self, rng, n):
        return rng.integers(3, size=n)

    def sample_transition(self, rng, particles, t):
        return (np.cumsum(self.transition, axis=1)[particles] <= rng.random((len(particles), 1))).sum(axis=1)

    def log_observation(self, observation, particles, t):
        return np.log(self.emission[particles, int(observation)])


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_evidence_is_unbiased_over_a_hundred_runs(scalar, proposal):
    model, observations = scalar
    exact = kalman_filter(model, observations).log_evidence
    n = 1000 if proposal == "bootstrap" else 300
    logs = np.array(
        [particle_filter(model, observations, n, proposal=proposal, random_state=i).log_evidence for i in range(100)]
    )
    ratios = np.exp(logs - exact)
    # Five and a half standard errors: false alarm 3e-7.
    assert abs(ratios.mean() - 1) < 5.5 * ratios.std(ddof=1) / 10
    # The logarithm itself is low by half its variance.
    assert abs(logs.mean() + logs.var() / 2 - exact) < 5.5 * logs.std(ddof=1) / 10


@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("case", ["scalar", "plane"])
def test_filtered_moments_approach_the_kalman_filter(case, proposal, request):
    model, observations = request.getfixturevalue(case)
    exact = kalman_filter(model, observations)
    result = particle_filter(model, observations, 10_000, proposal=proposal, random_state=0)
    spread = np.sqrt(np.diagonal(exact.covariance, axis1=1, axis2=2))
    # About ten standard errors of ten thousand particles.
    assert (np.abs(result.mean - exact.mean) < 0.1 * spread).all()
    assert result.variance == pytest.approx(spread**2, rel=0.2)
    assert result.log_evidence == pytest.approx(exact.log_evidence, abs=0.6)


def test_variance_of_the_log_evidence_falls_as_one_over_the_number_of_particles(scalar):
    model, observations = scalar

    def variance(n):
        return np.var([particle_filter(model, observations, n, random_state=i).log_evidence for i in range(200)])

    # The ratio of two variances from 200 runs each has a relative error of 14 %; limits at five of them.
    assert 8 / 2 < variance(250) / variance(2000) < 8 * 2


@pytest.mark.parametrize("resampling", RESAMPLING_METHODS)
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_every_resampling_scheme_and_threshold_estimates_the_same_evidence(scalar, resampling, threshold):
    model, observations = scalar
    observations = observations[:8]
    exact = kalman_filter(model, observations).log_evidence
    ratios = np.exp(
        [
            particle_filter(model, observations, 500, resampling, threshold, random_state=i).log_evidence - exact
            for i in range(100)
        ]
    )
    # Twelve comparisons at six standard errors: false alarm 4e-7.
    assert abs(ratios.mean() - 1) < 6 * ratios.std(ddof=1) / 10


@pytest.mark.parametrize("resampling", RESAMPLING_METHODS)
@pytest.mark.parametrize("store", ["moments", "marginals", "paths"])
@pytest.mark.parametrize("case", ["scalar", "plane", "volatility"])
def test_compiled_loop_equals_the_loop_over_time(case, store, resampling, request):
    if case == "volatility":
        model = StochasticVolatility()
        observations = model.sample(40, random_state=0)[1].copy()
    else:
        model, observations = request.getfixturevalue(case)
        observations = observations.copy()
    observations[10:13] = np.nan
    settings = {"resampling": resampling, "store": store, "random_state": 3, "n_particles": 151}
    fast = particle_filter(model, observations, **settings)
    slow = particle_filter(model, observations, compiled=False, **settings)
    for name in ("increments", "ess", "mean", "variance", "particles", "log_weights"):
        assert getattr(fast, name) == pytest.approx(getattr(slow, name), rel=1e-7, abs=1e-9), name
    assert (fast.resampled == slow.resampled).all()
    if store == "paths":
        assert (fast.ancestors == slow.ancestors).all()
    else:
        assert fast.ancestors is None


def test_blocks_of_the_compiled_loop_do_not_show(scalar, monkeypatch):
    model, observations = scalar
    whole = particle_filter(model, observations, 200, random_state=0, store="paths")
    monkeypatch.setattr(filter_module, "BLOCK", 1400)
    cut = particle_filter(model, observations, 200, random_state=0, store="paths")
    assert (whole.particles == cut.particles).all()
    assert whole.log_evidence == cut.log_evidence


def test_discrete_states_approach_the_forward_algorithm():
    model = Chain()
    symbols = np.random.default_rng(0).integers(2, size=30)
    forward = np.full(3, 1 / 3)
    log_evidence, exact = 0.0, []
    for t, symbol in enumerate(symbols):
        forward = (forward @ model.transition if t else forward) * model.emission[:, symbol]
        log_evidence += math.log(forward.sum())
        forward /= forward.sum()
        exact.append(forward)
    result = particle_filter(model, symbols, 20_000, random_state=0)
    shares = np.stack([(result.weights * (result.particles == k)).sum(axis=1) for k in range(3)], axis=1)
    assert shares == pytest.approx(np.array(exact), abs=0.02)
    assert result.log_evidence == pytest.approx(log_evidence, abs=0.1)


def test_missing_rows_leave_the_weights_and_the_evidence_alone(scalar):
    model, observations = scalar
    observations = observations.copy()
    observations[[0, 7, 8, -1]] = np.nan
    exact = kalman_filter(model, observations)
    for proposal in PROPOSALS:
        result = particle_filter(model, observations, 10_000, proposal=proposal, random_state=0)
        assert (result.increments[[0, 7, 8, -1]] == 0).all()
        assert result.log_evidence == pytest.approx(exact.log_evidence, abs=0.5)
        assert result.mean == pytest.approx(exact.mean, abs=0.25)


def test_a_row_seen_in_part_counts_for_what_was_seen(plane):
    model, observations = plane
    observations = observations.copy()
    observations[3, 1] = observations[5, 0] = np.nan
    exact = kalman_filter(model, observations)
    for proposal in PROPOSALS:
        result = particle_filter(model, observations, 10_000, proposal=proposal, random_state=0)
        assert result.log_evidence == pytest.approx(exact.log_evidence, abs=0.5)


def test_weights_add_up_and_ess_and_moments_follow_from_the_clouds(plane):
    model, observations = plane
    result = particle_filter(model, observations, 300, random_state=0, store="paths")
    assert result.weights.sum(axis=1) == pytest.approx(np.ones(30))
    assert result.ess == pytest.approx(1 / (result.weights**2).sum(axis=1))
    assert result.mean == pytest.approx(np.einsum("tn,tnd->td", result.weights, result.particles))
    assert (result.resampled[1:] == (result.ess[:-1] < 150)).all()
    assert (result.ancestors[~result.resampled] == np.arange(300)).all()
    assert result.log_evidence == pytest.approx(result.increments.sum())


def test_a_stream_gives_what_the_whole_sequence_gives(scalar):
    model, observations = scalar
    for proposal in PROPOSALS:
        batch = particle_filter(model, observations, 200, proposal=proposal, random_state=4, compiled=False)
        stream = ParticleFilter(model, 200, proposal=proposal, random_state=4)
        clouds = [stream.update(row) for row in observations]
        assert [cloud.increment for cloud in clouds] == batch.increments.tolist()
        assert stream.log_evidence == pytest.approx(batch.log_evidence)
        assert (clouds[-1].particles == batch.particles[-1]).all()


def test_a_stream_that_meets_the_impossible_stays_usable():
    class Bounded(Chain):
        def log_observation(self, observation, particles, t):
            return np.where(particles == observation, 0.0, -np.inf)

    stream = ParticleFilter(Bounded(), 50, random_state=0)
    stream.update(1)
    with pytest.raises(ParticleDegeneracyError, match="time step 1") as caught:
        stream.update(99)
    assert caught.value.t == 1
    stream.update(1)
    assert stream.n_steps == 2


@pytest.mark.parametrize("compiled", [True, False])
def test_all_weights_zero_names_the_time_step(scalar, compiled):
    model, observations = scalar
    observations = observations.copy()
    observations[5] = 1e200
    with pytest.raises(ParticleDegeneracyError, match="all 100 particles have weight zero at time step 5") as caught:
        particle_filter(model, observations, 100, random_state=0, compiled=compiled)
    assert caught.value.t == 5


def broken(**methods):
    return type("Broken", (Chain,), {name: staticmethod(method) for name, method in methods.items()})()


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (
            {"log_observation": lambda y, x, t: np.full(len(x), np.nan if t == 2 else 0.0)},
            "log_observation must return numbers below infinity, got nan at time step 2",
        ),
        ({"log_observation": lambda y, x, t: np.full(len(x), np.inf)}, "got inf at time step 0"),
        ({"log_observation": lambda y, x, t: 0.0}, r"log_observation must return shape \(20,\), got \(\)"),
        ({"log_observation": lambda y, x, t: np.zeros((len(x), 1))}, r"got \(20, 1\) at time step 0"),
        ({"sample_initial": lambda rng, n: np.zeros(3)}, "sample_initial must return 20 particles"),
        ({"sample_transition": lambda rng, x, t: x[:2]}, r"got shape \(2,\) at time step 1"),
    ],
)
def test_a_model_that_returns_nonsense_is_told_so(methods, message):
    with pytest.raises(ValueError, match=message):
        particle_filter(broken(**methods), np.zeros(4), 20, random_state=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_particles": 0}, "n_particles must be an integer of at least 1, got 0"),
        ({"n_particles": 2.5}, "n_particles must be"),
        ({"ess_threshold": 1.5}, "ess_threshold must be between 0 and 1, got 1.5"),
        ({"resampling": "none"}, "resampling must be one of"),
        ({"proposal": "optimal"}, "proposal must be one of 'bootstrap', 'guided', 'auxiliary', got 'optimal'"),
        ({"store": "all"}, "store must be one of"),
        ({"observations": []}, "at least one row"),
        ({"observations": np.zeros((3, 2))}, r"observations must have shape \(n_steps, 1\), got \(3, 2\)"),
        ({"observations": ["a"]}, "observations must be numbers"),
    ],
)
def test_wrong_settings_are_refused_in_one_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        particle_filter(StochasticVolatility(), **({"observations": np.zeros(5)} | settings))


def test_a_proposal_that_the_model_does_not_support_is_named():
    with pytest.raises(TypeError, match="proposal='guided' needs a model with log_transition, sample_proposal"):
        particle_filter(Chain(), np.zeros(3), proposal="guided")
    with pytest.raises(TypeError, match="a particle filter needs a model with sample_initial"):
        particle_filter(object(), np.zeros(3))


def test_a_prior_without_width_and_a_state_without_noise_are_fine():
    model = LinearGaussianModel(0.9, 0.0, 1.0, 1.0, 2.0, 0.0)
    observations = np.array([1.0, 2.0, 0.5])
    result = particle_filter(model, observations, 10, random_state=0)
    assert result.log_evidence == pytest.approx(kalman_filter(model, observations).log_evidence)
    assert (result.variance == 0).all()
    with pytest.raises(ValueError, match="transition_covariance must be positive definite"):
        particle_filter(model, observations, 10, proposal="guided")


def test_a_constant_density_keeps_all_weights_equal():
    class Blind(Chain):
        def log_observation(self, observation, particles, t):
            return np.full(len(particles), -1e4)

    result = particle_filter(Blind(), np.zeros(10), 64, random_state=0)
    assert result.ess == pytest.approx(np.full(10, 64.0))
    assert not result.resampled.any()
    assert result.log_evidence == pytest.approx(-1e5)


def test_one_particle_and_one_observation_are_enough():
    for compiled in (True, False):
        result = particle_filter(StochasticVolatility(), [0.3], 1, random_state=0, compiled=compiled)
        assert result.ess.tolist() == [1.0]


def test_interruption_keeps_the_steps_done(scalar, monkeypatch):
    class Interrupting(Chain):
        def log_observation(self, observation, particles, t):
            if t == 6:
                raise KeyboardInterrupt
            return super().log_observation(observation, particles, t)

    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 6 time steps"):
        result = particle_filter(Interrupting(), np.zeros(20), 30, random_state=0)
    assert result.interrupted
    assert result.n_steps == len(result.particles) == 6

    def interrupt(verbose, t, n_steps, increment):
        if t >= 9:
            raise KeyboardInterrupt

    model, observations = scalar
    whole = particle_filter(model, observations, 100, random_state=0)
    monkeypatch.setattr(filter_module, "BLOCK", 500)
    monkeypatch.setattr(filter_module, "report", interrupt)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 10 time steps"):
        result = particle_filter(model, observations, 100, random_state=0)
    assert (result.particles == whole.particles[:10]).all()
    assert result.increments == pytest.approx(whole.increments[:10])


def test_interruption_before_the_first_step_goes_through():
    def interrupt(rng, n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        particle_filter(broken(sample_initial=interrupt), np.zeros(3), 10)


def test_progress_is_silent_by_default_and_ten_lines_long_if_wanted(capsys):
    particle_filter(Chain(), np.zeros(40), 10, random_state=0)
    assert capsys.readouterr().err == ""
    particle_filter(Chain(), np.zeros(40), 10, random_state=0, verbose=1)
    assert capsys.readouterr().err.count("\n") == 10


def initial(rng, parameters, state):
    state[0] = parameters[0] + parameters[3] * rng.standard_normal()


def transition(rng, t, parameters, old, new):
    new[0] = parameters[0] + parameters[1] * (old[0] - parameters[0]) + parameters[2] * rng.standard_normal()


def log_density(t, parameters, observation, state):
    return -0.5 * (math.log(2 * math.pi) + state[0] + observation[0] ** 2 * math.exp(-state[0]))


def test_a_compiled_model_of_ones_own_equals_the_built_in_one():
    built_in = StochasticVolatility(-0.5, 0.9, 0.4)
    own = CompiledModel(initial, transition, log_density, parameters=[-0.5, 0.9, 0.4, built_in.initial_scale])
    observations = built_in.sample(60, random_state=0)[1]
    expected = particle_filter(built_in, observations, 100, random_state=1)
    for compiled in (True, False):
        result = particle_filter(own, observations, 100, random_state=1, compiled=compiled)
        assert result.mean == pytest.approx(expected.mean, rel=1e-8)
        assert result.log_evidence == pytest.approx(expected.log_evidence)


def test_volatility_parameters_out_of_range_are_named():
    with pytest.raises(ValueError, match=r"persistence must be between -1 and 1, got 1\.0"):
        StochasticVolatility(persistence=1.0)
    with pytest.raises(ValueError, match=r"scale must be positive, got 0\.0"):
        StochasticVolatility(scale=0.0)
    with pytest.raises(ValueError, match="level must be a finite number, got nan"):
        StochasticVolatility(level=float("nan"))
