"""What a fitted mixture of factor analysers can be asked, however it was fitted."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array

from pluri.factors.low_rank_gaussian import LOG_2_PI, LowRankGaussians, Patterns, factor_posterior

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class FactorMixtureQueries(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Covariances, factors, imputation and recovery; for a mixture with `_mixture` and `_rows_and_posterior`.

    A `TransformerMixin` itself: `set_output` reaches only what a class that has it defines.
    """

    @abstractmethod
    def _mixture(self) -> tuple[Array, LowRankGaussians]:
        """Weights and components of the fitted mixture."""

    @abstractmethod
    def _rows_and_posterior(self, X: Any) -> tuple[Array, Array]:
        """Checked rows (n, D), and the probability of each component for each of them (n, k)."""

    @property
    def _n_features_out(self) -> int:
        return self._mixture()[1].n_factors

    def covariances(self) -> Array:
        """Covariance matrices of the components: array of shape (n_components, n_features, n_features)."""
        return self._mixture()[1].covariances()

    def transform(self, X: Any) -> Array:
        """Posterior mean of the factors of each row under its most probable component.

        The factors of different components are coordinates of different subspaces, each up to a rotation: compare
        them only among rows with the same `predict`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_factors)
        """
        rows, posterior = self._rows_and_posterior(X)
        _, law = self._mixture()
        labels = posterior.argmax(axis=1)
        factors = np.zeros((len(rows), law.n_factors))
        for component in np.unique(labels):
            mine = labels == component
            factors[mine] = factor_posterior(law, int(component), Patterns.of(rows[mine])).means
        return factors

    def reconstruct(self, X: Any) -> Array:
        """Expected noise-free rows: posterior means of ``W x + m`` over components and factors.

        Missing values (NaN), where they are allowed, are filled in by their expectation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        rows, posterior = self._rows_and_posterior(X)
        _, law = self._mixture()
        patterns = Patterns.of(rows)
        found = posterior @ law.means
        for component, share in enumerate(posterior.T):
            means = factor_posterior(law, component, patterns).means
            found += (share[:, None] * means) @ law.loadings[component].T
        return found

    @overload
    def recover(
        self, V: ArrayLike, projection: ArrayLike, noise_precision: float = ..., *, return_std: Literal[False] = ...
    ) -> Array: ...
    @overload
    def recover(
        self, V: ArrayLike, projection: ArrayLike, noise_precision: float = ..., *, return_std: Literal[True]
    ) -> tuple[Array, Array]: ...
    def recover(
        self, V: ArrayLike, projection: ArrayLike, noise_precision: float = 1e6, *, return_std: bool = False
    ) -> Array | tuple[Array, Array]:
        """Rows from a few linear measurements of each, ``v = F y + noise``: posterior means in closed form.

        ``p(y | v)`` is a mixture of Gaussians with means ``m_j + C_j F' (F C_j F' + I / g)^-1 (v - F m_j)`` and weights
        proportional to ``w_j N(v; F m_j, F C_j F' + I / g)``, C_j being the covariance of component j.

        Parameters
        ----------
        V : array-like of shape (n_samples, n_measurements)
        projection : array-like of shape (n_measurements, n_features) or (n_samples, n_measurements, n_features)
            The matrix F, one for all rows or one for each.
        noise_precision : float, default=1e6
            One over the variance of the noise of the measurements, g.
        return_std : bool, default=False
            Whether standard deviations of the mixture come with the means.

        Returns
        -------
        array of shape (n_samples, n_features), or two of them
        """
        weights, law = self._mixture()
        F = check_array(projection, dtype=np.float64, allow_nd=True, input_name="projection")
        values = check_array(V, dtype=np.float64, input_name="V")
        D = law.means.shape[1]
        if F.ndim not in (2, 3) or F.shape[-1] != D:
            raise ValueError(f"projection must have {D} columns, one for each feature, got {F.shape[-1]}")
        if values.shape[1] != F.shape[-2]:
            raise ValueError(
                f"V must have {F.shape[-2]} columns, one for each row of projection, got {values.shape[1]}"
            )
        if F.ndim == 3 and len(F) != len(values):
            raise ValueError(f"projection must be one for each of {len(values)} rows, or one for all, got {len(F)}")
        if not (np.ndim(noise_precision) == 0 and noise_precision > 0):
            raise ValueError(f"noise_precision must be a positive number, got {noise_precision!r}")
        stack = F if F.ndim == 3 else F[None]
        parts = [_given_measurements(law, j, values, stack, 1 / float(noise_precision)) for j in range(len(weights))]
        log_weight = np.stack([part[2] for part in parts], axis=1) + np.log(weights)
        share = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
        mean = sum(share[:, [j]] * part[0] for j, part in enumerate(parts))
        if not return_std:
            return np.asarray(mean)
        # Within the components and between them: no differences of squares, which would cancel.
        variance = sum(share[:, [j]] * (part[1] + (part[0] - mean) ** 2) for j, part in enumerate(parts))
        return np.asarray(mean), np.sqrt(variance)


def _given_measurements(
    law: LowRankGaussians, component: int, V: Array, F: Array, noise: float
) -> tuple[Array, Array, Array]:
    """Means (n, D) and variances (n or 1, D) of rows given measurements under one component, and log densities (n,)."""
    mean, W, psi = law.means[component], law.loadings[component], law.noise[component]
    carried = W @ (F @ W).transpose(0, 2, 1) + psi[:, None] * F.transpose(0, 2, 1)  # C F': (., D, p)
    root = np.linalg.cholesky(F @ carried + noise * np.eye(F.shape[1]))
    half = np.linalg.solve(root, carried.transpose(0, 2, 1))  # (., p, D)
    deviation = np.linalg.solve(root, (V - F @ mean)[:, :, None])
    means = mean + (half.transpose(0, 2, 1) @ deviation)[:, :, 0]
    variances = np.maximum((W**2).sum(axis=1) + psi - (half**2).sum(axis=1), 0.0)
    log_det = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    quad = (deviation**2).sum(axis=(1, 2))
    return means, variances, -0.5 * (quad + log_det + V.shape[1] * LOG_2_PI)
