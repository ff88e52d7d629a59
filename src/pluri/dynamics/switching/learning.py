"""A switching system as something that EM can learn: statistics, E-step, M-step and log prior.

The objective is the sum of the sequences' evidence lower bounds (`pluri.dynamics.switching.smoothing`) and the log
priors. An E-step starts from the q(z) that the last one ended with, which travels with the parameters: q has several
local optima, and the bound could fall if each E-step looked for one afresh.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.switching import packing
from pluri.dynamics.switching.moments import Regression, moves, sights
from pluri.dynamics.switching.parameters import SwitchingParameters
from pluri.dynamics.switching.smoothing import (
    SwitchingPosterior,
    filtered_start,
    first_and_later,
    infer,
    smooth_regimes,
)
from pluri.engine import Batch, Source, Statistics
from pluri.priors import Dirichlet, RowPrior
from pluri.validation import plain_array

Array = NDArray[np.float64]

FLAT = Dirichlet(1.0)


@dataclass(frozen=True)
class KeptRegimes(Statistics):
    """q(z) of batches, by the number of their first row: what one E-step leaves to the next."""

    parts: dict[int, Array]

    def __add__(self, other: Any) -> Any:
        return KeptRegimes(self.parts | other.parts) if isinstance(other, KeptRegimes) else NotImplemented


@dataclass(frozen=True)
class SwitchingStatistics(Statistics):
    """Expected sums under q.

    Attributes
    ----------
    log_likelihood : weighted sum of the evidence lower bounds
    start, transition : (k,), (k, k): how often each regime comes first, and each pair follows
    occupancy : (k,): how many steps each regime explains
    n_sequences, first, first_squares : sums of 1, x_1 (d,) and x_1 x_1^T (d, d) over sequences
    moves, sights : regressions of states on the states before, and of observations, less the last offset, on states
    kept : q(z)
    """

    log_likelihood: float
    start: Array
    transition: Array
    occupancy: Array
    n_sequences: float
    first: Array
    first_squares: Array
    moves: Regression
    sights: Regression
    kept: KeptRegimes


@dataclass(frozen=True)
class SwitchingPrior:
    """What is believed before the data.

    Attributes
    ----------
    start, transition : priors of the chain
    sights, noise : pseudo-rows that C and R are worth, and their variances (m,)
    dynamics : pseudo-steps that A, b, Q of each regime, and the first state's covariance, are worth
    steps, first : (d,): variances of these steps, and of the first state
    """

    start: RowPrior = FLAT
    transition: RowPrior = FLAT
    noise: Array | float = 1.0
    sights: float = 1e-3
    dynamics: float = 10.0
    steps: Array | float = 1e-2
    first: Array | float = 1.0


@dataclass(frozen=True)
class SwitchingProblem:
    """The four functions of `pluri.inference.Learnable`.

    Parameters
    ----------
    start : what `initialize` asks for starting values
    prior : priors
    noise_type : "diag", "isotropic" or "full"
    update : letters of the parameters that the M-step changes
    max_inner, inner_tol : sweeps of an E-step at most, and the gain below which a sequence has converged
    """

    start: Any
    prior: SwitchingPrior
    noise_type: str = "diag"
    update: str = "staqcri"
    max_inner: int = 10
    inner_tol: float = 1e-4

    def initialize(self, source: Source, rng: np.random.Generator) -> SwitchingParameters:
        """Starting values from the data."""
        return self.conforming(self.start(source, rng))

    def conforming(self, params: SwitchingParameters) -> SwitchingParameters:
        """The parameters, moved to where the M-step could have put them: from elsewhere the objective might fall."""
        k, _, m = params.sizes
        if "r" in self.update and self.noise_type != "full":
            noise = np.diagonal(params.emission_covariance, axis1=1, axis2=2)
            noise = noise.mean(axis=1, keepdims=True) if self.noise_type == "isotropic" else noise
            params = replace(params, emission_covariance=noise[:, :, None] * np.eye(m))
        if "i" in self.update:
            mean = params.start @ params.initial_mean
            covariance = np.tensordot(params.start, params.initial_covariance, axes=1)
            firsts = {"initial_mean": np.tile(mean, (k, 1)), "initial_covariance": np.tile(covariance, (k, 1, 1))}
            params = replace(params, **firsts)
        return params

    def expect(self, params: SwitchingParameters, batch: Batch) -> SwitchingStatistics:
        """Moments under q of a batch of whole sequences."""
        X = plain_array(np.asarray(batch.X, dtype=np.float64))
        offsets = batch.offsets
        start = None
        row = _first_row(params, batch)
        if row is not None:
            start = _known_start(params, X, offsets, params.kept[row : row + len(X)])
        q = infer(params, X, offsets, start, max_iter=self.max_inner, tol=self.inner_tol)
        return self.sums(params, batch, X, q)

    def sums(
        self, params: SwitchingParameters, batch: Batch, X: Array, q: SwitchingPosterior, regimes: Array | None = None
    ) -> SwitchingStatistics:
        """What the M-step needs of q, weighted by sequence; `regimes` (n, k) may stand in for q(z)."""
        offsets = batch.offsets
        weight = np.ones(batch.n_sequences) if batch.weight is None else batch.weight
        counted = weight > 0
        pairs = smooth_regimes(q.chain, q.log_emission, offsets, weight)
        weights = pairs.posterior[:, : q.chain.n_states] if regimes is None else regimes
        first, later = first_and_later(offsets)
        firsts = weight[np.diff(offsets) > 0]
        squares = q.covariance[first] + q.mean[first][:, :, None] * q.mean[first][:, None, :]
        groups = weights if len(params.emission) > 1 else weights.sum(axis=1, keepdims=True)
        return SwitchingStatistics(
            log_likelihood=float(weight[counted] @ q.elbo[counted]),
            start=pairs.starts,
            transition=pairs.pairs,
            occupancy=weights.sum(axis=0),
            n_sequences=float(firsts.sum()),
            first=firsts @ q.mean[first],
            first_squares=np.einsum("n,nij->ij", firsts, squares),
            moves=moves(weights, q.mean, q.covariance, q.lagged, later),
            sights=sights(groups, X, params.emission_offset, q.mean, q.covariance, self.noise_type != "full"),
            kept=KeptRegimes({} if (row := _first_row(params, batch)) is None else {row: q.regimes}),
        )

    def maximize(self, stats: SwitchingStatistics, params: SwitchingParameters) -> SwitchingParameters:
        """Update what may be updated; a probability that is exactly zero stays zero."""
        found: dict[str, Any] = {"occupancy": stats.occupancy, "kept": _gathered(params.kept, stats.kept)}
        if "s" in self.update:
            positive = params.start > 0
            counts = np.where(positive, stats.start, 0.0)
            found["start"] = self.prior.start.maximize(counts, params.start, support=_support(positive))
        if "t" in self.update:
            positive = params.transition > 0
            counts = np.where(positive, stats.transition, 0.0)
            found["transition"] = self.prior.transition.maximize(counts, params.transition, support=_support(positive))
        return replace(params, **found, **self._dynamics(stats, params), **self._emission(stats.sights, params))

    def _dynamics(self, stats: SwitchingStatistics, params: SwitchingParameters) -> dict[str, Array]:
        """Moves of the state, and where it begins (the same for all regimes)."""
        k, d, _ = params.sizes
        weight, sums = self.prior.dynamics, stats.moves
        found: dict[str, Array] = {}
        walk = np.eye(d, d + 1)
        W = np.concatenate([params.dynamics, params.dynamics_offset[:, :, None]], axis=2)
        if "a" in self.update:
            W = sums.coefficients(np.full(d + 1, weight), walk)
            found |= {"dynamics": W[:, :, :d].copy(), "dynamics_offset": W[:, :, d].copy()}
        if "q" in self.update:
            apart = W - walk
            scatter = sums.scatter(W) + weight * (apart @ np.swapaxes(apart, 1, 2) + self.prior.steps * np.eye(d))
            found["dynamics_covariance"] = scatter / (sums.count + weight)[:, None, None]
        if "i" in self.update and stats.n_sequences > 0:
            mean = stats.first / stats.n_sequences
            scatter = stats.first_squares - stats.n_sequences * np.outer(mean, mean)
            scatter += weight * self.prior.first * np.eye(d)
            covariance = 0.5 * (scatter + scatter.T) / (stats.n_sequences + weight)
            found |= {"initial_mean": np.tile(mean, (k, 1)), "initial_covariance": np.tile(covariance, (k, 1, 1))}
        return found

    def _emission(self, sums: Regression, params: SwitchingParameters) -> dict[str, Array]:
        g, m, d = params.emission.shape
        weight, variances = self.prior.sights, np.broadcast_to(self.prior.noise, (m,))
        # Sums are of what is left after the last offset.
        W = np.concatenate([params.emission, np.zeros((g, m, 1))], axis=2)
        if "c" in self.update:
            W = sums.coefficients(np.append(np.full(d, weight), 0.0)).reshape(W.shape)
        C = W[:, :, :d].copy()
        found = {"emission": C, "emission_offset": params.emission_offset + W[:, :, d]}
        if "r" not in self.update:
            return found
        count = sums.count.reshape(g, -1) + weight
        added = weight * (C @ np.swapaxes(C, 1, 2) + np.diag(variances))
        if self.noise_type == "full":
            return found | {"emission_covariance": (sums.scatter(W) + added) / count[:, :, None]}
        scatter = sums.scatter(W.reshape(g * m, 1, d + 1)).reshape(g, m) + np.diagonal(added, axis1=1, axis2=2)
        if self.noise_type == "isotropic":
            scatter = np.broadcast_to(scatter.sum(axis=1, keepdims=True), (g, m))
            count = np.broadcast_to(count.sum(axis=1, keepdims=True), (g, m))
        return found | {"emission_covariance": (scatter / count)[:, :, None] * np.eye(m)}

    def log_prior(self, params: SwitchingParameters) -> float:
        """Log prior of everything that the M-step updates."""
        d, weight, total = params.sizes[1], self.prior.dynamics, 0.0
        if "s" in self.update:
            total += self.prior.start.log_density(params.start, support=_support(params.start > 0))
        if "t" in self.update:
            total += self.prior.transition.log_density(params.transition, support=_support(params.transition > 0))
        if set("aq") & set(self.update):
            apart = np.concatenate([params.dynamics - np.eye(d), params.dynamics_offset[:, :, None]], axis=2)
            scale = weight * (apart @ np.swapaxes(apart, 1, 2) + self.prior.steps * np.eye(d))
            total += _log_scale(params.dynamics_covariance, scale, weight)
        if "i" in self.update:
            total += _log_scale(params.initial_covariance[:1], weight * (self.prior.first * np.eye(d))[None], weight)
        if set("cr") & set(self.update):
            weight, C = self.prior.sights, params.emission
            noise = np.diag(np.broadcast_to(self.prior.noise, (params.sizes[2],)))
            total += _log_scale(params.emission_covariance, weight * (C @ np.swapaxes(C, 1, 2) + noise), weight)
        return total

    def pack(self, params: SwitchingParameters) -> Array:
        """What the M-step updates, as a vector without constraints."""
        return packing.pack(params, self.update, self._unit(params))

    def unpack(self, vector: Array, like: SwitchingParameters) -> SwitchingParameters:
        """The inverse of `pack`."""
        priors = (self.prior.start, self.prior.transition)
        return self.conforming(packing.unpack(vector, like, self.update, self._unit(like), priors))

    def _unit(self, params: SwitchingParameters) -> Array:
        return np.sqrt(np.broadcast_to(self.prior.noise, (params.sizes[2],)))


def _log_scale(covariances: Array, scales: Array, degrees: float) -> float:
    """Sum of -tr(S^-1 scale) / 2 - degrees log|S| / 2 over matrices S."""
    traces = np.trace(np.linalg.solve(covariances, np.broadcast_to(scales, covariances.shape)), axis1=1, axis2=2)
    return float(-0.5 * traces.sum() - 0.5 * degrees * np.linalg.slogdet(covariances)[1].sum())


def _first_row(params: SwitchingParameters, batch: Batch) -> int | None:
    """Where a batch begins in `kept`; its rows carry their numbers as labels. None if nothing is kept."""
    if batch.labels is None or not len(params.kept) or not batch.n_samples:
        return None
    return int(batch.labels[0])


def _known_start(params: SwitchingParameters, X: Array, offsets: NDArray[np.int64], kept: Array) -> Array:
    """q(z) as it was kept; that of the filter for sequences of which there is none."""
    unknown = np.isnan(kept[:, 0])
    if not unknown.any():
        return kept
    return np.where(unknown[:, None], filtered_start(params, X, offsets), kept)


def _gathered(kept: Array, found: KeptRegimes) -> Array:
    if not found.parts:
        return kept
    out = kept.copy()
    for row, part in found.parts.items():
        out[row : row + len(part)] = part
    return out


def _support(positive: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    return None if positive.all() else positive
