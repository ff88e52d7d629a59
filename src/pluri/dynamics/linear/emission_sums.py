"""Sums of the residuals of the outputs, e = y - Gamma z, over the rows of a batch; entries that are NaN are left out.

With independent noise each output is a regression of its own on the rows that saw it. With correlated noise an entry
that is missing in a row that was seen in part is latent, with the conditional moments of e given the entries seen:
T = (I; R_uo R_oo^-1), E[e e^T] = T E[e_o e_o^T] T^T + (0, R_uu - R_uo R_oo^-1 R_ou).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.linear.parameters import LinearParameters
from pluri.dynamics.linear.passes import MOST_NUMBERS, Collapsed, Smoothing
from pluri.engine import Statistics

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class EmissionSums(Statistics):
    """Sums for n outputs.

    Attributes
    ----------
    log_likelihood : 0, counted elsewhere
    zz : (k, k): z z^T over the rows whose entries were all seen (full R: seen at all)
    zz_partly : (n, k, k): over the other rows, for each output those that saw it; None for a full R
    ez : (n, k): e z^T
    ee : (n,), or (n, n) for a full R: squares of e
    count : (n,): total weight of the rows that saw an output (full R: of all rows that count)
    """

    log_likelihood: float
    zz: Array
    zz_partly: Array | None
    ez: Array
    ee: Array
    count: Array


def sum_emission(
    params: LinearParameters, outputs: Array, z: Array, smoothed: Smoothing, weight: Array, observed: Collapsed
) -> EmissionSums:
    """The sums of a batch, for means z (n_rows, k) of the regressors and weights (n_rows,) of the rows."""
    gamma = np.concatenate([params.C, params.D, params.c[:, None]], axis=1)
    residual = outputs - z @ gamma.T
    data = _Rows(params, residual, z, smoothed, weight)
    return _correlated(data, observed) if params.R.ndim == 2 else _independent(data, observed)


@dataclass(frozen=True, eq=False)
class _Rows:
    """What the sums are made of, for all rows or for some."""

    params: LinearParameters
    residual: Array
    z: Array
    smoothed: Smoothing
    weight: Array


def _independent(data: _Rows, observed: Collapsed) -> EmissionSums:
    n, k = data.residual.shape[1], data.z.shape[1]
    d = len(data.params.m)
    whole = np.asarray(observed.seen.all(axis=1))[observed.pattern]
    chosen: Integers | slice = slice(None) if whole.all() else np.flatnonzero(whole)
    weight, z, e, C = data.weight[chosen], data.z[chosen], data.residual[chosen], data.params.C
    spread = data.smoothed.spread(weight, chosen)
    weighted = z * weight[:, None]
    zz, ez, ee = weighted.T @ z, e.T @ weighted, weight @ np.square(e)
    zz[:d, :d] += spread
    ez[:, :d] -= C @ spread
    ee += np.einsum("ij,jk,ik->i", C, spread, C)
    count, partly = np.full(n, weight.sum()), np.zeros((n, k, k))
    rest = np.flatnonzero(~whole)
    step = max(1, MOST_NUMBERS // (k * k))
    for begin in range(0, len(rest), step):
        part = rest[begin : begin + step]
        e, z = data.residual[part], data.z[part]
        counted = ~np.isnan(e) * data.weight[part][:, None]
        e = np.nan_to_num(e)
        spreads = data.smoothed.covariance[data.smoothed.slot[part]].reshape(len(part), -1)
        spread = (counted.T @ spreads).reshape(n, d, d)
        partly += (counted.T @ (z[:, :, None] * z[:, None, :]).reshape(len(part), -1)).reshape(n, k, k)
        partly[:, :d, :d] += spread
        ez += (e * counted).T @ z
        ez[:, :d] -= np.einsum("ij,ijk->ik", C, spread)
        ee += (np.square(e) * counted).sum(axis=0) + np.einsum("ij,ijk,ik->i", C, spread, C)
        count += counted.sum(axis=0)
    return EmissionSums(0.0, zz, partly, ez, ee, count)


def _correlated(data: _Rows, observed: Collapsed) -> EmissionSums:
    n, k = data.residual.shape[1], data.z.shape[1]
    d, C, R = len(data.params.m), data.params.C, data.params.R
    zz, ez, ee, total = np.zeros((k, k)), np.zeros((n, k)), np.zeros((n, n)), 0.0
    for kind, members in observed.groups():
        seen = observed.seen[kind]
        if not seen.any():
            continue
        weight, z, e = data.weight[members], data.z[members], data.residual[members][:, seen]
        spread, emission = data.smoothed.spread(weight, members), C[seen]
        weighted = z * weight[:, None]
        square, cross = (e * weight[:, None]).T @ e, e.T @ weighted
        square += emission @ spread @ emission.T
        cross[:, :d] -= emission @ spread
        fill = np.zeros((n, seen.sum()))
        fill[seen] = np.eye(seen.sum())
        if not seen.all():
            fill[~seen] = np.linalg.solve(R[np.ix_(seen, seen)], R[np.ix_(seen, ~seen)]).T
            left = R[np.ix_(~seen, ~seen)] - fill[~seen] @ R[np.ix_(seen, ~seen)]
            ee[np.ix_(~seen, ~seen)] += weight.sum() * left
        zz += weighted.T @ z
        zz[:d, :d] += spread
        ez += fill @ cross
        ee += fill @ square @ fill.T
        total += float(weight.sum())
    return EmissionSums(0.0, zz, None, ez, ee, np.full(n, total))
