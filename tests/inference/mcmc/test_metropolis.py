"""Metropolis-Hastings kernels against enumeration, closed forms and exact draws."""

import math

import numpy as np
import pytest
from scipy import stats

from pluri.inference import mcmc
from pluri.inference.mcmc.accept_reject.component_wise import ComponentWise
from pluri.inference.mcmc.accept_reject.independence import Independence
from pluri.inference.mcmc.accept_reject.metropolis_hastings import MetropolisHastings, proposal_mismatch
from pluri.inference.mcmc.accept_reject.proposals import DiscreteFlip, Langevin
from pluri.inference.mcmc.accept_reject.random_walk import RandomWalk
from pluri.inference.mcmc.accept_reject.step_search import StepSearch, best_acceptance
from pluri.inference.mcmc.composition import KernelCycle, KernelMixture


def normal(x):
    return -0.5 * float(x @ x)


def normal_and_grad(x):
    return -0.5 * float(x @ x), -x


def run_one(kernel, position, n_steps, seed=0):
    """Positions and infos of one chain, without warm-up."""
    rng = np.random.default_rng(seed)
    state = kernel.init(rng, position)
    positions, infos = [], []
    for _ in range(n_steps):
        state, info = kernel.step(rng, state)
        positions.append(state.position)
        infos.append(info)
    return np.array(positions), infos


# A mixture on the line, as a target that is known in closed form.
WEIGHTS, CENTRES = np.array([0.3, 0.7]), np.array([3.0, -3.0])


def bimodal(x):
    return float(np.logaddexp.reduce(np.log(WEIGHTS) - 0.5 * (x[0] - CENTRES) ** 2))


def test_five_states_satisfy_detailed_balance():
    # An asymmetric walk on a ring: forwards with probability 0.7. 5.5 standard errors each, below 1e-6 in all; those of
    # the shares of states follow from the transition matrix.
    target = np.array([0.1, 0.3, 0.05, 0.35, 0.2])
    kernel = MetropolisHastings(
        lambda x: math.log(target[x]),
        propose=lambda rng, x: np.array((int(x) + (1 if rng.random() < 0.7 else -1)) % 5),
        log_proposal=lambda new, old: math.log(0.7 if (int(new) - int(old)) % 5 == 1 else 0.3)
        if (int(new) - int(old)) % 5 in (1, 4) else -math.inf,
    )  # fmt: skip
    path, _ = run_one(kernel, np.array(0), 60_000)
    flow = np.zeros((5, 5))
    np.add.at(flow, (path[:-1], path[1:]), 1.0)
    assert (np.abs(flow - flow.T) <= 5.5 * np.sqrt(flow + flow.T) + 1).all()
    visits, here, after = flow.sum(axis=1), np.arange(5), (np.arange(5) + 1) % 5
    exact = np.zeros((5, 5))
    exact[here, after] = 0.7 * np.minimum(1.0, 0.3 * target[after] / (0.7 * target))
    exact[after, here] = 0.3 * np.minimum(1.0, 0.7 * target / (0.3 * target[after]))
    exact[here, here] = 1 - exact.sum(axis=1)
    fundamental = np.linalg.inv(np.eye(5) - exact + target)
    error = np.sqrt((2 * target * np.diag(fundamental) - target - target**2) / len(path))
    assert (np.abs(visits / visits.sum() - target) < 5.5 * error).all()
    error = np.sqrt(exact * (1 - exact) / visits[:, None])
    assert (np.abs(flow / visits[:, None] - exact) <= 5.5 * error + 1e-12).all()


def test_an_independence_proposal_that_is_the_target_is_always_accepted():
    kernel = Independence(normal, sample=lambda rng: rng.standard_normal(3), log_proposal=normal)
    positions, infos = run_one(kernel, np.zeros(3), 500)
    assert all(info["accepted"] and info["acceptance"] == pytest.approx(1.0) for info in infos)
    assert stats.kstest(positions[:, 0], "norm").pvalue > 1e-6


def test_a_step_of_2_38_is_accepted_with_probability_0_44():
    # E[min(1, exp((x^2 - x'^2)/2))] = 2/pi * atan(2/step) exactly.
    kernel = RandomWalk(normal, step_size=2.38, adapt=False)
    trace = mcmc.sample(kernel, np.zeros(1), n_draws=20_000, n_warmup=0, random_state=0)
    exact = 2 / math.pi * math.atan(2 / 2.38)
    assert exact == pytest.approx(0.44, abs=0.005)
    assert trace.stats["acceptance"].mean() == pytest.approx(exact, abs=0.01)
    assert trace.stats["accepted"].mean() == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize(
    "kernel",
    [
        RandomWalk(normal, step_size=1.0, covariance=np.array([[2.0, 0.5], [0.5, 1.0]]), adapt=False),
        RandomWalk(normal, step_size=3.0, covariance=[0.5, 2.0], adapt=False),
        ComponentWise(normal, step_size=[1.0, 3.0]),
        Langevin(normal_and_grad, step_size=1.2),
        Langevin(normal_and_grad, step_size=1.0, inverse_mass=np.array([[2.0, 0.5], [0.5, 1.0]])),
        Independence(normal, lambda rng: rng.standard_t(4, size=2), lambda x: float(-2.5 * np.log1p(x**2 / 4).sum())),
        KernelCycle([RandomWalk(normal), Langevin(normal_and_grad, step_size=1.0), ComponentWise(normal)]),
        KernelMixture([RandomWalk(normal), ComponentWise(normal)], weights=[1, 3]),
    ],
)
def test_exact_draws_stay_exact(kernel):
    # 2000 independent starts, three steps each: Kolmogorov-Smirnov at level 1e-7 for each of 16 columns.
    rng = np.random.default_rng(1)
    ends = []
    for start in rng.standard_normal((2000, 2)):
        state = kernel.init(rng, start)
        for _ in range(3):
            state, _ = kernel.step(rng, state)
        assert state.log_density == pytest.approx(normal(state.position))
        ends.append(state.position)
    for column in np.array(ends).T:
        assert stats.kstest(column, "norm").pvalue > 1e-7


def test_an_asymmetric_proposal_needs_its_ratio():
    def target(x):
        return -float(x[0]) if x[0] > 0 else -math.inf

    def propose(rng, x):
        return x * np.exp(rng.standard_normal(1))

    def log_proposal(new, old):
        return float(-np.log(new[0]) - 0.5 * np.log(new[0] / old[0]) ** 2)

    right = mcmc.sample(
        MetropolisHastings(target, propose, log_proposal),
        np.ones(1),
        n_draws=8000,
        n_warmup=0,
        random_state=0,
        warn=False,
    )
    wrong = mcmc.sample(
        MetropolisHastings(target, propose), np.ones(1), n_draws=2000, n_warmup=0, random_state=0, warn=False
    )
    # Without the ratio the chain sees the density exp(-x) / x, which escapes to zero.
    assert right["x"].mean() == pytest.approx(1.0, abs=5.5 * mcmc.mcse_mean(right["x"][..., 0]))
    assert wrong["x"].mean() < 0.5


def random_walk_of(scale):
    return lambda rng, x: x + scale * rng.standard_normal(1)


def independence_ratio(new, old):
    return -0.5 * float(new[0]) ** 2 / 10


def inverted_ratio(new, old):
    return -independence_ratio(new, old)


@pytest.mark.parametrize(
    ("log_proposal", "mean", "variance"),
    [
        (None, -1.2, 8.56),
        (independence_ratio, -1.2 / 0.9, 1 / 0.9 + 0.84 * 9 / 0.81),  # p / q
        (inverted_ratio, -1.0909, 7.157),  # p q
    ],
)
def test_a_random_walk_with_the_ratio_of_an_independence_proposal_samples_another_law(log_proposal, mean, variance):
    # Five and a half standard errors, 1e-7; each law is more than five away from both others, in truth thirteen.
    kernel = MetropolisHastings(bimodal, random_walk_of(math.sqrt(10)), log_proposal, check_proposal=False)
    draws = mcmc.sample(kernel, np.zeros(1), n_draws=12_000, n_warmup=100, random_state=0, warn=False)["x"][..., 0]
    error = 2 * draws.std() * mcmc.mcse_sd(draws)
    assert draws.mean() == pytest.approx(mean, abs=5.5 * mcmc.mcse_mean(draws))
    assert draws.var() == pytest.approx(variance, abs=5.5 * error)
    others = {8.56, 10.444, 7.157} - {round(variance, 3)}
    assert all(abs(draws.var() - other) > 5 * error for other in others)


def test_such_a_mistake_is_noticed_before_the_first_step():
    for ratio in (independence_ratio, inverted_ratio):
        with pytest.raises(ValueError, match="log_proposal is not the log density of what propose draws"):
            MetropolisHastings(bimodal, random_walk_of(math.sqrt(10)), ratio).init(None, np.zeros(1))
    # A normalising constant that depends on the old position must not be left out either.
    scale = lambda x: 0.2 + 2 * abs(float(x[0]))  # noqa: E731
    propose = lambda rng, x: x + scale(x) * rng.standard_normal(1)  # noqa: E731

    def with_constant(new, old):
        return -0.5 * float((new[0] - old[0]) / scale(old)) ** 2 - math.log(scale(old))

    assert proposal_mismatch(propose, with_constant, np.ones(1)) < 5
    assert proposal_mismatch(propose, lambda n, o: -0.5 * float((n[0] - o[0]) / scale(o)) ** 2, np.ones(1)) > 7


def test_a_right_proposal_is_never_refused():
    # 15 random scales and positions; 7 standard errors of bounded terms.
    rng = np.random.default_rng(2)
    for _ in range(15):
        spread = np.exp(rng.normal(0, 2))
        propose = lambda rng, x, s=spread: x * np.exp(s * rng.standard_normal(1))  # noqa: E731
        density = lambda new, old, s=spread: float(-np.log(new[0]) - 0.5 * (np.log(new[0] / old[0]) / s) ** 2)  # noqa: E731
        assert proposal_mismatch(propose, density, np.exp(rng.normal(0, 3, size=1))) < 5


def test_the_langevin_ratio_is_the_metropolis_hastings_ratio():
    mass = np.array([[1.5, 0.4], [0.4, 0.8]])
    step = 0.8

    def value_and_grad(x):
        return float(-(x[0] ** 4) - 0.5 * x[1] ** 2 + x[0] * x[1]), np.array([-4 * x[0] ** 3 + x[1], x[0] - x[1]])

    kernel = Langevin(value_and_grad, step_size=step, inverse_mass=mass)
    rng = np.random.default_rng(3)
    start = np.array([0.6, -0.3])
    state = kernel.init(rng, start)
    for _ in range(200):
        new, info = kernel.step(rng, state)
        if info["accepted"]:

            def log_q(to, of):
                drift = of + 0.5 * step**2 * mass @ value_and_grad(of)[1]
                return stats.multivariate_normal.logpdf(to, drift, step**2 * mass)

            change = new.log_density - state.log_density
            ratio = change + log_q(state.position, new.position) - log_q(new.position, state.position)
            assert info["acceptance"] == pytest.approx(min(1.0, math.exp(ratio)), rel=1e-9)
        state = new


@pytest.mark.parametrize("dim", [1, 2, 10])
def test_the_warm_up_finds_scale_and_shape(dim):
    """Turned axes of which the longest is three times the shortest, far from the start's scale."""
    axes = np.linalg.qr(np.random.default_rng(dim).standard_normal((dim, dim)))[0]
    root = axes * np.geomspace(100.0, 300.0, dim)
    covariance = root @ root.T
    precision = np.linalg.inv(covariance)
    kernel = RandomWalk(lambda x: -0.5 * float(x @ precision @ x))
    trace = mcmc.sample(kernel, np.ones(dim), n_draws=3000, n_warmup=6000, n_chains=2, random_state=0, warn=False)
    assert trace.stats["acceptance"].mean() == pytest.approx(best_acceptance(dim), abs=0.1)
    learned = trace.ends[0].kernel.covariance
    np.testing.assert_allclose(np.sqrt(np.diag(learned) / np.diag(covariance)), 1.0, atol=0.5)
    assert trace["x"].std() / math.sqrt(np.trace(covariance) / dim) == pytest.approx(1.0, abs=0.35)


def test_settings_stand_still_after_the_warm_up():
    trace = mcmc.sample(RandomWalk(normal), np.zeros(2), n_draws=200, n_warmup=200, random_state=0, warn=False)
    assert (np.ptp(trace.stats["step_size"], axis=1) == 0).all()


@pytest.mark.parametrize(
    ("adapt", "scale_moves", "shape_moves"),
    [("scale", True, False), ("covariance", False, True), (False, False, False)],
)
def test_adapt_says_what_is_learned(adapt, scale_moves, shape_moves):
    kernel = RandomWalk(lambda x: -0.5 * float(x[0] ** 2 + x[1] ** 2 / 100), adapt=adapt)
    end = mcmc.sample(kernel, np.zeros(2), n_draws=10, n_warmup=400, random_state=0, warn=False).ends[0].kernel
    assert (end.step_size not in (None, 2.38 / math.sqrt(2))) == scale_moves
    assert (end.covariance is not None and end.covariance.ndim == 2) == shape_moves


def test_each_coordinate_gets_its_own_step():
    scales = np.array([1e-3, 1.0, 1e3])
    kernel = ComponentWise(lambda x: -0.5 * float(((x / scales) ** 2).sum()))
    trace = mcmc.sample(kernel, np.zeros(3), n_draws=1500, n_warmup=800, random_state=0, warn=False)
    np.testing.assert_allclose(trace.ends[0].kernel.step_size / scales, 2.4, rtol=0.5)
    np.testing.assert_allclose(trace.flat("x").std(axis=0) / scales, 1.0, atol=0.15)
    assert trace.stats["acceptance"].mean() == pytest.approx(0.44, abs=0.06)


def test_flips_reach_every_configuration_as_often_as_they_should():
    rng = np.random.default_rng(4)
    sizes = (2, 3, 4)
    table = rng.normal(0, 1, size=sizes)
    kernel = DiscreteFlip(lambda x: float(table[tuple(x)]), n_values=sizes)
    trace = mcmc.sample(kernel, np.zeros(3), n_draws=4000, n_warmup=20, random_state=0, warn=False)
    draws = trace.flat("x")
    assert draws.dtype == np.int64
    counts = np.zeros(sizes)
    np.add.at(counts, tuple(draws.T), 1.0)
    for at, expected in np.ndenumerate(np.exp(table) / np.exp(table).sum()):
        hit = (trace["x"] == at).all(axis=-1) * 1.0
        # 6.5 estimated standard errors for each of 24, false alarm about 1e-6; the constant is for rare ones.
        assert counts[at] / counts.sum() == pytest.approx(expected, abs=6.5 * mcmc.mcse_mean(hit) + 1e-3)


def test_two_dimensional_mixture_has_the_right_moments():
    # Weights .4/.6, means (4,0) and (-4,0), proposal covariance 10 I; 5.5 standard errors each, 1e-6 in all.
    precision = np.linalg.inv([[2.0, 1.0], [1.0, 1.0]])

    def target(x):
        centre = np.array([4.0, 0.0])
        first, second = x - centre, x + centre
        return float(
            np.logaddexp(math.log(0.4) - 0.5 * first @ precision @ first, math.log(0.6) - 0.5 * second @ second)
        )

    kernel = RandomWalk(target, step_size=math.sqrt(10), adapt=False)
    trace = mcmc.sample(kernel, np.zeros(2), n_draws=15_000, n_warmup=500, random_state=3, warn=False)
    x = trace["x"]
    centred = x - (-0.8, 0.0)
    first, second = centred[..., 0], centred[..., 1]
    targets = [(x[..., 0], -0.8), (x[..., 1], 0.0), ((x[..., 0] > 0) * 1.0, 0.4)]
    targets += [(first**2, 16.76), (first * second, 0.4), (second**2, 1.0)]
    for values, expected in targets:
        assert values.mean() == pytest.approx(expected, abs=5.5 * mcmc.mcse_mean(values) + 1e-3)


def test_undefined_and_impossible_proposals_are_refused_and_counted():
    def target(x):
        return math.nan if x[0] > 2 else -math.inf if x[0] < -2 else 0.0

    positions, infos = run_one(RandomWalk(target, step_size=2.0, adapt=False), np.zeros(1), 400)
    assert np.abs(positions).max() <= 2
    assert 0 < sum(info["undefined"] for info in infos) < 300
    assert 0 < sum(info["outside"] for info in infos) < 300


def test_plus_infinity_is_an_error():
    kernel = RandomWalk(lambda x: math.inf if x[0] > 1 else 0.0, step_size=5.0, adapt=False)
    with pytest.raises(ValueError, match=r"\+inf"):
        run_one(kernel, np.zeros(1), 100)


@pytest.mark.parametrize("value", [math.nan, -math.inf, math.inf])
def test_the_start_must_be_finite(value):
    with pytest.raises(ValueError, match="finite at the initial position"):
        RandomWalk(lambda x: value).init(None, np.zeros(2))


@pytest.mark.parametrize("n_warmup", [60, 400])
@pytest.mark.parametrize("kind", [RandomWalk, ComponentWise])
def test_a_constant_target_is_refused_in_words(kind, n_warmup):
    with pytest.raises(ValueError, match="constant"):
        mcmc.sample(kind(lambda x: 0.0), np.zeros(2), n_draws=10, n_warmup=n_warmup, random_state=0)


def test_a_wide_plateau_is_no_constant_target():
    kernel = RandomWalk(lambda x: 0.0 if abs(x[0]) < 1e8 else -math.inf, step_size=1.0)
    trace = mcmc.sample(kernel, np.zeros(1), n_draws=500, n_warmup=800, n_chains=2, random_state=0, warn=False)
    assert 0.2 < trace.stats["acceptance"].mean() < 0.7
    assert trace["x"].std() > 2e7


def test_step_search_solves_for_the_wanted_acceptance():
    search = StepSearch(1.0, target=0.3)
    step = 1.0
    for _ in range(3000):
        step = search.update(math.exp(-step))
    assert search.finish() == pytest.approx(-math.log(0.3), rel=0.02)


def test_a_mixture_of_kernels_uses_each_as_often_as_it_should_and_tunes_each():
    kernel = KernelMixture([RandomWalk(normal, step_size=30.0), mcmc.NUTS(normal_and_grad)], weights=[3, 1])
    trace = mcmc.sample(kernel, np.zeros(2), n_draws=1000, n_warmup=400, random_state=0, warn=False)
    assert trace.stats["kernel"].mean() == pytest.approx(0.25, abs=0.04)
    walk, nuts = trace.ends[0].kernel.kernels
    assert walk.step_size < 10
    assert nuts.step_size is not None
    assert trace["x"].std() == pytest.approx(1.0, abs=0.1)


def test_a_composition_resumes_from_a_file_with_what_it_had_learned(tmp_path):
    kernel = KernelCycle([RandomWalk(normal), mcmc.NUTS(normal_and_grad)])
    trace = mcmc.sample(kernel, np.zeros(2), n_draws=50, n_warmup=200, n_chains=2, random_state=0, warn=False)
    trace.save(tmp_path / "trace.npz")
    loaded = mcmc.Trace.load(tmp_path / "trace.npz")
    more = mcmc.resume(loaded, 50, kernel=kernel, warn=False)
    straight = mcmc.resume(trace, 50, warn=False)
    assert more.ends[0].kernel.kernels[0].step_size == trace.ends[0].kernel.kernels[0].step_size
    np.testing.assert_allclose(more["x"], straight["x"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomWalk(normal, step_size=-1.0), "step_size must be positive"),
        (lambda: RandomWalk(normal, covariance=np.zeros((2, 2))), "positive definite .* of zeros"),
        (lambda: RandomWalk(normal, adapt="shape"), "adapt must be"),
        (lambda: RandomWalk(normal).init(None, np.zeros((2, 2))), "must be a vector"),
        (lambda: RandomWalk(normal, covariance=np.eye(3)).init(None, np.zeros(2)), "for 2 coordinates"),
        (lambda: RandomWalk(lambda x: x).init(None, np.zeros(2)), "one number"),
        (lambda: RandomWalk(normal).init(None, [np.nan]), "position must be finite"),
        (lambda: ComponentWise(normal, step_size=[1.0, 0.0]), "step_size must be positive"),
        (lambda: DiscreteFlip(normal, n_values=1), "at least 2"),
        (lambda: DiscreteFlip(normal, n_values=2).init(None, [0, 3]), "from 0 to n_values - 1"),
        (lambda: DiscreteFlip(normal).init(None, [0.5]), "whole numbers"),
        (lambda: KernelCycle([]), "at least one kernel"),
        (lambda: KernelMixture([RandomWalk(normal)], weights=[1, 1]), "weights must be"),
        (lambda: Independence(normal, lambda rng: None, lambda x: -math.inf).init(None, [0.0]), "log_proposal must be"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_proposal_that_writes_into_the_position_is_refused():
    def in_place(rng, x):
        x[0] += rng.normal()
        return x

    with pytest.raises(ValueError, match="propose changed the position"):
        MetropolisHastings(normal, in_place).init(np.random.default_rng(0), np.zeros(2))


def test_learning_the_covariance_leaves_a_given_step_size_alone():
    kernel = RandomWalk(normal, step_size=0.3, adapt="covariance")
    trace = mcmc.sample(kernel, np.zeros(2), n_draws=10, n_warmup=200, n_chains=1, random_state=0, warn=False)
    assert trace.ends[0].settings["step_size"] == 0.3
    assert trace.ends[0].settings["covariance"].shape == (2, 2)
