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
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pluri.components.first_sequences import (
    FirstSequences,
    fill_holes,
    seen_variance,
    weighted_mean,
    weighted_spread,
)
from pluri.dynamics.linear.parameters import LinearParameters, spectral_radius
from pluri.dynamics.linear.updates import positive

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
    """The first sequences: outputs with holes (n_rows, n), inputs (n_rows, q), lengths, and the weight of each row."""

    outputs: Array
    inputs: Array
    lengths: Integers
    weight: Array

    @classmethod
    def of(cls, first: FirstSequences, n_outputs: int) -> Self:
        """Columns parted into outputs and inputs."""
        return cls(first.rows[:, :n_outputs], first.rows[:, n_outputs:], first.lengths, first.weight)


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
    # A constant, and what inputs explain to the last digit, leave nothing: the variance that was seen is a scale then.
    spread, seen = weighted_spread(filled, rows.weight), seen_variance(rows.outputs, rows.weight)
    variances = np.maximum(found.pop("left"), np.maximum(1e-3 * spread**2, 1e-8 * seen))
    R = np.diag(variances) if full_noise else variances
    return LinearParameters(**{**found, "c": shift, "D": D, "R": R, **given})


def _centred(rows: FirstRows, given: Mapping[str, Array]) -> tuple[Array, Array, Array]:
    """Outputs with holes filled, less c + D u; c; D."""
    n, q = rows.outputs.shape[1], rows.inputs.shape[1]
    D, c = given.get("D", np.zeros((n, q))), given.get("c", np.zeros(n))
    outputs = fill_holes(rows.outputs, rows.lengths, rows.weight)
    outputs = outputs - rows.inputs @ D.T - c
    design = np.concatenate(
        [rows.inputs[:, : 0 if "D" in given else q], np.ones((len(outputs), int("c" not in given)))], 1
    )
    if design.shape[1]:
        root = np.sqrt(rows.weight)[:, None]
        slopes = np.linalg.lstsq(root * design, root * outputs, rcond=1e-10)[0]
        outputs = outputs - design @ slopes
        c = c if "c" in given else slopes[-1]
        D = D if "D" in given else slopes[:q].T
    return outputs, c, D


def _least_squares_states(outputs: Array, C: Array) -> Array:
    """States that explain each row best, pulled a little to zero."""
    square = C.T @ C
    ridge = 1e-3 * max(float(np.trace(square)) / len(square), 1e-300)
    return np.asarray(np.linalg.solve(square + ridge * np.eye(len(square)), C.T @ outputs.T).T)


def _subspace_states(outputs: Array, rows: FirstRows, d: int) -> tuple[Array, Integers]:
    """States (n_kept, d) of unit variance, and the rows that they belong to."""
    scale = weighted_spread(outputs, rows.weight)
    # What is left of a constant, or of what inputs explain, is rounding and must not become a state.
    scaled = outputs / np.where(scale > 1e-10 * np.sqrt(seen_variance(rows.outputs, rows.weight)), scale, np.inf)
    p = min(scaled.shape[1], max(COMPONENTS_PER_STATE * d, 1))
    if p < scaled.shape[1]:
        scaled = scaled @ _directions(scaled, rows.weight, p)
    lags = max(2, -(-2 * d // p))
    windows = _windows(rows.lengths, lags)
    if len(windows) < 4 * lags * (p + rows.inputs.shape[1]) + d:
        return _unit_variance(_padded(scaled, rows.weight, d), rows.weight), np.arange(len(scaled))
    weight = rows.weight[windows]
    past = np.concatenate([scaled[windows - i] for i in range(1, lags + 1)], axis=1)
    future = np.concatenate([scaled[windows + i] for i in range(lags)], axis=1)
    design = past
    if rows.inputs.shape[1]:
        inputs = rows.inputs - weighted_mean(rows.inputs, rows.weight)
        before = [inputs[windows - i] for i in range(1, lags + 1)]
        later = [inputs[windows + i] for i in range(lags)]
        past = np.concatenate([past, *before], axis=1)
        design = np.concatenate([past, *later], axis=1)
    weighted = (design * weight[:, None]).T
    square = weighted @ design
    square[np.diag_indices(len(square))] += RIDGE * np.trace(square) / len(square) + 1e-300
    explained = past @ np.linalg.solve(square, weighted @ future)[: past.shape[1]]
    values, vectors = np.linalg.eigh((future * weight[:, None]).T @ future / weight.sum())
    whitener = vectors / np.sqrt(np.maximum(values, RIDGE * values[-1] + 1e-300))
    white = explained @ whitener
    return _unit_variance(white @ _directions(white, weight, d), weight), windows


def _windows(lengths: Integers, lags: int) -> Integers:
    """Rows with `lags` rows before them and `lags` rows, themselves included, after."""
    starts = np.cumsum(lengths) - lengths
    found = [start + np.arange(lags, length - lags + 1) for start, length in zip(starts, lengths) if length >= 2 * lags]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _directions(rows: Array, weight: Array, n: int) -> Array:
    """Leading principal directions (m, n)."""
    return np.asarray(np.linalg.svd(np.sqrt(weight)[:, None] * rows, full_matrices=False)[2][:n].T)


def _padded(scaled: Array, weight: Array, d: int) -> Array:
    """Principal components (n_rows, d); where they are too few, fixed noise that EM can make something of."""
    scores = scaled @ _directions(scaled, weight, d)
    noise = np.random.default_rng(0).standard_normal((len(scaled), d - scores.shape[1]))
    return np.concatenate([scores, noise], axis=1)


def _unit_variance(states: Array, weight: Array) -> Array:
    spread = weighted_spread(states, weight)
    centred = states - weighted_mean(states, weight)
    return np.asarray(centred / np.where(spread > 1e-8 * spread.max(initial=0.0), spread, 1.0))


def _regressions(states: Array, kept: Integers, outputs: Array, rows: FirstRows) -> dict[str, Array]:
    """Parts that follow from states: all but c and D, and the variances of what C leaves of the outputs."""
    d, q = states.shape[1], rows.inputs.shape[1]
    weight = rows.weight[kept]
    weighted = (states * weight[:, None]).T / weight.sum()
    square = weighted @ states
    ridge = RIDGE * (np.trace(square) / d) + 1e-12
    C = np.linalg.solve(square + ridge * np.eye(d), weighted @ outputs[kept]).T
    first = np.cumsum(rows.lengths) - rows.lengths
    follows = np.flatnonzero((np.diff(kept) == 1) & ~np.isin(kept[1:], first))
    A, B, Q = 0.9 * np.eye(d), np.zeros((d, q)), 0.2 * square + ridge * np.eye(d)
    if len(follows) > d + q + 1:
        inputs = rows.inputs[kept[follows]] - weighted_mean(rows.inputs, rows.weight)
        design = np.concatenate([states[follows], inputs], axis=1)
        share = weight[follows][:, None] / weight[follows].sum()
        moments = (share * design).T @ design
        moments[np.diag_indices(d + q)] += RIDGE * np.trace(moments) / (d + q) + 1e-12
        slopes = np.linalg.solve(moments, (share * design).T @ states[follows + 1]).T
        A, B = slopes[:, :d], slopes[:, d:]
        radius = spectral_radius(A)
        A = A * min(1.0, START_RADIUS / max(radius, 1e-12))
        left = states[follows + 1] - design @ np.concatenate([A, B], axis=1).T
        # Some noise in all directions, for EM to take away.
        Q = positive((share * left).T @ left) + 1e-2 * np.diag(np.diag(square)) + ridge * np.eye(d)
    residual = outputs[kept] - states @ C.T
    return {
        "m": weighted_mean(states, weight),
        "P": square + ridge * np.eye(d),
        "A": A,
        "B": B,
        "b": np.zeros(d),
        "Q": Q,
        "C": C,
        "left": weighted_spread(residual, weight) ** 2,
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
