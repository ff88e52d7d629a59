"""Leading singular values and right singular vectors of weighted, centred rows, without forming what is large.

With rows ``x_i`` of weights ``w_i`` and ``mu`` their weighted mean (or zero), ``B`` has the rows
``sqrt(w_i) (x_i - mu)``. Sparse rows stay sparse: ``mu`` is taken off when ``B`` is multiplied with a vector.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, eigsh

Array = NDArray[np.float64]
SOLVERS = ("auto", "dense", "arpack")
#: A singular value decomposition of all of B costs little up to so many columns (or rows).
FEW_COLUMNS = 256
#: The smaller Gram matrix is formed up to so many rows; above it only products with vectors are.
FEW_GRAM_ROWS = 3000
#: The same for sparse rows, of which such products are quick.
FEW_SPARSE_GRAM_ROWS = 500


class Spectrum(NamedTuple):
    """What is known of a positive semi-definite matrix.

    Attributes
    ----------
    values : (n_values,), leading eigenvalues, largest first
    vectors : (dimension, n_values), their eigenvectors
    trace : sum of all eigenvalues
    complete : whether `values` holds all that are not zero
    """

    values: Array
    vectors: Array
    trace: float
    complete: bool

    def tail(self, n_skipped: int) -> float:
        """Sum of all eigenvalues but the `n_skipped` largest; rounding errors are not returned as a positive sum."""
        if self.complete:
            return float(self.values[n_skipped:].sum())
        rest = self.trace - float(self.values[:n_skipped].sum())
        return rest if rest > 1e-13 * self.trace else 0.0


class WeightedRows(NamedTuple):
    """Rows, the square roots of their weights, and what is taken off each of them.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    roots : (n_samples,)
    mean : (n_features,), zeros if rows are not centred
    """

    X: Any
    roots: Array
    mean: Array

    def dense(self) -> Array:
        """B itself."""
        X = self.X.toarray() if sparse.issparse(self.X) else self.X
        return np.asarray(self.roots[:, None] * (X - self.mean))

    def squared_norm(self) -> float:
        """Sum of the squares of B."""
        if not sparse.issparse(self.X):
            rows = self.dense()
            return float(np.einsum("ij,ij->", rows, rows))
        weights = self.roots**2
        norms = np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()
        return float(weights @ norms - 2 * weights @ (self.X @ self.mean) + weights.sum() * self.mean @ self.mean)

    def times(self, vector: Array) -> Array:
        """B times a vector."""
        return np.asarray(self.roots * (self.X @ vector - self.mean @ vector))

    def transposed_times(self, vector: Array) -> Array:
        """The transpose of B times a vector."""
        scaled = self.roots * vector
        return np.asarray(self.X.T @ scaled - self.mean * scaled.sum())

    def row_gram(self) -> Array:
        """Inner products of the rows of B."""
        if not sparse.issparse(self.X):
            rows = self.dense()
            return np.asarray(rows @ rows.T)
        along = np.asarray(self.X @ self.mean)
        gram = (self.X @ self.X.T).toarray() - along[:, None] - along + self.mean @ self.mean
        return np.asarray(self.roots[:, None] * gram * self.roots)

    def column_gram(self) -> Array:
        """Inner products of the columns of B."""
        if not sparse.issparse(self.X):
            rows = self.dense()
            return np.asarray(rows.T @ rows)
        weighted = self.X.multiply(self.roots[:, None] ** 2).tocsr()
        sums = np.asarray(weighted.sum(axis=0)).ravel()
        cross = np.outer(sums, self.mean)
        total = float((self.roots**2).sum())
        return np.asarray((self.X.T @ weighted).toarray() - cross - cross.T + total * np.outer(self.mean, self.mean))


def right_singular(rows: WeightedRows, n_values: int, solver: str, rng: np.random.Generator) -> Spectrum:
    """Leading eigenvalues and eigenvectors of ``B' B``.

    Parameters
    ----------
    rows : WeightedRows
    n_values : int
        How many; fewer are returned if B has fewer rows or columns.
    solver : {"auto", "dense", "arpack"}
        "dense" decomposes B, or its smaller Gram matrix; "arpack" multiplies by vectors (Lanczos); "auto" takes the
        second where the smaller Gram matrix would have more than 3,000 rows, or 500 if X is sparse.
    rng : numpy.random.Generator
        For the first vector of the Lanczos iteration.

    Returns
    -------
    Spectrum
    """
    n_rows, n_columns = rows.X.shape
    smaller = min(n_rows, n_columns)
    n_values = min(n_values, smaller)
    if n_values == 0:
        return Spectrum(np.zeros(0), np.zeros((n_columns, 0)), rows.squared_norm(), False)
    few = FEW_SPARSE_GRAM_ROWS if sparse.issparse(rows.X) else FEW_GRAM_ROWS
    iterate = solver == "arpack" or (solver == "auto" and smaller > few and 5 * n_values < smaller)
    if iterate and n_values < smaller:
        spectrum = _lanczos(rows, n_values, rng)
    elif smaller <= FEW_COLUMNS and not sparse.issparse(rows.X):
        _, singular, right = linalg.svd(rows.dense(), full_matrices=False, check_finite=False)
        spectrum = Spectrum(singular**2, right.T, float((singular**2).sum()), True)
    else:
        spectrum = _smaller_gram(rows, n_values)
    return spectrum._replace(vectors=signed(spectrum.vectors))


def leading_eigenpairs(gram: Array, n_values: int, solver: str, rng: np.random.Generator) -> Spectrum:
    """Leading eigenvalues and eigenvectors of a symmetric matrix; see `right_singular` for the solvers."""
    size = len(gram)
    n_values = min(n_values, size)
    trace = float(np.trace(gram))
    if n_values == 0:
        return Spectrum(np.zeros(0), np.zeros((size, 0)), trace, False)
    if (solver == "arpack" or (solver == "auto" and size > FEW_GRAM_ROWS)) and n_values < size:
        values, vectors = eigsh(gram, n_values, which="LA", v0=rng.normal(size=size))
        order = np.argsort(-values)
        values, vectors = values[order], vectors[:, order]
    else:
        values, vectors = linalg.eigh(gram, subset_by_index=[size - n_values, size - 1], check_finite=False)
        values, vectors = values[::-1], vectors[:, ::-1]
    return Spectrum(values, signed(vectors), trace, False)


def _lanczos(rows: WeightedRows, n_values: int, rng: np.random.Generator) -> Spectrum:
    """By products of the smaller Gram matrix with vectors, to machine precision: Ritz values that had not converged
    would be too small, and a bound that is made of them too high.
    """
    n_rows, n_columns = rows.X.shape
    by_rows = n_rows < n_columns
    size = min(n_rows, n_columns)

    def product(vector: Array) -> Array:
        vector = np.asarray(vector).ravel()
        return rows.times(rows.transposed_times(vector)) if by_rows else rows.transposed_times(rows.times(vector))

    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    values, vectors = eigsh(operator, n_values, which="LA", v0=rng.normal(size=size))
    order = np.argsort(-values)
    values, vectors = np.maximum(values[order], 0.0), vectors[:, order]
    return Spectrum(values, _as_right(rows, values, vectors) if by_rows else vectors, rows.squared_norm(), False)


def _smaller_gram(rows: WeightedRows, n_values: int) -> Spectrum:
    n_rows, n_columns = rows.X.shape
    by_rows = n_rows < n_columns
    gram = rows.row_gram() if by_rows else rows.column_gram()
    size = len(gram)
    values, vectors = linalg.eigh(gram, subset_by_index=[size - n_values, size - 1], check_finite=False)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    right = _as_right(rows, values, vectors) if by_rows else vectors
    return Spectrum(values, right, float(np.trace(gram)), False)


def _as_right(rows: WeightedRows, values: Array, left: Array) -> Array:
    """Right singular vectors from left ones; zero where the singular value is."""
    right = np.column_stack([rows.transposed_times(vector) for vector in left.T])
    roots = np.sqrt(values)
    return np.divide(right, roots, out=np.zeros_like(right), where=roots > 0)


def signed(vectors: Array) -> Array:
    """Columns whose sum of cubes is positive: answers depend neither on the solver nor on the order of rows."""
    return np.asarray(vectors * np.where((vectors**3).sum(axis=0) < 0, -1.0, 1.0))
