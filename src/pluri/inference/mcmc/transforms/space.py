"""A space of named, constrained variables, and the free vector that a sampler moves in their place.

The density of the free vector is that of the variables times the Jacobian of the transforms, which
:meth:`Space.density` and :meth:`Space.value_and_grad` put in, with its gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.inference.mcmc.accept_reject.metropolis_hastings import one_number
from pluri.inference.mcmc.transforms.matrices import Correlation, CorrelationCholesky, Covariance, CovarianceCholesky
from pluri.inference.mcmc.transforms.scalars import Interval, LowerBound, Positive, Real, Transform, UpperBound
from pluri.inference.mcmc.transforms.vectors import Ordered, PositiveOrdered, Simplex

__all__ = [
    "Correlation",
    "CorrelationCholesky",
    "Covariance",
    "CovarianceCholesky",
    "Interval",
    "LowerBound",
    "Ordered",
    "Positive",
    "PositiveOrdered",
    "Real",
    "Simplex",
    "Space",
    "Transform",
    "UpperBound",
]

Array = NDArray[np.float64]
Values = Mapping[str, Any]


class Space:
    """Named variables with constraints, seen as one vector without any.

    Parameters
    ----------
    variables : dict of Transform, optional
        `Real`, `Positive`, `LowerBound`, `UpperBound`, `Interval`, `Simplex`, `Ordered`, `PositiveOrdered`,
        `Covariance`, `CovarianceCholesky`, `Correlation` or `CorrelationCholesky` by name.
    **named : Transform
        The same, as keywords.

    Attributes
    ----------
    size : int
        Length of the free vector.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.inference.mcmc.transforms.space import Positive, Real, Space
    >>> space = Space(mean=Real(), scale=Positive())
    >>> x = np.random.default_rng(0).normal(3, 2, size=100)
    >>> def posterior(values):  # of a normal sample, with the prior exp(-scale) on its standard deviation
    ...     mean, scale = values["mean"], values["scale"]
    ...     z = (x - mean) / scale
    ...     value = -0.5 * z @ z - len(x) * np.log(scale) - scale
    ...     return value, {"mean": z.sum() / scale, "scale": (z @ z - len(x)) / scale - 1}
    >>> kernel = mcmc.NUTS(space.value_and_grad(posterior))
    >>> start = space.unconstrain({"mean": x.mean(), "scale": x.std()})
    >>> trace = mcmc.sample(kernel, start, n_draws=300, n_warmup=300, record=space.constrain, random_state=0)
    >>> bool(abs(trace["mean"].mean() - x.mean()) < 0.05), bool(abs(trace["scale"].mean() - x.std()) < 0.1)
    (True, True)
    """

    def __init__(self, variables: Mapping[str, Transform] | None = None, **named: Transform):
        self.variables = {**(variables or {}), **named}
        if not self.variables:
            raise ValueError("a space needs at least one variable")
        table, start = [], 0
        for name, transform in self.variables.items():
            if not isinstance(transform, Transform):
                raise ValueError(f"{name} must be a transform such as Real() or Positive(), got {transform!r}")
            table.append((name, transform, slice(start, start + transform.size)))
            start += transform.size
        self.size = start
        self._table = tuple(table)

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={transform!r}" for name, transform in self.variables.items())
        return f"Space({inside})"

    def unconstrain(self, values: Values) -> Array:
        """Free vector of the variables."""
        unknown = [name for name in values if name not in self.variables]
        missing = [name for name in self.variables if name not in values]
        if unknown or missing:
            raise ValueError(
                f"values must hold {', '.join(map(repr, self.variables))}; "
                + (f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} is none of them")
            )
        vector = np.empty(self.size)
        for name, transform, where in self._table:
            value = np.asarray(values[name], dtype=np.float64)
            if value.shape != transform.shape:
                raise ValueError(f"{name} must have shape {transform.shape}, got {value.shape}")
            if not np.isfinite(value).all():
                raise ValueError(f"{name} must be finite")
            try:
                vector[where] = transform.inverse(value)
            except ValueError as error:
                raise ValueError(f"{name} is outside its support: {error}") from None
        return vector

    def constrain(self, vector: ArrayLike) -> dict[str, Array]:
        """Variables of a free vector."""
        free = self._checked(vector)
        return {name: transform.forward(free[where])[0] for name, transform, where in self._table}

    def log_jacobian(self, vector: ArrayLike) -> float:
        """Logarithm of the determinant of the Jacobian of the variables with respect to the free vector."""
        free = self._checked(vector)
        return math.fsum(transform.forward(free[where])[1] for _, transform, where in self._table)

    def _checked(self, vector: ArrayLike) -> Array:
        free = np.asarray(vector, dtype=np.float64)
        if free.shape != (self.size,):
            raise ValueError(f"the vector must have {self.size} entries, got shape {free.shape}")
        return free

    def density(self, log_density: Callable[[Values], float]) -> Callable[[Array], float]:
        """Log density of the free vector, from that of the variables.

        Parameters
        ----------
        log_density : callable
            Dict of the variables to their log density, up to a constant.
        """
        return _Density(self, log_density)

    def value_and_grad(self, function: Callable[[Values], tuple[float, Values]]) -> Callable[..., tuple[float, Array]]:
        """Log density of the free vector with its gradient, from those of the variables.

        Parameters
        ----------
        function : callable
            Dict of the variables to their log density and a dict of its gradients, shaped like the variables. A
            matrix that is singular or a number that overflows, far out, counts as density zero.
        """
        return _ValueAndGrad(self, function)

    def jax_density(self, log_density: Callable[[Values], Any]) -> Callable[[Any], Any]:
        """Log density of the free vector as a JAX function, from that of the variables written in JAX.

        Parameters
        ----------
        log_density : callable
            Dict of the variables, JAX arrays, to their log density up to a constant.

        Returns
        -------
        callable
            Can be traced, compiled and differentiated. :func:`pluri.inference.mcmc.sample_blackjax` takes it with an
            initial dict of the variables, and gives draws of the variables.

        Examples
        --------
        >>> from pluri.inference import mcmc
        >>> space = mcmc.Space(rate=mcmc.Positive())
        >>> density = space.jax_density(lambda v: -v["rate"])  # exponential
        >>> mcmc.sample_blackjax(density, {"rate": 1.0}, random_state=0)  # doctest: +SKIP
        <Trace of 4 chains x 1000 draws: rate ()>
        """
        from pluri.inference.mcmc.transforms.traced import JaxDensity

        return JaxDensity(self, log_density)


def _refuse_rows(space: Space, vector: Array) -> None:
    if np.ndim(vector) != 1 or len(vector) != space.size:
        raise ValueError(
            f"the density of a space takes one vector of {space.size} entries at a time, got shape {np.shape(vector)}; "
            "it cannot be used with vectorized=True"
        )


#: What a density may raise far out, where matrices are singular and exponentials overflow: zero density. Until it has
#: worked once, at the start that is, such an error is a mistake and goes through.
FAR_OUT = (np.linalg.LinAlgError, ArithmeticError)


class _Density:
    """A record rather than a closure, so that a chain can be sent to another process or kept in a file."""

    def __init__(self, space: Space, log_density: Callable[[Values], float]):
        self.space, self.log_density = space, log_density
        self.worked = False

    def __call__(self, vector: Array) -> float:
        _refuse_rows(self.space, vector)
        values: dict[str, Array] = {}
        volume = 0.0
        for name, transform, where in self.space._table:
            values[name], term, _ = transform.forward(vector[where])
            volume += term
        try:
            value = one_number(self.log_density(values))
        except FAR_OUT:
            if self.worked:
                return -math.inf
            raise
        self.worked = True
        return value + volume


class _ValueAndGrad:
    def __init__(self, space: Space, function: Callable[[Values], tuple[float, Values]]):
        self.space, self.function = space, function
        self.worked = False

    def __call__(self, vector: Array) -> tuple[float, Array]:
        _refuse_rows(self.space, vector)
        table = self.space._table
        values: dict[str, Array] = {}
        memories = []
        volume = 0.0
        for name, transform, where in table:
            values[name], term, memory = transform.forward(vector[where])
            memories.append(memory)
            volume += term
        try:
            answer = self.function(values)
        except FAR_OUT:
            if self.worked:
                return -math.inf, np.zeros(self.space.size)
            raise
        self.worked = True
        if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping)):
            raise ValueError("the function must return (log density, dict of gradients by name)")
        value, gradients = answer
        result = np.empty(self.space.size)
        for (name, transform, where), memory in zip(table, memories):
            try:
                result[where] = transform.backward(gradients[name], memory)
            except KeyError:
                raise ValueError(f"the function gave no gradient for {name!r}") from None
            except ValueError as error:
                shape = np.shape(gradients[name])
                raise ValueError(f"the gradient of {name} must have shape {transform.shape}, got {shape}") from error
        return one_number(value) + volume, result
