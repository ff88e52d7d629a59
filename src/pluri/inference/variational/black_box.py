"""Black-box variational inference: a Gaussian q fitted to any density by stochastic gradients.

Maximises ``ELBO(q) = E_q[log p~(z) - log q(z)] = log Z - KL(q || p)``, with one of two unbiased gradients:

- reparameterised: ``E_e[(dz/dlambda)^T grad_z (log p~(z) - log q(z))]`` at ``z = mean + L e``. Only the path through z
  is followed, so that the noise vanishes as q approaches p;
- score function, which needs no gradient of p~: ``E_q[(log p~(z) - log q(z) - a) grad_lambda log q(z)]``, where a is
  the control variate's coefficient ``E[f h^2] / E[h^2]`` of each parameter, estimated from the other draws.

The learning rate falls whenever the ELBO of a window of iterations has stopped rising and no parameter has a gradient
that keeps its sign; the fit has converged when the rate is a hundredth of the first one.

References
----------
Ranganath, Gerrish and Blei (2014), Black box variational inference, AISTATS.
Kucukelbir, Tran, Ranganath, Gelman and Blei (2017), Automatic differentiation variational inference, JMLR 18.
Roeder, Wu and Duvenaud (2017), Sticking the landing, NeurIPS.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.inference.variational.adam import Array, decays_of, descend
from pluri.inference.variational.black_box_ascent import CoolingAscent, CoolingSettings
from pluri.inference.variational.black_box_gradients import path_gradient, score_gradient
from pluri.inference.variational.families import MeanFieldGaussian, make_family
from pluri.inference.variational.flows.importance import Evidence, evidence
from pluri.inference.variational.flows.target import Target, check_target, differentiate
from pluri.validation import Number, Only, Whole, as_generator, check_value
from pluri.validation.interruption import interruptible
from pluri.validation.random import RandomState

#: Number of draws of an iteration, by kind of gradient.
BATCH_SIZES = {"reparameterized": 16, "score": 256}


@dataclass(frozen=True)
class BlackBoxResult:
    """A Gaussian fitted to a density.

    Attributes
    ----------
    mean, cov : (dim,), (dim, dim): moments of q
    elbo, elbo_standard_error : estimated from fresh draws
    elbo_trace : (n_iter,): ELBO of each batch
    evidence : importance-weighted evidence and the Pareto shape k, which is above 0.7 where q is a poor fit
    n_iter : number of iterations
    converged, interrupted : how the fit ended
    factor : (dim, dim): lower triangular, cov = factor factor^T
    """

    mean: Array
    cov: Array
    elbo: float
    elbo_standard_error: float
    elbo_trace: Array = field(repr=False)
    evidence: Evidence = field(repr=False)
    n_iter: int
    converged: bool
    interrupted: bool
    factor: Array = field(repr=False)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Array:
        """Independent draws, of shape (n_samples, dim)."""
        noise = as_generator(random_state).standard_normal((n_samples, len(self.mean)))
        return self.mean + noise @ self.factor.T

    def log_prob(self, z: ArrayLike) -> Array:
        """Log q at the rows of z."""
        z = np.asarray(z, dtype=np.float64)
        if z.ndim != 2 or z.shape[1] != len(self.mean):
            raise ValueError(f"z must have shape (n, {len(self.mean)}), got {z.shape}")
        noise = np.linalg.solve(self.factor, (z - self.mean).T)
        constant = np.log(np.diag(self.factor)).sum() + 0.5 * len(self.mean) * np.log(2.0 * np.pi)
        return -0.5 * (noise * noise).sum(axis=0) - constant


@interruptible
def fit_black_box(
    log_density: Callable[[Any], Any],
    dim: int,
    family: str = "full_rank",
    *,
    gradient: str = "reparameterized",
    local_terms: Callable[[Array], Any] | None = None,
    vectorized: bool = True,
    backend: str = "numpy",
    location: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    optimizer: str = "adam",
    learning_rate: float = 0.05,
    batch_size: int | None = None,
    window: int = 100,
    max_iter: int = 20_000,
    n_final: int = 4000,
    random_state: RandomState = None,
    verbose: int = 0,
) -> BlackBoxResult:
    """Fit a Gaussian to an unnormalised density on R^dim.

    Parameters
    ----------
    log_density : callable
        From points (n, dim) to a pair: log densities (n,) and gradients (n, dim). With ``gradient="score"`` the log
        densities alone will do. With ``backend="jax"``: from one point (dim,) to a number, in ``jax.numpy``.
    dim : int
        Number of coordinates.
    family : {"full_rank", "mean_field"}, default="full_rank"
        Any covariance, or a diagonal one.
    gradient : {"reparameterized", "score"}, default="reparameterized"
        The score-function gradient needs no derivative of the density, and far more draws.
    local_terms : callable, optional
        For ``gradient="score"`` and the mean-field family: from points (n, dim) to (n, dim), where column i is the
        sum of those terms of the log density in which coordinate i occurs. The others only add noise to the gradient
        of that coordinate (Rao-Blackwellisation).
    vectorized : bool, default=True
        False if `log_density` takes one point (dim,) at a time.
    backend : {"numpy", "jax"}, default="numpy"
        Who makes the gradient of the density.
    location, scale : array of shape (dim,) or float, default=0 and 1
        Mean and standard deviation of the first q, and the units of the steps: give rough ones where coordinates have
        very different units.
    optimizer : {"adam", "rmsprop"}, default="adam"
    learning_rate : float, default=0.05
        First rate, in units of `scale`.
    batch_size : int, optional
        Number of draws of an iteration; 16, or 256 with the score-function gradient.
    window : int, default=100
        Number of iterations over which the ELBO is averaged to see whether it still rises.
    max_iter : int, default=20_000
    n_final : int, default=4000
        Number of fresh draws for the final ELBO and importance weights.
    random_state : int, Generator, RandomState or None
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    BlackBoxResult

    Warns
    -----
    ConvergenceWarning
        If the ELBO still rises after `max_iter` iterations.
    UserWarning
        After Ctrl-C, if :func:`pluri.on_interrupt` says "keep", when the parameters so far are returned.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.black_box import fit_black_box
    >>> precision = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> def density(z):
    ...     slope = -(z - 1.0) @ precision
    ...     return 0.5 * np.sum((z - 1.0) * slope, axis=1), slope
    >>> result = fit_black_box(density, dim=2, random_state=0)
    >>> result.mean.round(2), result.cov.round(2)
    (array([1., 1.]), array([[ 0.67, -0.33],
           [-0.33,  0.67]]))
    """
    check_value(gradient, "gradient", Only(*BATCH_SIZES))
    check_value(backend, "backend", Only("numpy", "jax"))
    n_draws = BATCH_SIZES[gradient] if batch_size is None else batch_size
    for name, value, least in (
        ("dim", dim, 1), ("batch_size", n_draws, 2), ("window", window, 10), ("max_iter", max_iter, 1),
        ("n_final", n_final, 2),
    ):  # fmt: skip
        check_value(value, name, Whole(least))
    check_value(learning_rate, "learning_rate", Number(above=0))
    shape = make_family(family, dim)
    if local_terms is not None and not (gradient == "score" and isinstance(shape, MeanFieldGaussian)):
        raise ValueError("local_terms must be None unless gradient is 'score' and family is 'mean_field'")
    center = _vector(0.0 if location is None else location, dim, "location")
    units = _vector(scale, dim, "scale")
    if not (units > 0).all():
        raise ValueError(f"scale must be positive, got {scale!r}")
    rng = as_generator(random_state)

    function = differentiate(log_density) if backend == "jax" else log_density if vectorized else _by_rows(log_density)
    given = Target(function, dim, "log_density")
    # In units of scale around location; the Jacobian is a constant, added to the ELBO at the end.
    target = Target(_rescaled(given, center, units, gradient == "reparameterized"), dim, "log_density")
    check_target(target, rng, with_gradient=gradient == "reparameterized")
    terms = None if local_terms is None else _checked_terms(local_terms, center, units)

    def estimate(parameters: Array, noise: Array) -> tuple[float, Array]:
        if gradient == "score":
            return score_gradient(shape, parameters, noise, target, terms)
        return path_gradient(shape, parameters, noise, target)

    settings = CoolingSettings(float(learning_rate), decays_of(optimizer), n_draws, window)
    ascent = CoolingAscent(shape, estimate, settings, rng)
    run = descend(ascent.step, max_iter, settled=ascent.settled, window=window, verbose=verbose)
    parameters = ascent.mean if run.converged else ascent.adam.parameters
    noise = rng.standard_normal((n_final, dim))
    z = shape.draw(parameters, noise)
    found = evidence(target.values(z) - shape.log_prob(parameters, z) + np.log(units).sum())
    mean, factor = shape.moments(parameters)
    factor = units[:, None] * factor
    result = BlackBoxResult(
        mean=center + units * mean,
        cov=factor @ factor.T,
        elbo=found.elbo,
        elbo_standard_error=found.elbo_standard_error,
        elbo_trace=np.log(units).sum() - np.array(run.losses),
        evidence=found,
        n_iter=len(run.losses),
        converged=run.converged,
        interrupted=run.interrupted,
        factor=factor,
    )
    if not (run.interrupted or run.converged):
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"the ELBO may still rise after max_iter={max_iter} iterations: raise max_iter, or give location and scale",
            ConvergenceWarning,
            stacklevel=2,
        )
    return result


def _vector(value: ArrayLike, dim: int, name: str) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (1,), (dim,)) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a finite number or an array of shape ({dim},), got {value!r}")
    return np.broadcast_to(array, (dim,)).copy()


def _by_rows(log_density: Callable[[Array], Any]) -> Callable[[Array], Any]:
    def rows(z: Array) -> Any:
        answers = [log_density(row) for row in z]
        if isinstance(answers[0], tuple):
            return np.array([answer[0] for answer in answers]), np.array([answer[1] for answer in answers])
        return np.array(answers)

    return rows


def _rescaled(given: Target, center: Array, units: Array, with_gradient: bool) -> Callable[[Array], Any]:
    def rescaled(x: Array) -> Any:
        if not with_gradient:
            return given.values(center + units * x)
        values, slope = given(center + units * x)
        return values, units * slope

    return rescaled


def _checked_terms(local_terms: Callable[[Array], Any], center: Array, units: Array) -> Callable[[Array], Array]:
    def checked(x: Array) -> Array:
        terms = np.asarray(local_terms(center + units * x), dtype=np.float64)
        if terms.shape != x.shape:
            raise ValueError(f"local_terms must return an array of shape {x.shape}, got {terms.shape}")
        return terms

    return checked
