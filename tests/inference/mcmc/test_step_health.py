"""What `Trace.diagnose` says of blocks that stand still or move badly, and of energies that hardly change."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pluri.inference import mcmc

SEEDS = range(3)


def given(other):
    """A draw from one coordinate of a pair of normals with correlation 1/2, given the other."""
    return lambda rng, position: rng.normal(0.5 * position[other], math.sqrt(0.75))


def walk(**settings):
    """The same coordinate, y given x, moved by a random walk."""
    return mcmc.Conditional(
        lambda rest: mcmc.RandomWalk(lambda v: -0.5 * float((v[0] - 0.5 * rest["x"]) ** 2) / 0.75, **settings)
    )


def problems_of(block, seed, start=0.5, **options):
    options = {"n_draws": 200, "n_warmup": 100, "warn": False, "random_state": seed} | options
    kernel = mcmc.Gibbs({"x": given("y"), "y": block})
    trace = mcmc.sample(kernel, {"x": 0.0, "y": start}, **options)
    return [problem for problem in trace.diagnose() if "lock" in problem], trace


@pytest.mark.parametrize("seed", SEEDS)
def test_a_block_that_never_changes_is_named_with_what_to_do(seed):
    (problem,), _ = problems_of(lambda rng, position: position["y"], seed)
    assert problem.startswith("Block 'y' never changed in all 4 chains: its function must return a new draw")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_block_whose_proposals_are_all_refused_is_named(seed):
    # A proposal is accepted with probability 1e-6, 800 times: a false silence of one in a thousand.
    (problem,), trace = problems_of(walk(step_size=1e6, adapt=False), seed)
    assert problem.startswith("Block 'y' never changed in all 4 chains: every proposal of its kernel was refused")
    assert trace.stats["acceptance[y]"].max() < 1e-3


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("step_size", "said"), [(20.0, "too long"), (0.02, "too short")])
def test_bad_acceptance_of_one_block_is_named_and_not_hidden_in_a_mean(seed, step_size, said):
    # Acceptance (2 / pi) atan(2 sd / step) = 0.055 and 0.99, limits 0.1 and 0.6: six standard errors of 800 draws away.
    (problem,), _ = problems_of(walk(step_size=step_size, adapt=False), seed)
    assert "The mean acceptance of block 'y' is" in problem
    assert said in problem


@pytest.mark.parametrize("seed", SEEDS)
def test_good_blocks_are_not_complained_of(seed):
    for block in (given("x"), walk(), mcmc.Conditional(lambda rest: mcmc.Slice(lambda v: -0.5 * float(v @ v)))):
        assert problems_of(block, seed, n_draws=100, n_chains=2)[0] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_block_that_stands_still_in_one_chain_is_found(seed):
    def stuck_above_ten(rng, position):
        return position["y"] if position["y"] > 10 else rng.normal()

    kernel = mcmc.Gibbs({"x": given("y"), "y": stuck_above_ten})
    starts = [{"x": 0.0, "y": y} for y in (0.0, 0.0, 20.0)]
    trace = mcmc.sample(kernel, starts, n_chains=3, n_draws=50, n_warmup=0, random_state=seed, warn=False)
    assert any("Block 'y' never changed in 1 of 3 chains" in problem for problem in trace.diagnose())


def test_what_is_no_block_and_what_is_a_whole_number_may_stay_the_same():
    kernel = mcmc.Gibbs({"x": lambda rng, position: rng.normal(), "k": lambda rng, position: np.int64(3)})
    start = {"x": 0.0, "k": 3, "constant": 2.5}
    trace = mcmc.sample(kernel, start, n_draws=300, n_warmup=0, random_state=0, warn=False)
    assert not any("Block" in problem for problem in trace.diagnose())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_trace_from_a_file_still_tells_of_refusals(seed, tmp_path):
    problems_of(walk(step_size=1e6, adapt=False), seed, checkpoint=tmp_path / "trace.npz")
    loaded = mcmc.Trace.load(tmp_path / "trace.npz")
    assert any("Block 'y' never changed" in problem for problem in loaded.diagnose())


@pytest.mark.parametrize("scan", ["fixed", "random"])
@pytest.mark.parametrize("thin", [1, 3])
def test_acceptance_of_blocks_is_that_of_their_kernels(scan, thin):
    # A random scan leaves a block out now and then: NaN, which means over several steps leave out.
    kernel = mcmc.Gibbs({"x": given("y"), "y": walk(step_size=1.0, adapt=False)}, scan=scan)
    trace = mcmc.sample(kernel, {"x": 0.0, "y": 0.0}, n_draws=60, n_warmup=5, thin=thin, random_state=0, warn=False)
    found = trace.stats["acceptance[y]"]
    assert np.isnan(found).any() == (scan == "random" and thin == 1) or (scan == "random" and thin == 3)
    if scan == "fixed":
        assert_allclose(found, trace.stats["acceptance"])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [mcmc.KernelCycle, mcmc.KernelMixture])
def test_the_bad_kernel_of_a_composition_is_named(kind, seed):
    def log_density(x):
        return -0.5 * float(x @ x)

    kernels = [mcmc.RandomWalk(log_density, step_size=size, adapt=False) for size in (2.0, 200.0)]
    trace = mcmc.sample(kind(kernels), np.zeros(1), n_draws=400, n_warmup=0, random_state=seed, warn=False)
    named = [problem for problem in trace.diagnose() if "block" in problem.lower()]
    assert len(named) == 1
    assert "RandomWalk 1" in named[0]


def funnel(q):
    """Neal's funnel: ``v ~ N(0, 9)`` and nine ``x ~ N(0, exp(v))``."""
    v, x = q[0], q[1:]
    precision = math.exp(min(-v, 700.0))
    square = float(x @ x)
    gradient = np.empty(len(q))
    gradient[0] = -v / 9 - 0.5 * len(x) + 0.5 * precision * square
    gradient[1:] = -precision * x
    return -v * v / 18 - 0.5 * len(x) * v - 0.5 * precision * square, gradient


@pytest.mark.parametrize("seed", SEEDS)
def test_a_funnel_is_told_by_its_energy_and_a_normal_is_not(seed):
    trace = mcmc.sample(
        mcmc.NUTS(funnel, max_tree_depth=6), np.zeros(10), n_draws=200, n_warmup=150, random_state=seed, warn=False
    )
    (problem,) = [problem for problem in trace.diagnose() if "E-BFMI" in problem]
    assert "Reparameterise" in problem
    fine = mcmc.NUTS(lambda x: (-0.5 * x @ x, -x))
    trace = mcmc.sample(fine, np.zeros(10), n_draws=200, n_warmup=100, random_state=seed, warn=False)
    # Expected 1 with a standard error of about 0.1 a chain: the limit 0.3 is six of them away or more.
    assert not [problem for problem in trace.diagnose() if "E-BFMI" in problem]


def test_e_bfmi_of_an_autoregression_is_known():
    # E_t = rho E_{t-1} + noise: the squared differences are 2 (1 - rho) variances. Standard error about 0.01.
    rng = np.random.default_rng(0)
    energy = np.empty((3, 20_000))
    energy[:, 0] = rng.normal(size=3)
    for t in range(1, 20_000):
        energy[:, t] = 0.9 * energy[:, t - 1] + math.sqrt(1 - 0.81) * rng.normal(size=3)
    assert_allclose(mcmc.e_bfmi(energy), 0.2, atol=0.06)
    assert np.isnan(mcmc.e_bfmi(np.ones((1, 10)))).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_steps_of_nuts_that_are_far_too_long_are_told(seed):
    # Steps near the limit of stability, with no warm-up to learn better ones: hardly any state is worth anything.
    kernel = mcmc.NUTS(lambda x: (-0.5 * x @ x, -x), step_size=2.5)
    trace = mcmc.sample(kernel, np.zeros(20), n_draws=100, n_warmup=0, random_state=seed, warn=False)
    assert any("The mean acceptance is" in p and "too long" in p for p in trace.diagnose())
