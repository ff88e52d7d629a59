"""What fitted flows say: predictive densities, ways back, paths, gaps, names of regimes."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from pluri.dynamics.regions.conditionals import multiplied_out, region_moments
from pluri.dynamics.regions.fitted import common_names, way_back
from pluri.dynamics.regions.flow import (
    Flow,
    agreement,
    log_density_of_places,
    log_density_of_steps,
    log_shares,
    next_means,
    regime_shares,
)
from pluri.dynamics.regions.rollouts import (
    Bounds,
    drawn_paths,
    fill_gaps,
    followed,
    handed_over,
    handed_over_where_probable,
    mean_path,
)
from pluri.dynamics.regions.transitions import Transitions, task_labels, transition_rows

WIDE = Bounds(np.zeros(2), 1e6)


def random_flow(rng, n_draws=3, n_regions=4, K=2):
    R = n_draws * n_regions
    root = rng.normal(size=(R, K, K))
    weights = rng.dirichlet(np.ones(n_regions), size=n_draws).ravel()
    return Flow(
        np.repeat(np.arange(n_draws), n_regions), np.log(weights), rng.normal(size=(R, K)),
        root @ np.swapaxes(root, -1, -2) + 0.5 * np.eye(K), 0.5 * rng.normal(size=(R, K, K)),
        rng.normal(size=(R, K)), rng.uniform(0.1, 0.5, size=R), rng.integers(3, size=R),
    )  # fmt: skip


def linear_flow(A, b, variance=0.01, regime=0):
    K = len(b)
    return Flow(
        np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros((1, K)), np.eye(K)[None] / 4, np.asarray(A)[None],
        np.asarray(b)[None], np.array([variance]), np.array([regime]),
    )  # fmt: skip


def by_scipy(flow, x, y):
    """Density of a step and its mean, with loops."""
    density, mean = 0.0, np.zeros(len(x))
    for draw in np.unique(flow.draws):
        own = np.flatnonzero(flow.draws == draw)
        shares = np.array([
            np.exp(flow.log_weights[r]) * multivariate_normal(flow.centers[r], np.linalg.inv(flow.precisions[r])).pdf(x)
            for r in own
        ])  # fmt: skip
        shares /= shares.sum()
        for share, r in zip(shares, own):
            step = flow.matrices[r] @ x + flow.intercepts[r]
            density += share * multivariate_normal(step, flow.variances[r] * np.eye(len(x))).pdf(y)
            mean += share * step
    n_draws = len(np.unique(flow.draws))
    return density / n_draws, mean / n_draws


def test_predictive_density_and_mean_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    flow = random_flow(rng)
    x, y = rng.normal(size=(2, 6, 2))
    densities, means = log_density_of_steps(flow, x, y), next_means(flow, x)
    for n in range(6):
        density, mean = by_scipy(flow, x[n], y[n])
        assert densities[n] == pytest.approx(np.log(density))
        np.testing.assert_allclose(means[n], mean)


def test_predictive_density_integrates_to_one():
    flow = random_flow(np.random.default_rng(1))
    side = np.linspace(-12, 12, 400)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    x = np.broadcast_to([0.3, -0.7], grid.shape)
    total = np.exp(log_density_of_steps(flow, x, grid)).sum() * (side[1] - side[0]) ** 2
    assert total == pytest.approx(1.0, abs=1e-6)


def test_regions_may_be_renumbered():
    rng = np.random.default_rng(2)
    flow = random_flow(rng)
    order = np.concatenate([first + rng.permutation(4) for first in (4, 0, 8)])  # draws may change places, too
    other = Flow(*(values[order] for values in flow))._replace(draws=flow.draws)
    x, y = rng.normal(size=(2, 5, 2))
    np.testing.assert_allclose(next_means(other, x), next_means(flow, x))
    np.testing.assert_allclose(log_density_of_steps(other, x, y), log_density_of_steps(flow, x, y))
    np.testing.assert_allclose(regime_shares(other, x, 3, y), regime_shares(flow, x, 3, y))


def test_regimes_given_both_ends_of_a_step_follow_bayes():
    rng = np.random.default_rng(3)
    flow = random_flow(rng, n_draws=1)
    x, y = rng.normal(size=(2, 1, 2))
    shares = np.exp(log_shares(flow, x))[:, 0]
    steps = flow.matrices @ x[0] + flow.intercepts
    likely = [multivariate_normal(m, v * np.eye(2)).pdf(y[0]) for m, v in zip(steps, flow.variances)]
    expected = np.bincount(flow.regimes, shares * likely, minlength=3)
    np.testing.assert_allclose(regime_shares(flow, x, 3, y)[0], expected / expected.sum())
    np.testing.assert_allclose(regime_shares(flow, x, 3)[0], np.bincount(flow.regimes, shares, minlength=3))


def test_the_way_back_is_a_ridge_regression_of_starts_on_ends():
    rng = np.random.default_rng(4)
    x, labels = rng.normal(size=(30, 2)), np.repeat([0, 1, 2], [20, 10, 0])
    y = x @ [[0.5, 0.2], [0.0, 0.7]] + 0.1 * rng.normal(size=(30, 2))
    moments = region_moments(multiplied_out(y, x), labels, np.array([0, 30]), 3, 2)
    centers, precisions, matrices = way_back(moments, np.array([100.0]), np.eye(2))
    for h in range(2):
        own = labels == h
        t = np.column_stack([y[own], np.ones(own.sum())])
        ridge = np.linalg.solve(100 * t.T @ t + np.eye(3), 100 * t.T @ x[own])
        np.testing.assert_allclose(matrices[0, h], ridge.T)
        n = own.sum()
        mean = y[own].sum(axis=0) / (n + 0.1)
        around = np.eye(2) + y[own].T @ y[own] - (n + 0.1) * np.outer(mean, mean)
        np.testing.assert_allclose(centers[0, h], mean)
        np.testing.assert_allclose(precisions[0, h], (n + 4) * np.linalg.inv(around))
    assert np.isfinite(matrices).all()


def test_a_bridge_of_a_linear_flow_without_noise_is_exact():
    turn = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    b = np.array([0.1, -0.2])
    flow, back = linear_flow(turn, b), linear_flow(turn.T, -turn.T @ b)
    rows = [np.array([1.0, 0.5])]
    for _ in range(19):
        rows.append(turn @ rows[-1] + b)
    rows = np.array(rows)
    missing = np.zeros(20, dtype=bool)
    missing[:2] = missing[6:13] = missing[18:] = True
    holes = np.where(missing[:, None], np.nan, rows)
    for bridge in (True, False):
        np.testing.assert_allclose(fill_gaps(flow, back, holes, missing, bridge, WIDE), rows, atol=1e-6)
    np.testing.assert_allclose(followed(flow, holes, missing)[6:], rows[6:], atol=1e-9)
    assert np.isfinite(followed(flow, holes, missing)).all()


def test_a_bridge_blends_two_ways_linearly():
    flow, back = (linear_flow(np.eye(2), np.array([step, 0.0])) for step in (1.0, -1.0))
    rows = np.array([[0.0, 0.0], [np.nan] * 2, [np.nan] * 2, [6.0, 3.0]])
    missing = np.array([False, True, True, False])
    forth, home = np.array([[1.0, 0], [2.0, 0]]), np.array([[4.0, 3.0], [5.0, 3.0]])
    expected = np.array([[2 / 3], [1 / 3]]) * forth + np.array([[1 / 3], [2 / 3]]) * home
    np.testing.assert_allclose(fill_gaps(flow, back, rows, missing, True, WIDE)[1:3], expected, atol=1e-6)
    np.testing.assert_allclose(fill_gaps(flow, back, rows, missing, False, WIDE)[1:3], forth, atol=1e-9)


def test_a_path_that_expands_is_cut_off_with_a_warning():
    flow = linear_flow(2.0 * np.eye(2), np.zeros(2))
    near = Bounds(np.zeros(2), 1.0)
    with pytest.warns(UserWarning, match="left the flow after 1 of 8 steps"):
        path = mean_path(flow, np.array([1.0, 0.0]), 8, near)
    np.testing.assert_allclose(path[0, 0], 2)
    assert np.isnan(path[1:]).all()
    with pytest.warns(UserWarning, match="left the flow"):
        paths = drawn_paths(np.random.default_rng(0), flow, np.ones((4, 2)), 8, near)
    assert np.isnan(paths[:, -1]).all()


def test_random_paths_have_the_distribution_of_the_flow():
    """One step of many paths: means and covariances within 5 standard errors; a false alarm in about 1e5."""
    flow = random_flow(np.random.default_rng(5))
    x = np.array([0.2, 0.1])
    n = 20000
    steps = drawn_paths(np.random.default_rng(6), flow, np.tile(x, (n, 1)), 1, WIDE)[:, 0]
    expected = next_means(flow, x[None])[0]
    assert (np.abs(steps.mean(axis=0) - expected) < 5 * steps.std(axis=0) / np.sqrt(n)).all()
    shares = np.exp(log_shares(flow, x[None]))[:, 0] / 3
    means = flow.matrices @ x + flow.intercepts
    second = (shares[:, None] * (means**2 + flow.variances[:, None])).sum(axis=0)
    squares = steps**2
    assert (np.abs(squares.mean(axis=0) - second) < 5 * squares.std(axis=0) / np.sqrt(n)).all()


def test_tasks_are_handed_over_where_they_share_a_matrix():
    """Task a has regime 0 on the left and 1 on the right, task b has 1 on the right: a path that goes right passes."""
    right = np.array([0.2, 0.0])
    two = {
        "draws": np.zeros(2, dtype=np.int64), "log_weights": np.log([0.5, 0.5]),
        "centers": np.array([[-2.0, 0.0], [2.0, 0.0]]), "precisions": np.tile(2 * np.eye(2), (2, 1, 1)),
        "matrices": np.tile(np.eye(2), (2, 1, 1)), "variances": np.full(2, 0.01),
    }  # fmt: skip
    a = Flow(**two, intercepts=np.tile(right, (2, 1)), regimes=np.array([0, 1]))
    up = np.array([[0.0, -0.2], [0.0, 0.2]])
    b = Flow(**two, intercepts=up, regimes=np.array([2, 1]))
    found = handed_over(a, b, np.array([-2.0, 0.0]), 20, WIDE)
    assert found.regime == 1
    assert found.switched_at == 11  # the eleventh row is the first beyond the middle
    np.testing.assert_allclose(found.path[:11, 1], 0.0, atol=0.02)
    assert found.path[-1, 1] > 1.0
    never = handed_over(a, b._replace(regimes=np.array([2, 3])), np.array([-2.0, 0.0]), 5, WIDE)
    assert (never.switched_at, never.regime) == (None, None)
    assert agreement(a, a, np.array([[5.0, 0.0]])) == (1.0, 1)


def test_a_path_passes_over_where_it_is_most_probable_under_the_other_task():
    rng = np.random.default_rng(8)
    a, b = random_flow(rng), random_flow(rng)
    x = np.array([0.5, 0.5])
    found = handed_over_where_probable(a, b, x, 12, WIDE)
    rows = np.vstack([x, mean_path(a, x, 6, WIDE)])
    places = [
        np.mean([
            np.sum([
                np.exp(b.log_weights[r]) * multivariate_normal(b.centers[r], np.linalg.inv(b.precisions[r])).pdf(row)
                for r in np.flatnonzero(b.draws == draw)
            ])
            for draw in range(3)
        ])
        for row in rows[:-1]
    ]  # fmt: skip
    np.testing.assert_allclose(log_density_of_places(b, rows[:-1]), np.log(places))
    best = int(np.argmax(np.log(places) + log_density_of_steps(b, rows[:-1], rows[1:])))
    assert found.switched_at == best
    np.testing.assert_allclose(found.path[:best], rows[1 : best + 1])
    np.testing.assert_allclose(found.path[best:], mean_path(b, rows[best], 12 - best, WIDE))
    assert found.path.shape == (12, 2)


def test_regimes_of_draws_are_named_by_what_they_share():
    reference = np.array([4, 4, 4, 7, 7, 2])
    same = np.array([0, 0, 0, 5, 5, 9])
    more = np.array([1, 1, 3, 2, 2, 2])
    names = common_names([same, more], reference)
    assert names[0] == {0: 0, 5: 1, 9: 2}
    assert names[1] == {1: 0, 2: 1, 3: 2}  # nothing of 3 is shared with the third, but that is left
    assert common_names([np.arange(6)], np.zeros(6, dtype=int))[0].keys() == set(range(6))


def test_steps_do_not_cross_the_ends_of_sequences():
    lengths = np.array([3, 0, 1, 2])
    np.testing.assert_array_equal(transition_rows(lengths), [0, 1, 4])
    rng = np.random.default_rng(7)
    parts = [rng.normal(size=(n, 2)) for n in (5, 4, 6)]
    parts[1][1, 0] = np.nan
    found = Transitions.of(np.concatenate(parts), np.array([5, 4, 6]), np.array([0, 1, 0]), ["a", "b"])
    np.testing.assert_array_equal(found.rows, [0, 1, 2, 3, 9, 10, 11, 12, 13, 7])
    np.testing.assert_array_equal(found.offsets, [0, 9, 10])
    ends = found.center + found.scale * found.ends
    np.testing.assert_allclose(ends, np.concatenate(parts)[found.rows + 1])
    # The same sequences in another order have the same steps.
    other = Transitions.of(
        np.concatenate([parts[2], parts[1], parts[0]]), np.array([6, 4, 5]), np.array([0, 1, 0]), ["a", "b"]
    )
    np.testing.assert_allclose(
        other.starts.T @ np.diff(np.stack([other.starts, other.ends]), axis=0)[0],
        found.starts.T @ np.diff(np.stack([found.starts, found.ends]), axis=0)[0],
    )


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([0], "one label for each of 2 sequences"),
        ([[0], [1]], "list of integers or names"),
        ([0.5, 1.0], "list of integers or names"),
        ([None, "a"], "integers or names"),
        ([0, 1, 1, 1], "must not change within a sequence"),
    ],
)
def test_bad_tasks_are_refused(tasks, message):
    with pytest.raises(ValueError, match=message):
        task_labels(tasks, np.array([2, 2]))


def test_tasks_may_be_given_for_each_row():
    np.testing.assert_array_equal(task_labels(["a", "a", "b", "b"], np.array([2, 0, 2])), ["a", "b", "b"])
    assert task_labels(None, np.array([2])) is None
