"""The M-step of a linear dynamical system: regressions for the matrices, and the covariances of what they leave.

Only learned columns of Theta = (A, B, b) and Gamma = (C, D, c) move: the change D solves D zz = ez for them. A
direction in which the data say nothing keeps its value.

A stable A: the regression's goal is taken if its spectral radius is at most `STABLE_RADIUS`. Else the expected
log-likelihood, which is concave in A and so rises all the way from the current A to the goal, is followed along that
line as far as A stays stable, and compared with the goal shrunk to that radius; the better one is taken. Both are at
least as good as the current A, so that EM's objective cannot fall.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.linear.emission_sums import EmissionSums
from pluri.dynamics.linear.parameters import STABLE_RADIUS, LinearParameters, spectral_radius

Array = NDArray[np.float64]
FirstSums = tuple[float, Array, Array]

#: Directions of the regressors whose share of the scaled second moments is less count as not determined.
UNDETERMINED = 1e-13


@dataclass(frozen=True, eq=False)
class FirstStatePrior:
    """As if `weight` further sequences had been seen, whose first states have this mean (d,) and covariance (d, d).

    Log density, up to a constant: -weight (log det P + (m - mean)^T P^-1 (m - mean) + tr(covariance P^-1)) / 2. Without
    it a fit to one sequence puts m on its first state and P to zero, and is sure of how any other sequence begins.
    """

    weight: float
    mean: Array
    covariance: Array

    def log_density(self, params: LinearParameters, learned: str) -> float:
        """Log density of what is learned of m and P."""
        if self.weight == 0.0 or not set("mP") & set(learned):
            return 0.0
        inverse = np.linalg.pinv(params.P, hermitian=True)
        centred = params.m - self.mean
        total = float(centred @ inverse @ centred)
        if "P" in learned:
            total += float(np.linalg.slogdet(params.P)[1] + np.trace(self.covariance @ inverse))
        return -0.5 * self.weight * total

    def add(self, sums: FirstSums, params: LinearParameters) -> FirstSums:
        """The sums with those of the prior's sequences."""
        starts, first, square = sums
        centred = self.mean - params.m
        added = self.covariance + np.outer(centred, centred)
        return starts + self.weight, first + self.weight * centred, square + self.weight * added


def update_first(sums: FirstSums, params: LinearParameters, learned: str) -> dict[str, Array]:
    """M and P, from the weight of the sequences and sums of x_1 - m and of its square."""
    starts, first, square = sums
    found: dict[str, Array] = {}
    if starts <= 0.0:
        return found
    step = first / starts if "m" in learned else np.zeros_like(first)
    if "m" in learned:
        found["m"] = params.m + step
    if "P" in learned:
        moved = np.outer(first, step)
        found["P"] = positive((square - moved - moved.T + starts * np.outer(step, step)) / starts)
    return found


def update_transition(
    sums: tuple[float, Array, Array, Array], params: LinearParameters, learned: str, *, stable: bool
) -> dict[str, Array]:
    """A, B, b and Q, from the weight of the steps and the sums zz, wz, ww."""
    moves, zz, wz, ww = sums
    d, q = params.B.shape
    if moves <= 0.0:
        return {}
    columns = _columns("ABb", learned, d, q)
    step = regress(zz, wz, columns)
    if stable and "A" in learned and spectral_radius(params.A + step[:, :d]) > STABLE_RADIUS:
        step = _stable_step(step, sums, params, columns, learned)
    theta = np.concatenate([params.A, params.B, params.b[:, None]], axis=1) + step
    found = {"A": theta[:, :d], "B": theta[:, d:-1], "b": theta[:, -1]}
    if "Q" in learned:
        found["Q"] = positive(_left_over(ww, wz, zz, step) / moves)
    return found


def update_emission(
    sums: EmissionSums, params: LinearParameters, learned: str, covariance_type: str, noise_scale: Array
) -> dict[str, Array]:
    """C, D, c and R, from the sums of the outputs."""
    d, q = params.C.shape[1], params.D.shape[1]
    columns = _columns("CDc", learned, d, q)
    if covariance_type == "full":
        step = regress(sums.zz, sums.ez, columns)
        left = _left_over(sums.ee, sums.ez, sums.zz, step)
    else:
        assert sums.zz_partly is not None
        step, left = _separately(sums, columns)
    gamma = np.concatenate([params.C, params.D, params.c[:, None]], axis=1) + step
    found = {"C": gamma[:, :d], "D": gamma[:, d:-1], "c": gamma[:, -1]}
    if "R" not in learned:
        return found
    seen = sums.count > 0
    if covariance_type == "full":
        found["R"] = positive((left + np.diag(noise_scale)) / sums.count[0]) if seen.any() else params.R
    elif covariance_type == "spherical":
        found["R"] = np.full_like(left, (left + noise_scale)[seen].sum() / sums.count.sum()) if seen.any() else params.R
    else:
        found["R"] = np.where(seen, (left + noise_scale) / np.where(seen, sums.count, 1.0), params.R)
    return found


def _separately(sums: EmissionSums, columns: NDArray[np.bool_]) -> tuple[Array, Array]:
    """The change of Gamma, and what is left of the squares, of outputs with independent noise."""
    assert sums.zz_partly is not None
    if not sums.zz_partly.any():
        step = regress(sums.zz, sums.ez, columns)
        left = sums.ee - 2.0 * (step * sums.ez).sum(axis=1) + ((step @ sums.zz) * step).sum(axis=1)
        return step, np.maximum(left, 0.0)
    step, left = np.zeros_like(sums.ez), np.zeros_like(sums.ee)
    for i, partly in enumerate(sums.zz_partly):
        zz = sums.zz + partly
        step[i] = regress(zz, sums.ez[i : i + 1], columns)[0]
        left[i] = max(sums.ee[i] - 2.0 * step[i] @ sums.ez[i] + step[i] @ zz @ step[i], 0.0)
    return step, left


def regress(zz: Array, ez: Array, columns: NDArray[np.bool_]) -> Array:
    """The change D (n, k), zero outside `columns`, with D zz = ez in these; zero where zz determines nothing."""
    step = np.zeros_like(ez)
    scale = np.sqrt(np.diag(zz))
    columns = columns & (scale > 0.0)
    if not columns.any():
        return step
    inner = zz[np.ix_(columns, columns)] / np.outer(scale[columns], scale[columns])
    values, vectors = np.linalg.eigh(inner)
    inverse = np.where(values > UNDETERMINED * len(values), 1.0 / np.where(values > 0.0, values, 1.0), 0.0)
    step[:, columns] = ((ez[:, columns] / scale[columns]) @ (vectors * inverse) @ vectors.T) / scale[columns]
    return step


def _stable_step(
    step: Array, sums: tuple[float, Array, Array, Array], params: LinearParameters, columns: NDArray[np.bool_],
    learned: str,
) -> Array:  # fmt: skip
    moves, zz, wz, ww = sums
    d = len(params.m)
    goal = params.A + step[:, :d]
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high) if spectral_radius(params.A + middle * step[:, :d]) <= STABLE_RADIUS else (low, middle)
        )
    shrunk = goal * (STABLE_RADIUS / spectral_radius(goal)) - params.A
    others = columns.copy()
    others[:d] = False
    candidates = []
    for change in (low * step[:, :d], shrunk):
        full = np.zeros_like(step)
        full[:, :d] = change
        # B and b are best for this A.
        full += regress(zz, wz - full @ zz, others)
        candidates.append(full)
    values = [_transition_objective(ww, wz, zz, one, moves, params.Q, "Q" in learned) for one in candidates]
    return candidates[1] if np.isfinite(values).all() and values[1] > values[0] else candidates[0]


def _transition_objective(
    ww: Array, wz: Array, zz: Array, step: Array, moves: float, noise: Array, learned: bool
) -> float:
    """Expected log density of the steps, up to a constant, with the best Q if it is learned; infinite if singular."""
    left = _left_over(ww, wz, zz, step)
    if learned:
        sign, log_det = np.linalg.slogdet(left / moves)
        return float(-0.5 * moves * log_det) if sign > 0 else -np.inf
    if np.linalg.matrix_rank(noise, hermitian=True) < len(noise):
        return -np.inf
    return float(-0.5 * np.trace(np.linalg.solve(noise, left)))


def _left_over(ee: Array, ez: Array, zz: Array, step: Array) -> Array:
    """Squares of e - D z."""
    moved = step @ ez.T
    return ee - moved - moved.T + step @ zz @ step.T


def _columns(letters: str, learned: str, d: int, q: int) -> NDArray[np.bool_]:
    """Which columns of (A, B, b) or (C, D, c) are learned."""
    return np.repeat([letter in learned for letter in letters], [d, q, 1])


def positive(covariance: Array) -> Array:
    """The symmetric part, with eigenvalues that rounding made negative set to zero."""
    covariance = 0.5 * (covariance + covariance.T)
    values, vectors = np.linalg.eigh(covariance)
    if values[0] >= 0.0:
        return np.asarray(covariance)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
