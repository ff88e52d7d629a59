"""Starting values of a switching system: principal components for the states, switching regressions for the regimes.

Holes are filled by straight lines, principal components (of several successive rows if more components are asked for
than there are features) are scaled to unit variance, and taken as if they were the states. k-means on where the states
are, where they go and how fast, averaged over neighbouring steps, gives first regimes; a few EM steps of switching
regressions on the components, which are observed, refine them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.components.chain.forward_backward import Chain
from pluri.components.first_sequences import FirstSequences, fill_holes, weighted_mean, weighted_spread
from pluri.components.k_means import k_means
from pluri.dynamics.neighboring_steps import averaged
from pluri.dynamics.switching.learning import SwitchingPrior, SwitchingProblem, SwitchingStatistics
from pluri.dynamics.switching.parameters import FIELDS, SwitchingParameters
from pluri.dynamics.switching.potentials import Potentials
from pluri.dynamics.switching.smoothing import (
    Precomputed,
    SwitchingPosterior,
    expected_log_densities,
    first_and_later,
    smooth_regimes,
)
from pluri.engine import ArraySource, Batch, Source
from pluri.inference import expectation_maximization

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Rows that starting values are chosen from, at most.
MAX_ROWS = 20_000
#: EM steps of the switching regressions.
STEPS = 20
#: Steps before and after that the first guess of a regime looks at; `benchmarks/reproduce/switching_systems.py`.
WINDOW = 10
#: Least share of a feature's variance that the noise starts with.
LEAST_NOISE = 1e-2


@dataclass(frozen=True)
class SwitchingStart:
    """Callable that `SwitchingProblem.initialize` asks.

    Parameters
    ----------
    n_regimes : number of regimes
    n_groups : n_regimes, or 1 if all regimes are observed alike
    prior : priors of the regressions
    components : what `principal_states` gives for the first sequences
    given : checked attributes to start from, as `pluri.dynamics.switching.parameters.checked` gives them
    n_kept : rows of data, numbered by their labels, whose q(z) is kept from one E-step to the next
    """

    n_regimes: int
    n_groups: int
    prior: SwitchingPrior
    components: PrincipalStates
    given: dict[str, Array]
    n_kept: int = 0

    def __call__(self, source: Source, rng: np.random.Generator) -> SwitchingParameters:
        """Starting values; `kept` is q(z) of the rows that they come from, NaN for others."""
        params = self._regressions(rng)
        found = replace(params, **{FIELDS[name]: value for name, value in self.given.items()})
        kept = np.full((self.n_kept, self.n_regimes), np.nan)
        if self.n_kept and not self.given:
            kept[self.components.places] = params.kept
        return replace(found, kept=kept)

    def _regressions(self, rng: np.random.Generator) -> SwitchingParameters:
        states, offsets, weight, _, emission = self.components
        k, d = self.n_regimes, states.shape[1]
        labels = first_regimes(states, offsets, weight, k, rng)
        posterior = np.eye(k)[labels] * 0.9 + 0.1 / k
        other = 0.1 / max(k - 1, 1)
        stays = np.where(np.eye(k, dtype=bool), 0.9 if k > 1 else 1.0, other)
        shared = {name: np.tile(value, (self.n_groups, *[1] * value.ndim)) for name, value in emission.items()}
        params = SwitchingParameters(
            start=np.full(k, 1.0 / k),
            transition=stays,
            dynamics=np.tile(np.eye(d), (k, 1, 1)),
            dynamics_offset=np.zeros((k, d)),
            dynamics_covariance=np.tile(np.eye(d), (k, 1, 1)),
            initial_mean=np.zeros((k, d)),
            initial_covariance=np.tile(np.eye(d), (k, 1, 1)),
            occupancy=np.full(k, np.nan),
            kept=posterior,
            **shared,
        )
        problem = ObservedProblem(None, self.prior, update="staqi")
        numbered = ArraySource(
            states,
            np.diff(offsets),
            sample_weight=weight[offsets[:-1]],
            labels=np.arange(len(states)),
            batch_size=max(len(states), 1),
        )
        batch = next(iter(numbered.batches())).load()
        # The first M-step is made from the regimes of k-means, which say little of how often one follows another.
        params = replace(problem, update="aqi").maximize(problem.statistics(params, batch, posterior), params)
        result = expectation_maximization(
            problem, numbered, rng=rng, max_iter=STEPS, tol=1e-3 * weight.sum(), start=params
        )
        return result.params


@dataclass(frozen=True)
class ObservedProblem(SwitchingProblem):
    """Switching regressions: the states are the data."""

    def expect(self, params: SwitchingParameters, batch: Batch) -> SwitchingStatistics:
        """Expected sums given the states of a batch."""
        return self.statistics(params, batch, None)

    def statistics(self, params: SwitchingParameters, batch: Batch, regimes: Array | None) -> SwitchingStatistics:
        """Expected sums; under `regimes` (n, k) in place of their posterior, if given."""
        n, d = batch.X.shape
        params = replace(params, emission=np.zeros((1, d, d)), emission_offset=np.zeros((1, d)))
        nothing, zeros = Potentials(np.zeros((1, n)), np.zeros((1, n, d)), np.zeros((1, n, d, d))), np.zeros((n, d, d))
        chain = Chain.from_probabilities(params.start, params.transition)
        system = Precomputed.of(params, nothing)
        rows, _ = expected_log_densities(system, batch.X, zeros, zeros, batch.offsets, chain.width)
        found = smooth_regimes(chain, rows, batch.offsets, np.ones(batch.n_sequences))
        q = SwitchingPosterior(
            found.posterior[:, : chain.n_states] if regimes is None else regimes,
            batch.X,
            zeros,
            zeros,
            found.scores,
            chain,
            rows,
        )
        if regimes is not None and batch.weight is not None:
            regimes = regimes * np.repeat(batch.weight, np.diff(batch.offsets))[:, None]
        return self.sums(params, batch, batch.X, q, regimes)

    def _emission(self, sums: Any, params: SwitchingParameters) -> dict[str, Array]:
        return {}


class PrincipalStates(NamedTuple):
    """States that explain the first sequences of the data.

    Attributes
    ----------
    states : (n, d), of unit variance
    offsets : (n_sequences + 1,): where the sequences begin and end
    weight : (n,): that of the sequence of each row
    places : (n,): the number of each row in the source
    emission : C (m, d), c (m,) and R (m, m) for these states
    """

    states: Array
    offsets: Integers
    weight: Array
    places: Integers
    emission: dict[str, Array]

    def step_variance(self) -> Array:
        """Mean square of the steps of each component (d,), at least a millionth of its variance."""
        _, later = first_and_later(self.offsets)
        if not len(later):
            return np.full(self.states.shape[1], 1e-2)
        steps = self.states[later] - self.states[later - 1]
        return np.asarray(np.maximum(weighted_mean(np.square(steps), self.weight[later]), 1e-6), dtype=np.float64)


def principal_states(first: FirstSequences, d: int) -> PrincipalStates:
    """Principal components of the first sequences, as if they were the states."""
    lengths, weight = first.lengths, first.weight
    filled = fill_holes(first.rows, lengths, weight)
    n, m = filled.shape
    offset = weighted_mean(filled, weight)
    centred = filled - offset
    scale = weighted_spread(centred, weight)
    scale[scale < 1e-12 * (1.0 + np.abs(offset))] = 1.0
    window = [centred / scale]
    while len(window) * m < d:
        window.append(_shifted(window[-1], lengths))
    root, total = np.sqrt(weight)[:, None], weight.sum()
    left, values, _ = np.linalg.svd(root * np.concatenate(window, axis=1), full_matrices=False)
    rank = min(d, len(values))
    states = np.zeros((n, d))
    states[:, :rank] = left[:, :rank] / root * np.sqrt(total)
    states[:, :rank][:, values[:rank] < 1e-9 * max(values[0], 1e-300)] = 0.0
    C = (weight[:, None] * centred).T @ states / total
    residual = weighted_mean(np.square(centred - states @ C.T), weight)
    noise = np.maximum(residual, LEAST_NOISE * scale**2)
    emission = {"emission": C, "emission_offset": offset, "emission_covariance": np.diag(noise)}
    return PrincipalStates(states, np.concatenate([[0], np.cumsum(lengths)]), weight, first.places, emission)


def first_regimes(states: Array, offsets: Integers, weight: Array, k: int, rng: np.random.Generator) -> Integers:
    """k-means on where states are, where they go and how fast, averaged over neighbouring steps."""
    if k == 1:
        return np.zeros(len(states), dtype=np.int64)
    _, later = first_and_later(offsets)
    steps = np.zeros_like(states)
    steps[later] = states[later] - states[later - 1]
    steps /= steps.std() or 1.0
    features = averaged(np.concatenate([states, steps, np.abs(steps)], axis=1), offsets, WINDOW)
    if len(np.unique(features, axis=0)) < k:
        return rng.integers(k, size=len(states))
    labels, _ = k_means(features, weight, k, rng, n_init=1)
    return np.asarray(labels, dtype=np.int64)


def _shifted(rows: Array, lengths: Integers) -> Array:
    """Each row replaced by the one before it in its sequence; the first by itself."""
    index = np.arange(len(rows)) - 1
    begins = (np.cumsum(lengths) - lengths)[lengths > 0]
    index[begins] = begins
    return rows[index]
