"""The approximations by name, their evidence as a function of hyper-parameters, and predictions from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pluri.processes.gp_inference.covariance import Covariance, as_matrix
from pluri.processes.gp_inference.exact import Jitter, cholesky
from pluri.processes.gp_inference.expectation_propagation import expectation_propagation, site_gradient
from pluri.processes.gp_inference.laplace import laplace, laplace_gradient
from pluri.processes.gp_inference.polya_gamma import polya_gamma
from pluri.processes.gp_inference.sites import GaussianSites, expected_sigmoid, factor_of, half_solve

Array = NDArray[np.float64]
Approximation = Literal["laplace", "ep", "polya_gamma"]


def approximate(
    how: Approximation, covariance: Array, labels: Array, max_iter: int, damping: float, start: Array | None = None
) -> GaussianSites:
    """Gaussian sites by name of the approximation; Newton's iteration may start from given weights."""
    if how == "laplace":
        return laplace(covariance, labels, max_iter, start)
    if how == "ep":
        return expectation_propagation(covariance, labels, max_iter, damping)
    return polya_gamma(covariance, labels, max_iter)


@dataclass(frozen=True)
class ApproximateEvidence:
    """Approximate log evidence of labels -1 and 1 as a function of log hyper-parameters, with its gradient."""

    covariance: Covariance
    labels: Array
    how: Approximation
    max_iter: int
    damping: float
    #: Where an optimiser keeps the weights of the last evaluation, for the next to start from; None: independent.
    memory: dict[str, Array] | None = None

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient; -inf and zeros where the covariance matrix is not one to rounding."""
        part, slopes = self.covariance.evaluate(theta)
        matrix = as_matrix(part, len(self.labels))
        try:
            start = self.memory.get("weights") if self.memory is not None else None
            sites = approximate(self.how, matrix, self.labels, self.max_iter, self.damping, start)
            if self.memory is not None:
                self.memory["weights"] = sites.weights
            if self.how == "laplace":
                gradient = laplace_gradient(matrix, self.labels, sites, slopes)
            else:
                gradient = site_gradient(matrix, sites, slopes)
        except np.linalg.LinAlgError:
            return -math.inf, np.zeros(len(theta))
        if not math.isfinite(sites.log_evidence):
            return -math.inf, np.zeros(len(theta))
        return sites.log_evidence, gradient


@dataclass(frozen=True)
class Component:
    """Part of a mixture of Gaussian processes: one kernel, and one or more posterior means under it.

    Attributes
    ----------
    kernel : scikit-learn kernel
    weights : (n_means, n), ``K^-1`` times a mean of f at the training inputs
    precision : (n,), of the sites; None if f is known at the training inputs (a draw)
    """

    kernel: Any
    weights: Array
    precision: Array | None

    def latent(self, X: Array, X_new: Array, jitter: Jitter) -> tuple[Array, Array]:
        """Means (n_means, n_new) and variances (n_new,) of f at new inputs."""
        cross, covariance = self.kernel(X, X_new), self.kernel(X)
        if self.precision is None:
            half = half_solve(cholesky(covariance, jitter), cross)
        else:
            factor, root = factor_of(covariance, self.precision)
            half = half_solve(factor, root[:, None] * cross)
        variance = np.maximum(self.kernel.diag(X_new) - np.einsum("ij,ij->j", half, half), 0.0)
        return self.weights @ cross, variance


def mixture_of(components: Sequence[Component], X: Array, X_new: Array, jitter: Jitter) -> tuple[Array, Array, Array]:
    """Mean and variance of f at new inputs, and the probability of label 1, each (n_new,)."""
    n_new = len(X_new)
    means, squares, chances = np.zeros((3, n_new))
    count = sum(len(component.weights) for component in components)
    for component in components:
        mean, variance = component.latent(X, X_new, jitter)
        means += mean.sum(axis=0) / count
        squares += (mean**2 + variance).sum(axis=0) / count
        chances += expected_sigmoid(mean, np.broadcast_to(variance, mean.shape)).sum(axis=0) / count
    return means, np.maximum(squares - means**2, 0.0), chances
