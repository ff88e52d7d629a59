"""One sweep over all that a regression by clusters has besides labels; what both Gibbs samplers of it share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from pluri.embedding.regression.conditionals import (
    about_centers,
    center_posterior,
    cluster_moments,
    draw_gaussian,
    draw_support,
    place_squares,
    residual_squares,
    scale_posterior,
)
from pluri.embedding.regression.records import Moments, Position, RegressionPriors
from pluri.factors.low_rank_gaussian import LOG_2_PI
from pluri.factors.spike_slab_regression import draw_coefficients, draw_gamma, log_gamma_density
from pluri.priors import Gamma
from pluri.processes.stick_draws import LEAST_LOG_REST, choose_rows, draw_sticks, exchange_labels

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: The smallest concentration.
LEAST_CONCENTRATION = 1e-6


@dataclass(frozen=True, eq=False)
class ClusterRegression:
    """Model of `pluri.embedding.regression.records` with its truncation levels and choices.

    Attributes
    ----------
    n_components, n_coordinates, n_features : J, K and D
    priors : RegressionPriors
    shared : whether all clusters use the same coordinates
    scales : (K,) if the scales lam are fixed, None if they are learned
    isotropic : whether sg_jk is the same for all k
    """

    n_components: int
    n_coordinates: int
    n_features: int
    priors: RegressionPriors
    shared: bool = False
    scales: Array | None = None
    isotropic: bool = False

    @property
    def log_odds(self) -> float:
        """Prior log odds that a coordinate is on, ``log a - log(b (K - 1))``; K = 1 counts as 2."""
        prior = self.priors.support
        return math.log(prior.a) - math.log(prior.b * max(self.n_coordinates - 1, 1))

    def sample_prior(self, rng: np.random.Generator, n_samples: int) -> Position:
        """Draw a position from the prior."""
        J, K, D = self.n_components, self.n_coordinates, self.n_features
        concentration, loading, mean = (
            rng.gamma(prior.shape) / prior.rate if isinstance(prior, Gamma) else prior
            for prior in (self.priors.concentration, self.priors.loading, self.priors.mean)
        )
        on = rng.random((1 if self.shared else J, K)) < 1 / (1 + math.exp(-self.log_odds))
        support = np.tile(on, (J if self.shared else 1, 1)).astype(np.int8)
        log_weights, _ = draw_sticks(rng, np.zeros(J), concentration)
        coordinate = self.priors.coordinate
        shape = (J, 1) if self.isotropic else (J, K)
        return {
            "labels": choose_rows(rng, np.tile(log_weights, (n_samples, 1))),
            "log_weights": log_weights,
            "centers": rng.standard_normal((J, K)),
            "precisions": np.tile(rng.gamma(coordinate.shape, size=shape) / coordinate.rate, (1, K // shape[1])),
            "means": rng.standard_normal((J, D)) / math.sqrt(mean),
            "loadings": support[:, :, None] * rng.standard_normal((J, K, D)) / math.sqrt(loading),
            "support": support,
            "scales": rng.standard_normal(K) if self.scales is None else self.scales,
            "noise_precision": rng.gamma(self.priors.noise.shape, size=J) / self.priors.noise.rate,
            "loading_precision": np.asarray(loading),
            "mean_precision": np.asarray(mean),
            "concentration": np.asarray(concentration),
        }

    def sample_rows(self, rng: np.random.Generator, position: Position, x: Array) -> Array:
        """Draw rows given coordinates and labels."""
        labels = position["labels"]
        u = (x - position["centers"][labels]) * position["scales"]
        clean = np.einsum("nk,nkd->nd", u, position["loadings"][labels]) + position["means"][labels]
        noise = rng.standard_normal(clean.shape) / np.sqrt(position["noise_precision"][labels])[:, None]
        return np.asarray(clean + noise)

    def labelled(self, rng: np.random.Generator, position: Position, log_joint: Array) -> Position:
        """The position with new labels, and clusters that may have exchanged their sticks."""
        J = self.n_components
        labels = choose_rows(rng, log_joint)
        order = exchange_labels(rng, position["log_weights"], np.bincount(labels, minlength=J))
        moved = ("centers", "precisions", "means", "loadings", "support", "noise_precision")
        return {**position, **{name: position[name][order] for name in moved}, "labels": np.argsort(order)[labels]}

    def swept(self, rng: np.random.Generator, position: Position, x: Array, rows: Array, places: Array) -> Position:
        """Everything but the labels, drawn anew."""
        J, K, D = self.n_components, self.n_coordinates, self.n_features
        moments = cluster_moments(x, rows, places, position["labels"], J)
        centers, scales = position["centers"], position["scales"]
        noise, support = position["noise_precision"], position["support"]
        loading, mean = float(position["loading_precision"]), float(position["mean_precision"])
        prior = np.concatenate([np.full((J, K), loading), np.full((J, 1), mean)], axis=1)
        gram, cross = about_centers(moments, centers, scales)
        support = draw_support(rng, gram, cross, noise, prior, support, self.log_odds, self.shared)
        on = np.concatenate([support, np.ones((J, 1))], axis=1)
        coefficients = draw_coefficients(rng, gram, cross, noise[:, None], prior, on)
        A, means = coefficients[:, :K], coefficients[:, K]
        if self.scales is None:
            gram, cross = about_centers(moments, centers, np.ones(K))
            scales = draw_gaussian(rng, *scale_posterior(gram, cross, A, means, noise))
            gram, cross = about_centers(moments, centers, scales)
        noise = draw_gamma(
            rng, self.priors.noise, D * moments.counts / 2, residual_squares(moments, gram, cross, coefficients) / 2
        )
        used = A * scales[:, None]
        constants = means - np.einsum("jk,jkd->jd", centers, used)
        centers = draw_gaussian(rng, *center_posterior(moments, position["precisions"], used, constants, mean))
        means = constants + np.einsum("jk,jkd->jd", centers, used)
        loading = draw_gamma(rng, self.priors.loading, D * support.sum() / 2, float((A**2).sum()) / 2)
        mean = draw_gamma(rng, self.priors.mean, J * D / 2, float((means**2).sum()) / 2)
        return {
            "labels": position["labels"],
            **self._draw_weights(rng, moments, float(position["concentration"])),
            "centers": centers,
            "precisions": self._draw_precisions(rng, moments, centers),
            "means": means,
            "loadings": A,
            "support": support.astype(np.int8),
            "scales": scales,
            "noise_precision": noise,
            "loading_precision": np.asarray(loading),
            "mean_precision": np.asarray(mean),
        }

    def _draw_precisions(self, rng: np.random.Generator, moments: Moments, centers: Array) -> Array:
        squares = place_squares(moments, centers)
        counts, K = moments.counts[:, None], self.n_coordinates
        if not self.isotropic:
            return np.asarray(draw_gamma(rng, self.priors.coordinate, np.tile(counts / 2, (1, K)), squares / 2))
        one = draw_gamma(rng, self.priors.coordinate, counts * K / 2, squares.sum(axis=1, keepdims=True) / 2)
        return np.tile(one, (1, K))

    def _draw_weights(self, rng: np.random.Generator, moments: Moments, concentration: float) -> dict[str, Array]:
        log_weights, log_rest = draw_sticks(rng, moments.counts, concentration)
        prior = self.priors.concentration
        if isinstance(prior, Gamma):
            rate = -float(log_rest[:-1].sum())
            concentration = max(float(draw_gamma(rng, prior, self.n_components - 1.0, rate)), LEAST_CONCENTRATION)
        return {"log_weights": log_weights, "concentration": np.asarray(concentration)}

    def log_prior(self, position: Position) -> float:
        """Log density of all but labels and data."""
        D, J = self.n_features, self.n_components
        zt, g, alpha = (float(position[name]) for name in ("loading_precision", "mean_precision", "concentration"))
        rank = int(position["support"].sum())
        coins = position["support"][:1] if self.shared else position["support"]
        log_p, log_q = -np.log1p(math.exp(-self.log_odds)), -np.log1p(math.exp(self.log_odds))
        total = float(coins.sum()) * log_p + (coins.size - float(coins.sum())) * log_q
        total += 0.5 * (rank * D * (math.log(zt) - LOG_2_PI) - zt * float((position["loadings"] ** 2).sum()))
        total += 0.5 * (J * D * (math.log(g) - LOG_2_PI) - g * float((position["means"] ** 2).sum()))
        total -= 0.5 * (position["centers"].size * LOG_2_PI + float((position["centers"] ** 2).sum()))
        if self.scales is None:
            total -= 0.5 * (position["scales"].size * LOG_2_PI + float((position["scales"] ** 2).sum()))
        rest = np.logaddexp.accumulate(position["log_weights"][::-1])[::-1]  # log of what is left before each break
        if J > 1:
            total += (J - 1) * math.log(alpha) + (alpha - 1) * float(np.maximum(np.diff(rest), LEAST_LOG_REST).sum())
        precisions = position["precisions"][:, :1] if self.isotropic else position["precisions"]
        for value, prior in (
            (position["noise_precision"], self.priors.noise),
            (precisions, self.priors.coordinate),
            (position["loading_precision"], self.priors.loading),
            (position["mean_precision"], self.priors.mean),
            (position["concentration"], self.priors.concentration),
        ):
            if isinstance(prior, Gamma):
                total += log_gamma_density(value, prior)
        return float(total)

    def log_posterior(self, position: Position, log_joint: Array) -> float:
        """Log density of data and parameters, labels summed out."""
        return float(logsumexp(log_joint, axis=1).sum()) + self.log_prior(position)
