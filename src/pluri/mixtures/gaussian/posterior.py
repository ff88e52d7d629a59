"""The posterior of the parameters of a Gaussian mixture, in coordinates without constraints, with its gradient.

``x_i ~ sum_k w_k N(m_k, S_k)``, ``w ~ Dirichlet(a)``, ``m_k | S_k ~ N(m_0, S_k / k_0)``,
``S_k ~ InverseWishart(n_0, S_0)``. Labels are summed out, so that only the parameters are sampled. The covariances move
as Cholesky factors with free logarithms on the diagonal, the weights by stick-breaking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.transforms.matrices import CovarianceCholesky
from pluri.inference.mcmc.transforms.scalars import Real
from pluri.inference.mcmc.transforms.space import Space
from pluri.inference.mcmc.transforms.vectors import Simplex

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MixturePrior:
    """Dirichlet and normal-inverse-Wishart prior, the same for every component.

    Attributes
    ----------
    concentration : a
    mean : m_0 (n_features,)
    mean_precision : k_0, how many observations the prior mean is worth
    degrees_of_freedom : n_0
    scale : S_0 (n_features, n_features)
    """

    concentration: float
    mean: Array
    mean_precision: float
    degrees_of_freedom: float
    scale: Array


@dataclass(frozen=True)
class MixturePosterior:
    """Log posterior density of weights, means and Cholesky factors, and its gradients.

    Attributes
    ----------
    X : (n_samples, n_features)
    prior : MixturePrior
    n_components : int
    """

    X: Array
    prior: MixturePrior
    n_components: int

    def __post_init__(self) -> None:
        n_features = self.X.shape[1]
        # The density is one of the covariances: the Jacobian of L -> L L' has the powers D, D - 1, ..., 1.
        jacobian = np.arange(n_features, 0.0, -1.0)
        prior = self.prior.degrees_of_freedom + n_features + 2.0
        object.__setattr__(self, "_root", np.linalg.cholesky(self.prior.scale))
        object.__setattr__(self, "_power", jacobian - prior)

    @property
    def space(self) -> Space:
        """The variables, and the free vector behind them."""
        n_features = self.X.shape[1]
        variables: dict[str, Any] = {
            "means": Real((self.n_components, n_features)),
            "factors": CovarianceCholesky(n_features, shape=self.n_components),
        }
        if self.n_components > 1:
            variables = {"weights": Simplex(self.n_components)} | variables
        return Space(variables)

    def __call__(self, values: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
        """Log density up to a constant, and gradients with respect to weights, means and factors."""
        prior = self.prior
        means, factors = values["means"], values["factors"]
        weights = values.get("weights", np.ones(1))
        diagonal = np.diagonal(factors, axis1=1, axis2=2)
        try:
            whiten = np.linalg.inv(factors)
        except np.linalg.LinAlgError:
            whiten = np.full_like(factors, np.nan)
        if not (np.isfinite(whiten).all() and (diagonal > 0).all() and (weights > 0).all()):
            # So far out that numbers overflow: outside the support, as far as a sampler is concerned.
            return -np.inf, {name: np.zeros_like(value) for name, value in values.items()}
        log_weights, log_diagonal = np.log(weights), np.log(diagonal)
        transposed = np.swapaxes(whiten, 1, 2)
        white = (self.X[None] - means[:, None]) @ transposed  # (k, n, d)
        joint = (log_weights - log_diagonal.sum(axis=1))[:, None] - 0.5 * np.einsum("knd,knd->kn", white, white)
        total = np.logaddexp.reduce(joint, axis=0)
        shares = np.exp(joint - total)
        counts = shares.sum(axis=1)
        # The prior acts as further observations: k_0 at its mean, and the columns of a root of S_0.
        shift = ((prior.mean - means)[:, None] @ transposed)[:, 0]
        columns = whiten @ self._root  # type: ignore[attr-defined]
        value = float(
            total.sum()
            + (prior.concentration - 1.0) * log_weights.sum()
            - 0.5 * prior.mean_precision * (shift * shift).sum()
            - 0.5 * (columns * columns).sum()
            + (self._power * log_diagonal).sum()  # type: ignore[attr-defined]
        )
        weighted = shares[:, :, None] * white
        pull = weighted.sum(axis=1) + prior.mean_precision * shift
        second = np.swapaxes(weighted, 1, 2) @ white + columns @ np.swapaxes(columns, 1, 2)
        second += prior.mean_precision * shift[:, :, None] * shift[:, None]
        slope = transposed @ second
        index = np.arange(factors.shape[1])
        slope[:, index, index] += (self._power - counts[:, None]) / diagonal  # type: ignore[attr-defined]
        return value, {
            "weights": (counts + prior.concentration - 1.0) / weights,
            "means": (transposed @ pull[:, :, None])[:, :, 0],
            "factors": slope,
        }


def relabelled(features: Array, start: int, n_passes: int = 5) -> NDArray[np.int64]:
    """Order of the components of each draw that brings them nearest to a common set.

    Parameters
    ----------
    features : (n_draws, n_components, n_numbers)
        What a component looks like.
    start : int
        Draw whose components are the first set; afterwards it is the mean of the reordered draws.
    n_passes : int

    Returns
    -------
    order : (n_draws, n_components)
        ``features[s, order[s]]`` is in the common order.
    """
    from scipy.optimize import linear_sum_assignment

    center = features[start]
    order = np.tile(np.arange(features.shape[1]), (len(features), 1))
    for _ in range(n_passes):
        cost = ((features[:, None] - center[None, :, None]) ** 2).sum(axis=-1)  # (draw, place, component)
        new = np.array([linear_sum_assignment(table)[1] for table in cost])
        if (new == order).all():
            break
        order = new
        center = np.take_along_axis(features, order[:, :, None], axis=1).mean(axis=0)
    return order.astype(np.int64)
