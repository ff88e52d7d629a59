"""Mean field on discrete factor graphs, compared with enumeration."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from pluri.inference.variational import FactorGraph, MeanFieldInference, enumerate_exactly


def ising_factors(y, coupling, sigma=1.0):
    """Spins -1, +1 on a grid with free boundaries, seen through Gaussian noise."""
    levels = np.array([-1.0, 1.0])
    rows, columns = y.shape
    factors = [
        ((i * columns + j,), -0.5 * ((y[i, j] - levels) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi))
        for i, j in itertools.product(range(rows), range(columns))
    ]
    pair = coupling * np.outer(levels, levels)
    for i, j in itertools.product(range(rows), range(columns)):
        if j + 1 < columns:
            factors.append(((i * columns + j, i * columns + j + 1), pair))
        if i + 1 < rows:
            factors.append(((i * columns + j, (i + 1) * columns + j), pair))
    return factors


def random_factors(rng, n_variables=5, n_factors=7):
    sizes = rng.integers(2, 4, size=n_variables)
    factors = [((v,), rng.normal(size=sizes[v])) for v in range(n_variables)]
    for _ in range(n_factors):
        members = rng.choice(n_variables, size=rng.integers(1, 4), replace=False)
        factors.append((tuple(int(v) for v in members), rng.normal(size=sizes[members])))
    return factors


def brute_force(factors):
    """Log normaliser and marginals by a plain loop over configurations."""
    sizes = {}
    for names, table in factors:
        sizes |= dict(zip(names, np.shape(table)))
    names = sorted(sizes)
    logs, states = [], list(itertools.product(*(range(sizes[name]) for name in names)))
    for state in states:
        value = dict(zip(names, state))
        logs.append(sum(np.asarray(table)[tuple(value[name] for name in members)] for members, table in factors))
    logs = np.array(logs)
    log_z = np.logaddexp.reduce(logs)
    weights, states = np.exp(logs - log_z), np.array(states)
    marginals = {
        name: np.array([weights[states[:, column] == s].sum() for s in range(sizes[name])])
        for column, name in enumerate(names)
    }
    return log_z, marginals


def test_enumeration_equals_a_plain_loop():
    factors = random_factors(np.random.default_rng(0))
    log_z, marginals = brute_force(factors)
    exact = enumerate_exactly(factors)
    assert np.isclose(exact.log_normalizer, log_z, rtol=1e-12)
    for name, marginal in marginals.items():
        np.testing.assert_allclose(exact.marginals[name], marginal, atol=1e-12)


@pytest.mark.parametrize(
    ("coupling", "log_sum", "elbo", "error"),
    [(0.0, -6.793337, -6.793337, 0.0), (0.2, -6.654465, -6.805504, 0.0331), (1.0, -0.497755, -0.539112, 0.0627)],
)
def test_known_values_on_a_grid_of_nine_spins(coupling, log_sum, elbo, error):
    y = np.random.default_rng(0).standard_normal((3, 3))
    factors = ising_factors(y, coupling)
    exact = enumerate_exactly(factors)
    assert np.isclose(exact.log_normalizer, log_sum, atol=5e-7)
    model = MeanFieldInference(tol=1e-12, max_iter=1000, n_init=30, random_state=0).fit(factors)
    assert np.isclose(model.elbo_[-1], elbo, atol=5e-7)
    means = [(model.marginals_[v] - exact.marginals[v]) @ [-1.0, 1.0] for v in range(9)]
    assert np.isclose(np.abs(means).max(), error, atol=6e-5)


def test_unary_factors_are_solved_exactly():
    rng = np.random.default_rng(1)
    factors = [((v,), rng.normal(size=3)) for v in range(4)] + [((0,), rng.normal(size=3))]
    exact = enumerate_exactly(factors)
    model = MeanFieldInference(random_state=0).fit(factors)
    assert np.isclose(model.elbo_[-1], exact.log_normalizer, rtol=1e-12)
    for v in range(4):
        np.testing.assert_allclose(model.marginals_[v], exact.marginals[v], atol=1e-14)
    assert model.map_ == exact.most_probable


@given(st.integers(0, 10_000), st.sampled_from(["sequential", "coloring"]), st.floats(0.1, 1.0))
@settings(max_examples=40)
def test_the_bound_rises_and_stays_below_the_log_normaliser(seed, schedule, damping):
    factors = random_factors(np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MeanFieldInference(schedule, damping=damping, random_state=seed).fit(factors)
    assert (np.diff(model.elbo_) >= -1e-10).all()
    assert model.elbo_[-1] <= enumerate_exactly(factors).log_normalizer + 1e-10
    for marginal in model.marginals_.values():
        assert np.isclose(marginal.sum(), 1.0)
        assert (marginal >= 0).all()


def test_one_sweep_equals_the_formula_written_out():
    factors = random_factors(np.random.default_rng(5))
    graph = FactorGraph.of(factors)
    q = {name: np.full(size, 1 / size) for name, size in zip(graph.variables, graph.cardinalities)}
    with pytest.warns(ConvergenceWarning):
        model = MeanFieldInference(max_iter=1, random_state=0).fit(factors, init=q)
    for name in graph.variables:
        log_q = np.zeros(len(q[name]))
        for members, table in factors:
            if name not in members:
                continue
            for state in itertools.product(*(range(len(q[member])) for member in members)):
                weight = np.prod([q[m][s] for m, s in zip(members, state) if m != name])
                log_q[state[members.index(name)]] += weight * table[state]
        q[name] = np.exp(log_q) / np.exp(log_q).sum()
    for name in graph.variables:
        np.testing.assert_allclose(model.marginals_[name], q[name], atol=1e-12)


def test_the_order_of_variables_changes_the_path_only():
    factors = ising_factors(np.random.default_rng(2).standard_normal((3, 3)), 0.15)
    renamed = [(tuple(8 - v for v in names), table) for names, table in factors]
    one = MeanFieldInference(tol=1e-13, max_iter=500, random_state=0).fit(factors)
    other = MeanFieldInference(tol=1e-13, max_iter=500, random_state=0).fit(renamed)
    assert np.isclose(one.elbo_[-1], other.elbo_[-1], rtol=1e-9)
    assert (np.diff(other.elbo_) >= -1e-12).all()
    np.testing.assert_allclose(one.marginals_[0], other.marginals_[8], atol=1e-5)


def test_a_grid_needs_two_colours_and_gives_the_same_answer():
    factors = ising_factors(np.random.default_rng(3).standard_normal((4, 5)), 0.2)
    sets = FactorGraph.of(factors).independent_sets()
    assert len(sets) == 2
    near = FactorGraph.of(factors).neighbours()
    for members in sets:
        assert not any(near[v] & set(members.tolist()) for v in members)
    one = MeanFieldInference(tol=1e-13, max_iter=500, random_state=0).fit(factors)
    two = MeanFieldInference("coloring", tol=1e-13, max_iter=500, random_state=0).fit(factors)
    assert np.isclose(one.elbo_[-1], two.elbo_[-1], rtol=1e-10)


def test_parallel_updates_warn_and_may_oscillate():
    strong = ising_factors(np.zeros((4, 4)), -1.0)
    init = {v: [0.4, 0.6] for v in range(16)}
    with pytest.warns(UserWarning, match="may oscillate"), pytest.warns(ConvergenceWarning):
        parallel = MeanFieldInference("parallel", random_state=0, tol=1e-9, max_iter=30).fit(strong, init=init)
    colored = MeanFieldInference("coloring", random_state=0, max_iter=200).fit(strong, init=init)
    assert parallel.elbo_[-1] < colored.elbo_[-1] - 1.0


def test_impossible_states_get_exact_zeros():
    # Three variables, the first never in state 0, the second a copy of the first.
    factors = [((0,), [-np.inf, 0.0, 1.0]), ((0, 1), np.where(np.eye(3), 0.0, -np.inf)), ((2,), [0.0, 0.0])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        model = MeanFieldInference(n_init=50, random_state=0).fit(factors)  # from half of the starts x = (1, 1, ..)
    assert model.marginals_[0][0] == model.marginals_[1][0] == 0.0
    assert model.elbo_[-1] == pytest.approx(1.0 + np.log(2))  # x = (2, 2, anything)
    assert enumerate_exactly(factors).log_normalizer == pytest.approx(np.log((1 + np.e) * 2))


def test_a_product_that_cannot_avoid_the_impossible_says_so():
    differ = np.where(np.eye(2), -np.inf, 0.0)
    with pytest.warns(RuntimeWarning, match="factors forbid"):
        MeanFieldInference(random_state=0).fit([((0, 1), differ), ((1, 2), differ), ((0, 2), differ)])
    with pytest.raises(ValueError, match="at least one configuration possible"):
        enumerate_exactly([((0, 1), differ), ((1, 2), differ), ((0, 2), differ)])


def test_names_need_not_be_numbers():
    model = MeanFieldInference(random_state=0).fit([(("rain", "wet"), [[1.0, 0.0], [0.0, 2.0]])])
    assert model.map_ == {"rain": 1, "wet": 1}


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([], "at least one factor"),
        ([((0, 1), [0.0, 1.0])], "one axis of log potentials for each of its 2 variables"),
        ([((0, 0), np.zeros((2, 2)))], "each variable once"),
        ([((0,), [0.0, np.nan])], "NaN or"),
        ([((0,), [0.0, np.inf])], r"\+inf"),
        ([((0,), [0.0, 1.0]), ((0,), [0.0, 1.0, 2.0])], "2 states for variable 0"),
    ],
)
def test_bad_factors_are_refused(factors, message):
    with pytest.raises(ValueError, match=message):
        MeanFieldInference().fit(factors)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"damping": 0.0}, r"damping must lie in \(0, 1\], got 0.0"), ({"schedule": "random"}, "schedule must be one of")],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        MeanFieldInference(**settings).fit([((0,), [0.0, 1.0])])


def test_bad_starts_and_large_enumerations_are_refused():
    with pytest.raises(ValueError, match="init must give 2 probabilities for variable 0"):
        MeanFieldInference().fit([((0,), [0.0, 1.0])], init={0: [0.5, 0.6]})
    with pytest.raises(ValueError, match="at most 4194304 configurations"):
        enumerate_exactly([((v,), [0.0, 0.0]) for v in range(30)])
