"""The intrinsic dimension of a table, with an interval.

Intervals come from half-samples: the estimate is made again from random halves of the rows, neighbours and all. Two
halves of a sample differ from the whole as the sample differs from another one, in variance: if an estimate from m rows
has the variance v / m, a half-sample estimate deviates from that of all n rows by ``v / (n/2) - v / n = v / n``, and
one of m rows by ``(v / n) (n - m) / m``: a method whose answer is another one for half as many rows takes more of them.
The standard deviation of few resamples is itself uncertain, and the interval is that of Student's t. It says how much
the estimate varies from sample to sample; the bias that a method has for a shape (boundaries, curvature, noise) is not
in it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.embedding.dimension.methods import METHODS, Method
from pluri.embedding.dimension.records import DimensionSettings, Estimate
from pluri.embedding.spectral.bounds import check_size
from pluri.validation import (
    Allowed,
    Number,
    Only,
    RandomState,
    Stored,
    Whole,
    as_generator,
    check_parameters,
    check_value,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]


class IntrinsicDimension(Estimator):
    """How many dimensions the set that rows lie on has.

    Parameters
    ----------
    method : {"mle", "eigenvalue", "correlation", "gmst", "nsr"}, default="mle"
        Maximum likelihood from distances to neighbours; number of large eigenvalues of the covariance; growth of the
        number of near pairs; growth of geodesic minimal spanning trees; directions that matter in a regression of the
        rows on spectral coordinates (`SpectralRegression`), which takes seconds and shrugs off more noise.
    n_neighbors : int, default=12
        The largest number of neighbours: of "mle", of the graphs of "gmst" and "nsr", and of the local estimates of
        "eigenvalue".
    min_neighbors : int, default=6
        The smallest one; "mle" averages over all from here to `n_neighbors`.
    averaging : {"harmonic", "mean"}, default="harmonic"
        How "mle" averages over rows. The mean, as first published, is too high by the factor (k - 1) / (k - 2).
    threshold : float, default=0.025
        Share of the variance above which "eigenvalue" counts a direction.
    radii : tuple of two floats, optional
        Between which "correlation" takes the slope; the median and the maximum of the distances to the 5th neighbour by
        default.
    n_resamples : int, default=20
        Half-samples for the interval; 0 for none. For "nsr" at most six, of four fifths of the rows; each is a fit.
    level : float, default=0.95
        Of the interval.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    dimension_ : float
    dimension_interval_ : array of shape (2,)
        By resamples. NaN without them or with too few rows. It does not cover bias: see the guide.
    local_dimension_ : array of shape (n_samples,) or None
        Around each row; NaN where there is nothing to tell it, None for "gmst".
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.embedding import IntrinsicDimension
    >>> rng = np.random.default_rng(0)
    >>> flat = rng.uniform(size=(500, 2)) @ rng.normal(size=(2, 10))  # a plane in ten dimensions
    >>> model = IntrinsicDimension(random_state=0).fit(flat)
    >>> round(model.dimension_)
    2
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "dimension_interval_": Stored(2, finite=False),
        "local_dimension_": Stored("n", finite=False),
    }
    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "method": Only(*METHODS),
        "n_neighbors": Whole(3),
        "min_neighbors": Whole(3),
        "averaging": Only("mean", "harmonic"),
        "threshold": Number(above=0, below=1),
        "n_resamples": Whole(0),
        "level": Number(above=0, below=1),
    }

    def __init__(
        self,
        method: str = "mle",
        *,
        n_neighbors: int = 12,
        min_neighbors: int = 6,
        averaging: str = "harmonic",
        threshold: float = 0.025,
        radii: tuple[float, float] | None = None,
        n_resamples: int = 20,
        level: float = 0.95,
        random_state: RandomState = None,
    ) -> None:
        self.method = method
        self.n_neighbors = n_neighbors
        self.min_neighbors = min_neighbors
        self.averaging = averaging
        self.threshold = threshold
        self.radii = radii
        self.n_resamples = n_resamples
        self.level = level
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate the dimension.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : object
        """
        check_parameters(self)
        settings = self._settings()
        with restored_on_failure(self):
            data = validate_data(self, X, dtype=np.float64)
            check_size(data)
            method = METHODS[self.method]
            rows, place = _distinct(data) if method.distinct else (data, np.arange(len(data)))
            if len(rows) <= settings.n_neighbors:
                raise ValueError(
                    f"n_neighbors must be below the number of distinct rows (n_samples={len(rows)}, "
                    f"n_features={rows.shape[1]}), got {settings.n_neighbors}"
                )
            rng = as_generator(self.random_state)
            found = method.estimate(rows, settings, rng)
            self.dimension_ = found.dimension
            self.local_dimension_ = None if found.local is None else found.local[place]
            self.dimension_interval_ = np.array(self._interval(found, method, rows, settings, rng))
        return self

    def _settings(self) -> DimensionSettings:
        if self.min_neighbors > self.n_neighbors:
            raise ValueError(
                f"min_neighbors must be at most n_neighbors ({self.n_neighbors}), got {self.min_neighbors}"
            )
        radii = None
        if self.radii is not None:
            if np.shape(self.radii) != (2,):
                raise ValueError(f"radii must be two numbers or None, got {self.radii!r}")
            for radius in self.radii:
                check_value(radius, "radii", Number(above=0))
            radii = (float(self.radii[0]), float(self.radii[1]))
        return DimensionSettings(
            int(self.n_neighbors), int(self.min_neighbors), str(self.averaging), float(self.threshold), radii,
        )  # fmt: skip

    def _interval(
        self, found: Estimate, method: Method, rows: Array, settings: DimensionSettings, rng: np.random.Generator
    ) -> tuple[float, float]:
        n_resamples = min(int(self.n_resamples), method.most_resamples)
        if n_resamples < 2:
            return float("nan"), float("nan")
        part = int(method.share * len(rows))
        estimates = []
        if part > settings.n_neighbors:
            for _ in range(n_resamples):
                try:
                    estimates.append(method.estimate(rows[rng.permutation(len(rows))[:part]], settings, rng).dimension)
                except ValueError:  # a part may be torn where the whole is connected
                    continue
        if len(estimates) < max(2, n_resamples / 2):
            warnings.warn(
                f"n_samples={len(rows)} distinct rows are too few for an interval from halves of them with "
                f"n_neighbors={settings.n_neighbors}; dimension_interval_ is NaN",
                UserWarning,
                stacklevel=4,
            )
            return float("nan"), float("nan")
        quantile = float(stdtrit(len(estimates) - 1, 0.5 + self.level / 2))
        width = quantile * float(np.std(estimates, ddof=1) * np.sqrt(part / (len(rows) - part)))
        return max(found.dimension - width, 0.0), found.dimension + width

    def summary(self) -> str:
        """The estimate, its interval, and how it varies from row to row."""
        check_is_fitted(self, "dimension_")
        low, high = self.dimension_interval_
        lines = [
            f"{type(self).__name__}: {self.dimension_:.2f} by {self.method}, "
            f"{100 * self.level:g} % interval {low:.2f} to {high:.2f}"
        ]
        if self.local_dimension_ is not None and np.isfinite(self.local_dimension_).any():
            quartiles = np.nanquantile(self.local_dimension_, (0.25, 0.5, 0.75))
            lines.append("around rows: quartiles {:.2f}, {:.2f}, {:.2f}".format(*quartiles))
        return "\n".join(lines)


def _distinct(data: Array) -> tuple[Array, NDArray[np.int64]]:
    """Rows that differ, and which of them each row is."""
    rows, first, place = np.unique(data, axis=0, return_index=True, return_inverse=True)
    if len(rows) == len(data):
        return data, np.arange(len(data))
    warnings.warn(
        f"{len(data) - len(rows)} of {len(data)} rows occur before: distances of zero tell nothing, and each row is "
        "counted once",
        UserWarning,
        stacklevel=4,
    )
    order = np.argsort(first)
    return rows[order], np.argsort(order)[place.ravel()]
