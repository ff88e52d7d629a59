"""One fit of spectral k-means on clean data: coordinates, assignment, refinement, certificate."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from pluri.embedding.spectral.assignment import Assignment, assign_by_k_means, assign_by_pivots
from pluri.embedding.spectral.relaxation import Decomposition, KernelData, LinearData, Partition, SpectralMap

Array = NDArray[np.float64]
#: Below this share of the largest eigenvalue, the gap after the last one that is used does not determine coordinates.
SMALL_GAP = 1e-8


class Settings(NamedTuple):
    """How to fit: the parameters of the estimator, checked."""

    n_clusters: int
    assign: str
    n_components: int | None
    center: bool
    refine: bool
    n_init: int
    eigen_solver: str
    max_iter: int
    tol: float


class Found(NamedTuple):
    """What a fit has found.

    Attributes
    ----------
    map : SpectralMap
    constant : float or None
        The first coordinate of every row, if data are centred.
    rule : str
        The way of assignment.
    assignment : Assignment
    partition : Partition
    eigenvalues : (n_values,), those of the coordinates
    eigengap : float
    lower_bound : float
    """

    map: SpectralMap
    constant: float | None
    rule: str
    assignment: Assignment
    partition: Partition
    eigenvalues: Array
    eigengap: float
    lower_bound: float


def coordinates(spectral_map: SpectralMap, constant: float | None, features: object) -> Array:
    """All coordinates of rows: with centred data the first one is constant."""
    found = spectral_map.coordinates(features)
    return found if constant is None else np.column_stack([np.full(len(found), constant), found])


def fit_clusters(data: LinearData | KernelData, settings: Settings, rng: np.random.Generator) -> Found:
    """Cluster rows of positive weight.

    Raises
    ------
    ValueError
        If the data have fewer independent directions than the assignment needs.
    """
    k, center = settings.n_clusters, settings.center
    n_most = max(settings.n_components or 0, k) + 1
    solved = data.decompose(n_most, center, settings.eigen_solver, rng)
    rule, n_values = _chosen(solved, settings, data)
    values = solved.spectrum.values
    gap = _gap(values, n_values)
    spectral_map = SpectralMap(solved.map.directions[:, :n_values], solved.map.offset[:n_values])
    constant = float(1.0 / np.sqrt(data.weights.sum())) if center and rule != "kmeans" else None
    rows = coordinates(spectral_map, constant, data.features)
    if rule == "kmeans":
        assignment = assign_by_k_means(rows, data.weights, k, settings.n_init, rng)
    else:
        assignment = assign_by_pivots(rows, k, polar=rule == "cluster_qr")
    partition = data.partition(assignment.labels(rows), k, assignment.pivots)
    if settings.refine:
        partition = _refined(data, partition, settings)
    if center:
        bound = solved.spectrum.tail(k - 1)
    else:
        bound = data.decompose(k - 1, True, settings.eigen_solver, rng).spectrum.tail(k - 1)
    return Found(spectral_map, constant, rule, assignment, partition, values[:n_values], gap, max(bound, 0.0))


def _chosen(solved: Decomposition, settings: Settings, data: LinearData | KernelData) -> tuple[str, int]:
    """The rule, and how many eigenvectors it uses; an error if the data have too few independent directions for it.

    "auto" is p-QR for sparse rows: on text it is the better start (`benchmarks/peers/embedding_kmeans.py`), on dense
    rows k-means on the coordinates is (`benchmarks/accuracy/spectral_kmeans_defaults.py`).
    """
    k, asked, center = settings.n_clusters, settings.n_components, settings.center
    values = solved.spectrum.values
    n_rows, n_columns = data.features.shape
    rounding = max(n_rows, n_columns) * np.finfo(np.float64).eps
    # Singular values are accurate to eps of the largest, eigenvalues of a Gram matrix too: the former are squared.
    least = values.max(initial=0.0) * (rounding**2 if solved.spectrum.complete else 10 * rounding)
    rank = int((values > least).sum())
    needed = (asked or k) - center
    by_pivots = sparse.issparse(data.features) if settings.assign == "auto" else settings.assign != "kmeans"
    if by_pivots and needed <= rank and (asked or k) >= k:
        return ("pqr" if settings.assign == "auto" else settings.assign), needed
    if settings.assign in ("auto", "kmeans"):
        needed = asked or max(k - center, 1)
        usable = min(needed, rank) if asked is None else needed
        if 0 < usable <= rank:
            return "kmeans", usable
        if k == 1 and center and asked in (None, 1):
            return "pqr", 0  # the constant coordinate is enough
    told = (
        f"n_samples={n_rows}, n_features={n_columns}"
        if isinstance(data, LinearData)
        else "the rank of the kernel matrix"
    )
    raise ValueError(
        f"{'n_clusters' if asked is None else 'n_components'} must be at most "
        f"{rank + (center and settings.assign != 'kmeans')} for assign={settings.assign!r}, since the "
        f"{'centred ' if center else ''}data have {rank} independent directions ({told}), got {asked or k}"
        f"{'' if settings.assign in ('auto', 'kmeans') else '; use another assign'}"
    )


def _gap(values: Array, n_values: int) -> float:
    """Distance of the last eigenvalue that is used to the next; infinite if none is used."""
    if n_values == 0:
        return float("inf")
    following = values[n_values] if n_values < len(values) else 0.0
    gap = float(values[n_values - 1] - following)
    if gap < SMALL_GAP * values[0]:
        warnings.warn(
            f"eigenvalue {n_values} and the next differ by {gap:.1e} only, so that coordinates, and clusters made of "
            "them, are not determined by the data; try another n_clusters",
            UserWarning,
            stacklevel=4,
        )
    return gap


def _refined(data: LinearData | KernelData, start: Partition, settings: Settings) -> Partition:
    found = data.lloyd(start, settings.max_iter, settings.tol)
    if not found.converged:
        warnings.warn(
            f"the refinement had not settled after max_iter={settings.max_iter} iterations; raise max_iter",
            ConvergenceWarning,
            stacklevel=4,
        )
    # Rounding may leave the refined cost a little above the one that it began with.
    return found if found.inertia <= start.inertia else start._replace(n_iter=found.n_iter)
