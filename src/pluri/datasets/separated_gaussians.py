r"""Gaussian mixtures with a wanted separation and eccentricity.

Means satisfy :math:`\|\mu_i - \mu_j\| \ge c \sqrt{\max(\operatorname{tr}\Sigma_i, \operatorname{tr}\Sigma_j)}` for all
pairs [1]_: at ``c = 2`` clusters hardly touch, at ``c = 0.2`` they lie on top of each other. Standard deviations along
random axes are uniform between 0.1 and 0.1 times the eccentricity.

References
----------
.. [1] S. Dasgupta, "Learning mixtures of Gaussians", FOCS 1999.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from pluri.validation import RandomState, as_generator

Array = NDArray[np.float64]

#: Standard deviation along an axis of a component without eccentricity.
UNIT = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class SeparatedGaussians:
    """Draws from a Gaussian mixture, and its parameters.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    labels : ndarray of shape (n_samples,)
        The component each row was drawn from.
    weights : ndarray of shape (n_components,)
        All above ``1 / (4 n_components)``.
    means : ndarray of shape (n_components, n_features)
    covariances : ndarray of shape (n_components, n_features, n_features)
    """

    X: Array
    labels: NDArray[np.int64]
    weights: Array
    means: Array
    covariances: Array

    def __repr__(self) -> str:
        n_samples, n_features = self.X.shape
        return f"SeparatedGaussians({n_samples} samples, {n_features} features, {len(self.weights)} components)"

    @property
    def separation(self) -> float:
        """Separation reached: the largest ``c`` for which the condition holds; infinite for one component."""
        ratios = _distances(self.means) / _reach(self.covariances)
        return float(ratios[np.triu_indices(len(self.means), 1)].min(initial=math.inf))


def make_separated_gaussians(
    n_samples: int = 1000,
    n_features: int = 20,
    n_components: int = 5,
    *,
    separation: float = 1.0,
    eccentricity: float = 1.0,
    random_state: RandomState = None,
) -> SeparatedGaussians:
    """Draw from a Gaussian mixture whose components are a given distance apart.

    Parameters
    ----------
    n_samples, n_features, n_components : int, default=1000, 20 and 5
    separation : float, default=1.0
        Smallest distance of two means, in units of the root of the larger trace.
    eccentricity : float, default=1.0
        Largest ratio of two standard deviations of a component; 1.0 gives covariances ``0.01 I``.
    random_state : int, Generator, RandomState or None
        Source of randomness.

    Returns
    -------
    SeparatedGaussians

    Examples
    --------
    >>> from pluri.datasets.separated_gaussians import make_separated_gaussians
    >>> data = make_separated_gaussians(500, 3, 4, separation=2.0, eccentricity=5.0, random_state=0)
    >>> data
    SeparatedGaussians(500 samples, 3 features, 4 components)
    >>> data.separation >= 2.0
    True
    """
    for name, count in {"n_samples": n_samples, "n_features": n_features, "n_components": n_components}.items():
        if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
            raise ValueError(f"{name} must be an integer of at least 1, got {count!r}")
    if not isinstance(separation, Real) or not (separation >= 0 and math.isfinite(separation)):
        raise ValueError(f"separation must be a non-negative number, got {separation!r}")
    if not isinstance(eccentricity, Real) or not (eccentricity >= 1 and math.isfinite(eccentricity)):
        raise ValueError(f"eccentricity must be a number of at least 1, got {eccentricity!r}")
    rng = as_generator(random_state)
    weights = _weights(n_components, rng)
    covariances, roots = _covariances(n_components, n_features, float(eccentricity), rng)
    means = _means(covariances, float(separation), rng)
    labels = rng.choice(n_components, size=n_samples, p=weights)
    X = means[labels]
    for component in range(n_components):
        mine = labels == component
        X[mine] += rng.standard_normal((int(mine.sum()), n_features)) @ roots[component].T
    return SeparatedGaussians(X, labels, weights, means, covariances)


def _weights(n_components: int, rng: np.random.Generator) -> Array:
    """Normalise uniform numbers, redrawn until none is below a quarter of the average."""
    while True:
        weights = rng.uniform(size=n_components)
        weights /= weights.sum()
        if (weights > 0.25 / n_components).all():
            return weights


def _covariances(
    n_components: int, n_features: int, eccentricity: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Covariances, and factors of them, with random axes."""
    deviations = UNIT * rng.uniform(1.0, eccentricity, size=(n_components, n_features))
    axes, triangles = np.linalg.qr(rng.standard_normal((n_components, n_features, n_features)))
    signs = np.sign(np.diagonal(triangles, axis1=1, axis2=2))
    roots = axes * (signs * deviations)[:, None, :]
    covariances = roots @ np.swapaxes(roots, 1, 2)
    return 0.5 * (covariances + np.swapaxes(covariances, 1, 2)), roots


def _distances(means: Array) -> Array:
    return np.asarray(np.linalg.norm(means[:, None, :] - means, axis=2))


def _reach(covariances: Array) -> Array:
    traces = np.trace(covariances, axis1=1, axis2=2)
    return np.asarray(np.sqrt(np.maximum(traces[:, None], traces)))


def _means(covariances: Array, separation: float, rng: np.random.Generator) -> Array:
    """Draw means in a cube that grows, from nothing, until they are far enough apart."""
    n_components, n_features = covariances.shape[:2]
    pairs = np.triu_indices(n_components, 1)
    wanted = (separation * _reach(covariances))[pairs]
    side, step = 0.0, 0.01 * max(float(wanted.max(initial=0.0)), UNIT)
    while True:
        means = side * rng.uniform(size=(n_components, n_features))
        if (_distances(means)[pairs] >= wanted).all():
            return means
        side += step
