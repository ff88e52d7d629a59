r"""The loadings of a component given beliefs about the latent variables: one small regression per feature.

With :math:`\tilde y_n = (y_n, 1)` and :math:`\tilde w_j = (w_j, b_j)` feature j climbs

.. math:: g_j = \sum_n q_n \bigl( r_{nj} \tilde m_n - c_{nj} \tilde S_n \tilde w_j \bigr) - \alpha \tilde w_j, \qquad
   P_j = \sum_n q_n c_{nj} (\tilde m_n \tilde m_n^\top + \tilde S_n) + \mathrm{diag}(\alpha)

by steps :math:`P_j^{-1} g_j`, halved where the expected log-likelihood would fall. Residuals and curvatures come from
:mod:`~pluri.factors.exponential_family.expansion`; the term with :math:`S_n` is what keeps the loadings from growing
without bound. Intercepts see, besides the rows, a few pseudo-observations of the overall mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.factors.exponential_family.expansion import Expansion
from pluri.factors.exponential_family.latents import Latents, Loadings
from pluri.factors.exponential_family.observations import Observations
from pluri.factors.exponential_family.packing import outer_packed, packed, quadratic_forms, unpacked

Array = NDArray[np.float64]

#: How often a step is halved before the old place is kept.
MOST_HALVINGS = 10
#: Precision of weights without a prior: it changes no digit that matters, and keeps matrices invertible.
FLOOR = 1e-8


@dataclass(frozen=True)
class InterceptPrior:
    """Pseudo-observations of each feature's overall mean.

    Attributes
    ----------
    mean : (n_features,): mean of the statistic
    count : (n_features,): number of pseudo-observations
    centre : (n_features,): the intercept that explains them best
    fitted : whether there is an intercept at all
    """

    mean: Array
    count: Array
    centre: Array
    fitted: bool

    def log_density(self, expansion: Expansion, intercept: Array) -> Array:
        """Log density of each intercept relative to the centre, (n_features,)."""
        if not self.fitted:
            return np.zeros_like(intercept)
        # Relative: thousands of pseudo-observations would drown the changes that the loop watches.
        best = expansion.value(self.mean, self.centre, None)
        return self.count * (expansion.value(self.mean, intercept, None) - best)

    def part(self, columns: NDArray[np.intp] | slice) -> InterceptPrior:
        """The prior of some features."""
        return InterceptPrior(self.mean[columns], self.count[columns], self.centre[columns], self.fitted)


def intercept_prior(data: Observations, count: float, fitted: bool) -> InterceptPrior:
    """Pseudo-observations of the means of the data, the same number for each feature."""
    mean = data.means()
    return InterceptPrior(mean, np.full(data.n_features, count), data.family.natural(mean), fitted)


@dataclass(frozen=True)
class RowExpansion:
    """Second-order expansion of the expected log-likelihood in the loadings, without the prior of the weights.

    Attributes
    ----------
    gradient : (n_features, n_latent + 1)
    precision : (n_features, n_latent + 1, n_latent + 1): minus the Hessian
    spread : (n_features, n_latent, n_latent): the part of it that comes from the uncertainty of the latents
    values : (n_features,): the expected log-likelihood itself, as `Regression.values` gives it
    """

    gradient: Array
    precision: Array
    spread: Array
    values: Array


@dataclass(frozen=True)
class Regression:
    """What the loadings of one component are fitted to.

    Attributes
    ----------
    expansion : Expansion
    data : Observations
    latents : Latents
    weight : (n_samples,): weight of each row for this component
    intercept_prior : InterceptPrior
    """

    expansion: Expansion
    data: Observations
    latents: Latents
    weight: Array
    intercept_prior: InterceptPrior

    def expand(self, loadings: Loadings) -> RowExpansion:
        """Gradient and curvature at some loadings."""
        width = loadings.weights.shape[1]
        n_features = self.data.n_features
        products = outer_packed(loadings.weights)
        gradient = np.zeros((n_features, width + 1))
        second = np.zeros((n_features, (width + 1) * (width + 2) // 2))
        spread = np.zeros((n_features, width * (width + 1) // 2))
        values = np.zeros(n_features)
        for rows in self.data.blocks():
            mean = np.column_stack([self.latents.mean[rows], np.ones(rows.stop - rows.start)])
            covariance = packed(self.latents.covariance[rows])
            value, residual, curvature = self.expansion.local(
                self.data.statistic[rows], *self._belief(loadings, mean[:, :-1], covariance, products)
            )
            known = self.data.mask(rows)
            if known is not None:
                value, residual, curvature = value * known, residual * known, curvature * known
            values += self.weight[rows] @ value
            weight = self.weight[rows, None]
            gradient += residual.T @ (weight * mean)
            both = curvature.T @ (weight * np.column_stack([outer_packed(mean), covariance]))
            second += both[:, : second.shape[1]]
            spread += both[:, second.shape[1] :]
        precision, uncertain = unpacked(second, width + 1), unpacked(spread, width)
        precision[:, :width, :width] += uncertain
        pull = np.einsum("jab,jb->ja", uncertain, loadings.weights)
        gradient[:, :width] -= pull
        if not self.expansion.uses_variance:
            values -= 0.5 * np.einsum("ja,ja->j", loadings.weights, pull)
        values += self.intercept_prior.log_density(self.expansion, loadings.intercept)
        self._add_intercept_prior(loadings.intercept, gradient, precision)
        return RowExpansion(gradient, precision, uncertain, values)

    def _add_intercept_prior(self, intercept: Array, gradient: Array, precision: Array) -> None:
        prior = self.intercept_prior
        if not prior.fitted:
            gradient[:, -1] = 0.0
            precision[:, -1, :] = precision[:, :, -1] = 0.0
            precision[:, -1, -1] = 1.0
            return
        _, residual, curvature = self.expansion.local(prior.mean, intercept, None)
        gradient[:, -1] += prior.count * residual
        precision[:, -1, -1] += prior.count * curvature
        precision[:, -1, -1] += FLOOR

    def values(
        self, loadings: Loadings, spread: Array | None, columns: NDArray[np.intp] | slice = slice(None)
    ) -> Array:
        """Expected log-likelihood of each feature with the intercept's prior, (n_features,).

        Where the form does not use variances, ``spread`` of the expansion that the step came from stands for them.
        """
        weights, intercept = loadings.weights[columns], loadings.intercept[columns]
        part = Loadings(weights, intercept)
        products = outer_packed(weights)
        total = np.zeros(len(intercept))
        for rows in self.data.blocks():
            covariance = packed(self.latents.covariance[rows])
            value = self.expansion.value(
                self.data.statistic[rows][:, columns],
                *self._belief(part, self.latents.mean[rows], covariance, products),
            )
            known = self.data.mask(rows)
            if known is not None:
                value = value * known[:, columns]
            total += self.weight[rows] @ value
        if not self.expansion.uses_variance and spread is not None:
            total -= 0.5 * np.einsum("ja,jab,jb->j", weights, spread[columns], weights)
        return total + self.intercept_prior.part(columns).log_density(self.expansion, intercept)

    def _belief(
        self, loadings: Loadings, mean: Array, covariance: Array, products: Array
    ) -> tuple[Array, Array | None]:
        theta = mean @ loadings.weights.T
        theta += loadings.intercept
        if not (self.expansion.uses_variance and products.shape[1]):
            return theta, None
        return theta, quadratic_forms(covariance, products, mean.shape[1])


def climb_rows(
    regression: Regression, loadings: Loadings, precision: Array, n_steps: int = 2
) -> tuple[Loadings, RowExpansion]:
    """Newton steps for all features at once.

    Parameters
    ----------
    regression : Regression
    loadings : Loadings
        Where to begin.
    precision : array of shape (n_latent,)
        Prior precision of each column of weights.
    n_steps : int
        Number of steps.

    Returns
    -------
    loadings, expansion
        The new loadings, and the expansion at the last but one (the curvature that the last step used).
    """
    ridge = np.append(np.maximum(precision, FLOOR), 0.0)
    whole = np.column_stack([loadings.weights, loadings.intercept])
    expanded = regression.expand(loadings)
    for repeat in range(n_steps):
        if repeat:
            expanded = regression.expand(_split(whole))
        gradient = expanded.gradient - ridge * whole
        step = np.linalg.solve(expanded.precision + np.diag(ridge), gradient[:, :, None])[:, :, 0]
        if regression.expansion.is_bound:
            whole = whole + step
            continue
        before = expanded.values - 0.5 * (whole**2 @ ridge)
        moved = whole + step
        failed = np.arange(len(whole))
        size = 1.0
        for _ in range(MOST_HALVINGS):
            after = regression.values(_split(moved), expanded.spread, failed) - 0.5 * (moved[failed] ** 2 @ ridge)
            failed = failed[~(after >= before[failed] - 1e-12 * np.abs(before[failed]) - 1e-12)]
            if not failed.size:
                break
            size *= 0.5
            moved[failed] = whole[failed] + size * step[failed]
        moved[failed] = whole[failed]
        whole = moved
    return _split(whole), expanded


def _split(whole: Array) -> Loadings:
    return Loadings(np.ascontiguousarray(whole[:, :-1]), np.ascontiguousarray(whole[:, -1]))
