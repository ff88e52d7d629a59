r"""The two parametrisations that the augmented one is measured against.

``original`` moves means in a flat space and covariances on their manifold; its objective is not geodesically convex
even for one component. ``cholesky`` writes the inverse of the augmented matrix as :math:`C C^\top` with a lower
triangular :math:`C` in a flat space.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.mixtures.riemannian.augmented import AugmentedMixture, MixturePoint, located
from pluri.mixtures.riemannian.coordinates import augment
from pluri.optimize.manifolds import SPD, Euclidean, Product
from pluri.optimize.riemannian.problem import ManifoldProblem

Array = NDArray[np.float64]
Triple = tuple[Array, Array, Array]


def _visited(mixture: AugmentedMixture, point: MixturePoint) -> tuple[Array, Array, Array]:
    """Shares with the prior's (K,), and what pulls at the whitened matrices (K, m, m), logit slopes (K - 1,)."""
    mixture.visit(point)
    assert point.moments is not None
    slopes = mixture.slopes(point)
    shares = point.moments.shares + mixture.penalty.weight
    pulled = point.moments.second
    if mixture.penalty.weight:
        pulled = pulled + mixture.penalty.whitened(point.inverse)
    return shares, pulled, slopes[pulled.size :]


def original_problem(mixture: AugmentedMixture) -> ManifoldProblem:
    """Means, covariances and logits, each with its own geometry."""
    _, means, covariances, _ = mixture.point.read_off()
    n_components, n_features = means.shape
    manifold = Product(
        Euclidean((n_components, n_features)), SPD(n_features, n_components), Euclidean(n_components - 1)
    )

    def value_and_gradient(parameters: Triple) -> tuple[float, Triple]:
        mu, sigma, logits = parameters
        point = located(augment(mu, sigma), np.append(logits, 0.0))
        shares, pulled, logit_slopes = _visited(mixture, point)
        second = point.frames @ pulled @ np.swapaxes(point.frames, 1, 2)
        inverse = np.linalg.inv(sigma)
        crossed = second[:, :-1, -1, None] * mu[:, None, :]
        scatter = second[:, :-1, :-1] - crossed - np.swapaxes(crossed, 1, 2)
        scatter = scatter + second[:, -1, -1, None, None] * mu[:, :, None] * mu[:, None, :]
        of_means = -np.einsum("kab,kb->ka", inverse, second[:, :-1, -1] - second[:, -1, -1, None] * mu)
        of_covariances = 0.5 * (shares[:, None, None] * inverse - inverse @ scatter @ inverse)
        return point.value, (of_means, of_covariances, logit_slopes)

    return ManifoldProblem(value_and_gradient, manifold, (means, covariances, mixture.point.logits[:-1]))


def original_point(problem: ManifoldProblem) -> MixturePoint:
    """Where that problem is."""
    means, covariances, logits = problem.point
    return located(augment(means, covariances), np.append(logits, 0.0))


def cholesky_problem(mixture: AugmentedMixture) -> ManifoldProblem:
    """Lower triangular factors of the inverse augmented matrices, and logits, in a flat space."""
    n_components, size, _ = mixture.shape
    manifold = Product(Euclidean((n_components, size, size)), Euclidean(n_components - 1))
    matrices = mixture.point.frames @ np.swapaxes(mixture.point.frames, 1, 2)
    start = np.linalg.cholesky(np.linalg.inv(matrices))

    def value_and_gradient(parameters: tuple[Array, Array]) -> tuple[float, tuple[Array, Array]]:
        factors, logits = parameters
        point = _at_factors(factors, logits)
        shares, pulled, logit_slopes = _visited(mixture, point)
        # With S^-1 = C C^T the whitened rows are C^T y, so sum r y y^T C = C^-T M.
        crossed = np.linalg.solve(np.swapaxes(factors, 1, 2), pulled)
        slopes = np.tril(crossed)
        diagonal = np.diagonal(factors, axis1=1, axis2=2)
        slopes[:, np.arange(size), np.arange(size)] -= shares[:, None] / diagonal
        return point.value, (slopes, logit_slopes)

    return ManifoldProblem(value_and_gradient, manifold, (start, mixture.point.logits[:-1]))


def _at_factors(factors: Array, logits: Array) -> MixturePoint:
    diagonal = np.abs(np.diagonal(factors, axis1=1, axis2=2))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_determinants = -2.0 * np.log(diagonal).sum(axis=1)
    inverse = np.swapaxes(factors, 1, 2)
    frames = np.asarray(np.linalg.inv(inverse), dtype=np.float64)
    return MixturePoint(frames, inverse, log_determinants, np.append(logits, 0.0))


def cholesky_point(problem: ManifoldProblem) -> MixturePoint:
    """Where that problem is."""
    factors, logits = problem.point
    return _at_factors(factors, logits)
