"""Where EM starts: states found by subspace identification, and the regressions that follow from them.

The outputs, less their regression on inputs and a constant, scaled and reduced to their first principal components, are
cut into windows of 2 l steps. The part of the future (l steps) that is linear in the past (l steps) is a function of
the state alone; its leading canonical directions, scaled to unit variance, are the states (canonical variate analysis,
without inputs; with them the future inputs are regressed out, as in N4SID). Sequences too short for windows give
principal components instead. Holes are filled by linear interpolation, for this alone.

References
----------
Larimore (1990), Canonical variate analysis in identification, filtering and adaptive control, CDC. Van Overschee and
De Moor (1996), Subspace Identification for Linear Systems, Kluwer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.linear.parameters import LinearParameters, spectral_radius
from pluri.dynamics.linear.updates import positive
from pluri.engine import Source

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Rows looked at.
MOST_ROWS = 50_000
#: Spectral radius of the first A at most.
START_RADIUS = 0.99
#: Principal components of the outputs at most, for each state.
COMPONENTS_PER_STATE = 3
#: Share of a variance that is added where a regression might be singular.
RIDGE = 1e-6


@dataclass(frozen=True, eq=False)
class FirstRows:
    """The first sequences of a source: outputs with holes (n_rows, n), inputs (n_rows, q), lengths."""

    outputs: Array
    inputs: Array
    lengths: Integers


def first_sequences(source: Source, n_outputs: int) -> FirstRows:
    """Sequences that count, up to `MOST_ROWS` rows; one that is longer is cut."""
    parts: list[Array] = []
    lengths: list[int] = []
    left = MOST_ROWS
    for lazy in source.batches():
        batch = lazy.load()
        offsets = batch.offsets
        for s in range(batch.n_sequences):
            if left <= 0:
                break
            if offsets[s + 1] == offsets[s] or (batch.weight is not None and batch.weight[s] == 0):
                continue
            part = np.asarray(batch.X[offsets[s] : min(offsets[s + 1], offsets[s] + left)], dtype=np.float64)
            parts.append(part)
            lengths.append(len(part))
            left -= len(part)
        if left <= 0:
            break
    rows = np.concatenate(parts)
    return FirstRows(rows[:, :n_outputs], rows[:, n_outputs:], np.array(lengths, dtype=np.int64))


def starting_parameters(
    rows: FirstRows, n_components: int, given: Mapping[str, Array], *, full_noise: bool
) -> LinearParameters:
    """The start of the first run; what is given stays as it is."""
    filled, shift, D = _centred(rows, given)
    if "C" in given:
        states, kept = _least_squares_states(filled, given["C"]), np.arange(len(filled))
    else:
        states, kept = _subspace_states(filled, rows, n_components)
    found = _regressions(states, kept, filled, rows)
    variances = np.maximum(found.pop("left"), 1e-3 * np.maximum(filled.var(axis=0), 1e-300))
    R = np.diag(variances) if full_noise else variances
    return LinearParameters(**{**found, "c": shift, "D": D, "R": R, **given})


def _centred(rows: FirstRows, given: Mapping[str, Array]) -> tuple[Array, Array, Array]:
    """Outputs with holes filled, less c + D u; c; D."""
    n, q = rows.outputs.shape[1], rows.inputs.shape[1]
    D, c = given.get("D", np.zeros((n, q))), given.get("c", np.zeros(n))
    outputs = fill_holes(rows.outputs, rows.lengths)
    outputs = outputs - rows.inputs @ D.T - c
    design = np.concatenate(
        [rows.inputs[:, : 0 if "D" in given else q], np.ones((len(outputs), int("c" not in given)))], 1
    )
    if design.shape[1]:
        slopes = np.linalg.lstsq(design, outputs, rcond=1e-10)[0]
        outputs = outputs - design @ slopes
        c = c if "c" in given else slopes[-1]
        D = D if "D" in given else slopes[:q].T
    return outputs, c, D


def fill_holes(outputs: Array, lengths: Integers) -> Array:
    """Outputs with NaN interpolated in each sequence; the mean of the column where a sequence has never seen it."""
    if not np.isnan(outputs).any():
        return outputs
    seen = ~np.isnan(outputs)
    count = seen.sum(axis=0)
    means = np.where(seen, outputs, 0.0).sum(axis=0) / np.where(count > 0, count, 1)
    out = np.where(seen, outputs, means)
    ends = np.cumsum(lengths)
    for begin, end in zip(ends - lengths, ends):
        for i in np.flatnonzero(~seen[begin:end].all(axis=0)):
            known = np.flatnonzero(seen[begin:end, i])
            if known.size:
                out[begin:end, i] = np.interp(np.arange(end - begin), known, outputs[begin:end, i][known])
    return out


def _least_squares_states(outputs: Array, C: Array) -> Array:
    """States that explain each row best, pulled a little to zero."""
    square = C.T @ C
    ridge = 1e-3 * max(float(np.trace(square)) / len(square), 1e-300)
    return np.asarray(np.linalg.solve(square + ridge * np.eye(len(square)), C.T @ outputs.T).T)


def _subspace_states(outputs: Array, rows: FirstRows, d: int) -> tuple[Array, Integers]:
    """States (n_kept, d) of unit variance, and the rows that they belong to."""
    scale = outputs.std(axis=0)
    scaled = outputs / np.where(scale > 0, scale, 1.0)
    p = min(scaled.shape[1], max(COMPONENTS_PER_STATE * d, 1))
    if p < scaled.shape[1]:
        scaled = scaled @ np.linalg.svd(scaled, full_matrices=False)[2][:p].T
    lags = max(2, -(-2 * d // p))
    windows = _windows(rows.lengths, lags)
    if len(windows) < 4 * lags * (p + rows.inputs.shape[1]) + d:
        return _unit_variance(_padded(scaled, d)), np.arange(len(scaled))
    past = np.concatenate([scaled[windows - i] for i in range(1, lags + 1)], axis=1)
    future = np.concatenate([scaled[windows + i] for i in range(lags)], axis=1)
    design = past
    if rows.inputs.shape[1]:
        inputs = rows.inputs - rows.inputs.mean(axis=0)
        before = [inputs[windows - i] for i in range(1, lags + 1)]
        later = [inputs[windows + i] for i in range(lags)]
        past = np.concatenate([past, *before], axis=1)
        design = np.concatenate([past, *later], axis=1)
    square = design.T @ design
    square[np.diag_indices(len(square))] += RIDGE * np.trace(square) / len(square) + 1e-300
    explained = past @ np.linalg.solve(square, design.T @ future)[: past.shape[1]]
    values, vectors = np.linalg.eigh(future.T @ future / len(future))
    whitener = vectors / np.sqrt(np.maximum(values, RIDGE * values[-1] + 1e-300))
    directions = np.linalg.svd(explained @ whitener, full_matrices=False)[2][:d].T
    return _unit_variance(explained @ whitener @ directions), windows


def _windows(lengths: Integers, lags: int) -> Integers:
    """Rows with `lags` rows before them and `lags` rows, themselves included, after."""
    starts = np.cumsum(lengths) - lengths
    found = [start + np.arange(lags, length - lags + 1) for start, length in zip(starts, lengths) if length >= 2 * lags]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _padded(scaled: Array, d: int) -> Array:
    """Principal components (n_rows, d); where they are too few, fixed noise that EM can make something of."""
    directions = np.linalg.svd(scaled, full_matrices=False)[2][:d].T
    scores = scaled @ directions
    noise = np.random.default_rng(0).standard_normal((len(scaled), d - scores.shape[1]))
    return np.concatenate([scores, noise], axis=1)


def _unit_variance(states: Array) -> Array:
    spread = states.std(axis=0)
    return np.asarray((states - states.mean(axis=0)) / np.where(spread > 1e-8 * spread.max(initial=0.0), spread, 1.0))


def _regressions(states: Array, kept: Integers, outputs: Array, rows: FirstRows) -> dict[str, Array]:
    """Parts that follow from states: all but c and D, and the variances of what C leaves of the outputs."""
    d, q = states.shape[1], rows.inputs.shape[1]
    square = states.T @ states / len(states)
    ridge = RIDGE * (np.trace(square) / d) + 1e-12
    C = np.linalg.solve(square + ridge * np.eye(d), states.T @ outputs[kept] / len(states)).T
    first = np.cumsum(rows.lengths) - rows.lengths
    follows = np.flatnonzero((np.diff(kept) == 1) & ~np.isin(kept[1:], first))
    A, B, Q = 0.9 * np.eye(d), np.zeros((d, q)), 0.2 * square + ridge * np.eye(d)
    if len(follows) > d + q + 1:
        inputs = rows.inputs[kept[follows]] - rows.inputs.mean(axis=0)
        design = np.concatenate([states[follows], inputs], axis=1)
        moments = design.T @ design
        moments[np.diag_indices(d + q)] += RIDGE * np.trace(moments) / (d + q) + 1e-12
        slopes = np.linalg.solve(moments, design.T @ states[follows + 1]).T
        A, B = slopes[:, :d], slopes[:, d:]
        radius = spectral_radius(A)
        A = A * min(1.0, START_RADIUS / max(radius, 1e-12))
        left = states[follows + 1] - design @ np.concatenate([A, B], axis=1).T
        # Some noise in all directions, for EM to take away.
        Q = positive(left.T @ left / len(left)) + 1e-2 * np.diag(np.diag(square)) + ridge * np.eye(d)
    residual = outputs[kept] - states @ C.T
    return {
        "m": states.mean(axis=0),
        "P": square + ridge * np.eye(d),
        "A": A,
        "B": B,
        "b": np.zeros(d),
        "Q": Q,
        "C": C,
        "left": residual.var(axis=0),
    }


def perturbed(start: LinearParameters, given: str, rng: np.random.Generator) -> LinearParameters:
    """A start around another one: A, C and R moved at random, unless their values are given."""
    found = dict(vars(start))
    d = len(start.m)
    if "A" not in given:
        A = start.A + 0.5 * rng.standard_normal((d, d)) / np.sqrt(d)
        found["A"] = A * min(1.0, START_RADIUS / max(spectral_radius(A), 1e-12))
    if "C" not in given:
        found["C"] = start.C + 0.5 * start.C.std(axis=0) * rng.standard_normal(start.C.shape)
    if "R" not in given:
        found["R"] = start.R * np.exp(0.5 * rng.standard_normal())
    return LinearParameters(**found)
