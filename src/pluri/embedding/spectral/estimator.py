"""K-means with a certificate: clusters from the eigenvectors of the Gram matrix, and a bound on what any could cost.

The cost of a partition is ``tr(A'A) - tr(X' A'A X)`` with X its normalised indicators. If X may be any orthonormal
matrix, the best are the leading eigenvectors (:mod:`pluri.embedding.spectral.bounds`): they give coordinates in which
clusters are easy to find (:mod:`pluri.embedding.spectral.assignment`), and what they leave is a lower bound on the cost
of every partition. Lloyd's algorithm on the data, from there, does the rest.

References
----------
Zha, He, Ding, Simon and Gu (2001), Spectral relaxation for k-means clustering, NIPS.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pluri.embedding.spectral.assignment import RULES
from pluri.embedding.spectral.bounds import relative_gap
from pluri.embedding.spectral.eigen import SOLVERS
from pluri.embedding.spectral.fitting import Found, Settings, fit_clusters
from pluri.embedding.spectral.kernels import Kernel, KernelKind
from pluri.embedding.spectral.queries import SpectralQueries
from pluri.embedding.spectral.relaxation import KernelData, LinearData, half_norms
from pluri.validation import (
    Allowed,
    Flag,
    Made,
    Only,
    RandomState,
    Stored,
    Whole,
    as_generator,
    check_parameters,
    check_row_weight,
    restored_on_failure,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class SpectralKMeans(SpectralQueries):
    """K-means that starts from eigenvectors and says how far from the best partition its result can be.

    Parameters
    ----------
    n_clusters : int, default=8
    assign : {"auto", "pqr", "cluster_qr", "kmeans"}, default="auto"
        How clusters are read from the coordinates: by QR with column pivoting, by the same with the nearest orthonormal
        vectors in the place of the representatives (as scikit-learn's SpectralClustering has it), or by k-means on the
        coordinates. The first two need as many independent directions in the data as there are clusters, and are
        deterministic. "auto" is "pqr" for sparse rows, if they have so many directions, else "kmeans".
    n_components : int, optional
        Number of coordinates, at least `n_clusters` for the first two; `n_clusters` by default, or as many as there
        are.
    kernel : str or callable, default="linear"
        Similarity of rows: a name that scikit-learn knows ("rbf", "cosine", "polynomial", ...), a function of two
        tables that gives the matrix of similarities of their rows, or "precomputed" if X is that matrix.
    kernel_params : dict, optional
        Further arguments of the kernel, as ``{"gamma": 0.1}``.
    center : bool or {"auto"}, default="auto"
        Whether rows are centred (in the space of the kernel) before they are decomposed; then the first coordinate is
        constant, but for "kmeans". "auto" centres all but sparse rows. The lower bound is that of centred rows in any
        case.
    refine : bool, default=True
        Whether Lloyd's algorithm is run on the data from the clusters found. The published method does not.
    n_init : int or {"auto"}, default="auto"
        Starts of k-means on the coordinates; only with `assign="kmeans"`, where "auto" is 10.
    eigen_solver : {"auto", "dense", "arpack"}, default="auto"
        Full decomposition of the smaller Gram matrix, or Lanczos iteration; by size.
    max_iter : int, default=300
        Largest number of iterations of the refinement.
    tol : float, default=0.0
        The refinement stops when centres move by less (relative to the variance of the data), or a kernel's cost falls
        by less than this share of it.
    random_state : int, Generator, RandomState or None
        For k-means on the coordinates.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Clusters; -1 for rows that are zero, if `center` is False: they have no direction.
    cluster_centers_ : array of shape (n_clusters, n_features_in_)
        Only with the linear kernel.
    inertia_ : float
        Weighted sum of squared distances to the centres.
    lower_bound_ : float
        No partition into `n_clusters` clusters has less inertia.
    gap_ : float
        ``inertia_ / lower_bound_ - 1``; infinite if the bound is zero and the inertia is not.
    pivots_ : array of shape (n_clusters,)
        Rows that represent the clusters; empty with `assign="kmeans"`.
    membership_ : array of shape (n_samples, n_clusters)
        Size of the coordinates of each row in the basis of the representatives, before the refinement; None with
        `assign="kmeans"`.
    embedding_ : array of shape (n_samples, n_components_)
    n_components_ : int
    assign_ : str
        The rule that was used.
    center_ : bool
    eigenvalues_ : array of shape (n_components_,)
        Of the Gram matrix; without that of the constant coordinate, if there is one.
    eigengap_ : float
        Distance of the last of them to the next. Where it is small, coordinates are not determined by the data.
    n_iter_ : int
        Iterations of the refinement.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.embedding import SpectralKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = 6 * np.eye(4)[np.arange(80) % 4] + rng.normal(size=(80, 4)) / 2
    >>> model = SpectralKMeans(4).fit(X)
    >>> np.bincount(model.labels_)
    array([20, 20, 20, 20])
    >>> model.gap_ < 4, model.lower_bound_ < model.inertia_
    (True, True)
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "cluster_centers_": Stored("k", "n_features_in_"),
        "labels_": Stored("n", whole=True, least=-1, below="k"),
        "embedding_": Stored("n", "n_components_"),
        "membership_": Stored("n", "k"),
        "pivots_": Stored(None, whole=True, least=0, below="n"),
        "eigenvalues_": Stored("v"),
        "_directions": Stored("f", "v"),
        "_offset": Stored("v"),
        "_assignment": Stored("k", "n_components_"),
        "_places": Stored("f", "k"),
        "_half_norms": Stored("k"),
        "_kept": Stored(None, whole=True, least=0, below="n"),
    }
    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_clusters": Whole(1),
        "assign": Only("auto", *RULES),
        "n_components": Whole(1) | Only(None),
        "kernel": KernelKind(),
        "kernel_params": Made(Mapping, "a dict of arguments of the kernel") | Only(None),
        "center": Flag() | Only("auto"),
        "refine": Flag(),
        "n_init": Whole(1) | Only("auto"),
        "eigen_solver": Only(*SOLVERS),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        assign: str = "auto",
        n_components: int | None = None,
        kernel: Kernel = "linear",
        kernel_params: Mapping[str, Any] | None = None,
        center: bool | str = "auto",
        refine: bool = True,
        n_init: int | str = "auto",
        eigen_solver: str = "auto",
        max_iter: int = 300,
        tol: float = 0.0,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.assign = assign
        self.n_components = n_components
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.center = center
        self.refine = refine
        self.n_init = n_init
        self.eigen_solver = eigen_solver
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the clusters and the bound.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or the similarities of all rows, (n_samples, n_samples), if the kernel is "precomputed".
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 counts as two rows; rows of weight zero are labelled and change nothing.

        Returns
        -------
        self : object
        """
        check_parameters(self)
        if self.assign != "kmeans" and self.n_init not in ("auto", 1):
            raise ValueError(
                f"n_init must be 1 or 'auto' unless assign='kmeans', since p-QR is deterministic, got {self.n_init}"
            )
        with restored_on_failure(self):
            data = self._checked(X, reset=True)
            weight = check_row_weight(sample_weight, data.shape[0])
            weight = np.ones(data.shape[0]) if weight is None else weight
            self.center_ = not sparse.issparse(data) if self.center == "auto" else bool(self.center)
            zero = self._zero_rows(data)
            self._kept = self._counted(weight, zero)
            everything = len(self._kept) == data.shape[0]
            kept: Any = slice(None) if everything else self._kept
            if self.kernel == "linear":
                found = fit_clusters(LinearData(data[kept], weight[kept]), self._settings(), self._rng())
            else:
                self._X = None if self.kernel == "precomputed" else data[kept]
                gram = self._features(data)
                found = fit_clusters(KernelData(gram[kept], weight[kept]), self._settings(), self._rng())
                self._half_norms = half_norms(gram[kept], found.partition.places)
            self._store(found, data, zero)
        return self

    def _counted(self, weight: Array, zero: NDArray[np.bool_]) -> Integers:
        """Rows that clusters are made of."""
        kept = np.flatnonzero((weight > 0) & ~zero)
        if zero.any():
            warnings.warn(
                f"{int(zero.sum())} rows are zero and have no direction: they get the label -1; leave them out, or "
                "use center=True",
                UserWarning,
                stacklevel=3,
            )
        if len(kept) < self.n_clusters:
            raise ValueError(
                f"n_clusters must be at most the number of rows that count (n_samples={len(kept)}), "
                f"got {self.n_clusters}"
            )
        return kept

    def _rng(self) -> np.random.Generator:
        return as_generator(self.random_state)

    def _settings(self) -> Settings:
        pivoted = self.assign in ("pqr", "cluster_qr")
        if pivoted and self.n_components is not None and self.n_components < self.n_clusters:
            raise ValueError(
                f"n_components must be at least n_clusters ({self.n_clusters}) for assign={self.assign!r}, "
                f"got {self.n_components}"
            )
        return Settings(
            int(self.n_clusters),
            str(self.assign),
            None if self.n_components is None else int(self.n_components),
            self.center_,
            bool(self.refine),
            10 if self.n_init == "auto" else int(self.n_init),
            str(self.eigen_solver),
            int(self.max_iter),
            float(self.tol),
        )

    def _store(self, found: Found, data: Any, zero: NDArray[np.bool_]) -> None:
        self._directions, self._offset = found.map
        self._constant = found.constant
        self._assignment, self._by_distance, pivots = found.assignment
        self._places = found.partition.places
        self._refined = bool(self.refine)
        if self.kernel == "linear":
            self.cluster_centers_ = np.ascontiguousarray(self._places.T)
        self.assign_ = found.rule
        self.pivots_ = self._kept[pivots]
        self.eigenvalues_, self.eigengap_ = found.eigenvalues, found.eigengap
        self.inertia_, self.n_iter_ = found.partition.inertia, found.partition.n_iter
        self.lower_bound_ = found.lower_bound
        self.gap_ = relative_gap(self.inertia_, self.lower_bound_)
        features = self._features(data)
        self.embedding_ = self._coordinates(features)
        self.n_components_ = self.embedding_.shape[1]
        self.membership_ = None if self._by_distance else found.assignment.membership(self.embedding_)
        self.labels_ = self._labels(features, self.embedding_)
        # Where two centres are equally near, rounding decides: what was found is kept.
        self.labels_[self._kept] = found.partition.labels
        self.labels_[zero] = -1
