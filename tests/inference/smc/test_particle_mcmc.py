"""Particle MCMC against exact posteriors: a grid over the Kalman filter's evidence, and the exact smoother."""

import numpy as np
import pytest

from pluri import on_interrupt
from pluri.dynamics import LinearGaussianModel, kalman_filter, kalman_smoother
from pluri.inference import mcmc
from pluri.inference.smc import ParticleGibbs, ParticleMarginalMetropolis


def make_model(theta):
    return LinearGaussianModel(theta[0], 1.0, 1.0, 1.0, 0.0, 1.0)


def log_prior(theta):
    return 0.0 if -1 < theta[0] < 1 else -np.inf


@pytest.fixture(scope="module")
def observations():
    return make_model([0.7]).sample(20, random_state=0)[1]


@pytest.fixture(scope="module")
def posterior(observations):
    grid = np.linspace(-0.995, 0.995, 200)
    logs = np.array([kalman_filter(make_model([value]), observations).log_evidence for value in grid])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ grid
    return mean, np.sqrt(weights @ (grid - mean) ** 2)


def test_marginal_metropolis_has_the_exact_posterior(observations, posterior):
    # Thirty particles make a noisy evidence; the posterior is exact all the same.
    kernel = ParticleMarginalMetropolis(make_model, log_prior, observations, n_particles=30)
    trace = mcmc.sample(kernel, [0.0], n_draws=3000, n_warmup=500, n_chains=2, random_state=0, warn=False)
    draws = trace["x"][:, :, 0]
    mean, spread = posterior
    # Some 400 effective draws: standard error 0.05 spreads; limits at five.
    assert abs(draws.mean() - mean) < 0.25 * spread
    assert draws.std() == pytest.approx(spread, rel=0.25)
    assert 0.05 < trace.stats["accepted"].mean() < 0.5


# A second opinion: `test_every_sampler` tries paths and parameters (ParticleGibbs, with and without ancestor sampling).
@pytest.mark.thorough
def test_particle_gibbs_draws_paths_from_the_exact_smoother(observations):
    model = make_model([0.7])
    exact = kalman_smoother(model, observations)
    spread = np.sqrt(exact.covariance[:, :, 0])
    kernel = ParticleGibbs(model, observations, n_particles=10)
    trace = mcmc.sample(kernel, {}, n_draws=800, n_warmup=50, n_chains=1, random_state=0, warn=False)
    paths = trace["path"][0]
    # Some 400 effective draws for each of twenty states: five standard errors are 0.25 spreads.
    assert (np.abs(paths.mean(axis=0) - exact.mean) < 0.3 * spread).all()
    assert paths.var(axis=0).mean() == pytest.approx((spread**2).mean(), rel=0.1)
    assert trace.stats["renewed"].mean() > 0.7


def test_ancestor_sampling_renews_the_beginning_of_the_path(observations):
    model = make_model([0.7])
    renewed = {}
    for ancestor_sampling in (True, False):
        kernel = ParticleGibbs(model, observations, n_particles=5, ancestor_sampling=ancestor_sampling)
        trace = mcmc.sample(kernel, {}, n_draws=150, n_warmup=0, n_chains=1, random_state=0, warn=False)
        renewed[ancestor_sampling] = (np.diff(trace["path"][0, :, 0, 0]) != 0).mean()
    assert renewed[True] > 0.5 > 0.3 > renewed[False]


def test_particle_gibbs_with_parameters_has_the_exact_posterior(observations, posterior):
    def update_parameters(rng, path, parameters):
        # Given the path the coefficient of an autoregression is normal, cut to (-1, 1) by the prior.
        old, new = path[:-1, 0], path[1:, 0]
        precision = old @ old
        while True:
            value = old @ new / precision + rng.standard_normal() / np.sqrt(precision)
            if -1 < value < 1:
                return np.array([value])

    kernel = ParticleGibbs(make_model, observations, update_parameters, n_particles=10)
    trace = mcmc.sample(
        kernel, {"parameters": np.array([0.0])}, n_draws=1000, n_warmup=50, n_chains=1, random_state=0, warn=False
    )
    mean, spread = posterior
    draws = trace["parameters"]
    # Some 300 effective draws: five standard errors are 0.3 spreads.
    assert abs(draws.mean() - mean) < 0.3 * spread
    assert draws.std() == pytest.approx(spread, rel=0.3)


def test_log_density_of_a_path_is_its_joint_density_with_the_observations(observations):
    model = make_model([0.7])
    kernel = ParticleGibbs(model, observations, n_particles=5)
    rng = np.random.default_rng(0)
    state = kernel.init(rng, {})
    x, y = state.position["path"][:, 0], observations[:, 0]
    squares = x[0] ** 2 + np.sum((x[1:] - 0.7 * x[:-1]) ** 2) + np.sum((y - x) ** 2)
    assert state.log_density == pytest.approx(-0.5 * squares - 20 * np.log(2 * np.pi))


def test_warm_up_learns_scale_and_shape(observations, posterior):
    kernel = ParticleMarginalMetropolis(make_model, log_prior, observations, n_particles=50)
    trace = mcmc.sample(kernel, [0.5], n_draws=1, n_warmup=400, n_chains=1, random_state=0, warn=False)
    learned = trace.ends[0].settings
    assert np.sqrt(learned["covariance"][0, 0]) == pytest.approx(posterior[1], rel=0.5)
    assert 0.3 < learned["step_size"] < 10


def test_a_place_without_prior_costs_no_filter(observations):
    calls = []

    def counted(theta):
        calls.append(theta)
        return make_model(theta)

    kernel = ParticleMarginalMetropolis(counted, log_prior, observations, n_particles=10, step_size=1e6)
    rng = np.random.default_rng(0)
    state = kernel.init(rng, [0.0])
    moved, info = kernel.step(rng, state)
    assert len(calls) == 1
    assert moved is state
    assert info["acceptance"] == 0.0


def test_a_constant_target_is_refused(observations):
    kernel = ParticleMarginalMetropolis(
        lambda theta: LinearGaussianModel(0.5, 0.0, 1.0, 1.0, 0.0, 0.0), lambda theta: 0.0, observations[:3], 5
    )
    with pytest.raises(ValueError, match=r"every proposal of the warm-up \(60 steps\) was accepted for certain"):
        mcmc.sample(kernel, [0.0], n_draws=5, n_warmup=60, n_chains=1, random_state=0, warn=False)


def test_starts_that_cannot_be_are_refused(observations):
    rng = np.random.default_rng(0)
    kernel = ParticleMarginalMetropolis(make_model, log_prior, observations, 10)
    with pytest.raises(ValueError, match="log_prior must be finite where a chain begins, got -inf"):
        kernel.init(rng, [2.0])
    with pytest.raises(ValueError, match="parameters must be a finite vector"):
        kernel.init(rng, [np.nan])
    with pytest.raises(ValueError, match="log_prior must return a number below infinity, got nan"):
        ParticleMarginalMetropolis(make_model, lambda theta: np.nan, observations, 10).init(rng, [0.0])
    with pytest.raises(ValueError, match="the observations must be possible where a chain begins"):
        ParticleMarginalMetropolis(make_model, log_prior, observations + 1e200, 10).init(rng, [0.0])
    with pytest.raises(ValueError, match="covariance must be for 1 parameters"):
        ParticleMarginalMetropolis(make_model, log_prior, observations, 10, covariance=np.eye(2)).init(rng, [0.0])
    gibbs = ParticleGibbs(make_model([0.7]), observations, n_particles=5)
    with pytest.raises(ValueError, match="path must have 20 time steps"):
        gibbs.init(rng, {"path": np.zeros((3, 1))})
    with pytest.raises(ValueError, match="the first position must have 'parameters'"):
        ParticleGibbs(make_model, observations, lambda rng, path, theta: theta).init(rng, {})
    with pytest.raises(ValueError, match="n_particles must be at least 2"):
        ParticleGibbs(make_model([0.7]), observations, n_particles=1)
    with pytest.raises(TypeError, match="model must be a model, or with update_parameters a function"):
        ParticleGibbs(make_model, observations)


def test_missing_observations_are_left_out(observations):
    seen = observations.copy()
    seen[10:13] = np.nan
    model = make_model([0.7])
    exact = kalman_smoother(model, seen)
    trace = mcmc.sample(
        ParticleGibbs(model, seen, n_particles=10), {}, n_draws=400, n_warmup=20, n_chains=1, random_state=0, warn=False
    )
    spread = np.sqrt(exact.covariance[:, :, 0])
    assert (np.abs(trace["path"][0].mean(axis=0) - exact.mean) < 0.45 * spread).all()


def test_interruption_inside_a_filter_keeps_the_draws_and_no_half_filtered_evidence(observations):
    class Interrupting(LinearGaussianModel):
        def compiled_filter(self, rows):
            return None

        def log_observation(self, observation, particles, t):
            calls.append(t)
            if len(calls) == 20 * 30 + 10:
                raise KeyboardInterrupt
            return super().log_observation(observation, particles, t)

    # Thirty steps of 0.01 stay far inside the prior, so that each has its filter.
    def run(model):
        kernel = ParticleMarginalMetropolis(
            lambda theta: model(theta[0], 1.0, 1.0, 1.0, 0.0, 1.0), log_prior, observations, 20, step_size=0.01
        )
        return mcmc.sample(kernel, [0.3], n_draws=50, n_warmup=0, n_chains=1, random_state=0, warn=False)

    calls = []
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 29 draws"):
        trace = run(Interrupting)
    assert trace.interrupted
    assert trace["x"][0] == pytest.approx(run(LinearGaussianModel)["x"][0, :29])


def test_a_path_of_whole_numbers_does_not_round_the_states(observations):
    kernel = ParticleGibbs(make_model([0.7]), observations, n_particles=5)
    state = kernel.init(np.random.default_rng(0), {"path": np.zeros((20, 1), dtype=int)})
    path = kernel.step(np.random.default_rng(0), state)[0].position["path"]
    assert path.dtype == np.float64
    assert (path != np.round(path)).any()
