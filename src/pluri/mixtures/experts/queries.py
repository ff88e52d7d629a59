"""Everything one can ask fitted experts: means, intervals, quantiles, densities, draws, weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.inference import mcmc
from pluri.mixtures.experts.gibbs import with_intercept
from pluri.mixtures.experts.prediction import ExpertDraws
from pluri.validation import RandomState, as_generator, check_count

Array = NDArray[np.float64]


class ExpertQueries:
    """Methods of fitted experts, from the draws that were kept for predictions."""

    trace_: mcmc.Trace
    n_active_: int
    x_mean_: Array
    x_scale_: Array
    y_mean_: float
    y_scale_: float
    _sticks: Array
    _coefficients: Array
    _precisions: Array
    _order: NDArray[np.int64]

    def _draws(self) -> ExpertDraws:
        return ExpertDraws(self._sticks, self._coefficients, self._precisions)

    def _design(self, X: ArrayLike) -> Array:
        check_is_fitted(self, "trace_")
        rows: Array = validate_data(self, X, dtype=np.float64, reset=False)
        return with_intercept((rows - self.x_mean_) / self.x_scale_)

    def predict(self, X: ArrayLike, return_std: bool = False, return_interval: float | None = None) -> Any:
        """Mean of y at new inputs, and how far y may be from it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Also return the standard deviation of y, noise and all: (n_samples,).
        return_interval : float, optional
            Also return the ends of the interval that y is in with this probability, and above and below which it is
            with equal probability: (n_samples, 2).

        Returns
        -------
        mean : array of shape (n_samples,)
        std, interval : arrays, if asked for
        """
        design = self._design(X)
        mean, variance = self._draws().moments(design)
        found = [self.y_mean_ + self.y_scale_ * mean]
        if return_std:
            found.append(self.y_scale_ * np.sqrt(variance))
        if return_interval is not None:
            if not (np.ndim(return_interval) == 0 and 0 < return_interval < 1):
                raise ValueError(f"return_interval must be a probability between 0 and 1, got {return_interval!r}")
            levels = np.array([0.5 - 0.5 * return_interval, 0.5 + 0.5 * return_interval])
            found.append(self.y_mean_ + self.y_scale_ * self._draws().quantiles(design, levels))
        return found[0] if len(found) == 1 else tuple(found)

    def predict_quantiles(self, X: ArrayLike, quantiles: ArrayLike = (0.025, 0.5, 0.975)) -> Array:
        """Quantiles of y at new inputs, where the distribution function of the predictive mixture has that value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        quantiles : array-like of shape (n_quantiles,), default=(0.025, 0.5, 0.975)

        Returns
        -------
        array of shape (n_samples, n_quantiles)
        """
        levels = np.asarray(quantiles, dtype=np.float64)
        if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"quantiles must be one axis of probabilities between 0 and 1, got {quantiles!r}")
        design = self._design(X)
        return self.y_mean_ + self.y_scale_ * self._draws().quantiles(design, levels)

    def predict_density(self, X: ArrayLike, y_grid: ArrayLike) -> Array:
        """Density of y at new inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y_grid : array-like of shape (n_values,) or (n_samples, n_values)
            Values of y, the same for all rows or each row's own.

        Returns
        -------
        array of shape (n_samples, n_values)
        """
        design = self._design(X)
        grid = np.asarray(y_grid, dtype=np.float64)
        if grid.ndim not in (1, 2) or (grid.ndim == 2 and len(grid) != len(design)) or not np.isfinite(grid).all():
            raise ValueError(
                f"y_grid must be finite, of shape (n_values,) or ({len(design)}, n_values), got shape {grid.shape}"
            )
        values = np.broadcast_to((grid - self.y_mean_) / self.y_scale_, (len(design), grid.shape[-1]))
        return self._draws().densities(design, values) / self.y_scale_

    def log_density(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Log of the predictive density of each y given its row of X: (n_samples,)."""
        values = np.asarray(y, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_density(X, values.reshape(-1, 1))[:, 0]))

    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: RandomState = 0) -> Array:
        """Draw y at new inputs from its predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_inputs, n_features)
        n_samples : int, default=1
        random_state : int, Generator or None, default=0

        Returns
        -------
        array of shape (n_inputs, n_samples)
            Each column is drawn with the same experts.
        """
        check_count(n_samples, "n_samples")
        design = self._design(X)
        return self.y_mean_ + self.y_scale_ * self._draws().sample(as_generator(random_state), design, int(n_samples))

    def weights(self, X: ArrayLike) -> Array:
        """Posterior mean weights of the experts at new inputs: (n_samples, max_components).

        Experts of different draws count as the same if they hold the same rows; the first holds the most.
        """
        return self._mean_weights(self._design(X))

    def _mean_weights(self, design: Array) -> Array:
        draws = self._draws()
        mean = np.empty((len(design), self._precisions.shape[1]))
        for rows in draws.chunks(len(design)):
            weights = draws.weights_at(design[rows])
            mean[rows] = np.take_along_axis(weights, self._order[None], axis=2).mean(axis=1)
        return mean

    def summary(self) -> str:
        """The active experts on one page of plain text: posterior means, in the units of the data."""
        check_is_fitted(self, "trace_")
        rows = np.arange(len(self._order))[:, None]
        coefficients = self._coefficients[rows, self._order].mean(axis=0)
        deviations = self.y_scale_ * (1.0 / np.sqrt(self._precisions[rows, self._order])).mean(axis=0)
        slopes = coefficients[:, 1:] * self.y_scale_ / self.x_scale_
        intercepts = self.y_mean_ + self.y_scale_ * coefficients[:, 0] - slopes @ self.x_mean_
        trace = self.trace_
        lines = [
            f"{type(self).__name__}: {self.n_active_} active experts of at most {coefficients.shape[0]}",
            f"{trace.n_chains} chains x {trace.n_draws} draws, mean log likelihood "
            f"{float(np.mean(trace.stats['log_likelihood'])):.2f} (standardised y)",
            f"{'expert':>6s} {'intercept':>12s} {'noise sd':>10s}  slopes",
        ]
        for k in range(self.n_active_):
            shown = np.array2string(slopes[k], precision=4, threshold=8)
            lines.append(f"{k:6d} {intercepts[k]:12.4f} {deviations[k]:10.4f}  {shown}")
        return "\n".join(lines)
