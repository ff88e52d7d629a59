"""A set of Gaussian components: densities, weighted moments, the MAP update and sampling.

Shared by the Gaussian mixture, the Gaussian HMM (a component for each state) and the Gaussian-mixture HMM.
The prior on component c, in the form that makes the M-step closed, is

    log p(mu, S) = -1/2 [ w log|S| + tr(Psi S^-1) + lambda (mu - m)^T S^-1 (mu - m) ] + const,

a normal-inverse-Wishart (or inverse-gamma) density; w = 0, Psi = 0, lambda = 0 is maximum likelihood. Its update is

    mu = (lambda m + sum q x) / (lambda + n),      S = (Psi + lambda (mu-m)(mu-m)^T + scatter) / (w + n).

No variance falls below a floor; the update then maximises the same objective among covariances above it, which only
raises the eigenvalues of S that are too small.

A missing value (NaN) is integrated out: with diagonal covariances it drops from the sums, with full ones its
conditional mean and covariance given the observed features enter them (Dempster, Laird and Rubin 1977).
"""

from pluri.components.gaussian.conversions import expected, pack, rebased, unpack
from pluri.components.gaussian.family import (
    COVARIANCE_TYPES,
    CollapsedComponentError,
    GaussianComponents,
    GaussianParameters,
    GaussianPrior,
    GaussianStatistics,
    accumulate,
    check_magnitude,
    log_prior,
    log_prob,
    maximize,
    n_covariance_parameters,
    negligible,
    raise_eigenvalues,
    sample,
    variance_floor,
)
from pluri.components.gaussian.missing import fill_missing

__all__ = [
    "COVARIANCE_TYPES",
    "CollapsedComponentError",
    "GaussianComponents",
    "GaussianParameters",
    "GaussianPrior",
    "GaussianStatistics",
    "accumulate",
    "check_magnitude",
    "expected",
    "fill_missing",
    "log_prior",
    "log_prob",
    "maximize",
    "n_covariance_parameters",
    "negligible",
    "pack",
    "raise_eigenvalues",
    "rebased",
    "sample",
    "unpack",
    "variance_floor",
]
