"""What a fit on the manifold is given: data, start, settings and prior, checked and standardised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.mixtures.riemannian.coordinates import Penalty, Standardization, augment, standardize
from pluri.optimize.riemannian.conjugate_gradient import ConjugateGradient
from pluri.optimize.riemannian.descent import Directions
from pluri.optimize.riemannian.lbfgs import QuasiNewton
from pluri.validation import Number, Only, check_count, check_value

Array = NDArray[np.float64]
Method = Literal["lbfgs", "cg", "sgd"]
Parametrization = Literal["augmented", "original", "cholesky"]


def checked_data(X: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Array, Array | None]:
    data = np.asarray(X, dtype=np.float64)
    if data.ndim != 2 or 0 in data.shape:
        raise ValueError(f"X must be a matrix with at least one row and column, got shape {data.shape}")
    if not np.isfinite(data).all():
        raise ValueError("X must be finite, got NaN or infinity: descent on the manifold takes no missing values")
    if sample_weight is None:
        return data, None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (len(data),) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise ValueError(f"sample_weight must be {len(data)} non-negative numbers, not all zero")
    kept = weight > 0
    return (data, weight) if kept.all() else (data[kept], weight[kept])


def checked_start(weights: ArrayLike, means: ArrayLike, covariances: ArrayLike, X: Array) -> tuple[Array, Array, Array]:
    w, m, c = (np.asarray(values, dtype=np.float64) for values in (weights, means, covariances))
    n_features = X.shape[1]
    if w.ndim != 1 or len(w) == 0 or not (np.isfinite(w).all() and (w >= 0).all() and w.sum() > 0):
        raise ValueError(f"weights must be non-negative numbers, not all zero, got {weights!r}")
    for name, values, shape in (
        ("means", m, (len(w), n_features)),
        ("covariances", c, (len(w), n_features, n_features)),
    ):
        if values.shape != shape or not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite and have shape {shape}, got shape {values.shape}")
    if len(X) < len(w):
        raise ValueError(f"weights must have at most as many components as there are samples ({len(X)}), got {len(w)}")
    # A component without any weight would never get some: it starts with that of one sample.
    w = np.maximum(w / w.sum(), 1.0 / len(X))
    return w / w.sum(), m, c


@dataclass(frozen=True)
class DescentSettings:
    """How to descend, how long, and under which prior.

    Parameters
    ----------
    method : {"lbfgs", "cg", "sgd"}, default="lbfgs"
        Quasi-Newton, conjugate gradients, or stochastic steps on ``batch_size`` rows at a time.
    parametrization : {"augmented", "original", "cholesky"}, default="augmented"
        The other two are there for comparison, without lead and preconditioner, and slower.
    tol : float, default=1e-6
        Ends when a step changes the average objective by less, and so does an EM step.
    max_iter : int, default=1500
        Largest number of steps; of passes over the data with ``method="sgd"``.
    memory : int, default=20
        Steps that the quasi-Newton method remembers.
    c1, c2 : float, default=1e-4 and 0.9 (0.1 for "cg")
        Constants of the line search.
    covariance_prior : array-like of shape (n_features, n_features), optional
        Scatter of the prior's pseudo-observations; ``covariance_prior_weight`` times the covariance of X if not given.
    covariance_prior_mean : array-like of shape (n_features,), optional
        Their mean; that of X if not given.
    covariance_prior_weight : float, default=0.0
        Their number, for each component.
    weight_concentration : float, default=0.0
        Penalty ``-weight_concentration * sum(log(weights))`` on tiny components.
    lead : int, optional
        Number of EM steps at the beginning; as long as EM is fast if not given.
    branches : int, default=1
        Largest number of descents. Where the first one takes long there are many optima nearby; the next one leaves
        EM's path later, and the best is kept.
    preconditioned : bool, default=True
        Whether directions are scaled by the complete-data Hessian.
    batch_size : int, default=256
        Rows in a stochastic step.
    """

    method: Method = "lbfgs"
    parametrization: Parametrization = "augmented"
    tol: float = 1e-6
    max_iter: int = 1500
    memory: int = 20
    c1: float = 1e-4
    c2: float | None = None
    covariance_prior: ArrayLike | None = None
    covariance_prior_mean: ArrayLike | None = None
    covariance_prior_weight: float = 0.0
    weight_concentration: float = 0.0
    lead: int | None = None
    branches: int = 1
    preconditioned: bool = True
    batch_size: int = 256

    def __post_init__(self) -> None:
        check_value(self.method, "method", Only("lbfgs", "cg", "sgd"))
        check_value(self.parametrization, "parametrization", Only("augmented", "original", "cholesky"))
        if self.method == "sgd" and self.parametrization != "augmented":
            raise ValueError(f"parametrization must be 'augmented' with method='sgd', got {self.parametrization!r}")
        check_value(self.tol, "tol", Number(least=0, finite=False))
        for name in ("covariance_prior_weight", "weight_concentration"):
            check_value(getattr(self, name), name, Number(least=0))
        for name in ("max_iter", "memory", "branches"):
            check_count(getattr(self, name), name)

    @property
    def curvature(self) -> float:
        """The second constant of the line search."""
        return (0.1 if self.method == "cg" else 0.9) if self.c2 is None else self.c2

    def directions(self, dimension: int) -> Directions:
        """A descent method that has seen nothing yet."""
        lbfgs = self.method == "lbfgs"
        return QuasiNewton(self.memory) if lbfgs else ConjugateGradient("hestenes_stiefel", dimension)


def standardized_prior(
    X: Array,
    sample_weight: Array | None,
    total: float,
    settings: DescentSettings,
) -> tuple[Standardization, Penalty]:
    """Standardise the data, and the prior with them."""
    prior, prior_weight = settings.covariance_prior, settings.covariance_prior_weight
    n_features = X.shape[1]
    scatter: Array | None = None
    if prior is not None:
        scatter = np.asarray(prior, dtype=np.float64)
        if scatter.shape != (n_features, n_features) or not np.isfinite(scatter).all():
            raise ValueError(
                f"covariance_prior must be a finite matrix of shape {(n_features,) * 2}, got {scatter.shape}"
            )
        if not np.allclose(scatter, scatter.T) or np.linalg.eigvalsh(scatter)[0] < 0:
            raise ValueError("covariance_prior must be symmetric and positive semi-definite")
    share = prior_weight / total
    frame = standardize(X, sample_weight, scatter / total if scatter is not None and share else None, share)
    second = np.zeros((n_features + 1, n_features + 1))
    if share:
        mean = (
            frame.shift
            if settings.covariance_prior_mean is None
            else np.asarray(settings.covariance_prior_mean, dtype=np.float64)
        )
        if mean.shape != (n_features,) or not np.isfinite(mean).all():
            raise ValueError(f"covariance_prior_mean must be {n_features} finite numbers, got shape {mean.shape}")
        white = np.eye(n_features) if scatter is None else frame.forward_covariances(scatter) / prior_weight
        second = share * augment(frame.forward(mean[None]), white[None])[0]
    return frame, Penalty(second, share, settings.weight_concentration / total)


def augmented_start(frame: Standardization, weights: Array, means: Array, covariances: Array) -> tuple[Array, Array]:
    """Augmented matrices and log weights; singular covariances are replaced by that of all data."""
    white = frame.forward_covariances(covariances)
    white = 0.5 * (white + np.swapaxes(white, 1, 2))
    flat = ~(np.linalg.eigvalsh(white)[:, 0] > 1e-8)
    white[flat] = np.eye(means.shape[1])
    return augment(frame.forward(means), white), np.log(weights)
