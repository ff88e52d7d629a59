"""Particle Gibbs: paths (and parameters) of a state-space model given observations.

A path is drawn by a filter that must keep the current path among its particles (conditional SMC), then parameters
given the path. With ancestor sampling the kept path is cut and glued to another beginning at each step, so that few
particles suffice.

References
----------
Andrieu, Doucet and Holenstein (2010), Particle Markov chain Monte Carlo methods, JRSS B 72.
Lindsten, Jordan and Schon (2014), Particle Gibbs with ancestor sampling, JMLR 15.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.inference.mcmc.kernel import Info
from pluri.inference.smc.cloud import Scheme, degenerate
from pluri.inference.smc.filter import run_filter
from pluri.inference.smc.model import as_observations, checked_log_density, checked_particles, is_missing, require
from pluri.inference.smc.resampling import draw_ancestors
from pluri.inference.smc.smoothing import ancestral_paths, draw_backward
from pluri.inference.smc.weights import ParticleDegeneracyError, normalize_log_weights

__all__ = ["ParticleGibbs"]


class GibbsState(NamedTuple):
    """Path (and parameters), and the log of their joint density with the observations."""

    position: Mapping[str, NDArray[Any]]
    log_density: float


@dataclass(frozen=True, eq=False)
class ParticleGibbs:
    """Gibbs sampler for the path of a state-space model, and for its parameters if it has any.

    Positions are dicts: ``path`` (T, ...), and ``parameters`` if `update_parameters` is given. A chain may begin
    without a path, which a filter then gives.

    Parameters
    ----------
    model : StateSpaceModel or callable
        The model, with ``log_transition``; or parameters to a model.
    observations : array-like
        As for :func:`particle_filter`.
    update_parameters : callable, optional
        ``update_parameters(rng, path, parameters)`` draws parameters given the path (or makes a Markov step that
        leaves that conditional invariant).
    n_particles : int, default=50
        At least 2: one of them is the path of the last step.
    ancestor_sampling : bool, default=True
        Whether the kept path may change its beginning at each step.

    Examples
    --------
    >>> from pluri.inference import mcmc
    >>> from pluri.dynamics import LinearGaussianModel
    >>> from pluri.inference.smc import ParticleGibbs
    >>> model = LinearGaussianModel(0.8, 1.0, 1.0, 1.0, 0.0, 1.0)
    >>> _, observations = model.sample(20, random_state=0)
    >>> kernel = ParticleGibbs(model, observations, n_particles=10)
    >>> trace = mcmc.sample(kernel, {}, n_draws=5, n_warmup=0, n_chains=1, random_state=0, warn=False)
    >>> trace["path"].shape
    (1, 5, 20, 1)
    """

    model: Any
    observations: ArrayLike
    update_parameters: Callable[[np.random.Generator, NDArray[Any], Any], ArrayLike] | None = None
    n_particles: int = 50
    ancestor_sampling: bool = True

    def __post_init__(self) -> None:
        Scheme(self.n_particles)
        if self.n_particles < 2:
            raise ValueError(f"n_particles must be at least 2, got {self.n_particles}")
        if hasattr(self.model, "sample_initial") == (self.update_parameters is not None):
            raise TypeError(
                "model must be a model, or with update_parameters a function from parameters to a model, "
                f"got {type(self.model).__name__}"
            )

    def init(self, rng: np.random.Generator, position: Any) -> GibbsState:
        """State at a path and parameters."""
        position = dict(position)
        if self.update_parameters is not None and "parameters" not in position:
            raise ValueError("the first position must have 'parameters'")
        model = self._model(position)
        if "path" not in position:
            result = run_filter(model, self.observations, Scheme(self.n_particles), rng, store="paths", keep=False)
            position["path"] = ancestral_paths(result, draw_ancestors(rng, result.weights[-1], "multinomial", 1))[:, 0]
        rows = as_observations(model, self.observations)
        position = {name: np.asarray(position[name]) for name in ("path", "parameters") if name in position}
        if len(position["path"]) != len(rows):
            raise ValueError(f"path must have {len(rows)} time steps, got shape {position['path'].shape}")
        density = log_joint(model, rows, position["path"])
        if not math.isfinite(density):
            raise ValueError(f"the joint density of path and observations must be finite at first, got log {density}")
        return GibbsState(position, density)

    def step(self, rng: np.random.Generator, state: GibbsState) -> tuple[GibbsState, Info]:
        """Draw a path given the parameters, then parameters given the path."""
        model = self._model(state.position)
        rows = as_observations(model, self.observations)
        old = state.position["path"]
        path = conditional_path(model, rows, old, self.n_particles, self.ancestor_sampling, rng)
        position = {"path": path}
        if self.update_parameters is not None:
            position["parameters"] = np.asarray(self.update_parameters(rng, path, state.position["parameters"]))
            model = self._model(position)
        renewed = np.mean((path != old).reshape(len(path), -1).any(axis=1))
        info = {
            "acceptance": 1.0,
            "accepted": 1.0,
            "n_evaluations": float(self.n_particles * len(rows)),
            "divergent": 0.0,
            "renewed": float(renewed),
        }
        return GibbsState(position, log_joint(model, rows, path)), info

    def adaptation(self, n_warmup: int) -> None:
        """Nothing to learn."""
        return None

    def _model(self, position: Mapping[str, Any]) -> Any:
        model = self.model if self.update_parameters is None else self.model(position["parameters"])
        require(model, ("sample_initial", "sample_transition", "log_observation", "log_transition"), "particle Gibbs")
        return model


def conditional_path(
    model: Any, rows: NDArray[Any], path: NDArray[Any], n: int, ancestor_sampling: bool, rng: np.random.Generator
) -> NDArray[Any]:
    """One step of conditional SMC: a new path, from a filter whose last particle at each step is `path`."""
    n_steps = len(rows)
    first = checked_particles(model.sample_initial(rng, n), n, "sample_initial", 0)
    # A path that was given as whole numbers must not make whole numbers of all states.
    clouds = np.empty((n_steps, n, *path.shape[1:]), dtype=np.result_type(path, first))
    ancestors = np.empty((n_steps, n), dtype=np.int64)
    weights = np.full(n, 1 / n)
    log_weights = np.log(weights)
    for t, row in enumerate(rows):
        if t == 0:
            clouds[0] = first
        else:
            ancestors[t, :-1] = draw_ancestors(rng, weights, "multinomial", n - 1)
            ancestors[t, -1] = n - 1
            if ancestor_sampling:
                ancestors[t, -1] = draw_backward(model, clouds[t - 1], log_weights, path[t : t + 1], t - 1, rng)[0]
            moved = model.sample_transition(rng, clouds[t - 1, ancestors[t]], t)
            clouds[t] = checked_particles(moved, n, "sample_transition", t)
        clouds[t, -1] = path[t]
        log_weights = np.full(n, -math.log(n))
        if not is_missing(row):
            log_weights = checked_log_density(model.log_observation(row, clouds[t], t), n, "log_observation", t)
        try:
            weights, total = normalize_log_weights(log_weights)
        except ParticleDegeneracyError:
            raise degenerate(t, n) from None
        log_weights = log_weights - total
    new = np.empty(path.shape, dtype=clouds.dtype)
    index = int(draw_ancestors(rng, weights, "multinomial", 1)[0])
    for t in range(n_steps - 1, -1, -1):
        new[t] = clouds[t, index]
        index = ancestors[t, index]
    return new


def log_joint(model: Any, rows: NDArray[Any], path: NDArray[Any]) -> float:
    """Log p(path, observations); without p(x_0) if the model has no ``log_initial``."""
    total = float(model.log_initial(path[:1])[0]) if hasattr(model, "log_initial") else 0.0
    for t, row in enumerate(rows):
        if t:
            total += float(model.log_transition(path[t : t + 1], path[t - 1 : t], t)[0])
        if not is_missing(row):
            total += float(model.log_observation(row, path[t : t + 1], t)[0])
    return total
