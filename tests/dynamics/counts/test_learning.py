"""M-steps against numerical derivatives, ascent on random problems, starts, and coordinates."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize
from small_count_systems import count_system, draw, poisson_system, state_model

from pluri.dynamics.counts.count_model import KINDS
from pluri.dynamics.counts.learning import CountProblem, gather, infer_paths
from pluri.dynamics.counts.newton import ascend, ascend_arrow
from pluri.dynamics.counts.records import SystemParameters
from pluri.dynamics.counts.starting import starting_states
from pluri.dynamics.counts.state_updates import LARGEST_RADIUS, canonical, radius, stable_towards, update_states
from pluri.engine import ArraySource, Batch
from pluri.inference import expectation_maximization

LENGTHS = [9, 1, 5, 5]


def statistics(params, model, n_times=0, lengths=LENGTHS, seed=0):
    counts, offsets = draw(params, lengths, seed=seed, missing=0.1)
    found, _ = infer_paths(model, "vb", params, counts, offsets)
    weight = np.linspace(0.5, 2.0, len(lengths))
    return gather(found, counts, offsets, weight, n_times)


def expected_log_density(states, stats):
    """E log p(x) from the sums, up to a constant."""

    def part(covariance, scatter, n):
        return -0.5 * (n * np.linalg.slogdet(covariance)[1] + np.trace(np.linalg.solve(covariance, scatter)))

    mu = states.initial_mean
    first = (
        stats.first_square
        - np.outer(stats.first, mu)
        - np.outer(mu, stats.first)
        + stats.n_sequences * np.outer(mu, mu)
    )
    A = states.transition
    steps = stats.after - A @ stats.across.T - stats.across @ A.T + A @ stats.before @ A.T
    for t, b in enumerate(states.drift):
        early, late, n = stats.by_time[t], stats.by_time[t + 1], stats.n_by_time[t]
        cross = np.outer(late - A @ early, b)
        steps = steps - cross - cross.T + n * np.outer(b, b)
    return part(states.initial_covariance, first, stats.n_sequences) + part(states.noise, steps, stats.n_steps)


@pytest.mark.parametrize("n_times", [0, 6])
def test_updates_of_the_states_are_stationary(n_times):
    params, model = poisson_system()
    stats = statistics(params, model, n_times, lengths=[6, 6, 6] if n_times else LENGTHS)
    found = update_states(stats, state_model(drift=n_times))
    p, T = 2, len(found.drift)

    def unpacked(vector):
        A, mu, b = vector[:4].reshape(2, 2), vector[4:6], vector[6 : 6 + 2 * T].reshape(T, p)
        roots = [np.array([[v[0], 0.0], [v[1], v[2]]]) for v in (vector[-6:-3], vector[-3:])]
        return type(found)(A, roots[0] @ roots[0].T, mu, roots[1] @ roots[1].T, b)

    lower = [np.linalg.cholesky(one)[np.tril_indices(2)] for one in (found.noise, found.initial_covariance)]
    point = np.concatenate([found.transition.ravel(), found.initial_mean, found.drift.ravel(), *lower])
    gradient = approx_fprime(point, lambda v: expected_log_density(unpacked(v), stats), 1e-6)
    assert np.abs(gradient).max() < 1e-3
    assert radius(found.transition) < LARGEST_RADIUS


def test_an_unstable_transition_is_approached_as_far_as_it_is_stable():
    before, wanted = 0.5 * np.eye(2), np.array([[1.2, 0.3], [0.0, 0.4]])
    found = stable_towards(before, wanted)
    assert LARGEST_RADIUS - 1e-4 < radius(found) <= LARGEST_RADIUS
    share = (found - before)[0, 1] / 0.3
    assert_allclose(found, before + share * (wanted - before))
    assert stable_towards(before, 0.9 * before) is not before


CASES = {"poisson": poisson_system} | {
    f"{kind}, {nodes}": (lambda kind=kind, nodes=nodes: count_system(kind=kind, nodes=nodes))
    for kind in KINDS
    for nodes in (15, None)
}


def objective(model, stats, observation):
    """Expected log-likelihood by sites with the posteriors held, and the penalty: another way than the M-step's."""
    total = model.log_prior(observation)
    for counts, weight, mean, covariance in stats.posteriors.parts:
        rows = model.sites(observation, counts)(mean, covariance)[0] + model.constants(observation, counts)
        total += weight @ rows
    return total


@pytest.mark.parametrize("case", CASES)
def test_an_m_step_of_the_observations_raises_its_objective_to_the_top(case):
    params, model = CASES[case]()
    if case.startswith(("linear", "simple")):
        params = flat_shapes(params)
    stats = statistics(params, model)
    before = objective(model, stats, params.observation)
    found = params.observation
    for _ in range(3):
        found = model.maximize(stats.posteriors, found)
    top = objective(model, stats, found)
    assert top > before
    rng = np.random.default_rng(0)
    for _ in range(10):  # no small step in any direction of the family goes higher
        assert objective(model, stats, nearby(model, found, rng)) < top + 1e-7


def flat_shapes(params):
    k = np.arange(params.observation.g.shape[1])
    return SystemParameters(
        params.states, type(params.observation)(params.observation.loadings, 0.2 * k * np.ones((4, 1))), 10
    )


def nearby(model, observation, rng, size=1e-3):
    loadings = observation.loadings + size * rng.normal(size=observation.loadings.shape)
    if not hasattr(observation, "g"):
        return type(observation)(loadings, observation.intercept + size * rng.normal(size=len(loadings)))
    k = np.arange(observation.g.shape[1])
    slopes = size * rng.normal(size=(len(loadings), 1)) * k
    bends = size * rng.normal(size=observation.g.shape) * (k > 0)
    bends = {"full": bends, "simple": bends[:1] * (k > 1), "linear": 0.0}[model.kind]
    return type(observation)(loadings, observation.g + slopes + bends)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_stay_in_their_family(kind):
    params, model = count_system(kind=kind)
    params = flat_shapes(params)
    g = model.maximize(statistics(params, model).posteriors, params.observation).g
    assert_allclose(g[:, 0], 0.0)
    bends = np.diff(g, 2, axis=1)
    if kind == "linear":
        assert_allclose(bends, 0.0, atol=1e-12)
    elif kind == "simple":
        assert_allclose(bends, bends[:1] + np.zeros((4, 1)), atol=1e-10)
        assert np.abs(bends).max() > 1e-3
    else:
        assert np.ptp(bends, axis=0).max() > 1e-3


def test_newton_finds_the_top_of_concave_functions():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.poisson(1.0, size=(5, 40))

    def evaluate(point):
        rate = np.exp(point @ X.T)
        return (y * (point @ X.T) - rate).sum(axis=1), (y - rate) @ X, np.einsum("nt,ta,tb->nab", rate, X, X)

    free = np.ones((5, 3), dtype=bool)
    free[0, 1] = False
    found = ascend(evaluate, ascend(evaluate, np.zeros((5, 3)), free), free)
    assert found[0, 1] == 0.0
    for i in range(1, 5):
        best = minimize(lambda v, i=i: -evaluate(v[None] + np.zeros((5, 3)))[0][i], np.zeros(3), tol=1e-10).x
        assert_allclose(found[i], best, atol=1e-4)


def test_the_arrow_is_the_solution_of_the_whole_system():
    """A quadratic function, of which one step finds the top."""
    rng = np.random.default_rng(0)
    p, K, n = 2, 4, 3
    roots = rng.normal(size=(n, p + K + 1, 12))
    H = roots @ roots.transpose(0, 2, 1)
    b = rng.normal(size=(n, p + K + 1))

    def evaluate(point):
        pulled = np.einsum("nab,nb->na", H, point)
        return (b * point - 0.5 * pulled * point).sum(axis=1), b - pulled, H

    line = np.zeros((p + K + 1, p + 1))
    line[:p, :p], line[p:, p] = np.eye(p), np.arange(K + 1)
    found = ascend_arrow(evaluate, np.zeros((n, p + K + 1)), line, np.ones(K + 1, dtype=bool), p)
    # All free numbers at once: three of each neuron, then g(2), ..., g(4).
    design = np.zeros((n, p + K + 1, 3 * n + K - 1))
    for i in range(n):
        design[i, :, 3 * i : 3 * i + 3] = line
        design[i, p + 2 :, 3 * n :] = np.eye(K - 1)
    whole = np.linalg.solve(np.einsum("nab,nac,ncd->bd", design, H, design), np.einsum("nab,na->b", design, b))
    assert_allclose(found, design @ whole, atol=1e-6)


# Four systems whose transition blows up, for some steps, to counts of a million and more.
@example(477, "poisson", False)
@example(477, "poisson", True)
@example(585, "poisson", False)
@example(785, "poisson", True)
@settings(max_examples=12)
@given(st.integers(0, 10_000), st.sampled_from(["poisson", "full", "simple", "linear", "jensen"]), st.booleans())
def test_the_bound_never_falls(seed, case, varies):
    params, model = (
        poisson_system(seed=seed)
        if case == "poisson"
        else count_system(seed=seed, kind="full" if case == "jensen" else case, nodes=None if case == "jensen" else 15)
    )
    lengths = [6, 6, 6] if varies else [7, 1, 0, 6]
    counts, offsets = draw(params, lengths, seed=seed, missing=0.15)
    counts[0] = 1.0  # no neuron is silent
    silent = np.zeros(4, dtype=bool)
    problem = CountProblem(2, model, "vb", "pca", False, 6 if varies else 0, silent)
    if case in ("simple", "linear"):
        params = flat_shapes(params)
    if varies:
        params = SystemParameters(state_model(seed=seed, drift=6), params.observation, 6)
    source = ArraySource(counts, np.diff(offsets), sample_weight=np.linspace(0.5, 1.5, len(lengths)))
    result = expectation_maximization(
        problem, source, rng=np.random.default_rng(0), max_iter=12, tol=-np.inf, start=params
    )
    gains = np.diff(result.history.objective)
    assert gains.min() > -1e-8 * np.abs(result.history.objective).max()


def test_statistics_of_batches_add_up_to_those_of_all():
    params, model = count_system()
    counts, _ = draw(params, [6, 4, 5], missing=0.1)
    problem = CountProblem(2, model, "vb", "pca", False, 0, np.zeros(4, dtype=bool))
    whole = problem.expect(params, Batch(counts, np.array([6, 4, 5])))
    parts = problem.expect(params, Batch(counts[:6], np.array([6]))) + problem.expect(
        params, Batch(counts[6:], np.array([4, 5]))
    )
    for name in ("log_likelihood", "first", "first_square", "before", "across", "after", "n_steps"):
        assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-7, atol=1e-9)
    one, other = problem.maximize(whole, params), problem.maximize(parts, params)
    assert_allclose(one.observation.g, other.observation.g, atol=1e-5)


@pytest.mark.parametrize("how", ["nuclear", "pca"])
def test_starts_span_the_states(how):
    """Largest angle between true and starting columns of C; random planes in 20 dimensions are about 1.4 off."""
    rng = np.random.default_rng(0)
    x = np.cumsum(rng.normal(size=(60, 20, 2)), axis=1) * 0.4
    C = rng.normal(size=(20, 2))
    counts = rng.poisson(np.exp(0.5 * x.reshape(-1, 2) @ C.T / np.sqrt(2))).astype(float)
    counts[rng.random(counts.shape) < 0.1] = np.nan
    paths, loadings, intercept = starting_states(counts, np.arange(0, 1201, 20), 2, how, None)
    one, other = np.linalg.qr(C)[0], np.linalg.qr(loadings)[0]
    angle = np.arccos(np.clip(np.linalg.svd(one.T @ other)[1].min(), -1, 1))
    assert angle < 0.4
    assert_allclose((paths**2).mean(axis=0), 1.0, rtol=0.3)
    assert np.isfinite(intercept).all()


def test_canonical_coordinates_have_orthogonal_loadings_and_unit_states():
    params, model = count_system(n_neurons=5, p=3)
    turned = canonical(params)
    C = turned.observation.loadings
    gram = C.T @ C
    assert_allclose(gram - np.diag(np.diag(gram)), 0.0, atol=1e-10)
    assert (np.diff(np.diag(gram)) <= 1e-12).all()
    assert_allclose(turned.states.covariances(10).mean(axis=0), np.eye(3), atol=1e-8)
    counts, offsets = draw(params, [6])
    before, after = (infer_paths(model, "vb", one, counts, offsets)[0] for one in (params, turned))
    assert_allclose(after.bound, before.bound, rtol=1e-9)


@pytest.mark.parametrize("how", ["nuclear", "pca"])
@pytest.mark.parametrize("n_components", [1, 4, 8])
def test_all_states_have_a_path_to_begin_with(how, n_components):
    # Of counts without any structure the nuclear norm leaves nothing; a state without a path would never get one.
    counts = np.random.default_rng(0).poisson(0.5, (400, 8)).astype(float)
    counts[3, 2] = np.nan
    paths, loadings, _ = starting_states(counts, np.array([0, 150, 150, 400]), n_components, how, None)
    np.testing.assert_allclose((paths**2).mean(axis=0), 1.0, rtol=0.01)
    assert (np.linalg.norm(loadings, axis=0) > 0).all()
    np.testing.assert_allclose(np.linalg.matrix_rank(loadings), n_components)
