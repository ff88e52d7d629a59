r"""A simulator as a likelihood: what the inference engines need to learn parameters of a network from recordings.

A run gives a vector of summaries :math:`s(\theta)`; what was observed is taken to be normal around it,
:math:`\log p(x \mid \theta) = \sum_j \log N(x_j \mid s_j(\theta), \sigma_j^2)`. Where the network itself is random,
mean and variance are estimated from repeats (a synthetic likelihood).

S. N. Wood (2010). Statistical inference for noisy nonlinear ecological dynamic systems. Nature 466, 1102-1104.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.neurons.result import SimulationResult
from pluri.neurons.simulation import Simulation
from pluri.neurons.tree.element import Element
from pluri.neurons.tree.errors import SimulationError
from pluri.validation import RandomState, as_generator, check_positive

Array = NDArray[np.float64]
#: Part of a path and field that a parameter sets, such as ("soma", "gNa"); "." is the copied element itself.
Target = tuple[str, str]


class SimulatorLikelihood:
    """Log-likelihood of parameters of a network, for `pluri.inference`.

    All parameter vectors of a call are simulated at once, as copies of the network side by side in one simulation: a
    cloud of particles costs little more than one.

    Parameters
    ----------
    simulation : Simulation
        The network; what is recorded in it (`Simulation.record`) is what `summary` gets.
    root : str
        Path of the element that is copied for each parameter vector: all of the network must be below it.
    parameters : dict
        Name of each parameter, and the pattern (below `root`; "." for itself) and field that it sets.
    summary : callable
        ``summary(result, path)`` to a vector of fixed length: from what was recorded of the copy at `path`.
    duration : float
        Of a run, in ms.
    noise : float or array-like of shape (n_summaries,)
        Standard deviation of what is observed around the summaries.
    n_repeats : int, default=1
        With more than one, copies of each parameter vector run with random streams of their own, and the variance of
        their summaries is added to that of the noise.

    Attributes
    ----------
    names : list of str
        Names of the parameters, in the order of their vector.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.neurons import SimulatorLikelihood
    >>> from pluri.neurons.models import hodgkin_huxley_patch
    >>> sim = hodgkin_huxley_patch(10.0, dt=0.05)
    >>> sim.record("/patch", "Vm")
    >>> model = SimulatorLikelihood(
    ...     sim, "/patch", {"gNa": (".", "gNa"), "gK": (".", "gK")},
    ...     summary=lambda result, path: result[path, "Vm"][::40], duration=20.0, noise=2.0,
    ... )
    >>> observed = model.simulate([[120.0, 36.0]], random_state=0)[0]
    >>> values = model.log_likelihood([[120.0, 36.0], [120.0, 50.0], [60.0, 36.0]], observed)
    >>> int(values.argmax())
    0
    """

    def __init__(
        self,
        simulation: Simulation,
        root: str,
        parameters: Mapping[str, Target],
        summary: Callable[[SimulationResult, str], ArrayLike],
        *,
        duration: float,
        noise: float | ArrayLike,
        n_repeats: int = 1,
    ) -> None:
        top = simulation.element(root)
        if len(top.below()) + 1 != len(simulation.root.below()):
            outside = [one.path for one in simulation.root.below()[1:] if one not in top.below()]
            raise SimulationError(f"all of the network must be below {root}, and {outside[0]} is not")
        self.simulation, self.root, self.parameters, self.summary = simulation, top.path, dict(parameters), summary
        self.duration = check_positive(duration, "duration")
        self.noise = np.asarray(noise, dtype=float)
        if not (np.isfinite(self.noise).all() and (self.noise > 0).all()):
            raise ValueError("noise must be positive and finite")
        if not (isinstance(n_repeats, int) and n_repeats >= 1):
            raise ValueError(f"n_repeats must be an integer of at least 1, got {n_repeats!r}")
        self.n_repeats = n_repeats
        self.names = list(self.parameters)
        for path, field in self.parameters.values():
            for one in self._found(simulation, top.path, path):
                one.field_named(field)
        self._copies: Simulation | None = None
        self._n_copies = 0

    @staticmethod
    def _found(simulation: Simulation, root: str, path: str) -> list[Element]:
        pattern = root if path == "." else f"{root}/{path}"
        found = simulation.find(pattern)
        if not found:
            raise SimulationError(f"no element matches {pattern}")
        return found

    def _vectors(self, theta: ArrayLike) -> Array:
        values = np.atleast_2d(np.asarray(theta, dtype=float))
        if values.ndim != 2 or values.shape[1] != len(self.names):
            raise ValueError(f"theta must have {len(self.names)} columns ({', '.join(self.names)}), got {values.shape}")
        return values

    def summaries(self, theta: ArrayLike) -> Array:
        """Summaries of parameter vectors, without noise; NaN where the network cannot run with them.

        Parameters
        ----------
        theta : array-like of shape (n_vectors, n_parameters) or (n_parameters,)

        Returns
        -------
        ndarray of shape (n_vectors, n_repeats, n_summaries)
        """
        vectors = self._vectors(theta)
        repeated = np.repeat(vectors, self.n_repeats, axis=0)
        try:
            rows = self._run(repeated)
        except SimulationError:
            # One of them cannot run; found by halves, so that the others keep their company.
            if len(vectors) == 1:
                width = np.broadcast(self.noise, np.zeros(1)).size
                return np.full((1, self.n_repeats, width), np.nan)
            half = len(vectors) // 2
            parts = [self.summaries(vectors[:half]), self.summaries(vectors[half:])]
            width = max(part.shape[2] for part in parts)
            return np.concatenate([_widened(part, width) for part in parts])
        return rows.reshape(len(vectors), self.n_repeats, -1)

    def _run(self, vectors: Array) -> Array:
        if self._copies is None or self._n_copies != len(vectors):
            self._copies, self._n_copies = replicated(self.simulation, self.root, len(vectors)), len(vectors)
        copies = self._copies
        copies.reset()
        for k, vector in enumerate(vectors):
            for (path, field), value in zip(self.parameters.values(), vector):
                for one in self._found(copies, f"/copy[{k}]", path):
                    one[field] = float(value)
        result = copies.run(self.duration)
        return np.array([np.asarray(self.summary(result, f"/copy[{k}]"), dtype=float) for k in range(len(vectors))])

    def simulate(self, theta: ArrayLike, random_state: RandomState = None) -> Array:
        """Draw observations: summaries with noise.

        Parameters
        ----------
        theta : array-like of shape (n_vectors, n_parameters)
        random_state : int, Generator or None, default=None

        Returns
        -------
        ndarray of shape (n_vectors, n_summaries)
        """
        rows = self.summaries(theta)[:, 0]
        return rows + self.noise * as_generator(random_state).standard_normal(rows.shape)

    def log_likelihood(self, theta: ArrayLike, observed: ArrayLike) -> Array:
        """Log-likelihood of parameter vectors; -inf where the network cannot run with them.

        Parameters
        ----------
        theta : array-like of shape (n_vectors, n_parameters) or (n_parameters,)
        observed : array-like of shape (n_summaries,)

        Returns
        -------
        ndarray of shape (n_vectors,)
        """
        seen = np.asarray(observed, dtype=float)
        if not np.isfinite(seen).all():
            raise ValueError("observed must be finite: leave out of summary what was not observed")
        rows = self.summaries(theta)
        mean, variance = rows.mean(axis=1), np.broadcast_to(self.noise**2, rows[:, 0].shape)
        if self.n_repeats > 1:
            variance = variance + rows.var(axis=1, ddof=1)
        if mean.shape[1:] != seen.shape and np.isfinite(mean).any():
            raise ValueError(f"observed must have {mean.shape[1]} values, as summary gives, got {seen.shape}")
        with np.errstate(invalid="ignore"):
            terms = -0.5 * (np.log(2 * np.pi * variance) + (seen - mean) ** 2 / variance)
        return np.where(np.isfinite(mean).all(axis=1), terms.sum(axis=1), -np.inf)


def _widened(part: Array, width: int) -> Array:
    return part if part.shape[2] == width else np.full((*part.shape[:2], width), np.nan)


def replicated(simulation: Simulation, root: str, n: int) -> Simulation:
    """A simulation with n copies of an element, ``/copy[0]`` and so on, that records of each what is recorded of it."""
    other = Simulation(
        simulation.dt, simulation.method, random_state=simulation.seed, rate_tables=simulation.rate_tables
    )
    other.clocks = dict(simulation.clocks)
    top = simulation.element(root)
    inside = top.below()
    new: dict[int, Element] = {}
    for one in inside:
        path = "/copy" + one.path.removeprefix(top.path)
        new[id(one)] = other.create(one.class_name, "/copy[0]" + path.removeprefix("/copy"))
        states = {name for name, each in one.declared().items() if each.role == "state"}
        for name in {*(one._values or {}), *one.addresses} - states:
            if one.declared()[name].writable and one[name] != one.declared()[name].default:
                new[id(one)][name] = one[name]
    for link in simulation.links:
        start, end = new[id(link.source)], new[id(link.destination)]
        other.link(f"{start.path}.{link.source_slot}", f"{end.path}.{link.destination_slot}")
    for wire in simulation.connections:
        start, end = new[id(wire.source)], new[id(wire.destination)]
        ends = f"{start.path}.{wire.source_slot}", f"{end.path}.{wire.destination_slot}"
        other.connect(*ends, delay=wire.delay, weight=wire.weight, exact_delay=wire.exact_delay)
    inside = other.element("/copy[0]").below()
    among = other._among(inside)
    for k in range(1, n):
        other._copied(inside, *among, other.root, f"copy[{k}]")
    for request in simulation.requests:
        below = request.pattern.removeprefix(top.path)
        pattern = f"/copy[*]{below}" if request.pattern.startswith(top.path) else f"/copy[*]/**{request.pattern}"
        other.record(pattern, request.field, clock=request.clock)
    return other
