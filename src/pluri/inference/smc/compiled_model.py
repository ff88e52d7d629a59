"""A model of one's own at compiled speed: scalar functions, from which the whole filter is compiled.

Three functions in the subset of Python that numba compiles describe one particle; the loops over particles and time
are compiled around them, once for each set of functions. Parameters are an array, so that other values need no
new compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation import check_count

__all__ = ["CompiledModel"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """A state-space model given by functions of a single particle.

    The functions may be plain Python (they are then compiled) or compiled by numba already. States are vectors that
    they write into.

    Parameters
    ----------
    initial : callable
        ``initial(rng, parameters, state)`` writes a draw of x_0 into ``state`` (n_dims,).
    transition : callable
        ``transition(rng, t, parameters, old, new)`` writes a draw of x_t given ``old`` into ``new``.
    log_density : callable
        ``log_density(t, parameters, observation, state)`` returns log p(y_t | x_t).
    n_dims : int, default=1
        Dimension of the state.
    parameters : array-like, default=()
        Handed to the functions as an array of floats.
    log_transition_density : callable, optional
        ``log_transition_density(t, parameters, old, new)`` returns log p(x_t | x_{t-1}): backward simulation.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from pluri.inference.smc import CompiledModel, particle_filter
    >>> def initial(rng, parameters, state):
    ...     state[0] = rng.standard_normal()
    >>> def transition(rng, t, parameters, old, new):
    ...     new[0] = old[0] / 2 + 25 * old[0] / (1 + old[0] ** 2) + parameters[0] * rng.standard_normal()
    >>> def log_density(t, parameters, observation, state):
    ...     return -0.5 * (observation[0] - state[0] ** 2 / 20) ** 2
    >>> model = CompiledModel(initial, transition, log_density, parameters=[3.0])
    >>> result = particle_filter(model, np.array([0.5, 5.0, 7.0]), n_particles=200, random_state=0)
    >>> result.mean.shape
    (3, 1)
    """

    initial: Callable[..., None]
    transition: Callable[..., None]
    log_density: Callable[..., float]
    n_dims: int = 1
    parameters: ArrayLike = ()
    log_transition_density: Callable[..., float] | None = None

    def __post_init__(self) -> None:
        check_count(self.n_dims, "n_dims")
        for name in ("initial", "transition", "log_density"):
            if not callable(getattr(self, name)):
                raise TypeError(f"{name} must be a function, got {getattr(self, name)!r}")
        self._try_indices()
        if self.log_transition_density is not None:
            # An attribute of the instance: without a density the model has no such method, which algorithms ask for.
            object.__setattr__(self, "log_transition", self._log_transition)

    @cached_property
    def values(self) -> Floats:
        """Parameters as an array."""
        return np.array(self.parameters, dtype=np.float64).ravel()

    def _try_indices(self) -> None:
        """Run the functions once uncompiled: compiled ones read and write beyond the end of an array unnoticed."""
        rng, old, new = np.random.default_rng(0), np.zeros(self.n_dims), np.zeros(self.n_dims)
        calls: list[tuple[str, Any, tuple[Any, ...]]] = [
            ("initial", self.initial, (rng, self.values, old)),
            ("transition", self.transition, (rng, 1, self.values, old, new)),
            ("log_transition_density", self.log_transition_density, (1, self.values, old, new)),
        ]
        for name, function, arguments in calls:
            try:
                getattr(function, "py_func", function)(*arguments)
            except IndexError as error:
                raise ValueError(
                    f"{name} went beyond an array ({error}): states have n_dims={self.n_dims} entries, and there are "
                    f"{len(self.values)} parameters"
                ) from error
            except Exception:  # what Python refuses, a division by zero say, may be fine when compiled
                continue

    def check_observations(self, observations: ArrayLike) -> Floats:
        """Observations (n_steps, any); a vector is one column."""
        values = np.ascontiguousarray(observations, dtype=np.float64)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2:
            raise ValueError(f"observations must have shape (n_steps, n_columns), got {values.shape}")
        return values

    def sample_initial(self, rng: np.random.Generator, n: int) -> Floats:
        """States (n, n_dims) at the first step."""
        states = np.empty((n, self.n_dims))
        self._loops.draw_first(rng, self.values, states)
        return states

    def sample_transition(self, rng: np.random.Generator, particles: Floats, t: int) -> Floats:
        """States (n, n_dims) one step later."""
        moved = np.empty_like(particles)
        self._loops.move(rng, t, self.values, particles, moved)
        return moved

    def log_observation(self, observation: Floats, particles: Floats, t: int) -> Floats:
        """Log densities (n,) of an observation."""
        out = np.empty(len(particles))
        self._loops.weigh(t, self.values, np.atleast_1d(observation), particles, out)
        return out

    def _log_transition(self, new: Floats, old: Floats, t: int) -> Floats:
        out = np.empty(len(new))
        compare = _compile_comparison(self.log_transition_density)
        compare(t, self.values, np.ascontiguousarray(old), np.ascontiguousarray(new), out)
        return out

    def compiled_filter(self, observations: Floats) -> tuple[Callable[..., int], Floats, Floats, int]:
        """The compiled loop, its parameters, what it observes and the dimension."""
        return self._loops.run, self.values, observations, self.n_dims

    @property
    def _loops(self) -> Any:
        return _compile(self.initial, self.transition, self.log_density)


@lru_cache(maxsize=64)
def _compile(initial: Any, transition: Any, log_density: Any) -> Any:
    from pluri.inference.smc._model_kernels import Loops

    return Loops(initial, transition, log_density)


@lru_cache(maxsize=64)
def _compile_comparison(log_transition_density: Any) -> Any:
    from pluri.inference.smc._model_kernels import comparison

    return comparison(log_transition_density)
