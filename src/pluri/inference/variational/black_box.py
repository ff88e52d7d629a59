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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.inference.variational.adam import Array, Descent, descend
from pluri.inference.variational.black_box_ascent import AscentSettings, CoolingAscent
from pluri.inference.variational.black_box_result import ApproximationWarning, BlackBoxResult, is_poor
from pluri.inference.variational.families import Family, MeanFieldGaussian, make_family
from pluri.inference.variational.flows.importance import Evidence, evidence
from pluri.inference.variational.flows.target import Target, check_target, differentiate
from pluri.validation import Made, Only, Whole, as_generator, check_value
from pluri.validation.inputs import RandomState
from pluri.validation.interruption import interruptible

#: Number of draws of an iteration, by kind of gradient.
PATH_DRAWS, SCORE_DRAWS = 16, 256


@dataclass(frozen=True)
class ScoreGradient:
    """The score-function gradient, which needs no derivative of the density.

    Parameters
    ----------
    local_terms : callable, optional
        For the mean-field family: from points (n, dim) to (n, dim), where column i is the sum of those terms of the log
        density in which coordinate i occurs. The others only add noise to the gradient of that coordinate
        (Rao-Blackwellisation).
    """

    local_terms: Callable[[Array], Any] | None = None


def path_gradient(family: Family, parameters: Array, noise: Array, target: Target) -> tuple[float, Array]:
    """ELBO of a batch and its reparameterised gradient, along the path through z only."""
    z = family.draw(parameters, noise)
    values, slope = target(z)
    elbo = float(np.mean(values - family.log_prob(parameters, z)))
    return elbo, family.pull_back(parameters, noise, (slope - family.slope(parameters, noise)) / len(noise))


def score_gradient(
    family: Family, parameters: Array, noise: Array, target: Target, local_terms: Callable[[Array], Array] | None = None
) -> tuple[float, Array]:
    """ELBO of a batch and its score-function gradient, with a control variate for each parameter."""
    z = family.draw(parameters, noise)
    log_weights = target.values(z) - family.log_prob(parameters, z)
    score = family.score(parameters, z)
    worth = np.broadcast_to(log_weights[:, None], score.shape)
    if local_terms is not None:
        assert isinstance(family, MeanFieldGaussian)
        own = local_terms(z) - family.log_probs(parameters, z)
        worth = np.hstack([own, own])  # coordinate i has the parameters i and dim + i
    squares = score * score
    # The coefficient for a draw comes from the others, so that the gradient stays unbiased.
    top = (worth * squares).sum(axis=0) - worth * squares
    bottom = squares.sum(axis=0) - squares
    coefficient = top / np.maximum(bottom, np.finfo(float).tiny)
    return float(log_weights.mean()), ((worth - coefficient) * score).mean(axis=0)


@interruptible
def fit_black_box(
    log_density: Callable[[Any], Any],
    dim: int,
    family: str = "full_rank",
    *,
    gradient: str | ScoreGradient = "reparameterized",
    vectorized: bool = True,
    backend: str = "numpy",
    location: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    settings: AscentSettings | None = None,
    max_iter: int = 20_000,
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
    gradient : {"reparameterized", "score"} or ScoreGradient, default="reparameterized"
        The score-function gradient needs no derivative of the density, and far more draws; a `ScoreGradient` knows
        which terms of the density matter for each coordinate.
    vectorized : bool, default=True
        False if `log_density` takes one point (dim,) at a time.
    backend : {"numpy", "jax"}, default="numpy"
        Who makes the gradient of the density.
    location, scale : array of shape (dim,) or float, default=0 and 1
        Mean and standard deviation of the first q, and the units of the steps: give rough ones where coordinates have
        very different units.
    settings : AscentSettings, optional
        How the ascent goes: optimizer, first learning rate in units of `scale`, draws of an iteration, ...
    max_iter : int, default=20_000
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
    ApproximationWarning
        If the importance weights p / q show that the best Gaussian is a poor one; see `BlackBoxResult.diagnose`.
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
    check_value(gradient, "gradient", Only("reparameterized", "score") | Made(ScoreGradient, "a ScoreGradient"))
    check_value(backend, "backend", Only("numpy", "jax"))
    check_value(dim, "dim", Whole(1))
    check_value(max_iter, "max_iter", Whole(1))
    settings = AscentSettings() if settings is None else settings
    score = ScoreGradient() if gradient == "score" else gradient if isinstance(gradient, ScoreGradient) else None
    shape = make_family(family, dim)
    if score is not None and score.local_terms is not None and not isinstance(shape, MeanFieldGaussian):
        raise ValueError("local_terms must be None unless family is 'mean_field'")
    frame = _Frame.checked(location, scale, dim)
    rng = as_generator(random_state)
    function = differentiate(log_density) if backend == "jax" else log_density if vectorized else _by_rows(log_density)
    target = frame.target(Target(function, dim, "log_density"), score is None)
    check_target(target, rng, with_gradient=score is None)
    terms = None if score is None or score.local_terms is None else frame.terms(score.local_terms)

    def estimate(parameters: Array, noise: Array) -> tuple[float, Array]:
        if score is not None:
            return score_gradient(shape, parameters, noise, target, terms)
        return path_gradient(shape, parameters, noise, target)

    batch_size = settings.batch_size or (PATH_DRAWS if score is None else SCORE_DRAWS)
    ascent = CoolingAscent(shape, estimate, settings, batch_size, rng)
    run = descend(ascent.step, max_iter, settled=ascent.settled, window=settings.window, verbose=verbose)
    parameters = ascent.mean if run.converged else ascent.adam.parameters
    if not (run.interrupted or run.converged):
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"the ELBO may still rise after max_iter={max_iter} iterations: raise max_iter, or give location and scale",
            ConvergenceWarning,
            stacklevel=2,
        )
    z = shape.draw(parameters, rng.standard_normal((settings.n_final, dim)))
    found = evidence(target.values(z) - shape.log_prob(parameters, z) + frame.log_volume)
    result = _result(frame, *shape.moments(parameters), run, found)
    if run.converged and is_poor(found):
        warnings.warn(result.diagnose()[0], ApproximationWarning, stacklevel=2)
    return result


def _result(frame: _Frame, mean: Array, factor: Array, run: Descent, found: Evidence) -> BlackBoxResult:
    factor = frame.units[:, None] * factor
    return BlackBoxResult(
        mean=frame.center + frame.units * mean,
        cov=factor @ factor.T,
        elbo=found.elbo,
        elbo_standard_error=found.elbo_standard_error,
        elbo_trace=frame.log_volume - np.array(run.losses),
        evidence=found,
        n_iter=len(run.losses),
        converged=run.converged,
        interrupted=run.interrupted,
        factor=factor,
    )


@dataclass(frozen=True)
class _Frame:
    """Coordinates around a location, in units of a scale; the Jacobian is a constant, added to the ELBO at the end."""

    center: Array
    units: Array

    @classmethod
    def checked(cls, location: ArrayLike | None, scale: ArrayLike, dim: int) -> _Frame:
        frame = cls(_vector(0.0 if location is None else location, dim, "location"), _vector(scale, dim, "scale"))
        if not (frame.units > 0).all():
            raise ValueError(f"scale must be positive, got {scale!r}")
        return frame

    @property
    def log_volume(self) -> float:
        return float(np.log(self.units).sum())

    def target(self, given: Target, with_gradient: bool) -> Target:
        def rescaled(x: Array) -> Any:
            if not with_gradient:
                return given.values(self.center + self.units * x)
            values, slope = given(self.center + self.units * x)
            return values, self.units * slope

        return Target(rescaled, given.dim, "log_density")

    def terms(self, local_terms: Callable[[Array], Any]) -> Callable[[Array], Array]:
        def checked(x: Array) -> Array:
            terms = np.asarray(local_terms(self.center + self.units * x), dtype=np.float64)
            if terms.shape != x.shape:
                raise ValueError(f"local_terms must return an array of shape {x.shape}, got {terms.shape}")
            return terms

        return checked


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
