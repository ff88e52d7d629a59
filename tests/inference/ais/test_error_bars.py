"""The error bar of annealed importance sampling with its defaults: over seeds, and against the jackknife by hand."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from pluri.inference.ais import AnnealedImportanceSampler, AnnealedSamples, log_evidence

FILE = Path(__file__).parents[3] / "benchmarks" / "accuracy" / "known_evidence.py"


@pytest.fixture(scope="module")
def known():
    spec = spec_from_file_location("known_evidence", FILE)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_error_bar_of_the_evidence_is_honest_over_seeds(known):
    """Of 16 standard normal numbers the root mean square leaves 0.37 to 1.77 once in 20 000 (chi-square)."""
    model = known.linear_regression()
    found = [log_evidence(*model.parts, n_runs=300, random_state=seed, warn=False) for seed in range(16)]
    errors = np.array([(one.value - model.log_z) / one.standard_error for one in found])
    assert 0.37 < np.sqrt(np.mean(np.square(errors))) < 1.77
    assert np.mean([not one.samples.diagnose() for one in found]) > 0.5


def test_the_error_is_the_jackknife_of_the_logarithm():
    log_weights = np.random.default_rng(0).normal(0, 1.5, 50)
    samples = AnnealedSamples(np.zeros((50, 1)), log_weights)
    left_out = np.array([np.log(np.exp(np.delete(log_weights, i)).mean()) for i in range(50)])
    assert samples.log_z_se == pytest.approx(np.sqrt(49 / 50 * np.square(left_out - left_out.mean()).sum()))
    # Even weights: the relative error of their mean.
    even = AnnealedSamples(np.zeros((2000, 1)), np.random.default_rng(1).normal(0, 0.3, 2000))
    assert even.log_z_se == pytest.approx(np.sqrt((2000 / even.ess - 1) / 2000), rel=1e-2)


def test_one_weight_alone_says_nothing_of_its_error():
    assert AnnealedSamples(np.zeros((3, 1)), np.array([0.0, -np.inf, -np.inf])).log_z_se == np.inf
    assert AnnealedSamples(np.zeros((1, 1)), np.zeros(1)).log_z_se == np.inf


def test_the_schedule_is_found_unless_a_number_of_temperatures_is_given():
    parts = (None, lambda x: -0.5 * x[:, 0] ** 2, lambda rng, n: rng.normal(size=(n, 1)))

    def settings(**given):
        sampler = AnnealedImportanceSampler(*parts, log_likelihood=lambda x: -(x[:, 0] ** 2), **given)
        return None if sampler.betas is None else len(sampler.betas) - 1, sampler.n_steps_per_temperature

    assert settings() == (None, 4)
    assert settings(n_temperatures=7) == (7, 1)
    assert settings(schedule="geometric") == (100, 1)
    assert settings(schedule="adaptive", n_steps_per_temperature=2) == (None, 2)
