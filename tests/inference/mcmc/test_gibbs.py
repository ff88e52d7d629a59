"""Gibbs sampling over named blocks against closed forms."""

import math

import numpy as np
import pytest
from scipy import stats

from pluri.inference import mcmc
from pluri.inference.mcmc.accept_reject.proposals import DiscreteFlip
from pluri.inference.mcmc.accept_reject.random_walk import RandomWalk
from pluri.inference.mcmc.composition import KernelCycle
from pluri.inference.mcmc.elliptical import EllipticalSlice
from pluri.inference.mcmc.gibbs import Conditional, Gibbs
from pluri.inference.mcmc.slice_sampling import Slice
from pluri.inference.mcmc.transforms.space import Positive, Real, Space

RHO = 0.8


def draw_given(other):
    return lambda rng, position: rng.normal(RHO * position[other], math.sqrt(1 - RHO**2))


def log_density(position):
    x, y = float(position["x"]), float(position["y"])
    return -0.5 * (x * x - 2 * RHO * x * y + y * y) / (1 - RHO**2)


EXACT = {"x": draw_given("y"), "y": draw_given("x")}
START = {"x": 0.0, "y": 0.0}


def conditional(other, kind, **settings):
    """A kernel for x given y; the two are exchangeable."""

    def kernel(rest):
        centre, spread = RHO * float(rest[other]), 1 - RHO**2
        if kind is EllipticalSlice:
            return EllipticalSlice(lambda v: 0.0, covariance=[spread], mean=[centre])
        if kind in (mcmc.NUTS, mcmc.HMC):
            return kind(lambda v: (-0.5 * float((v[0] - centre) ** 2) / spread, (centre - v) / spread), **settings)
        return kind(lambda v: -0.5 * float((v[0] - centre) ** 2) / spread, **settings)

    return Conditional(kernel)


def test_autocorrelation_of_a_fixed_scan_is_rho_squared():
    # Standard error of a lag-1 autocorrelation of 28 000 draws: about 0.0046; six of them.
    trace = mcmc.sample(Gibbs(EXACT, log_density), START, n_draws=7000, n_warmup=50, random_state=0)
    for name in ("x", "y"):
        chains = trace[name] - trace[name].mean()
        lag = (chains[:, 1:] * chains[:, :-1]).mean() / (chains**2).mean()
        assert lag == pytest.approx(RHO**2, abs=0.028)
    assert trace.stats["log_density"][0, -1] == pytest.approx(
        log_density({name: trace[name][0, -1] for name in ("x", "y")})
    )


def test_averaging_conditional_means_has_a_smaller_variance():
    trace = mcmc.sample(Gibbs(EXACT), START, n_draws=4000, n_warmup=50, random_state=1)
    plain = trace["x"]
    smoothed = RHO * np.concatenate([np.zeros((4, 1)), trace["y"][:, :-1]], axis=1)  # x is drawn given the last y
    assert smoothed.var() == pytest.approx(RHO**2, abs=0.065)
    batches = [values.reshape(4, 40, 100).mean(axis=2).std() for values in (plain, smoothed)]
    assert batches[1] < batches[0]


@pytest.mark.parametrize("scan", ["fixed", "random"])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [(RandomWalk, {}), (Slice, {}), (mcmc.NUTS, {}), (EllipticalSlice, {}), (None, {})],
    ids=["random walk", "slice", "nuts", "elliptical", "exact"],
)
def test_exact_draws_stay_exact(scan, kind, settings):
    # 2000 independent starts, two sweeps each: Kolmogorov-Smirnov at level 1e-8 for each of 30 cases.
    kernel = Gibbs(EXACT if kind is None else {"x": conditional("y", kind), "y": EXACT["y"]}, scan=scan)
    rng = np.random.default_rng(2)
    ends = []
    for x, y in rng.multivariate_normal([0, 0], [[1, RHO], [RHO, 1]], size=2000):
        state = kernel.init(rng, {"x": x, "y": y})
        for _ in range(2):
            state, _ = kernel.step(rng, state)
        ends.append([float(state.position["x"]), float(state.position["y"])])
    ends = np.array(ends)
    for values in (ends[:, 0], ends[:, 1], (ends[:, 0] - ends[:, 1]) / math.sqrt(2 - 2 * RHO)):
        assert stats.kstest(values, "norm").pvalue > 1e-8


def test_each_block_keeps_what_its_kernel_learned(tmp_path):
    kernel = Gibbs({"x": conditional("y", RandomWalk, step_size=40.0), "y": conditional("x", Slice, width=0.01)})
    trace = mcmc.sample(kernel, START, n_draws=100, n_warmup=400, n_chains=2, random_state=0, warn=False)
    settings = trace.ends[0].kernel._settings
    # The best step for a normal with standard deviation 0.6 is 2.4 times as much.
    assert math.sqrt(float(settings["x"]["covariance"].item())) * settings["x"]["step_size"] == pytest.approx(
        1.4, rel=0.5
    )
    assert 0.6 < settings["y"]["width"].item() < 6
    trace.save(tmp_path / "trace.npz")
    more = mcmc.resume(mcmc.Trace.load(tmp_path / "trace.npz"), 30, kernel=kernel, warn=False)
    straight = mcmc.resume(trace, 30, warn=False)
    np.testing.assert_allclose(more["x"], straight["x"])


def test_a_composition_may_move_a_block():
    def kernel(rest):
        centre, spread = RHO * float(rest["y"]), 1 - RHO**2
        target = lambda v: -0.5 * float((v[0] - centre) ** 2) / spread  # noqa: E731
        return KernelCycle([RandomWalk(target), Slice(target)])

    trace = mcmc.sample(
        Gibbs({"x": Conditional(kernel), "y": EXACT["y"]}),
        START,
        n_draws=500,
        n_warmup=200,
        random_state=0,
        warn=False,
    )
    assert trace["x"].std() == pytest.approx(1.0, abs=0.15)
    assert np.corrcoef(trace.flat("x"), trace.flat("y"))[0, 1] == pytest.approx(RHO, abs=0.07)


def test_names_that_move_together_and_constrained_names():
    # Normal data: the posterior of mean and precision under a flat prior on the mean and Gamma(1, 1) is known.
    x = np.random.default_rng(3).normal(2.0, 0.5, size=30)
    space = Space(mean=Real(), precision=Positive())

    def posterior(values):
        mean, precision = values["mean"], values["precision"]
        residual = x - mean
        square = residual @ residual
        value = 0.5 * len(x) * math.log(precision) - 0.5 * precision * square - precision
        return value, {
            "mean": precision * residual.sum(), "precision": 0.5 * len(x) / precision - 0.5 * square - 1,
        }  # fmt: skip

    together = Conditional(lambda rest: mcmc.NUTS(space.value_and_grad(posterior)), space=space)
    kernel = Gibbs({("mean", "precision"): together})
    start = {"mean": x.mean(), "precision": 1.0}
    trace = mcmc.sample(kernel, start, n_draws=400, n_warmup=200, random_state=0, warn=False)
    scatter = ((x - x.mean()) ** 2).sum()
    exact = stats.gamma(1 + 0.5 * (len(x) - 1), scale=1 / (1 + 0.5 * scatter))
    draws = trace["precision"]
    assert draws.mean() == pytest.approx(exact.mean(), abs=5.5 * mcmc.mcse_mean(draws))
    assert trace["mean"].mean() == pytest.approx(x.mean(), abs=5.5 * mcmc.mcse_mean(trace["mean"]))


def test_several_names_without_a_space_are_one_vector():
    def kernel(rest):
        assert set(rest) == {"shift"}
        return RandomWalk(lambda v: -0.5 * float((v - 1) @ (v - 1)), step_size=1.0, adapt=False)

    gibbs = Gibbs({("a", "b"): Conditional(kernel, n_steps=3), "shift": lambda rng, position: rng.normal()})
    start = {"a": np.zeros((2, 2)), "b": np.zeros(3), "shift": 0.0}
    trace = mcmc.sample(gibbs, start, n_draws=20, n_warmup=10, n_chains=1, random_state=0, warn=False)
    assert trace["a"].shape == (1, 20, 2, 2)
    assert trace["b"].shape == (1, 20, 3)
    assert (trace.stats["n_evaluations"] == 3).all()


def test_discrete_blocks_and_functions_that_renew_several_names():
    # A mixture label and its mean: the label by flips, mean and a derived number by one function.
    weights = np.array([0.2, 0.5, 0.3])

    def flips(rest):
        return DiscreteFlip(lambda z: math.log(weights[z[0]]), n_values=3)

    def renew(rng, position):
        mean = rng.normal(float(position["label"][0]), 0.1)
        return {"mean": mean, "twice": 2 * mean}

    kernel = Gibbs({"label": Conditional(flips), "mean": renew})
    start = {"label": np.array([0]), "mean": 0.0, "twice": 0.0}
    trace = mcmc.sample(kernel, start, n_draws=1500, n_warmup=0, random_state=0, warn=False)
    assert trace["label"].dtype == np.int64
    shares = np.bincount(trace.flat("label")[:, 0]) / trace["label"].size
    np.testing.assert_allclose(shares, weights, atol=0.06)  # a standard error is below 0.01
    np.testing.assert_array_equal(trace["twice"], 2 * trace["mean"])


def test_a_density_that_is_not_finite_names_the_block():
    def broken(position):
        return -math.inf if float(position["y"]) > 10 else 0.0

    kernel = Gibbs({"x": EXACT["x"], "y": lambda rng, position: 11.0, "z": lambda rng, position: 0.0}, broken)
    rng = np.random.default_rng(0)
    state = kernel.init(rng, {"x": 0.0, "y": 0.0, "z": 0.0})
    with pytest.raises(ValueError, match="got -inf after block 'y'"):
        kernel.step(rng, state)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gibbs({}), "at least one block"),
        (lambda: Gibbs(EXACT, scan="backwards"), "scan must be"),
        (lambda: Gibbs({"x": 3}), "must be a function or a Conditional"),
        (lambda: Gibbs(EXACT).init(None, {"x": 0.0}), "must hold 'y'"),
        (lambda: Gibbs(EXACT).init(None, np.zeros(2)), "must be a dict"),
        (lambda: Gibbs(EXACT, lambda p: math.nan).init(None, START), "got nan at the initial position"),
        (lambda: run(Gibbs({"x": lambda rng, p: math.nan})), "block 'x' gave values of 'x' that are not finite"),
        (lambda: run(Gibbs({"x": lambda rng, p: {"w": 1.0}})), "gave a value for 'w'"),
        (lambda: run(Gibbs({("x", "y"): lambda rng, p: 1.0})), "must return a dict"),
        (lambda: Conditional(3), "kernel must be a function"),
        (lambda: run(Gibbs({"x": Conditional(lambda rest: RandomWalk(lambda v: -math.inf))})), "block 'x': log_"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def run(kernel):
    rng = np.random.default_rng(0)
    return kernel.step(rng, kernel.init(rng, START))


def test_chains_may_run_in_other_processes_with_the_same_result():
    kernel = Gibbs({"x": conditional("y", RandomWalk), "y": EXACT["y"]})
    options = {"n_draws": 30, "n_warmup": 30, "n_chains": 2, "random_state": 0, "warn": False}
    here = mcmc.sample(kernel, START, **options)
    there = mcmc.sample(kernel, START, n_jobs=2, backend="threads", **options)
    np.testing.assert_array_equal(here["x"], there["x"])


def test_a_block_that_writes_into_the_position_is_refused():
    def in_place(rng, position):
        position["z"][0] = not position["z"][0]
        return position["z"]

    kernel = Gibbs({"z": in_place})
    with pytest.raises(ValueError, match="block 'z' changed the array 'z'"):
        mcmc.sample(kernel, {"z": np.zeros(3, dtype=bool)}, n_draws=5, n_warmup=0, random_state=0, warn=False)
