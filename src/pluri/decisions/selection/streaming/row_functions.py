"""Set functions of rows that come in batches: what each row of a batch would add to rows that were chosen before.

A batch is looked at once (`Batch`), and then beside each set of chosen rows (`Look`); a row of the batch that is chosen
changes the look, so that the gains of those after it are up to date.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve_triangular

from pluri.decisions.selection._kernels import dense_gains
from pluri.decisions.selection.set_function import Array
from pluri.processes.dpp.kernel_forms import FunctionKernel
from pluri.validation import plain_array

#: Jitter of the identity in log det(I + L), as in `pluri.decisions.GreedySelector`.
IDENTITY = 1.0
#: What rounding may take away of a diagonal, as a share of its largest entry.
ROUNDING = 1e-9


class Look(Protocol):
    """A batch beside a set of chosen rows, which grows."""

    def gains(self, begin: int) -> Array:
        """What each row of the batch from `begin` on would add."""

    def insert(self, place: int) -> None:
        """Change the look: a row of the batch is chosen."""


class RowFunction(Protocol):
    """A monotone submodular function of sets of rows, zero for none."""

    def batch(self, rows: Any) -> Any:
        """What all looks at these rows share."""

    def look(self, chosen: Any, batch: Any) -> Look:
        """The batch beside chosen rows (None: beside none)."""


@dataclass
class _CoverageLook:
    present: Any
    left: Array

    def gains(self, begin: int) -> Array:
        return np.asarray(self.present[begin:] @ self.left)

    def insert(self, place: int) -> None:
        self.left[_dense_row(self.present, place) > 0] = 0.0


class CoverageOfColumns:
    """How many columns are not zero in some chosen row."""

    def batch(self, rows: Any) -> Any:
        """Zeros and ones."""
        return (rows != 0).astype(np.float64)

    def look(self, chosen: Any, batch: Any) -> Look:
        """The columns that are left."""
        left = np.ones(batch.shape[1])
        if chosen is not None:
            left[np.asarray((chosen != 0).sum(axis=0)).ravel() > 0] = 0.0
        return _CoverageLook(batch, left)


@dataclass
class _TotalsLook:
    rows: Any
    totals: Array

    def gains(self, begin: int) -> Array:
        rows, before = self.rows[begin:], np.sqrt(self.totals)
        if not sparse.issparse(rows):
            return np.asarray((np.sqrt(rows + self.totals) - before).sum(axis=1))
        more = np.sqrt(rows.data + self.totals[rows.indices]) - before[rows.indices]
        return np.asarray(sparse.csr_array((more, rows.indices, rows.indptr), shape=rows.shape).sum(axis=1)).ravel()

    def insert(self, place: int) -> None:
        self.totals = self.totals + _dense_row(self.rows, place)


class SquareRootsOfTotals:
    """Square roots of the totals of the columns, summed."""

    def batch(self, rows: Any) -> Any:
        """The rows, none of which may be negative."""
        smallest = float(rows.min()) if rows.shape[0] else 0.0
        if smallest < 0:
            raise ValueError(f"X must be non-negative with function='features', got {smallest:.3g}")
        return rows

    def look(self, chosen: Any, batch: Any) -> Look:
        """The totals so far."""
        totals = np.zeros(batch.shape[1]) if chosen is None else np.asarray(chosen.sum(axis=0), dtype=np.float64)
        return _TotalsLook(batch, totals.ravel())


@dataclass
class _NearestLook:
    similarity: Array
    best: Array

    def gains(self, begin: int) -> Array:
        items = np.arange(begin, len(self.similarity), dtype=np.int64)
        out = np.empty(len(items))
        dense_gains(self.similarity, self.best, items, out)
        return out

    def insert(self, place: int) -> None:
        self.best = np.maximum(self.best, self.similarity[place])


@dataclass
class NearestOfReference:
    """Similarity of reference rows to the nearest chosen row, summed: facility location."""

    kernel: Callable[[Any, Any], Any]
    reference: Any

    def batch(self, rows: Any) -> Any:
        """Similarities to the reference rows (n, n_reference)."""
        return plain_array(_similarities(self.kernel, rows, self.reference))

    def look(self, chosen: Any, batch: Any) -> Look:
        """The similarity of each reference row to the nearest so far."""
        best = np.zeros(batch.shape[1])
        if chosen is not None:
            best = np.maximum(best, _similarities(self.kernel, chosen, self.reference).max(axis=0))
        return _NearestLook(batch, best)


@dataclass
class _VolumeLook:
    kernel: Callable[[Any, Any], Any]
    rows: Any
    left: Array
    scale: float
    columns: list[Array] = field(default_factory=list)

    def gains(self, begin: int) -> Array:
        left = self.left[begin:]
        # No row can have less than the identity left, but for rounding.
        if len(left) and left.min() < IDENTITY - ROUNDING * self.scale:
            raise ValueError(
                "kernel must be positive semi-definite with function='log_det', got rows whose similarities are not"
            )
        return np.log(np.maximum(left, IDENTITY))

    def insert(self, place: int) -> None:
        column = _similarities(self.kernel, self.rows[[place]], self.rows)[0]
        column[place] += IDENTITY
        for earlier in self.columns:
            column -= earlier[place] * earlier
        column /= np.sqrt(self.left[place])
        self.columns.append(column)
        self.left = self.left - column**2


@dataclass
class LogVolume:
    """log det(I + K) of the chosen rows."""

    kernel: Callable[[Any, Any], Any]

    def batch(self, rows: Any) -> Any:
        """The rows, and 1 plus their similarity to themselves."""
        return rows, IDENTITY + FunctionKernel(lambda a, b: _similarities(self.kernel, a, b), rows).diagonal()

    def look(self, chosen: Any, batch: Any) -> Look:
        """What is left of the diagonal given the chosen rows."""
        rows, diagonal = batch
        scale = float(diagonal.max())
        if chosen is None:
            return _VolumeLook(self.kernel, rows, diagonal.copy(), scale)
        inner = _similarities(self.kernel, chosen, chosen) + IDENTITY * np.eye(chosen.shape[0])
        half = solve_triangular(np.linalg.cholesky(inner), _similarities(self.kernel, chosen, rows), lower=True)
        return _VolumeLook(self.kernel, rows, diagonal - np.einsum("ij,ij->j", half, half), scale, list(half))


def _similarities(kernel: Callable[[Any, Any], Any], above: Any, beside: Any) -> Array:
    """Similarities of two sets of rows, checked: a new array."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        values = kernel(above, beside)
    found = np.array(values.toarray() if sparse.issparse(values) else values, dtype=np.float64)
    shape = (above.shape[0], beside.shape[0])
    if found.shape != shape:
        raise ValueError(f"kernel must give similarities {shape} of two sets of rows, got shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError("kernel must give finite similarities, got NaN or infinity")
    return found


def _dense_row(rows: Any, place: int) -> NDArray[np.float64]:
    row = rows[[place]]
    return np.asarray(row.toarray()[0] if sparse.issparse(row) else row[0])
