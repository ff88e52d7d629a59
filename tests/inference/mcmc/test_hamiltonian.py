"""Leapfrog laws, and NUTS and HMC against targets with known moments."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pluri.inference import mcmc
from pluri.inference.mcmc.hamiltonian.leapfrog import initial_state, landscape, leapfrog
from pluri.inference.mcmc.hamiltonian.nuts import walk
from pluri.inference.mcmc.hamiltonian.nuts_trees import Edge, Growth


def normal(x):
    return -0.5 * x @ x, -x


def correlated(dim, rng):
    factor = rng.normal(size=(dim, dim))
    precision = factor @ factor.T / dim + np.eye(dim)
    return (lambda x: (-0.5 * x @ precision @ x, -precision @ x)), np.linalg.inv(precision)


def banana(x):
    value = -0.5 * x[0] ** 2 - 2.0 * (x[1] - x[0] ** 2) ** 2
    return value, np.array([-x[0] + 8.0 * x[0] * (x[1] - x[0] ** 2), -4.0 * (x[1] - x[0] ** 2)])


METRICS = [np.ones(3), np.array([0.5, 2.0, 1.0]), np.array([[2.0, 0.3, 0], [0.3, 1.0, 0.1], [0, 0.1, 0.5]])]


@pytest.mark.parametrize("inverse_mass", METRICS, ids=["unit", "diag", "dense"])
def test_leapfrog_is_reversible(inverse_mass):
    rng = np.random.default_rng(0)
    target, _ = correlated(3, rng)
    terrain = landscape(target, inverse_mass)
    start, momentum = rng.normal(size=3), rng.normal(size=3)
    state = start, momentum, *target(start)
    for _ in range(20):
        state = leapfrog(terrain, state[0], state[1], state[3], 0.1)
    state = state[0], -state[1], state[2], state[3]
    for _ in range(20):
        state = leapfrog(terrain, state[0], state[1], state[3], 0.1)
    assert_allclose(state[0], start, atol=1e-10)
    assert_allclose(-state[1], momentum, atol=1e-10)


@pytest.mark.parametrize("inverse_mass", METRICS, ids=["unit", "diag", "dense"])
def test_leapfrog_keeps_volume(inverse_mass):
    rng = np.random.default_rng(1)
    target, _ = correlated(3, rng)
    terrain = landscape(target, inverse_mass)

    def flow(z):
        position, momentum, _, _ = leapfrog(terrain, z[:3], z[3:], target(z[:3])[1], 0.3)
        return np.concatenate([position, momentum])

    start, width = rng.normal(size=6), 1e-6
    jacobian = np.array([(flow(start + width * e) - flow(start - width * e)) / (2 * width) for e in np.eye(6)])
    assert_allclose(np.linalg.det(jacobian), 1.0, atol=1e-8)


def test_energy_error_falls_with_the_square_of_the_step():
    def error(step_size):
        terrain = landscape(banana, np.ones(2))
        position, momentum, gradient = np.array([0.4, 0.2]), np.array([0.3, -0.5]), banana(np.array([0.4, 0.2]))[1]
        before = 0.5 * momentum @ momentum - banana(position)[0]
        for _ in range(round(1.0 / step_size)):
            position, momentum, value, gradient = leapfrog(terrain, position, momentum, gradient, step_size)
        return abs(0.5 * momentum @ momentum - value - before)

    assert_allclose(error(0.02) / error(0.01), 4.0, rtol=0.05)


def test_oscillator_keeps_its_exact_invariant():
    terrain, step_size = landscape(normal, np.ones(1)), 0.7
    q, p, g = np.array([1.0]), np.array([0.3]), np.array([-1.0])
    for _ in range(1000):
        q, p, _, g = leapfrog(terrain, q, p, g, step_size)
    assert_allclose(p**2 + (1 - step_size**2 / 4) * q**2, 0.9675, atol=1e-10)


def test_a_grown_tree_sums_what_it_visited():
    rng = np.random.default_rng(2)
    target, _ = correlated(3, rng)
    start, momentum = rng.normal(size=3), rng.normal(size=3)
    value, gradient = target(start)
    energy = 0.5 * momentum @ momentum - value
    drift, kick = np.full(3, 0.05), np.full(3, 0.025)
    growth = Growth(rng, 3)
    edge = walk(target, (drift, kick), Edge(start, momentum + kick * gradient), growth, energy)
    terrain, total, weights = landscape(target, np.ones(3)), 0, []
    position = start
    for _ in range(8):
        position, momentum, value, gradient = leapfrog(terrain, position, momentum, gradient, 0.05)
        total = total + momentum
        weights.append(energy - 0.5 * momentum @ momentum + value)
    assert growth.n_leaves == 8
    assert_allclose(growth.tree.total, total)
    assert_allclose(growth.tree.far, momentum)
    assert_allclose(growth.tree.log_weight, np.logaddexp.reduce(weights))
    assert_allclose(edge.position, position)


@pytest.mark.parametrize(
    "kernel", [mcmc.NUTS(normal), mcmc.HMC(normal, n_leapfrog=2), mcmc.NUTS(normal, metric="dense")]
)
def test_normal_is_sampled_efficiently(kernel):
    trace = mcmc.sample(kernel, np.zeros(2), n_draws=1000, n_warmup=500, n_chains=4, random_state=0, warn=False)
    summary = trace.summary()
    # Two means and two spreads, five standard errors each: false alarms 2e-6.
    assert (np.abs(summary["mean"]) < 5 * summary["mcse_mean"]).all()
    assert (np.abs(summary["sd"] - 1) < 5 * summary["mcse_sd"]).all()
    assert (summary["ess_bulk"] > 0.3 * 4000).all()
    assert 0.7 < trace.stats["acceptance"].mean() < 0.95


@pytest.mark.parametrize("metric", ["diag", "dense"])
def test_correlated_normal_in_many_dimensions(metric):
    dim = 30
    target, covariance = correlated(dim, np.random.default_rng(3))
    trace = mcmc.sample(
        mcmc.NUTS(target, metric=metric), np.zeros(dim), n_draws=600, n_warmup=400, random_state=1, warn=False
    )
    summary = trace.summary()
    # 60 comparisons at five standard errors: false alarms 4e-5.
    assert (np.abs(summary["mean"]) < 5 * summary["mcse_mean"]).all()
    assert (np.abs(summary["sd"] - np.sqrt(np.diag(covariance))) < 5 * summary["mcse_sd"]).all()


def test_the_dense_metric_learns_the_covariance():
    precision = np.linalg.inv([[1, 0.9], [0.9, 1]])

    def target(x):
        return -0.5 * x @ precision @ x, -precision @ x

    trace = mcmc.sample(mcmc.NUTS(target, metric="dense"), np.zeros(2), n_draws=10, random_state=0, warn=False)
    learned = np.mean([end.kernel.inverse_mass for end in trace.ends], axis=0)
    assert_allclose(learned, [[1, 0.9], [0.9, 1]], atol=0.25)


def test_curved_target_has_the_moments_of_its_factors():
    # x ~ N(0, 1), y | x ~ N(x^2, 1/4): E y = 1, Var y = 2 + 1/4.
    # With larger steps chains linger in the tails, and errors are two to four times what they are said to be; with
    # these they are 0.95 to 1.35 times that over 24 seeds.
    trace = mcmc.sample(mcmc.NUTS(banana, target_accept=0.99), np.zeros(2), n_draws=1500, random_state=2, warn=False)
    summary = trace.summary()
    assert_allclose(summary["mean"], [0, 1], atol=6 * summary["mcse_mean"].max())
    assert_allclose(summary["sd"], [1, 1.5], atol=8 * summary["mcse_sd"].max())


def test_the_funnel_is_flagged_by_divergences():
    def funnel(x):
        v, rest = x[0], x[1:]
        inverse = np.exp(-v)
        value = -v * v / 18 - 0.5 * inverse * rest @ rest - 0.5 * len(rest) * v
        slope = -v / 9 + 0.5 * inverse * rest @ rest - 0.5 * len(rest)
        return value, np.concatenate([[slope], -inverse * rest])

    # A step of 1 is unstable where exp(v / 2) < 1 / 2, that is in 32 % of the mass; adaptation would make it shorter,
    # by an amount that changes with the seed. 450 to 950 of the 2000 trajectories diverge, and no chain has fewer than
    # 90: a total of 100 is asked for. The leapfrog keeps p^2 + (3 / 4) q^2 of a normal law, so nothing diverges there.
    options = {"n_draws": 500, "n_warmup": 0, "random_state": 0, "warn": False}
    trace = mcmc.sample(mcmc.NUTS(funnel, step_size=1.0), np.zeros(10), **options)
    assert "diverged" in trace.diagnose()[0]
    assert trace.stats["divergent"].sum() > 100
    even = mcmc.sample(mcmc.NUTS(normal, step_size=1.0), np.zeros(10), **options)
    assert not even.stats["divergent"].any()


@pytest.mark.parametrize("metric", ["diag", "dense"])
def test_chains_together_draw_what_they_draw_alone(metric):
    precision = np.linalg.inv([[1, 0.6], [0.6, 2]])

    def alone(x):
        return -0.5 * x @ precision @ x, -precision @ x

    def rows(x):
        return -0.5 * ((x @ precision) * x).sum(axis=1), -x @ precision

    options = {"n_draws": 15, "n_warmup": 40, "random_state": 0, "warn": False, "thin": 2}
    expected = mcmc.sample(mcmc.NUTS(alone, metric=metric), np.zeros(2), **options)
    for n_jobs in (1, 2):
        found = mcmc.sample(mcmc.NUTS(rows, metric=metric, vectorized=True), np.zeros(2), n_jobs=n_jobs, **options)
        # Sums of rows are rounded differently, which trajectories magnify.
        assert_allclose(found["x"], expected["x"], atol=1e-6)
        for name in expected.stats:
            assert_allclose(found.stats[name], expected.stats[name], atol=1e-6)


def test_a_vectorised_target_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"\(n,\) and \(n, 2\)"):
        mcmc.sample(mcmc.NUTS(lambda x: (-0.5 * x @ x.T, -x), vectorized=True), np.zeros(2))
    with pytest.raises(ValueError, match="must return"):
        mcmc.sample(mcmc.NUTS(lambda x: x, vectorized=True), np.zeros(2))


def test_adaptation_stands_still_after_warm_up():
    trace = mcmc.sample(mcmc.NUTS(normal), np.zeros(3), n_draws=50, n_warmup=100, random_state=0, warn=False)
    assert (trace.stats["step_size"] == trace.stats["step_size"][:, :1]).all()


def test_a_given_step_size_is_used_without_warm_up():
    kernel = mcmc.HMC(normal, step_size=0.25, n_leapfrog=5)
    trace = mcmc.sample(kernel, np.zeros(1), n_draws=20, n_warmup=0, n_chains=1, random_state=0, warn=False)
    assert (trace.stats["step_size"] == 0.25).all()


BAD_TARGETS = {
    "NaN": (lambda x: (np.nan, -x), "finite"),
    "minus infinity": (lambda x: (-np.inf, -x), "finite"),
    "plus infinity": (lambda x: (np.inf, -x), "finite"),
    "gradient too short": (lambda x: (0.0, x[:1]), "shape of the position"),
    "scalar gradient": (lambda x: (0.0, 1.0), "shape of the position"),
    "vector of values": (lambda x: (x, -x), "one number"),
    "no gradient": (lambda x: 0.0, "must return"),
    "gradient with NaN": (lambda x: (0.0, x * np.nan), "gradient must be finite"),
    "gradient of another function": (lambda x: (-0.5 * x @ x, -2 * x - 1), "finite differences"),
    "constant": (lambda x: (1.0, np.zeros_like(x)), "constant"),
}


@pytest.mark.parametrize("kind", [mcmc.NUTS, mcmc.HMC])
@pytest.mark.parametrize("name", BAD_TARGETS)
def test_bad_targets_get_a_clear_error(kind, name):
    target, message = BAD_TARGETS[name]
    with pytest.raises(ValueError, match=message):
        mcmc.sample(kind(target), np.ones(3), n_draws=10, n_warmup=10)


def test_a_target_that_becomes_undefined_is_refused_there_and_counted():
    def half_line(x):
        return (-0.5 * x @ x, -x) if x[0] > 0 else (np.nan, x * np.nan)

    trace = mcmc.sample(mcmc.NUTS(half_line), np.ones(1), n_draws=300, n_warmup=200, random_state=0, warn=False)
    assert (trace["x"] > 0).all()
    assert "diverged" in " ".join(trace.diagnose())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step_size": -1.0}, "step_size"),
        ({"metric": "round"}, "metric"),
        ({"target_accept": 1.0}, "target_accept"),
        ({"inverse_mass": [1.0, -1.0]}, "inverse_mass"),
        ({"max_tree_depth": 0}, "max_tree_depth"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        mcmc.NUTS(normal, **settings)


def test_an_inverse_mass_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="3 coordinates"):
        mcmc.NUTS(normal, inverse_mass=np.ones(2)).init(np.random.default_rng(0), np.zeros(3))


@pytest.mark.parametrize("position", [np.zeros(0), np.zeros((2, 2)), [np.nan, 0.0]])
def test_bad_positions_are_refused(position):
    with pytest.raises(ValueError, match="position"):
        initial_state(normal, position)


def test_chains_that_move_together_keep_the_shape_of_a_given_metric():
    # Before, a chain past a window had a vector where its neighbours still had a matrix.
    kernel = mcmc.NUTS(lambda x: (-0.5 * (x * x).sum(axis=1), -x), vectorized=True, inverse_mass=np.eye(5))
    trace = mcmc.sample(kernel, np.ones(5), n_draws=500, n_warmup=100, random_state=0, warn=False)
    assert all(end.settings["inverse_mass"].shape == (5, 5) for end in trace.ends)
    # 2000 draws that are better than independent: a standard deviation is off by 0.016; 0.1 is six of these.
    assert_allclose(trace.flat("x").std(axis=0), 1.0, atol=0.1)


def test_draws_of_chains_that_move_together_do_not_depend_on_the_rounds(monkeypatch):
    from pluri.inference.mcmc import rounds

    factor = np.random.default_rng(0).normal(size=(20, 20))
    precision = factor @ factor.T / 20 + np.eye(20)

    def rows(x):
        slope = -x @ precision  # rounds differently for other numbers of rows
        return 0.5 * (x * slope).sum(axis=1), slope

    found = []
    for seconds in (0.2, 0.0):
        monkeypatch.setitem(rounds.ROUND_SECONDS, "serial", seconds)
        kernel = mcmc.NUTS(rows, vectorized=True)
        found.append(mcmc.sample(kernel, np.ones(20), n_draws=150, n_warmup=100, random_state=0, warn=False)["x"])
    assert (found[0] == found[1]).all()


def test_a_gradient_that_is_written_over_is_refused():
    buffer = np.zeros(2)

    def reuses(x):
        np.negative(x, out=buffer)
        return -0.5 * x @ x, buffer

    def scribbles(x):
        x *= 2.0
        return -0.125 * x @ x, -0.25 * x

    constant = -np.ones(2)  # the same array at every call does no harm as long as it is not written over
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="same array at every call"):
        mcmc.NUTS(reuses).init(rng, np.zeros(2))
    with pytest.raises(ValueError, match="changed the position"):
        mcmc.NUTS(scribbles).init(rng, np.ones(2))
    assert mcmc.NUTS(lambda x: (-x.sum(), constant)).init(rng, np.zeros(2)).log_density == 0.0


def test_hmc_refuses_a_density_of_infinity_as_nuts_does():
    def spike(x):
        return (np.inf if x[0] > 1 else -0.5 * x @ x), -x

    for kernel in (mcmc.HMC(spike), mcmc.NUTS(spike)):
        with pytest.raises(ValueError, match=r"\+inf at a point of the trajectory"):
            mcmc.sample(kernel, np.zeros(1), n_draws=100, n_warmup=50, random_state=0, warn=False)


@pytest.mark.parametrize("factor", [-1.0, 2.0])
def test_a_wrong_gradient_is_found_at_the_mode_where_it_is_zero_too(factor):
    precision = np.array([[2.0, 0.5], [0.5, 1.0]])
    for kernel in (mcmc.NUTS, mcmc.HMC):
        wrong = kernel(lambda x: (-0.5 * x @ precision @ x, -factor * precision @ x))
        with pytest.raises(ValueError, match="disagrees with finite differences"):
            mcmc.sample(wrong, np.zeros(2), n_draws=10, n_warmup=10, random_state=0)


def test_densities_whose_gradient_is_zero_at_the_start_are_taken():
    def ball(x):  # flat within, impossible beyond
        return (0.0 if x @ x < 1e-4 else -np.inf), np.zeros(2)

    def double_well(x):
        return float(-((x**2 - 1) ** 2).sum()), -4 * x * (x**2 - 1)

    def peak(x):  # very narrow
        return -0.5e8 * x @ x, -1e8 * x

    for density in (ball, double_well, peak):
        mcmc.NUTS(density).init(np.random.default_rng(0), np.zeros(2))


def test_a_density_in_single_precision_is_taken():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)).astype(np.float32), 3 * rng.normal(size=500).astype(np.float32)

    def single(b):
        residual = y - X @ b.astype(np.float32)
        return -0.5 * np.sum(residual**2), X.T @ residual

    def wrong(b):
        value, slope = single(b)
        return value, -slope

    for _ in range(20):
        mcmc.NUTS(single).init(rng, rng.normal(size=3))
    with pytest.raises(ValueError, match="disagrees with finite differences"):
        mcmc.NUTS(wrong).init(rng, np.full(3, 3.0))
    trace = mcmc.sample(mcmc.NUTS(single), np.zeros(3), n_draws=50, n_warmup=50, n_chains=1, random_state=0, warn=False)
    assert trace["x"].dtype == np.float64
    assert trace.ends[0].state.gradient.dtype == np.float64


@pytest.mark.parametrize("kind", [mcmc.NUTS, mcmc.HMC])
def test_a_matrix_that_cannot_be_factored_ends_a_trajectory_and_not_the_run(kind):
    def half_plane(x):  # a normal law, cut off where numpy gives up
        if x[0] > 1:
            raise np.linalg.LinAlgError("Singular matrix")
        return normal(x)

    trace = mcmc.sample(kind(half_plane), np.zeros(1), n_draws=500, n_warmup=200, random_state=0, warn=False)
    assert trace["x"].max() <= 1
    assert trace.stats["divergent"].any()
    with pytest.raises(np.linalg.LinAlgError):
        mcmc.sample(kind(half_plane), np.full(1, 2.0), n_draws=5, n_warmup=0, random_state=0)
