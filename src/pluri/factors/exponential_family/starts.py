"""Starting values that depend on the data only through sums: row order and weights for repeated rows change nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import logsumexp

from pluri.factors.exponential_family.loadings import InterceptPrior
from pluri.factors.exponential_family.observations import Observations
from pluri.optimize.fixed_point import iterate

Array = NDArray[np.float64]

INITS = ("svd", "random")
#: Size of the entries of random loadings.
RANDOM_SIZE = 0.1
#: Up to this number of features leading directions come from the covariance matrix, beyond from random projections.
MOST_FEATURES = 2000
#: Starts whose values differ by less than this share are taken for equal, and the first is kept: rounding depends on
#: the order of the rows, and must not choose between two numberings of the same classes.
TIE = 1e-9
#: Numbers of pseudo-observations that are tried.
COUNTS = np.geomspace(0.5, 2000.0, 13)


def start_weights(
    data: Observations, weight: Array, intercept: Array, width: int, init: str, rng: np.random.Generator
) -> Array:
    """Loadings to begin with, (n_features, width): leading directions of the residuals, or small random numbers."""
    if init == "random" or width == 0:
        return RANDOM_SIZE * rng.normal(size=(data.n_features, width))
    directions, sizes = leading_directions(data, weight, intercept, width, rng)
    return directions * sizes


def leading_directions(
    data: Observations, weight: Array, intercept: Array, width: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Directions (n_features, width) of largest variance of the working residuals, and standard deviations along them.

    The working residual is (t - a'(b)) times a step of theta per unit of t; missing entries are zero.
    """
    mean = data.family.derivatives(intercept)[0]
    gain = data.family.spread(mean)
    root = np.sqrt(weight / max(float(weight.sum()), 1e-300))

    def residuals(rows: slice) -> Array:
        values = (data.statistic[rows] - mean) * gain
        known = data.mask(rows)
        if known is not None:
            values = values * known
        return values * root[rows, None]

    n_features = data.n_features
    if n_features <= MOST_FEATURES:
        covariance = np.zeros((n_features, n_features))
        for rows in data.blocks():
            part = residuals(rows)
            covariance += part.T @ part
        values, vectors = eigh(covariance, subset_by_index=(n_features - width, n_features - 1))
        values, vectors = values[::-1], vectors[:, ::-1]
    else:
        from sklearn.utils.extmath import randomized_svd

        _, sizes, transposed = randomized_svd(
            residuals(slice(0, data.n_samples)), width, transpose=False, random_state=int(rng.integers(2**31 - 1))
        )
        values, vectors = sizes**2, transposed.T
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    vectors = vectors * np.where(signs == 0, 1.0, signs)
    return np.ascontiguousarray(vectors), np.sqrt(np.maximum(values, 0.0))


def latent_classes(
    data: Observations,
    n_components: int,
    prior: InterceptPrior,
    rng: np.random.Generator,
    n_starts: int = 10,
    n_sweeps: int = 25,
) -> Array:
    """Responsibilities (n_samples, n_components) of a mixture without latent dimensions, the best of several starts.

    Each start draws its centres from the Gaussian that has the mean and the leading directions of the data; short runs
    are compared, and the best goes on.
    """
    if n_components == 1:
        return np.ones((data.n_samples, 1))
    overall = data.means()
    natural = data.family.natural(overall)
    width = min(data.n_features, max(2 * n_components, 5))
    directions, sizes = leading_directions(data, data.weight, natural, width, rng)
    best, best_value = np.full((data.n_samples, n_components), 1.0 / n_components), -np.inf
    for _ in range(n_starts):
        steps = rng.normal(size=(n_components, width)) * sizes @ directions.T
        responsibilities, value = _sweeps(data, natural + steps, n_sweeps, prior)
        if value - TIE * abs(value) > best_value:
            best, best_value = responsibilities, value
    return _sweeps(data, _centres(data, best, prior), 3 * n_sweeps, prior)[0]


def learned_counts(data: Observations, responsibilities: Array, mean: Array) -> Array:
    """How many pseudo-observations of its overall mean each feature should have, (n_features,).

    The centres of the classes are integrated out under their conjugate prior, for each number on a grid; how common
    these numbers are among the features is learned too (nonparametric empirical Bayes). A feature that does not care
    about the classes gets many, so that chance differences vanish; one that tells them apart gets few.
    """
    weights = responsibilities * data.weight[:, None]
    totals = weights.T @ data.statistic
    counts = np.stack([data.counts(column) for column in weights.T])
    logs = np.empty((len(COUNTS), data.n_features))
    for g, count in enumerate(COUNTS):
        after = data.family.log_integral(totals + count * mean, counts + count)
        before = data.family.log_integral(count * mean, np.full_like(mean, count))
        logs[g] = (after - before).sum(axis=0)
    likelihood = np.exp(logs - logs.max(axis=0))
    shares = np.full(len(COUNTS), 1.0 / len(COUNTS))
    for _ in range(100):
        posterior = shares[:, None] * likelihood
        posterior /= posterior.sum(axis=0)
        shares = posterior.mean(axis=1)
    return np.exp(np.log(COUNTS) @ posterior)


def _sweeps(data: Observations, centres: Array, n_sweeps: int, prior: InterceptPrior) -> tuple[Array, float]:
    at_centre = prior.centre * prior.mean - data.family.log_partition(prior.centre)
    anchor = len(centres) * float(at_centre @ prior.count)

    def sweep(state: tuple[Array, Array, Array, float]) -> tuple[tuple[Array, Array, Array, float], float]:
        centres, log_weights, _, last = state
        partition = data.family.log_partition(centres)
        explained = partition.sum(axis=1) if data.known is None else data.known @ partition.T
        joint = data.statistic @ centres.T - explained + log_weights
        total = logsumexp(joint, axis=1)
        responsibilities = np.exp(joint - total[:, None])
        value = float(data.weight @ total + ((centres * prior.mean - partition) @ prior.count).sum() - anchor)
        centres = _centres(data, responsibilities, prior)
        shares = data.weight @ responsibilities
        log_weights = np.log(np.maximum(shares, 1e-300) / max(shares.sum(), 1e-300))
        return (centres, log_weights, responsibilities, value), value - last - 1e-6 * abs(value)

    even = np.full(len(centres), -np.log(len(centres)))
    _, _, responsibilities, value = iterate(sweep, (centres, even, np.empty(0), -np.inf), max_iter=n_sweeps).state
    return responsibilities, value


def _centres(data: Observations, responsibilities: Array, prior: InterceptPrior) -> Array:
    weights = responsibilities * data.weight[:, None]
    totals = weights.T @ data.statistic
    counts = np.stack([data.counts(column) for column in weights.T])
    count = np.maximum(prior.count, 1e-3)  # also keeps classes without rows, and constant features, inside the range
    return data.family.natural((totals + count * prior.mean) / (counts + count))
