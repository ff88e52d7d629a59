"""Learning hyper-parameters from an evidence: by maximisation, or by sampling their posterior.

An evidence is any function ``theta -> (log p(y | theta), gradient)`` of log hyper-parameters: exact for regression,
approximate for classification. Sampling moves free coordinates s in the charts of the priors
(`pluri.priors.hyperpriors`): ``log p(y | theta(s)) + sum_j log p(s_j)``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from pluri.priors.hyperpriors import HyperPrior
from pluri.processes.gp_inference.parameters import Parameter, by_name, log_bounds
from pluri.validation import Allowed, Made, Number, Only, Whole
from pluri.validation.interruption import holding

Array = NDArray[np.float64]
Evidence = Callable[[Array], tuple[float, Array]]

#: Logarithms beyond this overflow somewhere on the way; no posterior has mass there.
FARTHEST = 100.0
#: Tries to find a start of positive density.
MOST_STARTS = 100
#: Up to so many rows the threads of a linear algebra library gain nothing, and on a busy machine each of thousands of
#: small factorisations waits for a thread that is not running: a hundred times slower and more.
FEW_ROWS = 300


SETTINGS: Mapping[str, Allowed] = {
    "kernel": Made(Kernel, "a kernel of sklearn.gaussian_process.kernels") | Only(None),
    "jitter": Only("auto") | Number(least=0),
    "max_exact_n": Whole(1),
}


@contextmanager
def one_thread_if_small(n_rows: int) -> Iterator[None]:
    """Linear algebra on one thread while matrices of so few rows are factored again and again."""
    if n_rows > FEW_ROWS:
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


@dataclass(frozen=True)
class Charts:
    """Free coordinates of all hyper-parameters."""

    priors: tuple[HyperPrior, ...]

    def theta(self, position: Array) -> Array:
        """Log hyper-parameters at a position."""
        return np.array([prior.chart(s).log_value for prior, s in zip(self.priors, position.tolist())])

    def position(self, theta: Array) -> Array:
        """Free coordinates of log hyper-parameters."""
        return np.array([prior.coordinate(math.exp(log)) for prior, log in zip(self.priors, theta.tolist())])

    def sample(self, rng: np.random.Generator) -> Array:
        """Coordinates of a draw from the prior."""
        return np.array([prior.coordinate(prior.sample(rng)) for prior in self.priors])


@dataclass(frozen=True)
class Posterior:
    """Unnormalised log posterior of the free coordinates, and its gradient."""

    evidence: Evidence
    charts: Charts

    def __call__(self, position: Array) -> tuple[float, Array]:
        """Value and gradient; -inf and zeros where the evidence cannot be computed."""
        theta, slope, gradient = np.empty((3, len(position)))
        prior = 0.0
        for index, coordinate in enumerate(position.tolist()):
            theta[index], slope[index], density, gradient[index] = self.charts.priors[index].chart(coordinate)
            prior += density
        if (np.abs(theta) < FARTHEST).all():
            value, evidence_gradient = self.evidence(theta)
            if math.isfinite(value):
                return value + prior, evidence_gradient * slope + gradient
        return -math.inf, np.zeros(len(position))

    def log_density(self, position: Array) -> float:
        """Value alone, without the gradient if the evidence can do without."""
        value_of = getattr(self.evidence, "value", None)
        if value_of is None:
            return self(position)[0]
        charted = [prior.chart(s) for prior, s in zip(self.charts.priors, position.tolist())]
        theta = np.array([one.log_value for one in charted])
        if not (np.abs(theta) < FARTHEST).all():
            return -math.inf
        return float(value_of(theta)) + sum(one.log_density for one in charted)


@dataclass(frozen=True)
class NamedValues:
    """What a trace keeps of a position: the hyper-parameters by name, as they are."""

    charts: Charts
    parameters: tuple[Parameter, ...]

    def __call__(self, position: Array) -> dict[str, Any]:
        """Hyper-parameters by name."""
        return by_name(self.parameters, self.charts.theta(position))


def thetas_of(trace: Any, parameters: tuple[Parameter, ...]) -> Array:
    """Log hyper-parameters of all draws of a trace: (n_chains * n_draws, n_theta)."""
    columns = [np.log(trace.flat(one.name)).reshape(-1, one.size) for one in parameters]
    return np.concatenate(columns, axis=1)


def spread_draws(n_draws: int, most: int) -> NDArray[np.int64]:
    """Indices of at most `most` draws, evenly spread over all."""
    return np.unique(np.linspace(0, n_draws - 1, min(n_draws, most)).round().astype(np.int64))


def sample_posterior(
    evidence: Evidence,
    parameters: tuple[Parameter, ...],
    priors: tuple[HyperPrior, ...],
    how: Literal["nuts", "slice"],
    rng: np.random.Generator,
    **settings: Any,
) -> Any:
    """Trace of the hyper-parameters; chains start at draws from the prior.

    Parameters
    ----------
    evidence : callable
    parameters : tuple of Parameter
    priors : tuple of HyperPrior, one for each entry of theta
    how : {"nuts", "slice"}
    rng : Generator
    **settings
        For `pluri.inference.mcmc.sample`: n_draws, n_warmup, n_chains, n_jobs, verbose.
    """
    from pluri.inference import mcmc

    if not parameters:
        raise ValueError("there is no hyper-parameter to learn: all are fixed; use hyper_inference='fixed'")
    charts = Charts(priors)
    posterior = Posterior(evidence, charts)
    kernel: Any
    if how == "nuts":
        kernel = mcmc.NUTS(posterior, metric="dense", target_accept=0.9, check_gradient=False)
    else:
        from pluri.inference.mcmc.slice_sampling import Slice

        kernel = Slice(posterior.log_density)
    return mcmc.sample(
        kernel,
        lambda stream: draw_start(stream, posterior, charts),
        record=NamedValues(charts, parameters),
        random_state=rng,
        **settings,
    )


def draw_start(rng: np.random.Generator, posterior: Callable[[Array], tuple[float, Array]], charts: Charts) -> Array:
    """A draw from the prior at which the posterior is positive."""
    for _ in range(MOST_STARTS):
        position = charts.sample(rng)
        value, gradient = posterior(position)
        if math.isfinite(value) and np.isfinite(gradient).all():
            return position
    raise ValueError(
        f"{MOST_STARTS} draws from the priors of the hyper-parameters all have zero density: look whether the priors "
        "fit the scale of X and y"
    )


@dataclass(frozen=True)
class Maximum:
    """Where an evidence is highest."""

    theta: Array
    value: float
    n_evaluations: int
    interrupted: bool


def learn_theta(
    evidence: Evidence, parameters: tuple[Parameter, ...], start: Array, rng: np.random.Generator, n_init: int,
    priors: tuple[HyperPrior, ...] | None = None,
) -> Array:  # fmt: skip
    """Log hyper-parameters where the evidence is highest, or, if there are priors, their posterior density."""
    if priors is None:
        return maximize(evidence, start, log_bounds(parameters), rng, n_init).theta
    objective, charts = PenalisedEvidence(evidence, priors), Charts(priors)
    return maximize(
        objective, start, objective.bounds(), rng, n_init, lambda stream: charts.theta(charts.sample(stream))
    ).theta


def maximize(
    objective: Evidence, start: Array, bounds: Array, rng: np.random.Generator, n_init: int = 1,
    draw: Callable[[np.random.Generator], Array] | None = None, max_iter: int = 200,
) -> Maximum:  # fmt: skip
    """Maximise by L-BFGS-B from `start` and ``n_init - 1`` random points; Ctrl-C keeps the best so far."""
    from scipy.optimize import minimize

    best = (-math.inf, np.clip(start, bounds[:, 0], bounds[:, 1]))
    count = 0

    def negative(theta: Array) -> tuple[float, Array]:
        nonlocal best, count
        value, gradient = objective(theta)
        count += 1
        if value > best[0]:
            best = (value, theta.copy())
        # A large finite number makes the line search turn back; infinities would break it.
        return (-value, -gradient) if math.isfinite(value) else (1e25, np.zeros(len(theta)))

    draw = draw or (lambda stream: stream.uniform(bounds[:, 0], bounds[:, 1]))
    starts = [best[1], *(np.clip(draw(rng), bounds[:, 0], bounds[:, 1]) for _ in range(n_init - 1))]
    unfinished = False
    with holding("interrupted; the best hyper-parameters so far are kept") as block:
        for one in starts:
            before = best[0]
            result = minimize(negative, one, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": max_iter})
            if best[0] > before:
                unfinished = result.nit >= max_iter
    if unfinished:
        warnings.warn(
            f"the hyper-parameters still moved after {max_iter} iterations: scale X and y, or set other bounds",
            ConvergenceWarning,
            stacklevel=4,
        )
    if not math.isfinite(best[0]):
        raise np.linalg.LinAlgError(
            "the covariance matrix of the inputs is not positive definite at any hyper-parameters tried: look for "
            "duplicated inputs without noise, or a huge length-scale; raise noise_variance"
        )
    return Maximum(best[1], best[0], count, block.interrupted)


@dataclass(frozen=True)
class PenalisedEvidence:
    """Evidence times the priors, in the coordinate in which each prior is stated (its value or its logarithm)."""

    evidence: Evidence
    priors: tuple[HyperPrior, ...]

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient."""
        value, gradient = self.evidence(theta)
        gradient = gradient.copy()
        for index, (prior, log) in enumerate(zip(self.priors, theta.tolist())):
            x = math.exp(log)
            value += prior.log_density(x) + (log if prior.logarithmic else 0.0)
            gradient[index] += prior.gradient(x) * x + prior.logarithmic
        return value, gradient

    def bounds(self) -> Array:
        """Logarithms of the supports, a little inside."""
        limits = np.array([prior.support for prior in self.priors], dtype=np.float64)
        with np.errstate(divide="ignore"):
            low, high = np.log(limits.T)
        return np.stack([np.maximum(low, -FARTHEST) + 1e-9, np.minimum(high, FARTHEST) - 1e-9], axis=1)
