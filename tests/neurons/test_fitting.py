"""Membranes and channel densities learned from traces whose truth is known."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest, chisquare, norm
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import check_estimator

from pluri.inference import mcmc
from pluri.inference.smc import SMCSampler, random_walk_kernel
from pluri.neurons import PassiveMembraneFit, Simulation, SimulationError, SimulatorLikelihood, membrane_rows
from pluri.neurons.models import hodgkin_huxley_patch, two_neurons


def passive_trace(noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    sim = Simulation(dt=0.1, method="crank_nicolson")
    cell = sim.create("compartment", "/c", capacitance=0.04, resistance=250.0, Em=-68.0, initial_Vm=-68.0)
    times = np.arange(0, 400, 5.0)
    values = rng.normal(0, 0.05, len(times))
    sim.create("time_table", "/t", times=times, values=values, interpolate=False)
    sim.link("/t", cell)
    sim.record(cell, "Vm")
    sim.record("/t", "output")
    result = sim.run(400.0)
    v = result[cell, "Vm"] + noise * rng.normal(size=len(result.time))
    return membrane_rows(result.time, v, result["/t", "output"][1:])


def test_a_membrane_is_recovered_exactly_from_a_clean_trace():
    fit = PassiveMembraneFit().fit(*passive_trace())
    assert fit.capacitance_ == pytest.approx(0.04, rel=1e-9)
    assert fit.resistance_ == pytest.approx(250.0, rel=1e-9)
    assert fit.reversal_ == pytest.approx(-68.0, abs=1e-6)
    assert fit.time_constant_ == pytest.approx(10.0, rel=1e-9)
    assert fit.score(*passive_trace()) == pytest.approx(1.0)


def test_the_fit_is_linear_regression_and_weights_count_rows():
    X, y = passive_trace(noise=0.2)
    fit, other = PassiveMembraneFit().fit(X, y), LinearRegression().fit(X, y)
    np.testing.assert_allclose(fit.coef_, other.coef_, rtol=1e-8)
    np.testing.assert_allclose(fit.predict(X), other.predict(X), atol=1e-8)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = PassiveMembraneFit().fit(X, y, sample_weight=weight)
    written = PassiveMembraneFit().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, written.coef_, rtol=1e-8)
    known = PassiveMembraneFit(reversal=-68.0).fit(X, y)
    assert known.reversal_ == -68.0
    shifted = LinearRegression(fit_intercept=False).fit(X + np.array([68.0, 0.0]), y)
    np.testing.assert_allclose(known.coef_, shifted.coef_, rtol=1e-8)


def test_rows_that_are_no_membrane_are_warned_about():
    X, y = passive_trace()
    with pytest.warns(UserWarning, match="not those of a passive membrane"):
        PassiveMembraneFit().fit(X, -y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0, 1, 2], [0, 1]), "must have one length"),
        (([0, 0], [0, 1], [0, 1]), "time must rise"),
    ],
)
def test_traces_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        membrane_rows(*arguments)


@pytest.mark.filterwarnings("ignore:the rows are not those of a passive membrane")
def test_it_is_an_estimator_of_scikit_learn():
    check_estimator(PassiveMembraneFit(), on_skip=None)


def patch_model(n_repeats=1, noise=3.0):
    patch = hodgkin_huxley_patch(10.0, dt=0.05)
    patch.record("/patch", "Vm")
    return SimulatorLikelihood(
        patch,
        "/patch",
        {"gNa": (".", "gNa"), "gK": (".", "gK")},
        summary=lambda result, path: result[path, "Vm"][20:220:20],
        duration=11.0,
        noise=noise,
        n_repeats=n_repeats,
    )


def test_a_likelihood_is_that_of_single_runs():
    model = patch_model()
    vectors = np.array([[120.0, 36.0], [100.0, 30.0], [150.0, 20.0]])
    observed = model.simulate(vectors[:1], random_state=0)[0]
    expected = []
    for sodium, potassium in vectors:
        sim = hodgkin_huxley_patch(10.0, dt=0.05)
        sim.set("/patch", "gNa", sodium)
        sim.set("/patch", "gK", potassium)
        sim.record("/patch", "Vm")
        expected.append(norm.logpdf(observed, sim.run(11.0)["/patch", "Vm"][20:220:20], 3.0).sum())
    np.testing.assert_allclose(model.log_likelihood(vectors, observed), expected, rtol=1e-9)
    np.testing.assert_allclose(model.log_likelihood(vectors[1], observed), expected[1:2], rtol=1e-9)


def test_what_cannot_run_has_no_likelihood():
    model = patch_model()
    observed = model.simulate([[120.0, 36.0]], random_state=0)[0]
    found = model.log_likelihood([[120.0, 36.0], [-1.0, 36.0], [110.0, 30.0]], observed)
    assert np.isneginf(found[1])
    assert np.isfinite(found[[0, 2]]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": 0.0}, "noise must be positive"),
        ({"n_repeats": 0}, "n_repeats must be an integer of at least 1"),
        ({"duration": -1.0}, "duration must be"),
        ({"parameters": {"g": (".", "gNx")}}, "has no field gNx; did you mean gNa"),
        ({"parameters": {"g": ("nowhere", "gNa")}}, "no element matches /patch/nowhere"),
    ],
)
def test_wrong_settings_of_a_likelihood_are_refused(change, message):
    settings = {"parameters": {"g": (".", "gNa")}, "duration": 1.0, "noise": 1.0} | change
    with pytest.raises(ValueError, match=message):
        SimulatorLikelihood(hodgkin_huxley_patch(), "/patch", summary=lambda result, path: [0.0], **settings)
    with pytest.raises(SimulationError, match="all of the network must be below /net, and /pulse is not"):
        SimulatorLikelihood(two_neurons(), "/net", {}, lambda result, path: [0.0], duration=1.0, noise=1.0)


MIDDLE, WIDTH = np.log([110.0, 33.0]), 0.15  # of a log-normal prior


def tabulated():
    """Summaries of the patch by bilinear interpolation in a table, for truth and inference alike: rows of z to rows."""
    model, grid = patch_model(noise=6.0), np.linspace(-3.2, 3.2, 33)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    table = model.summaries(np.exp(MIDDLE + WIDTH * points))[:, 0].reshape(33, 33, -1)

    def summaries(z):
        at = np.clip((z + 3.2) / 0.2, 0, 31.999)
        i, f = at.astype(int), at - at.astype(int)
        i, j, f, g = i[:, 0], i[:, 1], f[:, :1], f[:, 1:]
        a = table[i, j] * (1 - g) + table[i, j + 1] * g
        b = table[i + 1, j] * (1 - g) + table[i + 1, j + 1] * g
        return a * (1 - f) + b * f

    return summaries


def test_channel_densities_inferred_by_slice_sampling_are_calibrated():
    """Over data sets drawn from the prior, 80 % intervals of posterior draws hold the truth as often as they should.

    Of the coverages of central 80 % intervals (30 data sets), the number of each parameter is binomial; it is tested
    with a false-alarm rate of 1e-4 on either side.
    """
    summaries, rng, n_sets = tabulated(), np.random.default_rng(0), 30
    covered = np.zeros(2, dtype=int)
    for k in range(n_sets):
        truth = rng.normal(size=2)
        expected = summaries(truth[None])[0]
        observed = expected + 6.0 * rng.normal(size=expected.shape)

        def log_density(z, observed=observed):
            if np.abs(z).max() > 3.2:
                return -np.inf
            return -0.5 * float(z @ z) - 0.5 * float((((observed - summaries(z[None])[0]) / 6.0) ** 2).sum())

        trace = mcmc.sample(
            mcmc.Slice(log_density), np.zeros(2), n_draws=200, n_warmup=50, n_chains=1, random_state=k, warn=False
        )
        draws = next(iter(trace.draws.values())).reshape(-1, 2)
        low, high = np.quantile(draws, [0.1, 0.9], axis=0)
        covered += (truth > low) & (truth < high)
    assert binom.ppf(1e-4, n_sets, 0.8) <= covered.min()
    assert covered.max() <= binom.ppf(1 - 1e-4, n_sets, 0.8)


def shares_below(truth, log_likelihood, seed, *, n_particles, n_moves):
    """Posterior probability, by sequential Monte Carlo as in the guide, that each parameter is below the truth."""

    def tempered(power):
        return lambda z: -0.5 * (z**2).sum(axis=1) + power * log_likelihood(z)

    sampler = SMCSampler(
        [tempered(power) for power in np.geomspace(1e-3, 1, 10)],
        random_walk_kernel(),
        lambda rng, n: rng.normal(size=(n, 2)),
        n_particles=n_particles,
        n_moves=n_moves,
        random_state=seed,
    ).run()
    return sampler.weights_ @ (sampler.particles_ < truth)


def quarters_are_even(shares):
    """Shares of the posterior below the truth are uniform if inference is calibrated: by quarters, chi-squared.

    Four tests with a false-alarm rate of 2.5e-5 each, so that one seed in ten thousand raises an alarm: of the
    quarters, which a wrong mean makes uneven, and of the middle half, which a wrong width does, of each parameter.
    """
    for column in np.asarray(shares).T:
        assert chisquare(np.histogram(column, [0, 0.25, 0.5, 0.75, 1.0])[0]).pvalue > 2.5e-5
        middle = int(((column > 0.25) & (column < 0.75)).sum())
        assert binomtest(middle, len(column), 0.5).pvalue > 2.5e-5


def test_channel_densities_inferred_by_sequential_monte_carlo_are_calibrated_on_a_table():
    summaries, rng, shares = tabulated(), np.random.default_rng(1), []
    for k in range(100):
        truth = rng.normal(size=(1, 2))
        expected = summaries(truth)
        observed = expected + 6.0 * rng.normal(size=expected.shape)

        def log_likelihood(z, observed=observed):
            return -0.5 * (((observed - summaries(z)) / 6.0) ** 2).sum(axis=1)

        shares.append(shares_below(truth[0], log_likelihood, k, n_particles=120, n_moves=3))
    quarters_are_even(shares)


@pytest.mark.thorough  # the quicker guard is the test before this one
def test_channel_densities_inferred_by_sequential_monte_carlo_are_calibrated_by_simulation():
    """The worked example of the guide on data sets drawn from its prior, every likelihood a run of the simulator."""
    patch = hodgkin_huxley_patch(10.0, dt=0.05)
    patch.record("/patch", "Vm")
    model = SimulatorLikelihood(
        patch,
        "/patch",
        {"gNa": (".", "gNa"), "gK": (".", "gK")},
        summary=lambda result, path: result[path, "Vm"][::20],
        duration=20.0,
        noise=3.0,
    )
    middle, width, rng, shares = np.log([100.0, 30.0]), 0.3, np.random.default_rng(2), []
    for k in range(60):
        truth = rng.normal(size=2)
        observed = model.simulate(np.exp(middle + width * truth)[None], random_state=rng)[0]

        def log_likelihood(z, observed=observed):
            return model.log_likelihood(np.exp(middle + width * z), observed)

        shares.append(shares_below(truth, log_likelihood, k, n_particles=60, n_moves=2))
    quarters_are_even(shares)


def test_the_posterior_of_a_trace_holds_the_truth():
    model = patch_model()
    observed = model.simulate([[120.0, 36.0]], random_state=1)[0]
    axis = np.linspace(0.8, 1.25, 15)
    grid = np.stack(np.meshgrid(120.0 * axis, 36.0 * axis, indexing="ij"), axis=-1).reshape(-1, 2)
    value = model.log_likelihood(grid, observed)
    # The truth lies within a 1 - 1e-5 confidence region of the likelihood ratio, which is chi-squared with 2 degrees.
    at_truth = model.log_likelihood([[120.0, 36.0]], observed)[0]
    assert 2 * (value.max() - at_truth) < 23.1
    assert value.max() - np.median(value) > 10
