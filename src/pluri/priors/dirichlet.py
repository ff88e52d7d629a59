r"""Dirichlet priors on rows: smoothing, sparsity and stickiness as pseudo-counts.

With pseudo-counts :math:`b_{ij} = c_{ij} - 1` the log density is :math:`\sum_{ij} b_{ij} \log A_{ij}` and, when no
:math:`C_{ij} + b_{ij}` is negative, the M-step is :math:`A_{ij} \propto C_{ij} + b_{ij}`.

A negative pseudo-count (concentration below 1) asks for sparse rows. Its density grows without bound as
:math:`A_{ij} \to 0`, so "the maximum" exists only after the entries that carry a negative pseudo-count are bounded
below by a small ``floor``. The usual recipe :math:`A_{ij} \propto \max(C_{ij} + b_{ij}, 0)` is the limit of that
bounded maximiser as the floor goes to zero, but at zero itself EM loses its guarantee: an entry that still has
:math:`C_{ij} > 0` expected visits would be forbidden outright, and the likelihood may fall by any amount. Here the
density is therefore the one on :math:`\{A_{ij} \ge \text{floor}\}`, the M-step is its exact maximiser, and the
objective of EM never falls. Entries that die stand at ``floor``, not at zero.

References
----------
.. [1] M. Bicego, M. Cristani and V. Murino, "Sparseness achievement in hidden Markov models", ICIAP 2007.
.. [2] E. B. Fox, E. B. Sudderth, M. I. Jordan and A. S. Willsky, "A sticky HDP-HMM with application to speaker
   diarization", Annals of Applied Statistics 5, 2011.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pluri.priors.protocol import BoolArray, FloatArray, RowPriorWarning, check_counts, check_rows, check_support
from pluri.validation import Number, check_value

#: Rows with fewer counts than this have none.
TINY = float(np.finfo(np.float64).tiny)

Concentration = float | tuple[float, ...] | tuple[tuple[float, ...], ...]


class _PseudoCounts:
    """Density, gradient and M-step of a prior that is fully described by its pseudo-counts."""

    floor: float
    concentration: Concentration | ArrayLike

    def pseudo_counts(self, shape: tuple[int, ...]) -> FloatArray:
        raise NotImplementedError  # abstract

    @property
    def _is_flat(self) -> bool:
        """Whether it adds nothing to any count: the usual case, which is taken quickly at each step of an ascent."""
        return type(self) is Dirichlet and isinstance(self.concentration, float) and self.concentration == 1.0

    def log_density(self, rows: ArrayLike, *, support: BoolArray | None = None) -> float:
        """Sum of ``pseudo_count * log(rows)``, where ``0 * log(0) = 0``.

        Entries with a negative pseudo-count are read as ``max(rows, floor)``; an entry at zero with a positive
        pseudo-count has density zero (minus infinity).
        """
        values = check_rows("rows", rows)
        check_support(support, values.shape)
        if self._is_flat:
            return 0.0
        extra = _pseudo_counts_on(self, values.shape, support)
        present = extra != 0
        if not present.any():
            return 0.0
        bounded = np.where(extra < 0, np.maximum(values, self.floor), values)
        with np.errstate(divide="ignore"):
            return float(np.sum(extra[present] * np.log(bounded[present])))

    def gradient(self, rows: ArrayLike) -> FloatArray:
        """``pseudo_count / rows``, with the same floor as :meth:`log_density`; infinite where the density is zero."""
        values = check_rows("rows", rows)
        extra = self.pseudo_counts(values.shape)
        bounded = np.where(extra < 0, np.maximum(values, self.floor), values)
        slope = np.full(values.shape, np.inf)
        np.divide(extra, bounded, out=slope, where=bounded > 0)
        slope[extra == 0] = 0.0
        return slope

    def maximize(self, counts: ArrayLike, start: ArrayLike, *, support: BoolArray | None = None) -> FloatArray:
        """Return the rows that maximise ``sum(counts * log(rows)) + log_density(rows)``, exactly.

        A row without counts and without positive pseudo-counts keeps its place in ``start``: nothing was seen that
        could move it. A row whose counts are all eaten up by negative pseudo-counts keeps only its largest entry,
        and a :class:`RowPriorWarning` says so.
        """
        observed = check_counts(counts, support)
        before = check_rows("start", start, observed.shape, support)
        shape = observed.shape
        if self._is_flat:
            total = np.ascontiguousarray(observed).sum(axis=-1, keepdims=True)
            if total.min(initial=np.inf) >= TINY:
                return np.asarray(observed / total)
        extra = _pseudo_counts_on(self, shape, support).reshape(-1, shape[-1])
        evidence = observed.reshape(-1, shape[-1]) + extra
        before = before.reshape(-1, shape[-1])
        total = evidence.sum(axis=1, keepdims=True)
        if (extra >= 0).all():
            if (seen := total >= TINY).all():
                return np.asarray(evidence / total).reshape(shape)
            rows = np.where(seen, evidence / np.where(seen, total, 1.0), before)
        else:
            bound = np.where(extra < 0, self.floor, 0.0)
            if not (bound.sum(axis=1) < 1).all():
                raise ValueError(f"floor must be below 1 / n_columns ({shape[-1]} columns), got {self.floor}")
            rows = _fill_above_floor(evidence, bound, before)
            empty = (observed.reshape(-1, shape[-1]).sum(axis=1) == 0) & (extra <= 0).all(axis=1)
            rows[empty] = before[empty]
            vanished = np.flatnonzero((evidence <= 0).all(axis=1) & ~empty)
            if vanished.size:
                warnings.warn(
                    f"the sparse prior outweighs all counts of rows {vanished.tolist()}: only their largest entry is "
                    "kept; raise the concentration towards 1 or use fewer components",
                    RowPriorWarning,
                    stacklevel=2,
                )
        return rows.reshape(shape)


def _pseudo_counts_on(prior: _PseudoCounts, shape: tuple[int, ...], support: BoolArray | None) -> FloatArray:
    extra = prior.pseudo_counts(shape)
    return extra if support is None else np.where(support, extra, 0.0)


def _fill_above_floor(evidence: FloatArray, bound: FloatArray, before: FloatArray) -> FloatArray:
    """Row by row, the maximiser of ``sum(evidence * log(row))`` over rows above ``bound``.

    Where the evidence is not positive the term falls with the entry, so the entry stands at its bound; the others are
    ``max(evidence / multiplier, bound)``. If nothing is positive the objective is convex and its maximum is a corner:
    all mass on the largest evidence (ties go to the larger entry of ``before``).
    """
    free = evidence > 0
    while True:
        held = np.where(free, 0.0, bound).sum(axis=1, keepdims=True)
        mass = np.where(free, evidence, 0.0)
        total = mass.sum(axis=1, keepdims=True)
        share = np.divide(mass, total, out=np.zeros_like(mass), where=total > 0)
        rows = np.where(free, share * (1.0 - held), bound)
        sunk = free & (rows < bound)
        if not sunk.any():
            break
        free &= ~sunk  # each pass holds at least one entry more, so this ends after at most n_columns passes
    for row in np.flatnonzero(~free.any(axis=1)):
        best = np.flatnonzero(evidence[row] == evidence[row].max())
        corner = best[np.argmax(before[row, best])]
        rows[row, corner] += 1.0 - rows[row].sum()
    return rows


def _as_concentration(value: ArrayLike) -> Concentration:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 2 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"concentration must be a finite number, row or matrix, got {value!r}")
    if array.ndim == 0:
        return float(array)
    if array.ndim == 1:
        return tuple(array.tolist())
    return tuple(tuple(row) for row in array.tolist())


def _check_floor(floor: float) -> float:
    check_value(floor, "floor", Number(above=0, below=1))
    return float(floor)


@dataclass(frozen=True)
class Dirichlet(_PseudoCounts):
    """Independent Dirichlet priors on the rows: above 1 smooths, 1 is flat, below 1 makes rows sparse.

    Parameters
    ----------
    concentration : float or array_like, default=1.0
        Concentration of every entry; anything that broadcasts to the matrix. It may be zero or negative: only
        ``concentration - 1`` enters, and ``1 - c`` is the negative Dirichlet prior of strength ``c``. Arrays are kept
        as tuples, so that priors compare and hash by value.
    floor : float, default=1e-12
        Lower bound of the entries whose concentration is below 1; see :mod:`pluri.priors.dirichlet`.

    Examples
    --------
    >>> from pluri.priors import Dirichlet
    >>> start = [[0.5, 0.5, 0.0]]
    >>> Dirichlet(2.0).maximize([[6.0, 1.0, 0.0]], start)
    array([[0.7, 0.2, 0.1]])
    >>> Dirichlet(0.0).maximize([[6.0, 3.0, 0.0]], start).round(6)
    array([[0.714286, 0.285714, 0.      ]])
    """

    concentration: Concentration | ArrayLike = 1.0
    floor: float = 1e-12

    def __post_init__(self) -> None:
        object.__setattr__(self, "concentration", _as_concentration(self.concentration))
        object.__setattr__(self, "floor", _check_floor(self.floor))

    def pseudo_counts(self, shape: tuple[int, ...]) -> FloatArray:
        """``concentration - 1``, spread over a matrix of this shape."""
        return _spread(self.concentration, shape) - 1.0


@dataclass(frozen=True)
class Sticky(_PseudoCounts):
    """A Dirichlet prior with extra pseudo-counts on the diagonal: states that last.

    Parameters
    ----------
    strength : float
        Pseudo-count added to every self-transition, non-negative.
    concentration : float or array_like, default=1.0
        The Dirichlet concentration underneath, as in :class:`Dirichlet`.
    floor : float, default=1e-12
        Lower bound of the entries whose pseudo-count is negative.

    Examples
    --------
    >>> from pluri.priors import Sticky
    >>> Sticky(4.0).maximize([[3.0, 3.0], [1.0, 5.0]], [[0.5, 0.5], [0.5, 0.5]])
    array([[0.7, 0.3],
           [0.1, 0.9]])
    """

    strength: float
    concentration: Concentration | ArrayLike = 1.0
    floor: float = 1e-12

    def __post_init__(self) -> None:
        if not (np.isfinite(self.strength) and self.strength >= 0):
            raise ValueError(f"strength must be a non-negative number, got {self.strength!r}")
        object.__setattr__(self, "strength", float(self.strength))
        object.__setattr__(self, "concentration", _as_concentration(self.concentration))
        object.__setattr__(self, "floor", _check_floor(self.floor))

    def pseudo_counts(self, shape: tuple[int, ...]) -> FloatArray:
        """``concentration - 1``, plus ``strength`` on the diagonal of a square matrix."""
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"a sticky prior needs a square matrix, got shape {shape}")
        return _spread(self.concentration, shape) - 1.0 + self.strength * np.eye(shape[0])


def _spread(concentration: Concentration | ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    if isinstance(concentration, float):
        return np.full(shape, concentration)
    try:
        return np.broadcast_to(np.asarray(concentration, dtype=np.float64), shape)
    except ValueError:
        raise ValueError(
            f"concentration must broadcast to shape {shape}, got shape {np.shape(concentration)}"
        ) from None
