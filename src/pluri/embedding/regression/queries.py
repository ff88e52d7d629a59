"""What a fitted reversible embedding can be asked, however its coordinates were found."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pluri.embedding.regression.prediction import (
    EmbeddedDistribution,
    JointMixture,
    drawn,
    embedded,
    embedded_distribution,
    place_log_density,
    row_log_density,
    synthesized,
)
from pluri.factors.low_rank_gaussian import Patterns
from pluri.validation import as_generator, check_count

Array = NDArray[np.float64]


class Novelty(NamedTuple):
    """How far rows are from what was learned.

    Attributes
    ----------
    log_density : (n,): log density of each row, within the span of the training rows if rows were turned into it
    off_span : (n,): length of the part of each row that is outside that span; zero if rows were not turned
    """

    log_density: Array
    off_span: Array


class ReversibleQueries(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Queries both ways; a `TransformerMixin` itself: `set_output` reaches only what a class that has it defines."""

    random_state: Any
    draw_index_: NDArray[np.int64]
    weights_: Array
    centers_: Array
    variances_: Array
    means_: Array
    loadings_: Array
    noise_variances_: Array
    basis_: Array | None
    offset_: Array | None
    support_floor_: float

    def _mixture(self) -> JointMixture:
        check_is_fitted(self, "weights_")
        return JointMixture(
            self.draw_index_, self.weights_, self.centers_, self.variances_, self.means_, self.loadings_,
            self.noise_variances_,
        )  # fmt: skip

    @property
    def _n_features_out(self) -> int:
        return int(self.centers_.shape[1])

    def _rows(self, X: Any, missing: bool = False) -> tuple[Patterns, Array]:
        """Checked rows as the mixture has them, and the lengths of what is outside the span of the training rows."""
        check_is_fitted(self, "weights_")
        finite: Any = "allow-nan" if missing else True
        data = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=finite)
        if self.basis_ is None or self.offset_ is None:
            return Patterns.of(data), np.zeros(len(data))
        if np.isnan(data).any():
            raise ValueError(
                "X must have no missing values (NaN) if rows were turned into the span of the training rows, got "
                "some: fit with reduce=False to allow them"
            )
        centered = data - self.offset_
        turned = centered @ self.basis_
        return Patterns.of(turned), np.linalg.norm(centered - turned @ self.basis_.T, axis=1)

    def _untransformed(self, rows: Array) -> Array:
        if self.basis_ is None or self.offset_ is None:
            return rows
        return np.asarray(rows @ self.basis_.T + self.offset_)

    def _coordinates(self, X: Any) -> Array:
        check_is_fitted(self, "weights_")
        x = np.asarray(check_array(X, dtype=np.float64, input_name="X"))
        if x.shape[1] != self._n_features_out:
            raise ValueError(f"X must have {self._n_features_out} columns, one per coordinate, got {x.shape[1]}")
        return x

    def transform(self, X: Any) -> Array:
        """Posterior means of the coordinates of rows, averaged over the kept draws.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_coordinates)
        """
        return embedded(self._mixture(), self._rows(X)[0])

    def transform_distribution(self, X: Any) -> EmbeddedDistribution:
        """Distribution of the coordinates of each row: a mixture of Gaussians, those of all kept draws.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN is a missing value and is integrated out, unless rows were turned into the span of the training rows.

        Returns
        -------
        EmbeddedDistribution
            With fields ``weights``, ``means`` and ``covariances``, and methods ``mean()`` and ``covariance()``.
        """
        return embedded_distribution(self._mixture(), self._rows(X, missing=True)[0])

    def inverse_transform(self, X: Any) -> Array:
        """Expected rows at coordinates, averaged over the kept draws.

        A warning says how many coordinates lie where hardly any training row was (`support_log_density` below that of
        999 of 1000 rows): there the nearest cluster is continued linearly.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_coordinates)

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        x = self._coordinates(X)
        mixture = self._mixture()
        n_outside = int((place_log_density(mixture, x) < self.support_floor_).sum())
        if n_outside:
            warnings.warn(
                f"{n_outside} of {len(x)} coordinates lie where hardly any training row was: what is made there is the "
                "nearest cluster continued linearly",
                UserWarning,
                stacklevel=2,
            )
        return self._untransformed(synthesized(mixture, x))

    def support_log_density(self, X: Any) -> Array:
        """Log density of coordinates of shape (n_samples, n_coordinates), averaged over draws: (n_samples,)."""
        return place_log_density(self._mixture(), self._coordinates(X))

    def score_samples(self, X: Any) -> Array:
        """Log density of each row, averaged over draws: (n_samples,).

        If rows were turned into the span of the training rows, this is the density there (see `novelty`).
        """
        return row_log_density(self._mixture(), self._rows(X)[0])

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows."""
        return float(self.score_samples(X).mean())

    def novelty(self, X: Any) -> Novelty:
        """How far rows are from what was learned: log density, and length of the part outside the span."""
        rows, outside = self._rows(X)
        return Novelty(row_log_density(self._mixture(), rows), outside)

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw rows from the fitted model: rows (n_samples, n_features), and coordinates (n_samples, n_coordinates).

        If rows were turned into the span of the training rows, so is their noise.
        """
        mixture = self._mixture()
        rows, x = drawn(mixture, check_count(n_samples, "n_samples"), as_generator(self.random_state))
        return self._untransformed(rows), x
