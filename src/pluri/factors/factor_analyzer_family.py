"""Factor analysers as components of a mixture (one of them is factor analysis): densities, statistics and M-step.

Given responsibilities, each feature d of component j is a regression on the factors and a constant,
``y_d = w_d' x + m_d + noise``, with the factors replaced by their posterior moments. With ``t = (x, 1)`` and e the
deviation from the centre of the data, the statistics are ``sum r E[t t']`` and ``sum r E[t] e_d`` over the rows in
which d is observed; the M-step solves the regression of each feature and takes the mean squared residual as its noise.
The noise may be free, the same for all features of a component (then a component is probabilistic PCA), or the same in
all components.

References
----------
Ghahramani and Hinton (1996), The EM algorithm for mixtures of factor analyzers, CRG-TR-96-1, Toronto.
Tipping and Bishop (1999), Mixtures of probabilistic principal component analyzers, Neural Computation 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pluri.components.gaussian import check_magnitude
from pluri.components.k_means import filled, kmeans_centers, nearest_center
from pluri.engine import Batch, Source, Statistics, map_reduce
from pluri.factors.low_rank_gaussian import (
    LowRankGaussians,
    Patterns,
    draw,
    each_posterior,
    log_density,
    principal_factors,
    whitened,
)
from pluri.validation import plain_array

Array = NDArray[np.float64]

NOISES = ("diag", "isotropic", "shared")
STARTS = ("kmeans", "k-means++", "random", "random_from_data")
#: Components with less than this weight (share, if all weigh less than one) keep their parameters.
TINY = 1e-10
#: What is added to the (relative) diagonal of a regression that may be singular.
RIDGE = 1e-12


@dataclass(frozen=True)
class FactorStatistics(Statistics):
    """Weighted moments of factors and deviations.

    Attributes
    ----------
    moments : (k, q + 1, q + 1), or (k, D, q + 1, q + 1) if values may be missing: sum of r E[t t'], t = (x, 1)
    cross : (k, q + 1, D): sum of r E[t] e
    squares : (k, D): sum of r e^2
    """

    moments: Array
    cross: Array
    squares: Array


@dataclass(frozen=True)
class FactorAnalyzerFamily:
    """Factor analysers with given settings.

    Parameters
    ----------
    n_factors : number of factors q
    noise : "diag", "isotropic" or "shared"
    center : (D,): what deviations are taken from; no answer depends on it, but rounding does
    floor : (D,): smallest variance of the noise of each feature
    missing : whether values may be missing (NaN)
    start_from : where EM starts: "kmeans", "k-means++", "random_from_data" or "random"
    jitter : how much starting loadings are disturbed, in standard deviations of the noise
    """

    n_factors: int
    noise: str
    center: Array
    floor: Array
    missing: bool = False
    start_from: str = "kmeans"
    jitter: float = 0.01
    advice: ClassVar[str] = "rescale the data, raise noise_floor, or use fewer components"

    def prepare(self, X: NDArray[Any]) -> Array:
        """Numbers in double precision, whose squares must not overflow."""
        return check_magnitude(plain_array(X))

    def start(
        self, X: Array, weight: Array | None, n_components: int, rng: np.random.Generator
    ) -> tuple[Array, LowRankGaussians]:
        """Weights and parameters to start from: probabilistic PCA of each cluster of (weighted) rows."""
        complete = filled(X)
        n, D = complete.shape
        labels: NDArray[np.int64]
        if self.start_from == "random":
            labels = np.asarray(rng.integers(n_components, size=n))
        else:
            labels = nearest_center(complete, self._centers(complete, n_components, rng)).astype(np.int64)
        mass = np.ones(n) if weight is None else weight
        floor = float(self.floor.mean())
        means, loadings = np.empty((n_components, D)), np.empty((n_components, D, self.n_factors))
        noise = np.empty((n_components, D))
        for j in range(n_components):
            mine = labels == j
            if mine.sum() < 2:  # a cluster of one row has no spread: it borrows that of all
                _, loadings[j], noise[j] = principal_factors(complete, mass, self.n_factors, floor)
                means[j] = complete[np.argmax(mine)] if mine.any() else complete[rng.integers(n)]
            else:
                means[j], loadings[j], noise[j] = principal_factors(complete[mine], mass[mine], self.n_factors, floor)
        # A direction without loadings would never get any, and equal components would stay equal.
        scale = np.sqrt(noise.mean(axis=1))[:, None, None]
        jitter = 1.0 if self.start_from == "random" else self.jitter
        loadings += jitter * scale * rng.standard_normal(loadings.shape)
        share = np.bincount(labels, weights=mass, minlength=n_components) / mass.sum()
        weights = (n * share + 1.0) / (n + n_components)
        if self.noise == "shared":
            noise[:] = (weights[:, None] * noise).sum(axis=0)
        return weights, LowRankGaussians(means, loadings, np.maximum(noise, self._floor()))

    def _centers(self, X: Array, n_components: int, rng: np.random.Generator) -> Array:
        if self.start_from == "kmeans":
            return kmeans_centers(X, n_components, rng)
        if self.start_from == "random_from_data":
            return X[rng.choice(len(X), n_components, replace=len(X) < n_components)]
        from sklearn.cluster import kmeans_plusplus

        found, _ = kmeans_plusplus(X, n_components, random_state=int(rng.integers(2**31)))
        return np.asarray(found)

    def initialize(self, X: Array, n_components: int, rng: np.random.Generator) -> LowRankGaussians:
        """The parameters of `start`."""
        return self.start(X, None, n_components, rng)[1]

    def log_prob(self, parameters: LowRankGaussians, X: Array, out: Array) -> None:
        """Write log densities of the rows into the first columns of `out`."""
        log_density(parameters, Patterns.of(X), out)

    def accumulate(self, parameters: LowRankGaussians, X: Array, posterior: Array) -> FactorStatistics:
        """Moments under weighted responsibilities."""
        rows = Patterns.of(X)
        if rows.observed is None:
            return self._accumulate_complete(parameters, X, posterior[:, : len(parameters.means)])
        (n, D), k, q = X.shape, len(parameters.means), self.n_factors
        moments = np.zeros((k, D, q + 1, q + 1))
        cross, squares = np.empty((k, q + 1, D)), np.empty((k, D))
        t = np.ones((n, q + 1))
        E = (rows.values - self.center) * rows.observed
        squared = E**2
        for j, found in each_posterior(parameters, rows):
            r = posterior[:, j]
            t[:, :q] = found.means
            weighted = r[:, None] * t
            cross[j] = weighted.T @ E
            squares[j] = r @ squared
            each = (weighted[:, :, None] * t[:, None, :]).reshape(n, -1)
            moments[j] = (rows.observed.T @ each).reshape(D, q + 1, q + 1)
            share = np.bincount(rows.index, weights=r, minlength=len(rows.distinct))
            spread = (rows.distinct * share[:, None]).T @ found.covariances.reshape(len(share), -1)
            moments[j, :, :q, :q] += spread.reshape(D, q, q)
        return FactorStatistics(moments, cross, squares)

    def _accumulate_complete(self, parameters: LowRankGaussians, X: Array, r: Array) -> FactorStatistics:
        """The moments of rows without missing values, all components at a time."""
        (n, D), (k, _, q) = X.shape, parameters.loadings.shape
        E, counts = X - self.center, r.sum(axis=0)
        squares = r.T @ (E * E)
        t = np.ones((n, k, q + 1))
        root, projection = whitened(parameters)
        inverse = np.linalg.inv(root)
        B = projection @ inverse  # means of the factors are B' (y - m)
        offset = np.einsum("kd,kdq->kq", parameters.means - self.center, B)
        t[:, :, :q] = (E @ B.transpose(1, 0, 2).reshape(D, k * q)).reshape(n, k, q) - offset
        weighted = t * r[:, :, None]
        cross = (weighted.reshape(n, -1).T @ E).reshape(k, q + 1, D)
        moments = weighted.transpose(1, 2, 0) @ t.transpose(1, 0, 2)
        moments[:, :q, :q] += counts[:, None, None] * (inverse.transpose(0, 2, 1) @ inverse)
        if self.missing:  # other rows may have holes: a matrix for each feature, all the same here
            moments = np.repeat(moments[:, None], D, axis=1)
        return FactorStatistics(moments, cross, squares)

    def maximize(self, stats: FactorStatistics, parameters: LowRankGaussians) -> LowRankGaussians:
        """Regressions of the features on factors and constant, then the noise."""
        q = self.n_factors
        seen = stats.moments[..., q, q]
        counts = np.broadcast_to(seen if self.missing else seen[:, None], stats.squares.shape)
        tiny = TINY * min(1.0, float(counts.sum(axis=0).max()))
        learned = counts > tiny
        solution = _regressions(stats.moments, stats.cross, self.missing)  # (k, D, q + 1)
        fitted = np.einsum("kdq,kqd->kd", solution, stats.cross)
        misfit = np.maximum(stats.squares - fitted, 0.0)
        loadings = np.where(learned[:, :, None], solution[:, :, :q], parameters.loadings)
        means = np.where(learned, self.center + solution[:, :, q], parameters.means)
        if self.noise != "diag":
            axis = 1 if self.noise == "isotropic" else 0
            misfit, counts = misfit.sum(axis=axis, keepdims=True), counts.sum(axis=axis, keepdims=True)
        noise = np.where(counts > tiny, misfit / np.where(counts > tiny, counts, 1.0), parameters.noise)
        return LowRankGaussians(means, loadings, np.maximum(noise, self._floor()))

    def _floor(self) -> Any:
        return float(self.floor.mean()) if self.noise == "isotropic" else self.floor

    def expected(self, parameters: LowRankGaussians, mass: Array) -> FactorStatistics:
        """Statistics of rows that the components expect, `mass` (k,) of each, for a stream after a fit."""
        (k, D), q = parameters.means.shape, self.n_factors
        offset = parameters.means - self.center
        cross = np.concatenate([parameters.loadings.transpose(0, 2, 1), offset[:, None]], axis=1)
        squares = (parameters.loadings**2).sum(axis=2) + parameters.noise + offset**2
        shape = (k, D, q + 1, q + 1) if self.missing else (k, q + 1, q + 1)
        weight = mass.reshape((k,) + (1,) * (len(shape) - 1))
        moments = weight * np.broadcast_to(np.eye(q + 1), shape)
        return FactorStatistics(moments, mass[:, None, None] * cross, mass[:, None] * squares)

    def log_prior(self, parameters: LowRankGaussians) -> float:
        """Flat."""
        return 0.0

    def sample(self, parameters: LowRankGaussians, states: NDArray[np.int64], rng: np.random.Generator) -> Array:
        """One row for each of the named components."""
        return draw(parameters, states, rng)

    def n_free(self, parameters: LowRankGaussians) -> int:
        """Means, loadings up to rotation, and noise."""
        k, D, q = parameters.loadings.shape
        q = min(q, D)
        noise = {"diag": k * D, "isotropic": k, "shared": D}[self.noise]
        return k * (D + D * q - q * (q - 1) // 2) + noise

    def pack(self, parameters: LowRankGaussians) -> Array:
        """Means, loadings and logarithms of the noise."""
        return np.concatenate([parameters.means.ravel(), parameters.loadings.ravel(), np.log(parameters.noise).ravel()])

    def unpack(self, vector: Array, like: LowRankGaussians) -> LowRankGaussians:
        """The inverse of `pack`, with noise above its floor."""
        first, second = like.means.size, like.means.size + like.loadings.size
        noise = np.exp(vector[second:]).reshape(like.noise.shape)
        if self.noise == "isotropic":
            noise = np.ones_like(like.noise) * noise.mean(axis=1, keepdims=True)
        elif self.noise == "shared":
            noise = np.ones_like(like.noise) * noise.mean(axis=0, keepdims=True)
        return LowRankGaussians(
            vector[:first].reshape(like.means.shape),
            vector[first:second].reshape(like.loadings.shape),
            np.maximum(noise, self._floor()),
        )


def _regressions(moments: Array, cross: Array, missing: bool) -> Array:
    """Coefficients (k, D, q + 1) of all features; a tiny ridge where factors and constant do not differ."""
    size = moments.shape[-1]
    trace = np.trace(moments, axis1=-2, axis2=-1)[..., None, None]
    ridged = moments + (RIDGE * trace / size + np.finfo(np.float64).tiny) * np.eye(size)
    if missing:
        return np.linalg.solve(ridged, cross.transpose(0, 2, 1)[..., None])[..., 0]
    return np.linalg.solve(ridged, cross).transpose(0, 2, 1)


@dataclass(frozen=True)
class _Sums(Statistics):
    counts: Array
    totals: Array
    log_likelihood: float = 0.0


def _sums(batch: Batch, center: Array | None) -> _Sums:
    """Weighted sums of what is observed: of the values, or of squared deviations from a centre."""
    weight = np.ones(batch.n_samples) if batch.weight is None else batch.weight
    X = check_magnitude(np.asarray(batch.X, dtype=np.float64))
    seen = ~np.isnan(X)
    values = np.where(seen, X, 0.0) if center is None else np.where(seen, X - center, 0.0) ** 2
    return _Sums(weight @ seen, weight @ values)


def center_and_floor(source: Source, noise_floor: float) -> tuple[Array, Array]:
    """Mean of each feature, and the share `noise_floor` of its variance (of the mean variance if it is constant)."""
    first = map_reduce(partial(_sums, center=None), source)
    center = first.totals / np.maximum(first.counts, 1e-300)
    second = map_reduce(partial(_sums, center=center), source)
    variance = second.totals / np.maximum(second.counts, 1e-300)
    # The spread of equal numbers may come out as a rounding error instead of 0.
    variance = np.where(variance > (4.0 * np.finfo(np.float64).eps * center) ** 2, variance, 0.0)
    typical = float(variance.mean())
    if not np.isfinite(typical):
        raise ValueError("X must not be so large that its squares overflow: rescale it")
    tiny = 1e-12 * typical if typical > 0 else 0.0
    return center, noise_floor * np.where(variance > tiny, variance, typical if typical > 0 else 1.0)
