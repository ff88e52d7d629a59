"""Density estimation by a normalizing flow: an invertible map from the data to independent normal noise.

``log p(x) = log N(f(x); 0, I) + log |det df/dx|`` after standardising the columns, fitted by maximum likelihood with
early stopping. It gives exact densities, draws, and a transformation to independent normal coordinates and back.
Columns with heavy tails are first mapped to ones with normal tails (`pluri.processes.column_tails`).

References
----------
Rezende and Mohamed (2015), Variational inference with normalizing flows, ICML.
Dinh, Sohl-Dickstein and Bengio (2017), Density estimation using Real NVP, ICLR.
Durkan, Bekasov, Murray and Papamakarios (2019), Neural spline flows, NeurIPS.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pluri.inference.variational.flows.density import fit_density
from pluri.inference.variational.flows.density_settings import density_of
from pluri.inference.variational.flows.flow import FLOWS
from pluri.inference.variational.flows.jax_density import JAX_FLOWS
from pluri.processes.column_tails import ColumnTails, learn_tails, normal_tails, standardisation, warn_of_far_rows
from pluri.validation import (
    Allowed,
    Number,
    Only,
    Stored,
    Whole,
    as_generator,
    check_count,
    check_parameters,
    weighted_mean,
)
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]

#: Number of rows whose noise and density are computed at a time.
CHUNK = 8192


class FlowDensity(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, Estimator):
    """Density of a table of numbers by a normalizing flow.

    Parameters
    ----------
    flow : {"spline", "coupling", "planar", "radial", "mixed", "autoregressive"}, default="spline"
        Layers. Splines are the most flexible of a given size. Affine coupling on a single column, or with one layer,
        stays a normal distribution. Planar and radial layers are cheap and few in parameters.
    n_layers : int, default=4
        Number of layers; planar and radial flows want 8 or more.
    hidden : int or tuple of int, default=32
        Sizes of the hidden layers of the networks in coupling and autoregressive layers.
    n_bins : int, default=8
        Pieces of each spline.
    bound : float, default=5.0
        Splines act within this many standard deviations of the mean of a column; outside, tails are those of `tails`.
    tails : {"auto", "normal"}, default="auto"
        "auto" gives a column Student's t tails, learned from the farthest tenth of its values, if these are clearly
        heavier than normal ones.
    backend : {"auto", "numpy", "jax"}, default="auto"
        Who computes: this package, or flowjax (``pip install 'pluri[jax]'``), which has coupling, spline and
        autoregressive flows and is faster with large networks. Auto is NumPy, except for autoregressive flows.
    learning_rate : float, default=5e-3
        Of Adam; it halves when progress stops.
    batch_size : int, default=256
        Rows of a step.
    max_iter : int, default=500
        Largest number of passes through the data.
    validation_fraction : float, default=0.1
        Share of the rows held out to stop in time; with 0, or fewer than 50 rows, the training loss decides.
    n_iter_no_change : int, default=20
        The fit ends when so many passes in a row improve the loss by less than `tol`.
    tol : float, default=1e-4
    random_state : int, numpy Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    parameters_ : array of shape (n_parameters,)
        Of all layers.
    mean_, scale_ : arrays of shape (n_features,)
        Of the columns.
    loss_, validation_loss_ : lists of float
        Mean negative log-likelihood of the standardised data in each pass.
    elbo_ : list of float
        Mean log-likelihood of each pass, in the units of the data: held out if there is such a part.
    n_iter_ : int
    converged_ : bool
    settings_ : dict
        Shape of the flow.
    tail_degrees_, tail_center_, tail_width_ : arrays of shape (n_features,)
        Degrees of freedom of the tails of each column, infinite for normal ones; median and width of heavy ones.
    lower_, upper_ : arrays of shape (n_features,)
        Range of each column in training.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.flow_density import FlowDensity
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=400)
    >>> X = np.column_stack([x, x**2 + 0.3 * rng.normal(size=400)])
    >>> model = FlowDensity(n_layers=2, n_iter_no_change=10, random_state=0).fit(X)
    >>> bool(model.score(X) > -2.0)  # a normal distribution has -3.3
    True
    >>> model.sample(3, random_state=0).shape
    (3, 2)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "flow": Only(*FLOWS, "autoregressive"),
        "backend": Only("auto", "numpy", "jax"),
        **dict.fromkeys(("n_layers", "n_bins", "batch_size", "n_iter_no_change"), Whole(1)),
        **dict.fromkeys(("bound", "learning_rate"), Number(above=0)),
        "validation_fraction": Number(least=0, below=1),
        "tol": Number(finite=False),
        "tails": Only("auto", "normal"),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "mean_": Stored("n_features_in_"),
        "scale_": Stored("n_features_in_"),
        **dict.fromkeys(("tail_center_", "tail_width_", "lower_", "upper_"), Stored("n_features_in_")),
        "parameters_": Stored(None),
    }

    def __init__(
        self,
        flow: str = "spline",
        n_layers: int = 4,
        *,
        hidden: int | tuple[int, ...] = 32,
        n_bins: int = 8,
        bound: float = 5.0,
        tails: str = "auto",
        backend: str = "auto",
        learning_rate: float = 5e-3,
        batch_size: int = 256,
        max_iter: int = 500,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.flow = flow
        self.n_layers = n_layers
        self.hidden = hidden
        self.n_bins = n_bins
        self.bound = bound
        self.tails = tails
        self.backend = backend
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the flow; after Ctrl-C the best parameters so far stay, with a warning.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Without missing values; every column must vary.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Not negative; rows with weight 0 are as if absent.

        Returns
        -------
        self : object
        """
        backend, hidden = self._check_settings()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        used = weights > 0
        if used.sum() < 2:
            raise ValueError(f"sample_weight must be positive for at least 2 samples, got {int(used.sum())}")
        data, weights, rng = X[used], weights[used] / weights[used].mean(), as_generator(self.random_state)
        standardisation(data, weights)  # refuses constant columns
        tails = learn_tails(data, weights) if self.tails == "auto" else normal_tails(data.shape[1])
        lower, upper = data.min(axis=0), data.max(axis=0)
        data, log_slope = tails.forward(data)
        mean, scale = standardisation(data, weights)
        settings = {
            "flow": self.flow, "backend": backend, "dim": data.shape[1], "n_layers": int(self.n_layers),
            "hidden": hidden, "n_bins": int(self.n_bins), "bound": float(self.bound), "key": int(rng.integers(2**31)),
        }  # fmt: skip
        fitted = fit_density(
            density_of(settings),
            (data - mean) / scale,
            weights,
            rng,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            max_iter=self.max_iter,
            validation_fraction=self.validation_fraction,
            n_iter_no_change=self.n_iter_no_change,
            tol=self.tol,
            verbose=int(self.verbose),
        )
        self.settings_, self.parameters_ = settings, fitted.parameters
        self.mean_, self.scale_ = mean, scale
        self.loss_, self.validation_loss_ = fitted.loss, fitted.validation_loss
        self.tail_degrees_, self.tail_center_, self.tail_width_ = tails.degrees, tails.center, tails.width
        self.lower_, self.upper_ = lower, upper
        constant = float(np.log(scale).sum()) - float(weights @ log_slope / weights.sum())
        self.elbo_ = [-loss - constant for loss in (fitted.validation_loss or fitted.loss)]
        self.n_iter_, self.converged_ = fitted.n_iter, fitted.converged
        self._n_features_out = data.shape[1]
        if not (fitted.converged or fitted.interrupted):
            warnings.warn(
                f"the loss still falls after max_iter={self.max_iter} passes: raise max_iter",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _check_settings(self) -> tuple[str, tuple[int, ...]]:
        """Refuse bad settings; gives the backend, and the sizes of the hidden layers."""
        check_parameters(self)
        sizes = self.hidden if isinstance(self.hidden, tuple | list) else (self.hidden,)
        hidden = tuple(check_count(size, "hidden") for size in sizes)
        default = "jax" if self.flow == "autoregressive" else "numpy"
        backend = default if self.backend == "auto" else self.backend
        allowed = JAX_FLOWS if backend == "jax" else FLOWS
        if self.flow not in allowed:
            raise ValueError(f"flow must be one of {allowed} with backend={backend!r}, got {self.flow!r}")
        return backend, hidden

    def _encode(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        mapped, log_slope = self._tails().forward(X)
        model, standard = density_of(self.settings_), (mapped - self.mean_) / self.scale_
        starts = range(0, len(standard), CHUNK)
        parts = [model.encode(self.parameters_, standard[begin : begin + CHUNK]) for begin in starts]
        log_prob = np.concatenate([part[1] for part in parts]) + log_slope - np.log(self.scale_).sum()
        return np.concatenate([part[0] for part in parts]), log_prob

    def _tails(self) -> ColumnTails:
        return ColumnTails(self.tail_degrees_, self.tail_center_, self.tail_width_)

    def score_samples(self, X: Any) -> Array:
        """Log density at the rows of X, of shape (n_samples,); rows far outside the range of training are warned of."""
        log_prob = self._encode(X)[1]
        warn_of_far_rows(np.asarray(X, dtype=np.float64), self.lower_, self.upper_, self.tail_degrees_)
        return log_prob

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log density of the rows of X, weighted if `sample_weight` is given."""
        return weighted_mean(self.score_samples(X), sample_weight)

    def transform(self, X: Any) -> Array:
        """Noise of the rows of X, of the same shape: independent standard normal if the model is right."""
        return self._encode(X)[0]

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Data of rows of noise."""
        check_is_fitted(self)
        Z = np.asarray(X, dtype=np.float64)
        if Z.ndim != 2 or Z.shape[1] != self.n_features_in_:
            raise ValueError(f"X must have shape (n_samples, {self.n_features_in_}), got {Z.shape}")
        model = density_of(self.settings_)
        parts = [model.decode(self.parameters_, Z[begin : begin + CHUNK]) for begin in range(0, len(Z), CHUNK)]
        mapped = self.mean_ + self.scale_ * np.concatenate([np.zeros((0, self.n_features_in_)), *parts])
        return self._tails().backward(mapped)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw rows.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, numpy Generator, RandomState or None
            None: that of the estimator.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        check_count(n_samples, "n_samples")
        rng = as_generator(self.random_state if random_state is None else random_state)
        return self.inverse_transform(rng.standard_normal((int(n_samples), self.n_features_in_)))
