"""What a column of a Gaussian mixture tells about others: closed forms, sums over a grid, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import xlogy
from scipy.stats import multivariate_normal

from pluri.decisions import NextObservation
from pluri.mixtures import GaussianMixture

NAN = np.nan
#: Standard errors; a normal estimate is further off once in 1.7 million.
FAR = 5.0


def mixture(weights, means, covariances):
    means = np.array(means, dtype=float)
    model = GaussianMixture(len(means), random_state=0).fit(np.random.default_rng(0).normal(size=(60, means.shape[1])))
    model.weights_, model.means_, model.covariances_ = np.array(weights), means, np.array(covariances)
    return model


ONE = mixture([1.0], [[0.0, 1.0, 2.0, 3.0]], [0.4 * np.ones((4, 4)) + np.diag([0.6, 1.0, 0.2, 2.0])])
TWO = mixture(
    [0.3, 0.7],
    [[0.0, 0.0, 1.0], [2.0, 1.0, -1.0]],
    [[[1.0, 0.8, 0.2], [0.8, 1.0, 0.1], [0.2, 0.1, 1.0]], [[1.0, -0.5, 0.0], [-0.5, 2.0, 0.6], [0.0, 0.6, 1.0]]],
)


def gaussian_information(C, first, second):
    """I(x_first; x_second) of jointly normal columns, by determinants."""
    logs = [np.linalg.slogdet(C[np.ix_(one, one)])[1] for one in (first, second, [*first, *second])]
    return 0.5 * (logs[0] + logs[1] - logs[2])


def grid_information(model, row, first, second):
    """I(x_first; x_second | what is seen) of a mixture, by a sum over a grid of both columns."""
    seen = [column for column in range(3) if not np.isnan(row[column])]
    axis, step = np.linspace(-9, 11, 801, retstep=True)
    joint = np.zeros((801, 801))
    for weight, mean, C in zip(model.weights_, model.means_, model.covariances_):
        places = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
        points = np.empty((801, 801, 2 + len(seen)))
        points[..., :2], points[..., 2:] = places, row[seen]
        order = [first, second, *seen]
        joint += weight * multivariate_normal(mean[order], C[np.ix_(order, order)]).pdf(points)
    joint /= joint.sum() * step**2
    parts = joint.sum(axis=1) * step, joint.sum(axis=0) * step
    return step**2 * xlogy(joint, joint).sum() - step * sum(xlogy(one, one).sum() for one in parts)


@pytest.mark.parametrize("target", [3, [3], [1, 3]])
def test_a_single_gaussian_is_exact_whatever_is_drawn(target):
    wanted = np.atleast_1d(target).tolist()
    scores = NextObservation(ONE, target, n_samples=7, random_state=0).information([NAN] * 4)
    assert scores.candidates.tolist() == [column for column in range(4) if column not in wanted]
    expected = [gaussian_information(ONE.covariances_[0], [column], wanted) for column in scores.candidates]
    assert_allclose(scores.information, expected, rtol=1e-9)
    assert_allclose(scores.standard_error, 0.0, atol=1e-12)
    plan = NextObservation(ONE, target, n_samples=7, random_state=0).plan([NAN] * 4, budget=2)
    assert_allclose(plan.values[-1], gaussian_information(ONE.covariances_[0], plan.items.tolist(), wanted), rtol=1e-9)


@pytest.mark.parametrize("row", [[NAN, NAN, NAN], [NAN, 1.5, NAN]])
def test_columns_of_a_mixture_against_a_grid(row):
    row = np.array(row)
    scores = NextObservation(TWO, 2, n_samples=2000, random_state=1).information(row)
    for column, found, error in zip(scores.candidates, scores.information, scores.standard_error):
        assert abs(found - grid_information(TWO, row, int(column), 2)) < FAR * error + 1e-6
        assert error < 0.02


def test_a_plan_adds_up_to_the_information_of_all_that_is_planned():
    plan = NextObservation(TWO, 2, n_samples=3000, random_state=2).plan([NAN] * 3, budget=2)
    # I(x_0, x_1; x_2) by draws from the mixture.
    rng = np.random.default_rng(3)
    source = rng.choice(2, size=40_000, p=TWO.weights_)
    drawn = np.array([rng.multivariate_normal(TWO.means_[z], TWO.covariances_[z]) for z in source])

    def log_density(columns):
        each = [
            w * multivariate_normal(m[columns], C[np.ix_(columns, columns)]).pdf(drawn[:, columns])
            for w, m, C in zip(TWO.weights_, TWO.means_, TWO.covariances_)
        ]
        return np.log(np.sum(each, axis=0))

    each = log_density([0, 1, 2]) - log_density([0, 1]) - log_density([2])
    error = np.sqrt((plan.standard_error**2).sum() + each.var() / len(each))
    assert abs(plan.values[-1] - each.mean()) < FAR * error


def test_far_components_make_a_column_tell_which_one_it_is():
    far = mixture([0.5, 0.5], [[0.0, 0.0], [50.0, 50.0]], [np.eye(2), np.eye(2)])
    scores = NextObservation(far, 1, n_samples=200, random_state=0).information([NAN, NAN])
    assert_allclose(scores.information, np.log(2), atol=1e-9)
    seen = NextObservation(far, [1], random_state=0)
    with pytest.raises(ValueError, match="target must be one or several columns that are not observed"):
        seen.information([NAN, 1.0])


@pytest.mark.parametrize("target", [7, -1, [0, 0], [], 1.5, "a", [[0]], True])
def test_a_target_that_is_no_column_is_refused(target):
    with pytest.raises(ValueError, match="target must be one or several columns"):
        NextObservation(TWO, target).information([NAN] * 3)


def test_a_target_of_everything_leaves_nothing_to_observe():
    with pytest.raises(ValueError, match="target must leave a column to observe"):
        NextObservation(TWO, [0, 2]).information([NAN, 1.0, NAN])
