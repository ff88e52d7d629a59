r"""The latent variables of each row given the loadings: a Gaussian belief and its log evidence.

.. math:: y_n \sim N(0, I), \quad \theta_{nj} = w_j^\top y_n + b_j, \qquad q(y_n) = N(m_n, S_n), \quad
   S_n^{-1} = I + W^\top \mathrm{diag}(c_n) W

with the curvatures of :mod:`~pluri.factors.exponential_family.expansion`. The mean is found by Newton steps, halved
where they do not pay. The evidence is :math:`E_q[\log p(x_n \mid y)] - KL(q \,\|\, N(0, I))`, which for the second
order form at the mode is Laplace's, :math:`\log p(x_n \mid m_n) - \frac12 |m_n|^2 - \frac12 \log\det S_n^{-1}`.
A row may be explained by several sets of loadings at once, each with a share: the case of a mixture whose components
see the same latent variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.factors.exponential_family.expansion import Expansion
from pluri.factors.exponential_family.observations import Observations
from pluri.factors.exponential_family.packing import (
    doubled,
    inverses,
    outer_packed,
    packed,
    quadratic_forms,
    unpacked,
    with_identity,
)

Array = NDArray[np.float64]

#: How often a step is halved before the old place is kept.
MOST_HALVINGS = 12
#: Number of Newton steps for rows that are seen for the first time.
UNTIL_SETTLED = 60


@dataclass(frozen=True)
class Loadings:
    """Weights (n_features, n_latent) and intercept (n_features,) of one component."""

    weights: Array
    intercept: Array


@dataclass(frozen=True)
class Latents:
    """Beliefs about the latent variables.

    Attributes
    ----------
    mean : (n_samples, n_latent)
    covariance : (n_samples, n_latent, n_latent); zeros for point estimates
    values : (n_samples, n_groups): expected log-likelihood under each set of loadings, base measure included
    divergence : (n_samples,): Kullback-Leibler divergence from the prior; |m|^2 / 2 for point estimates
    """

    mean: Array
    covariance: Array
    values: Array
    divergence: Array

    @property
    def evidence(self) -> Array:
        """Log evidence of each row for one set of loadings, (n_samples,)."""
        return self.values[:, 0] - self.divergence


def infer_latents(
    expansion: Expansion,
    data: Observations,
    groups: Sequence[Loadings],
    *,
    shares: Array | None = None,
    start: Latents | None = None,
    n_steps: int = UNTIL_SETTLED,
    tol: float = 1e-8,
    point: bool = False,
) -> Latents:
    """Fit the beliefs of all rows.

    Parameters
    ----------
    expansion : Expansion
    data : Observations
    groups : sequence of Loadings
    shares : array of shape (n_samples, n_groups), optional
        How much each set of loadings explains a row; needed for more than one.
    start : Latents, optional
        Where to begin; zeros if not given.
    n_steps : int
        Largest number of Newton steps.
    tol : float
        Stop when no mean moves by more.
    point : bool
        Point estimates: no covariances.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.exponential_family import as_family
    >>> from pluri.factors.exponential_family.expansion import SecondOrder
    >>> from pluri.factors.exponential_family.latents import Loadings, infer_latents
    >>> from pluri.factors.exponential_family.observations import observe
    >>> family = as_family("gaussian")
    >>> data = observe(np.array([[3.0]]), family)
    >>> latents = infer_latents(SecondOrder(family), data, [Loadings(np.ones((1, 1)), np.zeros(1))])
    >>> latents.mean, latents.covariance, latents.evidence  # a normal density of variance 2 at 3
    (array([[1.5]]), array([[[0.5]]]), array([-3.515512]))
    """
    width = groups[0].weights.shape[1]
    products = [outer_packed(loadings.weights) for loadings in groups]
    mean = np.zeros((data.n_samples, width))
    covariance = np.zeros((data.n_samples, width, width))
    values = np.empty((data.n_samples, len(groups)))
    divergence = np.empty(data.n_samples)
    for rows in data.blocks():
        view = _Rows(
            expansion,
            data.statistic[rows],
            data.mask(rows),
            groups,
            products,
            None if shares is None else shares[rows],
            point,
        )
        place = view.begin(None if start is None else (start.mean[rows], start.covariance[rows]))
        place = view.climb(place, n_steps, tol)
        mean[rows], covariance[rows], values[rows], divergence[rows] = view.finish(place)
    return Latents(mean, covariance, values + data.base[:, None], divergence)


@dataclass
class _Place:
    """Where the rows of a block stand: mean, precision (packed), and what was found there."""

    mean: Array
    precision: Array
    score: Array
    slope: Array
    pieces: Array  # curvature of each group, packed: (n, groups, p)
    values: Array


@dataclass(frozen=True)
class _Rows:
    """A block of rows and what explains it."""

    expansion: Expansion
    statistic: Array
    known: Array | None
    groups: Sequence[Loadings]
    products: Sequence[Array]
    shares: Array | None
    point: bool

    def take(self, rows: NDArray[np.intp]) -> _Rows:
        def cut(values: Any) -> Any:
            return None if values is None else values[rows]

        return _Rows(
            self.expansion, self.statistic[rows], cut(self.known), self.groups, self.products, cut(self.shares),
            self.point,
        )  # fmt: skip

    def begin(self, start: tuple[Array, Array] | None) -> _Place:
        n, width = len(self.statistic), self.groups[0].weights.shape[1]
        identity = with_identity(np.zeros((n, width * (width + 1) // 2)), width)
        if start is None:
            return self.look(np.zeros((n, width)), identity)
        mean, covariance = start
        usable = self.expansion.uses_variance and width and covariance[0, 0, 0] > 0
        precision = packed(inverses(covariance)) if usable else identity
        return self.look(mean, precision)

    def look(self, mean: Array, precision: Array) -> _Place:
        """Evaluate the beliefs (mean, precision)."""
        n, width = mean.shape
        shares = self.shares
        score = -0.5 * np.einsum("ni,ni->n", mean, mean)
        slope = -mean
        pieces = np.empty((n, len(self.groups), precision.shape[1]))
        values = np.empty((n, len(self.groups)))
        covariance = None
        if self.expansion.uses_variance and width:
            full = unpacked(precision, width)
            inverse = inverses(full)
            covariance = packed(inverse)
            score += 0.5 * (width - np.trace(inverse, axis1=1, axis2=2) - np.linalg.slogdet(full)[1])
        for g, loadings in enumerate(self.groups):
            theta = mean @ loadings.weights.T
            theta += loadings.intercept
            variance = None if covariance is None else quadratic_forms(covariance, self.products[g], width)
            value, residual, curvature = self.expansion.local(self.statistic, theta, variance)
            if self.known is not None:
                value, residual, curvature = value * self.known, residual * self.known, curvature * self.known
            values[:, g] = value.sum(axis=1)
            pieces[:, g] = curvature @ self.products[g]
            share: Any = 1.0 if shares is None else shares[:, g]
            score += share * values[:, g]
            slope += (residual @ loadings.weights) * (share if shares is None else share[:, None])
        return _Place(mean, precision, score, slope, pieces, values)

    def precision_at(self, place: _Place) -> Array:
        """The precision that the curvatures ask for, packed."""
        if self.shares is None:
            total = place.pieces[:, 0].copy()
        else:
            total = np.einsum("ng,ngp->np", self.shares, place.pieces)
        return with_identity(total, place.mean.shape[1])

    def climb(self, place: _Place, n_steps: int, tol: float) -> _Place:
        width = place.mean.shape[1]
        if width == 0:
            return place
        for _ in range(n_steps):
            aim = self.precision_at(place)
            step = np.linalg.solve(unpacked(aim, width), place.slope[:, :, None])[:, :, 0]
            moved = self.look(place.mean + step, aim)
            failed = self._fell(place.score, moved.score)
            size = 1.0
            for _ in range(MOST_HALVINGS):
                if not failed.size:
                    break
                size *= 0.5
                # Of the precision an average, which is a natural gradient step: small ones always pay.
                halfway = self.take(failed).look(
                    place.mean[failed] + size * step[failed],
                    (1 - size) * place.precision[failed] + size * aim[failed],
                )
                _put(moved, failed, halfway)
                failed = failed[self._fell(place.score[failed], halfway.score)]
            if failed.size:
                _put(moved, failed, _cut(place, failed))
            gain = float(np.abs(moved.mean - place.mean).max())
            place = moved
            if gain < tol:
                break
        return place

    @staticmethod
    def _fell(before: Array, after: Array) -> NDArray[np.intp]:
        # Not "after < before": NaN has fallen too.
        return np.flatnonzero(~(after >= before - 1e-12 * np.abs(before) - 1e-13))

    def finish(self, place: _Place) -> tuple[Array, Array, Array, Array]:
        n, width = place.mean.shape
        half_square = 0.5 * np.einsum("ni,ni->n", place.mean, place.mean)
        if self.point or width == 0:
            return place.mean, np.zeros((n, width, width)), place.values, half_square
        triangles = place.precision if self.expansion.uses_variance else self.precision_at(place)
        precision = unpacked(triangles, width)
        covariance = inverses(precision)
        covariance = 0.5 * (covariance + np.swapaxes(covariance, 1, 2))
        values = place.values
        if not self.expansion.uses_variance:
            spread = packed(covariance)
            values = values - 0.5 * np.einsum("ngp,np->ng", place.pieces, doubled(spread, width))
        log_det: Array = np.linalg.slogdet(precision)[1]
        divergence = half_square + 0.5 * (np.trace(covariance, axis1=1, axis2=2) - width + log_det)
        return place.mean, covariance, values, divergence


def _put(place: _Place, rows: NDArray[np.intp], other: _Place) -> None:
    for name in ("mean", "precision", "score", "slope", "pieces", "values"):
        getattr(place, name)[rows] = getattr(other, name)


def _cut(place: _Place, rows: NDArray[np.intp]) -> _Place:
    names = ("mean", "precision", "score", "slope", "pieces", "values")
    return _Place(*(getattr(place, name)[rows] for name in names))
