"""What a fitted mixture of factor analysers can be asked, however it was fitted."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve
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

    def recover(self, V: ArrayLike, projection: ArrayLike, noise_precision: float = 1e6) -> Array:
        """Rows from a few linear measurements of each, ``v = F y + noise``: posterior means in closed form.

        ``p(y | v)`` is a mixture of Gaussians with means ``m_j + C_j F' (F C_j F' + I / g)^-1 (v - F m_j)`` and weights
        proportional to ``w_j N(v; F m_j, F C_j F' + I / g)``, C_j being the covariance of component j.

        Parameters
        ----------
        V : array-like of shape (n_samples, n_measurements)
        projection : array-like of shape (n_measurements, n_features)
            The matrix F.
        noise_precision : float, default=1e6
            One over the variance of the noise of the measurements, g.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        weights, law = self._mixture()
        F = check_array(projection, dtype=np.float64, input_name="projection")
        values = check_array(V, dtype=np.float64, input_name="V")
        k, D = law.means.shape
        if F.shape[1] != D:
            raise ValueError(f"projection must have {D} columns, one for each feature, got {F.shape[1]}")
        if values.shape[1] != len(F):
            raise ValueError(f"V must have {len(F)} columns, one for each row of projection, got {values.shape[1]}")
        if not (np.ndim(noise_precision) == 0 and noise_precision > 0):
            raise ValueError(f"noise_precision must be a positive number, got {noise_precision!r}")
        log_weight = np.empty((len(values), k))
        means = np.empty((k, len(values), D))
        for j in range(k):
            FW = F @ law.loadings[j]
            carried = law.loadings[j] @ FW.T + law.noise[j][:, None] * F.T  # C F': (D, p)
            spread = F @ carried + np.eye(len(F)) / float(noise_precision)
            root = np.linalg.cholesky(spread)
            deviation = values - F @ law.means[j]
            solved = cho_solve((root, True), deviation.T)
            means[j] = law.means[j] + (carried @ solved).T
            log_det = 2 * np.log(np.diagonal(root)).sum()
            quad = np.einsum("np,pn->n", deviation, solved)
            log_weight[:, j] = np.log(weights[j]) - 0.5 * (quad + log_det + len(F) * LOG_2_PI)
        share = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
        return np.einsum("nj,jnd->nd", share, means)
