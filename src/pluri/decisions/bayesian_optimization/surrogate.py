"""The model of an expensive function: a Gaussian process on the codes of a search space.

``f ~ GP(0, s^2 k)`` for standardised observations ``y = f + e``, ``e ~ N(0, v)``, with a Matern kernel of smoothness
5/2 (or the squared exponential) that has a length-scale for each dimension. Priors are weak::

    log length-scale ~ N(log 0.3, 1)      log s^2 ~ N(0, 1.5^2)      log v ~ N(log 1e-4, 2^2)

The hyper-parameters are those of highest posterior density, or draws over which every answer is averaged. All of it is
the library's own exact inference (`pluri.processes.gp_inference`); an observation more is a further row of the Cholesky
factors.

References
----------
.. [1] Snoek, J., Larochelle, H. and Adams, R. P. (2012). Practical Bayesian optimization of machine learning
   algorithms. NIPS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.spatial.distance import cdist

from pluri.decisions.bayesian_optimization.space import Space
from pluri.priors.hyperpriors import HyperPrior, LogNormal
from pluri.processes.gp_inference.covariance import Combined, Constant, Stationary, radial
from pluri.processes.gp_inference.exact import ExactPosterior, MarginalLikelihood, cholesky
from pluri.processes.gp_inference.learning import learn_theta, one_thread_if_small, sample_posterior, thetas_of
from pluri.processes.gp_inference.parameters import NOISE, Parameter

Array = NDArray[np.float64]

SMOOTHNESS = {"matern52": 2.5, "rbf": math.inf}
#: Smallest variance of a prediction, in units of that of the observations.
SMALLEST_VARIANCE = 1e-12
#: Limits that only names of hyper-parameters need; the priors have none.
EVERYWHERE = (1e-40, 1e40)


class SurrogateSettings(NamedTuple):
    """How the model is learned.

    Attributes
    ----------
    kernel : {"matern52", "rbf"}
    noise_variance : float or "learn"
        In squared units of the observations; "learn" learns it with the other hyper-parameters.
    hyper_inference : {"map", "slice", "nuts"}
    n_draws, n_warmup, thin : int
    """

    kernel: str = "matern52"
    noise_variance: float | str = "learn"
    hyper_inference: str = "map"
    n_draws: int = 10
    n_warmup: int = 50
    thin: int = 3


@dataclass(frozen=True)
class Surrogate:
    """A Gaussian process given observations, for one or several values of its hyper-parameters.

    Attributes
    ----------
    space : Space
    features : (n, n_features)
        What the covariance sees of the points.
    nu : float
    thetas : (n_draws, n_lengths + 2)
        Logarithms of signal variance, length-scales and noise variance, of standardised observations.
    posteriors : one for each draw
    values : (n,)
        The observations as they came.
    offset, scale : float
        Their mean and standard deviation.
    """

    space: Space
    features: Array
    nu: float
    thetas: Array
    posteriors: tuple[ExactPosterior, ...]
    values: Array
    offset: float
    scale: float

    def predict(self, rows: Array) -> tuple[Array, Array]:
        """Means and standard deviations of f for each draw (n_draws, m) at rows of codes (m, n_dimensions)."""
        points = self.space.features(rows)
        means, stds = np.empty((2, len(self.thetas), len(rows)))
        for draw, (theta, posterior) in enumerate(zip(self.thetas, self.posteriors)):
            cross = self._cross(theta, points)[0]
            means[draw] = posterior.mean(cross)
            # Rounding may leave less than nothing where a point is known; the floor is below all that matters.
            half = lapack.dtrtrs(posterior.factor, cross, lower=1)[0]
            variance = math.exp(theta[0]) - np.einsum("ij,ij->j", half, half)
            stds[draw] = np.sqrt(np.maximum(variance, SMALLEST_VARIANCE))
        return self.offset + self.scale * means, self.scale * stds

    def moments(self, rows: Array) -> tuple[Array, Array]:
        """Mean and standard deviation over the draws as well (m,)."""
        means, stds = self.predict(rows)
        if len(means) == 1:
            return means[0], stds[0]
        return means.mean(axis=0), np.sqrt((stds**2).mean(axis=0) + means.var(axis=0))

    def slopes(self, row: Array, dimensions: NDArray[np.int64]) -> tuple[Array, Array, Array, Array]:
        """Mean and standard deviation at one row (n_draws,) and their derivatives (n_draws, n_chosen)."""
        point = self.space.features(row[None])
        lengths = np.cumsum(self.space.varying)[dimensions] - 1  # their numbers among the dimensions that vary
        columns = np.searchsorted(self.space.feature_dimension, lengths)
        shape = (len(self.thetas), len(dimensions))
        means, stds = np.empty((2, len(self.thetas)))
        mean_slopes, std_slopes = np.empty((2, *shape))
        for draw, (theta, posterior) in enumerate(zip(self.thetas, self.posteriors)):
            cross, factor = self._cross(theta, point)
            inverse_squares = np.exp(-2.0 * theta[1:-1])[lengths]
            # (n, n_chosen): derivative of the covariance with each observation.
            slope = factor * (self.features[:, columns] - point[0, columns]) * inverse_squares
            means[draw] = (cross[:, 0] * posterior.weights).sum()
            mean_slopes[draw] = slope.T @ posterior.weights
            half = lapack.dtrtrs(posterior.factor, cross, lower=1)[0]
            variance = math.exp(theta[0]) - float((half**2).sum())
            solved = lapack.dtrtrs(posterior.factor, half, lower=1, trans=1)[0][:, 0]
            stds[draw] = math.sqrt(max(variance, SMALLEST_VARIANCE))
            std_slopes[draw] = -(slope.T @ solved) / stds[draw] if variance > SMALLEST_VARIANCE else 0.0
        return self.offset + self.scale * means, self.scale * stds, self.scale * mean_slopes, self.scale * std_slopes

    def draw(self, rows: Array, rng: np.random.Generator) -> Array:
        """One function from the posterior, at rows (m,), for a draw of the hyper-parameters chosen at random."""
        number = int(rng.integers(len(self.thetas)))
        theta, posterior = self.thetas[number], self.posteriors[number]
        points = self.space.features(rows)
        cross = self._cross(theta, points)[0]
        prior = math.exp(theta[0]) * radial(_squared(points, points, self._lengths(theta)), self.nu)[0]
        factor = cholesky(posterior.covariance(cross, prior), scale=math.exp(theta[0]))
        return self.offset + self.scale * (posterior.mean(cross) + factor @ rng.standard_normal(len(rows)))

    def extended(self, row: Array, value: float) -> Surrogate:
        """The model with one observation more, and the same hyper-parameters, which keep their units."""
        values = np.append(self.values, value)
        point = self.space.features(row[None])
        residual = (values - self.offset) / self.scale
        posteriors = []
        for theta, posterior in zip(self.thetas, self.posteriors):
            signal, noise = math.exp(theta[0]), math.exp(theta[-1])
            cross = self._cross(theta, point)[0][:, 0]
            # The jitter that `ExactPosterior.of` adds, or more where a point is repeated without noise.
            variance = signal * (1.0 + 1e-10) + noise
            try:
                posteriors.append(posterior.extended(cross, variance, residual))
            except np.linalg.LinAlgError:
                posteriors.append(posterior.extended(cross, variance + 1e-6 * signal, residual))
        features = np.concatenate([self.features, point])
        return replace(self, features=features, posteriors=tuple(posteriors), values=values)

    def _cross(self, theta: Array, points: Array) -> tuple[Array, Array]:
        """Covariances of observations and points (n, m), and the factor of their derivatives."""
        value, factor = radial(_squared(self.features, points, self._lengths(theta)), self.nu)
        signal = math.exp(theta[0])
        return signal * value, signal * factor

    def _lengths(self, theta: Array) -> Array:
        return np.exp(theta[1:-1])[self.space.feature_dimension]


def learn_surrogate(
    space: Space, rows: Array, values: Array, settings: SurrogateSettings, rng: np.random.Generator,
    start: Array | None = None,
) -> Surrogate:  # fmt: skip
    """Condition on values (n,) at rows of codes, and learn the hyper-parameters.

    Parameters
    ----------
    space : Space
    rows : (n, n_dimensions)
    values : (n,)
    settings : SurrogateSettings
    rng : Generator
    start : (n_lengths + 2,), optional
        Where a search for the best hyper-parameters begins; also at the centre of their priors.
    """
    features = space.features(rows)
    offset, scale = standardisation(values)
    residual = (values - offset) / scale
    nu = SMOOTHNESS[settings.kernel]
    fixed = None
    if settings.noise_variance != "learn":
        fixed = float(settings.noise_variance) / scale**2
    evidence = evidence_of(space, features, residual, nu, fixed)
    parameters, priors = parameters_and_priors(int(space.varying.sum()), fixed is None)
    with one_thread_if_small(len(rows)):
        if settings.hyper_inference == "map":
            thetas = [_best(evidence, parameters, priors, rng, None if start is None else start[: len(priors)])]
        else:
            # A generator that is written down and read again has other children: chains get one from its numbers.
            stream = np.random.default_rng(int(rng.integers(2**63)))
            trace = sample_posterior(
                evidence, parameters, priors, settings.hyper_inference, stream,  # type: ignore[arg-type]
                n_draws=settings.n_draws, n_warmup=settings.n_warmup, n_chains=1, thin=settings.thin, warn=False,
            )  # fmt: skip
            thetas = list(thetas_of(trace, parameters))
        if fixed is not None:
            thetas = [np.append(theta, math.log(max(fixed, 1e-40))) for theta in thetas]
        squared = evidence.covariance.second.squared  # type: ignore[attr-defined]
        posteriors = tuple(_conditioned(squared, theta, nu, residual) for theta in thetas)
    return Surrogate(space, features, nu, np.array(thetas), posteriors, np.array(values), offset, scale)


def evidence_of(space: Space, features: Array, residual: Array, nu: float, noise: float | None) -> MarginalLikelihood:
    """Log marginal likelihood of log signal variance, length-scales and, unless it is fixed, noise variance."""
    n, owner = len(features), space.feature_dimension
    squared = np.zeros((int(space.varying.sum()), n, n))
    for column, dimension in enumerate(owner):
        squared[dimension] += (features[:, [column]] - features[:, column]) ** 2
    return MarginalLikelihood(Combined(Constant(None), Stationary(squared, nu, None), True), residual, noise, "auto")


def parameters_and_priors(n_lengths: int, learns_noise: bool) -> tuple[tuple[Parameter, ...], tuple[HyperPrior, ...]]:
    """Hyper-parameters in the order of theta, and a prior for each entry."""
    signal = Parameter("signal_variance", "signal_variance", 1, EVERYWHERE)
    lengths = Parameter("length_scale", "length_scale", n_lengths, EVERYWHERE)
    parameters = [signal, lengths] if n_lengths else [signal]
    length_prior = LogNormal(math.log(0.3), 1.0)
    priors: list[HyperPrior] = [LogNormal(0.0, 1.5), *[length_prior] * n_lengths]
    if learns_noise:
        parameters.append(Parameter(NOISE, NOISE, 1, EVERYWHERE))
        priors.append(LogNormal(math.log(1e-4), 2.0))
    return tuple(parameters), tuple(priors)


def standardisation(values: Array) -> tuple[float, float]:
    """Mean and standard deviation; 1 for the latter if all values are equal up to rounding, whatever their units."""
    largest = float(np.abs(values).max())
    unit = largest if 0.0 < largest < math.inf else 1.0  # squares of very small or large values leave the range
    shares = values / unit
    scale = float(shares.std())
    return unit * float(shares.mean()), unit * scale if scale > 1e-12 else 1.0


def _best(evidence: Any, parameters: Any, priors: Any, rng: np.random.Generator, start: Array | None) -> Array:
    """The highest mode that is reached from two starts: `start`, and the centre of the priors or a noisy function.

    A function may be smooth and noisy or rough and not; each has a mode of its own, and which of the two is tried
    beside `start` alternates with the number of observations.
    """
    centre = np.array([prior.mean for prior in priors])
    noisy = np.concatenate([[0.0], np.full(len(centre) - 2, math.log(0.5)), [math.log(0.1)]])
    learns_noise = len(centre) == evidence.covariance.n_parameters + 1
    others = [centre, noisy] if learns_noise else [centre]
    starts = others if start is None else [start, others[len(evidence.residual) % len(others)]]
    found = [learn_theta(evidence, parameters, one, rng, 1, priors) for one in starts]
    heights = [evidence.value(theta) + _log_prior(priors, theta) for theta in found]
    return found[int(np.argmax(heights))]


def _log_prior(priors: Any, theta: Array) -> float:
    return sum(-0.5 * ((log - prior.mean) / prior.scale) ** 2 for prior, log in zip(priors, theta.tolist()))


def _conditioned(squared: Array, theta: Array, nu: float, residual: Array) -> ExactPosterior:
    total = np.einsum("kij,k->ij", squared, np.exp(-2.0 * theta[1:-1]))
    covariance = math.exp(theta[0]) * radial(total, nu)[0]
    return ExactPosterior.of(covariance, residual, math.exp(theta[-1]), "auto")


def _squared(first: Array, second: Array, lengths: Array) -> Array:
    """Squared distances (n, m) of points whose coordinates are divided by the length-scales."""
    return cdist(first / lengths, second / lengths, "sqeuclidean")
