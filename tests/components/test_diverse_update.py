"""The M-step under a determinantal prior: never below a start, at a stationary point, out of coincidences."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from pluri.components.bernoulli import BernoulliFamily, BernoulliParameters
from pluri.components.diverse_tables import ProductCategoricalKernel, columns_of, spread_tables
from pluri.components.diverse_update import ascend
from pluri.components.poisson import PoissonFamily, PoissonParameters
from pluri.components.weighted_sums import WeightedSums
from pluri.priors import DeterminantalPrior
from pluri.priors.kernels import ProbabilityProductKernel


def rosenbrock(x):
    value = 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2
    slope = np.array([-400.0 * x[0] * (x[1] - x[0] ** 2) - 2.0 * (1.0 - x[0]), 200.0 * (x[1] - x[0] ** 2)])
    return -value, -slope


def test_the_maximum_of_a_curved_valley_is_found():
    assert np.allclose(ascend(rosenbrock, [np.array([-1.2, 1.0])], max_iter=200, tol=0.0), 1.0, atol=1e-5)


def test_the_answer_is_never_below_a_start():
    rng = np.random.default_rng(0)
    for _ in range(50):
        starts = [rng.normal(size=2) * 3 for _ in range(3)]
        answer = ascend(rosenbrock, starts, max_iter=int(rng.integers(0, 5)))
        assert rosenbrock(answer)[0] >= max(rosenbrock(start)[0] for start in starts)


def test_units_that_differ_by_a_million_do_not_matter_when_the_curvature_is_known():
    scales = np.array([1e-6, 1.0, 1e6])

    def value_and_gradient(x):
        return -0.5 * float((scales * (x - 1.0) ** 2).sum()), -scales * (x - 1.0)

    assert np.allclose(ascend(value_and_gradient, [np.zeros(3)], curvature=scales), 1.0)


def test_walls_are_not_walked_through():
    def value_and_gradient(x):
        return (-np.inf, x) if x[0] > 1.0 else (float(x[0]), np.ones(1))

    assert 0.0 <= ascend(value_and_gradient, [np.zeros(1)])[0] <= 1.0


def test_coinciding_parts_are_told_apart_and_hopeless_ones_refused():
    kernel = DeterminantalPrior(ProbabilityProductKernel("bernoulli"), 1.0)
    family = BernoulliFamily(repulsion=kernel)
    stats = WeightedSums(np.full((2, 3), 5.0), np.full((2, 3), 10.0))
    moved = family.maximize(stats, BernoulliParameters(np.full((2, 3), 0.5)))
    assert np.isfinite(kernel.log_density(moved.probs))
    hopeless = WeightedSums(np.full((3, 1), 5.0), np.full((3, 1), 10.0))
    with pytest.raises(ValueError, match="diversity must leave room"):
        family.maximize(hopeless, BernoulliParameters(np.array([[0.2], [0.5], [0.7]])))


@pytest.mark.parametrize("weight", [0.5, 20.0])
def test_bernoulli_and_poisson_updates_are_stationary_points(weight):
    rng = np.random.default_rng(1)
    exposure = np.full((3, 4), 30.0)
    probs = rng.uniform(0.2, 0.8, (3, 4))

    prior = DeterminantalPrior(ProbabilityProductKernel("bernoulli"), weight)
    stats = WeightedSums(probs * exposure, exposure)
    found = BernoulliFamily(repulsion=prior).maximize(stats, BernoulliParameters(rng.uniform(0.2, 0.8, (3, 4)))).probs

    def bernoulli(p):
        p = p.reshape(3, 4)
        return float((stats.total * np.log(p) + (exposure - stats.total) * np.log1p(-p)).sum()) + prior.log_density(p)

    check_stationary(bernoulli, found.ravel(), weight)

    prior = DeterminantalPrior(ProbabilityProductKernel("poisson"), weight)
    found = PoissonFamily(repulsion=prior).maximize(stats, PoissonParameters(rng.uniform(0.2, 2.0, (3, 4)))).rates

    def poisson(r):
        r = r.reshape(3, 4)
        return float((stats.total * np.log(r) - exposure * r).sum()) + prior.log_density(r)

    check_stationary(poisson, found.ravel(), weight)


def check_stationary(objective, point, weight):
    """Another optimiser that starts at the answer gains next to nothing."""
    better = minimize(lambda x: -objective(x), point, method="L-BFGS-B", bounds=[(1e-6, 1.0 - 1e-6)] * len(point))
    assert -better.fun - objective(point) < 1e-4 * max(1.0, weight)


def test_the_kernel_of_tables_is_that_of_the_enumerated_joint_distributions():
    rng = np.random.default_rng(2)
    sizes = (2, 3, 2)
    tables = np.concatenate([rng.dirichlet(np.ones(size), 4) for size in sizes], axis=1)
    parts = [tables[:, column] for column in columns_of(sizes)]
    joint = np.stack(
        [np.prod([part[:, v] for part, v in zip(parts, values)], axis=0) for values in product(*map(range, sizes))],
        axis=1,
    )
    assert np.allclose(ProductCategoricalKernel(sizes)(tables), ProbabilityProductKernel("categorical")(joint))


def test_the_slope_of_the_kernel_of_tables_agrees_with_differences():
    rng = np.random.default_rng(3)
    sizes = (3, 2)
    kernel = ProductCategoricalKernel(sizes)
    prior = DeterminantalPrior(kernel, 1.5)
    tables = np.concatenate([rng.dirichlet(np.full(size, 3.0), 3) for size in sizes], axis=1)
    slope = prior.gradient(tables)
    step = 1e-6
    # Along the simplex, which is where tables live: the kernel has unit diagonal only there.
    for row in range(3):
        for column in columns_of(sizes):
            direction = rng.normal(size=column.stop - column.start)
            move = np.zeros_like(tables)
            move[row, column] = direction - direction.mean()
            numeric = (prior.log_density(tables + step * move) - prior.log_density(tables - step * move)) / (2 * step)
            assert np.isclose((slope * move).sum(), numeric, rtol=1e-5, atol=1e-7)


def test_spread_tables_keep_to_the_simplex_and_raise_the_objective():
    rng = np.random.default_rng(4)
    sizes = (3, 4)
    prior = DeterminantalPrior(ProductCategoricalKernel(sizes), 10.0)
    evidence = rng.gamma(2.0, 4.0, (3, 7))
    old = np.concatenate([rng.dirichlet(np.ones(size), 3) for size in sizes], axis=1)
    plain = evidence.copy()
    for column in columns_of(sizes):
        plain[:, column] /= plain[:, column].sum(axis=1, keepdims=True)

    def objective(tables):
        return float((evidence * np.log(tables)).sum()) + prior.log_density(tables)

    found = spread_tables(evidence, old, plain, sizes, prior)
    assert objective(found) >= max(objective(old), objective(plain))
    assert prior.log_density(found) > prior.log_density(plain)
    for column in columns_of(sizes):
        assert np.allclose(found[:, column].sum(axis=1), 1.0)
