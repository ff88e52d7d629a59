"""Diffusion maps: coordinates in which the Euclidean distance of two rows tells how differently walks from them go.

With K the symmetric similarities, q their row sums and ``K' = q^{-a} K q^{-a}`` (a is `density_power`; 1 removes the
density of the rows), D the row sums of K': the walk is ``P = D^{-1} K'``, its eigenvectors are ``psi = D^{-1/2} phi``
with phi those of the symmetric ``S = D^{-1/2} K' D^{-1/2}``. Row i has the coordinates ``lambda_k^t psi_ik``,
k = 2, 3, ..., scaled so that ``sum_i pi_i psi_ik^2 = 1`` under the stationary distribution pi. Then the squared
distance of rows i and j, over all coordinates, is ``sum_l (P^t_il - P^t_jl)^2 / pi_l``.

References
----------
Coifman and Lafon (2006), Diffusion maps, Applied and Computational Harmonic Analysis 21, 5-30.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.embedding.spectral.bounds import check_size
from pluri.embedding.spectral.eigen import signed
from pluri.embedding.spectral.random_walk import (
    neighbors_for,
    scales_of,
    similarities,
    squared_distance_table,
)
from pluri.validation import (
    Allowed,
    Number,
    Only,
    RandomState,
    Stored,
    Whole,
    as_generator,
    check_parameters,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]
#: Full eigen-decomposition up to so many rows, Lanczos iteration above.
DENSE = 1000
#: Similarities below this do not connect rows: a walk would not go that way once in the age of the universe.
CONNECTS = 1e-30


class DiffusionMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Coordinates from the eigenvectors of a random walk on the rows.

    Parameters
    ----------
    n_components : int, default=2
    scale : {"neighbor", "perplexity"} or float, default="neighbor"
        How far one step goes: the distance of each row to its neighbour `scale_neighbor`, the scale that gives the walk
        the `perplexity`, or a number for all rows.
    scale_neighbor : int, default=7
    perplexity : float, default=10.0
    density_power : float, default=0.0
        Power of the density by which similarities are divided; 1 leaves the shape of the set of rows alone.
    time : float, default=1.0
        Steps of the walk: coordinates are multiplied by this power of their eigenvalues.
    n_neighbors : int, optional
        Number of nearest rows (the row itself among them) to which a row has a similarity; by default all up to 2,000
        rows, and 64 if there are more.
    disconnected : {"raise", "largest"}, default="raise"
        What to do if no walk reaches all rows: refuse, or fit the largest part with a warning. The others then have NaN
        as coordinates in `embedding_`.
    random_state : int, Generator, RandomState or None
        For the first vector of the Lanczos iteration, above 1,000 rows.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
    eigenvalues_ : array of shape (n_components,)
        Of the walk, without the first, which is 1.
    stationary_ : array of shape (n_samples_fit,)
        How often a long walk is at each row.
    scales_ : array of shape (n_samples_fit,)
    connected_ : array of shape (n_samples_fit,)
        The rows that were fitted: all, unless only the largest part was.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.embedding import DiffusionMap
    >>> angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> model = DiffusionMap(2).fit(circle)
    >>> radius = np.linalg.norm(model.embedding_, axis=1)  # a circle again
    >>> bool(np.ptp(radius) < 1e-8), model.eigenvalues_.round(2)
    (True, array([0.9, 0.9]))
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "embedding_": Stored(None, "k", finite=False),
        "eigenvalues_": Stored("k"),
        "stationary_": Stored("n", simplex=True),
        "scales_": Stored("n", least=0.0),
        "connected_": Stored("n", whole=True, least=0),
        "_rows": Stored("n", "n_features_in_"),
        "_density": Stored("n"),
        "_vectors": Stored("n", "k"),
    }
    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1),
        "scale": Only("neighbor", "perplexity") | Number(above=0),
        "scale_neighbor": Whole(1),
        "perplexity": Number(above=1),
        "density_power": Number(least=0, most=1),
        "time": Number(least=0),
        "n_neighbors": Whole(2) | Only(None),
        "disconnected": Only("raise", "largest"),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        scale: str | float = "neighbor",
        scale_neighbor: int = 7,
        perplexity: float = 10.0,
        density_power: float = 0.0,
        time: float = 1.0,
        n_neighbors: int | None = None,
        disconnected: str = "raise",
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.scale = scale
        self.scale_neighbor = scale_neighbor
        self.perplexity = perplexity
        self.density_power = density_power
        self.time = time
        self.n_neighbors = n_neighbors
        self.disconnected = disconnected
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the coordinates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : object
        """
        check_parameters(self)
        with restored_on_failure(self):
            data = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
            check_size(data)
            kept = np.arange(len(data))
            kernel, scales = self._kernel(data)
            part = _largest_part(kernel, self.disconnected)
            if part is not None:
                kept = np.flatnonzero(part)
                kernel, scales = self._kernel(data[kept])
            if len(kept) <= self.n_components:
                raise ValueError(
                    f"n_components must be below the number of connected rows (n_samples={len(kept)}), "
                    f"got {self.n_components}"
                )
            self.connected_, self._rows, self.scales_ = kept, data[kept], scales
            density = np.asarray(kernel.sum(axis=1)).ravel()
            self._density = density**-self.density_power
            kernel = sparse.csr_matrix(sparse.diags(self._density) @ kernel @ sparse.diags(self._density))
            degree = np.asarray(kernel.sum(axis=1)).ravel()
            self.stationary_ = degree / degree.sum()
            self.eigenvalues_, phi = self._eigenpairs(kernel, degree)
            self._vectors = signed(phi / np.sqrt(self.stationary_)[:, None])
            self.embedding_ = np.full((len(data), int(self.n_components)), np.nan)
            self.embedding_[kept] = self._vectors * self._powers()
        return self

    def _kernel(self, data: Array) -> tuple[Any, Array]:
        """Symmetric similarities and the scales of the rows."""
        table = squared_distance_table(data, data, neighbors_for(len(data), self.n_neighbors))
        scales = scales_of(table, self.scale, int(self.scale_neighbor), float(self.perplexity))
        kernel = similarities(table, scales, scales, symmetric=True)
        return (kernel if kernel.nnz == len(data) ** 2 else kernel.maximum(kernel.T)), scales

    def _powers(self) -> Array:
        # A walk of kept neighbours only may have eigenvalues below zero, of which a power need not exist.
        return np.asarray(np.sign(self.eigenvalues_) * np.abs(self.eigenvalues_) ** float(self.time))

    def _eigenpairs(self, kernel: Any, degree: Array) -> tuple[Array, Array]:
        """Leading eigenvalues and orthonormal eigenvectors of the symmetric form, without the first.

        The first is known, ``sqrt(pi)`` of eigenvalue 1, and taken off: parts that are hardly connected have further
        eigenvalues that rounding does not tell from 1.
        """
        roots = sparse.diags(degree**-0.5)
        symmetric = sparse.csr_matrix(roots @ kernel @ roots)
        size, wanted = symmetric.shape[0], int(self.n_components)
        first = np.sqrt(self.stationary_)
        if size <= max(DENSE, 3 * wanted):
            dense = symmetric.toarray()
            dense = 0.5 * (dense + dense.T) - 2 * np.outer(first, first)
            values, vectors = linalg.eigh(dense, subset_by_index=[size - wanted, size - 1])
        else:
            without_first = LinearOperator(
                symmetric.shape, matvec=lambda v: symmetric @ v - 2 * first * (first @ v), dtype=np.float64
            )
            start = as_generator(self.random_state).normal(size=size)
            values, vectors = eigsh(without_first, wanted, which="LA", v0=start)
        order = np.argsort(-values)
        return values[order], vectors[:, order]

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def transform(self, X: Any) -> Array:
        """Coordinates of new rows by Nystrom's extension: the mean of the eigenvectors over one step of their walk.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        coordinates : array of shape (n_samples, n_components)
            Rows of the fit get those of `embedding_`, if all pairs of rows have similarities.
        """
        check_is_fitted(self, "embedding_")
        data = validate_data(self, X, dtype=np.float64, reset=False)
        check_size(data)
        n_neighbors = neighbors_for(len(self._rows), self.n_neighbors)
        table = squared_distance_table(data, self._rows, n_neighbors)
        kernel = similarities(table, self._new_scales(table), self.scales_, symmetric=True)
        weighted = sparse.csr_matrix(kernel @ sparse.diags(self._density))
        total = np.asarray(weighted.sum(axis=1)).ravel()
        far = total <= 0
        if far.any():
            raise ValueError(
                f"X must hold rows near those of the fit, got {int(far.sum())} from which no step of the walk reaches "
                f"one (the first is row {int(np.flatnonzero(far)[0])})"
            )
        mean = np.asarray(weighted @ self._vectors) / total[:, None]
        # A coordinate whose eigenvalue is zero is the same for all new rows.
        usable = np.abs(self.eigenvalues_) > 1e-12
        factor = np.divide(self._powers(), self.eigenvalues_, out=np.zeros(len(usable)), where=usable)
        return np.asarray(mean * factor)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit, and return `embedding_`."""
        return self.fit(X, y, **fit_params).embedding_

    def _new_scales(self, table: Any) -> Array:
        """Scales of new rows: the nearest row of the fit counts as the row itself, which it is for rows of the fit."""
        return scales_of(table, self.scale, int(self.scale_neighbor), float(self.perplexity))


def _largest_part(kernel: Any, disconnected: str) -> NDArray[np.bool_] | None:
    """Which rows are in the largest connected part; None if that is all of them."""
    links = kernel > CONNECTS
    number, part = connected_components(links, directed=False)
    if number == 1:
        return None
    sizes = np.bincount(part)
    told = f"the rows fall into {number} parts that no walk connects (the largest has {sizes.max()} of {len(part)})"
    if disconnected == "raise":
        raise ValueError(
            f"X must be connected, but {told}; raise scale, scale_neighbor or n_neighbors, or use "
            "disconnected='largest'"
        )
    warnings.warn(f"{told}; only the largest is fitted", UserWarning, stacklevel=4)
    return np.asarray(part == sizes.argmax())
