"""`AddDelete` and `Exchange` under the driver of all chains."""

import numpy as np
import pytest

from pluri.inference import mcmc
from pluri.processes.dpp.kernel_forms import FeatureKernel
from pluri.processes.dpp.samplers.chain_kernels import AddDelete, Exchange


def random_kernel(n_items, seed=0):
    features = 0.7 * np.random.default_rng(seed).normal(size=(n_items, n_items))
    return features @ features.T


def log_det(kernel, included):
    items = np.flatnonzero(included)
    return np.linalg.slogdet(kernel[np.ix_(items, items)])[1] if len(items) else 0.0


def test_traces_give_inclusion_probabilities():
    """False-alarm rate below 1e-4: the errors are compared with five standard errors."""
    kernel = random_kernel(8, 2)
    trace = mcmc.sample(
        AddDelete(kernel), {"included": np.zeros(8)}, n_draws=1500, n_warmup=50, random_state=0, warn=False
    )
    expected = np.diagonal(kernel @ np.linalg.inv(kernel + np.eye(8)))
    draws = trace["included"]
    assert draws.shape == (4, 1500, 8)
    for item in range(8):
        values = draws[:, :, item].astype(float)
        assert abs(values.mean() - expected[item]) < 5 * mcmc.mcse_mean(values)
        assert mcmc.r_hat(values) < 1.01
    assert (trace.stats["size"] == draws.sum(axis=2)).all()


def test_a_step_leaves_the_state_before_it_alone():
    sampler = AddDelete(FeatureKernel(np.random.default_rng(0).normal(size=(12, 5))))
    rng = np.random.default_rng(1)
    first = sampler.init(rng, {"included": np.arange(12) < 3})
    inverse = first.walk.inverse.copy()
    second, info = sampler.step(rng, first)
    sampler.step(rng, second)
    assert np.array_equal(first.walk.inverse, inverse)
    assert first.included.tolist() == [1] * 3 + [0] * 9
    assert np.array_equal(first.walk.subset, [0, 1, 2])
    assert 0 < info["acceptance"] < 1


def test_a_run_can_be_resumed():
    sampler = Exchange(random_kernel(6, 3), n_inner=2)
    start = {"included": [1, 1, 0, 0, 0, 0]}
    first = mcmc.sample(sampler, start, n_draws=20, n_warmup=5, n_chains=2, random_state=0, warn=False)
    both = mcmc.resume(first, 20, warn=False)
    whole = mcmc.sample(sampler, start, n_draws=40, n_warmup=5, n_chains=2, random_state=0, warn=False)
    assert np.array_equal(both["included"], whole["included"])
    assert (whole["included"].sum(axis=2) == 2).all()


def test_a_kernel_of_zeros_stays_empty():
    sampler, rng = AddDelete(np.zeros((3, 3))), np.random.default_rng(0)
    state, info = sampler.step(rng, sampler.init(rng, {"included": [0, 0, 0]}))
    assert state.included.sum() == 0
    assert info["accepted"] == 0


def test_bad_settings_are_refused():
    rng = np.random.default_rng(0)
    for sampler, included, words in (
        (AddDelete(np.eye(3), rule="gibbs"), [0, 0, 0], "rule must be"),
        (AddDelete(np.eye(3), n_inner=0), [0, 0, 0], "n_inner must be"),
        (AddDelete(np.eye(3)), [0, 0], "included must be 3"),
        (AddDelete(np.eye(3)), [0, 2, 0], "included must be 3"),
        (Exchange(np.ones((3, 3))), [1, 1, 0], "positive determinant"),
    ):
        with pytest.raises(ValueError, match=words):
            sampler.init(rng, {"included": included})
