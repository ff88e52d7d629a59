"""The sampler for sequences of distributions: closed forms, unbiased normalisers, dead particles, abuse, Ctrl-C."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.inference.smc.random_walk_moves import random_walk_kernel
from pluri.inference.smc.sampler import ParticleCollapseError, SMCSampler

MEAN, SPREAD = 2.0, 0.5


def tempered(b):
    return lambda x: -0.5 * (1 - b) * x[:, 0] ** 2 - 0.5 * b * ((x[:, 0] - MEAN) / SPREAD) ** 2


def draw(rng, n):
    return rng.normal(size=(n, 1))


def log_normal(x):
    return -0.5 * x[:, 0] ** 2 - 0.5 * np.log(2 * np.pi)


def stay(rng, particles, densities, log_target):
    return particles, densities, 0.0


def make(targets=None, kernel=None, **settings):
    settings = {"n_particles": 2000, "n_moves": 3, "random_state": 0} | settings
    targets = [tempered(b) for b in np.linspace(0, 1, 20)] if targets is None else targets
    return SMCSampler(targets, kernel or random_walk_kernel(), draw, **settings)


@pytest.mark.parametrize("order", ["resample_move", "move_resample"])
@pytest.mark.parametrize("resampling", ["systematic", "multinomial"])
def test_tempering_reaches_the_closed_form(order, resampling):
    settings = {"order": order, "resampling": resampling, "n_particles": 500}
    runs = [make(random_state=seed, **settings).run() for seed in range(40)]
    means = np.array([run.weights_ @ run.particles_[:, 0] for run in runs])
    variances = np.array([run.weights_ @ (run.particles_[:, 0] - MEAN) ** 2 for run in runs])
    normalizers = np.array([run.log_normalizer_ for run in runs])
    # Six standard errors of forty runs: a false alarm in two million for each of three.
    for values, exact in ((means, MEAN), (variances, SPREAD**2), (normalizers, np.log(SPREAD))):
        assert abs(values.mean() - exact) < 6 * values.std(ddof=1) / np.sqrt(40)
    assert np.abs(means - MEAN).max() < 0.25
    assert all(0.1 < rate < 0.9 for rate in runs[0].acceptance_rates_)


def test_the_normaliser_is_unbiased():
    targets = [tempered(b) for b in (0.0, 0.3, 1.0)]
    ratios = np.exp([make(targets, n_particles=50, random_state=seed).run().log_normalizer_ for seed in range(200)])
    # A z-score beyond 5.5 is a false alarm in 20 million, and in a million for skewed estimates.
    assert abs(ratios.mean() - SPREAD) < 5.5 * ratios.std(ddof=1) / np.sqrt(200)


def test_a_density_to_draw_from_gives_the_first_normaliser():
    target = lambda x: -0.5 * ((x[:, 0] - 0.5) / 0.8) ** 2  # noqa: E731
    sampler = SMCSampler([target], stay, draw, log_normal, n_particles=20_000, random_state=0).run()
    # The weights have a standard deviation of about their mean: five standard errors are 0.04.
    assert sampler.log_normalizer_ == pytest.approx(0.5 * np.log(2 * np.pi) + np.log(0.8), abs=0.04)
    assert sampler.weights_ @ sampler.particles_[:, 0] == pytest.approx(0.5, abs=0.04)


def test_an_unchanged_target_changes_nothing_but_positions():
    sampler = make([tempered(0.0), tempered(0.2)], ess_threshold=0.1).run()
    before, ess = sampler.weights_, sampler.ess_history_[-1]
    assert np.ptp(before) > 0
    sampler.kernel = stay
    sampler._densities = tempered(0.2)(sampler.particles_)
    sampler.step(tempered(0.2))
    np.testing.assert_array_equal(sampler.weights_, before)
    assert sampler.log_normalizer_ratios_[-1] == 0.0
    assert sampler.ess_history_[-1] == ess


def test_weights_add_up_and_resampling_evens_them():
    sampler = make(None, n_particles=100)
    targets, sampler.log_targets = sampler.log_targets, None
    for target in targets * 20:  # once through, it may come to nothing
        sampler.step(target)
        assert sampler.weights_.sum() == pytest.approx(1.0)
        assert 1 <= sampler.ess_history_[-1] <= 100 * (1 + 1e-12)
        if sampler.resampled_at_ and sampler.resampled_at_[-1] == len(sampler.ess_history_) - 1:
            np.testing.assert_array_equal(sampler.weights_, np.full(100, 0.01))
            assert sampler.ess_history_[-1] < 50
            assert (np.diff(sampler.ancestors_[-1]) >= 0).all()
        elif len(sampler.ess_history_) > 1:
            np.testing.assert_array_equal(sampler.ancestors_[-1], np.arange(100))
    assert sampler.resampled_at_


def test_runs_with_the_same_random_state_are_the_same():
    first, second = make(n_particles=200).run(), make(n_particles=200).run()
    np.testing.assert_array_equal(first.particles_, second.particles_)
    assert first.log_normalizer_ratios_ == second.log_normalizer_ratios_


def test_dead_particles_stay_dead_without_a_warning():
    half = lambda x: np.where(x[:, 0] > 0, 0.0, -np.inf)  # noqa: E731
    everywhere = lambda x: np.zeros(len(x))  # noqa: E731
    sampler = make([everywhere, half, everywhere], stay, ess_threshold=0.0, n_moves=0).run()
    alive = sampler.particles_[:, 0] > 0
    np.testing.assert_allclose(sampler.weights_[alive], 1 / alive.sum())
    assert (sampler.weights_[~alive] == 0).all()
    assert sampler.log_normalizer_ratios_[1] == pytest.approx(np.log(alive.mean()))
    assert sampler.log_normalizer_ratios_[2] == pytest.approx(0.0, abs=1e-12)


def test_a_collapse_raises_and_leaves_the_sampler_as_it_was():
    nowhere = lambda x: np.full(len(x), -np.inf)  # noqa: E731
    sampler = make([tempered(0.0), tempered(0.1)], n_particles=50).run()
    before = sampler.particles_.copy()
    with pytest.raises(ParticleCollapseError, match="no particle is possible under target 2"):
        sampler.step(nowhere)
    np.testing.assert_array_equal(sampler.particles_, before)
    assert len(sampler.ess_history_) == 2
    sampler.step(tempered(0.2))


def test_a_collapse_can_be_answered_by_fresh_draws():
    far = lambda x: np.where(x[:, 0] > 1.5, -0.5 * x[:, 0] ** 2, -np.inf)  # noqa: E731
    near = lambda x: np.where(x[:, 0] < 0.0, -0.5 * x[:, 0] ** 2, -np.inf)  # noqa: E731
    sampler = SMCSampler(
        None, stay, draw, log_normal, n_particles=20_000, on_collapse="restart", ess_threshold=0.0, random_state=0
    )
    sampler.step(near)
    with pytest.warns(ConvergenceWarning, match="drawn anew"):
        sampler.step(far)
    # log of sqrt(2 pi) P(x > 1.5); the share 0.067 of 20 000 draws has a relative error of 0.027.
    assert sampler.log_normalizer_ == pytest.approx(np.log(np.sqrt(2 * np.pi) * 0.0668072), abs=0.15)


def test_few_distinct_particles_are_told_once():
    targets = [lambda x, b=b: -b * (x[:, 0] - 1.0) ** 2 for b in np.geomspace(0.5, 500, 12)]
    sampler = make(targets, stay, n_particles=400, n_moves=0)
    with pytest.warns(ConvergenceWarning, match="particles are distinct") as record:
        sampler.run()
    assert len(record) == 1


def test_ctrl_c_keeps_the_steps_made_so_far():
    def interrupting(x):
        raise KeyboardInterrupt

    sampler = make([tempered(0.0), tempered(0.1), interrupting, tempered(0.2)], n_particles=20)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 2 of 4 steps"):
        sampler.run()
    assert sampler.interrupted_
    assert len(sampler.ess_history_) == 2
    sampler.step(tempered(0.2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_particles": 0}, "n_particles must be an integer of at least 1, got 0"),
        ({"n_moves": -1}, "n_moves must be an integer of at least 0, got -1"),
        ({"ess_threshold": 2.0}, "ess_threshold must be a number of at least 0 and at most 1, got 2.0"),
        ({"order": "first"}, "order must be one of 'resample_move', 'move_resample', got 'first'"),
        ({"resampling": "fair"}, "resampling must be one of"),
        ({"on_collapse": "cry"}, "on_collapse must be one of 'raise', 'restart', got 'cry'"),
        ({"on_collapse": "restart"}, "needs log_initial"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        make(**settings)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (lambda x: np.full(len(x), np.nan), "log_target must be below infinity and not NaN, got nan at particle 0"),
        (
            lambda x: np.zeros(3),
            r"log_target must give one log density for each of the 2000 particles, got shape \(3,\)",
        ),
    ],
)
def test_wrong_targets_are_named(target, message):
    with pytest.raises(ValueError, match=message):
        make([target]).run()
    with pytest.raises(ValueError, match="at least one target"):
        make([]).run()
