"""Codes of measured rows in a known dictionary: the ascent, its start, and what it gives.

From equal responsibilities all rows fall into one cluster. So the ascent runs without clusters first, k-means on the
probabilities of use finds groups of rows, and the clusters start from those, the largest first because sticks are
ordered by size.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.factors.dictionaries.variational import precisions
from pluri.factors.dictionaries.variational._measured_kernels import Codes, Measured, Room, signal_variances
from pluri.factors.dictionaries.variational.clustered_usage import (
    CONCENTRATION_PRIOR,
    SWEEPS_WITHOUT_CLUSTERS,
    ClusteredUsage,
    first_responsibilities,
)
from pluri.factors.dictionaries.variational.known_dictionary import CodeBeliefs, KnownDictionary, Measurements
from pluri.factors.dictionaries.variational.precisions import PRECISION_PRIOR
from pluri.inference.variational.coordinate_ascent import CoordinateAscentResult, coordinate_ascent
from pluri.priors.hyperpriors import Gamma, as_hyperparameter
from pluri.validation import Number, RandomState, Whole, as_generator, check_value
from pluri.validation.interruption import Interrupted

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RecoveredCodes:
    """What `recover_codes` gives.

    Attributes
    ----------
    codes : (n_samples, n_components)
        Posterior means of the weights of the atoms, ``E[z s]``.
    used : (n_samples, n_components)
        Probability that a row uses an atom.
    usage : (n_clusters, n_components)
        Probability that a row of a cluster uses an atom.
    labels : (n_samples,) int
        The most probable cluster of each row.
    noise_variance : (n_groups,)
    weight_variance : float
    trace : (n_iter + 1,)
        The bound by sweep.
    n_iter, converged, interrupted
        Number of sweeps, and how they ended.
    """

    codes: Array
    used: Array
    usage: Array
    labels: NDArray[np.intp]
    noise_variance: Array
    weight_variance: float
    trace: Array
    n_iter: int
    converged: bool
    interrupted: bool
    beliefs: CodeBeliefs = field(repr=False)
    data: Measurements = field(repr=False)

    @overload
    def reconstruct(self, components: ArrayLike, *, return_std: Literal[False] = False) -> Array: ...
    @overload
    def reconstruct(self, components: ArrayLike, *, return_std: Literal[True]) -> tuple[Array, Array]: ...
    def reconstruct(self, components: ArrayLike, *, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Signals, ``codes @ components``, and their posterior standard deviations without the noise.

        Parameters
        ----------
        components : array of shape (n_components, n_features)
            The atoms before they were projected.
        return_std : bool, default=False

        Returns
        -------
        array of shape (n_samples, n_features), or two of them
        """
        atoms = np.ascontiguousarray(components, dtype=np.float64)
        signals = self.codes @ atoms
        if not return_std:
            return signals
        q, data = self.beliefs, self.data
        codes = Codes(*(part.copy() for part in q.codes))
        noise, weight = precisions.mean(q.noise_precision)[data.groups], float(precisions.mean(q.weight_precision)[0])
        out = np.empty_like(signals)
        room = Room.of(*data.measured.atoms.shape[1:])
        signal_variances(data.measured, noise, weight, codes, atoms, room, out)
        return signals, np.sqrt(out)


def recover_codes(
    values: ArrayLike,
    projection: ArrayLike,
    *,
    n_clusters: int = 1,
    a: float | None = None,
    b: float = 1.0,
    noise_prior: float | Gamma = PRECISION_PRIOR,
    weight_prior: float | Gamma = PRECISION_PRIOR,
    concentration: float | Gamma = CONCENTRATION_PRIOR,
    noise_groups: ArrayLike | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> RecoveredCodes:
    """Find which atoms of a known dictionary make up each row, and how much of each, by variational Bayes.

    Parameters
    ----------
    values : array of shape (n_samples, n_measurements)
        Measurements y of each row.
    projection : array of shape (n_measurements, n_components) or (n_samples, n_measurements, n_components)
        The atoms as they are measured, Phi: ``components.T`` if rows are seen whole, ``operator @ components.T`` in
        compressive sensing; one for all rows, or one for each.
    n_clusters : int, default=1
        Largest number of clusters of rows with probabilities of the atoms of their own; 1 is the beta process.
    a, b : float, default=None, 1.0
        Of the beta process: a row uses ``a / b`` atoms a priori. None is the number of measurements.
    noise_prior, weight_prior : float or Gamma, default=Gamma(1e-6, 1e-6)
        Of the precisions of noise and weights: a number is fixed.
    concentration : float or Gamma, default=Gamma(1e-6, 1e-6)
        Of the clusters.
    noise_groups : int array of shape (n_samples,), optional
        Rows of a group have their own noise; one for all if not given, ``np.arange(n_samples)`` for one each.
    random_state : int, Generator, RandomState or None
        For k-means, which finds the clusters to start from; without clusters nothing is random.
    **options
        Of `pluri.inference.variational.coordinate_ascent`: `max_iter` (default 200), `tol` (1e-5), `verbose`, ...

    Returns
    -------
    RecoveredCodes

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.dictionaries.variational import recover_codes
    >>> rng = np.random.default_rng(0)
    >>> atoms = np.linalg.qr(rng.normal(size=(16, 16)))[0]
    >>> codes = rng.normal(size=(50, 16)) * (rng.random((50, 16)) < 0.1)
    >>> seen = rng.normal(size=(10, 16))  # ten random measurements in place of sixteen values
    >>> found = recover_codes(codes @ atoms @ seen.T, seen @ atoms.T)
    >>> error = np.linalg.norm(found.reconstruct(atoms) - codes @ atoms) / np.linalg.norm(codes)
    >>> bool(error < 0.05)
    True
    """
    data = checked_measurements(values, projection, noise_groups)
    a = float(data.measured.values.shape[1]) if a is None else a
    for name, value in (("a", a), ("b", b)):
        check_value(value, name, Number(above=0))
    check_value(n_clusters, "n_clusters", Whole(1))
    alpha = as_hyperparameter(concentration, "concentration", CONCENTRATION_PRIOR)
    model = KnownDictionary(
        ClusteredUsage(a, b, int(n_clusters), alpha),
        as_hyperparameter(noise_prior, "noise_prior", PRECISION_PRIOR),
        as_hyperparameter(weight_prior, "weight_prior", PRECISION_PRIOR),
    )
    rng = as_generator(random_state)
    settings: dict[str, Any] = {"max_iter": 200, "tol": 1e-5} | options
    start = model.start(data, first_usage(data))
    if model.usage.n_clusters > 1:
        start = with_clusters(model, data, start, rng)
    return _as_recovered(coordinate_ascent(model, data, rng=rng, start=start, **settings), data)


def checked_measurements(values: ArrayLike, projection: ArrayLike, noise_groups: ArrayLike | None) -> Measurements:
    """Measurements as the compiled loops take them, or one sentence about what is wrong with them."""
    y = np.ascontiguousarray(values, dtype=np.float64)
    atoms = np.asarray(projection, dtype=np.float64)
    if y.ndim != 2 or not y.size:
        raise ValueError(f"values must have shape (n_samples, n_measurements), none of them zero, got {y.shape}")
    if atoms.ndim not in (2, 3) or atoms.shape[-2] != y.shape[1] or (atoms.ndim == 3 and len(atoms) != len(y)):
        raise ValueError(
            f"projection must have shape ({y.shape[1]}, n_components) or ({len(y)}, {y.shape[1]}, n_components) for "
            f"values of shape {y.shape}, got {atoms.shape}"
        )
    for name, array in (("values", y), ("projection", atoms)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity")
    groups = np.zeros(len(y), dtype=np.intp)
    if noise_groups is not None:
        found = np.asarray(noise_groups)
        if found.shape != (len(y),):
            raise ValueError(f"noise_groups must have shape ({len(y)},), one group for each row, got {found.shape}")
        groups = np.unique(found, return_inverse=True)[1].astype(np.intp)
    atoms = np.ascontiguousarray(atoms if atoms.ndim == 3 else atoms[None])
    return Measurements(Measured(y, atoms), groups)


def first_usage(data: Measurements) -> Array:
    """Probabilities of use to start from: the same for all atoms, so that nothing is decided yet."""
    return np.full((len(data.measured.values), data.measured.atoms.shape[2]), 0.5)


def with_clusters(
    model: KnownDictionary, data: Measurements, start: CodeBeliefs, rng: np.random.Generator
) -> CodeBeliefs:
    """Where the ascent with clusters starts: from that without, and k-means on the probabilities of use."""
    alone = KnownDictionary(ClusteredUsage(model.usage.a, model.usage.b), model.noise_precision, model.weight_precision)
    first = alone.start(data, start.codes.used)
    result = coordinate_ascent(alone, data, rng=rng, start=first, max_iter=SWEEPS_WITHOUT_CLUSTERS, tol=0.0)
    if result.interrupted:
        raise Interrupted
    q = result.params
    m = first_responsibilities(q.codes.used, model.usage.n_clusters, rng)
    return replace(q, usage=model.usage.start(q.codes.used, m))


def _as_recovered(result: CoordinateAscentResult[CodeBeliefs], data: Measurements) -> RecoveredCodes:
    q = result.params
    return RecoveredCodes(
        q.codes.used * q.codes.mean, q.codes.used, q.usage.expected_probabilities, q.usage.labels,
        1 / precisions.mean(q.noise_precision), float(1 / precisions.mean(q.weight_precision)[0]), result.trace,
        result.n_iter, result.converged, result.interrupted, q, data,
    )  # fmt: skip
