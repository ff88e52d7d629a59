"""A linear dynamical system as something that EM can learn: statistics, E-step and M-step.

With z = (x, u, 1), Theta = (A, B, b) and Gamma = (C, D, c) the statistics are the second moments of z, of the
innovations w = x_{t+1} - Theta z_t and of the residuals e = y - Gamma z under the current parameters, and the M-step
regresses w and e on z: what is summed is small where the parameters are good, and large offsets of the data cancel
nothing. The objective is  sum_s w_s log p(y_s) + log p(m, P) - sum_i psi_i / (2 R_ii)  (full R: - tr(Psi R^-1) / 2).

References
----------
Shumway and Stoffer (1982), An approach to time series smoothing and forecasting using the EM algorithm, Journal of Time
Series Analysis 3. Ghahramani and Hinton (1996), Parameter estimation for linear dynamical systems, CRG-TR-96-2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.linear import parameters as records
from pluri.dynamics.linear.emission_sums import EmissionSums, sum_emission
from pluri.dynamics.linear.parameters import LinearParameters
from pluri.dynamics.linear.passes import Smoothing, smooth_sequences
from pluri.dynamics.linear.start import perturbed
from pluri.dynamics.linear.updates import FirstStatePrior, update_emission, update_first, update_transition
from pluri.engine import Batch, Source, Statistics

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class LinearStatistics(Statistics):
    """Expected sums over the posterior of the states.

    Attributes
    ----------
    log_likelihood : weighted log-likelihood of the sequences
    starts : total weight of the sequences
    first, first_square : sums of x_1 - m (d,) and of its square (d, d)
    moves : total weight of the steps from one row to the next
    zz, wz, ww : sums of z z^T (k, k), w z^T (d, k) and w w^T (d, d) over these steps
    emission : the sums of the outputs
    """

    log_likelihood: float
    starts: float
    first: Array
    first_square: Array
    moves: float
    zz: Array
    wz: Array
    ww: Array
    emission: EmissionSums


@dataclass(frozen=True)
class LinearProblem:
    """The four functions of `pluri.inference.Learnable`.

    Parameters
    ----------
    start : where the first run starts; others start around it
    learned : letters of the parts that the M-step changes
    given : letters of the parts whose starting values are given
    covariance_type : "diag", "full" or "spherical", of R
    noise_scale : psi (n,), in the squared unit of each output
    unit : what each output is measured in (n,) where steps are extrapolated, so that they depend on no unit
    first_state : the prior of m and P
    stable : whether the spectral radius of A is kept below 1
    """

    start: LinearParameters
    learned: str
    given: str
    covariance_type: str
    noise_scale: Array
    unit: Array
    first_state: FirstStatePrior
    stable: bool = False

    def initialize(self, source: Source, rng: np.random.Generator) -> LinearParameters:
        """The first start, with what is not given moved at random."""
        return perturbed(self.start, self.given, rng)

    def expect(self, params: LinearParameters, batch: Batch) -> LinearStatistics:
        """Expected sums of a batch of whole sequences; its rows are outputs, then inputs."""
        rows = np.asarray(batch.X, dtype=np.float64)
        n = len(params.c)
        outputs, inputs = rows[:, :n], rows[:, n:]
        weight = np.ones(batch.n_sequences) if batch.weight is None else batch.weight
        offsets = batch.offsets
        result = params.filter(outputs, inputs, offsets)
        scores = result.log_likelihoods()
        if not np.isfinite(scores[weight > 0]).all():
            raise FloatingPointError("the log-likelihood of a sequence is not finite: the states grow without bounds")
        smoothed = smooth_sequences(result)
        z = np.concatenate([smoothed.mean, inputs, np.ones((len(rows), 1))], axis=1)
        by_row = np.repeat(weight, np.diff(offsets))
        emission = sum_emission(params, outputs, z, smoothed, by_row, result.observed)
        first = offsets[:-1][np.diff(offsets) > 0]
        starts, first_sum, first_square = _first_sums(params, smoothed, first, by_row[first])
        moves, zz, wz, ww = _transition_sums(params, z, smoothed, by_row, first)
        total = float(weight[weight > 0] @ scores[weight > 0])
        return LinearStatistics(total, starts, first_sum, first_square, moves, zz, wz, ww, emission)

    def maximize(self, stats: LinearStatistics, params: LinearParameters) -> LinearParameters:
        """Update what may be updated."""
        found = {letter: getattr(params, letter) for letter in records.LETTERS}
        first = self.first_state.add((stats.starts, stats.first, stats.first_square), params)
        found |= update_first(first, params, self.learned)
        found |= update_transition(
            (stats.moves, stats.zz, stats.wz, stats.ww), params, self.learned, stable=self.stable
        )
        found |= update_emission(stats.emission, params, self.learned, self.covariance_type, self.noise_scale)
        return LinearParameters(**found)

    def log_prior(self, params: LinearParameters) -> float:
        """Log prior of m, P and R, up to a constant; what is known has none."""
        total = self.first_state.log_density(params, self.learned)
        if "R" in self.learned:
            inverse = 1.0 / params.R if params.R.ndim == 1 else np.diag(np.linalg.inv(params.R))
            total -= 0.5 * float((self.noise_scale * inverse).sum())
        return total

    def pack(self, params: LinearParameters) -> Array:
        """The learned parts as a vector without constraints."""
        return records.pack(records.in_units(params, self.unit), self.learned)

    def unpack(self, vector: Array, like: LinearParameters) -> LinearParameters:
        """The inverse of `pack`."""
        within = records.unpack(vector, records.in_units(like, self.unit), self.learned, stable=self.stable)
        found = records.in_units(within, 1 / self.unit)
        if self.covariance_type == "spherical" and "R" in self.learned:
            variances = np.full_like(found.R, np.exp(np.log(found.R).mean()))
            return LinearParameters(**{**vars(found), "R": variances})
        return found


def _first_sums(
    params: LinearParameters, smoothed: Smoothing, first: Integers, weight: Array
) -> tuple[float, Array, Array]:
    centred = smoothed.mean[first] - params.m
    square = (centred * weight[:, None]).T @ centred
    square += smoothed.spread(weight, first)
    return float(weight.sum()), weight @ centred, square


def _transition_sums(
    params: LinearParameters, z: Array, smoothed: Smoothing, by_row: Array, first: Integers
) -> tuple[float, Array, Array, Array]:
    """Total weight of the steps, and the sums zz, wz, ww over them."""
    d = len(params.m)
    A, theta = params.A, np.concatenate([params.A, params.B, params.b[:, None]], axis=1)
    weight = by_row.copy()
    weight[np.append(first[1:], len(z)) - 1] = 0.0  # the last row of a sequence leads nowhere
    w = np.zeros((len(z), d))
    w[:-1] = smoothed.mean[1:] - z[:-1] @ theta.T
    here = smoothed.spread(weight)
    lagged = smoothed.lagged_spread(weight)
    later = smoothed.spread(weight[:-1], slice(1, None))
    weighted = z * weight[:, None]
    zz, wz = weighted.T @ z, w.T @ weighted
    zz[:d, :d] += here
    wz[:, :d] += lagged - A @ here
    ww = (w * weight[:, None]).T @ w + later - A @ lagged.T - lagged @ A.T + A @ here @ A.T
    return float(weight.sum()), zz, wz, ww
