import numpy as np
import pytest

from pluri.inference import mcmc
from pluri.testing import simulation_based_calibration


def prior(rng):
    return {"mean": rng.normal()}


def data(rng, theta):
    return rng.normal(theta["mean"], 1.0, size=2)


def log_likelihood(theta, y):
    return float(-0.5 * ((y - theta["mean"]) ** 2).sum())


def exact(rng, y, n_draws, *, shift=0.0, width=1.0):
    return {"mean": rng.normal(y.sum() / 3 + shift, width * np.sqrt(1 / 3), size=n_draws)}


def test_an_exact_sampler_is_calibrated():
    """False-alarm rate 1e-6."""
    result = simulation_based_calibration(prior, data, exact, log_likelihood=log_likelihood, alpha=1e-6, random_state=0)
    assert result.passed, result
    assert result.thin <= 4  # independent draws, as far as their autocorrelations, estimated, tell
    assert set(result.ranks) == {"mean", "log_likelihood"}
    assert result.ranks["mean"].min() >= 0
    assert result.ranks["mean"].max() <= 99


@pytest.mark.parametrize("mistake", [{"shift": 0.25}, {"width": 0.7}, {"width": 1.4}])
def test_wrong_posteriors_are_found(mistake):
    """In 1000 simulations: draws too wide by 1.4 are seen by 9.8 standard errors (half of the ranks in the middle)."""

    def sampler(rng, y, n_draws):
        return exact(rng, y, n_draws, **mistake)

    assert not simulation_based_calibration(prior, data, sampler, n_simulations=1000, random_state=0).passed


def test_a_sampler_that_ignores_the_data_needs_the_log_likelihood_to_be_found():
    """Draws from the prior have uniform ranks, as everyone who used only them has learned (false-alarm rate 1e-6)."""

    def sampler(rng, y, n_draws):
        return {"mean": rng.normal(size=n_draws)}

    settings = {"n_simulations": 1000, "alpha": 1e-6, "random_state": 1}
    assert simulation_based_calibration(prior, data, sampler, **settings).passed
    result = simulation_based_calibration(prior, data, sampler, log_likelihood=log_likelihood, **settings)
    assert not result.passed
    assert result.worst.quantity == "log_likelihood"


def slow(rng, y, n_draws):
    """An autoregression with the right stationary distribution and few effective draws."""
    mean, scale, rho = y.sum() / 3, np.sqrt(1 / 3), 0.9
    x, draws = rng.normal(), np.empty(n_draws)
    for i in range(n_draws):
        x = rho * x + np.sqrt(1 - rho**2) * rng.normal()
        draws[i] = mean + scale * x
    return {"mean": draws}


def test_dependent_draws_are_thinned():
    """False-alarm rate 1e-6; the time of the autoregression is 19 draws."""
    result = simulation_based_calibration(prior, data, slow, n_simulations=150, n_draws=19, alpha=1e-6, random_state=0)
    assert result.thin > 10
    assert result.passed
    unthinned = simulation_based_calibration(prior, data, slow, n_simulations=400, n_draws=19, thin=1, random_state=0)
    assert not unthinned.passed


def test_ties_are_broken_at_random():
    """A coin whose bias is one of three numbers: the posterior is exact, the draws full of ties (rate 1e-6)."""
    biases = np.array([0.2, 0.5, 0.8])

    def sampler(rng, y, n_draws):
        p = biases**y * (1 - biases) ** (3 - y)
        return rng.choice(biases, p=p / p.sum(), size=n_draws)

    result = simulation_based_calibration(
        lambda rng: rng.choice(biases), lambda rng, p: rng.binomial(3, p), sampler, alpha=1e-6, random_state=0
    )
    assert result.passed


def test_traces_are_taken_as_they_are():
    def sampler(rng, y, n_draws):
        kernel = mcmc.NUTS(lambda x: (-0.5 * x @ x - 0.5 * ((y - x) ** 2).sum(), -x + (y - x).sum()))
        return mcmc.sample(kernel, np.zeros(1), n_draws=n_draws, n_warmup=100, n_chains=1, random_state=rng, warn=False)

    result = simulation_based_calibration(
        lambda rng: rng.normal(size=1), lambda rng, x: rng.normal(x[0], size=2), sampler, n_simulations=60, n_draws=19,
        thin=3, alpha=1e-6, random_state=0,
    )  # fmt: skip
    assert list(result.ranks) == ["theta[0]"]
    assert result.passed


def test_the_picture_has_a_band_and_a_curve_for_each_quantity():
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    result = simulation_based_calibration(prior, data, exact, n_simulations=40, log_likelihood=log_likelihood, thin=1,
                                          random_state=0)  # fmt: skip
    ax = result.plot()
    assert len(ax.lines) == 2
    assert len(ax.collections) == 1
    pyplot.close("all")


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"n_simulations": 5}, "n_simulations"), ({"n_draws": 0}, "n_draws"), ({"thin": "much"}, "thin must be 'ess'")],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        simulation_based_calibration(prior, data, exact, **settings)


def test_too_few_draws_are_refused():
    with pytest.raises(ValueError, match="must give the 99 draws it was asked for, got 3"):
        simulation_based_calibration(prior, data, lambda rng, y, n: np.zeros(3), thin=1)
