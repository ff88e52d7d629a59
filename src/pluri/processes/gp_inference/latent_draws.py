"""Sampling the latent function of a Gaussian-process classifier, alone or together with the hyper-parameters.

With the kernel given, `draw_latent` runs elliptical slice sampling or a Polya-Gamma Gibbs sampler. With it unknown,
`JointPosterior` is the log density of free coordinates s of the hyper-parameters and of the whitened function z,
``f = L(s) z``, ``L L' = K(s)``: z and s are independent a priori, which NUTS can cope with, unlike f and s.

References
----------
.. [1] Murray, I. and Adams, R. P. (2010). Slice sampling covariance hyperparameters of latent Gaussian models. NIPS.
.. [2] Murray, I. (2016). Differentiation of the Cholesky decomposition. arXiv:1602.07527.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import expit

from pluri.inference.mcmc.trace import Trace
from pluri.processes.gp_inference.covariance import Covariance, as_matrix
from pluri.processes.gp_inference.exact import Jitter
from pluri.processes.gp_inference.learning import FARTHEST, Charts, draw_start
from pluri.processes.gp_inference.parameters import Parameter, by_name
from pluri.processes.gp_inference.polya_gamma import PolyaGammaGibbs
from pluri.processes.gp_inference.sites import log_sigmoid

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LogisticLikelihood:
    """Log likelihood of labels -1 and 1 given the latent function."""

    labels: Array

    def __call__(self, latent: Array) -> float:
        """``sum log sig(y f)``."""
        return float(log_sigmoid(self.labels * latent).sum())


@dataclass(frozen=True)
class Latent:
    """What a trace keeps of a latent function."""

    def __call__(self, position: Array) -> dict[str, Array]:
        """The function by name."""
        return {"latent": position}


def draw_latent(
    covariance: Array, factor: Array, labels: Array, how: Literal["ess", "polya_gamma_gibbs"],
    rng: np.random.Generator, **settings: Any,
) -> Any:  # fmt: skip
    """Trace of f (variable "latent") for a given covariance matrix and its Cholesky factor."""
    from pluri.inference import mcmc

    kernel: Any
    if how == "ess":
        from pluri.inference.mcmc.elliptical import EllipticalSlice

        kernel = EllipticalSlice(LogisticLikelihood(labels), cholesky=factor)
    else:
        kernel = PolyaGammaGibbs(covariance, factor, labels)
    return mcmc.sample(
        kernel,
        lambda stream: factor @ stream.standard_normal(len(factor)),
        record=Latent(),
        random_state=rng,
        **settings,
    )


@dataclass(frozen=True)
class JointPosterior:
    """Unnormalised log posterior of ``(s, z)`` and its gradient."""

    covariance: Covariance
    labels: Array
    charts: Charts
    jitter: Jitter

    def factor(self, theta: Array) -> tuple[Array | None, list[Any]]:
        """Cholesky factor of K, None if it has none to rounding, and the derivatives of K."""
        part, slopes = self.covariance.evaluate(theta)
        n = len(self.labels)
        matrix = as_matrix(part, n)
        diagonal = matrix.reshape(-1)[:: n + 1]
        # No noise makes K well conditioned here; 1e-8 of the variance is far below what labels can tell.
        diagonal += 1e-8 * float(diagonal.sum()) / n if self.jitter == "auto" else self.jitter
        factor, info = lapack.dpotrf(matrix.T, lower=1, clean=1, overwrite_a=1)
        return (factor if info == 0 else None), slopes

    def __call__(self, position: Array) -> tuple[float, Array]:
        """Value and gradient; -inf and zeros where K has no Cholesky factor."""
        count = len(self.charts.priors)
        white = position[count:]
        theta, slope, prior_gradient = np.empty((3, count))
        value = -0.5 * float(white @ white)
        for index, (prior, s) in enumerate(zip(self.charts.priors, position[:count].tolist())):
            theta[index], slope[index], density, prior_gradient[index] = prior.chart(s)
            value += density
        factor, slopes = self.factor(theta) if (np.abs(theta) < FARTHEST).all() else (None, [])
        if factor is None:
            return -math.inf, np.zeros(len(position))
        latent = factor @ white
        value += float(log_sigmoid(self.labels * latent).sum())
        push = self.labels * expit(-self.labels * latent)  # d log likelihood / df
        gradient = np.empty(len(position))
        gradient[count:] = factor.T @ push - white
        # From the derivative by L, push z', to that by K: L^-T Phi(L' push z') L^-1, Phi the lower triangle with half
        # of the diagonal; symmetric slopes need no symmetrising.
        inner = np.tril(factor.T @ np.tril(np.outer(push, white)))
        inner[np.diag_indices_from(inner)] *= 0.5
        left = lapack.dtrtrs(factor, inner, lower=1, trans=1)[0]
        by_matrix = lapack.dtrtrs(factor, left.T, lower=1, trans=1)[0]
        for index, part in enumerate(slopes):
            gradient[index] = float(np.sum(by_matrix * part)) * slope[index] + prior_gradient[index]
        return value, gradient


@dataclass(frozen=True)
class JointValues:
    """What a trace keeps of a position: the hyper-parameters by name and the latent function."""

    posterior: JointPosterior
    parameters: tuple[Parameter, ...]

    def __call__(self, position: Array) -> dict[str, Any]:
        """Values by name."""
        count = len(self.posterior.charts.priors)
        theta = self.posterior.charts.theta(position[:count])
        factor = self.posterior.factor(theta)[0]
        latent = np.full(len(position) - count, np.nan) if factor is None else factor @ position[count:]
        return by_name(self.parameters, theta) | {"latent": latent}


def by_class(traces: Sequence[Trace]) -> Trace:
    """Traces of independent functions as one: draws have an axis for the function first, log densities add up.

    If Ctrl-C has made them of different lengths, as many draws of each as there are of all.
    """
    if len(traces) == 1:
        return traces[0]
    n_draws = min(trace.n_draws for trace in traces)
    draws, stats = (
        {name: np.stack([part[name][:, :n_draws] for part in parts], axis=2) for name in parts[0]}
        for parts in ([trace.draws for trace in traces], [trace.stats for trace in traces])
    )
    return replace(
        traces[0],
        draws=draws,
        stats={name: part.sum(axis=2) if name == "log_density" else part.mean(axis=2) for name, part in stats.items()},
        ends=(),
        interrupted=any(trace.interrupted for trace in traces),
        seconds=sum(trace.seconds for trace in traces),
    )


def draw_jointly(
    posterior: JointPosterior, parameters: tuple[Parameter, ...], rng: np.random.Generator, **settings: Any
) -> Any:
    """Trace of the hyper-parameters by name and of f ("latent"), by NUTS."""
    from pluri.inference import mcmc

    n = len(posterior.labels)

    def start(stream: np.random.Generator) -> Array:
        white = stream.standard_normal(n)
        place = draw_start(stream, lambda s: posterior(np.concatenate([s, white])), posterior.charts)
        return np.concatenate([place, white])

    return mcmc.sample(
        mcmc.NUTS(posterior, target_accept=0.9, check_gradient=False),
        start,
        record=JointValues(posterior, parameters),
        random_state=rng,
        **settings,
    )
