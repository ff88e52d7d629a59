"""Filtering and smoothing of rows with holes under a linear Gaussian model: the numerical core without any interface.

An observation enters by its information: with C, R and y of the entries that were seen, h = C^T R^-1 y and
J = C^T R^-1 C. J is made once for each pattern of entries that occurs. With m the predicted mean, e = y - C m,
g = h - J m = C^T R^-1 e and P the filtered covariance,

    log N(y; C m, C P_predicted C^T + R) = log N(e; 0, R) + g^T P g / 2 - log det(I + P_predicted J) / 2.

e^T R^-1 e is made from e, never from h and J: large offsets would cancel digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.linear import _filter_kernels as forward
from pluri.dynamics.linear import _smoother_kernels as backward
from pluri.inference.smc.gaussian import cholesky

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LOG_2_PI = float(np.log(2 * np.pi))
#: Numbers in the largest temporary array where patterns are worked on.
MOST_NUMBERS = 1_000_000


@dataclass(frozen=True, eq=False)
class Emission:
    """C (m, d) and R: variances (m,) or a matrix (m, m), positive definite."""

    matrix: Array
    covariance: Array

    @property
    def is_diagonal(self) -> bool:
        """Whether the noise of the outputs is independent."""
        return self.covariance.ndim == 1

    def whitener(self, seen: NDArray[np.bool_] | None = None) -> Array:
        """W with W R W^T = I, for the entries seen; only of a full covariance."""
        covariance = self.covariance if seen is None else self.covariance[np.ix_(seen, seen)]
        return np.asarray(np.linalg.inv(cholesky(covariance)))


@dataclass(frozen=True, eq=False)
class Collapsed:
    """Rows by their information.

    Parameters
    ----------
    rows : ndarray (n, m)
        Observations less their known part; NaN where nothing was seen.
    emission : Emission
    linear : ndarray (n, d)
        h.
    pattern : ndarray (n,)
        Which pattern of entries was seen.
    seen : ndarray (n_patterns, m) of bool
    precision, root : ndarray (n_patterns, d, d)
        J, and M with M^T M = J.
    log_constant : ndarray (n_patterns,)
        -(log det R + number of entries log 2 pi) / 2 of the entries seen.
    """

    rows: Array
    emission: Emission
    linear: Array
    pattern: Integers
    seen: NDArray[np.bool_]
    precision: Array
    root: Array
    log_constant: Array

    def squares(self, predicted: Array) -> Array:
        """e^T R^-1 e of each row (n,), for e = y - C m and these means (n, d)."""
        emission = self.emission
        residual = self.rows - predicted @ emission.matrix.T
        if emission.is_diagonal:
            residual *= residual
            if not self.seen.all():
                np.nan_to_num(residual, copy=False)
            return np.asarray(residual @ (1.0 / emission.covariance))
        total = np.empty(len(residual))
        for kind, members in self.groups():
            mask = self.seen[kind]
            part = residual[members][:, mask] @ emission.whitener(mask).T
            total[members] = np.square(part).sum(axis=1)
        return total

    def groups(self) -> list[tuple[int, Integers]]:
        """Each pattern and the rows that have it."""
        return _groups(self.pattern, len(self.seen))


def collapse(rows: Array, emission: Emission) -> Collapsed:
    """The information in rows (n, m); entries that are NaN have none."""
    n, d = len(rows), emission.matrix.shape[1]
    pattern, seen = patterns_of(rows)
    if emission.is_diagonal:
        weighted = emission.matrix / emission.covariance[:, None]
        linear = (rows if seen.all() else np.nan_to_num(rows)) @ weighted
        scaled = emission.matrix / np.sqrt(emission.covariance)[:, None]
        root = _roots(scaled, seen)
        log_det = np.asarray(seen @ np.log(emission.covariance), dtype=np.float64)
    else:
        linear, root, log_det = np.zeros((n, d)), np.zeros((len(seen), d, d)), np.zeros(len(seen))
        for kind, members in _groups(pattern, len(seen)):
            mask = seen[kind]
            whitener = emission.whitener(mask)
            white = whitener @ emission.matrix[mask]
            linear[members] = (rows[members][:, mask] @ whitener.T) @ white
            root[kind] = _roots(white, np.ones((1, mask.sum()), dtype=bool))[0]
            log_det[kind] = -2.0 * np.log(np.diag(whitener)).sum()
    precision = np.swapaxes(root, 1, 2) @ root
    constant = -0.5 * (log_det + seen.sum(axis=1) * LOG_2_PI)
    return Collapsed(rows, emission, np.ascontiguousarray(linear), pattern, seen, precision, root, constant)


def patterns_of(rows: Array) -> tuple[Integers, NDArray[np.bool_]]:
    """The pattern of each row (n,), and the entries that each pattern sees (n_patterns, m)."""
    n, m = rows.shape
    if not np.isnan(rows.sum()):  # one NaN would have made the sum so; infinities are refused at the door
        return np.zeros(n, dtype=np.int64), np.ones((1, m), dtype=bool)
    seen = ~np.isnan(rows)
    if m <= 52:  # such whole numbers are exact
        codes = seen @ np.exp2(np.arange(m))
    else:
        packed = np.packbits(seen, axis=1)
        codes = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, pattern = np.unique(codes, return_index=True, return_inverse=True)
    return pattern.reshape(-1).astype(np.int64), seen[first]


def _groups(pattern: Integers, n_patterns: int) -> list[tuple[int, Integers]]:
    order = np.argsort(pattern, kind="stable")
    ends = np.searchsorted(pattern[order], np.arange(n_patterns + 1))
    return [(kind, order[ends[kind] : ends[kind + 1]]) for kind in range(n_patterns)]


def _roots(scaled: Array, seen: NDArray[np.bool_]) -> Array:
    """M (n_patterns, d, d) with M^T M = C^T C of the rows seen, of a scaled C (m, d)."""
    m, d = scaled.shape
    padded = np.zeros((max(m, d), d))
    padded[:m] = scaled
    out = np.empty((len(seen), d, d))
    step = max(1, MOST_NUMBERS // padded.size)
    for begin in range(0, len(seen), step):
        mask = np.zeros((len(seen[begin : begin + step]), len(padded), 1))
        mask[:, :m, 0] = seen[begin : begin + step]
        out[begin : begin + step] = np.linalg.qr(mask * padded, mode="r")
    return out


@dataclass(frozen=True, eq=False)
class Pass:
    """What the filter found in rows; covariances are kept by slot, and several rows may share one.

    Parameters
    ----------
    observed : Collapsed
    offsets : ndarray (n_sequences + 1,)
    slots, filtered : records of the compiled pass
    """

    observed: Collapsed
    offsets: Integers
    slots: forward.Slots
    filtered: forward.Filtered

    @property
    def slot(self) -> Integers:
        """Slot of each row (n,)."""
        return self.filtered.slot

    @property
    def predicted_mean(self) -> Array:
        """Mean of each state given the rows before (n, d)."""
        return self.filtered.states[forward.PREDICTED_MEAN]

    @property
    def mean(self) -> Array:
        """Mean of each state given the rows so far (n, d)."""
        return self.filtered.states[forward.FILTERED_MEAN]

    @property
    def predicted_covariance(self) -> Array:
        """By slot (n_slots, d, d)."""
        return self.slots.matrices[:, forward.PREDICTED]

    @property
    def covariance(self) -> Array:
        """Filtered covariances by slot (n_slots, d, d)."""
        return self.slots.matrices[:, forward.FILTERED]

    @cached_property
    def increments(self) -> Array:
        """Log density of each row given those before it (n,); 0 where nothing was seen."""
        squares = self.observed.squares(self.predicted_mean)
        return self.observed.log_constant[self.observed.pattern] - 0.5 * squares + self.filtered.gain

    def log_likelihoods(self) -> Array:
        """Log-likelihood of each sequence (n_sequences,)."""
        long = np.diff(self.offsets) > 0
        out = np.zeros(len(self.offsets) - 1)
        if len(long) == 1:
            out[0] = self.increments.sum()
        elif long.any():
            out[long] = np.add.reduceat(self.increments, self.offsets[:-1][long])
        return out


@dataclass(frozen=True, eq=False)
class Smoothing:
    """Smoothed means (n, d); covariances and Cov(x_{t+1}, x_t) (n_slots, d, d), and the slot of each row (n,)."""

    mean: Array
    covariance: Array
    lagged: Array
    slot: Integers

    def spread(self, weight: Array, chosen: Integers | slice = slice(None)) -> Array:
        """Sum of the weighted covariances (d, d) of some rows, with a weight for each of these."""
        return _sum_by_slot(self.covariance, self.slot[chosen], weight)

    def lagged_spread(self, weight: Array) -> Array:
        """Sum of the weighted Cov(x_{t+1}, x_t) (d, d), with a weight for each row."""
        return _sum_by_slot(self.lagged, self.slot, weight)


def _sum_by_slot(matrices: Array, slot: Integers, weight: Array) -> Array:
    counts = np.bincount(slot, weights=weight, minlength=len(matrices))
    return np.asarray(counts @ matrices.reshape(len(matrices), -1)).reshape(matrices.shape[1:])


def linear_system(A: Array, noise_root: Array, first_mean: Array, first_root: Array) -> forward.System:
    """The record of a system, from A, roots of Q and of the first state's covariance, and its mean."""
    return forward.System(np.stack([A, noise_root, first_root]), np.array(first_mean, dtype=np.float64))


def filter_sequences(system: forward.System, observed: Collapsed, drift: Array, offsets: Integers) -> Pass:
    """Run the filter over sequences that lie end to end; `drift` (n, d) is added to the state after each row."""
    n, d = observed.linear.shape
    rows = forward.Rows(observed.linear, observed.pattern, drift, offsets)
    information = np.stack([observed.precision, observed.root], axis=1)
    patterns = forward.Patterns(information, np.full(len(observed.seen), -1, dtype=np.int64))
    # Memory is only taken where a slot is written to.
    slots = forward.Slots(np.empty((n, 7, d, d)), np.empty(n), np.empty((n, 3), dtype=np.int64))
    filtered = forward.Filtered(np.empty((3, n, d)), np.empty(n), np.empty(n, dtype=np.int64))
    used = forward.filter_rows(system, rows, patterns, slots, filtered, np.empty((2 * d, 2 * d)), np.empty((d + 1, d)))
    matrices, log_det, links = slots
    return Pass(observed, offsets, forward.Slots(matrices[:used], log_det[:used], links[:used]), filtered)


def smooth_sequences(result: Pass) -> Smoothing:
    """Run the smoother over what the filter found."""
    _, n, d = result.filtered.states.shape
    first = np.full(len(result.slots.log_det), -1, dtype=np.int64)
    found = backward.Backward(np.empty((n, 3, d, d)), np.empty((n, 3), dtype=np.int64), first)
    mean, place = np.empty((n, d)), np.empty(n, dtype=np.int64)
    room, vectors = np.empty((3, d, d)), np.empty((2, d))
    used = backward.smooth_rows(result.slots, result.filtered, result.offsets, found, (mean, place), room, vectors)
    # Copies of the few that are used: the whole is not kept.
    matrices = found.matrices[:used]
    return Smoothing(mean, matrices[:, backward.SMOOTHED].copy(), matrices[:, backward.LAGGED].copy(), place)
