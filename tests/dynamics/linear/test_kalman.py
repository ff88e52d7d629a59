"""Kalman filter and smoother against the joint Gaussian distribution of all states and observations."""

from dataclasses import fields

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from pluri.dynamics import LinearGaussianModel, kalman_filter, kalman_smoother

T = 5


@pytest.fixture(scope="module")
def model():
    return LinearGaussianModel(
        transition_matrix=[[0.9, 0.3], [-0.2, 0.7]],
        transition_covariance=[[0.5, 0.1], [0.1, 0.3]],
        observation_matrix=[[1.0, 0.0], [0.5, -1.0], [0.0, 2.0]],
        observation_covariance=np.diag([0.4, 0.3, 0.6]) + 0.05,
        initial_mean=[1.0, -1.0],
        initial_covariance=[[1.0, 0.2], [0.2, 0.8]],
        transition_offset=[0.1, -0.2],
        observation_offset=[0.0, 1.0, -1.0],
    )


def joint(model):
    """Mean and covariance of (x_0 ... x_{T-1}), then of (y_0 ... y_{T-1}), and the covariance between them."""
    arrays = model.arrays
    d = 2
    mean, states = np.zeros(T * d), np.zeros((T * d, T * d))
    centre, covariance = arrays.m, arrays.P
    for t in range(T):
        if t:
            centre, covariance = arrays.A @ centre + arrays.b, arrays.A @ covariance @ arrays.A.T + arrays.Q
        mean[t * d : (t + 1) * d] = centre
        block = covariance
        for s in range(t, T):
            states[s * d : (s + 1) * d, t * d : (t + 1) * d] = block
            states[t * d : (t + 1) * d, s * d : (s + 1) * d] = block.T
            block = arrays.A @ block
    emission = np.kron(np.eye(T), arrays.C)
    seen_mean = emission @ mean + np.tile(arrays.c, T)
    return mean, states, seen_mean, emission @ states @ emission.T + np.kron(np.eye(T), arrays.R), states @ emission.T


@pytest.mark.parametrize("missing", [[], [3, 4, 5], [0, 7, 9, 10, 11]])
def test_filter_and_smoother_equal_conditioning_of_the_joint_gaussian(model, missing):
    _, observations = model.sample(T, random_state=0)
    observations = observations.copy()
    observations.ravel()[missing] = np.nan
    mean, states, seen_mean, seen, between = joint(model)
    kept = np.flatnonzero(~np.isnan(observations.ravel()))
    filtered, smoothed = kalman_filter(model, observations), kalman_smoother(model, observations)
    density = multivariate_normal(seen_mean[kept], seen[np.ix_(kept, kept)])
    assert filtered.log_evidence == pytest.approx(density.logpdf(observations.ravel()[kept]), abs=1e-10)
    for t in range(T):
        for result, known in ((filtered, kept[kept < 3 * (t + 1)]), (smoothed, kept)):
            gain = np.linalg.solve(seen[np.ix_(known, known)], between[:, known].T).T
            exact = mean + gain @ (observations.ravel()[known] - seen_mean[known])
            covariance = states - gain @ between[:, known].T
            here = slice(2 * t, 2 * t + 2)
            assert result.mean[t] == pytest.approx(exact[here], abs=1e-10)
            assert result.covariance[t] == pytest.approx(covariance[here, here], abs=1e-10)


def test_smoother_copes_with_a_state_without_noise():
    model = LinearGaussianModel([[1.0, 1.0], [0.0, 1.0]], np.zeros((2, 2)), [[1.0, 0.0]], 1.0, [0.0, 0.0], np.eye(2))
    _, observations = model.sample(30, random_state=0)
    result = kalman_smoother(model, observations)
    # A straight line through the observations, with a standard normal prior on intercept and slope.
    design = np.stack([np.ones(30), np.arange(30)], axis=1)
    line = np.linalg.solve(design.T @ design + np.eye(2), design.T @ observations[:, 0])
    assert result.mean[:, 0] == pytest.approx(design @ line, abs=1e-8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transition_matrix": np.zeros((2, 3))}, r"transition_matrix must have shape \(2, 2\), got \(2, 3\)"),
        ({"observation_matrix": np.zeros((3, 1))}, r"observation_matrix must have shape \(n, 2\), got \(3, 1\)"),
        ({"observation_covariance": np.zeros((3, 3))}, "observation_covariance must be positive definite"),
        ({"initial_covariance": -np.eye(2)}, "initial_covariance must be positive semi-definite"),
        ({"initial_covariance": [[1.0, 0.5], [0.0, 1.0]]}, "initial_covariance must be symmetric"),
        ({"initial_mean": [np.nan, 0.0]}, "initial_mean must be finite, got nan"),
    ],
)
def test_matrices_that_do_not_fit_are_refused_by_name(model, change, message):
    with pytest.raises(ValueError, match=message):
        LinearGaussianModel(**{field.name: getattr(model, field.name) for field in fields(model)} | change)


def test_observations_of_the_wrong_shape_are_refused(model):
    with pytest.raises(ValueError, match=r"observations must have shape \(n_steps, 3\), got \(4, 2\)"):
        kalman_filter(model, np.zeros((4, 2)))
    with pytest.raises(ValueError, match="at least one row"):
        kalman_filter(model, np.zeros((0, 3)))
