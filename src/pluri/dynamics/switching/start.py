"""Starting values of a switching system: principal components for the states, switching regressions for the regimes.

Holes are filled by straight lines, principal components (of several successive rows if more components are asked for
than there are features) are scaled to unit variance, and taken as if they were the states. k-means on where the states
are, where they go and how fast, averaged over neighbouring steps, gives first regimes; a few EM steps of switching
regressions on the components, which are observed, refine them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.components.chain.forward_backward import Chain
from pluri.components.k_means import k_means
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

#: Rows that starting values are chosen from, at most (whole sequences, and at least one).
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
            kept[: len(params.kept)] = params.kept
        return replace(found, kept=kept)

    def _regressions(self, rng: np.random.Generator) -> SwitchingParameters:
        states, offsets, emission = self.components
        k, d = self.n_regimes, states.shape[1]
        labels = first_regimes(states, offsets, k, rng)
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
        numbered = ArraySource(states, np.diff(offsets), labels=np.arange(len(states)), batch_size=max(len(states), 1))
        batch = next(iter(numbered.batches())).load()
        # The first M-step is made from the regimes of k-means, which say little of how often one follows another.
        params = replace(problem, update="aqi").maximize(problem.statistics(params, batch, posterior), params)
        result = expectation_maximization(
            problem, numbered, rng=rng, max_iter=STEPS, tol=1e-3 * len(states), start=params
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
        return self.sums(params, batch, batch.X, q, regimes)

    def _emission(self, sums: Any, params: SwitchingParameters) -> dict[str, Array]:
        return {}


def first_sequences(source: Source) -> tuple[Array, Integers]:
    """The first sequences of the data, at most `MAX_ROWS` rows unless the first is longer, and their lengths."""
    parts: list[Array] = []
    lengths: list[Integers] = []
    n_rows = 0
    for lazy in source.batches():
        batch = lazy.load()
        ends = batch.offsets[1:]
        fits = max(int(np.searchsorted(ends, MAX_ROWS - n_rows, side="right")), 0 if parts else 1)
        if fits:
            parts.append(np.asarray(batch.X[: ends[fits - 1]], dtype=np.float64))
            lengths.append(np.diff(batch.offsets)[:fits])
            n_rows += len(parts[-1])
        if fits < batch.n_sequences:
            break
    return np.concatenate(parts), np.concatenate(lengths)


class PrincipalStates(NamedTuple):
    """States (n, d) of unit variance, where their sequences begin and end, and C (m, d), c (m,), R (m, m) for them."""

    states: Array
    offsets: Integers
    emission: dict[str, Array]

    def step_variance(self) -> Array:
        """Mean square of the steps of each component (d,), at least a millionth of its variance."""
        _, later = first_and_later(self.offsets)
        if not len(later):
            return np.full(self.states.shape[1], 1e-2)
        steps = self.states[later] - self.states[later - 1]
        return np.asarray(np.maximum(np.square(steps).mean(axis=0), 1e-6), dtype=np.float64)


def principal_states(source: Source, d: int) -> PrincipalStates:
    """States that explain the first sequences of the data."""
    X, lengths = first_sequences(source)
    filled = without_holes(X, lengths)
    m = X.shape[1]
    offset = filled.mean(axis=0)
    centred = filled - offset
    scale = centred.std(axis=0)
    scale[scale < 1e-12 * (1.0 + np.abs(offset))] = 1.0
    window = [centred / scale]
    while len(window) * m < d:
        window.append(_shifted(window[-1], lengths))
    left, values, _ = np.linalg.svd(np.concatenate(window, axis=1), full_matrices=False)
    rank = min(d, len(values))
    states = np.zeros((len(X), d))
    states[:, :rank] = left[:, :rank] * np.sqrt(len(X))
    states[:, :rank][:, values[:rank] < 1e-9 * max(values[0], 1e-300)] = 0.0
    C = centred.T @ states / len(X)
    residual = np.square(centred - states @ C.T).mean(axis=0)
    noise = np.maximum(residual, LEAST_NOISE * scale**2)
    emission = {"emission": C, "emission_offset": offset, "emission_covariance": np.diag(noise)}
    return PrincipalStates(states, np.concatenate([[0], np.cumsum(lengths)]), emission)


def without_holes(X: Array, lengths: Integers) -> Array:
    """Missing values on straight lines between those seen before and after in the sequence; else the feature's mean."""
    seen = ~np.isnan(X)
    if seen.all():
        return X
    counts = np.maximum(seen.sum(axis=0), 1)
    out = np.where(seen, X, np.where(seen, X, 0.0).sum(axis=0) / counts)
    begin = 0
    for end in np.cumsum(lengths):
        steps = np.arange(end - begin)
        for j in range(X.shape[1]):
            here = seen[begin:end, j]
            if here.any() and not here.all():
                out[begin:end, j] = np.interp(steps, steps[here], X[begin:end, j][here])
        begin = end
    return out


def first_regimes(states: Array, offsets: Integers, k: int, rng: np.random.Generator) -> Integers:
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
    labels, _ = k_means(features, None, k, rng, n_init=1)
    return np.asarray(labels, dtype=np.int64)


def averaged(rows: Array, offsets: Integers, window: int) -> Array:
    """Means of the rows up to `window` steps away in the same sequence."""
    out = np.empty_like(rows)
    for begin, end in pairwise(offsets):
        reached = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows[begin:end], axis=0)])
        steps = np.arange(end - begin)
        first, last = np.maximum(steps - window, 0), np.minimum(steps + window + 1, end - begin)
        out[begin:end] = (reached[last] - reached[first]) / (last - first)[:, None]
    return out


def _shifted(rows: Array, lengths: Integers) -> Array:
    """Each row replaced by the one before it in its sequence; the first by itself."""
    index = np.arange(len(rows)) - 1
    begins = (np.cumsum(lengths) - lengths)[lengths > 0]
    index[begins] = begins
    return rows[index]
