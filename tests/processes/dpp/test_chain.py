"""`DPPMarkovChain`: draws, what it says about them, and how it is interrupted."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.inference import mcmc
from pluri.processes.dpp.kernel_forms import FeatureKernel
from pluri.processes.dpp.samplers import chain_draws, chain_gap
from pluri.processes.dpp.samplers.chain import DPPMarkovChain, draw_by_chain


def random_kernel(n_items, seed=0, scale=0.6):
    features = scale * np.random.default_rng(seed).normal(size=(n_items, n_items))
    return features @ features.T


def frequencies(draws, n_items):
    counts = np.zeros(n_items)
    for draw in draws:
        counts[draw] += 1
    return counts / len(draws)


@pytest.mark.parametrize("move", ["heat_bath", "metropolis", "mixed"])
def test_inclusion_probabilities_match_the_marginal_kernel(move):
    """Six standard errors of draws worth at least half their number: false alarms below 1e-6."""
    kernel = random_kernel(10)
    expected = np.diagonal(kernel @ np.linalg.inv(kernel + np.eye(10)))
    chain = DPPMarkovChain(kernel, move)
    draws = chain.sample(2000, n_chains=2, random_state=0)
    assert len(draws) == 4000
    assert min(chain.ess_.values()) > 2000
    assert max(chain.r_hat_.values()) < 1.02
    assert (np.abs(frequencies(draws, 10) - expected) < 6 * np.sqrt(expected * (1 - expected) / 2000)).all()


def test_fixed_size_matches_enumeration():
    """As above."""
    kernel = random_kernel(8, 1)
    subsets = list(combinations(range(8), 3))
    weights = np.array([np.linalg.det(kernel[np.ix_(subset, subset)]) for subset in subsets])
    expected = np.zeros(8)
    for subset, weight in zip(subsets, weights / weights.sum(), strict=True):
        expected[list(subset)] += weight
    draws = DPPMarkovChain(FeatureKernel(np.linalg.cholesky(kernel)), size=3).sample(4000, random_state=0)
    assert {len(draw) for draw in draws} == {3}
    assert (np.abs(frequencies(draws, 8) - expected) < 6 * np.sqrt(expected * (1 - expected) / 2000)).all()


def test_the_gap_is_where_the_autocorrelation_falls_below_the_threshold():
    chain = DPPMarkovChain(random_kernel(20, 2))
    chain.sample(200, random_state=0)
    assert set(chain.acf_) == {"log_det", "size", "items", "det"}
    crossings = []
    for name, correlations in chain.acf_.items():
        assert correlations[0] == pytest.approx(1.0)
        assert len(correlations) == len(chain.lags_)
        if name != "det":
            crossings.append(chain.lags_[np.argmax(correlations < chain_gap.THRESHOLD)])
    assert chain.thin_ == max(crossings)
    assert chain.n_warmup_ >= 100 * chain.thin_
    assert chain.autocorrelation_time_["log_det"] < chain.thin_


def test_independent_coins_have_the_autocorrelation_of_the_theory():
    """With L = I the heat bath redraws an item at a step: r(k) = (1 - 1/n)^k. False alarms below 1e-6."""
    chain = DPPMarkovChain(np.eye(5))
    chain.sample(60_000, n_warmup=100, thin=1, random_state=0)
    assert "log_det" not in chain.acf_  # always zero
    assert np.allclose(chain.acf_["size"][:6], 0.8 ** np.arange(6), atol=0.08)
    assert chain.acceptance_rate_ == pytest.approx(0.5, abs=0.02)
    assert chain.autocorrelation_time_["size"] == pytest.approx(
        9.0, abs=3.0
    )  # (1 + 0.8) / (1 - 0.8); the estimate is off by 0.5
    assert chain.ess_["size"] == pytest.approx(60_000 / 9, rel=0.4)


def test_draws_are_the_same_for_the_same_random_state():
    kernel = random_kernel(12, 3)
    first, second, third = (
        DPPMarkovChain(kernel, size=4).sample(40, 100, 5, n_chains=2, random_state=seed) for seed in (0, 0, 1)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, third, strict=True))


def test_draws_that_are_worth_few_are_warned_about():
    with pytest.warns(ConvergenceWarning, match="have not settled: R-hat of"):
        DPPMarkovChain(np.eye(400)).sample(500, n_warmup=100, thin=1, random_state=0)


def test_a_chain_that_is_stuck_is_warned_about(monkeypatch):
    """Of two excellent items that are nearly the same one is in, and must leave before the other can come."""
    monkeypatch.setattr(chain_gap, "MOST_STEPS", 10_000)
    kernel = 1e6 * (np.ones((2, 2)) + 1e-12 * np.eye(2))  # it leaves once in 300,000 steps
    for move in ("heat_bath", "metropolis"):
        with pytest.warns(ConvergenceWarning, match="forgets its state slowly"):
            DPPMarkovChain(kernel, move).sample(30, random_state=0)
    draws = DPPMarkovChain(kernel, "mixed").sample(500, random_state=0)  # a swap is all it takes
    assert np.mean([draw[0] for draw in draws]) == pytest.approx(0.5, abs=0.15)


def test_degenerate_processes_have_one_subset():
    for chain, expected in (
        (DPPMarkovChain(np.zeros((3, 3))), []),
        (DPPMarkovChain(np.eye(3), size=0), []),
        (DPPMarkovChain(np.eye(3), size=3), [0, 1, 2]),
    ):
        assert [draw.tolist() for draw in chain.sample(3, random_state=0)] == [expected] * 3
        assert chain.sizes_.shape == (1, 3)


def test_one_item_is_a_coin():
    """Six standard errors."""
    draws = DPPMarkovChain(np.array([[3.0]])).sample(2000, random_state=0)
    assert np.mean([len(draw) for draw in draws]) == pytest.approx(0.75, abs=6 * np.sqrt(0.75 * 0.25 / 1500))


def test_the_chain_starts_where_it_is_told():
    chain = DPPMarkovChain(np.diag([1e-9, 1.0, 1.0]), "exchange", start=[0, 1])
    draws = chain.sample(20, n_warmup=0, thin=1, random_state=0)
    assert all(len(draw) == 2 for draw in draws)


def test_ctrl_c_keeps_the_draws_made_so_far(monkeypatch):
    calls, run = [], chain_draws.run_walk

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 6:  # warm-up of both chains, one draw of each, more of the first, then stop
            raise KeyboardInterrupt
        run(*arguments)

    monkeypatch.setattr(chain_draws, "run_walk", interrupted)
    chain = DPPMarkovChain(random_kernel(6))
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after"):
        draws = chain.sample(200, n_warmup=10, thin=50, n_chains=2, random_state=0)
    assert chain.interrupted_
    n_draws = len(draws) // 2  # the second chain has caught up with the first
    assert 1 < n_draws < 200
    assert chain.sizes_.shape == chain.trace_["items"].shape == (2, n_draws)
    assert chain.trace_["size"].ravel().tolist() == [len(draw) for draw in draws]
    whole = DPPMarkovChain(random_kernel(6)).sample(n_draws, n_warmup=10, thin=50, n_chains=2, random_state=0)
    assert all(np.array_equal(a, b) for a, b in zip(draws, whole, strict=True))


def test_ctrl_c_within_a_chain_keeps_whole_records(monkeypatch):
    from pluri.processes.dpp.samplers import chain_walk

    calls, advance = [], chain_walk.advance

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 6:
            raise KeyboardInterrupt
        advance(*arguments)

    monkeypatch.setattr(chain_walk, "advance", interrupted)
    monkeypatch.setattr(chain_walk, "BLOCK_STEPS", 64)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 29 draws"):
        draws = DPPMarkovChain(random_kernel(6)).sample(200, n_warmup=64, thin=5, random_state=0)
    assert len(draws) == 29  # rounds of one draw and of 16, then a block of 64 steps, of which every fifth is a draw


def test_draw_by_chain_draws_subsets():
    rng = np.random.default_rng(0)
    assert {len(draw) for draw in draw_by_chain(random_kernel(9), 5, rng, size=4)} == {4}
    draws = draw_by_chain(np.eye(4), 2000, rng, n_warmup=50, thin=20)
    assert np.mean([len(draw) for draw in draws]) == pytest.approx(2.0, abs=0.15)  # six standard errors
    assert mcmc.ess_mean([[float(len(draw)) for draw in draws]]) > 1000


@pytest.mark.parametrize(
    ("settings", "arguments", "words"),
    [
        ({"move": "jump"}, {}, "move must be"),
        ({"move": "heat_bath", "size": 2}, {}, "move must be 'exchange'"),
        ({"move": "exchange"}, {}, "size must be given"),
        ({"size": 5}, {}, "size must be at most"),
        ({"size": -1}, {}, "size must be a whole number"),
        ({"start": [0, 0]}, {}, "twice"),
        ({"size": 2, "start": [0]}, {}, "start must have size=2"),
        ({}, {"n_samples": 0}, "n_samples must be"),
        ({}, {"thin": 0}, "thin must be"),
        ({}, {"n_warmup": -1}, "n_warmup must be"),
        ({}, {"n_warmup": "long"}, "n_warmup must be"),
        ({}, {"n_chains": 0}, "n_chains must be"),
    ],
)
def test_bad_settings_are_refused(settings, arguments, words):
    with pytest.raises(ValueError, match=words):
        DPPMarkovChain(np.eye(3), **settings).sample(**({"n_samples": 2} | arguments))


def test_a_size_above_the_rank_is_refused():
    features = np.random.default_rng(0).normal(size=(6, 2))
    with pytest.raises(ValueError, match=r"do not depend on each other \(2\), got 3"):
        DPPMarkovChain(FeatureKernel(features), size=3).sample(1)
